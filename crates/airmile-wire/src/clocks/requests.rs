//! Aligns an application's requests to those that a capture shows.

use super::line::{Aligned, ClockLine, Unaligned, through};

/// Requests in a shorter time are one event (chosen here: a page asks for several objects at once).
const TOGETHER_NS: i64 = 2_000_000;
/// Requests that agree lie within this (chosen here: browsers' times have a precision of a
/// millisecond, and their threads delay packets by some).
const SAME_NS: i64 = 6_000_000;
/// Maximum extent of the requests: a drift of 100 ppm stays below [`SAME_NS`].
const MAX_SPAN_NS: i64 = 60_000_000_000;
/// Waits for the first byte that differ by less agree, too (chosen here).
const SAME_WAIT_NS: i64 = 8_000_000;
/// Minimum score of an offset, minimum share of the events that agree, and minimum lead over the
/// score of any other offset (chosen here: caches answer some requests without packets). An event
/// counts once if it agrees, and twice if its wait does, too.
const MIN_SCORE: usize = 4;
const MIN_SHARE: f64 = 0.6;
const MIN_LEAD: usize = 2;
/// Maximum number of pairs compared (chosen here: 64 MB).
const MAX_PAIRS: usize = 4_000_000;
/// Maximum number of waits of requests at the same time (chosen here).
const MAX_WAITS: usize = 64;
/// Minimum delay between a request in the application and its packet (chosen here).
const FLOOR_NS: i64 = 3_000_000;

/// Aligns the clock of an application's requests to that of a capture's: the time of each, and how
/// long its first byte took. Either may lack some that the other has.
///
/// # Errors
/// Too few requests agree at any offset, or as many at several; or their times are too far apart to
/// ignore the clocks' drift.
pub fn align_requests(captured: &[(i64, i64)], sent: &[(i64, i64)], max_offset_ns: i64) -> Aligned {
    let (captured, sent) = (events(captured), events(sent));
    let (Some(first), Some(last)) = (sent.first(), sent.last()) else {
        return Err(Unaligned::Nothing);
    };
    if last.at_ns.saturating_sub(first.at_ns) > MAX_SPAN_NS {
        return Err(Unaligned::Unlike);
    }
    let pairs = pairs(&captured, &sent, max_offset_ns)?;
    let best = densest(&pairs, |_| true).ok_or(Unaligned::Nothing)?;
    if best.score < MIN_SCORE || (best.events as f64) < MIN_SHARE * sent.len() as f64 {
        return Err(Unaligned::Unlike);
    }
    let elsewhere = |offset_ns: i64| offset_ns.abs_diff(best.from_ns) > 2 * SAME_NS.unsigned_abs();
    let rival = densest(&pairs, elsewhere);
    if rival.is_some_and(|other| other.score + MIN_LEAD > best.score) {
        return Err(Unaligned::Ambiguous);
    }
    let within = best.from_ns..=best.from_ns.saturating_add(SAME_NS);
    let agree = pairs.iter().filter(|pair| within.contains(&pair.offset_ns));
    let mut samples: Vec<(i64, i64)> = agree
        .filter_map(|pair| Some((captured.get(pair.captured)?.at_ns, pair.offset_ns)))
        .collect();
    samples.sort_unstable();
    let line = through(&samples, FLOOR_NS).ok_or(Unaligned::Unlike)?;
    Ok(ClockLine { n: best.events, ..line })
}

/// Requests at about the same time, and their waits.
#[derive(Debug)]
struct Event {
    at_ns: i64,
    waits_ns: Vec<i64>,
}

impl Event {
    fn waits_as(&self, other: &Self) -> bool {
        let near = |own: &i64| {
            other.waits_ns.iter().any(|ns| ns.abs_diff(*own) <= SAME_WAIT_NS.unsigned_abs())
        };
        self.waits_ns.iter().any(near)
    }
}

/// Requests in order, those together as one.
fn events(requests: &[(i64, i64)]) -> Vec<Event> {
    let mut requests = requests.to_vec();
    requests.sort_unstable();
    let mut out: Vec<Event> = Vec::new();
    for (at_ns, wait_ns) in requests {
        match out.last_mut() {
            Some(last) if at_ns.saturating_sub(last.at_ns) < TOGETHER_NS => {
                if last.waits_ns.len() < MAX_WAITS {
                    last.waits_ns.push(wait_ns);
                }
            }
            _ => out.push(Event { at_ns, waits_ns: vec![wait_ns] }),
        }
    }
    out
}

/// A request of the application and one of the capture that may be the same.
#[derive(Debug, Clone, Copy)]
struct Pair {
    offset_ns: i64,
    sent: usize,
    captured: usize,
    /// Their waits agree.
    same_wait: bool,
}

