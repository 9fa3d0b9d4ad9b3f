//! The client hello in QUIC Initial packets. Their keys are derived from the first packet
//! (RFC 9001, 5.2; RFC 9369, 3.3), so an observer on the path sees the server's name, as
//! with TLS over TCP.

use std::collections::BTreeMap;

use aes::Aes128;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes_gcm::Aes128Gcm;
use aes_gcm::aead::{Aead, Payload};
use hkdf::Hkdf;
use sha2::Sha256;

use super::{FIXED, LONG};
use crate::app::tls::{Hello, handshake_hello};

/// RFC 9001, 5.2.
const SALT_V1: [u8; 20] = [
    0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34, 0xb3, 0x4d, 0x17, 0x9a, 0xe6, 0xa4, 0xc8, 0x0c, 0xad,
    0xcc, 0xbb, 0x7f, 0x0a,
];
/// RFC 9369, 3.3.1.
const SALT_V2: [u8; 20] = [
    0x0d, 0xed, 0xe3, 0xde, 0xf7, 0x00, 0xa6, 0xdb, 0x81, 0x93, 0x81, 0xbe, 0x6e, 0x26, 0x9d, 0xcb,
    0xf9, 0xbd, 0x2e, 0xd9,
];
const V1: u32 = 1;
const V2: u32 = 0x6b33_43cf;
/// RFC 9000, 17.2: connection IDs have 20 bytes at most.
const MAX_CID_BYTES: usize = 20;
/// RFC 9001, 5.4.2: the sample begins where the longest packet number would end.
const MAX_NUMBER_BYTES: usize = 4;
const SAMPLE_BYTES: usize = 16;
/// Longer hellos are not read (chosen here: with post-quantum keys they take 2 KB).
const MAX_HELLO_BYTES: usize = 16 * 1024;
/// Maximum number of client Initial packets to decrypt (chosen here: a hello of 16 KB
/// takes 14, and some are retransmitted).
const MAX_TRIED: u8 = 32;
/// The header of a handshake message (RFC 8446, 4): type and length.
const HANDSHAKE_HEADER_BYTES: usize = 4;
const CLIENT_HELLO: u8 = 1;

/// The client's Initial packets of one connection.
#[derive(Debug, Default)]
pub(super) struct Initials {
    keys: Option<Keys>,
    /// Pieces of the handshake by their offset.
    pieces: BTreeMap<u64, Vec<u8>>,
    bytes: usize,
    tried: u8,
}

impl Initials {
    /// A state that reads no more packets.
    pub(super) const fn over() -> Self {
        Self { keys: None, pieces: BTreeMap::new(), bytes: 0, tried: MAX_TRIED }
    }

    /// Takes a client datagram of one or more packets. Returns the hello as far as it is
    /// there, and whether it is complete.
    pub(super) fn push(&mut self, datagram: &[u8]) -> Option<(Hello, bool)> {
        let mut rest = datagram;
        let (mut more, mut destination) = (false, None);
        while self.tried < MAX_TRIED
            && let Some((packet, behind)) = Protected::read(rest)
        {
            // RFC 9000, 12.2: all packets of a datagram belong to one connection.
            if *destination.get_or_insert(packet.destination) != packet.destination {
                break;
            }
            rest = behind;
            if packet.is_initial {
                self.tried += 1;
                more |= self.open(&packet);
            }
        }
        if !more {
            return None;
        }
        let (hello, whole) = self.hello();
        (whole || hello != Hello::default()).then_some((hello, whole))
    }

    /// Decrypts a packet; returns whether it held a piece of the handshake.
    fn open(&mut self, packet: &Protected<'_>) -> bool {
        // All of a client's packets use the keys of the first, except after a Retry,
        // which the client answers under a new connection ID (RFC 9001, 5.2).
        let opened = self.keys.as_ref().and_then(|keys| keys.open(packet)).or_else(|| {
            let keys = Keys::client(packet.version, packet.destination)?;
            let opened = keys.open(packet)?;
            (self.keys, self.bytes) = (Some(keys), 0);
            self.pieces.clear();
            Some(opened)
        });
        opened.is_some_and(|frames| self.frames(&frames))
    }

