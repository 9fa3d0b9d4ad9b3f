//! CLAW: a congestion window derived from the radio's free capacity (MobiSys 2017, 4.3 and
//! 4.4, Algorithm 1).
//!
//! [`Claw`] is the server's side: Cubic, plus the window that the client's [`Feedback`]
//! allows. [`BottleneckDetector`] is the client's side (4.4): it determines whether the
//! cell or the path before it limits the flow. Neither does I/O; [`feedback`] encodes and
//! authenticates the reports.
//!
//! A client may be wrong or hostile. From its first report on, whatever it contains, the
//! window in use and the pacing rate stay within the operator's [`OperatorLimits`]. This
//! includes Cubic's window, because an accepted report affects Cubic even after it is no
//! longer trusted. A client that sends no feedback gets plain Cubic. A window that the path
//! does not deliver is ignored for a while ([`ClawOptions::distrust_ns`]).

mod detector;
pub mod feedback;
mod losses;
mod options;
#[cfg(test)]
mod tests;
mod trust;

use self::losses::{LossOrigin, Losses};
use self::trust::ClientTrust;
use crate::{AckEvent, CongestionEvent, CongestionKind, Controller, Cubic};

pub use detector::{BottleneckDetector, DetectorOptions};
pub use options::{Bottleneck, ClawOptions, Feedback, OperatorLimits};

/// Which window is in use (Algorithm 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Cubic's window: there is no feedback, it is stale or not trusted, or the wireline is
    /// the bottleneck.
    Cubic,
    /// The client's window: the cell has free resources.
    CellFree,
    /// The larger of the client's and Cubic's window: the cell is full, but not yet for
    /// long enough to be sure. Cubic's window grows while it is the one in use.
    Confirming,
    /// The larger of both: the cell is full.
    CellFull,
}

/// The latest feedback, and when it arrived.
#[derive(Debug, Clone, Copy)]
struct LatestFeedback {
    feedback: Feedback,
    at_ns: i64,
    /// Time of the last report that was not idle: its window and load are in force.
    in_force_ns: i64,
}

/// The server's side of CLAW over Cubic.
#[derive(Debug, Clone)]
pub struct Claw {
    options: ClawOptions,
    /// W_cubic: grows only while it is not above the window in use.
    cubic: Cubic,
    mss_bytes: u64,
    latest: Option<LatestFeedback>,
    full_since_ns: Option<i64>,
    /// Since when a cell that was full is reported as not full.
    free_since_ns: Option<i64>,
    /// Cubic as it would be had it grown while the cell's state was unsure.
    unseen: Option<Cubic>,
    /// The client has sent feedback, valid or not: the operator's limits apply.
    has_feedback: bool,
    srtt_ns: i64,
    min_rtt_ns: Option<i64>,
    /// After a loss that is not the radio's: until when the window is limited, and to what.
    reduced: Option<(i64, u64)>,
    losses: Losses,
    /// Time of the last reduction by a loss whose origin is unknown and may be the radio.
    unexplained_ns: Option<i64>,
    /// The last loss was the radio's: Cubic grows during its repair.
    is_excused: bool,
    /// Time of the last reduction because the client reported a queue overflow.
    queue_overflow_ns: Option<i64>,
    /// RTT of the last ACK that has one.
    rtt_ns: i64,
    trust: ClientTrust,
    mode: Mode,
    cwnd_bytes: u64,
}

impl Claw {
    /// A controller at its start, without feedback.
    #[must_use]
    pub fn new(mss_bytes: u64, initial_window_bytes: u64, options: ClawOptions) -> Self {
        let cubic = Cubic::new(mss_bytes, initial_window_bytes, true);
        let cwnd_bytes = cubic.cwnd_bytes();
        Self {
            options,
            cubic,
            mss_bytes,
            latest: None,
            full_since_ns: None,
            free_since_ns: None,
            unseen: None,
            has_feedback: false,
            srtt_ns: 0,
            min_rtt_ns: None,
            reduced: None,
            losses: Losses::default(),
            unexplained_ns: None,
            is_excused: false,
            queue_overflow_ns: None,
            rtt_ns: 0,
            trust: ClientTrust::new(options.distrust_ns),
            mode: Mode::Cubic,
            cwnd_bytes,
        }
    }

