//! Authenticated reports over UDP, outside the connection that they describe.
//!
//! The phone sends a hello. The server answers with a token bound to the hello's source
//! address, and accepts reports that carry the token. Every datagram ends with the first
//! half of an HMAC-SHA256 over the preceding bytes (RFC 2104, 5: half is enough). Datagrams
//! that do not match the key are dropped without an answer, and no answer is longer than
//! its request.

mod reporter;
mod server;

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::{FeedbackError, REPORT_BYTES, VERSION};

pub use reporter::FeedbackReporter;
pub use server::{AuthenticatedReport, IngestOutcome, SessionCounts, SessionOptions, Sessions};

/// Length of an authenticator in bytes.
const MAC_BYTES: usize = 16;
/// First bytes of every datagram.
const HEAD: [u8; 3] = [b'C', b'W', VERSION];

const HELLO: u8 = 1;
const WELCOME: u8 = 2;
const REPORT: u8 = 3;
const ACK: u8 = 4;

/// Length of a hello and of its answer: head, kind, key, nonce, token.
const HELLO_BYTES: usize = 4 + 8 + 8 + 16 + MAC_BYTES;
/// Length of a report datagram before the report: head, kind, key, nonce, token.
const REPORT_HEAD_BYTES: usize = 4 + 8 + 8 + 16;
/// Length of a report datagram.
const REPORT_DATAGRAM_BYTES: usize = REPORT_HEAD_BYTES + REPORT_BYTES + MAC_BYTES;
/// Length of its answer: head, kind, token, sequence, status.
const ACK_BYTES: usize = 4 + 16 + 8 + 1 + MAC_BYTES;

/// An HMAC-SHA256 key.
#[derive(Clone, PartialEq, Eq)]
pub struct FeedbackKey([u8; 32]);

impl fmt::Debug for FeedbackKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FeedbackKey(..)")
    }
}

impl FeedbackKey {
    /// A random key.
    #[must_use]
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Derives the key with the given number; servers hand out derived keys.
    #[must_use]
    pub fn derive(&self, id: u64) -> Self {
        Self(self.authenticate(b"airmile claw key", &id.to_be_bytes()))
    }

    /// Authenticator over the fields, for the purpose that the label names.
    fn authenticate(&self, label: &[u8], fields: &[u8]) -> [u8; 32] {
        let mut mac = self.mac();
        mac.update(label);
        mac.update(fields);
        mac.finalize().into_bytes().into()
    }

    /// The key's bytes, to pass on to its user.
    #[must_use]
    pub const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    fn mac(&self) -> Hmac<Sha256> {
        // Keys are padded with zeros (RFC 2104, 2).
        let mut block = [0; 64];
        block[..32].copy_from_slice(&self.0);
        Hmac::new(&block.into())
    }

    pub(in crate::claw::feedback) fn seal(&self, mut datagram: Vec<u8>) -> Vec<u8> {
        let mut mac = self.mac();
        mac.update(&datagram);
        datagram.extend_from_slice(&mac.finalize().into_bytes()[..MAC_BYTES]);
        datagram
    }

    /// Returns the bytes before the authenticator if it matches; compares in constant time.
    fn open<'a>(&self, datagram: &'a [u8]) -> Result<&'a [u8], FeedbackError> {
        let at = datagram.len().checked_sub(MAC_BYTES).ok_or(FeedbackError::Forged)?;
        let (body, tag) = datagram.split_at(at);
        let mut mac = self.mac();
        mac.update(body);
        mac.verify_truncated_left(tag).map_err(|_| FeedbackError::Forged)?;
        Ok(body)
    }
}

/// Identifies a session: a time and the server's own authenticator over the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionToken(pub [u8; 16]);

impl fmt::Display for SessionToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

/// Outcome of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportStatus {
    /// The report is used.
    Used,
    /// The server has no connection that the report could describe.
    NoConnection,
    /// The report came from another address than the hello: the phone must send a new
    /// hello.
    Moved,
}

fn head(kind: u8) -> Vec<u8> {
    let mut out = Vec::with_capacity(REPORT_DATAGRAM_BYTES);
    out.extend_from_slice(&HEAD);
    out.push(kind);
    out
}

fn kind(datagram: &[u8]) -> Option<u8> {
    datagram.strip_prefix(&HEAD)?.first().copied()
}

fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.iter().skip(at).take(8).fold(0, |word, byte| word << 8 | u64::from(*byte))
}

fn token(bytes: &[u8], at: usize) -> SessionToken {
    let mut out = [0; 16];
    out.iter_mut().zip(bytes.iter().skip(at)).for_each(|(out, byte)| *out = *byte);
    SessionToken(out)
}
