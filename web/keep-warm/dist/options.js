/** Options of a page, and their defaults. */
import { RADIO } from "./radio.js";
import { protocolOf } from "./timing.js";
const CLOCK = {
    now: () => performance.now(),
    after: (ms, call) => {
        const timer = setTimeout(call, ms);
        return () => clearTimeout(timer);
    },
};
const defaults = () => ({
    fetch: (url, init) => globalThis.fetch(url, init),
    clock: CLOCK,
    headers: {},
    credentials: "same-origin",
    maxShare: 0.02,
    maxBytesPerMinute: 250_000,
    maxErrors: 3,
    maxPauseMs: 30_000,
    maxConnections: 4,
    protocol: protocolOf,
    resourceTiming: "grow",
    saveData: "respect",
    radio: RADIO,
    url: undefined,
    onChange: undefined,
});
/** Fills in defaults for options that are absent or `undefined`. A limit that is not a number
 * is an error, because nothing would ever reach it. */
export function settle(options) {
    const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
    const settled = { ...defaults(), ...given };
    for (const name of ["maxShare", "maxBytesPerMinute", "maxErrors", "maxPauseMs", "maxConnections"]) {
        if (!(settled[name] >= 0))
            throw new TypeError(`${name} is ${settled[name]}, not a number of 0 or more`);
    }
    return settled;
}
