//! A trace for ui.perfetto.dev: findings and their evidence on one time axis.
//!
//! It uses Perfetto's protobuf stream of packets, not the older JSON: it can be written while
//! records arrive, is compact, and has 64-bit nanoseconds. Times are on the log's clock. Records go
//! to the file at once; memory does not grow with their number, except for a clock anchor per
//! second.

mod args;
mod phone;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use airmile_decode::diag::Tagged;
use airmile_model::{Burst, TransferFinding};

use crate::analyse::diagnose::{Diagnosis, TransferDiagnosis};
use crate::analyse::page::Page;
use crate::analyse::radio::{CellLoad, RadioOptions, RadioReport};
use crate::wording::page_cause;
use airmile_io::Replacement;
use airmile_io::error::Result;
use airmile_io::perfetto::proto;
use airmile_io::perfetto::stream::{self, Args, Name, Stream};
use args::transfer_args;
use phone::{Phone, Shows};

/// What every trace file begins with: a packet without content, of our sequence.
pub(crate) const BEGINS: &[u8] = &[proto::PACKET_TAG, 2, 10 << 3, stream::SEQUENCE as u8];

/// A trace file that is being written. An existing file of that name remains until the new one is
/// complete.
pub struct TraceFile {
    out: Replacement,
    trace: Trace<BufWriter<File>>,
}

impl TraceFile {
    /// Starts the file. `input` is the name of the group of tracks.
    ///
    /// # Errors
    /// It cannot be created.
    pub fn create(path: &Path, input: &str, options: &RadioOptions) -> Result<Self> {
        let (out, mut file) = Replacement::begin(path)?;
        file.write_all(BEGINS).map_err(|e| out.failed(e))?;
        Ok(Self { out, trace: Trace::new(BufWriter::new(file), input, options) })
    }

    /// Adds a record. A write error is reported at the end.
    pub fn push(&mut self, tagged: &Tagged) {
        self.trace.push(tagged);
    }

    /// Adds the findings, and ends the file.
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
        if self.phones.is_empty() {
            let phone = phone_of_transfers(self.input.clone(), diagnosis, &self.options);
            self.phones.insert(radio.subscription, phone);
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
            diagnosis.pages.iter().try_for_each(|page| findings.page(page))?;
        }
        self.out.flush()
    }
}

/// The phone if there is no modem log: the axis is that of its transfers.
fn phone_of_transfers(input: String, diagnosis: &Diagnosis, options: &RadioOptions) -> Phone {
    let mut phone = Phone::new(input, options.limits);
    let all = || diagnosis.transfers.iter().map(|transfer| &transfer.finding);
    if let Some((tti, us)) = all().find_map(|one| Some((one.start_tti, one.start_us?))) {
        phone.clock().note(tti, us.saturating_mul(1_000));
    }
    let spans = all().map(|one| (one.start_tti.0, one.end_tti.0));
    phone.span = spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
    phone
}

