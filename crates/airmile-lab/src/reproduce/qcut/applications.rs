//! Figure 22: user-visible delays during an upload.

use std::collections::BTreeMap;

use airmile_control::qcut::Limit;
use airmile_emulate::{AppNote, Discipline, Scenario, run_into};

use super::watch::QueueMonitor;
use super::{NO_VALUES, STRONG, Signal, Variant, WEAK};
use crate::reproduce::estimate::{mean, quantile, sorted};
use crate::reproduce::figure::{Axis, Figure, Series};
use crate::reproduce::runs::{Work, cannot, read};
use crate::reproduce::{Experiment, ExperimentResult, Row};
use airmile::Result;

pub(in crate::reproduce) const EXPERIMENT: Experiment = Experiment {
    name: "qcut-fig22",
    source: "QCut, section 7, figure 22",
    what: "page loads, a video, a call-like flow and a download during an upload",
    run: figure_22,
};

const SCENARIO: &str = include_str!("../../../experiments/qcut-applications.toml");

/// Measures of a run, by application, with unit.
const MEASURES: [(&str, &str, &str); 9] = [
    ("page", "page load, mean", "s"),
    ("video", "video start", "s"),
    ("video", "video bitrate, mean of segments", "Mbit/s"),
    ("call", "call-like exchange, median", "ms"),
    ("call", "call-like exchange, 95th percentile", "ms"),
    ("call", "jitter: mean difference from exchange to exchange", "ms"),
    ("call", "exchanges without an answer", "%"),
    ("call", "voice score by its delays (E-model)", "MOS"),
    ("download", "download of 4 MB", "s"),
];

/// Voice in a packet of the call-like flow: it is sent when all of it was spoken.
const PACKET_MS: f64 = 20.0;

/// The values of an application's run, in the order of [`MEASURES`].
fn values(app: &str, notes: &[AppNote], start_ns: i64) -> Vec<f64> {
    let of = |event: &'static str| {
        notes.iter().filter(move |note| note.app == app && note.event == event)
    };
    let numbers = |event| of(event).filter_map(|note| note.value).collect::<Vec<f64>>();
    match app {
        "page" => vec![mean(&numbers("page_loaded")).value / 1e3],
        "video" => {
            let asked_ns = of("request").map(|note| note.at_ns).min().unwrap_or(start_ns);
            let played = of("playback_started").map(|note| note.at_ns).min();
            let start_s = played.map_or(f64::NAN, |at| (at - asked_ns) as f64 / 1e9);
            vec![start_s, mean(&numbers("segment_chosen")).value / 1e6]
        }
        _ => {
            let asked: BTreeMap<&str, i64> =
                of("request").filter_map(|n| Some((n.id.as_deref()?, n.at_ns))).collect();
            let delays: Vec<f64> = of("end")
                .filter_map(|n| Some((n.at_ns - asked.get(n.id.as_deref()?)?) as f64 / 1e6))
                .collect();
            if app == "download" {
                return vec![mean(&delays).value / 1e3];
            }
            let steps: Vec<f64> = delays.windows(2).map(|d| (d[1] - d[0]).abs()).collect();
            let lost = of("failed").count() as f64;
            let share = 100.0 * lost / asked.len().max(1) as f64;
            let at = |p| quantile(&delays, p).value;
            let score = voice_score(&sorted(&delays), asked.len());
            vec![at(0.5), at(0.95), mean(&steps).value, share, score]
        }
    }
}

/// Mean opinion score (1 to 4.5) of G.711 voice whose packets have the delays of these exchanges,
/// in ms and in order, of `asked` in all, with the playout delay that suits them best. What comes
/// later is lost. R = 94.2 - 0.024 d - 0.11 (d - 177.3)+ - 30 ln(1 + 15 e) for a delay of d ms
/// from mouth to ear and a share e of losses: Cole and Rosenbluth, CCR 31(2), 2001, sections 2
/// and 4; score: ITU-T G.107, annex B. NaN without exchanges.
fn voice_score(delays: &[f64], asked: usize) -> f64 {
    // The way down has half of the shortest exchange; the rest is the way up.
    let down_ms = delays.first().map_or(f64::NAN, |least| least / 2.0);
    let r = delays.iter().enumerate().map(|(at, delay)| {
        let to_ear_ms = PACKET_MS + delay - down_ms;
        let lost = 1.0 - (at + 1) as f64 / asked.max(delays.len()) as f64;
        let delayed = 0.024 * to_ear_ms + 0.11 * (to_ear_ms - 177.3).max(0.0);
        (94.2 - delayed - 30.0 * (15.0 * lost).ln_1p()).clamp(0.0, 100.0)
    });
    let r = r.fold(f64::NAN, f64::max);
    (1.0 + 0.035 * r + 7e-6 * r * (r - 60.0) * (100.0 - r)).clamp(1.0, 4.5)
}

