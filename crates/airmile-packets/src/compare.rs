//! Compares our figures with the paper's.

use airmile_model::Termination;
use airmile_wire::distribution::Distribution;
use airmile_wire::tcp::{RANGES, StudySummary};
use schemars::JsonSchema;
use serde::Serialize;

/// One figure of this capture, and the paper's.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Compared {
    /// Section of the paper.
    pub section: &'static str,
    /// What it is.
    pub what: &'static str,
    /// Unit; `share` is 0 to 1.
    pub unit: &'static str,
    /// In this capture; null if the capture lacks it.
    pub here: Option<f64>,
    /// In the paper (LTE, October 2012).
    pub paper: Option<f64>,
    /// Number of values, if known.
    pub n: Option<u64>,
}

/// A row of table 1: percentiles of one measure.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Table1Row {
    /// `dl_kbps`, `ul_kbps` or `handshake_rtt_ms`.
    pub measure: &'static str,
    /// Percentile.
    pub percentile: u8,
    /// In this capture.
    pub value: Option<f64>,
    /// The paper's own LTE data.
    pub paper: f64,
    /// 3GTest, worst and best of four carriers (2009).
    pub three_g_test: [f64; 2],
    /// 4GTest over LTE (2011).
    pub four_g_test_lte: f64,
    /// 4GTest over WiMAX (2011).
    pub four_g_test_wimax: f64,
    /// SpeedTest (2011), cellular and WiFi: New York City, Madison, Manchester.
    pub speed_test: [[f64; 2]; 3],
}

/// Table 1 of the paper, with this capture's values.
pub(super) fn table1(s: &StudySummary) -> Vec<Table1Row> {
    let row = |measure, percentile: u8, of: &Distribution, paper: [f64; 11]| Table1Row {
        measure,
        percentile,
        value: of.quantile(f64::from(percentile) / 100.0),
        paper: paper[0],
        three_g_test: [paper[1], paper[2]],
        four_g_test_lte: paper[3],
        four_g_test_wimax: paper[4],
        speed_test: [[paper[5], paper[6]], [paper[7], paper[8]], [paper[9], paper[10]]],
    };
    let [dl, ul] = &s.table1_kbps;
    let rtt = &s.handshake_ms;
    #[rustfmt::skip]
    let rows = vec![
        row("dl_kbps", 5, dl, [569., 74., 222., 2112., 431., 108., 404., 99., 347., 28., 267.]),
        row("dl_kbps", 50, dl, [9185., 556., 970., 12740., 4670., 1678., 7040., 895., 5742., 1077., 4717.]),
        row("dl_kbps", 95, dl, [24229., 1921., 2943., 30812., 10344., 12922., 17617., 3485., 14173., 3842., 15635.]),
        row("ul_kbps", 5, ul, [38., 24., 52., 387., 172., 52., 177., 55., 168., 25., 180.]),
        row("ul_kbps", 50, ul, [2286., 207., 331., 5640., 1160., 772., 2020., 478., 1064., 396., 745.]),
        row("ul_kbps", 95, ul, [8361., 434., 664., 19358., 1595., 5428., 10094., 1389., 5251., 1659., 5589.]),
        row("handshake_rtt_ms", 5, rtt, [30., 125., 182., 37., 89., 68., 21., 99., 24., 98., 34.]),
        row("handshake_rtt_ms", 50, rtt, [70., 160., 200., 70., 125., 159., 54., 184., 69., 221., 92.]),
        row("handshake_rtt_ms", 95, rtt, [467., 645., 809., 127., 213., 786., 336., 773., 343., 912., 313.]),
    ];
    rows
}

/// Gathers figures of one section.
struct Section<'a> {
    section: &'static str,
    out: &'a mut Vec<Compared>,
}

