// Common parts of the browser tests: the command, its samples, a browser without a network.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const root = fileURLToPath(new URL("../..", import.meta.url));
export const airmile = process.env.AIRMILE ?? join(root, "target/release/airmile");
const browserPath = process.env.CHROMIUM ?? "/usr/bin/chromium";

/** Prints SKIPPED and exits with success if there is no browser. */
export function skipWithoutBrowser(name) {
  if (existsSync(browserPath)) return;
  console.log(`SKIPPED: ${name}: no browser at ${browserPath} (set CHROMIUM to its path)`);
  process.exit(0);
}

export function workDir() {
  const dir = mkdtempSync(join(tmpdir(), "airmile-report-"));
  process.on("exit", () => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

export function run(...args) {
  execFileSync(airmile, args, { stdio: ["ignore", "ignore", "inherit"] });
}

/** Runs the command with the output of `write` on its standard input. */
export function runWith(args, write) {
  const child = spawn(airmile, args, { stdio: ["pipe", "ignore", "inherit"] });
  const done = new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("exit", (status) => (status === 0 ? resolve() : reject(new Error(`exit ${status}`))));
  });
  return Promise.all([write(child.stdin), done]);
}

/** Starts `airmile live` with a page; resolves to its address once it listens, and how to end it. */
export function live(...args) {
  const child = spawn(airmile, ["live", ...args, "--listen", "127.0.0.1:0"], { stdio: ["ignore", "ignore", "pipe"] });
  process.on("exit", () => child.kill());
  return new Promise((resolve, reject) => {
    let errors = "";
    child.stderr.on("data", (bytes) => {
      errors += bytes;
      const url = /listening on (http:\S+)\s/.exec(errors)?.[1];
      if (url) resolve({ address: url, end: () => child.kill() });
    });
    child.on("error", reject);
    child.on("exit", (status) => reject(new Error(`exit ${status}: ${errors}`)));
  });
}

export function launch() {
  return chromium.launch({
    executablePath: browserPath,
    args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
  });
}

/** Opens a report from disk; `seen` collects errors, messages and requests. */
export async function open(browser, file, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  const seen = { console: [], requests: [] };
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") seen.console.push(message.text());
  });
  page.on("pageerror", (error) => seen.console.push(error.message));
  page.on("request", (request) => {
    // The page itself, and streams made from its own bytes.
    if (request.url() !== `file://${file}` && !request.url().startsWith("blob:")) {
      seen.requests.push(request.url());
    }
  });
  await page.goto(`file://${file}`);
  await page.waitForSelector("html[data-ready]", { timeout: 60_000 });
  return { page, seen, context };
}

/**
 * Named checks, each on a newly opened page that must make no request and log
 * nothing. `end` closes the browser and exits, with 1 if a check failed.
 */
export async function suite(file) {
  const browser = await launch();
  let failed = 0;
  const check = async (name, options, body) => {
    const { page, seen, context } = await open(browser, file, options);
    try {
      await body(page);
      assert.deepEqual(seen.console, [], "console");
      assert.deepEqual(seen.requests, [], "requests");
      console.log(`ok      ${name}`);
    } catch (error) {
      failed++;
      console.log(`FAILED  ${name}\n${error.stack}`);
    }
    await context.close();
  };
  const end = async (goesOn = false) => {
    await browser.close();
    if (failed > 0 || !goesOn) process.exit(failed > 0 ? 1 : 0);
  };
  return { check, end };
}

/** Canvases with ink in their first or last column: what is drawn there is cut by the edge. */
export function cutCanvases(page) {
  return page.evaluate(() => {
    const all = [...document.querySelectorAll("canvas")].filter((canvas) => canvas.width > 0);
    return all.filter((canvas) => {
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      const n = 4 * canvas.width;
      return data.some((byte, at) => byte !== 0 && (at % n < 4 || at % n >= n - 4));
    }).length;
  });
}

/** The text of an element by id, and a wait until it changes. */
export function textOf(id) {
  const text = (page) => page.locator(`#${id}`).textContent();
  const changes = (page, before) =>
    page.waitForFunction(
      ([of, old]) => document.getElementById(of)?.textContent !== old,
      [id, before],
      { timeout: 10_000 },
    );
  return { text, changes };
}
