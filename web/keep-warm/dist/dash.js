/** dash.js, from 5 on. */
import { EARLY_BYTES, KeepWarm } from "./keep_warm.js";
import { followMedia } from "./media.js";
/** Keeps a dash.js player's connection warm. Call it before `initialize`. */
export function attachDash(player, options = {}) {
    const warm = new KeepWarm(options);
    const open = new Map();
    const close = (url, early) => {
        const found = open.get(url);
        open.delete(url);
        if (found?.done)
            found.ticket.answered({ ...found.done, early });
        else
            found?.ticket.failed();
    };
    player.addRequestInterceptor(async (request) => {
        if (!isSegment(request))
            return request;
        // One that is tried again has failed.
        close(request.url);
        const ticket = warm.requested(request.url);
        open.set(request.url, { ticket });
        await ticket.ready;
        return request;
    });
    player.addResponseInterceptor(async (response) => {
        const { url } = response.request;
        const found = open.get(url);
        if (found) {
            // Those that failed, timed out or were given up come here, too.
            const failed = response.status !== undefined && (response.status < 200 || response.status > 299);
            found.done = failed ? undefined : doneOf(response);
            // Of fragments the player tells at once how they came, of others nothing.
            setTimeout(() => open.get(url) === found && close(url));
        }
        return response;
    });
    const fragment = ({ request }) => request?.url !== undefined && close(request.url, early(request.traces ?? []));
    player.on("fragmentLoadingCompleted", fragment);
    player.on("fragmentLoadingAbandoned", fragment);
    let media;
    player.on("playbackMetaDataLoaded", () => {
        const now = player.getVideoElement();
        if (now !== media)
            followMedia(warm, now);
        media = now;
    });
    player.on("streamTeardownComplete", () => warm.suspend("unloaded"));
    player.on("playbackPlaying", () => warm.resume("unloaded"));
    return warm;
}
/** Manifests, initialisations and reports of the player are no segments, and may be of
 * another server. */
function isSegment({ method = "GET", customData }) {
    const type = customData?.request?.type ?? "MediaSegment";
    return method === "GET" && type === "MediaSegment";
}
function doneOf({ data, resourceTiming = {} }) {
    const { startTime, responseStart, duration, encodedBodySize } = resourceTiming;
    const bytes = data instanceof ArrayBuffer ? data.byteLength : encodedBodySize;
    if (startTime === undefined || duration === undefined || bytes === undefined)
        return undefined;
    const endMs = startTime + duration;
    // Where the browser has no timing of it, this is a date.
    const isTime = responseStart !== undefined && startTime <= responseStart && responseStart <= endMs;
    return { bytes, firstByteMs: isTime ? responseStart : startTime, endMs };
}
/** The first part behind the first progress, whose time has the round trip in it. */
function early([, ...traces]) {
    let [bytes, ms] = [0, 0];
    for (const { d, b } of traces) {
        ms += d;
        bytes += b[0] ?? 0;
        if (bytes >= EARLY_BYTES)
            return { bytes, ms };
    }
    return undefined;
}
