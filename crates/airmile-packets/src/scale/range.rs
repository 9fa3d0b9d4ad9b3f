//! Where a capture can be cut: at records.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use airmile_capture::packet::pcap_boundary;

use airmile_io::error::{Error, Result};

/// Bytes that are looked at for a record's beginning (chosen here: of the largest
/// record that is believed, and those that vouch for it).
const WINDOW_BYTES: u64 = 4 << 20;

/// Where to cut a file into parts of about `part_bytes`: offsets at which records
/// begin, by the look of those that follow. Only pcap that is not compressed can be
/// cut; all else gives none. Who reads a part that does not end at a record knows
/// that a cut was wrong.
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
