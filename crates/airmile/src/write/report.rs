//! The HTML report: one file with its program, style and data, which loads nothing from a network.
//!
//! The page's program is `web/dist`, built from `web/src` by `make web`. The page contains the
//! `diagnose` document unchanged; data drawn over time is in arrays of fixed types, little-endian,
//! gzip, base64.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use airmile_model::{Bound, Burst, Cause, Direction, Verdict, confidence_percent};
use serde_json::{Map, Value, json};

use crate::analyse::diagnose::{Diagnosis, TransferDiagnosis};
use crate::analyse::lanes::{Lanes, MarkKind};
use crate::analyse::radio::CellLoad;
use crate::analyse::report::Report;
use crate::write::page::{Page, write_json, write_packed, write_zone};
use airmile_io::Replacement;
use airmile_io::document::Document;
use airmile_io::error::Result;
use airmile_radio::series::{AllocationSeries, BLOCK_TTIS, MAX_BLOCKS, SHARE_STEPS};

const PAGE: Page = Page {
    script: include_str!("../../../../web/dist/report.js"),
    style: include_str!("../../../../web/dist/report.css"),
    policy: include_str!("../../../../web/dist/report.policy.txt"),
};

/// There is no measurement of this kind at this point.
const NO_SIGNAL: i16 = i16::MIN;

/// Writes a report to a file.
///
/// # Errors
/// The file cannot be written.
pub fn write_file(path: &Path, report: &Report) -> Result<()> {
    let (replacement, file) = Replacement::begin(path)?;
    let mut out = BufWriter::new(file);
    write_html(&mut out, report).and_then(|()| out.flush()).map_err(|e| replacement.failed(e))?;
    replacement.done()
}

/// Writes a report.
///
/// # Errors
/// The writer refuses.
pub fn write_html(out: &mut dyn Write, report: &Report) -> io::Result<()> {
    let file = report.radio.files.first().map_or("", |file| file.path.as_str());
    PAGE.begin(out, file, &report.diagnosis.session.says)?;
    write_zone(out, report.zone, times_us(&report.diagnosis))?;
    let document = Document::new("diagnose", &report.diagnosis);
    write_json(out, "airmile-document", &serde_json::to_value(document)?)?;
    let mut arrays = Arrays::default();
    let series = series_head(report, &mut arrays);
    write_json(out, "airmile-series", &series)?;
    for (name, bytes) in arrays.done {
        write_packed(out, &format!("array-{name}"), &bytes)?;
    }
    PAGE.end(out)
}

/// Times of a diagnosis between which all others are, in microseconds since the epoch.
fn times_us(diagnosis: &Diagnosis) -> impl Iterator<Item = i64> + Clone {
    let files = diagnosis.files.iter().flat_map(|file| [file.start_us, file.end_us]);
    let transfers = diagnosis.transfers.iter().map(|one| &one.finding);
    let transfers = transfers.flat_map(|finding| [finding.start_us, finding.end_us]);
    let pages = diagnosis.pages.iter().map(|page| page.start_us);
    files.chain(transfers).chain(pages).flatten()
}

/// The description of the arrays for the page.
fn series_head(report: &Report, arrays: &mut Arrays) -> Value {
    let series = &report.series;
    let radio = &report.radio;
    let axis = TimeAxis::of(report);
    let mut directions = Map::new();
    for (dir, allocation) in [(Direction::Dl, &series.dl), (Direction::Ul, &series.ul)] {
        let bursts = radio.bursts.iter().filter(|b| b.dir == dir).collect();
        let head = direction(dir, allocation, bursts, &axis, arrays);
        directions.insert(dir.as_str().to_owned(), head);
    }
    let on_axis = |tti: i64| axis.offset(tti);
    arrays.u32("signal.tti", series.signal.iter().map(|p| on_axis(p.tti)));
    arrays.i16("signal.rsrp", series.signal.iter().map(|p| hundredths(p.rsrp_dbm)));
    arrays.i16("signal.snr", series.signal.iter().map(|p| hundredths(p.snr_db)));
    arrays.u32("holes.start", series.holes.iter().map(|h| on_axis(h.0)));
    arrays.u32("holes.end", series.holes.iter().map(|h| on_axis(h.0.saturating_add(h.1))));
    arrays.u32("load.tti", radio.cell_load.iter().map(|l| on_axis(l.tti)));
    arrays.u16("load.load", radio.cell_load.iter().map(|l| share_u16(l.load)));
    arrays.u16("load.own", radio.cell_load.iter().map(|l| share_u16(l.own_share)));
    lanes(&report.lanes, &axis, arrays);
    json!({
        "capture": report.lanes.capture,
        "marks": MarkKind::ALL.map(MarkKind::as_str),
        "more_marks": report.lanes.more_marks,
        "causes": cause_names().collect::<Vec<_>>(),
        "frames": report.lanes.frames,
        "savings": report.diagnosis.transfers.iter().map(TransferDiagnosis::saving).collect::<Vec<_>>(),
        "first_tti": axis.first,
        "n_tti": axis.n_tti,
        "tti_ms": 1.0 / f64::from(1_u32 << u32::from(series.numerology.min(6))),
        "block_ttis": BLOCK_TTIS,
        "share_steps": SHARE_STEPS,
        "anchors": anchors(report, &axis),
        "bounds": Bound::ALL.iter().map(|b| b.as_str()).collect::<Vec<_>>(),
        "directions": directions,
        "arrays": arrays.types,
    })
}

