//! The baseline: reads a capture in large blocks, walks its records, parses Ethernet with
//! VLAN tags, IPv4 with options, IPv6 with extension headers, and TCP or UDP, each length
//! checked against the captured length and the previous header, looks the flow up in a
//! hash map by its bidirectional 5-tuple, and counts: packets, bytes, first and last
//! time, last sequence number and TSval. No tunnels, no other link types, no damaged
//! files, no analysis.

use std::collections::HashMap;
use std::io::Read;

use foldhash::fast::FixedState;

/// The block size of `airmile packets`.
const BLOCK_BYTES: usize = 2 * 1024 * 1024;

/// A 5-tuple: the lower end first.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    ends: [(u128, u16); 2],
    protocol: u8,
}

#[derive(Default)]
struct Counts {
    packets: [u64; 2],
    bytes: [u64; 2],
    first_ns: u64,
    last_ns: u64,
    last_seq: [u32; 2],
    last_ticks: [u32; 2],
    flags: u8,
}

type Flows = HashMap<Key, Counts, FixedState>;

/// Packets of the flows found in a little-endian pcap file of Ethernet.
pub fn packets(mut capture: impl Read) -> std::io::Result<u64> {
    let mut flows = Flows::default();
    let mut block = vec![0; BLOCK_BYTES];
    let (mut filled, mut at) = (0, 24);
    loop {
        let n = capture.read(block.get_mut(filled..).unwrap_or_default())?;
        if n == 0 {
            break;
        }
        filled += n;
        while let Some((record, frame)) = next(&block[..filled], at) {
            at += 16 + frame.len();
            one(record, frame, &mut flows);
        }
        block.copy_within(at..filled, 0);
        filled -= at;
        at = 0;
    }
    Ok(flows.values().map(|counts| counts.packets.iter().sum::<u64>()).sum())
}

/// Time and frame of the record at an offset.
fn next(block: &[u8], at: usize) -> Option<(u64, &[u8])> {
    let head = block.get(at..)?.first_chunk::<16>()?;
    let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let frame = block.get(at + 16..at + 16 + word(8) as usize)?;
    Some((u64::from(word(0)) * 1_000_000_000 + u64::from(word(4)), frame))
}

/// The IP header: both addresses, protocol, payload, and its length on the wire.
struct Ip<'a> {
    src: u128,
    dst: u128,
    protocol: u8,
    bytes: usize,
    above: &'a [u8],
}

fn one(at_ns: u64, frame: &[u8], flows: &mut Flows) -> Option<()> {
    let mut network = frame.get(12..)?;
    let ip = loop {
        match network {
            [0x08, 0x00, packet @ ..] => break v4(packet)?,
            [0x86, 0xdd, packet @ ..] => break v6(packet)?,
            // IEEE 802.1Q and 802.1ad: two bytes of tag, then the next EtherType.
            [0x81, 0x00, _, _, rest @ ..] | [0x88, 0xa8, _, _, rest @ ..] => network = rest,
            _ => return None,
        }
    };
    let ports = ip.above.first_chunk::<4>()?;
    let src = (ip.src, u16::from_be_bytes([ports[0], ports[1]]));
    let dst = (ip.dst, u16::from_be_bytes([ports[2], ports[3]]));
    let (header, seq, flags, ticks) = match ip.protocol {
        6 => tcp(ip.above)?,
        17 => (8, 0, 0, None),
        _ => return None,
    };
    let up = src <= dst;
    let ends = if up { [src, dst] } else { [dst, src] };
    let counts = flows.entry(Key { ends, protocol: ip.protocol }).or_default();
    let way = usize::from(up);
    if counts.first_ns == 0 {
        counts.first_ns = at_ns;
    }
    counts.last_ns = at_ns;
    counts.packets[way] += 1;
    counts.bytes[way] += ip.bytes.checked_sub(header)? as u64;
    counts.last_seq[way] = seq;
    counts.last_ticks[way] = ticks.unwrap_or(counts.last_ticks[way]);
    counts.flags |= flags;
    Some(())
}

