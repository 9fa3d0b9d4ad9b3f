/** Options of a page, and their defaults. */
import { type RadioModel } from "./radio.js";
import type { Verdict } from "./trial.js";
/** The part of a `Response` that is used. */
export interface Answer {
    readonly status: number;
    readonly type?: string;
    /** After the last redirect. */
    readonly url?: string;
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
    /** Calls `call` later; the returned function cancels it. */
    after(ms: number, call: () => void): () => void;
}
export type RequestHeaders = Readonly<Record<string, string>>;
export interface Options {
    fetch?: Fetch | undefined;
    clock?: Clock | undefined;
    /** URL to fetch; default: that of the player's last answer (its first byte). */
    url?: string | undefined;
    /** Headers that the server requires, for example a token. */
    headers?: RequestHeaders | ((url: string) => RequestHeaders) | undefined;
    /** As in the player's requests: a browser uses separate connections with and without
     * cookies. `same-origin` matches the players' defaults. */
    credentials?: RequestCredentials | undefined;
    /** Maximum bytes of all fetches in both directions (estimated), as a share of the bytes
     * that the player fetched (0.02); 20 kB are always free. */
    maxShare?: number | undefined;
    /** Maximum bytes for each minute (250 kB: a fetch of 0.9 kB every 230 ms is 235 kB). */
    maxBytesPerMinute?: number | undefined;
    /** Consecutive failures that stop it (3). */
    maxErrors?: number | undefined;
    /** Fetches of a pause end after this time, as the player has probably stopped (30 s). */
    maxPauseMs?: number | undefined;
    /** Maximum number of connections, of all servers together (4). */
    maxConnections?: number | undefined;
    /** Protocol of the connection that a URL used, in the form of `nextHopProtocol` (`h2`);
     * default: from the page's resource timing. `undefined`: unknown. */
    protocol?: ((url: string) => string | undefined) | undefined;
    /** The fetches fill the page's resource timing buffer of 250 entries, which players use
     * for measurements: if it is full it is enlarged (`grow`), or not changed (`leave`). */
    resourceTiming?: "grow" | "leave" | undefined;
    /** If the browser is set to save data (Network Information API), nothing is fetched,
     * unless this is `ignore`. */
    saveData?: "respect" | "ignore" | undefined;
    radio?: RadioModel | undefined;
    /** Called after each change of the state. */
    onChange?: ((stats: Stats) => void) | undefined;
}
/** Resting: it did not help, and will be tried again later. */
export type State = "running" | "suspended" | "resting" | "stopped";
export interface Stats {
    readonly state: State;
    /** Reason for resting or stopping. */
    readonly why: string | undefined;
    readonly fetches: number;
    readonly errors: number;
    /** Bytes of the fetches in both directions, including TCP and IP headers (estimated). */
    readonly bytes: number;
    /** Bytes that the player fetched. */
    readonly mediaBytes: number;
    /** Connections kept in the last round. */
    readonly connections: number;
    readonly rttMs: number | undefined;
    /** Time between an answer and the next fetch. */
    readonly pauseMs: number;
    /** Number of long pauses that were kept warm, and that had no fetches, for comparison. */
    readonly kept: number;
    readonly alone: number;
    /** Early rate of answers after the former divided by that after the latter. */
    readonly gain: number | undefined;
    readonly verdict: Verdict;
    /** Energy of the radio in mJ by the model, with and without the fetches. */
    readonly radioMj: number;
    readonly radioWithoutMj: number;
}
/** All options have a value, except these two. */
type Optional = "url" | "onChange";
export type Settled = {
    [Name in Exclude<keyof Options, Optional>]-?: NonNullable<Options[Name]>;
} & Pick<Options, Optional>;
/** Fills in defaults for options that are absent or `undefined`. A limit that is not a number
 * is an error, because nothing would ever reach it. */
export declare function settle(options: Options): Settled;
export {};
