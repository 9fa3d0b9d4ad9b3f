//! CLAW: a congestion window that the radio's free capacity sets (MobiSys 2017, 4.3
//! and 4.4, Algorithm 1).
//!
//! [`Claw`] is the server's side: Cubic, and over it the window that the client's
//! [`Feedback`] allows. [`BottleneckDetector`] is the client's side of 4.4: whether the
//! cell or something before it limits the flow. Neither does I/O; [`feedback`] is how
//! reports come to the server.
//!
//! A client may be wrong or hostile. From its first report on, whatever it says, the
//! window in use and the pace are within the operator's [`OperatorLimits`], Cubic's too: a
//! report that was taken leaves traces in Cubic when it is no longer believed. Who tells
//! nothing has plain Cubic. A window that the path does not deliver is not believed for a
//! while ([`ClawOptions::distrust_ns`]).

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
    /// There is no feedback, it is too old, it is not believed, or the wireline is the
    /// bottleneck: Cubic's.
    Cubic,
    /// The cell has free resources: the client's.
    CellFree,
    /// The cell is full, but not for long enough to be sure: the larger of the client's
    /// and Cubic's, which grows where it is the one in use.
    Confirming,
    /// The cell is full: the larger of both.
    CellFull,
}

/// Feedback, and when it came.
#[derive(Debug, Clone, Copy)]
struct LatestFeedback {
    said: Feedback,
    at_ns: i64,
    /// Of the last one that was not idle: its window and its load are in force.
    in_force_ns: i64,
}

/// The server's side of CLAW over Cubic.
#[derive(Debug, Clone)]
pub struct Claw {
    options: ClawOptions,
    /// W_cubic: grows only while it is not above the window in use.
    cubic: Cubic,
    mss_bytes: u64,
    heard: Option<LatestFeedback>,
    full_since_ns: Option<i64>,
    /// Since when a cell that was full is said not to be.
    free_since_ns: Option<i64>,
    /// Cubic as it would be had it grown while the cell's state was unsure.
    unseen: Option<Cubic>,
    /// The client has told something, be it nonsense: the limits hold.
    is_told: bool,
    srtt_ns: i64,
    min_rtt_ns: Option<i64>,
    /// After a loss that is not the radio's: the window until then, at most.
    reduced: Option<(i64, u64)>,
    losses: Losses,
    /// When the window was last reduced by a loss of which nobody knew whose it was, and
    /// that may be the radio's.
    unexplained_ns: Option<i64>,
    /// When it was last reduced because the client told of a queue that ran over.
    told_of_queue_ns: Option<i64>,
    /// Of the last ACK that has one.
    rtt_ns: i64,
    trust: ClientTrust,
    mode: Mode,
    cwnd_bytes: u64,
}

