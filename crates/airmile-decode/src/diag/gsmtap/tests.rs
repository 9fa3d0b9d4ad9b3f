//! Tests of the packets' bytes.

use smallvec::smallvec;

use super::*;
use crate::diag::msg::shared::bytes_of;
use crate::diag::msg::{MacDlBlock, MacDlSubpacket};
use crate::diag::time;

/// A second of the modem's clock: 1.25 ms in the upper 48 bits.
const SECOND: u64 = 800 << 16;

fn read(logs: &[(u16, &[u8])]) -> Vec<AirPacket> {
    let mut log = Vec::new();
    for &(code, payload) in logs {
        let at = time::stamp(SECOND);
        let packet = LogPacket { offset: 0, subscription: 2, code, ts_raw: SECOND, at, payload };
        packet.emit_hdlc(&mut log);
    }
    let whole = |piece| {
        let (mut reader, mut out) = (AirReader::new(), Vec::new());
        log.chunks(piece).for_each(|bytes| reader.push(bytes, &mut |one| out.push(one)));
        reader.end_file(&mut |one| out.push(one));
        out
    };
    let packets = whole(log.len());
    assert_eq!(packets, whole(7), "depends on the pieces");
    packets
}

const NAS: &str = "01 09 05 00 07 45 09 0b"; // version, release; detach request

#[test]
fn a_nas_message_is_a_gsmtap_packet() {
    let payload = bytes_of(NAS);
    let [packet] = &read(&[(0xB0ED, &payload), (0xB173, &payload)])[..] else { panic!() };
    let expected = bytes_of(
        "45 00 00 30 00 00 40 00 40 11 3c bb 7f 00 00 01 7f 00 00 01  # IPv4, 48 bytes, UDP
         12 79 12 79 00 1c 00 00                                      # port 4729, 28 bytes
         02 04 12 00 40 00 00 00 00 00 00 00 00 00 00 00              # GSMTAP: NAS, uplink
         07 45 09 0b",
    );
    assert_eq!(packet.bytes, expected);
    assert_eq!((packet.link, packet.dir), (LinkType::Ipv4, Direction::Ul));
    assert_eq!((packet.wire_bytes, packet.subscription), (48, 2));
    let stored: u32 =
        expected[..20].chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(w[1])).sum();
    assert_eq!((stored & 0xffff) + (stored >> 16), 0xffff, "checksum of the IPv4 header");
}

#[test]
fn an_rrc_message_has_its_channel_and_carrier() {
    let payload = bytes_of(
        "08 0A 40 01 4D 00   # version 8, release 10, bearer 1, PCI 77
         14 05 00 00         # EARFCN 1300
         04 20 06            # subframe 4, SFN 512; DL-DCCH
         00 00 00 00 02 00   # SIB mask; two bytes
         20 08",
    );
    let [packet] = &read(&[(0xB0C0, &payload)])[..] else { panic!() };
    // Type RRC, EARFCN 1300 (0x514), SFN 512, subtype DL-DCCH, subframe 4.
    let head = bytes_of("02 04 0d 00 05 14 00 00 00 00 02 00 01 00 04 00 20 08");
    assert_eq!(packet.bytes[28..], head);
    assert_eq!(packet.dir, Direction::Dl);
    // One that was emptied for sharing has none.
    for emptied in [[0, 0], [0x20, 0x08]] {
        let mut payload = payload.clone();
        payload.truncate(payload.len() - 2);
        payload.extend(emptied);
        payload.extend([0; 6]);
        let length = payload.len() - 8 - 2;
        payload[length] = 8;
        assert_eq!(read(&[(0xB0C0, &payload)]), []);
    }
    // EARFCN 66486 does not fit in 14 bits; another version has no packet.
    let mut wide = payload.clone();
    wide[6..10].copy_from_slice(&66_486_u32.to_le_bytes());
    assert_eq!(read(&[(0xB0C0, &wide)])[0].bytes[32..34], [0, 0]);
    let mut reader = AirReader::new();
    let mut log = Vec::new();
    crate::diag::frame::emit_log(0, 0xB0C0, SECOND, &[200, 0, 0], &mut log);
    let mut frame = Vec::new();
    crate::diag::hdlc::encode(&log, &mut frame);
    reader.push(&frame.repeat(3), &mut |packet| panic!("{packet:?}"));
    assert_eq!(reader.left_out(), 3);
}

#[test]
fn blocks_are_headers_at_the_times_of_their_ttis() {
    let block = |sfn, rnti_type| MacDlBlock {
        sub_id: None,
        cell: None,
        tti: Tti::new(sfn, 4),
        rnti_type,
        harq_id: 0,
        pmch: 0,
        tbs_bytes: 100,
        rlc_pdus: 1,
        padding_bytes: 0,
        header: smallvec![0x03],
    };
    // Of a broadcast the log has no header that a MAC dissector reads.
    let blocks = vec![block(1_023, RntiType::C), block(0, RntiType::Si), block(1, RntiType::C)];
    let m = MacDl { version: 1, subpackets: vec![MacDlSubpacket { version: 2, blocks }] };
    let packets = read(&[(0xB063, &m.emit())]);
    let [first, last] = &packets[..] else { panic!("{packets:?}") };
    assert_eq!(last.at.ns - first.at.ns, 20_000_000);
    assert_eq!(last.at, time::stamp(SECOND));
    let expected = bytes_of(
        "00 0c 00 10 6d 61 63 2d 6c 74 65 2d 66 72 61 6d 65 64 00 00 00 00 00 00
         01 01 03 03 00 02 04 3f f4 0a 00 01  # FDD, DL, C-RNTI; user 2; SFN 1023, 4; carrier 0
         03",
    );
    assert_eq!((&first.bytes, first.link), (&expected, LinkType::ExportedPdu));
    // The SDU of 99 bytes is not in the log.
    assert_eq!(first.wire_bytes as usize, expected.len() + 99);
}

#[test]
fn the_header_of_a_described_block_is_written_anew() {
    let sdu = |len_bytes| MacItem::Sdu {
        lcid: 3,
        len_bytes,
        rlc: crate::diag::msg::RlcFields::default(),
        length_indicators: Vec::new(),
        pdcp_groups: Vec::new(),
    };
    let element =
        MacItem::ControlElement { lcid: 29, len_bytes: 1, payload: [31, 0, 0, 0, 0, 0, 0, 0, 0] };
    let block = |padding_bytes, items: &[MacItem]| {
        header_of(&MacDlReportBlock {
            tbs_bytes: 100,
            padding_bytes,
            tti: None,
            reparse: false,
            rnti_type: RntiType::C,
            carrier: 0,
            harq_id: 0,
            header_bytes: 0,
            items: items.to_vec(),
        })
    };
    // TS 36.321, 6.1.2: E is set but on the last; F and L on all but the last.
    assert_eq!(block(50, &[element.clone(), sdu(9)]), [0x3d, 0x23, 9, 0x1f, 31]);
    // Activation of secondary cells, 4 octets, has no length (table 6.2.1-1).
    let activation =
        MacItem::ControlElement { lcid: 24, len_bytes: 4, payload: [0x80, 0, 0, 0, 0, 0, 0, 0, 0] };
    assert_eq!(block(0, &[activation, sdu(9)]), [0x38, 0x03, 0x80, 0, 0, 0]);
    assert_eq!(block(2, &[sdu(200), sdu(9)]), [0x3f, 0x3f, 0x23, 0x80, 200, 0x03]);
}
