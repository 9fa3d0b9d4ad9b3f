import { describe, expect, it } from "vitest";
import { bucketWidth, levelOf, Pyramid } from "../src/data/pyramid";

const STEPS = 250;
const BLOCK = 4096;

/** A pyramid over codes by TTI, without idle blocks, as the writer makes it. */
function pyramid(codes: Uint8Array): Pyramid {
  const blocks: number[] = [];
  const kept: Uint8Array[] = [];
  for (let b = 0; b * BLOCK < codes.length; b++) {
    const block = new Uint8Array(BLOCK);
    block.set(codes.subarray(b * BLOCK, (b + 1) * BLOCK));
    if (block.every((code) => code === 0)) continue;
    blocks.push(b);
    kept.push(block);
  }
  const all = new Uint8Array(kept.length * BLOCK);
  kept.forEach((block, i) => all.set(block, i * BLOCK));
  return new Pyramid(all, Uint32Array.from(blocks), BLOCK, codes.length, STEPS);
}

/** Every bucket counted one TTI at a time. */
function plain(codes: Uint8Array, start: number, width: number) {
  const part = Array.from(codes.subarray(start, start + width));
  const known = part.filter((c) => c !== 255).map((c) => (c === 0 ? 0 : (c - 1) / STEPS));
  return {
    min: known.length > 0 ? Math.min(...known) : null,
    max: known.length > 0 ? Math.max(...known) : null,
    // Where shares are unknown, zeros of idle TTIs are no mean.
    mean: known.some((share) => share > 0) || (known.length > 0 && known.length === part.length)
      ? known.reduce((a, b) => a + b, 0) / known.length
      : null,
    scheduled: part.filter((c) => c !== 0).length / part.length,
  };
}

describe("levels", () => {
  it("take the smallest power of two that fits", () => {
    expect(bucketWidth(900, 1000)).toBe(1);
    expect(bucketWidth(1001, 1000)).toBe(2);
    expect(bucketWidth(10_000_000, 1000)).toBe(16_384);
  });

  it("go up by eight", () => {
    expect([1, 4, 8, 32, 64, 4096].map(levelOf)).toEqual([0, 0, 1, 1, 2, 4]);
  });
});

describe("buckets", () => {
  const n = 9 * BLOCK + 777;
  const codes = new Uint8Array(n);
  let seed = 1;
  const random = () => (seed = (seed * 48271) % 2147483647) / 2147483647;
  for (let i = 0; i < n; i++) {
    // Blocks 3 to 5 are idle; some shares are unknown.
    if (i >= 3 * BLOCK && i < 6 * BLOCK) continue;
    const r = random();
    codes[i] = r < 0.3 ? 0 : r < 0.32 ? 255 : 1 + Math.floor(random() * 251);
  }
  const found = pyramid(codes);

  it.each([1, 2, 4, 8, 16, 64, 128, 512, 1024, 4096, 8192, 16_384, 32_768, 65_536])(
    "of %i TTIs are what counting gives",
    (width) => {
      const sample = found.sample(0, n, width);
      expect(sample.start.length).toBe(Math.ceil(n / width));
      const step = Math.max(1, Math.floor(sample.start.length / 300));
      for (let i = 0; i < sample.start.length; i += step) {
        const start = sample.start[i] as number;
        const want = plain(codes, start, Math.min(width, n - start));
        for (const key of ["min", "max", "mean"] as const) {
          const got = sample[key][i] as number | null;
          // Past the end a bucket's rest is idle.
          if (key === "min" && start + width > n) continue;
          if (want[key] === null) expect(got).toBeNull();
          else expect(got).toBeCloseTo(want[key], 9);
        }
        expect(sample.scheduled[i]).toBeCloseTo(want.scheduled, 9);
      }
    },
  );

  it("begin at multiples of their width for any requested part", () => {
    const sample = found.sample(1003, 2001, 16);
    expect(sample.start[0]).toBe(992);
    expect(sample.start.at(-1)).toBe(2000);
  });

  it("of no data are empty", () => {
    const none = new Pyramid(new Uint8Array(), new Uint32Array(), BLOCK, 1, STEPS);
    expect(none.sample(0, 1, 1).mean).toEqual([0]);
    expect(none.empty).toBe(true);
  });
});
