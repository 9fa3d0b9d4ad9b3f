/** What limited the phone over time. */

import type { Spans } from "./spans";

export class Causes {
  constructor(
    readonly names: string[],
    private readonly code: Uint8Array,
    readonly spans: Spans,
  ) {}

  private name(i: number): string {
    return this.names[this.code[i] ?? -1] ?? "unknown";
  }

  /** The cause at a time; `null` outside of transfers. */
  at(t: number): string | null {
    const i = this.spans.at(t);
    return i < 0 ? null : this.name(i);
  }

  /** TTIs of `[from, to)` by cause, in the order of the names. */
  within(from: number, to: number): [string, number][] {
    const ttis = this.names.map(() => 0);
    const { start, end } = this.spans;
    const [first, last] = this.spans.within(from, to);
    for (let i = first; i < last; i++) {
      const code = this.code[i] ?? 0;
      const span = Math.min(to, end[i] ?? 0) - Math.max(from, start[i] ?? 0);
      ttis[code] = (ttis[code] ?? 0) + Math.max(0, span);
    }
    return ttis.flatMap((n, code) => (n > 0 ? [[this.names[code] ?? "unknown", n]] : []));
  }
}
