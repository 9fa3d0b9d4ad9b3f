//! QCut: keeps the device's uplink queue short.
//!
//! A phone's firmware buffers hundreds of kilobytes below the operating system; an upload
//! fills this buffer and delays all other traffic. [`Qcut`] passes a packet to the modem
//! only while the modem holds less than a [`Limit`], so that packets wait above it, where
//! sparse flows can go ahead ([`FlowQueues`]). The modem's occupancy is estimated from its
//! reports ([`Estimator`]) or, without reports, from round trips ([`RoundTripEstimator`]).
//!
//! Nothing here does I/O or reads a clock: packets ([`Qcut::push`]), reports
//! ([`Qcut::report`]) and answers ([`Qcut::acknowledged`], [`Qcut::probe_answered`]) come
//! in with the time; packets go out ([`Qcut::poll`]), and [`Qcut::poll_timeout`] gives the
//! time of the next call; [`Qcut::finish`] returns the packets that still wait.
//!
//! ```
//! use airmile_control::qcut::{Limit, PacketInfo, Qcut, QcutConfig, ModemReport};
//!
//! let limit = Limit::Bytes(3_000);
//! let mut qcut = Qcut::new(QcutConfig { limit, ..QcutConfig::default() });
//! let packet = PacketInfo { flow: 1, bytes: 1_500, ..PacketInfo::default() };
//! (0..4).for_each(|n| qcut.push(0, packet, n));
//! assert_eq!([qcut.poll(0), qcut.poll(0), qcut.poll(0)], [Some(0), Some(1), None]);
//! // The modem reports an empty buffer.
//! let empty = ModemReport::Waiting { at_ns: 20_000_000, low_bytes: 0, high_bytes: 0 };
//! qcut.report(30_000_000, empty);
//! assert_eq!(qcut.poll(30_000_000), Some(2));
//! ```
//!
//! docs/papers/qcut.md separates the paper's parts from ours.

mod autorate;
mod bench;
mod class;
mod codel;
mod delay;
mod estimate;
mod gate;
mod gate_controller;
mod handover_log;
mod htb;
mod log_quality;
mod passive;
mod queue;
mod rate;
mod records;
mod stop;

pub use autorate::{Autorate, AutorateConfig};
pub use bench::{GateBench, SmallQueues};
pub use class::{ClassConfig, PacketInfo, TCP, Tier, UDP};
pub use codel::{Codel, CodelConfig};
pub use delay::{DelayConfig, HandoverMark, RoundTripEstimator};
pub use estimate::{EstimateConfig, Estimator, ModemReport, Occupancy, ReportCounts};
pub use gate::{Limit, LimitError};
pub use gate_controller::{BufferEvidence, GateState, OPEN_BYTES_PER_S, ProbeId, Qcut, QcutConfig};
pub use htb::Htb;
pub use log_quality::LogFault;
pub use queue::{DropReason, FlowQueues, QueueConfig, QueueCounts, Tally};
pub use records::ReportExtractor;
pub use stop::StoppedUploads;