/// All pairs within the maximum offset, by offset.
fn pairs(captured: &[Event], sent: &[Event], max_offset_ns: i64) -> Result<Vec<Pair>, Unaligned> {
    let mut out = Vec::new();
    for (n, own) in sent.iter().enumerate() {
        let from_ns = own.at_ns.saturating_sub(max_offset_ns);
        let until_ns = own.at_ns.saturating_add(max_offset_ns);
        let first = captured.partition_point(|event| event.at_ns < from_ns);
        let near = captured.iter().enumerate().skip(first);
        for (m, event) in near.take_while(|(_, event)| event.at_ns <= until_ns) {
            let offset_ns = own.at_ns.saturating_sub(event.at_ns);
            let same_wait = own.waits_as(event);
            out.push(Pair { offset_ns, sent: n, captured: m, same_wait });
        }
        if out.len() > MAX_PAIRS {
            return Err(Unaligned::Ambiguous);
        }
    }
    out.sort_unstable_by_key(|pair| pair.offset_ns);
    Ok(out)
}

/// An offset, and which of the application's events agree with it.
#[derive(Debug, Clone, Copy)]
struct Agreement {
    events: usize,
    score: usize,
    from_ns: i64,
}

/// Pairs of each event in a window: all, and those with the same wait.
#[derive(Debug, Default)]
struct Window {
    of_event: Vec<(u32, u32)>,
    events: usize,
    same_waits: usize,
}

impl Window {
    fn add(&mut self, pair: &Pair) {
        let Some((all, same)) = self.of_event.get_mut(pair.sent) else { return };
        *all += 1;
        *same += u32::from(pair.same_wait);
        self.events += usize::from(*all == 1);
        self.same_waits += usize::from(pair.same_wait && *same == 1);
    }

    fn remove(&mut self, pair: &Pair) {
        let Some((all, same)) = self.of_event.get_mut(pair.sent) else { return };
        *all -= 1;
        *same -= u32::from(pair.same_wait);
        self.events -= usize::from(*all == 0);
        self.same_waits -= usize::from(pair.same_wait && *same == 0);
    }
}

/// The window of [`SAME_NS`] with the highest score among the offsets that `may` be used; of several,
/// the one nearest to no offset.
fn densest(pairs: &[Pair], may: impl Fn(i64) -> bool) -> Option<Agreement> {
    let pairs: Vec<&Pair> = pairs.iter().filter(|pair| may(pair.offset_ns)).collect();
    let n = pairs.iter().map(|pair| pair.sent + 1).max()?;
    let mut window = Window { of_event: vec![(0, 0); n], ..Window::default() };
    let mut first = 0;
    let mut best: Option<Agreement> = None;
    for pair in &pairs {
        window.add(pair);
        while let Some(old) = pairs.get(first)
            && pair.offset_ns.saturating_sub(old.offset_ns) > SAME_NS
        {
            window.remove(old);
            first += 1;
        }
        let from_ns = pairs.get(first).map_or(pair.offset_ns, |old| old.offset_ns);
        let score = window.events + window.same_waits;
        let nearer = |best: &Agreement| from_ns.unsigned_abs() < best.from_ns.unsigned_abs();
        if best.is_none_or(|best| score > best.score || (score == best.score && nearer(&best))) {
            best = Some(Agreement { events: window.events, score, from_ns });
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

    /// Requests of [`PAGE`], each with a wait of its own.
    fn requests(times: &[i64], offset_ms: i64) -> Vec<(i64, i64)> {
        times.iter().map(|ms| ((ms + offset_ms) * MS, (50 + ms * 7 % 400) * MS)).collect()
    }

    #[test]
    fn requests_that_one_of_them_lacks_do_not_move_the_clock() {
        let all = requests(&PAGE, 0);
        let moved = |times: &[i64], offset_ms: i64| {
            let there = requests(times, 0).into_iter();
            there.map(|(at, wait)| (at + offset_ms * MS, wait)).collect::<Vec<_>>()
        };
        for step in [1, 2, 3] {
            for skip in [0, 1] {
                let some: Vec<i64> = PAGE.iter().copied().skip(skip).step_by(step).collect();
                for offset_ms in [-900, 0, 1, 20_000] {
                    let sent = moved(&some, offset_ms);
                    let line = align_requests(&all, &sent, 30_000 * MS).unwrap();
                    let off = (line.offset_ns - offset_ms * MS).abs();
                    assert!(off <= line.error_ns && line.error_ns <= 10 * MS, "{line:?}");
                }
            }
        }
        // The capture lacks two of nine.
        let line = align_requests(&moved(&PAGE[2..], -900), &all, 30_000 * MS);
        assert_eq!(line.unwrap().offset_ns, 900 * MS);
    }

    #[test]
    fn few_or_periodic_requests_have_no_line() {
        let all = requests(&PAGE, 0);
        let check = |captured: &[(i64, i64)], sent: &[(i64, i64)], expected| {
            assert_eq!(align_requests(captured, sent, 30_000 * MS), Err(expected));
        };
        check(&all, &requests(&[285], 0), Unaligned::Unlike);
        check(&all, &[(0, 0), (285 * MS, 0), (3_000 * MS, 0)], Unaligned::Unlike);
        check(&all, &[], Unaligned::Nothing);
        check(&[], &all, Unaligned::Nothing);
        let periodic = |n: i64| (0..n).map(|n| (n * 1_000 * MS, 50 * MS)).collect::<Vec<_>>();
        check(&periodic(20), &periodic(20)[5..15], Unaligned::Ambiguous);
        check(&all, &[(i64::MIN, i64::MAX), (0, 0), (i64::MAX, i64::MIN)], Unaligned::Unlike);
    }
}
