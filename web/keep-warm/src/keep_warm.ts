/** Fetches one byte at a time while a player pauses, often enough that the sender is never
 * idle for an RTO (RFC 5681, 4.1; BurstTracker, MobiCom 2019, 5.3). */
import { LIKELY_BYTES, REQUEST_BYTES, fetchByte, type Fetched } from "./byte.js";
import { settle, type Options, type Settled, type State, type Stats } from "./options.js";
import { Origins, originOf } from "./origins.js";
import { RadioMeter } from "./radio.js";
import { RoundTrips } from "./rtt.js";
import type { Done, Ticket } from "./ticket.js";
import { Room, isMultiplexed } from "./timing.js";
import { Trial, median, type Sample } from "./trial.js";

/** A pause longer than a round trip plus this may restart a window: on Linux the RTO is at
 * least a round trip + 200 ms, and longer if round trips vary (chosen here). */
const LONG_BEYOND_RTT_MS = 300;
/** Assumed while the round trip is unknown (chosen here). */
const LIKELY_RTT_MS = 100;
/** The part of an answer that slow start shows in: some windows of 10 segments (RFC 6928),
 * doubled four times (chosen here). */
export const EARLY_BYTES = 200_000;
/** A fetch that takes longer is aborted (chosen here). */
const TIMEOUT_MS = 5_000;
/** Maximum time that a request of the player waits for an outstanding fetch: opening
 * another connection is better than a longer wait (chosen here). */
const MOST_WAIT_MS = 500;
/** A request of the player without any event for this time is discarded (chosen here). */
const FORGET_MS = 60_000;
const FREE_BYTES = 20_000;
/** A fetch this much later than due indicates a delayed timer, as in a hidden page (once a
 * second): the sender was idle for too long (chosen here). */
const LATE_MS = 400;
/** Number of pauses whose length is stored, to estimate the cost of the next (chosen here). */
const PAUSES = 5;
/** If it does not help, it rests for this number of long pauses and tries again; the number
 * doubles each time up to the maximum (chosen here: four minutes of segments of 4 s, and
 * half an hour). */
const REST_PAUSES = 60;
const MOST_REST_PAUSES = 480;

interface Pause {
  readonly fromMs: number;
  readonly number: number;
  readonly kept: boolean;
  /** URLs, one for each connection; set at the first fetch. */
  urls: readonly string[] | undefined;
  rounds: number;
  /** Only a part of it was kept warm, so it is no evidence. */
  broken: boolean;
}

/** Requests after a long pause, until the first of them is answered. */
interface Behind {
  readonly pause: Pause;
  open: number;
  largest: { readonly bytes: number; readonly early: Sample } | undefined;
}

interface Open {
  readonly url: string;
  readonly sinceMs: number;
  readonly behind: Behind | undefined;
  firstMs: number | undefined;
  early: Sample | undefined;
}

/** Outstanding fetches, one for each connection. */
interface Round {
  readonly done: Promise<void>;
  readonly abort: AbortController;
  /** Origins at which another request would open a new connection. */
  readonly occupied: ReadonlySet<string>;
}

export class KeepWarm {
  readonly #options: Settled;
  readonly #roundTrips = new RoundTrips();
  readonly #origins = new Origins();
  readonly #protocols = new Map<string, string>();
  readonly #room = new Room();
  readonly #radio: RadioMeter;
  readonly #radioWithout: RadioMeter;
  readonly #open = new Set<Open>();
  readonly #reasons = new Set<string>();
  readonly #ends: (() => void)[] = [];
  readonly #sinceMs: number;
  #stopped = false;
  #why: string | undefined;
  #trial = new Trial();
  /** Long pauses before this trial. */
  #trialFrom = 0;
  #tightened = false;
  /** The last pause of a rest. */
  #restUntil: number | undefined;
  #restPauses = REST_PAUSES;
  #pause: Pause | undefined;
  #behind: Behind | undefined;
  #pauses = 0;
  #pauseLengthsMs: number[] = [];
  #cancelTimer: (() => void) | undefined;
  #round: Round | undefined;
  #connections = 1;
  #fetches = 0;
  #errors = 0;
  #errorsInRow = 0;
  #bytes = 0;
  /** Bytes of the largest fetch, an estimate for the next. */
  #fetchBytes = LIKELY_BYTES;
  #mediaBytes = 0;
  #kept = 0;
  #alone = 0;

