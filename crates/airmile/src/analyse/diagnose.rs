//! `diagnose`: one verdict per transfer and for the session, with evidence.

use std::collections::BTreeMap;

use airmile_model::{Cause, Direction, TransferFinding, TtiIndex, Verdict, VerdictThresholds};
use airmile_radio::meter::BurstsSeen;
use airmile_radio::usage::Usage;
use schemars::JsonSchema;
use serde::Serialize;

use super::application::{self, ApplicationSide, ApplicationSummary};
use super::beside::Beside;
use super::blind::Suspicion;
use super::causes::name_causes;
use super::clocks::ClockReport;
use super::radio::{
    Answer, Missing, ROUGH_CONFIDENCE, RadioOptions, RadioReport, Seen, radio_with,
};
use super::tracks::{EvidenceCounts, Keep, ServingCell};
use super::watch::Others;
use crate::session::Inputs;
use airmile_io::FileReport;
use airmile_io::error::Result;
use airmile_io::input::Progress;

/// What `diagnose` says.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Diagnosis {
    /// The answer for all transfers together.
    pub session: SessionVerdict,
    /// The answer for each transfer.
    pub transfers: Vec<TransferDiagnosis>,
    /// Where the transfers are from: `given`, or `detected` in the allocation, or in
    /// packets where that was not seen.
    pub transfers_from: &'static str,
    /// Serving cells.
    pub cells: Vec<ServingCell>,
    /// Downlink bandwidth in PRBs.
    pub n_prb_cell: Option<u16>,
    /// What the records hold.
    pub evidence_counts: EvidenceCounts,
    /// What applications' logs hold.
    pub applications: Vec<ApplicationSummary>,
    /// What is missing for a better answer, and how to capture it.
    pub missing: Vec<Missing>,
    /// How the files' clocks stand against each other.
    pub clocks: Vec<ClockReport>,
    /// The files.
    pub files: Vec<FileReport>,
}

/// The answer for all transfers of the direction that carried more.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SessionVerdict {
    /// Who the bottleneck was.
    pub verdict: Verdict,
    /// How sure that is, 0 to 1.
    pub confidence: f64,
    /// Which way the transfers went that it is about.
    pub dir: Option<Direction>,
    /// Link demand of all of them together.
    pub link_demand: Option<f64>,
    /// Time in ms by cause, all of them together; empty without captures.
    pub shares: BTreeMap<&'static str, f64>,
    /// The cause with the largest share, as the verdict leaves them; null without captures.
    pub leading: Option<Cause>,
    /// That share, 0 to 1.
    pub leading_share: Option<f64>,
    /// That share at least, by the errors of its parts and from transfer to transfer (95 %).
    pub leading_share_low: Option<f64>,
    /// And at most.
    pub leading_share_high: Option<f64>,
    /// What they would have taken without the leading cause, and with a shared verdict
    /// without the one beside the downlink; empty without captures.
    pub counterfactuals: Vec<Counterfactual>,
    /// The verdict in a sentence.
    pub says: String,
    /// By packets alone, the most probable first; empty where the radio was seen.
    pub suspects: Vec<Suspicion>,
}

/// What transfers would have taken without a cause.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Counterfactual {
    /// Without which cause.
    pub of: Cause,
    /// Time in ms, all of them together.
    pub ms: f64,
    /// At least.
    pub low_ms: f64,
    /// At most.
    pub high_ms: f64,
}

impl SessionVerdict {
    /// Nothing can be told, and why.
    pub(super) const fn unknown(says: String) -> Self {
        Self {
            verdict: Verdict::Unknown,
            confidence: 0.0,
            dir: None,
            link_demand: None,
            shares: BTreeMap::new(),
            leading: None,
            leading_share: None,
            leading_share_low: None,
            leading_share_high: None,
            counterfactuals: Vec::new(),
            says,
            suspects: Vec::new(),
        }
    }
}

