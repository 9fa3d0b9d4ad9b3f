//! `airmile diagnose`.

use std::collections::BTreeMap;
use std::path::Path;

use airmile::model::{Verdict, confidence_percent, plain_name};
use airmile::{
    ClockReport, Diagnosis, Document, FileReport, Subject, Suspicion, TransferDiagnosis, Zone,
    check_outputs, export, write_whole,
};
use anyhow::{Context, Result};

use super::Times;
use super::budgets::Budgets;
use super::pages::PrintedPage;
use crate::Outcome;
use crate::args::{DiagnoseArgs, Global, inputs};
use crate::output::{self, bytes, id, name, number, or_dash, percent, table, text as column};
use crate::progress::Shown;
use crate::table::{MOST_LETTERS, end_of};

/// The file that `-o` writes.
const DOCUMENT: &str = "diagnose.json";
const BEGINS: &[u8] = b"{\n  \"document\": \"diagnose\",";

/// With more transfers than this, output without `-v` is a summary with a table of the slowest
/// (chosen here: a screen).
const LISTED: usize = 25;
const SLOWEST: usize = 10;
/// The maximum number of files named (chosen here: two lines).
const MOST_NAMED: usize = 6;
/// Transfers explained without `-v`; the rest are only in the table.
const EXPLAINED: usize = 3;

pub fn run(global: &Global, args: &DiagnoseArgs) -> Result<Outcome> {
    let budgets = Budgets::parse(&args.budgets, "diagnose")?;
    let mut inputs = inputs(&args.files, args.analysis.transfers.as_ref());
    inputs.whole_urls = global.verbose > 0;
    budgets.check_outputs(inputs.paths())?;
    let options = budgets.analysed(args.analysis.options(args.files.limits))?;
    if let Some(dir) = &args.output {
        check_outputs([(dir.join(DOCUMENT), BEGINS)], inputs.paths())?;
    }
    let shown = Shown::start(global, &inputs);
    let made =
        export(&inputs, &options, &(&args.exports).into(), Subject::Diagnosis, &shown.progress);
    let (_, answer) = budgets.analysed(made)?;
    drop(shown);
    if let Some(dir) = &args.output {
        write_document(dir, &answer)?;
    }
    let given = (&args.files, &args.analysis);
    let of = (answer.transfers_from, &*answer.files, &answer.evidence_counts);
    super::warn_of_idle_options(global, given, of);
    if global.json {
        output::json("diagnose", &answer)?;
    } else {
        let Parts { pages, players, verdict, rest } =
            parts(&answer, global.verbose > 0, options.limits.zone);
        for page in pages {
            output::print_page_verdict(global, page.verdict, &page.headline)?;
            output::print_wrapped(&page.rest)?;
        }
        output::print_wrapped(&players)?;
        output::print_verdict(global, answer.session.verdict, &verdict)?;
        output::print_wrapped(&rest)?;
        output::problems(global, &answer.files);
    }
    output::written(global, [&args.exports.html, &args.exports.perfetto]);
    budgets.settle(global, &answer, &answer.files)
}

fn write_document(dir: &Path, answer: &Diagnosis) -> Result<()> {
    std::fs::create_dir_all(dir).with_context(|| format!("{}", dir.display()))?;
    let path = dir.join(DOCUMENT);
    let text = serde_json::to_string_pretty(&Document::new("diagnose", answer))?;
    Ok(write_whole(&path, (text + "\n").as_bytes())?)
}

/// The result as the command prints it.
pub fn text(answer: &Diagnosis, all: bool, zone: Zone) -> String {
    let Parts { pages, players, verdict, rest } = parts(answer, all, zone);
    let pages = pages.into_iter().map(|page| page.headline + &page.rest);
    pages.collect::<String>() + &players + &verdict + &rest
}

/// The result in parts, each of whole lines.
struct Parts {
    pages: Vec<PrintedPage>,
    players: String,
    /// Of the session.
    verdict: String,
    rest: String,
}

fn parts(answer: &Diagnosis, all: bool, zone: Zone) -> Parts {
    let session = &answer.session;
    let pages = super::pages::printed(&answer.pages, all, zone);
    let players = answer.players.iter().map(|one| super::pages::player(one, all, zone)).collect();
    let verdict = match answer.is_of_applications_alone() {
        // Its sentence says that there is none.
        true => format!("{}\n", session.says),
        false => format!(
            "{}\nVerdict: {}, confidence {:.0} %.\n",
            session.says,
            session.verdict,
            confidence_percent(session.confidence)
        ),
    };
    Parts { pages, players, verdict, rest: details(answer, all, zone) }
}

/// Why the verdict on all transfers may differ from a page's.
const BESIDE_PAGES: &str = "It adds up the time of all transfers, each from when it was sent; the page's \
    verdict is of the load's critical path, from when a request was made.";
const CAUSES_OF_ALL: &str =
    " Causes of transfers that overlap are those of all the phone's packets meanwhile.";

