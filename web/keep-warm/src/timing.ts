/** The page's resource timing: the protocol of connections, and room for our entries. */

/** Default size of the buffer (Resource Timing, 4.2: at least 250). */
const ENTRIES = 250;
/** Maximum number of our entries to make room for, some hours' worth (chosen here). */
const MOST_OURS = 20_000;

/** Protocols whose connections carry several requests at once. */
const MULTIPLEXED = /^h[23]/;

export const isMultiplexed = (protocol: string | undefined): boolean => MULTIPLEXED.test(protocol ?? "");

/** Protocol of the connection that a URL used; servers of other origins may hide it. */
export function protocolOf(url: string): string | undefined {
  const name = absolute(url)?.href;
  if (name === undefined || !("getEntriesByName" in performance)) return undefined;
  const entries = performance.getEntriesByName(name, "resource") as { nextHopProtocol?: string }[];
  return entries[entries.length - 1]?.nextHopProtocol || undefined;
}

/** `undefined` if it has no origin. */
export function absolute(url: string): URL | undefined {
  try {
    return new URL(url, (globalThis as { location?: Location }).location?.href);
  } catch {
    return undefined;
  }
}

/** Enlarges the page's resource timing buffer by the number of our entries when it is full. */
export class Room {
  #ours = 0;
  #given = 0;
  #ends: (() => void) | undefined;

  /** Called before an entry of ours is made. */
  take(): void {
    this.#ours += 1;
    if (this.#ends || typeof performance.setResourceTimingBufferSize !== "function") return;
    const full = () => this.#grow();
    performance.addEventListener("resourcetimingbufferfull", full);
    this.#ends = () => performance.removeEventListener("resourcetimingbufferfull", full);
  }

  end(): void {
    this.#ends?.();
    this.#ends = undefined;
  }

  #grow(): void {
    const entries = performance.getEntriesByType("resource").length;
    const more = Math.min(this.#ours, MOST_OURS) - this.#given;
    // The page may have made room itself.
    if (entries === 0 || more <= 0) return;
    this.#given += more;
    performance.setResourceTimingBufferSize(Math.max(entries, ENTRIES) + more);
  }
}
