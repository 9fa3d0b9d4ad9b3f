import { describe, expect, it } from "vitest";
import { firstFrom } from "../src/data/lines";
import { around, countIn, lastBefore, mostIn, offsets, windowEdge } from "../src/data/sequence";
import { bounds, decades, staircase, tickLabel, valueLabel } from "../src/figures/curves";
import { cellEdge } from "../src/figures/density";
import { leftOut, merged, readout, summary } from "../src/figures/flow_viewer";
import { filled } from "../src/figures/requests";
import { value } from "../src/figures/study_figures";
import { unbroken } from "../src/format";
import type { FlowPlot, Requests, StudyDocument } from "../src/generated/study";
import { View } from "../src/view";

const range = { bin_ms: 0, at_ms: [], least: [], most: [], n: 0 };

/** Two segments at 10 and 20 ms, acknowledged at 50 and 60; the second again at 40. */
const flow: FlowPlot = {
  flow: 7,
  label: "10.0.0.1:40000-192.0.2.1:443",
  server_name: null,
  why: [],
  says: "",
  dir: "dl",
  start_us: 0,
  span_ms: [0, 100],
  facts: {
    bytes: 2_000,
    duration_ms: 100,
    segments: 3,
    retx: 1,
    dup_acks: 0,
    slow_starts: 0,
    window_full_share: 0,
    rtt_ms: null,
    available_bps: null,
    congestion_control: "unknown",
    congestion_control_confidence: 0,
    termination: "fin",
  },
  data: {
    bin_ms: 0,
    from_ms: [10, 20],
    to_ms: [10, 20],
    from_bytes: [1, 1_001],
    to_bytes: [1_001, 2_001],
    segments: 2,
  },
  acks: {
    bin_ms: 0,
    at_ms: [50, 60],
    acked_bytes: [1_001, 2_001],
    window_bytes: [500, null],
    acks: 2,
  },
  flight: { ...range, at_ms: [10, 20], least: [1_000, 2_000], most: [1_000, 2_000], n: 2 },
  rtt: { ...range, at_ms: [50], least: [40], most: [40], n: 1 },
  rtt_dup_ack: range,
  events: [
    { event: "retx_fast", bin_ms: 0, at_ms: [40], from_bytes: [1_001], to_bytes: [2_001], n: [1] },
    { event: "dup_ack", bin_ms: 5, at_ms: [30, 35], from_bytes: [1_001, 1_001], to_bytes: [1_001, 1_001], n: [4, 1] },
  ],
};

describe("a flow's lines", () => {
  it("are found by time", () => {
    const at = [10, 20, 30];
    expect([5, 10, 15, 31].map((t) => firstFrom(at, t))).toEqual([0, 0, 1, 3]);
    expect([5, 10, 15, 31].map((t) => lastBefore(at, t))).toEqual([-1, 0, 0, 2]);
    expect(around(at, 12, 18)).toEqual([0, 2]);
    expect(around([], 0, 1)).toEqual([0, 0]);
    expect(mostIn(at, [1, 5, null], 0, 40)).toBe(5);
  });

  it("cover the shown data, and the window if it is close", () => {
    expect(windowEdge(flow, 0)).toBe(1_501);
    expect(windowEdge(flow, 1)).toBeNull();
    // 1 to 2001, with 3 % room; the window's edge is inside.
    expect(offsets(flow, 0, 100)).toEqual({ least: 1 - 60, most: 2_001 + 60 });
    const wide = { ...flow, acks: { ...flow.acks, window_bytes: [1e9, null] } };
    // A window far above takes at most a third of the height.
    expect(offsets(wide, 0, 100).most).toBe(2_001 + 1_000 + 60);
    expect(offsets({ ...flow, events: [] }, 0, 9).most).toBeGreaterThan(0);
  });

  it("count merged events with their number", () => {
    const [, dup] = flow.events;
    expect(dup && countIn(dup, 0, 100)).toBe(5);
    expect(dup && countIn(dup, 31, 100)).toBe(1);
  });

  it("are described in words", () => {
    const view = new View({ from: 0, to: 1_000 });
    expect(summary(flow, view)).toBe("All (100 ms): fast retransmission: 1, duplicate ACK: 5.");
    const text = readout(flow, 55);
    expect(text).toContain("0.0550 s · acknowledged 1.0 kB · window 500 B · in flight 2.0 kB · RTT 40 ms");
    expect(text).toContain("fast retransmission 15 ms away");
    expect(merged(flow)).toBe("");
    expect(merged({ ...flow, acks: { ...flow.acks, bin_ms: 2.5 } })).toContain("up to 2.5 ms");
  });

  it("name what was left out", () => {
    const left = { flows: 3, with_retransmissions: 1, with_slow_starts: 0, window_limited: 2 };
    expect(leftOut({ left_out: left } as StudyDocument)).toBe(
      "Left out: 3 TCP flows with data (including 1 with retransmissions, 2 limited by the receive window); --flow selects others.",
    );
  });
});

