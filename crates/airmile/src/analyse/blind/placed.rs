//! Transfers on a capture's clock.

use airmile_blind::TransferSpan;
use airmile_model::{Direction, Transfer, TtiIndex};

use super::super::diagnose::Measures;
use super::super::diagnose::join::ApplicationFacts;
use crate::session::Session;

/// A transfer on the capture's clock.
pub(super) struct PlacedTransfer {
    pub(super) id: String,
    pub(super) measures: Measures,
    pub(super) span: TransferSpan,
    pub(super) application: Option<ApplicationFacts>,
}

/// Transfers of a table that have times; an application's log has its own.
pub(super) fn table(session: &Session) -> Vec<Transfer> {
    if session.applications().iter().any(|one| one.gave_transfers) {
        return Vec::new();
    }
    let timed = session.transfers().iter().filter(|one| one.time.is_some());
    timed.cloned().collect()
}

/// Transfers at `spans`: given ones, with their bytes, or the downloads that packets show.
pub(super) fn placed<'a>(
    spans: &[TransferSpan],
    given: impl Fn(usize) -> Option<&'a Transfer>,
) -> Vec<PlacedTransfer> {
    let from_ns = spans.iter().map(|span| span.from_ns).min().unwrap_or(0);
    let tti = |ns: i64| TtiIndex(ns.saturating_sub(from_ns).div_euclid(1_000_000));
    let each = spans.iter().enumerate().map(|(at, span)| {
        let given = given(at);
        let dir = given.and_then(|one| one.dir).unwrap_or(Direction::Dl);
        let arrived = Some(span.bytes).filter(|_| dir == Direction::Dl);
        let measures = Measures {
            start_us: Some(span.from_ns.div_euclid(1_000)),
            end_us: Some(span.to_ns.div_euclid(1_000)),
            start_tti: tti(span.from_ns),
            end_tti: tti(span.to_ns),
            duration_ms: span.ns() as f64 / 1e6,
            bytes: given.and_then(|one| one.bytes).or(arrived),
            ..Measures::without_radio(dir)
        };
        let id = given.map_or_else(|| format!("dl-{}", at + 1), |one| one.id.clone());
        PlacedTransfer { id, measures, span: *span, application: None }
    });
    each.collect()
}
