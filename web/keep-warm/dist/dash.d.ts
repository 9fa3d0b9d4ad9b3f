/** dash.js, from version 5 on. */
import { KeepWarm } from "./keep_warm.js";
import type { Options } from "./options.js";
/** The part of `dashjs.MediaPlayer().create()` that is used. */
export interface DashPlayer {
    addRequestInterceptor(each: (request: any) => Promise<any>): void;
    addResponseInterceptor(each: (response: any) => Promise<any>): void;
    removeRequestInterceptor(each: (request: any) => Promise<any>): void;
    removeResponseInterceptor(each: (response: any) => Promise<any>): void;
    on(event: string, listener: (event: any) => void): void;
    off(event: string, listener: (event: any) => void): void;
    getVideoElement(): EventTarget;
}
/** Keeps a dash.js player's connection warm. Call it before `initialize`. It detaches from the
 * player when it stops. */
export declare function attachDash(player: DashPlayer, options?: Options): KeepWarm;
