//! Causes: what captures add to a diagnosis of the radio.

use std::collections::BTreeMap;

use airmile_infer::attribute::{Radio, RadioSpan, Reason, Shares};
use airmile_infer::usage::Usage;
use airmile_model::{Cause, Direction, TransferFinding, TtiIndex, Verdict};

use super::diagnose::{Diagnosis, EvidenceItem, SessionVerdict, TransferDiagnosis};
use super::radio::{Answer, RadioReport};
use super::wire::{Place, Restarter, Wire};

/// Confidence in a cause that packets name (chosen here, not calibrated: what
/// holds a sender up is inferred, the radio's queue is seen).
const CAUSE_CONFIDENCE: f64 = 0.9;
/// A cause is told of in words from this share of a transfer on (chosen here).
const WORTH_TELLING: f64 = 0.05;

/// Names causes in a diagnosis of downlink transfers.
pub(super) fn name_causes(diagnosis: &mut Diagnosis, answer: &Answer, wire: &Wire) {
    let report = &answer.report;
    let found = report.transfers.iter().zip(&report.usage);
    for (transfer, (finding, usage)) in diagnosis.transfers.iter_mut().zip(found) {
        if let Some(split) = Split::of(finding, usage, report, wire) {
            split.explain(transfer, finding, wire);
        }
    }
    if let Some(dir) = diagnosis.session.dir.filter(|dir| *dir == Direction::Dl) {
        name_in_session(&mut diagnosis.session, &diagnosis.transfers, dir, wire);
    }
    diagnosis.missing.retain(|missing| !missing.what.contains("packet"));
}

/// A transfer's time by cause, in nanoseconds.
struct Split {
    by_cause: BTreeMap<Cause, i64>,
    shares: Shares,
    total_ns: i64,
    /// Share of the cell's PRBs that others had while data waited.
    others: Option<f64>,
    start_ns: i64,
    /// What the cell had for this phone on average, in bits per second.
    capacity_bps: Option<f64>,
}

impl Split {
    fn of(
        finding: &TransferFinding,
        usage: &Usage,
        report: &RadioReport,
        wire: &Wire,
    ) -> Option<Self> {
        finding.throughput_time_ms.filter(|_| finding.dir == Direction::Dl)?;
        let (start_ns, end_ns) = (finding.start_us? * 1_000, finding.end_us? * 1_000);
        let spans = |dir| radio_spans(finding, dir, report, start_ns);
        let (downlink, uplink) = (spans(Direction::Dl), spans(Direction::Ul));
        let radio = Radio { downlink: &downlink, uplink: &uplink };
        let shares = wire.split(start_ns, end_ns, radio)?;
        let total_ns = (end_ns - start_ns).max(1);
        let mut by_cause = shares.by_cause.clone();
        set_holes_apart(&mut by_cause, (finding.unknown_ms * 1e6) as i64);
        let radio_ns = shares.radio_ns;
        let others = others(finding, usage);
        if radio_ns > 0 {
            let contention = (radio_ns as f64 * others.unwrap_or(0.0)) as i64;
            by_cause.insert(Cause::RadioContention, contention);
            by_cause.insert(Cause::RadioSignal, radio_ns - contention);
        }
        let capacity_bps = capacity_bps(finding, report);
        Some(Self { by_cause, shares, total_ns, others, start_ns, capacity_bps })
    }

    /// The cause with the largest share among those that a verdict leaves.
    fn leading(&self, verdict: Verdict) -> Option<Cause> {
        self.by_cause
            .iter()
            .filter(|(cause, _)| verdict != Verdict::NotRadio || !cause.is_radio())
            .filter(|(cause, _)| verdict != Verdict::Radio || cause.is_radio())
            .filter(|(cause, _)| **cause != Cause::Unknown)
            .max_by_key(|(cause, ns)| (**ns, std::cmp::Reverse(**cause)))
            .filter(|(_, ns)| **ns > 0 && **ns >= self.unknown_ns())
            .map(|(cause, _)| *cause)
    }

    /// Where more than any cause is unknown, none is named.
    fn unknown_ns(&self) -> i64 {
        self.by_cause.get(&Cause::Unknown).copied().unwrap_or(0)
    }

    fn share(&self, cause: Cause) -> f64 {
        self.by_cause.get(&cause).map_or(0.0, |ns| *ns as f64 / self.total_ns as f64)
    }

