//! Application logs among the inputs.

use std::io::Read;

use airmile_capture::application::{ApplicationFormat, ApplicationReader};
use airmile_model::{ApplicationLog, PlayerEventKind, Problem, Severity, TimeBase, printable_path};

use airmile_io::FileReport;

use super::CHUNK_BYTES;
use airmile_io::input::Input;

/// An application's log after reading.
#[derive(Debug, Clone, PartialEq)]
pub struct Application {
    /// The path it was opened with.
    pub path: String,
    /// Its format.
    pub format: ApplicationFormat,
    /// Its content.
    pub log: ApplicationLog,
    /// Whether the analysed transfers are from this log.
    pub gave_transfers: bool,
}

impl Application {
    /// Reads a log; its problems go into the file's report.
    pub(super) fn read(
        mut input: Input,
        format: ApplicationFormat,
        report: &mut FileReport,
    ) -> Self {
        let path = printable_path(input.path());
        let bytes = input.decompressed();
        let mut reader = ApplicationReader::new(format);
        let mut buffer = vec![0; CHUNK_BYTES];
        let failed = loop {
            match input.read(&mut buffer) {
                Ok(0) => break None,
                Ok(n) => reader.push(buffer.get(..n).unwrap_or_default()),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => break Some(error),
            }
        };
        let mut log = reader.finish();
        report.bytes = bytes.bytes();
        if let Some(error) = failed {
            log.problem(Problem {
                offset: report.bytes,
                severity: Severity::Damage,
                what: format!("reading stopped here: {error}"),
            });
        }
        report.items = log.items;
        report.bad_items = log.bad_items;
        if let Some((from, to)) = log.span_ns().filter(|_| log.scale.base == TimeBase::Wall) {
            report.start_us = Some(from.div_euclid(1_000));
            report.end_us = Some(to.div_euclid(1_000));
        }
        let events = |kind| log.events.iter().filter(|event| event.kind == kind).count();
        for (name, n) in [
            ("transfer", log.transfers.len()),
            ("stall", events(PlayerEventKind::Stall)),
            ("switch", events(PlayerEventKind::Switch)),
            ("buffer_level", events(PlayerEventKind::Buffer)),
            ("rate", log.rates.len()),
        ] {
            if n > 0 {
                report.records.insert(name.into(), n as u64);
            }
        }
        log.problems.iter().cloned().for_each(|problem| report.problem(problem));
        report.more_problems += log.more_problems;
        report.damaged |= log.damaged;
        Self { path, format, log, gave_transfers: false }
    }

    /// Whether it has transfers with a time of day.
    pub(super) fn has_placed_transfers(&self) -> bool {
        self.log.scale.base == TimeBase::Wall && !self.log.transfers.is_empty()
    }
}
