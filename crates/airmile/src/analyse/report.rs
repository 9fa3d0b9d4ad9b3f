//! Everything that the HTML report shows, from one pass over the inputs.

use std::collections::BTreeMap;

use super::aligned::AlignedInputs;
use super::diagnose::{Diagnosis, conclude_with_pages};
use super::lanes::Lanes;
use super::radio::{RadioOptions, RadioReport, radio_with};
use super::series::{Series, SeriesCollector};
use super::subscription::Keep;
use crate::session::Inputs;
use airmile_io::error::Result;
use airmile_io::input::Progress;

/// The contents of a report.
#[derive(Debug, Clone)]
pub struct Report {
    /// The diagnosis.
    pub diagnosis: Diagnosis,
    /// Its evidence from the radio.
    pub radio: RadioReport,
    /// Data drawn over time.
    pub series: Series,
    /// Data drawn next to the radio.
    pub lanes: Lanes,
}

/// Runs analysis and diagnosis, and keeps the data drawn over time.
///
/// # Errors
/// The inputs cannot be read, or hold nothing to analyse.
pub fn report(inputs: &Inputs, options: &RadioOptions, progress: &Progress) -> Result<Report> {
    let (session, aligned) = AlignedInputs::gather(inputs, options, progress)?;
    let mut collectors: BTreeMap<u8, SeriesCollector> = BTreeMap::new();
    let answer = radio_with(session, options, Keep::Lists, &mut |tagged| {
        collectors
            .entry(tagged.subscription)
            .or_insert_with(|| SeriesCollector::new(options.limits))
            .push(&tagged.record);
    })?;
    let capture = aligned.capture();
    let diagnosis = conclude_with_pages(&answer, aligned, &options.thresholds, progress)?;
    let series = collectors.remove(&answer.report.subscription).map(SeriesCollector::finish);
    let series = series.unwrap_or_default();
    let capture = capture.as_ref().map(|(name, site)| (name.as_str(), *site));
    let lanes = Lanes::gather(capture, &diagnosis, &answer, &series, progress)?;
    Ok(Report { diagnosis, radio: answer.report, series, lanes })
}
