//! Notable results of a capture, and next steps.

use airmile_model::flow::FlowRow;
use airmile_model::{Leg, Protocol};
use airmile_wire::attribute::{CaptureSite, Sides};
use airmile_wire::tcp::{StudySummary, utilisation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::choice::window_share;
use super::words::{bytes, count, ms, percent, rate};
use crate::PacketReport;

/// The study in a sentence, and its evidence.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Headline {
    /// In one sentence.
    pub says: String,
    /// Notable results, in descending order of weight.
    pub findings: Vec<Finding>,
    /// Limits of the trust in the rest.
    pub cautions: Vec<String>,
    /// If it was captured at the phone: that the flows' round trips are those to the client, which
    /// do not include the network.
    pub at_phone: Option<String>,
}

/// A notable result.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Finding {
    /// The result in a few words.
    pub what: String,
    /// Its evidence.
    pub evidence: String,
    /// The next step.
    pub next_step: &'static str,
    /// The paper's figure that shows it.
    pub figure: Option<u8>,
    /// The flow that shows it best.
    pub flow: Option<u64>,
    /// Rank: the affected share of the capture, 0 to 1.
    pub weight: f64,
}

/// Thresholds above which a result is shown (chosen here: well off the values usual in
/// the paper).
const WINDOW_SHARE: f64 = 0.10;
const RETX_SHARE: f64 = 0.01;
const INFLATION: f64 = 3.0;
const INFLATED_MS: f64 = 100.0;
const LOW_USE: f64 = 0.5;
const LATE_CLOSE: f64 = 0.2;
/// A queue shows in flows that can fill one, with this many RTT samples.
const QUEUE_SAMPLES: u64 = 50;
const QUEUE_BYTES: u64 = 100_000;
/// If a flow used more than this share of the estimate, the estimate is wrong.
const OVERUSE: f64 = 1.1;

/// Downlink bytes of flows with a trait, and the flow with the most of them.
#[derive(Debug, Default, Serialize, Deserialize)]
struct TraitShare {
    flows: u64,
    bytes: u64,
    best: Option<(u64, u64)>,
}

impl TraitShare {
    fn add(&mut self, row: &FlowRow) {
        self.flows += 1;
        self.bytes += row.dl_bytes;
        if self.best.is_none_or(|(most, _)| row.dl_bytes > most) {
            self.best = Some((row.dl_bytes, row.flow));
        }
    }

    fn merge(&mut self, other: Self) {
        self.flows += other.flows;
        self.bytes += other.bytes;
        let larger = |(most, flow): (u64, u64)| (most, std::cmp::Reverse(flow));
        self.best = self.best.into_iter().chain(other.best).max_by_key(|best| larger(*best));
    }

    fn flow(&self) -> Option<u64> {
        self.best.map(|(_, flow)| flow)
    }
}

/// Sums over the flows that the headline needs in addition to the summary.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Overview {
    bytes: u64,
    segments: u64,
    retx: u64,
    timeouts: u64,
    resent: TraitShare,
    window: TraitShare,
    /// Not limited for long, but the client's window closed.
    closed: TraitShare,
    closed_times: u64,
    queued: TraitShare,
    /// Mean and minimum RTT, weighted by bytes, of queued flows.
    rtt_ms: (f64, f64),
    slow_starts: TraitShare,
    unused: TraitShare,
    /// Large flows that used more than their estimated bandwidth.
    overused: u64,
}

impl Overview {
    /// Adds the state of other flows.
    pub(crate) fn merge(&mut self, other: Self) {
        let Self {
            bytes,
            segments,
            retx,
            timeouts,
            resent,
            window,
            closed,
            closed_times,
            queued,
            rtt_ms,
            slow_starts,
            unused,
            overused,
        } = other;
        self.bytes += bytes;
        self.segments += segments;
        self.retx += retx;
        self.timeouts += timeouts;
        self.resent.merge(resent);
        self.window.merge(window);
        self.closed.merge(closed);
        self.closed_times += closed_times;
        self.queued.merge(queued);
        self.rtt_ms.0 += rtt_ms.0;
        self.rtt_ms.1 += rtt_ms.1;
        self.slow_starts.merge(slow_starts);
        self.unused.merge(unused);
        self.overused += overused;
    }

