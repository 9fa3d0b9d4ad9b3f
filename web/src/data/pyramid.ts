/**
 * The allocation at every zoom level: exact minimum, mean and maximum share of
 * the cell's PRBs over buckets of TTIs, in time proportional to the number of
 * requested buckets.
 *
 * Codes of a TTI: 0 nothing scheduled, 255 scheduled with an unknown share,
 * else 1 + steps * share. TTIs are stored in blocks; idle blocks are omitted.
 * Levels go up by 8; buckets are powers of two, so each is made of at most
 * four entries of a level.
 */

const UNKNOWN = 255;
/** log2 of the step between levels. */
const STEP_BITS = 3;

type Counts = Uint8Array | Uint16Array | Uint32Array | Float64Array;

interface Level {
  min: Uint8Array;
  max: Uint8Array;
  sum: Counts;
  scheduled: Counts;
  unknown: Counts;
}

/** Buckets of one width; `null` if unknown. */
export interface Sample {
  /** TTIs in a bucket. */
  width: number;
  /** First TTI of each bucket, from the axis' origin. */
  start: number[];
  min: (number | null)[];
  mean: (number | null)[];
  max: (number | null)[];
  /** Share of TTIs with something scheduled. */
  scheduled: number[];
}

/**
 * The mean share over a sample; `null` if TTIs were scheduled, but no share is
 * known (because the cell's bandwidth is unknown).
 */
export function meanShare(sample: Sample): number | null {
  const means = sample.mean.flatMap((mean) => mean ?? []);
  const scheduled = sample.scheduled.some((share) => share > 0);
  if (means.length === 0 || (scheduled && !sample.max.some((max) => max !== null && max > 0)))
    return null;
  return means.reduce((sum, mean) => sum + mean, 0) / means.length;
}

/** Whether the share of any scheduled TTI is known. */
export function hasShares(pyramid: Pyramid): boolean {
  return meanShare(pyramid.sample(0, pyramid.nTti, bucketWidth(pyramid.nTti, 64))) !== null;
}

/** The bucket width for a span: the smallest power of two that gives at most `n` buckets. */
export function bucketWidth(span: number, n: number): number {
  let width = 1;
  while (span / width > n) width *= 2;
  return width;
}

/** The level (steps of 8) whose entries make up a bucket of a power of two. */
export function levelOf(width: number): number {
  return Math.floor(Math.log2(Math.max(1, width)) / STEP_BITS);
}

export class Pyramid {
  private readonly slots: Int32Array;
  private readonly inBlock: Level[] = [];
  private readonly overBlocks: Level[] = [];
  private readonly blockLevel: number;

  constructor(
    readonly codes: Uint8Array,
    readonly blocks: Uint32Array,
    readonly blockTtis: number,
    readonly nTti: number,
    private readonly steps: number,
  ) {
    this.blockLevel = levelOf(blockTtis);
    this.slots = new Int32Array(Math.ceil(nTti / blockTtis)).fill(-1);
    blocks.forEach((block, slot) => {
      if (block < this.slots.length) this.slots[block] = slot;
    });
    let below = this.firstLevel();
    this.inBlock.push(below);
    for (let level = 2; level <= this.blockLevel; level++) {
      below = combine(below, below.min.length >> STEP_BITS, level > 4);
      this.inBlock.push(below);
    }
    let dense = this.spread(below);
    this.overBlocks.push(dense);
    while (dense.min.length > 8) {
      dense = combine(dense, Math.ceil(dense.min.length / 8), true);
      this.overBlocks.push(dense);
    }
  }

  get empty(): boolean {
    return this.blocks.length === 0;
  }

  /** The code of a TTI. */
  code(tti: number): number {
    const block = Math.floor(tti / this.blockTtis);
    const slot = this.slots[block] ?? -1;
    return slot < 0 ? 0 : (this.codes[slot * this.blockTtis + (tti - block * this.blockTtis)] ?? 0);
  }

  /** The share of a code; `null` if unknown. */
  share(code: number): number | null {
    if (code === UNKNOWN) return null;
    return code === 0 ? 0 : (code - 1) / this.steps;
  }

  /** Buckets of `width` TTIs (a power of two) that cover `[from, to)`. */
  sample(from: number, to: number, width: number): Sample {
    const first = Math.max(0, Math.floor(from / width));
    const last = Math.max(first, Math.ceil(Math.min(to, this.nTti) / width));
    const out: Sample = { width, start: [], min: [], mean: [], max: [], scheduled: [] };
    for (let i = first; i < last; i++) {
      const start = i * width;
      const ttis = Math.min(width, this.nTti - start);
      const found = this.bucket(start, width);
      const known = ttis - found.unknown;
      out.start.push(start);
      out.scheduled.push(Math.min(1, found.scheduled / ttis));
      // With idle TTIs in the bucket the minimum is zero, even if others are unknown.
      out.min.push(known > 0 ? found.min / this.steps : null);
      out.max.push(known > 0 ? found.max / this.steps : null);
      // Of a scheduled TTI the share is known, or nothing was scheduled.
      const hasMean = found.sum > 0 || found.unknown === 0;
      out.mean.push(known > 0 && hasMean ? Math.min(1, found.sum / known / this.steps) : null);
    }
    return out;
  }

