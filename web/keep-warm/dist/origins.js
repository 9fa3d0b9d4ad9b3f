/** The servers that a player uses, and the number of connections to keep for each. */
import { absolute } from "./timing.js";
/** Number of long pauses before the last that count (chosen here: audio may be requested with
 * every other segment of video, while the many requests of a start do not repeat). */
const REMEMBERED = 1;
export const originOf = (url) => absolute(url)?.origin ?? "";
/** Over HTTP/1.1 a browser has a connection for each simultaneous request, and may use any of
 * them for a later one: each must be warm. */
export class Origins {
    #all = new Map();
    requested(url) {
        const origin = this.#of(url);
        origin.open += 1;
        origin.most = Math.max(origin.most, origin.open);
    }
    /** `from`: the URL after redirects. */
    answered(url, from) {
        const asked = this.#of(url);
        const origin = this.#of(from);
        if (origin !== asked) {
            // The connections are those to the target of the redirect.
            origin.most = Math.max(origin.most, asked.most);
            asked.url = undefined;
        }
        origin.url = from;
        this.closed(url);
    }
    closed(url) {
        const origin = this.#of(url);
        origin.open = Math.max(0, origin.open - 1);
    }
    /** A long pause has ended. */
    paused() {
        for (const [name, origin] of this.#all) {
            origin.before.push(origin.most);
            if (origin.before.length > REMEMBERED)
                origin.before.shift();
            origin.most = origin.open;
            // An unused server has no connection to keep.
            if (origin.open === 0 && origin.before.every((most) => most === 0))
                this.#all.delete(name);
        }
    }
    /** Each server's last URL and number of connections. */
    connections() {
        return [...this.#all.values()].flatMap(({ url, most, before }) => url === undefined ? [] : [{ url, most: Math.max(most, ...before) }]);
    }
    #of(url) {
        const name = originOf(url);
        const known = this.#all.get(name);
        if (known)
            return known;
        const made = { url: undefined, open: 0, most: 0, before: [] };
        this.#all.set(name, made);
        return made;
    }
}
