/** Fetches one byte while a player pauses, often enough that the sender never idles for
 * an RTO (RFC 5681, 4.1; BurstTracker, MobiCom 2019, 5.3). */
import { type RadioModel } from "./radio.js";
import type { Ticket } from "./ticket.js";
import { type Verdict } from "./trial.js";
/** What is used of a `Response`. */
export interface Answer {
    readonly status: number;
    readonly headers: {
        get(name: string): string | null;
        forEach(each: (value: string, name: string) => void): void;
    };
    readonly body?: {
        cancel(): Promise<void>;
    } | null;
    arrayBuffer(): Promise<ArrayBuffer>;
}
export type Fetch = (url: string, init: RequestInit) => Promise<Answer>;
export interface Clock {
    /** In ms, as `performance.now()`. */
    now(): number;
    /** Calls back later, unless what it returns is called before. */
    after(ms: number, call: () => void): () => void;
}
export interface Options {
    fetch?: Fetch;
    clock?: Clock;
    /** What is fetched; else the player's last answer is, by its first byte. */
    url?: string;
    /** As the player's requests have them: a browser keeps connections with and without
     * cookies apart. `same-origin` fits players as they come. */
    credentials?: RequestCredentials;
    /** Bytes of all fetches at most, both ways, as estimated (2 MB). */
    maxBytes?: number;
    /** And as a share of what the player fetched (0.02); 20 kB are always free. */
    maxShare?: number;
    /** Failures in a row that end it (3). */
    maxErrors?: number;
    /** A pause longer than this is not kept on: the player has other plans (30 s). */
    maxPauseMs?: number;
    /** Where the user asks to save data (Network Information API): nothing is fetched,
     * unless this is `ignore`. */
    saveData?: "respect" | "ignore";
    radio?: RadioModel;
    /** Called with each change of the state. */
    onChange?: (stats: Stats) => void;
}
export type State = "running" | "suspended" | "stopped";
export interface Stats {
    readonly state: State;
    /** Why it stopped. */
    readonly why: string | undefined;
    readonly fetches: number;
    readonly errors: number;
    /** Of the fetches, both ways, headers of TCP and IP included: an estimate. */
    readonly bytes: number;
    /** What the player fetched. */
    readonly mediaBytes: number;
    readonly rttMs: number | undefined;
    /** Between an answer and the next fetch. */
    readonly pauseMs: number;
    /** Long pauses, kept warm and left alone for comparison. */
    readonly kept: number;
    readonly alone: number;
    /** Early rate of answers behind the former over that behind the latter. */
    readonly gain: number | undefined;
    readonly verdict: Verdict;
    /** What the radio spends in mJ by its model, and would without the fetches. */
    readonly radioMj: number;
    readonly radioWithoutMj: number;
}
/** The part of an answer that slow start shows in: some windows of 10 segments (RFC 6928),
 * doubled four times (chosen here). */
export declare const EARLY_BYTES = 200000;
export declare class KeepWarm {
    #private;
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
    stats(): Stats;
}
