// A headless Chromium that is spoken to over a pipe (Chrome DevTools Protocol):
// messages of JSON, each ended by a zero byte.
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
const FLAGS = [
  "--headless=new",
  // It is root's in a namespace, where a sandbox of its own cannot be had, and
  // sees nothing but the lab's server.
  "--no-sandbox",
  "--disable-gpu",
  "--disable-dev-shm-usage",
  "--mute-audio",
  "--autoplay-policy=no-user-gesture-required",
  "--disable-background-timer-throttling",
  "--disable-renderer-backgrounding",
  // Nothing of its own goes over the link, and the machine's proxies are not there.
  "--no-proxy-server",
  "--no-first-run",
  "--no-default-browser-check",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-default-apps",
  "--disable-extensions",
  "--disable-sync",
  "--disable-features=Translate,OptimizationHints,MediaRouter",
  "--remote-debugging-pipe",
];

/** The browser's program: `AIRMILE_CHROMIUM`, or the first one in the path. */
export function findChromium() {
  if (process.env.AIRMILE_CHROMIUM) return process.env.AIRMILE_CHROMIUM;
  const dirs = (process.env.PATH ?? "").split(delimiter);
  return NAMES.flatMap((name) => dirs.map((dir) => join(dir, name))).find(existsSync);
}

/** A browser with one page. */
export class Chromium {
  #child;
  #profile;
  #next = 1;
  #waiting = new Map();
  #handlers = new Map();
  #session;
  #rest = "";

  static async start(program) {
    const browser = new Chromium();
    browser.#profile = mkdtempSync(join(tmpdir(), "airmile-player-"));
    browser.#child = spawn(program, [...FLAGS, `--user-data-dir=${browser.#profile}`, "about:blank"], {
      stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"],
      detached: false,
    });
    const [, , , , out] = browser.#child.stdio;
    out.setEncoding("utf8").on("data", (text) => browser.#read(text));
    const gone = new Promise((_, reject) => {
      browser.#child.once("error", reject);
      browser.#child.once("exit", (code, signal) => {
        const error = new Error(`the browser ended with ${signal ?? `status ${code}`}`);
        browser.#waiting.forEach(({ reject: fail }) => fail(error));
        reject(error);
      });
    });
    /** Rejects when the browser has gone. */
    browser.gone = gone;
    gone.catch(() => {});
    const first = async () => {
      const { targetInfos } = await browser.#call("Target.getTargets", {});
      const { targetId } = targetInfos.find(({ type }) => type === "page");
      const { sessionId } = await browser.#call("Target.attachToTarget", { targetId, flatten: true });
      browser.#session = sessionId;
    };
    await Promise.race([first(), gone]);
    return browser;
  }

  #read(text) {
    const messages = (this.#rest + text).split("\0");
    this.#rest = messages.pop();
    for (const message of messages.map((each) => JSON.parse(each))) {
      const waiting = this.#waiting.get(message.id);
      if (waiting) {
        this.#waiting.delete(message.id);
        if (message.error) waiting.reject(new Error(message.error.message));
        else waiting.resolve(message.result);
      } else {
        this.#handlers.get(message.method)?.(message.params);
      }
    }
  }

  #call(method, params, sessionId) {
    const id = this.#next++;
    this.#child.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    return new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
  }

  /** A command to the page. */
  send(method, params = {}) {
    return this.#call(method, params, this.#session);
  }

  /** Calls `handler` with each event of a kind. */
  on(method, handler) {
    this.#handlers.set(method, handler);
  }

  /** Ends it, and removes what it has written. */
  async close() {
    const hasEnded = this.#child.exitCode !== null || this.#child.signalCode !== null;
    if (!hasEnded) {
      const ends = new Promise((resolve) => this.#child.once("exit", resolve));
      // By itself it takes its children along; who does not answer is ended.
      this.#call("Browser.close", {}).catch(() => {});
      const late = setTimeout(() => this.#child.kill("SIGKILL"), 5_000);
      await ends;
      clearTimeout(late);
    }
    // A child may write to the last.
    for (let left = 40; left > 0; left--) {
      try {
        return rmSync(this.#profile, { recursive: true, force: true });
      } catch {
        await sleep(100);
      }
    }
    console.error(`airmile-player: ${this.#profile} could not be removed`);
  }
}
