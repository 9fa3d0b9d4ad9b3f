/** Energy of an LTE radio by its RRC states, with the model of airmile's packet study. */
/** LTE: Huang et al., MobiSys 2012; the tail is 10 s as in their study of 2013. */
export const RADIO = {
    tailMs: 10_000,
    activeGapMs: 100,
    promotionMs: 260.1,
    promotionMw: 1210.7,
    connectedMw: 1288,
    tailMw: 1060,
    dlMwPerMbps: 51.97,
    ulMwPerMbps: 438.39,
};
/** Energy of a radio for traffic that is given in the order of time. */
export class RadioMeter {
    model;
    #mj = 0;
    #lastMs;
    constructor(model) {
        this.model = model;
    }
    /** Bytes between two times; a single packet if they are equal. */
    traffic(fromMs, toMs, dlBytes, ulBytes) {
        const { model } = this;
        this.#mj += this.#until(fromMs);
        const from = Math.max(fromMs, this.#lastMs ?? fromMs);
        const to = Math.max(toMs, from);
        this.#mj += ((to - from) * model.connectedMw) / 1e3;
        // Power divided by rate is energy per bit.
        this.#mj += ((dlBytes * model.dlMwPerMbps + ulBytes * model.ulMwPerMbps) * 8) / 1e6;
        this.#lastMs = to;
    }
    /** In mJ, until now. */
    atMj(nowMs) {
        return this.#mj + this.#tail(nowMs);
    }
    /** Energy between traffic, and of a promotion if the radio went idle. */
    #until(ms) {
        const { model } = this;
        const promotion = (model.promotionMs * model.promotionMw) / 1e3;
        if (this.#lastMs === undefined)
            return promotion;
        const gap = ms - this.#lastMs;
        if (gap <= 0)
            return 0;
        if (gap <= model.activeGapMs)
            return (gap * model.connectedMw) / 1e3;
        return this.#tail(ms) + (gap > model.tailMs ? promotion : 0);
    }
    #tail(nowMs) {
        if (this.#lastMs === undefined)
            return 0;
        const gap = Math.max(0, Math.min(nowMs - this.#lastMs, this.model.tailMs));
        return (gap * this.model.tailMw) / 1e3;
    }
}
