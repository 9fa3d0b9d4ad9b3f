//! Captures without a modem log: probabilities of each possible bottleneck.

mod align;
mod facts;
mod look;
mod placed;

use std::collections::BTreeMap;
use std::path::PathBuf;

use airmile_blind::{
    CapturedPhone, Features, JudgedTransfer, Model, ServerSide, Suspect, TransferSpan,
    TransportKind,
};
use airmile_model::{AppTransfer, Cause, Direction, Transfer, TtiIndex, Verdict};
use airmile_packets::phones::{Downloads, captured_files};
use airmile_wire::attribute::{CaptureSite, PathQueue, Reason, Shares};
use airmile_wire::clocks::ClockLine;
use airmile_wire::compare::{Growth, restarts_after_pauses};
use schemars::JsonSchema;
use serde::Serialize;

use super::application::{self, Lookup};
use super::clocks::ClockReport;
use super::diagnose::join::{Judgement, PacketSide, SessionJudgement, Sides, join};
use super::radio::{RadioAnalysis, RadioOptions};
use super::wire::Wire;
use crate::fact::{Advice, CauseAdvice, Fact, FactKind, Restarter, Statement};
use crate::session::{Inputs, Session};
use airmile_io::FileReport;
use airmile_io::error::Result;
use airmile_io::input::{Progress, comes_once};

/// Loss recovery is stated from this share of the time on (chosen here).
const LEADS: f64 = 0.5;
/// Restarts of slow start are stated from this share of the time on, which is less than the time of
/// the slow starts (chosen here).
const RESTARTS_COST: f64 = 0.2;

pub(super) use facts::{another_run, missing};
pub(super) use look::{Look, look};
use placed::{PlacedTransfer, placed, table};

/// A possible bottleneck, by packets alone.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Suspicion {
    /// `radio`, `wireline`, `sender_limited`, `receive_window`, `slow_start_restart`,
    /// `first_slow_start`, `uplink_queue`, or `other`: several at once, or none of these.
    pub suspect: &'static str,
    /// Its causes; packets cannot separate them if there are several.
    pub causes: Vec<Cause>,
    /// 0 to 1; the probabilities of all suspects add up to 1.
    pub probability: f64,
}

impl From<&airmile_blind::Suspicion> for Suspicion {
    fn from(one: &airmile_blind::Suspicion) -> Self {
        let (suspect, causes) = (one.suspect.as_str(), one.suspect.causes().to_vec());
        Self { suspect, causes, probability: one.probability }
    }
}

/// The evidence of captures if the radio was not logged.
#[derive(Debug)]
pub(crate) struct Blind {
    /// The phone in the capture nearest to it; `None` without any traffic.
    phone: Option<CapturedPhone>,
    /// That capture's name.
    name: String,
    /// A report of each capture.
    files: Vec<FileReport>,
    clocks: Vec<ClockReport>,
    pub(super) restarter: Restarter,
    /// Whether a capture at the server was given, too.
    has_server: bool,
    /// The phone in that capture, if its connections end there and not at a proxy.
    server: Option<ServerSide>,
    /// Whether they end there: a proxy is between phone and server.
    behind_proxy: bool,
    /// The queueing between the two, on the phone's clock.
    path: PathQueue,
    /// The transfers of a table that have times.
    table: Vec<Transfer>,
    /// The application's clock relative to the capture's; `None` if it is the same.
    application: Option<ClockLine>,
    /// Why the application's log is not joined with the capture: it may be of another run.
    doubt: Option<String>,
    downloads: Downloads,
    /// TCP payload from the phone.
    sent_bytes: u64,
}

