//! A small LTE cell in virtual time with a visible queue: produces the records of a modem
//! log together with the ground truth.
//!
//! ```
//! let sample = airmile_emulate::named("sample-rate-limited").unwrap();
//! let trace = airmile_emulate::run(&sample.scenario())?;
//! assert!(trace.transfers[0].link_demand() < 0.5);
//! # Ok::<(), airmile_emulate::ScenarioError>(())
//! ```
//!
//! [`Cell`] is the state machine: packets in, TTI by TTI, packets and records out; it does
//! not know the senders. [`Simulation`] connects hosts ([`net::Host`]) to it over a core
//! network, event by event: transports without I/O ([`tcp`], [`quic`]), a split-TCP
//! [`proxy`], the applications of [`workload`]. [`run`] and [`run_into`] do this for a
//! [`Scenario`], which is data (a TOML file, [`Scenario::from_toml`]); intermediate output
//! goes to a [`RunSink`].
//!
//! Implemented: phones with their own bearers, and up to a thousand users with byte
//! traffic; one user per TTI (proportional fair, max C/I, blind equal throughput), round
//! robin and proportional fair in frequency, with grants trimmed to the queue, in resource
//! block groups; link adaptation from CQI with an outer loop at 10 % BLER; HARQ with soft
//! combining; RLC AM with poll bits, STATUS PDUs, retransmission and resegmentation by TS
//! 36.322, queues with a byte limit; MAC subheaders and padding by TS 36.321; scheduling
//! requests, buffer status reports and uplink grants that share the carrier; the phone's
//! firmware buffer; RRC idle, paging, promotion, tail and DRX; a second carrier; TDD
//! patterns; NR's slots, block sizes, MAC PDUs and RLC; a split bearer over LTE and NR;
//! link traces in place of the channel; RSRP, RSRQ and RSSI depending on the load in the
//! measured TTI, with boosted reference signals, a neighbour's interference and quantised
//! readings. The core network has delay, jitter, loss and a bottleneck with a queue in each
//! direction.
//!
//! Not implemented: signalling bearers and their messages, handover, short DRX cycles,
//! several code words, special subframes with data, TDD's own grant timing (grants precede
//! by 4 TTIs), measurement gaps; NR uses LTE's grant timing and number of HARQ processes;
//! RLC state survives idle; only the measured phone has secondary carriers. The senders of
//! [`Traffic`] are windows and not transports.

mod cell;
mod core;
mod host;
mod mac;
pub mod net;
mod phy;
mod random;
mod rlc;
mod rrc;
mod run;
mod scenario;
mod transport;
mod user;

pub use self::core::proxy;
pub use cell::{
    Allocated, Capacity, Cell, CellTruth, CellUse, Delivery, LegTruth, throughput_time_ms,
};
pub use host::{
    AppNote, LoadedPage, PageRequest, RadioReader, ReaderSetup, Readers, SimulatedUser, workload,
};
pub use net::{PhoneView, WireError};
pub use rlc::Sdu;
pub use rrc::{RrcRun, RrcState};
pub use run::{
    Bridge, ByteTotals, CapturePoint, DropPoint, EmulatedTransfer, NamedScenario, NoPacket, Node,
    PHONE_ADDRESS, RunOutcome, RunSink, RunTrace, SERVER_ADDRESS, SenderPlace, SenderState,
    Simulation, SimulationEnd, library, named, run, run_into, run_with,
};
pub use scenario::{
    AppConfig, Cause, CellConfig, Competing, CoreConfig, Discipline, DrxConfig, EPOCH_NS,
    LinkConfig, LinkTrace, LinkTraceError, MeasurementConfig, ModemLogConfig, NrConfig,
    OtherConfig, PathConfig, RadioReportConfig, RateLimit, RlcConfig, RrcConfig, Scenario,
    ScenarioError, SchedulerKind, SecondaryConfig, SplitConfig, TraceFiles, Traffic, TransportKind,
    UplinkConfig, UplinkQueueConfig, WindowConfig,
};
pub use transport::{quic, tcp};
pub use user::UserId;
