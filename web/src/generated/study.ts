// Made by `npm run types` from docs/schema/study.json. Do not edit.

/**
 * What a figure draws.
 */
export type Plot =
  | {
      kind: "cumulative";
      of: Cumulative;
    }
  | {
      kind: "density";
      of: Density;
    }
  | {
      kind: "bandwidth";
      /**
       * One flow each.
       */
      flows: BandwidthTimeline[];
    }
  | {
      kind: "excerpt";
      flow: FlowPlot;
    }
  | {
      kind: "flow";
      /**
       * Number of the flow.
       */
      flow: number;
      /**
       * Available bandwidth in bit/s, for the ideal case.
       */
      ideal_bps?: number | null;
    }
  | {
      kind: "requests";
      of: Requests;
    };

/**
 * A JSON document.
 */
export interface StudyDocument {
  /**
   * The document's name, which is the command's name.
   */
  document: string;
  /**
   * Its version.
   */
  version: number;
  /**
   * The program and version that made it.
   */
  made_by: string;
  headline: Headline;
  packets: PacketReport;
  /**
   * The paper's figures 2, 3, 5 to 8, 10, 13 to 16 and 21 to 24.
   */
  figures: Figure[];
  /**
   * Flows as graphs.
   */
  flows: FlowPlot1[];
  left_out: FlowCounts;
  /**
   * Why there are no flows; null if there are.
   */
  flows_missing?: string | null;
}
/**
 * Notable results, and next steps.
 */
export interface Headline {
  /**
   * In one sentence.
   */
  says: string;
  /**
   * Notable results, in descending order of weight.
   */
  findings: Finding[];
  /**
   * Limits of the trust in the rest.
   */
  cautions: string[];
  /**
   * If it was captured at the phone: that the flows' round trips are those to the client, which
   * do not include the network.
   */
  at_phone?: string | null;
}
/**
 * A notable result.
 */
export interface Finding {
  /**
   * The result in a few words.
   */
  what: string;
  /**
   * Its evidence.
   */
  evidence: string;
  /**
   * The next step.
   */
  next_step: string;
  /**
   * The paper's figure that shows it.
   */
  figure?: number | null;
  /**
   * The flow that shows it best.
   */
  flow?: number | null;
  /**
   * Rank: the affected share of the capture, 0 to 1.
   */
  weight: number;
}
/**
 * The result of `airmile packets`.
 */
export interface PacketReport {
  /**
   * The captures.
   */
  files: FileReport[];
  /**
   * The capture in words.
   */
  says: string;
  /**
   * Notable results, and next steps. Null in a page, which has them elsewhere.
   */
  headline?: Headline1 | null;
  quality: Quality;
  /**
   * First packet of a flow, in microseconds since the Unix epoch.
   */
  start_us?: number | null;
  /**
   * Last packet of a flow.
   */
  end_us?: number | null;
  /**
   * User sessions.
   */
  users: number;
  /**
   * TCP flows.
   */
  tcp_flows: number;
  /**
   * UDP flows.
   */
  udp_flows: number;
  /**
   * Large flows: over 1 MB down in over 5 s.
   */
  large_flows: number;
  /**
   * Flows by the rule that identified their client.
   */
  client_by: {
    [k: string]: number;
  };
  /**
   * TCP flows by termination.
   */
  terminations: {
    [k: string]: number;
  };
  /**
   * Flows and bytes by application, if it is known.
   */
  applications: {
    [k: string]: Share;
  };
  /**
   * Bytes of HTTP responses by the paper's classes.
   */
  http_bytes: {
    [k: string]: number;
  };
  /**
   * Large flows' congestion control, inferred.
   */
  congestion_controls: {
    [k: string]: number;
  };
  /**
   * Periodic requests.
   */
  periodic: PeriodicRequests[];
  /**
   * Figures of the capture and the paper's.
   */
  summary: Compared[];
  /**
   * Table 1 of the paper, with this capture.
   */
  table1: Table1Row[];
  /**
   * Curves of the paper's figures from this capture: points of value and share.
   */
  curves: {
    [k: string]: [unknown, unknown][];
  };
  /**
   * `given`: windows with at least this sending rate show the bandwidth; `auto`: those
   * whose segments were queued.
   */
  send_rate_by: string;
  /**
   * Minimum sending rate of windows that show the bandwidth, in bit/s; with `auto`,
   * the rate that 95 % of those windows reached. Null: no such window.
   */
  send_rate_bar_bps?: number | null;
  /**
   * The flows with the most payload, in order of their first packets; the table
   * `flows` has all. Empty in a page.
   */
  flows: FlowEntry[];
  /**
   * Number of other flows.
   */
  flows_left_out: number;
}
/**
 * The contents of a file, as `inspect` reports them.
 */
