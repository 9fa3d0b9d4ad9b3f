/** Shaka Player, from 4 on. */
import { KeepWarm } from "./keep_warm.js";
import { followMedia } from "./media.js";
/** shaka.net.NetworkingEngine.RequestType.SEGMENT. */
const SEGMENT = 1;
/** Keeps a Shaka player's connection warm. Call it once the player is attached. */
export function attachShaka(player, options = {}, now = () => performance.now()) {
    const warm = new KeepWarm(options);
    const open = new Map();
    const net = player.getNetworkingEngine();
    net?.registerRequestFilter(async (type, request) => {
        const url = request.uris[0];
        if (type !== SEGMENT || url === undefined)
            return;
        open.get(url)?.failed();
        const ticket = warm.requested(url);
        open.set(url, ticket);
        await ticket.ready;
    });
    net?.registerResponseFilter((type, response) => {
        // It may have been redirected.
        const url = response.originalUri ?? response.uri;
        const ticket = open.get(url);
        if (type !== SEGMENT || ticket === undefined)
            return;
        open.delete(url);
        const endMs = now();
        const firstByteMs = endMs - (response.timeMs ?? 0) + (response.timeToFirstByteMs ?? 0);
        ticket.answered({ bytes: byteLength(response.data), firstByteMs, endMs });
    });
    const giveUp = () => {
        open.forEach((ticket) => ticket.failed());
        open.clear();
    };
    net?.addEventListener("retry", giveUp);
    player.addEventListener("error", giveUp);
    player.addEventListener("unloading", () => {
        giveUp();
        warm.suspend("unloaded");
    });
    player.addEventListener("loaded", () => warm.resume("unloaded"));
    const media = player.getMediaElement();
    if (media)
        followMedia(warm, media);
    return warm;
}
const byteLength = (data) => data.byteLength;
