//! `airmile packets`.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use airmile::packets::{FlowEntry, count};
use airmile::{Captures, Inputs, PacketReport, captures, packets, study_page};
use anyhow::Result;

use crate::Outcome;
use crate::args::{Global, PacketsArgs};
use crate::output::{self, bytes, id, name, number as column, or_dash, table, text as text_column};
use crate::progress::Shown;

pub fn run(global: &Global, args: &PacketsArgs) -> Result<Outcome> {
    if let Some(engine) = &args.engine.engine {
        return super::engine::run(global, args, engine);
    }
    let outputs = [args.out.as_deref(), args.html.as_deref()];
    let open = |name| interface::open(name, args.duration, &outputs);
    let live = args.interface.as_deref().map(open);
    let (files, unread) = captures(&args.files)?;
    warn_chosen(global, &args.files, &files);
    let (sources, dropped) = match live.transpose()? {
        Some((stream, dropped)) => (Captures::Stream(stream), Some(dropped)),
        None => (Captures::from(&files), None),
    };
    let (mut report, written) = match &args.html {
        None => {
            let shown = Shown::start(global, &reading(&files, 1));
            packets::packets(sources, &args.options(), &shown.progress)?
        }
        Some(html) => {
            // Read once for the totals and once for the flows.
            let shown = Shown::start(global, &reading(&files, 2));
            let (options, flows) = (args.options(), &args.flow);
            let (study, written) = study_page(sources, &options, flows, html, &shown.progress)?;
            (PacketReport { headline: Some(study.headline), ..study.packets }, written)
        }
    };
    if let Some(n) = dropped.map(|n| n.load(Ordering::Relaxed)).filter(|n| *n > 0) {
        output::warn(global, &format!("the kernel dropped {n} packets: the analysis was too slow"));
    }
    for (path, rows) in written.into_iter().filter(|(_, rows)| *rows > 0) {
        output::wrote_rows(global, rows, &path);
    }
    report.files.extend(unread);
    let damaged = report.damaged();
    if global.json {
        output::json("packets", &report)?;
    } else {
        output::print_wrapped(&text(&report, global.verbose > 0))?;
        output::problems(global, &report.files);
    }
    Ok(Outcome::of(damaged))
}

#[cfg(target_os = "linux")]
mod interface {
    use std::path::{Path, PathBuf};
    use std::sync::Arc;
    use std::sync::atomic::AtomicU32;
    use std::time::Duration;

    use airmile::CaptureStream;
    use airmile_host::interface::InterfaceCapture;
    use anyhow::Result;
    use rustix::thread::CapabilitySet;

    use airmile_host::privilege::{self, Kept};

    /// Captures an interface and counts what the kernel drops. Before it starts, privileges are
    /// dropped except those that it and the outputs need.
    pub fn open(
        name: &str,
        duration: Option<Duration>,
        outputs: &[Option<&Path>],
    ) -> Result<(CaptureStream, Arc<AtomicU32>)> {
        let mut capabilities = CapabilitySet::NET_ADMIN | CapabilitySet::NET_RAW;
        let mut writable = Vec::new();
        for output in outputs.iter().flatten() {
            // With sudo they are in other users' directories.
            capabilities |= CapabilitySet::DAC_OVERRIDE;
            let whole = std::path::absolute(output)?;
            let is_dir = |dir: &&Path| dir.is_dir();
            writable.extend(whole.ancestors().find(is_dir).map(Path::to_owned));
        }
        let writable: Vec<&Path> = writable.iter().map(PathBuf::as_path).collect();
        privilege::keep(Kept { capabilities, writable: &writable, starts_programs: false })?;
        let capture = InterfaceCapture::open(name, duration)?;
        let dropped = capture.dropped();
        Ok((CaptureStream { name: name.to_owned(), read: Box::new(capture) }, dropped))
    }
}

#[cfg(not(target_os = "linux"))]
mod interface {
    use std::path::Path;
    use std::sync::Arc;
    use std::sync::atomic::AtomicU32;
    use std::time::Duration;

    use airmile::CaptureStream;
    use anyhow::{Result, bail};

    /// Interfaces can be captured only on Linux.
    pub fn open(
        name: &str,
        _: Option<Duration>,
        _: &[Option<&Path>],
    ) -> Result<(CaptureStream, Arc<AtomicU32>)> {
        bail!(
            "{name}: interfaces are captured on Linux only; elsewhere: tcpdump -w - | airmile packets -"
        )
    }
}

/// Prints which captures of directories are studied.
fn warn_chosen(global: &Global, given: &[PathBuf], files: &[PathBuf]) {
    for file in files.iter().filter(|file| !given.contains(file)) {
        let dir = file.parent().unwrap_or(file);
        output::warn(global, &format!("{}: studying {}", dir.display(), file.display()));
    }
}