    fn explain(&self, transfer: &mut TransferDiagnosis, finding: &TransferFinding, wire: &Wire) {
        transfer.shares =
            self.by_cause.iter().map(|(cause, ns)| (cause.as_str(), *ns as f64 / 1e6)).collect();
        let radio = finding.verdict;
        transfer.evidence.splice(0..0, self.evidence(finding, wire));
        // Queues and waits are the phone's, not the application's: of transfers at the
        // same time only the shares are told.
        if finding.overlapped {
            return;
        }
        transfer.leading = self.leading(radio);
        transfer.leading_share = transfer.leading.map(|cause| self.share(cause));
        if let (Some(cause), Verdict::Radio | Verdict::NotRadio) = (transfer.leading, radio) {
            transfer.verdict = cause.into();
            transfer.confidence = finding.confidence.min(CAUSE_CONFIDENCE);
        }
        // Of a shared verdict, what can be mended is told.
        let mend = match radio {
            Verdict::Mixed => self.leading(Verdict::NotRadio),
            Verdict::Unknown => None,
            _ => transfer.leading,
        };
        let Some(cause) = mend else { return };
        if radio != Verdict::Radio {
            transfer.counterfactual_ms = self.without_ms(cause, finding);
            transfer.counterfactual_of = Some(cause);
        }
        let step = next_step(cause, wire, self);
        transfer.next_step = match radio {
            Verdict::Mixed => format!("shared by the downlink and {cause}. Of the latter: {step}"),
            _ => step,
        };
    }

    /// What the transfer would have taken without a cause: its bytes still take
    /// what the link needs for them.
    fn without_ms(&self, cause: Cause, finding: &TransferFinding) -> Option<f64> {
        let rest_ms = (self.total_ns - self.by_cause.get(&cause)?) as f64 / 1e6;
        // Small bursts do not fill the cell: it may have had room for more.
        let bps = finding.burst_throughput_bps.into_iter().chain(self.capacity_bps);
        let link_ms = bps
            .reduce(f64::max)
            .zip(finding.bytes)
            .map_or(0.0, |(bps, bytes)| bytes as f64 * 8_000.0 / bps);
        Some(rest_ms.max(link_ms).min(finding.duration_ms))
    }

    fn evidence(&self, finding: &TransferFinding, wire: &Wire) -> Vec<EvidenceItem> {
        let mut causes: Vec<(Cause, i64)> =
            self.by_cause.iter().map(|(cause, ns)| (*cause, *ns)).collect();
        causes.sort_by_key(|(cause, ns)| (std::cmp::Reverse(*ns), *cause));
        let told =
            causes.into_iter().filter(|(cause, ns)| self.share(*cause) >= WORTH_TELLING && *ns > 0);
        told.map(|(cause, ns)| {
            let (from_tti, to_tti) = self
                .shares
                .longest
                .get(&cause)
                .map_or((finding.start_tti, finding.end_tti), |&(from, to)| {
                    (self.tti(from, finding), self.tti(to, finding))
                });
            let what = format!(
                "{cause}: {:.0} ms ({:.0} %): {}",
                ns as f64 / 1e6,
                self.share(cause) * 100.0,
                self.words(cause, wire)
            );
            EvidenceItem { what, value: Some(ns as f64 / 1e6), unit: "ms", from_tti, to_tti }
        })
        .collect()
    }

    fn tti(&self, at_ns: i64, finding: &TransferFinding) -> TtiIndex {
        let n_tti = finding.end_tti.since(finding.start_tti) as f64;
        let share = (at_ns - self.start_ns) as f64 / self.total_ns as f64;
        TtiIndex(finding.start_tti.0 + (share.clamp(0.0, 1.0) * n_tti) as i64)
    }

    fn ms(&self, reason: Reason) -> f64 {
        self.shares.by_reason.get(&reason).map_or(0.0, |ns| *ns as f64 / 1e6)
    }

