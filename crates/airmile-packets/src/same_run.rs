//! Whether an application's log and a capture show the same transfers.

use airmile_model::{AppTransfer, Direction};
use airmile_wire::clocks::{Aligned, Arrivals};

/// Data passes within this of the log's times (chosen here: as for the packets of a request).
const NEAR_NS: i64 = 60_000_000;
/// Waits for a first byte that differ by less are the same (chosen here).
const SAME_WAIT_NS: i64 = 20_000_000;
/// Maximum time of the handshakes that a log may count as the wait for the first byte (chosen here: a
/// SYN lost twice, and a second for round trips; RFC 6298, 2.1 and 5.5).
const HANDSHAKES_NS: i64 = 4_000_000_000;
/// Bin width of the bytes, and step of the search over offsets (chosen here).
const BIN_NS: i64 = 50_000_000;
/// Maximum offset of the search, in steps: 30 s, as for clocks.
const MAX_STEPS: i64 = 600;
/// Maximum length compared, in bins: 83 minutes from the log's first download (chosen here).
const MAX_BINS: usize = 100_000;
/// Number of downloads compared, the largest ones (chosen here).
const MAX_DOWNLOADS: usize = 200;
/// Minimum bytes compared (chosen here).
const MIN_BYTES: u64 = 100_000;
/// From this share of the log's bytes on, the capture shows its downloads (chosen here: one run of
/// the lab has 1.0, two have 0.3 to 1.0).
const SAME_BYTES: f64 = 0.85;
/// A log with a smaller share of its requests in the capture may be of another run (chosen here).
const SAME_REQUESTS: f64 = 0.5;

/// Why a log and a capture, whose requests do not determine the offset between the clocks, may be of
/// different runs; `requests` are the capture's, with the wait for the first byte of each.
///
/// It is no proof: a capture with a filter has a part of the log's transfers.
#[must_use]
pub fn misfit(
    transfers: &[AppTransfer],
    arrivals: &Arrivals,
    requests: &[(i64, i64)],
    line: &Aligned,
) -> Option<String> {
    let at = |ns: i64| line.as_ref().map_or(ns, |line| line.to_reference(ns));
    let (start_ns, end_ns) = arrivals.start_ns().zip(arrivals.end_ns())?;
    let covered = |one: &&AppTransfer| {
        at(one.end_ns) >= start_ns - NEAR_NS && at(one.start_ns) <= end_ns.saturating_add(NEAR_NS)
    };
    if !transfers.iter().any(|one| covered(&one)) {
        return Some("none of its transfers lies in the capture's time".to_owned());
    }
    let downloads = downloads(transfers, at);
    let arrived = Arrived::new(arrivals, (start_ns, end_ns), &downloads);
    let share = |steps: i64| arrived.as_ref()?.share(&downloads, steps * BIN_NS);
    let error_ns = line.as_ref().map_or(0, |line| line.error_ns);
    let near = (error_ns / BIN_NS).min(MAX_STEPS);
    let best = |steps: i64, min_bytes: u64| {
        let each = (-steps..=steps).filter_map(share).filter(|(_, all)| *all >= min_bytes);
        each.map(|(found, all)| found as f64 / all as f64).reduce(f64::max)
    };
    let half = downloads.iter().map(|one| one.bytes).fold(0, u64::saturating_add) / 2;
    let (here, anywhere) = (best(near, MIN_BYTES), best(MAX_STEPS, half.max(MIN_BYTES)));
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    if let Some(most) = anywhere.filter(|share| *share < SAME_BYTES) {
        let most = percent(most);
        return Some(format!(
            "at most {most} of the bytes that the log received are in the capture, at any clock \
             offset up to 30 s"
        ));
    }
    if let Some(share) = here.filter(|share| *share < SAME_BYTES) {
        let share = percent(share);
        return Some(format!(
            "only {share} of the bytes that the log received are in the capture at that time"
        ));
    }
    let (same, n) = same_requests(transfers.iter().filter(covered), requests, at, error_ns);
    (n > 0 && (same as f64) < SAME_REQUESTS * n as f64)
        .then(|| format!("of {n} requests of the log, the capture shows {same} at that time"))
}

