//! Aligns an application's requests to those that a capture shows.

use super::line::{Aligned, ClockLine, Unaligned, through};

/// Requests in a shorter time are one event (chosen here: a page asks for several objects at once).
const TOGETHER_NS: i64 = 2_000_000;
/// Requests that agree lie within this (chosen here: browsers' times have a precision of a
/// millisecond, and their threads delay packets by some).
const SAME_NS: i64 = 6_000_000;
/// Maximum extent of the requests: a drift of 100 ppm stays below [`SAME_NS`].
const MAX_SPAN_NS: i64 = 60_000_000_000;
/// Minimum number of events that agree, their minimum share, and their minimum lead over any other
/// offset (chosen here: caches answer some requests without packets).
const MIN_AGREE: usize = 3;
const MIN_SHARE: f64 = 0.6;
const MIN_LEAD: usize = 2;
/// Maximum number of pairs compared (chosen here: 64 MB).
const MAX_PAIRS: usize = 4_000_000;
/// Minimum delay between a request in the application and its packet (chosen here).
const FLOOR_NS: i64 = 3_000_000;

/// Aligns the clock of the times at which an application sent requests to that of a capture's
/// requests. Either may lack some that the other has.
///
/// # Errors
/// Too few requests agree at any offset, or as many at several; or their times are too far apart to
/// ignore the clocks' drift.
pub fn align_requests(captured_ns: &[i64], sent_ns: &[i64], max_offset_ns: i64) -> Aligned {
    let (captured, sent) = (events(captured_ns), events(sent_ns));
    let (Some(first), Some(last)) = (sent.first(), sent.last()) else {
        return Err(Unaligned::Nothing);
    };
    if last.saturating_sub(*first) > MAX_SPAN_NS {
        return Err(Unaligned::Unlike);
    }
    let pairs = pairs(&captured, &sent, max_offset_ns)?;
    let best = densest(&pairs, |_| true).ok_or(Unaligned::Nothing)?;
    if best.events < MIN_AGREE || (best.events as f64) < MIN_SHARE * sent.len() as f64 {
        return Err(Unaligned::Unlike);
    }
    let elsewhere = |offset_ns: i64| offset_ns.abs_diff(best.from_ns) > 2 * SAME_NS.unsigned_abs();
    let rival = densest(&pairs, elsewhere);
    if rival.is_some_and(|other| other.events + MIN_LEAD > best.events) {
        return Err(Unaligned::Ambiguous);
    }
    let within = best.from_ns..=best.from_ns.saturating_add(SAME_NS);
    let agree = pairs.iter().filter(|pair| within.contains(&pair.offset_ns));
    let mut samples: Vec<(i64, i64)> =
        agree.filter_map(|pair| Some((*captured.get(pair.captured)?, pair.offset_ns))).collect();
    samples.sort_unstable();
    let line = through(&samples, FLOOR_NS).ok_or(Unaligned::Unlike)?;
    Ok(ClockLine { n: best.events, ..line })
}

/// Times in order, those together once.
fn events(times_ns: &[i64]) -> Vec<i64> {
    let mut times = times_ns.to_vec();
    times.sort_unstable();
    times.dedup_by(|next, last| next.saturating_sub(*last) < TOGETHER_NS);
    times
}

/// A request of the application and one of the capture that may be the same.
#[derive(Debug, Clone, Copy)]
struct Pair {
    offset_ns: i64,
    sent: usize,
    captured: usize,
}

/// All pairs within the maximum offset, by offset.
fn pairs(captured: &[i64], sent: &[i64], max_offset_ns: i64) -> Result<Vec<Pair>, Unaligned> {
    let mut out = Vec::new();
    for (n, at_ns) in sent.iter().enumerate() {
        let first = captured.partition_point(|ns| *ns < at_ns.saturating_sub(max_offset_ns));
        let until_ns = at_ns.saturating_add(max_offset_ns);
        let near = captured.iter().enumerate().skip(first).take_while(|(_, ns)| **ns <= until_ns);
        for (m, ns) in near {
            out.push(Pair { offset_ns: at_ns.saturating_sub(*ns), sent: n, captured: m });
        }
        if out.len() > MAX_PAIRS {
            return Err(Unaligned::Ambiguous);
        }
    }
    out.sort_unstable_by_key(|pair| pair.offset_ns);
    Ok(out)
}

