/** Suspends with what plays, and with the page. */
import type { KeepWarm } from "./keep_warm.js";
/** Follows a media element: paused or ended, nothing is fetched. Returns what ends it. */
export declare function followMedia(warm: KeepWarm, media: EventTarget & {
    paused?: boolean;
}): () => void;
/** Follows the page: while nobody sees it, nothing is fetched (a player that is listened
 * to does without this). Returns what ends it. */
export declare function followPage(warm: KeepWarm, page?: Document): () => void;
