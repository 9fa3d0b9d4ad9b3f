//! The fast path for the usual frame: Ethernet without tags, IPv4 without options,
//! complete, TCP. Any other frame takes the general path, which gives the same result for
//! usual frames (`tests` check it).

use airmile_model::packet::{Address, Ecn, Packet, SeqNum, TcpFlags, TcpHeader, Transport};

use super::capture::Frame;
use super::tcp;

/// Ethernet (14 bytes), IPv4 (20) and TCP (20) without options.
const HEADERS: usize = 54;
const IP: usize = 14;
const TCP: usize = 34;

/// A usual frame.
pub(super) struct Usual<'a> {
    head: &'a [u8; HEADERS],
    data: &'a [u8],
    /// Total length by the IP header.
    total: usize,
    /// Length of the TCP header.
    header_bytes: usize,
}

impl<'a> Usual<'a> {
    /// `None` if the frame is of another kind.
    #[inline]
    pub(super) fn of(data: &'a [u8]) -> Option<Self> {
        let head = data.first_chunk::<HEADERS>()?;
        let total = usize::from(u16::from_be_bytes([head[IP + 2], head[IP + 3]]));
        let header_bytes = usize::from(head[TCP + 12] >> 4) * 4;
        // EtherType; version and header length; neither offset nor more fragments; TCP.
        let usual = head[12] == 8
            && head[13] == 0
            && head[IP] == 0x45
            && head[IP + 6] & 0x3f == 0
            && head[IP + 7] == 0
            && head[IP + 9] == 6
            && header_bytes >= 20
            && total >= 20 + header_bytes;
        usual.then_some(Self { head, data, total, header_bytes })
    }

    /// Passes its packet by reference: a move would wait for the stores of its fields.
    #[inline]
    pub(super) fn read<R>(&self, frame: &Frame<'a>, take: impl FnOnce(&Packet<'a>) -> R) -> R {
        let Self { head, data, total, header_bytes } = *self;
        let u16_at = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
        let u32_at =
            |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        // Bytes after the packet are padding of the link.
        let end = data.len().min(IP + total);
        let mut packet = Packet {
            at_ns: frame.at_ns,
            src: Address::v4([head[IP + 12], head[IP + 13], head[IP + 14], head[IP + 15]]),
            dst: Address::v4([head[IP + 16], head[IP + 17], head[IP + 18], head[IP + 19]]),
            src_port: u16_at(TCP),
            dst_port: u16_at(TCP + 2),
            protocol: 6,
            transport: Transport::Tcp(TcpHeader {
                seq: SeqNum(u32_at(TCP + 4)),
                ack: SeqNum(u32_at(TCP + 8)),
                flags: TcpFlags(head[TCP + 13]),
                ae: head[TCP + 12] & 1 != 0,
                window: u16_at(TCP + 14),
                checksum: u16_at(TCP + 16),
                options_cut: end < TCP + header_bytes,
                ..TcpHeader::default()
            }),
            ecn: Ecn::of(head[IP + 1]),
            ip_id: Some(u16_at(IP + 4)),
            ip_bytes: total as u32,
            payload_bytes: (total - 20 - header_bytes) as u32,
            payload: data.get(TCP + header_bytes..end).unwrap_or_default(),
            fragmented: false,
            tunnelled: false,
            interface: frame.interface,
        };
        if header_bytes > 20
            && let Transport::Tcp(header) = &mut packet.transport
        {
            let options = data.get(HEADERS..end.min(TCP + header_bytes)).unwrap_or_default();
            tcp::read_options(header, options);
        }
        take(&packet)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::dissect::{Unread, any as long_way};
    use super::super::link;
    use super::*;

    /// An Ethernet frame of IPv4 and TCP with arbitrary deciding fields.
    fn frame_bytes() -> impl Strategy<Value = Vec<u8>> {
        let first = prop_oneof![8 => Just(0x45_u8), 1 => any_u8(), 1 => Just(0x46)];
        let fields =
            (first, 0_u16..120, prop_oneof![6 => Just(0_u16), 1 => any::<u16>()], 0_u8..16);
        let protocol = prop_oneof![8 => Just(6_u8), 1 => any_u8()];
        (fields, protocol, prop::collection::vec(any_u8(), 0..80), 0_usize..130).prop_map(
            |((first, total, fragment, offset), protocol, tail, cut)| {
                let mut data = vec![2; 12];
                data.extend([8, 0, first, total as u8]);
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
                    offset << 4 | total as u8 & 1,
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

    /// A time stamp option of another length than ten does not replace a right one.
    #[test]
    fn time_stamps_stay_after_a_broken_option() {
        for broken in [[8, 2, 0, 0], [8, 3, 0, 0], [8, 4, 0, 0]] {
            let mut header = TcpHeader::default();
            tcp::read_options(&mut header, &[1, 1, 8, 10, 0, 0, 0, 7, 0, 0, 0, 9]);
            tcp::read_options(&mut header, &broken);
            assert_eq!(header.timestamps, Some((7, 9)));
        }
    }

    proptest! {
        #[test]
        fn the_same_as_the_long_way(data in frame_bytes(), wire_bytes in 0_u32..200) {
            let link = link::ETHERNET;
            let frame = Frame { offset: 0, at_ns: 7, interface: 1, link, wire_bytes, data: &data };
            if let Some(usual) = Usual::of(&data) {
                prop_assert_eq!(Ok(usual.read(&frame, |packet| *packet)), long_way(&frame));
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
            let packet = Usual::of(&data).map(|usual| usual.read(&frame, |packet| *packet));
            prop_assert!(packet.is_some_and(|p| p.tcp().is_some_and(|t| t.timestamps.is_some())));
            prop_assert_eq!(packet.ok_or(Unread::Cut("")), long_way(&frame));
        }
    }
}
