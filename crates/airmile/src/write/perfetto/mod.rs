//! A trace for ui.perfetto.dev: what was found and what it rests on, on one
//! time axis.
//!
//! Perfetto's protobuf stream of packets, not the older JSON: it is written as
//! the records come, is compact, and has 64-bit nanoseconds.
//! Times are the log's clock. Records go to the file at once; what is held does
//! not grow with their number, but for a clock anchor a second.

mod clock;
mod phone;
mod proto;
mod stream;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use airmile_decode::diag::Tagged;
use airmile_model::{Burst, TransferFinding};

use crate::analyse::diagnose::{Diagnosis, TransferDiagnosis};
use crate::analyse::radio::{CellLoad, RadioOptions, RadioReport};
use airmile_io::Replacement;
use airmile_io::error::Result;
use phone::{Phone, Shows};
use stream::{Args, Name, Stream};

/// A trace file that is being written. What was under its name before stays
/// there until it is whole.
pub struct TraceFile {
    out: Replacement,
    trace: Trace<BufWriter<File>>,
}

impl TraceFile {
    /// Begins the file. `input` is the name under which the tracks are.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn create(path: &Path, input: &str, options: &RadioOptions) -> Result<Self> {
        let (out, file) = Replacement::begin(path)?;
        Ok(Self { out, trace: Trace::new(BufWriter::new(file), input, options) })
    }

    /// Adds what a record tells. That the file cannot be written is told at
    /// the end.
    pub fn push(&mut self, tagged: &Tagged) {
        self.trace.push(tagged);
    }

    /// Adds what was found, and ends the file.
    ///
    /// # Errors
    /// The file could not be written.
    pub fn finish(self, radio: &RadioReport, diagnosis: &Diagnosis) -> Result<()> {
        let Self { out, trace } = self;
        trace.finish(radio, diagnosis).map_err(|e| out.failed(e))?;
        out.done()
    }
}

/// A trace that is being written.
struct Trace<W: Write> {
    out: Stream<W>,
    input: String,
    options: RadioOptions,
    phones: BTreeMap<u8, Phone>,
    failed: Option<io::Error>,
}

impl<W: Write> Trace<W> {
    fn new(out: W, input: &str, options: &RadioOptions) -> Self {
        Self {
            out: Stream::new(out),
            input: input.to_owned(),
            options: *options,
            phones: BTreeMap::new(),
            failed: None,
        }
    }

    fn push(&mut self, tagged: &Tagged) {
        let number = tagged.subscription;
        if self.failed.is_some() || self.options.subscription.is_some_and(|only| only != number) {
            return;
        }
        let phone = self.phones.entry(number).or_insert_with(|| {
            let name = match number {
                0 | 1 => self.input.clone(),
                number => format!("{}, SIM {number}", self.input),
            };
            Phone::new(name, self.options.limits)
        });
        self.failed = phone.push(&mut self.out, &tagged.record).err();
    }

    fn finish(mut self, radio: &RadioReport, diagnosis: &Diagnosis) -> io::Result<()> {
        if let Some(failed) = self.failed {
            return Err(failed);
        }
        for phone in self.phones.values_mut() {
            phone.finish(&mut self.out)?;
        }
        if let Some(phone) = self.phones.get_mut(&radio.subscription) {
            let mut findings = Findings { out: &mut self.out, phone };
            findings.session(diagnosis)?;
            findings.transfers(radio, diagnosis)?;
            for burst in &radio.bursts {
                findings.burst(burst)?;
            }
            findings.load(radio)?;
        }
        self.out.flush()
    }
}

/// Writes what was found of one subscription.
struct Findings<'a, W: Write> {
    out: &'a mut Stream<W>,
    phone: &'a mut Phone,
}

