import assert from "node:assert/strict";
import test from "node:test";
import { RADIO, RadioMeter } from "../dist/radio.js";
import { Trial } from "../dist/trial.js";
import { RoundTrips } from "../dist/rtt.js";

test("round trips are smoothed as in RFC 6298", () => {
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

test("a pause without fetches is compared with those on either side", () => {
  /** Samples in the order of their pauses: bytes, ms, and whether it was kept. */
  const check = (samples, verdict, gain) => {
    const trial = new Trial();
    samples.forEach(([bytes, ms, kept], at) => trial.take({ bytes, ms }, at + 1, kept));
    const found = trial.gain();
    assert.deepEqual([trial.verdict(), found && Math.round(found * 100) / 100], [verdict, gain]);
  };
  const [kept, alone, small] = [[200_000, 100, true], [200_000, 200, false], [50_000, 200, false]];
  check([alone, kept, kept, alone, kept], "helps", 2);
  check([alone, kept, kept, alone], "unknown", undefined);
  // None on either side, or none near.
  check([alone, alone, alone], "unknown", undefined);
  check([alone, [0, 1, true], [0, 1, true], [0, 1, true], kept, kept, kept, kept, alone, kept], "unknown", undefined);
  // Of other sizes.
  check([small, kept, kept, small, kept], "unknown", undefined);
  check([[0, 100, false], kept, kept, [100, 0, false], kept], "unknown", undefined);
  // Rates rise by half from one to the next, kept or not: the middle is compared with the
  // mean of its neighbours.
  const rising = [1, 1.5, 2.25, 3.375, 5.0625].map((times, at) => [200_000, 1_000 / times, at % 2 === 0]);
  check(rising, "unknown", 1);
});

/** Repeatable numbers (a linear congruential generator, Numerical Recipes). */
function numbers(seed) {
  let state = seed;
  const uniform = () => (state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0) / 2 ** 32;
  const normal = () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
  return { uniform, normal };
}

/** Pauses until the verdict "no gain", up to a number; rates change by `drift` from one to
 * the next and vary by `noise`. */
function pausesUntilNoGain(seed, { gain, noise, drift, most }) {
  const { normal } = numbers(seed);
  const trial = new Trial();
  let rate = 1_000;
  for (let pause = 1; pause <= most; pause++) {
    if (trial.verdict() === "no_gain") return pause;
    const kept = !trial.leavesAlone(pause);
    rate *= typeof drift === "number" ? 1 + drift : 1 + 0.1 * Math.sin(pause / 5);
    trial.take({ bytes: 200_000, ms: 200_000 / (rate * Math.exp(noise * normal()) * (kept ? gain : 1)) }, pause, kept);
  }
  return undefined;
}

test("drift and variation of rates do not change the verdict", () => {
  const SEEDS = 200;
  const check = (of, [least, most]) => {
    let ended = 0;
    for (let seed = 1; seed <= SEEDS; seed++) if (pausesUntilNoGain(seed, of) !== undefined) ended += 1;
    assert.ok(ended >= least && ended <= most, `${JSON.stringify(of)}: ${ended} of ${SEEDS}`);
  };
  for (const drift of [0, -0.03, 0.03, "waves"]) {
    for (const noise of [0.1, 0.2]) check({ gain: 1.5, noise, drift, most: 300 }, [0, 0]);
    check({ gain: 1.5, noise: 0.3, drift, most: 300 }, [0, 4]);
    check({ gain: 1, noise: 0.1, drift, most: 150 }, [SEEDS - 4, SEEDS]);
    check({ gain: 1, noise: 0.2, drift, most: 300 }, [SEEDS * 0.9, SEEDS]);
  }
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
  // Overlapping time counts once.
  check([[0, 1_000, 0, 0], [500, 1_000, 0, 0]], 1_000, promotion + 1_288);
});
