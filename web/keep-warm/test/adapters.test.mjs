import assert from "node:assert/strict";
import test from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { KeepWarm, attachDash, attachShaka, followMedia, followPage, hlsLoader, warmFetch } from "../dist/index.js";

/** Records the reports to a `KeepWarm`. */
function recorder() {
  const calls = [];
  const requested = (url) => {
    calls.push(["requested", url]);
    const note = (name) => (what) => calls.push([name, url, what]);
    return { ready: Promise.resolve(), progress: note("progress"), answered: note("answered"), failed: note("failed") };
  };
  return { calls, requested, suspend: (why) => calls.push(["suspend", why]), resume: (why) => calls.push(["resume", why]) };
}

/** A player whose events, interceptors and filters are called by hand, as a real player calls
 * them (web/browser/keep_warm.mjs runs real players). */
function dash() {
  const listeners = new Map();
  const player = {
    media: new EventTarget(),
    interceptors: {},
    addRequestInterceptor: (each) => (player.interceptors.request = each),
    addResponseInterceptor: (each) => (player.interceptors.response = each),
    removeRequestInterceptor: (each) => each === player.interceptors.request && delete player.interceptors.request,
    removeResponseInterceptor: (each) => each === player.interceptors.response && delete player.interceptors.response,
    on: (event, listener) => listeners.set(event, listener),
    off: (event, listener) => listeners.get(event) === listener && listeners.delete(event),
    getVideoElement: () => player.media,
    emit: (event, what = {}) => listeners.get(event)?.(what),
    listeners,
  };
  return player;
}

/** Consecutive segments of a dash.js player, with the result of each. */
function dashSegments(options = {}) {
  const player = dash();
  const warm = attachDash(player, { fetch: () => assert.fail("no pause is long enough"), ...options });
  const { request: ask, response: answer } = player.interceptors;
  const request = async (url, type = "MediaSegment", method = "GET") => {
    const startTime = performance.now();
    const own = { type, url };
    const asked = { url, method, customData: { request: own } };
    assert.equal(await ask(asked), asked);
    const respond = (status = 200) => {
      const resourceTiming = { startTime, duration: performance.now() - startTime, encodedBodySize: 1_000 };
      return answer({ request: asked, status, data: new ArrayBuffer(1_000), resourceTiming });
    };
    return { own, respond };
  };
  return { player, warm, request };
}

test("dash.js: only segments count, and only answered ones", async () => {
  const { player, warm, request } = dashSegments();
  const check = async (url, type, status, method, expected) => {
    const { respond } = await request(url, type, method);
    await respond(status);
    await sleep(5);
    assert.equal(warm.stats().mediaBytes, expected, url);
  };
  await check("/1", "MediaSegment", 200, "GET", 1_000);
  await check("/mpd", "MPD", 200, "GET", 1_000);
  await check("/init", "InitializationSegment", 200, "GET", 1_000);
  await check("/report", "MediaSegment", 200, "POST", 1_000);
  await check("/gone", "MediaSegment", 404, "GET", 1_000);
  await check("/2", "MediaSegment", 206, "GET", 2_000);
  // Cancelled after its status had arrived.
  const abandoned = await request("/3");
  await abandoned.respond(200);
  player.emit("fragmentLoadingAbandoned", { request: abandoned.own });
  await sleep(5);
  assert.equal(warm.stats().mediaBytes, 2_000);
  warm.stop();
});

test("dash.js: a request that ends, however it ends, begins a pause", async () => {
  const check = async (end) => {
    const asked = [];
    const { warm, ...made } = dashSegments({ fetch: async (url) => (asked.push(url), new Response("x", { status: 206 })) });
    // The first pause has no fetches.
    await (await made.request("/1")).respond();
    await sleep(450);
    assert.deepEqual(asked, []);
    await end(made);
    await sleep(250);
    assert.ok(asked.length > 0 && asked.every((url) => url === "/1"), `${end}: ${asked}`);
    warm.stop();
  };
  await Promise.all([
    check(async ({ request }) => (await request("/gone")).respond(404)),
    check(async ({ player, request }) => {
      const { own } = await request("/2");
      player.emit("fragmentLoadingAbandoned", { request: own });
    }),
    check(async ({ player, request }) => {
      const { own, respond } = await request("/2");
      await respond(200);
      player.emit("fragmentLoadingCompleted", { request: own, error: new Error("gone") });
    }),
  ]);
});

test("dash.js: the first part by traces; the media element; no listener remains", async () => {
  const { player, warm, request } = dashSegments();
  const { own, respond } = await request("/1");
  await respond();
  own.traces = [{ d: 90, b: [10_000] }, { d: 50, b: [100_000] }, { d: 60, b: [120_000] }];
  player.emit("fragmentLoadingCompleted", { request: own });
  assert.equal(warm.stats().mediaBytes, 1_000);
  const media = player.media;
  player.emit("playbackMetaDataLoaded");
  media.dispatchEvent(new Event("pause"));
  assert.equal(warm.stats().state, "suspended");
  // Another source, another element.
  player.media = new EventTarget();
  player.emit("playbackMetaDataLoaded");
  player.media.dispatchEvent(new Event("play"));
  assert.equal(warm.stats().state, "running");
  media.dispatchEvent(new Event("pause"));
  assert.equal(warm.stats().state, "running");
  warm.stop();
  assert.deepEqual([player.interceptors, player.listeners.size], [{}, 0]);
});