  /** Throws if a limit is not a number. */
  constructor(options: Options = {}) {
    this.#options = settle(options);
    this.#radio = new RadioMeter(this.#options.radio);
    this.#radioWithout = new RadioMeter(this.#options.radio);
    this.#sinceMs = this.#options.clock.now();
  }

  /** The player is about to send a request. */
  requested(url: string): Ticket {
    const now = this.#options.clock.now();
    for (const open of this.#open) {
      if (now - open.sinceMs <= FORGET_MS) continue;
      this.#forget(open);
      if (this.#behind === open.behind) this.#behind = undefined;
    }
    const pause = this.#endPause(now);
    if (pause) this.#behind = { pause, open: 0, largest: undefined };
    const behind = this.#behind;
    if (behind) behind.open += 1;
    const open: Open = { url, sinceMs: now, behind, firstMs: undefined, early: undefined };
    this.#open.add(open);
    this.#origins.requested(url);
    return {
      ready: this.#ready(url),
      progress: (bytes) => this.#progress(open, bytes),
      answered: (done) => this.#answered(open, done),
      failed: () => this.#failed(open),
    };
  }

  /** Stops fetching until `resume` with the same reason: the player is paused or hidden. */
  suspend(reason: string): void {
    const before = this.#state();
    this.#reasons.add(reason);
    if (before === "stopped" || before === "suspended") return;
    this.#endPause(this.#options.clock.now());
    this.#changed();
  }

  /** Continues, unless another reason for suspension remains. */
  resume(reason: string): void {
    const before = this.#state();
    this.#reasons.delete(reason);
    if (before === "suspended" && this.#state() !== before) this.#changed();
  }

  /** Stops permanently. */
  stop(why = "asked to"): void {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#why = why;
    this.#endPause(this.#options.clock.now());
    this.#round?.abort.abort();
    this.#room.end();
    for (const end of this.#ends) unharmed(end);
    this.#changed();
  }

  /** `end` is called once when it stops, for any reason: adapters detach from their player. */
  whenStopped(end: () => void): void {
    if (this.#stopped) end();
    else this.#ends.push(end);
  }

  stats(): Stats {
    const now = this.#options.clock.now();
    return {
      state: this.#state(),
      why: this.#why,
      fetches: this.#fetches,
      errors: this.#errors,
      bytes: this.#bytes,
      mediaBytes: this.#mediaBytes,
      connections: this.#connections,
      rttMs: this.#roundTrips.smoothedMs,
      pauseMs: this.#roundTrips.pauseMs(),
      kept: this.#kept,
      alone: this.#alone,
      gain: this.#trial.gain(),
      verdict: this.#trial.verdict(),
      radioMj: this.#radio.atMj(now),
      radioWithoutMj: this.#radioWithout.atMj(now),
    };
  }

  #state(): State {
    if (this.#stopped) return "stopped";
    if (this.#reasons.size > 0) return "suspended";
    return this.#restUntil === undefined ? "running" : "resting";
  }

  #changed(): void {
    unharmed(() => this.#options.onChange?.(this.stats()));
  }

  async #ready(url: string): Promise<void> {
    const round = this.#round;
    if (!round?.occupied.has(originOf(url))) return;
    let cancel = () => {};
    const late = new Promise<void>((resolve) => (cancel = this.#options.clock.after(MOST_WAIT_MS, resolve)));
    await Promise.race([round.done, late]);
    cancel();
  }

  #progress(open: Open, bytes: number): void {
    const now = this.#options.clock.now();
    open.firstMs ??= now;
    if (bytes >= EARLY_BYTES) open.early ??= { bytes, ms: now - open.firstMs };
  }

  #answered(open: Open, { bytes, firstByteMs, endMs, early = open.early, url: from = open.url }: Done): void {
    if (!this.#open.delete(open)) return;
    this.#mediaBytes += bytes;
    for (const meter of [this.#radio, this.#radioWithout]) {
      meter.traffic(open.sinceMs, open.sinceMs, 0, REQUEST_BYTES);
      meter.traffic(firstByteMs, endMs, bytes, 0);
    }
    this.#origins.answered(open.url, from);
    const { behind } = open;
    // If audio and video arrive together, the larger answer counts.
    if (behind && !(bytes <= (behind.largest?.bytes ?? 0))) {
      behind.largest = { bytes, early: early ?? { bytes, ms: endMs - firstByteMs } };
    }
    this.#closed(behind, endMs);
  }

  #failed(open: Open): void {
    if (!this.#forget(open)) return;
    this.#closed(open.behind, this.#options.clock.now());
  }

  /** Returns whether it was known. */
  #forget(open: Open): boolean {
    if (!this.#open.delete(open)) return false;
    this.#origins.closed(open.url);
    return true;
  }

  #closed(behind: Behind | undefined, atMs: number): void {
    if (behind) {
      // Later requests do not follow the pause directly.
      if (this.#behind === behind) this.#behind = undefined;
      behind.open -= 1;
      if (behind.open === 0 && behind.largest) {
        this.#trial.take(behind.largest.early, behind.pause.number - this.#trialFrom, behind.pause.kept);
        this.#judge();
      }
    }
    if (this.#open.size === 0) this.#beginPause(atMs);
  }

  #judge(): void {
    if (this.#restUntil !== undefined || this.#trial.verdict() !== "no_gain") return;
    if (this.#tightened) {
      this.#restUntil = this.#pauses + this.#restPauses;
      this.#restPauses = Math.min(2 * this.#restPauses, MOST_REST_PAUSES);
      this.#why = "it does not help";
      return this.#changed();
    }
    // The sender's RTO may be shorter than assumed.
    this.#tightened = true;
    this.#roundTrips.tighten();
    this.#tryAgain();
  }

  #tryAgain(): void {
    this.#trial = new Trial();
    this.#trialFrom = this.#pauses;
  }

  #beginPause(fromMs: number): void {
    if (this.#stopped || this.#reasons.size > 0 || this.#pause) return;
    if (this.#origins.connections().length === 0) return;
    const number = this.#pauses + 1;
    if (this.#restUntil !== undefined && number > this.#restUntil) this.#wake();
    const rests = this.#restUntil !== undefined;
    const kept = !rests && !this.#trial.leavesAlone(number - this.#trialFrom);
    // A pause that is kept only in part restarts anyway, and costs bytes.
    const broken = rests || (kept && !this.#isAffordable());
    this.#pause = { fromMs, number, kept, urls: undefined, rounds: 0, broken };
    if (kept && !broken) this.#schedule();
  }

  #wake(): void {
    this.#restUntil = undefined;
    this.#why = undefined;
    this.#tightened = false;
    this.#roundTrips.relax();
    this.#tryAgain();
    this.#changed();
  }

  /** Ends a pause; returns it if it was long enough to be evidence. */
  #endPause(now: number): Pause | undefined {
    const pause = this.#pause;
    this.#pause = undefined;
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    const longMs = LONG_BEYOND_RTT_MS + (this.#roundTrips.smoothedMs ?? LIKELY_RTT_MS);
    if (pause === undefined || now - pause.fromMs < longMs) return undefined;
    this.#pauses = pause.number;
    this.#origins.paused();
    this.#pauseLengthsMs = [...this.#pauseLengthsMs, now - pause.fromMs].slice(-PAUSES);
    if (pause.broken || (pause.kept && pause.rounds === 0)) return undefined;
    if (pause.kept) this.#kept += 1;
    else this.#alone += 1;
    return pause;
  }

  #schedule(): void {
    const { clock } = this.#options;
    const pauseMs = this.#roundTrips.pauseMs();
    const dueMs = clock.now() + pauseMs;
    const fetchRound = () => {
      this.#cancelTimer = undefined;
      if (clock.now() - dueMs > LATE_MS && this.#pause) this.#pause.broken = true;
      else this.#fetchRound();
    };
    this.#cancelTimer = clock.after(pauseMs, fetchRound);
  }

  /** Whether the limits allow keeping a pause of the usual length to its end. */
  #isAffordable(): boolean {
    const urls = this.#urls().length;
    if (this.#pauseLengthsMs.length === 0) return this.#mayFetch(urls);
    const everyMs = this.#roundTrips.pauseMs() + (this.#roundTrips.smoothedMs ?? 0);
    return this.#mayFetch(urls * Math.ceil(median(this.#pauseLengthsMs) / everyMs));
  }

  #mayFetch(fetches: number): boolean {
    const { clock, maxShare, maxBytesPerMinute } = this.#options;
    const minutes = 1 + (clock.now() - this.#sinceMs) / 60_000;
    const allowed = Math.min(Math.max(FREE_BYTES, maxShare * this.#mediaBytes), maxBytesPerMinute * minutes);
    return this.#bytes + fetches * this.#fetchBytes <= allowed;
  }

  /** A URL for each connection to keep. */
  #urls(): string[] {
    const { url: fixed, maxConnections } = this.#options;
    const all = this.#origins.connections();
    const wanted = fixed === undefined ? all : [{ url: fixed, most: mostOf(all, fixed) }];
    return wanted.flatMap(({ url, most }) => Array<string>(this.#isShared(url) ? 1 : most).fill(url)).slice(0, maxConnections);
  }

  /** Whether one connection carries all requests. */
  #isShared(url: string): boolean {
    const origin = originOf(url);
    if (!this.#protocols.has(origin)) {
      unharmed(() => {
        const protocol = this.#options.protocol(url);
        if (protocol !== undefined) this.#protocols.set(origin, protocol);
      });
    }
    return isMultiplexed(this.#protocols.get(origin));
  }

  #fetchRound(): void {
    const { clock, maxPauseMs, saveData } = this.#options;
    const pause = this.#pause;
    if (pause === undefined) return;
    // A fetch of the previous pause may be very late.
    if (this.#round) return this.#schedule();
    if (saveData === "respect" && asksToSaveData()) return this.stop("the user asks to save data");
    const urls = (pause.urls ??= this.#urls());
    if (clock.now() - pause.fromMs > maxPauseMs || urls.length === 0 || !this.#mayFetch(urls.length)) {
      pause.broken = true;
      return;
    }
    this.#connections = urls.length;
    const abort = new AbortController();
    const cancelTimeout = clock.after(TIMEOUT_MS, () => abort.abort());
    const fetches = urls.map((url) => this.#fetch(url, abort.signal));
    const done = Promise.all(fetches).then((fetched) => {
      cancelTimeout();
      this.#round = undefined;
      this.#take(fetched, pause);
      if (this.#pause === pause && !this.#stopped) this.#schedule();
    });
    const occupied = new Set(urls.filter((url) => !this.#isShared(url)).map(originOf));
    this.#round = { done, abort, occupied };
  }

  #fetch(url: string, signal: AbortSignal): Promise<Fetched> {
    this.#fetches += 1;
    if (this.#options.resourceTiming === "grow") this.#room.take();
    return fetchByte(url, this.#options, signal);
  }

  #take(fetched: readonly Fetched[], pause: Pause): void {
    for (const { fromMs } of fetched) this.#radio.traffic(fromMs, fromMs, 0, REQUEST_BYTES);
    for (const { toMs, rttMs, bytes, answerBytes } of fetched) {
      this.#radio.traffic(toMs, toMs, answerBytes, 0);
      this.#bytes += bytes;
      this.#fetchBytes = Math.max(this.#fetchBytes, bytes);
      if (rttMs !== undefined) this.#roundTrips.take(rttMs);
    }
    if (this.#stopped) return;
    pause.rounds += 1;
    if (fetched.some(({ kind }) => kind === "whole")) return this.stop("the server does not support ranges");
    const failures = fetched.filter(({ kind }) => kind === "failed");
    this.#errors += failures.length;
    this.#errorsInRow = failures.length > 0 ? this.#errorsInRow + 1 : 0;
    if (failures.length > 0) pause.broken = true;
    if (this.#errorsInRow > 0 && this.#errorsInRow >= this.#options.maxErrors) {
      this.stop(`it failed ${this.#errorsInRow} times in a row: ${failures[0]?.why}`);
    }
  }
}

/** Exceptions of the page's callbacks must not stop the player. */
function unharmed(call: () => void): void {
  try {
    call();
  } catch (error) {
    globalThis.reportError?.(error);
  }
}

function mostOf(connections: readonly { url: string; most: number }[], url: string): number {
  const origin = originOf(url);
  return connections.find((each) => originOf(each.url) === origin)?.most ?? 1;
}

function asksToSaveData(): boolean {
  // Not every environment with modules has a navigator.
  const { navigator } = globalThis as { navigator?: { connection?: { saveData?: boolean } } };
  return navigator?.connection?.saveData === true;
}
