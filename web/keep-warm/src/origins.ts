/** The servers that a player asks, and how many connections to each there are to keep. */
import { absolute } from "./timing.js";

/** Long pauses before the last that are remembered (chosen here: audio may come with every
 * other segment of video, while the many requests of a start do not come again). */
const REMEMBERED = 1;

interface Origin {
  /** Of its last answer. */
  url: string | undefined;
  open: number;
  /** Requests that were open at once since the last long pause, and before. */
  most: number;
  readonly before: number[];
}

export const originOf = (url: string): string => absolute(url)?.origin ?? "";

/** Over HTTP/1.1 a browser has a connection for each request that is open at once, and
 * gives a later one any of them: each must be warm. */
export class Origins {
  readonly #all = new Map<string, Origin>();

  requested(url: string): void {
    const origin = this.#of(url);
    origin.open += 1;
    origin.most = Math.max(origin.most, origin.open);
  }

  /** `from`: where it came from, in the end. */
  answered(url: string, from: string): void {
    const asked = this.#of(url);
    const origin = this.#of(from);
    if (origin !== asked) {
      // The connections are those of whom it was sent on to.
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
      // Nothing since is nothing to keep.
      if (origin.open === 0 && origin.before.every((most) => most === 0)) this.#all.delete(name);
    }
  }

  /** Each server's last URL, and how many connections it has. */
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
