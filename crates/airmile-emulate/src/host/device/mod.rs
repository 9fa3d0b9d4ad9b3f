//! The measured phone's operating system between its hosts and the firmware's buffer.

mod modem_log;

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddrV4};

use airmile_control::qcut::{
    AutorateConfig, BufferEvidence, ClassConfig, CodelConfig, DelayConfig, GateBench, Htb,
    PacketInfo, ProbeId, Qcut, QcutConfig, QueueConfig, SmallQueues, StoppedUploads, TCP, UDP,
};
use airmile_model::Record;
use airmile_model::units::MS_NS;

use crate::net::{IPV4_HEADER_BYTES, IpPacket, Transport, UDP_HEADER_BYTES};
use crate::scenario::{Discipline, UplinkQueueConfig};
use modem_log::ModemLog;

/// Host that answers probes (TEST-NET-2, RFC 5737), beyond the core network.
const REFLECTOR: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);

/// Echo (RFC 862).
const ECHO: u16 = 7;

/// The queueing of a phone.
#[derive(Debug, Clone)]
pub(crate) struct Device {
    address: Ipv4Addr,
    qcut: Qcut<IpPacket>,
    bench: GateBench<IpPacket>,
    log: ModemLog,
    /// Packets in transit from the gate to the firmware, with their arrival times.
    on_the_way: VecDeque<(i64, IpPacket)>,
    host_ns: i64,
}

impl Device {
    pub(crate) fn new(config: &UplinkQueueConfig, address: Ipv4Addr, start_ns: i64) -> Self {
        let bench = match config.discipline {
            Discipline::Tsq { flow_bytes } => {
                GateBench::Sockets(SmallQueues::new(flow_bytes, describe))
            }
            Discipline::Htb { every_ms, .. } => {
                GateBench::Htb(Box::new(Htb::new(every_ms, config.packets)))
            }
            Discipline::Stop { .. } => GateBench::Stop(StoppedUploads::default()),
            _ => GateBench::Gate,
        };
        Self {
            address,
            qcut: Qcut::new(qcut(config)),
            bench,
            log: ModemLog::new(&config.modem_log, start_ns),
            on_the_way: VecDeque::new(),
            host_ns: i64::from(config.modem_log.host_ms) * MS_NS,
        }
    }

    /// A packet sent by a host of the phone.
    pub(crate) fn push(&mut self, now_ns: i64, packet: IpPacket) {
        self.bench.push(&mut self.qcut, now_ns, describe(&packet), packet);
    }

    /// The next packet for the firmware, if one may pass; call only while the firmware has
    /// room.
    pub(crate) fn poll(&mut self, now_ns: i64) -> Option<IpPacket> {
        if self.host_ns == 0 {
            return self.pass(now_ns);
        }
        while let Some(packet) = self.pass(now_ns) {
            self.on_the_way.push_back((now_ns + self.host_ns, packet));
        }
        self.on_the_way.front().filter(|(due, _)| *due <= now_ns)?;
        self.on_the_way.pop_front().map(|(_, packet)| packet)
    }

    /// The next packet that the gate passes.
    fn pass(&mut self, now_ns: i64) -> Option<IpPacket> {
        if let Some(probe) = self.qcut.poll_probe(now_ns) {
            return Some(self.probe(probe));
        }
        self.bench.pop(&mut self.qcut, now_ns)
    }

    /// A packet that was dropped.
    pub(crate) fn poll_dropped(&mut self, now_ns: i64) -> Option<IpPacket> {
        self.bench.poll_dropped(&mut self.qcut, now_ns)
    }

    /// A record written by the modem.
    pub(crate) fn record(&mut self, record: &Record) {
        self.log.push(record);
    }

    /// Processes the part of the modem's log that is readable by now.
    pub(crate) fn read_log(&mut self, now_ns: i64) {
        while let Some(report) = self.log.poll(now_ns) {
            self.qcut.report(now_ns, report);
        }
    }

    /// How often the gate has rejected the modem's log.
    pub(crate) const fn log_rejections(&self) -> u64 {
        self.qcut.log_rejections()
    }

