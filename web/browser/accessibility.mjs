// Reports of each kind and the live page in a browser, by axe-core: no violation in either colour scheme at either
// width, and nothing wider than the window.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { launch, live, open, run, skipWithoutBrowser, workDir } from "./browser.mjs";

skipWithoutBrowser("accessibility");
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const dir = workDir();
const html = (name) => join(dir, `${name}.html`);
const lab = (scenario) => {
  run("lab", "run", scenario, "-o", join(dir, scenario), "-q");
  return (file) => join(dir, scenario, file);
};

const log = lab("sample-rate-limited");
run("diagnose", log("modem.mi2log"), "--html", html("modem log"), "-q");
const page = lab("page-slow-server");
run("diagnose", page("page.har"), page("phone.pcapng"), "--html", html("page"), "-q");
run("packets", page("server.pcapng"), "--html", html("packet study"), "-q");
const video = lab("busy-video");
run("diagnose", video("."), "--html", html("player"), "-q");
const { address, end } = await live("--follow", video("modem.mi2log"));

/** The live page, with the transfers of the log. */
async function openLive(browser, options) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  await page.goto(address);
  await page.waitForSelector("#transfers td.verdict", { timeout: 60_000 });
  return { page, context };
}

const browser = await launch();
let failed = 0;
for (const name of ["modem log", "page", "packet study", "player", "live"]) {
  for (const colorScheme of ["light", "dark"]) {
    for (const width of [1400, 400]) {
      const viewport = { width, height: 900 };
      const what = `${name}, ${colorScheme}, ${width} px`;
      const options = { colorScheme, viewport, bypassCSP: true };
      const opened = name === "live" ? openLive(browser, options) : open(browser, html(name), options);
      const { page, context } = await opened;
      if (process.env.SCREENSHOTS) {
        const path = join(process.env.SCREENSHOTS, `${what}.png`);
        await page.screenshot({ path, fullPage: true });
      }
      await page.evaluate(() => document.querySelectorAll("details").forEach((d) => (d.open = true)));
      await page.addScriptTag({ content: axe });
      const { violations } = await page.evaluate(() => window.axe.run());
      const found = violations.map(
        ({ id, help, nodes }) => `${id}: ${help}: ${nodes.length} x ${nodes[0].target.join(" ")}: ${nodes[0].failureSummary}`,
      );
      const needs = await page.evaluate(() => document.documentElement.scrollWidth);
      if (needs > width) found.push(`${needs} px wide`);
      failed += found.length;
      console.log(found.length === 0 ? `ok      ${what}` : `FAILED  ${what}\n${found.join("\n")}`);
      await context.close();
    }
  }
}
await browser.close();
end();
assert.equal(failed, 0, "violations");
