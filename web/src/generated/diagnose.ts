// Made by `npm run types` from docs/schema/diagnose.json. Do not edit.

/**
 * Which way the data goes.
 */
export type Direction = "dl" | "ul";
/**
 * What a millisecond of a transfer went to. In order of precedence.
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
 * A document as it goes out.
 */
export interface DiagnoseDocument {
  /**
   * Which document: the command's name.
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
   * The answer for each transfer.
   */
  transfers: TransferDiagnosis[];
  /**
   * Where the transfers are from: `given`, or `detected` in the allocation, or in
   * packets where that was not seen.
   */
  transfers_from: string;
  /**
   * The pages of browsers' logs.
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
   * What applications' logs hold.
   */
  applications: ApplicationSummary[];
  /**
   * What is missing for a better answer, and how to capture it.
   */
  missing: Missing[];
  /**
   * How the files' clocks stand against each other.
   */
  clocks: ClockReport[];
  /**
   * The files.
   */
  files: FileReport[];
}
/**
 * The answer for all transfers together.
 */
export interface SessionVerdict {
  /**
   * Who the bottleneck was.
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
   * How sure that is, 0 to 1.
   */
  confidence: number;
  /**
   * Which way the transfers went that it is about.
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
   * The cause with the largest share, as the verdict leaves them; null without captures.
   */
  leading?: Cause | null;
  /**
   * That share, 0 to 1.
   */
  leading_share?: number | null;
  /**
   * That share at least, by the errors of its parts and from transfer to transfer (95 %).
   */
  leading_share_low?: number | null;
  /**
   * And at most.
   */
  leading_share_high?: number | null;
  /**
   * What they would have taken without the leading cause, and with a shared verdict
   * without the one beside the downlink; empty without captures.
   */
  counterfactuals: Counterfactual[];
  /**
   * The verdict in a sentence.
   */
  says: string;
  /**
   * By packets alone, the most probable first; empty where the radio was seen.
   */
  suspects: Suspicion[];
}
/**
 * What transfers would have taken without a cause.
 */
export interface Counterfactual {
  /**
   * What a millisecond of a transfer went to. In order of precedence.
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
   * At least.
   */
  low_ms: number;
  /**
   * At most.
   */
  high_ms: number;
}
/**
 * Who may have been the bottleneck, by packets alone.
 */
export interface Suspicion {
  /**
   * `radio`, `wireline`, `sender_limited`, `receive_window`, `slow_start_restart`,
   * `first_slow_start`, `uplink_queue`, or `other`: several at once, or none of these.
   */
  suspect: string;
  /**
   * The causes that it stands for. More than one: packets do not part them.
   */
  causes: Cause[];
  /**
   * 0 to 1; those of all suspects add up to 1.
   */
  probability: number;
}
/**
 * The answer for one transfer.
 */
export interface TransferDiagnosis {
  /**
   * The transfer's name.
   */
  id: string;
  /**
   * What the application asked for: a URL, without its query.
   */
  name?: string | null;
  /**
   * Who the bottleneck was.
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
   * How sure that is, 0 to 1.
   */
  confidence: number;
  /**
   * Time in ms by cause; the parts add up to the duration.
   */
  shares: {
    [k: string]: number;
  };
  /**
   * The cause with the largest share, as the verdict leaves them; null without captures.
   */
  leading?: Cause | null;
  /**
   * That share, 0 to 1.
   */
  leading_share?: number | null;
  /**
   * That share at least, by the errors of its parts: ends of bursts, clocks, edges.
   */
  leading_share_low?: number | null;
  /**
   * And at most.
   */
  leading_share_high?: number | null;
  /**
   * What it would have taken without that cause, in ms; with a shared verdict,
   * without the leading cause beside the downlink.
   */
  counterfactual_ms?: number | null;
  /**
   * Without which cause; null without captures: had its data always been there.
   */
  counterfactual_of?: Cause | null;
  /**
   * Why.
   */
  evidence: EvidenceItem[];
  /**
   * What to do next.
   */
  next_step: string;
  /**
   * What the application itself noted down of it; null without its log.
   */
  application?: ApplicationSide | null;
  /**
   * By packets alone, the most probable first; empty where the radio was seen.
   */
  suspects: Suspicion[];
  /**
   * Which way the data goes.
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
   * Rate inside bursts in bits per second: bytes of its bursts / their TTIs,
   * the last ones included.
   */
  burst_throughput_bps?: number | null;
  /**
   * Whether another transfer overlaps it.
   */
  overlapped: boolean;
}
/**
 * A reason: words, a number, and a place on the time axis.
 */
export interface EvidenceItem {
  /**
   * What was seen, in words with the number.
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
   * Where to look: first TTI; of an application's log alone, ms since its first
   * transfer began.
   */
  from_tti: number;
  /**
   * Where to look: end TTI (exclusive).
   */
  to_tti: number;
}
/**
 * What the application itself noted down of a transfer.
 */
