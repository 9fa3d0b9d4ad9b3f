//! What limited the phone over time, on a report's time axis.

use airmile_model::{Cause, TtiClock};
use airmile_wire::attribute::CauseSpan;

use super::diagnose::Diagnosis;

/// Maximum number of marks (chosen here); later ones are left out.
const MOST_MARKS: usize = 200_000;

/// A cause on the axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CauseMark {
    /// The cause; `None` while data waited for the radio.
    pub cause: Option<Cause>,
    /// First TTI.
    pub from_tti: i64,
    /// End TTI.
    pub to_tti: i64,
}

/// The causes in order: of transfers at the same time, the one that began first.
pub(super) fn cause_marks(diagnosis: &Diagnosis, axis: &TtiClock) -> Vec<CauseMark> {
    let mut spans: Vec<CauseSpan> =
        diagnosis.transfers.iter().flat_map(|one| &one.spans).copied().collect();
    spans.sort_by_key(|span| span.from_ns);
    let mut marks = Vec::new();
    let mut end = i64::MIN;
    for CauseSpan { cause, from_ns, to_ns } in spans {
        let Some((from, Some(to))) = axis.place((from_ns, to_ns), true) else { continue };
        let (from_tti, to_tti) = (from.0.max(end), to.0);
        if from_tti < to_tti && marks.len() < MOST_MARKS {
            marks.push(CauseMark { cause, from_tti, to_tti });
            end = to_tti;
        }
    }
    marks
}