/// The answer for one transfer.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TransferDiagnosis {
    /// The transfer's name.
    pub id: String,
    /// What the application asked for: a URL, without its query.
    pub name: Option<String>,
    /// Who the bottleneck was.
    pub verdict: Verdict,
    /// How sure that is, 0 to 1.
    pub confidence: f64,
    /// Time in ms by cause; the parts add up to the duration.
    pub shares: BTreeMap<&'static str, f64>,
    /// The cause with the largest share, as the verdict leaves them; null without captures.
    pub leading: Option<Cause>,
    /// That share, 0 to 1.
    pub leading_share: Option<f64>,
    /// That share at least, by the errors of its parts: ends of bursts, clocks, edges.
    pub leading_share_low: Option<f64>,
    /// And at most.
    pub leading_share_high: Option<f64>,
    /// What it would have taken without that cause, in ms; with a shared verdict,
    /// without the leading cause beside the downlink.
    pub counterfactual_ms: Option<f64>,
    /// Without which cause; null without captures: had its data always been there.
    pub counterfactual_of: Option<Cause>,
    /// Why.
    pub evidence: Vec<EvidenceItem>,
    /// What to do next.
    pub next_step: String,
    /// What the application itself noted down of it; null without its log.
    pub application: Option<ApplicationSide>,
    /// By packets alone, the most probable first; empty where the radio was seen.
    pub suspects: Vec<Suspicion>,
    /// The measures that it rests on.
    #[serde(flatten)]
    pub finding: Measures,
}

/// The measures of a transfer, as `radio` gives them.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Measures {
    /// `dl` or `ul`.
    pub dir: Direction,
    /// Start in microseconds since the Unix epoch.
    pub start_us: Option<i64>,
    /// End in microseconds since the Unix epoch.
    pub end_us: Option<i64>,
    /// First TTI.
    pub start_tti: TtiIndex,
    /// End TTI (exclusive).
    pub end_tti: TtiIndex,
    /// Duration in ms.
    pub duration_ms: f64,
    /// Bytes.
    pub bytes: Option<u64>,
    /// Throughput time in ms.
    pub throughput_time_ms: Option<f64>,
    /// Throughput time / duration.
    pub link_demand: Option<f64>,
    /// Link throughput in bits per second: bytes / throughput time.
    pub link_throughput_bps: Option<f64>,
    /// Rate inside bursts in bits per second: bytes of its bursts / their TTIs,
    /// the last ones included.
    pub burst_throughput_bps: Option<f64>,
    /// Whether another transfer overlaps it.
    pub overlapped: bool,
}

/// A reason: words, a number, and a place on the time axis.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct EvidenceItem {
    /// What was seen, in words with the number.
    pub what: String,
    /// The number.
    pub value: Option<f64>,
    /// Its unit; empty for a ratio.
    pub unit: &'static str,
    /// Where to look: first TTI; of an application's log alone, ms since its first
    /// transfer began.
    pub from_tti: TtiIndex,
    /// Where to look: end TTI (exclusive).
    pub to_tti: TtiIndex,
}

impl Diagnosis {
    /// Whether it rests on applications' logs and nothing of the radio, nor on packets.
    #[must_use]
    pub fn is_of_applications_alone(&self) -> bool {
        let packets = self.files.iter().any(|file| file.kind.starts_with("pcap"));
        !self.applications.is_empty()
            && !packets
            && self.evidence_counts == EvidenceCounts::default()
    }
}

/// Runs the diagnosis.
///
/// # Errors
/// The inputs cannot be read, or hold nothing to analyse.
pub fn diagnose(inputs: &Inputs, options: &RadioOptions, progress: &Progress) -> Result<Diagnosis> {
    let (session, beside) = Beside::gather(inputs, options, progress)?;
    let keep = if beside.wire.is_some() { Keep::Lists } else { Keep::Findings };
    let answer = radio_with(session, options, keep, &mut |_| {})?;
    Ok(conclude_with(&answer, beside, &options.thresholds))
}

/// As [`conclude`], with what captures show of the same time.
pub(crate) fn conclude_with(
    answer: &Answer,
    beside: Beside,
    thresholds: &VerdictThresholds,
) -> Diagnosis {
    let mut diagnosis = conclude(answer, thresholds);
    diagnosis.clocks = beside.clocks;
    diagnosis.files.extend(beside.captures);
    if let Some(wire) = &beside.wire {
        name_causes(&mut diagnosis, answer, wire);
    }
    application::tell(&mut diagnosis, answer);
    if let Some(blind) = beside.blind {
        blind.tell(&mut diagnosis, answer);
    }
    diagnosis
}