export interface FileReport {
  /**
   * The name under which it was opened.
   */
  path: string;
  /**
   * Its format.
   */
  kind: string;
  /**
   * Its compression.
   */
  compression: "none" | "gzip" | "zstd";
  /**
   * Bytes, decompressed.
   */
  bytes: number;
  /**
   * First time in it, in microseconds since the Unix epoch.
   */
  start_us?: number | null;
  /**
   * Last time in it, in microseconds since the Unix epoch.
   */
  end_us?: number | null;
  /**
   * Rows of a table, frames of a log.
   */
  items: number;
  /**
   * Frames with a bad CRC or length, unreadable rows.
   */
  bad_items: number;
  /**
   * Records read from it, by type.
   */
  records: {
    [k: string]: number;
  };
  /**
   * Messages of a log, by code and version.
   */
  messages: MessageRow[];
  /**
   * User downlink grants per subscription of a multi-SIM phone.
   */
  subscriptions: {
    /**
     * This interface was referenced by `undefined`'s JSON-Schema definition
     * via the `patternProperty` "^\d+$".
     */
    [k: string]: number;
  };
  /**
   * Records that arrived after their time had been judged; left out of bursts.
   */
  late_records: number;
  /**
   * Problems, the first ones as text.
   */
  problems: Problem[];
  /**
   * Problems beyond those.
   */
  more_problems: number;
  /**
   * Whether bytes or rows were lost to damage.
   */
  damaged: boolean;
  /**
   * Why the result is not from the file; null if it is.
   */
  left_out?: string | null;
}
/**
 * Count of a message in a log.
 */
export interface MessageRow {
  /**
   * Log code, as in `0xB173`.
   */
  code: string;
  /**
   * Name.
   */
  name: string;
  /**
   * Version: the first payload byte.
   */
  version?: number | null;
  /**
   * Major version, of NR messages; the first byte is then the minor one.
   */
  major?: number | null;
  /**
   * Version of its first subpacket, if it has subpackets.
   */
  subpacket_version?: number | null;
  /**
   * Number of messages.
   */
  count: number;
  /**
   * Number of decoded messages.
   */
  decoded: number;
}
/**
 * A problem of an input, with its position.
 */
export interface Problem {
  /**
   * Byte offset in the (uncompressed) input; none if it is of the whole.
   */
  offset?: number | null;
  /**
   * Its severity.
   */
  severity: "normal" | "warning" | "damage";
  /**
   * A description, with the field if one is known.
   */
  what: string;
}
/**
 * The study in a sentence, and its evidence.
 */
export interface Headline1 {
  /**
   * In one sentence.
   */
  says: string;
  /**
   * Notable results, in descending order of weight.
   */
  findings: Finding[];
  /**
   * Limits of the trust in the rest.
   */
  cautions: string[];
  /**
   * If it was captured at the phone: that the flows' round trips are those to the client, which
   * do not include the network.
   */
  at_phone?: string | null;
}
/**
 * Properties of the capture that decide how far to trust the rest.
 */
