import assert from "node:assert/strict";
import test from "node:test";
import { KeepWarm } from "../dist/index.js";
import { fakeClock, fakeServer, segment } from "./support/fake.mjs";

function make(options = {}, server = {}) {
  const time = fakeClock();
  const there = fakeServer(time, server);
  const warm = new KeepWarm({ fetch: there.fetch, clock: time.clock, ...options });
  return { time, server: there, warm };
}

test("the first pause has no fetches, the next is kept within the sender's RTO", async () => {
  const { time, server, warm } = make();
  await segment(time, warm);
  assert.equal(server.asked.length, 0);
  const from = time.clock.now();
  await segment(time, warm);
  // Round trips of 80 ms: the sender's RTO is at least 280 ms.
  const times = server.asked.map(({ at }) => at - from - 380);
  assert.ok(times.length >= 11 && times.length <= 20, `${times}`);
  let last = 0;
  for (const at of times) {
    // From the sender's last byte to its next: the interval and a round trip.
    assert.ok(at - last + (last === 0 ? 80 : 0) < 280, `${times}`);
    last = at;
  }
  const [{ url, init }] = server.asked;
  assert.deepEqual([url, init.headers, init.cache], ["/segment", { Range: "bytes=0-0" }, "no-store"]);
  assert.equal(init.credentials, "same-origin");
});

test("interval and round trip stay below the RTO for any round trip", async () => {
  for (const rttMs of [20, 80, 120, 300, 600]) {
    const { time, server, warm } = make({ maxShare: 1 }, { rttMs });
    await segment(time, warm);
    await segment(time, warm, { pauseMs: 10_000 });
    const times = server.asked.map(({ at }) => at);
    const cycles = times.slice(1).map((at, i) => at - times[i]);
    assert.ok(cycles.length > 5 && cycles.every((cycle) => cycle < rttMs + 200), `${rttMs}: ${cycles}`);
  }
});

test("a varying round trip shortens the interval", () => {
  const pause = (rtts) => {
    const time = fakeClock();
    const server = fakeServer(time);
    const warm = new KeepWarm({ fetch: server.fetch, clock: time.clock, maxShare: 1 });
    return (async () => {
      await segment(time, warm);
      for (const rttMs of rtts) {
        server.rttMs = rttMs;
        await segment(time, warm, { pauseMs: 1_000 });
      }
      return warm.stats().pauseMs;
    })();
  };
  const busy = [80, ...Array(20).fill(140)];
  return Promise.all([pause([80, 80, 80, 80]), pause([80, 160, 80, 160]), pause(busy)]).then(
    ([still, varying, added]) => {
      assert.equal(still, 150);
      assert.ok(varying < 120, `${varying}`);
      // The sender may not see the addition to the path's 80 ms: its RTO is 280.
      assert.ok(added + 140 < 280 - 40 && added > 60, `${added}`);
    },
  );
});

test("a request waits for the outstanding byte, but not for long", async () => {
  const { time, server, warm } = make();
  await segment(time, warm);
  await segment(time, warm, { pauseMs: 150 + 40 });
  // Requested 40 ms ago, it arrives in 40.
  assert.equal(server.asked.length, 1);
  const ready = async (within) => {
    const from = time.clock.now();
    let at;
    const ticket = warm.requested("/next");
    ticket.ready.then(() => (at = time.clock.now() - from));
    await time.advance(within);
    ticket.failed();
    return at;
  };
  assert.equal(await ready(1_000), 40);
  server.rttMs = 4_000;
  await time.advance(200);
  assert.equal(await ready(3_000), 500);
});

/** Plays until it stops, up to a number of segments; returns their number. `early`: the ms in
 * which a segment arrives after a kept pause, and after one that was not kept. */
async function play(time, server, warm, n, early, bytes) {
  let before = 0;
  for (let i = 0; i < n; i++) {
    if (warm.stats().state === "stopped") return i;
    const kept = server.asked.length > before;
    before = server.asked.length;
    await segment(time, warm, { ms: kept ? early.kept : early.alone, bytes });
  }
  return n;
}

