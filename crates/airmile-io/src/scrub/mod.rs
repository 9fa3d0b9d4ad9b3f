//! Copies that can be shared: captures, modem logs and HARs with payload removed and identities
//! replaced under a key, and a manifest of the changes.

mod file;
mod key;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use airmile_capture::application::{ApplicationFormat, HarScrubber};
use airmile_capture::packet::scrub::CaptureScrubber;
use airmile_decode::diag::scrub::LogScrubber;
use airmile_model::{Problem, Problems, Severity};
use airmile_pseudonym::{Changes, Pseudonyms};
use schemars::JsonSchema;
use serde::Serialize;

use self::file::{Created, Output, ScrubInput};
use self::key::Key;
use crate::directory::{files_in, open_to_sort};
use crate::document::Document;
use crate::error::{Error, Result};
use crate::file_report::FileReport;
use crate::input::{Compression, Progress};
use crate::recognise::{Foreign, Kind};
use airmile_decode::diag::Container;

/// Bytes read at a time.
const CHUNK_BYTES: usize = 1 << 20;

/// The paths of the copies and the key.
#[derive(Debug, Clone)]
pub struct ScrubOptions {
    /// The copy's file; the directory of copies for several inputs, or if it is a directory.
    pub output: PathBuf,
    /// The key's file, created if missing; `None`: a new one is created next to `output`.
    pub key: Option<PathBuf>,
}

/// The result: the document of `airmile scrub`, and the manifest next to the copies. It names no
/// input, since names can identify people.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ScrubReport {
    /// The first 16 hexadecimal digits of the key's SHA-256: copies with the same fingerprint have
    /// the same pseudonyms.
    pub key_fingerprint: String,
    /// The copies.
    pub files: Vec<Scrubbed>,
    /// What was left unchanged, in words.
    pub kept: Vec<&'static str>,
    /// What results of the copies lack, in words.
    pub lacks: Vec<&'static str>,
    /// The inputs, in the order of their copies.
    #[serde(skip)]
    pub inputs: Vec<PathBuf>,
    /// A report of each file of a directory that was not copied.
    #[serde(skip)]
    pub left_out: Vec<FileReport>,
    /// The path of the key.
    #[serde(skip)]
    pub key_file: PathBuf,
    /// Whether the key was created by this run.
    #[serde(skip)]
    pub key_made: bool,
    /// The manifest.
    #[serde(skip)]
    pub manifest: PathBuf,
}

/// One copy.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Scrubbed {
    /// HMAC-SHA-256, under the key, of the SHA-256 of the input as stored, in hexadecimal.
    pub input_hmac_sha256: String,
    /// Bytes of the input as stored.
    pub input_bytes: u64,
    /// The copy's file name.
    pub output: String,
    /// SHA-256 of the copy as stored.
    pub output_sha256: String,
    /// Bytes of the copy as stored.
    pub output_bytes: u64,
    /// The kind of both files.
    pub kind: &'static str,
    /// The compression of both files.
    pub compression: Compression,
    /// What was changed or removed, with counts.
    pub changes: BTreeMap<&'static str, u64>,
    /// Parts of the input that could not be read, and are therefore not in the copy.
    pub problems: Vec<Problem>,
    /// Number of further problems.
    pub more_problems: u64,
    /// Whether bytes of the input were lost to damage.
    pub damaged: bool,
}

impl ScrubReport {
    /// Whether bytes of an input were lost to damage.
    #[must_use]
    pub fn damaged(&self) -> bool {
        self.files.iter().any(|file| file.damaged) || self.left_out.iter().any(|file| file.damaged)
    }
}

/// Unchanged content of a copy that might be sensitive.
const KEPT_OF_CAPTURES: &[&str] = &[
    "times of packets",
    "ports, lengths, IP identification, TTL and flow label",
    "TCP sequence numbers and timestamps, whose clock reveals how long a host has been up",
    "whether an address is private, a group or link-local, and which addresses share a prefix",
    "leading bits of addresses next to such networks, and now and then an address (docs/scrub.md)",
    "VLAN tags and MPLS labels",
    "of QUIC datagrams with a long header, the type and the version",
];
const KEPT_OF_HARS: &[&str] = &[
    "times of requests and pages, and phases",
    "sizes, methods, statuses, protocols and types of content",
    "ports, and numbers of connections",
    "which requests have the same host or URL, and known endings of names",
];
const KEPT_OF_LOGS: &[&str] = &[
    "times of messages",
    "EARFCN, band and bandwidth",
    "radio measurements, allocations and sizes",
    "codes and versions of messages that are not decoded",
];