/// The log's requests over TCP with a known wait, and how many of them the capture shows.
fn same_requests<'a>(
    transfers: impl Iterator<Item = &'a AppTransfer>,
    requests: &[(i64, i64)],
    at: impl Fn(i64) -> i64,
    error_ns: i64,
) -> (usize, usize) {
    let over_quic = |one: &AppTransfer| {
        one.protocol.as_ref().is_some_and(|p| p.contains("h3") || p.contains("quic"))
    };
    if requests.is_empty() {
        return (0, 0);
    }
    let mut requests = requests.to_vec();
    requests.sort_unstable();
    let sent = transfers.filter(|one| !over_quic(one));
    let sent: Vec<_> =
        sent.filter_map(|one| Some((at(one.sent_ns()), one.phases.wait_ns?))).collect();
    let near_ns = NEAR_NS.saturating_add(error_ns);
    let same = |a: i64, b: i64| a.abs_diff(b) <= SAME_WAIT_NS.unsigned_abs();
    let shown = |(sent_ns, wait_ns): &&(i64, i64)| {
        let first = requests.partition_point(|one| one.0 < sent_ns.saturating_sub(near_ns));
        let first_byte_ns = sent_ns.saturating_add(*wait_ns);
        let later_ns = (*wait_ns).clamp(0, HANDSHAKES_NS);
        let until_ns = sent_ns.saturating_add(near_ns.saturating_add(later_ns));
        let mut near = requests.iter().skip(first).take_while(|one| one.0 <= until_ns);
        // The log's wait may include the handshakes, before which the capture has no request.
        near.any(|(at_ns, for_ns)| {
            let is_near = at_ns.abs_diff(*sent_ns) <= near_ns.unsigned_abs();
            let is_later = (0..=HANDSHAKES_NS).contains(&wait_ns.saturating_sub(*for_ns));
            is_near && same(*for_ns, *wait_ns)
                || is_later && same(at_ns.saturating_add(*for_ns), first_byte_ns)
        })
    };
    (sent.iter().filter(shown).count(), sent.len())
}

/// A download whose bytes are known, on the capture's clock.
struct Download {
    from_ns: i64,
    to_ns: i64,
    bytes: u64,
}

/// The largest downloads of a log, by end.
fn downloads(transfers: &[AppTransfer], at: impl Fn(i64) -> i64) -> Vec<Download> {
    let known = transfers.iter().filter(|one| {
        one.dir != Some(Direction::Ul) && !one.failed && !one.unfinished && !one.bytes_decoded
    });
    let each = known.filter_map(|one| {
        let bytes = one.bytes.filter(|bytes| *bytes > 0)?;
        Some(Download { from_ns: at(one.sent_ns()), to_ns: at(one.end_ns), bytes })
    });
    let mut all: Vec<Download> = each.collect();
    all.sort_by_key(|one| std::cmp::Reverse(one.bytes));
    all.truncate(MAX_DOWNLOADS);
    all.sort_by_key(|one| one.to_ns);
    all
}

/// Bytes of a capture, in bins, where the downloads can be.
struct Arrived {
    start_ns: i64,
    bins: Vec<u64>,
}

impl Arrived {
    /// From and until the maximum offset of the search around the downloads.
    fn new(
        arrivals: &Arrivals,
        (start_ns, end_ns): (i64, i64),
        downloads: &[Download],
    ) -> Option<Self> {
        const REACH_NS: i64 = MAX_STEPS * BIN_NS + NEAR_NS;
        let from_ns = downloads.iter().map(|one| one.from_ns).min()?.saturating_sub(REACH_NS);
        let to_ns = downloads.iter().map(|one| one.to_ns).max()?.saturating_add(REACH_NS);
        let skipped = from_ns.saturating_sub(start_ns).max(0) / BIN_NS;
        let (start_ns, end_ns) = (start_ns.saturating_add(skipped * BIN_NS), end_ns.min(to_ns));
        let n = usize::try_from(end_ns.saturating_sub(start_ns) / BIN_NS).ok()?;
        let mut bins = vec![0; n.saturating_add(1).min(MAX_BINS)];
        for (at, bytes) in arrivals.points() {
            let bin = usize::try_from(at.saturating_sub(start_ns) / BIN_NS).ok();
            if let Some(sum) = bin.and_then(|bin| bins.get_mut(bin)) {
                *sum += u64::from(*bytes);
            }
        }
        Some(Self { start_ns, bins })
    }

    /// Bytes of the downloads in the capture's time, later by an offset: those that arrived during
    /// their download, and all. A byte counts for the download that ends first.
    fn share(&self, downloads: &[Download], later_ns: i64) -> Option<(u64, u64)> {
        let (mut left, mut found, mut all) = (self.bins.clone(), 0, 0);
        let bin = |ns: i64| {
            let since = ns.saturating_add(later_ns).saturating_sub(self.start_ns);
            usize::try_from(since.div_euclid(BIN_NS)).ok()
        };
        for one in downloads {
            let inside = bin(one.from_ns.saturating_add(NEAR_NS)).zip(bin(one.to_ns));
            let Some((_, to)) = inside.filter(|(_, to)| *to < left.len()) else { continue };
            let from = bin(one.from_ns.saturating_sub(NEAR_NS)).unwrap_or(0).min(to);
            let last = bin(one.to_ns.saturating_add(NEAR_NS)).unwrap_or(to).min(left.len() - 1);
            let mut missing = one.bytes;
            for bytes in left.get_mut(from..=last).into_iter().flatten() {
                let taken = missing.min(*bytes);
                (*bytes, missing) = (*bytes - taken, missing - taken);
                if missing == 0 {
                    break;
                }
            }
            found += one.bytes - missing;
            all += one.bytes;
        }
        (all > 0).then_some((found, all))
    }
}

#[cfg(test)]
mod tests {
    use airmile_wire::clocks::Unaligned;