export interface Quality {
  /**
   * IP packets.
   */
  packets: number;
  /**
   * Of them, TCP.
   */
  tcp_packets: number;
  /**
   * Of them, UDP.
   */
  udp_packets: number;
  /**
   * IP bytes.
   */
  ip_bytes: number;
  /**
   * Packets out of GTP-U tunnels.
   */
  tunnelled: number;
  /**
   * Packets of which the capture holds less than the payload.
   */
  payload_cut: number;
  /**
   * Packets with truncated TCP options.
   */
  options_cut: number;
  /**
   * Duplicates in the capture, left out of everything else.
   */
  copies: number;
  /**
   * Connections that also begin in an earlier capture, if several were given. If most
   * do, the captures are views of the same traffic, and not studied as one.
   */
  repeated_connections: number;
  /**
   * Connections of which the capture holds both legs, as at a split-connection proxy:
   * the leg towards the server is in the tables, but in no sum.
   */
  split_connections: number;
  /**
   * Packets with a time before the previous packet's.
   */
  steps_back: number;
  /**
   * The largest such step in nanoseconds.
   */
  largest_step_back_ns: number;
  /**
   * TCP flows that had begun before the capture.
   */
  mid_flow: number;
  /**
   * Segments larger than the receiver's MSS: merged by offload (TSO, GRO).
   */
  super_segments: number;
  /**
   * Sequence or acknowledgement numbers far outside the window.
   */
  wild_sequences: number;
  /**
   * Segments captured shortly after their own ACK: the capture is out of order (two
   * taps, several queues).
   */
  late_segments: number;
  /**
   * First fragments of IP packets.
   */
  first_fragments: number;
  /**
   * Other fragments, whose bytes are counted in no flow.
   */
  later_fragments: number;
  /**
   * Datagrams reassembled from fragments.
   */
  reassembled: number;
  /**
   * Datagrams with a missing fragment, counted as far as they were captured.
   */
  incomplete_datagrams: number;
  /**
   * Fragments that repeat bytes of another one; the first one counts.
   */
  overlapping_fragments: number;
  /**
   * Bytes that were acknowledged but not captured.
   */
  unseen_bytes: number;
  /**
   * Flows whose client was inferred from the ports or the first packet alone.
   */
  client_guessed: number;
  /**
   * Large flows that used more than the estimate of the available bandwidth, counted
   * as full use: the windows had a lower bandwidth than the rest.
   */
  use_above_available: number;
}
/**
 * Counts of flows and bytes of a protocol or port.
 */
export interface Share {
  /**
   * Flows.
   */
  flows: number;
  /**
   * Payload bytes, both ways.
   */
  bytes: number;
}
/**
 * Periodic requests of one client to one server.
 */
export interface PeriodicRequests {
  /**
   * The client's address.
   */
  client: string;
  /**
   * The server's address.
   */
  server: string;
  /**
   * Mean interval in seconds.
   */
  period_s: number;
  /**
   * Requests.
   */
  requests: number;
  /**
   * Payload bytes, both ways.
   */
  bytes: number;
  /**
   * Share of the time between the first and the last of them without traffic.
   */
  idle_share: number;
}
/**
 * One figure of this capture, and the paper's.
 */
export interface Compared {
  /**
   * Section of the paper.
   */
  section: string;
  /**
   * What it is.
   */
  what: string;
  /**
   * Unit; `share` is 0 to 1.
   */
  unit: string;
  /**
   * In this capture; null if the capture lacks it.
   */
  here?: number | null;
  /**
   * In the paper (LTE, October 2012).
   */
  paper?: number | null;
  /**
   * Number of values, if known.
   */
  n?: number | null;
}
/**
 * A row of table 1: percentiles of one measure.
 */
