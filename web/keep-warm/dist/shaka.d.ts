/** Shaka Player, from version 4 on, which reports downloads (tested with 4.16). */
import { KeepWarm } from "./keep_warm.js";
import type { Options } from "./options.js";
type Filter = (type: number, request: any) => Promise<void>;
/** The part of `shaka.Player` that is used. */
export interface ShakaPlayer {
    getNetworkingEngine(): {
        registerRequestFilter(each: Filter): void;
        unregisterRequestFilter(each: Filter): void;
    } | null;
    addEventListener(event: string, listener: (event: any) => void): void;
    removeEventListener(event: string, listener: (event: any) => void): void;
    getMediaElement(): EventTarget | null;
}
/** Keeps a Shaka player's connection warm. Call it after the player is attached. It detaches
 * from the player when it stops. */
export declare function attachShaka(player: ShakaPlayer, options?: Options, now?: () => number): KeepWarm;
export {};
