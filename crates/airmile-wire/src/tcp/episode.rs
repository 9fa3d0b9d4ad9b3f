//! Bursts of duplicate ACKs, and whether a slow start followed (paper 5).

use std::collections::VecDeque;

use super::rto::{LINUX_MIN_RTO_NS, RtoEstimator};
use super::stream::RetransmissionCause;

/// R_ss above this: a slow start followed (paper 5).
pub const R_SS_THRESHOLD: f64 = 1.5;
/// theta's window in nanoseconds (paper 5).
const THETA_NS: i64 = 100_000_000;
/// A segment retransmitted by the timer arrives twice within this time, or not at all
/// (chosen here: above the queueing delay of mobile networks).
const TWICE_WITHIN_NS: i64 = 3_000_000_000;
/// Minimum duplicate ACKs of a burst: RFC 5681's threshold.
const MIN_DUP_ACKS: u32 = 3;

/// Data that passes this soon after its own ACK was sent before its sender had received
/// that ACK: a round trip between monitor and sender, and an eighth for its jitter.
const fn crossing_ns(beyond_ns: i64) -> i64 {
    beyond_ns + beyond_ns / 8
}

/// A burst of duplicate ACKs that is over.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Episode {
    pub(super) last_dup_ns: i64,
    pub(super) dup_acks: u32,
    pub(super) offset: i64,
    pub(super) flight: i64,
    bytes: [i64; 2],
    pub(super) rtt_before_ns: Option<i64>,
    pub(super) rtt_during_ns: Option<i64>,
    pub(super) rtt_retx_ns: Option<i64>,
    rto_before: RtoEstimator,
    rto_with: RtoEstimator,
    beyond_ns: i64,
    /// When the first missing segment was retransmitted, and when by the timer.
    resent_ns: Option<i64>,
    timeout_ns: Option<i64>,
    /// End of the data sent before the timer's retransmission.
    sent_before_timeout: i64,
    /// When it was acknowledged, and the highest offset that the receiver had.
    repaired: Option<(i64, i64)>,
    least_rtt_ns: i64,
    /// The receiver reported the first missing segment as received twice.
    came_twice: bool,
    /// The timer expired twice: which copy arrived twice is unknown.
    timed_out_again: bool,
}

impl Episode {
    /// Whether the timer expired although the data that it retransmitted was in flight.
    /// Either the ACK came too soon to answer the timer's copy (as in the Eifel detection
    /// of RFC 3522, without options), or before data that had passed before the timer's
    /// copy; or the receiver had both (RFC 3708).
    pub(super) fn timer_too_soon(&self) -> bool {
        let Some(timeout) = self.timeout_ns else { return false };
        let first = |(repaired, received_to): (i64, i64)| {
            repaired < timeout + self.least_rtt_ns || received_to < self.sent_before_timeout
        };
        let twice = self.resent_ns.is_some_and(|resent| resent < timeout);
        self.came_twice && !self.timed_out_again || twice && self.repaired.is_some_and(first)
    }

    /// How long after its repair it has to wait for evidence about its timer.
    fn waits_ns(&self) -> i64 {
        match (self.timeout_ns, self.resent_ns, self.repaired) {
            (Some(_), ..) => TWICE_WITHIN_NS,
            // The timer may have expired before the sender received the repairing ACK.
            (None, Some(_), Some(_)) => crossing_ns(self.beyond_ns),
            _ => 0,
        }
    }

    /// theta[100, 200] / theta[0, 100]; `None` where nothing passed in the first.
    pub(super) fn r_ss(&self) -> Option<f64> {
        (self.bytes[0] > 0).then(|| self.bytes[1] as f64 / self.bytes[0] as f64)
    }

    /// Whether a slow start followed.
    pub(super) fn is_slow_start(&self) -> bool {
        self.r_ss().map_or(self.bytes[1] > 0, |r| r > R_SS_THRESHOLD)
    }

    pub(super) fn rto_ns(&self) -> Option<i64> {
        self.rto_before.rto_ns(self.beyond_ns)
    }

    pub(super) fn rto_with_ns(&self) -> Option<i64> {
        self.rto_with.rto_ns(self.beyond_ns)
    }

    /// Whether the timer expired before the retransmission's ACK, and would not have if the
    /// RTTs of duplicate ACKs had been used as samples. `None`: it did not expire.
    pub(super) fn avoided(&self, min_rto_ns: i64) -> Option<bool> {
        let retx = self.rtt_retx_ns? + self.beyond_ns;
        let without = self.rto_ns()?.max(min_rto_ns);
        let with = self.rto_with_ns()?.max(min_rto_ns);
        (retx > without).then_some(retx <= with)
    }
}

