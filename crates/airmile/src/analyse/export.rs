//! Answers with files beside them: the HTML report, the Perfetto trace.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::diagnose::{Diagnosis, conclude};
use super::radio::{RadioOptions, RadioReport, radio_with};
use super::report::Report;
use super::series::SeriesCollector;
use super::tracks::Keep;
use crate::error::{Error, Result};
use crate::input::Progress;
use crate::session::Inputs;
use crate::write::perfetto::TraceFile;
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
    let name = inputs.files.first().and_then(|path| path.file_name()).unwrap_or_default();
    let name = name.to_string_lossy();
    let mut trace = match &exports.perfetto {
        Some(path) => Some(TraceFile::create(path, &name, options)?),
        None => None,
    };
    let mut collectors: BTreeMap<u8, SeriesCollector> = BTreeMap::new();
    let keep = if lists || *exports != Exports::default() { Keep::Lists } else { Keep::Findings };
    let answer = radio_with(inputs, options, keep, progress, &mut |tagged| {
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
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => {
            if let Some(trace) = trace {
                trace.discard();
            }
            return Err(error);
        }
    };
    let diagnosis = conclude(&answer, &options.thresholds);
    let radio = answer.report;
    if let Some(trace) = trace {
        trace.finish(&radio, &diagnosis)?;
    }
    let Some(path) = &exports.html else { return Ok((radio, diagnosis)) };
    let series = collectors.remove(&radio.subscription).map(SeriesCollector::finish);
    let report = Report { diagnosis, radio, series: series.unwrap_or_default() };
    write_file(path, &report)?;
    Ok((report.radio, report.diagnosis))
}

impl Exports {
    /// Nothing is written over what is to be read, nor over one another.
    fn check(&self, inputs: &Inputs) -> Result<()> {
        let read: Vec<PathBuf> =
            inputs.files.iter().chain(&inputs.transfers).filter_map(|p| whole(p)).collect();
        for (option, path) in [("--html", &self.html), ("--perfetto", &self.perfetto)] {
            if let Some(path) = path
                && whole(path).is_some_and(|path| read.contains(&path))
            {
                return Err(Error::Option(format!(
                    "{option} {}: is one of the files to read; name another",
                    path.display()
                )));
            }
        }
        if self.html.is_some() && self.html == self.perfetto {
            return Err(Error::Option("--html and --perfetto: name two files".into()));
        }
        Ok(())
    }
}

/// The path without links; `None` where no ordinary file is there.
fn whole(path: &Path) -> Option<PathBuf> {
    let path = path.canonicalize().ok()?;
    path.is_file().then_some(path)
}
