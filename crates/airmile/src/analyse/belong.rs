//! Refuses inputs of different times, where no plausible clock offset explains the difference, and
//! captures of other traffic.

use airmile_wire::clocks::{Aligned, Arrivals, Likeness, Unaligned};

use super::aligned::MODEM;
use super::clocks;
use airmile_io::error::{Error, Result};

/// Clock differences up to this are corrected from common traffic; a larger one means another run,
/// or a clock that the user has to set (chosen here: twice the range of the alignment).
const APART_NS: i64 = 60_000_000_000;

/// Traffic of one run agrees at least this far (chosen here: whole inputs 0.97, parts missing on
/// either side 0.88; other runs mostly below 0.85).
const ALIKE: f64 = 0.88;
/// The same of [`Likeness::shape`], where no segment aligned the clocks (chosen here: one run 0.94 and
/// more, 0.91 in 1.9 s of a split bearer; one in 56 other runs).
const ALIKE_SHAPE: f64 = 0.94;
/// The same where the log is known to lack some of it, or where the traffic aligned the clocks by a
/// small offset, which says the same: blocks that the RLC delivers late arrive in other bins. A large
/// offset may take one segment of a video for another (chosen here: such runs have 0.80 to 0.87,
/// right offsets 0.91 and more, the least on RLC UM with losses).
const ALIKE_PARTIAL: f64 = 0.5;
const ALIKE_ALIGNED: f64 = 0.4;
const SMALL_OFFSET_NS: i64 = 1_500_000_000;
/// Up to this many segments of other traffic may align the clocks by chance (chosen here).
const FEW: usize = 2;
/// Shares that differ by more do not fit equally well (chosen here).
const CLEARLY: f64 = 0.05;
/// Payload for each byte of the radio there, while both have some (chosen here: 0.7 to 1).
const RATIO: std::ops::RangeInclusive<f64> = 0.65..=1.2;

/// Refuses an input whose time does not match the reference's.
fn check(
    (name, reference): (&str, &str),
    (from_ns, to_ns): (i64, i64),
    radio: &Arrivals,
    align_at: impl FnOnce(i64) -> Aligned,
) -> Result<()> {
    let Some((start_ns, end_ns)) = radio.start_ns().zip(radio.end_ns()) else { return Ok(()) };
    let late_ns = from_ns.saturating_sub(end_ns);
    let early_ns = start_ns.saturating_sub(to_ns);
    if late_ns.max(early_ns) <= APART_NS {
        return Ok(());
    }
    let (by_ns, way) = if late_ns > early_ns { (late_ns, "after") } else { (early_ns, "before") };
    // As if both had started at once.
    let shift_ns = start_ns.saturating_sub(from_ns);
    let fits = match align_at(shift_ns) {
        Ok(line) => matches_if(shift_ns.saturating_sub(line.offset_ns)),
        Err(_) => "their traffic matches at no offset near the start of both".to_owned(),
    };
    Err(Error::Option(format!(
        "{name} does not belong to {reference}: it is {} {way} it ({fits})",
        span(by_ns)
    )))
}

/// Checks a capture.
///
/// # Errors
/// Its time does not match the log's.
pub(super) fn check_capture(name: &str, capture: &Arrivals, radio: &Arrivals) -> Result<()> {
    let Some(range) = capture.start_ns().zip(capture.end_ns()) else { return Ok(()) };
    check((name, MODEM), range, radio, |by_ns| clocks::of_capture(radio, &shifted(capture, by_ns)))
}

fn shifted(capture: &Arrivals, by_ns: i64) -> Arrivals {
    let mut shifted = Arrivals::new();
    for (at_ns, bytes) in capture.points() {
        shifted.add(at_ns.saturating_add(by_ns), *bytes);
    }
    shifted
}

/// What to add to a capture's times so that it shows the log's bytes, and how far it then does, where
/// both began at about the same time and the offset is beyond the alignment's range.
fn fit_at_once(capture: &Arrivals, radio: &Arrivals) -> Option<(i64, Likeness)> {
    let shift_ns = radio.start_ns()?.checked_sub(capture.start_ns()?)?;
    let shifted = shifted(capture, shift_ns);
    let line = clocks::of_capture(radio, &shifted);
    let found = clocks::likeness_of_capture(radio, &shifted, &line)?;
    let add_ns = shift_ns.saturating_sub(line.ok()?.offset_ns);
    let fits = found.common >= ALIKE && add_ns.saturating_abs() > clocks::MAX_OFFSET_NS;
    fits.then_some((add_ns, found))
}

