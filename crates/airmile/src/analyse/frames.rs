//! The frames of a capture during each piece of evidence, as Wireshark numbers them.

use std::path::Path;

use airmile_io::capture::frame_numbers;
use airmile_io::error::Result;
use airmile_io::input::Progress;
use airmile_model::TtiClock;

use super::clocks::ClockReport;
use super::diagnose::{Diagnosis, EvidenceItem};

/// Numbers of the first and the last frame; `None` if there are none.
pub(crate) type FrameSpan = Option<(u64, u64)>;

/// The frames of each piece of evidence.
pub(super) fn frames(
    path: &Path,
    diagnosis: &Diagnosis,
    (axis, clock): (&TtiClock, Option<&ClockReport>),
    progress: &Progress,
) -> Result<Vec<Vec<FrameSpan>>> {
    let at_ns = |tti| axis.ns_at(tti).map(|ns| ns.saturating_add(ahead_ns(clock, ns)));
    let span_ns = |one: &EvidenceItem| at_ns(one.from_tti).zip(at_ns(one.to_tti));
    let evidence = || diagnosis.transfers.iter().map(|one| one.evidence.iter().map(span_ns));
    let mut times_ns: Vec<i64> =
        evidence().flatten().flatten().flat_map(<[i64; 2]>::from).collect();
    times_ns.sort_unstable();
    times_ns.dedup();
    let numbers = frame_numbers(path, &times_ns, progress)?;
    let number = |ns: i64| times_ns.binary_search(&ns).ok().and_then(|at| numbers.get(at).copied());
    let of = |span: Option<(i64, i64)>| {
        let (from, to) = span?;
        let (first, next) = (number(from)?, number(to)?);
        (first < next).then(|| (first, next - 1))
    };
    Ok(evidence().map(|each| each.map(of).collect()).collect())
}

/// A capture's clock minus the axis' at a time, in nanoseconds.
pub(super) fn ahead_ns(clock: Option<&ClockReport>, ns: i64) -> i64 {
    let Some(clock) = clock else { return 0 };
    let middle_ns = clock.at_us.unwrap_or(0).saturating_mul(1_000);
    let gained = ns.saturating_sub(middle_ns) as f64 * clock.drift_ppm.unwrap_or(0.0) * 1e-6;
    (clock.offset_ms.unwrap_or(0.0) * 1e6 + gained).round() as i64
}
