import { describe, expect, it } from "vitest";
import { Arrays, fromBase64, type SeriesHead } from "../src/data/decode";
import { cumulative, quantile } from "../src/data/distribution";
import { thin } from "../src/data/lines";
import { Spans } from "../src/data/spans";

function base64(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}

async function packed(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const stream = new Blob([bytes]).stream().pipeThrough(new CompressionStream("gzip"));
  return base64(new Uint8Array(await new Response(stream).arrayBuffer()));
}

function head(arrays: SeriesHead["arrays"]): SeriesHead {
  return {
    first_tti: 0,
    n_tti: 1,
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
    arrays,
  };
}

describe("decoding", () => {
  it("returns arrays", async () => {
    const values = Uint32Array.from([1, 2, 4_000_000_000]);
    const text = await packed(new Uint8Array(values.buffer));
    const found = await Arrays.decode(head({ a: { type: "u32", length: 3 } }), () => text);
    expect([...found.u32("a")]).toEqual([...values]);
    expect(found.u8("absent").length).toBe(0);
  });

  it("reports a wrong length", async () => {
    const text = await packed(new Uint8Array(3));
    const decoding = Arrays.decode(head({ a: { type: "u8", length: 4 } }), () => text);
    await expect(decoding).rejects.toThrow("3 of 4 values");
  });

  it("reads base64 longer than a piece", () => {
    const bytes = new Uint8Array(1_000_001).map((_, i) => i % 251);
    const back = fromBase64(base64(bytes));
    expect(back.length).toBe(bytes.length);
    expect(back.findIndex((byte, i) => byte !== bytes[i])).toBe(-1);
  });
});

describe("spans", () => {
  const spans = new Spans(Uint32Array.from([10, 30, 50]), Uint32Array.from([20, 31, 60]));

  it("compute coverage", () => {
    expect(spans.cover(0, 100)).toBe(21);
    expect(spans.cover(15, 55)).toBe(5 + 1 + 5);
    expect(spans.cover(20, 30)).toBe(0);
  });

  it("are found by position", () => {
    expect([9, 10, 19, 20, 30, 31].map((t) => spans.at(t))).toEqual([-1, 0, 0, -1, 1, -1]);
    expect(spans.within(19, 50)).toEqual([0, 2]);
    expect(spans.within(20, 51)).toEqual([1, 3]);
  });
});

describe("lines", () => {
  const at = Uint32Array.from({ length: 1000 }, (_, i) => i * 10);

  it("keep every point that can be shown", () => {
    const found = thin(at, (i) => i, 100, 200, 100, 1000);
    expect(found.x).toEqual([90, 100, 110, 120, 130, 140, 150, 160, 170, 180, 190, 200]);
  });

  it("are reduced to means", () => {
    const found = thin(at, (i) => i, 0, 10_000, 100, 1000);
    expect(found.x.length).toBeLessThan(105);
    expect(found.y[0]).toBeCloseTo(4.5);
  });

  it("break at pauses", () => {
    const found = thin(Uint32Array.from([0, 10, 5000]), () => 1, 0, 6000, 100, 100);
    expect(found.y).toEqual([1, 1, null, 1]);
  });
});

describe("distributions", () => {
  it("end at one", () => {
    const of = { n: 4, counts: Float64Array.from([1, 0, 1, 0, 2]) };
    expect(cumulative(of)).toEqual([0.25, 0.25, 0.5, 0.5, 1]);
    expect([0.25, 0.5, 0.75].map((q) => quantile(of, q))).toEqual([0, 0.5, 1]);
  });
});
