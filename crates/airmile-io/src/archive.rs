//! A modem log in a tar archive, such as an iPhone's sysdiagnose.
//!
//! The archive is read as it is stored, one file after the other; nothing is unpacked. Our own
//! reader, as libraries keep a file's long name whole in memory, which a hostile archive makes
//! as long as it likes.

use std::io::{self, Read};
use std::path::Path;

use crate::error::{Error, Result};
use crate::input::{Input, Progress};
use crate::recognise::Kind;

const BLOCK_BYTES: usize = 512;
/// Maximum bytes of a long name or a list of attributes that are looked at (chosen here).
const MAX_NAME_BYTES: u64 = 8 * 1_024;

/// Whether these are the first bytes of a tar archive (POSIX ustar, GNU).
pub(crate) fn is_tar(head: &[u8]) -> bool {
    head.get(257..262) == Some(b"ustar")
}

/// A file in an archive.
struct Member {
    name: String,
    bytes: u64,
}

/// Reads the headers of an archive's files.
struct Tar<R> {
    inner: R,
    /// Bytes until the next header.
    left: u64,
}

impl<R: Read> Tar<R> {
    const fn new(inner: R) -> Self {
        Self { inner, left: 0 }
    }

    /// The next regular file, whose bytes follow; `None` at the end.
    fn next_file(&mut self) -> io::Result<Option<Member>> {
        let mut long_name = None;
        loop {
            io::copy(&mut self.inner.by_ref().take(self.left), &mut io::sink())?;
            self.left = 0;
            let mut header = [0; BLOCK_BYTES];
            match self.inner.read_exact(&mut header) {
                Ok(()) if is_tar(&header) => {}
                Ok(()) => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
                Err(error) => return Err(error),
            }
            let bytes = size_of(&header).ok_or(io::ErrorKind::InvalidData)?;
            self.left = bytes.div_ceil(BLOCK_BYTES as u64).saturating_mul(BLOCK_BYTES as u64);
            match header.get(156) {
                Some(b'0' | 0) => {
                    let name = long_name.unwrap_or_else(|| name_of(&header));
                    return Ok(Some(Member { name, bytes }));
                }
                Some(kind @ (b'L' | b'x')) => {
                    let mut text = Vec::new();
                    let looked_at = bytes.min(MAX_NAME_BYTES);
                    self.left -= self.inner.by_ref().take(looked_at).read_to_end(&mut text)? as u64;
                    let text = String::from_utf8_lossy(&text);
                    long_name = match kind {
                        b'L' => Some(text.trim_end_matches('\0').to_owned()),
                        // Lines of "length path=NAME".
                        _ => text
                            .lines()
                            .find_map(|line| Some(line.split_once(" path=")?.1.to_owned()))
                            .or(long_name),
                    };
                }
                _ => {}
            }
        }
    }
}

/// The size in octal digits, or in base 256 where the first bit is set.
fn size_of(header: &[u8; BLOCK_BYTES]) -> Option<u64> {
    let field = header.get(124..136)?;
    if field.first()? & 0x80 != 0 {
        let last = field.last_chunk::<8>()?;
        return Some(u64::from_be_bytes(*last)).filter(|size| *size <= i64::MAX.cast_unsigned());
    }
    let text = std::str::from_utf8(field).ok()?.trim_matches(['\0', ' ']);
    u64::from_str_radix(text, 8).ok()
}

fn name_of(header: &[u8; BLOCK_BYTES]) -> String {
    let text = |from, to| {
        let field: &[u8] = header.get(from..to).unwrap_or_default();
        let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
        String::from_utf8_lossy(field.get(..end).unwrap_or_default()).into_owned()
    };
    match text(345, 500) {
        prefix if prefix.is_empty() => text(0, 100),
        prefix => format!("{prefix}/{}", text(0, 100)),
    }
}

/// The largest modem log in the archive at `path`, which is read twice.
///
/// # Errors
/// It cannot be read, or has no modem log.
pub(crate) fn open_log(path: &Path, progress: &Progress) -> Result<Input> {
    let fail = |source| Error::read(path, source);
    // The second reading is the one whose progress counts.
    let mut tar = Tar::new(Input::open_as_stored(path, &Progress::default())?);
    let mut found: Option<(usize, Member)> = None;
    let mut n_files = 0_usize;
    while let Some(member) = tar.next_file().map_err(fail)? {
        let mut head = Vec::new();
        let start = tar.inner.by_ref().take(member.bytes.min(HEAD_BYTES));
        tar.left -= io::copy(&mut { start }, &mut head).map_err(fail)?;
        let reader = io::Cursor::new(head);
        // A damaged compressed file is no log.
        let input = Input::from_reader(path, None, reader, &Progress::default()).ok();
        let is_log = input.is_some_and(|input| matches!(Kind::of(input.head()), Kind::ModemLog(_)));
        if is_log && found.as_ref().is_none_or(|(_, other)| other.bytes < member.bytes) {
            found = Some((n_files, member));
        }
        n_files += 1;
    }
    let Some((number, Member { name, bytes })) = found else {
        let what = format!(
            "is a tar archive of {n_files} files without a modem log in it; unpack it, and name \
             the file to read. The baseband's trace is in a sysdiagnose only after Apple's \
             baseband profile was installed (docs/phones.md)"
        );
        return Err(Error::Unusable { path: path.to_owned(), what });
    };
    let mut tar = Tar::new(Input::open_as_stored(path, progress)?);
    for _ in 0..=number {
        tar.next_file().map_err(fail)?;
    }
    let log = Whole { inner: tar.inner, left: bytes };
    Input::from_reader(&path.join(name), Some(bytes), log, &Progress::default()).map_err(fail)
}

