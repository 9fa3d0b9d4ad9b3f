/** Reduces a line's points to the resolution of a screen. */

export interface Thinned {
  x: number[];
  y: (number | null)[];
}

/** The first index with `at[i] >= t`; `at` ascends. */
export function firstFrom(at: ArrayLike<number>, t: number): number {
  let low = 0;
  let high = at.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((at[middle] as number) < t) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * At most `n` points of `[from, to]`, and one more beyond each end; if there
 * are more, means over equal spans. A pause over `gap` breaks the line.
 */
export function thin(
  at: Uint32Array,
  value: (i: number) => number | null,
  from: number,
  to: number,
  n: number,
  gap: number,
): Thinned {
  const first = Math.max(0, firstFrom(at, from) - 1);
  const last = Math.min(at.length, firstFrom(at, to) + 1);
  const out: Thinned = { x: [], y: [] };
  const width = last - first > n ? (to - from) / n : 0;
  let before = Number.NaN;
  for (let i = first; i < last; ) {
    const start = at[i] as number;
    let sum = 0;
    let known = 0;
    let x = 0;
    let taken = 0;
    while (i < last && (taken === 0 || (at[i] as number) < start + width)) {
      const y = value(i);
      if (y !== null) {
        sum += y;
        known++;
      }
      x += at[i] as number;
      taken++;
      i++;
    }
    if (start - before > gap) {
      out.x.push((start + before) / 2);
      out.y.push(null);
    }
    out.x.push(x / taken);
    out.y.push(known > 0 ? sum / known : null);
    before = at[i - 1] as number;
  }
  return out;
}
