//! What nearly every frame is: Ethernet without tags, IPv4 without options, whole,
//! TCP. Read in one go; anything else is left to the long way, which gives the same
//! of such a frame (`tests` hold it).

use airmile_model::packet::{Address, Packet, SeqNum, TcpFlags, TcpHeader, Transport};

use super::capture::Frame;
use super::tcp;

/// Ethernet (14 bytes), IPv4 (20) and TCP (20) without options.
const HEADERS: usize = 54;
const IP: usize = 14;
const TCP: usize = 34;

/// The packet, or `None` where the frame is of another kind.
#[inline(always)]
#[allow(clippy::inline_always, reason = "the packet is made where it is used, not copied there")]
pub(super) fn read<'a>(frame: &Frame<'a>) -> Option<Packet<'a>> {
    let data = frame.data;
    let head = data.first_chunk::<HEADERS>()?;
    let u16_at = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let u32_at =
        |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let total = usize::from(u16_at(IP + 2));
    let header_bytes = usize::from(head[TCP + 12] >> 4) * 4;
    // EtherType; version and header length; neither offset nor more fragments; TCP.
    let usual = u16_at(12) == 0x0800
        && head[IP] == 0x45
        && u16_at(IP + 6) & 0x3fff == 0
        && head[IP + 9] == 6
        && header_bytes >= 20
        && total >= 20 + header_bytes;
    if !usual {
        return None;
    }
    // What is behind the packet is padding of the link.
    let end = data.len().min(IP + total);
    let mut header = TcpHeader {
        seq: SeqNum(u32_at(TCP + 4)),
        ack: SeqNum(u32_at(TCP + 8)),
        flags: TcpFlags(head[TCP + 13]),
        window: u16_at(TCP + 14),
        checksum: u16_at(TCP + 16),
        options_cut: end < TCP + header_bytes,
        ..TcpHeader::default()
    };
    if header_bytes > 20 {
        let options = data.get(HEADERS..end.min(TCP + header_bytes))?;
        tcp::read_options(&mut header, options);
    }
    Some(Packet {
        at_ns: frame.at_ns,
        src: Address::v4([head[IP + 12], head[IP + 13], head[IP + 14], head[IP + 15]]),
        dst: Address::v4([head[IP + 16], head[IP + 17], head[IP + 18], head[IP + 19]]),
        src_port: u16_at(TCP),
        dst_port: u16_at(TCP + 2),
        protocol: 6,
        transport: Transport::Tcp(header),
        ip_id: Some(u16_at(IP + 4)),
        ip_bytes: total as u32,
        payload_bytes: (total - 20 - header_bytes) as u32,
        payload: data.get(TCP + header_bytes..end).unwrap_or_default(),
        fragmented: false,
        tunnelled: false,
        interface: frame.interface,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::dissect::{Unread, any as long_way};
    use super::super::link;
    use super::*;

    /// An Ethernet frame of IPv4 and TCP whose fields that decide are any.
    fn frame_bytes() -> impl Strategy<Value = Vec<u8>> {
        let first = prop_oneof![8 => Just(0x45_u8), 1 => any_u8(), 1 => Just(0x46)];
        let fields =
            (first, 0_u16..120, prop_oneof![6 => Just(0_u16), 1 => any::<u16>()], 0_u8..16);
        let protocol = prop_oneof![8 => Just(6_u8), 1 => any_u8()];
        (fields, protocol, prop::collection::vec(any_u8(), 0..80), 0_usize..130).prop_map(
            |((first, total, fragment, offset), protocol, tail, cut)| {
                let mut data = vec![2; 12];
                data.extend([8, 0, first, 0]);
                data.extend(total.to_be_bytes());
                data.extend([0, 7]);
                data.extend(fragment.to_be_bytes());
                data.extend([64, protocol, 0, 0, 10, 0, 0, 1, 192, 0, 2, 1]);
                data.extend([
                    1,
                    187,
                    200,
                    1,
                    0,
                    0,
                    0,
                    9,
                    0,
                    0,
                    0,
                    8,
                    offset << 4,
                    0x10,
                    1,
                    2,
                    3,
                    4,
                    0,
                    0,
                ]);
                data.extend(tail);
                data.truncate(cut);
                data
            },
        )
    }

    fn any_u8() -> proptest::arbitrary::StrategyFor<u8> {
        any::<u8>()
    }

    proptest! {
        #[test]
        fn the_same_as_the_long_way(data in frame_bytes(), wire_bytes in 0_u32..200) {
            let link = link::ETHERNET;
            let frame = Frame { offset: 0, at_ns: 7, interface: 1, link, wire_bytes, data: &data };
            if let Some(packet) = read(&frame) {
                prop_assert_eq!(Ok(packet), long_way(&frame));
            }
        }

        #[test]
        fn time_stamps_and_more(stamps: [u8; 8], tail in prop::collection::vec(any_u8(), 0..40)) {
            let mut data = vec![2; 12];
            data.extend([8, 0, 0x45, 0, 0, 120, 0, 7, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 192, 0, 2, 1]);
            data.extend([1, 187, 200, 1, 0, 0, 0, 9, 0, 0, 0, 8, 0xb0, 0x10, 1, 2, 3, 4, 0, 0, 1, 1, 8, 10]);
            data.extend(stamps);
            data.extend(tail);
            let link = link::ETHERNET;
            let frame = Frame { offset: 0, at_ns: 7, interface: 1, link, wire_bytes: 134, data: &data };
            let packet = read(&frame);
            prop_assert!(packet.is_some_and(|p| p.tcp().is_some_and(|t| t.timestamps.is_some())));
            prop_assert_eq!(packet.ok_or(Unread::Cut("")), long_way(&frame));
        }
    }
}