/// Checks two captures that have no connection in common, as behind a proxy that splits.
///
/// # Errors
/// They are of different times.
pub(super) fn check_strangers(first: (&str, &Arrivals), other: (&str, &Arrivals)) -> Result<()> {
    let range = |one: &Arrivals| one.start_ns().zip(one.end_ns());
    let (Some(own), Some(theirs)) = (range(first.1), range(other.1)) else { return Ok(()) };
    let apart_ns = theirs.0.saturating_sub(own.1).max(own.0.saturating_sub(theirs.1));
    if apart_ns <= APART_NS {
        return Ok(());
    }
    Err(Error::Option(format!(
        "{} does not belong to {}: they have no connection in common, and {} are between them",
        other.0,
        first.0,
        span(apart_ns)
    )))
}

/// Checks a capture that has other connections than the first one, between the same addresses and ports,
/// as behind a proxy that splits; `line` is the offset between their clocks.
///
/// # Errors
/// Their traffic passes at no plausible offset.
pub(super) fn check_other_connections(first: &str, other: &str, line: &Aligned) -> Result<()> {
    if line.is_ok_and(|line| line.offset_ns.saturating_abs() <= APART_NS) {
        return Ok(());
    }
    Err(Error::Option(format!(
        "{other} does not belong to {first}: its connections have the same addresses and ports, but \
         other sequence numbers, and their traffic and round trips match at no clock offset up to {}, \
         as behind a proxy; are they of the same run?",
        span(APART_NS)
    )))
}

/// Checks that a capture taken at the phone shows the bytes that the log delivered; `partial`: the
/// log is known to lack some. An offset beyond the alignment's range that fits as well is set as the
/// rival of `line`.
///
/// # Errors
/// It shows others, or shows them at such an offset.
pub(super) fn check_bytes(
    name: &str,
    capture: &Arrivals,
    (radio, partial): (&Arrivals, bool),
    line: &mut Aligned,
) -> Result<()> {
    let found = clocks::likeness_of_capture(radio, capture, line);
    let why = found.and_then(|found| unlike(&found, partial, line));
    let starts = radio.start_ns().zip(capture.start_ns());
    let apart = starts.is_some_and(|(a, b)| a.abs_diff(b) > clocks::MAX_OFFSET_NS.unsigned_abs());
    let fit = (apart || why.is_some()).then(|| fit_at_once(capture, radio)).flatten();
    let near = line.is_ok_and(|line| line.offset_ns.abs() <= SMALL_OFFSET_NS);
    if let Some((add_ns, fit)) = fit {
        let is_better = !near && found.is_none_or(|found| found.common + CLEARLY < fit.common);
        if why.is_some() || is_better {
            return Err(Error::Option(format!(
                "{name} does not belong to {MODEM}: {}, more than the 30 s that are corrected",
                matches_if(add_ns)
            )));
        }
        if let Ok(line) = line
            && found.is_none_or(|found| fit.common >= found.common)
        {
            line.rival_ns = line.rival_ns.or(Some(add_ns.saturating_neg()));
        }
    }
    why.map_or(Ok(()), |why| {
        Err(Error::Option(format!(
            "{name} does not belong to {MODEM}: their times overlap, but {why}; are they of the same \
             run and the same phone, and is the capture without a filter?"
        )))
    })
}

fn matches_if(add_ns: i64) -> String {
    format!("their traffic matches if {:.3} s are added to its times", add_ns as f64 / 1e9)
}

/// What of the traffic does not fit.
fn unlike(found: &Likeness, partial: bool, line: &Aligned) -> Option<String> {
    let aligned = line.is_ok_and(|line| line.n > 0);
    let (share, bar) = match line {
        _ if partial || *line == Err(Unaligned::Jumps) => (found.common, ALIKE_PARTIAL),
        Ok(line) if aligned && line.offset_ns.abs() <= SMALL_OFFSET_NS => {
            (found.common, ALIKE_ALIGNED)
        }
        Ok(_) if aligned && found.shape < ALIKE_SHAPE => (found.common, ALIKE),
        Err(_) if found.common < ALIKE => (found.common, ALIKE),
        _ => (found.shape, ALIKE_SHAPE),
    };
    let mb = found.bytes.map(|bytes| bytes as f64 / 1e6);
    if share < bar {
        let offset = line.map_or("and no clock offset aligns them", |_| "with aligned clocks");
        return Some(format!(
            "at most {:.0} % of the bytes pass at the same time in both, {offset}",
            share * 100.0
        ));
    }
    let plausible =
        partial || line.is_ok_and(|line| line.n > FEW) || RATIO.contains(&found.ratio());
    (!plausible).then(|| {
        format!(
            "the log delivered {:.2} MB to the phone while the capture shows {:.2} MB",
            mb[0], mb[1]
        )
    })
}

