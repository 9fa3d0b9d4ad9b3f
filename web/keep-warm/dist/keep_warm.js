/** Fetches one byte while a player pauses, often enough that the sender never idles for
 * an RTO (RFC 5681, 4.1; BurstTracker, MobiCom 2019, 5.3). */
import { RADIO, RadioMeter } from "./radio.js";
import { RoundTrips } from "./rtt.js";
import { Trial, median } from "./trial.js";
/** A pause as long as this may restart a window: above the RTO of most paths, so that
 * each comparison has something to compare (chosen here). */
const LONG_PAUSE_MS = 1_000;
/** The part of an answer that slow start shows in: some windows of 10 segments (RFC 6928),
 * doubled four times (chosen here). */
export const EARLY_BYTES = 200_000;
/** One that takes this long is no help (chosen here). */
const TIMEOUT_MS = 5_000;
/** A request of the player waits no longer for one that is under way: another connection
 * is the lesser evil (chosen here). */
const MOST_WAIT_MS = 500;
/** A request of the player that is not heard of for so long is forgotten (chosen here). */
const FORGET_MS = 60_000;
/** A request's head (Chromium's has 220 bytes over HTTP, more over TLS), and the headers of
 * TCP and IP, with timestamps, of request, answer and ACK: a page cannot see them. */
const REQUEST_BYTES = 300;
const PACKETS_BYTES = 3 * 52;
/** An answer that is longer than asked for is taken up to here. */
const MOST_BODY_BYTES = 1_024;
const FREE_BYTES = 20_000;
/** A fetch this much later than due found the timer held up, as in a page that nobody looks
 * at (once a second): the sender was idle meanwhile (chosen here). */
