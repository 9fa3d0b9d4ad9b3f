//! A modem log in a tar archive, such as an iPhone's sysdiagnose.
//!
//! The archive is read as it is stored, one file after the other; nothing is unpacked. Our own
//! reader, as libraries keep a file's long name whole in memory, which a hostile archive makes
//! as long as it likes.

use std::io::{self, Read};
use std::path::Path;

use airmile_model::printable_path;

use crate::error::{Error, Result};
use crate::recognise::{Kind, is_tar};

use super::{Input, Progress};

const BLOCK_BYTES: usize = 512;
/// Maximum number of files that are named (chosen here).
const MAX_NAMES: usize = 8;
/// Maximum bytes of a long name or a list of attributes that are looked at (chosen here).
const MAX_NAME_BYTES: u64 = 8 * 1_024;

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
    /// Bytes read before that.
    at: u64,
}

impl<R: Read> Tar<R> {
    const fn new(inner: R) -> Self {
        Self { inner, left: 0, at: 0 }
    }

    /// Takes up to `bytes` of the file.
    fn take(&mut self, bytes: u64) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        self.inner.by_ref().take(bytes.min(self.left)).read_to_end(&mut out)?;
        self.left -= out.len() as u64;
        self.at += out.len() as u64;
        Ok(out)
    }

    fn next_header(&mut self) -> io::Result<Option<[u8; BLOCK_BYTES]>> {
        let skipped = io::copy(&mut self.inner.by_ref().take(self.left), &mut io::sink())?;
        self.at += skipped;
        let mut header = [0; BLOCK_BYTES];
        let cut = || {
            let what = format!("byte {}: the archive ends early", self.at);
            io::Error::new(io::ErrorKind::UnexpectedEof, what)
        };
        if skipped < self.left {
            return Err(cut());
        }
        self.left = 0;
        self.inner.read_exact(&mut header).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => cut(),
            _ => error,
        })?;
        if header == [0; BLOCK_BYTES] {
            return Ok(None);
        }
        if !is_tar(&header) || octal(header.get(148..156)) != Some(checksum(&header)) {
            return Err(self.damaged("not a header of a tar archive"));
        }
        self.at += BLOCK_BYTES as u64;
        Ok(Some(header))
    }

    fn damaged(&self, what: &str) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidData, format!("byte {}: {what}", self.at))
    }

    /// The next regular file, whose bytes follow; `None` at the end.
    fn next_file(&mut self) -> io::Result<Option<Member>> {
        let (mut long_name, mut long_size) = (None, None);
        while let Some(header) = self.next_header()? {
            let stated = long_size.take().or_else(|| size_of(&header));
            let bytes = stated.ok_or_else(|| self.damaged("field size"))?;
            self.left = bytes.div_ceil(BLOCK_BYTES as u64).saturating_mul(BLOCK_BYTES as u64);
            match header.get(156) {
                Some(b'0' | 0) => {
                    let name = long_name.unwrap_or_else(|| name_of(&header));
                    return Ok(Some(Member { name, bytes }));
                }
                Some(b'L') => {
                    let text = self.take(bytes.min(MAX_NAME_BYTES))?;
                    let text = String::from_utf8_lossy(&text);
                    long_name = Some(text.trim_end_matches('\0').to_owned());
                }
                // Lines of "length keyword=value".
                Some(b'x') => {
                    let text = self.take(bytes.min(MAX_NAME_BYTES))?;
                    let text = String::from_utf8_lossy(&text);
                    let value = |keyword: &str| {
                        let attributes = text.lines().filter_map(|line| line.split_once(' '));
                        let mut pairs = attributes.filter_map(|(_, pair)| pair.split_once('='));
                        Some(pairs.find(|(name, _)| *name == keyword)?.1.to_owned())
                    };
                    long_name = value("path").or(long_name);
                    long_size = value("size").and_then(|size| size.parse().ok());
                }
                _ => {}
            }
        }
        Ok(None)
    }
}

/// The sum of a header's bytes, with blanks in place of the sum itself.
fn checksum(header: &[u8; BLOCK_BYTES]) -> u64 {
    let byte =
        |(at, byte): (usize, &u8)| if (148..156).contains(&at) { 32 } else { (*byte).into() };
    header.iter().enumerate().map(byte).sum()
}

fn octal(field: Option<&[u8]>) -> Option<u64> {
    let text = std::str::from_utf8(field?).ok()?;
    u64::from_str_radix(text.trim_matches(['\0', ' ']), 8).ok()
}