/// What the analysis of a copy lacks.
const LACKS_OF_CAPTURES: &[&str] = &[
    "lookups, HTTP and names of servers, which are payload",
    "of QUIC, round trips by the spin bit, and datagrams recognised in a second capture: clocks and \
     losses between two captures of QUIC alone",
];
const LACKS_OF_LOGS: &[&str] = &["signalling, and the contents of messages that are not decoded"];
/// What copies lack where a capture or a HAR is damaged.
const LACKS_DAMAGE: &str = "damage of captures and HARs: what could not be read is not in the copies, and \
                            their results do not state it";
const LACKS_OF_HARS: &[&str] =
    &["headers, cookies, queries, contents and titles, and CMCD in them"];

/// Makes copies of captures, modem logs and HARs that can be shared; of a directory, of those in it.
///
/// # Errors
/// An input is none of them, a file cannot be read or written, or an output exists already. Files
/// created by this call are then deleted.
pub fn scrub(
    files: &[PathBuf],
    options: &ScrubOptions,
    progress: &Progress,
) -> Result<ScrubReport> {
    let (inputs, left_out) = inputs_of(files)?;
    let place = Destination::of(files, &options.output)?;
    let mut created = Created::default();
    if let Destination::Directory(dir) = &place {
        created.directory(dir)?;
    }
    let (key, key_file, key_made) = match &options.key {
        Some(path) => Key::read_or_make(path, &mut created)?,
        None => Key::make(&with_ending(&options.output, "key"), &mut created)?,
    };
    let mut names = Pseudonyms::new(key.bytes());
    let mut report = ScrubReport {
        key_fingerprint: key.fingerprint(),
        files: Vec::new(),
        kept: Vec::new(),
        lacks: Vec::new(),
        inputs,
        left_out,
        key_file,
        key_made,
        manifest: place.manifest(),
    };
    let of = report.inputs.len();
    for (n, path) in report.inputs.iter().enumerate() {
        let task = CopyTask { path, number: n + 1, is_last: n + 1 == of, place: &place };
        let (done, used) = copy_file(&task, &key, names, progress, &mut created)?;
        names = used;
        report.files.push(done);
    }
    for (kind, kept, lacks) in [
        ("pcap", KEPT_OF_CAPTURES, LACKS_OF_CAPTURES),
        ("modem_log", KEPT_OF_LOGS, LACKS_OF_LOGS),
        ("har", KEPT_OF_HARS, LACKS_OF_HARS),
    ] {
        if report.files.iter().any(|file| file.kind.starts_with(kind)) {
            report.kept.extend(kept);
            report.lacks.extend(lacks);
        }
    }
    if report.files.iter().any(|file| file.damaged && !file.kind.starts_with("modem_log")) {
        report.lacks.push(LACKS_DAMAGE);
    }
    let text = serde_json::to_string_pretty(&Document::new("scrub", &report));
    let text = text.map_err(|e| Error::write(&report.manifest, e.into()))? + "\n";
    created.write(&report.manifest, text.as_bytes())?;
    created.publish()?;
    Ok(report)
}

/// The inputs, with each directory replaced by the files in it that can be copied, and a report of each
/// other one.
fn inputs_of(files: &[PathBuf]) -> Result<(Vec<PathBuf>, Vec<FileReport>)> {
    let (mut inputs, mut left_out) = (Vec::new(), Vec::new());
    for path in files {
        if !path.is_dir() {
            inputs.push(path.clone());
            continue;
        }
        let before = inputs.len();
        for file in files_in(path)? {
            match open_to_sort(&file)? {
                Ok((_, kind)) if can_be_copied(kind) => inputs.push(file),
                Ok((input, kind)) => left_out.push(FileReport::not_copied(&input, kind)),
                Err(report) => left_out.push(report),
            }
        }
        if inputs.len() == before {
            let what = "is a directory without a capture, modem log or HAR in it".into();
            return Err(Error::Unusable { path: path.clone(), what });
        }
    }
    Ok((inputs, left_out))
}