test("continues if it helps; otherwise rests, and tries again", async () => {
  const helped = make();
  await play(helped.time, helped.server, helped.warm, 40, { kept: 300, alone: 500 });
  const { state, verdict, gain, kept, alone } = helped.warm.stats();
  assert.deepEqual([state, verdict, Math.round(gain * 100)], ["running", "helps", 167]);
  // Alone: 1, 4 and 32.
  assert.deepEqual([kept, alone], [36, 3]);

  const { time, server, warm } = make({ maxShare: 1 });
  let pauses = 0;
  const until = async (state) => {
    const rtos = new Set();
    for (; warm.stats().state !== state; pauses++) {
      rtos.add(Math.round(warm.stats().pauseMs));
      await segment(time, warm, { ms: 500 });
      assert.ok(pauses < 1_000, state);
    }
    return [...rtos];
  };
  // It fetches twice as often before it rests.
  assert.deepEqual(await until("resting"), [150, 75]);
  assert.ok(pauses < 80, `${pauses}`);
  assert.equal(warm.stats().why, "it does not help");
  let [asked, from] = [server.asked.length, pauses];
  await until("running");
  assert.deepEqual([server.asked.length, warm.stats().why], [asked, undefined]);
  assert.equal(pauses - from, 60);
  assert.deepEqual(await until("resting"), [150, 75]);
  [asked, from] = [server.asked.length, pauses];
  await until("running");
  assert.equal(pauses - from, 120);
});

test("short pauses are no evidence", async () => {
  const { time, warm } = make();
  for (let i = 0; i < 30; i++) await segment(time, warm, { ms: 500, pauseMs: 300 });
  assert.deepEqual([warm.stats().kept, warm.stats().alone, warm.stats().verdict], [0, 0, "unknown"]);
});

test("pauses with the player, for each reason", async () => {
  const { time, server, warm } = make();
  await segment(time, warm);
  await segment(time, warm, { pauseMs: 500 });
  const asked = server.asked.length;
  assert.ok(asked > 0);
  warm.suspend("media");
  warm.suspend("page");
  await time.advance(5_000);
  // One may be outstanding.
  assert.ok(server.asked.length <= asked + 1);
  const before = server.asked.length;
  warm.resume("page");
  assert.equal(warm.stats().state, "suspended");
  await segment(time, warm);
  assert.equal(server.asked.length, before);
  warm.resume("media");
  await segment(time, warm);
  assert.ok(server.asked.length > before);
});

test("guards", async () => {
  const check = async (options, server, why, segments = 12) => {
    const made = make(options, server);
    await play(made.time, made.server, made.warm, segments, { kept: 300, alone: 500 });
    assert.deepEqual([made.warm.stats().state, made.warm.stats().why], [why ? "stopped" : "running", why]);
    return made;
  };
  const whole = await check({}, { status: 200, length: 400_000 }, "the server does not support ranges");
  assert.deepEqual([whole.server.asked.length, whole.server.cancelled], [1, 1]);
  await check({}, { status: 200, length: 10 }, undefined);
  const failing = await check({}, { fails: () => true }, "it failed 3 times in a row: no network");
  assert.deepEqual([failing.server.asked.length, failing.warm.stats().errors], [3, 3]);
  await check({}, { status: 404 }, "it failed 3 times in a row: status 404");
  // Occasional failures do not stop it.
  await check({}, { fails: (n) => n % 3 === 0 }, undefined);
});

test("limits that are not numbers are refused", () => {
  for (const name of ["maxShare", "maxBytesPerMinute", "maxErrors", "maxPauseMs", "maxConnections"]) {
    for (const value of [Number.NaN, -1, "much"]) assert.throws(() => new KeepWarm({ [name]: value }), new RegExp(name));
  }
});

test("never more bytes than the limit for each minute", async () => {
  const { time, server, warm } = make({ maxShare: 1, maxBytesPerMinute: 30_000 });
  for (let i = 0; i < 80; i++) {
    await play(time, server, warm, 1, { kept: 100, alone: 200 });
    const { bytes } = warm.stats();
    assert.ok(bytes <= 30_000 * (1 + time.clock.now() / 60_000), `${bytes}`);
  }
  // It continued to the end: 80 segments of 3.4 s are 4.5 minutes.
  assert.ok(warm.stats().bytes > 4 * 30_000, `${warm.stats().bytes}`);
});

