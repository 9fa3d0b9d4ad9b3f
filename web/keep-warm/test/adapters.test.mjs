import assert from "node:assert/strict";
import test from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { KeepWarm, attachDash, attachShaka, followMedia, followPage, hlsLoader, warmFetch } from "../dist/index.js";

/** What a `KeepWarm` would be told. */
function told() {
  const calls = [];
  const requested = (url) => {
    calls.push(["requested", url]);
    const note = (name) => (what) => calls.push([name, url, what]);
    return { ready: Promise.resolve(), progress: note("progress"), answered: note("answered"), failed: note("failed") };
  };
  return { calls, requested, suspend: (why) => calls.push(["suspend", why]), resume: (why) => calls.push(["resume", why]) };
}

function dash() {
  const listeners = {};
  const player = {
    media: new EventTarget(),
    addRequestInterceptor: (each) => (player.request = each),
    addResponseInterceptor: (each) => (player.response = each),
    on: (event, listener) => (listeners[event] = listener),
    getVideoElement: () => player.media,
    tell: (event, what = {}) => listeners[event]?.(what),
  };
  return player;
}

test("dash.js: a fragment's answer, its first part, and the media element", async () => {
  const player = dash();
  const warm = attachDash(player, { fetch: () => assert.fail("no pause is long enough") });
  await player.request({ url: "/1" });
  const resourceTiming = { startTime: 1_000, responseStart: 1_080, duration: 400, encodedBodySize: 400_000 };
  await player.response({ request: { url: "/1" }, data: new ArrayBuffer(400_000), resourceTiming });
  const traces = [{ d: 90, b: [10_000] }, { d: 50, b: [100_000] }, { d: 60, b: [120_000] }];
  player.tell("fragmentLoadingCompleted", { request: { url: "/1", traces } });
  assert.equal(warm.stats().mediaBytes, 400_000);
  // A manifest has no such event.
  await player.request({ url: "/manifest" });
  await player.response({ request: { url: "/manifest" }, data: "<MPD/>", resourceTiming });
  await sleep(5);
  assert.equal(warm.stats().mediaBytes, 800_000);
  // One that fails has no answer.
  await player.request({ url: "/2" });
  player.tell("fragmentLoadingCompleted", { request: { url: "/2" }, error: new Error("gone") });
  assert.equal(warm.stats().mediaBytes, 800_000);
  player.tell("playbackMetaDataLoaded");
  player.media.dispatchEvent(new Event("pause"));
  assert.equal(warm.stats().state, "suspended");
  player.media.dispatchEvent(new Event("play"));
  assert.equal(warm.stats().state, "running");
  warm.stop();
});

test("dash.js: segments alone, and those that came", async () => {
  const player = dash();
  const warm = attachDash(player, { fetch: () => assert.fail("no pause is long enough") });
  const resourceTiming = { startTime: 1_000, responseStart: 1_080, duration: 400, encodedBodySize: 1_000 };
  const check = async (url, type, status, method, expected) => {
    const request = { url, method, customData: { request: { type } } };
    assert.equal(await player.request(request), request);
    await player.response({ request, status, data: new ArrayBuffer(1_000), resourceTiming });
    await sleep(5);
    assert.equal(warm.stats().mediaBytes, expected, url);
  };
  await check("/1", "MediaSegment", 200, "GET", 1_000);
  await check("/mpd", "MPD", 200, "GET", 1_000);
  await check("/init", "InitializationSegment", 200, "GET", 1_000);
  await check("/report", "MediaSegment", 200, "POST", 1_000);
  await check("/gone", "MediaSegment", 404, "GET", 1_000);
  await check("/2", "MediaSegment", 206, "GET", 2_000);
  warm.stop();
});

