//! Available bandwidth from ACKs' time stamps (paper 6.1, equations 1 and 2).

use std::collections::VecDeque;

use super::clock::common_tick_ns;
use super::opt64::Opt64;
use super::stream::make_room;

/// Bin width: one sample is chosen per bin (paper 6.3).
pub const BIN_NS: i64 = 250_000_000;
/// Maximum number of ACKs kept; at 200 Mbit/s and an ACK per two segments a second has
/// 8,600 (chosen here).
const MAX_POINTS: usize = 16_384;
/// How long ACKs are kept: the longest window (chosen here: a few RTTs of a loaded link).
pub(super) const MEMORY_NS: i64 = 1_500_000_000;
/// A segment that took this much longer than the fastest one was queued (chosen here:
/// above the jitter of a radio link, which is 10 ms between opportunities and as much on
/// the way back).
const QUEUED_NS: i64 = 20_000_000;
/// ACKs at the end of a bin that are tried as the end of its window (chosen here).
const TRIED_ENDS: usize = 8;
/// Minimum ticks of a window: an error of 1 in 25 at either end.
const MIN_TICKS: u32 = 25;
/// Windows span a few RTTs, and at least this many ticks of the commonest clock.
const MIN_TICKS_NS: i64 = 25_000_000;
/// How long the fastest segment's delay by the receiver's clock is a measure for others
/// (chosen here: 50 ppm are 10 ms in it).
const COMPARED_NS: i64 = 200_000_000_000;

/// Condition under which a window shows the bandwidth and not the sender's rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SendRateThreshold {
    /// R_snd is at least this many bit/s (the paper's C: 30 Mbit/s).
    Fixed(f64),
    /// From the capture: each segment of the window was queued, so the link never ran
    /// empty. A receiver that reads slowly also delays ACKs: no window extends over an
    /// ACK that leaves nothing in flight, or that shows the sender stopped by a receive
    /// window with unread data. An upload also delays ACKs: by the receiver's clock, half
    /// of the delay at either end of a window was before the receiver.
    Auto,
}

/// In the form in which it is given: Mbit/s, or `auto`.
impl std::fmt::Display for SendRateThreshold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Fixed(bps) => write!(f, "{}", bps / 1e6),
            Self::Auto => f.write_str("auto"),
        }
    }
}

/// An ACK that advanced.
#[derive(Debug, Clone, Copy)]
pub(super) struct Acked {
    /// When it passed the monitor.
    pub(super) at_ns: i64,
    /// Its TSval.
    pub(super) ticks: u32,
    /// Offset after the last byte acknowledged.
    pub(super) edge: i64,
    /// When the last of the acknowledged segments passed.
    pub(super) sent_ns: i64,
    /// When the first of them passed.
    pub(super) first_sent_ns: i64,
    /// Segments that it acknowledges.
    pub(super) segments: u32,
    /// After it the sender had nothing in flight, or was stopped by the receiver.
    pub(super) stopped: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct AckPoint {
    /// When the ACK passed.
    pub(super) at_ns: i64,
    /// Time since the last segment that it acknowledges passed; the lowest bit marks a
    /// delayed ACK.
    pub(super) rtt: i64,
    /// Its TSval.
    pub(super) ticks: u32,
    /// Bytes acknowledged, the lower half: less than 2 GB pass in a window.
    pub(super) acked: u32,
}

impl AckPoint {
    const fn sent_ns(&self) -> i64 {
        self.at_ns - self.rtt_ns()
    }

    const fn is_delayed(&self) -> bool {
        self.rtt & 1 == 1
    }

    const fn rtt_ns(&self) -> i64 {
        self.rtt >> 1
    }

    /// Whether at least half of the time that this segment took longer than the fastest
    /// one passed before the receiver had it, by its clock.
    fn is_late_at_receiver(&self, fastest: &Self, tick_ns: f64) -> bool {
        let sent_ns = self.sent_ns() - fastest.sent_ns();
        if sent_ns.abs() > COMPARED_NS {
            return true;
        }
        let ticks = self.ticks.wrapping_sub(fastest.ticks).cast_signed();
        let before_ns = f64::from(ticks) * tick_ns - sent_ns as f64;
        let late_ns = self.rtt_ns() - fastest.rtt_ns();
        // Either time stamp is up to a tick old.
        before_ns + 2.0 * tick_ns >= late_ns as f64 / 2.0
    }
}

/// One window that qualifies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BandwidthWindow {
    /// Its first and its last ACK.
    pub(super) ends: [AckPoint; 2],
    /// From the client to the monitor: half the minimum round trip.
    pub(super) way_back_ns: i64,
}