test("hls.js: a loader reports, and an aborted one does not load", async () => {
  const warm = recorder();
  const loads = [];
  class Base {
    load(context, _config, callbacks) {
      loads.push(context.url);
      const stats = { loaded: 5, loading: { start: 1, first: 2, end: 3 } };
      if (context.url === "/good") callbacks.onSuccess({ url: "/sent/on" }, stats, context, null);
      else callbacks.onError({}, context, null, stats);
    }
    abort() {}
    destroy() {}
  }
  const Loader = hlsLoader(warm, Base);
  const called = [];
  const callbacks = {
    onSuccess: () => called.push("good"),
    onError: () => called.push("bad"),
    onTimeout() {},
    onAbort: () => called.push("aborted"),
  };
  for (const url of ["/good", "/bad"]) {
    new Loader({}).load({ url }, {}, callbacks);
    await sleep(0);
  }
  const aborted = new Loader({});
  aborted.load({ url: "/aborted" }, {}, callbacks);
  aborted.abort();
  await sleep(0);
  assert.deepEqual([loads, called], [["/good", "/bad"], ["good", "bad", "aborted"]]);
  assert.deepEqual(warm.calls, [
    ["requested", "/good"],
    ["answered", "/good", { bytes: 5, firstByteMs: 2, endMs: 3, url: "/sent/on" }],
    ["requested", "/bad"],
    ["failed", "/bad", undefined],
    ["requested", "/aborted"],
    ["failed", "/aborted", undefined],
  ]);
});

test("Shaka: a segment by its request, through tries, aborts and redirects", async () => {
  const listeners = new Map();
  const net = {
    registerRequestFilter: (each) => (net.filter = each),
    unregisterRequestFilter: (each) => each === net.filter && delete net.filter,
  };
  const media = new EventTarget();
  const player = {
    getNetworkingEngine: () => net,
    addEventListener: (event, listener) => listeners.set(event, listener),
    removeEventListener: (event, listener) => listeners.get(event) === listener && listeners.delete(event),
    getMediaElement: () => media,
  };
  const asked = [];
  const fetch = async (url) => (asked.push(url), new Response("x", { status: 206 }));
  const warm = attachShaka(player, { fetch });
  const emit = (event, what) => listeners.get(event)(what);
  const ask = async (type, url) => {
    const request = { uris: [url, `${url}?second`], method: "GET", requestStartTime: null };
    await net.filter(type, request);
    request.requestStartTime = Date.now();
    return request;
  };
  const come = (request, bytes, uri = request.uris[0]) => {
    emit("downloadheadersreceived", { request });
    emit("downloadcompleted", { request, response: { uri, data: new ArrayBuffer(bytes) } });
  };
  come(await ask(0, "/manifest"), 9);
  assert.equal(warm.stats().mediaBytes, 0);
  come(await ask(1, "/1"), 100, "https://elsewhere/1");
  assert.equal(warm.stats().mediaBytes, 100);
  // An initialisation and a segment of one file at once.
  const [init, segment] = [await ask(1, "/file"), await ask(1, "/file")];
  come(segment, 1_000);
  come(init, 10);
  assert.equal(warm.stats().mediaBytes, 1_110);
  // A retried request counts when it is answered.
  const again = await ask(1, "/2");
  emit("downloadfailed", { request: again });
  come(again, 5);
  assert.equal(warm.stats().mediaBytes, 1_115);
  // A pause begins after a cancelled request.
  await sleep(450);
  emit("downloadfailed", { request: await ask(1, "/3"), aborted: true });
  await sleep(250);
  assert.ok(asked.length > 0);
  emit("unloading", {});
  assert.equal(warm.stats().state, "suspended");
  emit("loaded", {});
  assert.equal(warm.stats().state, "running");
  warm.stop();
  assert.deepEqual([net.filter, listeners.size], [undefined, 0]);
});

test("fetch: behaves like the wrapped one, and reports progress", async () => {
  const warm = recorder();
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
  assert.deepEqual(warm.calls.at(-1), ["answered", "/1", { bytes: 7, firstByteMs: 0, endMs: 30, url: undefined }]);
  assert.equal((await fetch("/missing")).status, 404);
  assert.equal(warm.calls.at(-1)[0], "failed");
  await assert.rejects(fetch("/broken"), /no network/);
  assert.equal(warm.calls.at(-1)[0], "failed");
  const calls = warm.calls.length;
  assert.equal((await fetch("/1", { method: "POST", body: "report" })).status, 200);
  assert.equal((await fetch(new Request("http://localhost/1", { method: "HEAD" }))).status, 200);
  assert.equal(warm.calls.length, calls);
  now = 0;
  await (await fetch("/2")).body.cancel();
  assert.deepEqual(warm.calls.at(-1).slice(0, 2), ["failed", "/2"]);
});

test("media and page each have a reason", () => {
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
