/** dash.js, from 5 on. */
import { EARLY_BYTES, KeepWarm, type Options } from "./keep_warm.js";
import { followMedia } from "./media.js";
import type { Done, Ticket } from "./ticket.js";
import type { Sample } from "./trial.js";

/** What is used of a request and its answer (Common Media Library). */
interface Request {
  url: string;
  method?: string;
  /** dash.js's own request. */
  customData?: { request?: { type?: string } };
}
interface Response {
  request: Request;
  status?: number;
  data?: unknown;
  resourceTiming?: { startTime?: number; responseStart?: number; duration?: number; encodedBodySize?: number };
}
/** Progress of a fragment: so many ms since the one before, with these bytes. */
interface Trace {
  d: number;
  b: number[];
}
interface FragmentEvent {
  request?: { url?: string; traces?: Trace[] };
  error?: unknown;
}
/** What is used of `dashjs.MediaPlayer().create()`; its own types are those of events. */
export interface DashPlayer {
  addRequestInterceptor(each: (request: any) => Promise<any>): void;
  addResponseInterceptor(each: (response: any) => Promise<any>): void;
  on(event: string, listener: (event: any) => void): void;
  getVideoElement(): EventTarget;
}

interface Open {
  readonly ticket: Ticket;
  done?: Done | undefined;
}

/** Keeps a dash.js player's connection warm. Call it before `initialize`. */
export function attachDash(player: DashPlayer, options: Options = {}): KeepWarm {
  const warm = new KeepWarm(options);
  const open = new Map<string, Open>();
  const close = (url: string, early?: Sample) => {
    const found = open.get(url);
    open.delete(url);
    if (found?.done) found.ticket.answered({ ...found.done, early });
    else found?.ticket.failed();
  };
  player.addRequestInterceptor(async (request: Request) => {
    if (!isSegment(request)) return request;
    // One that is tried again has failed.
    close(request.url);
    const ticket = warm.requested(request.url);
    open.set(request.url, { ticket });
    await ticket.ready;
    return request;
  });
  player.addResponseInterceptor(async (response: Response) => {
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
  const fragment = ({ request }: FragmentEvent) =>
    request?.url !== undefined && close(request.url, early(request.traces ?? []));
  player.on("fragmentLoadingCompleted", fragment);
  player.on("fragmentLoadingAbandoned", fragment);
  let media: EventTarget | undefined;
  player.on("playbackMetaDataLoaded", () => {
    const now = player.getVideoElement();
    if (now !== media) followMedia(warm, now);
    media = now;
  });
  player.on("streamTeardownComplete", () => warm.suspend("unloaded"));
  player.on("playbackPlaying", () => warm.resume("unloaded"));
  return warm;
}

/** Manifests, initialisations and reports of the player are no segments, and may be of
 * another server. */
function isSegment({ method = "GET", customData }: Request): boolean {
  const type = customData?.request?.type ?? "MediaSegment";
  return method === "GET" && type === "MediaSegment";
}

function doneOf({ data, resourceTiming = {} }: Response): Done | undefined {
  const { startTime, responseStart, duration, encodedBodySize } = resourceTiming;
  const bytes = data instanceof ArrayBuffer ? data.byteLength : encodedBodySize;
  if (startTime === undefined || duration === undefined || bytes === undefined) return undefined;
  const endMs = startTime + duration;
  // Where the browser has no timing of it, this is a date.
  const isTime = responseStart !== undefined && startTime <= responseStart && responseStart <= endMs;
  return { bytes, firstByteMs: isTime ? responseStart : startTime, endMs };
}

/** The first part behind the first progress, whose time has the round trip in it. */
function early([, ...traces]: Trace[]): Sample | undefined {
  let [bytes, ms] = [0, 0];
  for (const { d, b } of traces) {
    ms += d;
    bytes += b[0] ?? 0;
    if (bytes >= EARLY_BYTES) return { bytes, ms };
  }
  return undefined;
}
