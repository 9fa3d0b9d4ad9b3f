//! One engine for every command: opens inputs, recognises them, and passes their records in order
//! to a sink, with a report of each file.

pub(crate) mod application;
mod foreign;
mod transfers;

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use airmile_capture::application::ApplicationFormat;
use airmile_decode::diag::msg::SizeCheck;
use airmile_decode::diag::{LogReader, MessageCount, MessageKey, Tagged};
use airmile_decode::sniffer::SnifferKind;
use airmile_decode::table::TableKind;
use airmile_model::{Clock, Problem, Transfer};
use airmile_wire::clocks::ClockLine;

pub(crate) use airmile_io::sorted::Sorted;
pub use airmile_io::sorted::captures;
pub use application::Application;

use airmile_io::error::{Error, Result};
use airmile_io::input::{Input, Progress, comes_once};
use airmile_io::one_phone::{check_follows, check_one_phone, warn_of_pauses};
use airmile_io::radio_tables::{self, Opened};
use airmile_io::recognise::Kind;
use airmile_io::{FileReport, MessageRow};

/// Bytes read at a time.
const CHUNK_BYTES: usize = 256 * 1024;

/// The inputs.
#[derive(Debug, Clone, Default)]
pub struct Inputs {
    /// Logs and tables, in any order; `-` is standard input. From a directory, the files that
    /// belong together.
    pub files: Vec<PathBuf>,
    /// The application's transfers; may also be among the files.
    pub transfers: Option<PathBuf>,
    /// RNTI whose grants are read from a sniffer's table; by default the one with the most bytes.
    pub rnti: Option<u16>,
    /// Whether messages of modem logs are read whose layout is from a single public source,
    /// without a sample.
    pub experimental: bool,
    /// Whether URLs of application logs are printed with their query, which may hold tokens.
    pub whole_urls: bool,
    /// Offset in nanoseconds from the times of application logs to the modem's clock.
    pub application_offset_ns: i64,
}

impl Inputs {
    /// All paths.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().chain(&self.transfers).map(PathBuf::as_path)
    }
}

/// Everything that was read, except the records themselves.
#[derive(Debug, Default)]
pub struct Loaded {
    /// A report of each file, in the order given.
    pub files: Vec<FileReport>,
    /// Transfers that were among the inputs.
    pub transfers: Vec<Transfer>,
    /// Whether a capture showed them.
    pub(crate) is_captured: bool,
    /// Application logs that were among the inputs.
    pub applications: Vec<Application>,
}

impl Loaded {
    /// Whether any input was damaged (exit status 4).
    #[must_use]
    pub fn damaged(&self) -> bool {
        self.files.iter().any(|f| f.damaged)
    }
}

/// Reads all inputs; their records go to `sink` in TTI order: modem logs one after the other by
/// their time, tables merged.
///
/// # Errors
/// A file cannot be read or used, or the inputs do not belong together.
pub fn read_inputs(
    inputs: &Inputs,
    progress: &Progress,
    sink: &mut dyn FnMut(Tagged),
) -> Result<Loaded> {
    Session::open(inputs, progress)?.read(sink)
}

/// Open inputs; the transfers among them are known.
pub(crate) struct Session {
    opened: Vec<Opened>,
    rnti: Option<u16>,
    experimental: bool,
    whole_urls: bool,
    reports: BTreeMap<usize, FileReport>,
    transfers: Vec<Transfer>,
    applications: Vec<Application>,
    /// Packets replace the radio's records.
    packets_alone: bool,
    is_captured: bool,
}

impl Session {
    /// Opens all inputs, and reads transfers.
    pub(crate) fn open(inputs: &Inputs, progress: &Progress) -> Result<Self> {
        let mut opened = Vec::new();
        let Sorted { mut logs, captures, mut unread } = Sorted::of(&inputs.files)?;
        // Those in a directory with logs are read by other means.
        logs.extend(captures.into_iter().filter(|path| inputs.files.contains(path)));
        if logs.is_empty() && !inputs.files.is_empty() {
            return Err(Sorted::nothing(&inputs.files, &unread, NO_INPUT));
        }
        let mut given = Sorted::default();
        inputs.transfers.iter().try_for_each(|path| given.add_file(path))?;
        unread.append(&mut given.unread);
        let transfers = given.logs.into_iter().chain(given.captures).next();
        for (order, path) in logs.iter().chain(&transfers).enumerate() {
            let input = Input::open(path, progress)?;
            let kind = Kind::of(input.head());
            refuse_useless(path, kind)?;
            opened.push(Opened { order, input, kind });
        }
        if let Some(path) = &transfers
            && !opened.last().is_some_and(|o| o.kind.holds_transfers())
        {
            return Err(Error::Unusable {
                path: path.clone(),
                what: "holds no transfers: expected a CSV with the columns \
                       id,start_us,end_us,bytes or id,start_tti,end_tti,bytes, or an application's \
                       log (docs/application-logs.md)"
                    .into(),
            });
        }
        let mut session = Self {
            opened: Vec::new(),
            rnti: inputs.rnti,
            experimental: inputs.experimental,
            whole_urls: inputs.whole_urls,
            reports: (opened.len()..).zip(unread).collect(),
            transfers: Vec::new(),
            applications: Vec::new(),
            packets_alone: false,
            is_captured: false,
        };
        for item in opened {
            match item.kind {
                Kind::Table(TableKind::Transfers) => session.read_transfers(item)?,
                Kind::Application(format) => session.read_application(item, format, inputs),
                _ => session.opened.push(item),
            }
        }
        session.choose_transfers(transfers.is_some());
        Ok(session)
    }

