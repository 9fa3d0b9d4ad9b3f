//! Transfers as the radio's records show them, as facts.

use std::collections::{BTreeMap, HashSet};

use airmile_model::{Direction, TransferFinding, TtiIndex, Verdict, VerdictThresholds};
use airmile_radio::meter::BurstsSeen;
use airmile_radio::usage::Usage;

use super::super::application;
use super::super::causes;
use super::super::clocks::ClockReport;
use super::super::radio::{
    MissingKind, ROUGH_CONFIDENCE, RadioAnalysis, RadioReport, TransferTrace,
};
use super::super::together::Together;
use super::super::unread;
use super::super::wire::Wire;
use super::Measures;
use super::join::{Judgement, RadioSide, SessionJudgement, SharesMs, Sides, join};
use crate::fact::{Advice, Fact, FactKind, LinkRate, Statement, Without};
use airmile_radio::watch::Others;

/// Judges transfers by the radio, with application logs and captures in addition, or why captures are
/// not joined with it.
pub(super) fn judge(
    answer: &RadioAnalysis,
    (wire, unjoined): (Option<&Wire>, Option<&str>),
    clocks: &[ClockReport],
    thresholds: &VerdictThresholds,
) -> Judgement {
    let RadioAnalysis { report, seen, .. } = answer;
    let logs = answer.lookups();
    let splits = wire.map(|wire| causes::splits(answer, wire)).unwrap_or_default();
    let found = report.transfers.iter().zip(&report.usage).zip(seen).enumerate();
    let transfers = found.map(|(at, ((finding, usage), seen))| {
        let split = splits.get(at).and_then(Option::as_ref);
        let measures = Measures::from(finding);
        let mut radio = side(finding, (usage, seen), report, wire, thresholds);
        if let (Verdict::NotRadio, Some(why)) = (finding.verdict, unjoined) {
            let what = "join the capture with the log, to see what the sender waited for".into();
            radio.advice = Advice::Gather { what, how: why.to_owned() };
        }
        let sides = Sides {
            radio: Some(radio),
            wire: wire.zip(split).map(|(wire, split)| causes::side(split, finding, wire)),
            packets: None,
            application: Some(application::facts(&finding.id, &measures, answer, &logs)),
        };
        join(finding.id.clone(), measures, sides)
    });
    let transfers = transfers.collect();
    let mut session = session(answer, thresholds);
    let mut missing = report.missing.clone();
    if let Some(wire) = wire {
        causes::name_of_session(&mut session, &splits, answer, wire);
        missing.retain(|missing| missing.kind != MissingKind::Packets);
    }
    add_other_direction(&mut session, answer, thresholds);
    session.statements.extend(unjoined.map(|why| Statement::Unjoined(why.to_owned())));
    missing.extend(application::unaligned(answer, clocks));
    Judgement { session, transfers, transfers_from: report.transfers_from, missing }
}

impl From<&TransferFinding> for Measures {
    fn from(finding: &TransferFinding) -> Self {
        Self {
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
        }
    }
}

/// Bytes of the transfers of a direction.
fn carried(report: &RadioReport, dir: Direction) -> u64 {
    let of_dir = report.transfers.iter().filter(|t| t.dir == dir);
    of_dir.filter_map(|t| t.bytes).fold(0, u64::saturating_add)
}

/// The findings that determine a session's verdict, and the number of their transfers: simultaneous
/// ones count once, as one, since the queue is the user's.
fn judged(answer: &RadioAnalysis, dir: Direction) -> (Vec<&TransferFinding>, usize) {
    let known = |finding: &TransferFinding| {
        finding.throughput_time_ms.is_some() && finding.verdict != Verdict::Unknown
    };
    let of_dir = |one: &TransferFinding| one.dir == dir && known(one);
    let groups: Vec<&Together> =
        answer.together.iter().filter(|group| of_dir(&group.finding)).collect();
    let members: HashSet<usize> = groups.iter().flat_map(|group| &group.members).copied().collect();
    let single = answer.report.transfers.iter().enumerate();
    let single = single.filter(|(at, one)| of_dir(one) && !members.contains(at));
    let mut all: Vec<&TransferFinding> = single.map(|(_, one)| one).collect();
    let n = all.len() + members.len();
    all.extend(groups.iter().map(|group| &group.finding));
    (all, n)
}

