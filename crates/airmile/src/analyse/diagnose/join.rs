//! The judgement of a transfer, and of a session, from all sources.

use std::collections::BTreeMap;

use airmile_model::{Cause, Direction, Verdict};
use airmile_wire::attribute::CauseSpan;

use super::super::application::ApplicationSide;
use super::super::blind::Suspicion;
use super::super::radio::Missing;
use super::{Counterfactual, EvidenceItem, Measures, SessionVerdict, TransferDiagnosis};
use crate::fact::{Advice, Fact, Statement, Without};
use crate::wording;

/// Time in ms by cause, with the names of the document.
pub(in super::super) type SharesMs = BTreeMap<&'static str, f64>;

/// The complete judgement, before its sentences are made.
pub(in super::super) struct Judgement {
    pub(in super::super) session: SessionJudgement,
    pub(in super::super) transfers: Vec<TransferJudgement>,
    pub(in super::super) transfers_from: &'static str,
    pub(in super::super) missing: Vec<Missing>,
}

/// The findings of each source about one transfer.
#[derive(Default)]
pub(in super::super) struct Sides {
    pub(in super::super) radio: Option<RadioSide>,
    pub(in super::super) wire: Option<WireSide>,
    pub(in super::super) packets: Option<PacketSide>,
    pub(in super::super) application: Option<ApplicationFacts>,
}

/// From the radio's records.
pub(in super::super) struct RadioSide {
    pub(in super::super) verdict: Verdict,
    pub(in super::super) confidence: f64,
    pub(in super::super) shares_ms: SharesMs,
    /// Its duration if its data had always been queued.
    pub(in super::super) without: Option<Without>,
    pub(in super::super) facts: Vec<Fact>,
    pub(in super::super) advice: Advice,
}

/// From captures in addition to the radio's records.
pub(in super::super) struct WireSide {
    pub(in super::super) shares_ms: SharesMs,
    pub(in super::super) spans: Vec<CauseSpan>,
    pub(in super::super) facts: Vec<Fact>,
    /// `None` for a transfer that overlaps another: queues and waits are then the phone's.
    pub(in super::super) causes: Option<WireCauses>,
}

/// The causes that captures show.
pub(in super::super) struct WireCauses {
    pub(in super::super) leading: Option<LeadingCause>,
    /// The cause to remove, the transfer's duration without it, and how.
    pub(in super::super) mend: Option<(Cause, Without, Advice)>,
}

/// The leading cause.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in super::super) struct LeadingCause {
    pub(in super::super) cause: Cause,
    /// Its share, 0 to 1, and the bounds of the share.
    pub(in super::super) share: f64,
    pub(in super::super) bounds: (f64, f64),
    /// The confidence that it is this one.
    pub(in super::super) confidence: f64,
}

/// From captures alone.
pub(in super::super) struct PacketSide {
    pub(in super::super) verdict: Verdict,
    pub(in super::super) confidence: f64,
    /// `None` if its sender cannot be followed.
    pub(in super::super) shares_ms: Option<SharesMs>,
    pub(in super::super) spans: Vec<CauseSpan>,
    pub(in super::super) suspects: Vec<Suspicion>,
    pub(in super::super) facts: Vec<Fact>,
    pub(in super::super) advice: Advice,
}

/// From the application's own log.
#[derive(Default)]
pub(in super::super) struct ApplicationFacts {
    pub(in super::super) name: Option<String>,
    pub(in super::super) side: Option<ApplicationSide>,
    pub(in super::super) facts: Vec<Fact>,
    /// Set if its time is not known from another source.
    pub(in super::super) shares_ms: Option<SharesMs>,
    pub(in super::super) advice: Option<Advice>,
}

/// The judgement of a transfer by all sources together.
pub(in super::super) struct TransferJudgement {
    id: String,
    name: Option<String>,
    pub(in super::super) measures: Measures,
    verdict: Verdict,
    confidence: f64,
    shares_ms: SharesMs,
    spans: Vec<CauseSpan>,
    leading: Option<LeadingCause>,
    without: Option<(Option<Cause>, Without)>,
    facts: Vec<Fact>,
    advice: Advice,
    application: Option<ApplicationSide>,
    suspects: Vec<Suspicion>,
}

