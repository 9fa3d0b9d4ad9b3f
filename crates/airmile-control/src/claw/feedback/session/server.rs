//! The server's end of the sessions.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::super::{FeedbackReport, REPORT_BYTES};
use super::{
    ACK, FeedbackKey, HELLO, HELLO_BYTES, REPORT, REPORT_DATAGRAM_BYTES, REPORT_HEAD_BYTES,
    ReportStatus, SessionToken, WELCOME, head, kind, token, word,
};

/// The first report of a session has to come this soon after its welcome (chosen here: a
/// phone reports ten times a second, and says hello again after 3 s without an answer).
const TOKEN_HOLDS_MS: i64 = 10_000;

/// What tokens are authenticated as, so that no key that is given away is one.
const TOKEN_LABEL: &[u8] = b"airmile claw token";

/// Limits of [`Sessions`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionOptions {
    /// Sessions at once. Further ones are refused while all of them report.
    pub sessions: usize,
    /// Sessions of one address at once; a further one takes the place of the oldest.
    pub per_address: usize,
    /// The least time between two reports of a session that are taken, in nanoseconds.
    pub min_gap_ns: i64,
    /// A session without reports for so long has ended, in nanoseconds.
    pub idle_ns: i64,
}

impl Default for SessionOptions {
    /// Chosen here: megabytes of memory; five times the usual rate; idle radios, which
    /// say nothing new for 10 s, twice over.
    fn default() -> Self {
        Self { sessions: 16_384, per_address: 8, min_gap_ns: 20_000_000, idle_ns: 20_000_000_000 }
    }
}

/// What came of datagrams so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SessionCounts {
    /// Reports taken.
    pub taken: u64,
    /// Hellos answered.
    pub hellos: u64,
    /// No datagram of ours.
    pub malformed: u64,
    /// Of another key, or of a token that is not known.
    pub forged: u64,
    /// Numbers that were there already.
    pub replayed: u64,
    /// Overtaken by later ones: what they say is in those.
    pub overtaken: u64,
    /// More than a session may send.
    pub too_many: u64,
    /// First reports for which there was no room.
    pub refused: u64,
}

#[derive(Debug, Clone)]
pub(in crate::claw::feedback) struct FeedbackSession {
    key: FeedbackKey,
    address: IpAddr,
    highest: u64,
    /// Bit n: `highest - n` was there.
    seen: u64,
    heard_ns: i64,
    taken_ns: i64,
}

/// What a datagram has brought.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct IngestOutcome {
    /// A report, and who sends it.
    pub report: Option<AuthenticatedReport>,
    /// The answer to a hello.
    pub answer: Option<Vec<u8>>,
}

/// A report that is of the key and new.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AuthenticatedReport {
    /// The session.
    pub token: SessionToken,
    /// Where its hello came from: connections from there are meant.
    pub address: IpAddr,
    /// Whether this comes from elsewhere.
    pub moved: bool,
    /// What it says.
    pub report: FeedbackReport,
}

/// The server's end: all sessions. A hello leaves nothing here: its token is an authenticator
/// over what the session is, which the first report brings back. So who cannot receive at an
/// address has no session there, and takes no place.
#[derive(Debug, Clone)]
pub struct Sessions {
    secret: FeedbackKey,
    shared: Option<FeedbackKey>,
    options: SessionOptions,
    pub(in crate::claw::feedback) by_token: BTreeMap<SessionToken, FeedbackSession>,
    by_address: BTreeMap<IpAddr, BTreeSet<SessionToken>>,
    counts: SessionCounts,
}

impl Sessions {
    /// Without a session yet. Key 0 is `shared`, others are derived from `secret`.
    #[must_use]
    pub fn new(secret: FeedbackKey, shared: Option<FeedbackKey>, options: SessionOptions) -> Self {
        let (by_token, counts) = (BTreeMap::new(), SessionCounts::default());
        Self { secret, shared, options, by_token, by_address: BTreeMap::new(), counts }
    }

