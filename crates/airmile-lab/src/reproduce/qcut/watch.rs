//! Observations of a run with a queue above the phone's firmware.

use std::collections::{BTreeMap, HashMap};

use airmile_emulate::net::{IpPacket, Transport};
use airmile_emulate::tcp::RangeSet;
use airmile_emulate::{CapturePoint, DropPoint, RunSink, UserId};

use crate::reproduce::estimate::quantile;

/// Destination port of probes (RFC 862).
const ECHO: u16 = 7;

/// Round trips from the firmware on, its occupancy, and packet counts.
#[derive(Default)]
pub(super) struct QueueMonitor {
    /// Values before this time are ignored.
    pub(super) from_ns: i64,
    /// Ends of segments in flight, by port, with the times at which they went to the
    /// firmware; `None` if they went twice (Karn).
    under_way: HashMap<(u16, u32), Option<i64>>,
    /// RTT_F in ms.
    rtt_f_ms: Vec<f64>,
    /// What the server has received of each stream, and its new bytes from `from_ns` on.
    received: BTreeMap<u16, RangeSet>,
    new_bytes: u64,
    last_ns: i64,
    /// Arrival times and amounts of data at the servers.
    arrived: Vec<(i64, u64)>,
    /// Bytes in the firmware at the start of each TTI.
    pub(super) held: Vec<(i64, u64)>,
    /// Packets sent by the phone's hosts, passed to the firmware, and dropped above it.
    pub(super) packets: [u64; 3],
    /// How often the gate rejected the modem's log.
    pub(super) log_rejections: u64,
}

impl RunSink for QueueMonitor {
    fn handed_over(&mut self, at_ns: i64, packet: &IpPacket) {
        // Probes are not sent by hosts.
        let is_probe = matches!(packet.transport, Transport::Udp(_)) && packet.dst.port() == ECHO;
        self.packets[1] += u64::from(!is_probe);
        if let Transport::Tcp(segment) = &packet.transport
            && segment.payload_bytes() > 0
        {
            let end = segment.seq.wrapping_add(segment.payload_bytes());
            let twice = self.under_way.contains_key(&(packet.src.port(), end));
            self.under_way.insert((packet.src.port(), end), (!twice).then_some(at_ns));
        }
    }

    fn packet(&mut self, at_ns: i64, point: CapturePoint, packet: &IpPacket) {
        let from_phone = packet.src.ip().is_private();
        self.packets[0] += u64::from(point == CapturePoint::Phone && from_phone);
        let Transport::Tcp(segment) = &packet.transport else { return };
        match point {
            CapturePoint::Phone if !from_phone => {
                let key = (packet.dst.port(), segment.ack);
                if let Some(Some(since_ns)) = self.under_way.remove(&key)
                    && since_ns >= self.from_ns
                {
                    self.rtt_f_ms.push((at_ns - since_ns) as f64 / 1e6);
                }
            }
            CapturePoint::Server if from_phone && segment.payload_bytes() > 0 => {
                let received = self.received.entry(packet.src.port()).or_default();
                let new = received.insert(segment.payload.clone());
                self.arrived.push((at_ns, u64::from(segment.payload_bytes())));
                if at_ns >= self.from_ns {
                    self.new_bytes += new.iter().map(|part| part.end - part.start).sum::<u64>();
                    self.last_ns = at_ns;
                }
            }
            _ => {}
        }
    }

    fn dropped(&mut self, _at_ns: i64, user: UserId, point: DropPoint, _packet: &IpPacket) {
        self.packets[2] += u64::from(user.is_measured() && point == DropPoint::Phone);
    }

    fn log_rejections(&mut self, times: u64) {
        self.log_rejections = times;
    }

    fn firmware(&mut self, at_ns: i64, bytes: u64) {
        self.held.push((at_ns, bytes));
    }
}

impl QueueMonitor {
    /// Ignores values before a time.
    pub(super) fn from_ns(from_ns: i64) -> Self {
        Self { from_ns, ..Self::default() }
    }

    /// Bytes that arrived at the servers between two times in ms of the run.
    pub(super) fn bytes_between(&self, start_ns: i64, (from_ms, to_ms): (i64, i64)) -> u64 {
        let (from_ns, to_ns) = (start_ns + from_ms * 1_000_000, start_ns + to_ms * 1_000_000);
        let arrived = self.arrived.iter().filter(|(at, _)| (from_ns..to_ns).contains(at));
        arrived.map(|(_, bytes)| bytes).sum()
    }

    /// Median RTT_F in ms.
    pub(super) fn rtt_f_ms(&self) -> f64 {
        quantile(&self.rtt_f_ms, 0.5).value
    }

    /// Mbit/s of new data that arrived at the servers; what was lost on the way is not part of
    /// it until it is sent again.
    pub(super) fn mbps(&self) -> f64 {
        self.new_bytes as f64 * 8e3 / (self.last_ns - self.from_ns).max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddrV4};

    use airmile_emulate::tcp::{Flags, TcpSegment};

    use super::*;

    const MS: i64 = 1_000_000;

    fn segment(up: bool, seq: u32, ack: u32, payload: std::ops::Range<u64>) -> IpPacket {
        let phone = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 2), 5_000);
        let server = SocketAddrV4::new(Ipv4Addr::new(203, 0, 113, 1), 443);
        let (src, dst) = if up { (phone, server) } else { (server, phone) };
        let flags = Flags { ack: true, ..Flags::default() };
        let segment = TcpSegment { seq, ack, flags, payload, ..TcpSegment::default() };
        IpPacket { src, dst, ip_id: 0, transport: Transport::Tcp(segment) }
    }

    #[test]
    fn round_trips_begin_at_the_firmware_and_count_once() {
        let mut watch = QueueMonitor::from_ns(0);
        for (n, at_ms) in [(0, 10), (1, 20), (2, 30), (2, 90)] {
            let data = segment(true, 100 * n + 1, 1, u64::from(n) * 100..u64::from(n) * 100 + 100);
            watch.packet((at_ms - 5) * MS, CapturePoint::Phone, &data);
            watch.handed_over(at_ms * MS, &data);
            watch.packet((at_ms + 20) * MS, CapturePoint::Server, &data);
        }
        for (ack, at_ms) in [(101, 60), (201, 80), (301, 200)] {
            watch.packet(at_ms * MS, CapturePoint::Phone, &segment(false, 1, ack, 0..0));
        }
        // 50 and 60 ms; the third was sent twice.
        assert_eq!((watch.rtt_f_ms(), watch.packets), (55.0, [4, 4, 0]));
        // 300 bytes by 110 ms; the last segment is a repetition.
        assert!((watch.mbps() - 2_400.0 / 110e3).abs() < 1e-9, "{}", watch.mbps());
    }

    /// Cubic's slow start in a full queue loses every other packet: what follows a gap is no
    /// proof that the gap arrived.
    #[test]
    fn what_was_lost_has_not_arrived() {
        let mut watch = QueueMonitor::from_ns(10 * MS);
        for (at_ms, range) in [(5, 0..100), (20, 200..300), (30, 400..500), (40, 100..200)] {
            let data = segment(true, 1, 1, range);
            watch.packet(at_ms * MS, CapturePoint::Server, &data);
        }
        // 300 bytes of 500 in 30 ms.
        assert!((watch.mbps() - 2_400.0 / 30e3).abs() < 1e-9, "{}", watch.mbps());
    }
}
