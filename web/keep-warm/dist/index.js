/** Keeps a sender's window open during a player's pauses; see docs/keep-warm.md of airmile. */
export { KeepWarm } from "./keep_warm.js";
export { RADIO } from "./radio.js";
export { followMedia, followPage } from "./media.js";
export { attachDash } from "./dash.js";
export { hlsLoader } from "./hls.js";
export { attachShaka } from "./shaka.js";
export { warmFetch } from "./fetch.js";
