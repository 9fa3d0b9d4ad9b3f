//! Captures without a modem log: who the bottleneck may have been, as probabilities.

mod read;
mod words;

use std::collections::BTreeMap;
use std::path::PathBuf;

use airmile_model::{AppTransfer, Cause, Direction, TimeBase, TtiIndex, Verdict};
use airmile_wire::attribute::CaptureSite;
use airmile_wire::clocks::ClockLine;
use airmile_wire::packets_only::{
    self, CapturedPhone, Features, Model, NAMED_FROM, Suspect, TransferSpan,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::clocks::{self, ClockReport};
use super::diagnose::{Diagnosis, EvidenceItem, Measures, SessionVerdict, TransferDiagnosis};
use super::radio::{Answer, Missing, RadioOptions};
use super::wire::{Restarter, Wire};
use crate::session::{Inputs, Session};
use airmile_io::FileReport;
use airmile_io::error::Result;
use airmile_io::input::{Progress, comes_once};

pub(super) use read::{Look, look};

/// Who may have been the bottleneck, by packets alone.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Suspicion {
    /// `radio`, `wireline`, `sender_limited`, `receive_window`, `slow_start_restart`,
    /// `first_slow_start`, `uplink_queue`, or `other`: several at once, or none of these.
    pub suspect: &'static str,
    /// The causes that it stands for. More than one: packets do not part them.
    pub causes: Vec<Cause>,
    /// 0 to 1; those of all suspects add up to 1.
    pub probability: f64,
}

impl From<&packets_only::Suspicion> for Suspicion {
    fn from(one: &packets_only::Suspicion) -> Self {
        let (suspect, causes) = (one.suspect.as_str(), one.suspect.causes().to_vec());
        Self { suspect, causes, probability: one.probability }
    }
}

/// What captures tell where the radio is not seen.
#[derive(Debug)]
pub(crate) struct Blind {
    /// The phone by the capture nearest to it; `None` where nothing went to anybody.
    phone: Option<CapturedPhone>,
    /// That capture's name.
    name: String,
    /// A report of each capture.
    files: Vec<FileReport>,
    clocks: Vec<ClockReport>,
    restarter: Restarter,
    /// Downloads of a table of transfers: names, from and to in nanoseconds.
    table: Vec<(String, i64, i64)>,
    /// The application's clock over the capture's; `None` where they are one.
    application: Option<ClockLine>,
    min_bytes: u64,
}

impl Blind {
    /// Reads captures, where there is nothing of the radio beside them: `rest` are the
    /// other inputs. Gives the session of these, too.
    ///
    /// # Errors
    /// A file cannot be read.
    pub(super) fn gather(
        rest: &Inputs,
        captures: &[PathBuf],
        options: &RadioOptions,
        progress: &Progress,
    ) -> Result<Option<(Session, Self)>> {
        let mut paths = rest.files.iter().chain(&rest.transfers);
        if captures.is_empty() || paths.any(|path| comes_once(path)) {
            return Ok(None);
        }
        let mut rest = rest.clone();
        rest.files.retain(|path| crate::session::holds_logs(path));
        let session = Session::open(&rest, progress)?;
        if session.has_radio() {
            return Ok(None);
        }
        let mut read = read::read(captures, options.limits, progress)?;
        let mut blind = Self {
            phone: read.phone.take(),
            name: read.name,
            files: read.files,
            clocks: Vec::new(),
            restarter: Restarter::SenderOrMiddlebox,
            table: table(&session),
            application: None,
            min_bytes: options.detect.min_bytes,
        };
        if captures.len() > 1
            && let (Some(wire), _) = Wire::read(captures, progress)?
        {
            blind.restarter = wire.restarter;
            blind.clocks = wire.clocks().to_vec();
        }
        blind.align(&session);
        Ok(Some((session.without_radio(), blind)))
    }

    /// Sets the application's clock to the capture's.
    fn align(&mut self, session: &Session) {
        let given = session.transfers();
        let (Some(phone), false) = (&self.phone, given.is_empty()) else { return };
        let line = clocks::of_application(&read::arrivals(phone), &clocks::spans(given));
        self.clocks.push(ClockReport::of(super::beside::TRANSFERS, &self.name, &line, true));
        self.application = line.ok().filter(ClockLine::differs);
    }

