//! DIAG packets between marks and without escapes, as on a QRTR socket or a socket of a
//! DIAG router.
//!
//! | offset | width | field |
//! |---|---|---|
//! | 0 | u8 | 0x7E |
//! | 1 | u8 | 0x01, the version |
//! | 2 | u16 | length n |
//! | 4 | n | the packet |
//! | 4 + n | u8 | 0x7E |
//!
//! There is no checksum. Other bytes are skipped, up to the next place where a frame ends
//! with its mark, and counted; so is a prefix that some peers send.

use super::hdlc;

const MARK: u8 = 0x7e;
const VERSION: u8 = 1;
const HEAD: usize = 4;

/// Appends a packet's frame; `None` for one that exceeds a frame's maximum.
#[must_use]
pub fn encode(packet: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let len = u16::try_from(packet.len()).ok()?;
    out.extend([MARK, VERSION]);
    out.extend(len.to_le_bytes());
    out.extend(packet);
    out.push(MARK);
    Some(())
}

/// Splits a stream in pieces into packets.
#[derive(Debug, Clone, Default)]
pub struct NhdlcDeframer {
    waiting: Vec<u8>,
    /// Consumed bytes of `waiting`.
    at: usize,
    skipped_bytes: u64,
}

impl NhdlcDeframer {
    /// Takes bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.waiting.drain(..self.at);
        self.at = 0;
        self.waiting.extend(bytes);
    }

    /// The next packet, if all of it has come.
    pub fn poll(&mut self) -> Option<&[u8]> {
        loop {
            let rest = self.waiting.get(self.at..).unwrap_or_default();
            let packet = match rest {
                [] => return None,
                [MARK] => return None,
                [MARK, VERSION, low, high, ..] => {
                    let len = usize::from(u16::from_le_bytes([*low, *high]));
                    match rest.get(HEAD + len) {
                        Some(&MARK) => Some(len),
                        Some(_) => None,
                        None => return None,
                    }
                }
                [MARK, VERSION, ..] => return None,
                _ => None,
            };
            if let Some(len) = packet {
                let start = self.at + HEAD;
                self.at = start + len + 1;
                return self.waiting.get(start..start + len);
            }
            self.at += 1;
            self.skipped_bytes += 1;
        }
    }

    /// Bytes outside of frames.
    #[must_use]
    pub const fn skipped_bytes(&self) -> u64 {
        self.skipped_bytes
    }

    /// The packets so far as frames with a checksum, as in logs.
    pub fn take_as_hdlc(&mut self, out: &mut Vec<u8>) {
        while let Some(packet) = self.poll() {
            hdlc::encode(packet, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn packets(stream: &[u8], cuts: &[usize]) -> (Vec<Vec<u8>>, u64) {
        let mut deframer = NhdlcDeframer::default();
        let mut out = Vec::new();
        let mut rest = stream;
        for cut in cuts {
            let (piece, next) = rest.split_at((*cut).min(rest.len()));
            deframer.push(piece);
            while let Some(packet) = deframer.poll() {
                out.push(packet.to_vec());
            }
            rest = next;
        }
        deframer.push(rest);
        while let Some(packet) = deframer.poll() {
            out.push(packet.to_vec());
        }
        (out, deframer.skipped_bytes())
    }

    #[test]
    fn a_prefix_and_damage_are_passed_over() {
        let mut stream = vec![8, 0, 3, 0];
        encode(&[0x10, 0x7e, 1], &mut stream).unwrap();
        // A frame that does not end with its mark, and one that is not complete.
        stream.extend([MARK, VERSION, 2, 0, 9, 9, 9]);
        encode(&[0x73], &mut stream).unwrap();
        stream.extend([MARK, VERSION, 200, 0, 1]);
        assert_eq!(packets(&stream, &[]), (vec![vec![0x10, 0x7e, 1], vec![0x73]], 11));
        assert_eq!(encode(&vec![0; 65_536], &mut Vec::new()), None);
    }

    proptest! {
        #[test]
        fn any_cut_gives_the_packets(
            all in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..10),
            cuts in prop::collection::vec(0_usize..60, 0..12),
        ) {
            let mut stream = Vec::new();
            all.iter().for_each(|packet| encode(packet, &mut stream).unwrap());
            prop_assert_eq!(packets(&stream, &cuts), (all, 0));
        }
    }
}
