/** The page's resource timing: what it tells, and room for what is added to it. */
/** As pages have it (Resource Timing, 4.2: at least 250). */
const ENTRIES = 250;
/** Of ours that are made room for at most, some hours' (chosen here). */
const MOST_OURS = 20_000;
/** Whose connections take several requests at once. */
const MULTIPLEXED = /^h[23]/;
export const isMultiplexed = (protocol) => MULTIPLEXED.test(protocol ?? "");
/** Of the connection that a URL came over; servers of other origins may not tell. */
export function protocolOf(url) {
    const name = absolute(url)?.href;
    if (name === undefined || !("getEntriesByName" in performance))
        return undefined;
    const entries = performance.getEntriesByName(name, "resource");
    return entries[entries.length - 1]?.nextHopProtocol || undefined;
}
/** `undefined` where it has no origin. */
export function absolute(url) {
    try {
        return new URL(url, globalThis.location?.href);
    }
    catch {
        return undefined;
    }
}
/** Gives the page's resource timing as many entries more as are ours, where it is full. */
export class Room {
    #ours = 0;
    #given = 0;
    #ends;
    /** An entry of ours is about to be made. */
    take() {
        this.#ours += 1;
        if (this.#ends || typeof performance.setResourceTimingBufferSize !== "function")
            return;
        const full = () => this.#grow();
        performance.addEventListener("resourcetimingbufferfull", full);
        this.#ends = () => performance.removeEventListener("resourcetimingbufferfull", full);
    }
    end() {
        this.#ends?.();
        this.#ends = undefined;
    }
    #grow() {
        const entries = performance.getEntriesByType("resource").length;
        const more = Math.min(this.#ours, MOST_OURS) - this.#given;
        // The page may have made room by itself.
        if (entries === 0 || more <= 0)
            return;
        this.#given += more;
        performance.setResourceTimingBufferSize(Math.max(entries, ENTRIES) + more);
    }
}