const fn can_be_copied(kind: Kind) -> bool {
    let is_har = matches!(kind, Kind::Application(ApplicationFormat::Har));
    is_har || kind.is_capture() || matches!(kind, Kind::ModemLog(_))
}

/// `name` with `.ending` appended.
fn with_ending(path: &Path, ending: &str) -> PathBuf {
    // `.` and `..` have no name of their own: the file goes next to the directory, since the key
    // must not be among the copies.
    let named = path.file_name().is_none().then(|| path.canonicalize().ok()).flatten();
    let path = named.as_deref().unwrap_or(path);
    // A directory's trailing separator is not part of its name.
    let mut name = path.components().as_path().as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

/// Destination of copies.
enum Destination {
    File(PathBuf),
    Directory(PathBuf),
}

impl Destination {
    fn of(files: &[PathBuf], output: &Path) -> Result<Self> {
        let text = output.as_os_str().to_string_lossy();
        if text == "-" {
            let what = "-o: the manifest and the key are files, so the copy has to be one, too";
            return Err(Error::Option(what.into()));
        }
        if files.len() > 1
            || files.iter().any(|path| path.is_dir())
            || output.is_dir()
            || text.ends_with(std::path::MAIN_SEPARATOR)
        {
            return Ok(Self::Directory(output.to_owned()));
        }
        Ok(Self::File(output.to_owned()))
    }

    fn manifest(&self) -> PathBuf {
        match self {
            Self::File(path) => with_ending(path, "manifest.json"),
            Self::Directory(dir) => dir.join("manifest.json"),
        }
    }

    /// The `n`th copy. Names of inputs can identify people and phones: copies in a directory get
    /// new names.
    fn copy(&self, n: usize, kind: Kind, compression: Compression) -> PathBuf {
        let dir = match self {
            Self::File(path) => return path.clone(),
            Self::Directory(dir) => dir,
        };
        let name = match kind {
            Kind::Foreign(Foreign::PcapNg) => format!("capture-{n}.pcapng"),
            Kind::ModemLog(Container::Dlf) => format!("log-{n}.dlf"),
            Kind::ModemLog(Container::Hdf) => format!("log-{n}.hdf"),
            Kind::ModemLog(_) => format!("log-{n}.mi2log"),
            Kind::Application(_) => format!("page-{n}.har"),
            _ => format!("capture-{n}.pcap"),
        };
        dir.join(match compression {
            Compression::None => name,
            Compression::Gzip => name + ".gz",
            Compression::Zstd => name + ".zst",
        })
    }
}

/// A scrubber of either kind.
enum Scrubber {
    Capture(CaptureScrubber),
    Log(LogScrubber),
    Har(HarScrubber),
}

impl Scrubber {
    fn of(kind: Kind, names: Pseudonyms, path: &Path) -> Result<Self> {
        match kind {
            Kind::Foreign(Foreign::Pcap | Foreign::PcapNg) => {
                Ok(Self::Capture(CaptureScrubber::new(names)))
            }
            Kind::ModemLog(_) => Ok(Self::Log(LogScrubber::new(names))),
            Kind::Application(ApplicationFormat::Har) => Ok(Self::Har(HarScrubber::new(names))),
            other => {
                let what = format!(
                    "is {}. Captures (pcap, pcapng), modem logs (.mi2log, .qmdl, .dlf, .hdf) and HARs \
                     can be scrubbed",
                    match other {
                        Kind::Empty => "empty".to_owned(),
                        Kind::Unknown => "of unknown format".to_owned(),
                        Kind::Foreign(foreign) => foreign.advice().to_owned(),
                        _ => format!("of kind `{}`", other.name()),
                    }
                );
                Err(Error::Unusable { path: path.to_owned(), what })
            }
        }
    }

    fn push(&mut self, piece: &[u8], out: &mut Vec<u8>, problem: &mut dyn FnMut(Problem)) {
        match self {
            Self::Capture(scrubber) => scrubber.push(piece, out, problem),
            Self::Log(scrubber) => scrubber.push(piece, out, problem),
            Self::Har(scrubber) => scrubber.push(piece, out, problem),
        }
    }

    fn finish(
        mut self,
        is_last: bool,
        out: &mut Vec<u8>,
        problem: &mut dyn FnMut(Problem),
    ) -> (Changes, Pseudonyms) {
        match &mut self {
            Self::Capture(scrubber) => scrubber.finish(out, problem),
            Self::Log(scrubber) if is_last => scrubber.finish_last(out, problem),
            Self::Log(scrubber) => scrubber.finish(out, problem),
            Self::Har(scrubber) => scrubber.finish(out, problem),
        }
        match self {
            Self::Capture(scrubber) => (scrubber.changes().clone(), scrubber.into_pseudonyms()),
            Self::Log(scrubber) => (scrubber.changes().clone(), scrubber.into_pseudonyms()),
            Self::Har(scrubber) => (scrubber.changes().clone(), scrubber.into_pseudonyms()),
        }
    }
}

/// A copy to make.
struct CopyTask<'a> {
    /// The input.
    path: &'a Path,
    /// Its number, from 1.
    number: usize,
    /// Whether no input follows.
    is_last: bool,
    place: &'a Destination,
}