    pub(crate) fn flow(&mut self, row: &FlowRow) {
        let counts = row.protocol == Protocol::Tcp && row.leg != Some(Leg::Server);
        if !counts || row.dl_bytes == 0 {
            return;
        }
        self.bytes += row.dl_bytes;
        self.segments += row.dl_segments;
        self.retx += row.dl_retx;
        self.timeouts += row.dl_retx_timeout;
        if row.dl_retx > 0 {
            self.resent.add(row);
        }
        let held_back = window_share(row) > WINDOW_SHARE;
        if held_back {
            self.window.add(row);
        } else if row.client_zero_windows > 0 {
            self.closed.add(row);
            self.closed_times += row.client_zero_windows;
        }
        if row.slow_starts > 0 {
            self.slow_starts.add(row);
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
                self.queued.add(row);
                self.rtt_ms.0 += mean * row.dl_bytes as f64;
                self.rtt_ms.1 += least * row.dl_bytes as f64;
            }
        }
        if utilisation(row).is_some_and(|used| used < LOW_USE) {
            self.unused.add(row);
        }
        self.overused += u64::from(utilisation(row).is_some_and(|used| used > OVERUSE));
    }

    fn share(&self, part: &TraitShare) -> f64 {
        part.bytes as f64 / self.bytes.max(1) as f64
    }
}

pub(crate) fn headline(s: &StudySummary, overview: &Overview, report: &PacketReport) -> Headline {
    let mut findings: Vec<Finding> = [
        window(overview),
        closed(overview),
        queue(overview),
        slow_starts(s, overview),
        retransmissions(overview),
        unused(s, overview),
        late_close(s),
        periodic(s),
        far_server(s),
    ]
    .into_iter()
    .flatten()
    .collect();
    findings.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    Headline {
        says: sentence(s, overview, &findings),
        findings,
        cautions: cautions(s, overview, report),
        at_phone: at_phone(s),
    }
}

fn at_phone(s: &StudySummary) -> Option<String> {
    let server = s.upstream_ms.quantile(0.5).map_or_else(String::new, |up| {
        format!("; those to the servers take {} (median of handshakes)", ms(up))
    });
    (capture_site(s) == CaptureSite::Phone).then(|| {
        format!(
            "Captured at the phone: the flows' round trips to the client do not include the \
             network{server}. A capture at the server shows them, `airmile diagnose` uses both."
        )
    })
}

/// By the upper quartiles of the handshakes' round trips. At the phone the radio is on the server's
/// side of the monitor.
fn capture_site(s: &StudySummary) -> CaptureSite {
    let quartile_ns = |ms: Option<f64>| ms.map(|ms| (ms * 1e6) as i64);
    let sides = Sides {
        upstream_ns: quartile_ns(s.upstream_ms.quantile(0.75)),
        downstream_ns: quartile_ns(s.downstream_ms.quantile(0.75)),
    };
    sides.place()
}

fn sentence(s: &StudySummary, overview: &Overview, findings: &[Finding]) -> String {
    if s.tcp.flows + s.udp.flows == 0 {
        return "No TCP or UDP flow: IP packets of other kinds alone.".into();
    }
    if s.tcp.flows == 0 {
        return format!(
            "No TCP flow: {} with {}.",
            count(s.udp.flows, "UDP flow"),
            bytes(s.udp.bytes as f64)
        );
    }
    let carried = bytes(overview.bytes as f64);
    match findings {
        [] if overview.bytes == 0 => {
            format!("{} without payload to a client.", count(s.tcp.flows, "TCP flow"))
        }
        [] => format!(
            "Nothing stands out: {} brought {carried} to clients.",
            count(s.tcp.flows, "TCP flow")
        ),
        [one] => format!("{}.", one.what),
        [one, two, ..] => format!("{}; {}.", one.what, lower_first(&two.what)),
    }
}

fn lower_first(text: &str) -> String {
    // Names such as RTT keep their capitals.
    let mut letters = text.chars();
    match (letters.next(), letters.clone().next()) {
        (Some(first), Some(second)) if first.is_uppercase() && !second.is_uppercase() => {
            first.to_lowercase().chain(letters).collect()
        }
        _ => text.to_owned(),
    }
}