    /// The capture nearest to the phone, where it is on the axis: transfers of an
    /// application with another clock have an axis of their own.
    pub(super) fn drawn(&self) -> Option<&str> {
        self.application.is_none().then_some(self.name.as_str())
    }

    /// What is known of clocks.
    pub(super) fn clocks(&self) -> &[ClockReport] {
        &self.clocks
    }

    /// Puts probabilities into a diagnosis that knows nothing of the radio.
    pub(super) fn tell(self, diagnosis: &mut Diagnosis, answer: &Answer) {
        let spans = match &self.phone {
            Some(phone) => self.place(phone, diagnosis, answer),
            None => Vec::new(),
        };
        let features: Vec<Option<Features>> =
            spans.iter().map(|span| self.features(&[*span])).collect();
        for ((transfer, span), features) in
            diagnosis.transfers.iter_mut().zip(&spans).zip(&features)
        {
            self.judge(transfer, span, features.as_ref());
        }
        let all = self.features(&spans);
        diagnosis.session = self.session(&spans, all.as_ref());
        diagnosis.missing = words::missing(self.phone.as_ref(), &spans);
        diagnosis.files.extend(self.files);
    }

    /// Numbers of spans; `None` where the capture's place or the spans show none.
    fn features(&self, spans: &[TransferSpan]) -> Option<Features> {
        let phone = self.phone.as_ref()?;
        let seen = matches!(phone.place, CaptureSite::Phone | CaptureSite::Unknown);
        seen.then(|| Features::from_spans(phone, spans)).flatten()
    }

    /// The transfers: the application's, where their times fall into the capture, or else
    /// the capture's own.
    fn place(
        &self,
        phone: &CapturedPhone,
        diagnosis: &mut Diagnosis,
        answer: &Answer,
    ) -> Vec<TransferSpan> {
        let log =
            answer.applications.iter().map(|one| &one.log).find(|log| !log.transfers.is_empty());
        if let Some(log) = log.filter(|log| log.scale.base == TimeBase::Wall) {
            let at = |ns| self.application.as_ref().map_or(ns, |line| line.to_reference(ns));
            let span = |one: &AppTransfer| phone.span(at(one.start_ns), at(one.end_ns));
            let spans: Vec<TransferSpan> = log.transfers.iter().map(span).collect();
            if spans.iter().any(|span| span.bytes > 0) && spans.len() == diagnosis.transfers.len() {
                return spans;
            }
        }
        let at = |ns| self.application.as_ref().map_or(ns, |line| line.to_reference(ns));
        let (names, spans): (Vec<String>, Vec<TransferSpan>) = self
            .table
            .iter()
            .map(|(id, from_ns, to_ns)| (id.clone(), phone.span(at(*from_ns), at(*to_ns))))
            .unzip();
        if spans.iter().any(|span| span.bytes > 0) {
            diagnosis.transfers_from = "given";
            diagnosis.transfers = transfers(&names, &spans);
            return spans;
        }
        let spans = phone.transfers(self.min_bytes);
        let names: Vec<String> = (1..=spans.len()).map(|n| format!("dl-{n}")).collect();
        diagnosis.transfers_from = "detected";
        diagnosis.transfers = transfers(&names, &spans);
        spans
    }

    fn judge(
        &self,
        transfer: &mut TransferDiagnosis,
        span: &TransferSpan,
        features: Option<&Features>,
    ) {
        let Some(phone) = &self.phone else { return };
        let place = (transfer.finding.start_tti, transfer.finding.end_tti);
        let shares = phone.split(span);
        if span.transport != packets_only::TransportKind::Datagrams && shares.total_ns() > 0 {
            // Setup that the application tells of is in what the packets show.
            transfer.shares = shares
                .by_cause
                .iter()
                .map(|(cause, ns)| (cause.as_str(), *ns as f64 / 1e6))
                .collect();
        }
        let suspects = features.map(Model::judge).unwrap_or_default();
        transfer.suspects = suspects.iter().map(Suspicion::from).collect();
        let mut evidence = words::evidence(phone, span, features, &shares, &suspects, place);
        evidence.append(&mut transfer.evidence);
        transfer.evidence = evidence;
        let (verdict, confidence) = named(&suspects);
        (transfer.verdict, transfer.confidence) = (verdict, confidence);
        transfer.next_step = words::next_step(verdict, self.restarter, phone, span);
    }

