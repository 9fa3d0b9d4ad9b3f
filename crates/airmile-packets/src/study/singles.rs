//! Figures 10, 15, 16 and 22 to 24: samples and single flows.

use airmile_model::flow::FlowRow;

use super::bandwidth::BandwidthTimeline;
use super::choice::{DupAckBurst, window_share};
use super::density::{Density, middle};
use super::figures::{Figure, Plot};
use super::flow_plot::FlowPlot;
use super::requests::Requests;
use super::words::{bytes, count, ms, percent};
use crate::compare::Compared;

/// Data for these figures.
pub(super) struct Singles<'a> {
    pub(super) all: &'a [Compared],
    pub(super) density: Density,
    /// A burst with a slow start, and one without.
    pub(super) bursts: &'a [Option<DupAckBurst>; 2],
    /// Their graphs.
    pub(super) excerpts: [Option<FlowPlot>; 2],
    pub(super) timelines: Vec<BandwidthTimeline>,
    /// The flow that its window limited longest, and whether it is drawn.
    pub(super) window: Option<(&'a FlowRow, bool)>,
    pub(super) requests: Option<Requests>,
    pub(super) flows_missing: Option<&'a str>,
}

/// A number of a single example, and that of the paper's example.
const fn example(
    section: &'static str,
    what: &'static str,
    unit: &'static str,
    here: Option<f64>,
    paper: Option<f64>,
) -> Compared {
    Compared { section, what, unit, here, paper, n: None }
}

impl Singles<'_> {
    pub(super) fn figures(self) -> Vec<Figure> {
        let Self { all, density, bursts, excerpts, timelines, window, requests, flows_missing } =
            self;
        let why = |what: &str| flows_missing.unwrap_or(what).to_owned();
        let [slow_start, recovered] = excerpts;
        let [slow_burst, recovered_burst] = bursts;
        vec![
            scatter(density),
            match (recovered, recovered_burst) {
                (Some(graph), Some(burst)) => without_slow_start(graph, burst),
                _ => Figure::missing(
                    15,
                    "5",
                    WITHOUT,
                    why("No burst of three duplicate ACKs or more ended without a slow start."),
                ),
            },
            match (slow_start, slow_burst) {
                (Some(graph), Some(burst)) => with_slow_start(graph, burst),
                _ => Figure::missing(
                    16,
                    "5",
                    WITH,
                    why("No burst of three duplicate ACKs or more was followed by a slow start: \
                         R_ss over 1.5."),
                ),
            },
            bandwidth(timelines, flows_missing).with(
                all,
                &["available downlink bandwidth, median", "bandwidth used by large flows, median"],
            ),
            window_limited(window, all, flows_missing),
            periodic(requests, flows_missing),
        ]
    }
}

fn scatter(density: Density) -> Figure {
    const TITLE: &str = "Downlink bytes in flight against RTT to the client";
    if density.cells.is_empty() {
        let why = "No data to a client was acknowledged with more in flight: both directions must \
                   be in the capture.";
        return Figure::missing(10, "4.3", TITLE, why);
    }
    let sentence = |[column, rtt]: &[f64; 2]| {
        format!("{} with {} in flight", ms(*rtt), bytes(middle(*column)))
    };
    let says = match (density.medians_ms.first(), density.medians_ms.last()) {
        (Some(first), Some(last)) if first[0] < last[0] => {
            format!("The median RTT is {}, and {}.", sentence(first), sentence(last))
        }
        _ => String::new(),
    };
    let most = Some(density.most_bytes as f64);
    // "can be larger than 1200 KB" (4.3).
    let mut key = example("4.3", "most bytes in flight", "bytes", most, Some(1_200_000.0));
    key.n = Some(density.n);
    let mut figure = Figure::drawn(10, "4.3", TITLE, says, Plot::Density { of: density });
    figure.key = vec![key];
    figure
}

const WITHOUT: &str = "Duplicate ACKs that no slow start follows";
const WITH: &str = "Duplicate ACKs and an undesired slow start";

fn without_slow_start(graph: FlowPlot, burst: &DupAckBurst) -> Figure {
    let event = &burst.event;
    let says = burst_says(&graph, burst);
    let mut figure = Figure::drawn(15, "5", WITHOUT, says, Plot::Excerpt { flow: Box::new(graph) });
    figure.key = vec![example("5", "R_ss of the burst", "ratio", event.r_ss, Some(1.0))];
    figure
}

