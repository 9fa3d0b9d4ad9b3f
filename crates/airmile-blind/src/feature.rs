//! The features of a transfer, and their values.

use std::ops::{Index, IndexMut};

/// Declares the features in the order of the coefficients.
macro_rules! features {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)+) => {
        /// A feature. A new one comes last, or all coefficients are fitted again.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(usize)]
        pub enum Feature {
            $($(#[$doc])* $name,)+
        }

        impl Feature {
            /// All of them, in the order of the coefficients.
            pub const ALL: [Self; N_FEATURES] = [$(Self::$name),+];

            /// Its name.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)+ }
            }
        }

        /// Number of features.
        pub const N_FEATURES: usize = [$($text),+].len();
    };
}

features! {
    /// Share of the time in which a queue held the sender's packets.
    Queue = "queue",
    /// Share of the time with an upload in the way of acknowledgements or requests.
    Uplink = "uplink",
    /// Share of the time in which the receive window was full.
    ReceiveWindow = "receive_window",
    /// Share of the time in slow start after a pause.
    SlowStartRestart = "slow_start_restart",
    /// Share of the time in the first slow start.
    FirstSlowStart = "first_slow_start",
    /// Share of the time in which the sender paced itself.
    Pace = "pace",
    /// Share of the time in which the sender had nothing to send.
    Idle = "idle",
    /// Share of the time in which connections were set up.
    Setup = "setup",
    /// Share of the time in which losses were repaired.
    Loss = "loss",
    /// Share of the time in which the sender's state is unknown.
    Unknown = "untold",
    /// Tenth percentile of the queueing part of round trips, as a logarithm.
    RttLow = "rtt_low",
    /// Its median.
    RttMiddle = "rtt_middle",
    /// Its ninetieth percentile.
    RttHigh = "rtt_high",
    /// Bytes in the queue, as a logarithm.
    QueueBytes = "queue_bytes",
    /// Share of the data that was sent again, as a square root.
    SentAgain = "sent_again",
    /// Standard deviation of the rate over its mean, in short windows.
    CvShort = "cv_short",
    /// The same in long windows.
    CvLong = "cv_long",
    /// Correlation of the rates of adjacent short windows.
    Lag = "lag",
    /// Share of the time in pauses.
    Paused = "paused",
    /// Bytes of the second half over those of the first, as a logarithm.
    Growth = "growth",
    /// Mean bytes of a batch in whole segments, as a logarithm.
    Batch = "batch",
    /// Spread of the bytes of a batch.
    BatchCv = "batch_cv",
    /// Spread of the gaps between batches.
    GapCv = "gap_cv",
    /// Deviation of arrivals from a straight line in blocks, as a logarithm.
    LineBlock = "line_block",
    /// The same overall.
    LineWhole = "line_whole",
    /// Highest rate over the mean, as a logarithm.
    Peak = "peak",
    /// Share of the bytes delayed by a gap that arrived right after it.
    CatchUp = "catch_up",
    /// How much the rate varies while a queue stands.
    SteadyQueue = "steady_queue",
}

impl Feature {
    /// Whether it needs continuous samples of round trips.
    #[must_use]
    pub(super) const fn needs_round_trips(self) -> bool {
        use Feature::{Queue, QueueBytes, RttHigh, RttLow, RttMiddle, SteadyQueue};
        matches!(self, Queue | RttLow | RttMiddle | RttHigh | QueueBytes | SteadyQueue)
    }

    /// Whether arrivals alone give it, without TCP's headers.
    #[must_use]
    pub(super) const fn is_of_arrivals(self) -> bool {
        self as usize >= Self::CvShort as usize && self as usize <= Self::CatchUp as usize
    }
}

/// A value for each feature; NaN if it is unknown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FeatureValues(pub [f64; N_FEATURES]);

impl FeatureValues {
    /// None is known.
    pub const UNKNOWN: Self = Self([f64::NAN; N_FEATURES]);
}

impl Index<Feature> for FeatureValues {
    type Output = f64;

    fn index(&self, feature: Feature) -> &f64 {
        &self.0[feature as usize]
    }
}

impl IndexMut<Feature> for FeatureValues {
    fn index_mut(&mut self, feature: Feature) -> &mut f64 {
        &mut self.0[feature as usize]
    }
}
