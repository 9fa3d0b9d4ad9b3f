/** Round trips as the page sees them, and how long it may pause between fetches. */
/** Smoothed round trip and its variation (RFC 6298, 2.2 and 2.3). */
export declare class RoundTrips {
    #private;
    take(rttMs: number): void;
    /** Smoothed, in ms. */
    get smoothedMs(): number | undefined;
    /** Between an answer and the next fetch. From one byte that the sender sends to the
     * next, this pause and a round trip go by, which must stay under its RTO; and that
     * is at least the round trip and 200 ms. So a longer round trip is no reason to fetch
     * more often, but one that varies is, and one that is longer here than the sender sees
     * it: what a busy page or device adds is taken from the pause. */
    pauseMs(): number;
    /** Half the pause from now on. */
    tighten(): void;
    /** And whole again. */
    relax(): void;
}