impl BandwidthWindow {
    /// When the client sent its first ACK, in nanoseconds of the monitor.
    #[must_use]
    pub const fn begin_ns(&self) -> i64 {
        self.ends[0].at_ns - self.way_back_ns
    }

    /// When it sent its last ACK.
    #[must_use]
    pub const fn end_ns(&self) -> i64 {
        self.ends[1].at_ns - self.way_back_ns
    }

    /// Middle of it in nanoseconds.
    #[must_use]
    pub const fn middle_ns(&self) -> i64 {
        self.begin_ns() + (self.end_ns() - self.begin_ns()) / 2
    }

    /// Length by the receiver's clock in ticks.
    #[must_use]
    pub const fn ticks(&self) -> u32 {
        self.ends[1].ticks.wrapping_sub(self.ends[0].ticks)
    }

    /// Bytes acknowledged.
    #[must_use]
    pub fn bytes(&self) -> i64 {
        i64::from(self.ends[1].acked.wrapping_sub(self.ends[0].acked).cast_signed())
    }

    /// Rate of sending in bit/s.
    #[must_use]
    pub fn r_snd_bps(&self) -> f64 {
        let sending_ns = self.ends[1].sent_ns() - self.ends[0].sent_ns();
        if sending_ns > 0 { self.bytes() as f64 * 8e9 / sending_ns as f64 } else { f64::INFINITY }
    }

    /// Whether that rate alone is enough to show the bandwidth.
    #[must_use]
    pub fn is_enough(&self, threshold: SendRateThreshold) -> bool {
        match threshold {
            SendRateThreshold::Fixed(least) => self.r_snd_bps() >= least,
            SendRateThreshold::Auto => true,
        }
    }

    /// Rate of receiving in bit/s, with G.
    #[must_use]
    pub fn r_rcv_bps(&self, tick_ns: f64) -> f64 {
        self.bytes() as f64 * 8e9 / (f64::from(self.ticks()) * tick_ns)
    }
}

/// Finds windows in the ACKs of one stream.
#[derive(Debug, Default)]
pub(super) struct Bandwidth {
    points: VecDeque<AckPoint>,
    /// The minimum RTT, and when the ACK of that segment passed.
    least_rtt_ns: Opt64,
    fastest_at_ns: i64,
    /// Its TSval.
    fastest_ticks: u32,
    shared: bool,
    bin: i64,
    /// A stream without a window has none: a request, an upload's answers.
    found: Option<Box<Found>>,
}

/// The windows of a stream, and the samples of those whose rate is known.
#[derive(Debug, Default)]
struct Found {
    /// When the window of an earlier bin ended.
    last_end_ns: Opt64,
    /// The best window of the current bin that is too slow by itself, if the user has
    /// concurrent flows.
    slow: Option<Box<BandwidthWindow>>,
    /// Windows waiting for G; the last is the best of the current bin, if it has one.
    windows: Vec<BandwidthWindow>,
    has_best: bool,
    sum_bps: f64,
    samples: u32,
}

impl Found {
    /// The best window of the current bin.
    fn best(&self) -> Option<&BandwidthWindow> {
        self.windows.last().filter(|_| self.has_best)
    }

    fn push(&mut self, window: BandwidthWindow) {
        self.windows.reserve_exact(1);
        self.windows.push(window);
    }

    fn forget_best(&mut self) {
        if std::mem::take(&mut self.has_best) {
            self.windows.pop();
        }
    }

    fn close_bin(&mut self) {
        if self.windows.len() > MAX_WAITING {
            self.forget_best();
        }
        if let Some(best) = self.best() {
            self.last_end_ns = Opt64::some(best.end_ns());
        }
        let slow = self.slow.take().filter(|_| !self.has_best);
        if let Some(slow) = slow
            && self.windows.len() < MAX_WAITING
        {
            self.push(*slow);
        }
        self.has_best = false;
    }
}

/// Maximum number of windows that wait for G: 8 minutes (chosen here).
const MAX_WAITING: usize = 2_000;