/// A file of an archive, which may end early.
struct Whole<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for Whole<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.by_ref().take(self.left).read(buf)?;
        if n == 0 && self.left > 0 && !buf.is_empty() {
            let what = format!("the archive ends {} bytes before its file does", self.left);
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, what));
        }
        self.left -= n as u64;
        Ok(n)
    }
}

/// Bytes of a file in which its kind is recognised: as stored, they may decompress to more.
const HEAD_BYTES: u64 = 64 * 1_024;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use airmile_decode::diag::frame::emit_log;
    use airmile_decode::diag::{Container, hdlc};
    use proptest::prelude::*;

    use super::*;

    /// A log of `n` packets.
    fn log(n: u64) -> Vec<u8> {
        let mut out = Vec::new();
        for time in 0..n {
            let mut packet = Vec::new();
            emit_log(0, 0xB193, (1 << 40) + (time << 20), &[time as u8; 40], &mut packet);
            hdlc::encode(&packet, &mut out);
        }
        out
    }

    fn member(kind: u8, name: &str, bytes: &[u8]) -> Vec<u8> {
        let mut out = vec![0; BLOCK_BYTES];
        out[..name.len().min(100)].copy_from_slice(&name.as_bytes()[..name.len().min(100)]);
        out[124..135].copy_from_slice(format!("{:011o}", bytes.len()).as_bytes());
        out[156] = kind;
        out[257..262].copy_from_slice(b"ustar");
        out.extend(bytes);
        out.resize(out.len().next_multiple_of(BLOCK_BYTES), 0);
        out
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        out.write_all(bytes).unwrap();
        out.finish().unwrap()
    }

    /// DIAG in frames of 16 bytes, each after one of another source.
    fn trace(diag: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        for piece in diag.chunks(14) {
            let mut other = [0x40; 16];
            other[0] = 0x11 << 1 | 1;
            out.extend(other);
            // The change of source, then data up to the flags; 0x7E ends a frame of HDLC.
            let mut frame = [hdlc::TERMINATOR; 16];
            (frame[0], frame[15]) = (0x32 << 1 | 1, 0);
            frame[1..=piece.len()].copy_from_slice(piece);
            for n in 1..8 {
                frame[15] |= (frame[2 * n] & 1) << n;
                frame[2 * n] &= !1;
            }
            out.extend(frame);
        }
        out
    }

    fn read(archive: &[u8]) -> Result<(String, Kind, io::Result<Vec<u8>>)> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("archive.tar");
        fs::write(&path, archive).unwrap();
        let mut input = Input::open(&path, &Progress::default())?;
        let name = input.path().strip_prefix(&path).unwrap().display().to_string();
        let mut bytes = Vec::new();
        let end = input.read_to_end(&mut bytes);
        Ok((name, Kind::of(input.head()), end.map(|_| bytes)))
    }

    #[test]
    fn the_largest_log_is_read() {
        let long = format!("{}/log-bb.qmdl", "a".repeat(120));
        let archive = [
            member(b'5', "logs/", b""),
            member(b'0', "logs/readme.txt", b"text"),
            member(b'0', "logs/small.qmdl", &log(5)),
            member(b'L', "././@LongLink", format!("{long}\0").as_bytes()),
            member(b'0', "shortened", &gzip(&log(600))),
            member(b'0', "logs/other.qmdl", &log(6)),
            vec![0; 2 * BLOCK_BYTES],
        ];
        for archive in [archive.concat(), gzip(&archive.concat())] {
            let (name, kind, bytes) = read(&archive).unwrap();
            assert_eq!((name, kind), (long.clone(), Kind::ModemLog(Container::Hdlc)));
            assert_eq!(bytes.unwrap(), log(600));
        }
    }

    #[test]
    fn diag_in_a_trace_is_read() {
        let archive = [member(b'0', "trace.bin", &trace(&log(3_000))), vec![0; 1_024]].concat();
        let (name, kind, bytes) = read(&archive).unwrap();
        assert_eq!((name.as_str(), kind), ("trace.bin", Kind::ModemLog(Container::Hdlc)));
        let bytes = bytes.unwrap();
        assert_eq!(&bytes[..log(3_000).len()], log(3_000));
    }

    #[test]
    fn an_archive_that_ends_early_is_reported() {
        let archive = member(b'0', "log.qmdl", &log(3_000));
        let (_, _, bytes) = read(&archive[..archive.len() / 2]).unwrap();
        assert!(bytes.unwrap_err().to_string().contains("the archive ends"));
    }

    proptest! {
        #[test]
        fn damaged_archives(at in 0_usize..4_000, bytes in prop::collection::vec(any::<u8>(), 1..40)) {
            let mut archive = [
                member(b'L', "name", b"logs/long.qmdl"),
                member(b'0', "name", &log(20)),
                member(b'x', "name", b"20 path=logs/log\n"),
                member(b'0', "name", &gzip(&log(9))),
            ]
            .concat();
            let at = at.min(archive.len() - bytes.len());
            archive[at..at + bytes.len()].copy_from_slice(&bytes);
            let _ = read(&archive);
        }
    }

    #[test]
    fn an_archive_without_a_log_is_refused() {
        let archive = member(b'0', "notes", b"text");
        let error = read(&archive).unwrap_err().to_string();
        assert!(error.contains("1 files without a modem log"), "{error}");
        // A size that is none, and a name that is larger than the archive.
        let mut bad = member(b'0', "notes", b"text");
        bad[124..135].copy_from_slice(b"not a size!");
        assert!(read(&bad).is_err());
        let mut huge = member(b'L', "name", b"name");
        huge[124..135].copy_from_slice(b"77777777777");
        assert!(read(&huge).is_err());
    }
}
