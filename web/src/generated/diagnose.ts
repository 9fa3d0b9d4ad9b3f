// Made by `npm run types` from docs/schema/diagnose.json. Do not edit.

/**
 * The direction of data.
 */
export type Direction = "dl" | "ul";
/**
 * The cause of a millisecond of a transfer, in order of precedence.
 */
export type Cause =
  | "radio_contention"
  | "radio_signal"
  | "slow_start_restart"
  | "undesired_slow_start"
  | "first_slow_start"
  | "receive_window"
  | "sender_limited"
  | "wireline"
  | "loss_recovery_radio"
  | "loss_recovery_congestion"
  | "setup"
  | "uplink_queue"
  | "unknown";
/**
 * A phase of a request, in order.
 */
export type RequestPhase = "blocked" | "dns" | "connect" | "tls" | "send" | "wait" | "receive";

/**
 * A JSON document.
 */
export interface DiagnoseDocument {
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
  session: SessionVerdict;
  /**
   * The verdict on each transfer.
   */
  transfers: TransferDiagnosis[];
  /**
   * Where the transfers are from: `given`, `captured` (a phone's exchanges), or `detected` in blocks or packets.
   */
  transfers_from: string;
  /**
   * The pages of browser logs.
   */
  pages: Page[];
  /**
   * The players of logs, with what their stalls and changes of bitrate waited for.
   */
  players: PlayerSession[];
  /**
   * Serving cells.
   */
  cells: ServingCell[];
  /**
   * Downlink bandwidth in PRBs.
   */
  n_prb_cell?: number | null;
  evidence_counts: EvidenceCounts;
  /**
   * The contents of application logs.
   */
  applications: ApplicationSummary[];
  /**
   * What is missing for a better result, and how to capture it.
   */
  missing: Missing[];
  /**
   * The offsets between the files' clocks.
   */
  clocks: ClockReport[];
  /**
   * Congestion marks, by direction; empty without a modem log beside a capture, or if no packet was
   * ECN-capable.
   */
  ecn: EcnReport[];
  /**
   * The files.
   */
  files: FileReport[];
}
/**
 * The verdict on all transfers together.
 */
export interface SessionVerdict {
  /**
   * The bottleneck.
   */
  verdict:
    | "radio"
    | "not_radio"
    | "mixed"
    | "radio_contention"
    | "radio_signal"
    | "slow_start_restart"
    | "undesired_slow_start"
    | "first_slow_start"
    | "receive_window"
    | "sender_limited"
    | "wireline"
    | "loss_recovery_radio"
    | "loss_recovery_congestion"
    | "setup"
    | "uplink_queue"
    | "unknown";
  /**
   * Confidence of the verdict, 0 to 1.
   */
  confidence: number;
  /**
   * Direction of the transfers.
   */
  dir?: Direction | null;
  /**
   * Link demand of all of them together.
   */
  link_demand?: number | null;
  /**
   * Time in ms by cause, all of them together; empty without captures.
   */
  shares: {
    [k: string]: number;
  };
  /**
   * The cause with the largest share within the verdict; null without captures.
   */
  leading?: Cause | null;
  /**
   * That share, 0 to 1.
   */
  leading_share?: number | null;
  /**
   * Lower bound of that share, from the errors of its parts and the variation between transfers
   * (95 %).
   */
  leading_share_low?: number | null;
  /**
   * Upper bound.
   */
  leading_share_high?: number | null;
  /**
   * The transfers' duration without the leading cause and, for a shared verdict, without the
   * cause other than the downlink; empty without captures.
   */
  counterfactuals: Counterfactual[];
  /**
   * The verdict in a sentence.
   */
  says: string;
  /**
   * By packets alone, the most probable first; empty if the radio was logged.
   */
  suspects: Suspicion[];
}
/**
 * The duration of transfers without a cause.
 */