export interface Table1Row {
  /**
   * `dl_kbps`, `ul_kbps` or `handshake_rtt_ms`.
   */
  measure: string;
  /**
   * Percentile.
   */
  percentile: number;
  /**
   * In this capture.
   */
  value?: number | null;
  /**
   * The paper's own LTE data.
   */
  paper: number;
  /**
   * 3GTest, worst and best of four carriers (2009).
   *
   * @minItems 2
   * @maxItems 2
   */
  three_g_test: [number, number];
  /**
   * 4GTest over LTE (2011).
   */
  four_g_test_lte: number;
  /**
   * 4GTest over WiMAX (2011).
   */
  four_g_test_wimax: number;
  /**
   * SpeedTest (2011), cellular and WiFi: New York City, Madison, Manchester.
   *
   * @minItems 3
   * @maxItems 3
   */
  speed_test: [[number, number], [number, number], [number, number]];
}
/**
 * One flow: packets of a 5-tuple without a pause of an hour. `dl` is towards the client.
 */
export interface FlowEntry {
  /**
   * Number of the flow: that of its first packet among the IP packets of the capture.
   */
  flow: number;
  /**
   * Number of the user session (table `users`).
   */
  user: number;
  /**
   * `tcp` or `udp`.
   */
  protocol: string;
  /**
   * IP version: 4 or 6.
   */
  ip_version: number;
  /**
   * The client's address.
   */
  client: string;
  /**
   * The client's port.
   */
  client_port: number;
  /**
   * The server's address.
   */
  server: string;
  /**
   * The server's port.
   */
  server_port: number;
  /**
   * Rule that identified the client: `client_net`, `syn`, `private`, `port` or `first_packet`.
   */
  client_by: string;
  /**
   * Time of the first packet in nanoseconds since the Unix epoch.
   */
  start_ns: number;
  /**
   * From the first packet to the last in nanoseconds.
   */
  duration_ns: number;
  /**
   * From the last byte of payload to the last packet in nanoseconds.
   */
  payload_to_end_ns: number | null;
  /**
   * Its termination: `fin`, `rst`, `syn_only`, `idle`, `replaced` by another connection on the same ports, `crowded` out when too many are open (live), or `capture_end`.
   */
  termination: string;
  /**
   * True: the capture began in the middle of it (TCP without a SYN).
   */
  mid_flow: boolean;
  /**
   * True: it used the proxy's ports, so the upstream RTT is to the proxy.
   */
  proxied: boolean;
  /**
   * If the capture holds both legs of a split connection: the leg towards the `client` or the `server`. Null otherwise.
   */
  leg: string | null;
  /**
   * Name of the server, from TLS or QUIC (SNI) or HTTP (Host).
   */
  server_name: string | null;
  /**
   * Application protocol: `http`, `tls`, `quic`, `dns`, or the ALPN name.
   */
  application: string | null;
  /**
   * Packets towards the client, without duplicates of the capture.
   */
  dl_packets: number;
  /**
   * Packets from the client.
   */
  ul_packets: number;
  /**
   * Payload towards the client in bytes, without retransmissions.
   */
  dl_bytes: number;
  /**
   * Payload from the client in bytes, without retransmissions.
   */
  ul_bytes: number;
  /**
   * IP bytes towards the client, headers and retransmissions included.
   */
  dl_ip_bytes: number;
  /**
   * IP bytes from the client.
   */
  ul_ip_bytes: number;
  /**
   * From the first payload towards the client to the last, in nanoseconds.
   */
  dl_data_ns: number;
  /**
   * From the first payload from the client to the last, in nanoseconds.
   */
  ul_data_ns: number;
  /**
   * Longest pause between two packets in nanoseconds.
   */
  max_gap_ns: number;
  /**
   * SYN to SYN-ACK at the monitor: the part towards the server (RFC 9293 handshake; paper 4.2).
   */
  upstream_rtt_ns: number | null;
  /**
   * SYN-ACK to ACK at the monitor: the part towards the client.
   */
  downstream_rtt_ns: number | null;
  /**
   * Promotion delay of the radio in nanoseconds (paper 4.2), if the handshake qualifies.
   */
  promotion_ns: number | null;
  /**
   * Time stamp clock of the client in nanoseconds a tick (paper 6.1, equation 3).
   */
  client_tick_ns: number | null;
  /**
   * Time stamp clock of the server in nanoseconds a tick.
   */
  server_tick_ns: number | null;
  /**
   * MSS of the client's SYN in bytes.
   */
  client_mss_bytes: number | null;
  /**
   * MSS of the server's SYN in bytes.
   */
  server_mss_bytes: number | null;
  /**
   * Window scale of the client.
   */
  client_window_scale: number | null;
  /**
   * Window scale of the server.
   */
  server_window_scale: number | null;
  /**
   * Whether both permit SACK.
   */
  sack: boolean | null;
  /**
   * Whether both sides send time stamps.
   */
  timestamps: boolean | null;
  /**
   * First window of the client after its SYN in bytes, scaled.
   */
  client_initial_window_bytes: number | null;
  /**
   * Smallest window of the client in bytes, scaled.
   */
  client_min_window_bytes: number | null;
  /**
   * First window of the server after its SYN in bytes, scaled.
   */
  server_initial_window_bytes: number | null;
  /**
   * Times that the client's window closed to zero.
   */
  client_zero_windows: number;
  /**
   * Nanoseconds in which less than a segment of the client's window was left.
   */
  window_full_ns: number;
  /**
   * When that first happened, as a share of the flow's duration.
   */
  window_full_first: number | null;
  /**
   * Segments with payload towards the client.
   */
  dl_segments: number;
  /**
   * Segments with payload from the client.
   */
  ul_segments: number;
  /**
   * Retransmitted segments towards the client (without bare FIN and SYN, probes and duplicates of the capture).
   */
  dl_retx: number;
  /**
   * Retransmitted segments from the client.
   */
  ul_retx: number;
  /**
   * Payload towards the client, in bytes, that the capture has a second time: of a segment lost before the capture, it has only the retransmission.
   */
  dl_retx_bytes: number;
  /**
   * Payload from the client, in bytes, that the capture has a second time.
   */
  ul_retx_bytes: number;
  /**
   * Of `dl_retx`: fast retransmissions.
   */
  dl_retx_fast: number;
  /**
   * Of `dl_retx`: by timeout.
   */
  dl_retx_timeout: number;
  /**
   * Of `dl_retx`: tail loss probes (RFC 8985, 7).
   */
  dl_retx_probe: number;
  /**
   * Of `dl_retx`: spurious, the bytes had been acknowledged.
   */
  dl_retx_spurious: number;
  /**
   * Segments towards the client that were reordered on the path.
   */
  dl_reordered: number;
  /**
   * Segments towards the client that passed out of sequence: reordered, or repeated after others.
   */
  dl_out_of_order: number;
  /**
   * Duplicate ACKs of the client (RFC 5681, 2; RFC 6675).
   */
  dl_dup_acks: number;
  /**
   * Duplicate ACKs of the server.
   */
  ul_dup_acks: number;
  /**
   * Keep-alive probes, both ways.
   */
  keep_alives: number;
  /**
   * Probes of a closed window, both ways.
   */
  window_probes: number;
  /**
   * Payload towards the client that was acknowledged but not captured, in bytes.
   */
  dl_unseen_bytes: number;
  /**
   * Payload from the client that was acknowledged but not captured, in bytes.
   */
  ul_unseen_bytes: number;
  /**
   * RTT samples between the monitor and the client.
   */
  rtt_samples: number;
  /**
   * Their minimum in nanoseconds.
   */
  rtt_min_ns: number | null;
  /**
   * Their mean in nanoseconds.
   */
  rtt_mean_ns: number | null;
  /**
   * Their maximum in nanoseconds.
   */
  rtt_max_ns: number | null;
  /**
   * Maximum bytes in flight towards the client.
   */
  max_flight_bytes: number;
  /**
   * Bursts of duplicate ACKs that were followed by a slow start (paper 5, R_ss).
   */
  slow_starts: number;
  /**
   * Bursts of duplicate ACKs in which the sender's timer expired too soon: the retransmission was in flight.
   */
  timers_too_soon: number;
  /**
   * Mean of the available downlink bandwidth in bit/s (paper 6.1, equation 2).
   */
  available_bps: number | null;
  /**
   * Number of windows in that mean.
   */
  available_samples: number;
  /**
   * Mean of the available uplink bandwidth in bit/s.
   */
  ul_available_bps: number | null;
  /**
   * Whether another flow of the user received data at the same time (1 s rule).
   */
  shared: boolean;
  /**
   * The server's congestion control, inferred: `cubic`, `reno`, `bbr` or `unknown`.
   */
  congestion_control: string;
  /**
   * Confidence in it, 0 to 1.
   */
  congestion_control_confidence: number;
  /**
   * Handshake of QUIC: first Initial to the client's first short header packet, in nanoseconds.
   */
  quic_handshake_ns: number | null;
}
/**
 * A figure of the paper, drawn from this capture.
 */
