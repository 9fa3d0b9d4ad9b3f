//! The client's feedback, and how the server uses it.

/// Where the client sees the bottleneck (MobiSys 2017, 4.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Bottleneck {
    /// The cell.
    #[default]
    Cellular,
    /// The path before the cell.
    Wireline,
    /// The verdict alternates: both are comparable.
    Unclear,
}

/// The client's report on its radio.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Feedback {
    /// Sequence number; a report that is not later than the last is ignored.
    pub sequence: u64,
    /// The window that fits the free capacity, in bytes (equation 12).
    pub w_claw_bytes: u64,
    /// Share of the cell's PRBs in use, 0 to 1 (N_a / N_t).
    pub load: f64,
    /// Where the bottleneck is.
    pub bottleneck: Bottleneck,
    /// The radio is idle and the load was not measured: the values reported before remain
    /// valid.
    pub idle: bool,
    /// Packets lost by the radio so far: RLC gave up on them.
    pub radio_losses: u64,
    /// Packets lost before the radio so far: RLC's queue overflowed.
    pub queue_losses: u64,
}

/// Limits of the operator for a connection whose client sends feedback, whatever it
/// contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OperatorLimits {
    /// The largest window in bytes.
    pub window_bytes: u64,
    /// The maximum rate in bits per second: window over RTT, and pacing rate.
    pub rate_bps: u64,
}

impl Default for OperatorLimits {
    /// 4 MB and 100 Mbit/s (chosen here: twice an LTE cell of 20 MHz and two layers at 150
    /// ms).
    fn default() -> Self {
        Self { window_bytes: 4_000_000, rate_bps: 100_000_000 }
    }
}

/// Parameters of [`Claw`](super::Claw).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClawOptions {
    /// The cell counts as full from this load on (the paper: 1; lower here, as the estimate
    /// is noisy).
    pub full_from_load: f64,
    /// Round trips for which the cell must be full before Cubic's window is used, if that
    /// is larger (4.3.1: two).
    pub full_round_trips: u32,
    /// Feedback expires after this many round trips, but not before `stale_ns`.
    pub stale_round_trips: u32,
    /// Minimum age at which feedback expires, in nanoseconds.
    pub stale_ns: i64,
    /// How long the last window stays valid while the radio is idle, in nanoseconds.
    pub idle_hold_ns: i64,
    /// How long the client's window is ignored after the path did not deliver it, in
    /// nanoseconds; doubles each further time.
    pub distrust_ns: i64,
    /// The operator's limits.
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
