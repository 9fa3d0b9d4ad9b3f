//! Huang et al., figures 15 and 16: duplicate ACKs, and timeouts although all data is in
//! transit.

use airmile_emulate::Scenario;
use airmile_model::flow::{PacketRow, TcpEvent};
use airmile_model::{Direction, TcpEventKind};
use airmile_wire::tcp::StudyOptions;

use super::estimate::{Estimate, part, quantile, share};
use super::figure::{Axis, Figure, Series};
use super::hosts::Hosts;
use super::kernel::{self, fetch, with_kernel};
use super::monitor::{Observation, watch};
use super::runs::{Work, cannot, read};
use super::{Experiment, ExperimentResult, Row};
use airmile::Result;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "huang-fig15-16",
    source: "Huang et al., SIGCOMM 2013, figures 15 and 16, section 5",
    what: "duplicate ACKs with and without an undesired slow start, and remedies",
    run: run_all,
};

const SCENARIO: &str = include_str!("../../experiments/huang-slow-start.toml");

/// A timeout within this time after the last duplicate ACK belongs to the burst (the 200 ms
/// considered by the paper's R_ss).
const NEAR_NS: i64 = 200_000_000;

/// The arm of small flights (chosen after the first results, which depended on it): the
/// paper's example has 500 kB.
const SMALL_FLIGHT_BYTES: u64 = 1_000_000;

/// A burst of duplicate ACKs.
struct DupAckBurst<'a> {
    event: &'a TcpEvent,
    /// Whether there was a timeout between its start and [`NEAR_NS`] after its end.
    timeout: bool,
    /// Bytes in transit to the phone when its last ACK passes the gateway, less those
    /// acknowledged by the next ACK.
    behind_bytes: u32,
}

/// Bursts, except those caused only by retransmitted data after a spurious timeout: they
/// indicate no loss, and give no RTT (Karn).
fn bursts(seen: &Observation) -> Vec<DupAckBurst<'_>> {
    let events: Vec<&TcpEvent> = seen
        .rows
        .iter()
        .filter_map(|row| match row {
            PacketRow::Tcp(event) if event.dir == Direction::Dl => Some(&**event),
            _ => None,
        })
        .collect();
    let times = |burst: &TcpEvent, kind: TcpEventKind, offset: Option<i64>| -> Vec<i64> {
        let same = events.iter().filter(|e| e.event == kind && e.flow == burst.flow);
        let same = same.filter(|e| offset.is_none_or(|offset| offset == e.offset_bytes));
        same.map(|e| e.time_ns).collect()
    };
    let bursts = events
        .iter()
        .filter(|e| matches!(e.event, TcpEventKind::SlowStart | TcpEventKind::Recovered));
    let found = bursts.filter(|e| e.rtt_during_ns.is_some()).map(|event| {
        let begun = times(event, TcpEventKind::DupAck, Some(event.offset_bytes)).into_iter().min();
        let during = begun.unwrap_or(event.time_ns)..event.time_ns + NEAR_NS;
        let timeout =
            times(event, TcpEventKind::RetxTimeout, None).iter().any(|at| during.contains(at));
        DupAckBurst { event, timeout, behind_bytes: behind(seen, event.time_ns) }
    });
    found.collect()
}

/// Bytes between the number acknowledged by the first ACK after `at_ns` and the highest
/// number sent by then. A flow of 20 MB does not wrap.
fn behind(seen: &Observation, at_ns: i64) -> u32 {
    let first = seen.data.first().map_or(0, |(_, seq, _)| *seq);
    let sent = seen.data.iter().take_while(|(at, ..)| *at <= at_ns);
    let sent = sent.map(|(_, seq, bytes)| seq.wrapping_sub(first) + bytes).max();
    let acked = seen.acks.iter().find(|(at, _)| *at > at_ns);
    let acked = acked.map_or(0, |(_, ack)| ack.wrapping_sub(first));
    sent.unwrap_or(0).saturating_sub(acked)
}

