/** Whether it helps: answers behind pauses that were kept warm against answers behind
 * pauses that were not, within the session. */
/** Pauses that are left alone, counted from 1: the first, as nothing is known before it,
 * another one, and some more while it is open whether the rest is worth it (chosen here).
 * Where it helps they are few, as the path may change: players choose by the slowest of
 * late, so that one costs more than itself. */
const ALONE = [1, 4];
const ALONE_EVERY = 8;
const ALONE_EVERY_IF_IT_HELPS = 64;
/** Answers of each kind before anything is said (chosen here). */
const LEAST_ALONE = 2;
const LEAST_ALONE_AGAINST = 3;
const LEAST_KEPT = 3;
/** Faster by so much it helps; by less than that much it does not (chosen here: rates of
 * mobile links vary by a tenth from one answer to the next). */
const HELPS = 1.25;
const NO_GAIN = 1.1;
/** Answers that are remembered of each kind. */
const KEPT_SAMPLES = 16;
/** Early parts of sizes further apart than this are not compared: slow start costs
 * round trips, so that a smaller answer is slower (chosen here). */
const ALIKE = 2;
export class Trial {
    #kept = [];
    #alone = [];
    /** Whether the pause of this number, from 1, is left alone. */
    leavesAlone(pause) {
        const every = this.verdict() === "helps" ? ALONE_EVERY_IF_IT_HELPS : ALONE_EVERY;
        return ALONE.includes(pause) || pause % every === 0;
    }
    take(sample, kept) {
        if (!(sample.ms > 0) || !(sample.bytes > 0))
            return;
        const samples = kept ? this.#kept : this.#alone;
        samples.push(sample);
        if (samples.length > KEPT_SAMPLES)
            samples.shift();
    }
    /** Rate of kept answers over that of the others; `undefined`: too few. */
    gain() {
        return this.#compare(LEAST_ALONE)?.gain;
    }
    verdict() {
        const found = this.#compare(LEAST_ALONE);
        if (found === undefined)
            return "unknown";
        if (found.gain >= HELPS)
            return "helps";
        return found.gain < NO_GAIN && found.alone >= LEAST_ALONE_AGAINST ? "no_gain" : "unknown";
    }
    /** Forgets what was kept, which was kept otherwise. */
    restart() {
        this.#kept = [];
    }
    #compare(leastAlone) {
        const size = median(this.#kept.map(({ bytes }) => bytes));
        const alike = ({ bytes }) => bytes <= ALIKE * size && size <= ALIKE * bytes;
        const rate = ({ bytes, ms }) => bytes / ms;
        const kept = this.#kept.filter(alike).map(rate);
        const alone = this.#alone.filter(alike).map(rate);
        if (kept.length < LEAST_KEPT || alone.length < leastAlone)
            return undefined;
        return { gain: median(kept) / median(alone), alone: alone.length };
    }
}
export function median(values) {
    const sorted = [...values].sort((a, b) => a - b);
    const middle = sorted.length >> 1;
    const upper = sorted[middle] ?? Number.NaN;
    return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? Number.NaN)) / 2;
}