fn window(o: &Overview) -> Option<Finding> {
    let share = o.share(&o.window);
    (o.window.flows > 0 && share > 0.05).then(|| Finding {
        what: format!(
            "The receive window held back flows with {} of the bytes to clients",
            percent(share)
        ),
        evidence: format!(
            "In {} the client's window had less than a segment left for over {} of the time.",
            count(o.window.flows, "flow"),
            percent(WINDOW_SHARE)
        ),
        next_step: "At the client: let the application read sooner, or raise the receive buffer \
                    (tcp_rmem, SO_RCVBUF) above bandwidth times RTT.",
        figure: Some(23),
        flow: o.window.flow(),
        weight: share,
    })
}

fn closed(o: &Overview) -> Option<Finding> {
    (o.closed.flows > 0).then(|| Finding {
        what: format!("Clients closed their receive window in {}", count(o.closed.flows, "flow")),
        evidence: format!(
            "{} to zero; those flows carried {} of the bytes to clients.",
            count(o.closed_times, "time"),
            percent(o.share(&o.closed))
        ),
        next_step: "At the client: look for what keeps the application from reading.",
        figure: None,
        flow: o.closed.flow(),
        weight: o.share(&o.closed) * 0.6,
    })
}

fn queue(o: &Overview) -> Option<Finding> {
    let share = o.share(&o.queued);
    let mean = |sum: f64| sum / o.queued.bytes.max(1) as f64;
    (o.queued.flows > 0 && share > 0.05).then(|| Finding {
        what: format!(
            "A standing queue raised the RTT to the client from {} to {}",
            ms(mean(o.rtt_ms.1)),
            ms(mean(o.rtt_ms.0))
        ),
        evidence: format!(
            "{} with {} of the bytes: mean RTT over three times the least (means weighted by bytes).",
            count(o.queued.flows, "flow"),
            percent(share)
        ),
        next_step: "Short concurrent flows wait in the same queue: bound it at the bottleneck \
                    (AQM), or at the sender (BBR, pacing, a lower cwnd limit).",
        figure: Some(10),
        flow: o.queued.flow(),
        // Delay costs less than data that is not sent at all.
        weight: share * 0.8,
    })
}

fn slow_starts(s: &StudySummary, o: &Overview) -> Option<Finding> {
    let share = o.share(&o.slow_starts);
    let [avoided, not] = s.timeouts_avoided;
    (o.slow_starts.flows > 0).then(|| Finding {
        what: format!(
            "Undesired slow starts followed losses in {}",
            count(o.slow_starts.flows, "flow")
        ),
        evidence: match avoided + not {
            0 => format!("They carried {} of the bytes.", percent(share)),
            all => format!(
                "They carried {} of the bytes; RTTs from duplicate ACKs would have avoided {avoided} \
                 of {}.",
                percent(share),
                count(all, "timeout")
            ),
        },
        next_step: "At the sender: turn on SACK and RACK-TLP (RFC 8985) and F-RTO (RFC 5682), and \
                    take RTTs from SACKs, so that a long queue sets off no timer.",
        figure: Some(16),
        flow: o.slow_starts.flow(),
        weight: share * 0.7,
    })
}

fn retransmissions(o: &Overview) -> Option<Finding> {
    let share = o.retx as f64 / o.segments.max(1) as f64;
    (share > RETX_SHARE && o.retx >= 5).then(|| Finding {
        what: format!("{} of the segments to clients were sent again", percent(share)),
        evidence: format!(
            "{} of {}, {} of them by timeout; the paper's median flow has 0.06 %.",
            o.retx,
            count(o.segments, "segment"),
            o.timeouts
        ),
        next_step: "Compare with the radio log of the phone (`airmile diagnose`): a radio that \
                    conceals losses leaves those of full queues.",
        figure: Some(14),
        flow: o.resent.flow(),
        weight: (share * 10.0).min(0.9) * o.share(&o.resent),
    })
}

fn unused(s: &StudySummary, o: &Overview) -> Option<Finding> {
    let share = o.share(&o.unused);
    let used = s.utilisation.quantile(0.5)?;
    (o.unused.flows > 0).then(|| Finding {
        what: format!("Large flows used {} of the bandwidth they had", percent(used)),
        evidence: format!(
            "Median of {}, {} available; in the paper 20 %.",
            count(s.utilisation.n(), "large flow"),
            rate(s.available_bps.quantile(0.5).unwrap_or_default())
        ),
        next_step: "Look for what paces the sender: its application, the receive window, or a \
                    congestion window that grows too slowly for the RTT.",
        figure: Some(21),
        flow: o.unused.flow(),
        weight: share * (1.0 - used).max(0.0),
    })
}

