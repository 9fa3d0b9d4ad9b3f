//! Huang et al., figures 15 and 16: duplicate ACKs, and timers that run out
//! although everything is on its way.

use airmile_emulate::Scenario;
use airmile_infer::tcp::StudyOptions;
use airmile_model::flow::{PacketRow, TcpEvent};

use super::estimate::{part, quantile, share};
use super::figure::{Axis, Figure, Series};
use super::monitor::{Seen, watch};
use super::runs::{Work, cannot, read};
use super::{Experiment, Found, Row};
use crate::error::Result;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "huang-fig15-16",
    source: "Huang et al., SIGCOMM 2013, figures 15 and 16, section 5",
    what: "duplicate ACKs with and without an undesired slow start, and remedies",
    run: run_all,
};

const SCENARIO: &str = include_str!("../../../experiments/huang-slow-start.toml");

/// A timer that runs out so close to the last duplicate ACK belongs to it
/// (chosen here: several times the round trips of these runs, under 400 ms).
const NEAR_NS: i64 = 1_000_000_000;

/// A burst of duplicate ACKs.
struct Burst<'a> {
    event: &'a TcpEvent,
    /// Whether the sender's timer ran out, and how long after the last of them
    /// (negative: before it) what it sent passed the gateway.
    timeout_ns: Option<i64>,
}

fn bursts(seen: &Seen) -> Vec<Burst<'_>> {
    let events: Vec<&TcpEvent> = seen
        .rows
        .iter()
        .filter_map(|row| match row {
            PacketRow::Tcp(event) if event.dir == "dl" => Some(&**event),
            _ => None,
        })
        .collect();
    let timeout = |burst: &TcpEvent| {
        let timeouts = events.iter().filter(|e| e.event == "retx_timeout" && e.flow == burst.flow);
        let off = timeouts.map(|e| e.time_ns - burst.time_ns);
        off.filter(|off| off.abs() < NEAR_NS).min_by_key(|off| off.abs())
    };
    let bursts = events.iter().filter(|e| matches!(e.event, "slow_start" | "recovered"));
    bursts.map(|event| Burst { event, timeout_ns: timeout(event) }).collect()
}