    /// What came of datagrams so far.
    #[must_use]
    pub const fn counts(&self) -> SessionCounts {
        self.counts
    }

    /// The key of a number.
    fn key(&self, id: u64) -> Option<FeedbackKey> {
        if id == 0 { self.shared.clone() } else { Some(self.secret.derive(id)) }
    }

    /// Takes a datagram.
    pub fn ingest(&mut self, now_ns: i64, from: IpAddr, datagram: &[u8]) -> IngestOutcome {
        match kind(datagram) {
            Some(HELLO) if datagram.len() == HELLO_BYTES => {
                IngestOutcome { answer: self.hello(now_ns, from, datagram), report: None }
            }
            Some(REPORT) if datagram.len() == REPORT_DATAGRAM_BYTES => {
                IngestOutcome { report: self.report(now_ns, from, datagram), answer: None }
            }
            _ => {
                self.counts.malformed += 1;
                IngestOutcome::default()
            }
        }
    }

    fn hello(&mut self, now_ns: i64, from: IpAddr, datagram: &[u8]) -> Option<Vec<u8>> {
        let key = self.key(word(datagram, 4));
        let Some(key) = key.filter(|key| key.open(datagram).is_ok()) else {
            self.counts.forged += 1;
            return None;
        };
        self.counts.hellos += 1;
        let mut out = head(WELCOME);
        out.extend_from_slice(&datagram[4..20]);
        out.extend_from_slice(&self.token(token_ms(now_ns), from, datagram).0);
        Some(key.seal(out))
    }

    /// The token of a session: a time, and an authenticator over it, key, nonce and address.
    fn token(&self, ms: u32, from: IpAddr, datagram: &[u8]) -> SessionToken {
        let mut fields = ms.to_be_bytes().to_vec();
        // Number of the key and nonce are in the same place of a hello and a report.
        fields.extend_from_slice(&datagram[4..20]);
        match from {
            IpAddr::V4(from) => fields.extend_from_slice(&from.octets()),
            IpAddr::V6(from) => fields.extend_from_slice(&from.octets()),
        }
        let mut token = [0; 16];
        token[..4].copy_from_slice(&ms.to_be_bytes());
        token[4..].copy_from_slice(&self.secret.authenticate(TOKEN_LABEL, &fields)[..12]);
        SessionToken(token)
    }

    /// Sessions of an address.
    fn at(&self, address: IpAddr) -> impl Iterator<Item = (SessionToken, &FeedbackSession)> {
        let tokens = self.by_address.get(&address).into_iter().flatten();
        tokens.filter_map(|token| Some((*token, self.by_token.get(token)?)))
    }

    fn remove(&mut self, token: SessionToken) {
        let Some(session) = self.by_token.remove(&token) else { return };
        if let Some(tokens) = self.by_address.get_mut(&session.address) {
            tokens.remove(&token);
            if tokens.is_empty() {
                self.by_address.remove(&session.address);
            }
        }
    }

    /// Makes room: of those that have ended.
    fn forget(&mut self, now_ns: i64) {
        let idle_ns = self.options.idle_ns;
        let is_over = |session: &FeedbackSession| now_ns - session.heard_ns > idle_ns;
        let over = self.by_token.iter().filter(|(_, session)| is_over(session));
        let over: Vec<SessionToken> = over.map(|(token, _)| *token).collect();
        over.into_iter().for_each(|token| self.remove(token));
    }

