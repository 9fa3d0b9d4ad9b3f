#!/usr/bin/env node
// Plays a DASH video in headless Chromium and writes its events, a JSON object a
// line, in the format of the emulated players (docs/lab.md, app.jsonl).
//
// Requests for the page and dash.js are answered locally, so only the video
// crosses the link.
import { appendFileSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { Chromium, findChromium } from "./chromium.mjs";

const USAGE = `airmile-player [URL] [OPTIONS]

  URL                of the manifest; default: $AIRMILE_URL/manifest.mpd
  --log FILE         append events, a JSON object a line; default: $AIRMILE_APP_LOG
  --name NAME        name of the application in the log (segment)
  --buffer SECONDS   buffer that the player keeps (30)
  --rule RULE        rule for bitrates: dynamic (default of dash.js), or throughput
                     (only of previous segments)
  --most BPS         maximum bitrate; the player starts with the highest below it
  --fraction X       share of the measured throughput that a bitrate may use (0.9)
  --keep-warm        fetch single bytes during pauses (web/keep-warm of the clone)
  --limit SECONDS    end after this time in any case (600)
  --check            check that everything needed is installed and the browser starts,
                     then exit
  --screenshot FILE  save a PNG of the page, --at SECONDS after the start (20)`;

function fail(what, status = 2) {
  console.error(`airmile-player: ${what}`);
  process.exit(status);
}

function options() {
  const text = { type: "string" };
  const number = (fallback) => ({ type: "string", default: fallback });
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: {
        log: text,
        screenshot: text,
        name: number("segment"),
        buffer: number("30"),
        rule: number("dynamic"),
        most: number("0"),
        fraction: number("0.9"),
        "keep-warm": { type: "boolean" },
        limit: number("600"),
        at: number("20"),
        check: { type: "boolean" },
        help: { type: "boolean", short: "h" },
      },
    });
    if (values.help) {
      console.log(USAGE);
      process.exit(0);
    }
    if (values.check) return values;
    const base = process.env.AIRMILE_URL;
    const url = positionals[0] ?? (base && new URL("manifest.mpd", base).href);
    if (!url || positionals.length > 1) fail(USAGE);
    const { rule } = values;
    const { "keep-warm": keepWarm = false, ...rest } = values;
    const numbers = [rest.buffer, rest.limit, rest.at, rest.most, rest.fraction].map(Number);
    const [buffer, limit, at, most, fraction] = numbers;
    if (!(buffer > 0) || !(limit > 0) || !(at >= 0) || !(most >= 0)) fail(USAGE);
    if (!(fraction > 0 && fraction <= 1)) fail(USAGE);
    if (rule !== "dynamic" && rule !== "throughput") fail(USAGE);
    const log = values.log ?? process.env.AIRMILE_APP_LOG;
    return { ...rest, url, buffer, limit, at, most, fraction, keepWarm, log };
  } catch (error) {
    return fail(`${error.message}\n${USAGE}`);
  }
}

/** The code of the player. */
function dashjs() {
  try {
    const require = createRequire(import.meta.url);
    // The package's entry points are for modules and for Node; a page needs this file.
    const [root] = require.resolve("dashjs").split("/dist/");
    return readFileSync(`${root}/dist/modern/umd/dash.all.min.js`);
  } catch {
    return fail("dash.js is not installed: npm ci in the player's directory (make player)");
  }
}

const page = ({ name, url, buffer, rule, most, fraction, keepWarm }) => `<!doctype html>
<meta charset="utf-8"><title>airmile player</title>
<style>
  body { margin: 0; background: #111; color: #eee; font: 16px sans-serif }
  video { width: 640px; height: 360px; display: block }
  p { margin: 8px }
</style>
<video muted></video><p id="shown"></p>
<script type="application/json" id="options">${JSON.stringify({ name, url, buffer, rule, most, fraction, keepWarm }).replaceAll("<", "\\u003c")}</script>
<script src="/airmile-player/dash.js"></script>
<script src="/airmile-player/page.js"></script>`;