impl Section<'_> {
    fn add(
        &mut self,
        what: &'static str,
        unit: &'static str,
        here: Option<f64>,
        paper: impl Into<Option<f64>>,
        n: impl Into<Option<u64>>,
    ) {
        let (paper, n) = (paper.into(), n.into());
        self.out.push(Compared { section: self.section, what, unit, here, paper, n });
    }

    fn share(&mut self, name: &'static str, part: u64, of: u64, paper: impl Into<Option<f64>>) {
        self.add(name, "share", ratio(part as f64, of as f64), paper, of);
    }

    fn quantile(
        &mut self,
        name: &'static str,
        unit: &'static str,
        of: &Distribution,
        p: f64,
        paper: impl Into<Option<f64>>,
    ) {
        self.add(name, unit, of.quantile(p), paper, of.n());
    }

    fn above(
        &mut self,
        name: &'static str,
        of: &Distribution,
        bar: f64,
        paper: impl Into<Option<f64>>,
    ) {
        self.add(name, "share", of.share_above(bar), paper, of.n());
    }
}

fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

/// All figures, in the paper's order.
pub(super) fn compare(s: &StudySummary, send_rate_bar_bps: Option<f64>) -> Vec<Compared> {
    let mut out = Vec::new();
    flows(s, &mut Section { section: "4.1", out: &mut out });
    latency(s, &mut Section { section: "4.2", out: &mut out });
    queues(s, &mut Section { section: "4.3", out: &mut out });
    abnormal(s, &mut Section { section: "5", out: &mut out });
    bandwidth(s, send_rate_bar_bps, &mut Section { section: "6", out: &mut out });
    applications(s, &mut Section { section: "7", out: &mut out });
    out
}

/// What a capture at the phone does not show: its packets have left the sender's queue and the network's,
/// and its window is full at the sender.
pub(super) const OF_SENDER: [&str; 7] = [
    "in flight over 200 KB, flows over 1 MB",
    "undesired slow start, of large flows with a loss",
    "undesired slow start, of large flows",
    "timeouts that RTTs of duplicate ACKs avoid",
    "downlink flows with a full receive window",
    "of them, in the first tenth of the flow",
    "time lost to it, of such flows, mean",
];

/// Removes the values that need the sender's packets.
pub(super) fn hide_senders(figures: &mut [Compared]) {
    for figure in figures.iter_mut().filter(|figure| OF_SENDER.contains(&figure.what)) {
        (figure.here, figure.n) = (None, None);
    }
}

fn flows(s: &StudySummary, to: &mut Section<'_>) {
    let all = s.tcp.flows + s.udp.flows;
    to.share("TCP, of flows", s.tcp.flows, all, 0.953);
    to.share("TCP, of bytes", s.tcp.bytes, s.tcp.bytes + s.udp.bytes, 0.972);
    let port = |ports: &[u16]| {
        let found = ports.iter().filter_map(|port| s.tcp_ports.get(port));
        found.fold((0, 0), |(flows, bytes), share| (flows + share.flows, bytes + share.bytes))
    };
    let (http, https) = (port(&[80, 8080]), port(&[443]));
    to.share("HTTP (80, 8080), of TCP flows", http.0, s.tcp.flows, 0.501);
    to.share("HTTP (80, 8080), of TCP bytes", http.1, s.tcp.bytes, 0.766);
    to.share("HTTPS (443), of TCP flows", https.0, s.tcp.flows, 0.421);
    to.share("HTTPS (443), of TCP bytes", https.1, s.tcp.bytes, 0.148);
    to.quantile("bytes down, 90 % of flows are under", "bytes", &s.dl_bytes, 0.9, 35_900.0);
    to.quantile("bytes up, 90 % of flows are under", "bytes", &s.ul_bytes, 0.9, 2_900.0);
    to.above("flows over 1 MB down", &s.dl_bytes, 1e6, 0.006);
    let n = s.dl_bytes.n();
    to.add("their part of all bytes down", "share", s.dl_bytes.sum_share_above(1e6), 0.617, n);
    to.above("flows over 100 KB up", &s.ul_bytes, 1e5, 0.001);
    to.add("their part of all bytes up", "share", s.ul_bytes.sum_share_above(1e5), 0.639, n);
    let shorter = s.duration_s.share_above(5.0).map(|above| 1.0 - above);
    to.add("flows shorter than 5 s", "share", shorter, 0.481, s.duration_s.n());
    to.above("flows over 3 min", &s.duration_s, 180.0, 0.068);
    to.above("flows over 10 min", &s.duration_s, 600.0, 0.028);
    for (name, termination, paper) in [
        ("ended by FIN", Termination::Fin, 0.862),
        ("ended by RST", Termination::Rst, 0.054),
        ("SYN only", Termination::SynOnly, 0.085),
    ] {
        let n = s.terminations.get(&termination).copied().unwrap_or(0);
        to.share(name, n, s.tcp.flows, paper);
    }
    to.share("FIN or RST over 10 s after the payload", s.late_closes, s.closed, 0.231);
    let names = [
        ["log size and duration, down", "log duration and rate, down", "log rate and size, down"],
        ["log size and duration, up", "log duration and rate, up", "log rate and size, up"],
    ];
    let papers = [[0.196, -0.885, 0.392], [0.030, -0.986, 0.445]];
    for (direction, of) in [&s.dl_correlations, &s.ul_correlations].into_iter().enumerate() {
        for (at, correlation) in of.iter().enumerate() {
            let (name, paper) = (names[direction][at], papers[direction][at]);
            to.add(name, "correlation", correlation.value(), paper, None);
        }
    }
    let [one, more] = s.seconds;
    to.share("time with one flow that receives", one, one + more, 0.721);
}