    fn session(&self, spans: &[TransferSpan], features: Option<&Features>) -> SessionVerdict {
        let suspects = features.map(Model::judge).unwrap_or_default();
        let (verdict, confidence) = named(&suspects);
        let mut shares: BTreeMap<&'static str, f64> = BTreeMap::new();
        if let Some(phone) = &self.phone {
            for (cause, ns) in spans.iter().flat_map(|span| phone.split(span).by_cause) {
                *shares.entry(cause.as_str()).or_default() += ns as f64 / 1e6;
            }
        }
        SessionVerdict {
            verdict,
            confidence,
            dir: (!spans.is_empty()).then_some(Direction::Dl),
            shares,
            suspects: suspects.iter().map(Suspicion::from).collect(),
            ..SessionVerdict::unknown(words::says(
                self.phone.as_ref(),
                spans,
                &suspects,
                verdict,
                self.restarter,
            ))
        }
    }
}

/// What captures lack, whatever they hold.
pub(super) fn missing_beside() -> Vec<Missing> {
    words::missing(None, &[])
}

/// The verdict that probabilities give.
fn named(suspects: &[packets_only::Suspicion]) -> (Verdict, f64) {
    match suspects.first() {
        Some(first) if first.probability >= NAMED_FROM && first.suspect != Suspect::Other => {
            (verdict(first.suspect), first.probability)
        }
        _ => (Verdict::Unknown, 0.0),
    }
}

/// A suspect as a verdict; of the radio, its causes are not parted.
fn verdict(suspect: Suspect) -> Verdict {
    match suspect.causes() {
        [cause] => (*cause).into(),
        [] => Verdict::Unknown,
        _ => Verdict::Radio,
    }
}

/// Downloads of a table of transfers; those of an application's log are in that.
fn table(session: &Session) -> Vec<(String, i64, i64)> {
    if session.applications().iter().any(|one| one.gave_transfers) {
        return Vec::new();
    }
    let downlink = session.transfers().iter().filter(|one| one.dir != Some(Direction::Ul));
    let timed = downlink.filter_map(|one| {
        let (from, to) = one.time?;
        Some((one.id.clone(), from.ns, to.ns))
    });
    timed.collect()
}

/// Transfers that packets show.
fn transfers(names: &[String], spans: &[TransferSpan]) -> Vec<TransferDiagnosis> {
    let from_ns = spans.iter().map(|span| span.from_ns).min().unwrap_or(0);
    names.iter().zip(spans).map(|(name, span)| transfer(name, span, from_ns)).collect()
}

fn transfer(name: &str, span: &TransferSpan, from_ns: i64) -> TransferDiagnosis {
    let duration_ms = span.ns() as f64 / 1e6;
    let tti = |ns: i64| TtiIndex(ns.saturating_sub(from_ns).div_euclid(1_000_000));
    TransferDiagnosis {
        id: name.to_owned(),
        name: None,
        verdict: Verdict::Unknown,
        confidence: 0.0,
        shares: BTreeMap::from([("unknown", duration_ms)]),
        leading: None,
        leading_share: None,
        leading_share_low: None,
        leading_share_high: None,
        counterfactual_ms: None,
        counterfactual_of: None,
        evidence: Vec::<EvidenceItem>::new(),
        next_step: String::new(),
        application: None,
        suspects: Vec::new(),
        finding: Measures {
            dir: Direction::Dl,
            start_us: Some(span.from_ns.div_euclid(1_000)),
            end_us: Some(span.to_ns.div_euclid(1_000)),
            start_tti: tti(span.from_ns),
            end_tti: tti(span.to_ns),
            duration_ms,
            bytes: Some(span.bytes),
            throughput_time_ms: None,
            link_demand: None,
            link_throughput_bps: None,
            burst_throughput_bps: None,
            overlapped: false,
        },
    }
}