pub(crate) fn conclude(answer: &Answer, thresholds: &VerdictThresholds) -> Diagnosis {
    let Answer { report, seen, .. } = answer;
    let session = session(report, thresholds);
    let transfers = report
        .transfers
        .iter()
        .zip(&report.usage)
        .zip(seen)
        .map(|((finding, usage), seen)| transfer(finding, usage, seen, report, thresholds))
        .collect();
    Diagnosis {
        session,
        transfers,
        transfers_from: report.transfers_from,
        cells: report.cells.clone(),
        n_prb_cell: report.n_prb_cell,
        evidence_counts: report.evidence_counts,
        applications: Vec::new(),
        missing: report.missing.clone(),
        clocks: Vec::new(),
        files: report.files.clone(),
    }
}

/// Bytes of the transfers of a direction.
fn carried(report: &RadioReport, dir: Direction) -> u64 {
    let of = report.transfers.iter().filter(|t| t.dir == dir);
    of.filter_map(|t| t.bytes).fold(0, u64::saturating_add)
}

fn session(report: &RadioReport, thresholds: &VerdictThresholds) -> SessionVerdict {
    let unknown = SessionVerdict::unknown;
    if report.transfers.is_empty() {
        let counts = &report.evidence_counts;
        if report.empty_window {
            return unknown("Cannot tell: nothing was logged between --from and --to.".into());
        }
        if counts.dl_blocks + counts.ul_blocks == 0 && counts.dl_pdus_with_poll > 0 {
            return unknown(
                "Cannot tell: the files hold no allocations. RLC poll bits show when data waited, \
                 but not what was transferred; see what is missing."
                    .into(),
            );
        }
        if counts.dl_blocks + counts.ul_blocks == 0 {
            return unknown(
                "Cannot tell: the files hold no allocations; see what is missing.".into(),
            );
        }
        let bytes: u64 = report.small.values().map(|s| s.bytes).sum();
        return unknown(format!(
            "Cannot tell: the log shows no transfer worth the name ({bytes} bytes in small \
             exchanges). Log while a transfer runs, or set --min-bytes."
        ));
    }
    let dir = if carried(report, Direction::Ul) > carried(report, Direction::Dl) {
        Direction::Ul
    } else {
        Direction::Dl
    };
    let judged: Vec<&TransferFinding> = report
        .transfers
        .iter()
        .filter(|t| t.dir == dir && t.throughput_time_ms.is_some() && t.verdict != Verdict::Unknown)
        .collect();
    let duration_ms: f64 = judged.iter().map(|t| t.duration_ms).sum();
    if judged.is_empty() || duration_ms <= 0.0 {
        return unknown(
            "Cannot tell: the log does not hold the evidence; see what is missing.".into(),
        );
    }
    let queued_ms: f64 = judged.iter().filter_map(|t| t.throughput_time_ms).sum();
    let demand = queued_ms / duration_ms;
    let verdict = thresholds.judge(demand);
    let confidence = judged.iter().map(|t| t.confidence * t.duration_ms).sum::<f64>() / duration_ms;
    SessionVerdict {
        verdict,
        confidence,
        dir: Some(dir),
        link_demand: Some(demand),
        ..SessionVerdict::unknown(says(verdict, dir, demand, judged.len(), thresholds))
    }
}

const fn link(dir: Direction) -> &'static str {
    match dir {
        Direction::Dl => "downlink",
        Direction::Ul => "uplink",
    }
}

fn says(
    verdict: Verdict,
    dir: Direction,
    demand: f64,
    n: usize,
    thresholds: &VerdictThresholds,
) -> String {
    let limit = thresholds.not_radio_below * 100.0;
    let link = link(dir);
    let share = demand * 100.0;
    let of = if n == 1 { "the transfer".to_owned() } else { format!("the {n} transfers") };
    match verdict {
        Verdict::Radio => format!(
            "The {link} was the bottleneck: data waited for it during {share:.0} % of {of}."
        ),
        Verdict::NotRadio if share >= 50.0 => format!(
            "The {link} was not what limited {of}: data waited for it during {share:.0} %, less \
             than the {limit:.0} % from which it shares the blame."
        ),
        Verdict::NotRadio => format!(
            "The {link} was not the bottleneck: its queue was empty during {:.0} % of {of}.",
            100.0 - share
        ),
        Verdict::Mixed => format!(
            "The {link} was the bottleneck for a part: data waited for it during {share:.0} % of \
             {of}."
        ),
        _ => "Cannot tell from these files.".into(),
    }
}

