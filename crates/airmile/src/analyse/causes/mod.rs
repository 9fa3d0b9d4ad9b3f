//! Causes: what captures add to a diagnosis of the radio.
//!
//! Each cause is a module that gives how it was detected, the advice, and the transfer's duration
//! without it ([`Explain`]); [`EXPLAINED`] lists them.

mod link;
mod loss;
mod radio;
mod receive_window;
mod restart;
mod sender;
mod session;
mod setup;
mod slow_start;
mod split;
mod timeline;
mod uplink;
mod wireline;

use airmile_model::{Cause, Direction, TransferFinding, TtiIndex, Verdict};
use airmile_wire::attribute::CaptureSite;

pub(super) use self::link::{link_rate, long_bursts_bps};
pub(super) use self::session::name_of_session;
use self::split::Split;
#[cfg(test)]
pub(super) use self::split::example_finding;
pub(super) use self::timeline::queued_ns;
use super::diagnose::join::{LeadingCause, WireCauses, WireSide};
use super::radio::RadioAnalysis;
use super::wire::Wire;
use crate::fact::{Advice, CauseAdvice, CauseDetail, Fact, FactKind, Without};
use crate::wording::WORTH_NAMING;

/// Confidence in a cause by packets with a clear lead (chosen here from the shares that were right
/// for the lab's families and for kernels' packets: docs/causes.md).
const CAUSE_CONFIDENCE: f64 = 0.97;
/// Confidence if only the phone's side was captured, and a slow line before it would look the same
/// (chosen here).
const MAY_BE_A_LINE: f64 = 0.6;
/// A lead is clear from this difference of shares to the next cause on: errors of the split are a
/// few points. With equal shares either may lead.
const LEADS_BY_FAR: f64 = 0.2;
const EITHER: f64 = 0.5;

/// The confidence that a cause leads, by its margin; `ceiling` with a clear lead.
fn lead_confidence(ceiling: f64, margin: f64) -> f64 {
    let far = (margin / LEADS_BY_FAR).clamp(0.0, 1.0);
    let either = ceiling.min(EITHER);
    either + (ceiling - either) * far
}

/// The margin, as a share of the time, of a cause over the other causes that agree with the
/// verdict.
fn margin(parts: &[(Cause, i64)], cause: Cause, wanted: impl Fn(Cause) -> bool) -> f64 {
    let own = parts.iter().find(|(one, _)| *one == cause).map_or(0, |(_, ns)| *ns);
    let next = next(parts, cause, wanted).map_or(0, |(_, ns)| ns);
    (own - next) as f64 / total_ns(parts)
}

/// The largest of the other causes that agree with the verdict.
fn next(
    parts: &[(Cause, i64)],
    cause: Cause,
    wanted: impl Fn(Cause) -> bool,
) -> Option<(Cause, i64)> {
    let others = parts.iter().filter(|(one, _)| *one != cause && wanted(*one));
    others.copied().max_by_key(|(_, ns)| *ns)
}

fn total_ns(parts: &[(Cause, i64)]) -> f64 {
    parts.iter().map(|(_, ns)| *ns).sum::<i64>().max(1) as f64
}

/// With a smaller margin the next cause is named, too (chosen here).
const NARROW_MARGIN: f64 = 0.05;

/// A cause that takes almost as long as the leading one, and its share.
fn near(
    parts: &[(Cause, i64)],
    cause: Cause,
    wanted: impl Fn(Cause) -> bool,
) -> Option<(Cause, f64)> {
    let known = |other| other != Cause::Unknown && wanted(other);
    let (other, ns) = next(parts, cause, known)?;
    let share = ns as f64 / total_ns(parts);
    let is_near = margin(parts, cause, known) < NARROW_MARGIN && share >= WORTH_NAMING;
    is_near.then_some((other, share))
}

/// A transfer and the evidence of its causes.
struct Context<'a> {
    split: &'a Split,
    finding: &'a TransferFinding,
    wire: &'a Wire,
}

/// The properties of a cause.
trait Explain: Sync {
    /// The cause.
    fn cause(&self) -> Cause;

    /// How it was detected.
    fn detail(&self, seen: &Context) -> CauseDetail;

    /// How to remove or reduce it.
    fn advice(&self, seen: &Context) -> CauseAdvice;

    /// The confidence that it is this one, with a clear lead.
    fn confidence(&self, _seen: &Context) -> f64 {
        CAUSE_CONFIDENCE
    }

    /// The factors by which the link's time and the cause's own time change without it.
    fn relief(&self, _seen: &Context) -> Relief {
        Relief::default()
    }
}

/// What removing a cause changes for a transfer.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Relief {
    /// Factor by which the link is faster.
    faster: f64,
    /// Share of the cause's time that remains.
    stays: f64,
    /// How the window would start.
    window: Window,
    /// Causes that follow from it and disappear with it.
    also: &'static [Cause],
}

