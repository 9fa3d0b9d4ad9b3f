/** The servers that a player uses, and the number of connections to keep for each. */
import { absolute } from "./timing.js";

/** Number of long pauses before the last that count (chosen here: audio may be requested with
 * every other segment of video, while the many requests of a start do not repeat). */
const REMEMBERED = 1;

interface Origin {
  /** URL of its last answer. */
  url: string | undefined;
  open: number;
  /** Maximum of simultaneous requests since the last long pause, and before it. */
  most: number;
  readonly before: number[];
}

export const originOf = (url: string): string => absolute(url)?.origin ?? "";

/** Over HTTP/1.1 a browser has a connection for each simultaneous request, and may use any of
 * them for a later one: each must be warm. */
export class Origins {
  readonly #all = new Map<string, Origin>();

  requested(url: string): void {
    const origin = this.#of(url);
    origin.open += 1;
    origin.most = Math.max(origin.most, origin.open);
  }

  /** `from`: the URL after redirects. */
  answered(url: string, from: string): void {
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

  closed(url: string): void {
    const origin = this.#of(url);
    origin.open = Math.max(0, origin.open - 1);
  }

  /** A long pause has ended. */
  paused(): void {
    for (const [name, origin] of this.#all) {
      origin.before.push(origin.most);
      if (origin.before.length > REMEMBERED) origin.before.shift();
      origin.most = origin.open;
      // An unused server has no connection to keep.
      if (origin.open === 0 && origin.before.every((most) => most === 0)) this.#all.delete(name);
    }
  }

  /** Each server's last URL and number of connections. */
  connections(): { url: string; most: number }[] {
    return [...this.#all.values()].flatMap(({ url, most, before }) =>
      url === undefined ? [] : [{ url, most: Math.max(most, ...before) }],
    );
  }

  #of(url: string): Origin {
    const name = originOf(url);
    const known = this.#all.get(name);
    if (known) return known;
    const made = { url: undefined, open: 0, most: 0, before: [] };
    this.#all.set(name, made);
    return made;
  }
}
