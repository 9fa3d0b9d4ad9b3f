/** dash.js, from version 5 on. */
import { EARLY_BYTES, KeepWarm } from "./keep_warm.js";
import { followMedia } from "./media.js";
import type { Options } from "./options.js";
import type { Done, Ticket } from "./ticket.js";
import type { Sample } from "./trial.js";

/** The parts of a request and its answer that are used (Common Media Library). */
interface Request {
  url: string;
  method?: string;
  /** dash.js's own request, the same in all tries. */
  customData?: { request?: { type?: string } };
}
interface Response {
  request: Request;
  status?: number;
  url?: string;
  data?: unknown;
  resourceTiming?: { startTime?: number; responseStart?: number; duration?: number; encodedBodySize?: number };
}
/** Progress of a fragment: ms since the previous event (`d`), and bytes (`b`). */
interface Trace {
  d: number;
  b: number[];
}
interface FragmentEvent {
  request?: { traces?: Trace[] };
  error?: unknown;
}
/** The part of `dashjs.MediaPlayer().create()` that is used. */
export interface DashPlayer {
  addRequestInterceptor(each: (request: any) => Promise<any>): void;
  addResponseInterceptor(each: (response: any) => Promise<any>): void;
  removeRequestInterceptor(each: (request: any) => Promise<any>): void;
  removeResponseInterceptor(each: (response: any) => Promise<any>): void;
  on(event: string, listener: (event: any) => void): void;
  off(event: string, listener: (event: any) => void): void;
  getVideoElement(): EventTarget;
}

interface Open {
  readonly ticket: Ticket;
  done?: Done | undefined;
}

/** Keeps a dash.js player's connection warm. Call it before `initialize`. It detaches from the
 * player when it stops. */
export function attachDash(player: DashPlayer, options: Options = {}): KeepWarm {
  const warm = new KeepWarm(options);
  const open = new Map<object, Open>();
  const close = (key: object, early?: Sample) => {
    const found = open.get(key);
    open.delete(key);
    if (found?.done) found.ticket.answered({ ...found.done, early });
    else found?.ticket.failed();
  };
  const requested = async (request: Request) => {
    if (!isSegment(request)) return request;
    // A request that is retried has failed before.
    close(keyOf(request));
    const ticket = warm.requested(request.url);
    open.set(keyOf(request), { ticket });
    await ticket.ready;
    return request;
  };
  const answered = async (response: Response) => {
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
  const completed = ({ request, error }: FragmentEvent) => {
    if (request === undefined) return;
    if (error) giveUp(request);
    else close(request, early(request.traces ?? []));
  };
  const giveUp = (request: object) => {
    const found = open.get(request);
    if (found) found.done = undefined;
    close(request);
  };
  // Its status and first part may have arrived.
  const abandoned = ({ request }: FragmentEvent) => request !== undefined && giveUp(request);
  let leave = () => {};
  let media: EventTarget | undefined;
  const follow = () => {
    const now = player.getVideoElement();
    if (now === media) return;
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
  ] as const;
  for (const [event, listener] of listeners) player.on(event, listener);
  warm.whenStopped(() => {
    player.removeRequestInterceptor(requested);
    player.removeResponseInterceptor(answered);
    for (const [event, listener] of listeners) player.off(event, listener);
    leave();
    open.clear();
  });
  return warm;
}

const keyOf = (request: Request): object => request.customData?.request ?? request;

/** Manifests, initialisation segments and reports of the player do not count, and may use
 * another server. */
function isSegment({ method = "GET", customData }: Request): boolean {
  const type = customData?.request?.type ?? "MediaSegment";
  return method === "GET" && type === "MediaSegment";
}

function doneOf({ data, url, resourceTiming = {} }: Response): Done | undefined {
  const { startTime, responseStart, duration, encodedBodySize } = resourceTiming;
  const bytes = data instanceof ArrayBuffer ? data.byteLength : encodedBodySize;
  if (startTime === undefined || duration === undefined || bytes === undefined) return undefined;
  const endMs = startTime + duration;
  // Without resource timing of the browser this is a date.
  const isTime = responseStart !== undefined && startTime <= responseStart && responseStart <= endMs;
  return { bytes, firstByteMs: isTime ? responseStart : startTime, endMs, url: url || undefined };
}

/** The first part after the first progress event, whose time includes the round trip. */
function early([, ...traces]: Trace[]): Sample | undefined {
  let [bytes, ms] = [0, 0];
  for (const { d, b } of traces) {
    ms += d;
    bytes += b[0] ?? 0;
    if (bytes >= EARLY_BYTES) return { bytes, ms };
  }
  return undefined;
}
