//! Reports beside a connection, over UDP, under a key.
//!
//! The phone says hello, the server answers with a token that it binds to the address
//! the hello came from, and takes reports that name the token. All datagrams end with
//! the first half of an HMAC-SHA256 over what is before it (RFC 2104, 5: half of it is
//! enough). What is not of the key is left out without an answer, and no answer is
//! longer than its question.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::net::IpAddr;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::{FeedbackError, REPORT_BYTES, Report, VERSION};

/// Bytes of an authenticator.
const MAC_BYTES: usize = 16;
/// What each datagram begins with.
const HEAD: [u8; 3] = [b'C', b'W', VERSION];

const HELLO: u8 = 1;
const WELCOME: u8 = 2;
const REPORT: u8 = 3;
const ACK: u8 = 4;

/// Bytes of a hello and of its answer: head, kind, key, nonce, token.
const HELLO_BYTES: usize = 4 + 8 + 8 + 16 + MAC_BYTES;
/// Bytes of a report's datagram: head, kind, token, report.
const REPORT_DATAGRAM_BYTES: usize = 4 + 16 + REPORT_BYTES + MAC_BYTES;
/// Bytes of its answer: head, kind, token, sequence, status.
const ACK_BYTES: usize = 4 + 16 + 8 + 1 + MAC_BYTES;

/// A report that was not answered for so long: hello again (chosen here: 30 reports).
const SILENCE_NS: i64 = 3_000_000_000;
/// A hello is the same for so long: one that is answered late is answered (chosen here:
/// round trips of a network that is overloaded).
const HELLO_HOLDS_NS: i64 = 3_000_000_000;
/// A session without a report yet makes room after so long where there is none (chosen
/// here: as of hellos).
const UNPROVEN_NS: i64 = 3_000_000_000;
/// Reports that wait for their answer.
const WAITING: usize = 64;

/// A key of HMAC-SHA256.
#[derive(Clone, PartialEq, Eq)]
pub struct Key([u8; 32]);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

impl Key {
    /// A key of random bytes.
    #[must_use]
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// A key that belongs to this one and a number: servers hand these out.
    #[must_use]
    pub fn derive(&self, id: u64) -> Self {
        let mut mac = self.mac();
        mac.update(b"airmile claw key");
        mac.update(&id.to_be_bytes());
        Self(mac.finalize().into_bytes().into())
    }

    /// Its bytes, for who is to have it.
    #[must_use]
    pub const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    fn mac(&self) -> Hmac<Sha256> {
        // Keys are filled up with zeros (RFC 2104, 2).
        let mut block = [0; 64];
        block[..32].copy_from_slice(&self.0);
        Hmac::new(&block.into())
    }

    pub(super) fn seal(&self, mut datagram: Vec<u8>) -> Vec<u8> {
        let mut mac = self.mac();
        mac.update(&datagram);
        datagram.extend_from_slice(&mac.finalize().into_bytes()[..MAC_BYTES]);
        datagram
    }

    /// What is before the authenticator, if that is right; told in constant time.
    fn open<'a>(&self, datagram: &'a [u8]) -> Result<&'a [u8], FeedbackError> {
        let at = datagram.len().checked_sub(MAC_BYTES).ok_or(FeedbackError::Forged)?;
        let (said, tag) = datagram.split_at(at);
        let mut mac = self.mac();
        mac.update(said);
        mac.verify_truncated_left(tag).map_err(|_| FeedbackError::Forged)?;
        Ok(said)
    }
}

/// Names a session; the server's own random number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub [u8; 16]);

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

/// What becomes of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It is used.
    Used,
    /// There is no connection that it is about.
    NoConnection,
    /// It came from another address than the hello: say hello again.
    Moved,
}

/// Limits of [`Sessions`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionOptions {
    /// Sessions at once; further ones are refused until some have ended.
    pub sessions: usize,
    /// Sessions of one address at once; a further one takes the place of the oldest.
    pub per_address: usize,
    /// The least time between two reports of a session that are taken, in nanoseconds.
    pub least_gap_ns: i64,
    /// A session without reports for so long has ended, in nanoseconds.
    pub idle_ns: i64,
}

