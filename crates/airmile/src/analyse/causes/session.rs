//! The leading cause of all transfers together.

use std::collections::{BTreeMap, HashSet};

use airmile_model::{Cause, Direction, TransferFinding, Verdict};
use airmile_wire::attribute::CaptureSite;

use super::super::diagnose::Counterfactual;
use super::super::diagnose::join::{LeadingCause, SessionJudgement};
use super::super::radio::RadioAnalysis;
use super::super::together::Together;
use super::super::wire::Wire;
use super::split::{Split, leading};
use super::{CAUSE_CONFIDENCE, Context, explained, lead_confidence, leaves, margin, near};
use crate::fact::Statement;

/// Minimum share of transfers that ran alone in the time of all; below it no cause is given for all
/// (chosen here).
const LEAST_APART: f64 = 0.5;

/// Names the leading cause of a session by its transfers that did not overlap others, and by those
/// that ran in parallel from one host, taken as one.
pub(in super::super) fn name_of_session(
    session: &mut SessionJudgement,
    splits: &[Option<Split>],
    answer: &RadioAnalysis,
    wire: &Wire,
) {
    let all = &answer.report.transfers;
    let Some(dir) = session.dir else { return };
    let is_upload = |one: &TransferFinding| one.dir == Direction::Ul;
    let has_uploads = splits.iter().zip(all).any(|(split, one)| split.is_some() && is_upload(one));
    if dir == Direction::Ul && !has_uploads {
        return;
    }
    // What several uploads at once waited for is not split.
    let is_download = |one: &TransferFinding| dir == Direction::Dl && one.dir == dir;
    let groups = answer.together.iter().filter(|group| is_download(&group.finding));
    let parallel: Vec<(Split, &Together)> = groups
        .filter(|group| wire.is_of_one_host(&group.finding))
        .filter_map(|group| {
            Some((Split::new(&group.finding, (&group.usage, None), answer, wire)?, group))
        })
        .collect();
    let members: HashSet<usize> =
        parallel.iter().flat_map(|(_, group)| &group.members).copied().collect();
    let each = splits.iter().zip(all).filter_map(|(split, one)| Some((split.as_ref()?, one)));
    let mut transfers: Vec<(&Split, &TransferFinding)> =
        each.filter(|(_, one)| !one.overlapped && one.dir == dir).collect();
    let apart = transfers.len() + members.len();
    transfers.extend(parallel.iter().map(|(split, group)| (split, &group.finding)));
    let transfers = transfers.as_slice();
    let single =
        all.iter().enumerate().filter(|(at, finding)| finding.dir == dir && !members.contains(at));
    let (n, single_ms) =
        single.fold((members.len(), 0.0), |(n, ms), (_, one)| (n + 1, ms + one.duration_ms));
    let parallel_ms: f64 = parallel.iter().map(|(_, group)| group.finding.duration_ms).sum();
    let all_ms = single_ms + parallel_ms;
    let apart_ms = transfers.iter().map(|(split, _)| split.total_ns() as f64 / 1e6).sum::<f64>();
    if apart_ms < LEAST_APART * all_ms {
        // Without overlaps, the captures are not joined, or show nothing of the transfers.
        if all.iter().any(|finding| finding.overlapped) {
            session.statements.push(Statement::FewApart { apart, n });
        }
        return;
    }
    let mut sums: BTreeMap<Cause, i64> = BTreeMap::new();
    session.shares_ms.clear();
    for (split, _) in transfers {
        for (cause, ns) in split.parts() {
            *sums.entry(cause).or_default() += ns;
        }
        for (name, ms) in split.shares_ms() {
            *session.shares_ms.entry(name).or_default() += ms;
        }
    }
    let radio = session.verdict();
    if radio == Verdict::Unknown {
        return;
    }
    let lead = |verdict| leading(sums.iter().map(|(c, ns)| (*c, *ns)), |c| leaves(verdict, c));
    let mend = match radio {
        Verdict::Mixed => lead(Verdict::NotRadio),
        other => lead(other),
    };
    let parts: Vec<(Cause, i64)> = sums.iter().map(|(cause, ns)| (*cause, *ns)).collect();
    let ahead = |cause, verdict| margin(&parts, cause, |other| leaves(verdict, other));
    let known = |cause: &Cause| {
        transfers.iter().all(|(split, _)| split.knows(*cause) || split.ns(*cause) == 0)
    };
    session.leading = lead(radio)
        .filter(known)
        .map(|cause| leading_cause(cause, ahead(cause, radio), transfers, wire));
    if let Some(LeadingCause { cause, .. }) = session.leading {
        session.without.push(without(cause, transfers, wire));
    }
    let Some(cause) = mend.filter(known) else {
        if radio == Verdict::NotRadio && wire.place == CaptureSite::Server {
            session.statements.push(Statement::ServerHadSent);
        }
        return;
    };
    if session.leading.map(|one| one.cause) != mend {
        session.without.push(without(cause, transfers, wire));
    }
    let LeadingCause { share, bounds, confidence, .. } =
        leading_cause(cause, ahead(cause, radio), transfers, wire);
    session.statements.push(Statement::Leading {
        cause,
        restarter: (cause == Cause::SlowStartRestart && dir == Direction::Dl)
            .then_some(wire.restarter),
        share,
        bounds,
        near: near(&parts, cause, |other| match radio {
            Verdict::Mixed => leaves(Verdict::NotRadio, other),
            radio => leaves(radio, other),
        }),
        beside_radio: radio == Verdict::Mixed
            || [Cause::RadioContention, Cause::RadioSignal]
                .into_iter()
                .any(|of_radio| part_of_time(of_radio, transfers) > share),
    });
    if radio != Verdict::Mixed {
        session.verdict = Some(cause.into());
        session.confidence = session.confidence.min(confidence);
    }
}

