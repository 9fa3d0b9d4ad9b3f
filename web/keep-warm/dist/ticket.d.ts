/** A player's request, as an adapter tells of it. */
import type { Sample } from "./trial.js";
/** What came of a request. Times are of `performance.now()`. */
export interface Done {
    readonly bytes: number;
    readonly firstByteMs: number;
    readonly endMs: number;
    /** Its first part, where the adapter knows it and does not tell of progress. */
    readonly early?: Sample | undefined;
    /** Where it came from, if it was sent on. */
    readonly url?: string | undefined;
}
export interface Ticket {
    /** When the connection is free: a fetch of one byte may be under way, and a request
     * beside it would open a connection that is cold. Never rejects. */
    readonly ready: Promise<void>;
    /** So many bytes have come by now; the first call tells of the first byte. */
    progress(bytes: number): void;
    answered(done: Done): void;
    failed(): void;
}
