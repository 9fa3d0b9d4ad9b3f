/** The visible range of the time axis, in TTIs from its origin. */

export interface Range {
  from: number;
  to: number;
}

/** Minimum number of visible TTIs. */
export const CLOSEST_TTIS = 20;

/** Moves and, if necessary, cuts the range so that it lies inside `full`. */
export function clamp(range: Range, full: Range): Range {
  const all = full.to - full.from;
  const span = Math.min(all, Math.max(Math.min(CLOSEST_TTIS, all), range.to - range.from));
  const middle = (range.from + range.to) / 2;
  const from = Math.min(Math.max(full.from, middle - span / 2), full.to - span);
  return { from, to: from + span };
}

/** `factor` below 1 zooms in; `centre` keeps its place. */
export function zoom(range: Range, full: Range, factor: number, centre?: number): Range {
  const at = centre ?? (range.from + range.to) / 2;
  const all = full.to - full.from;
  const old = range.to - range.from;
  const span = Math.min(all, Math.max(Math.min(CLOSEST_TTIS, all), old * factor));
  const left = old > 0 ? (at - range.from) / old : 0.5;
  return clamp({ from: at - left * span, to: at + (1 - left) * span }, full);
}

/** Moves by a share of the visible range. */
export function pan(range: Range, full: Range, share: number): Range {
  const by = (range.to - range.from) * share;
  return clamp({ from: range.from + by, to: range.to + by }, full);
}

/** A range with a margin. */
export function around(range: Range, full: Range): Range {
  const room = Math.max(5, (range.to - range.from) * 0.05);
  return clamp({ from: range.from - room, to: range.to + room }, full);
}

/** A part that is this much of everything is shown as everything (chosen here). */
const NEARLY_ALL = 0.75;

/** Where a page opens: on the ranges that it is about, if the rest would make them small. */
export function opening(ranges: Range[], full: Range): Range {
  const inside = ranges.filter(({ from, to }) => to > full.from && from < full.to);
  if (inside.length === 0) return full;
  const from = Math.min(...inside.map((range) => range.from));
  const to = Math.max(...inside.map((range) => range.to));
  return to - from < NEARLY_ALL * (full.to - full.from) ? around({ from, to }, full) : full;
}

/** Nothing is left to zoom out to. */
export function isAll(range: Range, full: Range): boolean {
  return range.to - range.from >= (full.to - full.from) * 0.999;
}

/** The visible range; notifies listeners at most once per frame. */
export class View {
  range: Range;
  /** Where the view opened. */
  readonly start: Range;
  /** The range that a link points to. */
  mark: Range | null = null;
  private readonly listeners: (() => void)[] = [];
  private pending = false;

  constructor(
    readonly full: Range,
    start?: Range,
  ) {
    this.start = start ? clamp(start, full) : full;
    this.range = this.start;
  }

  onChange(listener: () => void): void {
    this.listeners.push(listener);
  }

  set(range: Range): void {
    this.range = clamp(range, this.full);
    this.changed();
  }

  zoom(factor: number, centre?: number): void {
    this.set(zoom(this.range, this.full, factor, centre));
  }

  pan(share: number): void {
    this.set(pan(this.range, this.full, share));
  }

  reset(to: Range = this.full): void {
    this.mark = null;
    this.set(to);
  }

  show(mark: Range): void {
    this.mark = mark;
    this.set(around(mark, this.full));
  }

  changed(): void {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      this.listeners.forEach((listener) => listener());
    });
  }
}