fn v4(data: &[u8]) -> Option<Ip<'_>> {
    let fixed = data.first_chunk::<20>()?;
    let header = usize::from(fixed[0] & 15) * 4;
    let total = usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
    let later_fragment = u16::from_be_bytes([fixed[6], fixed[7]]) & 0x1fff != 0;
    if fixed[0] >> 4 != 4 || header < 20 || total < header || later_fragment {
        return None;
    }
    let address = |at: usize| {
        u128::from(u32::from_be_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]))
    };
    Some(Ip {
        src: address(12) | 0xffff_0000_0000,
        dst: address(16) | 0xffff_0000_0000,
        protocol: fixed[9],
        bytes: total - header,
        above: data.get(header..data.len().min(total))?,
    })
}

fn v6(data: &[u8]) -> Option<Ip<'_>> {
    let fixed = data.first_chunk::<40>()?;
    let address = |at: usize| Some(u128::from_be_bytes(*fixed.get(at..)?.first_chunk::<16>()?));
    let mut bytes = usize::from(u16::from_be_bytes([fixed[4], fixed[5]]));
    let mut above = data.get(40..data.len().min(40 + bytes))?;
    let mut protocol = fixed[6];
    // RFC 8200, 4: hop-by-hop options, routing, destination options; a first fragment.
    while let 0 | 43 | 44 | 60 = protocol {
        let header = above.first_chunk::<8>()?;
        let later_fragment = u16::from_be_bytes([header[2], header[3]]) & 0xfff8 != 0;
        let length = if protocol == 44 { 8 } else { usize::from(header[1]) * 8 + 8 };
        if protocol == 44 && later_fragment {
            return None;
        }
        (protocol, bytes, above) = (header[0], bytes.checked_sub(length)?, above.get(length..)?);
    }
    Some(Ip { src: address(8)?, dst: address(24)?, protocol, bytes, above })
}

/// Header length, sequence number, flags and TSval.
fn tcp(above: &[u8]) -> Option<(usize, u32, u8, Option<u32>)> {
    let fixed = above.first_chunk::<20>()?;
    let header = usize::from(fixed[12] >> 4) * 4;
    if header < 20 {
        return None;
    }
    let seq = u32::from_be_bytes([fixed[4], fixed[5], fixed[6], fixed[7]]);
    let options = above.get(20..header.min(above.len()))?;
    Some((header, seq, fixed[13], ticks(options)))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Ethernet, the headers between it and UDP, and UDP from port 7 to 9 or back.
    fn frame(between: &[u8], back: bool) -> Vec<u8> {
        let ports = if back { [0, 9, 0, 7] } else { [0, 7, 0, 9] };
        [&[2; 12], between, &ports, &[0, 8, 0, 0]].concat()
    }

    #[track_caller]
    fn check(frames: &[Vec<u8>], expected: &[u64]) {
        let mut flows = Flows::default();
        frames.iter().for_each(|frame| _ = one(1, frame, &mut flows));
        let packets = flows.values().map(|counts| counts.packets.iter().sum::<u64>());
        assert_eq!(packets.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn tags_options_and_extension_headers() {
        let v4 = [8, 0, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 1];
        let tagged = [&[0x88, 0xa8, 0, 1, 0x81, 0, 0, 2][..], &v4].concat();
        check(&[frame(&v4, false), frame(&tagged, true)], &[2]);
        let mut v6 = [&[0x86, 0xdd, 0x60, 0, 0, 0, 0, 8, 17, 64][..], &[1; 32]].concat();
        check(&[frame(&v6, false), frame(&v6, true)], &[2]);
        (v6[7], v6[8]) = (24, 60);
        v6.extend([0, 0, 1, 4, 0, 0, 0, 0, 17, 0, 1, 4, 0, 0, 0, 0]);
        check(&[frame(&v6, false)], &[1]);
        // Truncated in the extension headers, or longer than IP states.
        check(&[frame(&v6, false)[..60].to_vec()], &[]);
        v6[7] = 15;
        check(&[frame(&v6, false)], &[]);
    }
}
