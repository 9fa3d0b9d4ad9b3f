//! The leading cause of all transfers together.

use std::collections::BTreeMap;

use airmile_model::{Cause, Direction, TransferFinding, Verdict};
use airmile_wire::attribute::CaptureSite;

use super::super::diagnose::{Counterfactual, SessionVerdict};
use super::super::wire::Wire;
use super::split::{Split, leading};
use super::{CAUSE_CONFIDENCE, Context, explained, interval, leaves};

/// Where transfers that ran alone are less of all transfers' time, what they waited for is
/// not told of all (chosen here).
const LEAST_APART: f64 = 0.5;

/// Names the cause of all by `transfers`, those of `all` that did not run beside others.
pub(super) fn name(
    session: &mut SessionVerdict,
    transfers: &[(Split, &TransferFinding)],
    all: &[TransferFinding],
    wire: &Wire,
) {
    let all = all.iter().filter(|finding| finding.dir == Direction::Dl);
    let (n, all_ms) = all.fold((0, 0.0), |(n, ms), one| (n + 1, ms + one.duration_ms));
    let apart_ms = transfers.iter().map(|(split, _)| split.total_ns() as f64 / 1e6).sum::<f64>();
    if apart_ms < LEAST_APART * all_ms {
        session.says.push_str(&format!(
            " What they waited for is not told of all: {} of {n} ran apart from others.",
            transfers.len()
        ));
        return;
    }
    let mut sums: BTreeMap<Cause, i64> = BTreeMap::new();
    for (split, _) in transfers {
        for (cause, ns) in split.parts() {
            *sums.entry(cause).or_default() += ns;
        }
    }
    session.shares = sums.iter().map(|(cause, ns)| (cause.as_str(), *ns as f64 / 1e6)).collect();
    let radio = session.verdict;
    if radio == Verdict::Unknown {
        return;
    }
    let of = |verdict| leading(sums.iter().map(|(c, ns)| (*c, *ns)), |c| leaves(verdict, c));
    let mend = match radio {
        Verdict::Mixed => of(Verdict::NotRadio),
        other => of(other),
    };
    session.leading = of(radio);
    if let Some(cause) = session.leading {
        let (share, low, high) = share(cause, transfers);
        session.leading_share = Some(share);
        (session.leading_share_low, session.leading_share_high) = (Some(low), Some(high));
        session.counterfactuals.push(without(cause, transfers, wire));
    }
    let Some(cause) = mend else {
        if radio == Verdict::NotRadio && wire.place == CaptureSite::Server {
            session.says.push_str(
                " The server had sent what was asked for: something between it and the cell held \
                 it. Capture at the phone, too.",
            );
        }
        return;
    };
    if session.leading != mend {
        session.counterfactuals.push(without(cause, transfers, wire));
    }
    let (share, low, high) = share(cause, transfers);
    let whose = explained(cause).map_or("", |one| one.whose(wire));
    let beside = if radio == Verdict::Mixed { " beside the radio" } else { "" };
    session.says.push_str(&format!(
        " Leading cause{beside}: {cause}{whose}, {:.0} % of the time ({}).",
        share * 100.0,
        interval::words((low, high))
    ));
    if radio != Verdict::Mixed {
        session.verdict = cause.into();
        session.confidence = session.confidence.min(confidence(cause, transfers, wire));
    }
}

/// A cause's share, at least and at most.
fn share(cause: Cause, transfers: &[(Split, &TransferFinding)]) -> (f64, f64, f64) {
    let each: Vec<(f64, f64, f64, f64)> = transfers
        .iter()
        .map(|(split, _)| {
            let (low, high) = split.bounds_ns(cause);
            (split.ns(cause) as f64, low, high, split.total_ns() as f64)
        })
        .collect();
    let (part, total) = each.iter().fold((0.0, 0.0), |(a, b), t| (a + t.0, b + t.3));
    let (low, high) = interval::of_session(&each);
    (part / f64::max(total, 1.0), low, high)
}

/// What the transfers would have taken without a cause.
fn without(cause: Cause, transfers: &[(Split, &TransferFinding)], wire: &Wire) -> Counterfactual {
    let mut sum = Counterfactual { of: cause, ms: 0.0, low_ms: 0.0, high_ms: 0.0 };
    for (split, finding) in transfers {
        let without = split.without(cause, &Context { split, finding, wire });
        sum.ms += without.ms;
        sum.low_ms += without.low_ms;
        sum.high_ms += without.high_ms;
    }
    sum
}

/// That of the transfers with the cause, by their time.
fn confidence(cause: Cause, transfers: &[(Split, &TransferFinding)], wire: &Wire) -> f64 {
    let Some(one) = explained(cause) else { return CAUSE_CONFIDENCE };
    let (mut sum, mut weight) = (0.0, 0.0);
    for (split, finding) in transfers {
        let ns = split.ns(cause) as f64;
        sum += one.confidence(&Context { split, finding, wire }) * ns;
        weight += ns;
    }
    if weight > 0.0 { sum / weight } else { CAUSE_CONFIDENCE }
}
