//! The baseline: a plain loop that unescapes HDLC and checks CRCs byte by byte, as a
//! first version of any reader would.

/// Frames whose CRC-16/X-25 is good.
pub fn good_frames(log: &[u8]) -> u64 {
    let table = table();
    let mut good = 0;
    let mut frame = Vec::with_capacity(8 * 1024);
    let mut escaped = false;
    for &byte in log {
        match byte {
            0x7e => {
                let crc = frame
                    .iter()
                    .fold(0xffff, |crc: u16, &b: &u8| crc >> 8 ^ table[usize::from(crc as u8 ^ b)]);
                // The residue of a frame followed by its own CRC.
                good += u64::from(frame.len() > 2 && crc == 0xf0b8);
                frame.clear();
                escaped = false;
            }
            0x7d => escaped = true,
            _ => {
                frame.push(if escaped { byte ^ 0x20 } else { byte });
                escaped = false;
            }
        }
    }
    good
}

fn table() -> [u16; 256] {
    let mut table = [0; 256];
    for (i, entry) in table.iter_mut().enumerate() {
        *entry =
            (0..8).fold(i as u16, |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0x8408 } else { crc >> 1 });
    }
    table
}

#[cfg(test)]
mod tests {
    use airmile::codec::diag::hdlc;

    #[test]
    fn finds_what_the_reader_finds() {
        let mut log = Vec::new();
        hdlc::encode(b"one \x7e two \x7d", &mut log);
        hdlc::encode(b"three", &mut log);
        log.extend(b"no frame\x7e");
        assert_eq!(super::good_frames(&log), 2);
    }
}
