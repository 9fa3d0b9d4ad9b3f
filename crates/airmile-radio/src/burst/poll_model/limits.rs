//! The base station's poll limits, inferred from the runs between polls.

use super::PollRun;

/// The base station's poll limits as inferred; `None` if there is no sign of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PollLimits {
    /// pollPDU.
    pub poll_pdu: Option<u32>,
    /// pollByte, RLC headers included.
    pub poll_byte: Option<u64>,
}

/// Minimum number of runs that end at a limit (chosen here: natural runs reach the
/// longest run once or twice).
const LIMIT_RUNS: usize = 4;
/// Share of runs that may exceed a limit: a log that lost a PDU, or joined two bearers
/// (chosen here).
const OUTLIERS: f64 = 0.05;
/// Minimum number of runs for an inference (chosen here).
const MIN_RUNS: usize = 8;
/// The minimum pollPDU of the standard (TS 36.331, 6.3.2, PollPDU: p4); shorter recurring
/// runs are single packets, unless more data follows them at once.
const MIN_POLL_PDU: u32 = 4;
/// Likewise for pollByte, whose minimum is 25 kB in LTE (TS 36.331, 6.3.2, PollByte:
/// kB25) and 1 kB in NR (TS 38.331, 6.3.2, PollByte: kB1); under 10 kB (chosen here) a
/// recurring run may be a packet or two of one size, each emptying the queue: then no
/// data follows.
const MIN_POLL_BYTE: u32 = 10_000;
/// pollByte counts data fields, logs count whole PDUs: headers are about 1 %.
const HEADER_SHARE: u64 = 100;

impl PollLimits {
    /// The limits that agree with the complete runs between polls, each with whether more
    /// data followed at once.
    pub(in crate::burst) fn fit<'a>(runs: impl Iterator<Item = (&'a PollRun, bool)>) -> Self {
        let runs = runs.filter(|(r, _)| r.is_new && r.is_complete && r.is_exact);
        let runs: Vec<(PollRun, bool)> = runs.map(|(run, followed)| (*run, followed)).collect();
        if runs.len() < MIN_RUNS {
            return Self::default();
        }
        // An existing limit is where the longest runs end, with few exceptions. The limit
        // that explains more runs is searched first, the other in the rest.
        let (pdus, bytes) = (pdu_limit(&runs), byte_limit(&runs));
        let at_bytes = |r: &PollRun| bytes.is_some_and(|limit| reaches(r.bytes.into(), limit));
        let at_pdus = |r: &PollRun| pdus.is_some_and(|limit| r.pdus >= limit);
        let n = |is: &dyn Fn(&PollRun) -> bool| runs.iter().filter(|(r, _)| is(r)).count();
        let (by_bytes, by_pdus) = (n(&at_bytes), n(&at_pdus));
        let rest_bytes = n(&|r| at_bytes(r) && !at_pdus(r));
        let rest_pdus = n(&|r| at_pdus(r) && !at_bytes(r));
        let (by_bytes, by_pdus) = if by_pdus >= by_bytes && by_pdus >= LIMIT_RUNS {
            (rest_bytes, by_pdus)
        } else if by_bytes >= LIMIT_RUNS {
            (by_bytes, rest_pdus)
        } else {
            (by_bytes, by_pdus)
        };
        Self {
            poll_pdu: pdus.filter(|_| by_pdus >= LIMIT_RUNS),
            poll_byte: bytes.filter(|_| by_bytes >= LIMIT_RUNS),
        }
    }

    /// Whether a counter, and not an empty buffer, can have set the poll.
    pub(in crate::burst) fn explains(&self, run: &PollRun) -> bool {
        let (pdus, bytes) = (u32::from(run.tied_bytes > 0), u64::from(run.tied_bytes));
        self.poll_pdu.is_some_and(|limit| run.pdus + pdus >= limit)
            || self.poll_byte.is_some_and(|limit| reaches(u64::from(run.bytes) + bytes, limit))
    }
}

/// Whether more data followed enough of these runs at once to show that their polls did
/// not mark the end of the queue.
fn mostly_followed<'a>(runs: impl Iterator<Item = &'a (PollRun, bool)>) -> bool {
    let (n, followed) = runs.fold((0, 0), |(n, f), run| (n + 1, f + usize::from(run.1)));
    2 * followed > n
}

/// The number of PDUs of the longest runs, apart from [`OUTLIERS`].
fn pdu_limit(runs: &[(PollRun, bool)]) -> Option<u32> {
    let mut lengths: Vec<u32> = runs.iter().map(|(run, _)| run.pdus).collect();
    lengths.sort_unstable_by(|a, b| b.cmp(a));
    let mut longer = 0;
    for same in lengths.chunk_by(|a, b| a == b) {
        let limit = *same.first()?;
        let few_longer = longer as f64 <= OUTLIERS * same.len() as f64;
        if same.len() >= LIMIT_RUNS && few_longer {
            let at_limit = runs.iter().filter(|(run, _)| run.pdus == limit);
            return (limit >= MIN_POLL_PDU || limit > 1 && mostly_followed(at_limit))
                .then_some(limit);
        }
        longer += same.len();
    }
    None
}