fn session(answer: &RadioAnalysis, thresholds: &VerdictThresholds) -> SessionJudgement {
    let report = &answer.report;
    let unknown = SessionJudgement::unknown;
    if report.transfers.is_empty() {
        let counts = &report.evidence_counts;
        if report.empty_window {
            return unknown(Statement::EmptyWindow);
        }
        if counts.dl_blocks + counts.ul_blocks == 0 {
            return unknown(match counts.dl_pdus_with_poll {
                0 => Statement::NoAllocations,
                _ => Statement::PollsAlone,
            });
        }
        if report.transfers_from == "given" {
            return unknown(Statement::NotWhole);
        }
        let bytes: u64 = report.small.values().map(|s| s.bytes).sum();
        return unknown(Statement::OnlySmall { bytes });
    }
    let [dir, _] = directions(report);
    of_direction(answer, dir, thresholds).unwrap_or_else(|| unknown(Statement::NoEvidence))
}

/// The direction that carried more, of which a session's verdict is, and the other one.
fn directions(report: &RadioReport) -> [Direction; 2] {
    match carried(report, Direction::Ul) > carried(report, Direction::Dl) {
        true => [Direction::Ul, Direction::Dl],
        false => [Direction::Dl, Direction::Ul],
    }
}

/// Adds what is known of the transfers of the direction that a session's verdict is not of.
fn add_other_direction(
    session: &mut SessionJudgement,
    answer: &RadioAnalysis,
    thresholds: &VerdictThresholds,
) {
    let [dir, other] = directions(&answer.report);
    let unjudged = |dir| {
        let n = answer.report.transfers.iter().filter(|one| one.dir == dir).count();
        (n > 0).then_some(Statement::Unjudged { dir, n })
    };
    match (of_direction(answer, other, thresholds), session.dir) {
        (Some(judged), Some(_)) => session.statements.extend(judged.statements),
        (Some(judged), None) => {
            session.statements = unjudged(dir).into_iter().chain(judged.statements).collect();
        }
        (None, Some(_)) => session.statements.extend(unjudged(other)),
        (None, None) => {}
    }
}

/// The judgement of the transfers of a direction; `None` without evidence.
fn of_direction(
    answer: &RadioAnalysis,
    dir: Direction,
    thresholds: &VerdictThresholds,
) -> Option<SessionJudgement> {
    let (judged, n) = judged(answer, dir);
    let duration_ms: f64 = judged.iter().map(|t| t.duration_ms).sum();
    if judged.is_empty() || duration_ms <= 0.0 {
        return None;
    }
    let queued_ms: f64 = judged.iter().filter_map(|t| t.throughput_time_ms).sum();
    let demand = queued_ms / duration_ms;
    let limited = judged.iter().filter_map(|t| Some(t.radio_share()? * t.duration_ms));
    let limited = limited.sum::<f64>() / duration_ms;
    let verdict = match judged.as_slice() {
        [one] => one.verdict,
        _ => thresholds.judge(limited),
    };
    let confidence = judged.iter().map(|t| t.confidence * t.duration_ms).sum::<f64>() / duration_ms;
    let limits = [thresholds.not_radio_below, thresholds.radio_at_least];
    let statement = Statement::Demand { verdict, dir, demand, limited, n, limits };
    Some(SessionJudgement {
        verdict: Some(verdict),
        confidence,
        dir: Some(dir),
        link_demand: Some(demand),
        ..SessionJudgement::unknown(statement)
    })
}

fn side(
    finding: &TransferFinding,
    (usage, seen): (&Usage, &TransferTrace),
    report: &RadioReport,
    wire: Option<&Wire>,
    thresholds: &VerdictThresholds,
) -> RadioSide {
    let link = causes::link_rate(finding, (usage, Some(seen)), report);
    let without = match finding.verdict {
        Verdict::NotRadio | Verdict::Mixed => without_the_rest(finding, link),
        _ => None,
    };
    RadioSide {
        verdict: finding.verdict,
        confidence: finding.confidence,
        shares_ms: shares_ms(finding),
        without,
        facts: facts(finding, (usage, link), seen, thresholds),
        advice: advice(finding, usage, report, wire, without),
    }
}

