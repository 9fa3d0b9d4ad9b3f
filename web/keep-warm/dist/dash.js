/** dash.js, from version 5 on. */
import { EARLY_BYTES, KeepWarm } from "./keep_warm.js";
import { followMedia } from "./media.js";
/** Keeps a dash.js player's connection warm. Call it before `initialize`. It detaches from the
 * player when it stops. */
export function attachDash(player, options = {}) {
    const warm = new KeepWarm(options);
    const open = new Map();
    const close = (key, early) => {
        const found = open.get(key);
        open.delete(key);
        if (found?.done)
            found.ticket.answered({ ...found.done, early });
        else
            found?.ticket.failed();
    };
    const requested = async (request) => {
        if (!isSegment(request))
            return request;
        // A request that is retried has failed before.
        close(keyOf(request));
        const ticket = warm.requested(request.url);
        open.set(keyOf(request), { ticket });
        await ticket.ready;
        return request;
    };
    const answered = async (response) => {
        const key = keyOf(response.request);
        const found = open.get(key);
        if (found) {
            // Failed, timed out and cancelled requests come here, too.
            const failed = response.status !== undefined && (response.status < 200 || response.status > 299);
            found.done = failed ? undefined : doneOf(response);
            // The player reports progress at once, unless the request was cancelled.
            setTimeout(() => open.get(key) === found && close(key));
        }
        return response;
    };
    const completed = ({ request, error }) => {
        if (request === undefined)
            return;
        if (error)
            giveUp(request);
        else
            close(request, early(request.traces ?? []));
    };
    const giveUp = (request) => {
        const found = open.get(request);
        if (found)
            found.done = undefined;
        close(request);
    };
    // Its status and first part may have arrived.
    const abandoned = ({ request }) => request !== undefined && giveUp(request);
    let leave = () => { };
    let media;
    const follow = () => {
        const now = player.getVideoElement();
        if (now === media)
            return;
        leave();
        media = now;
        leave = followMedia(warm, now);
    };
    player.addRequestInterceptor(requested);
    player.addResponseInterceptor(answered);
    const listeners = [
        ["fragmentLoadingCompleted", completed],
        ["fragmentLoadingAbandoned", abandoned],
        ["playbackMetaDataLoaded", follow],
        ["streamTeardownComplete", () => warm.suspend("unloaded")],
        ["playbackPlaying", () => warm.resume("unloaded")],
    ];
    for (const [event, listener] of listeners)
        player.on(event, listener);
    warm.whenStopped(() => {
        player.removeRequestInterceptor(requested);
        player.removeResponseInterceptor(answered);
        for (const [event, listener] of listeners)
            player.off(event, listener);
        leave();
        open.clear();
    });
    return warm;
}
const keyOf = (request) => request.customData?.request ?? request;
/** Manifests, initialisation segments and reports of the player do not count, and may use
 * another server. */
function isSegment({ method = "GET", customData }) {
    const type = customData?.request?.type ?? "MediaSegment";
    return method === "GET" && type === "MediaSegment";
}
function doneOf({ data, url, resourceTiming = {} }) {
    const { startTime, responseStart, duration, encodedBodySize } = resourceTiming;
    const bytes = data instanceof ArrayBuffer ? data.byteLength : encodedBodySize;
    if (startTime === undefined || duration === undefined || bytes === undefined)
        return undefined;
    const endMs = startTime + duration;
    // Without resource timing of the browser this is a date.
    const isTime = responseStart !== undefined && startTime <= responseStart && responseStart <= endMs;
    return { bytes, firstByteMs: isTime ? responseStart : startTime, endMs, url: url || undefined };
}
/** The first part after the first progress event, whose time includes the round trip. */
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
