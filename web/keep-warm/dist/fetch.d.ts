/** Players and pages with their own `fetch`. */
import type { KeepWarm } from "./keep_warm.js";
type GlobalFetch = typeof globalThis.fetch;
/** A `fetch` that reports its requests to `warm`, and otherwise behaves like the given one. */
export declare function warmFetch(warm: KeepWarm, fetch?: GlobalFetch, now?: () => number): GlobalFetch;
export {};