fn run_all(work: &Work<'_>) -> Result<Found> {
    let base = read(SCENARIO)?;
    let mut scenarios = Vec::new();
    for n in 0..work.size.of(1, 16, 100) {
        let of_2012 = Scenario { seed: 52_000 + n, ..base.clone() };
        let modern = of_2012.without(0).map_err(cannot)?;
        scenarios.extend([of_2012, modern]);
    }
    let runs = work.for_each(&scenarios, |scenario| watch(scenario, &StudyOptions::default()))?;
    let (old, new): (Vec<_>, Vec<_>) = runs.iter().enumerate().partition(|(at, _)| at % 2 == 0);
    let old_bursts: Vec<Burst<'_>> = old.iter().flat_map(|(_, seen)| bursts(seen)).collect();
    let new_bursts: Vec<Burst<'_>> = new.iter().flat_map(|(_, seen)| bursts(seen)).collect();
    let r_ss = |timeout: bool| -> Vec<f64> {
        let of = old_bursts.iter().filter(|b| b.timeout_ns.is_some() == timeout);
        of.filter_map(|b| b.event.r_ss).collect()
    };
    if std::env::var_os("DUMP").is_some() {
        for b in &old_bursts {
            let e = b.event;
            let ms = |ns: Option<i64>| ns.map_or(-1, |ns| ns / 1_000_000);
            eprintln!(
                "{} dup {:?} flight {} r_ss {:?} timeout {} before {} during {} retx {} rto {} with {} avoided {:?}",
                e.event,
                e.dup_acks.unwrap_or(0),
                e.flight_bytes,
                e.r_ss,
                ms(b.timeout_ns),
                ms(e.rtt_before_ns),
                ms(e.rtt_during_ns),
                ms(e.rtt_retx_ns),
                ms(e.rto_ns),
                ms(e.rto_with_dup_acks_ns),
                e.avoided
            );
        }
    }
    let figures =
        vec![distribution(&r_ss(false), &r_ss(true))].into_iter().chain(examples(&old)).collect();
    let timeouts =
        |bursts: &[Burst<'_>]| bursts.iter().filter(|b| b.timeout_ns.is_some()).count() as u64;
    let (before, after) = (timeouts(&old_bursts), timeouts(&new_bursts));
    let told: Vec<bool> = old_bursts.iter().filter_map(|b| b.event.avoided).collect();
    let avoided = told.iter().filter(|avoided| **avoided).count() as u64;
    let slow = old.iter().filter(|(_, seen)| timeouts(&bursts(seen)) > 0).count() as u64;
    const EXAMPLE: &str = "the paper gives one example of each; ours is a median, by whether a timeout \
                           is within a second of the burst";
    const EXAMPLE_SLOW: &str = "not as in the paper: likely since round trips here are longer than \
                                the two windows of 100 ms, in which a slow start then does not show";
    let rows = vec![
        Row::new("R_ss, the timer does not run out", "", quantile(&r_ss(false), 0.5))
            .paper(1.0)
            .note(EXAMPLE),
        Row::new("R_ss, the timer runs out", "", quantile(&r_ss(true), 0.5))
            .paper(3.7)
            .note(EXAMPLE_SLOW),
        Row::new("large flows with an undesired slow start", "%", share(slow, old.len() as u64))
            .paper(20.1)
            .note("of flows that lose a packet; how often hangs on the fading, which is chosen"),
        Row::new(
            "remedy by the capture: timers that samples of duplicate ACKs hold",
            "%",
            share(avoided, told.len() as u64),
        )
        .paper(95.0)
        .note(
            "of bursts where the retransmission's round trip was over the timer, as reckoned from \
                 packets at the gateway; lower than in the paper, not explained",
        ),
        Row::new(
            "remedy in the sender (RTT from SACK): bursts with a timeout, fewer by",
            "%",
            part(before.saturating_sub(after), before),
        )
        .paper(95.0)
        .note("the kernels of today do so; the runs again with that one change"),
        Row::new(
            "bursts with a timeout, sender of 2012",
            "%",
            share(before, old_bursts.len() as u64),
        ),
        Row::new(
            "bursts with a timeout, RTT from SACK",
            "%",
            share(after, new_bursts.len() as u64),
        ),
    ];
    Ok(Found { rows, figures })
}

fn distribution(without: &[f64], with: &[f64]) -> Figure {
    Figure::new(
        "r-ss",
        "R_ss of bursts of duplicate ACKs",
        Axis::new("R_ss").from(0.0, 6.0),
        Axis::cdf("bursts up to this (%)"),
    )
    .with(Series::cdf("the timer does not run out", without))
    .with(Series::cdf("the timer runs out", with))
    .paper_x("figure 15, 1.0", 1.0)
    .paper_x("above 1.5: a slow start", 1.5)
    .paper_x("figure 16, 3.7", 3.7)
    .caption(format!(
        "n = {} bursts without and {} with a timeout; those with nothing in the first 100 ms have no R_ss.",
        without.len(),
        with.len()
    ))
}

/// Figure 16 has about so much in flight before the first duplicate ACK: of our
/// bursts the nearest to it are drawn.
const FLIGHT_BYTES: u64 = 500_000;

/// A burst of each kind over time, as figures 15 and 16 have them.
fn examples(runs: &[(usize, &Seen)]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (name, title, timeout) in [
        ("example-15", "Duplicate ACKs without a slow start", false),
        ("example-16", "Duplicate ACKs and an undesired slow start", true),
    ] {
        let all = runs.iter().flat_map(|(_, seen)| bursts(seen).into_iter().map(|b| (*seen, b)));
        let wanted = all.filter(|(_, b)| b.timeout_ns.is_some() == timeout);
        let found = wanted.min_by_key(|(_, b)| b.event.flight_bytes.abs_diff(FLIGHT_BYTES));
        let found = found.map(|(seen, burst)| (seen, burst.event.clone()));
        figures.extend(found.map(|(seen, event)| example(name, title, seen, &event)));
    }
    figures
}

/// Before and after the last duplicate ACK, in ms.
const SHOWN_MS: std::ops::Range<f64> = -700.0..900.0;

fn example(name: &'static str, title: &str, seen: &Seen, event: &TcpEvent) -> Figure {
    let first = seen.data.first().map_or(0, |(_, seq, _)| *seq);
    let ms = |at_ns: i64| (at_ns - event.time_ns) as f64 / 1e6;
    // Offsets of a flow of 20 MB do not wrap.
    let kb = |seq: u32| (f64::from(seq.wrapping_sub(first)) - event.offset_bytes as f64) / 1e3;
    let data = seen.data.iter().map(|(at, seq, _)| (ms(*at), kb(*seq)));
    let acks = seen.acks.iter().map(|(at, ack)| (ms(*at), kb(*ack)));
    let shown = |points: &mut dyn Iterator<Item = (f64, f64)>| -> Vec<(f64, f64)> {
        points.filter(|(at, _)| SHOWN_MS.contains(at)).collect()
    };
    let (mut data, mut acks) = (data, acks);
    Figure::new(
        name,
        title,
        Axis::new("time since the last duplicate ACK, at the gateway (ms)")
            .from(SHOWN_MS.start, SHOWN_MS.end),
        Axis::new("sequence number from the lost segment on (kB)"),
    )
    .with(Series::scatter("data to the phone", shown(&mut data)))
    .with(Series::curve("acknowledged", shown(&mut acks)))
    .caption(format!(
        "One burst of {} duplicate ACKs, {} kB in flight before it; R_ss {}.",
        event.dup_acks.unwrap_or(0),
        event.flight_bytes / 1_000,
        event.r_ss.map_or("not known, nothing came in the first 100 ms".to_owned(), |r| format!(
            "{r:.2}"
        ))
    ))
}