test("the head of an answer from another origin counts as 600 bytes", async () => {
  const bytes = async (type) => {
    const { time, server, warm } = make({}, { type });
    await segment(time, warm);
    await segment(time, warm, { pauseMs: 250 });
    assert.equal(server.asked.length, 1);
    return warm.stats().bytes;
  };
  // Request 300, packets 156, body 1; "content-length: 1" and its end are 19.
  assert.deepEqual([await bytes("basic"), await bytes("cors")], [476, 1_057]);
});

test("headers that the server requires", async () => {
  const { time, server, warm } = make({ headers: (url) => ({ Authorization: `of ${url}` }) });
  await segment(time, warm);
  await segment(time, warm);
  assert.deepEqual(server.asked[0].init.headers, { Authorization: "of /segment", Range: "bytes=0-0" });
});

/** Simultaneous audio and video, then a pause. */
async function both(time, warm, { audio, video, pauseMs = 3_000, audioMs = 50, videoMs = 300 }) {
  const tickets = [warm.requested(audio), warm.requested(video)];
  const from = time.clock.now();
  await time.advance(80 + audioMs);
  tickets[0].answered({ bytes: 40_000, firstByteMs: from + 80, endMs: time.clock.now() });
  await time.advance(videoMs - audioMs);
  tickets[1].answered({ bytes: 400_000, firstByteMs: from + 80, endMs: time.clock.now() });
  await time.advance(pauseMs);
}

test("a connection is kept for each simultaneous request", async () => {
  const [one, two] = ["https://a.example/audio", "https://a.example/video"];
  const check = async (options, audio, expected, occupied) => {
    const { time, server, warm } = make({ maxShare: 1, ...options });
    await both(time, warm, { audio, video: two });
    await both(time, warm, { audio, video: two, pauseMs: 200 });
    // Of the first round.
    assert.deepEqual(server.asked.map(({ url }) => url).sort(), expected);
    assert.ok(server.asked.every(({ at }) => at === server.asked[0].at));
    assert.equal(warm.stats().connections, expected.length);
    let isReady = false;
    const ticket = warm.requested(two);
    void ticket.ready.then(() => (isReady = true));
    await time.advance(0);
    assert.equal(isReady, !occupied);
  };
  // The last URL of each origin.
  await check({}, one, [two, two], true);
  await check({ protocol: () => "http/1.1" }, one, [two, two], true);
  await check({ protocol: () => "h2" }, one, [two], false);
  await check({ protocol: () => "h3" }, one, [two], false);
  await check({ maxConnections: 1 }, one, [two], true);
  const other = "https://b.example/audio";
  await check({}, other, [two, other], true);
  await check({ protocol: () => "h2" }, other, [two, other], false);
  await check({ url: "https://a.example/small" }, one, ["https://a.example/small", "https://a.example/small"], true);
});

test("an unused connection is no longer kept", async () => {
  const { time, warm } = make({ maxShare: 1 });
  await both(time, warm, { audio: "/audio", video: "/video" });
  const connections = [];
  for (let i = 0; i < 6; i++) {
    await segment(time, warm);
    connections.push(warm.stats().connections);
  }
  assert.deepEqual(connections, [2, 1, 1, 1, 1, 1]);
});

test("after a redirect its target is kept", async () => {
  const { time, server, warm } = make();
  for (let i = 0; i < 2; i++) {
    const ticket = warm.requested("https://a.example/1");
    const from = time.clock.now();
    await time.advance(300);
    ticket.answered({ bytes: 400_000, firstByteMs: from + 80, endMs: time.clock.now(), url: "https://b.example/1" });
    await time.advance(1_000);
  }
  assert.ok(server.asked.length > 0 && server.asked.every(({ url }) => url === "https://b.example/1"));
});

test("after a pause the larger answer of audio and video counts", async () => {
  const { time, server, warm } = make({ maxShare: 1 });
  let before = 0;
  for (let i = 0; i < 9; i++) {
    const kept = server.asked.length > before;
    before = server.asked.length;
    // Audio is equally fast in both cases.
    await both(time, warm, { audio: "/audio", video: "/video", videoMs: kept ? 200 : 400 });
  }
  const { verdict, gain } = warm.stats();
  assert.deepEqual([verdict, Math.round(gain)], ["helps", 2]);
});