export interface Counterfactual {
  /**
   * The cause of a millisecond of a transfer, in order of precedence.
   */
  of:
    | "radio_contention"
    | "radio_signal"
    | "slow_start_restart"
    | "undesired_slow_start"
    | "first_slow_start"
    | "receive_window"
    | "sender_limited"
    | "wireline"
    | "loss_recovery_radio"
    | "loss_recovery_congestion"
    | "setup"
    | "uplink_queue"
    | "unknown";
  /**
   * Time in ms, all of them together.
   */
  ms: number;
  /**
   * Lower bound.
   */
  low_ms: number;
  /**
   * Upper bound.
   */
  high_ms: number;
}
/**
 * A possible bottleneck, by packets alone.
 */
export interface Suspicion {
  /**
   * `radio`, `wireline`, `sender_limited`, `receive_window`, `slow_start_restart`,
   * `first_slow_start`, `uplink_queue`, or `other`: several at once, or none of these.
   */
  suspect: string;
  /**
   * Its causes; packets cannot separate them if there are several.
   */
  causes: Cause[];
  /**
   * 0 to 1; the probabilities of all suspects add up to 1.
   */
  probability: number;
}
/**
 * The verdict on one transfer.
 */
export interface TransferDiagnosis {
  /**
   * The transfer's name.
   */
  id: string;
  /**
   * What the application requested: a URL, without its query.
   */
  name?: string | null;
  /**
   * The bottleneck.
   */
  verdict:
    | "radio"
    | "not_radio"
    | "mixed"
    | "radio_contention"
    | "radio_signal"
    | "slow_start_restart"
    | "undesired_slow_start"
    | "first_slow_start"
    | "receive_window"
    | "sender_limited"
    | "wireline"
    | "loss_recovery_radio"
    | "loss_recovery_congestion"
    | "setup"
    | "uplink_queue"
    | "unknown";
  /**
   * Confidence of the verdict, 0 to 1.
   */
  confidence: number;
  /**
   * Time in ms by cause; the parts add up to the duration.
   */
  shares: {
    [k: string]: number;
  };
  /**
   * The cause with the largest share within the verdict; null without captures.
   */
  leading?: Cause | null;
  /**
   * That share, 0 to 1.
   */
  leading_share?: number | null;
  /**
   * Lower bound of that share, from the errors of its parts: ends of bursts, clocks, edges.
   */
  leading_share_low?: number | null;
  /**
   * Upper bound.
   */
  leading_share_high?: number | null;
  /**
   * Its duration without that cause, in ms; for a shared verdict, without the leading cause
   * other than the downlink.
   */
  counterfactual_ms?: number | null;
  /**
   * Lower bound of that duration.
   */
  counterfactual_low_ms?: number | null;
  /**
   * Upper bound.
   */
  counterfactual_high_ms?: number | null;
  /**
   * The removed cause; null without captures: its data had always been queued.
   */
  counterfactual_of?: Cause | null;
  /**
   * The evidence.
   */
  evidence: EvidenceItem[];
  /**
   * What to do next.
   */
  next_step: string;
  /**
   * The transfer as the application logged it; null without its log.
   */
  application?: ApplicationSide | null;
  /**
   * By packets alone, the most probable first; empty if the radio was logged.
   */
  suspects: Suspicion[];
  /**
   * The direction of data.
   */
  dir: "dl" | "ul";
  /**
   * Start in microseconds since the Unix epoch.
   */
  start_us?: number | null;
  /**
   * End in microseconds since the Unix epoch.
   */
  end_us?: number | null;
  /**
   * First TTI.
   */
  start_tti: number;
  /**
   * End TTI (exclusive).
   */
  end_tti: number;
  /**
   * Duration in ms.
   */
  duration_ms: number;
  /**
   * Bytes.
   */
  bytes?: number | null;
  /**
   * Throughput time in ms.
   */
  throughput_time_ms?: number | null;
  /**
   * Throughput time / duration.
   */
  link_demand?: number | null;
  /**
   * Link throughput in bits per second: bytes / throughput time.
   */
  link_throughput_bps?: number | null;
  /**
   * Rate inside bursts in bits per second: bytes of its bursts / their TTIs, both without the last
   * TTI of each.
   */
  burst_throughput_bps?: number | null;
  /**
   * Whether another transfer overlaps it.
   */
  overlapped: boolean;
}
/**
 * A piece of evidence: a sentence, a number, and a place on the time axis.
 */
