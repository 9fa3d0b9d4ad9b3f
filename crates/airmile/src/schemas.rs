//! The JSON schemas of the documents.

use schemars::schema_for;

use crate::analyse::compare::{Comparison, ProbeLog};
use crate::analyse::diagnose::Diagnosis;
use crate::analyse::inspect::InspectReport;
use crate::analyse::radio::RadioReport;
use airmile_io::Document;
use airmile_io::scrub::ScrubReport;
use airmile_packets::{PacketReport, Study};

/// The JSON schema of each document, by its name. The lab has a separate one.
#[must_use]
pub fn schemas() -> Vec<(&'static str, serde_json::Value)> {
    vec![
        ("inspect", schema_for!(Document<InspectReport>).to_value()),
        ("radio", schema_for!(Document<RadioReport>).to_value()),
        ("diagnose", schema_for!(Document<Diagnosis>).to_value()),
        ("compare", schema_for!(Document<Comparison>).to_value()),
        ("probe", schema_for!(ProbeLog).to_value()),
        ("packets", schema_for!(Document<PacketReport>).to_value()),
        ("study", schema_for!(Document<Study>).to_value()),
        ("scrub", schema_for!(Document<ScrubReport>).to_value()),
    ]
}

#[cfg(test)]
mod tests {
    use airmile_io::ArrowTable;

    use crate::analyse::diagnose::TransferDiagnosis;

    #[test]
    fn transfers_have_a_table() {
        ArrowTable::of_rows::<TransferDiagnosis>("transfers", &[]).unwrap();
    }
}