    /// What was seen, in words.
    fn words(&self, cause: Cause, wire: &Wire) -> String {
        let others = self.others.unwrap_or(0.0) * 100.0;
        match cause {
            Cause::RadioContention => {
                format!(
                    "data waited at the base station, where others held {others:.0} % of the PRBs"
                )
            }
            Cause::RadioSignal => "data waited at the base station, and this phone held the PRBs: \
                only what they carry limits it"
                .into(),
            Cause::SlowStartRestart => format!(
                "after idle time the window began anew and grew round by round, the downlink queue \
                 empty in between; {}",
                whose(wire)
            ),
            Cause::UndesiredSlowStart => "the timer went off although duplicate ACKs had told of \
                the loss, and a slow start followed"
                .into(),
            Cause::FirstSlowStart => "the connection's first slow start waited for ACKs".into(),
            Cause::ReceiveWindow => "the phone's receive window was full".into(),
            Cause::SenderLimited => format!(
                "the sender had nothing to send ({:.0} ms), thought ({:.0} ms), was not asked \
                 ({:.0} ms), answered ({:.0} ms), or kept its own pace ({:.0} ms)",
                self.ms(Reason::NothingToSend),
                self.ms(Reason::Thinking),
                self.ms(Reason::Unasked),
                self.ms(Reason::Request),
                self.ms(Reason::Pacing)
            ),
            Cause::Wireline => "round trips were long while the downlink queue was empty: packets \
                queued before the base station"
                .into(),
            Cause::LossRecoveryRadio | Cause::LossRecoveryCongestion => {
                "lost segments were sent again".into()
            }
            Cause::Setup => "before its first byte: lookup, handshake, request".into(),
            Cause::UplinkQueue => {
                "round trips were long while the phone itself sent: requests and \
                ACKs queued behind its upload"
                    .into()
            }
            Cause::Unknown => "what held it up cannot be told".into(),
        }
    }
}

fn whose(wire: &Wire) -> &'static str {
    match wire.restarter {
        Restarter::Middlebox => {
            "the server's capture has other connections and no restarts: a middlebox on the way \
             splits the connection and restarts it"
        }
        Restarter::Sender => "the server's capture has the same connections: it is the server",
        Restarter::SenderOrMiddlebox => {
            "the server or a middlebox: a capture at the server tells which"
        }
    }
}

fn next_step(cause: Cause, wire: &Wire, split: &Split) -> String {
    let at_phone = wire.place == Place::Phone;
    match cause {
        Cause::RadioContention => "others hold the cell: fewer bytes (lower bitrate, compression, \
            caching) or another hour; compare link throughput with `airmile radio`"
            .into(),
        Cause::RadioSignal => "the signal limits it: repeat it in a better place before changing \
            the application; fewer bytes help"
            .into(),
        Cause::SlowStartRestart => match wire.restarter {
            Restarter::Middlebox => {
                "bypass the middlebox (another port, TLS or QUIC), or keep the \
                window warm between requests; then measure again"
                    .into()
            }
            Restarter::Sender => "switch slow start after idle time off at the server (Linux: \
                net.ipv4.tcp_slow_start_after_idle=0), or keep the window warm; then measure again"
                .into(),
            Restarter::SenderOrMiddlebox => "capture at the server, too (`tcpdump -s 128`), and \
                give both captures: who restarts is then told"
                .into(),
        },
        Cause::UndesiredSlowStart => "let the server take round trips from SACK and duplicate \
            ACKs (RACK-TLP, RFC 8985), and raise its least RTO"
            .into(),
        Cause::FirstSlowStart => "reuse connections, or raise the server's initial window; \
            fewer and larger requests"
            .into(),
        Cause::ReceiveWindow => "raise the application's receive buffer (SO_RCVBUF), or read \
            faster"
            .into(),
        Cause::SenderLimited if split.ms(Reason::Thinking) > split.ms(Reason::Pacing) => {
            "look at the server's application: it answered late".into()
        }
        Cause::SenderLimited => "look at the server: its application or a rate limit in it gave \
            data slower than the link takes"
            .into(),
        Cause::Wireline => "look at the way to the base station: a rate limit or a slow link; \
            repeat with another server"
            .into(),
        Cause::LossRecoveryRadio | Cause::LossRecoveryCongestion => {
            "see where it is lost: `airmile packets` the same captures, table tcp_events".into()
        }
        Cause::Setup => "save round trips before the first byte: reuse connections, TLS 1.3, \
            0-RTT, preconnect"
            .into(),
        Cause::UplinkQueue => "hold the phone's upload back while it downloads, or shorten its \
            queue"
            .into(),
        Cause::Unknown if at_phone => "capture at the server, too".into(),
        Cause::Unknown => "capture at the phone, too".into(),
    }
}