    use super::*;

    const S: i64 = 1_000_000_000;
    const MS: i64 = 1_000_000;

    /// Twenty downloads of 100 kB, at irregular distances from a time on; each waits 100 ms for its
    /// first byte and receives for 200 ms.
    fn log(start_ns: i64) -> Vec<AppTransfer> {
        let mut at_ns = start_ns;
        let each = (0..20_i64).map(|n| {
            at_ns += (400 + n * n % 7 * 150) * MS;
            let mut one = AppTransfer::new(n.to_string(), at_ns, at_ns + 300 * MS);
            one.bytes = Some(100_000);
            one.phases.wait_ns = Some(100 * MS);
            one
        });
        each.collect()
    }

    /// What a capture shows of such a log: bytes, and requests with the wait for the first byte.
    fn capture<'a>(log: impl Iterator<Item = &'a AppTransfer>) -> (Arrivals, Vec<(i64, i64)>) {
        let (mut arrivals, mut requests) = (Arrivals::new(), Vec::new());
        for one in log {
            requests.push((one.start_ns, 100 * MS));
            (0..20).for_each(|n| arrivals.add(one.start_ns + (100 + n * 10) * MS, 5_000));
        }
        (arrivals, requests)
    }

    const NOT_ALIGNED: Aligned = Err(Unaligned::Unlike);

    fn doubt(log: &[AppTransfer], (arrivals, requests): &(Arrivals, Vec<(i64, i64)>)) -> String {
        misfit(log, arrivals, requests, &NOT_ALIGNED).unwrap_or_default()
    }

    #[test]
    fn a_capture_of_the_same_run_fits() {
        let log = log(0);
        assert_eq!(doubt(&log, &capture(log.iter())), "");
    }

    /// A log without phases of its connections counts handshakes as the wait for the first byte.
    #[test]
    fn a_wait_with_the_handshakes_is_the_same() {
        let mut log = log(0);
        let seen = capture(log.iter());
        for one in &mut log {
            one.start_ns -= 130 * MS;
            one.phases.wait_ns = Some(230 * MS);
        }
        assert_eq!(doubt(&log, &seen), "");
    }

    /// A long wait of another run ends close to the answer to some request, which came soon.
    #[test]
    fn long_waits_are_no_handshakes() {
        let mut log = log(0);
        let (arrivals, mut requests) = capture(log.iter());
        log.iter_mut().for_each(|one| one.phases.wait_ns = Some(6 * S));
        requests.extend((0..2_000).map(|n| (n * 30 * MS, 100 * MS)));
        let found = doubt(&log, &(arrivals, requests));
        assert_eq!(found, "of 20 requests of the log, the capture shows 0 at that time");
    }

    /// Half of the bytes at the right offset; at others, up to half of the downloads lie outside the
    /// capture and do not count, which changes the share a little.
    #[test]
    fn a_filter_that_leaves_half_of_the_bytes_is_stated() {
        let log = log(0);
        let found = doubt(&log, &capture(log.iter().step_by(2)));
        assert!(found.starts_with("at most 5"), "{found}");
        // Few missing bytes are no reason for doubt.
        assert_eq!(doubt(&log, &capture(log.iter().skip(2))), "");
    }

    /// A late capture has none of the downloads before it, which do not count.
    #[test]
    fn a_capture_that_starts_late_or_ends_early_fits() {
        let log = log(0);
        for part in [&log[8..], &log[..12]] {
            assert_eq!(doubt(&log, &capture(part.iter())), "");
        }
        let (late, _) = capture(log.iter());
        let before = vec![AppTransfer::new("0".into(), -9 * S, -8 * S)];
        let none = doubt(&before, &(late, Vec::new()));
        assert!(none.starts_with("none of its transfers"), "{none}");
    }

    /// A capture's requests are those over TCP: HTTP/3 has none to compare.
    #[test]
    fn requests_over_quic_are_not_missing() {
        let mut log = log(0);
        let (arrivals, mut requests) = capture(log.iter());
        requests.iter_mut().for_each(|one| one.1 += 300 * MS);
        let of_tcp = doubt(&log, &(arrivals.clone(), requests.clone()));
        assert_eq!(of_tcp, "of 20 requests of the log, the capture shows 0 at that time");
        log.iter_mut().for_each(|one| one.protocol = Some("h3".into()));
        assert_eq!(doubt(&log, &(arrivals, requests)), "");
    }

    /// The third hour of a capture is compared as the first one.
    #[test]
    fn the_time_of_the_log_is_compared_in_a_long_capture() {
        let mut log = log(9_000 * S);
        let (own, requests) = capture(log.iter());
        let mut arrivals = Arrivals::new();
        arrivals.add(0, 1_000);
        assert!(arrivals.append(&own));
        let found = (arrivals, requests);
        assert_eq!(doubt(&log, &found), "");
        log.iter_mut().for_each(|one| one.bytes = Some(400_000));
        let other = doubt(&log, &found);
        assert!(other.starts_with("at most 2"), "{other}");
    }
}
