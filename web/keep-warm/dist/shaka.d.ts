/** Shaka Player, from 4 on, where it tells of downloads (tried with 4.16). */
import { KeepWarm } from "./keep_warm.js";
import type { Options } from "./options.js";
type Filter = (type: number, request: any) => Promise<void>;
/** What is used of `shaka.Player`. */
export interface ShakaPlayer {
    getNetworkingEngine(): {
        registerRequestFilter(each: Filter): void;
        unregisterRequestFilter(each: Filter): void;
    } | null;
    addEventListener(event: string, listener: (event: any) => void): void;
    removeEventListener(event: string, listener: (event: any) => void): void;
    getMediaElement(): EventTarget | null;
}
/** Keeps a Shaka player's connection warm. Call it once the player is attached. When it
 * stops it lets go of the player. */
export declare function attachShaka(player: ShakaPlayer, options?: Options, now?: () => number): KeepWarm;
export {};
