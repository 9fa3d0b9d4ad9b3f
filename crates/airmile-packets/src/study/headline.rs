//! Notable results of a capture, and next steps.

use std::net::IpAddr;

use airmile_wire::attribute::{CaptureSite, Sides};
use airmile_wire::tcp::{PeriodicRequests, StudySummary};
use schemars::JsonSchema;
use serde::Serialize;

use super::overview::{DirectionTotals, Overview, TraitShare, WINDOW_SHARE};
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
const RETX_SHARE: f64 = 0.01;
/// Fewer retransmissions are not judged (chosen here).
const MIN_RETX: u64 = 5;
const LATE_CLOSE: f64 = 0.2;
/// A client that sends this share of the bytes may have a queue of its own (chosen here).
const MANY_SENT: f64 = 0.1;
/// More than twice the paper's share of connections without an answer (4.1; chosen here).
const UNOPENED_SHARE: f64 = 0.2;

pub(crate) fn headline(s: &StudySummary, overview: &Overview, report: &PacketReport) -> Headline {
    let at_phone = at_phone(s, overview);
    // There the sender's packets in flight are not seen.
    let of_sender = |find: &dyn Fn() -> Option<Finding>| at_phone.is_none().then(find).flatten();
    let timeouts = Some(overview.timeouts).filter(|_| at_phone.is_none());
    let mut findings: Vec<Finding> = [
        of_sender(&|| window(overview)),
        closed(overview),
        of_sender(&|| queue(overview)),
        of_sender(&|| slow_starts(s, overview)),
        retransmissions(&overview.down, "to", 1.0, timeouts),
        retransmissions(&overview.up, "from", overview.up_share(), None),
        server_closed(overview),
        unopened(
            s,
            &overview.unanswered,
            "were not answered",
            "A SYN was repeated, and no packet came back",
        ),
        unopened(s, &overview.refused, "were refused", "The answer to the SYN was a RST"),
        unused(s, overview),
        late_close(s),
        periodic(s),
        far_server(s, overview),
    ]
    .into_iter()
    .flatten()
    .collect();
    findings.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    Headline {
        says: sentence(s, overview, &findings, at_phone.is_some()),
        findings,
        cautions: cautions(s, overview, report),
        at_phone,
    }
}

fn at_phone(s: &StudySummary, overview: &Overview) -> Option<String> {
    let server = s.upstream_ms.quantile(0.5).map_or_else(String::new, |up| {
        format!("; those to the servers take {} (median of handshakes)", ms(up))
    });
    (capture_site(s, overview) == CaptureSite::Phone).then(|| {
        format!(
            "Captured at the phone: the flows' round trips to the client do not include the \
             network{server}. Of downloads, bytes in flight, a full receive window and why a sender sent \
             again are not seen there. A capture at the server shows them, `airmile diagnose` uses both."
        )
    })
}

/// By the upper quartiles of the handshakes' round trips. At the phone the radio is on the server's
/// side of the monitor; where several clients had downloads, those of one say nothing of the others.
fn capture_site(s: &StudySummary, overview: &Overview) -> CaptureSite {
    if overview.has_several_clients() {
        return CaptureSite::Unknown;
    }
    let quartile_ns = |ms: Option<f64>| ms.map(|ms| (ms * 1e6) as i64);
    let sides = Sides {
        upstream_ns: quartile_ns(s.upstream_ms.quantile(0.75)),
        downstream_ns: quartile_ns(s.downstream_ms.quantile(0.75)),
        least_downstream_ns: quartile_ns(s.downstream_ms.quantile(0.0)),
    };
    sides.place()
}

fn sentence(
    s: &StudySummary,
    overview: &Overview,
    findings: &[Finding],
    is_at_phone: bool,
) -> String {
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
    let flows = count(s.tcp.flows, "TCP flow");
    let [down, up] = [&overview.down, &overview.up].map(|of| bytes(of.bytes as f64));
    match findings {
        [] if overview.down.bytes + overview.up.bytes == 0 => {
            format!("{flows} without payload to a client.")
        }
        [] if overview.up_share() > 0.5 => {
            let what = unjudged(overview, is_at_phone);
            format!("{what}: {flows} brought {up} from clients and {down} to them.")
        }
        [] => {
            format!("{}: {flows} brought {down} to clients.", unjudged(overview, is_at_phone))
        }
        [one] => format!("{}.", one.what),
        [one, two, ..] => format!("{}; {}.", one.what, lower_first(&two.what)),
    }
}

/// What a sentence without a finding begins with: a high share of few retransmissions is no finding, but
/// not nothing either.
fn unjudged(overview: &Overview, is_at_phone: bool) -> String {
    let is_up = overview.up_share() > 0.5;
    let (of, towards) = if is_up { (&overview.up, "from") } else { (&overview.down, "to") };
    if of.retx_share() <= RETX_SHARE {
        return match is_at_phone && !is_up {
            true => "Captured at the phone, where what held back a sender is not seen".into(),
            false => "Nothing stands out".into(),
        };
    }
    let segments = count(of.segments, "segment");
    format!("{} of {segments} {towards} clients sent again, too few to judge", of.retx)
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
    let share = o.down.share(&o.window);
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
        next_step: if o.up_share() > MANY_SENT {
            "The client sends as well: where its ACKs wait behind its own upload, the window is full, \
             too. `airmile diagnose` tries that first; a larger receive buffer helps against the rest."
        } else {
            "At the client: let the application read sooner, or raise the receive buffer (tcp_rmem, \
             SO_RCVBUF) above bandwidth times RTT."
        },
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
            percent(o.down.share(&o.closed))
        ),
        next_step: "At the client: look for what keeps the application from reading.",
        figure: None,
        flow: o.closed.flow(),
        weight: o.down.share(&o.closed) * 0.6,
    })
}

