//! The facade: recognise inputs, open them, run the estimators, document the
//! answer. Command line, Python, live mode and lab call this and nothing
//! below it, so that they cannot differ.
//!
//! ```no_run
//! use airmile::{Inputs, Progress, RadioOptions, diagnose};
//!
//! let inputs = Inputs { files: vec!["log.mi2log".into()], ..Inputs::default() };
//! let answer = diagnose(&inputs, &RadioOptions::default(), &Progress::default())?;
//! println!("{}", answer.session.says);
//! # Ok::<(), airmile::Error>(())
//! ```

mod agent;
mod analyse;
mod budget;
mod document;
mod error;
mod input;
pub mod lab;
mod limits;
pub mod live;
pub mod packets;
mod recognise;
mod scrub;
mod session;
mod table;
pub mod write;

pub use agent::RadioAgent;
pub use airmile_decode as codec;
pub use airmile_model as model;
pub use airmile_radio::burst::{BurstOptions, EvidenceChoice};
pub use airmile_radio::detect::DetectOptions;
pub use airmile_radio::usage::Usage;
pub use airmile_wire::compare as comparison;
pub use airmile_wire::tcp as packet_study;

pub use airmile_wire::packets_only::NAMED_FROM;
pub use analyse::application::{ApplicationSide, ApplicationSummary, EventPoint, RateOver};
pub use analyse::blind::Suspicion;
pub use analyse::compare::{
    CauseShare, CompareOptions, CompareVerdict, ComparedGroup, ComparedPair, ComparedRun,
    Comparison, GroupBy, ProbeConnection, ProbeLog, ProbeTransfer, compare,
};
pub use analyse::decode::{DecodeOptions, DecodeTo, decode, decode_tables};
pub use analyse::diagnose::{
    Diagnosis, EvidenceItem, Measures, SessionVerdict, TransferDiagnosis, diagnose,
};
pub use analyse::export::{Exports, export};
pub use analyse::inspect::{InspectReport, inspect};
pub use analyse::lanes::{Lanes, Mark, MarkKind, RangePoint};
pub use analyse::radio::{
    CellLoad, Missing, MissingKind, ROUGH_CONFIDENCE, RadioOptions, RadioReport, SmallReport, radio,
};
pub use analyse::report::{Report, report};
pub use analyse::series::{AllocationSeries, Series, SignalPoint};
pub use analyse::{ClockReport, EvidenceCounts, ServingCell};
pub use budget::Budget;
pub use document::{Document, VERSION, schemas};
pub use error::{Error, Result};
pub use input::{Compression, Input, Progress};
pub use limits::{Limits, TimePoint, format_utc};
pub use packets::{
    CaptureStream, Captures, Compared, FlowName, PacketOptions, PacketReport, Study, Table1Row,
    TableFormat, packet_tables, read_capture, study, study_page,
};
pub use recognise::{Foreign, Kind};
pub use scrub::{ScrubOptions, ScrubReport, Scrubbed, scrub};
pub use session::{Application, FileReport, Inputs, Loaded, MessageRow, captures, read_inputs};
pub use table::{ArrowTable, arrow_schema};
