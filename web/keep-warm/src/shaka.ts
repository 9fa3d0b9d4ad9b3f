/** Shaka Player, from 4 on. */
import { KeepWarm, type Options } from "./keep_warm.js";
import { followMedia } from "./media.js";
import type { Ticket } from "./ticket.js";

/** shaka.net.NetworkingEngine.RequestType.SEGMENT. */
const SEGMENT = 1;

/** What is used of `shaka.Player`. */
export interface ShakaPlayer {
  getNetworkingEngine(): {
    registerRequestFilter(each: (type: number, request: any) => Promise<void>): void;
    registerResponseFilter(each: (type: number, response: any) => void): void;
    addEventListener(event: string, listener: (event: any) => void): void;
  } | null;
  addEventListener(event: string, listener: (event: any) => void): void;
  getMediaElement(): EventTarget | null;
}

/** Keeps a Shaka player's connection warm. Call it once the player is attached. */
export function attachShaka(player: ShakaPlayer, options: Options = {}, now = () => performance.now()): KeepWarm {
  const warm = new KeepWarm(options);
  const open = new Map<string, Ticket>();
  const net = player.getNetworkingEngine();
  net?.registerRequestFilter(async (type: number, request: { uris: string[] }) => {
    const url = request.uris[0];
    if (type !== SEGMENT || url === undefined) return;
    open.get(url)?.failed();
    const ticket = warm.requested(url);
    open.set(url, ticket);
    await ticket.ready;
  });
  net?.registerResponseFilter((type: number, response: Response) => {
    // It may have been redirected.
    const url = response.originalUri ?? response.uri;
    const ticket = open.get(url);
    if (type !== SEGMENT || ticket === undefined) return;
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
  if (media) followMedia(warm, media);
  return warm;
}

interface Response {
  uri: string;
  originalUri?: string;
  data: ArrayBuffer | ArrayBufferView;
  timeMs?: number;
  timeToFirstByteMs?: number;
}

const byteLength = (data: ArrayBuffer | ArrayBufferView): number => data.byteLength;
