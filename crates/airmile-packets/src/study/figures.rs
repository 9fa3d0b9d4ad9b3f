//! The paper's figures from a capture: what each shows, and our number next to the
//! paper's.

use airmile_wire::distribution::Distribution;
use airmile_wire::tcp::{RATE_SIZES_BYTES, StudySummary};
use schemars::JsonSchema;
use serde::Serialize;

use super::bandwidth::BandwidthTimeline;
use super::density::Density;
use super::flow_plot::FlowPlot;
use super::requests::Requests;
use super::words::percent;
use crate::compare::Compared;

/// A figure of the paper, drawn from this capture.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Figure {
    /// Its number in the paper.
    pub number: u8,
    /// Section of the paper.
    pub section: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// Its result for this capture, in words.
    pub says: String,
    /// Its numbers and the paper's.
    pub key: Vec<Compared>,
    /// Why the capture does not allow it; null if it is drawn.
    pub missing: Option<String>,
    /// What is drawn; null if the capture does not allow it.
    pub plot: Option<Plot>,
}

/// What a figure draws.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Plot {
    /// Cumulative distributions.
    Cumulative {
        /// The curves.
        of: Cumulative,
    },
    /// Samples of two values, counted in cells.
    Density {
        /// The cells.
        of: Density,
    },
    /// Available and used bandwidth over time.
    Bandwidth {
        /// One flow each.
        flows: Vec<BandwidthTimeline>,
    },
    /// A part of a flow's time-sequence graph.
    Excerpt {
        /// The part.
        flow: Box<FlowPlot>,
    },
    /// A flow of the document's `flows`, whole.
    Flow {
        /// Number of the flow.
        flow: u64,
        /// Available bandwidth in bit/s, for the ideal case.
        ideal_bps: Option<f64>,
    },
    /// Periodic requests of a client, and what it received.
    Requests {
        /// The transfers.
        of: Requests,
    },
}

/// Cumulative distributions on one axis.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Cumulative {
    /// Name of the axis.
    pub axis: &'static str,
    /// Unit: `bytes`, `s`, `ms`, `bit/s`, `share` or empty.
    pub unit: &'static str,
    /// Whether the axis is logarithmic.
    pub log: bool,
    /// The curves, by name of the document's `curves`.
    pub curves: Vec<Curve>,
    /// Points stated in the paper.
    pub paper: Vec<PaperPoint>,
}

/// One curve of a figure.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Curve {
    /// Name in `packets.curves`.
    pub curve: &'static str,
    /// What it is.
    pub label: &'static str,
    /// Number of values.
    pub n: u64,
    /// Their 5th, 50th and 95th percentile.
    pub percentiles: [f64; 3],
}

/// A point of a curve that the paper states.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PaperPoint {
    /// The curve of this document that it belongs to.
    pub curve: &'static str,
    /// Value.
    pub x: f64,
    /// Share of values that are not above it.
    pub y: f64,
}

impl Figure {
    /// A figure that the capture does not allow.
    pub(super) fn missing(
        number: u8,
        section: &'static str,
        title: &'static str,
        why: impl Into<String>,
    ) -> Self {
        let (says, key) = (String::new(), Vec::new());
        Self { number, section, title, says, key, missing: Some(why.into()), plot: None }
    }

    /// Removes what a capture at the phone does not show: bytes in flight with a full receive window, and
    /// slow starts with the timer.
    pub(super) fn hide_sender(&mut self) {
        if matches!(self.number, 10 | 13 | 15 | 16 | 23) {
            let why = "A capture at the phone does not show what a server had in flight, or when its timer expired: capture at the server.";
            *self = Self::missing(self.number, self.section, self.title, why);
        }
    }

    pub(super) const fn drawn(
        number: u8,
        section: &'static str,
        title: &'static str,
        says: String,
        plot: Plot,
    ) -> Self {
        let key = Vec::new();
        Self { number, section, title, says, key, missing: None, plot: Some(plot) }
    }

    /// Adds the numbers of these names to the figure.
    pub(super) fn with(mut self, all: &[Compared], names: &[&str]) -> Self {
        let named = |name: &&str| all.iter().find(|compared| compared.what == *name).cloned();
        self.key = names.iter().filter_map(named).collect();
        self
    }
}

/// A figure of cumulative distributions, as it is written below.
struct Cdf<'a> {
    number: u8,
    section: &'static str,
    title: &'static str,
    axis: &'static str,
    unit: &'static str,
    log: bool,
    curves: &'a [(&'static str, &'static str, &'a Distribution)],
    paper: &'a [(&'static str, f64, f64)],
    key: &'a [&'static str],
    /// Why a capture may lack it.
    missing: &'static str,
}

