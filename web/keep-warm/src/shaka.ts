/** Shaka Player, from version 4 on, which reports downloads (tested with 4.16). */
import { KeepWarm } from "./keep_warm.js";
import { followMedia } from "./media.js";
import type { Options } from "./options.js";
import type { Ticket } from "./ticket.js";

/** shaka.net.NetworkingEngine.RequestType.SEGMENT. */
const SEGMENT = 1;
/** A request that was not made this long after it was allowed to is treated as cancelled,
 * because no event reports it (chosen here). */
const UNMADE_MS = 2_000;

/** The part of a request that is used. Filters and events have the same object in all tries. */
interface Request {
  uris: string[];
  method?: string;
  /** Set when it is made. */
  requestStartTime?: number | null;
}
interface Download {
  request: Request;
  response?: { uri?: string; data?: ArrayBuffer | ArrayBufferView };
}

type Filter = (type: number, request: any) => Promise<void>;

/** The part of `shaka.Player` that is used. */
export interface ShakaPlayer {
  getNetworkingEngine(): {
    registerRequestFilter(each: Filter): void;
    unregisterRequestFilter(each: Filter): void;
  } | null;
  addEventListener(event: string, listener: (event: any) => void): void;
  removeEventListener(event: string, listener: (event: any) => void): void;
  getMediaElement(): EventTarget | null;
}

interface Open {
  readonly ticket: Ticket;
  firstByteMs: number | undefined;
}

/** Keeps a Shaka player's connection warm. Call it after the player is attached. It detaches
 * from the player when it stops. */
export function attachShaka(player: ShakaPlayer, options: Options = {}, now = () => performance.now()): KeepWarm {
  const warm = new KeepWarm(options);
  const segments = new WeakSet<Request>();
  const open = new Map<Request, Open>();
  const begin = (request: Request, url: string): Ticket => {
    giveUp(request);
    const ticket = warm.requested(url);
    open.set(request, { ticket, firstByteMs: undefined });
    return ticket;
  };
  const giveUp = (request: Request) => {
    open.get(request)?.ticket.failed();
    open.delete(request);
  };
  const filter: Filter = async (type, request: Request) => {
    const [url] = request.uris;
    if (type !== SEGMENT || url === undefined || (request.method ?? "GET") !== "GET") return;
    segments.add(request);
    const ticket = begin(request, url);
    await ticket.ready;
    setTimeout(() => !request.requestStartTime && open.get(request)?.ticket === ticket && giveUp(request), UNMADE_MS);
  };
  const headersReceived = ({ request }: Download) => {
    if (!segments.has(request)) return;
    // A retry passes no filter.
    if (!open.has(request)) begin(request, request.uris[0] ?? "");
    const found = open.get(request);
    if (found) found.firstByteMs = now();
  };
  const completed = ({ request, response }: Download) => {
    const found = open.get(request);
    if (found === undefined) return;
    open.delete(request);
    const endMs = now();
    const bytes = response?.data?.byteLength ?? 0;
    found.ticket.answered({ bytes, firstByteMs: found.firstByteMs ?? endMs, endMs, url: response?.uri });
  };
  const failed = ({ request }: Download) => giveUp(request);
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
  ] as const;
  for (const [event, listener] of listeners) player.addEventListener(event, listener);
  const media = player.getMediaElement();
  const leave = media ? followMedia(warm, media) : () => {};
  warm.whenStopped(() => {
    net?.unregisterRequestFilter(filter);
    for (const [event, listener] of listeners) player.removeEventListener(event, listener);
    leave();
    open.clear();
  });
  return warm;
}