fn transfer(
    finding: &TransferFinding,
    usage: &Usage,
    seen: &Seen,
    report: &RadioReport,
    thresholds: &VerdictThresholds,
) -> TransferDiagnosis {
    let counterfactual_ms = match finding.verdict {
        Verdict::NotRadio | Verdict::Mixed => without_the_rest_ms(finding),
        _ => None,
    };
    TransferDiagnosis {
        id: finding.id.clone(),
        name: None,
        verdict: finding.verdict,
        confidence: finding.confidence,
        shares: shares(finding),
        leading: None,
        leading_share: None,
        leading_share_low: None,
        leading_share_high: None,
        counterfactual_of: None,
        counterfactual_ms,
        evidence: evidence(finding, usage, seen, thresholds),
        next_step: next_step(finding, usage, report, counterfactual_ms),
        application: None,
        suspects: Vec::new(),
        finding: Measures {
            dir: finding.dir,
            start_us: finding.start_us,
            end_us: finding.end_us,
            start_tti: finding.start_tti,
            end_tti: finding.end_tti,
            duration_ms: finding.duration_ms,
            bytes: finding.bytes,
            throughput_time_ms: finding.throughput_time_ms,
            link_demand: finding.link_demand,
            link_throughput_bps: finding.link_throughput_bps,
            burst_throughput_bps: finding.burst_throughput_bps,
            overlapped: finding.overlapped,
        },
    }
}

/// What a transfer would have taken had its data always been there: its bytes
/// at the rate inside bursts.
fn without_the_rest_ms(finding: &TransferFinding) -> Option<f64> {
    let bits = finding.bytes? as f64 * 8.0;
    let ms = bits * 1_000.0 / finding.burst_throughput_bps?;
    Some(ms.min(finding.duration_ms))
}

/// The duration by cause. Without packets, all that is not the radio's is
/// somebody else's, unnamed.
fn shares(finding: &TransferFinding) -> BTreeMap<&'static str, f64> {
    let Some(queued_ms) = finding.throughput_time_ms else {
        return BTreeMap::from([("unknown", finding.duration_ms)]);
    };
    let unknown_ms = finding.unknown_ms.min(finding.duration_ms - queued_ms).max(0.0);
    let rest_ms = (finding.duration_ms - queued_ms - unknown_ms).max(0.0);
    BTreeMap::from([("radio", queued_ms), ("not_radio", rest_ms), ("unknown", unknown_ms)])
}