export interface Figure {
  /**
   * Its number in the paper.
   */
  number: number;
  /**
   * Section of the paper.
   */
  section: string;
  /**
   * What it shows.
   */
  title: string;
  /**
   * Its result for this capture, in words.
   */
  says: string;
  /**
   * Its numbers and the paper's.
   */
  key: Compared[];
  /**
   * Why the capture does not allow it; null if it is drawn.
   */
  missing?: string | null;
  /**
   * What is drawn; null if the capture does not allow it.
   */
  plot?: Plot | null;
}
/**
 * The curves.
 */
export interface Cumulative {
  /**
   * Name of the axis.
   */
  axis: string;
  /**
   * Unit: `bytes`, `s`, `ms`, `bit/s`, `share` or empty.
   */
  unit: string;
  /**
   * Whether the axis is logarithmic.
   */
  log: boolean;
  /**
   * The curves, by name of the document's `curves`.
   */
  curves: Curve[];
  /**
   * Points stated in the paper.
   */
  paper: PaperPoint[];
}
/**
 * One curve of a figure.
 */
export interface Curve {
  /**
   * Name in `packets.curves`.
   */
  curve: string;
  /**
   * What it is.
   */
  label: string;
  /**
   * Number of values.
   */
  n: number;
  /**
   * Their 5th, 50th and 95th percentile.
   *
   * @minItems 3
   * @maxItems 3
   */
  percentiles: [number, number, number];
}
/**
 * A point of a curve that the paper states.
 */