/// How a connection's window would start without a cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Window {
    /// Small, as it did.
    Small,
    /// Small, over round trips without their queueing delay.
    SmallOverEmptyPath,
    /// As large as the receiver's window permits.
    Receivers,
    /// Large enough never to limit.
    Wide,
}

impl Default for Relief {
    fn default() -> Self {
        Self { faster: 1.0, stays: 0.0, window: Window::Small, also: &[] }
    }
}

/// Every cause except [`Cause::Unknown`].
const EXPLAINED: [&dyn Explain; 12] = [
    &radio::Contention,
    &radio::Signal,
    &restart::Restart,
    &slow_start::Undesired,
    &slow_start::First,
    &receive_window::ReceiveWindow,
    &sender::SenderLimited,
    &wireline::Wireline,
    &loss::Radio,
    &loss::Congestion,
    &setup::Setup,
    &uplink::UplinkQueue,
];

fn explained(cause: Cause) -> Option<&'static dyn Explain> {
    EXPLAINED.into_iter().find(|one| one.cause() == cause)
}

/// The time of each transfer by cause; `None` if its senders are unknown.
pub(super) fn splits(answer: &RadioAnalysis, wire: &Wire) -> Vec<Option<Split>> {
    let report = &answer.report;
    let found = report.transfers.iter().zip(&report.usage).zip(&answer.seen);
    found
        .map(|((finding, usage), seen)| Split::new(finding, (usage, Some(seen)), answer, wire))
        .collect()
}

/// A transfer's side from captures.
pub(super) fn side(split: &Split, finding: &TransferFinding, wire: &Wire) -> WireSide {
    let seen = Context { split, finding, wire };
    let radio = finding.verdict;
    let leading = split
        .leading(|cause| leaves(radio, cause))
        .filter(|cause| !finding.overlapped && split.knows(*cause));
    // Queues and waits are the phone's, not the application's: for simultaneous transfers only the
    // shares are known.
    let causes = (!finding.overlapped).then(|| WireCauses {
        leading: leading.map(|cause| LeadingCause {
            cause,
            share: split.share(cause),
            bounds: split.share_bounds(cause),
            confidence: {
                let parts: Vec<(Cause, i64)> = split.parts().collect();
                let by = margin(&parts, cause, |other| leaves(radio, other));
                let ceiling =
                    explained(cause).map_or(CAUSE_CONFIDENCE, |one| one.confidence(&seen));
                lead_confidence(ceiling, by)
            },
        }),
        mend: mend(&seen, leading),
    });
    let (shares_ms, spans) = (split.shares_ms(), split.shares.spans.clone());
    WireSide { shares_ms, spans, facts: facts(&seen, leading), causes }
}

/// A capture with a smaller share of a transfer's bytes holds a part of it (chosen here: headers are up to 13 % of a
/// modem log's bytes).
const CAPTURED_SHARE: f64 = 0.75;

/// What to do where it was not the radio and captures name no cause.
pub(super) fn unnamed(finding: &TransferFinding, wire: &Wire) -> Advice {
    let holds = wire.holds(finding);
    let part = format!(
        "the capture holds {:.0} % of its bytes, and of the rest nothing is known",
        holds * 100.0
    );
    let (what, how) = match (wire.is_at_phone(), wire.has_server) {
        _ if finding.overlapped => return Advice::RepeatAlone,
        _ if wire.place == CaptureSite::Inside => (
            "capture with root, or at the server, too",
            "a VPN on the phone ends its connections, so that packets do not show what the sender did",
        ),
        _ if holds < CAPTURED_SHARE => {
            ("capture again, from before the transfer starts until after it ends", part.as_str())
        }
        (false, _) => ("capture at the phone, too", "it shows which of the packets were late"),
        _ if finding.dir == Direction::Ul && !wire.is_aligned() => (
            "set the capture's clock to the log's",
            "its packets went unused: their times do not fit",
        ),
        (_, false) if finding.dir == Direction::Dl || wire.follows_uploads() => {
            ("capture at the server, too", "it shows queues on the way to the radio")
        }
        _ => ("look at the logs of client and server", "packets do not show what the sender did"),
    };
    Advice::Gather { what: what.into(), how: how.into() }
}

/// Whether a cause agrees with a verdict on the radio.
const fn leaves(verdict: Verdict, cause: Cause) -> bool {
    match verdict {
        Verdict::Radio => cause.is_radio(),
        Verdict::NotRadio => !cause.is_radio(),
        _ => true,
    }
}

