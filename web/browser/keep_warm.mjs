// keep-warm with its players: dash.js, hls.js and Shaka play audio and video over HTTP/1.1,
// from a server that records the connection of each request.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { launch, skipWithoutBrowser, workDir } from "./browser.mjs";

skipWithoutBrowser("keep_warm");
if (spawnSync("ffmpeg", ["-version"]).error) {
  console.log("SKIPPED: keep_warm: no ffmpeg to make a video with");
  process.exit(0);
}
const here = fileURLToPath(new URL("..", import.meta.url));
const libraries = {
  dash: join(here, "../lab/player/node_modules/dashjs/dist/modern/umd/dash.all.min.js"),
  hls: join(here, "node_modules/hls.js/dist/hls.min.js"),
  shaka: join(here, "node_modules/shaka-player/dist/shaka-player.compiled.js"),
};
const SECONDS = 24;
const SEGMENT_S = 1;
/** Delay before a segment's first byte, so that there is a request to cancel. */
const SEGMENT_DELAY_MS = 60;
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".mpd": "application/dash+xml", ".m3u8": "application/vnd.apple.mpegurl" };

const dir = workDir();
execFileSync("ffmpeg", [
  "-hide_banner", "-loglevel", "error", "-nostdin",
  "-f", "lavfi", "-i", `testsrc2=size=128x72:rate=25:duration=${SECONDS}`,
  "-f", "lavfi", "-i", `sine=frequency=440:duration=${SECONDS}`,
  "-c:v", "libx264", "-preset", "ultrafast", "-profile:v", "baseline", "-g", String(25 * SEGMENT_S), "-b:v", "1M",
  "-x264-params", "nal-hrd=cbr:scenecut=0", "-minrate", "1M", "-maxrate", "1M", "-bufsize", "1M",
  "-c:a", "aac", "-b:a", "64k",
  "-f", "dash", "-seg_duration", String(SEGMENT_S), "-use_timeline", "0", "-use_template", "1",
  "-adaptation_sets", "id=0,streams=v id=1,streams=a", "-hls_playlist", "1",
  "-init_seg_name", "init-$RepresentationID$.mp4", "-media_seg_name", "segment-$RepresentationID$-$Number$.m4s",
  join(dir, "manifest.mpd"),
]);

const page = (player) => `<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,">
<video muted playsinline></video>
${player === "fetch" ? "" : `<script src="/library.js"></script>`}
<script type="module">
import * as keepWarm from "/keep-warm/index.js";
const video = document.querySelector("video");
const errors = [];
addEventListener("error", ({ message }) => errors.push(message));
addEventListener("unhandledrejection", ({ reason }) => errors.push(String(reason)));
// Fewer entries than will be made.
performance.setResourceTimingBufferSize(20);
const options = { maxShare: 1 };
const players = {
  fetch() {
    const warm = new keepWarm.KeepWarm(options);
    const fetch = keepWarm.warmFetch(warm);
    globalThis.get = async (url) => (await fetch(url)).arrayBuffer();
    return warm;
  },
  dash() {
    const player = dashjs.MediaPlayer().create();
    player.updateSettings({ streaming: { buffer: { bufferTimeDefault: 3, bufferTimeAtTopQuality: 3, bufferTimeAtTopQualityLongForm: 3 } } });
    const warm = keepWarm.attachDash(player, options);
    player.on("error", ({ error }) => errors.push(error.message));
    player.initialize(video, "/manifest.mpd", true);
    return warm;
  },
  hls() {
    const warm = new keepWarm.KeepWarm(options);
    const hls = new Hls({ fLoader: keepWarm.hlsLoader(warm, Hls.DefaultConfig.loader), maxBufferLength: 3, maxMaxBufferLength: 3 });
    hls.on(Hls.Events.ERROR, (_, { fatal, details }) => fatal && errors.push(details));
    hls.loadSource("/master.m3u8");
    hls.attachMedia(video);
    keepWarm.followMedia(warm, video);
    return warm;
  },
  async shaka() {
    const player = new shaka.Player();
    await player.attach(video);
    player.configure({ streaming: { bufferingGoal: 3, rebufferingGoal: 1 } });
    player.addEventListener("error", ({ detail }) => errors.push(String(detail.code)));
    const warm = keepWarm.attachShaka(player, options);
    await player.load("/manifest.mpd");
    return warm;
  },
};
const warm = await players.${player}();
video.play().catch(() => {});
Object.assign(globalThis, { warm, video, errors });
document.documentElement.dataset.ready = "";
</script>`;

