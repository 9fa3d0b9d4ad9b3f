/** Round trips measured by the page, and the interval between fetches. */
/** Smoothed round trip and its variation (RFC 6298, 2.2 and 2.3). */
export declare class RoundTrips {
    #private;
    take(rttMs: number): void;
    /** Smoothed, in ms. */
    get smoothedMs(): number | undefined;
    /** Time between an answer and the next fetch. Between two bytes from the sender pass this
     * time and a round trip. Their sum must be below the RTO, which is at least the round trip
     * + 200 ms. A longer round trip therefore does not require more frequent fetches, but a
     * varying one does. So does one that is longer here than at the sender: the delay of a
     * busy page or device is subtracted. */
    pauseMs(): number;
    /** Halves the interval. */
    tighten(): void;
    /** Restores the full interval. */
    relax(): void;
}
