//! Sums over the flows of a capture, for its notable results.

use airmile_model::flow::FlowRow;
use airmile_model::{Leg, Protocol, Termination};
use airmile_wire::tcp::utilisation;
use serde::{Deserialize, Serialize};

use super::choice::window_share;

/// Thresholds above which a flow has a trait (chosen here: well off the values usual in
/// the paper).
pub(super) const WINDOW_SHARE: f64 = 0.10;
const INFLATION: f64 = 3.0;
const INFLATED_MS: f64 = 100.0;
const LOW_USE: f64 = 0.5;
/// A queue shows in flows that can fill one, with this many RTT samples.
const QUEUE_SAMPLES: u64 = 50;
const QUEUE_BYTES: u64 = 100_000;
/// Fewer bytes do not make a client one of several (as `--min-bytes` of `diagnose`).
const DOWNLOAD_BYTES: u64 = 20_000;
/// If a flow used more than this share of the estimate, the estimate is wrong.
const OVERUSE: f64 = 1.1;

/// Bytes of flows with a trait, and the flow with the most of them.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct TraitShare {
    pub(super) flows: u64,
    pub(super) bytes: u64,
    best: Option<(u64, u64)>,
}

impl TraitShare {
    fn add(&mut self, row: &FlowRow, bytes: u64) {
        self.flows += 1;
        self.bytes += bytes;
        if self.best.is_none_or(|(most, _)| bytes > most) {
            self.best = Some((bytes, row.flow));
        }
    }

    fn merge(&mut self, other: Self) {
        self.flows += other.flows;
        self.bytes += other.bytes;
        let larger = |(most, flow): (u64, u64)| (most, std::cmp::Reverse(flow));
        self.best = self.best.into_iter().chain(other.best).max_by_key(|best| larger(*best));
    }

    pub(super) fn flow(&self) -> Option<u64> {
        self.best.map(|(_, flow)| flow)
    }
}

/// Sums over the flows with data of one direction.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct DirectionTotals {
    pub(super) bytes: u64,
    pub(super) segments: u64,
    pub(super) retx: u64,
    pub(super) resent: TraitShare,
}

impl DirectionTotals {
    fn add(&mut self, row: &FlowRow, [bytes, segments, retx]: [u64; 3]) {
        self.bytes += bytes;
        self.segments += segments;
        self.retx += retx;
        if bytes > 0 && retx > 0 {
            self.resent.add(row, bytes);
        }
    }

    fn merge(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.segments += other.segments;
        self.retx += other.retx;
        self.resent.merge(other.resent);
    }

    pub(super) fn retx_share(&self) -> f64 {
        self.retx as f64 / self.segments.max(1) as f64
    }

    pub(super) fn share(&self, part: &TraitShare) -> f64 {
        part.bytes as f64 / self.bytes.max(1) as f64
    }
}

/// Sums over the flows that the headline needs in addition to the summary.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Overview {
    pub(super) down: DirectionTotals,
    pub(super) up: DirectionTotals,
    /// Retransmissions to clients by timeout.
    pub(super) timeouts: u64,
    /// Connections that were not answered, and that a RST answered.
    pub(super) unanswered: TraitShare,
    pub(super) refused: TraitShare,
    pub(super) window: TraitShare,
    /// Not limited for long, but the client's window closed.
    pub(super) closed: TraitShare,
    pub(super) closed_times: u64,
    pub(super) server_closed: TraitShare,
    pub(super) queued: TraitShare,
    /// Mean and minimum RTT, weighted by bytes, of queued flows.
    pub(super) rtt_ms: (f64, f64),
    /// Whose sender's timer expired while the retransmission was in flight, and how often.
    pub(super) slow_starts: TraitShare,
    pub(super) timers_too_soon: u64,
    pub(super) unused: TraitShare,
    /// Large flows that used more than their estimated bandwidth.
    pub(super) overused: u64,
    /// A client with a download, by IP version, and whether others had one, too.
    clients: [Option<String>; 2],
    several_clients: bool,
}