/// No upload; an upload with no queueing discipline, CoDel or QCut above the firmware; and
/// our variants.
fn arms() -> Vec<(bool, Variant)> {
    let limit = Limit::DelayMs(20);
    vec![
        (false, Variant::new("no upload", Discipline::Fifo)),
        (true, Variant::new("upload", Discipline::Fifo)),
        (true, Variant::new("upload + CoDel", Discipline::Codel { target_ms: 5 })),
        (true, Variant::new("upload + QCut", Discipline::Qcut { limit })),
        (true, Variant::bound("upload + QCut told at once", Discipline::Qcut { limit })),
        (true, Variant::bound("upload stopped meanwhile", Discipline::Stop { limit })),
        (
            true,
            Variant::new(
                "upload + gate by round trips",
                Discipline::RoundTrips { limit, told_base_ms: None },
            ),
        ),
        (true, Variant::new("upload + HTB", Discipline::Htb { limit, every_ms: 20 })),
        (true, Variant::bound("upload + HTB told at once", Discipline::Htb { limit, every_ms: 1 })),
        (
            true,
            Variant::new(
                "upload + autorate's defaults",
                Discipline::Autorate { start_bps: super::AUTORATE_START_BPS },
            ),
        ),
    ]
}

/// Threshold: maximum difference to no upload, in percent.
const WITHIN: f64 = 10.0;

/// For rows that miss their bar. What the firmware holds goes ahead of a first packet, and a large
/// packet takes 8 ms at 1.5 Mbit/s.
const BOUND_OF_A_START: &str = "bound: the row of an upload that stops meanwhile: only first packets \
    wait there, for what the modem holds already";
const BOUND_OF_A_CALL: &str = "bound: the row of an upload that stops meanwhile; while it goes on, half \
    of a large packet goes ahead (4 of 51 ms at the weak signal, mean), which nothing overtakes in \
    the modem";
const BOUND_OF_HTB: &str = "bound: the rows of an HTB told at once, whose rate follows in each TTI, and \
    of an upload that stops meanwhile";

/// The bar of an arm's difference to no upload, with the bound beside it.
fn judged(row: Row, variant: &Variant, app: &str, unit: &str) -> Row {
    match (&variant.discipline, app, unit) {
        _ if variant.is_bound => row,
        // For a rate and a score, more is better.
        (Discipline::Qcut { .. }, _, "Mbit/s" | "MOS") => row.at_least(-WITHIN),
        (Discipline::Qcut { .. }, "call", _) => row.at_most(WITHIN).note(BOUND_OF_A_CALL),
        (Discipline::Qcut { .. }, ..) => row.at_most(WITHIN).note(BOUND_OF_A_START),
        (Discipline::Htb { .. }, "page", _) => row.at_most(WITHIN).note(BOUND_OF_HTB),
        _ => row,
    }
}

const APPS: [&str; 4] = ["page", "video", "call", "download"];

fn figure_22(work: &Work<'_>) -> Result<ExperimentResult> {
    let (signals, arms, seeds) = ([WEAK, STRONG], arms(), work.size.of(1, 6, 20));
    let mut runs: Vec<(&str, Scenario)> = Vec::new();
    for signal in signals {
        for app in APPS {
            for (uploads, variant) in &arms {
                for seed in 0..seeds {
                    let mut scenario = read(SCENARIO)?;
                    scenario.apps.retain(|a| a.name == app || (*uploads && a.name == "upload"));
                    scenario.seed = 53_000 + seed;
                    // Pages and a download end earlier than the video and the call.
                    let is_short = matches!(app, "page" | "download");
                    let default_ms = if is_short { 45_000 } else { 75_000 };
                    scenario.duration_ms = work.size.of(20_000, default_ms, 120_000) as u32;
                    signal.set(&mut scenario);
                    variant.set(&mut scenario);
                    runs.push((app, scenario));
                }
            }
        }
    }
    let found = work.for_each(&runs, |(app, scenario)| {
        let app_ms = scenario.apps.iter().find(|a| a.name == *app).map_or(0, |a| a.start_ms);
        let start_ms = i64::from(scenario.first_tti) + i64::from(app_ms);
        let start_ns = scenario.epoch_ns + start_ms * 1_000_000;
        let mut watch = QueueMonitor::from_ns(start_ns);
        let outcome = run_into(scenario, &mut watch).map_err(cannot)?;
        let last = outcome.notes.iter().filter(|note| note.app == *app).map(|note| note.at_ns);
        let ms = (last.max().unwrap_or(start_ns) - start_ns) / 1_000_000;
        let upload_mbps = watch.bytes_between(start_ns, (0, ms)) as f64 * 8e-3 / ms.max(1) as f64;
        let mut values = values(app, &outcome.notes, start_ns);
        values.push(upload_mbps);
        Ok(values)
    })?;
    let mut found = found.into_iter();
    let (mut rows, mut figures) = (Vec::new(), Vec::new());
    for signal in signals {
        for app in APPS {
            let by_arm: Vec<Vec<Vec<f64>>> =
                arms.iter().map(|_| found.by_ref().take(seeds as usize).collect()).collect();
            rows.extend(rows_of(signal, app, &arms, &by_arm));
            if app == "page" {
                figures.push(figure_of(signal, &arms, &by_arm));
            }
        }
    }
    Ok(ExperimentResult { rows, figures, ..ExperimentResult::default() })
}

