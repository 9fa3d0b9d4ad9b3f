//! The document of `airmile packets`.

use std::collections::BTreeMap;

use airmile_model::{ClientBy, CongestionControl, Termination};
use airmile_wire::tcp::{PeriodicRequests, Quality, SendRateThreshold, StudyOptions, StudySummary};
use schemars::JsonSchema;
use serde::Serialize;

use super::compare::{Compared, Table1Row, class, compare, hide_senders, table1};
use super::largest::FlowEntry;
use super::study::{Headline, count, more_curves};
use airmile_io::FileReport;

/// A study of packet captures, with each figure and the paper's.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PacketReport {
    /// The captures.
    pub files: Vec<FileReport>,
    /// The capture in words.
    pub says: String,
    /// Notable results, and next steps. Null in a page, which has them elsewhere.
    pub headline: Option<Headline>,
    /// Properties of the capture that decide how far to trust the rest.
    pub quality: Quality,
    /// First packet of a flow, in microseconds since the Unix epoch.
    pub start_us: Option<i64>,
    /// Last packet of a flow.
    pub end_us: Option<i64>,
    /// User sessions.
    pub users: u64,
    /// TCP flows.
    pub tcp_flows: u64,
    /// UDP flows.
    pub udp_flows: u64,
    /// Large flows: over 1 MB down in over 5 s.
    pub large_flows: u64,
    /// Flows by the rule that identified their client.
    pub client_by: BTreeMap<ClientBy, u64>,
    /// TCP flows by termination.
    pub terminations: BTreeMap<Termination, u64>,
    /// Flows and bytes by application, if it is known.
    pub applications: BTreeMap<String, airmile_wire::tcp::Share>,
    /// Bytes of HTTP responses by the paper's classes.
    pub http_bytes: BTreeMap<&'static str, u64>,
    /// Large flows' congestion control, inferred.
    pub congestion_controls: BTreeMap<CongestionControl, u64>,
    /// Periodic requests.
    pub periodic: Vec<PeriodicRequests>,
    /// Figures of the capture and the paper's.
    pub summary: Vec<Compared>,
    /// Table 1 of the paper, with this capture.
    pub table1: Vec<Table1Row>,
    /// Curves of the paper's figures from this capture: points of value and share.
    pub curves: BTreeMap<&'static str, Vec<(f64, f64)>>,
    /// `given`: windows with at least this sending rate show the bandwidth; `auto`: those
    /// whose segments were queued.
    pub send_rate_by: &'static str,
    /// Minimum sending rate of windows that show the bandwidth, in bit/s; with `auto`,
    /// the rate that 95 % of those windows reached. Null: no such window.
    pub send_rate_bar_bps: Option<f64>,
    /// The flows with the most payload, in order of their first packets; the table
    /// `flows` has all. Empty in a page.
    pub flows: Vec<FlowEntry>,
    /// Number of other flows.
    pub flows_left_out: u64,
}

impl PacketReport {
    /// States the headline; at the phone, figures that need the sender's packets have no value.
    pub(super) fn set_headline(&mut self, headline: Headline) {
        if headline.at_phone.is_some() {
            hide_senders(&mut self.summary);
            self.curves.remove("flight_bytes");
        }
        self.headline = Some(headline);
    }

    pub(super) fn new(
        files: Vec<FileReport>,
        s: &StudySummary,
        options: &StudyOptions,
        (flows, flows_left_out): (Vec<FlowEntry>, u64),
    ) -> Self {
        let mut http_bytes = BTreeMap::new();
        for (kind, bytes) in &s.content_types {
            *http_bytes.entry(class(kind)).or_default() += bytes;
        }
        Self {
            says: says(s, &files),
            files,
            headline: None,
            quality: s.quality,
            start_us: s.start_ns.map(|ns| ns.div_euclid(1_000)),
            end_us: s.end_ns.map(|ns| ns.div_euclid(1_000)),
            users: s.users,
            tcp_flows: s.tcp.flows,
            udp_flows: s.udp.flows,
            large_flows: s.large_flows,
            client_by: s.client_by.clone(),
            terminations: s.terminations.clone(),
            applications: s.applications.clone(),
            http_bytes,
            congestion_controls: s.congestion_controls.clone(),
            periodic: s.periodic.clone(),
            summary: compare(s, send_rate_bar_bps(s, options)),
            table1: table1(s),
            curves: curves(s),
            send_rate_by: match options.send_rate_threshold {
                SendRateThreshold::Fixed(_) => "given",
                SendRateThreshold::Auto => "auto",
            },
            send_rate_bar_bps: send_rate_bar_bps(s, options),
            flows,
            flows_left_out,
        }
    }

    /// Whether bytes of a capture were lost to damage.
    #[must_use]
    pub fn damaged(&self) -> bool {
        self.files.iter().any(|file| file.damaged)
    }
}

/// C of the paper: given, or the sending rate of the windows chosen by `auto`.
fn send_rate_bar_bps(s: &StudySummary, options: &StudyOptions) -> Option<f64> {
    match options.send_rate_threshold {
        SendRateThreshold::Fixed(bps) => Some(bps),
        SendRateThreshold::Auto => s.send_rate_bps.quantile(0.05),
    }
}

fn says(s: &StudySummary, files: &[FileReport]) -> String {
    // From the first frame to the last: packets of no flow are counted, too.
    let from_us = files.iter().filter_map(|file| file.start_us).min();
    let until_us = files.iter().filter_map(|file| file.end_us).max();
    let seconds = from_us.zip(until_us).map_or(0.0, |(from, until)| (until - from) as f64 / 1e6);
    let cut = FileReport::cut_frames(files).map_or_else(String::new, |(cut, frames)| {
        format!("; {cut} of {frames} frames left out: cut within a header")
    });
    format!(
        "{} in {seconds:.1} s: {} TCP and {} of {}, {} of them large downloads (over 1 MB in \
         over 5 s){cut}",
        count(s.quality.packets, "packet"),
        s.tcp.flows,
        count(s.udp.flows, "UDP flow"),
        count(s.users, "user"),
        s.large_flows
    )
}

fn curves(s: &StudySummary) -> BTreeMap<&'static str, Vec<(f64, f64)>> {
    let mut curves = BTreeMap::from([
        ("dl_bytes", s.dl_bytes.cdf()),
        ("ul_bytes", s.ul_bytes.cdf()),
        ("duration_s", s.duration_s.cdf()),
        ("payload_to_end_s", s.payload_to_end_s.cdf()),
        ("dl_rate_bps", s.dl_rate_bps.cdf()),
        ("ul_rate_bps", s.ul_rate_bps.cdf()),
        ("upstream_rtt_ms", s.upstream_ms.cdf()),
        ("proxy_rtt_ms", s.proxy_ms.cdf()),
        ("downstream_rtt_ms", s.downstream_ms.cdf()),
        ("handshake_rtt_ms", s.handshake_ms.cdf()),
        ("rtt_ratio", s.rtt_ratio.cdf()),
        ("promotion_ms", s.promotion_ms.cdf()),
        ("dns_ms", s.dns_ms.cdf()),
        ("flight_bytes", s.flight_bytes.cdf()),
        ("large_dup_acks", s.large_dup_acks.cdf()),
        ("large_out_of_order", s.large_out_of_order.cdf()),
        ("dup_ack_ratio", s.dup_ack_ratio.cdf()),
        ("available_bps", s.available_bps.cdf()),
        ("utilisation", s.utilisation.cdf()),
    ]);
    curves.extend(more_curves(s).map(|(name, of)| (name, of.cdf())));
    curves
}