test("never more than its share of what the player fetched", async () => {
  const { time, server, warm } = make({ maxShare: 0.02 });
  await play(time, server, warm, 20, { kept: 100, alone: 200 }, 100_000);
  const { bytes, mediaBytes } = warm.stats();
  assert.equal(mediaBytes, 2_000_000);
  // 2 % of that.
  assert.ok(bytes <= 40_000 && bytes > 30_000, `${bytes} in ${server.asked.length}`);
});

test("a long pause is not kept to its end", async () => {
  const { time, server, warm } = make({ maxPauseMs: 5_000, maxShare: 1 });
  await segment(time, warm);
  await segment(time, warm, { pauseMs: 60_000 });
  const last = server.asked.at(-1).at;
  assert.ok(last < time.clock.now() - 54_000);
});

test("the setting to save data is respected", async () => {
  const { navigator } = globalThis;
  const check = async (options, state) => {
    const { time, warm } = make(options);
    Object.defineProperty(globalThis, "navigator", { value: { connection: { saveData: true } }, configurable: true });
    await segment(time, warm);
    await segment(time, warm);
    assert.equal(warm.stats().state, state);
  };
  try {
    await check({}, "stopped");
    await check({ saveData: "ignore" }, "running");
  } finally {
    Object.defineProperty(globalThis, "navigator", { value: navigator, configurable: true });
  }
});

test("a pause begins after the last of several simultaneous requests", async () => {
  const { time, server, warm } = make({ maxShare: 1 });
  await segment(time, warm);
  const [audio, video] = [warm.requested("/audio"), warm.requested("/video")];
  await time.advance(300);
  audio.answered({ bytes: 40_000, firstByteMs: time.clock.now() - 200, endMs: time.clock.now() });
  await time.advance(2_000);
  assert.equal(server.asked.length, 0);
  video.failed();
  await time.advance(2_000);
  assert.ok(server.asked.length > 0);
});

test("a pause that would exceed the limit gets no fetches", async () => {
  // 100 kB earn 2 kB, and a pause takes some 13 fetches of 0.9 kB.
  const { time, server, warm } = make();
  for (let i = 0; i < 60; i++) {
    const before = server.asked.length;
    await segment(time, warm, { bytes: 100_000, ms: 200 });
    const fetches = server.asked.length - before;
    assert.ok(fetches === 0 || fetches >= 10, `pause ${i}: ${fetches}`);
  }
  assert.ok(server.asked.length > 30, `${server.asked.length}`);
});

test("a delayed timer, as in a hidden page, ends the pause's fetches", async () => {
  const { time, server, warm } = make();
  await segment(time, warm);
  const { after } = time.clock;
  time.clock.after = (ms, call) => after(Math.max(ms, 1_000), call);
  const { kept } = warm.stats();
  await segment(time, warm, { pauseMs: 10_000 });
  assert.deepEqual([server.asked.length, warm.stats().kept], [0, kept]);
});

test("undefined options have their defaults", async () => {
  const { time, server, warm } = make({ maxShare: undefined, maxBytesPerMinute: undefined });
  await play(time, server, warm, 20, { kept: 100, alone: 200 }, 100_000);
  assert.ok(warm.stats().bytes <= 40_000, `${warm.stats().bytes}`);
});

test("exceptions of the page's callbacks do not stop the player", async () => {
  const reported = [];
  const { reportError } = globalThis;
  globalThis.reportError = (error) => reported.push(error.message);
  try {
    const fail = (message) => () => {
      throw new Error(message);
    };
    const { time, warm } = make({ onChange: fail("mine"), protocol: fail("its"), headers: fail("token"), maxErrors: 1 });
    warm.whenStopped(fail("end"));
    await segment(time, warm);
    await segment(time, warm);
    // Requested and ready, although it stopped in between.
    await segment(time, warm);
    const { state, why } = warm.stats();
    assert.deepEqual([state, why], ["stopped", "it failed 1 times in a row: token"]);
    assert.deepEqual([...new Set(reported)], ["its", "end", "mine"]);
  } finally {
    globalThis.reportError = reportError;
  }
});
