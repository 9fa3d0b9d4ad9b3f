/** What a page may choose, and what is chosen where it does not. */
import { RADIO, type RadioModel } from "./radio.js";
import { protocolOf } from "./timing.js";
import type { Verdict } from "./trial.js";

/** What is used of a `Response`. */
export interface Answer {
  readonly status: number;
  readonly type?: string;
  /** Of the last redirect. */
  readonly url?: string;
  readonly headers: { get(name: string): string | null; forEach(each: (value: string, name: string) => void): void };
  readonly body?: { cancel(): Promise<void> } | null;
  arrayBuffer(): Promise<ArrayBuffer>;
}

export type Fetch = (url: string, init: RequestInit) => Promise<Answer>;

export interface Clock {
  /** In ms, as `performance.now()`. */
  now(): number;
  /** Calls back later, unless what it returns is called before. */
  after(ms: number, call: () => void): () => void;
}

export type RequestHeaders = Readonly<Record<string, string>>;

export interface Options {
  fetch?: Fetch | undefined;
  clock?: Clock | undefined;
  /** What is fetched; else the player's last answer is, by its first byte. */
  url?: string | undefined;
  /** That the server asks for (a token, perhaps). */
  headers?: RequestHeaders | ((url: string) => RequestHeaders) | undefined;
  /** As the player's requests have them: a browser keeps connections with and without
   * cookies apart. `same-origin` fits players as they come. */
  credentials?: RequestCredentials | undefined;
  /** Bytes of all fetches at most, both ways, as estimated, as a share of what the player
   * fetched (0.02); 20 kB are always free. */
  maxShare?: number | undefined;
  /** And for each minute (250 kB: a fetch of 0.9 kB each 230 ms is 235 kB). */
  maxBytesPerMinute?: number | undefined;
  /** Failures in a row that end it (3). */
  maxErrors?: number | undefined;
  /** A pause longer than this is not kept on: the player has other plans (30 s). */
  maxPauseMs?: number | undefined;
  /** Connections at most, of all servers together (4). */
  maxConnections?: number | undefined;
  /** Of the connection that a URL came over, as `nextHopProtocol` of the page's resource
   * timing has it (`h2`), which it is taken from; `undefined`: not known. */
  protocol?: ((url: string) => string | undefined) | undefined;
  /** The fetches fill the page's resource timing, of 250 entries, which players measure
   * by: where it is full it is given as many more (`grow`), or left alone (`leave`). */
  resourceTiming?: "grow" | "leave" | undefined;
  /** Where the user asks to save data (Network Information API): nothing is fetched,
   * unless this is `ignore`. */
  saveData?: "respect" | "ignore" | undefined;
  radio?: RadioModel | undefined;
  /** Called with each change of the state. */
  onChange?: ((stats: Stats) => void) | undefined;
}

/** Resting: it does not help, and is tried again later. */
export type State = "running" | "suspended" | "resting" | "stopped";

export interface Stats {
  readonly state: State;
  /** Why it rests or stopped. */
  readonly why: string | undefined;
  readonly fetches: number;
  readonly errors: number;
  /** Of the fetches, both ways, headers of TCP and IP included: an estimate. */
  readonly bytes: number;
  /** What the player fetched. */
  readonly mediaBytes: number;
  /** That were kept last. */
  readonly connections: number;
  readonly rttMs: number | undefined;
  /** Between an answer and the next fetch. */
  readonly pauseMs: number;
  /** Long pauses, kept warm and left alone for comparison. */
  readonly kept: number;
  readonly alone: number;
  /** Early rate of answers behind the former over that behind the latter. */
  readonly gain: number | undefined;
  readonly verdict: Verdict;
  /** What the radio spends in mJ by its model, and would without the fetches. */
  readonly radioMj: number;
  readonly radioWithoutMj: number;
}

/** All of them; only these two may be absent. */
type Optional = "url" | "onChange";
export type Settled = { [Name in Exclude<keyof Options, Optional>]-?: NonNullable<Options[Name]> } & Pick<Options, Optional>;

const CLOCK: Clock = {
  now: () => performance.now(),
  after: (ms, call) => {
    const timer = setTimeout(call, ms);
    return () => clearTimeout(timer);
  },
};

const defaults = (): Settled => ({
  fetch: (url, init) => globalThis.fetch(url, init),
  clock: CLOCK,
  headers: {},
  credentials: "same-origin",
  maxShare: 0.02,
  maxBytesPerMinute: 250_000,
  maxErrors: 3,
  maxPauseMs: 30_000,
  maxConnections: 4,
  protocol: protocolOf,
  resourceTiming: "grow",
  saveData: "respect",
  radio: RADIO,
  url: undefined,
  onChange: undefined,
});

/** What is not given, or `undefined`, is as it comes. A limit that is no number is an
 * error: nothing would ever reach it. */
export function settle(options: Options): Settled {
  const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
  const settled = { ...defaults(), ...given };
  for (const name of ["maxShare", "maxBytesPerMinute", "maxErrors", "maxPauseMs", "maxConnections"] as const) {
    if (!(settled[name] >= 0)) throw new TypeError(`${name} is ${settled[name]}, and no number from 0 on`);
  }
  return settled;
}
