import { type Options, type Stats } from "./options.js";
import type { Ticket } from "./ticket.js";
/** The part of an answer that slow start shows in: some windows of 10 segments (RFC 6928),
 * doubled four times (chosen here). */
export declare const EARLY_BYTES = 200000;
export declare class KeepWarm {
    #private;
    /** Throws where a limit is no number. */
    constructor(options?: Options);
    /** The player is about to ask for something. */
    requested(url: string): Ticket;
    /** Nothing is fetched until `resume` with the same reason: the player is paused, or
     * not looked at. */
    suspend(reason: string): void;
    /** As long as no other reason stands against it. */
    resume(reason: string): void;
    /** For good. */
    stop(why?: string): void;
    /** Called when it stops, once, whatever the reason: adapters let go of their player. */
    whenStopped(end: () => void): void;
    stats(): Stats;
}