    /// Which window is in use.
    #[must_use]
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    /// W_cubic in bytes.
    #[cfg(test)]
    fn w_cubic_bytes(&self) -> u64 {
        self.cubic.cwnd_bytes()
    }

    /// Whether feedback is ignored because the path did not deliver the client's window.
    #[cfg(test)]
    const fn distrusts(&self, now_ns: i64) -> bool {
        self.trust.is_withdrawn(now_ns)
    }

    /// Processes feedback. A report is ignored if it is not later than the last or if its
    /// load is not between 0 and 1.
    pub fn on_feedback(&mut self, now_ns: i64, feedback: &Feedback) {
        self.has_feedback = true;
        let last = self.latest.map(|latest| latest.feedback.sequence);
        if last.is_some_and(|last| feedback.sequence <= last)
            || !(0.0..=1.0).contains(&feedback.load)
        {
            return self.settle(now_ns);
        }
        match self.losses.ingest(now_ns, feedback) {
            LossOrigin::Radio => self.explain(now_ns),
            LossOrigin::Queue => self.answer_queue(now_ns),
            LossOrigin::NoLoss => {}
        }
        let before = self.latest.filter(|_| feedback.idle);
        let in_force = before.map_or(*feedback, |latest| Feedback {
            w_claw_bytes: latest.feedback.w_claw_bytes,
            load: latest.feedback.load,
            bottleneck: latest.feedback.bottleneck,
            ..*feedback
        });
        let in_force_ns = before.map_or(now_ns, |latest| latest.in_force_ns);
        self.latest = Some(LatestFeedback { feedback: in_force, at_ns: now_ns, in_force_ns });
        let full = in_force.load >= self.options.full_from_load;
        if !feedback.idle {
            self.fill(now_ns, full);
        }
        self.settle(now_ns);
    }

    /// Updates whether the cell is full. A cell that is no longer full is confirmed only
    /// after as long as a full one, so a single noisy report does not drop Cubic's window.
    /// Until then the client's window applies where it is the larger one.
    fn fill(&mut self, now_ns: i64, full: bool) {
        if full {
            self.free_since_ns = None;
            self.full_since_ns.get_or_insert(now_ns);
        } else if self.full_since_ns.is_some() {
            let since_ns = *self.free_since_ns.get_or_insert(now_ns);
            if now_ns - since_ns >= self.sure_ns() {
                (self.full_since_ns, self.free_since_ns) = (None, None);
            } else if self.mode != Mode::CellFull {
                self.full_since_ns = Some(now_ns);
            }
        }
    }

    /// How long the cell must be full, or not full, to be sure of it.
    fn sure_ns(&self) -> i64 {
        i64::from(self.options.full_round_trips) * self.srtt_ns
    }

    /// Sets mode and window from the current state.
    fn settle(&mut self, now_ns: i64) {
        self.mode = self.mode_at(now_ns);
        match self.mode {
            Mode::Confirming => {}
            Mode::CellFull => {
                if let Some(unseen) = self.unseen.take() {
                    self.cubic = unseen;
                }
            }
            Mode::CellFree | Mode::Cubic => self.unseen = None,
        }
        let w_cubic = self.cubic.cwnd_bytes();
        let w_claw = self.w_claw_bytes();
        let wanted = match self.mode {
            Mode::Cubic => w_cubic,
            Mode::CellFree => w_claw,
            Mode::Confirming | Mode::CellFull => w_cubic.max(w_claw),
        };
        self.reduced = self.reduced.filter(|(until_ns, _)| now_ns < *until_ns);
        // Cubic's own window already includes its reduction.
        let most = self.reduced.filter(|_| self.mode != Mode::Cubic).map(|(_, most)| most);
        let wanted = most.map_or(wanted, |most| wanted.min(most));
        let cap =
            if self.has_feedback { self.cap_bytes().max(self.least_bytes()) } else { u64::MAX };
        self.cwnd_bytes = wanted.min(cap);
    }

