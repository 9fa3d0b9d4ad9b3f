// Opens reports from disk in a real browser, and uses them as a reader would.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { airmile, run, skipWithoutBrowser, suite, textOf, workDir } from "./browser.mjs";

skipWithoutBrowser("test-browser");
const dir = workDir();
run("lab", "run", "sample-rate-limited", "-o", join(dir, "run"), "-q");
const log = join(dir, "run/modem.mi2log");
const file = join(dir, "report.html");
run("diagnose", log, "--html", file, "-q");
const answer = JSON.parse(execFileSync(airmile, ["diagnose", log, "--json", "-q"], { encoding: "utf8" }));

const { check, end } = await suite(file);
const { text: summary, changes } = textOf("timeline-summary");
const background = (page) =>
  page.evaluate(() => getComputedStyle(document.body).backgroundColor);

await check("the verdict is first", {}, async (page) => {
  // Numbers stay on one line with their units.
  const says = await page.locator(".says").textContent();
  assert.equal(says.replaceAll("\u00a0", " "), answer.session.says);
  assert.doesNotMatch(says, /\d %/);
  const shown = await page.locator("#verdict .badge").textContent();
  assert.equal(shown, answer.session.verdict.replaceAll("_", " "));
  const n = answer.transfers.length;
  assert.equal(await page.locator("#table-transfers tbody tr").count(), Math.min(25, n));
});

await check("keys zoom, move and reset", {}, async (page) => {
  await page.locator("#timeline-plots").focus();
  const all = await summary(page);
  assert.match(all, /^All /);
  await page.keyboard.press("+");
  await changes(page, all);
  const zoomed = await summary(page);
  assert.match(zoomed, /^From /);
  await page.keyboard.press("ArrowRight");
  await changes(page, zoomed);
  await page.keyboard.press("0");
  await page.waitForFunction(
    (old) => document.getElementById("timeline-summary")?.textContent === old,
    all,
  );
});

await check("wheel and drag zoom, double click resets", {}, async (page) => {
  const plots = page.locator("#timeline-plots");
  await plots.scrollIntoViewIfNeeded();
  const box = await plots.boundingBox();
  const all = await summary(page);
  const y = box.y + 100;
  await page.mouse.move(box.x + 400, y);
  await page.mouse.down();
  await page.mouse.move(box.x + 600, y, { steps: 4 });
  await page.mouse.up();
  await changes(page, all);
  const dragged = await summary(page);
  await page.mouse.wheel(0, -200);
  await changes(page, dragged);
  await page.mouse.dblclick(box.x + 500, y);
  await page.waitForFunction(
    (old) => document.getElementById("timeline-summary")?.textContent === old,
    all,
  );
});

await check("the wheel scrolls the page past the timeline", {}, async (page) => {
  const plots = page.locator("#timeline-plots");
  await plots.scrollIntoViewIfNeeded();
  const all = await summary(page);
  const box = await plots.boundingBox();
  const before = await page.evaluate(() => scrollY);
  await page.mouse.move(box.x + 400, box.y + 100);
  await page.mouse.wheel(0, 300);
  await page.waitForFunction((old) => scrollY > old, before, { timeout: 10_000 });
  assert.equal(await summary(page), all);
});

await check("evidence links to its place", {}, async (page) => {
  const before = await summary(page);
  const link = page.locator(".evidence a", { hasText: "longest time with an empty queue" }).first();
  const words = await link.textContent();
  await link.click();
  await changes(page, before);
  assert.equal(await page.evaluate(() => document.activeElement?.id), "timeline-plots");
  // The span with a margin.
  const ms = Number(/: (\d+)\sms/.exec(words)[1]);
  const shown = /\(([\d.]+) (ms|s) of /.exec(await summary(page));
  const shownMs = Number(shown[1]) * (shown[2] === "s" ? 1000 : 1);
  assert.ok(shownMs >= ms && shownMs < ms * 1.3 + 20, `${ms} in ${shownMs}`);
});

await check("a burst's bounds are shown under the pointer", {}, async (page) => {
  await page.locator("details[id^=table-bursts] summary").first().click();
  const before = await summary(page);
  await page.locator("details[id^=table-bursts] tbody a").first().click();
  await changes(page, before);
  const box = await page.locator("#timeline-plots").boundingBox();
  await page.mouse.move(box.x + 52 + (box.width - 64) / 2, box.y + 100);
  await page.waitForFunction(() =>
    /opened by .* closed by/.test(document.querySelector(".readout")?.textContent ?? ""),
  );
});

await check("dark by the system's setting, or as selected", { colorScheme: "dark" }, async (page) => {
  const dark = await background(page);
  const [r, g, b] = dark.match(/\d+/g).map(Number);
  assert.ok(r + g + b < 150, dark);
  await page.locator("#theme").click();
  assert.notEqual(await background(page), dark);
  await page.locator("#theme").click();
  assert.equal(await background(page), dark);
});

await check("a phone's width needs no horizontal scrolling", {
  viewport: { width: 360, height: 740 },
  deviceScaleFactor: 2,
  hasTouch: true,
}, async (page) => {
  await page.evaluate(() => document.querySelectorAll("details").forEach((d) => (d.open = true)));
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(width <= 360, `${width} px`);
});

await check("each figure has a name and a text", {}, async (page) => {
  assert.match(await page.locator("#timeline-plots").getAttribute("aria-label"), /Timeline/);
  for (const figure of await page.locator("figure").all()) {
    assert.ok((await figure.locator("figcaption").textContent()).length > 20);
  }
  for (const table of await page.locator("table").all()) {
    assert.ok((await table.locator("caption").textContent()).length > 3);
  }
  const unnamed = await page.evaluate(
    () =>
      [...document.querySelectorAll("button, a")].filter(
        (e) => !(e.getAttribute("aria-label") ?? e.textContent ?? "").trim(),
      ).length,
  );
  assert.equal(unnamed, 0);
});

await check("it prints", {}, async (page) => {
  await page.emulateMedia({ media: "print" });
  assert.ok((await page.pdf({ format: "A4" })).length > 10_000);
});

// A short transfer in a long log.
const given = join(dir, "given.csv");
const start = answer.transfers[0].start_us + 2_000_000;
writeFileSync(given, `id,start_us,end_us,bytes\nshort,${start},${start + 500_000},100000\n`);
const part = join(dir, "part.html");
run("diagnose", log, "--transfers", given, "--html", part, "-q");
await end(true);
const short = await suite(part);
await short.check("it opens on its transfers", {}, async (page) => {
  const opened = await summary(page);
  const shown = /^From .* \((\d+) ms of [\d.]+ s\).*transfer short/.exec(opened);
  assert.ok(shown && Number(shown[1]) >= 500 && Number(shown[1]) < 600, opened);
  await page.getByRole("button", { name: "Show all" }).click();
  await changes(page, opened);
  assert.match(await summary(page), /^All /);
  await page.getByRole("button", { name: "Show transfers" }).click();
  await page.waitForFunction(
    (old) => document.getElementById("timeline-summary")?.textContent === old,
    opened,
  );
});
await short.end();
