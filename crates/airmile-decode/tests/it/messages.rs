//! Every message and version: `parse(emit(x)) == x`, and no panic on any bytes.
//!
//! The messages come from random payloads of the right version, code and
//! framing, so every value that a payload can hold turns up.

use airmile_decode::diag::Message;
use airmile_decode::diag::msg::*;
use airmile_model::{RntiType, Tti};
use proptest::prelude::*;

/// The beginning of a message's payload.
#[derive(Debug, Clone, Copy)]
struct Kind {
    code: u16,
    version: u8,
    /// Major version, of NR messages.
    major: Option<u8>,
    /// Subpacket id and version.
    subpacket: Option<(u8, u8)>,
    /// The byte in which the number of records begins, and the bit.
    count_at: (usize, u32),
}

fn kinds() -> Vec<Kind> {
    let plain = |code, versions: &[u8], count_at| {
        let kind = |&version: &u8| Kind { code, version, major: None, subpacket: None, count_at };
        versions.iter().map(kind).collect::<Vec<_>>()
    };
    let framed = |code, id, versions: &[u8], count_at: usize| {
        let kind = |&version: &u8| Kind {
            code,
            version: 1,
            major: None,
            subpacket: Some((id, version)),
            count_at: (8 + count_at, 0),
        };
        versions.iter().map(kind).collect::<Vec<_>>()
    };
    let nr = |code, versions: &[(u16, u16)], count_at: usize| {
        let kind = |&(major, minor): &(u16, u16)| Kind {
            code,
            version: minor as u8,
            major: Some(major as u8),
            subpacket: None,
            count_at: (count_at, 0),
        };
        versions.iter().map(kind).collect::<Vec<_>>()
    };
    [
        framed(0xB063, 7, MacDl::VERSIONS, 0),
        plain(0xB063, MacDlReport::VERSIONS, (4, 0)),
        framed(0xB064, 8, MacUl::VERSIONS, 0),
        framed(0xB066, 10, UlBufferStatus::VERSIONS, 0),
        framed(0xB067, 11, UlTxStatistics::VERSIONS, 0),
        framed(0xB082, 65, RlcDl::VERSIONS, 14),
        framed(0xB087, 66, RlcCounters::<0xB087>::VERSIONS, 0),
        framed(0xB092, 70, RlcUl::VERSIONS, 18),
        framed(0xB097, 71, RlcCounters::<0xB097>::VERSIONS, 0),
        framed(0xB0A3, 195, PdcpCipher::<0xB0A3>::VERSIONS, 34),
        framed(0xB0B3, 195, PdcpCipher::<0xB0B3>::VERSIONS, 34),
        plain(0xB0C0, RrcOta::VERSIONS, (20, 0)),
        plain(0xB0C1, RrcMib::VERSIONS, (4, 0)),
        plain(0xB0C2, RrcServCell::VERSIONS, (4, 0)),
        plain(0xB126, PdschPacket::VERSIONS, (4, 0)),
        plain(0xB130, PdcchDecoding::VERSIONS, (7, 0)),
        plain(0xB132, PdschDecoding::VERSIONS, (11, 3)),
        plain(0xB139, PuschTx::VERSIONS, (2, 1)),
        plain(0xB173, PdschStat::VERSIONS, (1, 0)),
        plain(0xB179, &[3], (22, 0)),
        plain(0xB179, &[4], (24, 0)),
        plain(0xB18A, RlmReport::VERSIONS, (3, 0)),
        framed(0xB193, 25, ServCellMeas::VERSIONS, 4),
        framed(0xB195, 31, NeighbourMeas::VERSIONS, 4),
        nr(0xB821, &[(0, 8), (0, 12), (0, 17), (0, 19), (0, 28)], 3),
        nr(0xB823, NrServCell::VERSIONS, 3),
        nr(0xB881, NrUlTbStats::VERSIONS, 7),
        nr(0xB888, &[(3, 0), (3, 1)], 7),
        nr(0xB888, &[(2, 2)], 15),
        nr(0xB97F, &[(2, 7)], 4),
        nr(0xB97F, &[(2, 9), (2, 10), (3, 0)], 8),
    ]
    .concat()
}

/// A payload of a kind from random bytes, with a low count of records.
fn payload(kind: Kind, mut bytes: Vec<u8>, count: u8) -> Vec<u8> {
    // The counts have 5 to 16 bits; other bits of these bytes stay zero.
    let (at, shift) = kind.count_at;
    bytes[at] = count << shift;
    if matches!(kind.code, 0xB082 | 0xB092 | 0xB0A3 | 0xB0B3) {
        bytes[at + 1] = 0;
    }
    if kind.code == 0xB063 && kind.subpacket.is_none() {
        bytes[at + 1] = 0;
    }
    if let Some(major) = kind.major {
        bytes[1..4].copy_from_slice(&[0, major, 0]);
    }
    bytes[0] = kind.version;
    if let Some((id, version)) = kind.subpacket {
        let size = (bytes.len() - 4) as u16;
        bytes[1] = 1;
        bytes[4] = id;
        bytes[5] = version;
        bytes[6..8].copy_from_slice(&size.to_le_bytes());
    }
    bytes
}

