/** One byte, and what it costs. */
import type { RequestHeaders, Settled } from "./options.js";

/** A request's head (Chromium's has 220 bytes over HTTP, more over TLS and with a referrer),
 * and the headers of TCP and IP, with timestamps, of request, answer and ACK: a page cannot
 * see them. */
export const REQUEST_BYTES = 300;
const PACKETS_BYTES = 3 * 52;
/** An answer's head over origins, of which a page sees a few names (chosen here: servers
 * of videos send 400 to 700 bytes). */
const HIDDEN_HEAD_BYTES = 600;
/** What a fetch is taken to cost before there was one. */
export const LIKELY_BYTES = REQUEST_BYTES + PACKETS_BYTES + 400;
/** An answer that is longer than asked for is taken up to here. */
const MOST_BODY_BYTES = 1_024;

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
export async function fetchByte(url: string, settled: Settled, signal: AbortSignal): Promise<Fetched> {
  const { fetch, clock, credentials, headers } = settled;
  const fromMs = clock.now();
  let [rttMs, headBytes]: [number | undefined, number] = [undefined, 0];
  let more: RequestHeaders = {};
  const ended = (kind: Fetched["kind"], bodyBytes: number, why = "", from = url): Fetched => {
    const answerBytes = headBytes + bodyBytes;
    const bytes = REQUEST_BYTES + lengthOf(Object.entries(more)) + PACKETS_BYTES + answerBytes;
    return { kind, why, fromMs, toMs: clock.now(), rttMs, bytes, answerBytes, url: from };
  };
  try {
    more = typeof headers === "function" ? headers(url) : headers;
    const answer = await fetch(url, {
      headers: { ...more, Range: "bytes=0-0" },
      cache: "no-store",
      credentials,
      signal,
    });
    rttMs = clock.now() - fromMs;
    const told: [string, string][] = [];
    answer.headers.forEach((value, name) => told.push([name, value]));
    headBytes = Math.max(lengthOf(told), answer.type === "cors" ? HIDDEN_HEAD_BYTES : 0);
    const length = Number(answer.headers.get("Content-Length") ?? Number.NaN);
    const from = answer.url || url;
    if (answer.status >= 400) {
      await answer.body?.cancel();
      return ended("failed", 0, `status ${answer.status}`);
    }
    if (answer.status !== 206 && !(length <= MOST_BODY_BYTES)) {
      // It sends all of it: the connection goes, and the rest with it.
      await answer.body?.cancel();
      return ended("whole", MOST_BODY_BYTES);
    }
    const body = await answer.arrayBuffer();
    return ended("byte", body.byteLength, "", from);
  } catch (error) {
    return ended("failed", 0, error instanceof Error ? error.message : `${error}`);
  }
}

/** Of headers as they are sent. */
const lengthOf = (headers: [string, string][]): number =>
  headers.reduce((sum, [name, value]) => sum + name.length + value.length + 4, 0);
