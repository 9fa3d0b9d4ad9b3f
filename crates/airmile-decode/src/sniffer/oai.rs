//! MAC statistics that an OpenAirInterface gNB prints every 128 frames, by its documentation
//! ("MAC usage") and public excerpts: counters since a user's attachment, without slots and
//! queues. They were not tried on a whole real file.
//!
//! ```text
//! [NR_MAC]   Frame.Slot 128.0
//! UE RNTI 2460 CU-UE-ID 2 in-sync PH 28 dB PCMAX 24 dBm, average RSRP -74 (8 meas)
//! UE 2460: dlsch_rounds 32917/5113/1504/560, dlsch_errors 211, pucch0_DTX 1385, BLER 0.19 MCS (1) 23
//! UE 2460: ulsch_rounds 3756/353/182/179, ulsch_errors 170, ulsch_DTX 285, BLER 0.33 MCS (1) 27
//! UE 2460: LCID 4: TX     1526169592 RX          16152 bytes
//! ```
//!
//! `dlsch_rounds` counts transmissions by HARQ round, `dlsch_errors` blocks lost after the last.

use std::collections::BTreeMap;

/// LCIDs of data radio bearers (signalling has 1 to 3; TS 38.321, table 6.2.1-1).
const DATA_LCIDS: std::ops::RangeInclusive<u8> = 4..=32;
const FRAMES: u64 = 1_024;
const FRAMES_PER_SECOND: f64 = 100.0;

/// A line of the statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OaiLine {
    Frame(u64),
    /// Counters of a user.
    Counters {
        rnti: u16,
        what: Counter,
    },
}

/// Counters of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Counter {
    /// First transmissions, later ones, blocks lost; of the downlink.
    Dl([u64; 3]),
    /// Of the uplink.
    Ul([u64; 3]),
    /// Bytes of a data bearer, down and up.
    Bytes { lcid: u8, bytes: [u64; 2] },
}

/// Whether a line is of the statistics.
pub(super) fn is_statistics(line: &str) -> bool {
    matches!(line_of(line), Some(OaiLine::Counters { what: Counter::Dl(_), .. }))
}

/// Reads a line; `None` for any other one.
pub(super) fn line_of(line: &str) -> Option<OaiLine> {
    if let Some((_, rest)) = line.split_once("Frame.Slot ") {
        let frame = rest.split_once('.')?.0.trim().parse().ok()?;
        return (frame < FRAMES).then_some(OaiLine::Frame(frame));
    }
    let (_, rest) = line.split_once("UE ")?;
    let (rnti, rest) = rest.split_once(": ")?;
    let rnti = u16::from_str_radix(rnti, 16).ok()?;
    let what = if let Some(rest) = rest.strip_prefix("dlsch_rounds ") {
        Counter::Dl(rounds(rest, "dlsch_errors ")?)
    } else if let Some(rest) = rest.strip_prefix("ulsch_rounds ") {
        Counter::Ul(rounds(rest, "ulsch_errors ")?)
    } else {
        let (lcid, rest) = rest.strip_prefix("LCID ")?.split_once(": TX")?;
        let (tx, rest) = rest.trim_start().split_once(" RX")?;
        let rx = rest.split_whitespace().next()?;
        let lcid = lcid.parse().ok().filter(|lcid| DATA_LCIDS.contains(lcid))?;
        Counter::Bytes { lcid, bytes: [tx.trim().parse().ok()?, rx.parse().ok()?] }
    };
    Some(OaiLine::Counters { rnti, what })
}

/// First transmissions, later ones and errors of `a/b/c/d, NAMEe, ...`.
fn rounds(text: &str, errors: &str) -> Option<[u64; 3]> {
    let (counts, rest) = text.split_once(',')?;
    let mut counts = counts.split('/').map(|count| count.trim().parse::<u64>().ok());
    let first = counts.next()??;
    let later = counts.try_fold(0_u64, |sum, count| sum.checked_add(count?))?;
    let errors = rest.trim_start().strip_prefix(errors)?.split([',', ' ']).next()?;
    Some([first, later, errors.parse().ok()?])
}

/// Frames between two reports of the statistics.
const REPORT_FRAMES: u64 = 128;

/// Increases of counters over the intervals that are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Increase<const N: usize> {
    last: Option<[u64; N]>,
    /// Since the report before this one.
    step: [u64; N],
    sum: [u64; N],
}

impl<const N: usize> Default for Increase<N> {
    fn default() -> Self {
        Self { last: None, step: [0; N], sum: [0; N] }
    }
}

impl<const N: usize> Increase<N> {
    /// Takes the counters of a report; `false` if one fell: they began again, or wrapped.
    fn push(&mut self, now: [u64; N]) -> bool {
        let last = self.last.replace(now).unwrap_or(now);
        let rises = now.iter().zip(last).all(|(now, last)| *now >= last);
        let steps = self.step.iter_mut().zip(now).zip(last);
        steps.for_each(|((step, now), last)| *step = now.saturating_sub(last));
        rises
    }

