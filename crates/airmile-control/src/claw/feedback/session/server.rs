//! The server's end of the sessions.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};
use std::ops::RangeInclusive;

use super::super::{FeedbackReport, REPORT_BYTES};
use super::{
    ACK, FeedbackKey, HELLO, HELLO_BYTES, REPORT, REPORT_DATAGRAM_BYTES, REPORT_HEAD_BYTES,
    ReportStatus, SessionToken, WELCOME, head, kind, token, word,
};

/// Maximum age of a token at the first report of its session (chosen here: a phone reports
/// ten times a second and sends a new hello after 3 s without an answer).
const TOKEN_HOLDS_MS: i64 = 10_000;

/// Label for the authentication of tokens, so that no derived key equals a token.
const TOKEN_LABEL: &[u8] = b"airmile claw token";

/// Limits of [`Sessions`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionOptions {
    /// Maximum number of sessions. Further ones are refused while all of them report.
    pub sessions: usize,
    /// Maximum number of sessions of one host (IPv6: of its /64). Further ones are refused while
    /// all of them report.
    pub per_address: usize,
    /// Minimum time between two accepted reports of a session, in nanoseconds.
    pub min_gap_ns: i64,
    /// A session without reports for this time has ended, in nanoseconds.
    pub idle_ns: i64,
}

impl Default for SessionOptions {
    /// Chosen here: megabytes of memory; five times the usual rate; twice the 10 s for
    /// which an idle radio has nothing new to report.
    fn default() -> Self {
        Self { sessions: 16_384, per_address: 8, min_gap_ns: 20_000_000, idle_ns: 20_000_000_000 }
    }
}

/// Counts of datagrams by their outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SessionCounts {
    /// Reports accepted.
    pub taken: u64,
    /// Hellos answered.
    pub hellos: u64,
    /// Datagrams of another format.
    pub malformed: u64,
    /// Datagrams with another key, or with an unknown token.
    pub forged: u64,
    /// Reports with a sequence number that was received before.
    pub replayed: u64,
    /// Reports that later ones overtook; those repeat what they contain.
    pub overtaken: u64,
    /// Reports beyond a session's rate.
    pub too_many: u64,
    /// First reports for which there was no room.
    pub refused: u64,
}

#[derive(Debug, Clone)]
pub(in crate::claw::feedback) struct FeedbackSession {
    key: FeedbackKey,
    address: IpAddr,
    highest: u64,
    /// Bit n: report `highest - n` was received.
    seen: u64,
    heard_ns: i64,
    taken_ns: i64,
}

/// Result of a datagram.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct IngestOutcome {
    /// A report with its session.
    pub report: Option<AuthenticatedReport>,
    /// The answer to a hello.
    pub answer: Option<Vec<u8>>,
}

/// A report that is authentic and new.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AuthenticatedReport {
    /// The session.
    pub token: SessionToken,
    /// Source address of the session's hello: the report is about connections from there.
    pub address: IpAddr,
    /// Whether the report came from another address.
    pub moved: bool,
    /// The report itself.
    pub report: FeedbackReport,
}

/// The server's end: all sessions. A hello stores nothing here: its token is an
/// authenticator over the session's parameters, which the first report returns. A host that
/// cannot receive at an address therefore gets no session there and occupies no place.
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
    /// A server without sessions. Key 0 is `shared`; the others are derived from `secret`.
    #[must_use]
    pub fn new(secret: FeedbackKey, shared: Option<FeedbackKey>, options: SessionOptions) -> Self {
        let (by_token, counts) = (BTreeMap::new(), SessionCounts::default());
        Self { secret, shared, options, by_token, by_address: BTreeMap::new(), counts }
    }

    /// Counts of datagrams so far.
    #[must_use]
    pub const fn counts(&self) -> SessionCounts {
        self.counts
    }

    /// The key with a number.
    fn key(&self, id: u64) -> Option<FeedbackKey> {
        if id == 0 { self.shared.clone() } else { Some(self.secret.derive(id)) }
    }

    /// Processes a datagram.
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

    /// The token of a session: a time, and an authenticator over it, key, nonce and
    /// address.
    fn token(&self, ms: u32, from: IpAddr, datagram: &[u8]) -> SessionToken {
        let mut fields = ms.to_be_bytes().to_vec();
        // Key number and nonce have the same offset in a hello and in a report.
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

    /// Sessions of a host.
    fn of_host(&self, address: IpAddr) -> impl Iterator<Item = (SessionToken, &FeedbackSession)> {
        let tokens = self.by_address.range(host_addresses(address)).flat_map(|(_, tokens)| tokens);
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

    /// Whether a session has ended.
    const fn is_over(&self, now_ns: i64, session: &FeedbackSession) -> bool {
        now_ns - session.heard_ns > self.options.idle_ns
    }

    /// Removes sessions that have ended, to make room.
    fn forget(&mut self, now_ns: i64) {
        let over = self.by_token.iter().filter(|(_, session)| self.is_over(now_ns, session));
        let over: Vec<SessionToken> = over.map(|(token, _)| *token).collect();
        over.into_iter().for_each(|token| self.remove(token));
    }

    /// Starts the session of a first report, if its token is the server's own, is bound to
    /// this address and is fresh.
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
        let mut is_full = self.by_token.len() >= self.options.sessions;
        if self.of_host(from).count() >= self.options.per_address.max(1) {
            // A session that reports stays: phones that share an address would else replace each
            // other without end.
            let first = self.of_host(from).min_by_key(|(_, session)| session.heard_ns);
            match first.filter(|(_, session)| self.is_over(now_ns, session)) {
                Some((token, _)) => self.remove(token),
                None => is_full = true,
            }
        }
        if is_full {
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

    /// Sessions whose reports are about connections from an address.
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
    pub fn answer(&self, accepted: &AuthenticatedReport, status: ReportStatus) -> Option<Vec<u8>> {
        let session = self.by_token.get(&accepted.token)?;
        let mut out = head(ACK);
        out.extend_from_slice(&accepted.token.0);
        out.extend_from_slice(&accepted.report.sequence.to_be_bytes());
        out.push(match status {
            ReportStatus::Used => 0,
            ReportStatus::NoConnection => 1,
            ReportStatus::Moved => 2,
        });
        Some(session.key.seal(out))
    }
}

/// The addresses that a host may use: IPv4's own, also if mapped into IPv6, and the /64 of IPv6
/// (RFC 8981; RFC 4291, 2.5.4).
fn host_addresses(address: IpAddr) -> RangeInclusive<IpAddr> {
    const INTERFACE_ID: u128 = (1 << 64) - 1;
    match address {
        IpAddr::V6(of) if of.to_ipv4_mapped().is_none() => {
            let at = |bits| IpAddr::V6(Ipv6Addr::from_bits(bits));
            at(of.to_bits() & !INTERFACE_ID)..=at(of.to_bits() | INTERFACE_ID)
        }
        own => own..=own,
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