/// The duration of a transfer if its data had always been queued: its bytes at the link's rate.
fn without_the_rest(finding: &TransferFinding, link: Option<LinkRate>) -> Option<Without> {
    let is_radio = finding.counted_ms().is_some_and(|[_, others @ ..]| others == [0.0; 2]);
    let bits = finding.bytes.filter(|_| is_radio)? as f64 * 8.0;
    let (all_ms, bps) = (finding.duration_ms, link?.bps);
    let ms = (bits * 1_000.0 / bps).min(all_ms);
    let [low_ms, high_ms] = [ms / Without::OTHER_RATE, ms * Without::OTHER_RATE];
    Some(Without { ms, low_ms, high_ms }.with_model_error(all_ms))
}

/// The duration by cause. Without packets, everything except the radio's share has no known cause.
fn shares_ms(finding: &TransferFinding) -> SharesMs {
    let Some([radio_ms, _, ungauged_ms]) = finding.counted_ms() else {
        return BTreeMap::from([("unknown", finding.duration_ms)]);
    };
    let unknown_ms = finding.unknown_ms + ungauged_ms;
    let unknown_ms = unknown_ms.min(finding.duration_ms - radio_ms).max(0.0);
    let rest_ms = (finding.duration_ms - radio_ms - unknown_ms).max(0.0);
    BTreeMap::from([("radio", radio_ms), ("not_radio", rest_ms), ("unknown", unknown_ms)])
}

fn facts(
    finding: &TransferFinding,
    (usage, link): (&Usage, Option<LinkRate>),
    seen: &TransferTrace,
    thresholds: &VerdictThresholds,
) -> Vec<Fact> {
    let mut out = Vec::new();
    let whole = (finding.start_tti, finding.end_tti);
    let mut add = |kind: FactKind| out.push(Fact::new(kind, whole));
    if let (Some(queued_ms), Some(demand)) = (finding.throughput_time_ms, finding.link_demand) {
        let (dir, duration_ms) = (finding.dir, finding.duration_ms);
        add(FactKind::QueueTime { dir, queued_ms, duration_ms, demand });
        near_limit(finding, thresholds).map(&mut add);
        seen.bursts.as_ref().map(|bursts| bursts_of(bursts, finding)).map(&mut add);
    }
    if let Some(empty) = longest_empty(finding, seen) {
        let ms = empty.1.since(empty.0) as f64 * tti_ms(finding);
        out.push(Fact::new(FactKind::LongestEmpty { ms }, empty));
    }
    let mut add = |kind: FactKind| out.push(Fact::new(kind, whole));
    let link = link.filter(|_| finding.throughput_time_ms.is_some());
    if let Some((link, bytes)) = link.zip(finding.bytes) {
        add(FactKind::Throughput {
            got_bps: bytes as f64 * 8_000.0 / finding.duration_ms.max(1.0),
        });
        add(FactKind::Link(link));
    }
    finding.active_time_ms.map(|_| scheduled(usage)).map(&mut add);
    signal(usage).map(&mut add);
    others(finding, &seen.others).map(&mut add);
    finding.notes.iter().cloned().map(FactKind::Note).for_each(add);
    out
}

const fn scheduled(usage: &Usage) -> FactKind {
    FactKind::Scheduled {
        share: usage.scheduled_share,
        prb_share_when: usage.prb_share_when_scheduled,
        prb_share: usage.prb_share,
        cells: usage.cells,
    }
}

/// Link demand this close to a limit may be on its other side (chosen here: the trackers' usual
/// error on samples with known truth, plus a margin).
const CLOSE_DEMAND: f64 = 0.03;