/// Writes the findings of one subscription.
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

    /// Transfers; overlapping ones are on parallel tracks.
    fn transfers(&mut self, radio: &RadioReport, diagnosis: &Diagnosis) -> io::Result<()> {
        let findings = radio.transfers.iter().map(Some).chain(std::iter::repeat(None));
        let mut both: Vec<(&TransferDiagnosis, Option<&TransferFinding>)> =
            diagnosis.transfers.iter().zip(findings).collect();
        both.sort_by_key(|(answer, _)| answer.finding.start_tti);
        for (answer, finding) in both {
            let measures = &answer.finding;
            let start_ns = self.phone.ns(measures.start_tti.0);
            let free = (0..u8::MAX)
                .map(Shows::Transfers)
                .find(|lane| self.phone.end_ns(*lane) <= start_ns);
            let lane = free.unwrap_or(Shows::Transfers(u8::MAX));
            let name = Name::Own(format!("{}: {}", answer.id, answer.verdict));
            let span = (measures.start_tti.0, measures.end_tti.0);
            self.slice(lane, span, name, transfer_args(answer, finding))?;
        }
        Ok(())
    }

    /// A page: its critical path by cause, and its requests.
    fn page(&mut self, page: &Page) -> io::Result<()> {
        let origin_ns = match page.start_us {
            Some(us) => us.saturating_mul(1_000),
            None => i64::try_from(self.phone.ns(0)).unwrap_or_default(),
        };
        let at = |ms: f64| {
            u64::try_from(origin_ns.saturating_add((ms * 1e6) as i64)).unwrap_or_default()
        };
        let url_of = |id: &Option<String>| {
            let found = page.requests.iter().find(|one| Some(&one.id) == id.as_ref());
            found.map(|one| one.url.as_str())
        };
        for step in &page.critical_path {
            let args = Args::default()
                .text("url", url_of(&step.request))
                .text("phase", step.phase.map(|phase| phase.as_str()));
            let span = (at(step.from_ms), at(step.to_ms));
            let name = Name::Common(page_cause(step.cause));
            self.phone.slice(self.out, Shows::CriticalPath, span, name, args)?;
        }
        for request in &page.requests {
            let span = (at(request.start_ms), at(request.end_ms));
            let free =
                (0..u8::MAX).map(Shows::Requests).find(|lane| self.phone.end_ns(*lane) <= span.0);
            let lane = free.unwrap_or(Shows::Requests(u8::MAX));
            let parts = request.parts.iter().map(|part| {
                format!(
                    "{} {}: {:.1} ms",
                    part.phase,
                    page_cause(part.cause),
                    part.to_ms - part.from_ms
                )
            });
            let args = Args::default()
                .text("waited_for", Some(request.cause.as_str()))
                .text("parts", Some(parts.collect::<Vec<_>>().join("; ")))
                .text("connection", request.connection.as_deref())
                .int("bytes", request.bytes);
            let name = Name::Own(format!("{}: {}", page_cause(request.cause), request.url));
            self.phone.slice(self.out, lane, span, name, args)?;
        }
        Ok(())
    }

    fn burst(&mut self, burst: &Burst) -> io::Result<()> {
        let ns = burst.n_tti().saturating_mul(self.phone.tti_ns());
        let args = Args::default()
            .int("bytes", Some(burst.bytes))
            .double(
                "throughput_bps",
                (ns > 0).then(|| burst.waited_bytes() as f64 * 8e9 / ns as f64),
            )
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

    /// Counters of the load, and slices where it is unknown: a counter would continue with its last
    /// value there.
    fn load(&mut self, radio: &RadioReport) -> io::Result<()> {
        let (mut known_to, last) = self.phone.span.unwrap_or_default();
        for window in &radio.cell_load {
            self.unknown_load(known_to, window.tti)?;
            known_to = window.tti.saturating_add(CellLoad::WINDOW_TTIS);
            let ns = self.phone.ns(window.tti);
            for (shows, share) in
                [(Shows::CellLoad, window.load), (Shows::OwnShare, window.own_share)]
            {
                self.phone.measure(self.out, shows, ns, share * 100.0)?;
            }
        }
        if radio.cell_load.is_empty() { Ok(()) } else { self.unknown_load(known_to, last) }
    }

    fn unknown_load(&mut self, from: i64, to: i64) -> io::Result<()> {
        if to <= from {
            return Ok(());
        }
        let name = Name::Common("cell load unknown");
        self.slice(Shows::LoadUnknown, (from, to), name, Args::default())
    }

    /// A slice between two TTIs (end exclusive), within the log: times of an application may be on
    /// another clock, years away.
    fn slice(
        &mut self,
        shows: Shows,
        (start, end): (i64, i64),
        name: Name<'_>,
        args: Args,
    ) -> io::Result<()> {
        let (first, last) = self.phone.span.unwrap_or((start, end));
        let ns = |tti: i64| self.phone.ns(tti.clamp(first, last.max(first)));
        let span = (ns(start), ns(end));
        self.phone.slice(self.out, shows, span, name, args)
    }
}