/// The size in octal digits, or in base 256 where the first bit is set.
fn size_of(header: &[u8; BLOCK_BYTES]) -> Option<u64> {
    let field = header.get(124..136)?;
    if field.first()? & 0x80 != 0 {
        let last = field.last_chunk::<8>()?;
        return Some(u64::from_be_bytes(*last)).filter(|size| *size <= i64::MAX.cast_unsigned());
    }
    octal(Some(field))
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

/// The largest modem log, as stored, in the archive at `path`, which is read twice; `None` if it
/// has none. Damage of the archive is an error after the log's last byte.
///
/// # Errors
/// It cannot be read.
pub(super) fn open_log(path: &Path, progress: &Progress) -> Result<Option<Input>> {
    let fail = |source| Error::read(path, source);
    // The second reading is the one whose progress counts.
    let mut tar = Tar::new(Input::open_as_stored(path, &Progress::default())?);
    let mut found: Option<(usize, Member)> = None;
    let (mut n_files, mut left_out) = (0_usize, LeftOut::default());
    let damage = loop {
        let member = match tar.next_file() {
            Ok(Some(member)) => member,
            Ok(None) => break None,
            Err(error) => break Some(error),
        };
        let head = match tar.take(member.bytes.min(HEAD_BYTES)) {
            Ok(head) => head,
            Err(error) => break Some(error),
        };
        // A damaged compressed file is no log.
        let reader = io::Cursor::new(head);
        let input = Input::from_reader(path, None, reader, &Progress::default()).ok();
        let kind = input.map_or(Kind::Unknown, |input| Kind::of(input.head()));
        if !matches!(kind, Kind::ModemLog(_)) {
            left_out.note(&member.name, kind);
        } else {
            left_out.logs += 1;
            if found.as_ref().is_none_or(|(_, other)| other.bytes < member.bytes) {
                found = Some((n_files, member));
            }
        }
        n_files += 1;
    };
    let Some((number, Member { name, bytes })) = found else {
        return match (damage, left_out.says()) {
            (Some(error), _) => Err(fail(error)),
            (None, None) => Ok(None),
            (None, Some(others)) => {
                let what = format!("is a tar archive, {others}: unpack it, and give them");
                Err(Error::Unusable { path: path.to_owned(), what })
            }
        };
    };
    left_out.logs -= 1;
    let mut tar = Tar::new(Input::open_as_stored(path, progress)?);
    for _ in 0..=number {
        tar.next_file().map_err(fail)?;
    }
    let log = Whole { inner: tar.inner, left: bytes, damage };
    // An absolute name would replace the archive's.
    let name = path.join(name.trim_start_matches('/'));
    let log = Input::from_reader(&name, Some(bytes), log, &Progress::default()).map_err(fail)?;
    Ok(Some(log.with_left_out(left_out.says())))
}

/// Files of an archive that could be given as inputs and are not read from it.
#[derive(Default)]
struct LeftOut {
    logs: u64,
    /// Names of the first captures and application logs, with their formats.
    others: Vec<String>,
    more: u64,
}

impl LeftOut {
    fn note(&mut self, name: &str, kind: Kind) {
        if !kind.is_capture() && !matches!(kind, Kind::Application(_)) {
            return;
        }
        if self.others.len() < MAX_NAMES {
            let name = printable_path(Path::new(name));
            self.others.push(format!("{name} ({})", kind.name()));
        } else {
            self.more += 1;
        }
    }

    fn says(&self) -> Option<String> {
        let mut parts = Vec::new();
        match self.logs {
            0 => {}
            n => parts.push(format!("{n} other modem logs")),
        }
        parts.extend(self.others.iter().cloned());
        if self.more > 0 {
            parts.push(format!("{} more captures and application logs", self.more));
        }
        (!parts.is_empty())
            .then(|| format!("from which only one modem log is read, not {}", parts.join(", ")))
    }
}

/// A file of an archive, which may end early.
struct Whole<R> {
    inner: R,
    left: u64,
    /// Damage of the archive after it.
    damage: Option<io::Error>,
}

impl<R: Read> Read for Whole<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.by_ref().take(self.left).read(buf)?;
        if n == 0 && self.left > 0 && !buf.is_empty() {
            let what = format!("the archive ends {} bytes before its file does", self.left);
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, what));
        }
        self.left -= n as u64;
        match self.damage.take_if(|_| n == 0 && !buf.is_empty()) {
            Some(damage) => Err(damage),
            None => Ok(n),
        }
    }
}

