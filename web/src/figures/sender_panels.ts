/** Panels of the senders and the application, below the radio's panels. */

import { h } from "../dom";
import { Envelope } from "../data/envelope";
import { bytes, byteTicks, duration, elapsed, plural } from "../format";
import type { Series } from "../series";
import type { View } from "../view";
import { envelopePanel, type RangeOf } from "./envelope_panel";
import { markLanes } from "./mark_lanes";

/** Maximum time in ms for which bytes in flight hold until the next packet. */
const FLIGHT_GAP_MS = 1_000;
const BUFFER_GAP_MS = 20_000;

const rtt = (us: number): string => duration(Math.round(us / 100) / 10);

/** Panels for the available data: bytes in flight and windows, RTT, application, buffer. */
export function senderPanels(
  panel: (title: string) => HTMLElement,
  series: Series,
  view: View,
  onSelect: (from: number, to: number) => void,
): void {
  const { flight, cwnd, rwnd, buffer, marks } = series;
  if (flight.count > 0) {
    const ranges: RangeOf[] = [{ envelope: flight, colour: "flight", style: "area" }];
    if (cwnd.count > 0) ranges.push({ envelope: cwnd, colour: "cwnd", style: "dots" });
    if (rwnd.count > 0) ranges.push({ envelope: rwnd, colour: "rwnd", style: "limit" });
    const title =
      "Bytes in flight to the phone, all connections together (area)" +
      (cwnd.count > 0 ? ", congestion window of each (dots)" : "") +
      (rwnd.count > 0 ? ", receive window of each if it is close (dashed)" : "");
    envelopePanel(panel(title), series, view, ranges, byteTicks, onSelect);
  }
  if (series.rtt.count > 0) {
    const ranges: RangeOf[] = [{ envelope: series.rtt, colour: "rtt", style: "dots" }];
    envelopePanel(panel("Round trips from packets"), series, view, ranges, (ticks) => ticks.map(rtt), onSelect);
  }
  const rates = throughputs(series);
  if (rates.count > 0) {
    const ranges: RangeOf[] = [{ envelope: rates, colour: "request", style: "dots" }];
    const show = (ticks: number[]): string[] => ticks.map((kbps) => String(Math.round(kbps / 100) / 10));
    envelopePanel(panel("Throughput of requests in Mbit/s, at their start"), series, view, ranges, show, onSelect);
  }
  if (marks.count > 0) markLanes(panel("Events of the application"), series, view);
  if (buffer.count > 0) {
    const ranges: RangeOf[] = [
      { envelope: buffer, colour: "buffer", style: "line", gapMs: BUFFER_GAP_MS },
    ];
    envelopePanel(panel("The player's buffer"), series, view, ranges, (ticks) => ticks.map((ms) => elapsed(ms, 100)), onSelect);
  }
}

/** Bytes over duration of each request that has both, in kbit/s. */
export function throughputs({ marks, head }: Series): Envelope {
  const requests = marks.of("request");
  const at: number[] = [];
  const kbps: number[] = [];
  for (let i = 0; i < requests.count; i++) {
    const { from, to, value } = requests.get(i);
    if (to <= from || value === 0) continue;
    at.push(from);
    kbps.push((value * 8) / ((to - from) * head.tti_ms));
  }
  const values = Uint32Array.from(kbps);
  return new Envelope(Uint32Array.from(at), values, values);
}

/** Legend of the application's lanes; `false` if there are none. */
export function senderLegend({ marks, head }: Series): HTMLElement | false {
  const items: [string, string][] = [];
  const add = (name: Parameters<typeof marks.of>[0], fill: string, text: string): void => {
    if (marks.of(name).count > 0) items.push([fill, text]);
  };
  add("request", "request", "request, from start to end");
  add("wait", "wait", "wait for its first byte");
  add("playing", "start", "playback begins");
  add("switch", "switch", "change of bitrate");
  add("stall", "stall", "stall");
  add("failed", "failed", "failed");
  if (items.length === 0) return false;
  const list = h("ul", { class: "legend" });
  for (const [name, text] of items) {
    list.append(h("li", {}, h("span", { class: `swatch fill-${name}` }), text));
  }
  if (head.more_marks > 0) list.append(h("li", {}, `${head.more_marks} more are not included in this page`));
  return list;
}

/** Summary of a range of the axis, in words. */
export function senderSummary(series: Series, from: number, to: number): string[] {
  const parts: string[] = [];
  const flight = series.flight.within(from, to);
  if (flight) parts.push(`at most ${bytes(flight[1])} in flight to the phone on all connections`);
  const trips = series.rtt.within(from, to);
  if (trips) parts.push(`round trips of ${rtt(trips[0])} to ${rtt(trips[1])}`);
  const { marks } = series;
  const counts: string[] = [];
  const requests = marks.of("request").countWithin(from, to);
  if (requests > 0) counts.push(plural(requests, "request"));
  const stalls = marks.of("stall").countWithin(from, to);
  if (stalls > 0) counts.push(plural(stalls, "stall"));
  const switches = marks.of("switch").countWithin(from, to);
  if (switches > 0) counts.push(plural(switches, "change of bitrate", "changes of bitrate"));
  if (counts.length > 0) parts.push(counts.join(", "));
  return parts;
}

/** Values at one time. */
export function senderReadout(series: Series, at: number): string[] {
  const parts: string[] = [];
  const { tti_ms } = series.head;
  const flight = series.flight.before(at, FLIGHT_GAP_MS / tti_ms);
  if (flight) parts.push(`${bytes(flight[1])} in flight to the phone on all connections`);
  const cwnd = series.cwnd.before(at, FLIGHT_GAP_MS / tti_ms);
  if (cwnd) parts.push(`cwnd ${bytes(cwnd[1])}`);
  const rwnd = series.rwnd.before(at, FLIGHT_GAP_MS / tti_ms);
  if (rwnd) parts.push(`rwnd ${bytes(rwnd[0])}`);
  const trip = series.rtt.before(at, FLIGHT_GAP_MS / tti_ms);
  if (trip) parts.push(`RTT ${rtt(trip[1])}`);
  const buffer = series.buffer.before(at, BUFFER_GAP_MS / tti_ms);
  if (buffer) parts.push(`${duration(buffer[0])} in the player's buffer`);
  if (series.marks.of("stall").countWithin(at, at + 1) > 0) parts.push("the player stalls");
  return parts;
}