/// Detects bursts in one stream.
#[derive(Debug, Default)]
pub(super) struct Episodes {
    open: Option<Box<Episode>>,
    waiting: Option<Box<OpenEpisodes>>,
    pub(super) slow_starts: u32,
    pub(super) timers_too_soon: u32,
}

/// Bursts that are over, except that a timer's segment may yet arrive twice or pass the
/// monitor; the oldest first.
#[derive(Debug, Default)]
struct OpenEpisodes(VecDeque<Episode>);

/// Maximum number of waiting bursts: holes of one loss that are filled within a round
/// trip (chosen here).
const MAX_OPEN: usize = 16;

/// The state when a duplicate ACK passes.
pub(super) struct DupAck {
    pub(super) at_ns: i64,
    pub(super) offset: i64,
    pub(super) flight: i64,
    /// RTT of the segment that caused it.
    pub(super) rtt_ns: Option<i64>,
    pub(super) rto: RtoEstimator,
    pub(super) beyond_ns: i64,
}

/// A segment that was sent again.
pub(super) struct SentAgain {
    pub(super) at_ns: i64,
    /// Where its data begins.
    pub(super) offset: i64,
    /// End of all data sent before.
    pub(super) sent_to: i64,
    pub(super) cause: RetransmissionCause,
    /// Whether it belongs to the recovery after a timeout.
    pub(super) in_timeout: bool,
    pub(super) beyond_ns: i64,
}

impl Episodes {
    pub(super) const fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Takes a duplicate ACK; returns the previous burst if this begins another.
    pub(super) fn dup_ack(&mut self, dup: &DupAck, last_rtt: Option<i64>) -> Option<Episode> {
        let over = match &self.open {
            Some(open) if open.offset != dup.offset => self.close(),
            _ => None,
        };
        let open = self.open.get_or_insert_with(|| {
            Box::new(Episode {
                last_dup_ns: dup.at_ns,
                dup_acks: 0,
                offset: dup.offset,
                flight: dup.flight,
                bytes: [0; 2],
                rtt_before_ns: last_rtt,
                rtt_during_ns: None,
                rtt_retx_ns: None,
                rto_before: dup.rto,
                rto_with: dup.rto,
                beyond_ns: dup.beyond_ns,
                resent_ns: None,
                timeout_ns: None,
                sent_before_timeout: 0,
                repaired: None,
                least_rtt_ns: 0,
                came_twice: false,
                timed_out_again: false,
            })
        });
        open.last_dup_ns = dup.at_ns;
        open.dup_acks += 1;
        open.bytes = [0; 2];
        if let Some(rtt) = dup.rtt_ns {
            open.rtt_during_ns = Some(rtt);
            open.rto_with.push(rtt);
        }
        over
    }

    /// Takes a retransmission.
    pub(super) fn sent_again(&mut self, segment: &SentAgain) {
        let SentAgain { at_ns, offset, sent_to, cause, in_timeout, beyond_ns } = *segment;
        let waiting = self.waiting.iter_mut().flat_map(|waiting| &mut waiting.0);
        let mut all = self.open.iter_mut().map(|open| &mut **open).chain(waiting);
        let Some(open) = all.find(|episode| episode.offset == offset) else { return };
        let crossed = |(repaired, _): (i64, i64)| at_ns - repaired <= crossing_ns(beyond_ns);
        match (cause, open.resent_ns) {
            (RetransmissionCause::Timeout, _) if open.timeout_ns.is_some() => {
                open.timed_out_again = true
            }
            (RetransmissionCause::Timeout, _) if !in_timeout => {
                open.timeout_ns = Some(at_ns);
                open.sent_before_timeout = sent_to;
            }
            // Less than a timer's minimum after the copy before it, a sender that waits for a round
            // trip sent it again (RFC 8985, 6.2).
            (RetransmissionCause::Spurious, Some(resent))
                if open.repaired.is_some_and(crossed)
                    && !in_timeout
                    && at_ns - resent >= LINUX_MIN_RTO_NS * 3 / 4 =>
            {
                _ = open.timeout_ns.get_or_insert(at_ns);
            }
            (_, None) => open.resent_ns = Some(at_ns),
            _ => {}
        }
    }

    /// Takes the ACK that ended the burst: its time, the highest offset that the receiver
    /// had, and when the missing data last passed.
    pub(super) fn repaired(
        &mut self,
        at: (i64, i64),
        sent_ns: Option<i64>,
        least_rtt_ns: Option<i64>,
    ) {
        if let Some(open) = self.open.as_mut().filter(|open| open.repaired.is_none()) {
            // The timer ran from the first copy, which may be the timer's own.
            open.rtt_retx_ns = open.resent_ns.or(sent_ns).map(|sent| at.0 - sent);
            open.repaired = Some(at);
            open.least_rtt_ns = least_rtt_ns.unwrap_or(0);
        }
    }

