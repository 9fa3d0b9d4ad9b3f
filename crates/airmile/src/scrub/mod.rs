//! Copies that can be shared: captures and modem logs with payload cut and
//! identities replaced under a key, and a manifest of what was done.

mod file;
mod key;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use airmile_capture::packet::scrub::CaptureScrubber;
use airmile_decode::diag::scrub::LogScrubber;
use airmile_model::{Problem, Severity};
use airmile_pseudonym::{Changes, Pseudonyms};
use schemars::JsonSchema;
use serde::Serialize;

use self::file::{Created, Output, ScrubInput};
use self::key::Key;
use airmile_decode::diag::Container;
use airmile_io::document::Document;
use airmile_io::error::{Error, Result};
use airmile_io::input::{Compression, Progress};
use airmile_io::recognise::{Foreign, Kind};

/// Bytes read at a time.
const CHUNK_BYTES: usize = 1 << 20;

/// Problems of a file that are kept in words; more are counted.
const KEPT_PROBLEMS: usize = 100;

/// Where the copies and the key are.
#[derive(Debug, Clone)]
pub struct ScrubOptions {
    /// The copy's file; with several inputs, or where it is a directory, the
    /// directory of copies.
    pub output: PathBuf,
    /// The key's file, which is made where it is not there; `None`: one beside
    /// `output` is made.
    pub key: Option<PathBuf>,
}

/// What was done: the document of `airmile scrub`, and the manifest beside the
/// copies. It names no input, as names tell of people, too.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ScrubReport {
    /// The first 16 hexadecimal digits of the key's SHA-256: copies that have
    /// it in common have pseudonyms in common.
    pub key_fingerprint: String,
    /// The copies.
    pub files: Vec<Scrubbed>,
    /// What was left as it was, in words.
    pub kept: Vec<&'static str>,
    /// Where the key is.
    #[serde(skip)]
    pub key_file: PathBuf,
    /// Whether the key was made by this run.
    #[serde(skip)]
    pub key_made: bool,
    /// The manifest.
    #[serde(skip)]
    pub manifest: PathBuf,
}

/// One copy.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Scrubbed {
    /// SHA-256 of the input as it is stored.
    pub input_sha256: String,
    /// Bytes of the input as it is stored.
    pub input_bytes: u64,
    /// The copy's file name.
    pub output: String,
    /// SHA-256 of the copy as it is stored.
    pub output_sha256: String,
    /// Bytes of the copy as it is stored.
    pub output_bytes: u64,
    /// What both are.
    pub kind: &'static str,
    /// How both are compressed.
    pub compression: Compression,
    /// What was changed or cut, and how often.
    pub changes: BTreeMap<&'static str, u64>,
    /// What of the input could not be read, and so is not in the copy.
    pub problems: Vec<Problem>,
    /// Problems beyond those.
    pub more_problems: u64,
    /// Whether bytes of the input were lost to damage.
    pub damaged: bool,
}

impl ScrubReport {
    /// Whether bytes of an input were lost to damage.
    #[must_use]
    pub fn damaged(&self) -> bool {
        self.files.iter().any(|file| file.damaged)
    }
}

/// What stays in a copy and might matter to somebody.
const KEPT_OF_CAPTURES: &[&str] = &[
    "times of packets",
    "ports, lengths, IP identification, TTL and flow label",
    "TCP sequence numbers and timestamps, whose clock tells how long a host has been up",
    "whether an address is private, a group or link-local, and which addresses share a prefix",
    "VLAN tags and MPLS labels",
];
const KEPT_OF_LOGS: &[&str] = &[
    "times of messages",
    "EARFCN, band and bandwidth",
    "radio measurements, allocations and sizes",
    "codes and versions of messages that are not decoded",
];

/// Makes copies of captures and modem logs that can be shared.
///
/// # Errors
/// An input is neither, something cannot be read or written, or an output is
/// there already. Then no file that this call made is left.
pub fn scrub(
    files: &[PathBuf],
    options: &ScrubOptions,
    progress: &Progress,
) -> Result<ScrubReport> {
    let place = Destination::of(files, &options.output)?;
    let mut created = Created::default();
    if let Destination::Directory(dir) = &place {
        created.directory(dir)?;
    }
    let (key, key_file, key_made) = match &options.key {
        Some(path) => Key::read_or_make(path, &mut created)?,
        None => Key::make(&beside(&options.output, "key"), &mut created)?,
    };
    let mut names = Pseudonyms::new(key.bytes());
    let mut report = ScrubReport {
        key_fingerprint: key.fingerprint(),
        files: Vec::new(),
        kept: Vec::new(),
        key_file,
        key_made,
        manifest: place.manifest(),
    };
    for (n, path) in files.iter().enumerate() {
        let (done, used) = one(path, (n + 1, files.len()), &place, names, progress, &mut created)?;
        names = used;
        report.files.push(done);
    }
    let has = |log: bool| report.files.iter().any(|f| f.kind.starts_with("modem_log") == log);
    let (logs, captures) = (has(true), has(false));
    report.kept.extend(KEPT_OF_CAPTURES.iter().filter(|_| captures));
    report.kept.extend(KEPT_OF_LOGS.iter().filter(|_| logs));
    let text = serde_json::to_string_pretty(&Document::new("scrub", &report));
    let text = text.map_err(|e| Error::write(&report.manifest, e.into()))? + "\n";
    created.write(&report.manifest, text.as_bytes())?;
    created.publish()?;
    Ok(report)
}

