//! The yardstick: walks the records, reads the headers with the time stamp
//! option, looks the flow up and counts its packets. Nothing is checked beyond
//! what that needs.

use std::collections::HashMap;

use foldhash::fast::FixedState;

#[derive(Default)]
struct Counts {
    packets: u64,
    bytes: u64,
    last_seq: u32,
    last_ticks: u32,
}

/// Packets of the flows found in a little-endian pcap file of Ethernet and IPv4.
pub fn packets(capture: &[u8]) -> u64 {
    let mut flows: HashMap<(u64, u64), Counts, FixedState> = HashMap::default();
    let mut at = 24;
    while let Some(head) = capture.get(at..).and_then(|rest| rest.first_chunk::<16>()) {
        let captured = u32::from_le_bytes([head[8], head[9], head[10], head[11]]) as usize;
        let Some(frame) = capture.get(at + 16..at + 16 + captured) else { break };
        at += 16 + captured;
        one(frame, &mut flows);
    }
    flows.values().map(|counts| counts.packets).sum()
}

fn one(frame: &[u8], flows: &mut HashMap<(u64, u64), Counts, FixedState>) -> Option<()> {
    let ip = frame.get(14..)?.first_chunk::<20>()?;
    if frame.get(12..14)? != [8, 0] || ip[9] != 6 {
        return None;
    }
    let header = usize::from(ip[0] & 15) * 4;
    let tcp = frame.get(14 + header..)?;
    let fixed = tcp.first_chunk::<20>()?;
    let word = |at: usize| u32::from_be_bytes([ip[at], ip[at + 1], ip[at + 2], ip[at + 3]]);
    let src = u64::from(word(12)) << 16 | u64::from(u16::from_be_bytes([fixed[0], fixed[1]]));
    let dst = u64::from(word(16)) << 16 | u64::from(u16::from_be_bytes([fixed[2], fixed[3]]));
    let counts = flows.entry((src.min(dst), src.max(dst))).or_default();
    let options = usize::from(fixed[12] >> 4) * 4;
    counts.packets += 1;
    counts.bytes += u64::from(u16::from_be_bytes([ip[2], ip[3]])) - (header + options) as u64;
    counts.last_seq = u32::from_be_bytes([fixed[4], fixed[5], fixed[6], fixed[7]]);
    counts.last_ticks = ticks(tcp.get(20..options)?).unwrap_or(counts.last_ticks);
    Some(())
}

/// TSval (RFC 7323, 3.2).
fn ticks(mut options: &[u8]) -> Option<u32> {
    loop {
        match options {
            [1, rest @ ..] => options = rest,
            [8, 10, a, b, c, d, ..] => return Some(u32::from_be_bytes([*a, *b, *c, *d])),
            [_, length, ..] if *length >= 2 => options = options.get(usize::from(*length)..)?,
            _ => return None,
        }
    }
}
