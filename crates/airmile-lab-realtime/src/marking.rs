//! A modem that marks what waits in its uplink queue (ECN; draft-sporeba-tsvwg-mobile-l4s).

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use airmile_emulate::net::{IpPacket, Transport};
use airmile_emulate::{CapturePoint, PHONE_ADDRESS};

/// Packets between phone and core, at most (chosen here: several seconds of the fastest uplink). More
/// would be lost ones, which never arrive.
const MOST_WAITING: usize = 100_000;

/// Marks packets of the phone whose way through the radio link took longer than the shortest one by
/// more than a limit. The wait for a grant counts, as in the modem.
#[derive(Debug)]
pub(crate) struct Marking {
    above_ns: i64,
    /// When each packet left the phone, by its content.
    sent: HashMap<u64, i64>,
    /// The shortest way.
    least_ns: i64,
    /// Packets that are to be marked when they are handed out.
    late: HashSet<u64>,
}

/// The content of a packet as a number: its identification, sequence number and time stamp differ from
/// those of any other on its way.
fn key(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

/// Sets CE in an IPv4 packet that is ECN-capable, and its header's checksum.
fn mark(bytes: &mut [u8]) {
    let Some(header) = bytes.first_chunk_mut::<20>() else { return };
    let ecn = header[1] & 3;
    if header[0] >> 4 != 4 || ecn == 0 {
        return;
    }
    header[1] |= 3;
    // RFC 1624, equation 3: the word grew by the bits that were set.
    let sum = u32::from(!u16::from_be_bytes([header[10], header[11]])) + u32::from(3 - ecn);
    let sum = !((sum & 0xffff) as u16 + (sum >> 16) as u16);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
}

impl Marking {
    pub(crate) fn new(above: Duration) -> Self {
        Self {
            above_ns: i64::try_from(above.as_nanos()).unwrap_or(i64::MAX),
            sent: HashMap::new(),
            least_ns: i64::MAX,
            late: HashSet::new(),
        }
    }

    /// The packet as it passes a capture point.
    pub(crate) fn passes<'a>(
        &mut self,
        at_ns: i64,
        point: CapturePoint,
        packet: &'a IpPacket,
    ) -> Cow<'a, IpPacket> {
        let Transport::Raw(bytes) = &packet.transport else { return Cow::Borrowed(packet) };
        if *packet.src.ip() != PHONE_ADDRESS {
            return Cow::Borrowed(packet);
        }
        match point {
            CapturePoint::Phone => {
                if self.sent.len() >= MOST_WAITING {
                    self.sent.clear();
                }
                self.sent.insert(key(bytes), at_ns);
            }
            // The first point after the radio.
            CapturePoint::Server | CapturePoint::ProxyRan => {
                let key = key(bytes);
                let took_ns = self.sent.remove(&key).map(|sent_ns| at_ns - sent_ns);
                self.least_ns = took_ns.map_or(self.least_ns, |took_ns| took_ns.min(self.least_ns));
                if took_ns.is_some_and(|took_ns| took_ns - self.least_ns > self.above_ns) {
                    let mut marked = packet.clone();
                    if let Transport::Raw(bytes) = &mut marked.transport {
                        mark(bytes);
                    }
                    self.late.insert(key);
                    return Cow::Owned(marked);
                }
            }
            CapturePoint::ProxyCore => {}
        }
        Cow::Borrowed(packet)
    }

    /// Marks a packet that is handed to its host, if it was late.
    pub(crate) fn hand_out(&mut self, bytes: &mut [u8]) {
        if !self.late.is_empty() && self.late.remove(&key(bytes)) {
            mark(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddrV4};

    use super::*;

    /// The sum of the words of a header with a right checksum is all ones (RFC 1071).
    fn is_right(header: &[u8]) -> bool {
        let words = header.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
        let sum: u32 = words.sum();
        (sum & 0xffff) + (sum >> 16) == 0xffff
    }

    fn packet(ecn: u8, id: u16) -> IpPacket {
        let mut bytes =
            vec![0x45, ecn, 0, 20, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 2, 203, 0, 113, 1];
        bytes[4..6].copy_from_slice(&id.to_be_bytes());
        let words = bytes.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
        let sum: u32 = words.sum();
        let sum = !(((sum & 0xffff) + (sum >> 16)) as u16);
        bytes[10..12].copy_from_slice(&sum.to_be_bytes());
        let ends = SocketAddrV4::new(PHONE_ADDRESS, 1);
        let dst = SocketAddrV4::new(Ipv4Addr::new(203, 0, 113, 1), 2);
        IpPacket { src: ends, dst, ip_id: id, transport: Transport::Raw(bytes) }
    }

    fn raw(packet: &IpPacket) -> &[u8] {
        match &packet.transport {
            Transport::Raw(bytes) => bytes,
            _ => &[],
        }
    }

    #[test]
    fn late_packets_are_marked_once_and_alike() {
        const MS: i64 = 1_000_000;
        let mut marking = Marking::new(Duration::from_millis(5));
        let mut fields = Vec::new();
        for (id, took_ms, ecn) in
            [(1, 30, 2), (2, 34, 2), (3, 36, 2), (4, 36, 1), (5, 36, 0), (6, 20, 1)]
        {
            let sent = packet(ecn, id);
            assert!(is_right(raw(&sent)));
            let _ = marking.passes(0, CapturePoint::Phone, &sent);
            let arrived = marking.passes(took_ms * MS, CapturePoint::Server, &sent).into_owned();
            let mut handed_out = raw(&sent).to_vec();
            marking.hand_out(&mut handed_out);
            assert_eq!(raw(&arrived), handed_out);
            assert!(is_right(&handed_out));
            fields.push(handed_out[1]);
        }
        assert_eq!(fields, [2, 2, 3, 3, 0, 1]);
        assert!(marking.sent.is_empty() && marking.late.is_empty());
    }
}
