/** hls.js, from 1 on. */
import type { KeepWarm } from "./keep_warm.js";
interface Loader {
    readonly stats?: {
        aborted?: boolean;
    } | null;
    load(context: any, config: any, callbacks: any): void;
    abort(): void;
    destroy(): void;
}
export type LoaderClass = new (config: any) => Loader;
/** A loader of fragments that tells `warm` of them:
 * `new Hls({ fLoader: hlsLoader(warm, Hls.DefaultConfig.loader) })`. */
export declare function hlsLoader<Base extends LoaderClass>(warm: KeepWarm, base: Base): Base;
export {};
