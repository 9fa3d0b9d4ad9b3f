//! What a phone asked for and sent, as exchanges: a request with its answer, or an upload with its own.

use airmile_model::packet::TcpFlags;
use airmile_model::{Direction, Stamp, Transfer};

use super::requests::MIN_REQUEST_BYTES;
use super::split::INITIAL_WINDOW_BYTES;
use crate::clocks::ClockLine;
use crate::tcp::{LINUX_MIN_RTO_NS, TracedPacket};

/// An answer that takes longer is none (chosen here: clients give up earlier).
const LONGEST_THINK_NS: i64 = 60_000_000_000;
/// A client that speaks again after a pause, without an answer, is busy with its own work, unless it sent more
/// than a handshake does: then it waited for acknowledgements (RFC 5681, 3.1: an initial window).
const FLIGHT_BYTES: u64 = 4_380;
/// Exchanges of less are small, a handshake's too (chosen here).
const HANDSHAKE_BYTES: u64 = INITIAL_WINDOW_BYTES;
/// Data that comes sooner after a request was on its way, if that is also half a round trip (chosen here).
const IN_FLIGHT_NS: i64 = 100_000_000;
/// What a client sends later than this after the last packet, it does not send because of that (chosen here:
/// above the time that a phone takes for a certificate, below the period of keep-alives).
const AT_ONCE_NS: i64 = 200_000_000;
/// What a server sends later than this after the last packet of the first exchange, while that is small, is not of it,
/// if the server sent anything since the request and its last segment was not full. After a handshake, its own last
/// messages (TLS's tickets, QUIC's settings) look like an answer, and it may think for seconds (chosen here); without
/// one, the rest of an answer was lost, and comes after the sender's timer and its double (RFC 6298, 2: three round
/// trips, or the initial 1 s).
const HANDSHAKE_THINK_NS: i64 = 10_000_000_000;
const TIMERS_NS: i64 = 3_000_000_000;
/// After a segment that is a full one, or several that were merged (GRO), more of the answer follows. Segments of this
/// size and more are full if two that adjoin are as large (chosen here).
const FULL_BYTES: u64 = 1_000;
/// Requests of a set-up, at once behind each other: that of a document, and that of its parts (chosen here).
const MOST_REQUESTS: u8 = 2;
/// Exchanges with less than this part of a transfer's rate neither extend nor join it (chosen here, as for
/// transfers of a modem log alone).
const TRICKLE_PART: f64 = 0.05;

/// One exchange of a connection, or several that are one transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// Its request, or the first packet of the connection that was opened for it, in nanoseconds.
    pub(super) asked_ns: i64,
    /// Its last request.
    asked_to_ns: i64,
    /// The first data of an answer.
    answered_ns: Option<i64>,
    /// Its last data.
    to_ns: i64,
    /// Payload towards the phone, and from it.
    pub bytes: [u64; 2],
    /// Of several: the payload of the largest.
    most: Option<u64>,
    /// Whether the last data was the server's.
    answered: bool,
}

impl Exchange {
    fn dir(&self) -> Direction {
        if self.bytes[1] > self.bytes[0] { Direction::Ul } else { Direction::Dl }
    }

    /// Moves it to the reference clock of the line.
    pub fn set_clock(&mut self, line: &ClockLine) {
        let times = [&mut self.asked_ns, &mut self.asked_to_ns, &mut self.to_ns];
        times.into_iter().chain(&mut self.answered_ns).for_each(|ns| *ns = line.to_reference(*ns));
    }

    /// Payload in its direction.
    #[must_use]
    pub fn payload(&self) -> u64 {
        self.bytes[0].max(self.bytes[1])
    }

    fn most(&self) -> u64 {
        self.most.unwrap_or_else(|| self.payload())
    }

    /// Its first data.
    fn data_ns(&self) -> i64 {
        self.answered_ns.filter(|_| self.dir() == Direction::Dl).unwrap_or(self.asked_ns)
    }

    /// Whether bytes in so much time are a trickle compared with it.
    fn dwarfs(&self, bytes: u64, ns: i64) -> bool {
        let own_ns = self.to_ns.saturating_sub(self.asked_ns).max(1);
        (bytes as f64 * own_ns as f64) < TRICKLE_PART * self.payload() as f64 * ns as f64
    }

