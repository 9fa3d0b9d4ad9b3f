/** A player's request, as an adapter tells of it. */
export {};
