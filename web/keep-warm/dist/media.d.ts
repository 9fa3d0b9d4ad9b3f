/** Suspends fetching with a media element, and with the page. */
import type { KeepWarm } from "./keep_warm.js";
/** Suspends fetching while a media element is paused or has ended. Returns a function that
 * ends this. */
export declare function followMedia(warm: KeepWarm, media: EventTarget & {
    paused?: boolean;
}): () => void;
/** Suspends fetching while the page is hidden (not for players of audio in the background).
 * Returns a function that ends this. */
export declare function followPage(warm: KeepWarm, page?: Document): () => void;
