/** Keeps a sender's window open during a player's pauses; see docs/keep-warm.md of airmile. */
export { KeepWarm } from "./keep_warm.js";
export type { Answer, Clock, Fetch, Options, RequestHeaders, State, Stats } from "./options.js";
export type { Done, Ticket } from "./ticket.js";
export type { Sample, Verdict } from "./trial.js";
export { RADIO } from "./radio.js";
export type { RadioModel } from "./radio.js";
export { followMedia, followPage } from "./media.js";
export { attachDash } from "./dash.js";
export { hlsLoader } from "./hls.js";
export { attachShaka } from "./shaka.js";
export { warmFetch } from "./fetch.js";