    /// The client's window, within the limits and what the path has delivered.
    fn w_claw_bytes(&self) -> u64 {
        let requested = self.latest.map_or(0, |latest| latest.feedback.w_claw_bytes);
        let most = self.cap_bytes().min(self.trust.max_window_bytes(self.min_rtt_ns));
        requested.min(most).max(self.least_bytes())
    }

    /// Whether the window in use is the client's.
    fn is_clients(&self) -> bool {
        match self.mode {
            Mode::Cubic => false,
            Mode::CellFree | Mode::Confirming => true,
            Mode::CellFull => self.w_claw_bytes() >= self.cubic.cwnd_bytes(),
        }
    }

    fn mode_at(&self, now_ns: i64) -> Mode {
        let Some(latest) = self.latest else { return Mode::Cubic };
        let round_trips = i64::from(self.options.stale_round_trips) * self.srtt_ns;
        let stale = now_ns - latest.at_ns > round_trips.max(self.options.stale_ns);
        let held_too_long = now_ns - latest.in_force_ns > self.options.idle_hold_ns;
        let idle = latest.feedback.idle;
        // Idle phones report rarely: their last report stays valid.
        if (stale && !idle) || held_too_long || self.trust.is_withdrawn(now_ns) {
            return Mode::Cubic;
        }
        if latest.feedback.bottleneck != Bottleneck::Cellular {
            return Mode::Cubic;
        }
        match self.full_since_ns {
            None => Mode::CellFree,
            Some(since_ns) if now_ns - since_ns < self.sure_ns() => Mode::Confirming,
            Some(_) => Mode::CellFull,
        }
    }

    /// Whether a report can excuse a loss: while the client's window is in use, or Cubic's in a cell
    /// that the flow fills, up to four times the client's (chosen here: honest clients with radio
    /// losses stay below it). Otherwise Cubic's window answers every loss, so that no report makes
    /// it deaf to a queue.
    fn may_excuse(&self) -> bool {
        let most = self.w_claw_bytes().saturating_mul(4);
        let is_near = match self.mode {
            Mode::Cubic => false,
            Mode::CellFree => true,
            Mode::Confirming | Mode::CellFull => self.cubic.cwnd_bytes() <= most,
        };
        is_near && self.can_be_the_radios()
    }

    /// Whether Cubic's growth is suspended: the client's window is the larger one and fills
    /// the cell by itself.
    fn is_cubic_held(&self) -> bool {
        self.mode == Mode::Confirming && self.w_claw_bytes() > self.cubic.cwnd_bytes()
    }

    /// Grows the hypothetical Cubic of 4.3.1 by the received ACKs, scaled to its own
    /// window. It grows no more than a sender with that window would have, however often
    /// the client reports.
    fn grow_unseen(&mut self, now_ns: i64, ack: &AckEvent) {
        let in_use = u128::from(self.cwnd_bytes.max(1));
        let unseen = self.unseen.get_or_insert_with(|| self.cubic.clone());
        let scaled = u128::from(ack.acked_bytes) * u128::from(unseen.cwnd_bytes()) / in_use;
        let acked_bytes = u64::try_from(scaled).unwrap_or(u64::MAX).min(unseen.cwnd_bytes());
        unseen.on_ack(now_ns, &AckEvent { acked_bytes, window_limited: true, ..*ack });
    }

