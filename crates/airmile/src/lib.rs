//! The facade: recognises inputs, opens them, runs the estimators and documents the result. The
//! command line, Python, live mode and the lab call only this crate, so that their results
//! cannot differ.
//!
//! ```no_run
//! use airmile::{Inputs, Progress, RadioOptions, diagnose};
//!
//! let inputs = Inputs { files: vec!["log.mi2log".into()], ..Inputs::default() };
//! let answer = diagnose(&inputs, &RadioOptions::default(), &Progress::default())?;
//! println!("{}", answer.session.says);
//! # Ok::<(), airmile::Error>(())
//! ```

pub mod agent;
mod analyse;
mod exports;
mod fact;
pub mod live;
mod schemas;
mod session;
mod wording;
pub mod write;

pub use airmile_capture as capture;
pub use airmile_decode as codec;
pub use airmile_io::scrub::{ScrubOptions, ScrubReport, Scrubbed, scrub};
pub use airmile_io::{
    ArrowTable, CaptureStream, Captures, Compression, Document, Error, FileReport, Foreign, Input,
    Kind, Limits, MessageRow, Progress, Replacement, Result, SizeLimit, TimePoint, VERSION, Zone,
    arrow_schema, check_outputs, did_you_mean, format_utc, is_part_of, parquet_bytes, plural,
    read_capture, read_text, run_files, write_whole,
};
pub use airmile_model as model;
pub use airmile_packets as packets;
pub use airmile_pseudonym as pseudonym;
pub use airmile_radio::burst::{BurstOptions, EvidenceChoice};
pub use airmile_radio::detect::DetectOptions;
pub use airmile_radio::usage::Usage;
pub use airmile_wire::compare as comparison;
pub use airmile_wire::tcp as packet_study;

pub use airmile_blind::{NAMED_FROM, Suspect};
pub use airmile_packets::{
    Compared, FlowName, PacketOptions, PacketReport, Study, Table1Row, TableFormat, packet_tables,
    study,
};
pub use airmile_radio::series::{AllocationSeries, Series, SignalPoint};
pub use analyse::application::{ApplicationSide, ApplicationSummary, EventPoint, RateOver};
pub use analyse::blind::Suspicion;
pub use analyse::compare::{
    CauseShare, CompareOptions, CompareVerdict, ComparedGroup, ComparedLoads, ComparedPage,
    ComparedPair, ComparedRun, Comparison, GroupBy, ProbeConnection, ProbeLog, ProbeTransfer,
    compare,
};
pub use analyse::decode::{DecodeOptions, DecodeTo, decode, decode_tables};
pub use analyse::diagnose::{
    Diagnosis, EcnReport, EvidenceItem, Measures, SessionVerdict, TransferDiagnosis, diagnose,
};
pub use analyse::inspect::{InspectReport, inspect};
pub use analyse::lanes::{Lanes, Mark, MarkKind, RangePoint};
pub use analyse::page::{Milestone, Page, PageRequest, PageSaving, PathStep, RequestPart};
pub use analyse::player::{PlayerSession, PlayerStall, PlayerSwitch, SegmentWait};
pub use analyse::radio::{
    CellLoad, Missing, MissingKind, ROUGH_CONFIDENCE, RadioOptions, RadioReport, SmallReport, radio,
};
pub use analyse::report::{Report, report};
pub use analyse::{ClockReport, EvidenceCounts, ServingCell};
pub use exports::{Exports, Subject, export, study_page};
pub use schemas::schemas;
pub use session::{Application, Inputs, Loaded, captures, read_inputs};
pub use wording::{page_cause, page_cause_by};
pub use write::air_packets::{air_packets, air_packets_begin};