    /// Whether the next one, by its first data, is of the same transfer: its request and its data come without a
    /// pause, a small one's request at once, and neither is a trickle compared with the other.
    fn joins(&self, next: &Self, pause_ns: i64) -> bool {
        let is_small = self.most().min(next.most()) < HANDSHAKE_BYTES;
        let idle_ns = if is_small { pause_ns.min(AT_ONCE_NS) } else { pause_ns };
        // The answer to an earlier request is not what this one waits for, nor the reverse.
        let asks_with = next.asked_ns > self.asked_ns.saturating_sub(pause_ns)
            && (next.asked_ns < self.asked_to_ns.saturating_add(pause_ns)
                || next.asked_ns >= self.data_ns());
        let own_ns = self.to_ns.max(next.asked_ns).saturating_sub(self.asked_ns);
        let next_ns = next.to_ns.saturating_sub(next.asked_ns.min(self.to_ns));
        self.dir() == next.dir()
            && next.data_ns() < self.to_ns.saturating_add(pause_ns)
            && next.asked_ns < self.to_ns.saturating_add(idle_ns)
            && asks_with
            && !next.dwarfs(self.payload(), own_ns)
            && !self.dwarfs(next.payload(), next_ns)
    }

    fn and(&self, next: &Self) -> Self {
        Self {
            asked_ns: self.asked_ns.min(next.asked_ns),
            asked_to_ns: self.asked_to_ns.max(next.asked_to_ns),
            answered_ns: self.answered_ns.into_iter().chain(next.answered_ns).min(),
            to_ns: self.to_ns.max(next.to_ns),
            bytes: [self.bytes[0] + next.bytes[0], self.bytes[1] + next.bytes[1]],
            most: Some(self.most().max(next.most())),
            answered: next.answered,
        }
    }

    /// Whether it is a transfer: data of its own, or small exchanges with as much in each pause.
    fn is_transfer(&self, min_bytes: u64, pause_ns: i64) -> bool {
        let ns = self.to_ns.saturating_sub(self.asked_ns);
        let is_fast = self.payload() as f64 * pause_ns as f64 >= min_bytes as f64 * ns as f64;
        self.payload() >= min_bytes && (self.most() >= min_bytes || is_fast)
    }
}

/// The exchanges of one connection: the next one begins with a request after an answer, or with what comes a
/// pause after it. Without an answer the server still works on it. The first one has the connection's set-up, if
/// its request follows that at once.
#[derive(Debug, Default)]
pub struct Exchanges {
    /// The first and the last packet of the connection's handshake.
    opened_ns: Option<(i64, i64)>,
    /// The client sent a message of TLS's or QUIC's handshake.
    shakes: bool,
    /// Requests so far, each after an answer.
    asked: u8,
    /// The server's last packet of `FULL_BYTES` and more, and the size of its full segments, by two that adjoin; 0 if
    /// unknown.
    last_bytes: u64,
    segment_bytes: u64,
    /// The server's last segment was full, and no message followed a silence after it.
    full: bool,
    done: Vec<Exchange>,
}

impl Exchanges {
    /// Takes the next packet, and whether a client's is of its handshake ([`SenderModel::sets_up`]); a pause of
    /// `pause_ns` separates exchanges.
    ///
    /// [`SenderModel::sets_up`]: super::SenderModel::sets_up
    pub fn push(&mut self, packet: &TracedPacket, shakes: bool, pause_ns: i64) {
        let (now, up) = (packet.at_ns, packet.dir == Direction::Ul);
        if packet.flags.has(TcpFlags::SYN) {
            self.opened_ns = Some((self.opened_ns.map_or(now, |(first, _)| first), now));
            return;
        }
        if packet.new_bytes == 0 {
            return;
        }
        self.shakes |= up && shakes;
        let is_small = packet.new_bytes < MIN_REQUEST_BYTES;
        let asks = up && !is_small;
        let is_first = self.done.len() == 1;
        let round_trip_ns = self.opened_ns.map_or(0, |(first, last)| last.saturating_sub(first));
        let timer_ns = round_trip_ns + LINUX_MIN_RTO_NS.max(2 * round_trip_ns);
        let timers_ns = if round_trip_ns > 0 { TIMERS_NS.min(3 * timer_ns) } else { TIMERS_NS };
        let rests = |one: &Exchange| {
            let gap_ns = now.saturating_sub(one.to_ns);
            let may_go_on_ns = if self.shakes { HANDSHAKE_THINK_NS } else { timers_ns };
            let sets_up = is_first && one.payload() < HANDSHAKE_BYTES;
            let goes_on = self.full || sets_up && gap_ns < may_go_on_ns;
            let own_pause = up && one.bytes[1] < FLIGHT_BYTES;
            // Requests behind answers are no set-up, unless they look so.
            let at_once = sets_up && (shakes || self.asked < MOST_REQUESTS);
            asks && one.answered && !(at_once && gap_ns < pause_ns.min(AT_ONCE_NS))
                || gap_ns >= pause_ns && (one.answered && (up || !goes_on) || own_pause)
                || gap_ns > LONGEST_THINK_NS
        };
        let last = self.done.last();
        let is_over = last.is_none_or(rests);
        let is_next = self.asked == 0 || last.is_some_and(|one| one.answered);
        let is_quiet = |one: &Exchange| now.saturating_sub(one.to_ns) >= AT_ONCE_NS;
        let is_late = |one: &Exchange| one.answered && (up || is_quiet(one));
        if is_small && last.is_some_and(|one| is_over || is_late(one)) {
            // What follows may be the answer to it.
            self.full &= !(up && last.is_some_and(is_quiet));
            return;
        }
        if is_over {
            self.begin(now, pause_ns);
        }
        if up {
            self.asked = self.asked.saturating_add((asks && !shakes && is_next).into());
        } else {
            self.full = self.is_full(packet.new_bytes);
        }
        // A request while an answer comes parts nothing.
        if let [.., before, last] = self.done.as_mut_slice()
            && !up
            && last.answered_ns.is_none()
            && now.saturating_sub(before.to_ns) < IN_FLIGHT_NS.min(round_trip_ns / 2)
        {
            *before = Exchange { most: None, ..before.and(last) };
            self.done.pop();
        }
        if let Some(one) = self.done.last_mut() {
            one.to_ns = one.to_ns.max(now);
            one.answered = !up;
            one.answered_ns = match one.answered_ns {
                None if !up => Some(now),
                // So far it was the handshake.
                Some(_) if asks => None,
                known => known,
            };
            one.bytes[usize::from(up)] += packet.new_bytes;
        }
    }

