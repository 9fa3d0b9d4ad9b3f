//! RTTs by the spin bit (RFC 9000, 17.4): the client sends the opposite of what it received,
//! the server what it received. An endpoint may instead send random bits, so RTTs are given
//! only once the client's bit has turned as a spin does: at most once per round trip.

use std::collections::VecDeque;

/// A turn is early before the handshake's time divided by this (chosen here: the handshake may
/// have taken two round trips, after a Retry or where the certificates exceed what the server
/// may send to an unverified address (RFC 9000, 8.1)).
const EARLY_SHARE: i64 = 3;
/// From this many packets between two turns on, a turn is never early (chosen here: one of
/// 128 runs of random bits is as long; an upload or download has more packets per round trip,
/// also where a loss has prolonged the handshake).
const LONG_RUN: u32 = 8;
/// Turns in time, minus early ones, after which the bit counts as spinning; the opposite makes
/// it random for good (chosen here: a packet out of order makes two early turns; with a fifth
/// of a random bit's turns in time, as in slow start, one flow of 257 passes).
const DECIDING_TURNS: i8 = 4;
/// A turn of the server's bit that a packet of the client leaves unanswered after the handshake's time
/// by this, and what it counts (chosen here: the handshake takes a round trip at least, and a lost
/// packet may have been the only one with the turn).
const LATE_TIMES: i64 = 2;
const UNANSWERED: i8 = 3;
/// Maximum number of RTTs held before that (chosen here: enough for the five
/// turns that decide and two packets out of order).
const MAX_HELD: usize = 8;

/// The spin bit of a connection.
#[derive(Debug, Default)]
pub(super) struct Spin {
    /// Last seen towards the client and from it.
    down: Option<bool>,
    up: Option<bool>,
    edge_down_ns: Option<i64>,
    /// The client's last turn, and its packets since.
    turned_ns: Option<i64>,
    run: u32,
    /// Turns in time minus early ones; at an end of its range the bit spins or is random.
    score: i8,
    spins: bool,
    /// Times and RTTs, in ns.
    rtts: VecDeque<(i64, i64)>,
}

impl Spin {
    pub(super) fn push_down(&mut self, now: i64, bit: bool) {
        if self.down.is_some_and(|before| before != bit) {
            self.edge_down_ns = Some(now);
        }
        self.down = Some(bit);
    }

    pub(super) fn push_up(&mut self, now: i64, bit: bool, handshake_ns: Option<i64>) {
        let turned = self.up.is_some_and(|before| before != bit);
        self.up = Some(bit);
        self.run = self.run.saturating_add(1);
        if !turned && !self.is_random() {
            self.unanswered(now, bit, handshake_ns);
        }
        if !turned || self.is_random() {
            return;
        }
        let run = std::mem::take(&mut self.run);
        let since_ns = self.turned_ns.replace(now).map(|before| now - before);
        let soon = |ns: i64| handshake_ns.is_none_or(|rtt_ns| ns < rtt_ns / EARLY_SHARE);
        let early = since_ns.is_some_and(|ns| run < LONG_RUN && soon(ns));
        let edge_ns = self.edge_down_ns.take_if(|_| self.down == Some(!bit));
        if since_ns.is_some() {
            // A turn that answers none of the server's is neither.
            self.count(if early { -1 } else { i8::from(edge_ns.is_some()) });
        }
        if let Some(edge_ns) = edge_ns.filter(|_| !early && !self.is_random()) {
            if self.rtts.len() == MAX_HELD {
                self.rtts.pop_front();
            }
            self.rtts.push_back((now, now - edge_ns));
        }
    }

    /// A client whose bit spins has answered a turn of the server's that is a round trip old.
    fn unanswered(&mut self, now: i64, bit: bool, handshake_ns: Option<i64>) {
        let is_late = |edge: &mut i64| {
            handshake_ns.is_some_and(|ns| now - *edge > ns.saturating_mul(LATE_TIMES))
        };
        if self.down == Some(bit) && self.edge_down_ns.take_if(is_late).is_some() {
            self.count(-UNANSWERED);
        }
    }

    fn count(&mut self, step: i8) {
        self.score = (self.score + step).clamp(-DECIDING_TURNS, DECIDING_TURNS);
        self.spins |= self.score == DECIDING_TURNS;
        if self.is_random() {
            self.spins = false;
            self.rtts = VecDeque::new();
        }
    }

