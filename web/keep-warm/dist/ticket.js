/** A player's request, as reported by an adapter. */
export {};
