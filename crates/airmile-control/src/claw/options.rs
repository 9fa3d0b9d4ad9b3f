//! What a client reports, and how the server uses it.

/// Where the client sees the bottleneck (MobiSys 2017, 4.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Bottleneck {
    /// The cell.
    #[default]
    Cellular,
    /// Something before it.
    Wireline,
    /// Now one, now the other: they are comparable.
    Unclear,
}

/// What a client tells of its radio.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Feedback {
    /// Counts reports; one that is not later than the last is left out.
    pub sequence: u64,
    /// The window that fits what is free, in bytes (equation 12).
    pub w_claw_bytes: u64,
    /// Share of the cell's PRBs that are taken, 0 to 1 (N_a / N_t).
    pub load: f64,
    /// Where the bottleneck is.
    pub bottleneck: Bottleneck,
    /// The radio is idle, and the load was not looked at: what was said before stands.
    pub idle: bool,
    /// Packets that the radio has lost so far: RLC gave up on them.
    pub radio_losses: u64,
    /// Packets that were lost before the radio so far: RLC's queue ran over.
    pub queue_losses: u64,
}

/// What an operator allows a connection whose client tells anything, whatever it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OperatorLimits {
    /// The largest window in bytes.
    pub window_bytes: u64,
    /// The highest rate in bits per second: window over RTT, and pace.
    pub rate_bps: u64,
}

impl Default for OperatorLimits {
    /// 4 MB and 100 Mbit/s (chosen here: an LTE cell of 20 MHz and two layers, twice
    /// over at 150 ms).
    fn default() -> Self {
        Self { window_bytes: 4_000_000, rate_bps: 100_000_000 }
    }
}

/// How feedback is taken.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClawOptions {
    /// From this load on the cell is full (the paper: 1; lower, as the estimate is noisy).
    pub full_from_load: f64,
    /// Round trips for which the cell is full before the window is Cubic's, if that is
    /// larger (4.3.1: two).
    pub full_round_trips: u32,
    /// Feedback is too old behind as many round trips, but not before `stale_ns`.
    pub stale_round_trips: u32,
    /// The least age in nanoseconds at which feedback is too old.
    pub stale_ns: i64,
    /// How long the last window stands while the radio is idle, in nanoseconds.
    pub idle_hold_ns: i64,
    /// How long a window is not believed that the path did not deliver, in nanoseconds;
    /// twice as long each further time.
    pub distrust_ns: i64,
    /// What is allowed.
    pub limits: OperatorLimits,
}

impl Default for ClawOptions {
    fn default() -> Self {
        Self {
            full_from_load: 0.95,
            full_round_trips: 2,
            stale_round_trips: 3,
            stale_ns: 500_000_000,
            idle_hold_ns: 10_000_000_000,
            distrust_ns: 3_000_000_000,
            limits: OperatorLimits::default(),
        }
    }
}
