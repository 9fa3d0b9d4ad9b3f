/** Whether it helps: answers behind pauses that were kept warm against answers behind
 * pauses that were not, within the session. */
/** The early part of an answer. */
export interface Sample {
    readonly bytes: number;
    /** In which they came, from the first byte on. */
    readonly ms: number;
}
export type Verdict = "unknown" | "helps" | "no_gain";
export declare class Trial {
    #private;
    /** Whether the pause of this number, from 1, is left alone. */
    leavesAlone(pause: number): boolean;
    /** Of the pause of a number, in their order. */
    take(sample: Sample, pause: number, kept: boolean): void;
    /** Rate of kept answers over that of the others; `undefined`: too few. */
    gain(): number | undefined;
    verdict(): Verdict;
}
export declare function median(values: number[]): number;
