/** A flow's lines for the plots: the data in a range of time. */

import type { EventLine, FlowPlot } from "../generated/study";
import { firstFrom } from "./lines";

/** Units of a flow's time axis in ms; `View` goes no closer than 20 of them. */
export const UNIT_MS = 0.1;

/** Indexes of `[from, to]`, with one more on each side, so that lines reach the edges. */
export function around(at: number[], from: number, to: number): [number, number] {
  return [Math.max(0, firstFrom(at, from) - 1), Math.min(at.length, firstFrom(at, to) + 1)];
}

/** The last index with `at[i] <= t`, or -1. */
export function lastBefore(at: number[], t: number): number {
  const i = firstFrom(at, t);
  return at[i] === t ? i : i - 1;
}

export interface Extent {
  least: number;
  most: number;
}

/**
 * Minimum and maximum offset of the data drawn in a range: data, acknowledgements
 * and events, and the window's edge unless that would compress the rest.
 */
export function offsets(flow: FlowPlot, from: number, to: number): Extent {
  let least = Infinity;
  let most = -Infinity;
  const take = (low: number, high: number): void => {
    least = Math.min(least, low);
    most = Math.max(most, high);
  };
  const { data, acks } = flow;
  for (let i = firstFrom(data.to_ms, from); i < data.from_ms.length; i++) {
    if ((data.from_ms[i] as number) > to) break;
    take(data.from_bytes[i] as number, data.to_bytes[i] as number);
  }
  const [first, end] = around(acks.at_ms, from, to);
  for (let i = first; i < end; i++) take(acks.acked_bytes[i] as number, acks.acked_bytes[i] as number);
  for (const line of flow.events) {
    const last = firstFrom(line.at_ms, to);
    for (let i = firstFrom(line.at_ms, from); i < last; i++) {
      take(line.from_bytes[i] as number, line.to_bytes[i] as number);
    }
  }
  if (least > most) return { least: 0, most: 1 };
  const room = Math.max(1, most - least);
  let edge = most;
  for (let i = first; i < end; i++) edge = Math.max(edge, windowEdge(flow, i) ?? edge);
  return { least: least - room * 0.03, most: Math.min(edge, most + room * 0.5) + room * 0.03 };
}

/** Offset after the last byte that the window allowed at an acknowledgement. */
export function windowEdge(flow: FlowPlot, i: number): number | null {
  const window = flow.acks.window_bytes[i];
  const acked = flow.acks.acked_bytes[i];
  return typeof window === "number" && acked !== undefined ? acked + window : null;
}

/** Number of events of a line in a range; merged ones count with their number. */
export function countIn(line: EventLine, from: number, to: number): number {
  let n = 0;
  const last = firstFrom(line.at_ms, to + 1e-6);
  for (let i = firstFrom(line.at_ms, from); i < last; i++) n += line.n[i] as number;
  return n;
}

/** Maximum of the values of a range. */
export function mostIn(at: number[], values: (number | null)[], from: number, to: number): number {
  const [first, end] = around(at, from, to);
  let most = 0;
  for (let i = first; i < end; i++) most = Math.max(most, values[i] ?? 0);
  return most;
}
