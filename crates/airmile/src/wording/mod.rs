//! All sentences of a diagnosis are made here from facts; terminal, report, JSON and Python print
//! them.

mod advice;
mod ecn;
mod fact;
mod page;
mod player;
mod statement;

pub(crate) use advice::{advice, saving};
pub(crate) use ecn::ecn;
pub(crate) use fact::fact;
pub(crate) use page::{
    failed_request, most_saved, not_joined, page, page_damaged, page_outside_limits, page_saving,
    queued_first_byte, slow_link, time,
};
pub use page::{page_cause, page_cause_by};
pub(crate) use player::{player, stall, switch};
pub(crate) use statement::says;

use airmile_blind::{Suspect, Suspicion};
use airmile_model::Direction;

/// What the verdicts of `radio` are from.
pub(crate) const BY_THE_RADIO_ALONE: &str = " By the radio's records alone: `airmile diagnose` also reads \
    captures and application logs.";

/// A cause is named from this share of a time on, and a suspect from this probability (chosen here).
pub(crate) const WORTH_NAMING: f64 = 0.05;
/// The maximum number of suspects in a sentence (chosen here).
const MAX_SUSPECTS: usize = 3;

const fn link(dir: Direction) -> &'static str {
    match dir {
        Direction::Dl => "downlink",
        Direction::Ul => "uplink",
    }
}

const fn suspect(suspect: Suspect) -> &'static str {
    match suspect {
        Suspect::Radio => "the radio link",
        Suspect::Wireline => "a slower link before the radio",
        Suspect::SenderLimited => "the server or the application",
        Suspect::ReceiveWindow => "the phone's receive window",
        Suspect::SlowStartRestart => "slow start after idle time",
        Suspect::FirstSlowStart => "the connection's first slow start",
        Suspect::UplinkQueue => "the phone's own upload",
        Suspect::Other => "none that packets show alone (several together, or another)",
    }
}

/// The most probable suspects with their probabilities.
fn candidates(suspects: &[Suspicion]) -> String {
    let named = suspects.iter().filter(|one| one.probability >= WORTH_NAMING).take(MAX_SUSPECTS);
    let each = named
        .map(|one| format!("{} {:.0} %", suspect(one.suspect), one.probability * 100.0))
        .collect::<Vec<_>>();
    each.join(", ")
}

/// A percentage as a whole number, with a decimal where that would be a rounded 0 or 100.
fn whole_percent(percent: f64) -> String {
    let whole = format!("{percent:.0}");
    if percent > 0.0 && percent < 100.0 && matches!(whole.as_str(), "0" | "100") {
        return format!("{:.1}", percent.clamp(0.1, 99.9));
    }
    whole
}

/// Bounds of a share, in percent.
fn bounds((low, high): (f64, f64)) -> String {
    format!("{:.0} to {:.0} %", low * 100.0, high * 100.0)
}

#[test]
fn a_part_is_never_none_or_all() {
    let of = |percents: &[f64]| percents.iter().map(|one| whole_percent(*one)).collect::<Vec<_>>();
    assert_eq!(of(&[0.0, 0.04, 0.19, 0.5, 45.5, 97.3]), ["0", "0.1", "0.2", "0.5", "46", "97"]);
    assert_eq!(of(&[99.4, 99.5, 99.8, 99.99, 100.0]), ["99", "99.5", "99.8", "99.9", "100"]);
}
