/** hls.js, from version 1 on. */
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
/** A loader that reports its fragments to `warm`:
 * `new Hls({ fLoader: hlsLoader(warm, Hls.DefaultConfig.loader) })`. */
export declare function hlsLoader<Base extends LoaderClass>(warm: KeepWarm, base: Base): Base;
export {};