export interface EvidenceItem {
  /**
   * The sentence, with the number.
   */
  what: string;
  /**
   * The number.
   */
  value?: number | null;
  /**
   * Its unit; empty for a ratio.
   */
  unit: string;
  /**
   * First TTI of the evidence; for an application's log alone, ms since the start of its first
   * transfer.
   */
  from_tti: number;
  /**
   * End TTI of the evidence (exclusive).
   */
  to_tti: number;
}
/**
 * A transfer as the application logged it.
 */
export interface ApplicationSide {
  /**
   * Kind of transfer.
   */
  kind: "document" | "code" | "image" | "media" | "manifest" | "fetch" | "test" | "other";
  /**
   * Protocol, as in `h2`.
   */
  protocol?: string | null;
  /**
   * The connection that carried it.
   */
  connection?: string | null;
  /**
   * Bitrate of a media segment in bits per second.
   */
  bitrate_bps?: number | null;
  /**
   * Whether it failed or was cancelled.
   */
  failed: boolean;
  /**
   * Time in the application's own queue, in ms; here and below null if the log does not have it.
   */
  blocked_ms?: number | null;
  /**
   * Name lookup, in ms.
   */
  dns_ms?: number | null;
  /**
   * TCP or QUIC handshake, in ms.
   */
  connect_ms?: number | null;
  /**
   * TLS handshake after it, in ms.
   */
  tls_ms?: number | null;
  /**
   * Sending the request, in ms; of an upload, giving it to the system.
   */
  send_ms?: number | null;
  /**
   * From the request to the first byte, in ms; of an upload, most of the sending included.
   */
  wait_ms?: number | null;
  /**
   * From the first byte to the last, in ms.
   */
  receive_ms?: number | null;
  /**
   * Stalls of the player that overlap it.
   */
  stalls: number;
  /**
   * Their time inside it, in ms.
   */
  stalled_ms: number;
}
/**
 * The load of a page.
 */
export interface Page {
  /**
   * Its name in the browser's log, or its number.
   */
  id: string;
  /**
   * Its URL, without its query.
   */
  url: string;
  /**
   * How requests are assigned to the page: by the `log`, or by `pauses` between requests.
   */
  grouped_by: string;
  /**
   * Start of its load, in microseconds since the Unix epoch; null if the log has no absolute
   * times.
   */
  start_us?: number | null;
  /**
   * The milestone of the verdict: `first_paint`, `load`, or `last_byte` if the log has neither.
   */
  milestone: "first_paint" | "load" | "last_byte";
  /**
   * Time until the milestone, in ms.
   */
  wait_ms: number;
  /**
   * Time until the first paint, in ms.
   */
  first_paint_ms?: number | null;
  /**
   * Time until the document was parsed, in ms.
   */
  content_loaded_ms?: number | null;
  /**
   * Time until the load event, in ms; until the last byte if the log does not have it.
   */
  load_ms: number;
  /**
   * Bytes of its requests.
   */
  bytes: number;
  /**
   * The cause whose removal saves most; the longest one, if no other saves more or nothing shows that.
   */
  verdict:
    | "browser"
    | "unlogged"
    | "blocked"
    | "dns"
    | "setup"
    | "server"
    | "round_trip"
    | "slow_start"
    | "loss"
    | "receive_window"
    | "uplink_queue"
    | "wireline"
    | "radio"
    | "transfer"
    | "unknown";
  /**
   * The verdict in a sentence.
   */
  says: string;
  /**
   * The evidence of the verdict: `log` alone, also `packets`, or also `radio`.
   */
  evidence: string;
  /**
   * Time of the critical path by cause, in ms; the parts add up to `wait_ms`.
   */
  shares: {
    [k: string]: number;
  };
  /**
   * The saving of each fix, the largest first.
   */
  savings: PageSaving[];
  /**
   * The critical path, from the start on.
   */
  critical_path: PathStep[];
  /**
   * Its requests, by start.
   */
  requests: PageRequest[];
}
/**
 * The time that the load would save without a cause.
 */
