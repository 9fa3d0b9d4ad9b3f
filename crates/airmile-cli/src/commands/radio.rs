//! `airmile radio`.

use airmile::model::median::upper_median;
use airmile::model::{Direction, TransferFinding, Verdict, confidence_percent};
use airmile::{CellLoad, ROUGH_CONFIDENCE, RadioReport, Subject, Zone, export, plural};
use anyhow::Result;

use super::Times;
use super::budgets::Budgets;
use crate::Outcome;
use crate::args::{Global, RadioArgs, inputs};
use crate::output::{self, bytes, id, mbps, number, or_dash, percent, table, text as column};
use crate::progress::Shown;

/// Bursts printed without `-v`.
const SHOWN_BURSTS: usize = 10;

pub fn run(global: &Global, args: &RadioArgs) -> Result<Outcome> {
    let budgets = Budgets::parse(&args.budgets, "radio")?;
    let inputs = inputs(&args.files, args.analysis.transfers.as_ref());
    budgets.check_outputs(inputs.paths())?;
    let options = budgets.analysed(args.analysis.options(args.files.limits))?;
    let shown = Shown::start(global, &inputs);
    let made = export(&inputs, &options, &(&args.exports).into(), Subject::Radio, &shown.progress);
    let (report, _) = budgets.analysed(made)?;
    drop(shown);
    let given = (&args.files, &args.analysis);
    let of = (report.transfers_from, &*report.files, &report.evidence_counts);
    super::warn_of_idle_options(global, given, of);
    if global.json {
        output::json("radio", &report)?;
    } else {
        output::print_wrapped(&text(&report, global.verbose > 0, options.limits.zone))?;
        output::problems(global, &report.files);
    }
    output::written(global, [&args.exports.html, &args.exports.perfetto]);
    budgets.settle(global, &report, &report.files)
}

/// The result as the command prints it.
pub fn text(report: &RadioReport, all: bool, zone: Zone) -> String {
    if report.empty_window {
        return "Nothing was logged between --from and --to.\n".into();
    }
    let mut out = cell_line(report);
    out.push_str(&load_line(report));
    let times = Times::of(zone, report.transfers.iter().filter_map(|t| t.start_us));
    out.push_str(&format!("Transfers ({}):\n", times.title(report.transfers_from)));
    if report.transfers.is_empty() {
        out.push_str("  none\n");
    } else {
        out.push_str(&transfers_table(&report.transfers, &times));
    }
    for (dir, small) in &report.small {
        if small.count > 0 && report.transfers_from != "given" {
            let (n, s) = (small.count, plural(small.count));
            out.push_str(&format!("  and {n} small {dir} exchange{s}, {}\n", bytes(small.bytes)));
        }
    }
    for dir in Direction::ALL {
        out.push_str(&bursts_text(report, *dir, all));
    }
    out.push_str(&loss_line(report));
    out.push_str(&output::missing(&report.missing));
    out
}

fn loss_line(report: &RadioReport) -> String {
    let loss = &report.radio_loss;
    let delayed =
        counted(&[(loss.harq_failures, "failed block"), (loss.rlc_retx, "RLC retransmission")]);
    let delayed = delayed.map_or_else(String::new, |what| format!("; {what} delayed data"));
    if loss.known {
        let lost = counted(&[(loss.lost_rlc_pdus, "RLC PDU"), (loss.lost_pdcp_pdus, "PDCP PDU")]);
        format!("\nLost by the radio: {}{delayed}\n", lost.as_deref().unwrap_or("nothing"))
    } else if loss.harq_failures > 0 {
        format!("\nLost by the radio: unknown, no sequence numbers{delayed}\n")
    } else {
        String::new()
    }
}

/// Numbers of things, without those that are zero; `None` if all are.
fn counted(of: &[(u64, &str)]) -> Option<String> {
    let some = of.iter().filter(|(n, _)| *n > 0);
    let some: Vec<String> = some.map(|(n, noun)| format!("{n} {noun}{}", plural(*n))).collect();
    (!some.is_empty()).then(|| some.join(" and "))
}

fn cell_line(report: &RadioReport) -> String {
    let mut parts = Vec::new();
    let has_nr = report.evidence_counts.nr_blocks > 0;
    for cell in &report.cells {
        // Only LTE's cells have measurements.
        let arfcn = if has_nr && cell.measurements == 0 { "NR-ARFCN" } else { "EARFCN" };
        parts.push(format!(
            "PCI {} {arfcn} {}",
            or_dash(cell.pci, |p| p.to_string()),
            or_dash(cell.earfcn, |e| e.to_string())
        ));
    }
    if let (Some(n), Some(from)) = (report.n_prb_cell, report.n_prb_cell_from) {
        parts.push(format!("{n} PRBs ({from})"));
    }
    if report.subscription > 1 {
        parts.push(format!("SIM {}", report.subscription));
    }
    if parts.is_empty() { String::new() } else { format!("Cell: {}\n", parts.join(", ")) }
}