/// The inputs, repeated as many times as they are read.
fn reading(files: &[PathBuf], times: usize) -> Inputs {
    let files = files.iter().cycle().take(files.len() * times);
    Inputs { files: files.cloned().collect(), ..Inputs::default() }
}

/// The result as the command prints it; `all` includes figures without a value.
pub fn text(report: &PacketReport, all: bool) -> String {
    let mut out = format!("{}\n", report.says);
    out.push_str(&notable(report));
    out.push_str(&quality(report));
    out.push_str(&flows(report));
    let shown = report.summary.iter().filter(|figure| all || figure.here.is_some());
    let rows = shown.map(|figure| {
        vec![
            figure.section.to_owned(),
            figure.what.to_owned(),
            or_dash(figure.here, |value| number(value, figure.unit)),
            or_dash(figure.paper, |value| number(value, figure.unit)),
            or_dash(figure.n, |n| n.to_string()),
        ]
    });
    let columns = [
        id("section"),
        text_column("figure"),
        column("here"),
        column("paper"),
        column("of").goes(1),
    ];
    out.push_str(&format!("\n{}", table(columns, rows.collect())));
    out.push_str(&table1(report));
    out.push_str(&periodic(report));
    out
}

/// The maximum number of printed findings; the page has all.
const SHOWN_FINDINGS: usize = 3;

/// Notable findings and what to do about them.
fn notable(report: &PacketReport) -> String {
    let Some(headline) = &report.headline else { return String::new() };
    let mut out = format!("{}\n", headline.says);
    for finding in headline.findings.iter().take(SHOWN_FINDINGS) {
        // Of several findings, each says first what it is about.
        let what = format!("{}. ", finding.what);
        let what = if headline.findings.len() > 1 { what.as_str() } else { "" };
        out.push_str(&format!("  - {what}{}\n    -> {}\n", finding.evidence, finding.next_step));
    }
    let unknown = report.curves.get("available_bps").is_none_or(Vec::is_empty);
    if unknown && report.send_rate_by == "given" && report.tcp_flows > 0 {
        let bar = report.send_rate_bar_bps.map_or_else(String::new, output::mbps);
        out.push_str(&format!(
            "  available bandwidth: nothing was sent at {bar} Mbit/s; --send-rate auto estimates it from the queue\n"
        ));
    }
    out
}

/// The maximum number of printed flows, those with the most payload.
const SHOWN_FLOWS: usize = 10;

/// Where it was captured, if the flows' round trips there do not include the network.
fn at_phone(report: &PacketReport) -> Option<&str> {
    report.headline.as_ref()?.at_phone.as_deref()
}

/// The largest flows; `--out` writes all of them, with all columns.
fn flows(report: &PacketReport) -> String {
    let mut shown: Vec<_> = report.flows.iter().map(FlowEntry::row).collect();
    shown.sort_by_key(|row| (std::cmp::Reverse(row.dl_bytes + row.ul_bytes), row.flow));
    let all = shown.len() as u64 + report.flows_left_out;
    shown.truncate(SHOWN_FLOWS);
    let seconds = |ns: i64| ns as f64 / 1e9;
    let at_phone = at_phone(report);
    let rows: Vec<Vec<String>> = shown
        .iter()
        .map(|row| {
            // A Host field may include the port.
            let port = format!(":{}", row.server_port);
            let name = row.server_name.as_deref().unwrap_or(&row.server);
            let name = name.strip_suffix(&port).unwrap_or(name);
            let ms = |ns: Option<i64>| or_dash(ns, |ns| format!("{:.1}", ns as f64 / 1e6));
            let share = |part: u64, of: u64| {
                let share = (of > 0).then(|| part as f64 / of as f64);
                or_dash(share, |share| number(share, "share"))
            };
            // The rate of a flow in the study, too: payload over duration (Huang et al., 4.1); here that
            // of the direction with more.
            let most_bytes = row.dl_bytes.max(row.ul_bytes);
            let rate = most_bytes as f64 * 8.0 / seconds(row.duration_ns.max(1));
            let rate = (most_bytes > 0 && row.duration_ns > 0).then_some(rate);
            // A column without values is omitted.
            let ms = |ns: Option<i64>| ms(ns.filter(|_| at_phone.is_none()));
            vec![
                row.flow.to_string(),
                row.client.clone(),
                format!("{name}{port}"),
                bytes(row.dl_bytes),
                bytes(row.ul_bytes),
                format!("{:.1}", seconds(row.duration_ns)),
                or_dash(rate, output::mbps),
                ms(row.rtt_min_ns),
                ms(row.rtt_mean_ns),
                share(row.dl_retx, row.dl_segments),
                share(row.ul_retx, row.ul_segments),
            ]
        })
        .collect();
    let columns = [
        column("flow"),
        name("client").goes(3),
        name("server"),
        column("down"),
        column("up").goes(2),
        column("s").goes(4),
        column("Mbit/s"),
        column("min RTT ms"),
        column("mean RTT ms"),
        column("resent down"),
        column("resent up").goes(1),
    ];
    let left = all - shown.len() as u64;
    let more =
        if left > 0 { format!("  and {left} more (--out writes all)\n") } else { String::new() };
    let side = at_phone.map_or_else(String::new, |side| format!("{side}\n"));
    format!("\n{side}{}{more}", table(columns, rows))
}

