/** Shaka Player, from 4 on. */
import { KeepWarm, type Options } from "./keep_warm.js";
/** What is used of `shaka.Player`. */
export interface ShakaPlayer {
    getNetworkingEngine(): {
        registerRequestFilter(each: (type: number, request: any) => Promise<void>): void;
        registerResponseFilter(each: (type: number, response: any) => void): void;
        addEventListener(event: string, listener: (event: any) => void): void;
    } | null;
    addEventListener(event: string, listener: (event: any) => void): void;
    getMediaElement(): EventTarget | null;
}
/** Keeps a Shaka player's connection warm. Call it once the player is attached. */
export declare function attachShaka(player: ShakaPlayer, options?: Options, now?: () => number): KeepWarm;