/// Mean of what the cell had for this phone in the windows of a transfer: its own
/// PRBs and free ones (CLAW, section 4.2).
fn capacity_bps(finding: &TransferFinding, report: &RadioReport) -> Option<f64> {
    let inside = |tti: i64| tti >= finding.start_tti.0 && tti < finding.end_tti.0;
    let windows = report.cell_load.iter().filter(|window| inside(window.tti));
    let (n, sum) = windows
        .filter_map(|window| window.capacity_bps)
        .fold((0_u32, 0.0), |(n, sum), bps| (n + 1, sum + bps));
    (n > 0).then(|| sum / f64::from(n))
}

/// Others' share of the PRBs while this phone's data waited.
fn others(finding: &TransferFinding, usage: &Usage) -> Option<f64> {
    let demand = finding.link_demand.filter(|demand| *demand > 0.0)?;
    Some((1.0 - usage.prb_share? / demand).clamp(0.0, 1.0))
}

/// Bursts of a transfer as spans of time, by its own start.
fn radio_spans(
    finding: &TransferFinding,
    dir: Direction,
    report: &RadioReport,
    start_ns: i64,
) -> Vec<RadioSpan> {
    let tti_ns = report.tti_ms * 1e6;
    let at = |tti: TtiIndex| start_ns + (tti.since(finding.start_tti) as f64 * tti_ns) as i64;
    report
        .bursts
        .iter()
        .filter(|b| b.dir == dir)
        .filter(|b| b.start_tti < finding.end_tti && b.end_tti > finding.start_tti)
        .map(|b| RadioSpan { from_ns: at(b.start_tti), to_ns: at(b.end_tti), queued: true })
        .collect()
}

/// Time in which the log has a hole is nobody's.
fn set_holes_apart(by_cause: &mut BTreeMap<Cause, i64>, holes_ns: i64) {
    let rest: i64 = by_cause.values().sum();
    if holes_ns <= 0 || rest <= 0 {
        return;
    }
    let keep = 1.0 - (holes_ns as f64 / rest as f64).min(1.0);
    let mut kept = 0;
    for ns in by_cause.values_mut() {
        *ns = (*ns as f64 * keep) as i64;
        kept += *ns;
    }
    *by_cause.entry(Cause::Unknown).or_default() += rest - kept;
}

fn name_in_session(
    session: &mut SessionVerdict,
    transfers: &[TransferDiagnosis],
    dir: Direction,
    wire: &Wire,
) {
    let mut sums: BTreeMap<Cause, f64> = BTreeMap::new();
    let mut total_ms = 0.0;
    for transfer in transfers.iter().filter(|t| t.finding.dir == dir && !t.finding.overlapped) {
        total_ms += transfer.finding.duration_ms;
        for (name, ms) in &transfer.shares {
            if let Some(cause) = Cause::parse(name) {
                *sums.entry(cause).or_default() += ms;
            }
        }
    }
    session.shares = sums.iter().map(|(cause, ms)| (cause.as_str(), *ms)).collect();
    let wanted = |cause: Cause| match session.verdict {
        Verdict::Radio => cause.is_radio(),
        Verdict::NotRadio | Verdict::Mixed => !cause.is_radio() && cause != Cause::Unknown,
        _ => false,
    };
    let unknown_ms = sums.get(&Cause::Unknown).copied().unwrap_or(0.0);
    let leading =
        sums.iter().filter(|(cause, ms)| wanted(**cause) && **ms > 0.0 && **ms >= unknown_ms);
    let Some((&cause, &ms)) = leading.max_by(|a, b| a.1.total_cmp(b.1)) else {
        if session.verdict == Verdict::NotRadio && wire.place == Place::Server {
            session.says.push_str(
                " The server had sent what was asked for: something between it and the cell held \
                 it. Capture at the phone, too.",
            );
        }
        return;
    };
    let share = ms / total_ms * 100.0;
    let whose = match (cause, wire.restarter) {
        (Cause::SlowStartRestart, Restarter::Middlebox) => " by a middlebox",
        (Cause::SlowStartRestart, Restarter::Sender) => " by the server",
        (Cause::SlowStartRestart, Restarter::SenderOrMiddlebox) => " by the server or a middlebox",
        _ => "",
    };
    session.says.push_str(&format!(" Leading cause: {cause}{whose}, {share:.0} % of the time."));
    if session.verdict != Verdict::Mixed {
        session.verdict = cause.into();
        session.confidence = session.confidence.min(CAUSE_CONFIDENCE);
    }
}