    /// Begins the session that a first report is of, if its token is ours, of this address
    /// and fresh.
    fn begin(&mut self, now_ns: i64, from: IpAddr, datagram: &[u8], token: SessionToken) -> bool {
        let ms = (word(&token.0, 0) >> 32) as u32;
        let age_ms = i64::from(token_ms(now_ns).wrapping_sub(ms));
        let is_ours = age_ms <= TOKEN_HOLDS_MS && self.token(ms, from, datagram) == token;
        let key = self.key(word(datagram, 4)).filter(|_| is_ours);
        let Some(key) = key.filter(|key| key.open(datagram).is_ok()) else {
            self.counts.forged += 1;
            return false;
        };
        if self.by_token.len() >= self.options.sessions {
            self.forget(now_ns);
        }
        if self.at(from).count() >= self.options.per_address.max(1) {
            let first = self.at(from).min_by_key(|(_, session)| session.heard_ns);
            if let Some(token) = first.map(|(token, _)| token) {
                self.remove(token);
            }
        }
        if self.by_token.len() >= self.options.sessions {
            self.counts.refused += 1;
            return false;
        }
        let taken_ns = now_ns.saturating_sub(self.options.min_gap_ns);
        let session =
            FeedbackSession { key, address: from, highest: 0, seen: 0, heard_ns: now_ns, taken_ns };
        self.by_token.insert(token, session);
        self.by_address.entry(from).or_default().insert(token);
        true
    }

    fn report(
        &mut self,
        now_ns: i64,
        from: IpAddr,
        datagram: &[u8],
    ) -> Option<AuthenticatedReport> {
        let token = token(datagram, 20);
        if !self.by_token.contains_key(&token) && !self.begin(now_ns, from, datagram, token) {
            return None;
        }
        let session = self.by_token.get_mut(&token);
        let Some(session) = session.filter(|session| session.key.open(datagram).is_ok()) else {
            self.counts.forged += 1;
            return None;
        };
        let Ok(report) = FeedbackReport::decode(&datagram[REPORT_HEAD_BYTES..][..REPORT_BYTES])
        else {
            self.counts.malformed += 1;
            return None;
        };
        session.heard_ns = now_ns;
        match session.number(report.sequence) {
            Number::Replayed => {
                self.counts.replayed += 1;
                return None;
            }
            Number::Overtaken => {
                self.counts.overtaken += 1;
                return None;
            }
            Number::Latest => {}
        }
        if now_ns - session.taken_ns < self.options.min_gap_ns {
            self.counts.too_many += 1;
            return None;
        }
        session.taken_ns = now_ns;
        self.counts.taken += 1;
        let address = session.address;
        Some(AuthenticatedReport { token, address, moved: address != from, report })
    }

    /// Sessions whose reports mean connections from an address.
    pub fn sessions_at(
        &self,
        now_ns: i64,
        address: IpAddr,
    ) -> impl Iterator<Item = SessionToken> + '_ {
        let idle_ns = self.options.idle_ns;
        let is_there = move |session: &FeedbackSession| now_ns - session.taken_ns <= idle_ns;
        self.at(address).filter(move |(_, session)| is_there(session)).map(|(token, _)| token)
    }

    /// The answer to a report.
    #[must_use]
    pub fn answer(&self, heard: &AuthenticatedReport, status: ReportStatus) -> Option<Vec<u8>> {
        let session = self.by_token.get(&heard.token)?;
        let mut out = head(ACK);
        out.extend_from_slice(&heard.token.0);
        out.extend_from_slice(&heard.report.sequence.to_be_bytes());
        out.push(match status {
            ReportStatus::Used => 0,
            ReportStatus::NoConnection => 1,
            ReportStatus::Moved => 2,
        });
        Some(session.key.seal(out))
    }
}

/// Milliseconds of the server's clock, which wrap.
const fn token_ms(now_ns: i64) -> u32 {
    (now_ns / 1_000_000) as u32
}

enum Number {
    Latest,
    Overtaken,
    Replayed,
}

impl FeedbackSession {
    /// Whether a number is new (as in RFC 4303, 3.4.3, with a window of 64).
    fn number(&mut self, sequence: u64) -> Number {
        if sequence > self.highest {
            let ahead = sequence - self.highest;
            self.seen = if ahead < 64 { self.seen << ahead | 1 } else { 1 };
            self.highest = sequence;
            return Number::Latest;
        }
        let behind = self.highest - sequence;
        let bit = if behind < 64 { 1 << behind } else { 0 };
        if bit == 0 || self.seen & bit != 0 {
            return Number::Replayed;
        }
        self.seen |= bit;
        Number::Overtaken
    }
}
