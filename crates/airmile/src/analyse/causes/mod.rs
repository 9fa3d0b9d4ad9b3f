//! Causes: what captures add to a diagnosis of the radio.
//!
//! Each cause is a module that says how it looked, what to try, and what the transfer
//! would have taken without it ([`Explain`]); [`EXPLAINED`] lists them.

mod interval;
mod loss;
mod radio;
mod receive_window;
mod restart;
mod sender;
mod session;
mod setup;
mod slow_start;
mod split;
mod uplink;
mod wireline;

use airmile_model::{Cause, Direction, TransferFinding, TtiIndex, Verdict};
use airmile_wire::attribute::CaptureSite;

use self::split::Split;
use super::diagnose::{Diagnosis, EvidenceItem, TransferDiagnosis};
use super::radio::{Answer, MissingKind};
use super::wire::Wire;

/// Confidence in a cause that packets name (chosen here, not calibrated: what
/// holds a sender up is inferred, the radio's queue is seen).
const CAUSE_CONFIDENCE: f64 = 0.9;
/// A cause is told of in words from this share of a transfer on (chosen here).
const WORTH_TELLING: f64 = 0.05;

/// A transfer, as causes see it.
struct Context<'a> {
    split: &'a Split,
    finding: &'a TransferFinding,
    wire: &'a Wire,
}

/// What is to be said of a cause.
trait Explain: Sync {
    /// Which one.
    fn cause(&self) -> Cause;

    /// How it was seen.
    fn words(&self, seen: &Context) -> String;

    /// What to try, with the command.
    fn next_step(&self, seen: &Context) -> String;

    /// Whose doing it is, behind its name.
    fn whose(&self, _wire: &Wire) -> &'static str {
        ""
    }

    /// How sure one can be that it is this one.
    fn confidence(&self, _seen: &Context) -> f64 {
        CAUSE_CONFIDENCE
    }

    /// What is left of the link's need for time without it, and of the cause's own
    /// time, by which factors.
    fn relief(&self, _seen: &Context) -> Relief {
        Relief::default()
    }
}

/// What a transfer gets without a cause.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Relief {
    /// By how much the link is faster.
    faster: f64,
    /// Share of the cause's time that stays.
    stays: f64,
    /// The connection would still begin with a small window.
    slow_start: bool,
    /// A cause that follows from it, and goes with it.
    also: Option<Cause>,
}

impl Default for Relief {
    fn default() -> Self {
        Self { faster: 1.0, stays: 0.0, slow_start: true, also: None }
    }
}

/// Every cause but [`Cause::Unknown`].
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

/// Names causes in a diagnosis of downlink transfers.
pub(super) fn name_causes(diagnosis: &mut Diagnosis, answer: &Answer, wire: &Wire) {
    let report = &answer.report;
    let found = report.transfers.iter().zip(&report.usage);
    let mut splits = Vec::new();
    for (transfer, (finding, usage)) in diagnosis.transfers.iter_mut().zip(found) {
        let Some(split) = Split::of(finding, usage, answer, wire) else { continue };
        explain(transfer, &Context { split: &split, finding, wire });
        if !finding.overlapped {
            splits.push((split, finding));
        }
    }
    if diagnosis.session.dir == Some(Direction::Dl) {
        session::name(&mut diagnosis.session, &splits, &report.transfers, wire);
    }
    diagnosis.missing.retain(|missing| missing.kind != MissingKind::Packets);
}

/// Which causes a verdict on the radio leaves.
const fn leaves(verdict: Verdict, cause: Cause) -> bool {
    match verdict {
        Verdict::Radio => cause.is_radio(),
        Verdict::NotRadio => !cause.is_radio(),
        _ => true,
    }
}

fn explain(transfer: &mut TransferDiagnosis, seen: &Context) {
    let Context { split, finding, wire } = *seen;
    let parts = split.parts();
    transfer.shares = parts.map(|(cause, ns)| (cause.as_str(), ns as f64 / 1e6)).collect();
    let radio = finding.verdict;
    let leading = split.leading(|cause| leaves(radio, cause)).filter(|_| !finding.overlapped);
    transfer.evidence.splice(0..0, evidence(seen, leading));
    // Queues and waits are the phone's, not the application's: of transfers at the
    // same time only the shares are told.
    if finding.overlapped {
        return;
    }
    transfer.leading = leading;
    transfer.leading_share = leading.map(|cause| split.share(cause));
    let bounds = leading.map(|cause| split.share_bounds(cause));
    (transfer.leading_share_low, transfer.leading_share_high) = bounds.unzip();
    if let (Some(cause), Verdict::Radio | Verdict::NotRadio) = (leading, radio) {
        transfer.verdict = cause.into();
        let sure = explained(cause).map_or(CAUSE_CONFIDENCE, |one| one.confidence(seen));
        transfer.confidence = finding.confidence.min(sure);
    }
    // Of a shared verdict, what can be mended is told.
    let mend = match radio {
        Verdict::Mixed => split.leading(|cause| leaves(Verdict::NotRadio, cause)),
        Verdict::Unknown => None,
        _ => leading,
    };
    let Some(cause) = mend else { return };
    transfer.counterfactual_ms = Some(split.without(cause, seen).ms);
    transfer.counterfactual_of = Some(cause);
    let step = match explained(cause) {
        Some(one) => one.next_step(seen),
        None if wire.place == CaptureSite::Phone => "capture at the server, too".into(),
        None => "capture at the phone, too".into(),
    };
    transfer.next_step = match radio {
        Verdict::Mixed => format!("shared by the downlink and {cause}. Of the latter: {step}"),
        _ => step,
    };
}

fn evidence(seen: &Context, leading: Option<Cause>) -> Vec<EvidenceItem> {
    let Context { split, finding, .. } = *seen;
    let mut causes: Vec<(Cause, i64)> = split.parts().collect();
    causes.sort_by_key(|(cause, ns)| (std::cmp::Reverse(*ns), *cause));
    let told =
        causes.into_iter().filter(|(cause, ns)| split.share(*cause) >= WORTH_TELLING && *ns > 0);
    told.map(|(cause, ns)| {
        let whole = (finding.start_tti, finding.end_tti);
        let longest = split.longest(cause);
        let (from_tti, to_tti) = longest.map_or(whole, |(from, to)| {
            (tti(split.place(from), finding), tti(split.place(to), finding))
        });
        let within = match Some(cause) == leading {
            true => format!(", {}", interval::words(split.share_bounds(cause))),
            false => String::new(),
        };
        let how = explained(cause)
            .map_or("what held it up cannot be told".to_owned(), |one| one.words(seen));
        let what = format!(
            "{cause}: {:.0} ms ({:.0} %{within}): {how}",
            ns as f64 / 1e6,
            split.share(cause) * 100.0,
        );
        EvidenceItem { what, value: Some(ns as f64 / 1e6), unit: "ms", from_tti, to_tti }
    })
    .collect()
}

/// The TTI at a share of a transfer.
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
    fn the_next_step_names_what_to_run() {
        let split = Split::example(&[(Cause::RadioSignal, 500), (Cause::SenderLimited, 500)]);
        let finding = split::example_finding();
        let wire = Wire::example();
        let seen = Context { split: &split, finding: &finding, wire: &wire };
        for one in EXPLAINED {
            let step = one.next_step(&seen);
            assert!(step.contains('`'), "{}: {step}", one.cause());
            assert!(one.words(&seen).len() > 20, "{}", one.cause());
        }
    }
}