fn evidence(
    finding: &TransferFinding,
    usage: &Usage,
    seen: &Seen,
    thresholds: &VerdictThresholds,
) -> Vec<EvidenceItem> {
    let link = link(finding.dir);
    let mut out = Vec::new();
    let whole = (finding.start_tti, finding.end_tti);
    let mut add = |what: String, value: Option<f64>, unit, (from_tti, to_tti)| {
        out.push(EvidenceItem { what, value, unit, from_tti, to_tti });
    };
    if let (Some(queued_ms), Some(demand)) = (finding.throughput_time_ms, finding.link_demand) {
        let what = format!(
            "the {link} queue was not empty for {queued_ms:.0} of {:.0} ms (link demand {:.0} %)",
            finding.duration_ms,
            demand * 100.0
        );
        add(what, Some(demand), "", whole);
        if let Some(what) = close_to_a_limit(finding.verdict, demand, thresholds) {
            add(what, Some(demand), "", whole);
        }
        if let Some(bursts) = &seen.bursts {
            add(burst_words(bursts, finding), Some(bursts.count as f64), "bursts", whole);
        }
    }
    if let Some((from, to)) = longest_empty(finding, seen) {
        let ms = to.since(from) as f64 * tti_ms(finding);
        let what = format!("longest time with an empty queue inside it: {ms:.0} ms");
        add(what, Some(ms), "ms", (from, to));
    }
    if let (Some(link_bps), Some(bytes)) = (finding.link_throughput_bps, finding.bytes) {
        let got_bps = bytes as f64 * 8_000.0 / finding.duration_ms.max(1.0);
        let what = format!(
            "it got {:.2} Mbit/s (bytes / duration); link throughput {:.2} Mbit/s (bytes / \
             throughput time)",
            got_bps / 1e6,
            link_bps / 1e6
        );
        add(what, Some(link_bps), "bit/s", whole);
    }
    if let Some(bps) = finding.burst_throughput_bps {
        let what = format!(
            "rate inside bursts {:.2} Mbit/s: what the link carried while data waited, without \
             what emptied the queue at once",
            bps / 1e6
        );
        add(what, Some(bps), "bit/s", whole);
    }
    let mut scheduled = format!("scheduled in {:.0} % of the time", usage.scheduled_share * 100.0);
    if let (Some(when), Some(all)) = (usage.prb_share_when_scheduled, usage.prb_share) {
        scheduled.push_str(&format!(
            ", then with {:.0} % of the cell's PRBs ({:.0} % over all)",
            when * 100.0,
            all * 100.0
        ));
    } else if usage.scheduled_share > 0.0 {
        scheduled.push_str("; with what share of the cell's PRBs is unknown");
    }
    add(scheduled, Some(usage.scheduled_share), "", whole);
    if let Some(signal) = signal_words(usage) {
        add(signal, usage.rsrp_dbm, "dBm", whole);
    }
    if let Some((what, share)) = others_words(finding, &seen.others) {
        add(what, Some(share), "", whole);
    }
    for note in &finding.notes {
        add(note.clone(), None, "", whole);
    }
    out
}

/// Link demand this near to a limit may as well be on its other side (chosen
/// here: the trackers' usual error on samples of known truth, with room).
const CLOSE_DEMAND: f64 = 0.03;

fn close_to_a_limit(
    verdict: Verdict,
    demand: f64,
    thresholds: &VerdictThresholds,
) -> Option<String> {
    let limits = [
        (thresholds.not_radio_below, Verdict::NotRadio, Verdict::Mixed),
        (thresholds.radio_at_least, Verdict::Mixed, Verdict::Radio),
    ];
    let (limit, under, over) = *limits.iter().find(|(limit, under, over)| {
        (demand - limit).abs() < CLOSE_DEMAND && (verdict == *under || verdict == *over)
    })?;
    Some(format!(
        "link demand {:.1} % is close to {:.0} %, the limit between {under} and {over}: it may be \
         either",
        demand * 100.0,
        limit * 100.0
    ))
}

/// Length of a TTI in ms: 1 in LTE, a slot in NR.
fn tti_ms(finding: &TransferFinding) -> f64 {
    let n_tti = finding.end_tti.since(finding.start_tti);
    if n_tti > 0 { finding.duration_ms / n_tti as f64 } else { 1.0 }
}

/// The bursts that touch a transfer, as far as they are inside it.
fn burst_words(bursts: &BurstsSeen, finding: &TransferFinding) -> String {
    let by: Vec<String> = bursts.closed_by.iter().map(|(by, n)| format!("{n} by {by}")).collect();
    let longest = bursts.longest_until(finding.end_tti) as f64 * tti_ms(finding);
    match (bursts.count, bursts.closed_by.keys().next()) {
        (1, Some(by)) => {
            format!("1 burst, {longest:.0} ms of it inside the transfer, ended by {by}")
        }
        (0, _) | (_, None) => "no burst: each block emptied the queue".into(),
        (n, _) => format!("{n} bursts, the longest {longest:.0} ms; ended {}", by.join(", ")),
    }
}

/// A time without a burst that is shorter does not matter (chosen here).
const LONG_EMPTY_MS: f64 = 100.0;

/// The longest span inside the transfer that no burst covers, where it is
/// long enough to matter.
fn longest_empty(finding: &TransferFinding, seen: &Seen) -> Option<(TtiIndex, TtiIndex)> {
    finding.throughput_time_ms?;
    let empty = seen.bursts.as_ref()?.longest_empty_until(finding.end_tti);
    is_long(empty.n_tti(), tti_ms(finding)).then_some((empty.start_tti, empty.end_tti))
}

