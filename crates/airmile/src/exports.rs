//! Results written to files: HTML pages, the Perfetto trace.

use std::path::{Path, PathBuf};

use airmile_io::replacement::{check_outputs, whole};

use crate::analyse::aligned::AlignedInputs;
use crate::analyse::diagnose::{Diagnosis, conclude, conclude_with_pages};
use crate::analyse::lanes::Lanes;
use crate::analyse::radio::{RadioOptions, RadioReport, radio_with};
use crate::analyse::report::{Report, SeriesCollectors};
use crate::analyse::subscription::Keep;
use crate::session::Inputs;
use crate::wording;
use crate::write;
use crate::write::perfetto::TraceFile;
use airmile_io::capture::Captures;
use airmile_io::error::{Error, Result};
use airmile_io::input::Progress;
use airmile_packets::{FlowName, PacketOptions, Study, study};

/// Files written in addition to a result.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exports {
    /// The HTML report.
    pub html: Option<PathBuf>,
    /// The trace for ui.perfetto.dev.
    pub perfetto: Option<PathBuf>,
}

/// What an export is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// The diagnosis. Without files, the report's lists of bursts and cell load stay empty, and memory
    /// does not grow with the log.
    Diagnosis,
    /// The report on the radio, with these lists: the files' verdicts, too, are from its records alone.
    Radio,
}

/// Why `radio` does not read other inputs than the radio's records.
const NO_RADIO_IN_PACKETS: &str = "a packet capture holds nothing about the radio: `airmile packets` and \
    `airmile diagnose` read it; give the modem log of the same time (.mi2log, .qmdl, .dlf)";
const NO_RADIO_IN_LOGS: &str =
    "an application's log holds nothing about the radio: use `airmile diagnose`";

/// Runs analysis and diagnosis, and writes the files in one pass over the inputs.
///
/// # Errors
/// The inputs cannot be read, or hold nothing to analyse; or a file cannot be written, or is one of
/// the inputs.
pub fn export(
    inputs: &Inputs,
    options: &RadioOptions,
    exports: &Exports,
    subject: Subject,
    progress: &Progress,
) -> Result<(RadioReport, Diagnosis)> {
    exports.check(inputs)?;
    let (session, mut aligned) = AlignedInputs::gather(inputs, options, progress)?;
    let is_of_radio = subject == Subject::Radio;
    if is_of_radio && (aligned.blind.is_some() || session.is_without_radio()) {
        let what = if aligned.blind.is_some() { NO_RADIO_IN_PACKETS } else { NO_RADIO_IN_LOGS };
        return Err(Error::NothingToAnalyse(what.into()));
    }
    let first = aligned.radio.files.first().or_else(|| inputs.files.first());
    let name = first.and_then(|path| path.file_name()).unwrap_or_default();
    let name = name.to_string_lossy();
    let mut trace = match &exports.perfetto {
        Some(path) => Some(TraceFile::create(path, &name, options)?),
        None => None,
    };
    let mut collectors = SeriesCollectors::default();
    let plain = *exports == Exports::default() && !aligned.asks_bursts(&session);
    let keep = if is_of_radio || !plain { Keep::Lists } else { Keep::Findings };
    let answer = radio_with(session, options, keep, &mut |tagged| {
        if let Some(trace) = &mut trace {
            trace.push(tagged);
        }
        if exports.html.is_some() {
            collectors.push(tagged, options.limits);
        }
    });
    let mut answer = answer?;
    let (capture, unread) = (aligned.capture(), aligned.unread.clone());
    let diagnosis = if is_of_radio {
        aligned.wire = None;
        let mut diagnosis = conclude(&answer, aligned, &options.thresholds);
        diagnosis.session.says += wording::BY_THE_RADIO_ALONE;
        diagnosis
    } else {
        conclude_with_pages(&answer, aligned, &options.thresholds, progress)?
    };
    answer.report.files.extend(unread);
    if let Some(trace) = trace {
        trace.finish(&answer.report, &diagnosis)?;
    }
    let Some(path) = &exports.html else { return Ok((answer.report, diagnosis)) };
    let series = collectors.finish(answer.report.subscription);
    let capture = capture.as_ref().map(|(name, site)| (name.as_str(), *site));
    let lanes = Lanes::gather(capture, &diagnosis, &answer, &series, progress)?;
    let zone = options.limits.zone;
    let report = Report { diagnosis, radio: answer.report, series, lanes, zone };
    write::report::write_file(path, &report)?;
    Ok((report.radio, report.diagnosis))
}

/// As [`study`], written as a page: one HTML file that loads nothing from a network.
///
/// # Errors
/// As [`study`]; or the page cannot be written, or is one of the captures.
pub fn study_page<'a>(
    captures: impl Into<Captures<'a>>,
    options: &PacketOptions,
    asked: &[FlowName],
    html: &Path,
    progress: &Progress,
) -> Result<(Study, Vec<(PathBuf, u64)>)> {
    let captures = captures.into();
    let inputs = Inputs { files: captures.files(), ..Inputs::default() };
    Exports { html: Some(html.to_owned()), perfetto: None }.check(&inputs)?;
    let (mut study, written) = study(captures, options, asked, progress)?;
    // The page selects its own flows.
    let flows = std::mem::take(&mut study.packets.flows);
    write::study::write_file(html, &study, options.limits.zone)?;
    study.packets.flows = flows;
    Ok((study, written))
}

impl Exports {
    /// Refuses outputs that would overwrite an input, a file of the user, or each other.
    fn check(&self, inputs: &Inputs) -> Result<()> {
        let page = self.html.iter().map(|path| (path.clone(), write::page::BEGINS.as_bytes()));
        let trace = self.perfetto.iter().map(|path| (path.clone(), write::perfetto::BEGINS));
        let outputs: Vec<_> = page.chain(trace).collect();
        if outputs.iter().any(|(path, _)| path.as_os_str() == "-") {
            let what = "--html, --perfetto: name a file, not `-`; standard output is the result's";
            return Err(Error::Option(what.into()));
        }
        if let [(html, _), (trace, _)] = &*outputs
            && whole(html) == whole(trace)
        {
            return Err(Error::Option("--html and --perfetto: name different files".into()));
        }
        check_outputs(outputs, inputs.paths())
    }
}