/// Data drawn next to the radio: ranges as start, minimum and maximum.
fn lanes(lanes: &Lanes, axis: &TimeAxis, arrays: &mut Arrays) {
    for (name, points) in [
        ("flight", &lanes.flight_bytes),
        ("cwnd", &lanes.cwnd_bytes),
        ("rwnd", &lanes.rwnd_bytes),
        ("rtt", &lanes.rtt_us),
        ("buffer", &lanes.buffer_ms),
    ] {
        arrays.u32(&format!("{name}.tti"), points.iter().map(|point| axis.offset(point.tti)));
        arrays.u32(&format!("{name}.least"), points.iter().map(|point| point.least));
        arrays.u32(&format!("{name}.most"), points.iter().map(|point| point.most));
    }
    let marks = &lanes.marks;
    let code = |kind| MarkKind::ALL.iter().position(|each| *each == kind).unwrap_or_default() as u8;
    arrays.u8("mark.kind", marks.iter().map(|mark| code(mark.kind)));
    arrays.u32("mark.from", marks.iter().map(|mark| axis.offset(mark.from_tti)));
    arrays.u32("mark.to", marks.iter().map(|mark| axis.offset(mark.to_tti)));
    arrays.u32("mark.value", marks.iter().map(|mark| mark.value));
    let causes = &lanes.causes;
    let name = |cause: Option<Cause>| cause.map_or(Verdict::Radio.as_str(), Cause::as_str);
    let code = |cause| cause_names().position(|each| each == name(cause)).unwrap_or_default() as u8;
    arrays.u8("cause.code", causes.iter().map(|one| code(one.cause)));
    arrays.u32("cause.start", causes.iter().map(|one| axis.offset(one.from_tti)));
    arrays.u32("cause.end", causes.iter().map(|one| axis.offset(one.to_tti)));
}

/// Names of causes by code; the radio's two are one, because they differ for whole transfers only.
fn cause_names() -> impl Iterator<Item = &'static str> {
    let causes = Cause::ALL.iter().map(|cause| cause.as_str());
    std::iter::once(Verdict::Radio.as_str()).chain(causes)
}

fn direction(
    dir: Direction,
    allocation: &AllocationSeries,
    bursts: Vec<&Burst>,
    axis: &TimeAxis,
    arrays: &mut Arrays,
) -> Value {
    let name = |what: &str| format!("{dir}.{what}");
    let first_block = axis.first.div_euclid(BLOCK_TTIS as i64);
    arrays.u32(&name("blocks"), allocation.blocks.iter().map(|(i, _)| (i - first_block) as u32));
    arrays.u8(&name("share"), allocation.blocks.iter().flat_map(|(_, codes)| codes).copied());
    arrays.u32(&name("burst.start"), bursts.iter().map(|b| axis.offset(b.start_tti.0)));
    arrays.u32(&name("burst.end"), bursts.iter().map(|b| axis.offset(b.end_tti.0)));
    let bytes = |b: &&Burst| u32::try_from(b.bytes).unwrap_or(u32::MAX);
    arrays.u32(&name("burst.bytes"), bursts.iter().map(bytes));
    arrays.u32(&name("burst.scheduled"), bursts.iter().map(|b| b.scheduled_ttis));
    arrays.u8(&name("burst.opened_by"), bursts.iter().map(|b| bound_code(b.opened_by)));
    arrays.u8(&name("burst.closed_by"), bursts.iter().map(|b| bound_code(b.closed_by)));
    let percent = |b: &&Burst| confidence_percent(b.confidence.clamp(0.0, 1.0)) as u8;
    arrays.u8(&name("burst.confidence"), bursts.iter().map(percent));
    json!({ "bursts": bursts.len(), "blocks": allocation.blocks.len() })
}