fn with_slow_start(graph: FlowPlot, burst: &DupAckBurst) -> Figure {
    let event = &burst.event;
    let in_ms = |ns: Option<i64>| ns.map(|ns| ns as f64 / 1e6);
    let says = burst_says(&graph, burst);
    let mut figure = Figure::drawn(16, "5", WITH, says, Plot::Excerpt { flow: Box::new(graph) });
    // 262, 356 and 290 ms of the paper's example (5).
    figure.key = vec![
        example("5", "R_ss of the burst", "ratio", event.r_ss, Some(3.7)),
        example("5", "RTT before the burst", "ms", in_ms(event.rtt_before_ns), Some(262.0)),
        example("5", "RTT of the retransmission", "ms", in_ms(event.rtt_retx_ns), Some(356.0)),
        example("5", "RTO before the burst", "ms", in_ms(event.rto_ns), Some(290.0)),
    ];
    figure
}

fn burst_says(graph: &FlowPlot, burst: &DupAckBurst) -> String {
    let event = &burst.event;
    let mut text = format!(
        "Flow {}, {}: {} with {} in flight at the first.",
        graph.flow,
        graph.label,
        count(event.dup_acks.unwrap_or_default(), "duplicate ACK"),
        bytes(event.flight_bytes as f64),
    );
    if event.r_ss.is_none() {
        text.push_str(" Nothing was sent in the 100 ms after the last, so R_ss has no value.");
    }
    match event.avoided {
        Some(true) => {
            text.push_str(" RTTs from the duplicate ACKs would have prevented the timeout.")
        }
        Some(false) => {
            text.push_str(" RTTs from the duplicate ACKs would not have prevented the timeout.")
        }
        None => {}
    }
    text
}

fn bandwidth(flows: Vec<BandwidthTimeline>, missing: Option<&str>) -> Figure {
    const TITLE: &str = "Available bandwidth of two large flows";
    let flows: Vec<BandwidthTimeline> = flows.into_iter().filter(|flow| flow.n > 0).collect();
    if flows.is_empty() {
        let why = missing.unwrap_or(
            "No downlink flow of over 2 s has estimates: they take time stamps and sending \
             faster than --send-rate (`--send-rate auto` takes it from the queue).",
        );
        return Figure::missing(22, "6.3", TITLE, why);
    }
    let estimates: u64 = flows.iter().map(|flow| flow.n).sum();
    let one = if flows.len() == 1 { " The capture has one such flow alone." } else { "" };
    let says = format!("{} in windows of 250 ms and more.{one}", count(estimates, "estimate"));
    Figure::drawn(22, "6.3", TITLE, says, Plot::Bandwidth { flows })
}

fn window_limited(
    flow: Option<(&FlowRow, bool)>,
    all: &[Compared],
    missing: Option<&str>,
) -> Figure {
    const TITLE: &str = "A full receive window holds a download back";
    const KEYS: [&str; 2] =
        ["downlink flows with a full receive window", "of them, in the first tenth of the flow"];
    let why = match (missing, flow) {
        (Some(why), _) => why.to_owned(),
        (None, Some((row, false))) => format!("Flow {0} shows it: --flow {0}.", row.flow),
        (None, _) => "No downlink flow had a full receive window for over 5 % of its time (flows \
                      without their SYNs do not show their window's scale)."
            .to_owned(),
    };
    let (Some((row, true)), None) = (flow, missing) else {
        return Figure::missing(23, "7.2", TITLE, why).with(all, &KEYS);
    };
    let says = format!(
        "Flow {}: the window was full for {} of {}, first at {} of it; the smallest window was {}.",
        row.flow,
        percent(window_share(row)),
        ms(row.duration_ns as f64 / 1e6),
        row.window_full_first.map_or_else(|| "-".into(), percent),
        row.client_min_window_bytes.map_or_else(|| "unknown".into(), |b| bytes(b as f64)),
    );
    let plot = Plot::Flow { flow: row.flow, ideal_bps: row.available_bps };
    let mut figure = Figure::drawn(23, "7.2", TITLE, says, plot).with(all, &KEYS);
    let took = row.dl_data_ns as f64 / 1e9;
    let ideal = row.available_bps.map(|bps| row.dl_bytes as f64 * 8.0 / bps);
    figure.key.push(example("7.2", "this download took", "s", Some(took), Some(9.0)));
    figure.key.push(example("7.2", "ideal: at the available bandwidth", "s", ideal, Some(2.5)));
    figure
}

fn periodic(requests: Option<Requests>, missing: Option<&str>) -> Figure {
    const TITLE: &str = "Periodic requests, and what the client receives";
    let requests = match (requests, missing) {
        (Some(requests), None) => requests,
        (_, missing) => {
            let none = "No client asks one server again and again at equal intervals.";
            return Figure::missing(24, "7.2", TITLE, missing.unwrap_or(none));
        }
    };
    let says = format!(
        "{} asks {} every {:.1} s; {} of the time nothing passes between them.",
        requests.client,
        requests.server,
        requests.period_s,
        percent(requests.idle_share)
    );
    let key = vec![example("7.2", "period", "s", Some(requests.period_s), Some(10.0))];
    let mut figure = Figure::drawn(24, "7.2", TITLE, says, Plot::Requests { of: requests });
    figure.key = key;
    figure
}
