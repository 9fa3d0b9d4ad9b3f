//! What a phone asked for and sent, as exchanges: a request with its answer, or an upload with its own.

use airmile_model::packet::TcpFlags;
use airmile_model::{Direction, Stamp, Transfer};

use super::split::INITIAL_WINDOW_BYTES;
use crate::clocks::ClockLine;
use crate::tcp::TracedPacket;

/// An answer that takes longer is none (chosen here: clients give up earlier).
const LONGEST_THINK_NS: i64 = 60_000_000_000;
/// Smaller messages ask for nothing: HTTP/2's window updates, and pings (chosen here, as for requests).
const SMALL_BYTES: u64 = 60;
/// A client that speaks again after a pause is busy with its own work, unless it had sent more than a
/// handshake does (chosen here).
const HANDSHAKE_BYTES: u64 = INITIAL_WINDOW_BYTES;
/// Requests and answers of fewer bytes each are keep-alives (chosen here: less than a full packet of QUIC), which
/// neither are transfers nor join any.
const CHATTER_BYTES: u64 = 1_000;

/// One exchange of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// Its request, or the connection's first packet, in nanoseconds.
    pub from_ns: i64,
    /// Its last data, in nanoseconds.
    pub to_ns: i64,
    /// Payload towards the phone, and from it.
    pub bytes: [u64; 2],
    /// Whether the last data was the server's.
    answered: bool,
    /// Answers so far.
    answers: u64,
}

impl Exchange {
    fn dir(&self) -> Direction {
        if self.bytes[1] > self.bytes[0] { Direction::Ul } else { Direction::Dl }
    }

    /// Moves it to the reference clock of the line.
    pub fn set_clock(&mut self, line: &ClockLine) {
        (self.from_ns, self.to_ns) =
            (line.to_reference(self.from_ns), line.to_reference(self.to_ns));
    }

    /// Payload in its direction.
    #[must_use]
    pub fn payload(&self) -> u64 {
        self.bytes[0].max(self.bytes[1])
    }
}

/// The exchanges of one connection: the next one begins with what comes a pause after an answer. Without an
/// answer the server still works on it.
#[derive(Debug, Default)]
pub struct Exchanges {
    opened_ns: Option<i64>,
    done: Vec<Exchange>,
}

impl Exchanges {
    /// Takes the next packet; a pause of `pause_ns` separates exchanges.
    pub fn push(&mut self, packet: &TracedPacket, pause_ns: i64) {
        let (now, up) = (packet.at_ns, packet.dir == Direction::Ul);
        if packet.flags.has(TcpFlags::SYN) {
            self.opened_ns = self.opened_ns.or(Some(now));
            return;
        }
        if packet.new_bytes == 0 {
            return;
        }
        let rests = |one: &Exchange| {
            let gap_ns = now.saturating_sub(one.to_ns);
            let own_pause = up && one.payload() < HANDSHAKE_BYTES;
            gap_ns >= pause_ns && (one.answered || own_pause) || gap_ns > LONGEST_THINK_NS
        };
        if self.done.last().is_none_or(rests) {
            let first = self.done.is_empty();
            if packet.new_bytes < SMALL_BYTES && !first {
                return;
            }
            let from_ns = self.opened_ns.filter(|_| first).unwrap_or(now);
            self.done.push(Exchange {
                from_ns,
                to_ns: now,
                bytes: [0; 2],
                answered: false,
                answers: 0,
            });
        }
        if let Some(one) = self.done.last_mut() {
            one.to_ns = one.to_ns.max(now);
            one.answers += u64::from(!up && !one.answered);
            one.answered = !up;
            one.bytes[usize::from(up)] += packet.new_bytes;
        }
    }

    /// Those that ended, and the last one.
    pub fn iter(&self) -> impl Iterator<Item = &Exchange> {
        self.done.iter()
    }
}

