/** Energy of an LTE radio by its RRC states, with the model of airmile's packet study. */
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
    /** Additional power for each Mbit/s. */
    readonly dlMwPerMbps: number;
    readonly ulMwPerMbps: number;
}
/** LTE: Huang et al., MobiSys 2012; the tail is 10 s as in their study of 2013. */
export declare const RADIO: RadioModel;
/** Energy of a radio for traffic that is given in the order of time. */
export declare class RadioMeter {
    #private;
    private readonly model;
    constructor(model: RadioModel);
    /** Bytes between two times; a single packet if they are equal. */
    traffic(fromMs: number, toMs: number, dlBytes: number, ulBytes: number): void;
    /** In mJ, until now. */
    atMj(nowMs: number): number;
}
