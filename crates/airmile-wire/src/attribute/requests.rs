//! Which payload of a client asks for data.
//!
//! Requests and answers are separated in several places, each for another question:
//!
//! | place | a request is | an exchange ends | because |
//! |---|---|---|---|
//! | [`Requests`], what a sender waits for | [`is_request`]; while idle also a smaller message that data follows within a round trip | with the answer's first data | a wait for a request is not the server's |
//! | `exchanges`, which transfers there were | what has [`MIN_REQUEST_BYTES`] | with the next request after an answer, or a pause | parts of a page are one transfer; control frames extend none |
//! | `quic`, datagrams | what has [`MIN_REQUEST_BYTES`] | as for [`Requests`] | only sizes are visible |
//! | `compare::RequestTimer`, how an answer began | [`is_request`]; also a smaller message that data follows before a request does | with the next request half a round trip after the answer | a pause before a request restarts a sender |
//! | `airmile_blind`, phones | what has a payload | after the pause between transfers | only arrivals are compared |

use crate::app::is_http_request;
use crate::tcp::{LINUX_MIN_RTO_NS, TracedPacket};

/// A smaller client payload is no request by its size: HTTP/2's window updates (RFC 9113, 6.9)
/// take 35 to 57 bytes in TLS, and QUIC's datagrams with acknowledgements and control alone (a short
/// header, an ACK frame of some ranges, and a tag) 30 to 55 (chosen here).
pub(crate) const MIN_REQUEST_BYTES: u64 = 60;

/// Whether a client's new payload asks for data by itself: by its size, or as a request of HTTP/1.
pub(crate) fn is_request(new_bytes: u64, payload: &[u8]) -> bool {
    asks(new_bytes, is_http_request(payload))
}

const fn asks(new_bytes: u64, in_words: bool) -> bool {
    new_bytes >= MIN_REQUEST_BYTES || in_words && new_bytes > 0
}

/// Types of TLS records (RFC 8446, 5.1), first in each.
const TLS_RECORDS: std::ops::RangeInclusive<u8> = 20..=23;

/// The first bytes of a payload: enough for an HTTP/1 method and a TLS record.
pub type PayloadBegin = [u8; 8];

/// The beginning of a payload, filled up with zeros.
#[must_use]
pub fn payload_begin(payload: &[u8]) -> PayloadBegin {
    let mut begin = PayloadBegin::default();
    begin.iter_mut().zip(payload).for_each(|(into, byte)| *into = *byte);
    begin
}

/// The client's payload since the server's last data, as its first and last time.
#[derive(Debug, Default)]
pub(super) struct Requests {
    asked_ns: Option<(i64, i64)>,
    /// Payload too small for a request, while idle.
    small_ns: Option<(i64, i64)>,
    /// The next payload begins an HTTP/1 request.
    in_words: bool,
    /// The next payload is neither in a record of TLS nor in a frame of HTTP/2; nor was the last small one.
    in_plain: bool,
    small_in_plain: bool,
}

impl Requests {
    /// Takes the first bytes of the client's next packet.
    pub(super) fn begins_as(&mut self, payload: &[u8]) {
        self.in_words = is_http_request(payload);
        self.in_plain =
            payload.first().is_some_and(|first| *first != 0 && !TLS_RECORDS.contains(first));
    }

    /// Whether a client's packet is a request by itself.
    pub(super) const fn is_request(&self, packet: &TracedPacket) -> bool {
        asks(packet.new_bytes, self.in_words)
    }

    /// Takes a client's packet. Idle: there was no data yet, or the last was acknowledged and long ago.
    pub(super) fn push(&mut self, packet: &TracedPacket, is_idle: bool) {
        let now = packet.at_ns;
        let since = match () {
            () if self.is_request(packet) => &mut self.asked_ns,
            () if packet.new_bytes > 0 && is_idle => {
                self.small_in_plain = self.in_plain;
                &mut self.small_ns
            }
            () => return,
        };
        *since = Some((since.map_or(now, |(first, _)| first), now));
        self.in_words = false;
    }