impl Overview {
    /// Adds the state of other flows.
    pub(crate) fn merge(&mut self, other: Self) {
        self.down.merge(other.down);
        self.up.merge(other.up);
        self.timeouts += other.timeouts;
        self.unanswered.merge(other.unanswered);
        self.refused.merge(other.refused);
        self.window.merge(other.window);
        self.closed.merge(other.closed);
        self.closed_times += other.closed_times;
        self.server_closed.merge(other.server_closed);
        self.queued.merge(other.queued);
        self.rtt_ms.0 += other.rtt_ms.0;
        self.rtt_ms.1 += other.rtt_ms.1;
        self.slow_starts.merge(other.slow_starts);
        self.timers_too_soon += other.timers_too_soon;
        self.unused.merge(other.unused);
        self.overused += other.overused;
        self.several_clients |= other.several_clients;
        other.clients.iter().flatten().for_each(|client| self.note_client(client));
    }

    /// A client may have an address of each IP version.
    pub(super) fn note_client(&mut self, client: &str) {
        let known = &mut self.clients[usize::from(client.contains(':'))];
        self.several_clients |= known.as_deref().is_some_and(|known| known != client);
        if known.is_none() {
            *known = Some(client.to_owned());
        }
    }

    pub(super) const fn has_several_clients(&self) -> bool {
        self.several_clients
    }

    /// The share of the bytes that clients sent.
    pub(super) fn up_share(&self) -> f64 {
        self.up.bytes as f64 / (self.up.bytes + self.down.bytes).max(1) as f64
    }

    pub(crate) fn flow(&mut self, row: &FlowRow) {
        if row.protocol != Protocol::Tcp || row.leg == Some(Leg::Server) {
            return;
        }
        if is_unanswered(row) {
            self.unanswered.add(row, 0);
        } else if is_refused(row) {
            self.refused.add(row, 0);
        }
        if row.ul_bytes > 0 {
            self.up.add(row, [row.ul_bytes, row.ul_segments, row.ul_retx]);
            // Only a closed window is probed, and the client's was open.
            if row.window_probes > 0 && row.client_zero_windows == 0 {
                self.server_closed.add(row, row.ul_bytes);
            }
        }
        if row.dl_bytes > 0 {
            self.download(row);
        }
    }

    fn download(&mut self, row: &FlowRow) {
        self.down.add(row, [row.dl_bytes, row.dl_segments, row.dl_retx]);
        if row.dl_bytes >= DOWNLOAD_BYTES {
            self.note_client(&row.client);
        }
        self.timeouts += row.dl_retx_timeout;
        let held_back = window_share(row) > WINDOW_SHARE;
        if held_back {
            self.window.add(row, row.dl_bytes);
        } else if row.client_zero_windows > 0 {
            self.closed.add(row, row.dl_bytes);
            self.closed_times += row.client_zero_windows;
        }
        // R_ss, the paper's measure, also finds a recovery without a timer.
        if row.timers_too_soon > 0 {
            self.slow_starts.add(row, row.dl_bytes);
            self.timers_too_soon += row.timers_too_soon;
        }
        // A flow limited by its window builds no queue, and has its own cause.
        if held_back {
            return;
        }
        if let (Some(least), Some(mean)) = (row.rtt_min_ns, row.rtt_mean_ns)
            && row.rtt_samples >= QUEUE_SAMPLES
            && row.dl_bytes >= QUEUE_BYTES
            && row.dl_unseen_bytes * 100 < row.dl_bytes
        {
            let (least, mean) = (least as f64 / 1e6, mean as f64 / 1e6);
            if mean > INFLATION * least && mean - least > INFLATED_MS {
                self.queued.add(row, row.dl_bytes);
                self.rtt_ms.0 += mean * row.dl_bytes as f64;
                self.rtt_ms.1 += least * row.dl_bytes as f64;
            }
        }
        if utilisation(row).is_some_and(|used| used < LOW_USE) {
            self.unused.add(row, row.dl_bytes);
        }
        self.overused += u64::from(utilisation(row).is_some_and(|used| used > OVERUSE));
    }
}

/// Whether SYNs alone passed, more than one: a single one may have been answered after the capture.
fn is_unanswered(row: &FlowRow) -> bool {
    row.termination == Termination::SynOnly && row.ul_packets > 1
}

/// Whether a RST was the only answer to a SYN.
fn is_refused(row: &FlowRow) -> bool {
    let opened = row.upstream_rtt_ns.is_some() || row.server_mss_bytes.is_some();
    row.termination == Termination::Rst
        && !(row.mid_flow || opened)
        && row.dl_packets > 0
        && row.dl_bytes + row.ul_bytes == 0
}