export interface PaperPoint {
  /**
   * The curve of this document that it belongs to.
   */
  curve: string;
  /**
   * Value.
   */
  x: number;
  /**
   * Share of values that are not above it.
   */
  y: number;
}
/**
 * The cells.
 */
export interface Density {
  /**
   * Samples in all.
   */
  n: number;
  /**
   * Of them, with nothing else in flight: not in a cell.
   */
  alone: number;
  /**
   * Maximum bytes in flight of a sample.
   */
  most_bytes: number;
  /**
   * `[column by bytes in flight, row by RTT in microseconds, samples]`.
   */
  cells: [number, number, number][];
  /**
   * `[column, median RTT in milliseconds]`, of columns with five samples or more.
   */
  medians_ms: [number, number][];
}
/**
 * Bandwidth of one flow, in windows from its first packet.
 */
export interface BandwidthTimeline {
  /**
   * Number of the flow.
   */
  flow: number;
  /**
   * Its ends.
   */
  label: string;
  /**
   * Length of a window in seconds.
   */
  window_s: number;
  /**
   * Mean of the estimates in a window, in bit/s; null where it has none.
   */
  available_bps: (number | null)[];
  /**
   * Payload that passed for the first time, in bit/s.
   */
  used_bps: number[];
  /**
   * Number of estimates.
   */
  n: number;
}
/**
 * The part.
 */
