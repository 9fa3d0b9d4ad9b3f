//! Figure 19: many users of one cell.

use airmile_control::ControllerKind;
use airmile_emulate::{OtherConfig, Scenario};

use super::load::{Loaded, load};
use super::{
    AT_ONCE_SEGMENTS, Axis, CLAW, CUBIC, Experiment, ExperimentResult, Figure, Row, SEEDS, Series,
    Work, judged, mean, name, read,
};
use airmile::Result;

pub(in crate::reproduce) const EXPERIMENT: Experiment = Experiment {
    name: "claw-fig19",
    source: "CLAW, MobiSys 2017, figure 19",
    what: "users who each load 750 kB within 30 s: load time and Jain's index, up to 45 and with 500",
    run: run_all,
};

const SCENARIO: &str = include_str!("../../../experiments/claw-users.toml");

/// Other phones than the measured one, with the same page at a random time.
fn crowd(users: u16, seed: u64) -> Result<Scenario> {
    let mut scenario = read(SCENARIO)?;
    scenario.seed = seed;
    let apps =
        scenario.apps.iter().cloned().map(|app| airmile_emulate::AppConfig { start_ms: 0, ..app });
    scenario.others = vec![OtherConfig {
        count: users - 1,
        link: None,
        core: scenario.core.clone(),
        start_spread_ms: 30_000,
        control: None,
        apps: apps.collect(),
    }];
    Ok(scenario)
}

/// Results of a run's users.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Shared {
    mean_ms: f64,
    /// Jain's index of their rates.
    jain: f64,
    /// Share in percent of pages that were unfinished at the end of the run.
    unfinished: f64,
}

/// Mean load time of a run's users, and Jain's index of their rates.
fn shared(loaded: &Loaded) -> Shared {
    let all = || std::iter::once(&loaded.page_ms).chain(&loaded.others_ms);
    let n = all().count() as f64;
    let rates = || all().map(|ms| 1.0 / ms);
    let (sum, squares) = (rates().sum::<f64>(), rates().map(|r| r * r).sum::<f64>());
    Shared {
        mean_ms: all().sum::<f64>() / n,
        jain: sum * sum / (n * squares),
        unfinished: 100.0 * loaded.unfinished as f64 / n,
    }
}

/// Algorithms; the last sends all at once, which is the fastest that any window allows.
const ARMS: [(ControllerKind, bool); 3] = [(CLAW, false), (CUBIC, false), (CUBIC, true)];
const BOUND_OF_FAIRNESS: &str =
    "above 0: CLAW is fairer; bound: the index of all sent at once, as early pages are faster";

fn run_all(work: &Work<'_>) -> Result<ExperimentResult> {
    // Few runs of the large one, as each is a minute with 500 phones.
    let most = work.size.of(15, 500, 500) as u16;
    let crowds: Vec<(u16, u64)> = [5, 15, 25, 35, 45]
        .map(|users| (users, work.size.of(1, 8, 20)))
        .into_iter()
        .chain([(most, work.size.of(1, 2, 6))])
        .collect();
    let mut items = Vec::new();
    for (users, runs) in &crowds {
        for n in 0..*runs {
            for (kind, at_once) in ARMS {
                let mut scenario = crowd(*users, SEEDS + n)?;
                scenario.server_tcp.control = kind;
                if at_once {
                    scenario.server_tcp.initial_window_segments = AT_ONCE_SEGMENTS;
                }
                items.push(scenario);
            }
        }
    }
    let found = work.for_each(&items, |scenario| Ok(shared(&load(scenario)?)))?;
    let mut pairs = found.chunks_exact(ARMS.len());
    let mut rows = Vec::new();
    let mut curves: [Vec<(f64, f64)>; 2] = Default::default();
    for (users, runs) in &crowds {
        let pairs: Vec<&[Shared]> = pairs.by_ref().take(*runs as usize).collect();
        for (at, kind) in [CLAW, CUBIC].into_iter().enumerate() {
            let of = |value: fn(&Shared) -> f64| -> Vec<f64> {
                pairs.iter().map(|pair| value(&pair[at])).collect()
            };
            let (times, jain) = (of(|s| s.mean_ms), of(|s| s.jain));
            curves[at].push((f64::from(*users), mean(&times).value));
            let what = |of: &str| format!("{users} users, {}: {of}", name(kind));
            rows.push(Row::new(what("load time, mean"), "ms", mean(&times)));
            rows.push(Row::new(what("Jain's index of the rates"), "", mean(&jain)));
            let unfinished = mean(&of(|s| s.unfinished));
            if unfinished.value > 0.0 {
                let row = Row::new(what("unfinished pages"), "%", unfinished);
                rows.push(row.note("counted with the run's length, 120 s"));
            }
        }
        let at_once: Vec<f64> = pairs.iter().map(|arms| arms[2].jain).collect();
        let what = format!("{users} users, all sent at once: Jain's index of the rates");
        rows.push(Row::new(what, "", mean(&at_once)));
        let change = |of: fn(&Shared) -> f64| -> Vec<f64> {
            pairs.iter().map(|pair| 100.0 * (of(&pair[0]) / of(&pair[1]) - 1.0)).collect()
        };
        let what = format!("{users} users: CLAW's load time against Cubic's");
        rows.push(judged(Row::new(what, "%", mean(&change(|s| s.mean_ms)))));
        let what = format!("{users} users: CLAW's Jain's index against Cubic's");
        let row = Row::new(what, "%", mean(&change(|s| s.jain)));
        rows.push(row.not_below(0.0).note(BOUND_OF_FAIRNESS));
    }
    let [claw, cubic] = curves;
    let figure = Figure::new(
        "users",
        "Load time of 750 kB by the number of users",
        Axis::log("users (number)"),
        Axis::new("load time (ms), mean"),
    )
    .with(Series::curve("CLAW", claw))
    .with(Series::curve("Cubic", cubic))
    .caption(format!("n = {} runs each; fewer with {most} users.", crowds[0].1));
    Ok(ExperimentResult { rows, figures: vec![figure], ..ExperimentResult::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jain_by_hand() {
        // Rates 1 and 1/3: (4/3)^2 / (2 * 10/9) = 0.8.
        let loaded = Loaded { page_ms: 1.0, others_ms: vec![3.0], ..Loaded::default() };
        let Shared { mean_ms, jain, .. } = shared(&loaded);
        assert!((mean_ms - 2.0).abs() < 1e-9 && (jain - 0.8).abs() < 1e-9, "{jain}");
    }
}