    const fn is_random(&self) -> bool {
        self.score == -DECIDING_TURNS
    }

    pub(super) fn poll(&mut self) -> Option<(i64, i64)> {
        if self.spins { self.rtts.pop_front() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HANDSHAKE_MS: i64 = 60;

    /// Plays packets (`true` is up, then the bit) and returns times and RTTs in ms.
    fn rtts(packets: &[(i64, bool, bool)]) -> Vec<(i64, i64)> {
        let mut spin = Spin::default();
        let mut found = Vec::new();
        for (ms, up, bit) in packets {
            if *up {
                spin.push_up(*ms, *bit, Some(HANDSHAKE_MS));
            } else {
                spin.push_down(*ms, *bit);
            }
            found.extend(std::iter::from_fn(|| spin.poll()));
        }
        found
    }

    /// A round trip of 60 ms, 50 of them to the client, with `packets` each way.
    fn rounds(n: i64, packets: i64) -> Vec<(i64, bool, bool)> {
        let round = |r: i64| {
            let bit = r % 2 == 1;
            let down = (0..packets).map(move |i| (r * 60 + i, false, bit));
            down.chain((0..packets).map(move |i| (r * 60 + 50 + i, true, !bit)))
        };
        let mut all: Vec<_> = (0..n).flat_map(round).collect();
        all.sort_by_key(|(ms, ..)| *ms);
        all
    }

    #[test]
    fn a_spin_keeps_all_its_samples() {
        for packets in [1, 2, 9] {
            let expected: Vec<_> = (1..20).map(|r| (r * 60 + 50, 50)).collect();
            assert_eq!(rtts(&rounds(20, packets)), expected, "{packets}");
        }
        // The fifth turn decides.
        assert_eq!(rtts(&rounds(6, 9)).len(), 5);
        assert_eq!(rtts(&rounds(5, 9)), []);
    }

    #[test]
    fn packets_out_of_order_cost_no_other_sample() {
        let mut packets = rounds(20, 9);
        // Two of the client's packets change places at a turn, before and after the decision.
        for turn_ms in [170, 890] {
            let at = packets.iter().position(|p| p.0 == turn_ms && p.1).unwrap();
            let bit = packets[at].2;
            packets.insert(at + 1, (turn_ms, true, !bit));
        }
        assert_eq!(rtts(&packets).len(), 19);
    }

    #[test]
    fn random_bits_give_none() {
        let mut state = 1_u32;
        let mut random = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 31 == 1
        };
        // The server answers each of the client's packets with two that repeat its bit; the
        // client's come by turns at once and 8 ms apart.
        for each_ms in [1, 4, 8] {
            let mut packets = Vec::new();
            for i in 0..2_000 {
                let (ms, bit) = (i / 2 * 2 * each_ms, random());
                packets.extend([(ms, true, bit), (ms, false, bit), (ms, false, bit)]);
            }
            assert_eq!(rtts(&packets), [], "{each_ms}");
        }
    }

    #[test]
    fn sparse_random_bits_give_none() {
        // A packet each 400 ms, which the server repeats; 14 of 200 pass by chance.
        let passed = (1..=200_u32).filter(|seed| {
            let mut state = seed.wrapping_mul(2_654_435_761);
            let packets = (0..200).flat_map(|i| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let bit = state >> 31 == 1;
                [(400 * i, true, bit), (400 * i + 30, false, bit)]
            });
            let packets: Vec<_> = packets.collect();
            !rtts(&packets).is_empty()
        });
        let n = passed.count();
        assert!(n <= 20, "{n}");
    }

    #[test]
    fn a_lost_turn_costs_no_sparse_spin_its_samples() {
        let mut packets = Vec::new();
        let (mut client, mut server) = (false, false);
        for i in 0..40 {
            // The client does not hear of one turn.
            client = if i == 12 { client } else { !server };
            packets.push((400 * i, true, client));
            server = client;
            packets.push((400 * i + 30, false, server));
        }
        assert!(rtts(&packets).len() > 30);
    }

    #[test]
    fn bits_that_become_random_end_the_samples() {
        let mut packets = rounds(20, 9);
        packets.extend((0..900).map(|i| (1_200 + i, i % 3 == 0, i / 3 % 2 == 0)));
        packets.extend(rounds(20, 9).into_iter().map(|(ms, up, bit)| (9_000 + ms, up, bit)));
        assert_eq!(rtts(&packets).len(), 19);
    }
}
