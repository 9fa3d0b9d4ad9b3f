//! Models a sender's window per round: whether it is in slow start, and in which one.

use super::split::INITIAL_WINDOW_BYTES;

/// A window that grows by less than this per round is not in slow start. With delayed
/// ACKs it grows by half at least (RFC 5681, 3.1; chosen here below that).
const GROWS: (i64, i64) = (13, 10);
/// Rounds without growth that end a slow start (chosen here; the application may hold one
/// up).
const FLAT_ROUNDS: u8 = 3;
/// After a loss the window grows by about a segment per round, and limits the sender
/// until it is back at its former size. After this many rounds without a new maximum,
/// something else limits it (chosen here; CUBIC plateaus for some rounds around its
/// former window).
const STALE_ROUNDS: u8 = 16;
/// After idle time, a first flight smaller than this share of the previous one indicates
/// a reset window (RFC 2861 halves it each RTO; chosen here).
const RESET_SHARE: f64 = 0.7;

/// The phase of a sender's window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum WindowPhase {
    /// The connection's own slow start.
    First,
    /// The first round after idle time, and the window before it.
    AfterIdle { before: i64 },
    /// A slow start after idle time.
    Restart { before: i64 },
    /// After a timeout; if duplicate ACKs preceded it, it was unnecessary.
    Timeout { after_dup_acks: bool, before: i64 },
    /// Fast recovery, until this offset is acknowledged; and the window before the loss.
    Recovery { until: i64, before: i64 },
    /// After it, until the window is back at its size before the loss and stops growing.
    Reduced { before: i64 },
    /// None of the above.
    Steady,
    /// The capture began within the connection, and nothing has shown the window since.
    #[default]
    MidFlow,
}

/// What limited a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Round {
    /// The window: the next round follows at once.
    WindowLimited,
    /// The application had no more data.
    AppLimited,
    /// An answer ended, and the next request came.
    Answer,
}

/// Tracks the window.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct WindowRounds {
    pub(super) phase: WindowPhase,
    /// The round ends when this offset is acknowledged.
    round_until: i64,
    /// Maximum in flight in this round, and in the previous one.
    most: i64,
    before: i64,
    flat: u8,
    /// Maximum in flight since the last loss, and rounds since that grew.
    peak: i64,
    stale: u8,
    /// The window before the loss that reduced it, until it is restored.
    cut: Option<i64>,
    /// The connection's start was captured.
    from_start: bool,
    /// The first slow start ended for lack of application data, and may continue.
    unfinished_start: bool,
}

impl WindowRounds {
    /// Marks the connection's start; without this call it is seen from its middle on.
    pub(super) const fn begins(&mut self) {
        self.phase = WindowPhase::First;
        self.from_start = true;
    }

    /// Whether the connection's start was captured.
    pub(super) const fn seen_from_start(&self) -> bool {
        self.from_start
    }

    /// Applies the ACKs that the sender received before it sends: a round may be over. A
    /// round that did not continue by itself was limited by the available data: it shows
    /// only that the application limits the window.
    pub(super) fn on_ack(&mut self, edge: i64, next: i64, round: Round) {
        if let WindowPhase::Recovery { until, before } = self.phase
            && edge >= until
        {
            self.phase = WindowPhase::Reduced { before };
        }
        if edge < self.round_until || self.most == 0 {
            return;
        }
        match round {
            Round::WindowLimited => self.round_over(),
            Round::AppLimited => self.app_limited_round(),
            Round::Answer => self.before = self.before.max(self.most),
        }
        self.most = 0;
        self.round_until = next;
    }

    /// A round limited by the application and not by the window (RFC 9002, 7.8): a slow
    /// start of only such rounds does not limit the sender.
    fn app_limited_round(&mut self) {
        self.before = self.before.max(self.most);
        self.flat = self.flat.saturating_add(1);
        if self.flat < FLAT_ROUNDS {
            return;
        }
        match self.phase {
            WindowPhase::First => {
                self.phase = WindowPhase::Steady;
                self.unfinished_start = true;
            }
            WindowPhase::MidFlow => self.phase = WindowPhase::Steady,
            _ => {}
        }
    }

    /// Maximum bytes in flight of an acknowledged round since the window was last reduced
    /// or reset: a lower bound of the window.
    pub(super) const fn proven(&self) -> i64 {
        self.before
    }

