//! `airmile compare`.

use std::collections::BTreeSet;
use std::path::PathBuf;

use airmile::comparison::{Difference, Estimate, Restarts};
use airmile::model::{PageCause, confidence_percent, plain_name};
use airmile::{
    ComparedGroup, ComparedPage, ComparedPair, Comparison, Inputs, compare, page_cause_by,
};
use anyhow::Result;

use super::budgets::Budgets;
use crate::Outcome;
use crate::args::{CompareArgs, Global};
use crate::output::{self, mbps, name, number, or_dash, table, text as column};
use crate::progress::Shown;

/// The maximum number of causes shown per group.
const SHOWN_CAUSES: usize = 2;

pub fn run(global: &Global, args: &CompareArgs) -> Result<Outcome> {
    let budgets = Budgets::parse(&args.budgets, "compare")?;
    budgets.check_outputs(args.runs.iter().map(PathBuf::as_path))?;
    warn_of_repeats(global, &args.runs);
    let inputs = Inputs { files: args.runs.clone(), ..Inputs::default() };
    let shown = Shown::start(global, &inputs);
    let answer = budgets.analysed(compare(&args.runs, &args.options(), &shown.progress))?;
    drop(shown);
    if global.json {
        output::json("compare", &answer)?;
    } else {
        output::print_wrapped(&text(&answer, global.verbose > 0))?;
        output::problems(global, &answer.files);
    }
    budgets.settle(global, &answer, &answer.files)
}

/// Warns of runs that were given twice: they cannot differ.
fn warn_of_repeats(global: &Global, runs: &[PathBuf]) {
    let mut seen = BTreeSet::new();
    for path in runs {
        if !seen.insert(path.canonicalize().unwrap_or_else(|_| path.clone())) {
            let name = path.display();
            output::warn(global, &format!("{name} is given twice: its transfers count twice"));
        }
    }
}

/// The result as the command prints it.
pub fn text(answer: &Comparison, all: bool) -> String {
    let mut out = pages(&answer.pages);
    out.push_str(&format!(
        "{}\nVerdict: {}, confidence {:.0} %.\n",
        answer.says,
        answer.verdict,
        confidence_percent(answer.confidence)
    ));
    let turns = if answer.by_turns { "measured in turn" } else { "not in turn" };
    let by = answer.grouped_by;
    out.push_str(&format!("\nGroups (by {by}; {turns}; intervals of 95 %):\n"));
    out.push_str(&groups(&answer.groups));
    let shown: Vec<String> = answer.pairs.iter().filter_map(|pair| difference(pair, all)).collect();
    if !shown.is_empty() {
        out.push_str(
            "\nDifferences (intervals of 95 %; p by permutation, corrected for their number):\n",
        );
        shown.iter().for_each(|line| out.push_str(line));
    }
    let conditions = conditions(&answer.groups);
    if !conditions.is_empty() {
        out.push_str(&format!("\nConditions (medians):\n{conditions}"));
    }
    for note in answer.notes.iter().filter(|note| !answer.says.contains(note.as_str())) {
        out.push_str(&format!("\nNote: {note}.\n"));
    }
    out.push_str(&format!("\nNext: {}.\n", answer.next_step));
    out.push_str(&output::missing(&answer.missing));
    out
}

/// Load times page by page, with the causes of each; of several loads in a run, medians.
fn pages(pages: &[ComparedPage]) -> String {
    let mut out = String::new();
    for page in pages {
        let repeats = page.loads.iter().any(|loads| loads.times_ms.len() > 1);
        let rows = page.loads.iter().map(|loads| {
            let share = |ms: &f64| ms / loads.wait_ms.max(1e-9) * 100.0;
            let mut causes: Vec<(&str, f64)> =
                loads.shares_ms.iter().map(|(of, ms)| (*of, share(ms))).collect();
            causes.sort_by(|a, b| b.1.total_cmp(&a.1));
            let causes = causes.iter().take(SHOWN_CAUSES).filter(|(_, share)| *share >= 1.0);
            let causes =
                causes.map(|(of, share)| format!("{} {share:.0} %", name_of(of, loads.evidence)));
            let mut row = vec![loads.run.clone()];
            row.extend(repeats.then(|| loads.times_ms.len().to_string()));
            row.push(format!("{:.0}", loads.load_ms));
            row.push(or_dash(loads.difference_ms, |ms| format!("{ms:+.0}")));
            row.push(causes.collect::<Vec<_>>().join(", "));
            row
        });
        let rows = rows.collect();
        let (run, difference, causes) = (name("run"), number("difference"), column("waited for"));
        let table = match repeats {
            true => table([run, number("loads"), number("median ms"), difference, causes], rows),
            false => table([run, number("load ms"), difference, causes], rows),
        };
        out.push_str(&format!("Page {}\n{table}\n", page.url));
    }
    out
}

/// The name of a page's cause, by its evidence.
fn name_of<'a>(id: &'a str, evidence: &str) -> &'a str {
    PageCause::parse(id).map_or(id, |cause| page_cause_by(cause, evidence))
}

fn groups(groups: &[ComparedGroup]) -> String {
    let rows = groups.iter().map(|group| {
        let found = &group.finding;
        let causes = group.causes.iter().take(SHOWN_CAUSES);
        let causes: Vec<String> =
            causes.map(|c| format!("{} {:.0} %", plain_name(c.cause), c.share * 100.0)).collect();
        vec![
            group.name.clone(),
            found.transfers.to_string(),
            restarts(group),
            or_dash(found.link_demand, |demand| interval(demand, |x| format!("{:.0}", x * 100.0))),
            or_dash(found.throughput_bps, |rate| interval(rate, mbps)),
            or_dash(found.late_rate_bps, |rate| interval(rate, mbps)),
            or_dash(found.growth_ms, |ms| interval(ms, |x| format!("{x:.0}"))),
            or_dash(found.wait_ms, |ms| format!("{:.0}", ms.value)),
            causes.join(", "),
        ]
    });
    let columns = [
        name("group"),
        number("transfers"),
        column("restarts"),
        number("link demand %"),
        number("Mbit/s"),
        number("late Mbit/s").goes(2),
        number("growth ms").goes(3),
        number("first byte ms").goes(1),
        column("leading causes"),
    ];
    table(columns, rows.collect())
}