impl Default for SessionOptions {
    /// Chosen here: megabytes of memory; five times the usual rate; idle radios, which
    /// say nothing new for 10 s, twice over.
    fn default() -> Self {
        Self { sessions: 16_384, per_address: 8, least_gap_ns: 20_000_000, idle_ns: 20_000_000_000 }
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
    /// Hellos for which there was no room.
    pub refused: u64,
}

#[derive(Debug, Clone)]
pub(super) struct Session {
    key: Key,
    /// Of its hello: number of the key and nonce.
    hello: (u64, u64),
    address: IpAddr,
    highest: u64,
    /// Bit n: `highest - n` was there.
    seen: u64,
    heard_ns: i64,
    taken_ns: Option<i64>,
}

/// What a datagram has brought.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Taken {
    /// A report, and who sends it.
    pub heard: Option<Heard>,
    /// The answer to a hello.
    pub answer: Option<Vec<u8>>,
}

/// A report that is of the key and new.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Heard {
    /// The session.
    pub token: Token,
    /// Where its hello came from: connections from there are meant.
    pub address: IpAddr,
    /// Whether this comes from elsewhere.
    pub moved: bool,
    /// What it says.
    pub report: Report,
}

/// The server's end: all sessions.
#[derive(Debug, Clone)]
pub struct Sessions {
    secret: Key,
    shared: Option<Key>,
    options: SessionOptions,
    pub(super) by_token: BTreeMap<Token, Session>,
    by_address: BTreeMap<IpAddr, BTreeSet<Token>>,
    counts: SessionCounts,
}

impl Sessions {
    /// Without a session yet. Key 0 is `shared`, others are derived from `secret`.
    #[must_use]
    pub fn new(secret: Key, shared: Option<Key>, options: SessionOptions) -> Self {
        let (by_token, counts) = (BTreeMap::new(), SessionCounts::default());
        Self { secret, shared, options, by_token, by_address: BTreeMap::new(), counts }
    }

    /// What came of datagrams so far.
    #[must_use]
    pub const fn counts(&self) -> SessionCounts {
        self.counts
    }

    /// The key of a number.
    fn key(&self, id: u64) -> Option<Key> {
        if id == 0 { self.shared.clone() } else { Some(self.secret.derive(id)) }
    }

    /// Takes a datagram. `random` becomes a token if one is needed; it must not repeat.
    pub fn take(&mut self, now_ns: i64, from: IpAddr, datagram: &[u8], random: [u8; 16]) -> Taken {
        match kind(datagram) {
            Some(HELLO) if datagram.len() == HELLO_BYTES => {
                Taken { answer: self.hello(now_ns, from, datagram, Token(random)), heard: None }
            }
            Some(REPORT) if datagram.len() == REPORT_DATAGRAM_BYTES => {
                Taken { heard: self.report(now_ns, from, datagram), answer: None }
            }
            _ => {
                self.counts.malformed += 1;
                Taken::default()
            }
        }
    }

    fn hello(
        &mut self,
        now_ns: i64,
        from: IpAddr,
        datagram: &[u8],
        token: Token,
    ) -> Option<Vec<u8>> {
        let key = self.key(word(datagram, 4));
        let Some(key) = key.filter(|key| key.open(datagram).is_ok()) else {
            self.counts.forged += 1;
            return None;
        };
        let hello = (word(datagram, 4), word(datagram, 12));
        let welcome = |token: Token| {
            let mut out = head(WELCOME);
            out.extend_from_slice(&datagram[4..20]);
            out.extend_from_slice(&token.0);
            Some(key.seal(out))
        };
        // One that comes again, as its answer is not there yet, is of the same session.
        let same = self.at(from).find(|(_, session)| session.hello == hello);
        if let Some(token) = same.map(|(token, _)| token) {
            return welcome(token);
        }
        if self.by_token.len() >= self.options.sessions {
            self.forget(now_ns);
        }
        if self.at(from).count() >= self.options.per_address.max(1) {
            // Those that have shown the key with a report go last.
            let rank = |session: &Session| (session.taken_ns.is_some(), session.heard_ns);
            let first = self.at(from).min_by_key(|(_, session)| rank(session));
            if let Some(token) = first.map(|(token, _)| token) {
                self.remove(token);
            }
        }
        if self.by_token.len() >= self.options.sessions {
            self.counts.refused += 1;
            return None;
        }
        self.counts.hellos += 1;
        let out = welcome(token);
        let session = Session {
            key,
            hello,
            address: from,
            highest: 0,
            seen: 0,
            heard_ns: now_ns,
            taken_ns: None,
        };
        self.by_token.insert(token, session);
        self.by_address.entry(from).or_default().insert(token);
        out
    }