/// Random bytes with many zeros, so that counts within records stay low too.
fn bytes(len: std::ops::Range<usize>) -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![2 => Just(0u8), 1 => any::<u8>(), 1 => 0u8..4];
    prop::collection::vec(byte, len)
}

#[test]
fn every_code_has_a_kind() {
    let mut codes: Vec<_> = kinds().iter().map(|kind| kind.code).collect();
    // These are read only if they are consistent, and have their own tests.
    codes.extend([NrDlData::CODE, NrUlTb::CODE, NrPdschStatus::CODE]);
    codes.sort_unstable();
    codes.dedup();
    assert_eq!(codes, Message::CODES);
}

#[test]
fn every_kind_is_read_without_a_problem() {
    for kind in kinds() {
        let whole = payload(kind, vec![0; 700], 2);
        let parsed = Message::parse(kind.code, &whole).unwrap().unwrap();
        assert_eq!(parsed.problem, None, "{kind:?}");
        assert_eq!(parsed.message.emit()[0], kind.version, "{kind:?}");
    }
}

fn check(kind: Kind, payload: &[u8]) -> Result<(), TestCaseError> {
    let parsed = match Message::parse(kind.code, payload) {
        Ok(Some(parsed)) => parsed,
        Ok(None) => return Err(TestCaseError::fail(format!("{kind:?} is not known"))),
        Err(error) => {
            prop_assert!(error.at <= payload.len(), "{error}");
            return Ok(());
        }
    };
    prop_assert_eq!(parsed.message.code(), kind.code);
    let emitted = parsed.message.emit();
    let again = Message::parse(kind.code, &emitted);
    let again = again.map_err(|error| TestCaseError::fail(error.to_string()))?;
    let Some(again) = again else { return Err(TestCaseError::fail("emitted but not known")) };
    prop_assert_eq!(&again.message, &parsed.message, "{:?}", kind);
    prop_assert_eq!(again.problem, None, "{:?}", kind);
    // And the emitted bytes are stable.
    prop_assert_eq!(again.message.emit(), emitted, "{:?}", kind);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn parse_inverts_emit(bytes in bytes(700..701), count in 0u8..5) {
        for kind in kinds() {
            check(kind, &payload(kind, bytes.clone(), count))?;
        }
    }

    #[test]
    fn dense_values_too(bytes in prop::collection::vec(any::<u8>(), 700..701), count in 0u8..3) {
        for kind in kinds() {
            check(kind, &payload(kind, bytes.clone(), count))?;
        }
    }

    #[test]
    fn cut_payloads_give_what_was_there(bytes in bytes(700..701), count in 0u8..5, cut in 0usize..700) {
        for kind in kinds() {
            let whole = payload(kind, bytes.clone(), count);
            let cut = &whole[..cut.max(kind.count_at.0 + 1).max(8)];
            check(kind, cut)?;
            // A truncated message is never longer than the whole one, and is marked so.
            if let (Ok(Some(part)), Ok(Some(all))) =
                (Message::parse(kind.code, cut), Message::parse(kind.code, &whole))
                && part.problem.is_none()
            {
                prop_assert_eq!(part.message, all.message);
            }
        }
    }

    #[test]
    fn no_panic_on_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        for &code in Message::CODES {
            if let Ok(Some(parsed)) = Message::parse(code, &bytes) {
                let _ = parsed.message.emit();
            }
        }
    }
}

/// Versions that are read only if their blocks end with the subpacket.
#[test]
fn uplink_blocks_of_later_versions_must_close() {
    let block = MacUlBlock {
        sub_id: Some(0),
        cell: Some(0),
        harq_id: 3,
        rnti_type: RntiType::C,
        tti: Tti::new(500, 2),
        grant_bytes: 193,
        rlc_pdus: 1,
        padding_bytes: 186,
        bsr_event: 2,
        bsr_trigger: 3,
        header: vec![0x3d, 0x23, 0x02, 0x1f, 0x80].into(),
    };
    for &version in MacUl::CHECKED_VERSIONS {
        let sub = MacUlSubpacket { version, blocks: vec![block.clone(), block.clone()] };
        let message = MacUl { version: 1, subpackets: vec![sub] };
        let payload = message.emit();
        let parsed = Message::parse(0xB064, &payload).unwrap().unwrap();
        assert_eq!((parsed.message, parsed.problem), (message.into(), None), "v{version}");
        // One block fewer than there are bytes for, and one more.
        for count in [1, 3] {
            let mut wrong = payload.clone();
            wrong[8] = count;
            assert_eq!(Message::parse(0xB064, &wrong), Ok(None), "v{version}, {count} blocks");
        }
    }
}

#[test]
fn unknown_codes_and_versions_are_none() {
    assert_eq!(Message::parse(0xB16B, &[25; 40]), Ok(None));
    assert_eq!(Message::parse(0xB173, &[99; 40]), Ok(None));
    assert_eq!(Message::parse(0xB063, &[1, 1, 0, 0, 7, 99, 4, 0]), Ok(None));
}

#[test]
fn an_empty_payload_is_an_error_that_names_the_field() {
    let error = Message::parse(0xB173, &[]).unwrap_err();
    assert_eq!(error.to_string(), "DIAG 0xB173 v0: version at payload byte 0 runs beyond the end");
}
