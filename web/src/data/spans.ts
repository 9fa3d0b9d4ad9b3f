/** Sorted spans `[start, end)`: bursts, holes. Coverage of any range in O(log n). */

export class Spans {
  /** TTIs covered before each span. */
  private readonly before: Float64Array;

  constructor(
    readonly start: Uint32Array,
    readonly end: Uint32Array,
  ) {
    this.before = new Float64Array(start.length + 1);
    for (let i = 0; i < start.length; i++) {
      this.before[i + 1] = (this.before[i] as number) + this.length(i);
    }
  }

  get count(): number {
    return this.start.length;
  }

  length(i: number): number {
    return Math.max(0, (this.end[i] ?? 0) - (this.start[i] ?? 0));
  }

  /** Number of spans that begin at or before `t`. */
  begun(t: number): number {
    let low = 0;
    let high = this.start.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.start[middle] as number) <= t) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The span that covers `t`, or -1. */
  at(t: number): number {
    const i = this.begun(t) - 1;
    return i >= 0 && t < (this.end[i] as number) ? i : -1;
  }

  /** Indexes `[first, last)` of the spans that touch `[from, to)`. */
  within(from: number, to: number): [number, number] {
    let first = this.begun(from);
    if (first > 0 && (this.end[first - 1] as number) > from) first--;
    return [first, Math.max(first, this.begun(to - 1e-9))];
  }

  /** TTIs of `[from, to)` that spans cover. */
  cover(from: number, to: number): number {
    return this.coverBefore(to) - this.coverBefore(from);
  }

  private coverBefore(t: number): number {
    const i = this.begun(t) - 1;
    if (i < 0) return 0;
    const into = Math.min(t - (this.start[i] as number), this.length(i));
    return (this.before[i] as number) + into;
  }
}