    /// What the server's next data answers. While idle, a small message counts if data follows
    /// it within about the round trip between monitor and server; in TLS or HTTP/2 an answer as small is
    /// control, too.
    pub(super) fn answered(
        &self,
        data: &TracedPacket,
        round_trip_ns: Option<i64>,
    ) -> Option<(i64, i64)> {
        let small = self.small_ns.zip(round_trip_ns).filter(|((_, last), round_trip_ns)| {
            let late_ns = data.at_ns.saturating_sub(*last).saturating_sub(*round_trip_ns);
            let is_control =
                !self.small_in_plain && u64::from(data.payload_bytes) < MIN_REQUEST_BYTES;
            late_ns <= LINUX_MIN_RTO_NS && !is_control
        });
        self.asked_ns.or(small.map(|(times, _)| times))
    }

    /// Whether the client sent anything while idle: it had acknowledged all data before.
    pub(super) const fn came_while_idle(&self) -> bool {
        self.small_ns.is_some()
    }

    /// New data of the server: what was asked before is answered.
    pub(super) fn clear(&mut self) {
        (self.asked_ns, self.small_ns) = (None, None);
    }
}

#[cfg(test)]
mod tests {
    use airmile_model::Direction;

    use super::*;
    use crate::attribute::Exchanges;
    use crate::compare::RequestTimer;

    const MS: i64 = 1_000_000;
    const RTT_MS: i64 = 80;

    /// When the data at 0 ms was followed by these payloads of the client and then by 70 kB at `answered_ms`: the
    /// request that each place finds for that answer, in ms.
    fn asked_ms(payloads: &[(i64, &[u8])], answered_ms: i64) -> [i64; 3] {
        let before = [(-200, None, 300), (-120, Some(()), 70_000), (0, Some(()), 70_000)];
        let answer = [(answered_ms, Some(()), 70_000), (answered_ms + 40, Some(()), 70_000)];
        let mut requests = Requests::default();
        let (mut exchanges, mut timer) = (Exchanges::default(), RequestTimer::default());
        timer.set_rtt(RTT_MS * MS);
        let (mut asked, mut down_ms) = (None, i64::MIN);
        let filler = [b'x'; 300];
        let all = before.iter().map(|&(ms, down, bytes)| (ms, down, bytes, &filler[..]));
        let own = payloads.iter().map(|&(ms, payload)| (ms, None, payload.len() as u64, payload));
        let answer = answer.iter().map(|&(ms, down, bytes)| (ms, down, bytes, &filler[..]));
        for (ms, down, bytes, payload) in all.chain(own).chain(answer) {
            let packet = TracedPacket {
                at_ns: ms * MS,
                dir: if down.is_some() { Direction::Dl } else { Direction::Ul },
                payload_bytes: bytes as u32,
                new_bytes: bytes,
                ..TracedPacket::EXAMPLE
            };
            exchanges.push(&packet, false, 500 * MS);
            if down.is_some() {
                if ms == answered_ms {
                    asked = requests.answered(&packet, Some(RTT_MS * MS));
                }
                requests.clear();
                timer.push_down(packet.at_ns, bytes);
                down_ms = ms;
            } else {
                requests.begins_as(payload);
                requests.push(&packet, ms - down_ms > RTT_MS);
                timer.push_up(packet.at_ns, bytes, payload);
            }
        }
        timer.finish();
        let timed = std::iter::from_fn(|| timer.poll()).last().unwrap();
        let exchange = exchanges.iter().last().unwrap();
        [asked.unwrap().0, exchange.asked_ns, timed.start_ns].map(|ns| ns / MS)
    }

    /// Where they differ, the reason is in the table above.
    #[test]
    fn what_each_place_takes_as_a_request() {
        let check = |payloads: &[(i64, &[u8])], answered_ms, expected: [i64; 3]| {
            assert_eq!(asked_ms(payloads, answered_ms), expected);
        };
        let (in_tls, window_update) = ([23; 300], [23; 39]);
        check(&[(5_000, &in_tls)], 5_080, [5_000; 3]);
        // Transfers know sizes only: their time begins with the answer.
        let in_words = b"GET /f HTTP/1.1\r\nHost: a.org\r\n\r\n";
        check(&[(5_000, in_words)], 5_080, [5_000, 5_080, 5_000]);
        // So for a small request of another protocol.
        check(&[(5_000, b"get f")], 5_080, [5_000, 5_080, 5_000]);
        // A slow reader opens its window, and asks later.
        check(&[(100, &window_update), (3_000, &in_tls)], 3_080, [3_000; 3]);
    }
}
