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
export declare const RADIO: RadioModel;
/** What a radio spends on traffic that is told in the order of its time. */
export declare class RadioMeter {
    #private;
    private readonly model;
    constructor(model: RadioModel);
    /** Bytes from one time to another: a packet, where they are the same. */
    traffic(fromMs: number, toMs: number, dlBytes: number, ulBytes: number): void;
    /** In mJ, until now. */
    atMj(nowMs: number): number;
}