/// Exchanges as transfers of at least `min_bytes`, each direction's in order. Those that overlap, or follow
/// each other without a pause, are one.
#[must_use]
pub fn exchanged(mut exchanges: Vec<Exchange>, (min_bytes, pause_ns): (u64, i64)) -> Vec<Transfer> {
    exchanges.sort_by_key(|one| (one.from_ns, one.to_ns));
    let mut out = Vec::new();
    for dir in [Direction::Dl, Direction::Ul] {
        let mut spans: Vec<(i64, i64, u64)> = Vec::new();
        let is_chatter = |one: &Exchange| one.payload() < CHATTER_BYTES * one.answers.max(1);
        for one in exchanges.iter().filter(|one| one.dir() == dir && !is_chatter(one)) {
            match spans.last_mut() {
                Some((_, to_ns, bytes)) if one.from_ns < to_ns.saturating_add(pause_ns) => {
                    *to_ns = one.to_ns.max(*to_ns);
                    *bytes += one.payload();
                }
                _ => spans.push((one.from_ns, one.to_ns, one.payload())),
            }
        }
        spans.retain(|(.., bytes)| *bytes >= min_bytes);
        out.extend(spans.into_iter().enumerate().map(|(at, (from_ns, to_ns, bytes))| Transfer {
            id: format!("{dir}{at}"),
            time: Some((Stamp::modem(from_ns), Stamp::modem(to_ns))),
            tti: None,
            bytes: Some(bytes),
            dir: Some(dir),
            unfinished: false,
        }));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// Packets at ms, from the phone or to it, of so much payload; 0 is the first packet of a connection.
    fn transfers(packets: &[(i64, bool, u64)]) -> Vec<(String, i64, i64, u64)> {
        let mut exchanges = Exchanges::default();
        for &(ms, up, new_bytes) in packets {
            let flags = if new_bytes == 0 { TcpFlags::SYN } else { TcpFlags::ACK };
            let dir = if up { Direction::Ul } else { Direction::Dl };
            let payload_bytes = u32::try_from(new_bytes).unwrap();
            let at_ns = ms * MS;
            let packet = TracedPacket {
                at_ns,
                dir,
                flags,
                payload_bytes,
                new_bytes,
                ..TracedPacket::EXAMPLE
            };
            exchanges.push(&packet, 500 * MS);
        }
        let all = exchanges.iter().copied().collect();
        let found = exchanged(all, (20_000, 500 * MS));
        let ms = |at: usize, one: &Transfer| {
            let (from, to) = one.time.unwrap();
            [from.ns, to.ns][at] / MS
        };
        found
            .iter()
            .map(|one| (one.id.clone(), ms(0, one), ms(1, one), one.bytes.unwrap()))
            .collect()
    }

    /// The server works for 4 s on each answer.
    #[test]
    fn a_think_time_is_of_the_transfer() {
        let set_up = [(0, true, 0), (50, false, 0), (51, true, 600), (4_100, false, 400_000)];
        let next = [(6_000, true, 600), (10_000, false, 400_000)];
        let found = transfers(&[set_up.as_slice(), &next].concat());
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
        let found = transfers(&[upload.as_slice(), &pings].concat());
        assert_eq!(found, [("ul0".into(), 0, 3_000, 600_000)]);
    }

    /// A request and an answer of 90 bytes every 150 ms.
    #[test]
    fn keep_alives_are_no_transfer() {
        let pings = (0..400).flat_map(|at| [(at * 150, true, 90), (at * 150 + 60, false, 90)]);
        assert_eq!(transfers(&pings.collect::<Vec<_>>()), []);
    }

    /// A connection was opened in advance.
    #[test]
    fn a_client_that_pauses_has_not_asked_yet() {
        let shaken = [(0, true, 0), (51, true, 517), (100, false, 4_000), (101, true, 80)];
        let asked = [(5_000, true, 600), (5_100, false, 50_000)];
        let found = transfers(&[shaken.as_slice(), &asked].concat());
        assert_eq!(found, [("dl0".into(), 5_000, 5_100, 50_000)]);
    }
}