impl Bandwidth {
    /// Marks out-of-order data or a duplicate ACK: windows do not extend over it.
    pub(super) fn disturb(&mut self, threshold: SendRateThreshold) {
        if !self.points.is_empty() {
            self.settle(threshold);
            self.points.clear();
        }
    }

    /// Sets whether windows count that are too slow by themselves.
    pub(super) const fn share(&mut self, shared: bool) {
        self.shared = shared;
    }

    /// Number of samples.
    pub(super) fn samples(&self) -> u64 {
        self.found.as_ref().map_or(0, |found| u64::from(found.samples))
    }

    /// Mean of the samples in bit/s.
    pub(super) fn mean_bps(&self) -> Option<f64> {
        let found = self.found.as_ref().filter(|found| found.samples > 0)?;
        Some(found.sum_bps / f64::from(found.samples))
    }

    /// Frees the memory of ACKs, once all are too old for another window.
    pub(super) fn rest(&mut self, threshold: SendRateThreshold) {
        if threshold == SendRateThreshold::Auto {
            // An empty queue still holds its memory.
            self.points.shrink_to_fit();
        } else {
            self.settle(threshold);
            self.points = VecDeque::new();
        }
        if let Some(found) = &mut self.found {
            found.windows.shrink_to_fit();
        }
    }

    /// Takes an ACK that advanced.
    #[inline(always)]
    pub(super) fn push(&mut self, acked: &Acked, threshold: SendRateThreshold) {
        let Acked { at_ns, ticks, edge, sent_ns, first_sent_ns, segments, stopped } = *acked;
        let rtt = at_ns - sent_ns;
        let point =
            AckPoint { at_ns, rtt: rtt << 1 | i64::from(segments < 2), ticks, acked: edge as u32 };
        let is_fastest = self.least_rtt_ns.get().is_none_or(|least| least > rtt);
        let least = if is_fastest { point.rtt_ns() } else { self.least_rtt_ns() };
        let bin = (at_ns - least / 2).div_euclid(BIN_NS);
        if bin != self.bin {
            self.close_bin(threshold);
            self.bin = bin;
        }
        if is_fastest {
            self.least_rtt_ns = Opt64::some(least);
            (self.fastest_at_ns, self.fastest_ticks) = (at_ns, ticks);
        }
        let backwards = |last: &AckPoint| ticks.wrapping_sub(last.ticks).cast_signed() < 0;
        let auto = threshold == SendRateThreshold::Auto;
        // The first segment came to the queue before the last one of the previous ACK left it.
        let came_late = |last: &AckPoint| auto && first_sent_ns > last.at_ns - least;
        let ran_empty = auto && (stopped || rtt < least + QUEUED_NS);
        let apart = |last: &AckPoint| backwards(last) || came_late(last);
        if ran_empty || self.points.back().is_some_and(apart) {
            self.disturb(threshold);
        }
        if ran_empty {
            // The next window begins after it: the link may pause here.
            return;
        }
        while self.points.front().is_some_and(|p| at_ns - p.at_ns > MEMORY_NS) {
            self.points.pop_front();
        }
        if self.points.len() >= MAX_POINTS {
            self.points.pop_front();
        }
        make_room(&mut self.points);
        self.points.push_back(point);
    }

    /// Chooses the best window that ends in this bin, once no better one can follow.
    fn settle(&mut self, threshold: SendRateThreshold) {
        if self.points.len() < 2 {
            return;
        }
        let Some(first_ns) = self.points.front().map(|p| p.at_ns) else { return };
        let rtts = self.least_rtt_ns().max(MIN_TICKS_NS);
        let bin_from_ns = self.bin * BIN_NS + self.way_back_ns();
        let from = self.points.len().saturating_sub(TRIED_ENDS);
        for end in (from..self.points.len()).rev() {
            // An ACK of an earlier bin was tried as the end of a window there.
            let ends = |p: &AckPoint| !p.is_delayed() && p.at_ns >= bin_from_ns;
            let Some(last) = self.points.get(end).copied().filter(ends) else { continue };
            let since_ns = last.at_ns - self.way_back_ns() - self.wanted_from_ns();
            for length in [since_ns, BIN_NS, 2 * rtts, 4 * rtts, 2 * BIN_NS] {
                // Most flows are too short for the longer windows.
                if length >= BIN_NS.min(2 * rtts) && first_ns <= last.at_ns - length {
                    self.consider(&last, length, threshold);
                }
            }
        }
    }