/// An offset, and how many of the application's events agree with it.
#[derive(Debug, Clone, Copy)]
struct Agreement {
    events: usize,
    from_ns: i64,
}

/// The window of [`SAME_NS`] with the most events among the offsets that `may` be used; of several,
/// the one nearest to no offset.
fn densest(pairs: &[Pair], may: impl Fn(i64) -> bool) -> Option<Agreement> {
    let pairs: Vec<&Pair> = pairs.iter().filter(|pair| may(pair.offset_ns)).collect();
    // Pairs of each event in the window.
    let mut of_event: Vec<u32> = vec![0; pairs.iter().map(|pair| pair.sent + 1).max()?];
    let (mut events, mut first) = (0_usize, 0_usize);
    let mut best: Option<Agreement> = None;
    for pair in &pairs {
        if let Some(n) = of_event.get_mut(pair.sent) {
            *n += 1;
            events += usize::from(*n == 1);
        }
        while let Some(old) = pairs.get(first)
            && pair.offset_ns.saturating_sub(old.offset_ns) > SAME_NS
        {
            if let Some(n) = of_event.get_mut(old.sent) {
                *n -= 1;
                events -= usize::from(*n == 0);
            }
            first += 1;
        }
        let from_ns = pairs.get(first).map_or(pair.offset_ns, |old| old.offset_ns);
        let nearer = |best: &Agreement| from_ns.unsigned_abs() < best.from_ns.unsigned_abs();
        if best.is_none_or(|best| events > best.events || (events == best.events && nearer(&best)))
        {
            best = Some(Agreement { events, from_ns });
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;
    /// Requests of a page, in ms.
    const PAGE: [i64; 9] = [0, 187, 285, 440, 1_554, 1_700, 2_696, 3_020, 4_811];

    fn ns(times: &[i64], offset_ms: i64) -> Vec<i64> {
        times.iter().map(|ms| (ms + offset_ms) * MS).collect()
    }

    #[test]
    fn requests_that_one_of_them_lacks_do_not_move_the_clock() {
        let all = ns(&PAGE, 0);
        for step in [1, 2] {
            for skip in [0, 1] {
                let some: Vec<i64> = PAGE.iter().copied().skip(skip).step_by(step).collect();
                for offset_ms in [-900, 0, 1, 20_000] {
                    let line = align_requests(&all, &ns(&some, offset_ms), 30_000 * MS).unwrap();
                    let off = (line.offset_ns - offset_ms * MS).abs();
                    assert!(off <= line.error_ns && line.error_ns <= 10 * MS, "{line:?}");
                    // Requests that the capture lacks, up to two of five.
                    let line = align_requests(&ns(&some, offset_ms)[1..], &all, 30_000 * MS);
                    if step == 1 {
                        assert_eq!(line.unwrap().offset_ns, -offset_ms * MS);
                    }
                }
            }
        }
    }

    #[test]
    fn few_or_periodic_requests_have_no_line() {
        let all = ns(&PAGE, 0);
        let check = |captured: &[i64], sent: &[i64], expected| {
            assert_eq!(align_requests(captured, sent, 30_000 * MS), Err(expected));
        };
        check(&all, &ns(&[0, 285], 0), Unaligned::Unlike);
        check(&all, &ns(&[0, 33, 111, 222, 3_333], 0), Unaligned::Unlike);
        check(&all, &[], Unaligned::Nothing);
        check(&[], &all, Unaligned::Nothing);
        let periodic: Vec<i64> = (0..20).map(|n| n * 1_000).collect();
        check(&ns(&periodic, 0), &ns(&periodic[5..15], 0), Unaligned::Ambiguous);
        check(&all, &[i64::MIN, 0, i64::MAX], Unaligned::Unlike);
    }
}
