use proptest::prelude::*;

use super::*;
use crate::diag::msg::shared::bytes_of;

/// 196 PRBs at MCS 16 of the 256QAM table with 3 layers and 132 resource
/// elements of a PRB carry 40,986 bytes.
fn block() -> NrPdschBlock {
    NrPdschBlock {
        carrier_word: 7,
        bandwidth_index: 12,
        pci: 501,
        arfcn: 630_000,
        tb: 0,
        tbs_bytes: 40_986,
        numerology: 1,
        mcs: 16,
        n_prb: 196,
        rv: 0,
        harq_id: 6,
        rnti_type: RntiType::C,
        k1: 8,
        layers: 3,
        crc_ok: true,
        new_data: true,
        ndi: false,
        discard_mode: 0,
        retx_count: 0,
        recombined: false,
        modulation: Modulation::Qam64,
        rx_antennas: 3,
    }
}

fn message(major: u16, minor: u16, entry_bytes: u8, blocks: &[usize]) -> NrPdschStatus {
    let record = |(slot, n): (usize, &usize)| NrPdschRecord {
        time: NrSlot { frame: 216, slot: slot as u8, numerology: 1 },
        blocks: vec![block(); *n],
    };
    let records = blocks.iter().enumerate().map(record).collect();
    NrPdschStatus { major, minor, entry_bytes, records }
}

#[test]
fn v2_5_byte_by_byte() {
    let payload = bytes_of(
        "05 00 02 00 00 00 00 00 00 00 00 00 00 00 00 01   # 2.5, one record
         07 01 C8 00 01 00 00 00    # slot 7, 30 kHz, frame 200, one block
         07 C8 1C 18    # 7; frame 200 << 8, slot 7 << 18, bandwidth 12 << 25
         F5 C1 73 26    # PCI 501, ARFCN 630000 << 10
         40 03 94 40    # 40986 << 5, 30 kHz << 23, MCS 16 << 26
         C4 30 00 42    # 196 PRBs, HARQ 6 << 11, K1 8 << 22, 3 layers << 29
         03 00 C8 00    # CRC, new; 64QAM << 18, four antennas << 22",
    );
    let (status, problem) = NrPdschStatus::parse(&payload).unwrap().unwrap();
    assert_eq!(problem, None);
    assert_eq!((status.major, status.minor, status.entry_bytes), (2, 5, 20));
    let record = &status.records[0];
    assert_eq!(record.time, NrSlot { frame: 200, slot: 7, numerology: 1 });
    assert_eq!(record.blocks, [block()]);
    assert_eq!(status.emit(), payload);
    assert_eq!(status.size_check(), SizeCheck { checked: 1, passed: 1 });
}

#[test]
fn the_length_of_an_entry_follows_from_the_payload() {
    for entry in [20, 24, 28, 36] {
        for blocks in [&[1][..], &[2, 1], &[1, 0, 3], &[1, 1, 1, 1, 2]] {
            let message = message(3, 13, entry, blocks);
            let (parsed, problem) = NrPdschStatus::parse(&message.emit()).unwrap().unwrap();
            assert_eq!((&parsed, problem), (&message, None), "{entry} {blocks:?}");
            assert!(parsed.size_check().holds());
        }
    }
}

#[test]
fn what_does_not_add_up_is_no_such_layout() {
    let sound = message(2, 5, 20, &[1]).emit();
    // Each bit of the size, which begins at bit 5 of the entry's third word.
    for bit in 5..23 {
        let mut payload = sound.clone();
        payload[16 + 8 + 8 + bit / 8] ^= 1 << (bit % 8);
        let (status, _) = NrPdschStatus::parse(&payload).unwrap().unwrap();
        let check = status.size_check();
        assert_eq!((check.checked, check.passed), (1, 0), "bit {bit}");
        assert!(!check.holds());
    }
    // Another modulation, numerology, MCS, and no such slot.
    for (at, mask) in [(16 + 8 + 18, 4), (16 + 8 + 11, 1), (16 + 8 + 11, 8), (16, 0x80)] {
        let mut payload = sound.clone();
        payload[at] ^= mask;
        let (status, _) = NrPdschStatus::parse(&payload).unwrap().unwrap();
        assert!(!status.size_check().holds(), "byte {at}");
    }
}

#[test]
fn a_retransmission_proves_nothing() {
    let mut message = message(3, 6, 20, &[1]);
    let block = &mut message.records[0].blocks[0];
    (block.mcs, block.new_data, block.retx_count, block.rv) = (30, false, 1, 2);
    assert_eq!(message.size_check(), SizeCheck::default());
    assert!(!message.size_check().holds());
}

proptest! {
    #[test]
    fn any_cut_gives_what_was_there(entry in 5u8..12, blocks in prop::collection::vec(0usize..4, 1..6),
                                    cut in 0usize..400) {
        let message = message(3, 3, 4 * entry, &blocks);
        let whole = message.emit();
        let cut = cut.min(whole.len());
        match NrPdschStatus::parse(&whole[..cut]) {
            Ok(Some((part, None))) => prop_assert!(part.records.len() <= message.records.len()),
            Ok(Some((part, Some(problem)))) => {
                prop_assert!(problem.at <= cut);
                prop_assert!(part.records.len() <= message.records.len());
            }
            Ok(None) => prop_assert!(false, "the version is known"),
            Err(short) => prop_assert!(short.at <= cut),
        }
    }
}