    /// Ends the interval; `known`: its increases count.
    fn end(&mut self, known: bool) {
        for (sum, step) in self.sum.iter_mut().zip(&mut self.step) {
            let step = std::mem::take(step);
            *sum = sum.saturating_add(if known { step } else { 0 });
        }
    }
}

/// The content of the statistics, in words.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct OaiSummary {
    /// Reports of users.
    pub(super) rows: u64,
    frame: Option<u64>,
    /// Frames since the report before this one.
    step_frames: u64,
    elapsed_frames: u64,
    /// A counter fell since the report before this one.
    restarted: bool,
    restarts: u64,
    /// Intervals in which reports are missing.
    gaps: u64,
    dl: BTreeMap<u16, Increase<3>>,
    ul: BTreeMap<u16, Increase<3>>,
    bytes: BTreeMap<(u16, u8), Increase<2>>,
}

impl OaiSummary {
    pub(super) fn push(&mut self, line: OaiLine) {
        let rises = match line {
            OaiLine::Frame(frame) => {
                self.end_interval();
                // The first report has no interval before it; over a gap, frames wrap.
                self.step_frames = self.frame.map_or(0, |last| (frame + FRAMES - last) % FRAMES);
                let missing = self.frame.is_some() && self.step_frames != REPORT_FRAMES;
                self.gaps += u64::from(missing);
                self.frame = Some(frame);
                true
            }
            OaiLine::Counters { rnti, what: Counter::Dl(counts) } => {
                self.rows += 1;
                self.dl.entry(rnti).or_default().push(counts)
            }
            OaiLine::Counters { rnti, what: Counter::Ul(counts) } => {
                self.ul.entry(rnti).or_default().push(counts)
            }
            OaiLine::Counters { rnti, what: Counter::Bytes { lcid, bytes } } => {
                self.bytes.entry((rnti, lcid)).or_default().push(bytes)
            }
        };
        self.restarted |= !rises;
    }

    /// Counts the interval before the current report, if its length and its increases are known.
    fn end_interval(&mut self) {
        let known = self.step_frames == REPORT_FRAMES && !self.restarted;
        self.elapsed_frames += if known { self.step_frames } else { 0 };
        self.restarts += u64::from(std::mem::take(&mut self.restarted));
        self.dl.values_mut().chain(self.ul.values_mut()).for_each(|one| one.end(known));
        self.bytes.values_mut().for_each(|one| one.end(known));
        self.step_frames = 0;
    }

    /// A description.
    pub(super) fn words(&self) -> String {
        let mut all = self.clone();
        all.end_interval();
        all.describe()
    }