/// Checks transfers, as spans in nanoseconds, against the bytes of a modem log or a capture.
///
/// # Errors
/// Their time does not match.
pub(super) fn check_transfers(
    name: &str,
    spans: &[(i64, i64)],
    (reference, radio): (&str, &Arrivals),
) -> Result<()> {
    let range = spans.iter().map(|span| span.0).min().zip(spans.iter().map(|span| span.1).max());
    let Some(range) = range else { return Ok(()) };
    let found = check((name, reference), range, radio, |by_ns| {
        let later = |ns: i64| ns.saturating_add(by_ns);
        let shifted: Vec<(i64, i64)> =
            spans.iter().map(|(from, to)| (later(*from), later(*to))).collect();
        clocks::of_application(radio, &shifted)
    });
    found.map_err(|error| match (error, unit_of(range, radio)) {
        (Error::Option(what), Some(unit)) => Error::Option(format!(
            "{what}; as {unit} they would fit: are its times in {unit}? `start_us` and `end_us` are \
             in microseconds"
        )),
        (error, _) => error,
    })
}

/// The unit of times that were taken as microseconds, if they fit as those of another.
fn unit_of((from_ns, to_ns): (i64, i64), radio: &Arrivals) -> Option<&'static str> {
    let (start_ns, end_ns) = radio.start_ns().zip(radio.end_ns())?;
    let fits = |factor: i64| {
        let late_ns = from_ns.checked_mul(factor)?.saturating_sub(end_ns);
        Some(late_ns.max(start_ns.saturating_sub(to_ns.checked_mul(factor)?)) <= APART_NS)
    };
    let units = [("milliseconds", 1_000), ("seconds", 1_000_000)];
    units.into_iter().find(|(_, factor)| fits(*factor) == Some(true)).map(|(unit, _)| unit)
}

fn span(ns: i64) -> String {
    let seconds = ns as f64 / 1e9;
    match seconds {
        s if s < 7_200.0 => format!("{s:.0} s"),
        s if s < 172_800.0 => format!("{:.1} hours", s / 3_600.0),
        s => format!("{:.0} days", s / 86_400.0),
    }
}

#[cfg(test)]
mod tests {
    use airmile_wire::clocks::ClockLine;

    use super::*;

    const S: i64 = 1_000_000_000;

    /// Blocks at irregular times, from a start on.
    fn traffic(start_ns: i64) -> Arrivals {
        let mut arrivals = Arrivals::new();
        let mut at = start_ns;
        for n in 0..400_i64 {
            at += (20 + n * n % 97 * 3) * S / 1_000;
            arrivals.add(at, 3_000 + (n * 7_919 % 5_000) as u32);
        }
        arrivals
    }

    #[test]
    fn an_hour_off_is_refused_with_the_offset_that_fits() {
        let radio = traffic(0);
        assert!(check_capture("a.pcap", &traffic(20 * S), &radio).is_ok());
        let error = check_capture("a.pcap", &traffic(3_600 * S), &radio).unwrap_err().to_string();
        assert!(error.contains("a.pcap does not belong to the modem log"), "{error}");
        assert!(error.contains("-3600.0"), "{error}");
    }

    #[test]
    fn captures_of_another_time_without_a_common_connection_are_refused() {
        let phone = traffic(0);
        let check = |start_ns: i64| {
            check_strangers(("phone.pcap", &phone), ("server.pcap", &traffic(start_ns)))
        };
        // A proxy that splits connections leaves none in common.
        assert!(check(5 * S).is_ok());
        assert!(check(-200 * S).is_err());
        let error = check(3_600 * S).unwrap_err().to_string();
        assert!(error.contains("server.pcap does not belong to phone.pcap"), "{error}");
    }

    #[test]
    fn another_capture_of_the_same_time_is_refused() {
        let radio = traffic(0);
        let check = |capture: &Arrivals, partial| {
            let mut line = clocks::of_capture(&radio, capture);
            check_bytes("a.pcap", capture, (&radio, partial), &mut line)
        };
        assert!(check(&traffic(0), false).is_ok());
        assert!(check(&traffic(2 * S), false).is_ok(), "another clock");
        // The same bytes, at other times.
        let mut other = Arrivals::new();
        let mut at = 0;
        for n in 0..60_i64 {
            at += (200 + n * n % 31 * 20) * S / 1_000;
            (0..6).for_each(|k| other.add(at + k * S / 1_000, 5_000));
        }
        let error = check(&other, false).unwrap_err().to_string();
        assert!(error.contains("a.pcap does not belong to the modem log"), "{error}");
        assert!(error.contains("% of the bytes pass at the same time"), "{error}");
    }

    /// Segments of a video every 4 s; length and rates depend on each one's number.
    fn video(start_ns: i64, number: fn(i64) -> i64) -> Arrivals {
        let mut arrivals = Arrivals::new();
        for n in 0..15 {
            let (from, n) = (start_ns + n * 4 * S, number(n));
            for k in 0..300 + n * n * 13 % 50 {
                let rate = (n * n * 31 + k / 25 * (n + 3) * 17) * 7_919 % 97;
                arrivals.add(from + k * S / 500, 1_000 + 80 * rate as u32);
            }
        }
        arrivals
    }