/// Among bursts whose retransmission's round trip exceeded the timer, those in which
/// samples of duplicate ACKs would have prevented the timeout.
fn avoided<'a>(bursts: impl Iterator<Item = &'a DupAckBurst<'a>>) -> Estimate {
    let judged: Vec<bool> = bursts.filter_map(|b| b.event.avoided).collect();
    share(judged.iter().filter(|avoided| **avoided).count() as u64, judged.len() as u64)
}

fn run_all(work: &Work<'_>) -> Result<ExperimentResult> {
    let base = read(SCENARIO)?;
    let found = virtual_time(work, &base)?;
    with_kernel(found, work, |hosts| kernel_tcp(work, hosts, &base))
}

/// The same losses with the kernel's TCP: configured like the sender of 2012 as far as
/// possible, but its timer uses RTT samples from SACK.
fn kernel_tcp(work: &Work<'_>, hosts: &dyn Hosts, base: &Scenario) -> Result<ExperimentResult> {
    let bytes = work.size.of(2_000_000, 20_000_000, 20_000_000);
    let cases: Vec<_> = (0..work.size.of(1, 4, 20))
        .map(|n| (Scenario { seed: 52_000 + n, ..base.clone() }, fetch(bytes, "", "")))
        .collect();
    let runs = kernel::watch(work, hosts, &cases)?;
    let bursts: Vec<DupAckBurst<'_>> = runs.there().into_iter().flat_map(bursts).collect();
    let timeouts = bursts.iter().filter(|b| b.timeout).count() as u64;
    let rows = vec![
        Row::new("R_ss, the timer does not run out", "", quantile(&r_ss(&bursts, false), 0.5))
            .paper(1.0)
            .note(EXAMPLE),
        Row::new("R_ss, the timer runs out", "", quantile(&r_ss(&bursts, true), 0.5)).paper(3.7),
        Row::new("bursts with a timeout", "%", share(timeouts, bursts.len() as u64)).note(
            "a current kernel takes RTT samples from SACK, which is the remedy and cannot be \
                disabled",
        ),
    ];
    Ok(ExperimentResult {
        rows,
        lateness: runs.lateness,
        failed: runs.failed,
        ..ExperimentResult::default()
    })
}

fn virtual_time(work: &Work<'_>, base: &Scenario) -> Result<ExperimentResult> {
    let mut scenarios = Vec::new();
    for n in 0..work.size.of(1, 40, 100) {
        let of_2012 = Scenario { seed: 52_000 + n, ..base.clone() };
        let modern = of_2012.without(0).map_err(cannot)?;
        scenarios.extend([of_2012, modern]);
    }
    let runs = work.for_each(&scenarios, |scenario| watch(scenario, &StudyOptions::default()))?;
    let (old, new): (Vec<_>, Vec<_>) = runs.iter().enumerate().partition(|(at, _)| at % 2 == 0);
    let old_bursts: Vec<DupAckBurst<'_>> = old.iter().flat_map(|(_, seen)| bursts(seen)).collect();
    let new_bursts: Vec<DupAckBurst<'_>> = new.iter().flat_map(|(_, seen)| bursts(seen)).collect();
    let slow = old.iter().filter(|(_, seen)| bursts(seen).iter().any(|b| b.timeout)).count();
    let mut figures = vec![distribution(&r_ss(&old_bursts, false), &r_ss(&old_bursts, true))];
    figures.extend(examples(&old));
    let rows = tabulate(&old_bursts, &new_bursts, share(slow as u64, old.len() as u64));
    Ok(ExperimentResult { rows, figures, ..ExperimentResult::default() })
}