export interface PageSaving {
  /**
   * The cause.
   */
  cause:
    | "browser"
    | "unlogged"
    | "blocked"
    | "dns"
    | "setup"
    | "server"
    | "round_trip"
    | "slow_start"
    | "loss"
    | "receive_window"
    | "uplink_queue"
    | "wireline"
    | "radio"
    | "transfer"
    | "unknown";
  /**
   * How much earlier the milestone would be, in ms; includes the next cause in its place, and
   * the time that a link was busy with the page's bytes.
   */
  saves_ms: number;
  /**
   * The request of the critical path with most of it.
   */
  request?: string | null;
  /**
   * That request's part, in ms.
   */
  request_ms: number;
  /**
   * The same as a sentence, with advice.
   */
  says: string;
}
/**
 * A step of the critical path: ms since the page's start.
 */
export interface PathStep {
  /**
   * The request that was waited for; null: the page itself.
   */
  request?: string | null;
  /**
   * Start.
   */
  from_ms: number;
  /**
   * End.
   */
  to_ms: number;
  /**
   * Phase of the request.
   */
  phase?: RequestPhase | null;
  /**
   * The cause of the wait.
   */
  cause:
    | "browser"
    | "unlogged"
    | "blocked"
    | "dns"
    | "setup"
    | "server"
    | "round_trip"
    | "slow_start"
    | "loss"
    | "receive_window"
    | "uplink_queue"
    | "wireline"
    | "radio"
    | "transfer"
    | "unknown";
}
/**
 * A request of a page: ms since the page's start.
 */
export interface PageRequest {
  /**
   * The transfer's name.
   */
  id: string;
  /**
   * Its URL, without its query.
   */
  url: string;
  /**
   * Kind of transfer.
   */
  kind: "document" | "code" | "image" | "media" | "manifest" | "fetch" | "test" | "other";
  /**
   * Protocol, as in `h2`.
   */
  protocol?: string | null;
  /**
   * The connection that carried it.
   */
  connection?: string | null;
  /**
   * Bytes.
   */
  bytes?: number | null;
  /**
   * Whether it failed.
   */
  failed: boolean;
  /**
   * Start.
   */
  start_ms: number;
  /**
   * End.
   */
  end_ms: number;
  /**
   * The request whose response it waited for before it started; null: the page's start.
   */
  waited_for?: string | null;
  /**
   * Whether it is on the critical path.
   */
  critical: boolean;
  /**
   * Its longest cause.
   */
  cause:
    | "browser"
    | "unlogged"
    | "blocked"
    | "dns"
    | "setup"
    | "server"
    | "round_trip"
    | "slow_start"
    | "loss"
    | "receive_window"
    | "uplink_queue"
    | "wireline"
    | "radio"
    | "transfer"
    | "unknown";
  /**
   * Its parts, in order.
   */
  parts: RequestPart[];
}
/**
 * A part of a request: ms since the page's start.
 */
export interface RequestPart {
  /**
   * A phase of a request, in order.
   */
  phase: "blocked" | "dns" | "connect" | "tls" | "send" | "wait" | "receive";
  /**
   * The cause of the wait.
   */
  cause:
    | "browser"
    | "unlogged"
    | "blocked"
    | "dns"
    | "setup"
    | "server"
    | "round_trip"
    | "slow_start"
    | "loss"
    | "receive_window"
    | "uplink_queue"
    | "wireline"
    | "radio"
    | "transfer"
    | "unknown";
  /**
   * Start.
   */
  from_ms: number;
  /**
   * End.
   */
  to_ms: number;
  /**
   * The request that blocked it.
   */
  blocked_by?: string | null;
}
/**
 * The events of a player, with their network causes.
 */
export interface PlayerSession {
  /**
   * The log's name.
   */
  path: string;
  /**
   * Stalls of the playback.
   */
  stalls: PlayerStall[];
  /**
   * Changes of the bitrate.
   */
  switches: PlayerSwitch[];
  /**
   * Time of the segments that stalls waited for, by cause, in ms.
   */
  shares: {
    [k: string]: number;
  };
  /**
   * A summary in a sentence.
   */
  says: string;
}
/**
 * A stall of the playback.
 */
export interface PlayerStall {
  /**
   * Its start, in microseconds by the log's clock.
   */
  at_us: number;
  /**
   * Its length in ms; null if the log does not have its end.
   */
  duration_ms?: number | null;
  /**
   * The segment that it waited for.
   */
  segment?: SegmentWait | null;
  /**
   * The same as a sentence.
   */
  says: string;
}
/**
 * A segment, and what its transfer waited for.
 */