export interface ApplicationSide {
  /**
   * What it was.
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
   * Whether it failed or was given up.
   */
  failed: boolean;
  /**
   * In the application's own queue, in ms; here and below null where the log
   * does not tell.
   */
  blocked_ms?: number | null;
  /**
   * Name lookup, in ms.
   */
  dns_ms?: number | null;
  /**
   * TCP handshake, or QUIC's, in ms.
   */
  connect_ms?: number | null;
  /**
   * TLS handshake beside it, in ms.
   */
  tls_ms?: number | null;
  /**
   * Sending the request, in ms.
   */
  send_ms?: number | null;
  /**
   * From the request to the first byte, in ms.
   */
  wait_ms?: number | null;
  /**
   * From the first byte to the last, in ms.
   */
  receive_ms?: number | null;
  /**
   * Stalls of the player that touch it.
   */
  stalls: number;
  /**
   * Their time inside of it, in ms.
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
   * Where the page's requests are from: `log`, which says so, or `pauses` between requests.
   */
  grouped_by: string;
  /**
   * When its load began, in microseconds since the Unix epoch; null where the log does not
   * place its times.
   */
  start_us?: number | null;
  /**
   * What the verdict is about: `first_paint`, `load`, or `last_byte` where the log has
   * neither.
   */
  milestone: "first_paint" | "load" | "last_byte";
  /**
   * How long that took, in ms.
   */
  wait_ms: number;
  /**
   * Until something was painted, in ms.
   */
  first_paint_ms?: number | null;
  /**
   * Until the document was parsed, in ms.
   */
  content_loaded_ms?: number | null;
  /**
   * Until all of it was there, in ms; to the last byte where the log does not say.
   */
  load_ms: number;
  /**
   * Bytes of its requests.
   */
  bytes: number;
  /**
   * What it waited for longest.
   */
  verdict:
    | "browser"
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
   * What the verdict rests on: `log` alone, `packets` too, or `radio` too.
   */
  evidence: string;
  /**
   * Time of the critical path by cause, in ms; the parts add up to `wait_ms`.
   */
  shares: {
    [k: string]: number;
  };
  /**
   * What each fix would save, the largest first.
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
 * What the load would save without a cause.
 */
export interface PageSaving {
  /**
   * Without which cause.
   */
  cause:
    | "browser"
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
   * How much sooner the milestone would be, in ms; what else then takes its place is
   * counted, a link that gets full is not.
   */
  saves_ms: number;
  /**
   * The request of the critical path with most of it.
   */
  request?: string | null;
  /**
   * How much that has, in ms.
   */
  request_ms: number;
  /**
   * The same in a sentence, with what to do.
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
   * What it waited for.
   */
  cause:
    | "browser"
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
   * What it was.
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
   * The request whose answer it waited for before it began; null: the page's start.
   */
  waited_for?: string | null;
  /**
   * Whether it is on the critical path.
   */
  critical: boolean;
  /**
   * Its own longest cause.
   */
  cause:
    | "browser"
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
   * Its time, in order.
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
   * What it waited for.
   */
  cause:
    | "browser"
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
   * The request that was in its way.
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
   * What was asked for, without its query.
   */
  name?: string | null;
  /**
   * How long it took, in ms.
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
   * Who its bottleneck was.
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
 * What the records hold.
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
 * What an application's log holds, all in all.
 */
export interface ApplicationSummary {
  /**
   * The name it was opened by.
   */
  path: string;
  /**
   * Its format.
   */
  kind: string;
  /**
   * What wrote it, as it says.
   */
  made_by?: string | null;
  /**
   * What its times count from.
   */
  clock: "wall" | "unplaced";
  /**
   * How exactly it places its start, in ms.
   */
  placed_within_ms: number;
  /**
   * Whether the transfers above are its own.
   */
  gave_transfers: boolean;
  /**
   * Transfers over the network.
   */
  transfers: number;
  /**
   * Of these, how many failed.
   */
  failed: number;
  /**
   * Requests that the cache answered.
   */
  from_cache: number;
  /**
   * Bytes of its transfers.
   */
  bytes: number;
  /**
   * Time in which any transfer ran, in ms.
   */
  busy_ms: number;
  /**
   * Bytes over that time, in bits per second.
   */
  busy_bps?: number | null;
  /**
   * Times that the picture stood still.
   */
  stalls: number;
  /**
   * How long, in ms; of a stall whose end is not told nothing.
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
   * Least that lay in the player's buffer after the start, in ms.
   */
  least_buffer_ms?: number | null;
  /**
   * What the player noted down, in order.
   */
  events: EventPoint[];
  /**
   * Rates of a speed test, or of a second of QUIC.
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
   * When, in microseconds by the log's clock.
   */
  time_us: number;
  /**
   * What.
   */
  kind: "started" | "stall" | "switch" | "buffer" | "estimate" | "ended" | "failed";
  /**
   * How much: ms of a stall or in the buffer, bits per second of a switch or an
   * estimate.
   */
  value?: number | null;
}
/**
 * A rate over a time.
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
   * Which way the data goes.
   */
  dir: "dl" | "ul";
  /**
   * Bits per second.
   */
  bps: number;
  /**
   * Segments sent again, or packets lost.
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
 * What a file held, as `inspect` gives it.
 */
export interface FileReport {
  /**
   * The name it was opened by.
   */
  path: string;
  /**
   * What it is.
   */
  kind: string;
  /**
   * How it was compressed.
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
   * Frames with a bad CRC or length, rows that could not be read.
   */
  bad_items: number;
  /**
   * Records that came out of it, by type.
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
   * Records that came after their time had been judged; left out of bursts.
   */
  late_records: number;
  /**
   * What was wrong, the first ones in words.
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
   * Version of its first subpacket, where it has subpackets.
   */
  subpacket_version?: number | null;
  /**
   * How many.
   */
  count: number;
  /**
   * How many of them were decoded.
   */
  decoded: number;
}
/**
 * Something wrong in an input, with its place.
 */
export interface Problem {
  /**
   * Byte offset in the (uncompressed) input.
   */
  offset: number;
  /**
   * How much it matters.
   */
  severity: "normal" | "warning" | "damage";
  /**
   * What it is, with the field where one is known.
   */
  what: string;
}
