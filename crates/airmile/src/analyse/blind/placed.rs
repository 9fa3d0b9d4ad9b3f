//! Transfers on a capture's clock.

use airmile_blind::TransferSpan;
use airmile_model::{Direction, TtiIndex};

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

/// Downloads of a table of transfers; an application's log has its own.
pub(super) fn table(session: &Session) -> Vec<(String, i64, i64)> {
    if session.applications().iter().any(|one| one.gave_transfers) {
        return Vec::new();
    }
    let downlink = session.transfers().iter().filter(|one| one.dir != Some(Direction::Ul));
    let timed = downlink.filter_map(|one| {
        let (from, to) = one.time?;
        Some((one.id.clone(), from.ns, to.ns))
    });
    timed.collect()
}

/// Transfers that packets show.
pub(super) fn placed(names: &[String], spans: &[TransferSpan]) -> Vec<PlacedTransfer> {
    let from_ns = spans.iter().map(|span| span.from_ns).min().unwrap_or(0);
    let each = names.iter().zip(spans);
    each.map(|(id, span)| PlacedTransfer {
        id: id.clone(),
        measures: measures(span, from_ns),
        span: *span,
        application: None,
    })
    .collect()
}

fn measures(span: &TransferSpan, from_ns: i64) -> Measures {
    let tti = |ns: i64| TtiIndex(ns.saturating_sub(from_ns).div_euclid(1_000_000));
    Measures {
        start_us: Some(span.from_ns.div_euclid(1_000)),
        end_us: Some(span.to_ns.div_euclid(1_000)),
        start_tti: tti(span.from_ns),
        end_tti: tti(span.to_ns),
        duration_ms: span.ns() as f64 / 1e6,
        bytes: Some(span.bytes),
        ..Measures::without_radio(Direction::Dl)
    }
}
