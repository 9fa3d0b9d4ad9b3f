/** Fetches one byte and measures its cost. */
import type { Settled } from "./options.js";
/** Size of a request's head (Chromium's has 220 bytes over HTTP, more over TLS and with a
 * referrer), and of the TCP and IP headers, with timestamps, of request, answer and ACK. A
 * page cannot see either. */
export declare const REQUEST_BYTES = 300;
/** Estimated cost of a fetch before the first. */
export declare const LIKELY_BYTES: number;
export interface Fetched {
    readonly kind: "byte" | "whole" | "failed";
    /** Reason of a failure. */
    readonly why: string;
    readonly fromMs: number;
    readonly toMs: number;
    /** Time until the answer's head; `undefined`: no answer. */
    readonly rttMs: number | undefined;
    /** Bytes in both directions, and of the answer alone. */
    readonly bytes: number;
    readonly answerBytes: number;
    /** URL after redirects. */
    readonly url: string;
}
/** Requests the first byte of a URL. Never rejects. */
export declare function fetchByte(url: string, settled: Settled, signal: AbortSignal): Promise<Fetched>;