fn queue(o: &Overview) -> Option<Finding> {
    let share = o.down.share(&o.queued);
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
    let share = o.down.share(&o.slow_starts);
    let [avoided, not] = s.timeouts_avoided;
    (o.slow_starts.flows > 0).then(|| Finding {
        what: format!(
            "Undesired slow starts followed losses in {}",
            count(o.slow_starts.flows, "flow")
        ),
        evidence: format!(
            "{} while the retransmission was in flight; the flows carried {} of the bytes{}.",
            count(o.timers_too_soon, "timeout"),
            percent(share),
            match avoided + not {
                0 => String::new(),
                all => format!("; RTTs from duplicate ACKs would have avoided {avoided} of {all}"),
            }
        ),
        next_step: "At the sender: turn on SACK and RACK-TLP (RFC 8985) and F-RTO (RFC 5682), and \
                    take RTTs from SACKs, so that a long queue sets off no timer.",
        figure: Some(16),
        flow: o.slow_starts.flow(),
        weight: share * 0.7,
    })
}

/// `part`: the direction's share of all bytes.
fn retransmissions(
    of: &DirectionTotals,
    towards: &str,
    part: f64,
    timeouts: Option<u64>,
) -> Option<Finding> {
    // What a timer sent again although it had arrived counts as unnecessary.
    let timeouts = timeouts.filter(|n| *n > 0);
    let timeouts = timeouts.map_or_else(String::new, |n| format!(", {n} of them by timeout"));
    let share = of.retx_share();
    (share > RETX_SHARE && of.retx >= MIN_RETX).then(|| Finding {
        what: format!("{} of the segments {towards} clients were sent again", percent(share)),
        evidence: format!(
            "{} of {}{timeouts}; the paper's median flow has 0.06 %.",
            of.retx,
            count(of.segments, "segment"),
        ),
        next_step: "Compare with the radio log of the phone (`airmile diagnose`): a radio that \
                    conceals losses leaves those of full queues.",
        figure: Some(14),
        flow: of.resent.flow(),
        weight: (share * 10.0).min(0.9) * of.share(&of.resent) * part,
    })
}

fn server_closed(o: &Overview) -> Option<Finding> {
    (o.server_closed.flows > 0).then(|| Finding {
        what: format!(
            "Servers closed their receive window in {}",
            count(o.server_closed.flows, "flow")
        ),
        evidence: format!(
            "Clients probed it; those flows carried {} of the bytes from clients.",
            percent(o.up.share(&o.server_closed))
        ),
        next_step: "At the server: look for what keeps the application from reading.",
        figure: None,
        flow: o.server_closed.flow(),
        weight: o.up.share(&o.server_closed) * o.up_share() * 0.6,
    })
}

/// Connections that did not open.
fn unopened(s: &StudySummary, of: &TraitShare, what: &str, evidence: &str) -> Option<Finding> {
    let share = of.flows as f64 / s.tcp.flows.max(1) as f64;
    (share > UNOPENED_SHARE).then(|| Finding {
        what: format!("{} of the TCP connections {what}", percent(share)),
        evidence: format!("{evidence}, in {} of {}.", of.flows, count(s.tcp.flows, "flow")),
        next_step: "Check the server's address, port and firewall, and whether the capture has \
                    both directions.",
        figure: None,
        flow: of.flow(),
        weight: share * 0.6,
    })
}

fn unused(s: &StudySummary, o: &Overview) -> Option<Finding> {
    let share = o.down.share(&o.unused);
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
    let worst = s.periodic.iter().filter(|p| !is_local(p)).max_by_key(|p| p.bytes)?;
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

/// Whether requests stay in the client's own network: to a group, to every host of a link, to a link-local
/// address, or between private addresses of one subnet, as to a router's DNS (a /24 or /64, chosen here:
/// the usual sizes).
fn is_local(requests: &PeriodicRequests) -> bool {
    match (requests.client.parse(), requests.server.parse()) {
        (Ok(IpAddr::V4(client)), Ok(IpAddr::V4(server))) => {
            let is_near = server.octets()[..3] == client.octets()[..3];
            server.is_multicast()
                || server.is_broadcast()
                || server.is_link_local()
                || server.is_private() && (is_near || server.octets()[3] == 255)
        }
        (Ok(IpAddr::V6(client)), Ok(IpAddr::V6(server))) => {
            server.is_multicast()
                || server.is_unicast_link_local()
                || server.segments()[..4] == client.segments()[..4]
        }
        _ => false,
    }
}

fn far_server(s: &StudySummary, overview: &Overview) -> Option<Finding> {
    let (up, down) = (s.upstream_ms.quantile(0.5)?, s.downstream_ms.quantile(0.5)?);
    let enough = s.upstream_ms.n() >= 5;
    let enough = enough && capture_site(s, overview) != CaptureSite::Phone;
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
        let what = first.map_or_else(String::new, |problem| format!(": {problem}"));
        out.push(format!("{} is damaged{what}; what was readable is used.", file.path));
    }
    out.extend(at_phone(s, overview));
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

#[cfg(test)]
mod tests;