    /// Sessions of an address.
    fn at(&self, address: IpAddr) -> impl Iterator<Item = (Token, &Session)> {
        let tokens = self.by_address.get(&address).into_iter().flatten();
        tokens.filter_map(|token| Some((*token, self.by_token.get(token)?)))
    }

    fn remove(&mut self, token: Token) {
        let Some(session) = self.by_token.remove(&token) else { return };
        if let Some(tokens) = self.by_address.get_mut(&session.address) {
            tokens.remove(&token);
            if tokens.is_empty() {
                self.by_address.remove(&session.address);
            }
        }
    }

    /// Makes room: of those that have ended, and those that never began.
    fn forget(&mut self, now_ns: i64) {
        let idle_ns = self.options.idle_ns;
        let is_over = |session: &Session| {
            let most_ns = if session.taken_ns.is_some() { idle_ns } else { UNPROVEN_NS };
            now_ns - session.heard_ns > most_ns
        };
        let over = self.by_token.iter().filter(|(_, session)| is_over(session));
        let over: Vec<Token> = over.map(|(token, _)| *token).collect();
        over.into_iter().for_each(|token| self.remove(token));
    }

    fn report(&mut self, now_ns: i64, from: IpAddr, datagram: &[u8]) -> Option<Heard> {
        let token = token(datagram, 4);
        let session = self.by_token.get_mut(&token);
        let Some(session) = session.filter(|session| session.key.open(datagram).is_ok()) else {
            self.counts.forged += 1;
            return None;
        };
        let Ok(report) = Report::decode(&datagram[20..20 + REPORT_BYTES]) else {
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
        let gap_ns = self.options.least_gap_ns;
        if session.taken_ns.is_some_and(|last| now_ns - last < gap_ns) {
            self.counts.too_many += 1;
            return None;
        }
        session.taken_ns = Some(now_ns);
        self.counts.taken += 1;
        let address = session.address;
        Some(Heard { token, address, moved: address != from, report })
    }

    /// Sessions whose reports mean connections from an address; one of which no report
    /// has come yet is none, as whoever repeats a hello has not shown the key.
    pub fn of_address(&self, now_ns: i64, address: IpAddr) -> impl Iterator<Item = Token> + '_ {
        let idle_ns = self.options.idle_ns;
        let is_there = move |session: &Session| {
            session.taken_ns.is_some_and(|taken| now_ns - taken <= idle_ns)
        };
        self.at(address).filter(move |(_, session)| is_there(session)).map(|(token, _)| token)
    }

    /// The answer to a report.
    #[must_use]
    pub fn answer(&self, heard: &Heard, status: Status) -> Option<Vec<u8>> {
        let session = self.by_token.get(&heard.token)?;
        let mut out = head(ACK);
        out.extend_from_slice(&heard.token.0);
        out.extend_from_slice(&heard.report.sequence.to_be_bytes());
        out.push(match status {
            Status::Used => 0,
            Status::NoConnection => 1,
            Status::Moved => 2,
        });
        Some(session.key.seal(out))
    }
}

enum Number {
    Latest,
    Overtaken,
    Replayed,
}