/// Makes a copy; the next one uses the same pseudonyms.
fn copy_file(
    task: &CopyTask<'_>,
    key: &Key,
    names: Pseudonyms,
    progress: &Progress,
    created: &mut Created,
) -> Result<(Scrubbed, Pseudonyms)> {
    let CopyTask { path, number, is_last, place } = *task;
    let mut source = ScrubInput::open(path, progress)?;
    let kind = Kind::of(source.input.head());
    let compression = source.input.compression();
    let mut scrubber = Scrubber::of(kind, names, path)?;
    let copy = place.copy(number, kind, compression);
    let mut output = Output::create(&copy, compression, created)?;
    let mut problems = Problems::default();
    let (mut buffer, mut out, mut read, mut written) = (vec![0; CHUNK_BYTES], Vec::new(), 0, 0);
    loop {
        let bytes = match std::io::Read::read(&mut source.input, &mut buffer) {
            Ok(0) => break,
            Ok(bytes) => bytes,
            Err(error) => {
                let what = format!("the rest cannot be read: {error}");
                problems.push(Problem::at(read, Severity::Damage, what));
                break;
            }
        };
        read += bytes as u64;
        let piece = buffer.get(..bytes).unwrap_or_default();
        scrubber.push(piece, &mut out, &mut |problem| problems.push(problem));
        output.write(&out)?;
        written += out.len();
        out.clear();
    }
    let (changes, names) =
        scrubber.finish(is_last, &mut out, &mut |problem| problems.push(problem));
    output.write(&out)?;
    if kind.is_capture() && changes.of("frames") == 0 {
        let what = "no packets, so the copy is of an empty capture".into();
        problems.push(Problem::of_file(Severity::Warning, what));
    }
    let is_log = matches!(kind, Kind::ModemLog(_));
    if written + out.len() == 0 || (is_log && changes.of("messages") == 0) {
        let why = problems.kept.first().map_or_else(String::new, |first| format!(" ({first})"));
        let what = format!("holds nothing that can be copied{why}");
        return Err(Error::Unusable { path: path.to_owned(), what });
    }
    let (input_sha256, input_bytes) = source.finish()?;
    let (output_sha256, output_bytes) = output.finish()?;
    let name = copy.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let done = Scrubbed {
        input_hmac_sha256: key.authenticate(&input_sha256),
        input_bytes,
        output: name,
        output_sha256,
        output_bytes,
        kind: kind.name(),
        compression,
        changes: changes.0,
        problems: problems.kept,
        more_problems: problems.more,
        damaged: problems.damaged,
    };
    Ok((done, names))
}