/// The cause to remove: for a shared verdict, the one that is not the radio's; of two that take almost
/// as long, the one whose removal saves more.
fn mend(seen: &Context, leading: Option<Cause>) -> Option<(Cause, Without, Advice)> {
    let (verdict, dir) = (seen.finding.verdict, seen.finding.dir);
    let cause = match verdict {
        Verdict::Mixed => seen.split.leading(|cause| leaves(Verdict::NotRadio, cause)),
        Verdict::Unknown => None,
        _ => leading,
    }?;
    let parts: Vec<(Cause, i64)> = seen.split.parts().collect();
    let without = |cause| seen.split.without(cause, seen);
    let advice = |cause| Some(explained(cause)?.advice(seen));
    if verdict == Verdict::Mixed {
        return Some((cause, without(cause), Advice::SharedWith(dir, cause, advice(cause)?)));
    }
    let near = near(&parts, cause, |other| leaves(verdict, other)).map(|(near, _)| near);
    let (first, second) = match near {
        Some(near) if without(near).ms < without(cause).ms => (near, Some(cause)),
        near => (cause, near),
    };
    let advised = match second {
        Some(second) => Advice::Either(dir, advice(first)?, second, advice(second)?),
        None => Advice::Cause(dir, advice(first)?),
    };
    Some((first, without(first), advised))
}

fn facts(seen: &Context, leading: Option<Cause>) -> Vec<Fact> {
    let Context { split, finding, .. } = *seen;
    let mut causes: Vec<(Cause, i64)> = split.parts().collect();
    causes.sort_by_key(|(cause, ns)| (std::cmp::Reverse(*ns), *cause));
    let named =
        causes.into_iter().filter(|(cause, ns)| split.share(*cause) >= WORTH_NAMING && *ns > 0);
    let named = named.filter(|(cause, _)| split.knows(*cause));
    named
        .map(|(cause, ns)| {
            let whole = (finding.start_tti, finding.end_tti);
            let place = split.longest(cause).map_or(whole, |(from, to)| {
                (tti(split.place(from), finding), tti(split.place(to), finding))
            });
            let kind = FactKind::CauseTime {
                dir: finding.dir,
                cause,
                ms: ns as f64 / 1e6,
                share: split.share(cause),
                bounds: (Some(cause) == leading).then(|| split.share_bounds(cause)),
                detail: explained(cause).map(|one| one.detail(seen)),
            };
            Fact::new(kind, place)
        })
        .collect()
}

/// The TTI at a fraction of a transfer.
fn tti(share: f64, finding: &TransferFinding) -> TtiIndex {
    let n_tti = finding.end_tti.since(finding.start_tti) as f64;
    TtiIndex(finding.start_tti.0 + (share.clamp(0.0, 1.0) * n_tti) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_is_explained_once() {
        let explained: Vec<Cause> = EXPLAINED.iter().map(|one| one.cause()).collect();
        let all: Vec<Cause> =
            Cause::ALL.iter().copied().filter(|cause| *cause != Cause::Unknown).collect();
        assert_eq!(explained, all);
    }

    #[test]
    fn a_narrow_lead_is_less_sure() {
        let parts = [(Cause::Wireline, 40), (Cause::Setup, 38), (Cause::RadioSignal, 22)];
        let lead = |parts: &[(Cause, i64)]| {
            lead_confidence(CAUSE_CONFIDENCE, margin(parts, Cause::Wireline, |c| !c.is_radio()))
        };
        assert!((lead(&parts) - 0.547).abs() < 1e-9, "{}", lead(&parts));
        assert_eq!(lead(&[(Cause::Wireline, 60), (Cause::Setup, 40)]), CAUSE_CONFIDENCE);
        assert_eq!(lead(&[(Cause::Wireline, 40), (Cause::RadioSignal, 60)]), CAUSE_CONFIDENCE);
        let near = |parts: &[(Cause, i64)]| near(parts, Cause::Wireline, |c| !c.is_radio());
        assert_eq!(near(&parts), Some((Cause::Setup, 0.38)));
        assert_eq!(near(&[(Cause::Wireline, 60), (Cause::Setup, 40)]), None);
        assert_eq!(near(&[(Cause::Wireline, 40), (Cause::RadioSignal, 38)]), None);
        assert_eq!(near(&[(Cause::Wireline, 38), (Cause::Unknown, 36)]), None);
    }

    #[test]
    fn a_cause_in_words_is_more_than_its_name() {
        let split = Split::example(&[(Cause::RadioSignal, 500), (Cause::SenderLimited, 500)]);
        let finding = split::example_finding();
        let wire = Wire::example();
        let seen = Context { split: &split, finding: &finding, wire: &wire };
        for one in EXPLAINED {
            let (cause, detail) = (one.cause(), Some(one.detail(&seen)));
            let words = crate::wording::fact(&FactKind::CauseTime {
                dir: finding.dir,
                cause,
                ms: 500.0,
                share: 0.5,
                bounds: None,
                detail,
            });
            assert!(words.len() > cause.as_str().len() + 40, "{words}");
        }
    }
}
