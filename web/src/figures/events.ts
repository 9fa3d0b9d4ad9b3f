/** Marks and names of a flow's unusual events. */

import { h } from "../dom";
import { count } from "../format";
import type { FlowPlot } from "../generated/study";

export interface EventStyle {
  /** A distinct sign, so that colour is not needed. */
  glyph: string;
  colour: string;
  words: string;
  /** Listed in the table of events, not only drawn. */
  listed: boolean;
}

const style = (glyph: string, colour: string, words: string, listed = true): EventStyle => ({
  glyph,
  colour,
  words,
  listed,
});

/** In the order of the legend. */
export const EVENTS: Record<string, EventStyle> = {
  retx_fast: style("▲", "retx", "fast retransmission"),
  retx_timeout: style("■", "timeout", "retransmission by timeout"),
  retx_probe: style("◆", "retx", "tail loss probe"),
  retx_spurious: style("✕", "muted", "spurious retransmission"),
  retx_other: style("●", "retx", "retransmission, reason unknown"),
  slow_start: style("↓", "timeout", "undesired slow start follows"),
  recovered: style("↑", "ack", "recovered without a slow start"),
  reordered: style("○", "sack", "reordered"),
  ahead: style("▽", "muted", "ahead of a gap"),
  dup_ack: style("–", "ack", "duplicate ACK", false),
  sack: style("|", "sack", "SACK block", false),
  zero_window: style("Z", "window", "window closed to zero"),
  window_full: style("▾", "window", "window full"),
  window_probe: style("P", "window", "probe of a closed window"),
  keep_alive: style("K", "muted", "keep-alive"),
  syn_again: style("S", "timeout", "SYN sent again"),
  fin_again: style("F", "timeout", "FIN sent again"),
  wild_sequence: style("?", "muted", "implausible sequence number"),
};

const UNKNOWN = style("·", "muted", "event");

export function eventStyle(name: string): EventStyle {
  return EVENTS[name] ?? { ...UNKNOWN, words: name.replaceAll("_", " ") };
}

/** Lines and signs of a time-sequence graph, with the number of each sign. */
export function sequenceLegend(flow: FlowPlot, ideal = false): HTMLElement {
  const list = h("ul", { class: "legend" });
  const line = (name: string, text: string): void =>
    list.append(h("li", {}, h("span", { class: `swatch line-${name}` }), text));
  line("data", "data");
  line("ack", "acknowledged");
  if (flow.acks.window_bytes.some((w) => typeof w === "number")) line("window", "limit of the receive window, unless far above");
  if (ideal) line("ideal", "ideal: at the available bandwidth");
  for (const [name, style] of Object.entries(EVENTS)) {
    const found = flow.events.filter((each) => each.event === name);
    const n = found.reduce((sum, each) => sum + each.n.reduce((a, b) => a + b, 0), 0);
    if (n === 0) continue;
    const glyph = h("span", { class: `glyph ${style.colour}`, "aria-hidden": "true" }, style.glyph);
    list.append(h("li", {}, glyph, `${style.words} (${count(n)})`));
  }
  return list;
}
