/** One byte, and what it costs. */
import type { Settled } from "./options.js";
/** A request's head (Chromium's has 220 bytes over HTTP, more over TLS and with a referrer),
 * and the headers of TCP and IP, with timestamps, of request, answer and ACK: a page cannot
 * see them. */
export declare const REQUEST_BYTES = 300;
/** What a fetch is taken to cost before there was one. */
export declare const LIKELY_BYTES: number;
export interface Fetched {
    readonly kind: "byte" | "whole" | "failed";
    /** Of a failure. */
    readonly why: string;
    readonly fromMs: number;
    readonly toMs: number;
    /** As long as the answer's head took; `undefined`: there was none. */
    readonly rttMs: number | undefined;
    /** Both ways, and those of the answer. */
    readonly bytes: number;
    readonly answerBytes: number;
    /** Where it came from. */
    readonly url: string;
}
/** Asks for the first byte of a URL. Never rejects. */
export declare function fetchByte(url: string, settled: Settled, signal: AbortSignal): Promise<Fetched>;