export interface SegmentWait {
  /**
   * The transfer's name.
   */
  id: string;
  /**
   * The requested URL, without its query.
   */
  name?: string | null;
  /**
   * Its duration in ms.
   */
  duration_ms: number;
  /**
   * Its rate in bits per second.
   */
  bps?: number | null;
  /**
   * Its bitrate in bits per second.
   */
  bitrate_bps?: number | null;
  /**
   * Its bottleneck.
   */
  verdict:
    | "radio"
    | "not_radio"
    | "mixed"
    | "radio_contention"
    | "radio_signal"
    | "slow_start_restart"
    | "undesired_slow_start"
    | "first_slow_start"
    | "receive_window"
    | "sender_limited"
    | "wireline"
    | "loss_recovery_radio"
    | "loss_recovery_congestion"
    | "setup"
    | "uplink_queue"
    | "unknown";
  /**
   * Its time by cause, in ms.
   */
  shares: {
    [k: string]: number;
  };
}
/**
 * A change of the bitrate.
 */
export interface PlayerSwitch {
  /**
   * Its time, in microseconds by the log's clock.
   */
  at_us: number;
  /**
   * The old bitrate in bits per second; null for the first.
   */
  from_bps?: number | null;
  /**
   * The new bitrate in bits per second.
   */
  to_bps?: number | null;
  /**
   * The last segment that arrived before.
   */
  segment?: SegmentWait | null;
  /**
   * The same as a sentence.
   */
  says: string;
}
/**
 * A serving cell that was measured, or only reported in another message.
 */
export interface ServingCell {
  /**
   * Physical cell identity.
   */
  pci?: number | null;
  /**
   * Downlink EARFCN; in NR the NR-ARFCN.
   */
  earfcn?: number | null;
  /**
   * Number of its measurements.
   */
  measurements: number;
}
/**
 * The amount of each kind of evidence.
 */
export interface EvidenceCounts {
  /**
   * User downlink blocks.
   */
  dl_blocks: number;
  /**
   * Blocks of NR, in either direction; the others are LTE's.
   */
  nr_blocks: number;
  /**
   * Downlink blocks with a known number of PRBs.
   */
  dl_blocks_with_prb: number;
  /**
   * Downlink blocks with known padding.
   */
  dl_blocks_with_padding: number;
  /**
   * Downlink blocks with HARQ process and NDI.
   */
  dl_blocks_with_harq: number;
  /**
   * Downlink RLC data PDUs with a poll bit (0 or 1) on data bearers.
   */
  dl_pdus_with_poll: number;
  /**
   * Uplink blocks.
   */
  ul_blocks: number;
  /**
   * Samples of the phone's own buffer.
   */
  buffer_samples: number;
  /**
   * Buffer status reports.
   */
  bsr_reports: number;
  /**
   * Measurements of the serving cell.
   */
  measurements: number;
  /**
   * Handovers, resets and gaps: timing segments after the first.
   */
  timing_changes: number;
  /**
   * Gaps in the log.
   */
  holes: number;
}
/**
 * The contents of an application's log, summarised.
 */
export interface ApplicationSummary {
  /**
   * The path it was opened with.
   */
  path: string;
  /**
   * Its format.
   */
  kind: string;
  /**
   * The program that wrote it, as stated in it.
   */
  made_by?: string | null;
  /**
   * The origin of its times.
   */
  clock: "wall" | "unplaced";
  /**
   * Precision of its start, in ms.
   */
  placed_within_ms: number;
  /**
   * Whether the transfers above are from this log.
   */
  gave_transfers: boolean;
  /**
   * Transfers over the network.
   */
  transfers: number;
  /**
   * Number of failed ones.
   */
  failed: number;
  /**
   * Requests served from the cache.
   */
  from_cache: number;
  /**
   * Bytes of its transfers.
   */
  bytes: number;
  /**
   * Time with at least one transfer, in ms.
   */
  busy_ms: number;
  /**
   * Bytes over that time, in bits per second.
   */
  busy_bps?: number | null;
  /**
   * Number of stalls.
   */
  stalls: number;
  /**
   * Total length of stalls, in ms; a stall without an end in the log counts as zero.
   */
  stalled_ms: number;
  /**
   * Changes of the bitrate.
   */
  switches: number;
  /**
   * Mean bitrate of the media segments, in bits per second.
   */
  mean_bitrate_bps?: number | null;
  /**
   * Minimum of the player's buffer after the start, in ms.
   */
  least_buffer_ms?: number | null;
  /**
   * Events of the player, in order.
   */
  events: EventPoint[];
  /**
   * Rates of a speed test, or of QUIC in each second.
   */
  rates: RateOver[];
  /**
   * The log in a sentence.
   */
  says: string;
}
/**
 * An event of a player.
 */