    /// Takes a range that the receiver reports as received twice (RFC 2883).
    pub(super) fn came_twice(&mut self, (start, end): (i64, i64)) {
        let waiting = self.waiting.iter_mut().flat_map(|waiting| &mut waiting.0);
        for episode in self.open.iter_mut().map(|open| &mut **open).chain(waiting) {
            episode.came_twice |= episode.timeout_ns.is_some()
                && episode.repaired.is_some()
                && (start..end).contains(&episode.offset);
        }
    }

    /// A burst that has waited long enough.
    fn waited(&mut self, at_ns: i64) -> Option<Episode> {
        let waiting = &mut self.waiting.as_mut()?.0;
        let at = waiting.iter().position(|w| {
            let since = at_ns - w.repaired.map_or(w.last_dup_ns, |(at_ns, _)| at_ns);
            since > w.waits_ns() || w.timer_too_soon()
        })?;
        let over = waiting.remove(at)?;
        if waiting.is_empty() {
            self.waiting = None;
        }
        Some(self.count(over))
    }

    fn count(&mut self, over: Episode) -> Episode {
        self.slow_starts += u32::from(over.is_slow_start());
        self.timers_too_soon += u32::from(over.timer_too_soon());
        over
    }

    /// Takes data of the stream; returns a burst that is over.
    #[inline]
    pub(super) fn data(&mut self, at_ns: i64, bytes: i64) -> Option<Episode> {
        if self.open.is_none() && self.waiting.is_none() {
            return None;
        }
        if let Some(over) = self.waited(at_ns) {
            self.watch(at_ns, bytes);
            return Some(over);
        }
        if self.watch(at_ns, bytes) { self.close() } else { None }
    }

    /// Counts data after the last duplicate ACK; returns whether the burst is over.
    fn watch(&mut self, at_ns: i64, bytes: i64) -> bool {
        let Some(open) = self.open.as_mut() else { return false };
        let since = at_ns - open.last_dup_ns;
        match since.div_euclid(THETA_NS) {
            0 => open.bytes[0] += bytes,
            1 => open.bytes[1] += bytes,
            _ if open.repaired.is_some() => return true,
            _ if since > 10 * THETA_NS && open.timeout_ns.is_none() => return true,
            _ => {}
        }
        false
    }

    /// Ends the burst; gives one that is over.
    fn close(&mut self) -> Option<Episode> {
        let over = self.open.take_if(|open| open.dup_acks >= MIN_DUP_ACKS);
        self.open = None;
        let over = over?;
        if over.waits_ns() == 0 || over.timer_too_soon() {
            return Some(self.count(*over));
        }
        let waiting = &mut self.waiting.get_or_insert_default().0;
        waiting.push_back(*over);
        let before = if waiting.len() > MAX_OPEN { waiting.pop_front() } else { None };
        before.map(|before| self.count(before))
    }

