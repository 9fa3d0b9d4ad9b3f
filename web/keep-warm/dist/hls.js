/** A loader that reports its fragments to `warm`:
 * `new Hls({ fLoader: hlsLoader(warm, Hls.DefaultConfig.loader) })`. */
export function hlsLoader(warm, base) {
    return class extends base {
        #ticket;
        /** Reports a request that was cancelled before it was made. */
        #abort;
        load(context, config, callbacks) {
            const ticket = warm.requested(context.url);
            this.#ticket = ticket;
            const reporting = {
                ...callbacks,
                onSuccess: (response, stats, ...rest) => {
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
                if (this.stats)
                    this.stats.aborted = true;
                callbacks.onAbort?.(this.stats, context, null);
            };
            void ticket.ready.then(() => {
                // It may have been cancelled in the meantime.
                if (this.#ticket !== ticket)
                    return;
                this.#abort = undefined;
                super.load(context, config, reporting);
            });
        }
        abort() {
            this.#giveUp();
            const abort = this.#abort;
            this.#abort = undefined;
            // The callback may destroy this loader.
            abort?.();
            super.abort();
        }
        destroy() {
            this.#giveUp();
            this.#abort = undefined;
            super.destroy();
        }
        #giveUp() {
            // Does nothing after the answer was reported.
            this.#ticket?.failed();
            this.#ticket = undefined;
        }
    };
}