fn late_close(s: &StudySummary) -> Option<Finding> {
    let share = s.late_closes as f64 / s.closed.max(1) as f64;
    let [all, close, ..] = s.energy_mj;
    (s.late_closes >= 3 && share > LATE_CLOSE).then(|| Finding {
        what: format!(
            "{} of closed flows sent FIN or RST over 10 s after their data",
            percent(share)
        ),
        evidence: format!(
            "By the model that is {} of the radio energy; in the paper 23.1 % of flows.",
            percent(close / all.max(1e-9))
        ),
        next_step: "Close connections with the last byte (Connection: close, shorter keep-alive), \
                    before the radio's tail ends.",
        figure: Some(3),
        flow: None,
        weight: (close / all.max(1e-9)).min(1.0) * 0.5,
    })
}

fn periodic(s: &StudySummary) -> Option<Finding> {
    let worst = s.periodic.iter().max_by_key(|p| p.bytes)?;
    let [all, _, periodic, _] = s.energy_mj;
    let share = (periodic / all.max(1e-9)).min(1.0);
    Some(Finding {
        what: format!("{} asks {} every {:.1} s", worst.client, worst.server, worst.period_s),
        evidence: format!(
            "{} with {}; idle {} of the time; by the model {} of the radio energy goes to \
             periodic transfers.",
            count(worst.requests.into(), "request"),
            bytes(worst.bytes as f64),
            percent(worst.idle_share),
            percent(share)
        ),
        next_step: "Fetch more at a time: fewer, larger requests leave the radio idle between them.",
        figure: Some(24),
        flow: None,
        weight: share * 0.5,
    })
}

fn far_server(s: &StudySummary) -> Option<Finding> {
    let (up, down) = (s.upstream_ms.quantile(0.5)?, s.downstream_ms.quantile(0.5)?);
    let enough = s.upstream_ms.n() >= 5;
    let enough = enough && capture_site(s) != CaptureSite::Phone;
    (enough && up > 3.0 * down && up > 50.0).then(|| Finding {
        what: format!(
            "Servers are further from the monitor ({}) than clients ({})",
            ms(up),
            ms(down)
        ),
        evidence: format!("Medians of {}.", count(s.upstream_ms.n(), "handshake")),
        next_step: "The latency is beyond the monitor: servers nearer to the users, fewer \
                    round trips.",
        figure: Some(8),
        flow: None,
        weight: 0.1,
    })
}

fn cautions(s: &StudySummary, overview: &Overview, report: &PacketReport) -> Vec<String> {
    let q = &report.quality;
    let mut out = Vec::new();
    for file in report.files.iter().filter(|file| file.damaged) {
        let first = file.problems.iter().find(|p| p.severity == airmile_model::Severity::Damage);
        let what = first.map_or_else(String::new, |p| format!(": {} (byte {})", p.what, p.offset));
        out.push(format!("{} is damaged{what}; what was readable is used.", file.path));
    }
    out.extend(at_phone(s));
    let mut add = |n: u64, noun: &str, what: &str| {
        if n > 0 {
            out.push(format!("{} {what}", count(n, noun)));
        }
    };
    add(q.options_cut, "packet", "whose TCP options are cut off: capture longer headers.");
    add(q.unseen_bytes, "byte", "acknowledged and never captured: the capture lost packets.");
    let mid_flow = "begun before the capture: no handshake, and the window's scale is unknown.";
    add(q.mid_flow, "TCP flow", mid_flow);
    add(q.copies, "packet", "captured twice, counted once.");
    add(q.super_segments, "segment", "merged by offload: fewer and larger than on the wire.");
    add(q.steps_back, "packet", "with a time before that of the one before.");
    add(q.wild_sequences, "sequence number", "outside of any window.");
    add(q.later_fragments, "IP fragment", "behind the first, left out.");
    add(q.client_guessed, "flow", "whose client was guessed (--client sets it).");
    add(
        overview.overused,
        "large flow",
        "used more than the estimate of what was available: that is too low, of too few windows \
         (--send-rate says which count).",
    );
    if s.tcp.flows > 0 && s.tcp.flows < 20 {
        out.push(format!(
            "With {} distributions say little; look at the flows themselves.",
            count(s.tcp.flows, "TCP flow")
        ));
    }
    out
}
