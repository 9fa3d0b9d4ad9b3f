//! The numbers of a capture's frames, as Wireshark counts them: from 1, in the order of the file.

use std::io::Read;
use std::path::Path;

use airmile_capture::packet::{CaptureReader, Captured};

use super::CHUNK_BYTES;
use crate::error::Result;
use crate::input::{Input, Progress};

/// The number of the first frame at or after each of some times in ascending order, in nanoseconds since
/// the epoch; after the last frame, the next number.
///
/// # Errors
/// The file cannot be opened. What cannot be read has no frames.
pub fn frame_numbers(path: &Path, times_ns: &[i64], progress: &Progress) -> Result<Vec<u64>> {
    let mut input = Input::open(path, progress)?;
    let mut reader = CaptureReader::new();
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut numbers = Vec::with_capacity(times_ns.len());
    let mut next = 1;
    let mut take = |captured: Captured<'_>| {
        let Captured::Frame(frame) = captured else { return };
        let left = times_ns.get(numbers.len()..).unwrap_or_default();
        let reached = left.iter().take_while(|ns| **ns <= frame.at_ns).count();
        numbers.extend(std::iter::repeat_n(next, reached));
        next += 1;
    };
    while let Some(n) = input.read(&mut buffer).ok().filter(|n| *n > 0) {
        reader.push(buffer.get(..n).unwrap_or_default(), &mut take);
    }
    reader.finish(&mut take);
    numbers.resize(times_ns.len(), next);
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames at 1, 2, 2 and 5 s; the second is of no kind that is read.
    #[test]
    fn frames_are_counted_from_1_whatever_they_hold() {
        let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut bytes: Vec<u8> = words(&[0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, 1]);
        for second in [1, 2, 2, 5] {
            bytes.extend::<Vec<u8>>(words(&[second, 0, 4, 4, 0xffff_ffff]));
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("capture.pcap");
        std::fs::write(&path, &bytes).unwrap();
        let times_ns = [0, 1_000_000_000, 1_500_000_000, 2_000_000_000, 5_000_000_000, i64::MAX];
        let numbers = frame_numbers(&path, &times_ns, &Progress::default()).unwrap();
        assert_eq!(numbers, [1, 1, 2, 2, 4, 5]);
    }
}
