//! The passive study of Huang et al. (SIGCOMM 2013) on any capture.
//!
//! [`PacketStudy`] takes packets, returns rows of tables as they are complete, and sums
//! up at the end. Memory grows with the number of open flows.
//!
//! ```
//! use airmile_wire::tcp::{PacketStudy, StudyOptions};
//!
//! let mut study = PacketStudy::new(StudyOptions::default());
//! // study.push(&packet); while let Some(row) = study.poll() { .. }
//! let summary = study.finish();
//! assert_eq!(summary.quality.packets, 0);
//! ```

mod aggregate;
mod bandwidth;
mod clock;
mod cwnd;
mod duplicates;
mod echoes;
mod energy;
mod episode;
mod finish;
mod flight;
mod flight_sum;
mod flow;
mod merge;
mod mix;
mod opt64;
mod options;
mod partition;
mod periodic;
mod quality;
mod ranges;
mod route;
mod rows;
mod rto;
mod segments;
mod sender;
mod shard;
mod side;
mod stream;
mod study;
mod summary;
mod trace;
mod unanswered;
mod user;
mod usual;
mod window;

pub use bandwidth::SendRateThreshold;
pub use clock::DELTA_G_NS;
pub(crate) use clock::TickClock;
pub use echoes::{Echoes, Released};
pub use energy::{RadioModel, RadioUse};
pub use episode::R_SS_THRESHOLD;
pub use finish::utilisation;
pub use flight_sum::FlightSum;
pub use options::{StudyOptions, Tables, Traced};
pub use partition::{FlowEnds, PacketOwner, bucket_of};
pub use periodic::Periodic;
pub use quality::Quality;
pub use route::{Change, PARTITIONS, PacketRouter, Route};
pub use rto::{LINUX_MIN_RTO_NS, RtoEstimator, may_restart_after_ns};
pub use shard::{Finding, PacketShard, ShardCounts};
pub use study::{Collector, PacketStudy};
pub use summary::{
    PeriodicRequests, RANGES, RATE_SIZES_BYTES, Share, StudySummary, USUAL_WINDOW_BYTES,
};
pub use trace::{TracedAck, TracedPacket};

#[cfg(test)]
mod tests;
