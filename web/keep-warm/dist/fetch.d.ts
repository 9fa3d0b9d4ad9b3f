/** Players and pages that fetch by themselves. */
import type { KeepWarm } from "./keep_warm.js";
type GlobalFetch = typeof globalThis.fetch;
/** A `fetch` that tells `warm` of what it gets; else as the one that it is given. */
export declare function warmFetch(warm: KeepWarm, fetch?: GlobalFetch, now?: () => number): GlobalFetch;
export {};
