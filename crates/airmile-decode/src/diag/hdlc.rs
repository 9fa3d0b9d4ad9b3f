//! HDLC framing of DIAG packets: escapes, terminator, CRC-16/X-25.
//!
//! A frame is its escaped bytes and one 0x7E. 0x7D announces a byte that was
//! XORed with 0x20. The last two unescaped bytes are the CRC, low byte first
//! (polynomial 0x1021 reflected, initial value and final XOR 0xFFFF), computed
//! before escaping.

/// Ends a frame.
pub const TERMINATOR: u8 = 0x7e;
/// Announces an escaped byte.
pub const ESCAPE: u8 = 0x7d;
const ESCAPE_XOR: u8 = 0x20;

const LANES: usize = 16;

/// `TABLES[k][b]` is the effect of byte `b`, `k` bytes before the end.
static TABLES: [[u16; 256]; LANES] = tables();

const fn tables() -> [[u16; 256]; LANES] {
    let mut tables = [[0; 256]; LANES];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u16;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0x8408 } else { crc >> 1 };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut lane = 1;
    while lane < LANES {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[lane - 1][byte];
            tables[lane][byte] = before >> 8 ^ tables[0][(before & 0xff) as usize];
            byte += 1;
        }
        lane += 1;
    }
    tables
}

/// CRC-16/X-25 of `bytes`.
#[must_use]
pub fn crc(bytes: &[u8]) -> u16 {
    let mut crc = 0xffff_u16;
    let (chunks, rest) = bytes.as_chunks::<LANES>();
    for chunk in chunks {
        // The two bytes that wait for the step before come last.
        let known = TABLES.iter().rev().zip(chunk).skip(2);
        let known = known.fold(0, |crc, (table, &byte)| crc ^ table[usize::from(byte)]);
        let [low, high] = crc.to_le_bytes();
        crc = known
            ^ (TABLES[LANES - 1][usize::from(chunk[0] ^ low)]
                ^ TABLES[LANES - 2][usize::from(chunk[1] ^ high)]);
    }
    for &byte in rest {
        crc = crc >> 8 ^ TABLES[0][usize::from(crc as u8 ^ byte)];
    }
    !crc
}

/// Why a piece between two terminators is not a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HdlcError {
    /// Fewer than three bytes.
    #[error("HDLC frame of {0} bytes: too short for a CRC")]
    Short(usize),
    /// An escape at the end.
    #[error("HDLC frame ends in an escape")]
    OpenEscape,
    /// The CRC does not match.
    #[error("HDLC CRC 0x{stored:04X} of {len} bytes should be 0x{computed:04X}")]
    Crc {
        /// As stored.
        stored: u16,
        /// The expected value.
        computed: u16,
        /// Unescaped bytes, without the CRC.
        len: usize,
    },
}

/// Unescapes a piece without its terminator into `out`, which is cleared.
///
/// # Errors
///
/// The piece ends in an escape.
pub fn unescape(piece: &[u8], out: &mut Vec<u8>) -> Result<(), HdlcError> {
    out.clear();
    let mut rest = piece;
    while let Some(at) = memchr::memchr(ESCAPE, rest) {
        out.extend_from_slice(&rest[..at]);
        let Some(&byte) = rest.get(at + 1) else { return Err(HdlcError::OpenEscape) };
        out.push(byte ^ ESCAPE_XOR);
        rest = &rest[at + 2..];
    }
    out.extend_from_slice(rest);
    Ok(())
}

/// Checks an unescaped frame's CRC and returns the packet before it.
///
/// # Errors
///
/// The frame is too short or its CRC is wrong.
pub fn check(frame: &[u8]) -> Result<&[u8], HdlcError> {
    let Some((packet, stored)) = frame.split_last_chunk::<2>().filter(|(p, _)| !p.is_empty())
    else {
        return Err(HdlcError::Short(frame.len()));
    };
    let stored = u16::from_le_bytes(*stored);
    let computed = crc(packet);
    if stored == computed {
        Ok(packet)
    } else {
        Err(HdlcError::Crc { stored, computed, len: packet.len() })
    }
}

/// Appends a packet as a frame, CRC and terminator included.
pub fn encode(packet: &[u8], out: &mut Vec<u8>) {
    let mut escape = |bytes: &[u8]| {
        let mut rest = bytes;
        while let Some(at) = memchr::memchr2(TERMINATOR, ESCAPE, rest) {
            out.extend_from_slice(&rest[..at]);
            out.extend([ESCAPE, rest[at] ^ ESCAPE_XOR]);
            rest = &rest[at + 1..];
        }
        out.extend_from_slice(rest);
    };
    escape(packet);
    escape(&crc(packet).to_le_bytes());
    out.push(TERMINATOR);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn check_value() {
        assert_eq!(crc(b"123456789"), 0x906e);
    }

    proptest! {
        /// Whole chunks, with and without a rest.
        #[test]
        fn is_the_crc_bit_by_bit(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let crc_bits = bytes.iter().fold(0xffff_u16, |crc, &byte| {
                (0..8).fold(crc ^ u16::from(byte), |crc, _| {
                    if crc & 1 == 1 { crc >> 1 ^ 0x8408 } else { crc >> 1 }
                })
            });
            prop_assert_eq!(crc(&bytes), !crc_bits);
        }

        #[test]
        fn decodes_what_it_encodes(packet in prop::collection::vec(
            prop_oneof![Just(TERMINATOR), Just(ESCAPE), any::<u8>()], 1..200)) {
            let mut piece = Vec::new();
            encode(&packet, &mut piece);
            prop_assert_eq!(piece.pop(), Some(TERMINATOR));
            prop_assert!(!piece.contains(&TERMINATOR));
            let mut frame = Vec::new();
            unescape(&piece, &mut frame).unwrap();
            prop_assert_eq!(check(&frame), Ok(&packet[..]));
        }
    }
}
