/** Shaka Player, from version 4 on, which reports downloads (tested with 4.16). */
import { KeepWarm } from "./keep_warm.js";
import { followMedia } from "./media.js";
/** shaka.net.NetworkingEngine.RequestType.SEGMENT. */
const SEGMENT = 1;
/** A request that was not made this long after it was allowed to is treated as cancelled,
 * because no event reports it (chosen here). */
const UNMADE_MS = 2_000;
/** Keeps a Shaka player's connection warm. Call it after the player is attached. It detaches
 * from the player when it stops. */
export function attachShaka(player, options = {}, now = () => performance.now()) {
    const warm = new KeepWarm(options);
    const segments = new WeakSet();
    const open = new Map();
    const begin = (request, url) => {
        giveUp(request);
        const ticket = warm.requested(url);
        open.set(request, { ticket, firstByteMs: undefined });
        return ticket;
    };
    const giveUp = (request) => {
        open.get(request)?.ticket.failed();
        open.delete(request);
    };
    const filter = async (type, request) => {
        const [url] = request.uris;
        if (type !== SEGMENT || url === undefined || (request.method ?? "GET") !== "GET")
            return;
        segments.add(request);
        const ticket = begin(request, url);
        await ticket.ready;
        setTimeout(() => !request.requestStartTime && open.get(request)?.ticket === ticket && giveUp(request), UNMADE_MS);
    };
    const headersReceived = ({ request }) => {
        if (!segments.has(request))
            return;
        // A retry passes no filter.
        if (!open.has(request))
            begin(request, request.uris[0] ?? "");
        const found = open.get(request);
        if (found)
            found.firstByteMs = now();
    };
    const completed = ({ request, response }) => {
        const found = open.get(request);
        if (found === undefined)
            return;
        open.delete(request);
        const endMs = now();
        const bytes = response?.data?.byteLength ?? 0;
        found.ticket.answered({ bytes, firstByteMs: found.firstByteMs ?? endMs, endMs, url: response?.uri });
    };
    const failed = ({ request }) => giveUp(request);
    const giveUpAll = () => [...open.keys()].forEach(giveUp);
    const unload = () => {
        giveUpAll();
        warm.suspend("unloaded");
    };
    const load = () => warm.resume("unloaded");
    const net = player.getNetworkingEngine();
    net?.registerRequestFilter(filter);
    const listeners = [
        ["downloadheadersreceived", headersReceived],
        ["downloadcompleted", completed],
        ["downloadfailed", failed],
        ["unloading", unload],
        ["loaded", load],
    ];
    for (const [event, listener] of listeners)
        player.addEventListener(event, listener);
    const media = player.getMediaElement();
    const leave = media ? followMedia(warm, media) : () => { };
    warm.whenStopped(() => {
        net?.unregisterRequestFilter(filter);
        for (const [event, listener] of listeners)
            player.removeEventListener(event, listener);
        leave();
        open.clear();
    });
    return warm;
}