impl Cdf<'_> {
    fn figure(&self, all: &[Compared]) -> Figure {
        let drawn = self.curves.iter().filter(|(.., of)| of.n() > 0);
        let curves: Vec<Curve> = drawn
            .map(|&(curve, label, of)| Curve {
                curve,
                label,
                n: of.n(),
                percentiles: [0.05, 0.5, 0.95].map(|p| of.quantile(p).unwrap_or_default()),
            })
            .collect();
        if curves.is_empty() {
            return Figure::missing(self.number, self.section, self.title, self.missing)
                .with(all, self.key);
        }
        let paper = self.paper.iter().map(|&(curve, x, y)| PaperPoint { curve, x, y });
        let empty: Vec<&str> =
            self.curves.iter().filter(|(.., of)| of.n() == 0).map(|(_, label, _)| *label).collect();
        let says = if empty.is_empty() {
            String::new()
        } else {
            format!("The capture has no values for: {}.", empty.join(", "))
        };
        let plot = Plot::Cumulative {
            of: Cumulative {
                axis: self.axis,
                unit: self.unit,
                log: self.log,
                paper: paper.filter(|p| curves.iter().any(|c| c.curve == p.curve)).collect(),
                curves,
            },
        };
        Figure::drawn(self.number, self.section, self.title, says, plot).with(all, self.key)
    }
}

/// Curves that only figures need, by their names in the document.
pub(crate) fn more_curves(s: &StudySummary) -> impl Iterator<Item = (&'static str, &Distribution)> {
    RATE_CURVES
        .iter()
        .map(|curve| curve.0)
        .zip(&s.dl_rate_by_size_bps)
        .chain([("concurrency", &s.concurrency)])
}

const RATE_CURVES: [(&str, &str); RATE_SIZES_BYTES.len()] = [
    ("dl_rate_over_10kb_bps", "downlink, over 10 kB"),
    ("dl_rate_over_100kb_bps", "downlink, over 100 kB"),
    ("dl_rate_over_1mb_bps", "downlink, over 1 MB"),
];

