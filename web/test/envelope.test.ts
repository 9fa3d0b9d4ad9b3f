import { describe, expect, test } from "vitest";
import { Envelope } from "../src/data/envelope";
import { MarkList, Marks } from "../src/data/marks";

/** Ranges at every third TTI, minimum and maximum by a formula. */
function made(n: number): { envelope: Envelope; least: Uint32Array; most: Uint32Array } {
  const at = Uint32Array.from({ length: n }, (_, i) => i * 3);
  const least = Uint32Array.from({ length: n }, (_, i) => 1_000 + ((i * 7919) % 997));
  const most = Uint32Array.from(least, (value, i) => value + ((i * 31) % 53));
  return { envelope: new Envelope(at, least, most), least, most };
}

describe("an envelope", () => {
  test("has the minimum and maximum of any span", () => {
    const { envelope, least, most } = made(5_000);
    for (const [first, last] of [[0, 1], [0, 5_000], [3, 4_999], [8, 16], [7, 17], [511, 513], [63, 4_097]] as const) {
      expect(envelope.range(first, last)).toEqual([
        Math.min(...least.subarray(first, last)),
        Math.max(...most.subarray(first, last)),
      ]);
    }
    expect(envelope.range(5, 5)).toBeNull();
  });

  test("returns each point if there is room, and keeps extremes otherwise", () => {
    const { envelope, least, most } = made(5_000);
    expect(envelope.columns(0, 30, 100, 10).x).toEqual([0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30]);
    const columns = envelope.columns(0, 15_000, 200, 1_000);
    expect(columns.x.length).toBeLessThan(260);
    expect(Math.max(...columns.most.map((v) => v ?? 0))).toBe(Math.max(...most));
    expect(Math.min(...columns.least.map((v) => v ?? Infinity))).toBe(Math.min(...least));
  });

  test("breaks at pauses", () => {
    const at = Uint32Array.from([0, 1, 500, 501]);
    const value = Uint32Array.from([5, 6, 7, 8]);
    const columns = new Envelope(at, value, value).columns(0, 600, 100, 100);
    expect(columns.x).toEqual([0, 1, 250.5, 500, 501]);
    expect(columns.least).toEqual([5, 6, null, 7, 8]);
  });

  test("returns the value at a time", () => {
    const envelope = new Envelope(Uint32Array.from([10]), Uint32Array.from([1]), Uint32Array.from([2]));
    expect(envelope.before(9, 100)).toBeNull();
    expect(envelope.before(10, 100)).toEqual([1, 2]);
    expect(envelope.before(110, 100)).toEqual([1, 2]);
    expect(envelope.before(111, 100)).toBeNull();
  });

  test("without points is empty", () => {
    const empty = new Envelope(new Uint32Array(), new Uint32Array(), new Uint32Array());
    expect(empty.columns(0, 100, 10, 5).x).toEqual([]);
    expect(empty.within(0, 100)).toBeNull();
  });

  test("of ten million points is queried without a scan", () => {
    const n = 10_000_000;
    const at = Uint32Array.from({ length: n }, (_, i) => i);
    const envelope = new Envelope(at, at, at);
    const columns = envelope.columns(0, n, 1_000, 10_000);
    expect(columns.x.length).toBeLessThan(1_100);
    expect(columns.most.at(-1)).toBe(n - 1);
  });
});

describe("marks", () => {
  test("that reach into a span are found, by their kinds", () => {
    const from = Uint32Array.from([0, 5, 100, 120]);
    const to = Uint32Array.from([90, 6, 110, 120]);
    const list = new MarkList(from, to, from);
    const check = (a: number, b: number, expected: number[]): void =>
      expect([...list.within(a, b)]).toEqual(expected);
    check(50, 60, [0]);
    check(0, 10, [0, 1]);
    check(105, 121, [2, 3]);
    check(91, 99, []);
    const marks = new Marks(["request", "stall"], Uint8Array.from([0, 1, 0, 1]), from, to, from);
    expect(marks.of("stall").get(1)).toEqual({ from: 120, to: 120, value: 120 });
    expect([marks.of("request").count, marks.of("wait").count, marks.count]).toEqual([2, 0, 4]);
  });
});
