// A report of ten million TTIs: its size, and the duration of frames while it is
// zoomed and moved. Fails above the limits below.
import { statSync } from "node:fs";
import { once } from "node:events";
import { join } from "node:path";
import { launch, open, runWith, skipWithoutBrowser, workDir } from "./browser.mjs";

const TTIS = Number(process.env.TTIS ?? 10_000_000);
const MOST_BYTES = 60e6;
const MOST_FRAME_MS = 50;

skipWithoutBrowser("performance");
const file = join(workDir(), "report.html");

/** A busy link: bursts of random lengths and shares, short pauses between. */
async function grants(out) {
  let seed = 7;
  const random = () => (seed = (seed * 48271) % 2147483647) / 2147483647;
  let text = "tti,dir,n_prb,n_prb_cell,tbs_bytes,retx,padding_bytes\n";
  for (let tti = 0; tti < TTIS; ) {
    const end = Math.min(TTIS, tti + 1 + Math.floor(random() * 80));
    for (; tti < end; tti++) {
      const last = tti === end - 1;
      const prb = last ? 1 + Math.floor(random() * 40) : 60 + Math.floor(random() * 41);
      text += `${tti},dl,${prb},100,${prb * 40},0,${last ? prb * 9 : 0}\n`;
    }
    const r = random();
    tti += r < 0.002 ? 700 : r < 0.3 ? Math.floor(random() * 40) : 1;
    if (text.length > 1 << 20) {
      if (!out.write(text)) await once(out, "drain");
      text = "";
    }
  }
  out.end(text);
}

const began = Date.now();
await runWith(["diagnose", "-", "--html", file, "-q"], grants);
const bytes = statSync(file).size;
console.log(`report of ${TTIS} TTIs: ${(bytes / 1e6).toFixed(1)} MB, made in ${((Date.now() - began) / 1e3).toFixed(1)} s`);

const browser = await launch();
const opening = Date.now();
const { page, seen } = await open(browser, file);
console.log(`opened in ${((Date.now() - opening) / 1e3).toFixed(1)} s`);

/** A gesture for each frame: zoom in to single TTIs, pan, and zoom out. */
const frames = await page.evaluate(async () => {
  const plots = document.getElementById("timeline-plots");
  plots.scrollIntoView();
  plots.focus();
  const box = plots.getBoundingClientRect();
  const wheel = (deltaX, deltaY, at) =>
    plots.dispatchEvent(
      new WheelEvent("wheel", {
        deltaX,
        deltaY,
        clientX: box.left + box.width * at,
        clientY: box.top + 100,
        bubbles: true,
        cancelable: true,
      }),
    );
  const gestures = [];
  for (let i = 0; i < 60; i++) gestures.push(() => wheel(0, -60, 0.6));
  for (let i = 0; i < 60; i++) gestures.push(() => wheel(60, 0, 0.5));
  for (let i = 0; i < 40; i++) gestures.push(() => wheel(0, 60, 0.3));
  for (let i = 0; i < 60; i++) gestures.push(() => wheel(-80, 0, 0.5));
  for (let i = 0; i < 40; i++) gestures.push(() => wheel(0, 60, 0.3));
  for (let i = 0; i < 60; i++) gestures.push(() => wheel(0, i % 2 ? 60 : -60, 0.5));
  const next = () => new Promise((resolve) => requestAnimationFrame(resolve));
  await next();
  let last = await next();
  const out = [];
  for (const gesture of gestures) {
    gesture();
    const now = await next();
    out.push(now - last);
    last = now;
  }
  return out;
});
await browser.close();

frames.sort((a, b) => a - b);
const at = (q) => frames[Math.min(frames.length - 1, Math.floor(q * frames.length))];
const shown = [0.5, 0.9, 0.95, 0.99, 1].map((q) => `p${q * 100} ${at(q).toFixed(1)}`);
console.log(`${frames.length} frames of zoom and pan, ms: ${shown.join(", ")}`);
const wrong = [];
if (bytes > MOST_BYTES) wrong.push(`larger than ${MOST_BYTES / 1e6} MB`);
if (at(0.95) > MOST_FRAME_MS) wrong.push(`95th percentile of frames over ${MOST_FRAME_MS} ms`);
if (seen.console.length > 0) wrong.push(`console: ${seen.console.join("; ")}`);
if (seen.requests.length > 0) wrong.push(`requests: ${seen.requests.join("; ")}`);
wrong.forEach((what) => console.log(`FAILED: ${what}`));
process.exit(wrong.length > 0 ? 1 : 0);
