//! A small LTE cell in virtual time whose queue can be seen: it leaves the
//! records that a modem log would hold, and the truth beside them.
//!
//! ```
//! let sample = airmile_emulate::named("sample-rate-limited").unwrap();
//! let trace = airmile_emulate::run(&sample.scenario())?;
//! assert!(trace.transfers[0].link_demand() < 0.5);
//! # Ok::<(), airmile_emulate::ScenarioError>(())
//! ```
//!
//! [`Cell`] is the state machine: packets in, TTI by TTI, packets and records
//! out; it knows nothing of who sends. [`run`] joins it with a core network of
//! constant delay and the transfers of a [`Scenario`].
//!
//! Real transports are apart from it: [`tcp`] and [`quic`] without I/O, a
//! split-TCP [`proxy`], and the applications of [`workload`], all behind
//! [`net::Host`].
//!
//! What is in: whole-TTI proportional fair and round-robin scheduling with
//! grants trimmed to the queue, in resource block groups; link adaptation from CQI with an outer loop on
//! 10 % BLER; HARQ with soft combining; RLC AM with poll bits, STATUS PDUs,
//! retransmission and resegmentation by TS 36.322; MAC subheaders and padding by
//! TS 36.321; scheduling requests, buffer status reports and uplink grants;
//! RSRP, RSRQ and RSSI by the load of the measured TTI, with boosted reference
//! signals, a neighbour's interference and quantised readings.
//!
//! What is not: the senders are no TCP (a window that doubles up to a limit,
//! nothing is ever lost); the queue has no limit; one carrier, one code word,
//! FDD; no signalling bearers, DRX, idle state or handover; other users have no RLC and no uplink.

mod backlog;
mod cell;
mod downlink;
mod flow;
mod frame;
mod harq;
mod library;
mod link;
mod mac;
mod measure;
pub mod net;
mod party;
pub mod proxy;
pub mod quic;
mod random;
mod rlc;
mod run;
mod scenario;
mod scheduler;
mod simulation;
pub mod tcp;
mod truth;
mod uplink;
mod wire;
pub mod workload;

pub use cell::{Cell, CellTruth, Delivery, EPOCH_NS, RrcRun, RrcState};
pub use library::{NamedScenario, library, named};
pub use rlc::Sdu;
pub use run::{AppNote, EmulatedTransfer, Outcome, Totals, Trace, run, run_into};
pub use scenario::{
    AppConfig, Cause, CellConfig, Competing, CoreConfig, DrxConfig, LinkConfig, LinkTrace,
    LinkTraceError, MeasurementConfig, OtherConfig, PathConfig, RateLimit, RlcConfig, RrcConfig,
    Scenario, ScenarioError, SchedulerKind, SecondaryConfig, TraceFiles, Traffic, UplinkConfig,
    WindowConfig,
};
pub use simulation::{CapturePoint, DropPoint, Ended, Simulation, Sink, User};
pub use truth::{CellUse, throughput_time_ms};
pub use wire::WireError;
