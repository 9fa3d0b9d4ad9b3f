// Opens a packet study from disk in a real browser, and uses it as a reader would.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { airmile, cutCanvases, run, skipWithoutBrowser, suite, textOf, workDir } from "./browser.mjs";

skipWithoutBrowser("test-browser");
const dir = workDir();
run("lab", "run", "undesired-slow-start", "-o", join(dir, "run"), "-q");
const capture = join(dir, "run/server.pcapng");
const file = join(dir, "study.html");
run("packets", capture, "--html", file, "-q");
const answer = JSON.parse(execFileSync(airmile, ["packets", capture, "--json", "-q"], { encoding: "utf8" }));

const { check, end } = await suite(file);
const { text: summary, changes } = textOf("flow-summary");

await check("notable findings come first, with advice", {}, async (page) => {
  assert.match(await page.locator("#headline .says").textContent(), /sent again|slow start|queue/);
  assert.ok((await page.locator(".card .next").count()) > 0);
});

await check("each figure is drawn or states the reason why not", {}, async (page) => {
  const numbers = [2, 3, 5, 6, 7, 8, 10, 13, 14, 15, 16, 21, 22, 23, 24];
  for (const number of numbers) {
    assert.ok((await page.locator(`#figure-${number}`).textContent()).length > 20, `figure ${number}`);
  }
  // Something is drawn on every canvas.
  const blank = await page.evaluate(() =>
    [...document.querySelectorAll("#figures canvas")].filter((canvas) => {
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      return !data.some((byte) => byte !== 0);
    }).length,
  );
  assert.equal(blank, 0);
  const drawn = await page.locator("figure").count();
  assert.equal(drawn + (await page.locator("#figures .missing dt").count()), numbers.length);
});

await check("the summary has the answer's values with the paper's", {}, async (page) => {
  const known = answer.summary.filter((figure) => figure.here !== null).length;
  assert.equal(await page.locator("#summary tbody tr:visible:not(.group)").count(), known);
  await page.locator("#show-absent").check();
  assert.equal(await page.locator("#summary tbody tr:visible:not(.group)").count(), answer.summary.length);
  assert.equal(await page.locator("#table1 tbody tr").count(), 9);
});

await check("keys, wheel and drag zoom the flow; 0 shows all", {}, async (page) => {
  const plots = page.locator("#flow-plots");
  await plots.scrollIntoViewIfNeeded();
  await plots.focus();
  const all = await summary(page);
  assert.match(all, /^All /);
  await page.keyboard.press("+");
  await changes(page, all);
  const zoomed = await summary(page);
  assert.match(zoomed, /^From /);
  const box = await plots.boundingBox();
  await page.mouse.move(box.x + 400, box.y + 120);
  await page.mouse.down();
  await page.mouse.move(box.x + 600, box.y + 120, { steps: 4 });
  await page.mouse.up();
  await changes(page, zoomed);
  const dragged = await summary(page);
  await page.mouse.wheel(0, -200);
  await changes(page, dragged);
  await page.keyboard.press("0");
  await page.waitForFunction(
    (old) => document.getElementById("flow-summary")?.textContent === old,
    all,
  );
});

await check("an event links to its place", {}, async (page) => {
  await page.locator("#flow-events summary").click();
  const before = await summary(page);
  await page.locator("#flow-events tbody a").first().click();
  await changes(page, before);
  assert.match(await summary(page), /^From /);
  assert.equal(await page.evaluate(() => document.activeElement?.id), "flow-plots");
  const box = await page.locator("#flow-plots").boundingBox();
  await page.mouse.move(box.x + 400, box.y + 120);
  await page.waitForFunction(() => /in flight/.test(document.querySelector(".readout")?.textContent ?? ""));
});

await check("a figure links to its flow", {}, async (page) => {
  const before = await summary(page);
  await page.locator("#figure-15 a").click();
  await changes(page, before);
  assert.equal(await page.evaluate(() => document.activeElement?.id), "flow-plots");
});

await check("dark by the system's setting, or as selected", { colorScheme: "dark" }, async (page) => {
  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const [r, g, b] = (await background()).match(/\d+/g).map(Number);
  assert.ok(r + g + b < 150);
  await page.locator("#theme").click();
  const [light] = (await background()).match(/\d+/g).map(Number);
  assert.ok(light > 200);
});

await check("a phone's width needs no horizontal scrolling", {
  viewport: { width: 360, height: 740 },
  deviceScaleFactor: 2,
  hasTouch: true,
}, async (page) => {
  await page.evaluate(() => document.querySelectorAll("details").forEach((d) => (d.open = true)));
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(width <= 360, `${width} px`);
  assert.equal(await cutCanvases(page), 0);
});

await check("each figure and table has a name and a text", {}, async (page) => {
  for (const figure of await page.locator("figure").all()) {
    assert.ok((await figure.locator("h3").textContent()).length > 5);
    assert.ok((await figure.locator("figcaption").textContent()).length > 5);
  }
  for (const table of await page.locator("table").all()) {
    assert.ok((await table.locator("caption").textContent()).length > 3);
  }
  const unnamed = await page.evaluate(
    () =>
      [...document.querySelectorAll("button, a, select")].filter(
        (e) => !(e.getAttribute("aria-label") ?? e.textContent ?? "").trim(),
      ).length,
  );
  assert.equal(unnamed, 0);
});

await check("it prints", {}, async (page) => {
  await page.emulateMedia({ media: "print" });
  assert.ok((await page.pdf({ format: "A4" })).length > 10_000);
});

await end();