    /// A packet arrives at the phone. Returns true if it answers a probe and is for no
    /// host.
    pub(crate) fn arrived(&mut self, now_ns: i64, packet: &IpPacket) -> bool {
        match &packet.transport {
            Transport::Udp(payload) if *packet.src.ip() == REFLECTOR => {
                if let Some(number) = payload.first_chunk() {
                    self.qcut.probe_answered(now_ns, ProbeId(u64::from_be_bytes(*number)));
                }
                return true;
            }
            Transport::Tcp(segment) if segment.flags.ack => {
                let flow = flow_key(packet.dst, packet.src, TCP);
                let blocks = segment.sack.iter().map(|block| block.end_seq);
                for ack in std::iter::once(segment.ack).chain(blocks) {
                    self.qcut.acknowledged(now_ns, flow, ack);
                }
            }
            _ => {}
        }
        false
    }

    fn probe(&self, ProbeId(number): ProbeId) -> IpPacket {
        let headers = IPV4_HEADER_BYTES + UDP_HEADER_BYTES;
        let mut payload = number.to_be_bytes().to_vec();
        payload.resize((Qcut::<IpPacket>::PROBE_BYTES - headers) as usize, 0);
        IpPacket {
            src: SocketAddrV4::new(self.address, ECHO),
            dst: SocketAddrV4::new(REFLECTOR, ECHO),
            // Truncated to the 16 bits of the field.
            ip_id: (number % 0x1_0000) as u16,
            transport: Transport::Udp(payload),
        }
    }
}

/// The answer to a probe; `None` if the packet is not a probe.
pub(crate) fn reflect(packet: &IpPacket) -> Option<IpPacket> {
    let is_probe = *packet.dst.ip() == REFLECTOR && packet.dst.port() == ECHO;
    is_probe.then(|| IpPacket { src: packet.dst, dst: packet.src, ..packet.clone() })
}

/// The parameters of a queueing discipline.
fn qcut(config: &UplinkQueueConfig) -> QcutConfig {
    let max_packets = config.packets as usize;
    let one_queue = |codel: Option<u32>| QueueConfig {
        flows: false,
        classes: ClassConfig::none(),
        codel: codel.map(with_target),
        max_packets,
        ..QueueConfig::default()
    };
    let flows = QueueConfig { max_packets, ..QueueConfig::default() };
    let open = QcutConfig { evidence: BufferEvidence::Nothing, ..QcutConfig::default() };
    match config.discipline {
        Discipline::Fifo | Discipline::Tsq { .. } => QcutConfig { queue: one_queue(None), ..open },
        Discipline::Codel { target_ms } => QcutConfig { queue: one_queue(Some(target_ms)), ..open },
        Discipline::FqCodel { target_ms } => {
            let codel = Some(with_target(target_ms));
            let classes = ClassConfig::none();
            QcutConfig { queue: QueueConfig { codel, classes, ..flows }, ..open }
        }
        Discipline::Qcut { limit } | Discipline::Stop { limit } | Discipline::Htb { limit, .. } => {
            QcutConfig { limit, evidence: BufferEvidence::Modem, queue: flows, ..open }
        }
        Discipline::RoundTrips { limit, told_base_ms } => {
            let oracle_base_rtt_ns = told_base_ms.map(|ms| i64::from(ms) * MS_NS);
            let delay = DelayConfig { oracle_base_rtt_ns, ..DelayConfig::default() };
            QcutConfig { limit, evidence: BufferEvidence::RoundTrips, queue: flows, delay, ..open }
        }
        Discipline::Autorate { start_bps } => {
            let autorate = AutorateConfig { start_bps, ..AutorateConfig::default() };
            QcutConfig { evidence: BufferEvidence::Autorate, queue: flows, autorate, ..open }
        }
    }
}

fn with_target(target_ms: u32) -> CodelConfig {
    CodelConfig { target_ns: i64::from(target_ms) * MS_NS, ..CodelConfig::default() }
}

/// A flow of the phone, identified by its ports and the remote address.
fn flow_key(near: SocketAddrV4, far: SocketAddrV4, protocol: u8) -> u64 {
    let address = u64::from(u32::from(*far.ip()));
    // All protocols other than TCP count as one.
    let is_tcp = u64::from(protocol == TCP);
    (u64::from(near.port()) << 48 | u64::from(far.port()) << 32 | address) ^ is_tcp << 31
}

