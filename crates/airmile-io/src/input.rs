//! Opens a path or standard input, compressed or not, as one stream of bytes.

mod archive;

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use airmile_decode::diag::Container;
use airmile_decode::diag::coresight::CoreSightDemux;

use crate::error::{Error, Result};
use crate::recognise::{Kind, is_tar};

/// Number of bytes examined to recognise an input.
pub const SNIFF_BYTES: usize = 64 * 1024;

/// The compression of an input.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Compression {
    /// None.
    None,
    /// gzip (RFC 1952).
    Gzip,
    /// Zstandard (RFC 8878).
    Zstd,
}

/// An opened input: its first bytes, and all of them.
pub struct Input {
    path: PathBuf,
    size_bytes: Option<u64>,
    compression: Compression,
    head: Vec<u8>,
    head_at: usize,
    /// An error right after the head.
    failed: Option<io::Error>,
    rest: Box<dyn Read + Send>,
    consumed: Progress,
    decompressed: Progress,
    left_out: Option<String>,
}

/// Bytes of the (compressed) input read so far; shared with the progress display.
#[derive(Debug, Clone, Default)]
pub struct Progress(Arc<AtomicU64>);

/// The bit of a count whose inputs end now.
const ENDED: u64 = 1 << 63;

impl Progress {
    /// Bytes read so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed) & !ENDED
    }

    /// Ends the inputs here, since nobody waits for the result any more.
    pub fn end(&self) {
        self.0.fetch_or(ENDED, Ordering::Relaxed);
    }

    fn has_ended(&self) -> bool {
        self.0.load(Ordering::Relaxed) & ENDED != 0
    }

    /// Adds bytes read.
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }
}

struct Counted<R> {
    inner: R,
    consumed: Progress,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.consumed.has_ended() {
            return Ok(0);
        }
        let n = self.inner.read(buf)?;
        self.consumed.add(n as u64);
        Ok(n)
    }
}

impl Input {
    /// Opens a file, or standard input for `-`; of a tar archive, the modem log in it. Bytes read
    /// are added to `progress`.
    ///
    /// # Errors
    /// The file cannot be opened or its first bytes cannot be read.
    pub fn open(path: &Path, progress: &Progress) -> Result<Self> {
        let input = Self::open_as_stored(path, progress)?;
        if is_tar(&input.head) {
            if comes_once(path) {
                let what = "is a tar archive, which is read twice: give its name";
                return Err(Error::Unusable { path: path.to_owned(), what: what.into() });
            }
            return Ok(archive::open_log(path, progress)?.unwrap_or(input));
        }
        Ok(input)
    }

