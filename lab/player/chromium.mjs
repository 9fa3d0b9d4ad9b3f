// A headless Chromium controlled over a pipe (Chrome DevTools Protocol): JSON
// messages, each terminated by a zero byte.
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
const FLAGS = [
  "--headless=new",
  // It runs as root of a namespace, where its own sandbox is not available, and
  // reaches only the lab's server.
  "--no-sandbox",
  "--disable-gpu",
  "--disable-dev-shm-usage",
  "--mute-audio",
  "--autoplay-policy=no-user-gesture-required",
  "--disable-background-timer-throttling",
  "--disable-renderer-backgrounding",
  // No traffic of the browser itself over the link, and no proxies of the machine.
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

/** Time limit of the start (chosen here: it takes 2 s on an idle machine). */
const START_MS = 60_000;

/** The browser's program: `AIRMILE_CHROMIUM`, or the first one in `PATH`. */
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

  /** Starts it. The caller must close it, also after a failure. */
  async start(program) {
    this.#profile = mkdtempSync(join(tmpdir(), "airmile-player-"));
    this.#child = spawn(program, [...FLAGS, `--user-data-dir=${this.#profile}`, "about:blank"], {
      stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"],
      detached: false,
    });
    const [, , , input, out] = this.#child.stdio;
    out.setEncoding("utf8").on("data", (text) => this.#read(text));
    // The browser has ended; `gone` reports it.
    input.on("error", () => {});
    const gone = new Promise((_, reject) => {
      this.#child.once("error", reject);
      this.#child.once("exit", (code, signal) => {
        const error = new Error(`the browser ended with ${signal ?? `status ${code}`}`);
        this.#waiting.forEach(({ reject: fail }) => fail(error));
        reject(error);
      });
    });
    /** Rejects when the browser has ended. */
    this.gone = gone;
    gone.catch(() => {});
    const first = async () => {
      const { targetInfos } = await this.#call("Target.getTargets", {});
      const { targetId } = targetInfos.find(({ type }) => type === "page");
      const { sessionId } = await this.#call("Target.attachToTarget", { targetId, flatten: true });
      this.#session = sessionId;
    };
    const late = sleep(START_MS, undefined, { ref: false }).then(() => {
      throw new Error(`no answer within ${START_MS / 1000} s`);
    });
    late.catch(() => {});
    await Promise.race([first(), gone, late]);
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

  /** Sends a command to the page. */
  send(method, params = {}) {
    return this.#call(method, params, this.#session);
  }

  /** Calls `handler` with each event of a kind. */
  on(method, handler) {
    this.#handlers.set(method, handler);
  }

  /** Ends it and removes its files. */
  async close() {
    // A program that could not be started has no process id and no exit event.
    const runs = this.#child?.pid && this.#child.exitCode === null && this.#child.signalCode === null;
    if (runs) {
      const ends = new Promise((resolve) => this.#child.once("exit", resolve));
      // Closed normally, it ends its children; without an answer it is killed.
      this.#call("Browser.close", {}).catch(() => {});
      const late = setTimeout(() => this.#child.kill("SIGKILL"), 5_000);
      await ends;
      clearTimeout(late);
    }
    if (!this.#profile) return;
    // A child may write until it ends.
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