/** The built module that keeps the window warm. */
function keepWarm() {
  const dist = new URL("../../web/keep-warm/dist/", import.meta.url);
  try {
    const names = readdirSync(dist).filter((name) => name.endsWith(".js"));
    const file = (name) => ["text/javascript", readFileSync(new URL(name, dist))];
    return Object.fromEntries(names.map((name) => [`/airmile-player/keep-warm/${name}`, file(name)]));
  } catch {
    return fail("--keep-warm needs web/keep-warm/dist of a clone of airmile");
  }
}

/** Files that are served to the browser locally. */
function ours(settings) {
  return {
    ...(settings.keepWarm ? keepWarm() : {}),
    "/airmile-player/": ["text/html", Buffer.from(page(settings))],
    "/airmile-player/dash.js": ["text/javascript", dashjs()],
    "/airmile-player/page.js": ["text/javascript", readFileSync(new URL("page.js", import.meta.url))],
  };
}

/** Writes events; returns the number of each kind. */
function logger({ log, name }) {
  const counts = {};
  return {
    counts,
    keptWarm: undefined,
    write(payload) {
      const { at, event, id, bytes, value, what } = JSON.parse(payload);
      if (event === "keep_warm") this.keptWarm = what;
      counts[event] = (counts[event] ?? 0) + 1;
      if (!log) return event;
      // A double resolves the time since 1970 to microseconds.
      const atNs = `${Math.round(at * 1000)}000`;
      const rest = JSON.stringify({ app: name, event, id, bytes, value, what });
      appendFileSync(log, `{"at_ns":${atNs},${rest.slice(1)}\n`);
      return event;
    },
  };
}

async function main() {
  const settings = options();
  const program = findChromium();
  if (!program) fail("needs Chromium, and there is none (apt-get install chromium, or AIRMILE_CHROMIUM)");
  const files = settings.check ? dashjs() && {} : ours(settings);
  const log = logger(settings);
  const browser = new Chromium();
  const end = async (status) => {
    await browser.close();
    process.exit(status);
  };
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(signal, () => end(143));
  try {
    await browser.start(program);
  } catch (error) {
    await browser.close();
    fail(`${program} does not start: ${error.message}`);
  }
  if (settings.check) return end(0);
  const done = new Promise((resolve) => {
    browser.on("Runtime.bindingCalled", ({ payload }) => {
      if (log.write(payload) === "done") resolve(true);
    });
  });
  browser.on("Fetch.requestPaused", ({ requestId, request }) => {
    const file = files[new URL(request.url).pathname];
    const [type, body] = file ?? ["text/plain", Buffer.alloc(0)];
    const responseHeaders = [{ name: "Content-Type", value: type }];
    const answer = { requestId, responseCode: file ? 200 : 404, responseHeaders, body: body.toString("base64") };
    browser.send("Fetch.fulfillRequest", answer).catch(() => {});
  });
  try {
    const kinds = ["*/airmile-player/*", "*/favicon.ico"];
    await browser.send("Fetch.enable", { patterns: kinds.map((urlPattern) => ({ urlPattern })) });
    await browser.send("Runtime.enable");
    await browser.send("Runtime.addBinding", { name: "reportEvent" });
    const view = { width: 640, height: 396, deviceScaleFactor: 1, mobile: false };
    await browser.send("Emulation.setDeviceMetricsOverride", view);
    await browser.send("Page.navigate", { url: new URL("/airmile-player/", settings.url).href });
    if (settings.screenshot) {
      sleep(settings.at * 1000)
        .then(() => browser.send("Page.captureScreenshot", { format: "png" }))
        .then(({ data }) => writeFileSync(settings.screenshot, Buffer.from(data, "base64")))
        .catch((error) => console.error(`airmile-player: no screenshot: ${error.message}`));
    }
    const late = sleep(settings.limit * 1000, false, { ref: false });
    const ended = await Promise.race([done, late, browser.gone]);
    const { counts } = log;
    if (log.keptWarm) console.log(`kept warm: ${log.keptWarm}`);
    const of = (event) => counts[event] ?? 0;
    console.log(`${of("end")} segments, ${of("stalled")} stalls, ${of("failed")} failed`);
    if (!ended) console.error(`airmile-player: had not ended after ${settings.limit} s`);
    await end(ended && of("playback_ended") ? 0 : 1);
  } catch (error) {
    console.error(`airmile-player: ${error.message}`);
    await end(1);
  }
}

await main();