const LATE_MS = 400;
/** Pauses whose length is remembered, to tell what the next one costs (chosen here). */
const PAUSES = 5;
export class KeepWarm {
    #options;
    #roundTrips = new RoundTrips();
    #trial = new Trial();
    #radio;
    #radioWithout;
    #open = new Set();
    #reasons = new Set();
    #state = "running";
    #why;
    #url;
    #pause;
    #pauses = 0;
    #pauseLengthsMs = [];
    #cancelTimer;
    #fetching;
    #tightened = false;
    #fetches = 0;
    #errors = 0;
    #errorsInRow = 0;
    #bytes = 0;
    /** Of the largest fetch, which the next may be like. */
    #fetchBytes = REQUEST_BYTES + PACKETS_BYTES + 400;
    #mediaBytes = 0;
    #kept = 0;
    #alone = 0;
    constructor(options = {}) {
        this.#options = {
            fetch: (url, init) => globalThis.fetch(url, init),
            clock: CLOCK,
            credentials: "same-origin",
            maxBytes: 2_000_000,
            maxShare: 0.02,
            maxErrors: 3,
            maxPauseMs: 30_000,
            saveData: "respect",
            radio: RADIO,
            ...given(options),
        };
        this.#radio = new RadioMeter(this.#options.radio);
        this.#radioWithout = new RadioMeter(this.#options.radio);
        this.#url = options.url;
    }
    /** The player is about to ask for something. */
    requested(url) {
        const now = this.#options.clock.now();
        for (const open of this.#open)
            if (now - open.sinceMs > FORGET_MS)
                this.#open.delete(open);
        const behind = this.#endPause(now);
        const open = { sinceMs: now, behind, firstMs: undefined, early: undefined };
        this.#open.add(open);
        return {
            ready: this.#ready(),
            progress: (bytes) => this.#progress(open, bytes),
            answered: (done) => this.#answered(open, url, done),
            failed: () => this.#closed(open),
        };
    }
    /** Nothing is fetched until `resume` with the same reason: the player is paused, or
     * not looked at. */
    suspend(reason) {
        this.#reasons.add(reason);
        if (this.#state !== "running")
            return;
        this.#state = "suspended";
        this.#endPause(this.#options.clock.now());
        this.#changed();
    }
    /** As long as no other reason stands against it. */
    resume(reason) {
        this.#reasons.delete(reason);
        if (this.#state !== "suspended" || this.#reasons.size > 0)
            return;
        this.#state = "running";
        this.#changed();
    }
    /** For good. */
    stop(why = "asked to") {
        if (this.#state === "stopped")
            return;
        this.#state = "stopped";
        this.#why = why;
        this.#endPause(this.#options.clock.now());
        this.#fetching?.abort.abort();
        this.#changed();
    }
    stats() {
        const now = this.#options.clock.now();
        return {
            state: this.#state,
            why: this.#why,
            fetches: this.#fetches,
            errors: this.#errors,
            bytes: this.#bytes,
            mediaBytes: this.#mediaBytes,
            rttMs: this.#roundTrips.smoothedMs,
            pauseMs: this.#roundTrips.pauseMs(),
            kept: this.#kept,
            alone: this.#alone,
            gain: this.#trial.gain(),
            verdict: this.#trial.verdict(),
            radioMj: this.#radio.atMj(now),
            radioWithoutMj: this.#radioWithout.atMj(now),
        };
    }
    #changed() {
        try {
            this.#options.onChange?.(this.stats());
        }
        catch (error) {
            // What listens must not stop what plays.
            globalThis.reportError?.(error);
        }
    }
    async #ready() {
        const fetching = this.#fetching;
        if (fetching === undefined)
            return;
        let cancel = () => { };
        const late = new Promise((resolve) => (cancel = this.#options.clock.after(MOST_WAIT_MS, resolve)));
        await Promise.race([fetching.done, late]);
        cancel();
    }
    #progress(open, bytes) {
        const now = this.#options.clock.now();
        open.firstMs ??= now;
        if (bytes >= EARLY_BYTES)
            open.early ??= { bytes, ms: now - open.firstMs };
    }
    #answered(open, url, { bytes, firstByteMs, endMs, early = open.early }) {
        if (!this.#open.delete(open))
            return;
        this.#mediaBytes += bytes;
        for (const meter of [this.#radio, this.#radioWithout]) {
            meter.traffic(open.sinceMs, open.sinceMs, 0, REQUEST_BYTES);
            meter.traffic(firstByteMs, endMs, bytes, 0);
        }
        if (open.behind !== undefined) {
            this.#trial.take(early ?? { bytes, ms: endMs - firstByteMs }, open.behind.kept);
            this.#judge();
        }
        this.#url = this.#options.url ?? url;
        if (this.#open.size === 0)
            this.#beginPause(endMs);
    }
    #closed(open) {
        if (this.#open.delete(open) && this.#open.size === 0)
            this.#beginPause(this.#options.clock.now());
    }
    #judge() {
        if (this.#trial.verdict() !== "no_gain")
            return;
        if (this.#tightened)
            return this.stop("it does not help");
        // The sender's RTO may be shorter than thought.
        this.#tightened = true;
        this.#roundTrips.tighten();
        this.#trial.restart();
    }
    #beginPause(fromMs) {
        if (this.#state !== "running" || this.#url === undefined || this.#pause)
            return;
        const number = this.#pauses + 1;
        const kept = !this.#trial.leavesAlone(number);
        // A pause that is kept for a part is as good as left, and costs more.
        const broken = kept && !this.#isAffordable();
        this.#pause = { fromMs, number, kept, fetches: 0, broken };
        if (kept && !broken)
            this.#schedule();
    }
    /** Ends a pause; gives it where it was long enough to tell something. */
    #endPause(now) {
        const pause = this.#pause;
        this.#pause = undefined;
        this.#cancelTimer?.();
        this.#cancelTimer = undefined;
        if (pause === undefined || now - pause.fromMs < LONG_PAUSE_MS)
            return undefined;
        this.#pauses = pause.number;
        this.#pauseLengthsMs = [...this.#pauseLengthsMs, now - pause.fromMs].slice(-PAUSES);
        if (pause.broken || (pause.kept && pause.fetches === 0))
            return undefined;
        if (pause.kept)
            this.#kept += 1;
        else
            this.#alone += 1;
        return pause;
    }
    #schedule() {
        const { clock } = this.#options;
        const pauseMs = this.#roundTrips.pauseMs();
        const dueMs = clock.now() + pauseMs;
        const fetchOne = () => {
            this.#cancelTimer = undefined;
            if (clock.now() - dueMs > LATE_MS && this.#pause)
                this.#pause.broken = true;
            else
                this.#fetchOne();
        };
        this.#cancelTimer = clock.after(pauseMs, fetchOne);
    }
    /** Whether a pause as long as the last ones may be kept to its end. */
    #isAffordable() {
        if (this.#pauseLengthsMs.length === 0)
            return true;
        const everyMs = this.#roundTrips.pauseMs() + (this.#roundTrips.smoothedMs ?? 0);
        const fetches = Math.ceil(median(this.#pauseLengthsMs) / everyMs);
        return this.#bytes + fetches * this.#fetchBytes <= this.#allowedBytes();
    }
    #allowedBytes() {
        return Math.max(FREE_BYTES, this.#options.maxShare * this.#mediaBytes);
    }
    /** Whether no byte is fetched: for good, or until the player has fetched more. */
    #isRefused() {
        const { maxBytes, saveData } = this.#options;
        if (saveData === "respect" && asksToSaveData()) {
            this.stop("the user asks to save data");
            return true;
        }
        const next = this.#bytes + this.#fetchBytes;
        if (next > maxBytes) {
            this.stop("its bytes are used up");
            return true;
        }
        return next > this.#allowedBytes();
    }
    #fetchOne() {
        const { clock, maxPauseMs } = this.#options;
        const pause = this.#pause;
        const url = this.#url;
        if (pause === undefined || url === undefined)
            return;
        // One of the pause before may be very late.
        if (this.#fetching)
            return this.#schedule();
        if (clock.now() - pause.fromMs > maxPauseMs || this.#isRefused()) {
            pause.broken = true;
            return;
        }
        const abort = new AbortController();
        const cancelTimeout = clock.after(TIMEOUT_MS, () => abort.abort());
        const byte = this.#fetchByte(url, abort.signal).catch(() => false);
        const done = byte.then((ended) => {
            cancelTimeout();
            this.#fetching = undefined;
            if (ended)
                pause.fetches += 1;
            else
                pause.broken = true;
            if (this.#pause === pause && this.#state === "running")
                this.#schedule();
        });
        this.#fetching = { done, abort };
    }
    /** Whether it came. */
    async #fetchByte(url, signal) {
        const { fetch, clock, credentials } = this.#options;
        const beganMs = clock.now();
        this.#fetches += 1;
        let headBytes = 0;
        try {
            const answer = await fetch(url, {
                headers: { Range: "bytes=0-0" },
                cache: "no-store",
                credentials,
                referrerPolicy: "no-referrer",
                signal,
            });
            const endMs = clock.now();
            this.#roundTrips.take(endMs - beganMs);
            answer.headers.forEach((value, name) => (headBytes += name.length + value.length + 4));
            const length = Number(answer.headers.get("Content-Length") ?? Number.NaN);
            if (answer.status >= 400) {
                await answer.body?.cancel();
                throw new Error(`status ${answer.status}`);
            }
            if (answer.status !== 206 && !(length <= MOST_BODY_BYTES)) {
                // It sends all of it: the connection goes, and the rest with it.
                this.#bytes += MOST_BODY_BYTES;
                await answer.body?.cancel();
                this.stop("the server gives no ranges");
                return false;
            }
            const body = await answer.arrayBuffer();
            this.#spent(beganMs, endMs, headBytes + body.byteLength);
            this.#errorsInRow = 0;
            return true;
        }
        catch (error) {
            this.#spent(beganMs, clock.now(), headBytes);
            if (this.#state === "stopped")
                return false;
            this.#errors += 1;
            this.#errorsInRow += 1;
            if (this.#errorsInRow >= this.#options.maxErrors) {
                this.stop(`it failed ${this.#errorsInRow} times in a row: ${error instanceof Error ? error.message : error}`);
            }
            return false;
        }
    }
    #spent(fromMs, toMs, answerBytes) {
        const bytes = REQUEST_BYTES + PACKETS_BYTES + answerBytes;
        this.#bytes += bytes;
        this.#fetchBytes = Math.max(this.#fetchBytes, bytes);
        this.#radio.traffic(fromMs, fromMs, 0, REQUEST_BYTES);
        this.#radio.traffic(toMs, toMs, answerBytes, 0);
    }
}
/** Options that are not `undefined`. */
function given(options) {
    return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}
const CLOCK = {
    now: () => performance.now(),
    after: (ms, call) => {
        const timer = setTimeout(call, ms);
        return () => clearTimeout(timer);
    },
};
function asksToSaveData() {
    // Not everything that runs modules has a navigator.
    const { navigator } = globalThis;
    return navigator?.connection?.saveData === true;
}