/// Joins the sides of a transfer. The radio gives the verdict if it was logged; captures in
/// addition name the cause within that verdict; packets alone give probabilities; an application's
/// log alone gives its phases.
pub(in super::super) fn join(id: String, measures: Measures, sides: Sides) -> TransferJudgement {
    let Sides { radio, wire, packets, application } = sides;
    let application = application.unwrap_or_default();
    let mut judged = TransferJudgement {
        id,
        name: application.name,
        verdict: Verdict::Unknown,
        confidence: 0.0,
        shares_ms: application
            .shares_ms
            .unwrap_or_else(|| BTreeMap::from([("unknown", measures.duration_ms)])),
        measures,
        spans: Vec::new(),
        leading: None,
        without: None,
        facts: Vec::new(),
        advice: application.advice.unwrap_or(Advice::None),
        application: application.side,
        suspects: Vec::new(),
    };
    if let Some(packets) = packets {
        (judged.verdict, judged.confidence) = (packets.verdict, packets.confidence);
        judged.shares_ms = packets.shares_ms.unwrap_or(judged.shares_ms);
        judged.spans = packets.spans;
        judged.suspects = packets.suspects;
        judged.advice = packets.advice;
        judged.facts.extend(packets.facts);
    }
    if let Some(radio) = radio {
        (judged.verdict, judged.confidence) = (radio.verdict, radio.confidence);
        judged.shares_ms = radio.shares_ms;
        judged.without = radio.without.map(|without| (None, without));
        judged.advice = radio.advice;
        judged.facts.extend(radio.facts);
    }
    if let Some(wire) = wire {
        judged.name_cause(wire);
    }
    judged.facts.extend(application.facts);
    judged
}

impl TransferJudgement {
    /// Adds what captures show; the verdict is still the radio's.
    fn name_cause(&mut self, wire: WireSide) {
        self.shares_ms = wire.shares_ms;
        self.spans = wire.spans;
        self.facts.splice(0..0, wire.facts);
        let Some(causes) = wire.causes else { return };
        self.leading = causes.leading;
        if let (Some(leading), Verdict::Radio | Verdict::NotRadio) = (self.leading, self.verdict) {
            self.verdict = leading.cause.into();
            self.confidence = self.confidence.min(leading.confidence);
        }
        if let Some((cause, without, advice)) = causes.mend {
            self.without = Some((Some(cause), without));
            self.advice = advice;
        }
    }

    /// The document, with its sentences.
    pub(in super::super) fn into_document(self) -> TransferDiagnosis {
        let evidence = self.facts.iter().map(|fact| {
            let (value, unit) = fact.kind.value();
            let what = wording::fact(&fact.kind);
            EvidenceItem { what, value, unit, from_tti: fact.from_tti, to_tti: fact.to_tti }
        });
        TransferDiagnosis {
            evidence: evidence.collect(),
            next_step: wording::advice(&self.advice),
            id: self.id,
            name: self.name,
            verdict: self.verdict,
            confidence: self.confidence,
            shares: self.shares_ms,
            spans: self.spans,
            leading: self.leading.map(|one| one.cause),
            leading_share: self.leading.map(|one| one.share),
            leading_share_low: self.leading.map(|one| one.bounds.0),
            leading_share_high: self.leading.map(|one| one.bounds.1),
            counterfactual_ms: self.without.map(|(_, without)| without.ms),
            counterfactual_low_ms: self.without.map(|(_, without)| without.low_ms),
            counterfactual_high_ms: self.without.map(|(_, without)| without.high_ms),
            counterfactual_of: self.without.and_then(|(cause, _)| cause),
            application: self.application,
            suspects: self.suspects,
            finding: self.measures,
        }
    }
}

/// The judgement of a session by all sources together.
#[derive(Default)]
pub(in super::super) struct SessionJudgement {
    pub(in super::super) verdict: Option<Verdict>,
    pub(in super::super) confidence: f64,
    pub(in super::super) dir: Option<Direction>,
    pub(in super::super) link_demand: Option<f64>,
    pub(in super::super) shares_ms: SharesMs,
    pub(in super::super) leading: Option<LeadingCause>,
    pub(in super::super) without: Vec<Counterfactual>,
    pub(in super::super) suspects: Vec<Suspicion>,
    pub(in super::super) statements: Vec<Statement>,
}

impl SessionJudgement {
    /// Nothing is known except this.
    pub(in super::super) fn unknown(statement: Statement) -> Self {
        Self { statements: vec![statement], ..Self::default() }
    }

    /// The verdict; unknown if no source gave one.
    pub(in super::super) fn verdict(&self) -> Verdict {
        self.verdict.unwrap_or(Verdict::Unknown)
    }

    /// The document, with its sentences.
    pub(in super::super) fn into_document(self) -> SessionVerdict {
        SessionVerdict {
            verdict: self.verdict(),
            says: wording::says(&self.statements),
            confidence: self.confidence,
            dir: self.dir,
            link_demand: self.link_demand,
            shares: self.shares_ms,
            leading: self.leading.map(|one| one.cause),
            leading_share: self.leading.map(|one| one.share),
            leading_share_low: self.leading.map(|one| one.bounds.0),
            leading_share_high: self.leading.map(|one| one.bounds.1),
            counterfactuals: self.without,
            suspects: self.suspects,
        }
    }
}
