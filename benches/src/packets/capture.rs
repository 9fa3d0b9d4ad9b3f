//! A capture of headers alone: downloads over IPv4, some of which lose segments after the
//! monitor. The same arguments give the same bytes.

use std::cmp::Reverse;
use std::io::{Result, Write};

/// Payload of a full segment with time stamps.
const MSS: u32 = 1448;
/// Between rounds of a flow, in nanoseconds.
const RTT_NS: u64 = 50_000_000;
/// From a segment at the monitor to its ACK there.
const BACK_NS: u64 = 30_000_000;
/// Between segments of one round.
const SPACE_NS: u64 = 250_000;

/// The size of a capture.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    pub flows: u32,
    /// Segments of each flow with payload from the server, without retransmissions.
    pub segments: u32,
    /// Flows begin evenly within this.
    pub span_ns: u64,
    /// Whether flows end with FINs, or stay open.
    pub closes: bool,
    /// Unacknowledged segments at the end of each flow.
    pub outstanding: u32,
}

#[derive(Clone, Copy)]
struct Sent {
    at_ns: u64,
    flow: u32,
    down: bool,
    flags: u8,
    seq: u32,
    ack: u32,
    bytes: u32,
    sack: Option<(u32, u32)>,
}

/// Writes a pcap file of the flows' packets in order of time; returns their number.
pub fn generate(shape: Shape, out: &mut impl Write) -> Result<u64> {
    let mut packets = Vec::new();
    for flow in 0..shape.flows {
        let begin = u64::from(flow) * shape.span_ns / u64::from(shape.flows.max(1));
        flow_packets(flow, begin, shape, &mut packets);
    }
    packets.sort_unstable_by_key(|p| (p.at_ns, p.flow, p.down, p.seq, Reverse(p.ack)));
    // Nanoseconds, version 2.4, 96 bytes of each frame, Ethernet.
    for word in [0xa1b2_3c4d_u32, 4 << 16 | 2, 0, 0, 96, 1] {
        out.write_all(&word.to_le_bytes())?;
    }
    let mut record = Vec::new();
    let mut ids = vec![[0_u16; 2]; shape.flows as usize];
    for packet in &packets {
        let id = ids.get_mut(packet.flow as usize).map_or(0, |ids| {
            let id = &mut ids[usize::from(packet.down)];
            *id = id.wrapping_add(1);
            *id
        });
        record.clear();
        write(packet, id, &mut record);
        out.write_all(&record)?;
    }
    Ok(packets.len() as u64)
}