impl Session {
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

/// The phone's end.
#[derive(Debug, Clone)]
pub struct Reporter {
    pub(super) key: Key,
    key_id: u64,
    nonce: u64,
    token: Option<Token>,
    sequence: u64,
    /// Datagrams that wait for an answer, and when they went.
    waiting: VecDeque<(u64, i64)>,
    /// The hello that waits for its answer: when it first went, and how often.
    hello: Option<(i64, u32)>,
    heard_ns: i64,
    min_rtt_ns: Option<i64>,
    status: Option<Status>,
}

impl Reporter {
    /// Before its hello. `nonce` is random.
    #[must_use]
    pub const fn new(key: Key, key_id: u64, nonce: u64) -> Self {
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

    /// The datagram to send now: the report, or a hello where no session is known. Its
    /// sequence is ours.
    pub fn send(&mut self, now_ns: i64, report: &Report) -> Vec<u8> {
        let silent = now_ns - self.heard_ns > SILENCE_NS;
        if silent || self.status == Some(Status::Moved) {
            self.token = None;
        }
        let Some(token) = self.token else { return self.hello(now_ns) };
        self.sequence += 1;
        if self.waiting.len() >= WAITING {
            self.waiting.pop_front();
        }
        self.waiting.push_back((self.sequence, now_ns));
        let mut out = head(REPORT);
        out.extend_from_slice(&token.0);
        out.extend_from_slice(&Report { sequence: self.sequence, ..*report }.encode());
        self.key.seal(out)
    }

    pub(super) fn hello(&mut self, now_ns: i64) -> Vec<u8> {
        self.status = None;
        let still = self.hello.filter(|(first_ns, _)| now_ns - first_ns < HELLO_HOLDS_NS);
        if still.is_none() {
            self.nonce = self.nonce.wrapping_add(1);
        }
        self.hello = Some(still.map_or((now_ns, 1), |(first_ns, times)| (first_ns, times + 1)));
        let mut out = head(HELLO);
        out.extend_from_slice(&self.key_id.to_be_bytes());
        out.extend_from_slice(&self.nonce.to_be_bytes());
        // As long as its answer.
        out.extend_from_slice(&[0; 16]);
        self.key.seal(out)
    }

    /// Takes a datagram from the server.
    ///
    /// # Errors
    /// It is not the server's.
    pub fn take(&mut self, now_ns: i64, datagram: &[u8]) -> Result<(), FeedbackError> {
        let said = self.key.open(datagram)?;
        match kind(datagram) {
            Some(WELCOME) if datagram.len() == HELLO_BYTES => {
                if word(said, 4) != self.key_id || word(said, 12) != self.nonce {
                    return Ok(());
                }
                // One that was answered twice has one session.
                let Some((first_ns, times)) = self.hello.take() else { return Ok(()) };
                self.token = Some(token(said, 20));
                self.sequence = 0;
                self.waiting.clear();
                self.heard_ns = now_ns;
                // Which of several was answered is not known (Karn's rule).
                if times == 1 {
                    self.answered(now_ns, first_ns);
                }
            }
            Some(ACK) if datagram.len() == ACK_BYTES => {
                if self.token != Some(token(said, 4)) {
                    return Ok(());
                }
                let sequence = word(said, 20);
                let at = self.waiting.iter().position(|(number, _)| *number == sequence);
                let Some((_, sent_ns)) = at.and_then(|at| self.waiting.remove(at)) else {
                    return Ok(());
                };
                self.status = match said.get(28) {
                    Some(0) => Some(Status::Used),
                    Some(1) => Some(Status::NoConnection),
                    Some(2) => Some(Status::Moved),
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
    pub const fn token(&self) -> Option<Token> {
        self.token
    }

    /// The least round trip to the server, in nanoseconds.
    #[must_use]
    pub const fn min_rtt_ns(&self) -> Option<i64> {
        self.min_rtt_ns
    }

    /// What has become of the last report that was answered.
    #[must_use]
    pub const fn status(&self) -> Option<Status> {
        self.status
    }
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

fn token(bytes: &[u8], at: usize) -> Token {
    let mut out = [0; 16];
    out.iter_mut().zip(bytes.iter().skip(at)).for_each(|(out, byte)| *out = *byte);
    Token(out)
}
