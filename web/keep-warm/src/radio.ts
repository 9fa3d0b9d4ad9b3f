/** Energy of an LTE radio by its RRC states, as airmile's packet study has it. */

/** Times and powers. */
export interface RadioModel {
  /** From the last packet until the radio is idle. */
  readonly tailMs: number;
  /** A pause of this length ends continuous reception. */
  readonly activeGapMs: number;
  readonly promotionMs: number;
  readonly promotionMw: number;
  readonly connectedMw: number;
  /** In the tail, DRX cycles included. */
  readonly tailMw: number;
  /** More for each Mbit/s. */
  readonly dlMwPerMbps: number;
  readonly ulMwPerMbps: number;
}

/** LTE: Huang et al., MobiSys 2012; the tail is 10 s as in their study of 2013. */
export const RADIO: RadioModel = {
  tailMs: 10_000,
  activeGapMs: 100,
  promotionMs: 260.1,
  promotionMw: 1210.7,
  connectedMw: 1288,
  tailMw: 1060,
  dlMwPerMbps: 51.97,
  ulMwPerMbps: 438.39,
};

/** What a radio spends on traffic that is told in the order of its time. */
export class RadioMeter {
  #mj = 0;
  #lastMs: number | undefined;

  constructor(private readonly model: RadioModel) {}

  /** Bytes from one time to another: a packet, where they are the same. */
  traffic(fromMs: number, toMs: number, dlBytes: number, ulBytes: number): void {
    const { model } = this;
    this.#mj += this.#until(fromMs);
    const from = Math.max(fromMs, this.#lastMs ?? fromMs);
    const to = Math.max(toMs, from);
    this.#mj += ((to - from) * model.connectedMw) / 1e3;
    // A power per rate is an energy per bit.
    this.#mj += ((dlBytes * model.dlMwPerMbps + ulBytes * model.ulMwPerMbps) * 8) / 1e6;
    this.#lastMs = to;
  }

  /** In mJ, until now. */
  atMj(nowMs: number): number {
    return this.#mj + this.#tail(nowMs);
  }

  /** Of the time between traffic, and of a promotion where the radio went idle. */
  #until(ms: number): number {
    const { model } = this;
    const promotion = (model.promotionMs * model.promotionMw) / 1e3;
    if (this.#lastMs === undefined) return promotion;
    const gap = ms - this.#lastMs;
    if (gap <= 0) return 0;
    if (gap <= model.activeGapMs) return (gap * model.connectedMw) / 1e3;
    return this.#tail(ms) + (gap > model.tailMs ? promotion : 0);
  }

  #tail(nowMs: number): number {
    if (this.#lastMs === undefined) return 0;
    const gap = Math.max(0, Math.min(nowMs - this.#lastMs, this.model.tailMs));
    return (gap * this.model.tailMw) / 1e3;
  }
}