/// Figures 2, 3, 5 to 8, 13, 14 and 21: distributions.
#[allow(clippy::too_many_lines, reason = "a table: a figure each")]
pub(super) fn distributions(s: &StudySummary, all: &[Compared]) -> Vec<Figure> {
    let [over_10kb, over_100kb, over_1mb] = &s.dl_rate_by_size_bps;
    let rate = |at: usize| RATE_CURVES.get(at).copied().unwrap_or_default();
    let no_tcp = "The capture has no TCP flow.";
    let no_large = "The capture has no large flow: over 1 MB down in more than 5 s.";
    [
        Cdf {
            number: 2,
            section: "4.1",
            title: "TCP flow sizes",
            axis: "payload of a flow",
            unit: "bytes",
            log: true,
            curves: &[
                ("ul_bytes", "uplink", &s.ul_bytes),
                ("dl_bytes", "downlink", &s.dl_bytes),
            ],
            paper: &[
                ("dl_bytes", 35_900.0, 0.9),
                ("dl_bytes", 1e6, 0.994),
                ("ul_bytes", 2_900.0, 0.9),
                ("ul_bytes", 1e5, 0.999),
            ],
            key: &[
                "bytes down, 90 % of flows are under",
                "bytes up, 90 % of flows are under",
                "their part of all bytes down",
            ],
            missing: no_tcp,
        },
        Cdf {
            number: 3,
            section: "4.1",
            title: "Flow duration, and from the last payload to the end",
            axis: "time",
            unit: "s",
            log: true,
            curves: &[
                ("duration_s", "duration", &s.duration_s),
                ("payload_to_end_s", "last payload to end", &s.payload_to_end_s),
            ],
            paper: &[
                ("duration_s", 5.0, 0.481),
                ("duration_s", 180.0, 0.932),
                ("duration_s", 600.0, 0.972),
                ("payload_to_end_s", 10.0, 0.769),
            ],
            key: &[
                "flows shorter than 5 s",
                "flows over 3 min",
                "FIN or RST over 10 s after the payload",
            ],
            missing: no_tcp,
        },
        Cdf {
            number: 5,
            section: "4.1",
            title: "TCP flow rates",
            axis: "rate of a flow",
            unit: "bit/s",
            log: true,
            curves: &[
                ("ul_rate_bps", "uplink", &s.ul_rate_bps),
                ("dl_rate_bps", "downlink", &s.dl_rate_bps),
                (rate(0).0, rate(0).1, over_10kb),
                (rate(1).0, rate(1).1, over_100kb),
                (rate(2).0, rate(2).1, over_1mb),
            ],
            paper: &[],
            key: &["log rate and size, down", "log duration and rate, down"],
            missing: "No TCP flow of the capture carries payload over any time.",
        },
        Cdf {
            number: 6,
            section: "4.1",
            title: "TCP flows that receive at the same time, per user",
            axis: "flows that receive in a second",
            unit: "",
            log: false,
            curves: &[("concurrency", "seconds in which a user receives", &s.concurrency)],
            paper: &[("concurrency", 1.0, 0.721)],
            key: &["time with one flow that receives"],
            missing: "No TCP flow of the capture carries payload to a client.",
        },
        Cdf {
            number: 7,
            section: "4.2",
            title: "Handshake RTT and DNS lookup time",
            axis: "time",
            unit: "ms",
            log: true,
            curves: &[
                ("downstream_rtt_ms", "client to monitor (C-M)", &s.downstream_ms),
                ("proxy_rtt_ms", "monitor to proxy (M-P)", &s.proxy_ms),
                ("upstream_rtt_ms", "monitor to server (M-S)", &s.upstream_ms),
                ("handshake_rtt_ms", "client to server (C-S)", &s.handshake_ms),
                ("dns_ms", "DNS lookup", &s.dns_ms),
            ],
            paper: &[
                ("handshake_rtt_ms", 30.0, 0.05),
                ("handshake_rtt_ms", 70.0, 0.5),
                ("handshake_rtt_ms", 467.0, 0.95),
                ("dns_ms", 10.0, 0.873),
            ],
            key: &[
                "handshake, monitor to client, median",
                "handshake, monitor to server, median",
                "DNS lookups under 10 ms",
            ],
            missing: "The capture has neither a whole TCP handshake nor a DNS lookup.",
        },
        Cdf {
            number: 8,
            section: "4.2",
            title: "RTT beyond the monitor over RTT to the client",
            axis: "RTT(M-S) / RTT(C-M)",
            unit: "",
            log: true,
            curves: &[("rtt_ratio", "handshakes without the proxy", &s.rtt_ratio)],
            paper: &[("rtt_ratio", 1.0, 0.45)],
            key: &["flows whose upstream RTT is the larger"],
            missing: "The capture has no whole TCP handshake outside the proxy's ports \
                      (--proxy-ports says which those are).",
        },
        Cdf {
            number: 13,
            section: "4.3",
            title: "Bytes in flight of flows over 1 MB",
            axis: "bytes in flight",
            unit: "bytes",
            log: true,
            curves: &[("flight_bytes", "at each segment sent", &s.flight_bytes)],
            paper: &[("flight_bytes", 2e5, 0.9)],
            key: &["in flight over 200 KB, flows over 1 MB"],
            missing: "No flow of the capture carries over 1 MB to a client.",
        },
        Cdf {
            number: 14,
            section: "5",
            title: "Duplicate ACKs and reordering in large flows",
            axis: "per large flow",
            unit: "",
            log: true,
            curves: &[
                ("large_dup_acks", "duplicate ACKs", &s.large_dup_acks),
                ("large_out_of_order", "segments out of order", &s.large_out_of_order),
                ("dup_ack_ratio", "duplicate ACKs for one of them", &s.dup_ack_ratio),
            ],
            paper: &[
                ("large_dup_acks", 17.0, 0.5),
                ("large_dup_acks", 100.0, 0.71),
                ("large_out_of_order", 2.0, 0.5),
                ("dup_ack_ratio", 25.0, 0.753),
            ],
            key: &[
                "duplicate ACKs of large flows, median",
                "out-of-order segments of large flows, median",
                "undesired slow start, of large flows with a loss",
            ],
            missing: no_large,
        },
        Cdf {
            number: 21,
            section: "6.3",
            title: "Bandwidth used, of what was available, by large flows",
            axis: "used / available",
            unit: "share",
            log: false,
            curves: &[("utilisation", "large flows alone on their link", &s.utilisation)],
            paper: &[
                ("utilisation", 0.198, 0.5),
                ("utilisation", 0.5, 0.713),
                ("utilisation", 1.0, 0.936),
            ],
            key: &[
                "bandwidth used by large flows, median",
                "bandwidth used by large flows, mean",
                "large flows that use under half of it",
            ],
            missing: "The available bandwidth of no large flow is known: that takes over 1 MB \
                      down in more than 5 s, time stamps, no concurrent flow of the user, and \
                      sending faster than --send-rate (`--send-rate auto` takes it from the queue).",
        },
    ]
    .iter()
    .map(|cdf| cdf.figure(all))
    .map(|figure| overused(s, figure))
    .collect()
}

/// Adds a note if figure 21 shows more than was available.
fn overused(s: &StudySummary, mut figure: Figure) -> Figure {
    let over = s.utilisation.share_above(1.0).unwrap_or_default();
    if figure.number == 21 && over > 0.0 && figure.plot.is_some() {
        figure.says = format!(
            "{} of them are above 100 %: there the available bandwidth is estimated too low, of \
             few windows (`--send-rate auto` finds more).",
            percent(over)
        );
    }
    figure
}
