/** Shares of the cell's PRBs in scheduled TTIs, as cumulative distributions. */

import type { Pyramid } from "./pyramid";
import type { Spans } from "./spans";

export interface Distribution {
  /** TTIs with a known share. */
  n: number;
  /** `counts[i]`: TTIs with a share of `i / (counts.length - 1)`. */
  counts: Float64Array;
}

const KNOWN_CODES = 251;

function empty(): Distribution {
  return { n: 0, counts: new Float64Array(KNOWN_CODES) };
}

function take(into: Distribution, code: number): void {
  if (code === 0 || code > KNOWN_CODES) return;
  into.counts[code - 1] = (into.counts[code - 1] ?? 0) + 1;
  into.n++;
}

/** Every scheduled TTI; the first of each burst; the one that emptied the queue. */
export interface Distributions {
  all: Distribution;
  first: Distribution;
  last: Distribution;
}

export function distributions(allocation: Pyramid, bursts: Spans): Distributions {
  const out = { all: empty(), first: empty(), last: empty() };
  for (const code of allocation.codes) take(out.all, code);
  for (let i = 0; i < bursts.count; i++) {
    take(out.first, allocation.code(bursts.start[i] as number));
    take(out.last, allocation.code(bursts.end[i] as number));
  }
  return out;
}

/** Cumulative shares, one for each step. */
export function cumulative(of: Distribution): number[] {
  let sum = 0;
  return Array.from(of.counts, (count) => {
    sum += count;
    return of.n > 0 ? sum / of.n : 0;
  });
}

/** The quantile `q` of the TTIs' shares of the cell. */
export function quantile(of: Distribution, q: number): number {
  let sum = 0;
  for (let i = 0; i < of.counts.length; i++) {
    sum += of.counts[i] as number;
    if (sum >= q * of.n) return i / (of.counts.length - 1);
  }
  return 1;
}