/** A server for one player; records each request for media, and each byte. */
async function serve(player) {
  const sockets = new Map();
  const seen = [];
  const failed = new Set();
  const server = createServer({ keepAlive: true, keepAliveTimeout: 60_000 }, async (request, response) => {
    const { pathname } = new URL(request.url, "http://localhost");
    if (!sockets.has(request.socket)) sockets.set(request.socket, sockets.size);
    const isByte = request.headers.range === "bytes=0-0";
    const isMedia = pathname.endsWith(".m4s") || pathname.endsWith(".mp4");
    const note = { pathname, kind: isByte ? "byte" : isMedia ? "media" : "other", socket: sockets.get(request.socket), bytes: 0, ended: false };
    seen.push(note);
    const send = (status, type, body, headers = {}) => {
      response.writeHead(status, { "Content-Type": type, "Content-Length": body.length, "Cache-Control": "no-store", ...headers });
      response.end(body);
    };
    response.on("finish", () => (note.ended = true));
    if (pathname === "/") return send(200, "text/html", Buffer.from(page(player)));
    const file =
      pathname === "/library.js" ? libraries[player]
      : pathname.startsWith("/keep-warm/") ? join(here, "keep-warm/dist", normalize(pathname.slice(10)))
      : join(dir, normalize(pathname));
    if (!existsSync(file)) return send(404, "text/plain", Buffer.alloc(0));
    const body = readFileSync(file);
    const type = TYPES[extname(file)] ?? "video/mp4";
    if (isByte) return send(206, type, body.subarray(0, 1), { "Content-Range": `bytes 0-0/${body.length}` });
    if (!isMedia) return send(200, type, body);
    // One segment of the video is missing at first.
    if (/segment-0-6\.m4s$/.test(pathname) && !failed.has(pathname)) {
      failed.add(pathname);
      return send(503, "text/plain", Buffer.alloc(0));
    }
    await sleep(SEGMENT_DELAY_MS);
    note.bytes = body.length;
    send(200, type, body);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { seen, failed, url: `http://127.0.0.1:${server.address().port}/`, close: () => (server.closeAllConnections(), server.close()) };
}

/** Kept pauses: the connections of bytes, and that of the following request. */
function keptPauses(seen) {
  const pauses = [];
  let warm = new Set();
  for (const { kind, socket } of seen) {
    if (kind === "byte") warm.add(socket);
    if (kind !== "media") continue;
    if (warm.size > 0) pauses.push({ warm, socket });
    warm = new Set();
  }
  return pauses;
}

function checkConnections(seen, least) {
  const pauses = keptPauses(seen);
  assert.ok(pauses.length >= least, `${pauses.length} requests behind kept pauses`);
  // A request during an outstanding byte gets another connection, which happens on a busy machine.
  const kept = pauses.filter(({ warm, socket }) => warm.has(socket));
  assert.ok(kept.length > pauses.length / 2, `${kept.length} of ${pauses.length} over a kept connection`);
  return Math.max(...pauses.map(({ warm }) => warm.size));
}

/** Two simultaneous requests with pauses in between, of a page with its own `fetch`. */
async function fetchTwo(browser) {
  const server = await serve("fetch");
  const context = await browser.newContext();
  try {
    const shown = await context.newPage();
    await shown.goto(server.url);
    await shown.waitForSelector("html[data-ready]", { timeout: 30_000 });
    // A pause counts only if it is longer than the round trip so far, which a busy machine draws out.
    const stats = await shown.evaluate(async () => {
      for (let i = 1; i <= 12 && warm.stats().kept < 2; i++) {
        await Promise.all([get(`/segment-0-${i}.m4s`), get(`/segment-1-${i}.m4s`)]);
        await new Promise((resolve) => setTimeout(resolve, 600 + 2 * (warm.stats().rttMs ?? 300)));
      }
      return warm.stats();
    });
    assert.deepEqual([stats.connections, stats.errors, stats.alone, stats.kept], [2, 0, 1, 2]);
    assert.equal(checkConnections(server.seen, 2), 2);
    return `${stats.fetches} bytes over 2 connections at once`;
  } finally {
    await context.close();
    server.close();
  }
}

/** Plays with one of them and checks the result. */
async function play(browser, player) {
  const server = await serve(player);
  const context = await browser.newContext();
  try {
    const shown = await context.newPage();
    await shown.goto(server.url);
    await shown.waitForSelector("html[data-ready]", { timeout: 30_000 });
    const { seen } = server;
    const until = (what) => shown.waitForFunction(what, undefined, { timeout: 60_000 });
    const stats = () => shown.evaluate(() => warm.stats());
    await until(() => video.currentTime > 6 && warm.stats().kept >= 3);
    const before = await stats();
    const segments = seen.filter(({ kind, ended }) => kind === "media" && ended);
    assert.equal(server.failed.size, 1, "a segment failed, and was fetched again");
    assert.deepEqual([before.state, before.errors], ["running", 0]);
    // The player fetched what the server sent, except outstanding data.
    const isCounted = ({ pathname }) => player !== "dash" || pathname.endsWith(".m4s");
    const sent = segments.filter(isCounted).map(({ bytes }) => bytes);
    const all = sent.reduce((sum, bytes) => sum + bytes, 0);
    const underWay = sent.slice(-2).reduce((sum, bytes) => sum + bytes, 0);
    assert.ok(before.mediaBytes <= all && before.mediaBytes >= all - underWay, `${before.mediaBytes} of ${all}`);
    const connections = checkConnections(seen, 3);
    // Entries beyond the page's 20: those of segments exist. dash.js clears all of them at
    // times; there the count of bytes above must be sufficient.
    const last = segments.at(-3).pathname;
    const entries = await shown.evaluate((name) => [
      performance.getEntriesByType("resource").length,
      performance.getEntriesByName(new URL(name, location.href).href).length,
    ], last);
    assert.ok(player === "dash" || (entries[0] > 20 && entries[1] > 0), `${entries}`);
    // A seek cancels outstanding requests.
    await shown.evaluate(() => void (video.currentTime = 14));
    await until(() => video.currentTime > 15);
    const sought = (await stats()).fetches;
    await shown.waitForFunction((n) => warm.stats().fetches > n + 2, sought, { timeout: 30_000 });
    await shown.evaluate(() => warm.stop());
    await sleep(100);
    const stopped = seen.filter(({ kind }) => kind === "byte").length;
    const at = await shown.evaluate(() => video.currentTime);
    await shown.waitForFunction((from) => video.currentTime > from + 1.2, at, { timeout: 30_000 });
    assert.equal(seen.filter(({ kind }) => kind === "byte").length, stopped, "a byte after the stop");
    const after = await shown.evaluate(() => ({ errors, ...warm.stats() }));
    assert.deepEqual([after.errors, after.state], [0, "stopped"]);
    assert.deepEqual(await shown.evaluate(() => errors), []);
    return `${before.kept} pauses kept, ${before.alone} left alone, ${before.fetches} bytes over ${connections} connections at most in a pause`;
  } finally {
    await context.close();
    server.close();
  }
}

const browser = await launch();
/** Runs a check and prints its result. */
async function check(name, body) {
  try {
    console.log(`ok      ${name}: ${await body()}`);
    return true;
  } catch (error) {
    console.log(`FAILED  ${name}\n${error.stack}`);
    return false;
  }
}
const players = Object.entries(libraries).filter(([player, library]) => {
  if (existsSync(library)) return true;
  console.log(`SKIPPED: ${player}: ${library} is not there (make player)`);
  return false;
});
const results = await Promise.all([
  check("fetch", () => fetchTwo(browser)),
  ...players.map(([player]) => check(player, () => play(browser, player))),
]);
await browser.close();
process.exit(results.every(Boolean) ? 0 : 1);