/// The properties of a packet that a queue uses.
fn describe(packet: &IpPacket) -> PacketInfo {
    let info = |protocol| PacketInfo {
        flow: flow_key(packet.src, packet.dst, protocol),
        far: u32::from(*packet.dst.ip()).into(),
        bytes: packet.ip_bytes(),
        protocol,
        near_port: packet.src.port(),
        far_port: packet.dst.port(),
        ..PacketInfo::default()
    };
    match &packet.transport {
        Transport::Tcp(segment) => {
            let bytes = segment.payload_bytes();
            let flags = segment.flags;
            let end = (bytes > 0).then(|| segment.seq.wrapping_add(bytes));
            PacketInfo {
                pure_ack: bytes == 0 && flags.ack && !flags.syn && !flags.fin && !flags.rst,
                tcp_end: end,
                ..info(TCP)
            }
        }
        Transport::Udp(_) => info(UDP),
        // IPv4's type of service and protocol (RFC 791, 3.1).
        Transport::Raw(bytes) => PacketInfo {
            dscp: bytes.get(1).map_or(0, |tos| tos >> 2),
            ..info(bytes.get(9).copied().unwrap_or(0))
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::tcp::{Flags, TcpSegment};

    fn segment(port: u16, bytes: u64) -> IpPacket {
        let flags = Flags { ack: true, ..Flags::default() };
        let segment = TcpSegment { seq: 1_000, flags, payload: 0..bytes, ..TcpSegment::default() };
        IpPacket {
            src: SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 2), port),
            dst: SocketAddrV4::new(Ipv4Addr::new(203, 0, 113, 1), 443),
            ip_id: 0,
            transport: Transport::Tcp(segment),
        }
    }

    #[test]
    fn packets_are_described() {
        let of = |packet: &IpPacket| {
            let info = describe(packet);
            (info.bytes, info.protocol, info.pure_ack, info.tcp_end)
        };
        assert_eq!(of(&segment(40_000, 100)), (140, 6, false, Some(1_100)));
        assert_eq!(of(&segment(40_000, 0)), (40, 6, true, None));
        let udp = IpPacket { transport: Transport::Udp(vec![0; 72]), ..segment(40_000, 0) };
        assert_eq!(of(&udp), (100, 17, false, None));
        assert_ne!(describe(&udp).flow, describe(&segment(40_000, 0)).flow);
        let mut raw = vec![0; 60];
        (raw[1], raw[9]) = (46 << 2, 17);
        let raw = IpPacket { transport: Transport::Raw(raw), ..segment(40_000, 0) };
        assert_eq!((describe(&raw).dscp, of(&raw)), (46, (60, 17, false, None)));
    }

    #[test]
    fn a_socket_waits_for_room_in_the_queue() {
        let config = UplinkQueueConfig {
            discipline: Discipline::Tsq { flow_bytes: 2_000 },
            packets: 10,
            modem_log: Default::default(),
        };
        let mut device = Device::new(&config, Ipv4Addr::new(10, 0, 0, 2), 0);
        for _ in 0..4 {
            device.push(0, segment(1, 960));
        }
        device.push(0, segment(2, 960));
        // Two of the first flow in the queue, then one of the other; the third of the first
        // comes after it.
        let ports: Vec<u16> =
            std::iter::from_fn(|| device.poll(0)).map(|packet| packet.src.port()).collect();
        assert_eq!(ports, [1, 1, 2, 1, 1]);
    }

    #[test]
    fn probes_come_back() {
        let config = UplinkQueueConfig {
            discipline: Discipline::Autorate { start_bps: 5_000_000 },
            packets: 10,
            modem_log: Default::default(),
        };
        let mut device = Device::new(&config, Ipv4Addr::new(10, 0, 0, 2), 0);
        let probe = device.poll(0).unwrap();
        assert_eq!(probe.ip_bytes(), 84);
        assert!(reflect(&segment(1, 5)).is_none());
        let answer = reflect(&probe).unwrap();
        assert!(device.arrived(40 * MS_NS, &answer) && !device.arrived(0, &segment(1, 0)));
    }
}
