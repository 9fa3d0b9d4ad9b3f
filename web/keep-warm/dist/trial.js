/** Whether it helps: answers behind pauses that were kept warm against answers behind
 * pauses that were not, within the session. */
/** Pauses that are left alone, counted from 1: the first, as nothing is known before it,
 * and others while it is open whether the rest is worth it (chosen here). Where it helps
 * they are few, as the path may change: players choose by the slowest of late, so that one
 * costs more than itself. */
const ALONE_EVERY = 4;
const ALONE_EVERY_IF_IT_HELPS = 32;
/** Faster by so much it helps; by less than `LITTLE` it does not (chosen here: rates of
 * mobile links vary by a tenth from one answer to the next). */
const HELPS = Math.log(1.25);
const LITTLE = Math.log(1.1);
/** Comparisons before it is said to help, which may be taken back at each answer. */
const LEAST_TO_HELP = 2;
/** And before it is said not to: it is looked at each time there are so many more, as who
 * looks at each answer finds what he looks for at last (chosen here). */
const LEAST_TO_END = 8;
const LOOKS_EVERY = 4;
/** Comparisons that are remembered. */
const REMEMBERED = 16;
/** 95 % on one side (Student's t by degrees of freedom from 7 on, and what is above 15). */
const T_95 = [1.895, 1.86, 1.833, 1.812, 1.796, 1.782, 1.771, 1.761, 1.753];
/** A pause left alone is compared with those kept on either side, at most so many pauses
 * away: rates drift. */
const NEAR = 3;
/** Early parts of sizes further apart than this are not compared: slow start costs
 * round trips, so that a smaller answer is slower (chosen here). */
const ALIKE = 2;
export class Trial {
    /** Of late, kept. */
    #kept = [];
    /** Left alone, and open whether a kept one comes behind it. */
    #alone;
    /** Logarithms of kept over alone, the last last. */
    #gains = [];
    #unseen = 0;
    #ended = false;
    /** Whether the pause of this number, from 1, is left alone. */
    leavesAlone(pause) {
        const every = this.verdict() === "helps" ? ALONE_EVERY_IF_IT_HELPS : ALONE_EVERY;
        return pause === 1 || pause % every === 0;
    }
    /** Of the pause of a number, in their order. */
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
        // One on either side takes a drift out.
        if (this.#alone && pause > this.#alone.pause)
            this.#compare();
    }
    /** Rate of kept answers over that of the others; `undefined`: too few. */
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
        // The nearest of either side, where there is one.
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