describe("curves", () => {
  it("rise at the edge by values that a logarithmic axis cannot show", () => {
    const { x, y } = staircase([[0, 0.25], [10, 0.75], [100, 1]], 1, 1_000);
    expect(x).toEqual([1, 10, 10, 100, 100, 1_000]);
    expect(y).toEqual([0.25, 0.25, 0.75, 0.75, 1, 1]);
  });

  it("lie on whole decades", () => {
    expect(bounds([0, 30, 4_000], true)).toEqual([10, 10_000]);
    expect(bounds([100], true)).toEqual([10, 1_000]);
    expect(bounds([0], true)).toEqual([0.1, 10]);
    expect(decades(0.1, 100)).toEqual([0.1, 1, 10, 100]);
  });

  it("have labels with units", () => {
    expect([200, 2e3, 1e6].map((v) => tickLabel(v, "bytes"))).toEqual(["200 B", "2 kB", "1 MB"]);
    expect([0.1, 60].map((v) => tickLabel(v, "s"))).toEqual(["100 ms", "60 s"]);
    expect([1e-4, 0.001, 0.01, 0.1, 1, 10].map((v) => tickLabel(v, "ratio"))).toEqual(["0.0001", "0.001", "0.01", "0.1", "1", "10"]);
    expect([0.00234, 0.5, 4.368, 250].map((v) => valueLabel(v, "ratio"))).toEqual(["0.0023", "0.5", "4.37", "250"]);
    expect(valueLabel(15, "bit/s")).toBe("15 bit/s");
    expect(valueLabel(0.198, "share")).toBe("20\u00a0%");
  });

  it("count samples in cells of an eighth of an octave", () => {
    expect(cellEdge(128)).toBe(65_536);
  });
});

describe("the summary", () => {
  it("has the paper's number of digits", () => {
    const shares = [0, 0.0006, 0.198, 0.55, 1].map((v) => value(v, "share"));
    expect(shares).toEqual(["0 %", "0.06 %", "19.8 %", "55 %", "100 %"]);
    expect(value(-0.885, "correlation")).toBe("-0.885");
    expect(value(35_900, "bytes")).toBe("35.9 kB");
  });

  it("keeps numbers and units on a line", () => {
    expect(unbroken("RSRP -96 dBm in 50 PRBs")).toBe("RSRP -96\u00a0dBm in 50\u00a0PRBs");
    expect(unbroken("from 42 ms to 1.5 s of 3 segments")).toBe("from 42\u00a0ms to 1.5\u00a0s of 3 segments");
  });
});

describe("periodic requests", () => {
  it("are zero between bins with traffic", () => {
    const of = { bin_s: 1, received_bps: [[0, 8e6], [10, 4e6]] } as unknown as Requests;
    expect(filled(of)).toEqual({ x: [0, 1, 1, 10, 10, 11], y: [8, 8, 0, 0, 4, 4] });
  });
});