    /// Moves the times of transfers, and of the application that gave them, to the reference clock
    /// of the line.
    pub(crate) fn set_clock(&mut self, line: &ClockLine) {
        for (start, end) in self.transfers.iter_mut().filter_map(|t| t.time.as_mut()) {
            start.ns = line.to_reference(start.ns);
            end.ns = line.to_reference(end.ns);
        }
        for application in self.applications.iter_mut().filter(|one| one.gave_transfers) {
            application.log.retime(|ns| line.to_reference(ns));
        }
    }

    /// Whether an application's log has transfers with times of day.
    pub(crate) fn has_clocked_application(&self) -> bool {
        self.applications.iter().any(Application::has_placed_transfers)
    }

    /// Does not analyse an application's transfers if its log is of another run.
    pub(crate) fn set_apart(&mut self, is_apart: bool) {
        let gave = |one: &mut Application| std::mem::take(&mut one.gave_transfers);
        if is_apart && self.applications.iter_mut().any(gave) {
            self.transfers.clear();
        }
    }

    /// The application logs.
    pub(crate) fn applications(&self) -> &[Application] {
        &self.applications
    }

    /// Moves the times of one application's log to the reference clock of the line.
    pub(crate) fn retime_application(&mut self, at: usize, line: &ClockLine) {
        if let Some(application) = self.applications.get_mut(at) {
            application.log.retime(|ns| line.to_reference(ns));
        }
    }

    fn read_application(&mut self, item: Opened, format: ApplicationFormat, inputs: &Inputs) {
        let mut report = FileReport::new(&item.input, item.kind);
        let mut application = Application::read(item.input, format, &mut report);
        application.log.retime(|ns| ns.saturating_add(inputs.application_offset_ns));
        self.applications.push(application);
        self.reports.insert(item.order, report);
    }

    /// Selects the transfers: those of a table, else those of one application's log: the first, or
    /// the last if that was named for its transfers.
    fn choose_transfers(&mut self, named: bool) {
        let given = !self.transfers.is_empty();
        let mut placed = self.applications.iter_mut().filter(|one| one.has_placed_transfers());
        let chosen = if named { placed.next_back() } else { placed.next() };
        if let Some(application) = chosen.filter(|_| !given) {
            self.transfers = application.log.transfers_on(Clock::Modem);
            application.gave_transfers = true;
        }
    }

    /// Refuses several HARs, as the transfers of one log are judged.
    ///
    /// # Errors
    /// There are several.
    pub(crate) fn check_one_har(&self) -> Result<()> {
        let hars = self.applications.iter().filter(|one| one.format == ApplicationFormat::Har);
        let names: Vec<&str> = hars.map(|one| one.path.as_str()).collect();
        if names.len() < 2 {
            return Ok(());
        }
        Err(Error::Option(format!(
            "{} are HARs, and the transfers of one log are judged: give one of them at a time",
            names.join(" and ")
        )))
    }

    /// Whether names are printed with their query.
    pub(crate) const fn whole_urls(&self) -> bool {
        self.whole_urls
    }

    /// Whether there are records of the radio.
    pub(crate) fn has_radio(&self) -> bool {
        let summary = [SnifferKind::OaiStatistics, SnifferKind::SrsRanConsole].map(Kind::Sniffer);
        self.opened.iter().any(|one| !summary.contains(&one.kind))
    }

    /// The same session, to be judged from packets.
    pub(crate) fn without_radio(self) -> Self {
        Self { packets_alone: true, ..self }
    }

    /// Whether there are only application logs or packets, and no records of the radio.
    pub(crate) fn is_without_radio(&self) -> bool {
        !self.has_radio() && (self.packets_alone || !self.applications.is_empty())
    }