    /// Parses CRYPTO frames (RFC 9000, 19.6); other frames of an Initial packet are
    /// skipped.
    fn frames(&mut self, mut frames: &[u8]) -> bool {
        let mut more = false;
        while let Some(&kind) = frames.first() {
            let rest = frames.get(1..).unwrap_or_default();
            let next = match kind {
                // PADDING, PING
                0 | 1 => Some(rest),
                // ACK, with or without counts of ECN (19.3)
                2 | 3 => skip_ack(rest, kind == 3),
                6 => varint(rest).and_then(|(offset, rest)| {
                    let (length, rest) = varint(rest)?;
                    let (piece, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
                    more |= self.piece(offset, piece);
                    Some(rest)
                }),
                // CONNECTION_CLOSE, or a frame that is not allowed here.
                _ => None,
            };
            match next {
                Some(next) => frames = next,
                None => break,
            }
        }
        more
    }

    fn piece(&mut self, offset: u64, piece: &[u8]) -> bool {
        let end = offset.saturating_add(piece.len() as u64);
        let known = self.pieces.get(&offset).is_some_and(|known| known.len() >= piece.len());
        if known || end > MAX_HELLO_BYTES as u64 || self.bytes + piece.len() > MAX_HELLO_BYTES {
            return false;
        }
        self.bytes += piece.len();
        self.pieces.insert(offset, piece.to_vec());
        true
    }

    /// The hello up to the first gap.
    fn hello(&self) -> (Hello, bool) {
        let mut bytes: Vec<u8> = Vec::new();
        for (offset, piece) in &self.pieces {
            let Some(again) =
                usize::try_from(*offset).ok().and_then(|at| bytes.len().checked_sub(at))
            else {
                break;
            };
            bytes.extend(piece.get(again..).unwrap_or_default());
        }
        let [kind, length @ ..] = *bytes.first_chunk::<HANDSHAKE_HEADER_BYTES>().unwrap_or(&[0; 4]);
        if kind != CLIENT_HELLO {
            return (Hello::default(), false);
        }
        let [a, b, c] = length.map(usize::from);
        let end = HANDSHAKE_HEADER_BYTES + (a << 16 | b << 8 | c);
        let whole = bytes.get(..end);
        (handshake_hello(whole.unwrap_or(&bytes)), whole.is_some())
    }
}

/// Skips an ACK frame; `frame` starts after its type.
fn skip_ack(frame: &[u8], ecn: bool) -> Option<&[u8]> {
    let mut rest = frame;
    let mut next = || {
        let (value, behind) = varint(rest)?;
        rest = behind;
        Some(value)
    };
    let (_largest, _delay, ranges, _first) = (next()?, next()?, next()?, next()?);
    // Each range has a varint of at least one byte.
    for _ in 0..ranges.min(frame.len() as u64) {
        let (_gap, _range) = (next()?, next()?);
    }
    if ecn {
        let (_ect0, _ect1, _ce) = (next()?, next()?, next()?);
    }
    Some(rest)
}

/// A packet with a long header, under its protection.
struct Protected<'a> {
    version: u32,
    is_initial: bool,
    destination: &'a [u8],
    /// From the packet's first byte to its last.
    bytes: &'a [u8],
    /// Offset of the packet number.
    number_at: usize,
}

impl<'a> Protected<'a> {
    /// Reads the packet at the start of a datagram; returns it and the rest.
    fn read(datagram: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (&first, rest) = datagram.split_first()?;
        if first & (LONG | FIXED) != LONG | FIXED {
            return None;
        }
        let (version, rest) = rest.split_first_chunk::<4>()?;
        let version = u32::from_be_bytes(*version);
        // RFC 9000, 17.2; RFC 9369, 3.2: Initial, 0-RTT, Handshake, Retry.
        let kind = match (version, first >> 4 & 3) {
            (V1, kind) => kind,
            (V2, kind) => (kind + 3) % 4,
            _ => return None,
        };
        let (destination, rest) = connection_id(rest)?;
        let (_source, rest) = connection_id(rest)?;
        let rest = match kind {
            0 => {
                let (length, rest) = varint(rest)?;
                rest.get(usize::try_from(length).ok()?..)?
            }
            1 | 2 => rest,
            _ => return None,
        };
        let (length, rest) = varint(rest)?;
        let number_at = datagram.len() - rest.len();
        let end = number_at.checked_add(usize::try_from(length).ok()?)?;
        let (bytes, behind) = datagram.split_at_checked(end)?;
        Some((Self { version, is_initial: kind == 0, destination, bytes, number_at }, behind))
    }
}

