//! What a phone asked for and sent, as exchanges: a request with its answer, or an upload with its own.

use airmile_model::packet::TcpFlags;
use airmile_model::{Direction, Stamp, Transfer};

use super::requests::MIN_REQUEST_BYTES;
use super::split::INITIAL_WINDOW_BYTES;
use crate::clocks::ClockLine;
use crate::tcp::TracedPacket;

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
    done: Vec<Exchange>,
}

impl Exchanges {
    /// Takes the next packet; a pause of `pause_ns` separates exchanges.
    pub fn push(&mut self, packet: &TracedPacket, pause_ns: i64) {
        let (now, up) = (packet.at_ns, packet.dir == Direction::Ul);
        if packet.flags.has(TcpFlags::SYN) {
            self.opened_ns = Some((self.opened_ns.map_or(now, |(first, _)| first), now));
            return;
        }
        if packet.new_bytes == 0 {
            return;
        }
        let is_small = packet.new_bytes < MIN_REQUEST_BYTES;
        let asks = up && !is_small;
        let is_first = self.done.len() == 1;
        let rests = |one: &Exchange| {
            let gap_ns = now.saturating_sub(one.to_ns);
            let sets_up = is_first && one.payload() < HANDSHAKE_BYTES;
            let own_pause = up && one.bytes[1] < FLIGHT_BYTES;
            let at_once = sets_up && gap_ns < pause_ns.min(AT_ONCE_NS);
            asks && one.answered && !at_once
                || gap_ns >= pause_ns && (one.answered && (up || !sets_up) || own_pause)
                || gap_ns > LONGEST_THINK_NS
        };
        let last = self.done.last();
        let is_over = last.is_none_or(rests);
        let is_late =
            |one: &Exchange| one.answered && (up || now.saturating_sub(one.to_ns) >= AT_ONCE_NS);
        if is_small && last.is_some_and(|one| is_over || is_late(one)) {
            return;
        }
        if is_over {
            self.begin(now, pause_ns);
        }
        // A request while an answer comes parts nothing.
        let round_trip_ns = self.opened_ns.map_or(0, |(first, last)| last.saturating_sub(first));
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
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// Packets at ms, from the phone or to it, of so much payload; 0 is of a connection's set-up.
    type Connection = Vec<(i64, bool, u64)>;

    /// Name, begin and end in ms, bytes.
    fn transfers(connections: &[&[(i64, bool, u64)]]) -> Vec<(String, i64, i64, u64)> {
        let mut all = Vec::new();
        for packets in connections {
            let mut exchanges = Exchanges::default();
            for &(ms, up, new_bytes) in *packets {
                let flags = if new_bytes == 0 { TcpFlags::SYN } else { TcpFlags::ACK };
                let packet = TracedPacket {
                    at_ns: ms * MS,
                    dir: if up { Direction::Ul } else { Direction::Dl },
                    flags,
                    payload_bytes: u32::try_from(new_bytes).unwrap(),
                    new_bytes,
                    ..TracedPacket::EXAMPLE
                };
                exchanges.push(&packet, 500 * MS);
            }
            all.extend(exchanges.iter().copied());
        }
        let found = exchanged(all, (20_000, 500 * MS));
        let named = found.into_iter().map(|one| {
            let (from, to) = one.time.unwrap();
            (one.id, from.ns / MS, to.ns / MS, one.bytes.unwrap())
        });
        named.collect()
    }

    /// A request at ms, and its answer of a packet of 1,400 bytes each ms from another time on.
    fn download(from_ms: i64, answer_ms: i64, packets: i64) -> Connection {
        let answer = (0..packets).map(|at| (answer_ms + at, false, 1_400));
        [(from_ms, true, 600)].into_iter().chain(answer).collect()
    }

    /// `n` requests and answers of these bytes, one each `period_ms`.
    fn polls(from_ms: i64, (n, period_ms): (i64, i64), [asks, answers]: [u64; 2]) -> Connection {
        let at = |n: i64| from_ms + n * period_ms;
        (0..n).flat_map(|n| [(at(n), true, asks), (at(n) + 60, false, answers)]).collect()
    }

    /// The server works for 4 s on each answer.
    #[test]
    fn a_think_time_is_of_the_transfer() {
        let set_up = [(0, true, 0), (50, false, 0), (51, true, 600), (4_100, false, 400_000)];
        let next = [(6_000, true, 600), (10_000, false, 400_000)];
        let found = transfers(&[&[set_up.as_slice(), &next].concat()]);
        assert_eq!(
            found,
            [("dl0".into(), 0, 4_100, 400_000), ("dl1".into(), 6_000, 10_000, 400_000)]
        );
    }

    /// Its answer is late, and small; pings follow.
    #[test]
    fn an_upload_lasts_until_its_answer() {
        let upload = [(0, true, 0), (51, true, 300_000), (400, true, 300_000), (3_000, false, 500)];
        let pings = [(5_000, true, 40), (5_050, false, 40), (9_000, true, 40)];
        let found = transfers(&[&[upload.as_slice(), &pings].concat()]);
        assert_eq!(found, [("ul0".into(), 0, 3_000, 600_000)]);
    }

    #[test]
    fn keep_alives_are_no_transfer() {
        for (period_ms, bytes) in [(150, [90, 90]), (300, [300, 1_200]), (100, [300, 2_000])] {
            assert_eq!(transfers(&[&polls(0, (400, period_ms), bytes)]), []);
        }
    }

    /// Their number is no matter, nor on which connection they come.
    #[test]
    fn keep_alives_neither_extend_nor_join_transfers() {
        let expected =
            [("dl0".into(), 30_000, 30_349, 420_000), ("dl1".into(), 33_000, 33_349, 420_000)];
        let gets = [download(30_000, 30_050, 300), download(33_000, 33_050, 300)];
        for (n, period_ms, bytes) in
            [(97, 300, [120, 200]), (97, 300, [300, 1_200]), (290, 100, [300, 2_000])]
        {
            let before = polls(500, (n, period_ms), bytes);
            let between = polls(30_500, (8, 300), bytes);
            let after = polls(33_600, (40, 300), bytes);
            let one = [before, gets[0].clone(), between, gets[1].clone(), after].concat();
            assert_eq!(transfers(&[&one]), expected, "{n}");
            let others = polls(500, (400, period_ms), bytes);
            assert_eq!(transfers(&[&gets.concat(), &others]), expected, "{n} apart");
        }
    }

    /// The server has nothing to answer for 25 s, then 1,500 or 28,000 bytes: the latter are a transfer, and the wait
    /// is theirs alone.
    #[test]
    fn a_long_poll_joins_no_downloads() {
        let gets = [2_000, 10_000, 18_000, 24_900].map(|ms| download(ms, ms + 50, 3_000));
        let mut expected: Vec<_> = (0..)
            .zip([2_000, 10_000, 18_000, 24_900])
            .map(|(at, ms)| (format!("dl{at}"), ms, ms + 3_049, 4_200_000))
            .collect();
        let gets = gets.concat();
        let small = [(500, true, 300), (25_500, false, 1_500)];
        assert_eq!(transfers(&[&gets, &small]), expected);
        let large = download(500, 25_500, 20);
        expected.insert(0, ("dl0".into(), 500, 25_519, 28_000));
        (1..).zip(&mut expected[1..]).for_each(|(at, one)| one.0 = format!("dl{at}"));
        assert_eq!(transfers(&[&gets, &large]), expected);
    }

    /// Six connections of a page, each with a small part of it; the next page comes 3 s later.
    #[test]
    fn parts_of_a_page_are_one_transfer() {
        let lane = |from_ms: i64| {
            let ms = [0, 3_000].map(|page| (0..4).map(move |at| page + from_ms + at * 100));
            ms.into_iter().flatten().flat_map(|ms| download(ms, ms + 60, 5)).collect::<Connection>()
        };
        let lanes: Vec<Connection> = (0..6).map(|lane_ms| lane(lane_ms * 7)).collect();
        let lanes: Vec<_> = lanes.iter().map(Vec::as_slice).collect();
        let found = transfers(&lanes);
        let bytes = 6 * 4 * 5 * 1_400;
        assert_eq!(found, [("dl0".into(), 0, 399, bytes), ("dl1".into(), 3_000, 3_399, bytes)]);
    }

    /// A connection was opened in advance, without TLS and with it; or for this request.
    #[test]
    fn a_client_that_pauses_has_not_asked_yet() {
        let syn = [(0, true, 0), (51, false, 0)];
        let tls = [(52, true, 517), (100, false, 4_000), (101, true, 80)];
        let shaken = [syn.as_slice(), &tls].concat();
        for (set_up, tls_bytes) in [(syn.as_slice(), 0), (&shaken, 4_000)] {
            let asked = download(5_000, 5_100, 50);
            let found = transfers(&[&[set_up, &asked].concat()]);
            assert_eq!(found, [("dl0".into(), 5_000, 5_149, 70_000)]);
            let asked = download(110, 210, 50);
            let found = transfers(&[&[set_up, &asked].concat()]);
            assert_eq!(found, [("dl0".into(), 0, 259, 70_000 + tls_bytes)]);
        }
    }

    /// As with QUIC: the client acknowledges the handshake, and probes the path; the server's control data is no answer.
    #[test]
    fn a_set_up_of_many_flights_is_of_the_first_transfer() {
        let flights =
            (0..5).flat_map(|at| [(at * 30 + 1, true, 1_200), (at * 30 + 29, false, 1_200)]);
        let set_up = [vec![(0, true, 0)], flights.collect()].concat();
        let answer = |from_ms: i64| (0..50).map(move |at| (from_ms + at, false, 1_400));
        let thought: Connection = set_up.iter().copied().chain(answer(4_000)).collect();
        assert_eq!(transfers(&[&thought]), [("dl0".into(), 0, 4_049, 76_000)]);
        let paused = [set_up, download(4_000, 4_050, 50)].concat();
        assert_eq!(transfers(&[&paused]), [("dl0".into(), 4_000, 4_099, 70_000)]);
    }

    /// Window updates of HTTP/2 follow the data, and pings its end.
    #[test]
    fn control_frames_do_not_extend_a_transfer() {
        let frames =
            (0..12).flat_map(|at| [(at * 400 + 110, true, 39), (at * 400 + 170, false, 39)]);
        let first = [download(0, 50, 50), frames.collect()].concat();
        let found = transfers(&[&[first, download(5_000, 5_050, 50)].concat()]);
        let expected = [("dl0".into(), 0, 170, 70_039), ("dl1".into(), 5_000, 5_099, 70_000)];
        assert_eq!(found, expected);
    }

    /// A second request while the first answer's rate is low, and an upload whose acknowledgements are late.
    #[test]
    fn a_slow_begin_is_of_the_transfer() {
        let begin = [(0, true, 0), (60, false, 0), (61, true, 600)];
        let slow = (0..20).map(|at| (800 + 25 * at, false, 1_400));
        let rest =
            [vec![(1_280, true, 300)], (0..2_000).map(|at| (1_281 + at, false, 1_400)).collect()];
        let download = [begin.to_vec(), slow.collect(), rest.concat()].concat();
        assert_eq!(transfers(&[&download]), [("dl0".into(), 0, 3_280, 2_828_000)]);
        let upload = [(61, true, 14_000), (1_300, true, 100_000), (2_000, false, 500)];
        let found = transfers(&[&[&begin[..2], &upload].concat()]);
        assert_eq!(found, [("ul0".into(), 0, 2_000, 114_000)]);
    }
}