fn bound_code(bound: Bound) -> u8 {
    Bound::ALL.iter().position(|b| *b == bound).unwrap_or_default() as u8
}

fn hundredths(value: Option<f32>) -> i16 {
    value.map_or(NO_SIGNAL, |v| (v * 100.0).round().clamp(-32_000.0, 32_000.0) as i16)
}

fn share_u16(share: f64) -> u16 {
    (share.clamp(0.0, 1.0) * 65_535.0).round() as u16
}

/// The time axis: whole blocks, starting before the first drawn element.
struct TimeAxis {
    first: i64,
    n_tti: i64,
}

impl TimeAxis {
    fn of(report: &Report) -> Self {
        let series = &report.series;
        let n = BLOCK_TTIS as i64;
        let mut span: Option<(i64, i64)> = None;
        let mut cover = |from: i64, to: i64| {
            let (first, last) = span.unwrap_or((from, to));
            // A damaged record's TTI does not extend the axis.
            if from.saturating_sub(first).saturating_abs() < MAX_BLOCKS.saturating_mul(n) {
                span = Some((first.min(from), last.max(to)));
            }
        };
        for (index, codes) in series.dl.blocks.iter().chain(&series.ul.blocks) {
            let scheduled = |code: &u8| *code != 0;
            let first = codes.iter().position(scheduled).unwrap_or_default() as i64;
            let last = codes.iter().rposition(scheduled).unwrap_or_default() as i64;
            cover(index * n + first, index * n + last + 1);
        }
        series.signal.iter().for_each(|p| cover(p.tti, p.tti.saturating_add(1)));
        report.radio.bursts.iter().for_each(|b| cover(b.start_tti.0, b.end_tti.0));
        for load in &report.radio.cell_load {
            cover(load.tti, load.tti.saturating_add(CellLoad::WINDOW_TTIS));
        }
        series.holes.iter().for_each(|h| cover(h.0, h.0.saturating_add(h.1)));
        report.lanes.cover(&mut cover);
        // Without any of these, the transfers.
        for transfer in &report.diagnosis.transfers {
            cover(transfer.finding.start_tti.0, transfer.finding.end_tti.0);
        }
        let (first, last) = span.unwrap_or((0, 1));
        let origin = first.div_euclid(n) * n;
        Self { first: origin, n_tti: (last - origin).clamp(1, i64::from(u32::MAX)) }
    }

    /// A TTI relative to the axis' origin; clamped to the axis.
    fn offset(&self, tti: i64) -> u32 {
        tti.saturating_sub(self.first).clamp(0, self.n_tti) as u32
    }
}

/// TTIs and times of day; without a modem log, from the first transfer.
fn anchors(report: &Report, axis: &TimeAxis) -> Vec<[i64; 2]> {
    let known = report.series.clock.anchors();
    let mut anchors: Vec<(i64, i64)> =
        known.map(|(tti, ns)| (tti.0, ns.div_euclid(1_000))).collect();
    if anchors.is_empty() {
        let mut transfers = report.diagnosis.transfers.iter().map(|transfer| &transfer.finding);
        anchors.extend(transfers.find_map(|t| Some((t.start_tti.0, t.start_us?))));
    }
    anchors.into_iter().map(|(tti, us)| [tti.saturating_sub(axis.first), us]).collect()
}

/// Arrays by name, with their types and lengths.
#[derive(Default)]
struct Arrays {
    types: Map<String, Value>,
    done: Vec<(String, Vec<u8>)>,
}

impl Arrays {
    fn add(&mut self, name: &str, kind: &str, size: usize, bytes: Vec<u8>) {
        let length = bytes.len() / size;
        if length == 0 {
            return;
        }
        self.types.insert(name.to_owned(), json!({ "type": kind, "length": length }));
        self.done.push((name.to_owned(), bytes));
    }

    fn u8(&mut self, name: &str, values: impl Iterator<Item = u8>) {
        self.add(name, "u8", 1, values.collect());
    }

    fn u16(&mut self, name: &str, values: impl Iterator<Item = u16>) {
        self.add(name, "u16", 2, values.flat_map(u16::to_le_bytes).collect());
    }

    fn i16(&mut self, name: &str, values: impl Iterator<Item = i16>) {
        self.add(name, "i16", 2, values.flat_map(i16::to_le_bytes).collect());
    }

    fn u32(&mut self, name: &str, values: impl Iterator<Item = u32>) {
        self.add(name, "u32", 4, values.flat_map(u32::to_le_bytes).collect());
    }
}