impl<W: Write> Findings<'_, W> {
    /// The verdict, over all of the log.
    fn session(&mut self, diagnosis: &Diagnosis) -> io::Result<()> {
        let session = &diagnosis.session;
        let args = Args::default()
            .text("verdict", Some(session.verdict.as_str()))
            .double("confidence", Some(session.confidence))
            .double("link_demand", session.link_demand);
        let (first, end) = self.phone.span.unwrap_or_default();
        let name = Name::Own(session.says.clone());
        self.slice(Shows::Verdict, (first, end), name, args)
    }

    /// Transfers, those that overlap beside one another.
    fn transfers(&mut self, radio: &RadioReport, diagnosis: &Diagnosis) -> io::Result<()> {
        let mut both: Vec<(&TransferFinding, &TransferDiagnosis)> =
            radio.transfers.iter().zip(&diagnosis.transfers).collect();
        both.sort_by_key(|(finding, _)| finding.start_tti);
        for (finding, answer) in both {
            let start_ns = self.phone.clock.ns(finding.start_tti.0);
            let free = (0..u8::MAX)
                .map(Shows::Transfers)
                .find(|lane| self.phone.end_ns(*lane) <= start_ns);
            let lane = free.unwrap_or(Shows::Transfers(u8::MAX));
            let name = Name::Own(format!("{}: {}", finding.id, finding.verdict));
            let span = (finding.start_tti.0, finding.end_tti.0);
            self.slice(lane, span, name, transfer_args(finding, answer))?;
        }
        Ok(())
    }

    fn burst(&mut self, burst: &Burst) -> io::Result<()> {
        // As a transfer's `burst_throughput_bps`: the last TTI's bytes are in
        // it, so that TTI is, too.
        let ns = burst.n_tti().saturating_add(1).saturating_mul(self.phone.clock.tti_ns());
        let args = Args::default()
            .int("bytes", Some(burst.bytes))
            .double("throughput_bps", (ns > 0).then(|| burst.bytes as f64 * 8e9 / ns as f64))
            .text("opened_by", Some(burst.opened_by.as_str()))
            .text("closed_by", Some(burst.closed_by.as_str()))
            .double("confidence", Some(burst.confidence))
            .int("scheduled_ttis", Some(burst.scheduled_ttis))
            .int("unknown_ttis", Some(burst.unknown_ttis))
            .int("start_tti", Some(burst.start_tti.0))
            .int("end_tti", Some(burst.end_tti.0));
        let name = format!("until {}", burst.closed_by);
        let span = (burst.start_tti.0, burst.end_tti.0);
        self.slice(Shows::Bursts(burst.dir), span, Name::Common(&name), args)
    }

    /// Counters of the load, and slices where it cannot be told: a counter
    /// would go on with its last value there.
    fn load(&mut self, radio: &RadioReport) -> io::Result<()> {
        let (mut told_to, last) = self.phone.span.unwrap_or_default();
        for window in &radio.cell_load {
            self.load_untold(told_to, window.tti)?;
            told_to = window.tti.saturating_add(CellLoad::WINDOW_TTIS);
            let ns = self.phone.clock.ns(window.tti);
            for (shows, share) in
                [(Shows::CellLoad, window.load), (Shows::OwnShare, window.own_share)]
            {
                self.phone.measure(self.out, shows, ns, share * 100.0)?;
            }
        }
        if radio.cell_load.is_empty() { Ok(()) } else { self.load_untold(told_to, last) }
    }

    fn load_untold(&mut self, from: i64, to: i64) -> io::Result<()> {
        if to <= from {
            return Ok(());
        }
        let name = Name::Common("cell load not known");
        self.slice(Shows::LoadUntold, (from, to), name, Args::default())
    }

    /// A slice from a TTI to another (exclusive), as far as the log goes: times
    /// of an application may be of another clock, years away.
    fn slice(
        &mut self,
        shows: Shows,
        (start, end): (i64, i64),
        name: Name<'_>,
        args: Args,
    ) -> io::Result<()> {
        let (first, last) = self.phone.span.unwrap_or((start, end));
        let ns = |tti: i64| self.phone.clock.ns(tti.clamp(first, last.max(first)));
        let span = (ns(start), ns(end));
        self.phone.slice(self.out, shows, span, name, args)
    }
}

fn transfer_args(finding: &TransferFinding, answer: &TransferDiagnosis) -> Args {
    let mut why = answer.evidence.iter().map(|item| item.what.as_str()).collect::<Vec<_>>();
    why.extend(finding.notes.iter().map(String::as_str));
    Args::default()
        .text("verdict", Some(finding.verdict.as_str()))
        .double("confidence", Some(finding.confidence))
        .text("dir", Some(finding.dir.as_str()))
        .double("link_demand", finding.link_demand)
        .double("duration_ms", Some(finding.duration_ms))
        .double("throughput_time_ms", finding.throughput_time_ms)
        .double("unknown_ms", Some(finding.unknown_ms))
        .int("bytes", finding.bytes)
        .double("link_throughput_bps", finding.link_throughput_bps)
        .double("burst_throughput_bps", finding.burst_throughput_bps)
        .text("evidence", finding.evidence.map(|e| e.as_str()))
        .text("why", Some(why.join("; ")))
        .text("next_step", Some(answer.next_step.as_str()))
        .int("start_us", finding.start_us)
        .int("end_us", finding.end_us)
        .int("start_tti", Some(finding.start_tti.0))
        .int("end_tti", Some(finding.end_tti.0))
}
