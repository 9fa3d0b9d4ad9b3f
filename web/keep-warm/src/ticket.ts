/** A player's request, as reported by an adapter. */

import type { Sample } from "./trial.js";

/** The result of a request. Times are those of `performance.now()`. */
export interface Done {
  readonly bytes: number;
  readonly firstByteMs: number;
  readonly endMs: number;
  /** Its first part, if the adapter knows it and does not report progress. */
  readonly early?: Sample | undefined;
  /** Final URL, if it was redirected. */
  readonly url?: string | undefined;
}

export interface Ticket {
  /** Resolves when the connection is free: a request during a fetch of one byte would open a
   * new connection with a small window. Never rejects. */
  readonly ready: Promise<void>;
  /** Bytes received so far; the first call marks the first byte. */
  progress(bytes: number): void;
  answered(done: Done): void;
  failed(): void;
}