fn connection_id(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&length, rest) = bytes.split_first()?;
    rest.split_at_checked(usize::from(length)).filter(|(id, _)| id.len() <= MAX_CID_BYTES)
}

/// A variable-length integer (RFC 9000, 16).
fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let first = *bytes.first()?;
    let (number, rest) = bytes.split_at_checked(1 << (first >> 6))?;
    let whole = number.iter().fold(0, |value, byte| value << 8 | u64::from(*byte));
    Some((whole & (u64::MAX >> (66 - 8 * number.len())), rest))
}

/// Keys of the client's Initial packets.
struct Keys {
    packet: Aes128Gcm,
    iv: [u8; 12],
    header: Aes128,
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keys").finish_non_exhaustive()
    }
}

impl Keys {
    /// RFC 9001, 5.1 and 5.2; RFC 9369, 3.3.
    fn client(version: u32, destination: &[u8]) -> Option<Self> {
        let (salt, labels) = match version {
            V1 => (SALT_V1, ["quic key", "quic iv", "quic hp"]),
            V2 => (SALT_V2, ["quicv2 key", "quicv2 iv", "quicv2 hp"]),
            _ => return None,
        };
        let initial = Hkdf::<Sha256>::new(Some(&salt), destination);
        let secret: [u8; 32] = expand(&initial, "client in")?;
        let secret = Hkdf::<Sha256>::from_prk(&secret).ok()?;
        let [key, iv, header] = labels;
        Some(Self {
            packet: Aes128Gcm::new(&expand::<16>(&secret, key)?.into()),
            iv: expand(&secret, iv)?,
            header: Aes128::new(&expand::<16>(&secret, header)?.into()),
        })
    }

    /// Removes a packet's protection (RFC 9001, 5.3 and 5.4). Returns its frames, or
    /// `None` if the keys do not match or the packet is damaged.
    fn open(&self, packet: &Protected<'_>) -> Option<Vec<u8>> {
        let sample_at = packet.number_at + MAX_NUMBER_BYTES;
        let sample = packet.bytes.get(sample_at..sample_at + SAMPLE_BYTES)?;
        let mask = self.mask(sample)?;
        let first = packet.bytes.first()? ^ mask[0] & 0x0f;
        let number_bytes = usize::from(first & 3) + 1;
        let (header, payload) = packet.bytes.split_at_checked(packet.number_at + number_bytes)?;
        let mut header = header.to_vec();
        *header.first_mut()? = first;
        let mut number = 0_u64;
        for (byte, mask) in header.get_mut(packet.number_at..)?.iter_mut().zip(&mask[1..]) {
            *byte ^= mask;
            number = number << 8 | u64::from(*byte);
        }
        let nonce = self.nonce(number);
        self.packet.decrypt(&nonce.into(), Payload { msg: payload, aad: &header }).ok()
    }

    /// RFC 9001, 5.4.3.
    fn mask(&self, sample: &[u8]) -> Option<[u8; 16]> {
        let mut block = <[u8; SAMPLE_BYTES]>::try_from(sample).ok()?.into();
        self.header.encrypt_block(&mut block);
        Some(block.into())
    }

    /// RFC 9001, 5.3. A client's first packets carry their full packet number.
    fn nonce(&self, number: u64) -> [u8; 12] {
        let mut nonce = self.iv;
        nonce.iter_mut().rev().zip(number.to_le_bytes()).for_each(|(byte, n)| *byte ^= n);
        nonce
    }
}

/// HKDF-Expand-Label without a context (RFC 8446, 7.1).
fn expand<const N: usize>(secret: &Hkdf<Sha256>, label: &str) -> Option<[u8; N]> {
    let mut info = (N as u16).to_be_bytes().to_vec();
    info.push(6 + label.len() as u8);
    info.extend(b"tls13 ");
    info.extend(label.as_bytes());
    info.push(0);
    let mut out = [0; N];
    secret.expand(&info, &mut out).ok()?;
    Some(out)
}

#[cfg(test)]
mod tests;
