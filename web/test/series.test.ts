import { describe, expect, it } from "vitest";
import { Arrays, type SeriesHead } from "../src/data/decode";
import { hasShares, meanShare, Pyramid } from "../src/data/pyramid";
import { Causes } from "../src/data/causes";
import { Spans } from "../src/data/spans";
import { Series } from "../src/series";
import { inFull, setZone, tickTime, timesOf } from "../src/zone";

const HEAD: SeriesHead = {
  first_tti: 8192,
  n_tti: 20_000,
  tti_ms: 1,
  block_ttis: 4096,
  share_steps: 250,
  anchors: [],
  bounds: [],
    capture: null,
    marks: [],
    more_marks: 0,
  savings: [],
  causes: [],
  frames: [],
  directions: {},
  arrays: {},
};

async function u32(name: string, values: number[]): Promise<[string, string]> {
  const bytes = new Uint8Array(Uint32Array.from(values).buffer);
  const stream = new Blob([bytes]).stream().pipeThrough(new CompressionStream("gzip"));
  const packed = new Uint8Array(await new Response(stream).arrayBuffer());
  return [name, btoa(String.fromCharCode(...packed))];
}

async function series(arrays: Record<string, number[]>): Promise<Series> {
  const texts = new Map<string, string>();
  const head: SeriesHead = { ...HEAD, arrays: {} };
  for (const [name, values] of Object.entries(arrays)) {
    texts.set(...(await u32(name, values)));
    head.arrays[name] = { type: "u32", length: values.length };
  }
  return new Series(head, await Arrays.decode(head, (name) => texts.get(name)));
}

describe("where the axis begins", () => {
  it("follows bursts and measurements without an allocation", async () => {
    const found = await series({
      "dl.burst.start": [111, 200],
      "dl.burst.end": [150, 250],
      "signal.tti": [118, 12_000],
      "holes.start": [300],
      "holes.end": [310],
    });
    expect(found.starts().toSorted((a, b) => a - b)).toEqual([111, 118, 300]);
  });

  it("has no candidates in an empty report", async () => {
    expect((await series({})).starts()).toEqual([]);
  });
});

describe("the mean share", () => {
  const mean = (codes: number[]): number | null => {
    const block = new Uint8Array(4096);
    block.set(codes);
    const pyramid = new Pyramid(block, Uint32Array.from([0]), 4096, 64, 250);
    return meanShare(pyramid.sample(0, 64, 16));
  };

  it("is unknown without the bandwidth, even if other TTIs are idle", () => {
    expect(mean([0, 255, 0, 255])).toBeNull();
  });

  it("is asked of the whole log", () => {
    const known = (codes: number[]): boolean =>
      hasShares(new Pyramid(Uint8Array.from(codes), Uint32Array.from([0]), 4096, 64, 250));
    expect(known([0, 255, 0, 255])).toBe(false);
    expect(known([0, 255, 0, 200])).toBe(true);
    expect(known([])).toBe(true);
  });

  it("counts idle TTIs as zero", () => {
    expect(mean(Array.from({ length: 32 }, () => 251))).toBe(0.5);
    expect(mean([])).toBe(0);
  });
});

describe("causes", () => {
  const spans = new Spans(Uint32Array.of(0, 100, 300), Uint32Array.of(100, 200, 400));
  const causes = new Causes(["radio", "wireline", "unknown"], Uint8Array.of(0, 1, 0), spans);

  it("have shares of a range", () => {
    expect(causes.within(50, 350)).toEqual([["radio", 100], ["wireline", 100]]);
    expect(causes.within(200, 300)).toEqual([]);
  });

  it("are none outside of transfers", () => {
    expect([0, 199, 200, 399, 400].map((t) => causes.at(t))).toEqual(["radio", "wireline", null, "radio", null]);
  });
});

describe("times of day", () => {
  const BERLIN = { name: "Europe/Berlin", offsets: [[0, 3_600], [1_774_746_000e6, 7_200]] as [number, number][] };

  it("are of the page's zone", () => {
    setZone(BERLIN);
    // 2026-03-29T00:59:59.250Z, and two seconds later, when the clocks have been set forward.
    const us = 1_774_745_999.25e6;
    expect(inFull(us)).toBe("2026-03-29 01:59:59.250 Europe/Berlin (UTC+01:00)");
    expect(inFull(us + 2e6)).toBe("2026-03-29 03:00:01.250 Europe/Berlin (UTC+02:00)");
    expect(timesOf([us, us + 2e6]).title).toBe("2026-03-29, Europe/Berlin (UTC+01:00)");
    expect(timesOf([us, us + 86_400e6]).show(us)).toBe("2026-03-29 01:59:59.250");
    setZone({ name: null, offsets: [[0, -12_600]] });
    expect(inFull(us)).toBe("2026-03-28 21:29:59.250 UTC−03:30");
    setZone(null);
    expect(inFull(us)).toBe("2026-03-29 00:59:59.250 UTC");
    expect([86_400e3, 60e3, 1e3, 100, 10, 1].map((step) => tickTime(us, step))).toEqual(
      ["03-29", "00:59", "00:59:59", "00:59:59.3", "00:59:59.25", "00:59:59.250"],
    );
  });

  it("are at round places of the axis, also where the clock was set back", async () => {
    const found = new Series(
      { ...HEAD, anchors: [[0, 10.5e6], [2_000, 11.75e6]] },
      await Arrays.decode(HEAD, () => undefined),
    );
    expect(found.ticks(0, 4_000, 1_000)).toEqual([500, 1_500, 2_250, 3_250]);
    expect(found.ticks(1_000, 4_000, 1_000).map((tti) => found.tick(tti, 1_000))).toEqual(
      ["00:00:12", "00:00:12", "00:00:13"],
    );
  });
});
