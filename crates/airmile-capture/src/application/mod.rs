//! Application logs to transfers, player events and rates: HAR, Chrome's NetLog, qlog,
//! players' logs, CMCD in a web server's log, iperf3.
//!
//! `docs/application-logs.md` describes each format and how it is read.

mod cmcd;
mod fields;
mod har;
mod iperf3;
mod netlog;
mod player;
mod qlog;
mod records;
pub mod scan;
mod scrub;

use std::borrow::Cow;
use std::collections::HashMap;

use airmile_model::{
    AppTransfer, ApplicationLog, LostEntries, PlayerEvent, PlayerEventKind, Problem, Severity,
    printable,
};

pub use scrub::HarScrubber;

use records::Records;
use scan::{JsonPart, Scanner};

/// An application's log format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApplicationFormat {
    /// HTTP Archive 1.1 and 1.2, of browsers and proxies.
    Har,
    /// `--log-net-log` of Chrome, `chrome://net-export`.
    NetLog,
    /// qlog, contained (`.qlog`).
    Qlog,
    /// qlog, one record per line, or with record separators (`.sqlog`).
    QlogSequence,
    /// Players' events, one object per line; also those of the lab's applications.
    Player,
    /// Players' events in one array, or one object with an array `events`.
    PlayerArray,
    /// A web server's log with CMCD in its query strings.
    Cmcd,
    /// `iperf3 --json`.
    Iperf3,
    /// `iperf3 --json-stream`.
    Iperf3Stream,
}

impl ApplicationFormat {
    /// Recognises the format by a file's first bytes.
    #[must_use]
    pub fn recognise(head: &[u8]) -> Option<Self> {
        let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
        let head = head.trim_ascii_start();
        let has = |name: &str| memchr::memmem::find(head, name.as_bytes()).is_some();
        let line_end = memchr::memchr(b'\n', head).unwrap_or(head.len());
        let line = head.get(..line_end).unwrap_or_default().trim_ascii();
        let is_line = line.starts_with(b"{") && line.ends_with(b"}");
        match head.first()? {
            0x1e => (has("\"qlog_version\"") || has("urn:ietf:params:qlog"))
                .then_some(Self::QlogSequence),
            b'{' if has("\"qlog_version\"") || has("urn:ietf:params:qlog") => {
                let whole = is_line && !line.windows(9).any(|part| part == b"\"traces\":");
                Some(if whole { Self::QlogSequence } else { Self::Qlog })
            }
            b'{' if has("\"constants\"")
                && ["logEventTypes", "activeFieldTrialGroups", "clientInfo"]
                    .iter()
                    .any(|name| has(name)) =>
            {
                Some(Self::NetLog)
            }
            b'{' if has("\"log\"") && (has("\"entries\"") || has("\"creator\"")) => Some(Self::Har),
            b'{' if is_line && has("\"event\"") && has("\"data\"") && has("\"iperf ") => {
                Some(Self::Iperf3Stream)
            }
            b'{' if has("\"start\"")
                && (has("\"iperf ") || has("\"test_start\"") || has("\"intervals\"")) =>
            {
                Some(Self::Iperf3)
            }
            b'{' if is_line && player::is_line(line) => Some(Self::Player),
            b'{' | b'[' if player::is_array(head) => Some(Self::PlayerArray),
            _ => cmcd::is_log(head).then_some(Self::Cmcd),
        }
    }