    /// As [`Self::open`], but an archive is not looked into.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_as_stored(path: &Path, progress: &Progress) -> Result<Self> {
        let fail = |source| Error::read(path, source);
        if path == Path::new("-") {
            return Self::from_reader(path, None, io::stdin(), progress).map_err(fail);
        }
        let file = File::open(path).map_err(fail)?;
        let meta = file.metadata().map_err(fail)?;
        if meta.is_dir() {
            return Err(Error::Unusable {
                path: path.to_owned(),
                what: "is a directory; name the files in it".into(),
            });
        }
        Self::from_reader(path, Some(meta.len()), file, progress).map_err(fail)
    }

    /// An input over any reader; `path` is used only as its name.
    ///
    /// # Errors
    /// The first bytes cannot be read.
    pub fn from_reader(
        path: &Path,
        size_bytes: Option<u64>,
        reader: impl Read + Send + 'static,
        progress: &Progress,
    ) -> io::Result<Self> {
        let mut counted = Counted { inner: reader, consumed: progress.clone() };
        let magic = read_up_to(&mut counted, 4)?;
        let compression = match magic.as_slice() {
            [0x1f, 0x8b, ..] => Compression::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd] => Compression::Zstd,
            _ => Compression::None,
        };
        let raw = BufReader::with_capacity(256 * 1024, io::Cursor::new(magic).chain(counted));
        let mut rest: Box<dyn Read + Send> = match compression {
            Compression::None => Box::new(raw),
            Compression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(raw)),
            Compression::Zstd => Box::new(zstd::stream::read::Decoder::with_buffer(raw)?),
        };
        // A damaged compressed stream still yields the data before the damage: the error
        // is returned again when the reader reaches it.
        let (mut head, mut failed) = read_head(&mut rest);
        // Frames of a trace may look like records without marks.
        let may_be_trace = matches!(
            Kind::of(&head),
            Kind::Unknown | Kind::ModemLog(Container::Dlf | Container::Hdf)
        );
        if may_be_trace && CoreSightDemux::recognise(&head) {
            // No more is read for the head: a trace may have as little DIAG in it as it likes.
            let mut trace = CoreSightTrace::new(head, rest, failed.take());
            head = std::mem::take(&mut trace.diag);
            rest = Box::new(trace);
        }
        if head.is_empty()
            && let Some(error) = failed.take()
        {
            return Err(error);
        }
        Ok(Self {
            path: path.to_owned(),
            size_bytes,
            compression,
            head,
            head_at: 0,
            failed,
            rest,
            consumed: progress.clone(),
            decompressed: Progress::default(),
            left_out: None,
        })
    }

    /// Notes the files of its archive that are not read.
    pub(crate) fn with_left_out(self, left_out: Option<String>) -> Self {
        Self { left_out, ..self }
    }

    /// The files of its archive that could be inputs and are not read.
    #[must_use]
    pub fn left_out(&self) -> Option<&str> {
        self.left_out.as_deref()
    }

    /// The name under which it was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of the file as stored; `None` for standard input.
    #[must_use]
    pub const fn size_bytes(&self) -> Option<u64> {
        self.size_bytes
    }

    /// Its compression.
    #[must_use]
    pub const fn compression(&self) -> Compression {
        self.compression
    }

    /// Its first bytes, at most 64 KB of them, decompressed.
    #[must_use]
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// Bytes read so far, decompressed; the counter is live.
    #[must_use]
    pub fn decompressed(&self) -> Progress {
        self.decompressed.clone()
    }

    /// Bytes consumed from storage, by this and all inputs that share the counter.
    #[must_use]
    pub const fn progress(&self) -> &Progress {
        &self.consumed
    }
}

impl Read for Input {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let head = self.head.get(self.head_at..).unwrap_or_default();
        let n = if buf.is_empty() {
            0
        } else if head.is_empty() {
            if let Some(error) = self.failed.take() {
                return Err(error);
            }
            self.rest.read(buf)?
        } else {
            let n = head.len().min(buf.len());
            buf[..n].copy_from_slice(&head[..n]);
            self.head_at += n;
            n
        };
        self.decompressed.add(n as u64);
        Ok(n)
    }
}

/// A limit on a file that is read whole, with its name in errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeLimit {
    /// Its name.
    pub name: &'static str,
    /// Maximum bytes, decompressed.
    pub bytes: u64,
}

/// Reads a file whole, compressed or not.
///
/// # Errors
/// It cannot be read, is no text, or is larger than `limit`.
pub fn read_text(path: &Path, progress: &Progress, limit: SizeLimit) -> Result<String> {
    let mut text = String::new();
    let input = Input::open(path, progress)?;
    let read = input.take(limit.bytes.saturating_add(1)).read_to_string(&mut text);
    if read.map_err(|e| Error::read(path, e))? as u64 > limit.bytes {
        let SizeLimit { name, bytes } = limit;
        let what = format!("byte {bytes}: over the limit `{name}` ({bytes} bytes)");
        return Err(Error::Unusable { path: path.to_owned(), what });
    }
    Ok(text)
}