export interface EventPoint {
  /**
   * Its time, in microseconds by the log's clock.
   */
  time_us: number;
  /**
   * Its kind.
   */
  kind: "started" | "stall" | "switch" | "buffer" | "estimate" | "ended" | "failed";
  /**
   * Its value: ms of a stall or in the buffer, bits per second of a switch or an estimate.
   */
  value?: number | null;
}
/**
 * The rate in an interval.
 */
export interface RateOver {
  /**
   * Start in microseconds by the log's clock.
   */
  start_us: number;
  /**
   * End in microseconds (exclusive).
   */
  end_us: number;
  /**
   * The direction of data.
   */
  dir: "dl" | "ul";
  /**
   * Bits per second.
   */
  bps: number;
  /**
   * Segments retransmitted, or packets lost.
   */
  retransmits?: number | null;
  /**
   * Mean round trip in microseconds.
   */
  rtt_us?: number | null;
}
/**
 * Evidence that the inputs lack.
 */
export interface Missing {
  /**
   * Its kind.
   */
  kind: "radio" | "transfers" | "packets" | "clock" | "application" | "file";
  /**
   * What is missing.
   */
  what: string;
  /**
   * How to capture it.
   */
  how_to_capture: string;
}
/**
 * The offset of a file's clock from another's.
 */
export interface ClockReport {
  /**
   * The file with this clock.
   */
  file: string;
  /**
   * The reference.
   */
  against: string;
  /**
   * The middle of the evidence, in microseconds since the Unix epoch by the reference clock.
   */
  at_us?: number | null;
  /**
   * The clock minus the reference at that time, in ms; null if unknown.
   */
  offset_ms?: number | null;
  /**
   * The clock's rate error against the reference, in parts per million.
   */
  drift_ppm?: number | null;
  /**
   * Maximum error of the offset, in ms.
   */
  error_ms?: number | null;
  /**
   * Another offset that fits nearly as well, in ms: the traffic repeats itself, and the smaller
   * offset was used.
   */
  rival_offset_ms?: number | null;
  /**
   * Pieces of evidence.
   */
  evidence: number;
  /**
   * Whether the file's times were corrected by the offset.
   */
  corrected: boolean;
  /**
   * The same as a sentence.
   */
  says: string;
}
/**
 * Congestion marks on the packets of one direction (RFC 3168; RFC 9331). Packets are those of the
 * capture: where segments are sent or received in larger units, these are counted.
 */
export interface EcnReport {
  /**
   * The direction of data.
   */
  dir: "dl" | "ul";
  /**
   * What shows which packets were marked.
   */
  counted_by: "accurate_ecn" | "arrivals" | "ecn_echo" | "unknown";
  /**
   * ECN-capable packets.
   */
  capable_packets: number;
  /**
   * Of them, with ECT(1), when they were captured: of L4S.
   */
  ect1_packets: number;
  /**
   * Marked packets, at least; null if marks are not visible.
   */
  marked_packets?: number | null;
  /**
   * ECN-capable packets while the queue of the radio link stood: in the phone for the uplink, at the
   * base station for the downlink.
   */
  queued_packets: number;
  /**
   * Of them, marked ones, at least; null if marks are not visible.
   */
  queued_marked_packets?: number | null;
  /**
   * Whether the queue is marked; null if that cannot be told.
   */
  queue_is_marked?: boolean | null;
  /**
   * The same as a sentence.
   */
  says: string;
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
