import { describe, expect, it } from "vitest";
import { bitrate, bytes, byteTicks, confidence, count, duration, elapsed, percent, words } from "../src/format";
import { rowsOf, stacked } from "../src/figures/lanes";
import { orderedShares, slowestFirst } from "../src/figures/transfers";
import { family } from "../src/figures/verdict";
import type { TransferDiagnosis } from "../src/generated/diagnose";
import { timeOfDay } from "../src/zone";
import { around, clamp, CLOSEST_TTIS, opening, pan, zoom } from "../src/view";

const full = { from: 0, to: 1000 };

describe("the view", () => {
  it("keeps the point under the pointer", () => {
    const range = zoom({ from: 100, to: 300 }, full, 0.5, 150);
    expect(range).toEqual({ from: 125, to: 225 });
  });

  it("stays inside the log", () => {
    expect(pan({ from: 900, to: 1000 }, full, 0.5)).toEqual({ from: 900, to: 1000 });
    expect(zoom({ from: 0, to: 900 }, full, 2)).toEqual(full);
    expect(clamp({ from: -50, to: 50 }, full)).toEqual({ from: 0, to: 100 });
  });

  it("has a minimum range", () => {
    const range = zoom({ from: 100, to: 110 }, full, 0.01, 105);
    expect(range.to - range.from).toBe(CLOSEST_TTIS);
    expect(clamp({ from: 3, to: 4 }, { from: 0, to: 7 })).toEqual({ from: 0, to: 7 });
  });

  it("adds a margin to a link's target", () => {
    expect(around({ from: 400, to: 500 }, full)).toEqual({ from: 395, to: 505 });
  });
});

describe("a page opens", () => {
  it("on a short transfer of a long log", () => {
    const range = opening([{ from: 300, to: 302 }], full);
    expect(range.from).toBeLessThan(300);
    expect(range.to).toBeGreaterThan(302);
    expect(range.to - range.from).toBe(CLOSEST_TTIS);
  });

  it("on all transfers, from the first to the last", () => {
    expect(opening([{ from: 500, to: 600 }, { from: 400, to: 450 }], full)).toEqual({ from: 390, to: 610 });
  });

  it("on the whole log, where the transfers are most of it or outside of it", () => {
    expect(opening([], full)).toEqual(full);
    expect(opening([{ from: 100, to: 900 }], full)).toEqual(full);
    expect(opening([{ from: 2_000, to: 3_000 }], full)).toEqual(full);
  });
});

describe("formats", () => {
  it("of ticks differ where their values do", () => {
    expect(byteTicks([0, 2.5e6, 5e6])).toEqual(["0 B", "2.5 MB", "5 MB"]);
    expect(byteTicks([25.001e6, 25.002e6])).toEqual(["25.001 MB", "25.002 MB"]);
  });

  it("fit their unit", () => {
    expect([12, 1_234, 45_000_000].map(bytes)).toEqual(["12 B", "1.2 kB", "45.00 MB"]);
    expect([3, 999, 1_500, 61_000, 3_700_000].map(duration)).toEqual([
      "3 ms",
      "999 ms",
      "1.50 s",
      "1 min 01 s",
      "1 h 01 min",
    ]);
    const shares = [0, 0.0004, 0.004, 0.5].map((s) => percent(s).replaceAll("\u00a0", " "));
    expect(shares).toEqual([
      "0 %",
      "< 0.1 %",
      "0.4 %",
      "50 %",
    ]);
    const sure = [0.57, 0.976, 0.996, 1].map((s) => confidence(s).replaceAll("\u00a0", " "));
    expect(sure).toEqual(["57 %", "98 %", "99 %", "100 %"]);
    expect(bitrate(9_430_000)).toBe("9.43 Mbit/s");
    expect(count(12_345)).toBe("12\u202f345");
  });

  it("show a time with the digits of its step", () => {
    expect(elapsed(1_500, 500)).toBe("1.5 s");
    expect(elapsed(1_503, 1)).toBe("1.503 s");
    expect(elapsed(61_500, 500)).toBe("1:01.5");
    expect(elapsed(3_661_000, 1_000)).toBe("1:01:01");
    expect(timeOfDay(1_535_198_489_250_000)).toBe("12:01:29.250");
    expect(timeOfDay(1_535_198_489_250_999)).toBe("12:01:29.250");
  });
});

describe("transfers", () => {
  it("are explained from the slowest on, with their own saving", () => {
    const of = (id: string, duration_ms: number, bytes: number): TransferDiagnosis =>
      ({ id, duration_ms, bytes }) as TransferDiagnosis;
    const order = slowestFirst([of("large", 900, 9e6), of("slow", 4000, 1e5)], { savings: ["a", "b"], frames: [] });
    expect(order.map(({ transfer, saving }) => [transfer.id, saving])).toEqual([
      ["slow", "b"],
      ["large", "a"],
    ]);
  });

  it("are in separate rows if they overlap", () => {
    const spans = [
      [0, 10],
      [5, 15],
      [10, 20],
      [12, 13],
    ].map(([start_tti, end_tti]) => ({ start_tti: start_tti ?? 0, end_tti: end_tti ?? 0 }));
    expect(stacked(spans)).toEqual([0, 1, 0, 2]);
  });

  it("gives each of many transfers at once a row", () => {
    expect(rowsOf(1)).toEqual({ count: 1, height: 24 });
    expect(rowsOf(5)).toEqual({ count: 5, height: 24 });
    expect(rowsOf(20).count).toBe(20);
    expect(rowsOf(20).height).toBeLessThan(24);
    expect(rowsOf(1_000).count).toBe(24);
  });

  it("have the radio's shares first and the unknown last", () => {
    const shares = { unknown: 1, not_radio: 2, radio_signal: 3, radio: 0 };
    const transfer = { shares } as unknown as TransferDiagnosis;
    expect(orderedShares(transfer).map(([cause]) => cause)).toEqual([
      "radio_signal",
      "not_radio",
      "unknown",
    ]);
  });
});

describe("names", () => {
  it("are those that the command prints", () => {
    expect(words("radio_contention")).toBe("radio contention");
    expect(words("loss_recovery_congestion")).toBe("loss recovery (congestion)");
  });

  it("of a page's cause have the colour of a verdict", () => {
    expect(family("server")).toBe("not_radio");
    expect(family("radio")).toBe("radio");
    expect(family("unlogged")).toBe("unknown");
  });
});