    /// The largest window within the limits. Delaying ACKs to lengthen the round trip gains
    /// a client nothing: the pacing rate has the same limit without the RTT.
    fn cap_bytes(&self) -> u64 {
        let limits = self.options.limits;
        // Without an RTT sample, assume 100 ms.
        let rtt_ns = if self.srtt_ns > 0 { self.srtt_ns } else { 100_000_000 };
        let of_rate = u128::from(limits.rate_bps) * u128::from(rtt_ns.unsigned_abs());
        let of_rate = u64::try_from(of_rate / 8_000_000_000).unwrap_or(u64::MAX);
        limits.window_bytes.min(of_rate)
    }

    /// Cubic's own minimum window.
    const fn least_bytes(&self) -> u64 {
        2 * self.mss_bytes
    }

    /// The radio lost packets. A reduction within the last round trip was for that loss:
    /// its report arrived later than the duplicate ACKs.
    fn explain(&mut self, now_ns: i64) {
        let lately = self.unexplained_ns.take().is_some_and(|at_ns| now_ns - at_ns <= self.srtt_ns);
        if lately {
            self.losses.judge();
            self.cubic.on_spurious(now_ns);
            (self.reduced, self.unseen, self.is_excused) = (None, None, true);
        }
    }

    /// The queue before the radio overflowed: reduces the window at once (4.3.2), at most
    /// once a round trip.
    fn answer_queue(&mut self, now_ns: i64) {
        self.is_excused = false;
        let lately = |at_ns: Option<i64>| at_ns.is_some_and(|at_ns| now_ns - at_ns <= self.srtt_ns);
        if self.reduced.is_some() || lately(self.queue_overflow_ns) {
            return;
        }
        self.queue_overflow_ns = Some(now_ns);
        self.losses.judge();
        self.answer(now_ns);
    }

    /// Cubic's reaction to congestion, applied to the window in use.
    fn answer(&mut self, now_ns: i64) {
        let event = CongestionEvent {
            kind: CongestionKind::Loss,
            flight_size_bytes: self.cwnd_bytes,
            lost_bytes: self.mss_bytes,
        };
        self.cubic.on_congestion(now_ns, &event);
        self.reduce(now_ns);
    }

    /// Whether a loss can be the radio's, whatever the client reports: there is no standing
    /// queue that could have dropped the packet.
    fn can_be_the_radios(&self) -> bool {
        !self.min_rtt_ns.is_some_and(|least_ns| ClientTrust::queue_loses(self.rtt_ns, least_ns))
    }

    /// Applies a reduction for a loss that is not the radio's or whose origin is unknown.
    fn reduce(&mut self, now_ns: i64) {
        (self.unseen, self.is_excused) = (None, false);
        let most = self.cubic.cwnd_bytes().max(self.least_bytes());
        self.reduced = Some((now_ns + self.srtt_ns.max(1), most));
        self.settle(now_ns);
    }
}

