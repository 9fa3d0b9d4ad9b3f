//! The phone's end of a session.

use std::collections::VecDeque;

use super::super::{FeedbackError, FeedbackReport};
use super::{
    ACK, ACK_BYTES, FeedbackKey, HELLO, HELLO_BYTES, REPORT, ReportStatus, SessionToken, WELCOME,
    head, kind, token, word,
};

/// Time without an answer to a report before a new hello (chosen here: 30 reports).
const SILENCE_NS: i64 = 3_000_000_000;
/// A hello is repeated unchanged for this time, so that a late answer still matches it
/// (chosen here: round trips of an overloaded network).
const HELLO_HOLDS_NS: i64 = 3_000_000_000;
/// Maximum number of reports awaiting an answer.
const WAITING: usize = 64;

/// The phone's end.
#[derive(Debug, Clone)]
pub struct FeedbackReporter {
    pub(in crate::claw::feedback) key: FeedbackKey,
    key_id: u64,
    pub(in crate::claw::feedback) nonce: u64,
    token: Option<SessionToken>,
    sequence: u64,
    /// Datagrams awaiting an answer, and when they were sent.
    waiting: VecDeque<(u64, i64)>,
    /// The hello awaiting its answer: when it was first sent, and how often.
    hello: Option<(i64, u32)>,
    heard_ns: i64,
    min_rtt_ns: Option<i64>,
    status: Option<ReportStatus>,
}

impl FeedbackReporter {
    /// A reporter that has not sent its hello yet. `nonce` is random.
    #[must_use]
    pub const fn new(key: FeedbackKey, key_id: u64, nonce: u64) -> Self {
        Self {
            key,
            key_id,
            nonce,
            token: None,
            sequence: 0,
            waiting: VecDeque::new(),
            hello: None,
            heard_ns: 0,
            min_rtt_ns: None,
            status: None,
        }
    }

    /// The datagram to send now: the report, or a hello if there is no session. The
    /// sequence number is the reporter's own.
    pub fn send(&mut self, now_ns: i64, report: &FeedbackReport) -> Vec<u8> {
        let silent = now_ns - self.heard_ns > SILENCE_NS;
        if silent || self.status == Some(ReportStatus::Moved) {
            self.token = None;
        }
        let Some(token) = self.token else { return self.hello(now_ns) };
        self.sequence += 1;
        if self.waiting.len() >= WAITING {
            self.waiting.pop_front();
        }
        self.waiting.push_back((self.sequence, now_ns));
        let mut out = head(REPORT);
        // From key and nonce the server recognises its token.
        out.extend_from_slice(&self.key_id.to_be_bytes());
        out.extend_from_slice(&self.nonce.to_be_bytes());
        out.extend_from_slice(&token.0);
        out.extend_from_slice(&FeedbackReport { sequence: self.sequence, ..*report }.encode());
        self.key.seal(out)
    }

    pub(in crate::claw::feedback) fn hello(&mut self, now_ns: i64) -> Vec<u8> {
        self.status = None;
        let still = self.hello.filter(|(first_ns, _)| now_ns - first_ns < HELLO_HOLDS_NS);
        if still.is_none() {
            self.nonce = self.nonce.wrapping_add(1);
        }
        self.hello = Some(still.map_or((now_ns, 1), |(first_ns, times)| (first_ns, times + 1)));
        let mut out = head(HELLO);
        out.extend_from_slice(&self.key_id.to_be_bytes());
        out.extend_from_slice(&self.nonce.to_be_bytes());
        // Padded to the length of its answer.
        out.extend_from_slice(&[0; 16]);
        self.key.seal(out)
    }

    /// Processes a datagram from the server.
    ///
    /// # Errors
    /// The datagram is not from the server.
    pub fn ingest(&mut self, now_ns: i64, datagram: &[u8]) -> Result<(), FeedbackError> {
        let body = self.key.open(datagram)?;
        match kind(datagram) {
            Some(WELCOME) if datagram.len() == HELLO_BYTES => {
                if word(body, 4) != self.key_id || word(body, 12) != self.nonce {
                    return Ok(());
                }
                // A hello that was answered twice has one session.
                let Some((first_ns, times)) = self.hello.take() else { return Ok(()) };
                self.token = Some(token(body, 20));
                self.sequence = 0;
                self.waiting.clear();
                self.heard_ns = now_ns;
                // After a repetition it is unknown which hello was answered (Karn's rule).
                if times == 1 {
                    self.answered(now_ns, first_ns);
                }
            }
            Some(ACK) if datagram.len() == ACK_BYTES => {
                if self.token != Some(token(body, 4)) {
                    return Ok(());
                }
                let sequence = word(body, 20);
                let at = self.waiting.iter().position(|(number, _)| *number == sequence);
                let Some((_, sent_ns)) = at.and_then(|at| self.waiting.remove(at)) else {
                    return Ok(());
                };
                self.status = match body.get(28) {
                    Some(0) => Some(ReportStatus::Used),
                    Some(1) => Some(ReportStatus::NoConnection),
                    Some(2) => Some(ReportStatus::Moved),
                    _ => self.status,
                };
                self.answered(now_ns, sent_ns);
            }
            _ => {
                let needed = HELLO_BYTES;
                return Err(FeedbackError::Length { there: datagram.len(), needed });
            }
        }
        Ok(())
    }

    fn answered(&mut self, now_ns: i64, sent_ns: i64) {
        let rtt_ns = (now_ns - sent_ns).max(1);
        self.heard_ns = now_ns;
        self.min_rtt_ns = Some(self.min_rtt_ns.map_or(rtt_ns, |least| least.min(rtt_ns)));
    }

    /// The session, once the server has answered.
    #[must_use]
    pub const fn token(&self) -> Option<SessionToken> {
        self.token
    }

    /// Minimum round-trip time to the server, in nanoseconds.
    #[must_use]
    pub const fn min_rtt_ns(&self) -> Option<i64> {
        self.min_rtt_ns
    }

    /// Outcome of the last report that was answered.
    #[must_use]
    pub const fn status(&self) -> Option<ReportStatus> {
        self.status
    }
}