/// `name` with `.ending` behind it.
fn beside(path: &Path, ending: &str) -> PathBuf {
    // `.` and `..` have no name of their own: what is meant is next to the directory, as the
    // key must not be among the copies.
    let named = path.file_name().is_none().then(|| path.canonicalize().ok()).flatten();
    let path = named.as_deref().unwrap_or(path);
    // A directory's name may end in a separator, which is none of it.
    let mut name = path.components().as_path().as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

/// Where copies go.
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
        if files.len() > 1 || output.is_dir() || text.ends_with(std::path::MAIN_SEPARATOR) {
            return Ok(Self::Directory(output.to_owned()));
        }
        Ok(Self::File(output.to_owned()))
    }

    fn manifest(&self) -> PathBuf {
        match self {
            Self::File(path) => beside(path, "manifest.json"),
            Self::Directory(dir) => dir.join("manifest.json"),
        }
    }

    /// The `n`th copy. Names of inputs tell of people and phones: in a
    /// directory copies have names of their own.
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
            _ => format!("capture-{n}.pcap"),
        };
        dir.join(match compression {
            Compression::None => name,
            Compression::Gzip => name + ".gz",
            Compression::Zstd => name + ".zst",
        })
    }
}

/// Either scrubber.
enum Scrubber {
    Capture(CaptureScrubber),
    Log(LogScrubber),
}

impl Scrubber {
    fn of(kind: Kind, names: Pseudonyms, path: &Path) -> Result<Self> {
        match kind {
            Kind::Foreign(Foreign::Pcap | Foreign::PcapNg) => {
                Ok(Self::Capture(CaptureScrubber::new(names)))
            }
            Kind::ModemLog(_) => Ok(Self::Log(LogScrubber::new(names))),
            other => {
                let what = format!(
                    "is {}: captures (pcap, pcapng) and modem logs (.mi2log, .qmdl, .dlf, .hdf) \
                     can be scrubbed",
                    match other {
                        Kind::Empty => "empty",
                        Kind::Unknown => "nothing that is known",
                        _ => other.name(),
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
        }
        match self {
            Self::Capture(scrubber) => (scrubber.changes().clone(), scrubber.into_pseudonyms()),
            Self::Log(scrubber) => (scrubber.changes().clone(), scrubber.into_pseudonyms()),
        }
    }
}

/// Problems so far.
#[derive(Default)]
struct Problems {
    told: Vec<Problem>,
    more: u64,
    damaged: bool,
}

impl Problems {
    fn add(&mut self, problem: Problem) {
        self.damaged |= problem.severity == Severity::Damage;
        if self.told.len() < KEPT_PROBLEMS {
            self.told.push(problem);
        } else {
            self.more += 1;
        }
    }
}

/// Makes one copy; the pseudonyms go on to the next.
fn one(
    path: &Path,
    (n, of): (usize, usize),
    place: &Destination,
    names: Pseudonyms,
    progress: &Progress,
    created: &mut Created,
) -> Result<(Scrubbed, Pseudonyms)> {
    let mut source = ScrubInput::open(path, progress)?;
    let kind = Kind::of(source.input.head());
    let compression = source.input.compression();
    let mut scrubber = Scrubber::of(kind, names, path)?;
    let copy = place.copy(n, kind, compression);
    let mut output = Output::create(&copy, compression, created)?;
    let mut problems = Problems::default();
    let (mut buffer, mut out, mut read) = (vec![0; CHUNK_BYTES], Vec::new(), 0);
    loop {
        let bytes = match std::io::Read::read(&mut source.input, &mut buffer) {
            Ok(0) => break,
            Ok(bytes) => bytes,
            Err(error) => {
                let what = format!("the rest cannot be read: {error}");
                problems.add(Problem { offset: read, severity: Severity::Damage, what });
                break;
            }
        };
        read += bytes as u64;
        let piece = buffer.get(..bytes).unwrap_or_default();
        scrubber.push(piece, &mut out, &mut |problem| problems.add(problem));
        output.write(&out)?;
        out.clear();
    }
    let (changes, names) = scrubber.finish(n == of, &mut out, &mut |problem| problems.add(problem));
    output.write(&out)?;
    let (input_sha256, input_bytes) = source.finish()?;
    let (output_sha256, output_bytes) = output.finish()?;
    let name = copy.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let done = Scrubbed {
        input_sha256,
        input_bytes,
        output: name,
        output_sha256,
        output_bytes,
        kind: kind.name(),
        compression,
        changes: changes.0,
        problems: problems.told,
        more_problems: problems.more,
        damaged: problems.damaged,
    };
    Ok((done, names))
}