/// Bytes of a file in which its kind is recognised: as stored, they may decompress to more.
const HEAD_BYTES: u64 = 64 * 1_024;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use airmile_decode::diag::frame::emit_log;
    use airmile_decode::diag::{Container, coresight, hdlc};
    use proptest::prelude::*;

    use super::*;
    use crate::recognise::Foreign;

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
        seal(&mut out);
        out.extend(bytes);
        out.resize(out.len().next_multiple_of(BLOCK_BYTES), 0);
        out
    }

    /// Writes the checksum of a header.
    fn seal(header: &mut [u8]) {
        let sum = checksum(header.first_chunk().unwrap());
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        out.write_all(bytes).unwrap();
        out.finish().unwrap()
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
        let archive =
            [member(b'0', "trace.bin", &coresight::encode(&log(3_000))), vec![0; 1_024]].concat();
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
        // Damage after the log is reported after its bytes.
        let damaged = [archive.clone(), vec![7; 1_024]].concat();
        for (archive, what) in [(&archive, "ends early"), (&damaged, "not a header")] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("archive.tar");
            fs::write(&path, archive).unwrap();
            let mut input = Input::open(&path, &Progress::default()).unwrap();
            let mut bytes = vec![0; log(3_000).len()];
            input.read_exact(&mut bytes).unwrap();
            assert_eq!(bytes, log(3_000));
            let error = input.read(&mut [0; 10]).unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
        }
    }

    #[test]
    fn names_and_sizes_of_attributes_count() {
        let attributes = format!("30 path=/etc/log.qmdl\n20 size={}\n", log(9).len());
        let mut stored = member(b'0', "short", &log(9));
        stored[124..135].copy_from_slice(b"00000000000");
        seal(&mut stored[..BLOCK_BYTES]);
        let archive = [member(b'x', "pax", attributes.as_bytes()), stored, vec![0; 1_024]].concat();
        let (name, _, bytes) = read(&archive).unwrap();
        assert_eq!((name.as_str(), bytes.unwrap()), ("etc/log.qmdl", log(9)));
    }

    #[test]
    fn values_that_look_like_attributes_do_not_count() {
        let attributes = b"30 path=run size=5 of a log.qmdl\n30 comment=its path=other.qmdl\n";
        let archive =
            [member(b'x', "pax", attributes), member(b'0', "short", &log(9)), vec![0; 1_024]];
        let (name, _, bytes) = read(&archive.concat()).unwrap();
        assert_eq!((name.as_str(), bytes.unwrap()), ("run size=5 of a log.qmdl", log(9)));
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
            prop_assert!(read(&archive).is_ok());
            let at = at.min(archive.len() - bytes.len());
            archive[at..at + bytes.len()].copy_from_slice(&bytes);
            // Whatever it is, at most the two logs are read.
            if let Ok((_, _, Ok(found))) = read(&archive) {
                prop_assert!(found.len() <= archive.len() + log(20).len());
            }
        }
    }

    #[test]
    fn files_that_are_not_read_are_named() {
        let capture =
            member(b'0', "run/phone.pcapng", b"\x0a\x0d\x0d\x0a\0\0\0\x1c\x1a\x2b\x3c\x4d");
        let named = "run/phone.pcapng (pcapng)";
        let error = read(&[capture.clone(), vec![0; 1_024]].concat()).unwrap_err().to_string();
        assert!(error.contains(named) && error.contains("unpack it"), "{error}");
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("archive.tar");
        fs::write(&path, [member(b'0', "log", &log(20)), capture].concat()).unwrap();
        let input = Input::open(&path, &Progress::default()).unwrap();
        let left_out = input.left_out().unwrap();
        assert!(left_out.contains(named) && !left_out.contains("modem logs"), "{left_out}");
    }

    #[test]
    fn an_archive_without_a_log_is_itself() {
        let archive = [member(b'0', "notes", b"text"), vec![0; 1_024]].concat();
        let (name, kind, _) = read(&archive).unwrap();
        assert_eq!((name.as_str(), kind), ("", Kind::Foreign(Foreign::Tar)));
        // A size that is none, and a name that is larger than the archive, hide the log after them.
        for (kind, size, what) in [
            (b'0', b"not a size!", "byte 512: field size"),
            (b'L', b"77777777777", "the archive ends early"),
        ] {
            let mut bad = member(kind, "name", b"name");
            bad[124..135].copy_from_slice(size);
            seal(&mut bad[..BLOCK_BYTES]);
            let error = read(&[bad, member(b'0', "log", &log(20))].concat()).unwrap_err();
            assert!(error.to_string().contains(what), "{error}");
        }
    }
}
