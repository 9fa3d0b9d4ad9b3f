//! Everything that the HTML report shows, from one pass over the inputs.

use std::collections::BTreeMap;

use super::aligned::AlignedInputs;
use super::diagnose::{Diagnosis, conclude_with_pages};
use super::lanes::Lanes;
use super::radio::{RadioOptions, RadioReport, radio_with};
use super::subscription::Keep;
use crate::session::Inputs;
use airmile_decode::diag::Tagged;
use airmile_io::error::Result;
use airmile_io::input::Progress;
use airmile_io::limits::{LimitFilter, Limits};
use airmile_io::zone::Zone;
use airmile_model::Record;
use airmile_radio::series::{Series, SeriesCollector};

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
    /// The zone of its times.
    pub zone: Zone,
}

/// Collects the data drawn over time of each subscription.
#[derive(Default)]
pub(crate) struct SeriesCollectors(BTreeMap<u8, (LimitFilter, SeriesCollector)>);

impl SeriesCollectors {
    pub(crate) fn push(&mut self, tagged: &Tagged, limits: Limits) {
        let new = || (LimitFilter::new(limits), SeriesCollector::default());
        let (filter, collector) = self.0.entry(tagged.subscription).or_insert_with(new);
        // Cell information holds at any time, and its own may be the log's start.
        if filter.keeps(&tagged.record) || matches!(tagged.record, Record::CellInfo(_)) {
            collector.push(&tagged.record);
        }
    }

    pub(crate) fn finish(mut self, subscription: u8) -> Series {
        self.0.remove(&subscription).map(|(_, one)| one.finish()).unwrap_or_default()
    }
}

/// Runs analysis and diagnosis, and keeps the data drawn over time.
///
/// # Errors
/// The inputs cannot be read, or hold nothing to analyse.
pub fn report(inputs: &Inputs, options: &RadioOptions, progress: &Progress) -> Result<Report> {
    let (session, aligned) = AlignedInputs::gather(inputs, options, progress)?;
    let mut collectors = SeriesCollectors::default();
    let mut watch = |tagged: &Tagged| collectors.push(tagged, options.limits);
    let answer = radio_with(session, options, Keep::Lists, &mut watch)?;
    let capture = aligned.capture();
    let diagnosis = conclude_with_pages(&answer, aligned, &options.thresholds, progress)?;
    let series = collectors.finish(answer.report.subscription);
    let capture = capture.as_ref().map(|(name, site)| (name.as_str(), *site));
    let lanes = Lanes::gather(capture, &diagnosis, &answer, &series, progress)?;
    let zone = options.limits.zone;
    Ok(Report { diagnosis, radio: answer.report, series, lanes, zone })
}