/// Transfers that began with slow start after a pause, of those where this is known.
fn restarts(group: &ComparedGroup) -> String {
    let found = &group.finding;
    let Some(share) = found.restarts else { return "-".to_owned() };
    let hits = (share.value * share.n as f64).round();
    let word = match found.restarts_slow_start {
        Restarts::Yes => "yes",
        Restarts::No => "no",
        Restarts::Unknown => "unknown",
    };
    format!("{word}: {hits} of {}", share.n)
}

fn interval(of: Estimate, show: impl Fn(f64) -> String) -> String {
    match of.low.zip(of.high) {
        Some((low, high)) => format!("{} ({} to {})", show(of.value), show(low), show(high)),
        None => show(of.value),
    }
}

/// A difference with p at or above this is shown only with -v.
const SHOWN_BELOW: f64 = 0.05;

/// A measure's name with its unit, its difference, and its format.
type Measure<'a> = (&'static str, Option<Difference>, &'a dyn Fn(f64) -> String);

fn difference(pair: &ComparedPair, all: bool) -> Option<String> {
    let found = &pair.finding;
    let percent = |x: f64| format!("{:+.0}", (x.exp() - 1.0) * 100.0);
    let points = |x: f64| format!("{:+.0}", x * 100.0);
    let ms = |x: f64| format!("{x:+.0}");
    let measures: [Measure<'_>; 5] = [
        ("link demand, points", found.link_demand, &points),
        ("throughput, %", found.log_throughput, &percent),
        ("late rate, %", found.log_late_rate, &percent),
        ("growth, ms", found.growth_ms, &ms),
        ("restarts, points", found.restarts, &points),
    ];
    let rows: Vec<String> = measures
        .into_iter()
        .filter_map(|(name, difference, show)| {
            let difference = difference.filter(|d| all || d.p < SHOWN_BELOW)?;
            let p = match difference.p {
                p if p < 0.001 => "p < 0.001".to_owned(),
                p => format!("p = {p:.3}"),
            };
            Some(format!("    {name}: {}, {p}\n", interval(difference.estimate, show)))
        })
        .collect();
    let conditions = match found.conditions_differ.as_slice() {
        [] => String::new(),
        differ => format!("    conditions differ: {}\n", differ.join(", ")),
    };
    let lines = rows.concat() + &conditions;
    (!lines.is_empty()).then(|| format!("  {} against {}:\n{lines}", pair.second, pair.first))
}

fn conditions(groups: &[ComparedGroup]) -> String {
    let rows = groups.iter().map(|group| {
        let found = &group.finding;
        vec![
            group.name.clone(),
            or_dash(found.bytes, |bytes| output::bytes(bytes as u64)),
            or_dash(found.pause_ms, |ms| format!("{ms:.0}")),
            or_dash(found.rtt_ms, |ms| format!("{ms:.0}")),
            or_dash(found.link_throughput_bps, mbps),
            or_dash(found.others_load, |load| format!("{:.0}", load * 100.0)),
            or_dash(found.rsrp_dbm, |dbm| format!("{dbm:.0}")),
            or_dash(found.unevenness, |share| format!("{:.0}", share * 100.0)),
        ]
    });
    let columns = [
        name("group"),
        number("bytes").goes(2),
        number("pause ms").goes(1),
        number("RTT ms"),
        number("link Mbit/s"),
        number("others' load %"),
        number("RSRP dBm"),
        number("uneven %").goes(3),
    ];
    table(columns, rows.collect())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use airmile::ComparedLoads;

    use super::*;

    #[test]
    fn repeated_loads_of_a_page_are_one_row_of_a_run() {
        let loads =
            |run: &str, times_ms: &[f64], load_ms: f64, difference_ms, server_ms| ComparedLoads {
                run: run.to_owned(),
                times_ms: times_ms.to_vec(),
                wait_ms: load_ms,
                load_ms,
                difference_ms,
                verdict: PageCause::Server,
                evidence: "packets",
                shares_ms: BTreeMap::from([("server", server_ms), ("radio", 100.0)]),
            };
        let page = |before, after| {
            pages(&[ComparedPage { url: "http://a/".to_owned(), loads: vec![before, after] }])
        };
        let one = page(
            loads("before", &[200.0], 200.0, None, 50.0),
            loads("after", &[500.0], 500.0, Some(300.0), 400.0),
        );
        assert!(one.starts_with("Page http://a/\nrun     load ms  difference"), "{one}");
        let text = page(
            loads("before", &[200.0, 210.0, 190.0], 200.0, None, 50.0),
            loads("after", &[500.0, 9_000.0, 520.0], 520.0, Some(320.0), 420.0),
        );
        let rows: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split("  ").map(str::trim).filter(|w| !w.is_empty()).collect())
            .collect();
        assert_eq!(rows[1], ["run", "loads", "median ms", "difference", "waited for"], "{text}");
        assert_eq!(rows[2][..4], ["before", "3", "200", "-"], "{text}");
        assert_eq!(
            rows[3],
            ["after", "3", "520", "+320", "your server 81 %, radio 19 %"],
            "{text}"
        );
    }
}