/// What follows the verdict.
fn details(answer: &Diagnosis, all: bool, zone: Zone) -> String {
    let session = &answer.session;
    let mut out = String::new();
    let is_judged = !answer.transfers.is_empty() && !answer.is_of_applications_alone();
    if !answer.pages.is_empty() && is_judged {
        let causes = if session.shares.is_empty() { "" } else { CAUSES_OF_ALL };
        out.push_str(&format!("{BESIDE_PAGES}{causes}\n"));
    }
    for file in answer.files.iter().filter(|file| file.damaged) {
        out.push_str(&format!("{} is damaged: the answer is of what could be read.\n", file.path));
    }
    out.push_str(&read(&answer.files));
    if !session.suspects.is_empty() {
        out.push_str(&format!("Probabilities: {}.\n", suspects(&session.suspects)));
    }
    // The verdict's sentence includes a single application's summary.
    let in_verdict = answer.is_of_applications_alone() && answer.applications.len() == 1;
    for application in answer.applications.iter().filter(|_| !in_verdict) {
        out.push_str(&format!("{}: {}\n", application.path, application.says));
    }
    if answer.transfers.is_empty() {
        out.push_str(&output::missing(&answer.missing));
        return out;
    }
    let from = match answer.transfers_from {
        "given" => "as given",
        "captured" => "requests and answers of the capture",
        _ => "activity split at pauses",
    };
    // Applications alone have no verdict on the link.
    let with_verdict = !answer.is_of_applications_alone();
    let mut slowest: Vec<&TransferDiagnosis> = answer.transfers.iter().collect();
    let n = slowest.len();
    let listed = if all || n <= LISTED { n } else { SLOWEST };
    if listed < n {
        slowest.sort_by(|a, b| b.finding.duration_ms.total_cmp(&a.finding.duration_ms));
        out.push_str(&summed_up(&slowest, with_verdict));
    }
    let rows = slowest.get(..listed).unwrap_or(&slowest);
    let times = Times::of(zone, rows.iter().filter_map(|t| t.finding.start_us));
    if listed < n {
        let title = times.title(&format!("-v: all {n}"));
        out.push_str(&format!("\nThe {listed} slowest transfers ({title}):\n"));
    } else {
        out.push_str(&format!("\nTransfers ({}):\n", times.title(from)));
    }
    out.push_str(&transfers_table(rows, &times, with_verdict));
    out.push_str(&explanations(rows, (n, all), with_verdict));
    let is_shown = |clock: &&ClockReport| all || clock.corrected || clock.offset_ms.is_none();
    let clocks: Vec<&ClockReport> = answer.clocks.iter().filter(is_shown).collect();
    if !clocks.is_empty() {
        out.push_str("\nClocks:\n");
        clocks.iter().for_each(|clock| out.push_str(&format!("  {}\n", clock.says)));
    }
    if !answer.ecn.is_empty() {
        out.push_str("\nCongestion marks (ECN):\n");
        answer.ecn.iter().for_each(|path| out.push_str(&format!("  {}\n", path.says)));
    }
    out.push_str(&output::missing(&answer.missing));
    out
}

/// The files that the answer is from, if there are several.
fn read(files: &[FileReport]) -> String {
    let own = |file: &FileReport| {
        let name =
            Path::new(&file.path).file_name().map(|name| name.to_string_lossy().into_owned());
        name.unwrap_or_else(|| file.path.clone())
    };
    let name = |file: &FileReport| {
        let own_name = own(file);
        let is_alone = files.iter().filter(|other| own(other) == own_name).count() == 1;
        let name = if is_alone { &own_name } else { &file.path };
        let unused = if file.left_out.is_some() { ", not used" } else { "" };
        format!("{name} ({}{unused})", plain_name(&file.kind))
    };
    let names: Vec<String> = files.iter().take(MOST_NAMED).map(name).collect();
    match files.len() {
        0 | 1 => String::new(),
        n if n > MOST_NAMED => {
            format!("Read: {} and {} more.\n", names.join(", "), n - MOST_NAMED)
        }
        _ => format!("Read: {}.\n", names.join(", ")),
    }
}

/// A summary of transfers, with the number of each verdict.
fn summed_up(transfers: &[&TransferDiagnosis], with_verdict: bool) -> String {
    let carried = transfers.iter().filter_map(|t| t.finding.bytes).fold(0, u64::saturating_add);
    let longest = transfers.first().map_or(0.0, |t| t.finding.duration_ms);
    let middle = transfers.get(transfers.len() / 2).map_or(0.0, |t| t.finding.duration_ms);
    let mut out = format!(
        "\n{} transfers, {}: median {middle:.0} ms, maximum {longest:.0} ms.",
        transfers.len(),
        bytes(carried)
    );
    let mut verdicts: BTreeMap<String, usize> = BTreeMap::new();
    for transfer in transfers.iter().filter(|_| with_verdict) {
        *verdicts.entry(verdict(transfer)).or_default() += 1;
    }
    let mut verdicts: Vec<(String, usize)> = verdicts.into_iter().collect();
    verdicts.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    let verdicts: Vec<String> = verdicts.iter().map(|(name, n)| format!("{n} {name}")).collect();
    if with_verdict {
        out.push_str(&format!(" Verdicts: {}.", verdicts.join(", ")));
    }
    out + "\n"
}