    /// Ends the remaining bursts with the stream.
    pub(super) fn finish(&mut self) -> impl Iterator<Item = Episode> + use<> {
        let over = self.close();
        let waiting = self.waiting.take().map_or_else(VecDeque::new, |waiting| waiting.0);
        let waiting: Vec<Episode> = waiting.into_iter().map(|over| self.count(over)).collect();
        over.into_iter().chain(waiting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn dup(at_ms: i64, rtt_ms: i64, rto: RtoEstimator) -> DupAck {
        let at_ns = at_ms * MS;
        DupAck { at_ns, offset: 7, flight: 500_000, rtt_ns: Some(rtt_ms * MS), rto, beyond_ns: 0 }
    }

    /// The data of these bursts is sent again; 900 kB were sent before.
    fn again(at_ms: i64, cause: RetransmissionCause, beyond_ms: i64) -> SentAgain {
        SentAgain {
            at_ns: at_ms * MS,
            offset: 7,
            sent_to: 900_000,
            cause,
            in_timeout: false,
            beyond_ns: beyond_ms * MS,
        }
    }

    /// Figure 16 of the paper: 262 ms before, 356 ms for the retransmission.
    #[test]
    fn a_slow_start_that_samples_of_duplicate_acks_avoid() {
        let mut rto = RtoEstimator::default();
        (0..60).for_each(|_| rto.push(262 * MS));
        let mut episodes = Episodes::default();
        for n in 0..20 {
            assert_eq!(episodes.dup_ack(&dup(n * 10, 262 + 5 * n, rto), Some(262 * MS)), None);
        }
        episodes.repaired((190 * MS, 0), Some((190 - 356) * MS), None);
        let last = 190;
        episodes.data((last + 50) * MS, 1000);
        episodes.data((last + 150) * MS, 3700);
        let over = episodes.data((last + 201) * MS, 1000).unwrap();
        assert_eq!((over.dup_acks, over.r_ss(), over.is_slow_start()), (20, Some(3.7), true));
        assert_eq!(over.avoided(LINUX_MIN_RTO_NS), Some(true));
        assert_eq!(over.avoided(1000 * MS), None, "a minimum of 1 s is not reached");
        assert_eq!(episodes.slow_starts, 1);
    }

    /// Duplicate ACKs, a fast retransmission at 40 ms, the timer's at 300 ms with 900 kB
    /// sent before it, and an ACK at `repaired_ms` when the receiver has data up to
    /// `received_to`.
    #[track_caller]
    fn check_timer(repaired_ms: i64, received_to: i64, twice: bool, expected: bool) {
        let mut episodes = Episodes::default();
        for n in 0..20 {
            episodes.dup_ack(&dup(n * 10, 262, RtoEstimator::default()), Some(262 * MS));
        }
        episodes.sent_again(&again(40, RetransmissionCause::Fast, 50));
        episodes.sent_again(&again(300, RetransmissionCause::Timeout, 50));
        episodes.repaired((repaired_ms * MS, received_to), Some(300 * MS), Some(25 * MS));
        if twice {
            episodes.came_twice((7, 1455));
        }
        let too_soon: Vec<bool> = episodes.finish().map(|over| over.timer_too_soon()).collect();
        assert_eq!(too_soon, [expected]);
        assert_eq!(episodes.timers_too_soon, u32::from(expected));
    }

    #[test]
    fn a_timer_too_soon_and_one_in_time() {
        // Sooner than any round trip.
        check_timer(320, 900_000, false, true);
        // Late, but data from before the timer's segment is still in flight.
        check_timer(600, 500_000, false, true);
        // All before it had arrived: it may have caused the repair, until the receiver
        // reports both copies.
        check_timer(600, 900_000, false, false);
        check_timer(600, 900_000, true, true);
    }

    /// A copy of the retransmission passes 92 ms after it: a round trip, too soon for a timer.
    #[test]
    fn a_retransmission_sent_again_after_a_round_trip() {
        let mut episodes = Episodes::default();
        let at = |n: i64| DupAck { beyond_ns: 97 * MS, ..dup(n, 97, RtoEstimator::default()) };
        (0..20).for_each(|n| _ = episodes.dup_ack(&at(n * 5), None));
        let again = |at_ms, cause| SentAgain { sent_to: 9_000, ..again(at_ms, cause, 97) };
        episodes.sent_again(&again(200, RetransmissionCause::Fast));
        episodes.repaired((200 * MS, 9_000), Some(200 * MS), None);
        episodes.sent_again(&again(292, RetransmissionCause::Spurious));
        assert_eq!(episodes.finish().count(), 1);
        assert_eq!(episodes.timers_too_soon, 0);
    }

    /// The timer's segment passes 18 ms after the repair, whose ACK its sender, 35 ms
    /// away, had not received; another burst has begun in between.
    #[test]
    fn a_timer_that_crosses_the_repair() {
        let check = |late_ms: i64, expected: [bool; 2]| {
            let mut episodes = Episodes::default();
            let at = |n: i64| DupAck { beyond_ns: 70 * MS, ..dup(n, 262, RtoEstimator::default()) };
            (0..20).for_each(|n| _ = episodes.dup_ack(&at(n * 10), None));
            episodes.sent_again(&again(40, RetransmissionCause::Fast, 70));
            episodes.repaired((300 * MS, 900_000), Some(40 * MS), Some(25 * MS));
            for n in 0..5 {
                let next = DupAck { offset: 500_000, ..at(301 + n) };
                assert_eq!(episodes.dup_ack(&next, None), None);
            }
            let late_ms = 300 + late_ms;
            episodes.sent_again(&again(late_ms, RetransmissionCause::Spurious, 70));
            let first = episodes.data((late_ms + 100) * MS, 1000).unwrap();
            let too_soon: Vec<bool> = episodes.finish().map(|over| over.timer_too_soon()).collect();
            assert_eq!([first.timer_too_soon(), too_soon[0]], expected);
        };
        check(18, [true, false]);
        check(90, [false, false]);
    }

    #[test]
    fn few_duplicate_acks_are_no_burst() {
        let mut episodes = Episodes::default();
        episodes.dup_ack(&dup(0, 10, RtoEstimator::default()), None);
        assert_eq!(episodes.finish().count(), 0);
    }
}
