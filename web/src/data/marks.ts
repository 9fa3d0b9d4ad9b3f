/** Events of applications: requests, waits, stalls, changes of bitrate. */

import { firstFrom } from "./lines";

export type MarkName = "request" | "wait" | "stall" | "switch" | "playing" | "failed";

export interface Mark {
  from: number;
  to: number;
  value: number;
}

/** Marks of one kind, by begin. */
export class MarkList {
  /** The longest duration: a mark may begin this long before a span and still touch it. */
  private readonly longest: number;

  constructor(
    readonly from: Uint32Array,
    readonly to: Uint32Array,
    readonly value: Uint32Array,
  ) {
    let longest = 0;
    for (let i = 0; i < from.length; i++) {
      longest = Math.max(longest, (to[i] as number) - (from[i] as number));
    }
    this.longest = longest;
  }

  get count(): number {
    return this.from.length;
  }

  get(i: number): Mark {
    return { from: this.from[i] ?? 0, to: this.to[i] ?? 0, value: this.value[i] ?? 0 };
  }

  /** Indexes of the marks that touch `[from, to)`. */
  *within(from: number, to: number): Generator<number> {
    for (let i = firstFrom(this.from, from - this.longest); i < this.count; i++) {
      if ((this.from[i] as number) >= to) return;
      if ((this.to[i] as number) >= from) yield i;
    }
  }

  /** Number of marks that touch `[from, to)`. */
  countWithin(from: number, to: number): number {
    let n = 0;
    for (const _ of this.within(from, to)) n++;
    return n;
  }
}

/** Marks by their kinds. */
export class Marks {
  private readonly lists = new Map<string, MarkList>();

  constructor(
    names: string[],
    kind: Uint8Array,
    from: Uint32Array,
    to: Uint32Array,
    value: Uint32Array,
  ) {
    names.forEach((name, code) => {
      const at: number[] = [];
      kind.forEach((each, i) => {
        if (each === code) at.push(i);
      });
      const pick = (of: Uint32Array): Uint32Array => Uint32Array.from(at, (i) => of[i] ?? 0);
      this.lists.set(name, new MarkList(pick(from), pick(to), pick(value)));
    });
  }

  of(name: MarkName): MarkList {
    return this.lists.get(name) ?? EMPTY;
  }

  get count(): number {
    return [...this.lists.values()].reduce((sum, list) => sum + list.count, 0);
  }
}

const EMPTY = new MarkList(new Uint32Array(), new Uint32Array(), new Uint32Array());
