//! The envelope of every `--json` document: which one, which version.

use schemars::JsonSchema;
use serde::Serialize;

/// Version of all documents; a new field is not a new version, a changed or
/// removed one, or a new word in a closed list, is.
pub const VERSION: u32 = 1;

/// A document as it goes out.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Document<T> {
    /// Which document: the command's name.
    pub document: &'static str,
    /// Its version.
    pub version: u32,
    /// The program and version that made it.
    pub made_by: &'static str,
    /// What it says.
    #[serde(flatten)]
    pub body: T,
}

impl<T> Document<T> {
    /// Wraps a body.
    pub const fn new(document: &'static str, body: T) -> Self {
        let made_by = concat!("airmile ", env!("CARGO_PKG_VERSION"));
        Self { document, version: VERSION, made_by, body }
    }
}

/// The JSON schema of each document, by its name; and that of scenario files.
#[must_use]
pub fn schemas() -> Vec<(&'static str, serde_json::Value)> {
    use crate::lab::reproduce::Reproduction;
    use crate::{
        Comparison, Diagnosis, InspectReport, PacketReport, ProbeLog, RadioReport, ScrubReport,
    };
    let of = |schema: schemars::Schema| schema.to_value();
    vec![
        ("inspect", of(schemars::schema_for!(Document<InspectReport>))),
        ("radio", of(schemars::schema_for!(Document<RadioReport>))),
        ("diagnose", of(schemars::schema_for!(Document<Diagnosis>))),
        ("compare", of(schemars::schema_for!(Document<Comparison>))),
        ("probe", of(schemars::schema_for!(ProbeLog))),
        ("scenario", of(schemars::schema_for!(crate::lab::Scenario))),
        ("packets", of(schemars::schema_for!(Document<PacketReport>))),
        ("study", of(schemars::schema_for!(Document<crate::packets::Study>))),
        ("scrub", of(schemars::schema_for!(Document<ScrubReport>))),
        ("lab_run", of(schemars::schema_for!(Document<crate::lab::LabRun>))),
        ("lab_manifest", of(schemars::schema_for!(crate::lab::Manifest))),
        ("lab_reproduce", of(schemars::schema_for!(Document<Reproduction>))),
    ]
}