fn latency(s: &StudySummary, to: &mut Section<'_>) {
    to.quantile("handshake, monitor to server, median", "ms", &s.upstream_ms, 0.5, None);
    to.quantile("handshake, monitor to proxy, median", "ms", &s.proxy_ms, 0.5, None);
    to.quantile("handshake, monitor to client, median", "ms", &s.downstream_ms, 0.5, None);
    to.above("flows whose upstream RTT is the larger", &s.rtt_ratio, 1.0, 0.55);
    for (name, p, paper) in [
        ("promotion delay, 1st quartile", 0.25, 319.0),
        ("promotion delay, median", 0.5, 435.0),
        ("promotion delay, 3rd quartile", 0.75, 558.0),
    ] {
        to.quantile(name, "ms", &s.promotion_ms, p, paper);
    }
    let under = s.dns_ms.share_above(10.0).map(|above| 1.0 - above);
    to.add("DNS lookups under 10 ms", "share", under, 0.873, s.dns_ms.n());
    to.quantile("DNS lookup, median", "ms", &s.dns_ms, 0.5, None);
    to.quantile("QUIC handshake, median", "ms", &s.quic_handshake_ms, 0.5, None);
}

fn queues(s: &StudySummary, to: &mut Section<'_>) {
    to.above("in flight over 200 KB, flows over 1 MB", &s.flight_bytes, 2e5, 0.10);
    let none = s.retx_share.share_above(0.0).map(|above| 1.0 - above);
    to.add("flows without a retransmission", "share", none, 0.381, s.retx_share.n());
    to.quantile("retransmission rate, median", "share", &s.retx_share, 0.5, 0.0006);
}

fn abnormal(s: &StudySummary, to: &mut Section<'_>) {
    to.quantile("duplicate ACKs of large flows, median", "", &s.large_dup_acks, 0.5, 17.0);
    to.above("large flows with over 100 duplicate ACKs", &s.large_dup_acks, 100.0, 0.29);
    let out_of_order = &s.large_out_of_order;
    to.quantile("out-of-order segments of large flows, median", "", out_of_order, 0.5, 2.0);
    to.above("large flows with over 25 duplicate ACKs for one", &s.dup_ack_ratio, 25.0, 0.247);
    let slow = s.large_with_slow_start;
    to.share("undesired slow start, of large flows with a loss", slow, s.large_with_loss, 0.201);
    to.share("undesired slow start, of large flows", slow, s.large_flows, 0.123);
    let [avoided, not] = s.timeouts_avoided;
    to.share("timeouts that RTTs of duplicate ACKs avoid", avoided, avoided + not, 0.95);
}