export interface FlowPlot {
  /**
   * Number of the flow.
   */
  flow: number;
  /**
   * Its ends, the client first.
   */
  label: string;
  /**
   * Name of the server, if it is known.
   */
  server_name?: string | null;
  /**
   * Why it is drawn.
   */
  why: string[];
  /**
   * The flow in words.
   */
  says: string;
  /**
   * Direction of the data that is drawn: `dl` or `ul`.
   */
  dir: "dl" | "ul";
  /**
   * Its first packet, in microseconds since the Unix epoch.
   */
  start_us: number;
  /**
   * The drawn part, from and to, in milliseconds.
   *
   * @minItems 2
   * @maxItems 2
   */
  span_ms: [number, number];
  facts: FlowFacts;
  data: DataRuns;
  acks: AckLine;
  flight: RangeLine;
  rtt: RangeLine1;
  rtt_dup_ack: RangeLine2;
  /**
   * Events out of the ordinary.
   */
  events: EventLine[];
}
/**
 * Numbers of the flow.
 */
export interface FlowFacts {
  /**
   * Payload in the direction drawn, in bytes.
   */
  bytes: number;
  /**
   * First packet to last in milliseconds.
   */
  duration_ms: number;
  /**
   * Segments with payload.
   */
  segments: number;
  /**
   * Of them, retransmitted.
   */
  retx: number;
  /**
   * Duplicate ACKs.
   */
  dup_acks: number;
  /**
   * Bursts of them that a slow start followed.
   */
  slow_starts: number;
  /**
   * Share of the time that the receive window was full.
   */
  window_full_share: number;
  /**
   * Minimum, mean and maximum RTT between monitor and client in milliseconds.
   *
   * @minItems 3
   * @maxItems 3
   */
  rtt_ms?: [number, number, number] | null;
  /**
   * Available bandwidth in bit/s, mean.
   */
  available_bps?: number | null;
  /**
   * The server's congestion control, inferred.
   */
  congestion_control: "bbr" | "cubic" | "reno" | "unknown";
  /**
   * Confidence in it, 0 to 1.
   */
  congestion_control_confidence: number;
  /**
   * Its termination.
   */
  termination:
    "capture_end" | "crowded" | "fin" | "idle" | "open" | "replaced" | "rst" | "syn_only";
}
/**
 * Data that passed for the first time.
 */
export interface DataRuns {
  /**
   * Length of a bin; 0: each segment by itself.
   */
  bin_ms: number;
  /**
   * First segment of the run.
   */
  from_ms: number[];
  /**
   * Last segment of the run.
   */
  to_ms: number[];
  /**
   * First byte.
   */
  from_bytes: number[];
  /**
   * Offset after the last byte.
   */
  to_bytes: number[];
  /**
   * Segments in all.
   */
  segments: number;
}
/**
 * Acknowledgements of it.
 */
export interface AckLine {
  /**
   * Length of a bin, whose last acknowledgement stands for it; 0: each by itself.
   */
  bin_ms: number;
  /**
   * When it passed the monitor.
   */
  at_ms: number[];
  /**
   * Offset after the last byte acknowledged.
   */
  acked_bytes: number[];
  /**
   * The minimum receive window of the bin, in bytes.
   */
  window_bytes: (number | null)[];
  /**
   * Acknowledgements in all.
   */
  acks: number;
}
/**
 * Bytes in flight.
 */
export interface RangeLine {
  /**
   * Length of a bin; 0: each sample by itself.
   */
  bin_ms: number;
  /**
   * Time of the (first) sample.
   */
  at_ms: number[];
  /**
   * Minimum of the bin.
   */
  least: number[];
  /**
   * Maximum of the bin.
   */
  most: number[];
  /**
   * Samples in all.
   */
  n: number;
}
/**
 * RTTs from acknowledgements in milliseconds.
 */
export interface RangeLine1 {
  /**
   * Length of a bin; 0: each sample by itself.
   */
  bin_ms: number;
  /**
   * Time of the (first) sample.
   */
  at_ms: number[];
  /**
   * Minimum of the bin.
   */
  least: number[];
  /**
   * Maximum of the bin.
   */
  most: number[];
  /**
   * Samples in all.
   */
  n: number;
}
/**
 * RTTs from the SACKs of duplicate ACKs in milliseconds.
 */