/// The suspects with a probability of one percent or more.
fn suspects(suspects: &[Suspicion]) -> String {
    let worth = suspects.iter().filter(|one| one.probability >= 0.01);
    let words = worth.map(|one| {
        let name = plain_name(one.suspect);
        let name = if name == "other" { "none of these, or several" } else { &*name };
        format!("{name} {:.0} %", one.probability * 100.0)
    });
    words.collect::<Vec<_>>().join(", ")
}

/// The rows that are explained, of `n` transfers: the first of a list of the slowest, else the
/// largest.
fn explanations(
    rows: &[&TransferDiagnosis],
    (n, all): (usize, bool),
    with_verdict: bool,
) -> String {
    let mut order = rows.to_vec();
    if rows.len() == n {
        order.sort_by_key(|t| std::cmp::Reverse(t.finding.bytes));
    }
    order.truncate(if all { n } else { EXPLAINED });
    let which = if rows.len() == n { "largest" } else { "slowest" };
    let title = match order.len() {
        shown if shown < n => format!("\nThe {shown} {which}, explained (-v: all {n}):\n"),
        _ => String::new(),
    };
    let explained = order.into_iter().map(|t| explanation(t, with_verdict));
    title + &explained.collect::<String>()
}

/// The table; without verdicts, their column is omitted.
fn transfers_table(transfers: &[&TransferDiagnosis], times: &Times, with_verdict: bool) -> String {
    let rows = transfers.iter().map(|t| {
        vec![
            t.id.clone(),
            or_dash(t.name.as_deref(), in_row),
            or_dash(t.finding.start_us, |us| times.show(us)),
            format!("{:.0}", t.finding.duration_ms),
            or_dash(t.finding.bytes, bytes),
            or_dash(radio_ms(t), |ms| format!("{ms:.0}")),
            or_dash(unknown_ms(t), |ms| format!("{ms:.0}")),
            or_dash(t.finding.link_demand, percent),
            if with_verdict { verdict(t) } else { "-".to_owned() },
            match t.verdict {
                Verdict::Unknown => "-".to_owned(),
                _ => format!("{:.0} %", confidence_percent(t.confidence)),
            },
        ]
    });
    let columns = [
        id("id"),
        name("what").goes(3),
        number("start").goes(1),
        number("ms"),
        number("bytes").goes(5),
        number("radio ms").goes(4),
        number("unknown ms").goes(2),
        number("link demand"),
        column("verdict"),
        number("confidence"),
    ];
    table(columns, rows.collect())
}

/// A transfer's name in a row: without the mark of a query that was removed, and its end alone if it
/// is long. Explanations have it in full.
fn in_row(name: &str) -> String {
    end_of(name.strip_suffix("?…").unwrap_or(name), MOST_LETTERS)
}

/// The time in which data waited for the radio's capacity, as in the page: of an upload, less than its
/// throughput time.
fn radio_ms(transfer: &TransferDiagnosis) -> Option<f64> {
    transfer.finding.throughput_time_ms?;
    let radio = transfer.shares.iter().filter(|(cause, _)| cause.starts_with("radio"));
    // An empty sum is -0.
    Some(radio.map(|(_, ms)| ms).sum::<f64>() + 0.0)
}

/// The time for which the radio's records are unknown; `None` if the verdict has other evidence.
fn unknown_ms(transfer: &TransferDiagnosis) -> Option<f64> {
    transfer.finding.throughput_time_ms?;
    transfer.shares.get("unknown").copied().filter(|ms| *ms >= 0.5)
}

/// The verdict; for a shared one, also the other known cause.
fn verdict(transfer: &TransferDiagnosis) -> String {
    match (transfer.verdict, transfer.counterfactual_of) {
        (Verdict::Mixed, Some(cause)) => format!("mixed: radio, {cause}"),
        (verdict, _) => verdict.to_string(),
    }
}

fn explanation(transfer: &TransferDiagnosis, with_verdict: bool) -> String {
    let name = transfer.name.as_ref().map_or_else(String::new, |name| format!(" {name}"));
    let verdict = if with_verdict { format!(": {}", verdict(transfer)) } else { String::new() };
    let mut out = format!("\n{}{name}{verdict}\n", transfer.id);
    for item in &transfer.evidence {
        out.push_str(&format!("  - {}\n", item.what));
    }
    if let Some(saving) = transfer.saving() {
        out.push_str(&format!("  - {saving}\n"));
    }
    out.push_str(&format!("  next: {}\n", transfer.next_step));
    out
}
