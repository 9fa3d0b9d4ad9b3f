// What the browser tests share: the command, its samples, a browser without a network.
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const root = fileURLToPath(new URL("../..", import.meta.url));
export const airmile = process.env.AIRMILE ?? join(root, "target/release/airmile");
const browserPath = process.env.CHROMIUM ?? "/usr/bin/chromium";

/** Says so, loudly, and ends well where there is no browser to test with. */
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

/** Runs the command with what `write` gives on its standard input. */
export function runWith(args, write) {
  const child = spawn(airmile, args, { stdio: ["pipe", "ignore", "inherit"] });
  const done = new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("exit", (status) => (status === 0 ? resolve() : reject(new Error(`exit ${status}`))));
  });
  return Promise.all([write(child.stdin), done]);
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
    // The page itself, and streams that it makes of its own bytes.
    if (request.url() !== `file://${file}` && !request.url().startsWith("blob:")) {
      seen.requests.push(request.url());
    }
  });
  await page.goto(`file://${file}`);
  await page.waitForSelector("html[data-ready]", { timeout: 60_000 });
  return { page, seen, context };
}