    /// Transfers that were among the inputs.
    pub(crate) fn transfers(&self) -> &[Transfer] {
        &self.transfers
    }

    /// Reads the records.
    pub(crate) fn read(self, sink: &mut dyn FnMut(Tagged)) -> Result<Loaded> {
        let Self {
            opened,
            rnti,
            experimental,
            mut reports,
            transfers,
            applications,
            is_captured,
            ..
        } = self;
        read_opened(opened, (rnti, experimental), &mut reports, sink)?;
        Ok(Loaded { files: reports.into_values().collect(), transfers, is_captured, applications })
    }

    /// Refuses inputs that are not modem logs.
    ///
    /// # Errors
    /// One of them is not.
    pub(crate) fn of_logs(self) -> Result<Self> {
        let other = self.opened.iter().find(|one| !matches!(one.kind, Kind::ModemLog(_)));
        let other = other.map(|one| one.input.path().to_owned());
        // Transfers and applications' logs may be in the directory of a log.
        let alone = self.opened.is_empty().then(|| self.reports.values().next()).flatten();
        match other.or_else(|| alone.map(|report| (&report.path).into())) {
            Some(path) => Err(Error::Unusable { path, what: NO_LOG.into() }),
            None => Ok(self),
        }
    }

    /// Time of the first packet of all logs, in nanoseconds since the Unix epoch.
    pub(crate) fn first_stamp_ns(&self) -> Option<i64> {
        self.opened.iter().filter_map(|log| LogReader::first_stamp_ns(log.input.head())).min()
    }