    /// Tries the window that ends with the ACK `last` and is about `length` long.
    fn consider(&mut self, last: &AckPoint, length: i64, threshold: SendRateThreshold) {
        let before = self.points.partition_point(|p| p.at_ns <= last.at_ns - length);
        let Some(first) = before.checked_sub(1).and_then(|at| self.points.get(at)).copied() else {
            return;
        };
        // The client sent it half the minimum round trip earlier.
        let window = BandwidthWindow { ends: [first, *last], way_back_ns: self.way_back_ns() };
        let enough = window.is_enough(threshold);
        if window.ticks() < MIN_TICKS || window.bytes() <= 0 || !(enough || self.shared) {
            return;
        }
        let found = self.found.as_deref();
        let best =
            found.and_then(|found| if enough { found.best() } else { found.slow.as_deref() });
        if best.is_some_and(|best| !self.is_nearer(&window, best)) {
            return;
        }
        let found = self.found.get_or_insert_default();
        if enough {
            found.forget_best();
            found.push(window);
            found.has_best = true;
        } else {
            found.slow = Some(Box::new(window));
        }
    }

    fn least_rtt_ns(&self) -> i64 {
        self.least_rtt_ns.get().unwrap_or(0)
    }

    /// The ACK with the minimum RTT.
    fn fastest(&self) -> Option<AckPoint> {
        let rtt = self.least_rtt_ns.get()? << 1;
        let (at_ns, ticks) = (self.fastest_at_ns, self.fastest_ticks);
        Some(AckPoint { at_ns, rtt, ticks, acked: 0 })
    }

    /// Half the minimum round trip.
    fn way_back_ns(&self) -> i64 {
        self.least_rtt_ns() / 2
    }

    /// Where a window of this bin should begin: at the end of the last one, or a pause of
    /// the link between them would count in none; else at the bin's beginning.
    fn wanted_from_ns(&self) -> i64 {
        let from = self.bin * BIN_NS;
        let last_end_ns = self.found.as_ref().and_then(|found| found.last_end_ns.get());
        last_end_ns.filter(|end| *end > from - 2 * BIN_NS).unwrap_or(from)
    }

    /// Whether a window fits its bin better: its ends are nearer to the bin's, so that
    /// windows follow each other without gap or overlap.
    fn is_nearer(&self, window: &BandwidthWindow, best: &BandwidthWindow) -> bool {
        let (from, to) = (self.wanted_from_ns(), (self.bin + 1) * BIN_NS);
        let off = |w: &BandwidthWindow| (w.begin_ns() - from).abs() + (w.end_ns() - to).abs();
        off(window) < off(best)
    }

    fn close_bin(&mut self, threshold: SendRateThreshold) {
        self.settle(threshold);
        if let Some(found) = &mut self.found {
            found.close_bin();
        }
    }

    /// Takes the windows whose rate can be computed, now that G is known.
    pub(super) fn drain_windows(
        &mut self,
        tick_ns: f64,
        at_end: bool,
        threshold: SendRateThreshold,
    ) -> Vec<BandwidthWindow> {
        if at_end {
            self.close_bin(threshold);
        }
        let fastest = self.fastest();
        let Some(found) = &mut self.found else { return Vec::new() };
        let best = found.windows.pop_if(|_| found.has_best);
        let mut windows = std::mem::replace(&mut found.windows, best.into_iter().collect());
        if threshold == SendRateThreshold::Auto
            && let (Some(fastest), Some(tick_ns)) = (fastest, common_tick_ns(tick_ns))
        {
            windows.retain(|window| {
                window.ends.iter().all(|end| end.is_late_at_receiver(&fastest, tick_ns))
            });
        }
        for window in windows.iter().filter(|window| window.is_enough(threshold)) {
            found.sum_bps += window.r_rcv_bps(tick_ns);
            found.samples += 1;
        }
        windows
    }

    pub(super) fn has_waiting(&self) -> bool {
        let waits = |found: &Found| found.windows.len() > usize::from(found.has_best);
        self.found.as_deref().is_some_and(waits)
    }
}

#[cfg(test)]
mod tests;
