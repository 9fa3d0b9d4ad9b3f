//! The baseline: unescapes HDLC and checks CRCs as fast as a plain loop does it here, and
//! nothing else. One search finds terminators and escapes, runs between escapes are
//! copied, and the CRC takes 16 bytes at a time ("slicing", Kounavis and Berry 2008).

/// Bytes of a CRC step.
const LANES: usize = 16;

type Tables = [[u16; 256]; LANES];

/// Frames whose CRC-16/X-25 is good.
pub fn good_frames(log: &[u8]) -> u64 {
    let tables = tables();
    let mut good = 0;
    let mut frame = Vec::with_capacity(8 * 1024);
    // Where the bytes begin that are not in the frame yet.
    let mut from = 0;
    let mut is_escaped = false;
    for at in memchr::memchr2_iter(0x7e, 0x7d, log) {
        let run = log.get(from..at).unwrap_or_default();
        append(&mut frame, run, is_escaped);
        is_escaped = log.get(at) == Some(&0x7d);
        from = at + 1;
        if !is_escaped {
            // The residue of a frame followed by its own CRC.
            good += u64::from(frame.len() > 2 && crc(&tables, &frame) == 0xf0b8);
            frame.clear();
        }
    }
    good
}

/// Appends a run of bytes, of which the first may be escaped.
fn append(frame: &mut Vec<u8>, run: &[u8], is_escaped: bool) {
    let begin = frame.len();
    frame.extend_from_slice(run);
    if let Some(first) = frame.get_mut(begin).filter(|_| is_escaped) {
        *first ^= 0x20;
    }
}

fn crc(tables: &Tables, bytes: &[u8]) -> u16 {
    let (chunks, rest) = bytes.as_chunks::<LANES>();
    let mut crc = 0xffff_u16;
    for chunk in chunks {
        let mut chunk = *chunk;
        let [low, high] = crc.to_le_bytes();
        chunk[0] ^= low;
        chunk[1] ^= high;
        let lanes = tables.iter().rev().zip(chunk);
        crc = lanes.fold(0, |crc, (table, byte)| crc ^ table[usize::from(byte)]);
    }
    let step = |crc: u16, &byte: &u8| crc >> 8 ^ tables[0][usize::from(crc as u8 ^ byte)];
    rest.iter().fold(crc, step)
}

/// `tables[k][byte]`: the effect of a byte `k` bytes before the end of a step.
fn tables() -> Tables {
    let mut tables = [[0; 256]; LANES];
    let bit = |crc: u16, _| if crc & 1 == 1 { crc >> 1 ^ 0x8408 } else { crc >> 1 };
    for (byte, entry) in (0_u16..).zip(&mut tables[0]) {
        *entry = (0..8).fold(byte, bit);
    }
    // A later table needs all of the first.
    for lane in 1..LANES {
        for byte in 0..256 {
            let crc = tables[lane - 1][byte];
            tables[lane][byte] = crc >> 8 ^ tables[0][usize::from(crc as u8)];
        }
    }
    tables
}

#[cfg(test)]
mod tests {
    use airmile::codec::diag::hdlc;

    #[test]
    fn finds_the_same_frames_as_the_reader() {
        let mut log = Vec::new();
        hdlc::encode(b"one \x7e two \x7d", &mut log);
        hdlc::encode(b"three", &mut log);
        // Longer than a step of the CRC, with escapes next to each other and at its end.
        let long: Vec<u8> = (0..100).flat_map(|n| [n, 0x7e, 0x7d]).collect();
        hdlc::encode(&long, &mut log);
        log.extend(b"no frame\x7e");
        assert_eq!(super::good_frames(&log), 3);
    }
}
