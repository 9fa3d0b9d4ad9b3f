//! Finds record boundaries at which a capture can be split.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use airmile_capture::packet::pcap_boundary;

use airmile_io::capture::Beginning;
use airmile_io::error::{Error, Result};

/// Bytes searched for the start of a record (chosen here: the largest plausible record,
/// and those that confirm it).
const WINDOW_BYTES: u64 = 4 << 20;

/// Where to split a file into parts of about `part_bytes`: offsets at which records
/// appear to begin, judging by those that follow. Only uncompressed pcap can be split;
/// other files have no offsets, nor has one that begins out of order of time. A reader
/// whose part does not end at a record detects a wrong offset.
///
/// # Errors
/// The file cannot be read.
pub fn split_capture(path: &Path, part_bytes: u64) -> Result<Vec<u64>> {
    let fail = |e| Error::read(path, e);
    let mut file = File::open(path).map_err(fail)?;
    let size = file.metadata().map_err(fail)?.len();
    let mut header = [0; 24];
    if part_bytes == 0 || size <= part_bytes || file.read_exact(&mut header).is_err() {
        return Ok(Vec::new());
    }
    // Packets are put in order of time within one part.
    if Beginning::of(path)?.is_out_of_order() {
        return Ok(Vec::new());
    }
    let mut cuts = Vec::new();
    let mut at = part_bytes;
    while at + part_bytes / 2 < size {
        file.seek(SeekFrom::Start(at)).map_err(fail)?;
        let mut window = Vec::new();
        (&file).take(WINDOW_BYTES).read_to_end(&mut window).map_err(fail)?;
        let last = at + window.len() as u64 >= size;
        if let Some(found) = pcap_boundary(&header, &window, last) {
            cuts.push(at + found as u64);
        }
        at += part_bytes;
    }
    cuts.dedup();
    Ok(cuts)
}
