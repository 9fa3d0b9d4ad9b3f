//! Input and output files: both are hashed as stored, and no existing file is overwritten.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use airmile_model::printable_path;
use airmile_model::row::hex;
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::input::{Compression, Input, Progress};
use crate::replacement::{new_file, part_of};

/// The files that this run creates. Each has a temporary name until all are complete; unpublished
/// ones are deleted.
#[derive(Default)]
pub(super) struct Created {
    /// Temporary and final names.
    files: Vec<(PathBuf, PathBuf)>,
    published: Vec<PathBuf>,
    directories: Vec<PathBuf>,
    keep: bool,
}

impl Created {
    fn create(&mut self, path: &Path, private: bool) -> Result<File> {
        if std::fs::symlink_metadata(path).is_ok() {
            return Err(there_already(path));
        }
        let part = part_of(path);
        let file = new_file(&part, private).map_err(|e| Error::write(path, e))?;
        self.files.push((part, path.to_owned()));
        Ok(file)
    }

    /// A directory, if it does not exist.
    pub(super) fn directory(&mut self, path: &Path) -> Result<()> {
        if !path.is_dir() {
            std::fs::create_dir_all(path).map_err(|e| Error::write(path, e))?;
            self.directories.push(path.to_owned());
        }
        Ok(())
    }

    pub(super) fn write(&mut self, path: &Path, bytes: &[u8]) -> Result<()> {
        self.create(path, false)?.write_all(bytes).map_err(|e| Error::write(path, e))
    }

    /// As [`Self::write`]; readable only by the owner.
    pub(super) fn write_private(&mut self, path: &Path, bytes: &[u8]) -> Result<()> {
        self.create(path, true)?.write_all(bytes).map_err(|e| Error::write(path, e))
    }

    /// Gives all files their final names, in the order of their creation: the key's first and the
    /// manifest's last.
    pub(super) fn publish(mut self) -> Result<()> {
        for (part, path) in &self.files {
            // A link fails if the name exists; renaming does not.
            let linked = std::fs::hard_link(part, path).or_else(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => Err(error),
                // The file system has no links.
                _ if std::fs::symlink_metadata(path).is_ok() => {
                    Err(io::ErrorKind::AlreadyExists.into())
                }
                _ => std::fs::rename(part, path),
            });
            linked.map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => there_already(path),
                _ => Error::write(path, error),
            })?;
            self.published.push(path.clone());
        }
        self.keep = true;
        Ok(())
    }
}

fn there_already(path: &Path) -> Error {
    let path = printable_path(path);
    Error::Option(format!("{path} exists already, and scrub overwrites nothing: give another name"))
}

impl Drop for Created {
    fn drop(&mut self) {
        // A failure to delete one is less important than the error that led here.
        self.files.iter().for_each(|(part, _)| drop(std::fs::remove_file(part)));
        if self.keep {
            return;
        }
        self.published.iter().for_each(|file| drop(std::fs::remove_file(file)));
        self.directories.iter().for_each(|dir| drop(std::fs::remove_dir(dir)));
    }
}

/// Counts and hashes the bytes that pass.
struct Hashed<T> {
    inner: T,
    hash: Sha256,
    bytes: u64,
}

impl<T> Hashed<T> {
    fn new(inner: T) -> Self {
        Self { inner, hash: Sha256::new(), bytes: 0 }
    }

    fn count(&mut self, bytes: &[u8]) {
        self.hash.update(bytes);
        self.bytes += bytes.len() as u64;
    }

    fn digest(&self) -> (String, u64) {
        (hex(&self.hash.clone().finalize()), self.bytes)
    }
}

impl<R: Read> Read for Hashed<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buf)?;
        self.count(buf.get(..n).unwrap_or_default());
        Ok(n)
    }
}

impl<W: Write> Write for Hashed<W> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let n = self.inner.write(buf)?;
        self.count(buf.get(..n).unwrap_or_default());
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// The stored bytes, shared by the decompressor and the digest.
#[derive(Clone)]
struct Stored(Arc<Mutex<Hashed<Box<dyn Read + Send>>>>);

impl Stored {
    fn lock(&self) -> MutexGuard<'_, Hashed<Box<dyn Read + Send>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Read for Stored {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.lock().read(buf)
    }
}

/// An input file.
pub(super) struct ScrubInput {
    path: PathBuf,
    stored: Stored,
    pub(super) input: Input,
}

impl ScrubInput {
    pub(super) fn open(path: &Path, progress: &Progress) -> Result<Self> {
        let fail = |error| Error::read(path, error);
        let (size, reader): (_, Box<dyn Read + Send>) = if path == Path::new("-") {
            (None, Box::new(io::stdin()))
        } else {
            let file = File::open(path).map_err(fail)?;
            let meta = file.metadata().map_err(fail)?;
            if meta.is_dir() {
                let what = "is a directory; name the files in it".into();
                return Err(Error::Unusable { path: path.to_owned(), what });
            }
            (Some(meta.len()), Box::new(file))
        };
        let stored = Stored(Arc::new(Mutex::new(Hashed::new(reader))));
        let input = Input::from_reader(path, size, stored.clone(), progress).map_err(fail)?;
        Ok(Self { path: path.to_owned(), stored, input })
    }

    /// SHA-256 and number of all stored bytes, including those that could not be decompressed.
    pub(super) fn finish(self) -> Result<(String, u64)> {
        let Self { path, mut stored, input } = self;
        drop(input);
        io::copy(&mut stored, &mut io::sink()).map_err(|e| Error::read(path, e))?;
        Ok(stored.lock().digest())
    }
}

type Stream = Hashed<BufWriter<File>>;

enum Encoder {
    Plain(Stream),
    Gzip(flate2::write::GzEncoder<Stream>),
    Zstd(zstd::stream::write::Encoder<'static, Stream>),
}

/// A copy, compressed as its input is.
pub(super) struct Output {
    path: PathBuf,
    encoder: Encoder,
}

impl Output {
    pub(super) fn create(
        path: &Path,
        compression: Compression,
        created: &mut Created,
    ) -> Result<Self> {
        let file = Hashed::new(BufWriter::new(created.create(path, false)?));
        let encoder = match compression {
            Compression::None => Encoder::Plain(file),
            Compression::Gzip => {
                Encoder::Gzip(flate2::write::GzEncoder::new(file, flate2::Compression::default()))
            }
            Compression::Zstd => {
                let encoder = zstd::stream::write::Encoder::new(file, 0);
                Encoder::Zstd(encoder.map_err(|e| Error::write(path, e))?)
            }
        };
        Ok(Self { path: path.to_owned(), encoder })
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let written = match &mut self.encoder {
            Encoder::Plain(file) => file.write_all(bytes),
            Encoder::Gzip(encoder) => encoder.write_all(bytes),
            Encoder::Zstd(encoder) => encoder.write_all(bytes),
        };
        written.map_err(|e| Error::write(&self.path, e))
    }

    /// SHA-256 and number of the bytes as stored.
    pub(super) fn finish(self) -> Result<(String, u64)> {
        let path = self.path;
        let file = match self.encoder {
            Encoder::Plain(file) => Ok(file),
            Encoder::Gzip(encoder) => encoder.finish(),
            Encoder::Zstd(encoder) => encoder.finish(),
        };
        let finished = file.and_then(|mut file| file.flush().map(|()| file.digest()));
        finished.map_err(|e| Error::write(path, e))
    }
}
