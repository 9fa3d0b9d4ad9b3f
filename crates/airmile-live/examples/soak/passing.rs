//! A day of an interface: connections that begin and end, and ones that never end.

use airmile::live::packets::{KEPT_FLOWS, LivePackets, MAX_FLOWS};

/// Answered and closed connections per second (chosen here: a home's).
const CONNECTIONS_PER_S: u64 = 20;
/// Unanswered SYNs per second (chosen here: a scan).
const SCANNED_PER_S: u64 = 20;
/// Interval of the engine's evaluation, in seconds of the packets' time: a live engine
/// does it four times a second.
const LOOK_EVERY_S: u64 = 10;
const START_S: u64 = 1_700_000_000;
const SYN: u8 = 2;
const ACK: u8 = 16;
const FIN: u8 = 1;
const CLIENT: [u8; 4] = [10, 0, 0, 1];
const SERVER: [u8; 4] = [192, 0, 2, 1];

/// The packets of some hours. Returns the maximum number of open connections, and how many ended.
pub fn pass(hours: f64, each_hour: &mut dyn FnMut(u64)) -> (u64, u64) {
    let mut live = LivePackets::new();
    let mut pcap = Pcap::default();
    pcap.header();
    let (mut most_open, mut over) = (0, 0);
    for second in 0..(hours * 3600.0) as u64 {
        for n in 0..CONNECTIONS_PER_S {
            pcap.connection(second, second * CONNECTIONS_PER_S + n);
        }
        for n in 0..SCANNED_PER_S {
            pcap.syn(second, second * SCANNED_PER_S + n);
        }
        live.push(&pcap.bytes);
        pcap.bytes.clear();
        if second % LOOK_EVERY_S == 0 {
            let view = live.look(Some(((START_S + second) * 1_000_000_000) as i64));
            assert!(view.flows.len() <= KEPT_FLOWS && view.ended.len() <= KEPT_FLOWS);
            most_open = most_open.max(view.flows_open);
            live.take_ended();
            over = view.flows_total;
        }
        if second % 3600 == 0 {
            each_hour(second / 3600);
        }
    }
    assert!(most_open <= MAX_FLOWS as u64);
    (most_open, over)
}

/// A pcap under construction: IPv4 without link headers (LINKTYPE_RAW).
#[derive(Default)]
struct Pcap {
    bytes: Vec<u8>,
}

/// One segment.
struct Segment<'a> {
    at_s: u64,
    us: u32,
    up: bool,
    client: [u8; 4],
    port: u16,
    flags: u8,
    seq: u32,
    ack: u32,
    payload: &'a [u8],
}

impl Pcap {
    fn header(&mut self) {
        for field in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 101] {
            self.bytes.extend(field.to_le_bytes());
        }
    }

    fn segment(&mut self, segment: &Segment<'_>) {
        let length = 40 + segment.payload.len();
        for field in [(START_S + segment.at_s) as u32, segment.us, length as u32, length as u32] {
            self.bytes.extend(field.to_le_bytes());
        }
        let (src, dst) =
            if segment.up { (segment.client, SERVER) } else { (SERVER, segment.client) };
        let ports = if segment.up { (segment.port, 80) } else { (80, segment.port) };
        self.bytes.extend([0x45, 0]);
        self.bytes.extend((length as u16).to_be_bytes());
        self.bytes.extend([0, 0, 0, 0, 64, 6, 0, 0]);
        self.bytes.extend([src, dst].concat());
        self.bytes.extend([ports.0.to_be_bytes(), ports.1.to_be_bytes()].concat());
        self.bytes.extend([segment.seq.to_be_bytes(), segment.ack.to_be_bytes()].concat());
        self.bytes.extend([0x50, segment.flags, 0xff, 0xff, 0, 0, 0, 0]);
        self.bytes.extend(segment.payload);
    }

    /// A request with its own name and content type, answered and closed.
    fn connection(&mut self, at_s: u64, number: u64) {
        let port = 1_024 + (number % 64_000) as u16;
        let ask = format!("GET / HTTP/1.1\r\nHost: n{number}.example\r\n\r\n");
        let answer =
            format!("HTTP/1.1 200 OK\r\nContent-Type: x/{number}\r\nContent-Length: 4\r\n\r\nokok");
        let (asked, answered) = (1 + ask.len() as u32, 1 + answer.len() as u32);
        let steps: [(bool, u8, u32, u32, &[u8]); 7] = [
            (true, SYN, 0, 0, b""),
            (false, SYN | ACK, 0, 1, b""),
            (true, ACK, 1, 1, ask.as_bytes()),
            (false, ACK, 1, asked, answer.as_bytes()),
            (true, ACK | FIN, asked, answered, b""),
            (false, ACK | FIN, answered, asked + 1, b""),
            (true, ACK, asked + 1, answered + 1, b""),
        ];
        for (n, (up, flags, seq, ack, payload)) in steps.into_iter().enumerate() {
            let us = (number % CONNECTIONS_PER_S * 40_000) as u32 + n as u32 * 5_000;
            self.segment(&Segment { at_s, us, up, client: CLIENT, port, flags, seq, ack, payload });
        }
    }

    /// A SYN of a host that is never seen again.
    fn syn(&mut self, at_s: u64, number: u64) {
        let client = [100, (number >> 16) as u8, (number >> 8) as u8, number as u8];
        let us = 999_000 + (number % SCANNED_PER_S) as u32;
        let (port, payload) = (40_000, &[][..]);
        self.segment(&Segment {
            at_s,
            us,
            up: true,
            client,
            port,
            flags: SYN,
            seq: 7,
            ack: 0,
            payload,
        });
    }
}
