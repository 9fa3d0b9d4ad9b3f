/** Suspends fetching with a media element, and with the page. */
import type { KeepWarm } from "./keep_warm.js";

/** Suspends fetching while a media element is paused or has ended. Returns a function that
 * ends this. */
export function followMedia(warm: KeepWarm, media: EventTarget & { paused?: boolean }): () => void {
  const suspend = () => warm.suspend("media");
  const resume = () => warm.resume("media");
  const ways = [
    ["pause", suspend],
    ["ended", suspend],
    ["emptied", suspend],
    ["play", resume],
    ["playing", resume],
  ] as const;
  for (const [event, act] of ways) media.addEventListener(event, act);
  // A player that is not allowed to autoplay sends no event.
  if (media.paused === true) suspend();
  return () => ways.forEach(([event, act]) => media.removeEventListener(event, act));
}

/** Suspends fetching while the page is hidden (not for players of audio in the background).
 * Returns a function that ends this. */
export function followPage(warm: KeepWarm, page: Document = document): () => void {
  const look = () => (page.visibilityState === "hidden" ? warm.suspend("page") : warm.resume("page"));
  page.addEventListener("visibilitychange", look);
  look();
  return () => page.removeEventListener("visibilitychange", look);
}
