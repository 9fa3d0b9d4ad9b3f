//! A sender's window, round by round: is it a start, and which?

/// The window grows in a round by less than this: not a slow start any more.
/// With delayed ACKs it grows by half at least (RFC 5681, 3.1; chosen here below that).
const GROWS: (i64, i64) = (13, 10);
/// So many rounds without growth end a slow start (chosen here; one may be held
/// up by the application).
const FLAT_ROUNDS: u8 = 3;
/// A window that a loss has cut grows by a segment a round or so, and holds the sender
/// back past its former size. After so many rounds without a new maximum something else
/// does (chosen here; CUBIC stands still for some rounds about its former window).
const STALE_ROUNDS: u8 = 16;
/// After idle time a first flight under this share of the one before is a window
/// that was reset (RFC 2861 halves it each RTO; chosen here).
const RESET_SHARE: f64 = 0.7;

/// What a sender is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum WindowPhase {
    /// The connection's own slow start.
    First,
    /// The first round after idle time, and the window before it.
    AfterIdle { before: i64 },
    /// A slow start after idle time.
    Restart { before: i64 },
    /// Behind a timeout; with duplicate ACKs before it, it was not needed.
    Timeout { after_dup_acks: bool, before: i64 },
    /// Fast recovery, up to this offset, and the window before the loss.
    Recovery { until: i64, before: i64 },
    /// Behind it, until the window is what it was before the loss and grows no more.
    Reduced { before: i64 },
    /// None of these.
    Steady,
    /// The capture began inside the connection, and nothing has shown since what its
    /// window is.
    #[default]
    MidFlow,
}

/// What limited a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Round {
    /// The window: the next one follows at once.
    WindowLimited,
    /// The application gave no more.
    AppLimited,
    /// An answer was over, and the next request came.
    Answer,
}

/// Follows the window.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct WindowRounds {
    pub(super) phase: WindowPhase,
    /// A round ends when this is acknowledged.
    round_until: i64,
    /// Most in flight in this round, and in the one before.
    most: i64,
    before: i64,
    flat: u8,
    /// Most in flight since the last loss, and rounds since that grew.
    peak: i64,
    stale: u8,
    /// The window before the loss that cut it, until it is back.
    cut: Option<i64>,
    /// The connection's start was seen.
    from_start: bool,
    /// The first slow start ended as the application gave too little, and may go on.
    unfinished_start: bool,
}

impl WindowRounds {
    /// The connection begins here; without this it is taken in its middle.
    pub(super) const fn begins(&mut self) {
        self.phase = WindowPhase::First;
        self.from_start = true;
    }

    /// Whether the connection's start was seen.
    pub(super) const fn seen_from_start(&self) -> bool {
        self.from_start
    }

    /// Takes what the sender had heard before it sends: a round may be over. One
    /// that did not go on by itself was as large as what there was to send: it tells
    /// nothing of the window, but that the application limits it.
    pub(super) fn heard(&mut self, edge: i64, next: i64, round: Round) {
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

    /// A round in which the application, and not the window, set what was in flight
    /// (RFC 9002, 7.8): a slow start in which only such rounds follow each other holds
    /// nobody back.
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

    /// Most in flight of a round that was acknowledged, since the window was last cut or
    /// began anew: the window was this at least.
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

    /// What holds the sender back once a slow start or idle time is over: the loss before
    /// it, if the window is not back.
    fn behind_start(&mut self) -> WindowPhase {
        self.cut = self.cut.filter(|before| self.most < *before);
        self.cut.map_or(WindowPhase::Steady, |before| WindowPhase::Reduced { before })
    }

    /// Takes what is in flight behind a segment with new data.
    pub(super) fn sent(&mut self, flight: i64, next: i64) {
        if self.most == 0 {
            self.round_until = next;
        }
        self.most = self.most.max(flight);
    }

    /// The sender begins anew after at least an RTO without anything in flight.
    pub(super) fn resumes(&mut self) {
        let reached = self.before.max(self.most);
        let before = match self.phase {
            // Too little was sent since the last time to tell.
            WindowPhase::AfterIdle { before } => before.max(reached),
            _ => reached,
        };
        self.phase = WindowPhase::AfterIdle { before };
        self.most = 0;
        self.flat = 0;
    }

    /// Whether a loss is being mended, by duplicate ACKs or behind a timeout.
    pub(super) const fn mends(&self) -> bool {
        matches!(self.phase, WindowPhase::Recovery { .. } | WindowPhase::Timeout { .. })
    }

    /// Whether a loss is being mended by duplicate ACKs.
    pub(super) const fn recovering(&self) -> bool {
        matches!(self.phase, WindowPhase::Recovery { .. })
    }

    /// Something was sent again by the timer.
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

    fn note_cut(&mut self) {
        let (WindowPhase::Recovery { before, .. } | WindowPhase::Timeout { before, .. }) =
            self.phase
        else {
            return;
        };
        self.unfinished_start = false;
        // A further loss does not lower what there was before the first one.
        self.cut = Some(self.cut.map_or(before, |cut| cut.max(before)));
    }

    /// Something was sent again as duplicate ACKs asked for it.
    pub(super) fn recovers(&mut self, until: i64) {
        self.phase = match self.phase {
            same @ (WindowPhase::Recovery { .. } | WindowPhase::Timeout { .. }) => same,
            // A further loss does not lower what there was before the first one.
            WindowPhase::Reduced { before } => WindowPhase::Recovery { until, before },
            _ => WindowPhase::Recovery { until, before: self.before.max(self.most) },
        };
        self.note_cut();
        // The round that lost tells nothing of what the window is now.
        self.most = 0;
        (self.peak, self.stale) = (0, 0);
    }
}
