/** Measures within the session whether keep-warm helps: compares answers after kept pauses
 * with answers after pauses without fetches. */
/** Pauses without fetches, counted from 1: the first, because nothing is known before it,
 * and every fourth while the benefit is unknown (chosen here). If it helps, a few remain,
 * because the path may change; only a few, because players select bitrates by their slowest
 * recent segment, so that one slow segment affects later ones. */
const ALONE_EVERY = 4;
const ALONE_EVERY_IF_IT_HELPS = 32;
/** It helps if the gain is at least `HELPS`, and does not if it is below `LITTLE` (chosen
 * here: rates of mobile links vary by a tenth from one answer to the next). */
const HELPS = Math.log(1.25);
const LITTLE = Math.log(1.1);
/** Comparisons before the verdict "helps", which each answer can revoke. */
const LEAST_TO_HELP = 2;
/** Comparisons before the verdict "no gain", and between two tests of it: testing after each
 * answer would eventually reach significance by chance (chosen here). */
const LEAST_TO_END = 8;
const LOOKS_EVERY = 4;
/** Comparisons that are stored. */
const REMEMBERED = 16;
/** One-sided 95 % (Student's t by degrees of freedom from 7 on; the last for 15 and more). */
const T_95 = [1.895, 1.86, 1.833, 1.812, 1.796, 1.782, 1.771, 1.761, 1.753];
/** A pause without fetches is compared with kept pauses on either side, at most this number
 * of pauses away, because rates drift. */
const NEAR = 3;
/** Early parts whose sizes differ by more than this factor are not compared: slow start
 * costs round trips, so a smaller answer is slower (chosen here). */
const ALIKE = 2;
export class Trial {
    /** Recent answers after kept pauses. */
    #kept = [];
    /** The last answer after a pause without fetches, until a kept one follows. */
    #alone;
    /** Logarithms of the rate of kept over alone, oldest first. */
    #gains = [];
    #unseen = 0;
    #ended = false;
    /** Whether the pause of this number, from 1, gets no fetches. */
    leavesAlone(pause) {
        const every = this.verdict() === "helps" ? ALONE_EVERY_IF_IT_HELPS : ALONE_EVERY;
        return pause === 1 || pause % every === 0;
    }
    /** Adds the answer after a pause, in the order of pauses. */
    take(sample, pause, kept) {
        if (!(sample.ms > 0) || !(sample.bytes > 0))
            return;
        const behind = { pause, bytes: sample.bytes, rate: Math.log(sample.bytes / sample.ms) };
        if (!kept) {
            this.#compare();
            this.#alone = behind;
            return;
        }
        this.#kept = [...this.#kept, behind].filter((each) => pause - each.pause <= 2 * NEAR);
        // A sample on either side cancels a drift.
        if (this.#alone && pause > this.#alone.pause)
            this.#compare();
    }
    /** Rate of kept answers divided by that of the others; `undefined`: too few. */
    gain() {
        return this.#gains.length < LEAST_TO_HELP ? undefined : Math.exp(mean(this.#gains));
    }
    verdict() {
        if (this.#ended)
            return "no_gain";
        const enough = this.#gains.length >= LEAST_TO_HELP;
        return enough && mean(this.#gains) >= HELPS ? "helps" : "unknown";
    }
    #compare() {
        const alone = this.#alone;
        this.#alone = undefined;
        if (alone === undefined)
            return;
        const near = this.#kept.filter(({ pause, bytes }) => Math.abs(pause - alone.pause) <= NEAR && bytes <= ALIKE * alone.bytes && alone.bytes <= ALIKE * bytes);
        const [before, after] = [near.filter(({ pause }) => pause < alone.pause), near.filter(({ pause }) => pause > alone.pause)];
        // The nearest on either side, if any.
        const sides = [before[before.length - 1], after[0]].flatMap((side) => (side ? [side.rate] : []));
        if (sides.length === 0)
            return;
        this.#gains = [...this.#gains, mean(sides) - alone.rate].slice(-REMEMBERED);
        this.#unseen += 1;
        if (this.#gains.length < LEAST_TO_END || this.#unseen < LOOKS_EVERY)
            return;
        this.#unseen = 0;
        this.#ended = mean(this.#gains) < LITTLE && mostLikely(this.#gains) < HELPS;
    }
}
const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
/** The mean's upper limit. */
function mostLikely(values) {
    const middle = mean(values);
    const free = values.length - 1;
    const squares = values.reduce((sum, value) => sum + (value - middle) ** 2, 0);
    const t = T_95[Math.min(free - 7, T_95.length - 1)] ?? Number.NaN;
    return middle + t * Math.sqrt(squares / free / values.length);
}
export function median(values) {
    const sorted = [...values].sort((a, b) => a - b);
    const middle = sorted.length >> 1;
    const upper = sorted[middle] ?? Number.NaN;
    return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? Number.NaN)) / 2;
}
