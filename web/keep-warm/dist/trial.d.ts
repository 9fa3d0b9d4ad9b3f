/** Measures within the session whether keep-warm helps: compares answers after kept pauses
 * with answers after pauses without fetches. */
/** The early part of an answer. */
export interface Sample {
    readonly bytes: number;
    /** Time in which they arrived, from the first byte on. */
    readonly ms: number;
}
export type Verdict = "unknown" | "helps" | "no_gain";
export declare class Trial {
    #private;
    /** Whether the pause of this number, from 1, gets no fetches. */
    leavesAlone(pause: number): boolean;
    /** Adds the answer after a pause, in the order of pauses. */
    take(sample: Sample, pause: number, kept: boolean): void;
    /** Rate of kept answers divided by that of the others; `undefined`: too few. */
    gain(): number | undefined;
    verdict(): Verdict;
}
export declare function median(values: number[]): number;