/// The bytes that the longest runs reach with their last PDU, apart from [`OUTLIERS`].
fn byte_limit(runs: &[(PollRun, bool)]) -> Option<u64> {
    let mut before: Vec<u32> = runs.iter().map(|(run, _)| run.bytes_before).collect();
    before.sort_unstable_by(|a, b| b.cmp(a));
    // Sorted, so that the runs at each of these limits are counted by a search.
    let mut bytes: Vec<u32> = runs.iter().map(|(run, _)| run.bytes).collect();
    bytes.sort_unstable_by(|a, b| b.cmp(a));
    let most = (OUTLIERS * runs.len() as f64) as usize;
    before.iter().take(most + 1).enumerate().find_map(|(outliers, &limit)| {
        let at_limit =
            || runs.iter().filter(move |(run, _)| reaches(run.bytes.into(), limit.into()));
        let n = bytes.partition_point(|&bytes| reaches(bytes.into(), limit.into()));
        let shows = limit > 0 && n >= LIMIT_RUNS && outliers as f64 <= OUTLIERS * n as f64;
        let forced = || limit >= MIN_POLL_BYTE || mostly_followed(at_limit());
        (shows && forced()).then_some(limit.into())
    })
}

const fn reaches(bytes: u64, limit: u64) -> bool {
    bytes.saturating_add(limit / HEADER_SHARE) >= limit
}

#[cfg(test)]
mod tests {
    use super::super::PduLite;
    use super::super::tests::{pdu, runs_of};
    use super::*;

    #[test]
    fn finds_poll_pdu_across_the_wrap_of_sn() {
        // pollPDU 8 over 2048 PDUs, and a natural end after 3 PDUs at the end.
        let mut stream: Vec<PduLite> =
            (0..2048).map(|i| pdu(i % 1024, 100 + i % 7, i % 8 == 7)).collect();
        stream.extend([pdu(0, 90, false), pdu(1, 90, false), pdu(2, 40, true)]);
        let runs = runs_of(&stream);
        let limits = PollLimits::fit(runs.iter().map(|run| (run, false)));
        assert_eq!(limits.poll_pdu, Some(8));
        assert!(limits.explains(&runs[5]));
        assert!(!limits.explains(runs.last().unwrap()));
    }

    #[test]
    fn finds_poll_byte() {
        let (mut bytes, mut stream) = (0, Vec::new());
        for sn in 0..400_u32 {
            let size = 700 + sn * 37 % 900;
            bytes += size;
            stream.push(pdu(sn, size, bytes >= 25_000));
            bytes = if bytes >= 25_000 { 0 } else { bytes };
        }
        let runs = runs_of(&stream);
        let limits = PollLimits::fit(runs.iter().map(|run| (run, false)));
        let limit = limits.poll_byte.unwrap();
        assert!((24_000..=25_000).contains(&limit), "{limit}");
        assert_eq!(limits.poll_pdu, None);
        assert!(runs.iter().all(|run| limits.explains(run)));
    }

    /// NR's pollByte may be 2 kB, and simulators have less than LTE's: data follows at once.
    #[test]
    fn finds_a_small_poll_byte_where_data_follows() {
        let (mut bytes, mut stream) = (0, Vec::new());
        for sn in 0..400_u32 {
            let size = 700 + sn * 37 % 900;
            bytes += size;
            stream.push(pdu(sn, size, bytes >= 4_000));
            bytes = if bytes >= 4_000 { 0 } else { bytes };
        }
        let runs = runs_of(&stream);
        let limits = |followed| PollLimits::fit(runs.iter().map(|run| (run, followed)));
        let limit = limits(true).poll_byte.unwrap();
        assert!((3_800..=4_000).contains(&limit), "{limit}");
        assert_eq!(limits(false).poll_byte, None);
    }

    /// A single run lengthened by a lost PDU or another bearer does not set the limits.
    #[test]
    fn one_run_past_a_limit_is_an_outlier() {
        let mut stream: Vec<PduLite> =
            (0..1_000).map(|i| pdu(i, 100 + i % 7, i % 8 == 7)).collect();
        stream.extend((1_000..1_012).map(|i| pdu(i, 100, i == 1_011)));
        let limits = PollLimits::fit(runs_of(&stream).iter().map(|run| (run, false)));
        assert_eq!(limits.poll_pdu, Some(8));
    }

    #[test]
    fn natural_ends_of_differing_length_show_no_limit() {
        let mut stream = Vec::new();
        let mut sn = 0;
        for burst in 1..40_u32 {
            for i in 0..burst {
                stream.push(pdu(sn % 1024, 1000, i + 1 == burst));
                sn += 1;
            }
        }
        assert_eq!(
            PollLimits::fit(runs_of(&stream).iter().map(|run| (run, false))),
            PollLimits::default()
        );
    }

    #[test]
    fn lone_packets_of_one_size_are_not_forced_polls() {
        // Every PDU empties the queue: neither a count of 1 nor its bytes are limits.
        let stream: Vec<PduLite> = (0..100).map(|sn| pdu(sn, 60, true)).collect();
        assert_eq!(
            PollLimits::fit(runs_of(&stream).iter().map(|run| (run, false))),
            PollLimits::default()
        );
        // The same of packets that two blocks carry.
        let stream: Vec<PduLite> =
            (0..100).map(|sn| pdu(sn, if sn % 2 == 0 { 1_430 } else { 60 }, sn % 2 == 1)).collect();
        assert_eq!(
            PollLimits::fit(runs_of(&stream).iter().map(|run| (run, false))),
            PollLimits::default()
        );
    }
}
