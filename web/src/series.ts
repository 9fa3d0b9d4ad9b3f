/** The decoded series of one report, ready to be drawn. */

import type { Direction } from "./generated/diagnose";
import { type Arrays, type SeriesHead } from "./data/decode";
import { elapsed } from "./format";
import { Causes } from "./data/causes";
import { Envelope } from "./data/envelope";
import { Marks } from "./data/marks";
import { Pyramid } from "./data/pyramid";
import { Spans } from "./data/spans";
import { civilMs, tickTime } from "./zone";

export interface Bursts {
  spans: Spans;
  bytes: Uint32Array;
  scheduled: Uint32Array;
  openedBy: Uint8Array;
  closedBy: Uint8Array;
  /** In percent. */
  confidence: Uint8Array;
}

/** Points of a line; `null` breaks it. */
export interface Line {
  at: Uint32Array;
  value: (i: number) => number | null;
}

export class Series {
  readonly allocation: Record<Direction, Pyramid>;
  readonly bursts: Record<Direction, Bursts>;
  readonly holes: Spans;
  readonly rsrp: Line;
  readonly snr: Line;
  readonly load: Line;
  readonly ownLoad: Line;
  /** In bytes. */
  readonly flight: Envelope;
  readonly cwnd: Envelope;
  readonly rwnd: Envelope;
  /** In microseconds. */
  readonly rtt: Envelope;
  /** In ms. */
  readonly buffer: Envelope;
  readonly marks: Marks;
  readonly causes: Causes;

  constructor(
    readonly head: SeriesHead,
    arrays: Arrays,
  ) {
    const pyramid = (dir: Direction) =>
      new Pyramid(
        arrays.u8(`${dir}.share`),
        arrays.u32(`${dir}.blocks`),
        head.block_ttis,
        head.n_tti,
        head.share_steps,
      );
    const bursts = (dir: Direction): Bursts => ({
      spans: new Spans(arrays.u32(`${dir}.burst.start`), arrays.u32(`${dir}.burst.end`)),
      bytes: arrays.u32(`${dir}.burst.bytes`),
      scheduled: arrays.u32(`${dir}.burst.scheduled`),
      openedBy: arrays.u8(`${dir}.burst.opened_by`),
      closedBy: arrays.u8(`${dir}.burst.closed_by`),
      confidence: arrays.u8(`${dir}.burst.confidence`),
    });
    this.allocation = { dl: pyramid("dl"), ul: pyramid("ul") };
    this.bursts = { dl: bursts("dl"), ul: bursts("ul") };
    this.holes = new Spans(arrays.u32("holes.start"), arrays.u32("holes.end"));
    const signal = (name: string): Line => {
      const values = arrays.i16(name);
      const value = (i: number) => (values[i] === -32768 ? null : (values[i] ?? 0) / 100);
      return { at: arrays.u32("signal.tti"), value };
    };
    const share = (name: string): Line => {
      const values = arrays.u16(name);
      return { at: arrays.u32("load.tti"), value: (i) => (values[i] ?? 0) / 65_535 };
    };
    this.rsrp = signal("signal.rsrp");
    this.snr = signal("signal.snr");
    this.load = share("load.load");
    this.ownLoad = share("load.own");
    const envelope = (name: string): Envelope =>
      new Envelope(arrays.u32(`${name}.tti`), arrays.u32(`${name}.least`), arrays.u32(`${name}.most`));
    this.flight = envelope("flight");
    this.cwnd = envelope("cwnd");
    this.rwnd = envelope("rwnd");
    this.rtt = envelope("rtt");
    this.buffer = envelope("buffer");
    this.marks = new Marks(
      head.marks ?? [],
      arrays.u8("mark.kind"),
      arrays.u32("mark.from"),
      arrays.u32("mark.to"),
      arrays.u32("mark.value"),
    );
    const spans = new Spans(arrays.u32("cause.start"), arrays.u32("cause.end"));
    this.causes = new Causes(head.causes ?? [], arrays.u8("cause.code"), spans);
  }

  /** Whether a direction has data. */
  has(dir: Direction): boolean {
    return !this.allocation[dir].empty || this.bursts[dir].spans.count > 0;
  }

  /** First TTI of each kind of data, from the origin. */
  starts(): number[] {
    const { rsrp, load, holes, bursts, allocation } = this;
    const out: number[] = [];
    const { flight, rtt, buffer, marks } = this;
    const begun = (["request", "stall", "switch", "playing"] as const).map((name) => marks.of(name).from[0]);
    const wire = [flight.at[0], rtt.at[0], buffer.at[0]];
    for (const first of [rsrp.at[0], load.at[0], holes.start[0], ...wire, ...begun])
      if (first !== undefined) out.push(first);
    for (const dir of ["dl", "ul"] as const) {
      const burst = bursts[dir].spans.start[0];
      if (burst !== undefined) out.push(burst);
      const { codes, blocks, blockTtis } = allocation[dir];
      const at = codes.findIndex((code) => code !== 0);
      if (at >= 0) out.push((blocks[Math.floor(at / blockTtis)] ?? 0) * blockTtis + (at % blockTtis));
    }
    return out;
  }

  bound(code: number | undefined): string {
    return (this.head.bounds[code ?? -1] ?? "unknown").replaceAll("_", " ");
  }

  /** Offset from the origin, in TTIs, of a TTI of the document. */
  offset(tti: number): number {
    return tti - this.head.first_tti;
  }

  /** Places of `[min, max]` at which the time of day is a multiple of a step. */
  ticks(min: number, max: number, stepMs: number): number[] {
    const { anchors, tti_ms } = this.head;
    const out: number[] = [];
    // The clock runs with the TTIs from each anchor to the next.
    anchors.forEach(([start, startUs], i) => {
      const from = i === 0 ? min : Math.max(min, start);
      const next = anchors[i + 1]?.[0] ?? Infinity;
      if (from > max || from >= next) return;
      const civil = civilMs(startUs + (from - start) * tti_ms * 1_000);
      for (let tick = Math.ceil(civil / stepMs) * stepMs; ; tick += stepMs) {
        const at = from + (tick - civil) / tti_ms;
        if (at >= next || at > max) break;
        out.push(at);
      }
    });
    return out;
  }

  /** The time of day at a tick; since the first data, if it is unknown. */
  tick(offset: number, stepMs: number): string {
    const us = this.clock(offset);
    return us === null ? elapsed(offset * this.head.tti_ms, stepMs) : tickTime(us, stepMs);
  }

  /** Time on the log's clock in microseconds; `null` without an anchor. */
  clock(offset: number): number | null {
    const { anchors, tti_ms } = this.head;
    let anchor = anchors[0];
    for (const next of anchors) {
      if (next[0] > offset) break;
      anchor = next;
    }
    return anchor ? anchor[1] + (offset - anchor[0]) * tti_ms * 1_000 : null;
  }
}
