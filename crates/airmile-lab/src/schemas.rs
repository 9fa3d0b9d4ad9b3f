//! The JSON schemas of the lab's documents.

use airmile::Document;
use airmile_emulate::Scenario;
use schemars::schema_for;

use crate::manifest::Manifest;
use crate::output::LabRun;
use crate::reproduce::Reproduction;

/// The JSON schema of each of the lab's documents, by its name; and that of scenario files.
#[must_use]
pub fn schemas() -> Vec<(&'static str, serde_json::Value)> {
    vec![
        ("scenario", schema_for!(Scenario).to_value()),
        ("lab_run", schema_for!(Document<LabRun>).to_value()),
        ("lab_manifest", schema_for!(Manifest).to_value()),
        ("lab_reproduce", schema_for!(Document<Reproduction>).to_value()),
    ]
}