fn bandwidth(s: &StudySummary, bar_bps: Option<f64>, to: &mut Section<'_>) {
    // Options that are cut off show nothing.
    let flows = if s.quality.lacks_options() { 0 } else { s.tcp.flows };
    to.share("flows with time stamps", s.with_timestamps, flows, 0.926);
    to.quantile("clock of large flows' clients, median", "ms/tick", &s.tick_ms, 0.5, 1.0);
    let n = s.send_rate_bps.n();
    to.add("rate of sending that shows it (C)", "bit/s", bar_bps, 30e6, n);
    to.quantile("available downlink bandwidth, median", "bit/s", &s.available_bps, 0.5, None);
    to.quantile("bandwidth used by large flows, median", "share", &s.utilisation, 0.5, 0.198);
    let n = s.utilisation.n();
    to.add("bandwidth used by large flows, mean", "share", s.utilisation.mean(), 0.346, n);
    let under = s.utilisation.share_above(0.5).map(|above| 1.0 - above);
    to.add("large flows that use under half of it", "share", under, 0.713, n);
}

fn applications(s: &StudySummary, to: &mut Section<'_>) {
    let bytes_of = |kind: &str| {
        let of = s.content_types.iter().filter(|(name, _)| class(name) == kind);
        of.map(|(_, bytes)| *bytes).sum::<u64>()
    };
    let all: u64 = s.content_types.values().sum();
    for (name, kind, paper) in [
        ("video, of HTTP bytes", "video", 0.378),
        ("images, of HTTP bytes", "image", 0.195),
        ("text, of HTTP bytes", "text", 0.118),
        ("zip, of HTTP bytes", "zip", 0.083),
        ("audio, of HTTP bytes", "audio", 0.065),
    ] {
        to.share(name, bytes_of(kind), all, paper);
    }
    to.share("downlink flows with a full receive window", s.window_full_flows, s.dl_flows, 0.526);
    let first = &s.window_full_first;
    let early = first.share_above(0.1).map(|above| 1.0 - above);
    to.add("of them, in the first tenth of the flow", "share", early, 0.912, first.n());
    to.add(
        "time lost to it, of such flows, mean",
        "share",
        s.window_full_share.mean(),
        None,
        first.n(),
    );
    let window = &s.initial_window_bytes;
    to.quantile("initial receive window, median", "bytes", window, 0.5, 131_712.0);
    let near = ratio(s.initial_windows_usual as f64, window.n() as f64);
    to.add("initial receive window 131,712 +- 600", "share", near, 0.99, window.n());
    let [all, close, periodic, low_use] = s.energy_mj;
    to.add("radio energy by the model", "J", Some(all / 1e3), None, s.users);
    to.add("of it, by late FIN and RST", "share", ratio(close, all), None, None);
    to.add("of it, by periodic transfers", "share", ratio(periodic, all), None, None);
    to.add("of it, by bandwidth that was not used", "share", ratio(low_use, all), None, None);
}

/// The paper's classes of content (7.1).
pub(super) fn class(content_type: &str) -> &'static str {
    let (kind, subtype) = content_type.split_once('/').unwrap_or((content_type, ""));
    match (kind, subtype) {
        // Section 7.1 counts octet-stream fetched by ranges as video, as players do;
        // fetched whole, its class is unknown.
        _ if content_type == RANGES => "video",
        ("video", _) | ("application", "x-mpegurl" | "vnd.apple.mpegurl") => "video",
        ("application", "octet-stream") => "octet_stream",
        ("image", _) => "image",
        ("audio", _) => "audio",
        ("application", "zip" | "x-zip-compressed" | "gzip" | "x-gzip") => "zip",
        ("text", _) | ("application", "json" | "javascript" | "xml" | "x-javascript") => "text",
        ("unknown", _) => "unknown",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_in_the_papers_classes() {
        let check = |content_type, expected| assert_eq!(class(content_type), expected);
        check("video/mp4", "video");
        check(RANGES, "video");
        check("application/octet-stream", "octet_stream");
        check("application/zip", "zip");
        check("text/html", "text");
        check("application/json", "text");
        check("application/pdf", "other");
        check("unknown", "unknown");
    }
}