test("hls.js: a loader tells, and one that was aborted does not load", async () => {
  const warm = told();
  const loads = [];
  class Base {
    load(context, _config, callbacks) {
      loads.push(context.url);
      const stats = { loaded: 5, loading: { start: 1, first: 2, end: 3 } };
      if (context.url === "/good") callbacks.onSuccess({}, stats, context, null);
      else callbacks.onError({}, context, null, stats);
    }
    abort() {}
    destroy() {}
  }
  const Loader = hlsLoader(warm, Base);
  const heard = [];
  const callbacks = {
    onSuccess: () => heard.push("good"),
    onError: () => heard.push("bad"),
    onTimeout() {},
    onAbort: () => heard.push("aborted"),
  };
  for (const url of ["/good", "/bad"]) {
    new Loader({}).load({ url }, {}, callbacks);
    await sleep(0);
  }
  const aborted = new Loader({});
  aborted.load({ url: "/aborted" }, {}, callbacks);
  aborted.abort();
  await sleep(0);
  assert.deepEqual([loads, heard], [["/good", "/bad"], ["good", "bad", "aborted"]]);
  assert.deepEqual(warm.calls, [
    ["requested", "/good"],
    ["answered", "/good", { bytes: 5, firstByteMs: 2, endMs: 3 }],
    ["requested", "/bad"],
    ["failed", "/bad", undefined],
    ["requested", "/aborted"],
    ["failed", "/aborted", undefined],
  ]);
});

test("Shaka: segments alone", async () => {
  const listeners = {};
  const on = (event, listener) => (listeners[event] = listener);
  const net = {
    registerRequestFilter: (each) => (net.request = each),
    registerResponseFilter: (each) => (net.response = each),
    addEventListener: on,
  };
  const media = new EventTarget();
  const player = { getNetworkingEngine: () => net, addEventListener: on, getMediaElement: () => media };
  const warm = attachShaka(player, {}, () => 1_000);
  await net.request(0, { uris: ["/manifest"] });
  net.response(0, { uri: "/manifest", data: new ArrayBuffer(9) });
  await net.request(1, { uris: ["/1"] });
  net.response(1, { uri: "https://elsewhere/1", originalUri: "/1", data: new ArrayBuffer(100), timeMs: 300 });
  assert.equal(warm.stats().mediaBytes, 100);
  await net.request(1, { uris: ["/2"] });
  listeners.error({});
  assert.equal(warm.stats().mediaBytes, 100);
  listeners.unloading({});
  assert.equal(warm.stats().state, "suspended");
  listeners.loaded({});
  assert.equal(warm.stats().state, "running");
  warm.stop();
});

test("fetch: as the one below, and tells how it came", async () => {
  const warm = told();
  let now = 0;
  const chunks = [new Uint8Array(3), new Uint8Array(4)];
  const source = () =>
    new ReadableStream({
      pull(to) {
        now += 10;
        const chunk = chunks[now / 10 - 1];
        if (chunk) to.enqueue(chunk);
        else to.close();
      },
    }, { highWaterMark: 0 });
  const below = async (url) => {
    if (url === "/broken") throw new TypeError("no network");
    return new Response(url === "/missing" ? "no" : source(), { status: url === "/missing" ? 404 : 200, headers: { "X-Of": "server" } });
  };
  const fetch = warmFetch(warm, below, () => now);
  const answer = await fetch("/1");
  assert.deepEqual([answer.status, answer.headers.get("X-Of"), (await answer.arrayBuffer()).byteLength], [200, "server", 7]);
  assert.deepEqual(warm.calls.at(-1), ["answered", "/1", { bytes: 7, firstByteMs: 0, endMs: 30 }]);
  assert.equal((await fetch("/missing")).status, 404);
  assert.equal(warm.calls.at(-1)[0], "failed");
  await assert.rejects(fetch("/broken"), /no network/);
  assert.equal(warm.calls.at(-1)[0], "failed");
  now = 0;
  await (await fetch("/2")).body.cancel();
  assert.deepEqual(warm.calls.at(-1).slice(0, 2), ["failed", "/2"]);
});

test("media and page have a reason each", () => {
  const warm = new KeepWarm();
  const [media, page] = [new EventTarget(), Object.assign(new EventTarget(), { visibilityState: "visible" })];
  const ends = [followMedia(warm, media), followPage(warm, page)];
  const look = (state) => {
    page.visibilityState = state;
    page.dispatchEvent(new Event("visibilitychange"));
  };
  media.dispatchEvent(new Event("ended"));
  look("hidden");
  look("visible");
  assert.equal(warm.stats().state, "suspended");
  media.dispatchEvent(new Event("playing"));
  assert.equal(warm.stats().state, "running");
  ends.forEach((end) => end());
  look("hidden");
  assert.equal(warm.stats().state, "running");
});