    fn describe(&self) -> String {
        let seconds = self.elapsed_frames as f64 / FRAMES_PER_SECOND;
        let rate = |dir: usize| {
            let bytes = self.bytes.values().map(|one| one.sum[dir]);
            let bytes = bytes.fold(0_u64, u64::saturating_add);
            bytes as f64 * 8.0 / 1e3 / seconds.max(f64::MIN_POSITIVE)
        };
        let blocks = |of: &BTreeMap<u16, Increase<3>>, n: usize| {
            of.values().map(|one| one.sum[n]).fold(0_u64, u64::saturating_add)
        };
        let share = |of, n| 100.0 * blocks(of, n) as f64 / blocks(of, 0).max(1) as f64;
        let found = if self.elapsed_frames == 0 {
            "a rate needs two reports in a row".to_owned()
        } else {
            let rates = if self.bytes.is_empty() {
                "no counts of bytes".to_owned()
            } else {
                format!("downlink {:.0} kbit/s, uplink {:.0} kbit/s", rate(0), rate(1))
            };
            format!(
                "{rates}; for 100 downlink blocks {:.1} \
                 retransmissions, {:.1} blocks lost, for 100 uplink blocks {:.1} and {:.1}",
                share(&self.dl, 1),
                share(&self.dl, 2),
                share(&self.ul, 1),
                share(&self.ul, 2),
            )
        };
        let left_out = match (self.gaps, self.restarts) {
            (0, 0) => String::new(),
            (gaps, restarts) => format!(
                ". Left out: {gaps} interval{} with missing reports, {restarts} in which counters \
                 began again",
                if gaps == 1 { "" } else { "s" }
            ),
        };
        let users = if self.dl.len() == 1 { "user" } else { "users" };
        format!(
            "MAC statistics of an OpenAirInterface gNB, {} {users}, {seconds:.0} s by their frames: \
             {found}{left_out}. They have no slots and no queue: whether data waited needs the phone's \
             modem log, or its packets without this log (`airmile diagnose phone.pcapng`)",
            self.dl.len(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(text: &str) -> OaiSummary {
        let mut summary = OaiSummary::default();
        text.lines().filter_map(line_of).for_each(|line| summary.push(line));
        summary
    }

    const REPORTS: &str = "\
[NR_MAC]   Frame.Slot 896.0
UE RNTI 2460 CU-UE-ID 2 in-sync PH 28 dB PCMAX 24 dBm, average RSRP -74 (8 meas)
UE 2460: CQI 15, RI 2, PMI (14,1)
UE 2460: dlsch_rounds 1000/50/10/0, dlsch_errors 1, pucch0_DTX 1385, BLER 0.19557 MCS (1) 23
UE 2460: ulsch_rounds 300/3/0/0, ulsch_errors 0, ulsch_DTX 285, BLER 0.33021 MCS (1) 27
UE 2460: LCID 1: TX            651 RX           3031 bytes
UE 2460: LCID 4: TX        1000000 RX          16152 bytes
2026-07-06 22:41:16 [NR_MAC]   Frame.Slot 0.0
UE 2460: dlsch_rounds 1400/80/20/0, dlsch_errors 3, pucch0_DTX 1385 (SNR 19.8+0.2 dB), BLER 0.1
UE 2460: ulsch_rounds 400/4/0/0, ulsch_errors 1, ulsch_DTX 285, BLER 0.33021 MCS (1) 27
UE 2460: LCID 4: TX        2600000 RX          32152 bytes
";

    #[test]
    fn reports_are_summed_up() {
        let words = summary(REPORTS).words();
        // 128 frames: 1.28 s; 1,600,000 and 16,000 bytes; 40 of 400 blocks again, 2 lost.
        assert!(words.contains("1 user, 1 s by their frames: downlink 10000 kbit/s"), "{words}");
        assert!(words.contains("uplink 100 kbit/s"), "{words}");
        assert!(words.contains("100 downlink blocks 10.0 retransmissions, 0.5 blocks lost"));
        assert!(words.contains("100 uplink blocks 1.0 and 1.0"), "{words}");
        assert_eq!(REPORTS.lines().filter(|line| is_statistics(line)).count(), 2);
    }

    /// Reports at frames, with the bytes of one user.
    fn reports(of: &[(u64, u64)]) -> String {
        let each = of.iter().map(|(frame, bytes)| {
            format!(
                "[NR_MAC]   Frame.Slot {frame}.0\n\
                 UE 2460: dlsch_rounds 10/0/0/0, dlsch_errors 0, pucch0_DTX 0\n\
                 UE 2460: LCID 4: TX {bytes} RX 0 bytes\n"
            )
        });
        summary(&each.collect::<String>()).words()
    }

    /// 1,600,000 bytes in each interval of 1.28 s are 10 Mbit/s.
    #[test]
    fn restarts_and_gaps_do_not_change_the_rate() {
        let mb = |n: u64| n * 1_600_000;
        for (of, expected) in [
            (
                &[(0, 0), (128, mb(1)), (256, mb(2))][..],
                "3 s by their frames: downlink 10000 kbit/s",
            ),
            // A restart, and a counter of 32 bits that wraps.
            (&[(0, mb(9)), (128, mb(10)), (256, mb(2)), (384, mb(3))], "downlink 10000 kbit/s"),
            (
                &[(0, mb(9)), (128, mb(10)), (256, mb(2)), (384, mb(3))],
                "0 intervals with missing reports, 1 in which counters",
            ),
            // Two reports are missing, or more than 1,024 frames.
            (&[(0, 0), (128, mb(1)), (512, mb(90)), (640, mb(91))], "downlink 10000 kbit/s"),
            (&[(0, 0), (128, mb(1)), (512, mb(90)), (640, mb(91))], "1 interval with missing"),
            (&[(0, 0), (512, mb(90))], "a rate needs two reports in a row"),
        ] {
            let words = reports(of);
            assert!(words.contains(expected), "{words}");
        }
    }

    #[test]
    fn other_lines_are_left_alone() {
        for line in [
            "",
            "UE RNTI 2460 CU-UE-ID 2 in-sync PH 28 dB",
            "[NR_MAC]   Frame.Slot 1024.0",
            "UE zz: dlsch_rounds 1/0/0/0, dlsch_errors 0",
            "UE 2460: dlsch_rounds 1/x/0/0, dlsch_errors 0",
            "UE 2460: dlsch_rounds 18446744073709551615/18446744073709551615/1/0, dlsch_errors 0",
            "UE 2460: LCID 1: TX 651 RX 3031 bytes",
        ] {
            assert_eq!(line_of(line), None, "{line}");
        }
        assert!(summary("[NR_MAC]   Frame.Slot 128.0\n").words().contains("0 users"));
    }
}