/// Facts that limit the other results: only those above zero.
fn quality(report: &PacketReport) -> String {
    let q = &report.quality;
    let facts = [
        (q.copies, "packet", "captured twice, counted once"),
        (q.payload_cut, "packet", "captured without all of the payload"),
        (
            q.options_cut,
            "packet",
            "whose TCP options are cut off: capture longer headers (`tcpdump -s 128`)",
        ),
        (q.repeated_connections, "connection", "also in an earlier capture"),
        (q.split_connections, "connection", "captured on both sides of a proxy, counted once"),
        (q.steps_back, "packet", "with a time before the previous one's"),
        (q.mid_flow, "flow", "that began before the capture"),
        (q.super_segments, "segment", "merged by offload"),
        (q.tunnelled, "packet", "from GTP-U tunnels"),
        (q.wild_sequences, "sequence number", "far outside the window"),
        (q.reassembled, "datagram", "reassembled from fragments"),
        (q.incomplete_datagrams, "datagram", "with a missing fragment"),
        (q.overlapping_fragments, "fragment", "overlapping another"),
        (q.later_fragments, "IP fragment", "ignored"),
        (q.late_segments, "segment", "captured after its own ACK: the capture is out of order"),
        (q.unseen_bytes, "byte", "acknowledged but never captured"),
        (q.use_above_available, "large flow", "above the estimated available bandwidth"),
        (q.client_guessed, "flow", "whose client was guessed (--client sets it)"),
    ];
    let facts = facts.iter().filter(|(n, ..)| *n > 0);
    facts.map(|(n, noun, what)| format!("  {} {what}\n", count(*n, noun))).collect()
}

fn number(value: f64, unit: &str) -> String {
    match unit {
        "share" if value > 0.0 && value < 0.001 => format!("{:.2} %", value * 100.0),
        "share" => output::percent(value),
        "bytes" => bytes(value.max(0.0) as u64),
        "bit/s" => format!("{} Mbit/s", output::mbps(value)),
        "correlation" => format!("{value:.3}"),
        "" => format!("{value:.0}"),
        unit if value.abs() < 10.0 => format!("{value:.2} {unit}"),
        unit => format!("{value:.0} {unit}"),
    }
}

fn table1(report: &PacketReport) -> String {
    if report.table1.iter().all(|row| row.value.is_none()) {
        return String::new();
    }
    let rows = report.table1.iter().map(|row| {
        let [a, b] = row.three_g_test;
        let mut cells = vec![
            row.measure.to_owned(),
            format!("{} %", row.percentile),
            or_dash(row.value, |value| format!("{value:.0}")),
            format!("{:.0}", row.paper),
            format!("{a:.0}-{b:.0}"),
            format!("{:.0}", row.four_g_test_lte),
            format!("{:.0}", row.four_g_test_wimax),
        ];
        cells.extend(row.speed_test.iter().flatten().map(|value| format!("{value:.0}")));
        cells
    });
    let columns = [
        id("table 1"),
        column(""),
        column("here"),
        column("paper"),
        column("3GTest").goes(9),
        column("4GTest LTE").goes(8),
        column("4GTest WiMAX").goes(7),
        column("NYC cell").goes(6),
        column("NYC WiFi").goes(5),
        column("Madison cell").goes(4),
        column("Madison WiFi").goes(3),
        column("Manchester cell").goes(2),
        column("Manchester WiFi").goes(1),
    ];
    format!("\n{}", table(columns, rows.collect()))
}

fn periodic(report: &PacketReport) -> String {
    if report.periodic.is_empty() {
        return String::new();
    }
    let rows = report.periodic.iter().map(|p| {
        vec![
            p.client.clone(),
            p.server.clone(),
            format!("{:.1} s", p.period_s),
            p.requests.to_string(),
            bytes(p.bytes),
            output::percent(p.idle_share),
        ]
    });
    let columns = [
        name("periodic: client"),
        name("server"),
        column("period"),
        column("requests"),
        column("bytes"),
        column("idle").goes(1),
    ];
    format!("\n{}", table(columns, rows.collect()))
}
