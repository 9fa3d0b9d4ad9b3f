//! The contents of a file: the report on each input of a command.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use airmile_decode::diag::Tagged;
use airmile_model::{Problem, Problems, Record, Severity, printable_path};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::input::{Compression, Input};
use crate::recognise::Kind;

/// Key for frames cut within a header: the packets in them are not read.
pub(crate) const CUT_HEADER: &str = "cut_header";

/// Extensions of names that promise a log or a capture.
const LOG_EXTENSIONS: [&str; 9] =
    ["cap", "dlf", "har", "hdf", "mi2log", "pcap", "pcapng", "qmdl", "qmdl2"];

/// The ending of a noun's plural.
#[must_use]
pub const fn plural(n: u64) -> &'static str {
    if n == 1 { "" } else { "s" }
}

/// The contents of a file, as `inspect` reports them.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct FileReport {
    /// The name under which it was opened.
    pub path: String,
    /// Its format.
    pub kind: Cow<'static, str>,
    /// Its compression.
    pub compression: Compression,
    /// Bytes, decompressed.
    pub bytes: u64,
    /// First time in it, in microseconds since the Unix epoch.
    pub start_us: Option<i64>,
    /// Last time in it, in microseconds since the Unix epoch.
    pub end_us: Option<i64>,
    /// Rows of a table, frames of a log.
    pub items: u64,
    /// Frames with a bad CRC or length, unreadable rows.
    pub bad_items: u64,
    /// Records read from it, by type.
    pub records: BTreeMap<Cow<'static, str>, u64>,
    /// Messages of a log, by code and version.
    pub messages: Vec<MessageRow>,
    /// User downlink grants per subscription of a multi-SIM phone.
    pub subscriptions: BTreeMap<u8, u64>,
    /// Records that arrived after their time had been judged; left out of bursts.
    pub late_records: u64,
    /// Problems, the first ones as text.
    pub problems: Vec<Problem>,
    /// Problems beyond those.
    pub more_problems: u64,
    /// Whether bytes or rows were lost to damage.
    pub damaged: bool,
    /// Why the result is not from the file; null if it is.
    #[serde(default)]
    pub left_out: Option<String>,
    /// The ticks of a capture's clock, in nanoseconds, if they hide how data arrived.
    #[serde(skip)]
    pub clock_ticks_ns: Option<i64>,
}

/// Count of a message in a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MessageRow {
    /// Log code, as in `0xB173`.
    pub code: String,
    /// Name.
    pub name: String,
    /// Version: the first payload byte.
    pub version: Option<u8>,
    /// Major version, of NR messages; the first byte is then the minor one.
    pub major: Option<u16>,
    /// Version of its first subpacket, if it has subpackets.
    pub subpacket_version: Option<u8>,
    /// Number of messages.
    pub count: u64,
    /// Number of decoded messages.
    pub decoded: u64,
    /// New blocks whose size was checked against the standard's, and those that passed;
    /// for messages that are read only if they are consistent.
    #[serde(skip)]
    pub size_check: Option<[u64; 2]>,
}

impl MessageRow {
    /// The log code as a number; none of a row that no modem log gave.
    #[must_use]
    pub fn log_code(&self) -> Option<u16> {
        u16::from_str_radix(self.code.strip_prefix("0x")?, 16).ok()
    }

    /// The version as printed by tools: `24`, `1/4` with a subpacket's, `3.13` for NR.
    #[must_use]
    pub fn version_text(&self) -> String {
        let version = self.version.map_or_else(|| "-".to_owned(), |v| v.to_string());
        match (self.major.filter(|major| *major > 0), self.subpacket_version) {
            (Some(major), _) => format!("{major}.{version}"),
            (None, Some(sub)) => format!("{version}/{sub}"),
            (None, None) => version,
        }
    }
}

impl FileReport {
    /// Whether it is a packet capture.
    #[must_use]
    pub fn is_capture(&self) -> bool {
        self.kind.starts_with("pcap")
    }

    /// Frames of captures that are cut within a header, and all frames, if any are cut.
    #[must_use]
    pub fn cut_frames(files: &[Self]) -> Option<(u64, u64)> {
        let cut = files.iter().filter_map(|file| file.records.get(CUT_HEADER)).sum();
        (cut > 0).then(|| (cut, files.iter().map(|file| file.items).sum()))
    }

    /// The same if these are most of the frames.
    #[must_use]
    pub fn mostly_cut_frames(files: &[Self]) -> Option<(u64, u64)> {
        Self::cut_frames(files).filter(|(cut, frames)| 2 * cut > *frames)
    }

    /// For an input that has not been read yet.
    #[must_use]
    pub fn new(input: &Input, kind: Kind) -> Self {
        let mut report = Self::named(input.path(), kind.name(), input.compression());
        if let Some(others) = input.left_out() {
            report.warn(format!("in an archive, {others}: unpack it to give them as inputs"));
        }
        report
    }

    fn named(path: &Path, kind: &'static str, compression: Compression) -> Self {
        Self {
            path: printable_path(path),
            kind: kind.into(),
            compression,
            bytes: 0,
            start_us: None,
            end_us: None,
            items: 0,
            bad_items: 0,
            records: BTreeMap::new(),
            messages: Vec::new(),
            subscriptions: BTreeMap::new(),
            late_records: 0,
            problems: Vec::new(),
            more_problems: 0,
            damaged: false,
            left_out: None,
            clock_ticks_ns: None,
        }
    }

