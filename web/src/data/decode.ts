/** The arrays of a report: base64, gzip, little-endian. */

export type ArrayKind = "u8" | "u16" | "i16" | "u32";
export type NumberArray = Uint8Array | Uint16Array | Int16Array | Uint32Array;

/** Data of the page in addition to the document; written by `write::report`. */
export interface SeriesHead {
  /** TTI index of the axis' origin. */
  first_tti: number;
  /** TTIs from the origin to the end. */
  n_tti: number;
  tti_ms: number;
  block_ttis: number;
  share_steps: number;
  /** `[TTIs from the origin, microseconds since the Unix epoch]`, ascending. */
  anchors: [number, number][];
  /** Names of the evidence that opens and closes bursts, by code. */
  bounds: string[];
  /** The capture from which bytes in flight are derived. */
  capture: string | null;
  /** Names of applications' marks, by code. */
  marks: string[];
  /** Names of causes, by code. */
  causes: string[];
  /** For each transfer and each of its pieces of evidence, the capture's first and last frame, as Wireshark numbers them. */
  frames: ([number, number] | null)[][];
  /** Number of marks that are not in the page. */
  more_marks: number;
  /** What each transfer would have taken without its cause, as a sentence. */
  savings: (string | null)[];
  directions: Record<string, { bursts: number; blocks: number }>;
  arrays: Record<string, { type: ArrayKind; length: number }>;
}

/** Number of characters decoded at a time; a multiple of four. */
const PIECE = 1 << 20;

/** Newer browsers decode by themselves, many times as fast. */
const NATIVE = Uint8Array as { fromBase64?: (text: string) => Uint8Array<ArrayBuffer> };

export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  if (NATIVE.fromBase64) return NATIVE.fromBase64(text);
  const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
  const bytes = new Uint8Array((text.length / 4) * 3 - padding);
  let at = 0;
  for (let from = 0; from < text.length; from += PIECE) {
    const piece = atob(text.slice(from, from + PIECE));
    for (let i = 0; i < piece.length; i++) bytes[at++] = piece.charCodeAt(i);
  }
  return bytes;
}

export async function gunzip(bytes: Uint8Array<ArrayBuffer>): Promise<ArrayBuffer> {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

/** The arrays are little-endian, as are all machines with browsers. */
export function typed(kind: ArrayKind, buffer: ArrayBuffer): NumberArray {
  switch (kind) {
    case "u8":
      return new Uint8Array(buffer);
    case "u16":
      return new Uint16Array(buffer);
    case "i16":
      return new Int16Array(buffer);
    case "u32":
      return new Uint32Array(buffer);
  }
}

/** Arrays by name; one that the report does not contain is empty. */
export class Arrays {
  constructor(private readonly arrays: Map<string, NumberArray>) {}

  static async decode(
    head: SeriesHead,
    textOf: (name: string) => string | undefined,
  ): Promise<Arrays> {
    const all = Object.entries(head.arrays).map(async ([name, { type, length }]) => {
      const array = typed(type, await gunzip(fromBase64(textOf(name) ?? "")));
      if (array.length !== length) throw new Error(`${name}: ${array.length} of ${length} values`);
      return [name, array] as const;
    });
    return new Arrays(new Map(await Promise.all(all)));
  }

  u8(name: string): Uint8Array {
    const array = this.arrays.get(name);
    return array instanceof Uint8Array ? array : new Uint8Array();
  }

  u16(name: string): Uint16Array {
    const array = this.arrays.get(name);
    return array instanceof Uint16Array ? array : new Uint16Array();
  }

  i16(name: string): Int16Array {
    const array = this.arrays.get(name);
    return array instanceof Int16Array ? array : new Int16Array();
  }

  u32(name: string): Uint32Array {
    const array = this.arrays.get(name);
    return array instanceof Uint32Array ? array : new Uint32Array();
  }
}
