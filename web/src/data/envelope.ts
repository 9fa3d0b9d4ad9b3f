/**
 * A measure over time as ranges, at every zoom level: exact minimum and maximum
 * over any span, in time proportional to the number of requested columns. Levels
 * grow by a factor of 8.
 */

import { firstFrom } from "./lines";

const STEP_BITS = 3;

interface Level {
  least: Uint32Array;
  most: Uint32Array;
}

/** Columns of a span; `null` breaks the line. */
export interface Columns {
  x: number[];
  least: (number | null)[];
  most: (number | null)[];
}

export class Envelope {
  private readonly levels: Level[];

  constructor(
    readonly at: Uint32Array,
    least: Uint32Array,
    most: Uint32Array,
  ) {
    this.levels = [{ least, most }];
    for (let below = this.levels[0] as Level; below.least.length > 8; ) {
      const n = Math.ceil(below.least.length / 8);
      const level = { least: new Uint32Array(n), most: new Uint32Array(n) };
      for (let i = 0; i < n; i++) [level.least[i], level.most[i]] = over(below, i * 8, i * 8 + 8);
      this.levels.push(level);
      below = level;
    }
  }

  get count(): number {
    return this.at.length;
  }

  /** Minimum and maximum of the points `[first, last)`; `null` if there are none. */
  range(first: number, last: number): [number, number] | null {
    if (last <= first) return null;
    let low = Infinity;
    let high = 0;
    const take = (level: Level, from: number, to: number): void => {
      const [least, most] = over(level, from, to);
      low = Math.min(low, least);
      high = Math.max(high, most);
    };
    let [from, to] = [first, last];
    for (const [i, level] of this.levels.entries()) {
      const top = i === this.levels.length - 1;
      const inner = [(from + 7) >> STEP_BITS, to >> STEP_BITS] as const;
      if (top || inner[0] >= inner[1]) {
        take(level, from, to);
        break;
      }
      if (from < inner[0] << STEP_BITS) take(level, from, inner[0] << STEP_BITS);
      if (inner[1] << STEP_BITS < to) take(level, inner[1] << STEP_BITS, to);
      [from, to] = inner;
    }
    return [low, high];
  }

  /** Minimum and maximum in `[from, to)`. */
  within(from: number, to: number): [number, number] | null {
    return this.range(firstFrom(this.at, from), firstFrom(this.at, to));
  }

  /** Minimum and maximum of the last point at or before `t`, not older than `gap`. */
  before(t: number, gap: number): [number, number] | null {
    const i = firstFrom(this.at, t + 1) - 1;
    if (i < 0 || t - (this.at[i] as number) > gap) return null;
    return this.range(i, i + 1);
  }

  /**
   * At most `n` columns of `[from, to]`, and one more point beyond each end. A pause
   * over `gap` breaks the line.
   */
  columns(from: number, to: number, n: number, gap: number): Columns {
    const out: Columns = { x: [], least: [], most: [] };
    const first = Math.max(0, firstFrom(this.at, from) - 1);
    const last = Math.min(this.count, firstFrom(this.at, to) + 1);
    const width = last - first > n ? (to - from) / n : 0;
    let before = Number.NaN;
    for (let i = first; i < last; ) {
      const start = this.at[i] as number;
      const end = width > 0 ? Math.min(last, firstFrom(this.at, start + width)) : i + 1;
      const next = Math.max(i + 1, end);
      const [least, most] = this.range(i, next) as [number, number];
      if (start - before > gap) {
        out.x.push((start + before) / 2);
        out.least.push(null);
        out.most.push(null);
      }
      out.x.push(start);
      out.least.push(least);
      out.most.push(most);
      before = this.at[next - 1] as number;
      i = next;
    }
    return out;
  }
}

function over(level: Level, from: number, to: number): [number, number] {
  let low = Infinity;
  let high = 0;
  for (let i = from; i < Math.min(to, level.least.length); i++) {
    low = Math.min(low, level.least[i] as number);
    high = Math.max(high, level.most[i] as number);
  }
  return [low, high];
}