export interface RangeLine2 {
  /**
   * Length of a bin; 0: each sample by itself.
   */
  bin_ms: number;
  /**
   * Time of the (first) sample.
   */
  at_ms: number[];
  /**
   * Minimum of the bin.
   */
  least: number[];
  /**
   * Maximum of the bin.
   */
  most: number[];
  /**
   * Samples in all.
   */
  n: number;
}
/**
 * Events of one kind.
 */
export interface EventLine {
  /**
   * Kind: as in `tcp_events`, or `sack`: a block reported for the first time.
   */
  event:
    | "ahead"
    | "dsack"
    | "dup_ack"
    | "fin_again"
    | "keep_alive"
    | "recovered"
    | "reordered"
    | "retx_fast"
    | "retx_other"
    | "retx_probe"
    | "retx_spurious"
    | "retx_timeout"
    | "sack"
    | "slow_start"
    | "syn_again"
    | "wild_sequence"
    | "window_full"
    | "window_probe"
    | "zero_window";
  /**
   * Length of a bin, whose events are one mark; 0: a mark each.
   */
  bin_ms: number;
  /**
   * When.
   */
  at_ms: number[];
  /**
   * First byte concerned.
   */
  from_bytes: number[];
  /**
   * Offset after the last one.
   */
  to_bytes: number[];
  /**
   * Events of the mark.
   */
  n: number[];
}
/**
 * The transfers.
 */
export interface Requests {
  /**
   * The client's address.
   */
  client: string;
  /**
   * The server's address.
   */
  server: string;
  /**
   * Mean interval in seconds.
   */
  period_s: number;
  /**
   * Share of the time without traffic to or from the server.
   */
  idle_share: number;
  /**
   * Transfers from the server, by the client's ports.
   */
  transfers: Transfer[];
  /**
   * Packets with payload in no transfer here: beyond the maximum of ports or
   * transfers.
   */
  packets_left_out: number;
  /**
   * Length of a bin of `received_bps` in seconds.
   */
  bin_s: number;
  /**
   * `[start of a bin in seconds, IP bytes towards the client in it as bit/s]`;
   * bins without any are left out.
   */
  received_bps: [number, number][];
}
/**
 * Bytes from the server without a pause of a second.
 */
export interface Transfer {
  /**
   * The client's port.
   */
  port: number;
  /**
   * First packet.
   */
  from_s: number;
  /**
   * Last packet.
   */
  to_s: number;
  /**
   * Payload in bytes.
   */
  bytes: number;
}
/**
 * One direction of a flow over time. Times are in milliseconds from its first packet,
 * offsets in bytes from the first sequence number in the capture. A line with too many
 * points is merged into bins; each gives their length.
 */
export interface FlowPlot1 {
  /**
   * Number of the flow.
   */
  flow: number;
  /**
   * Its ends, the client first.
   */
  label: string;
  /**
   * Name of the server, if it is known.
   */
  server_name?: string | null;
  /**
   * Why it is drawn.
   */
  why: string[];
  /**
   * The flow in words.
   */
  says: string;
  /**
   * Direction of the data that is drawn: `dl` or `ul`.
   */
  dir: "dl" | "ul";
  /**
   * Its first packet, in microseconds since the Unix epoch.
   */
  start_us: number;
  /**
   * The drawn part, from and to, in milliseconds.
   *
   * @minItems 2
   * @maxItems 2
   */
  span_ms: [number, number];
  facts: FlowFacts;
  data: DataRuns;
  acks: AckLine;
  flight: RangeLine;
  rtt: RangeLine1;
  rtt_dup_ack: RangeLine2;
  /**
   * Events out of the ordinary.
   */
  events: EventLine[];
}
/**
 * Flows with data that are not among them.
 */
export interface FlowCounts {
  /**
   * TCP flows with payload.
   */
  flows: number;
  /**
   * Of them, with a retransmission.
   */
  with_retransmissions: number;
  /**
   * Of them, with an undesired slow start.
   */
  with_slow_starts: number;
  /**
   * Of them, limited by the receive window for over 5 % of their time.
   */
  window_limited: number;
}