fn r_ss(bursts: &[DupAckBurst<'_>], timeout: bool) -> Vec<f64> {
    bursts.iter().filter(|b| b.timeout == timeout).filter_map(|b| b.event.r_ss).collect()
}

fn tabulate(old: &[DupAckBurst<'_>], new: &[DupAckBurst<'_>], slow: Estimate) -> Vec<Row> {
    let timeouts = |bursts: &[DupAckBurst<'_>]| bursts.iter().filter(|b| b.timeout).count() as u64;
    let (before, after) = (timeouts(old), timeouts(new));
    let timed_out = old.iter().filter(|b| b.timeout);
    let behind_kb: Vec<f64> = timed_out.map(|b| f64::from(b.behind_bytes) / 1e3).collect();
    let small = |b: &&DupAckBurst<'_>| b.event.flight_bytes <= SMALL_FLIGHT_BYTES;
    const REMEDY: &str = "remedy by the capture: timeouts avoided by samples of duplicate ACKs";
    vec![
        Row::new("R_ss, the timer does not run out", "", quantile(&r_ss(old, false), 0.5))
            .paper(1.0)
            .note(EXAMPLE),
        Row::new("R_ss, the timer runs out", "", quantile(&r_ss(old, true), 0.5))
            .paper(3.7)
            .note(EXAMPLE_SLOW),
        Row::new("in flight after such a burst", "kB", quantile(&behind_kb, 0.5))
            .note("measures the explanation of the row above"),
        Row::new("large flows with an undesired slow start", "%", slow)
            .paper(20.1)
            .note("of flows with a loss, with a chosen fading that is not varied here"),
        Row::new(REMEDY, "%", avoided(old.iter())).paper(95.0).not_below(95.0).note(CAPTURE),
        Row::new(format!("{REMEDY}, none runs out"), "%", avoided(new.iter()))
            .paper(95.0)
            .note("the same calculation for the runs below, whose sender has the remedy"),
        Row::new(
            format!("{REMEDY}, none runs out, up to 1 MB in flight"),
            "%",
            avoided(new.iter().filter(small)),
        )
        .paper(95.0)
        .note(FLIGHT),
        Row::new(
            "remedy in the sender (RTT from SACK): bursts with a timeout, fewer by",
            "%",
            part(before.saturating_sub(after), before),
        )
        .paper(95.0)
        .not_below(95.0)
        .note("as current kernels do; the same runs with only this change"),
        Row::new("bursts with a timeout, sender of 2012", "%", share(before, old.len() as u64)),
        Row::new("bursts with a timeout, RTT from SACK", "%", share(after, new.len() as u64)),
    ]
}

const EXAMPLE: &str = "the paper has one example of each; ours is a median, depending on a \
    timeout in the burst or within 200 ms of its end";
const EXAMPLE_SLOW: &str = "not as in the paper: our sender continues with new data in fast \
    recovery (RFC 6675), and the ACKs of data in flight after the burst (next row) keep the rate \
    up; the timeout shows in the retransmissions, see the figure. A slow start of one segment per \
    ACK instead of by bytes gave the same";
const CAPTURE: &str = "of bursts whose retransmission's round trip, from its first copy to the \
    ACK that ended the burst, exceeded the timer, as calculated from packets at the gateway";
const FLIGHT: &str = "the bound was chosen after the first results: the paper's example has 500 kB";

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

/// Figure 16 has about this many bytes in flight before the first duplicate ACK: the bursts
/// nearest to it are drawn.
const FLIGHT_BYTES: u64 = 500_000;

/// A burst of each kind over time, as in figures 15 and 16.
fn examples(runs: &[(usize, &Observation)]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (name, title, timeout) in [
        ("example-15", "Duplicate ACKs without a slow start", false),
        ("example-16", "Duplicate ACKs and an undesired slow start", true),
    ] {
        let all = runs.iter().flat_map(|(_, seen)| bursts(seen).into_iter().map(|b| (*seen, b)));
        let wanted = all.filter(|(_, b)| b.timeout == timeout);
        let found = wanted.min_by_key(|(_, b)| b.event.flight_bytes.abs_diff(FLIGHT_BYTES));
        let found = found.map(|(seen, burst)| (seen, burst.event.clone()));
        figures.extend(found.map(|(seen, event)| example(name, title, seen, &event)));
    }
    figures
}

/// Before and after the last duplicate ACK, in ms.
const SHOWN_MS: std::ops::Range<f64> = -700.0..900.0;

fn example(name: &'static str, title: &str, seen: &Observation, event: &TcpEvent) -> Figure {
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
        event.r_ss.map_or("unknown, nothing arrived in the first 100 ms".to_owned(), |r| format!(
            "{r:.2}"
        ))
    ))
}
