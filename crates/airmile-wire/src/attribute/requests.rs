//! Which payload of a client asks for data.

use crate::app::is_http_request;
use crate::tcp::{LINUX_MIN_RTO_NS, TracedPacket};

/// A smaller client payload is no request by its size: HTTP/2's window updates (RFC 9113, 6.9)
/// take 35 to 57 bytes in TLS (chosen here).
const MIN_REQUEST_BYTES: u64 = 60;

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
        packet.new_bytes >= MIN_REQUEST_BYTES || self.in_words && packet.new_bytes > 0
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