    fn round_over(&mut self) {
        let grows = self.most * GROWS.1 >= self.before * GROWS.0;
        self.flat = if grows { 0 } else { self.flat.saturating_add(1) };
        let flat = self.flat >= FLAT_ROUNDS;
        if self.most > self.peak {
            (self.peak, self.stale) = (self.most, 0);
        } else {
            self.stale = self.stale.saturating_add(1);
        }
        let stale = self.stale >= STALE_ROUNDS;
        self.phase = match self.phase {
            WindowPhase::AfterIdle { before }
                if (self.most as f64) < before as f64 * RESET_SHARE =>
            {
                self.flat = 0;
                WindowPhase::Restart { before }
            }
            WindowPhase::AfterIdle { .. } => self.behind_start(),
            WindowPhase::Restart { before } if flat || self.most >= before => self.behind_start(),
            WindowPhase::Timeout { before, .. } if flat || self.most >= before => {
                self.behind_start()
            }
            WindowPhase::Reduced { before } if self.most >= before && stale => {
                self.cut = None;
                WindowPhase::Steady
            }
            WindowPhase::First if flat => WindowPhase::Steady,
            WindowPhase::Steady if grows && self.unfinished_start => WindowPhase::First,
            other => other,
        };
        self.before = self.most;
    }

    /// What limits the sender after a slow start or idle time: the loss before it, if the
    /// window is not restored.
    fn behind_start(&mut self) -> WindowPhase {
        self.cut = self.cut.filter(|before| self.most < *before);
        self.cut.map_or(WindowPhase::Steady, |before| WindowPhase::Reduced { before })
    }

    /// Takes the bytes in flight after a segment with new data.
    pub(super) fn sent(&mut self, flight: i64, next: i64) {
        if self.most == 0 {
            self.round_until = next;
        }
        self.most = self.most.max(flight);
    }

    /// The sender resumes after at least an RTO without data in flight. If the first slow start
    /// `goes_on`, a pause does not end it before the initial window was in flight.
    pub(super) fn resumes(&mut self, goes_on: bool) {
        let reached = self.before.max(self.most);
        (self.most, self.flat) = (0, 0);
        let is_small = reached <= INITIAL_WINDOW_BYTES.cast_signed();
        if goes_on && is_small && self.phase == WindowPhase::First {
            self.before = 0;
            return;
        }
        let before = match self.phase {
            // Too little was sent since the last idle time to know.
            WindowPhase::AfterIdle { before } => before.max(reached),
            _ => reached,
        };
        self.phase = WindowPhase::AfterIdle { before };
    }

    /// Whether a loss is being repaired, by duplicate ACKs or after a timeout.
    pub(super) const fn mends(&self) -> bool {
        matches!(self.phase, WindowPhase::Recovery { .. } | WindowPhase::Timeout { .. })
    }

    /// Whether a loss is being repaired by duplicate ACKs.
    pub(super) const fn recovering(&self) -> bool {
        matches!(self.phase, WindowPhase::Recovery { .. })
    }

    /// The timer caused a retransmission.
    pub(super) fn timeout(&mut self, after_dup_acks: bool) {
        let before = self.before.max(self.most);
        self.phase = match self.phase {
            WindowPhase::Timeout { after_dup_acks: was, before } => {
                WindowPhase::Timeout { after_dup_acks: was || after_dup_acks, before }
            }
            WindowPhase::Recovery { before, .. } => WindowPhase::Timeout { after_dup_acks, before },
            _ => WindowPhase::Timeout { after_dup_acks, before },
        };
        self.note_cut();
        self.flat = 0;
    }

    /// What counted as a timeout was none: the recovery goes on.
    pub(super) const fn no_timeout(&mut self, until: i64) {
        if let WindowPhase::Timeout { before, .. } = self.phase {
            self.phase = WindowPhase::Recovery { until, before };
        }
    }

    fn note_cut(&mut self) {
        let (WindowPhase::Recovery { before, .. } | WindowPhase::Timeout { before, .. }) =
            self.phase
        else {
            return;
        };
        self.unfinished_start = false;
        // A further loss keeps the window from before the first one.
        self.cut = Some(self.cut.map_or(before, |cut| cut.max(before)));
    }

    /// Duplicate ACKs caused a retransmission.
    pub(super) fn recovers(&mut self, until: i64) {
        self.phase = match self.phase {
            same @ (WindowPhase::Recovery { .. } | WindowPhase::Timeout { .. }) => same,
            // A further loss keeps the window from before the first one.
            WindowPhase::Reduced { before } => WindowPhase::Recovery { until, before },
            _ => WindowPhase::Recovery { until, before: self.before.max(self.most) },
        };
        self.note_cut();
        // The round with the loss does not show the current window.
        self.most = 0;
        (self.peak, self.stale) = (0, 0);
    }
}