  private bucket(start: number, width: number): Bucket {
    const into: Bucket = { min: 255, max: 0, sum: 0, scheduled: 0, unknown: 0 };
    const level = levelOf(width);
    if (width >= this.blockTtis) {
      const index = Math.min(level - this.blockLevel, this.overBlocks.length - 1);
      const entries = this.overBlocks[index];
      const ttis = this.blockTtis * 8 ** index;
      if (entries) gather(into, entries, start / ttis, (start + width) / ttis);
    } else {
      const block = Math.floor(start / this.blockTtis);
      const slot = this.slots[block] ?? -1;
      if (slot >= 0) {
        const at = slot * this.blockTtis + (start - block * this.blockTtis);
        const entries = level > 0 ? this.inBlock[level - 1] : undefined;
        const bits = STEP_BITS * level;
        if (entries) gather(into, entries, at >> bits, (at + width) >> bits);
        else for (let i = at; i < at + width; i++) add(into, this.codes[i] ?? 0);
      }
    }
    if (into.min === 255) into.min = 0;
    return into;
  }

  /** Entries of 8 TTIs, from the codes. */
  private firstLevel(): Level {
    const { codes } = this;
    const n = codes.length >> STEP_BITS;
    const level: Level = {
      min: new Uint8Array(n),
      max: new Uint8Array(n),
      sum: new Uint16Array(n),
      scheduled: new Uint8Array(n),
      unknown: new Uint8Array(n),
    };
    for (let i = 0, at = 0; i < n; i++) {
      let min = 255;
      let max = 0;
      let sum = 0;
      let scheduled = 0;
      let unknown = 0;
      for (let j = 0; j < 8; j++) {
        const code = codes[at++] as number;
        if (code !== 0) scheduled++;
        if (code === UNKNOWN) {
          unknown++;
          continue;
        }
        const share = code === 0 ? 0 : code - 1;
        if (share < min) min = share;
        if (share > max) max = share;
        sum += share;
      }
      level.min[i] = min;
      level.max[i] = max;
      level.sum[i] = sum;
      level.scheduled[i] = scheduled;
      level.unknown[i] = unknown;
    }
    return level;
  }

  /** The highest level inside blocks, laid out with the idle blocks. */
  private spread(level: Level): Level {
    const n = this.slots.length;
    const out = emptyLevel(n, true);
    this.slots.forEach((slot, block) => {
      if (slot < 0) return;
      out.min[block] = level.min[slot] as number;
      out.max[block] = level.max[slot] as number;
      out.sum[block] = level.sum[slot] as number;
      out.scheduled[block] = level.scheduled[slot] as number;
      out.unknown[block] = level.unknown[slot] as number;
    });
    return out;
  }
}

interface Bucket {
  min: number;
  max: number;
  sum: number;
  scheduled: number;
  unknown: number;
}

function add(into: Bucket, code: number): void {
  if (code !== 0) into.scheduled++;
  if (code === UNKNOWN) {
    into.unknown++;
    return;
  }
  const share = code === 0 ? 0 : code - 1;
  into.min = Math.min(into.min, share);
  into.max = Math.max(into.max, share);
  into.sum += share;
}

function gather(into: Bucket, level: Level, from: number, to: number): void {
  const end = Math.min(Math.ceil(to), level.min.length);
  for (let i = Math.floor(from); i < end; i++) {
    into.min = Math.min(into.min, level.min[i] as number);
    into.max = Math.max(into.max, level.max[i] as number);
    into.sum += level.sum[i] as number;
    into.scheduled += level.scheduled[i] as number;
    into.unknown += level.unknown[i] as number;
  }
}

function emptyLevel(n: number, wide: boolean): Level {
  const counts = (): Counts => (wide ? new Float64Array(n) : new Uint16Array(n));
  return {
    min: new Uint8Array(n),
    max: new Uint8Array(n),
    sum: wide ? new Float64Array(n) : new Uint32Array(n),
    scheduled: counts(),
    unknown: counts(),
  };
}

function combine(below: Level, n: number, wide: boolean): Level {
  const out = emptyLevel(n, wide);
  for (let i = 0; i < n; i++) {
    const into: Bucket = { min: 255, max: 0, sum: 0, scheduled: 0, unknown: 0 };
    gather(into, below, i * 8, i * 8 + 8);
    out.min[i] = into.min;
    out.max[i] = into.max;
    out.sum[i] = into.sum;
    out.scheduled[i] = into.scheduled;
    out.unknown[i] = into.unknown;
  }
  return out;
}