    /// The report of a file that cannot be used here.
    #[must_use]
    pub fn unusable(input: &Input, kind: Kind, why: &str) -> Self {
        let mut report = Self::new(input, kind);
        report.bytes = input.size_bytes().unwrap_or_default();
        report.warn(why.to_owned());
        report
    }

    /// The report of an empty file.
    #[must_use]
    pub fn empty(input: &Input) -> Self {
        let mut report = Self::new(input, Kind::Empty);
        let what = "the file is empty: nothing was read".to_owned();
        report.problem(Problem::of_file(Severity::Damage, what));
        report
    }

    /// The report of a file whose first bytes cannot be decompressed.
    #[must_use]
    pub fn damaged(path: &Path, error: &io::Error) -> Self {
        let mut report = Self::named(path, "compressed", Compression::None);
        let what = format!("nothing can be read: {error}");
        report.problem(Problem::of_file(Severity::Damage, what));
        report
    }

    /// The report of a file that is not read with the others of its directory.
    #[must_use]
    pub fn not_of_directory(input: &Input, kind: Kind) -> Self {
        let why = match kind {
            Kind::Foreign(foreign) => format!("it is {}", foreign.advice()),
            Kind::LogText | Kind::Sniffer(_) | Kind::Table(_) => {
                "it has no TTI counter in common with modem logs or other kinds of tables: to have it \
                 read, give its name alone"
                    .into()
            }
            _ => "it is of no kind that is read (docs/inputs.md lists all)".into(),
        };
        Self::beside_others(input, kind, &why)
    }

    /// The report of a file that is not copied with the others of its directory.
    #[must_use]
    pub fn not_copied(input: &Input, kind: Kind) -> Self {
        Self::beside_others(input, kind, "captures, modem logs and HARs are copied")
    }

    /// The report of a file that is not read with others, and why.
    pub(crate) fn beside_others(input: &Input, kind: Kind, why: &str) -> Self {
        let mut report = Self::new(input, kind);
        report.bytes = input.size_bytes().unwrap_or_default();
        let extension = input.path().extension().and_then(|own| own.to_str());
        let is_log = extension
            .is_some_and(|own| LOG_EXTENSIONS.contains(&own.to_ascii_lowercase().as_str()));
        let severity = match kind {
            Kind::Unknown if is_log => Severity::Damage,
            _ => Severity::Normal,
        };
        report.not_used(severity, why);
        report
    }

    /// Adds the report of a later part of the same file.
    pub fn merge(&mut self, part: Self) {
        self.bytes += part.bytes;
        self.start_us = self.start_us.into_iter().chain(part.start_us).min();
        self.end_us = self.end_us.max(part.end_us);
        self.items += part.items;
        self.bad_items += part.bad_items;
        for (name, n) in part.records {
            *self.records.entry(name).or_default() += n;
        }
        self.late_records += part.late_records;
        self.damaged |= part.damaged;
        self.more_problems += part.more_problems;
        for problem in part.problems {
            // For unreadable frames, each part reports its first.
            let is_known = self.problems.iter().any(|known| known.what == problem.what);
            if problem.severity == Severity::Damage || !is_known {
                self.problem(problem);
            }
        }
    }

    /// Counts a record.
    pub fn count(&mut self, tagged: &Tagged) {
        *self.records.entry(tagged.record.name().into()).or_default() += 1;
        if let Record::Grant(grant) = &tagged.record
            && grant.rnti.is_user()
        {
            *self.subscriptions.entry(tagged.subscription).or_default() += 1;
        }
    }

    /// Reports why the result is not from the file.
    pub fn leave_out(&mut self, why: &str) {
        self.not_used(Severity::Warning, why);
    }

    fn not_used(&mut self, severity: Severity, why: &str) {
        self.problem(Problem::of_file(severity, format!("not used: {why}")));
        self.left_out = Some(why.to_owned());
    }

    /// Describes the clock of a capture with ticks that are longer than `most_ns`, and hide how data
    /// arrived.
    #[must_use]
    pub fn coarse_clock(&self, most_ns: i64) -> Option<String> {
        let ms = self.clock_ticks_ns.filter(|ns| *ns > most_ns)? as f64 / 1e6;
        let ms = (ms * 10.0).round() / 10.0;
        Some(format!(
            "its clock has ticks of {ms} ms: how data arrived is hidden; capture with a finer clock"
        ))
    }

    /// Adds a warning about the file as a whole.
    pub fn warn(&mut self, what: String) {
        self.problem(Problem::of_file(Severity::Warning, what));
    }

    /// Adds a problem.
    pub fn problem(&mut self, problem: Problem) {
        self.change_problems(|all| all.push(problem));
    }

    /// Adds the problems that a reader found.
    pub fn problems_of_reader(&mut self, found: &Problems) {
        self.change_problems(|all| all.append(found));
    }

    fn change_problems(&mut self, change: impl FnOnce(&mut Problems)) {
        let kept = std::mem::take(&mut self.problems);
        let mut all = Problems { kept, more: self.more_problems, damaged: self.damaged };
        change(&mut all);
        Problems { kept: self.problems, more: self.more_problems, damaged: self.damaged } = all;
    }
}