impl Claw {
    /// At its start, without feedback.
    #[must_use]
    pub fn new(mss_bytes: u64, initial_window_bytes: u64, options: ClawOptions) -> Self {
        let cubic = Cubic::new(mss_bytes, initial_window_bytes, true);
        let cwnd_bytes = cubic.cwnd_bytes();
        Self {
            options,
            cubic,
            mss_bytes,
            heard: None,
            full_since_ns: None,
            free_since_ns: None,
            unseen: None,
            is_told: false,
            srtt_ns: 0,
            min_rtt_ns: None,
            reduced: None,
            losses: Losses::default(),
            unexplained_ns: None,
            told_of_queue_ns: None,
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
    #[must_use]
    pub fn w_cubic_bytes(&self) -> u64 {
        self.cubic.cwnd_bytes()
    }

    /// Whether what the client says is left out, as the path did not deliver it.
    #[must_use]
    pub const fn distrusts(&self, now_ns: i64) -> bool {
        self.trust.is_withdrawn(now_ns)
    }

    /// Takes what the client says. A report that is not later than the last, or whose
    /// load is no share, is left out.
    pub fn on_feedback(&mut self, now_ns: i64, said: &Feedback) {
        self.is_told = true;
        let last = self.heard.map(|heard| heard.said.sequence);
        if last.is_some_and(|last| said.sequence <= last) || !(0.0..=1.0).contains(&said.load) {
            return self.settle(now_ns);
        }
        match self.losses.ingest(now_ns, said) {
            LossOrigin::Radio => self.explain(now_ns),
            LossOrigin::Queue => self.answer_queue(now_ns),
            LossOrigin::NoLoss => {}
        }
        let before = self.heard.filter(|_| said.idle);
        let in_force = before.map_or(*said, |heard| Feedback {
            w_claw_bytes: heard.said.w_claw_bytes,
            load: heard.said.load,
            bottleneck: heard.said.bottleneck,
            ..*said
        });
        let in_force_ns = before.map_or(now_ns, |heard| heard.in_force_ns);
        self.heard = Some(LatestFeedback { said: in_force, at_ns: now_ns, in_force_ns });
        let full = in_force.load >= self.options.full_from_load;
        if !said.idle {
            self.fill(now_ns, full);
        }
        self.settle(now_ns);
    }

    /// Takes whether the cell is said to be full. That it is no more is sure after as long
    /// as that it is: one noisy report does not take Cubic's window away, and until then the
    /// client's counts where it is the larger one.
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

    /// How long the cell is full, or not, before it is sure.
    fn sure_ns(&self) -> i64 {
        i64::from(self.options.full_round_trips) * self.srtt_ns
    }

    /// Sets mode and window by what is known now.
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
        // Cubic's own window has its reduction in it.
        let most = self.reduced.filter(|_| self.mode != Mode::Cubic).map(|(_, most)| most);
        let wanted = most.map_or(wanted, |most| wanted.min(most));
        let cap = if self.is_told { self.cap_bytes().max(self.least_bytes()) } else { u64::MAX };
        self.cwnd_bytes = wanted.min(cap);
    }

    /// The window that the client wants, within the limits and what the path has shown.
    fn w_claw_bytes(&self) -> u64 {
        let told = self.heard.map_or(0, |heard| heard.said.w_claw_bytes);
        let most = self.cap_bytes().min(self.trust.max_window_bytes(self.min_rtt_ns));
        told.min(most).max(self.least_bytes())
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
        let Some(heard) = self.heard else { return Mode::Cubic };
        let round_trips = i64::from(self.options.stale_round_trips) * self.srtt_ns;
        let stale = now_ns - heard.at_ns > round_trips.max(self.options.stale_ns);
        let held_too_long = now_ns - heard.in_force_ns > self.options.idle_hold_ns;
        let idle = heard.said.idle;
        // Idle phones say little: what they said last stands.
        if (stale && !idle) || held_too_long || self.trust.is_withdrawn(now_ns) {
            return Mode::Cubic;
        }
        if heard.said.bottleneck != Bottleneck::Cellular {
            return Mode::Cubic;
        }
        match self.full_since_ns {
            None => Mode::CellFree,
            Some(since_ns) if now_ns - since_ns < self.sure_ns() => Mode::Confirming,
            Some(_) => Mode::CellFull,
        }
    }

    /// Whether Cubic waits with its growth: the client's window is the larger one, and
    /// that fills the cell itself.
    fn is_cubic_held(&self) -> bool {
        self.mode == Mode::Confirming && self.w_claw_bytes() > self.cubic.cwnd_bytes()
    }

    /// What Cubic would be had it grown while it was held (4.3.1): by the ACKs that came,
    /// as many more as its window were larger. No more than a sender of its own would
    /// have grown, whatever the client says how often.
    fn grow_unseen(&mut self, now_ns: i64, ack: &AckEvent) {
        let in_use = u128::from(self.cwnd_bytes.max(1));
        let unseen = self.unseen.get_or_insert_with(|| self.cubic.clone());
        let scaled = u128::from(ack.acked_bytes) * u128::from(unseen.cwnd_bytes()) / in_use;
        let acked_bytes = u64::try_from(scaled).unwrap_or(u64::MAX).min(unseen.cwnd_bytes());
        unseen.on_ack(now_ns, &AckEvent { acked_bytes, window_limited: true, ..*ack });
    }

    /// The largest window within the limits. A client that holds ACKs back to lengthen the
    /// round trip gains nothing: the pace has the rate's limit without it.
    fn cap_bytes(&self) -> u64 {
        let limits = self.options.limits;
        // Without an RTT yet: as at a tenth of a second.
        let rtt_ns = if self.srtt_ns > 0 { self.srtt_ns } else { 100_000_000 };
        let of_rate = u128::from(limits.rate_bps) * u128::from(rtt_ns.unsigned_abs());
        let of_rate = u64::try_from(of_rate / 8_000_000_000).unwrap_or(u64::MAX);
        limits.window_bytes.min(of_rate)
    }

    /// Cubic's own least window.
    const fn least_bytes(&self) -> u64 {
        2 * self.mss_bytes
    }

    /// The radio lost something. A reduction within the last round trip was for that: its
    /// report came later than the duplicate ACKs.
    fn explain(&mut self, now_ns: i64) {
        let lately = self.unexplained_ns.take().is_some_and(|at_ns| now_ns - at_ns <= self.srtt_ns);
        if lately {
            self.losses.judge();
            self.cubic.on_spurious(now_ns);
            (self.reduced, self.unseen) = (None, None);
        }
    }

    /// The queue before the radio ran over: the window is reduced at once (4.3.2), once a
    /// round trip.
    fn answer_queue(&mut self, now_ns: i64) {
        let lately = |at_ns: Option<i64>| at_ns.is_some_and(|at_ns| now_ns - at_ns <= self.srtt_ns);
        if self.reduced.is_some() || lately(self.told_of_queue_ns) {
            return;
        }
        self.told_of_queue_ns = Some(now_ns);
        self.losses.judge();
        self.answer(now_ns);
    }

    /// Cubic's answer to congestion of the window in use.
    fn answer(&mut self, now_ns: i64) {
        let event = CongestionEvent {
            kind: CongestionKind::Loss,
            flight_size_bytes: self.cwnd_bytes,
            lost_bytes: self.mss_bytes,
        };
        self.cubic.on_congestion(now_ns, &event);
        self.reduce(now_ns);
    }

    /// Whether a loss can be the radio's, whatever the client says: no queue stands that
    /// could have lost it.
    fn can_be_the_radios(&self) -> bool {
        !self.min_rtt_ns.is_some_and(|least_ns| ClientTrust::queue_loses(self.rtt_ns, least_ns))
    }

    /// Of a loss that is not the radio's, or of which nobody knows.
    fn reduce(&mut self, now_ns: i64) {
        self.unseen = None;
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
        // What was heard before a pause may be too old by now.
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
        if self.is_cubic_held() {
            self.grow_unseen(now_ns, ack);
        } else if self.cubic.cwnd_bytes() <= self.cwnd_bytes {
            self.unseen = None;
            self.cubic.on_ack(now_ns, ack);
        }
        let window = (self.cwnd_bytes, self.reduced.is_some());
        if self.is_clients() && self.trust.watch(now_ns, window, self.min_rtt_ns, ack) {
            // Cubic has grown by that window's ACKs.
            self.answer(now_ns);
        }
        self.settle(now_ns);
    }

    fn on_congestion(&mut self, now_ns: i64, event: &CongestionEvent) {
        let is_loss = event.kind == CongestionKind::Loss;
        let excusable = is_loss && self.can_be_the_radios();
        if is_loss && self.losses.are_the_radios(now_ns, self.srtt_ns) && excusable {
            return;
        }
        // The client told of it before, and that was answered.
        let answered = self.told_of_queue_ns.take();
        if answered.is_some_and(|at_ns| now_ns - at_ns <= self.srtt_ns) {
            return;
        }
        if self.is_clients() {
            self.trust.on_loss(self.cwnd_bytes, self.min_rtt_ns);
        }
        // Of the window in use, which may be the client's and not Cubic's.
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

    fn on_radio(&mut self, now_ns: i64, said: &Feedback) {
        self.on_feedback(now_ns, said);
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

    /// A window that jumps is spread over its round trip, a quarter faster than it drains
    /// (chosen here; Cubic's own pace is the transport's choice). Never faster than the
    /// operator's rate once the client has told something.
    fn pacing_rate_bps(&self) -> Option<u64> {
        let most_bps = self.is_told.then_some(self.options.limits.rate_bps);
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