fn leading_cause(
    cause: Cause,
    margin: f64,
    transfers: &[(&Split, &TransferFinding)],
    wire: &Wire,
) -> LeadingCause {
    let (share, low, high) = share(cause, transfers);
    let confidence = lead_confidence(confidence(cause, transfers, wire), margin);
    LeadingCause { cause, share, bounds: (low, high), confidence }
}

/// A cause's share, its minimum and maximum.
fn share(cause: Cause, transfers: &[(&Split, &TransferFinding)]) -> (f64, f64, f64) {
    let each: Vec<(f64, f64, f64, f64)> = transfers
        .iter()
        .map(|(split, _)| {
            let (low, high) = split.bounds_ns(cause);
            (split.ns(cause) as f64, low, high, split.total_ns() as f64)
        })
        .collect();
    let (low, high) = airmile_wire::attribute::session_share_interval(&each);
    (part_of_time(cause, transfers), low, high)
}

/// A cause's part of the transfers' time.
fn part_of_time(cause: Cause, transfers: &[(&Split, &TransferFinding)]) -> f64 {
    let (part, total) = transfers.iter().fold((0.0, 0.0), |(part, total), (split, _)| {
        (part + split.ns(cause) as f64, total + split.total_ns() as f64)
    });
    part / f64::max(total, 1.0)
}

/// The duration of the transfers without a cause.
fn without(cause: Cause, transfers: &[(&Split, &TransferFinding)], wire: &Wire) -> Counterfactual {
    let mut sum = Counterfactual { of: cause, ms: 0.0, low_ms: 0.0, high_ms: 0.0 };
    for (split, finding) in transfers {
        let without = split.without(cause, &Context { split, finding, wire });
        sum.ms += without.ms;
        sum.low_ms += without.low_ms;
        sum.high_ms += without.high_ms;
    }
    sum
}

/// The confidence of the transfers with the cause, weighted by their time.
fn confidence(cause: Cause, transfers: &[(&Split, &TransferFinding)], wire: &Wire) -> f64 {
    let Some(one) = explained(cause) else { return CAUSE_CONFIDENCE };
    let (mut sum, mut weight) = (0.0, 0.0);
    for (split, finding) in transfers {
        let ns = split.ns(cause) as f64;
        sum += one.confidence(&Context { split, finding, wire }) * ns;
        weight += ns;
    }
    if weight > 0.0 { sum / weight } else { CAUSE_CONFIDENCE }
}
