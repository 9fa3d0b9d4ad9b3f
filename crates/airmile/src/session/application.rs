//! Application logs among the inputs.

use std::io::Read;

use airmile_capture::application::{ApplicationFormat, ApplicationReader};
use airmile_model::{ApplicationLog, PlayerEventKind, Problem, TimeBase, printable_path};

use airmile_io::FileReport;

use super::{CHUNK_BYTES, Loaded};
use airmile_io::error::{Error, Result};
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
            log.problem(Problem::stopped(report.bytes, &error));
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
        report.problems_of_reader(&log.problems);
        Self { path, format, log, gave_transfers: false }
    }

    /// Whether it has neither transfers nor events nor rates.
    const fn is_empty(&self) -> bool {
        self.log.transfers.is_empty() && self.log.events.is_empty() && self.log.rates.is_empty()
    }

    /// Whether it has transfers with a time of day.
    pub(crate) fn has_placed_transfers(&self) -> bool {
        self.log.scale.base == TimeBase::Wall && !self.log.transfers.is_empty()
    }
}

impl Loaded {
    /// Refuses application logs of which nothing could be read, if there is no other input.
    ///
    /// # Errors
    /// The first problem of each, with its byte offset.
    pub(crate) fn check_applications(&self) -> Result<()> {
        let others = self.files.len() > self.applications.len() || !self.transfers.is_empty();
        let is_bad = |file: &&FileReport| file.damaged || file.bad_items > 0;
        if others || !self.applications.iter().all(Application::is_empty) {
            return Ok(());
        }
        let first = |file: &FileReport| Some(format!("{}: {}", file.path, file.problems.first()?));
        let problems: Vec<String> = self.files.iter().filter(is_bad).filter_map(first).collect();
        let mut without = self.files.iter().filter(|file| file.items == 0);
        match (problems.is_empty(), without.next()) {
            (true, None) => Ok(()),
            (true, Some(file)) => {
                Err(Error::NothingToAnalyse(format!("{}: the log has no entries", file.path)))
            }
            (false, _) => Err(Error::NothingToAnalyse(format!(
                "{}; nothing could be read",
                problems.join("; ")
            ))),
        }
    }
}
