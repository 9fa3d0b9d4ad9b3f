//! Answers with files beside them: the HTML report, the Perfetto trace.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use airmile_model::printable_path;

use super::beside::Beside;
use super::diagnose::{Diagnosis, conclude_with};
use super::lanes::Lanes;
use super::radio::{RadioOptions, RadioReport, radio_with};
use super::report::Report;
use super::series::SeriesCollector;
use super::tracks::Keep;
use crate::error::{Error, Result};
use crate::input::Progress;
use crate::session::Inputs;
use crate::write::perfetto::TraceFile;
use crate::write::replacement::whole;
use crate::write::report::write_file;

/// Files to write beside an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exports {
    /// The HTML report.
    pub html: Option<PathBuf>,
    /// The trace for ui.perfetto.dev.
    pub perfetto: Option<PathBuf>,
}

/// Runs analysis and diagnosis, and writes the files, all in one pass over the
/// inputs. Without `lists` and without files, the report's lists of bursts and
/// cell load stay empty, and memory does not grow with the log.
///
/// # Errors
/// The inputs cannot be read, or hold nothing to analyse; a file cannot be
/// written, or is one of the inputs.
pub fn export(
    inputs: &Inputs,
    options: &RadioOptions,
    exports: &Exports,
    lists: bool,
    progress: &Progress,
) -> Result<(RadioReport, Diagnosis)> {
    exports.check(inputs)?;
    let (session, beside) = Beside::gather(inputs, options, progress)?;
    let name = beside.radio.files.first().and_then(|path| path.file_name()).unwrap_or_default();
    let name = name.to_string_lossy();
    let mut trace = match &exports.perfetto {
        Some(path) => Some(TraceFile::create(path, &name, options)?),
        None => None,
    };
    let mut collectors: BTreeMap<u8, SeriesCollector> = BTreeMap::new();
    let plain = *exports == Exports::default() && beside.wire.is_none();
    let keep = if lists || !plain { Keep::Lists } else { Keep::Findings };
    let answer = radio_with(session, options, keep, &mut |tagged| {
        if let Some(trace) = &mut trace {
            trace.push(tagged);
        }
        if exports.html.is_some() {
            collectors
                .entry(tagged.subscription)
                .or_insert_with(|| SeriesCollector::new(options.limits))
                .push(&tagged.record);
        }
    });
    let answer = answer?;
    if trace.is_some() && answer.is_alone() {
        return Err(Error::Option(
            "--perfetto: without a modem log there is nothing of the radio to draw".into(),
        ));
    }
    let capture = beside.capture();
    let diagnosis = conclude_with(&answer, beside, &options.thresholds);
    if let Some(trace) = trace {
        trace.finish(&answer.report, &diagnosis)?;
    }
    let Some(path) = &exports.html else { return Ok((answer.report, diagnosis)) };
    let series = collectors.remove(&answer.report.subscription).map(SeriesCollector::finish);
    let series = series.unwrap_or_default();
    let lanes = Lanes::gather(capture.as_deref(), &diagnosis, &answer, &series, progress)?;
    let report = Report { diagnosis, radio: answer.report, series, lanes };
    write_file(path, &report)?;
    Ok((report.radio, report.diagnosis))
}

impl Exports {
    /// Nothing is written over what is to be read, nor over one another.
    pub(crate) fn check(&self, inputs: &Inputs) -> Result<()> {
        let read: Vec<PathBuf> =
            inputs.files.iter().chain(&inputs.transfers).map(|path| whole(path)).collect();
        for (option, path) in [("--html", &self.html), ("--perfetto", &self.perfetto)] {
            let Some(path) = path else { continue };
            if path.as_os_str() == "-" {
                return Err(Error::Option(format!(
                    "{option} -: name a file; standard output is for the answer"
                )));
            }
            if read.contains(&whole(path)) {
                return Err(Error::Option(format!(
                    "{option} {}: is one of the files to read; name another",
                    printable_path(path)
                )));
            }
        }
        if let (Some(html), Some(trace)) = (&self.html, &self.perfetto)
            && whole(html) == whole(trace)
        {
            return Err(Error::Option("--html and --perfetto: name two files".into()));
        }
        Ok(())
    }
}