impl Blind {
    /// Reads captures if nothing of the radio was given; `rest` are the other inputs. Also returns
    /// the session of these.
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
        let session = Session::open_to_judge(rest, progress)?;
        if session.has_radio() {
            return Ok(None);
        }
        session.check_one_har()?;
        let blind = Self::of(&session, captures, options, progress)?;
        Ok(Some((session.without_radio(), blind)))
    }

    /// Reads captures, and aligns the application's log to them.
    ///
    /// # Errors
    /// A file cannot be read, or the log is of another time.
    pub(super) fn of(
        session: &Session,
        captures: &[PathBuf],
        options: &RadioOptions,
        progress: &Progress,
    ) -> Result<Self> {
        let downloads = Downloads::new(options.detect.min_bytes, options.detect.pause_ms);
        let read = captured_files(captures, (options.limits, downloads), progress)?;
        let mut blind = Self {
            phone: read.phone,
            name: read.name,
            files: read.files,
            clocks: Vec::new(),
            has_server: false,
            server: None,
            behind_proxy: false,
            path: PathQueue::default(),
            restarter: Restarter::SenderOrMiddlebox,
            table: table(session),
            application: None,
            doubt: None,
            downloads,
            sent_bytes: read.sent_bytes,
        };
        let wire = if captures.len() > 1 { Wire::read(captures, None, progress)?.0 } else { None };
        if let Some(wire) = &wire {
            blind.restarter = wire.restarter;
            blind.has_server = wire.has_server;
            blind.clocks = wire.clocks().to_vec();
        }
        // The path's times, and the server's offset, are on the clock of that capture.
        let wire = wire.as_ref();
        let same = wire.filter(|wire| wire.name() == blind.name);
        blind.path = same.map_or_else(PathQueue::default, |wire| wire.path().clone());
        // Another capture may show where this one was taken.
        let phone = blind.phone.as_mut().filter(|phone| phone.place != CaptureSite::Inside);
        let phone = phone.filter(|_| same.is_some_and(|wire| wire.place == CaptureSite::Phone));
        phone.into_iter().for_each(|phone| phone.place = CaptureSite::Phone);
        for (name, phone) in read.servers {
            if let Some(why) = blind.place_server(&name, phone, (wire, same)) {
                let file = blind.files.iter_mut().find(|file| file.path == name);
                file.into_iter().for_each(|file| file.leave_out(&why));
            }
        }
        blind.align(session)?;
        blind.align_others(session);
        Ok(blind)
    }

    /// Judges by a server's capture, too, or returns why not. `same` is what all captures show, if its
    /// clock is that of the phone's.
    fn place_server(
        &mut self,
        name: &str,
        phone: CapturedPhone,
        (wire, same): (Option<&Wire>, Option<&Wire>),
    ) -> Option<String> {
        let clock = self.clocks.iter().find(|clock| clock.file == name);
        let is_first = |wire: &Wire| wire.server.as_deref() == Some(name);
        match same {
            _ if phone.mistimed => Some("times of its packets are not known well enough".into()),
            Some(wire) if is_first(wire) && !wire.is_split => {
                let offset_ms = clock.and_then(|clock| clock.offset_ms).unwrap_or(0.0);
                let offset_ns = (offset_ms * 1e6) as i64;
                self.server = Some(ServerSide::new(phone, offset_ns, self.downloads.min_bytes));
                None
            }
            Some(wire) if is_first(wire) => {
                self.behind_proxy = true;
                Some("a proxy ends its connections, so it does not show the phone's".into())
            }
            Some(Wire { server: Some(other), .. }) if clock.is_some() => {
                Some(format!("{other}, also at a server, has more of the phone's data"))
            }
            None if wire.is_some() => {
                Some(format!("{} does not show the start of the connections", self.name))
            }
            _ => Some(format!(
                "it has no connection in common with {} (another run, or a proxy between)",
                self.name
            )),
        }
    }

    /// The capture nearest to the phone, if it is on the axis: transfers of an application with
    /// another clock have a separate axis.
    pub(super) fn drawn(&self) -> Option<&str> {
        self.application.is_none().then_some(self.name.as_str())
    }

    /// Where the capture nearest to the phone was taken.
    pub(super) fn capture_site(&self) -> CaptureSite {
        self.phone.as_ref().map_or(CaptureSite::Unknown, |phone| phone.place)
    }

    /// The capture nearest to the phone.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The reports on clocks.
    pub(super) fn clocks(&self) -> &[ClockReport] {
        &self.clocks
    }

    /// Why the application's log is not joined with the capture.
    pub(super) fn doubt(&self) -> Option<&str> {
        self.doubt.as_deref()
    }

    /// A report of each capture.
    pub(super) fn into_files(self) -> Vec<FileReport> {
        self.files
    }

    /// Judges transfers by packets and application logs.
    pub(super) fn judge(&self, answer: &RadioAnalysis) -> Judgement {
        let Some(phone) = &self.phone else {
            let of_logs = answer.is_alone().then(|| application::judge(answer, &self.files));
            let (transfers, transfers_from) =
                of_logs.map_or((Vec::new(), "detected"), |of| (of.transfers, of.transfers_from));
            let (session, missing) = (self.session(&[]), facts::missing(None, &[], false));
            return Judgement { session, transfers, transfers_from, missing };
        };
        let logs = answer.lookups();
        let (transfers_from, found) = self.place(phone, answer, &logs);
        // Uploads are not diagnosed.
        let is_download = |one: &PlacedTransfer| one.measures.dir == Direction::Dl;
        let mut judged = Vec::new();
        let each = found.into_iter().map(|one| {
            let packets = is_download(&one).then(|| {
                let own = self.suspects(phone, &one);
                let place = (one.measures.start_tti, one.measures.end_tti);
                let mut packets = self.side(phone, &own, place);
                if one.measures.overlapped && one.application.is_some() {
                    packets.facts.retain(|one| !is_throughput(one));
                }
                if let (Some(_), Some(us)) = (&packets.shares_ms, one.measures.start_us) {
                    let later_ns = us.saturating_mul(1_000).saturating_sub(own.span.from_ns);
                    let moved = |ns: i64| ns.saturating_add(later_ns);
                    packets.spans = own.shares.spans.iter().map(|one| one.at(moved)).collect();
                }
                judged.push(own);
                packets
            });
            let mut application = one.application;
            if packets.is_none() {
                let gather = || facts::to_gather(phone, &[], self.has_server);
                application.get_or_insert_default().advice.get_or_insert_with(gather);
            }
            join(one.id, one.measures, Sides { packets, application, ..Sides::default() })
        });
        let transfers = each.collect();
        // What the capture does not show limits nothing.
        judged.retain(|one| one.span.bytes > 0);
        let session = self.session(&judged);
        let missing = facts::missing(Some(phone), &judged, self.has_server);
        Judgement { session, transfers, transfers_from, missing }
    }

    /// Probabilities of all suspects of a transfer by all captures, and the one to be named: by two
    /// captures, the phone's own first.
    fn suspects(&self, phone: &CapturedPhone, one: &PlacedTransfer) -> Judged {
        let (span, bytes) = (one.span, one.measures.bytes);
        let spans = std::slice::from_ref(&span);
        let is_inside = phone.place == CaptureSite::Inside;
        let seen = !is_inside && phone.place != CaptureSite::Between;
        let shares = if is_inside { Shares::default() } else { phone.split(&span).of_bytes(bytes) };
        let features = seen.then(|| Features::from_spans(phone, spans)).flatten();
        let features = features.map(|features| Features {
            behind_proxy: self.behind_proxy,
            ..features.on_path(&self.path, spans)
        });
        let own = features.as_ref().map(|features| Model::judge_transfer(features, bytes));
        let own = own.unwrap_or_default();
        let own_first = own.first().map(|one| one.suspect);
        let mut suspects = match &self.server {
            Some(server) => server.pool(own, &span, bytes, &self.path),
            None => own,
        };
        let agrees = suspects.first().map(|one| one.suspect) == own_first;
        if let Some(features) = features.as_ref().filter(|_| agrees) {
            Model::raise_sender(&mut suspects, features, &shares);
        }
        let first = suspects.first().copied().filter(|_| agrees);
        let named = first.zip(features.as_ref()).filter(|(one, of)| Model::names(of, one));
        let named = named.map(|(first, _)| first);
        let growth = phone.growth_after_pause(&span).filter(|_| !is_inside);
        let bytes = bytes.filter(|_| one.application.is_none()).unwrap_or(span.bytes);
        Judged { span, bytes, features, shares, growth, suspects, named }
    }

    /// The transfers, and where they are from: the application's, if their times lie within the
    /// capture, else the capture's own.
    fn place(
        &self,
        phone: &CapturedPhone,
        answer: &RadioAnalysis,
        logs: &[Lookup<'_>],
    ) -> (&'static str, Vec<PlacedTransfer>) {
        let at = |ns| self.application.as_ref().map_or(ns, |line| line.to_reference(ns));
        let log = answer.applications.iter().find(|one| one.gave_transfers).map(|one| &one.log);
        if let Some(log) = log.filter(|_| self.doubt.is_none()) {
            let span = |one: &AppTransfer| phone.span(at(one.start_ns), at(one.end_ns));
            let spans: Vec<TransferSpan> = log.transfers.iter().map(span).collect();
            if spans.iter().any(|span| span.bytes > 0) {
                let own = application::own_transfers(log, answer, logs).into_iter().zip(spans);
                let placed = own.map(|((id, measures, mut application), span)| {
                    // The packets determine the rate, except if other transfers' are among them.
                    if !measures.overlapped && measures.dir == Direction::Dl {
                        application.facts.retain(|one| !is_throughput(one));
                    }
                    PlacedTransfer { id, measures, span, application: Some(application) }
                });
                return ("given", placed.collect());
            }
        }
        let spans = self.table.iter().filter_map(|one| one.time);
        let spans: Vec<_> = spans.map(|(from, to)| phone.span(at(from.ns), at(to.ns))).collect();
        if spans.iter().any(|span| span.bytes > 0) {
            return ("given", placed(&spans, |at| self.table.get(at)));
        }
        ("detected", placed(&phone.transfers(self.downloads.min_bytes), |_| None))
    }

    fn side(
        &self,
        phone: &CapturedPhone,
        judged: &Judged,
        place: (TtiIndex, TtiIndex),
    ) -> PacketSide {
        let Judged { span, shares, suspects, named, .. } = judged;
        let followed = span.transport != TransportKind::Datagrams;
        // Setup in the application's log is also in the packets.
        let shares_ms = (followed && shares.total_ns() > 0).then(|| {
            let each = shares.by_cause.iter();
            each.map(|(cause, ns)| (cause.as_str(), *ns as f64 / 1e6)).collect()
        });
        PacketSide {
            verdict: named.map_or(Verdict::Unknown, |one| verdict(one.suspect)),
            confidence: named.map_or(0.0, |one| one.probability),
            shares_ms,
            spans: Vec::new(),
            facts: facts::facts(phone, judged, place),
            advice: match named {
                Some(one)
                    if one.suspect == Suspect::SenderLimited && shares.waits_for_requests() =>
                {
                    Advice::Cause(Direction::Dl, CauseAdvice::ClientAsksLate)
                }
                Some(one) => Advice::Suspect(one.suspect, self.restarter),
                None => facts::to_gather(phone, std::slice::from_ref(judged), self.has_server),
            },
            suspects: suspects.iter().map(Suspicion::from).collect(),
        }
    }

    /// Judges the transfers together: by their shares of the time.
    fn session(&self, judged: &[Judged]) -> SessionJudgement {
        let each: Vec<JudgedTransfer<'_>> = judged.iter().map(Judged::part).collect();
        let (suspects, named) = Model::judge_together(&each);
        let mut shares_ms: BTreeMap<&'static str, f64> = BTreeMap::new();
        let (mut total_ns, mut recovery_ns) = (0, 0);
        for shares in judged.iter().map(|one| &one.shares) {
            total_ns += shares.total_ns();
            recovery_ns += shares.by_reason.get(&Reason::LossRecovery).copied().unwrap_or(0);
            for (cause, ns) in &shares.by_cause {
                *shares_ms.entry(cause.as_str()).or_default() += *ns as f64 / 1e6;
            }
        }
        let first = match FileReport::mostly_cut_frames(&self.files) {
            Some((cut, frames)) if judged.is_empty() => Statement::HeadersCut { cut, frames },
            _ if judged.is_empty() && self.sent_bytes >= self.downloads.min_bytes => {
                Statement::OnlyUpload { bytes: self.sent_bytes }
            }
            _ => {
                let phone = self.phone.as_ref();
                facts::statement(phone, judged, (&suspects, named), self.restarter)
            }
        };
        let mut statements = vec![first];
        let uploaded = self.phone.as_ref().map_or(0, |phone| phone.uploaded_bytes);
        if !judged.is_empty() && uploaded >= self.downloads.min_bytes {
            statements.push(Statement::AlsoUploaded { bytes: uploaded });
        }
        let share = recovery_ns as f64 / f64::max(total_ns as f64, 1.0);
        if share >= LEADS {
            statements.push(Statement::LossRecovery { share });
        }
        let grown: Vec<Growth> = judged.iter().filter_map(|one| one.growth).collect();
        let seen = restarts_after_pauses(&grown).filter(|_| named.is_none());
        if let Some(seen) = seen {
            let share = seen.cost_ns as f64 / f64::max(total_ns as f64, 1.0);
            let restarter = self.restarter;
            let stated =
                (share >= RESTARTS_COST).then_some(Statement::Restarts { seen, share, restarter });
            statements.extend(stated);
        }
        let share = shares_ms.get("setup").map_or(0.0, |ms| ms * 1e6 / total_ns as f64);
        if share >= LEADS {
            statements.push(Statement::Setup { share });
        }
        SessionJudgement {
            verdict: named.map(|one| verdict(one.suspect)),
            confidence: named.map_or(0.0, |one| one.probability),
            dir: (!judged.is_empty()).then_some(Direction::Dl),
            shares_ms,
            suspects: suspects.iter().map(Suspicion::from).collect(),
            statements,
            ..SessionJudgement::default()
        }
    }
}

/// A transfer as packets show it.
pub(super) struct Judged {
    span: TransferSpan,
    /// The given ones, or what arrived meanwhile.
    bytes: u64,
    /// `None` if the capture's place or the transfer does not have any.
    features: Option<Features>,
    shares: Shares,
    /// How its rate grew, if it came after a pause.
    growth: Option<Growth>,
    suspects: Vec<airmile_blind::Suspicion>,
    named: Option<airmile_blind::Suspicion>,
}

impl Judged {
    fn part(&self) -> JudgedTransfer<'_> {
        JudgedTransfer {
            ns: self.span.ns(),
            features: self.features.as_ref(),
            suspects: &self.suspects,
            named: self.named,
        }
    }

    fn is_named(&self, suspect: Suspect) -> bool {
        self.named.is_some_and(|one| one.suspect == suspect)
    }
}

const fn is_throughput(fact: &Fact) -> bool {
    matches!(fact.kind, FactKind::Throughput { .. })
}

/// A suspect as a verdict; the causes of the radio are not separated.
fn verdict(suspect: Suspect) -> Verdict {
    match suspect.causes() {
        [cause] => (*cause).into(),
        [] => Verdict::Unknown,
        _ => Verdict::Radio,
    }
}