fn near_limit(finding: &TransferFinding, thresholds: &VerdictThresholds) -> Option<FactKind> {
    let verdict = finding.verdict;
    let [limited_ms, _, either_ms] = finding.counted_ms()?;
    let share = |ms: f64| (ms / finding.duration_ms).min(1.0);
    let (least, most) = (share(limited_ms), share(limited_ms + either_ms + finding.unknown_ms));
    let limits = [
        (thresholds.not_radio_below, Verdict::NotRadio, Verdict::Mixed),
        (thresholds.radio_at_least, Verdict::Mixed, Verdict::Radio),
    ];
    let (limit, under, over) = *limits.iter().find(|(limit, under, over)| {
        (least - limit).abs() < CLOSE_DEMAND && (verdict == *under || verdict == *over)
    })?;
    Some(FactKind::NearLimit { dir: finding.dir, share: (least, most), limit, under, over })
}

/// Length of a TTI in ms: 1 in LTE, a slot in NR.
fn tti_ms(finding: &TransferFinding) -> f64 {
    let n_tti = finding.end_tti.since(finding.start_tti);
    if n_tti > 0 { finding.duration_ms / n_tti as f64 } else { 1.0 }
}

/// The bursts that overlap a transfer; a length counts only the part inside it.
fn bursts_of(bursts: &BurstsSeen, finding: &TransferFinding) -> FactKind {
    FactKind::Bursts {
        count: bursts.count,
        longest_ms: bursts.longest_until(finding.end_tti) as f64 * tti_ms(finding),
        closed_by: bursts.closed_by.iter().map(|(by, n)| (*by, *n)).collect(),
    }
}

/// Shorter times without a burst are not reported (chosen here).
const LONG_EMPTY_MS: f64 = 100.0;

/// The longest span without a burst inside the transfer, if it is long enough to be reported.
fn longest_empty(finding: &TransferFinding, seen: &TransferTrace) -> Option<(TtiIndex, TtiIndex)> {
    finding.throughput_time_ms?;
    let empty = seen.bursts.as_ref()?.longest_empty_until(finding.end_tti);
    let ms = empty.n_tti() as f64 * tti_ms(finding);
    (ms >= LONG_EMPTY_MS).then_some((empty.start_tti, empty.end_tti))
}

fn signal(usage: &Usage) -> Option<FactKind> {
    let Usage { rsrp_dbm, snr_db, mcs_mean, .. } = *usage;
    // A share that rounds to 0 % is no evidence.
    let retx_share = usage.retx_share.filter(|share| *share >= 0.005);
    let known = rsrp_dbm.or(snr_db).or(mcs_mean).or(retx_share).is_some();
    known.then_some(FactKind::Signal { rsrp_dbm, snr_db, mcs_mean, retx_share })
}

/// The share of other users in the cell during the transfer, from its load.
fn others(finding: &TransferFinding, others: &Others) -> Option<FactKind> {
    let (share, confidence) = others.mean().filter(|_| finding.dir == Direction::Dl)?;
    Some(FactKind::OthersShare { share, confidence, rough: confidence < ROUGH_CONFIDENCE })
}

/// Signal below which it is called weak: a cell-edge MCS is usual there (chosen here, as in
/// operators' planning).
const WEAK_RSRP_DBM: f64 = -110.0;

fn advice(
    finding: &TransferFinding,
    usage: &Usage,
    report: &RadioReport,
    wire: Option<&Wire>,
    without: Option<Without>,
) -> Advice {
    let dir = finding.dir;
    let demand = finding.radio_share().unwrap_or_default();
    match finding.verdict {
        Verdict::Radio => {
            let weak = usage.rsrp_dbm.is_some_and(|rsrp| rsrp < WEAK_RSRP_DBM);
            Advice::Radio { dir, weak }
        }
        Verdict::NotRadio => match wire {
            Some(wire) => causes::unnamed(finding, wire),
            None => Advice::NotRadio { dir, idle: 1.0 - demand },
        },
        Verdict::Mixed => Advice::Shared { dir, demand, without, duration_ms: finding.duration_ms },
        _ if finding.overlapped => Advice::RepeatAlone,
        _ => match report.missing.iter().find(|missing| missing.is_of(dir)) {
            Some(missing) if unread::is_version(missing) => {
                Advice::Unread(missing.how_to_capture.clone())
            }
            Some(missing) => {
                Advice::Capture { what: missing.what.clone(), how: missing.how_to_capture.clone() }
            }
            None => Advice::LogAgain,
        },
    }
}