    /// Whether a packet of the server is of full segments. A merged one may end with a segment that is not: it does not
    /// change their size.
    fn is_full(&mut self, bytes: u64) -> bool {
        let by_last = common_divisor(self.last_bytes, bytes);
        if bytes >= FULL_BYTES {
            self.last_bytes = bytes;
        }
        if self.segment_bytes == 0 || (FULL_BYTES..self.segment_bytes).contains(&by_last) {
            self.segment_bytes = if by_last < FULL_BYTES { 0 } else { by_last };
        }
        common_divisor(self.segment_bytes, bytes) >= FULL_BYTES
    }

    /// Begins an exchange. Those before it are one if they are of the same transfer.
    fn begin(&mut self, now: i64, pause_ns: i64) {
        let follows = |(_, last): &(i64, i64)| now.saturating_sub(*last) < AT_ONCE_NS;
        let opened = self.opened_ns.filter(follows).filter(|_| self.done.is_empty());
        if let [.., before, last] = self.done.as_mut_slice()
            && before.joins(last, pause_ns)
        {
            *before = before.and(last);
            self.done.pop();
        }
        self.done.push(Exchange {
            asked_ns: opened.map_or(now, |(first, _)| first),
            asked_to_ns: now,
            answered_ns: None,
            to_ns: now,
            bytes: [0; 2],
            most: None,
            answered: false,
        });
    }

    /// Those that ended, and the last one.
    pub fn iter(&self) -> impl Iterator<Item = &Exchange> {
        self.done.iter()
    }
}

/// The greatest.
const fn common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Exchanges as transfers of at least `min_bytes`, each direction's in order. Those of any connections whose data
/// overlap, or follow each other without a pause, are one if they have comparable rates.
#[must_use]
pub fn exchanged(mut exchanges: Vec<Exchange>, (min_bytes, pause_ns): (u64, i64)) -> Vec<Transfer> {
    exchanges.sort_by_key(|one| (one.data_ns(), one.asked_ns, one.to_ns));
    let (mut open, mut spans) = (Vec::<Exchange>::new(), Vec::new());
    for one in exchanges {
        let is_over = |span: &mut Exchange| span.to_ns.saturating_add(pause_ns) <= one.data_ns();
        spans.extend(open.extract_if(.., is_over));
        let joined = open.iter_mut().filter(|span| span.joins(&one, pause_ns));
        match joined.max_by_key(|span| span.payload()) {
            Some(span) => *span = span.and(&one),
            None => open.push(one),
        }
    }
    spans.append(&mut open);
    spans.retain(|span| span.is_transfer(min_bytes, pause_ns));
    spans.sort_by_key(|span| (span.dir() == Direction::Ul, span.asked_ns, span.to_ns));
    let n_dl = spans.partition_point(|span| span.dir() == Direction::Dl);
    let numbers = (0..n_dl).chain(0..);
    let named = spans.into_iter().zip(numbers).map(|(span, at)| Transfer {
        id: format!("{}{at}", span.dir()),
        time: Some((Stamp::modem(span.asked_ns), Stamp::modem(span.to_ns))),
        tti: None,
        bytes: Some(span.payload()),
        dir: Some(span.dir()),
        unfinished: false,
    });
    named.collect()
}

#[cfg(test)]
mod tests;