    /// Reads modem logs ([`Self::of_logs`]): their bytes go to `bytes`.
    pub(crate) fn read_log_bytes(self, bytes: &mut dyn FnMut(LogBytes<'_>)) -> Result<Loaded> {
        let files = read_logs(self.opened, self.experimental, &mut |_| (), bytes)?;
        let mut files: Vec<_> = files.into_iter().map(|(_, report)| report).collect();
        warn_of_pauses(files.iter_mut());
        Ok(Loaded { files, ..Loaded::default() })
    }
}

/// What a directory lacks.
const NO_INPUT: &str = "is a directory without a modem log, text export, grant table or \
                        application's log in it (`diagnose`, `inspect` and `packets` also read packet \
                        captures in one)";

/// Why an input has no packets of the air interface.
const NO_LOG: &str = "is not a modem log: packets of the air interface are written from \
                      .mi2log, .qmdl, .dlf and .hdf";

/// Bytes of modem logs in the order of their times.
#[derive(Debug, Clone, Copy)]
pub(crate) enum LogBytes<'a> {
    /// The next ones.
    Piece(&'a [u8]),
    /// A file ended.
    EndOfFile,
}

fn refuse_useless(path: &Path, kind: Kind) -> Result<()> {
    let what = match kind {
        _ if kind.is_capture() && comes_once(path) => {
            "is a packet capture, which is read several times here: write it to a file, and give \
             its name (`airmile packets` reads it from standard input)"
                .to_owned()
        }
        Kind::Foreign(foreign) => format!("is {}", foreign.advice()),
        Kind::Empty => "is empty".to_owned(),
        Kind::Unknown => {
            "is of no known kind: expected a modem log (.mi2log, .qmdl, .qmdl2, .dlf, \
                          .hdf) or its text export, a packet capture (.pcap, .pcapng), a HAR or \
                          another application's log, or a table (docs/inputs.md lists all)"
                .to_owned()
        }
        _ => return Ok(()),
    };
    Err(Error::Unusable { path: path.to_owned(), what })
}

fn read_opened(
    opened: Vec<Opened>,
    (rnti, experimental): (Option<u16>, bool),
    reports: &mut BTreeMap<usize, FileReport>,
    sink: &mut dyn FnMut(Tagged),
) -> Result<()> {
    let mut logs = Vec::new();
    let mut texts = Vec::new();
    let mut sniffed = Vec::new();
    let mut grants = Vec::new();
    let mut rlc = Vec::new();
    for item in opened {
        match item.kind {
            Kind::ModemLog(_) => logs.push(item),
            Kind::LogText => texts.push(item),
            Kind::Sniffer(kind) => sniffed.push((item, kind)),
            Kind::Table(TableKind::Grants) => grants.push(item),
            Kind::Table(TableKind::Rlc) => rlc.push(item),
            // No estimator reads the truth.
            _ => {
                reports.insert(item.order, FileReport::new(&item.input, item.kind));
            }
        }
    }
    let has_tables = !grants.is_empty() || !rlc.is_empty();
    let kinds = [has_tables, !logs.is_empty(), !texts.is_empty(), !sniffed.is_empty()];
    if kinds.into_iter().filter(|there| *there).count() > 1 || sniffed.len() > 1 {
        return Err(Error::Option(
            "modem logs, text exports, grant tables and sniffers' tables have no common TTI \
             counter: analyse them one at a time"
                .into(),
        ));
    }
    let mut read = read_logs(logs, experimental, sink, &mut |_| ())?;
    read.extend(foreign::read_texts(texts, sink));
    let sniffed = sniffed.into_iter();
    read.extend(sniffed.map(|(item, kind)| foreign::read_sniffer(item, kind, rnti, sink)));
    read.extend(radio_tables::read(grants, rlc, sink)?);
    warn_of_pauses(read.iter_mut().map(|(_, report)| report));
    reports.extend(read);
    Ok(())
}

/// Logs in the order of their first packets; the parts of a rotated log are read as one stream, in
/// which TTIs continue by the clock.
fn read_logs(
    mut logs: Vec<Opened>,
    experimental: bool,
    sink: &mut dyn FnMut(Tagged),
    bytes: &mut dyn FnMut(LogBytes<'_>),
) -> Result<Vec<(usize, FileReport)>> {
    logs.sort_by_cached_key(|log| LogReader::first_stamp_ns(log.input.head()));
    let heads: Vec<_> = logs.iter().map(|log| (log.input.path(), log.input.head())).collect();
    check_one_phone(&heads)?;
    let mut reader: Option<LogReader> = None;
    let mut out: Vec<(usize, FileReport)> = Vec::new();
    let n_logs = logs.len();
    for (number, Opened { order, mut input, kind }) in logs.into_iter().enumerate() {
        let mut report = FileReport::new(&input, kind);
        let first_us = LogReader::first_stamp_ns(input.head()).map(|ns| ns.div_euclid(1_000));
        if let (Some((_, before)), Some(first_us)) = (out.last(), first_us) {
            check_follows(before, &report, first_us)?;
        }
        let new = || LogReader::new().experimental(experimental);
        let mut current = reader.take().map_or_else(new, LogReader::next_file);
        let mut before = out.last_mut().map(|(_, report)| report);
        let mut forward = |tagged: Tagged| {
            // Messages that belong together wait for each other, also in the next file.
            let us = || tagged.record.at().map(|at| at.ns.div_euclid(1_000));
            let own = before.as_mut().filter(|one| us().is_some_and(|us| Some(us) <= one.end_us));
            own.map_or(&mut report, |one| one).count(&tagged);
            sink(tagged);
        };
        let mut buffer = vec![0; CHUNK_BYTES];
        let failed = loop {
            match input.read(&mut buffer) {
                Ok(0) => break None,
                Ok(n) => {
                    let piece = buffer.get(..n).unwrap_or_default();
                    bytes(LogBytes::Piece(piece));
                    current.push(piece, &mut forward);
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => break Some(error),
            }
        };
        bytes(LogBytes::EndOfFile);
        if number + 1 == n_logs {
            current.finish(&mut forward);
        } else {
            current.end_file(&mut forward);
        }
        fill_log_report(&mut report, &current);
        if let Some(error) = failed {
            report.problem(Problem::stopped(report.bytes, &error));
        }
        out.push((order, report));
        reader = Some(current);
    }
    Ok(out)
}

fn fill_log_report(report: &mut FileReport, reader: &LogReader) {
    let stats = reader.stats();
    report.bytes = stats.bytes;
    report.start_us = stats.first_ns.map(|ns| ns.div_euclid(1_000));
    report.end_us = stats.last_ns.max(stats.first_ns).map(|ns| ns.div_euclid(1_000));
    report.items = stats.frames;
    report.bad_items = stats.bad_frames;
    let row = |(key, count): (&MessageKey, &MessageCount)| {
        message_row(*key, *count, stats.size_checks.get(key))
    };
    report.messages = stats.messages.iter().map(row).collect();
    report.problems_of_reader(&stats.problems);
    report.late_records = stats.late_records;
}

fn message_row(key: MessageKey, count: MessageCount, sizes: Option<&SizeCheck>) -> MessageRow {
    MessageRow {
        code: format!("0x{:04X}", key.code),
        name: airmile_decode::diag::names::name(key.code).unwrap_or("unknown").to_owned(),
        version: key.version,
        major: key.major,
        subpacket_version: key.sub,
        count: count.count,
        decoded: count.decoded,
        size_check: sizes.map(|sizes| [sizes.checked, sizes.passed]),
    }
}
