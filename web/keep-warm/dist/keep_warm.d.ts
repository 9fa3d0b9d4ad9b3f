import { type Options, type Stats } from "./options.js";
import type { Ticket } from "./ticket.js";
/** The part of an answer that slow start shows in: some windows of 10 segments (RFC 6928),
 * doubled four times (chosen here). */
export declare const EARLY_BYTES = 200000;
export declare class KeepWarm {
    #private;
    /** Throws if a limit is not a number. */
    constructor(options?: Options);
    /** The player is about to send a request. */
    requested(url: string): Ticket;
    /** Stops fetching until `resume` with the same reason: the player is paused or hidden. */
    suspend(reason: string): void;
    /** Continues, unless another reason for suspension remains. */
    resume(reason: string): void;
    /** Stops permanently. */
    stop(why?: string): void;
    /** `end` is called once when it stops, for any reason: adapters detach from their player. */
    whenStopped(end: () => void): void;
    stats(): Stats;
}
