/** hls.js, from version 1 on. */
import type { KeepWarm } from "./keep_warm.js";
import type { Ticket } from "./ticket.js";

interface Context {
  url: string;
}
interface LoaderStats {
  loaded: number;
  loading: { start: number; first: number; end: number };
}
interface Callbacks {
  onSuccess(response: any, stats: any, context: any, details: any): void;
  onError(error: any, context: any, details: any, stats: any): void;
  onTimeout(stats: any, context: any, details: any): void;
  onAbort?(stats: any, context: any, details: any): void;
}
interface Loader {
  readonly stats?: { aborted?: boolean } | null;
  load(context: any, config: any, callbacks: any): void;
  abort(): void;
  destroy(): void;
}
export type LoaderClass = new (config: any) => Loader;

/** A loader that reports its fragments to `warm`:
 * `new Hls({ fLoader: hlsLoader(warm, Hls.DefaultConfig.loader) })`. */
export function hlsLoader<Base extends LoaderClass>(warm: KeepWarm, base: Base): Base {
  return class extends (base as LoaderClass) {
    #ticket: Ticket | undefined;
    /** Reports a request that was cancelled before it was made. */
    #abort: (() => void) | undefined;

    override load(context: Context, config: unknown, callbacks: Callbacks): void {
      const ticket = warm.requested(context.url);
      this.#ticket = ticket;
      const reporting: Callbacks = {
        ...callbacks,
        onSuccess: (response, stats: LoaderStats, ...rest) => {
          const { first, end } = stats.loading;
          ticket.answered({ bytes: stats.loaded, firstByteMs: first, endMs: end, url: response.url });
          callbacks.onSuccess(response, stats, ...rest);
        },
        onError: (...all) => {
          ticket.failed();
          callbacks.onError(...all);
        },
        onTimeout: (...all) => {
          ticket.failed();
          callbacks.onTimeout(...all);
        },
      };
      this.#abort = () => {
        if (this.stats) this.stats.aborted = true;
        callbacks.onAbort?.(this.stats, context, null);
      };
      void ticket.ready.then(() => {
        // It may have been cancelled in the meantime.
        if (this.#ticket !== ticket) return;
        this.#abort = undefined;
        super.load(context, config, reporting);
      });
    }

    override abort(): void {
      this.#giveUp();
      const abort = this.#abort;
      this.#abort = undefined;
      // The callback may destroy this loader.
      abort?.();
      super.abort();
    }

    override destroy(): void {
      this.#giveUp();
      this.#abort = undefined;
      super.destroy();
    }

    #giveUp(): void {
      // Does nothing after the answer was reported.
      this.#ticket?.failed();
      this.#ticket = undefined;
    }
  } as unknown as Base;
}
