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

/** The distribution of TTIs counted by their code; codes without a known share are left out. */
function of(codes: Float64Array): Distribution {
  const counts = codes.slice(1, 1 + KNOWN_CODES);
  return { n: counts.reduce((sum, count) => sum + count, 0), counts };
}

/** Every scheduled TTI; the first of each burst; the one that emptied the queue. */
export interface Distributions {
  all: Distribution;
  first: Distribution;
  last: Distribution;
}

export function distributions(allocation: Pyramid, bursts: Spans): Distributions {
  const [all, first, last] = [new Float64Array(256), new Float64Array(256), new Float64Array(256)];
  const { codes } = allocation;
  // By index and without a call: there are as many as TTIs.
  for (let i = 0; i < codes.length; i++) (all[codes[i] as number] as number)++;
  for (let i = 0; i < bursts.count; i++) {
    (first[allocation.code(bursts.start[i] as number)] as number)++;
    (last[allocation.code(bursts.end[i] as number)] as number)++;
  }
  return { all: of(all), first: of(first), last: of(last) };
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
