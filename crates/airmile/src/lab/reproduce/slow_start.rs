//! Huang et al., figures 15 and 16: duplicate ACKs, and timers that run out
//! although everything is on its way.

use airmile_emulate::Scenario;
use airmile_infer::tcp::StudyOptions;
use airmile_model::flow::{PacketRow, TcpEvent};

use super::estimate::{part, quantile, share};
use super::monitor::{Seen, watch};
use super::runs::{cannot, for_each, read};
use super::{Experiment, Row, Size};
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

/// R_ss of bursts of duplicate ACKs, and whether the sender's timer ran out.
fn bursts(seen: &Seen) -> Vec<(f64, bool, Option<bool>)> {
    let events: Vec<&TcpEvent> = seen
        .rows
        .iter()
        .filter_map(|row| match row {
            PacketRow::Tcp(event) if event.dir == "dl" => Some(&**event),
            _ => None,
        })
        .collect();
    let near = |burst: &TcpEvent| {
        events.iter().any(|other| {
            let off = (other.time_ns - burst.time_ns).abs();
            other.event == "retx_timeout" && other.flow == burst.flow && off < NEAR_NS
        })
    };
    let bursts = events.iter().filter(|e| matches!(e.event, "slow_start" | "recovered"));
    bursts.map(|b| (b.r_ss.unwrap_or(f64::NAN), near(b), b.avoided)).collect()
}

fn run_all(size: Size) -> Result<Vec<Row>> {
    let base = read(SCENARIO)?;
    let mut scenarios = Vec::new();
    for n in 0..size.of(1, 16, 100) {
        let of_2012 = Scenario { seed: 52_000 + n, ..base.clone() };
        let modern = of_2012.without(0).map_err(cannot)?;
        scenarios.extend([of_2012, modern]);
    }
    let runs = for_each(&scenarios, |scenario| watch(scenario, &StudyOptions::default()))?;
    let (old, new): (Vec<_>, Vec<_>) = runs.iter().enumerate().partition(|(at, _)| at % 2 == 0);
    let all = |runs: &[(usize, &Seen)]| -> Vec<(f64, bool, Option<bool>)> {
        runs.iter().flat_map(|(_, seen)| bursts(seen)).collect()
    };
    let (old_bursts, new_bursts) = (all(&old), all(&new));
    let r_ss = |timeout: bool| {
        let of = old_bursts.iter().filter(|b| b.1 == timeout).map(|b| b.0);
        quantile(&of.collect::<Vec<_>>(), 0.5)
    };
    let timeouts =
        |bursts: &[(f64, bool, Option<bool>)]| bursts.iter().filter(|b| b.1).count() as u64;
    let (before, after) = (timeouts(&old_bursts), timeouts(&new_bursts));
    let told: Vec<bool> = old_bursts.iter().filter_map(|b| b.2).collect();
    let avoided = told.iter().filter(|avoided| **avoided).count() as u64;
    let slow = old.iter().filter(|(_, seen)| bursts(seen).iter().any(|b| b.1)).count() as u64;
    const EXAMPLE: &str = "the paper gives one example of each; ours is a median, by whether a timeout \
                           is within a second of the burst";
    const EXAMPLE_SLOW: &str = "not as in the paper: likely since round trips here are longer than \
                                the two windows of 100 ms, in which a slow start then does not show";
    Ok(vec![
        Row::new("R_ss, the timer does not run out", "", r_ss(false)).paper(1.0).note(EXAMPLE),
        Row::new("R_ss, the timer runs out", "", r_ss(true)).paper(3.7).note(EXAMPLE_SLOW),
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
    ])
}