fn flow_packets(flow: u32, begin: u64, shape: Shape, out: &mut Vec<Sent>) {
    const FIN: u8 = 1;
    const SYN: u8 = 2;
    const ACK: u8 = 16;
    let (client, server) = (flow.wrapping_mul(2_654_435_761), flow.wrapping_mul(40_503) ^ 77);
    let packet = |at_ns, down, flags, seq, ack, bytes| Sent {
        at_ns: begin + at_ns,
        flow,
        down,
        flags,
        seq,
        ack,
        bytes,
        sack: None,
    };
    let (asked, first) = (client.wrapping_add(301), server.wrapping_add(1));
    out.push(packet(0, false, SYN, client, 0, 0));
    out.push(packet(20_000_000, true, SYN | ACK, server, client.wrapping_add(1), 0));
    out.push(packet(50_000_000, false, ACK, client.wrapping_add(1), first, 0));
    out.push(packet(50_100_000, false, ACK, client.wrapping_add(1), first, 300));
    let seq_of = |segment: u32| first.wrapping_add(segment * MSS);
    let (mut now, mut next, mut window) = (70_000_000, 0, 4);
    // One in four loses a segment in a hundred.
    let loses = |segment: u32| flow % 4 == 3 && (segment * 7 + flow) % 100 == 50;
    while next < shape.segments {
        let end = (next + window).min(shape.segments);
        let mut hole = None;
        for (n, segment) in (next..end).enumerate() {
            let at = now + n as u64 * SPACE_NS;
            out.push(packet(at, true, ACK, seq_of(segment), asked, MSS));
            let back = at + BACK_NS;
            if let Some(hole) = hole {
                let sack = Some((seq_of(hole + 1), seq_of(segment + 1)));
                out.push(Sent { sack, ..packet(back, false, ACK, asked, seq_of(hole), 0) });
            } else if loses(segment) {
                hole = Some(segment);
            } else if n % 2 == 1 || segment + 1 == end {
                out.push(packet(back, false, ACK, asked, seq_of(segment + 1), 0));
            }
        }
        now += RTT_NS.max(u64::from(window) * SPACE_NS + BACK_NS);
        if let Some(hole) = hole {
            out.push(packet(now, true, ACK, seq_of(hole), asked, MSS));
            out.push(packet(now + BACK_NS, false, ACK, asked, seq_of(end), 0));
            now += RTT_NS;
            window = (window / 2).max(4);
        } else {
            window = (window + window / 2).min(40);
        }
        next = end;
    }
    for n in 0..shape.outstanding {
        let at = now + u64::from(n) * SPACE_NS;
        out.push(packet(at, true, ACK, seq_of(next + n), asked, MSS));
    }
    if shape.closes {
        let last = seq_of(next);
        out.push(packet(now, true, FIN | ACK, last, asked, 0));
        out.push(packet(now + BACK_NS, false, FIN | ACK, asked, last.wrapping_add(1), 0));
        out.push(packet(now + RTT_NS, true, ACK, last.wrapping_add(1), asked.wrapping_add(1), 0));
    }
}

/// A record of pcap: Ethernet, IPv4 and TCP headers, no payload. Checksums are 0.
fn write(packet: &Sent, id: u16, out: &mut Vec<u8>) {
    let millis = (packet.at_ns / 1_000_000) as u32;
    let mut options = vec![1, 1, 8, 10];
    options.extend(millis.to_be_bytes());
    options.extend(millis.saturating_sub(30).to_be_bytes());
    if packet.flags & 2 != 0 {
        options.extend([2, 4, 5, 180, 4, 2, 1, 3, 3, 7, 1, 1]);
    }
    if let Some((left, right)) = packet.sack {
        options.extend([1, 1, 5, 10]);
        options.extend(left.to_be_bytes());
        options.extend(right.to_be_bytes());
    }
    let headers = 40 + options.len() as u32;
    let at_ns = packet.at_ns + 1_500_000_000_000_000_000;
    let seconds = [(at_ns / 1_000_000_000) as u32, (at_ns % 1_000_000_000) as u32];
    for word in [seconds[0], seconds[1], 14 + headers, 14 + headers + packet.bytes] {
        out.extend(word.to_le_bytes());
    }
    out.extend([2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0]);
    // The clients are in 10.0.0.0/8, with four flows each.
    let client = 0x0a00_0000 + packet.flow / 4;
    let server = 0xc612_0000 + packet.flow % 500;
    let client_port = 20_000 + (packet.flow % 40_000) as u16;
    let (ends, ports) = if packet.down {
        ([server, client], [443, client_port])
    } else {
        ([client, server], [client_port, 443])
    };
    out.extend([0x45, 0]);
    out.extend(((headers + packet.bytes) as u16).to_be_bytes());
    out.extend(id.to_be_bytes());
    out.extend([0x40, 0, 64, 6, 0, 0]);
    ends.iter().for_each(|end| out.extend(end.to_be_bytes()));
    ports.iter().for_each(|port| out.extend(port.to_be_bytes()));
    out.extend(packet.seq.to_be_bytes());
    out.extend(packet.ack.to_be_bytes());
    out.push(((20 + options.len()) / 4 * 16) as u8);
    out.push(packet.flags);
    out.extend([0x20, 0, 0, 0, 0, 0]);
    out.extend(options);
}