/// The cell load in a line, or why it is unknown.
fn load_line(report: &RadioReport) -> String {
    let windows = &report.cell_load;
    if windows.is_empty() {
        let counts = &report.evidence_counts;
        let why = match (counts.measurements, report.n_prb_cell) {
            _ if counts.is_nr_first => "estimated for LTE only",
            (0, _) => "no signal measurements (0xB193)",
            (_, None) => "the cell's bandwidth is unknown",
            _ if report.cell_load_unknown == 0 => "no measurements of the primary cell",
            _ => "the signal is too noisy (SNR under 0 dB)",
        };
        return format!("Cell load: unknown: {why}\n");
    }
    let median = |of: fn(&CellLoad) -> Option<f64>| {
        let mut values: Vec<f64> = windows.iter().filter_map(of).collect();
        upper_median(&mut values, f64::total_cmp)
    };
    let mut line = format!(
        "Cell load: median {} of the PRBs in use (own {}); {} PRBs not used by others",
        or_dash(median(|w| Some(w.load)), percent),
        or_dash(median(|w| Some(w.own_share)), percent),
        or_dash(median(|w| Some(w.free_prb)), |n| format!("{n:.0}")),
    );
    if let Some(bps) = median(|w| w.capacity_bps) {
        line.push_str(&format!(", which would carry {} Mbit/s", mbps(bps)));
    }
    let confidence = median(|w| Some(w.confidence));
    let rough = if confidence.is_some_and(|c| c < ROUGH_CONFIDENCE) { " (rough)" } else { "" };
    line.push_str(&format!(
        "; confidence {}{rough}; {} windows",
        or_dash(confidence, percent),
        windows.len()
    ));
    match report.cell_load_unknown {
        0 => line.push('\n'),
        n => line.push_str(&format!(", {n} more too noisy for an estimate\n")),
    }
    line
}

fn transfers_table(transfers: &[TransferFinding], times: &Times) -> String {
    let rows = transfers.iter().map(|t| {
        vec![
            t.id.clone(),
            t.dir.to_string(),
            or_dash(t.start_us, |us| times.show(us)),
            format!("{:.0}", t.duration_ms),
            or_dash(t.bytes, bytes),
            or_dash(t.throughput_time_ms, |x| format!("{x:.0}")),
            or_dash(t.active_time_ms, |x| format!("{x:.0}")),
            or_dash(t.link_demand, percent),
            or_dash(t.link_throughput_bps, mbps),
            match t.verdict {
                Verdict::Unknown => t.verdict.to_string(),
                _ => format!("{} ({:.0} %)", t.verdict, confidence_percent(t.confidence)),
            },
            or_dash(t.evidence, |e| e.to_string()),
        ]
    });
    let columns = [
        id("id"),
        id("dir"),
        number("start").goes(2),
        number("ms"),
        number("bytes").goes(4),
        number("throughput time ms"),
        number("active ms").goes(3),
        number("link demand"),
        number("link throughput Mbit/s"),
        column("verdict (confidence)"),
        id("evidence").goes(1),
    ];
    table(columns, rows.collect())
}

fn bursts_text(report: &RadioReport, dir: Direction, all: bool) -> String {
    let bursts: Vec<_> = report.bursts.iter().filter(|b| b.dir == dir).collect();
    if bursts.is_empty() {
        return String::new();
    }
    let shown = if all { bursts.len() } else { SHOWN_BURSTS };
    let mut longest = bursts.clone();
    longest.sort_by_key(|b| std::cmp::Reverse(b.n_tti()));
    longest.truncate(shown);
    longest.sort_by_key(|b| b.start_tti);
    let rows = longest.iter().map(|b| {
        vec![
            b.start_tti.to_string(),
            b.n_tti().to_string(),
            b.scheduled_ttis.to_string(),
            bytes(b.bytes),
            b.opened_by.to_string(),
            b.closed_by.to_string(),
            format!("{:.0} %", confidence_percent(b.confidence)),
        ]
    });
    let (start, lasts, slots) = if report.evidence_counts.is_nr() {
        ("start slot", "slots", format!(", slots of {} ms", report.tti_ms))
    } else {
        ("start TTI", "TTIs", String::new())
    };
    let columns = [
        number(start),
        number(lasts),
        number("scheduled").goes(2),
        number("bytes"),
        column("opened by").goes(1),
        column("closed by"),
        number("confidence"),
    ];
    let title = match bursts.len() {
        n if n > shown => {
            format!("\nBursts, {dir}: {n}{slots}, the longest {shown} (-v shows all):\n")
        }
        n => format!("\nBursts, {dir}: {n}{slots}:\n"),
    };
    title + &table(columns, rows.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_are_not_listed() {
        assert_eq!(counted(&[(0, "RLC PDU"), (1, "PDCP PDU")]).unwrap(), "1 PDCP PDU");
        assert_eq!(
            counted(&[(2, "RLC PDU"), (3, "PDCP PDU")]).unwrap(),
            "2 RLC PDUs and 3 PDCP PDUs"
        );
        assert_eq!(counted(&[(0, "RLC PDU")]), None);
    }
}
