import assert from "node:assert/strict";
import test from "node:test";
import { RADIO, RadioMeter } from "../dist/radio.js";
import { Trial } from "../dist/trial.js";
import { RoundTrips } from "../dist/rtt.js";

test("round trips are smoothed as RFC 6298 has it", () => {
  const trips = new RoundTrips();
  assert.deepEqual([trips.smoothedMs, trips.pauseMs()], [undefined, 150]);
  trips.take(100);
  // The variation is half of it at first: 10 + 2 * 50 ms off 200.
  assert.deepEqual([trips.smoothedMs, trips.pauseMs()], [100, 90]);
  trips.take(180);
  assert.equal(trips.smoothedMs, 110);
  trips.take(Number.NaN);
  assert.equal(trips.smoothedMs, 110);
});

test("what is compared is alike, and enough", () => {
  const check = (kept, alone, verdict) => {
    const trial = new Trial();
    kept.forEach(([bytes, ms]) => trial.take({ bytes, ms }, true));
    alone.forEach(([bytes, ms]) => trial.take({ bytes, ms }, false));
    assert.equal(trial.verdict(), verdict);
  };
  const times = (n, sample) => Array(n).fill(sample);
  const [fast, slow, small] = [[200_000, 130], [200_000, 330], [50_000, 300]];
  check(times(3, fast), times(2, slow), "helps");
  check(times(2, fast), times(2, slow), "unknown");
  check(times(3, fast), times(1, slow), "unknown");
  check(times(3, fast), times(3, fast), "no_gain");
  // Two are too few to end it.
  check(times(3, fast), times(2, fast), "unknown");
  check(times(3, fast), times(3, small), "unknown");
  // 15 % are neither.
  check(times(3, fast), times(3, [200_000, 150]), "unknown");
  check(times(3, [0, 100]), times(3, [100, 0]), "unknown");
});

test("energy by states", () => {
  const promotion = 0.2601 * 1210.7;
  const check = (traffic, nowMs, mj) => {
    const meter = new RadioMeter(RADIO);
    traffic.forEach((each) => meter.traffic(...each));
    assert.ok(Math.abs(meter.atMj(nowMs) - mj) < 1e-6, `${meter.atMj(nowMs)} ${mj}`);
  };
  check([], 1_000, 0);
  // A packet, then the tail of 10 s.
  check([[0, 0, 0, 0]], 1_000, promotion + 1_060);
  check([[0, 0, 0, 0]], 60_000, promotion + 10_600);
  // A second of 1 Mbit downlink.
  check([[0, 1_000, 125_000, 0]], 1_000, promotion + 1_288 + 51.97);
  // Gaps: 50 ms active, 1 s in the tail, 20 s with another promotion.
  check([[0, 0, 0, 0], [50, 50, 0, 0]], 50, promotion + 0.05 * 1_288);
  check([[0, 0, 0, 0], [1_000, 1_000, 0, 0]], 1_000, promotion + 1_060);
  check([[0, 0, 0, 0], [20_000, 20_000, 0, 0]], 20_000, 2 * promotion + 10_600);
  // What overlaps counts once.
  check([[0, 1_000, 0, 0], [500, 1_000, 0, 0]], 1_000, promotion + 1_288);
});
