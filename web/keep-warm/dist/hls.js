/** A loader of fragments that tells `warm` of them:
 * `new Hls({ fLoader: hlsLoader(warm, Hls.DefaultConfig.loader) })`. */
export function hlsLoader(warm, base) {
    return class extends base {
        #ticket;
        /** Tells of a request that was given up before it was made. */
        #abort;
        load(context, config, callbacks) {
            const ticket = warm.requested(context.url);
            this.#ticket = ticket;
            const told = {
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
                // It may have been given up meanwhile.
                if (this.#ticket !== ticket)
                    return;
                this.#abort = undefined;
                super.load(context, config, told);
            });
        }
        abort() {
            this.#giveUp();
            const abort = this.#abort;
            this.#abort = undefined;
            // Who is told may destroy this.
            abort?.();
            super.abort();
        }
        destroy() {
            this.#giveUp();
            this.#abort = undefined;
            super.destroy();
        }
        #giveUp() {
            // Of one that has come nothing is left to tell.
            this.#ticket?.failed();
            this.#ticket = undefined;
        }
    };
}
