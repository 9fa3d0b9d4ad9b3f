//! GTP-U (TS 29.281), as carried on S1-U and N3.

use airmile_model::packet::Packet;

use super::dissect::u16_at;

/// TS 29.281, 4.4.2.
pub(super) const PORT: u16 = 2152;
/// Message type of a user packet (TS 29.281, 6.1).
const G_PDU: u8 = 255;

/// The user packet inside a UDP datagram, if it is GTP-U.
pub(super) fn gtp_user<'a>(packet: &Packet<'a>) -> Option<&'a [u8]> {
    if packet.dst_port != PORT && packet.src_port != PORT {
        return None;
    }
    packet.payload.get(inner_at(packet.payload)?..)
}

/// Offset of the user packet in the payload of a GTP-U datagram.
pub(super) fn inner_at(data: &[u8]) -> Option<usize> {
    let [flags, kind, ..] = *data.first_chunk::<8>()?;
    // Version 1, protocol type GTP.
    if flags >> 4 != 0b0011 || kind != G_PDU {
        return None;
    }
    let mut at = 8;
    // If any of E, S and PN is set, the four bytes of all three are there (5.1).
    if flags & 0b111 != 0 {
        let mut next = if flags & 0b100 != 0 { *data.get(11)? } else { 0 };
        at = 12;
        while next != 0 {
            // Length in units of four bytes; the last byte is the next type.
            let length = usize::from(*data.get(at)?) * 4;
            if length == 0 {
                return None;
            }
            next = *data.get(at + length - 1)?;
            at += length;
        }
    }
    let inner = data.get(at..)?;
    matches!(inner.first()? >> 4, 4 | 6).then_some(())?;
    u16_at(inner, 2).map(|_| at)
}