    /// The name used in documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Har => "har",
            Self::NetLog => "netlog",
            Self::Qlog => "qlog",
            Self::QlogSequence => "qlog_sequence",
            Self::Player | Self::PlayerArray => "player_log",
            Self::Cmcd => "cmcd_access_log",
            Self::Iperf3 => "iperf3",
            Self::Iperf3Stream => "iperf3_stream",
        }
    }

    /// A description.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Har => "HTTP archive (HAR)",
            Self::NetLog => "Chrome NetLog",
            Self::Qlog | Self::QlogSequence => "qlog",
            Self::Player | Self::PlayerArray => "player's log",
            Self::Cmcd => "web server's log with CMCD",
            Self::Iperf3 | Self::Iperf3Stream => "iperf3 result",
        }
    }

    const fn split(self) -> Split {
        match self {
            Self::Har => Split::Scanner(Scanner::new(har::WANTED)),
            Self::NetLog => Split::Scanner(Scanner::new(netlog::WANTED)),
            Self::Qlog => Split::Scanner(Scanner::new(qlog::WANTED)),
            Self::PlayerArray => Split::Scanner(Scanner::new(player::WANTED).repeated()),
            // `--logfile` appends each test.
            Self::Iperf3 => Split::Scanner(Scanner::new(iperf3::WANTED).repeated()),
            // In a sequence (RFC 7464) each record also ends with a line.
            Self::QlogSequence | Self::Player | Self::Cmcd | Self::Iperf3Stream => {
                Split::Records(Records::new(b'\n'))
            }
        }
    }

    fn reading(self) -> Box<dyn FormatReader + Send> {
        match self {
            Self::Har => Box::new(har::Har::default()),
            Self::NetLog => Box::new(netlog::NetLog::default()),
            Self::Qlog | Self::QlogSequence => Box::new(qlog::Qlog::default()),
            Self::Player | Self::PlayerArray => Box::new(player::Player::default()),
            Self::Cmcd => Box::new(cmcd::AccessLog::default()),
            Self::Iperf3 | Self::Iperf3Stream => Box::new(iperf3::Iperf3::default()),
        }
    }
}

/// The results so far.
#[derive(Debug, Default)]
struct Gathered {
    log: ApplicationLog,
}

impl Gathered {
    fn warn(&mut self, offset: u64, what: String) {
        self.log.problem(Problem::at(offset, Severity::Warning, what));
    }

    /// A warning about the whole log.
    fn note(&mut self, what: String) {
        self.log.problem(Problem::of_file(Severity::Warning, what));
    }

    fn bad(&mut self, offset: u64, what: String) {
        self.log.bad_items += 1;
        self.warn(offset, what);
    }

    /// An item that cannot be read, as a field that it needs is of another type.
    fn unreadable(&mut self, offset: u64, what: String) {
        self.log.bad_items += 1;
        self.lose(LostEntries::Any);
        self.damage(offset, what);
    }

    /// A field that cannot be read, of an item that is used without it.
    fn damage(&mut self, offset: u64, what: String) {
        self.log.problem(Problem::at(offset, Severity::Damage, what));
    }

    fn lose(&mut self, lost: LostEntries) {
        self.log.lost = self.log.lost.max(lost);
    }

    fn transfer(&mut self, mut transfer: AppTransfer) {
        transfer.end_ns = transfer.end_ns.max(transfer.start_ns);
        self.log.transfers.push(transfer);
    }

    fn event(&mut self, at_ns: i64, kind: PlayerEventKind, value: Option<f64>) {
        self.log.events.push(PlayerEvent { at_ns, kind, value });
    }
}

/// The semantics of a format: takes the values that its scanner finds.
trait FormatReader {
    /// A value at a path, or a line.
    fn value(&mut self, path: &str, offset: u64, bytes: &[u8], found: &mut Gathered);

    /// An object or array has ended.
    fn end(&mut self, _path: &str, _found: &mut Gathered) {}

    /// Whether an unterminated log is usual: one written until its program ended.
    fn may_stay_open(&self) -> bool {
        false
    }

    /// The log has ended.
    fn finish(&mut self, found: &mut Gathered);
}

#[derive(Debug)]
enum Split {
    Scanner(Scanner),
    Records(Records),
}

