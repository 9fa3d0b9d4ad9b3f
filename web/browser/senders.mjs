// Reports of captures and application logs, in a real browser.
import assert from "node:assert/strict";
import { join } from "node:path";
import { cutCanvases, run, skipWithoutBrowser, suite, textOf, workDir } from "./browser.mjs";

skipWithoutBrowser("test-browser");
const dir = workDir();
const { text: summary, changes } = textOf("timeline-summary");

// A run with captures and an application log: senders and requests on the same axis.
run("lab", "run", "receive-window", "-o", join(dir, "senders"), "-q");
const whole = join(dir, "senders.html");
run("diagnose", join(dir, "senders"), "--html", whole, "-q");
const senders = await suite(whole);
await senders.check("senders and requests are on the timeline", {}, async (page) => {
  const titles = await page.locator(".panel-title").allTextContents();
  for (const title of ["Share of the cell", "Bytes in flight", "Round trips", "application"]) {
    assert.ok(titles.some((text) => text.includes(title)), `${title}: ${titles}`);
  }
  assert.match(await summary(page), /in flight to the phone on all connections; round trips of .* 1 request/);
  // A cause links to its place, and the pointer shows the bytes in flight there.
  const before = await summary(page);
  await page.locator(".shares a", { hasText: "receive window" }).first().click();
  await changes(page, before);
  const box = await page.locator("#timeline-plots").boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + 100);
  await page.waitForFunction(() =>
    /in flight .* rwnd /.test(document.querySelector(".readout")?.textContent ?? ""),
  );
});
await senders.check("no label of an axis is cut at a phone's width", {
  viewport: { width: 400, height: 800 },
}, async (page) => {
  assert.equal(await cutCanvases(page), 0);
});
await senders.end(true);

// Only the application log: no empty timeline.
const alone = join(dir, "alone.html");
run("diagnose", join(dir, "senders/app.jsonl"), "--html", alone, "-q");
const application = await suite(alone);
await application.check("an application log alone has its lanes", {}, async (page) => {
  const titles = await page.locator(".panel-title").allTextContents();
  const throughput = "Throughput of requests in Mbit/s, at their start";
  assert.deepEqual(titles, ["Transfers", throughput, "Events of the application"]);
  const words = await summary(page);
  assert.match(words, /^All .*1 request/);
  assert.doesNotMatch(words, /burst|PRBs/);
});
await application.end();
