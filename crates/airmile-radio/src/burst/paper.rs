//! BurstTracker's literal rule (section 3.2): a burst begins at a TTI with
//! more than 90 % of the cell's resources and ends at the unscheduled TTI
//! after one with fewer than 40 %.

use super::tti_row::TtiRow;

/// State of the rule between rows.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PaperRule {
    open_since: Option<i64>,
}

/// The effect of a row on the burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PaperStep {
    None,
    Opens,
    /// The burst that began at `start` ends before `end`.
    Closes {
        start: i64,
        end: i64,
    },
}

impl PaperRule {
    /// Takes a scheduled TTI and the pause after it; every grant counts, as in the paper,
    /// including retransmissions and control.
    pub(super) fn step(
        &mut self,
        row: &TtiRow,
        gap: Option<i64>,
        start_threshold: f64,
        end_threshold: f64,
    ) -> PaperStep {
        let Some(fraction) = row.grants.prb_fraction() else { return PaperStep::None };
        let mut step = PaperStep::None;
        if self.open_since.is_none() && fraction > start_threshold {
            self.open_since = Some(row.tti);
            step = PaperStep::Opens;
        }
        if let Some(start) = self.open_since
            && fraction < end_threshold
            && gap.is_none_or(|gap| gap > 1)
        {
            self.open_since = None;
            step = PaperStep::Closes { start, end: row.tti.saturating_add(1) };
        }
        step
    }

    /// Ends the burst for a reason outside the rule.
    pub(super) fn take_open(&mut self) -> Option<i64> {
        self.open_since.take()
    }
}