/// An application's rows: each measure by arm, and the difference of an arm to no upload.
fn rows_of(
    signal: Signal,
    app: &str,
    arms: &[(bool, Variant)],
    by_arm: &[Vec<Vec<f64>>],
) -> Vec<Row> {
    let mut rows = Vec::new();
    let measures = MEASURES.iter().filter(|(of, ..)| *of == app);
    let of_arm = |arm: &Vec<Vec<f64>>, at: usize| -> Vec<f64> {
        arm.iter().map(|run| run.get(at).copied().unwrap_or(f64::NAN)).collect()
    };
    let uploads = measures.clone().count();
    for ((_, variant), runs) in arms.iter().zip(by_arm).filter(|((uploads, _), _)| *uploads) {
        let name = format!("{}, {}: upload during the {app}", signal.name, variant.name);
        rows.push(Row::new(name, "Mbit/s", mean(&of_arm(runs, uploads))));
    }
    for (at, (_, what, unit)) in measures.enumerate() {
        let without = of_arm(&by_arm[0], at);
        for ((_, variant), runs) in arms.iter().zip(by_arm) {
            let runs = of_arm(runs, at);
            let name = format!("{}, {}: {what}", signal.name, variant.name);
            rows.push(Row::new(&name, unit, mean(&runs)).note(NO_VALUES));
            if *unit != "%" && variant.name != "no upload" {
                let over = runs.iter().zip(&without).map(|(run, none)| 100.0 * (run / none - 1.0));
                let over = mean(&over.collect::<Vec<f64>>());
                let row = Row::new(format!("{name}, over none"), "%", over);
                rows.push(judged(row, variant, app, unit));
            }
        }
    }
    rows
}

fn figure_of(signal: Signal, arms: &[(bool, Variant)], by_arm: &[Vec<Vec<f64>>]) -> Figure {
    let mut figure = Figure::new(
        if signal == WEAK { "weak" } else { "strong" },
        format!("Page load time during an upload, {}", signal.name),
        Axis::log("mean page load time (s)"),
        Axis::cdf("runs up to this time (%)"),
    )
    .caption(format!("n = {} runs of five pages each.", by_arm[0].len()));
    for ((_, variant), runs) in arms.iter().zip(by_arm) {
        let seconds: Vec<f64> = runs.iter().filter_map(|run| run.first().copied()).collect();
        figure = figure.with(Series::cdf(variant.name, &seconds));
    }
    figure
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_by_hand() {
        let note = |at_ms: i64, app: &str, event, id: Option<&str>, value| AppNote {
            at_ns: at_ms * 1_000_000,
            app: app.to_owned(),
            event,
            id: id.map(str::to_owned),
            bytes: None,
            value,
            what: None,
        };
        let notes = [
            note(0, "call", "request", Some("call-1"), None),
            note(40, "call", "end", Some("call-1"), None),
            note(60, "call", "request", Some("call-2"), None),
            note(160, "call", "end", Some("call-2"), None),
            note(200, "call", "request", Some("call-3"), None),
            note(900, "call", "failed", Some("call-3"), None),
            note(7, "video", "request", Some("video-1"), None),
            note(8, "video", "segment_chosen", None, Some(1e6)),
            note(507, "video", "playback_started", None, None),
            note(0, "page", "page_loaded", None, Some(1_500.0)),
            note(9, "page", "page_loaded", None, Some(2_500.0)),
        ];
        // Delays of 40 and 100 ms.
        let call = values("call", &notes, 0);
        assert_eq!(call[..3], [70.0, 97.0, 60.0]);
        assert!((call[3] - 100.0 / 3.0).abs() < 1e-9, "{call:?}");
        let download = [
            note(100, "download", "request", Some("download-1"), None),
            note(4_350, "download", "end", Some("download-1"), None),
        ];
        assert_eq!(values("download", &download, 0), [4.25]);
        assert_eq!(values("video", &notes, 0), [0.5, 1.0]);
        assert_eq!(values("page", &notes, 0), [2.0]);
    }

    #[test]
    fn a_voice_score_by_hand() {
        let close = |score: f64, expected: f64| assert!((score - expected).abs() < 5e-3, "{score}");
        // 20 + 40 - 20 ms, nothing lost: R is 93.24.
        close(voice_score(&[40.0; 10], 10), 4.41);
        // 20 + 320 - 20 ms: R is 70.8 (0.024 * 320 + 0.11 * 142.7 less), whatever comes sooner.
        let delays: Vec<f64> = [vec![40.0; 50], vec![320.0; 50]].concat();
        close(voice_score(&delays, 100), 3.635);
        // A late one in a hundred is better lost: R is 93.24 - 30 ln 1.15.
        let delays: Vec<f64> = [vec![40.0; 99], vec![900.0]].concat();
        close(voice_score(&delays, 100), 4.315);
        // Seconds late, or 99 of 100 lost: the worst there is, or nearly.
        close(voice_score(&[2_500.0, 4_000.0], 2), 1.0);
        close(voice_score(&[40.0], 100), 1.04);
        assert!(voice_score(&[], 10).is_nan());
    }
}
