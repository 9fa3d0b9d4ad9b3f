/** Suspends with what plays, and with the page. */
import type { KeepWarm } from "./keep_warm.js";

/** Follows a media element: paused or ended, nothing is fetched. Returns what ends it. */
export function followMedia(warm: KeepWarm, media: EventTarget): () => void {
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
  return () => ways.forEach(([event, act]) => media.removeEventListener(event, act));
}

/** Follows the page: while nobody sees it, nothing is fetched (a player that is listened
 * to does without this). Returns what ends it. */
export function followPage(warm: KeepWarm, page: Document = document): () => void {
  const look = () => (page.visibilityState === "hidden" ? warm.suspend("page") : warm.resume("page"));
  page.addEventListener("visibilitychange", look);
  return () => page.removeEventListener("visibilitychange", look);
}
