//! Names, units, records and findings of `airmile`, each defined once.
//!
//! Decoders and the emulator write *records*; estimators read records and
//! write *findings*. Nothing here opens a file, reads a clock or spawns a
//! thread. Every record type is a plain struct declared through
//! [`record!`](crate::record), which also gives its columns (name, type,
//! nullability, documentation), so that CSV, JSON, Parquet and
//! `docs/records.md` follow from the one definition.

pub mod application;
pub mod finding;
pub mod flow;
pub mod median;
pub mod nr_tables;
pub mod packet;
mod page;
pub mod printable;
pub mod problem;
pub mod radio;
pub mod records;
pub mod row;
pub mod spans;
pub mod stamp;
pub mod tables;
pub mod transfer;
pub mod tti;
mod tti_clock;
pub mod units;
mod vocabulary;
pub mod window;
pub mod wire;

pub use application::{
    AppPage, AppTransfer, ApplicationLog, LostEntries, Phases, PlayerEvent, PlayerEventKind,
    RatePoint, TimeBase, TimeScale, TransferKind, cut_url,
};
pub use finding::{
    Bound, Burst, Cause, Evidence, TransferFinding, Verdict, VerdictThresholds, confidence_percent,
    counted_ms,
};
pub use page::{PageCause, RequestPhase};
pub use printable::{printable, printable_lines, printable_path};
pub use problem::{Problem, Problems, Severity};
pub use radio::{Direction, Modulation, RlcMode, RntiType};
pub use records::{
    BsrReport, BufferStatus, CellInfo, CellUse, Dci, Grant, GrantSources, Hole, MacBlock,
    Measurement, Neighbour, NrCell, NrMeasurement, NrStats, NrUlStats, PdcpPdu, PdschDecode,
    RadioLink, Record, RlcPdu, RlcStats, RrcMessage, UlTxStats, UnknownMessage,
};
pub use row::{Column, ColumnType, Row, Value};
pub use stamp::{Clock, MAX_DISORDER_NS, Stamp};
pub use transfer::{Transfer, TransferTruth, TruthRun, TtiState};
pub use tti::{Position, Tti, TtiIndex, TtiSpan, TtiUnwrapper};
pub use tti_clock::TtiClock;
pub use vocabulary::plain_name;
pub use wire::{
    ClientBy, CongestionControl, EcnSource, Leg, Protocol, RttSource, SenderPhase, TcpEventKind,
    Termination,
};