fn is_long(n_tti: i64, tti_ms: f64) -> bool {
    n_tti as f64 * tti_ms >= LONG_EMPTY_MS
}

fn signal_words(usage: &Usage) -> Option<String> {
    let mut words = Vec::new();
    if let Some(rsrp) = usage.rsrp_dbm {
        words.push(format!("RSRP {rsrp:.0} dBm"));
    }
    if let Some(snr) = usage.snr_db {
        words.push(format!("SNR {snr:.0} dB"));
    }
    if let Some(mcs) = usage.mcs_mean {
        words.push(format!("mean MCS {mcs:.0}"));
    }
    if let Some(retx) = usage.retx_share {
        words.push(format!("{:.0} % of blocks HARQ retransmissions", retx * 100.0));
    }
    (!words.is_empty()).then(|| words.join(", "))
}

/// What others held of the cell meanwhile, by its load.
fn others_words(finding: &TransferFinding, others: &Others) -> Option<(String, f64)> {
    let (share, confidence) = others.mean().filter(|_| finding.dir == Direction::Dl)?;
    let rough = if confidence < ROUGH_CONFIDENCE { "; rough" } else { "" };
    let what = format!(
        "others held about {:.0} % of the cell (confidence {:.0} %{rough})",
        share * 100.0,
        confidence * 100.0
    );
    Some((what, share))
}

/// Signal that is called weak here: below it a cell-edge MCS is usual (chosen
/// here, as operators' planning does).
const WEAK_RSRP_DBM: f64 = -110.0;

fn next_step(
    finding: &TransferFinding,
    usage: &Usage,
    report: &RadioReport,
    counterfactual_ms: Option<f64>,
) -> String {
    let waited = finding.link_demand.unwrap_or_default() * 100.0;
    let idle = 100.0 - waited;
    let weak = usage.rsrp_dbm.is_some_and(|rsrp| rsrp < WEAK_RSRP_DBM);
    let uplink = finding.dir == Direction::Ul;
    match finding.verdict {
        Verdict::Radio if uplink => "the uplink limits it: send less, or later; watch the \
            buffer it fills with `airmile radio FILE --json` (sched_wait_ms)"
            .into(),
        Verdict::Radio if weak => "the radio limits it, and the signal is weak: repeat it in a \
            better place before changing the application; then `airmile radio` both logs"
            .into(),
        Verdict::Radio => "the radio limits it: only fewer bytes help (lower bitrate, \
            compression, caching); repeat at another hour or cell and compare link throughput"
            .into(),
        Verdict::NotRadio if uplink => format!(
            "look at the sender: during {idle:.0} % of the time the phone had nothing to send. \
             Application, its window, or what it waits for from the other side; capture packets \
             at the phone at the same time as the modem log"
        ),
        Verdict::NotRadio => "look upstream of the radio: the sender, its window, a proxy or a \
            rate limit. Capture packets at the phone and the server at the same time as the modem \
            log to tell which"
            .into(),
        Verdict::Mixed => {
            let (other, idle_was) = if uplink {
                ("the sender", "the phone had nothing to send")
            } else {
                ("something upstream of the radio", "the queue was empty")
            };
            let mut step = format!(
                "both the {} and {other}: data waited during {waited:.0} % of the time, and \
                 during {idle:.0} % {idle_was}. Fix {other} first",
                link(finding.dir)
            );
            if let Some(ms) = counterfactual_ms {
                step.push_str(&format!(
                    ": with its data always there it would have taken {ms:.0} ms instead of \
                     {:.0} ms, and only a faster link gets below that",
                    finding.duration_ms
                ));
            }
            step
        }
        _ => match report.missing.first() {
            _ if finding.overlapped => "repeat it with no other transfer at the same time: queues \
                are per user, not per application"
                .into(),
            Some(missing) => format!("capture {}: {}", missing.what, missing.how_to_capture),
            None => "log again, with the whole transfer inside the log".into(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::is_long;

    /// 100 ms are 100 subframes of LTE, and 200 slots of 0.5 ms.
    #[test]
    fn a_long_time_without_a_burst_is_a_time_and_no_count() {
        assert!(is_long(100, 1.0) && is_long(200, 0.5));
        assert!(!is_long(99, 1.0) && !is_long(199, 0.5));
    }
}