    #[test]
    fn another_segment_of_a_video_is_no_match() {
        let check = |by_s: i64, number: fn(i64) -> i64| {
            let (radio, capture) = (video(0, number), video(by_s * S, number));
            let mut line = clocks::of_capture(&radio, &capture);
            check_bytes("a.pcap", &capture, (&radio, false), &mut line).map(|()| line.unwrap())
        };
        for by_s in [0, 12, -29] {
            let line = check(by_s, |n| n).unwrap();
            assert!((line.offset_ns - by_s * S).abs() < S / 100, "{line:?}");
            assert_eq!(line.rival_ns, None, "{line:?}");
        }
        for by_s in [32, 40, 48, 60, -60, 85, -85] {
            let error = check(by_s, |n| n).unwrap_err().to_string();
            let add_s = error.split("matches if ").nth(1).unwrap().split(' ').next().unwrap();
            assert!((add_s.parse::<f64>().unwrap() + by_s as f64).abs() < 0.01, "{by_s}: {error}");
        }
        // All are the same: the nearest fits as well, the true offset is named.
        let line = check(60, |_| 0).unwrap();
        assert!(line.rival_ns.is_some_and(|ns| (ns - 60 * S).abs() < S / 100), "{line:?}");
    }

    #[test]
    fn a_large_offset_needs_more_in_common_than_a_small_one() {
        let check = |offset_ns, common: f64, expected: bool| {
            let found = Likeness { common, shape: 0.5, bytes: [5_200_000, 5_000_000] };
            let (at_ns, drift_ppm, half_span_ns, error_ns) = (0, 0.0, S, S / 100);
            let rival_ns = None;
            let line =
                ClockLine { at_ns, offset_ns, drift_ppm, half_span_ns, error_ns, n: 3, rival_ns };
            assert_eq!(unlike(&found, false, &Ok(line)).is_some(), expected, "{offset_ns}");
        };
        check(S, 0.5, false);
        check(28 * S, 0.8, true);
        check(-28 * S, 0.96, false);
    }

    #[test]
    fn without_an_offset_by_segments_the_shapes_must_agree() {
        let check = |common: f64, shape: f64, other_bytes: u64, expected: bool| {
            let found = Likeness { common, shape, bytes: [5_200_000, other_bytes] };
            let (at_ns, drift_ppm, half_span_ns, error_ns) = (0, 0.0, S, S / 100);
            let (offset_ns, rival_ns) = (0, None);
            let line =
                ClockLine { at_ns, offset_ns, drift_ppm, half_span_ns, error_ns, n: 0, rival_ns };
            let why = unlike(&found, false, &Ok(line));
            assert_eq!(why.is_some(), expected, "{common} {shape} {why:?}");
        };
        // A split bearer that delivers in lumps.
        check(0.79, 0.95, 4_900_000, false);
        // Small streams fit into large ones, steady ones have the same shape.
        check(0.98, 0.63, 4_900_000, true);
        check(1.0, 0.99, 3_000_000, true);
        // Nothing aligns them: the bytes must pass at the same time, too.
        let found = |common| Likeness { common, shape: 0.95, bytes: [5_200_000, 4_900_000] };
        assert!(unlike(&found(0.79), false, &Err(Unaligned::Unlike)).is_some());
        assert!(unlike(&found(0.97), false, &Err(Unaligned::Unlike)).is_none());
        check(0.98, 0.99, 6_500_000, true);
    }

    #[test]
    fn transfers_of_another_run_are_refused() {
        let radio = traffic(0);
        let years = 6 * 365 * 86_400 * S;
        let error =
            check_transfers("transfers", &[(years, years + 5 * S)], (MODEM, &radio)).unwrap_err();
        assert!(error.to_string().contains("days after it"), "{error}");
        assert!(!error.to_string().contains("seconds"), "{error}");
        // In ms, taken as microseconds.
        let radio_now = traffic(1_700_000_000 * S);
        let from_ns = 1_700_000_000 * S / 1_000;
        let error = check_transfers("transfers", &[(from_ns, from_ns + S)], (MODEM, &radio_now));
        let error = error.unwrap_err().to_string();
        assert!(error.contains("are its times in milliseconds?"), "{error}");
        assert!(check_transfers("transfers", &[(S, 5 * S)], (MODEM, &radio)).is_ok());
        assert!(check_transfers("transfers", &[], (MODEM, &radio)).is_ok());
        assert!(check_transfers("transfers", &[(years, years)], (MODEM, &Arrivals::new())).is_ok());
    }
}
