//! Figures 1 and 2: what makes pages slow over LTE, and what a page gains from the window of the one
//! before it.

use airmile_emulate::{Competing, Scenario};

use super::super::estimate::Estimate;
use super::cell::correlation;
use super::load::{Loaded, worst};
use super::{
    Axis, CLAW, CUBIC, Experiment, ExperimentResult, Figure, Row, SEEDS, Series, Work, load, mean,
    page, web,
};
use airmile::Result;

pub(in crate::reproduce) const EXPERIMENT: Experiment = Experiment {
    name: "claw-fig1-2",
    source: "CLAW, MobiSys 2017, figures 1 and 2 (section 3)",
    what: "a page with Cubic in 50 conditions: round trips, losses and load time; five loads in a row",
    run: motivation,
};

/// A page of figure 1: 2,700 packets (section 3).
const PACKETS: u64 = 2_700;
const PACKET_BYTES: u64 = 1_448;

/// A fraction that differs from run to run and is spread evenly: the golden ratio's multiples.
fn spread(n: u64, turns: f64) -> f64 {
    (n as f64 * 0.618_033_988_75 * turns).fract()
}

/// One of the conditions of a day (set before any page was loaded in them): signal from 4 to 20 dB, up to
/// twelve other users, up to 0.5 % of losses in half of the runs.
fn condition(n: u64) -> Result<Scenario> {
    page(|scenario| {
        scenario.seed = SEEDS + n;
        scenario.server_tcp.control = CUBIC;
        scenario.link.snr_mean_db = 4.0 + 16.0 * spread(n, 1.0);
        let users = (12.0 * spread(n, 2.0)) as u16;
        let (mean_on_ms, mean_off_ms) = (1_000, 1_000);
        let rate_bps = 1_700_000;
        if users > 0 {
            let others = Competing::OnOff { users, rate_bps, mean_on_ms, mean_off_ms };
            scenario.competing = vec![others];
        }
        scenario.core.down.loss = (0.01 * spread(n, 3.0) - 0.005).max(0.0);
        if let Some(web) = web(scenario) {
            (web.objects, web.page_bytes) = (40, PACKETS * PACKET_BYTES);
        }
    })
}

/// Five loads of a page of 1 MB and 40 objects, one after another.
fn in_a_row(n: u64, control: airmile_control::ControllerKind) -> Result<Scenario> {
    page(|scenario| {
        scenario.seed = SEEDS + n;
        scenario.server_tcp.control = control;
        if let Some(web) = web(scenario) {
            (web.pages, web.gap_ms) = (5, 500);
            (web.objects, web.page_bytes, web.depth) = (40, 1_000_000, 3);
        }
    })
}

fn share_again(one: &Loaded) -> f64 {
    100.0 * one.again as f64 / one.sent.max(1) as f64
}

/// A correlation with its 95 % interval (Fisher's z).
fn correlated(pairs: &[(f64, f64)]) -> Estimate {
    let value = correlation(pairs);
    let margin = 1.96 / (pairs.len() as f64 - 3.0).sqrt();
    let interval = ((value.atanh() - margin).tanh(), (value.atanh() + margin).tanh());
    Estimate { value, n: pairs.len() as u64, interval: Some(interval) }
}

fn motivation(work: &Work<'_>) -> Result<ExperimentResult> {
    let conditions: Vec<Scenario> =
        (0..work.size.of(4, 50, 50)).map(condition).collect::<Result<_>>()?;
    let loads = work.for_each(&conditions, load)?;
    let pairs = |of: fn(&Loaded) -> f64| -> Vec<(f64, f64)> {
        loads.iter().map(|one| (of(one), one.page_ms)).collect()
    };
    let times = |lossy: bool| -> Vec<f64> {
        let of = loads.iter().filter(|one| (one.again > 0) == lossy);
        of.map(|one| one.page_ms).collect()
    };
    let again: Vec<f64> = loads.iter().map(share_again).collect();
    let (by_rtt, by_loss) = (pairs(|one| one.rtt_ms), pairs(share_again));
    let mut rows = vec![
        Row::new("correlation of load time with the round trip", "", correlated(&by_rtt)),
        Row::new("correlation of load time with retransmissions", "", correlated(&by_loss)),
        Row::new("load time without retransmissions", "ms", mean(&times(false))),
        Row::new("load time with retransmissions", "ms", mean(&times(true))),
        Row::new("retransmitted segments, worst load", "%", worst(&again))
            .note("the paper: under 1 % lost"),
    ];
    let runs = work.size.of(1, 10, 20);
    let (x, y) = (Axis::new("time in s"), Axis::new("window in kB"));
    let mut windows = Figure::new("windows", "The window in five loads of a page", x, y);
    for (kind, name) in [(CUBIC, "Cubic"), (CLAW, "CLAW")] {
        let scenarios: Vec<Scenario> =
            (0..runs).map(|n| in_a_row(n, kind)).collect::<Result<_>>()?;
        let rowed = work.for_each(&scenarios, load)?;
        let nth = |n: usize| -> Vec<f64> {
            rowed.iter().filter_map(|one| one.pages_ms.get(n).copied()).collect()
        };
        let change: Vec<f64> = nth(0).iter().zip(nth(4)).map(|(a, e)| 100.0 * e / a).collect();
        rows.push(Row::new(format!("{name}, first of five loads"), "ms", mean(&nth(0))));
        rows.push(Row::new(format!("{name}, fifth load"), "ms", mean(&nth(4))));
        let row = Row::new(format!("{name}, fifth load over the first"), "%", mean(&change));
        rows.push(if kind == CUBIC { row.paper(33.0) } else { row });
        if let Some(first) = rowed.first() {
            let window = first.cwnd.iter().map(|(ms, kb)| (ms / 1e3, *kb));
            windows = windows.with(Series::curve(name, window.collect()));
        }
    }
    let (x, y) = (Axis::new("round trip in ms"), Axis::new("load time in ms"));
    let conditions = Figure::new("round-trips", "Load time and round trip with Cubic", x, y)
        .with(Series::scatter("loads", by_rtt));
    Ok(ExperimentResult { rows, figures: vec![conditions, windows], ..ExperimentResult::default() })
}
