/** How what is out of the ordinary in a flow is marked and named. */

export interface EventStyle {
  /** A sign of its own, so that colour is not needed. */
  glyph: string;
  colour: string;
  words: string;
  /** Told in the list of events, not only drawn. */
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
  retx_spurious: style("✕", "muted", "needless retransmission"),
  retx_other: style("●", "retx", "retransmission, reason unknown"),
  slow_start: style("↓", "timeout", "undesired slow start follows"),
  recovered: style("↑", "ack", "recovered without a slow start"),
  reordered: style("○", "sack", "overtaken on the way"),
  ahead: style("▽", "muted", "ahead of a gap"),
  dup_ack: style("–", "ack", "duplicate ACK", false),
  sack: style("|", "sack", "SACK block", false),
  zero_window: style("Z", "window", "window closed to zero"),
  window_full: style("▾", "window", "window full"),
  window_probe: style("P", "window", "probe of a closed window"),
  keep_alive: style("K", "muted", "keep-alive"),
  syn_again: style("S", "timeout", "SYN sent again"),
  fin_again: style("F", "timeout", "FIN sent again"),
  wild_sequence: style("?", "muted", "wild sequence number"),
};

const UNKNOWN = style("·", "muted", "event");

export function eventStyle(name: string): EventStyle {
  return EVENTS[name] ?? { ...UNKNOWN, words: name.replaceAll("_", " ") };
}