impl Controller for Claw {
    fn name(&self) -> &'static str {
        "claw"
    }

    fn on_sent(&mut self, now_ns: i64, sent_bytes: u64, flight_size_bytes: u64) {
        self.cubic.on_sent(now_ns, sent_bytes, flight_size_bytes);
        // Feedback received before a pause may be stale by now.
        if self.mode != Mode::Cubic {
            self.settle(now_ns);
        }
    }

    fn on_ack(&mut self, now_ns: i64, ack: &AckEvent) {
        if let Some(rtt_ns) = ack.rtt_ns.filter(|rtt_ns| *rtt_ns > 0) {
            self.rtt_ns = rtt_ns;
            self.min_rtt_ns = Some(self.min_rtt_ns.map_or(rtt_ns, |least| least.min(rtt_ns)));
        }
        self.srtt_ns = ack.srtt_ns.or(ack.rtt_ns).unwrap_or(self.srtt_ns).max(0);
        self.is_excused &= ack.in_recovery;
        // A client that names the wireline has no queue at the radio to fill.
        let excused = self.is_excused && self.may_excuse();
        let ack = &AckEvent { in_recovery: ack.in_recovery && !excused, ..*ack };
        if self.is_cubic_held() {
            self.grow_unseen(now_ns, ack);
        } else if self.cubic.cwnd_bytes() <= self.cwnd_bytes {
            self.unseen = None;
            self.cubic.on_ack(now_ns, ack);
        }
        let window = (self.cwnd_bytes, self.reduced.is_some());
        if self.is_clients() && self.trust.watch(now_ns, window, self.min_rtt_ns, ack) {
            // Cubic has grown by the ACKs of the client's window.
            self.answer(now_ns);
        }
        self.settle(now_ns);
    }

    fn on_congestion(&mut self, now_ns: i64, event: &CongestionEvent) {
        let is_loss = event.kind == CongestionKind::Loss;
        let excusable = is_loss && self.may_excuse();
        self.is_excused = is_loss && self.losses.are_the_radios(now_ns, self.srtt_ns) && excusable;
        if self.is_excused {
            return;
        }
        // The client had already reported this loss, and the window was reduced then.
        let answered = self.queue_overflow_ns.take();
        if answered.is_some_and(|at_ns| now_ns - at_ns <= self.srtt_ns) {
            return;
        }
        if self.is_clients() {
            self.trust.on_loss(self.cwnd_bytes, self.min_rtt_ns);
        }
        // The window in use may be the client's and not Cubic's.
        let flight = event.flight_size_bytes.min(self.cwnd_bytes);
        self.unexplained_ns = excusable.then_some(now_ns);
        self.cubic.on_congestion(now_ns, &CongestionEvent { flight_size_bytes: flight, ..*event });
        self.reduce(now_ns);
    }

    fn on_rto(&mut self, now_ns: i64, flight_size_bytes: u64, again: bool) {
        self.cubic.on_rto(now_ns, flight_size_bytes, again);
        self.reduce(now_ns);
    }

    fn on_persistent_congestion(&mut self, now_ns: i64, flight_size_bytes: u64) {
        self.cubic.on_persistent_congestion(now_ns, flight_size_bytes);
        self.reduce(now_ns);
    }

    fn on_spurious(&mut self, now_ns: i64) {
        self.cubic.on_spurious(now_ns);
        self.reduced = None;
        self.settle(now_ns);
    }

    fn on_restart(&mut self, now_ns: i64, idle_ns: i64, rto_ns: i64) {
        self.cubic.on_restart(now_ns, idle_ns, rto_ns);
        self.settle(now_ns);
    }

    fn on_unused(&mut self, now_ns: i64, used_bytes: u64) {
        self.cubic.on_unused(now_ns, used_bytes);
    }

    fn on_radio(&mut self, now_ns: i64, feedback: &Feedback) {
        self.on_feedback(now_ns, feedback);
    }

    fn on_mss(&mut self, mss_bytes: u64) {
        self.mss_bytes = mss_bytes.max(1);
        self.cubic.on_mss(mss_bytes);
    }

    fn cwnd_bytes(&self) -> u64 {
        self.cwnd_bytes
    }

    fn ssthresh_bytes(&self) -> u64 {
        self.cubic.ssthresh_bytes()
    }

    /// Spreads a window that jumps over its round trip, a quarter faster than it drains
    /// (chosen here; for Cubic's own window the transport chooses the rate). Never above
    /// the operator's rate once the client has sent feedback.
    fn pacing_rate_bps(&self) -> Option<u64> {
        let most_bps = self.has_feedback.then_some(self.options.limits.rate_bps);
        if self.mode == Mode::Cubic || self.srtt_ns <= 0 {
            return most_bps;
        }
        let bits = u128::from(self.cwnd_bytes) * 10_000_000_000;
        let bps = u64::try_from(bits / u128::from(self.srtt_ns.unsigned_abs())).ok();
        bps.into_iter().chain(most_bps).min()
    }

    fn in_slow_start(&self) -> bool {
        self.mode == Mode::Cubic && self.cubic.in_slow_start()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}