impl std::fmt::Debug for Input {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Input").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Whether a path can be read only once: standard input, a pipe.
pub fn comes_once(path: &Path) -> bool {
    path.as_os_str() == "-" || !(path.is_file() || path.is_dir())
}

/// The DIAG stream of a CoreSight trace.
struct CoreSightTrace {
    demux: CoreSightDemux,
    /// Its bytes, and how many of them were given.
    diag: Vec<u8>,
    given: usize,
    trace: Box<dyn Read + Send>,
    failed: Option<io::Error>,
}

impl CoreSightTrace {
    /// A trace of which `head` was read, up to an error.
    fn new(head: Vec<u8>, trace: Box<dyn Read + Send>, failed: Option<io::Error>) -> Self {
        let (mut demux, mut diag) = (CoreSightDemux::new(), Vec::new());
        demux.push(&head, &mut diag);
        Self { demux, diag, given: 0, trace, failed }
    }
}

impl Read for CoreSightTrace {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let mut piece = [0; 16 * 1_024];
        while self.given == self.diag.len() && !buf.is_empty() {
            if let Some(error) = self.failed.take() {
                return Err(error);
            }
            let n = self.trace.read(&mut piece)?;
            (self.given, self.diag) = (0, Vec::new());
            if n == 0 {
                self.demux.finish(&mut self.diag);
                if self.diag.is_empty() {
                    return Ok(0);
                }
            }
            self.demux.push(piece.get(..n).unwrap_or_default(), &mut self.diag);
        }
        let rest = self.diag.get(self.given..).unwrap_or_default();
        let n = rest.len().min(buf.len());
        buf[..n].copy_from_slice(&rest[..n]);
        self.given += n;
        Ok(n)
    }
}

fn read_up_to(reader: &mut impl Read, n: usize) -> io::Result<Vec<u8>> {
    let mut out = Vec::with_capacity(n);
    reader.take(n as u64).read_to_end(&mut out)?;
    Ok(out)
}

fn read_head(reader: &mut impl Read) -> (Vec<u8>, Option<io::Error>) {
    let mut out = Vec::new();
    let failed = reader.take(SNIFF_BYTES as u64).read_to_end(&mut out).err();
    (out, failed)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn an_input_ends_when_asked() {
        let progress = Progress::default();
        let mut input = Counted { inner: &[7; 10][..], consumed: progress.clone() };
        let mut part = [0; 4];
        assert_eq!(input.read(&mut part).unwrap(), 4);
        progress.end();
        assert_eq!((input.read(&mut part).unwrap(), progress.bytes()), (0, 4));
    }

    fn text_of(bytes: Vec<u8>) -> (String, Compression) {
        let reader = io::Cursor::new(bytes);
        let mut input =
            Input::from_reader(Path::new("x"), None, reader, &Progress::default()).unwrap();
        let mut text = String::new();
        input.read_to_string(&mut text).unwrap();
        (text, input.compression())
    }

    #[test]
    fn opens_plain_gzip_and_zstd_alike() {
        let plain = "tti,dir,n_prb\n1,dl,5\n".repeat(10_000);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(plain.as_bytes()).unwrap();
        let zstd = zstd::encode_all(plain.as_bytes(), 1).unwrap();
        assert_eq!(text_of(plain.clone().into_bytes()), (plain.clone(), Compression::None));
        assert_eq!(text_of(gzip.finish().unwrap()), (plain.clone(), Compression::Gzip));
        assert_eq!(text_of(zstd), (plain, Compression::Zstd));
    }

    #[test]
    fn an_empty_input_is_empty() {
        assert_eq!(text_of(Vec::new()).0, "");
    }

    #[test]
    fn a_file_that_is_read_whole_is_limited() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("text.gz");
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&[b'a'; 100_000]).unwrap();
        std::fs::write(&path, gzip.finish().unwrap()).unwrap();
        let read = |bytes| {
            let limit = SizeLimit { name: "MAX_TEXT_BYTES", bytes };
            read_text(&path, &Progress::default(), limit)
        };
        assert_eq!(read(100_000).unwrap().len(), 100_000);
        let error = read(99_999).unwrap_err().to_string();
        assert!(error.ends_with("over the limit `MAX_TEXT_BYTES` (99999 bytes)"), "{error}");
    }

    #[test]
    fn a_torn_gzip_gives_what_comes_before() {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
        gzip.write_all(&[b'a'; 200_000]).unwrap();
        let mut bytes = gzip.finish().unwrap();
        bytes.truncate(150_000);
        let reader = io::Cursor::new(bytes);
        let mut input =
            Input::from_reader(Path::new("x"), None, reader, &Progress::default()).unwrap();
        let mut out = Vec::new();
        assert!(input.read_to_end(&mut out).is_err());
        assert!(out.len() > 100_000);
    }
}