/// Reads an application log: takes bytes, and returns the contents at the end. Memory
/// grows with the results, not with the file.
pub struct ApplicationReader {
    split: Split,
    reading: Box<dyn FormatReader + Send>,
    found: Gathered,
    bytes: u64,
}

impl std::fmt::Debug for ApplicationReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApplicationReader").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl ApplicationReader {
    /// A reader of a format.
    #[must_use]
    pub fn new(format: ApplicationFormat) -> Self {
        Self {
            split: format.split(),
            reading: format.reading(),
            found: Gathered::default(),
            bytes: 0,
        }
    }

    /// Takes the next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        let Self { split, reading, found, .. } = self;
        let mut sink = |part: JsonPart<'_>| take(part, reading.as_mut(), found, LostEntries::Any);
        match split {
            Split::Scanner(scanner) => scanner.push(bytes, &mut sink),
            Split::Records(records) => records.push(bytes, &mut sink),
        }
        self.bytes += bytes.len() as u64;
    }

    /// Ends the log.
    #[must_use]
    pub fn finish(self) -> ApplicationLog {
        let Self { split, mut reading, mut found, bytes } = self;
        let mut sink =
            |part: JsonPart<'_>| take(part, reading.as_mut(), &mut found, LostEntries::Last);
        let open = match split {
            Split::Scanner(scanner) => scanner.finish(&mut sink),
            Split::Records(records) => {
                records.finish(&mut sink);
                None
            }
        };
        if let Some(path) = open {
            let severity = if reading.may_stay_open() {
                Severity::Normal
            } else {
                found.lose(LostEntries::Last);
                Severity::Damage
            };
            let what = format!("the file ends inside {path}; what comes before was read");
            found.log.problem(Problem::at(bytes, severity, what));
        }
        reading.finish(&mut found);
        let mut log = found.log;
        log.transfers.iter_mut().for_each(show_names);
        log.made_by = log.made_by.map(|text| printable(&text).into_owned());
        name_once(&mut log.transfers);
        log.transfers.sort_by_key(|transfer| transfer.start_ns);
        log.pages.sort_by_key(|page| page.start_ns);
        log.events.sort_by_key(|event| event.at_ns);
        log.rates.sort_by_key(|rate| rate.start_ns);
        log
    }
}

/// The error of a transfer that got no response, where the log does not name one.
pub(super) const NO_RESPONSE: &str = "no response";

/// Escapes names, which are untrusted.
fn show_names(transfer: &mut AppTransfer) {
    let AppTransfer { id, url, page, initiator, connection, protocol, error, .. } = transfer;
    let of_log = [url, page, initiator, connection, protocol, error].map(Option::as_mut);
    for text in std::iter::once(Some(id)).chain(of_log).flatten() {
        if let Cow::Owned(shown) = printable(text) {
            *text = shown;
        }
    }
}

/// Numbers transfers of the same name: players may fetch a segment again.
fn name_once(transfers: &mut [AppTransfer]) {
    let mut seen: HashMap<String, u32> = HashMap::new();
    for transfer in transfers {
        let n = seen.entry(transfer.id.clone()).or_default();
        *n += 1;
        if *n > 1 {
            transfer.id = format!("{}#{n}", transfer.id);
        }
    }
}

/// Takes a part of a log; `lost`: what a problem at this place may have taken.
fn take(
    part: JsonPart<'_>,
    reading: &mut dyn FormatReader,
    found: &mut Gathered,
    lost: LostEntries,
) {
    match part {
        JsonPart::Value { path, offset, bytes } => reading.value(path, offset, bytes, found),
        JsonPart::End { path } => reading.end(path, found),
        JsonPart::Problem(problem) => {
            found.lose(lost);
            found.log.problem(problem);
        }
    }
}

/// Reads a whole log.
#[must_use]
pub fn read_application(format: ApplicationFormat, bytes: &[u8]) -> ApplicationLog {
    let mut reader = ApplicationReader::new(format);
    reader.push(bytes);
    reader.finish()
}
