use airmile_model::Record;
use proptest::prelude::*;
use smallvec::smallvec;

use super::*;
use crate::diag::{LogReader, hdlc, msg};
use airmile_pseudonym::KEY_BYTES;

const KEY: [u8; KEY_BYTES] = [5; KEY_BYTES];
const AT: u64 = 0x0100_0000_0000_0000 >> 2;

fn scrub(bytes: &[u8], piece: usize) -> (Vec<u8>, Changes) {
    let mut scrubber = LogScrubber::new(Pseudonyms::new(&KEY));
    let mut out = Vec::new();
    for piece in bytes.chunks(piece.max(1)) {
        scrubber.push(piece, &mut out, &mut |_| ());
    }
    scrubber.finish_last(&mut out, &mut |_| ());
    (out, scrubber.changes().clone())
}

fn hdlc_log(messages: &[(u16, Vec<u8>)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (n, (code, payload)) in messages.iter().enumerate() {
        let mut packet = Vec::new();
        frame::emit_log(0, *code, AT + ((n as u64) << 16), payload, &mut packet);
        hdlc::encode(&packet, &mut out);
    }
    out
}

fn payloads(bytes: &[u8]) -> Vec<(u16, u64, Vec<u8>)> {
    let mut deframer = Deframer::new();
    deframer.push(bytes);
    deframer.finish();
    let mut out = Vec::new();
    while let Some(event) = deframer.poll() {
        match event {
            Event::Log(log) => out.push((log.code, log.ts_raw, log.payload.to_vec())),
            other => panic!("{other:?}"),
        }
    }
    out
}

fn contains(bytes: &[u8], needle: &[u8]) -> bool {
    bytes.windows(needle.len()).any(|window| window == needle)
}

fn serving_cell() -> msg::RrcServCell {
    msg::RrcServCell {
        version: 3,
        pci: 185,
        earfcn_dl: 1300,
        earfcn_ul: 19_300,
        n_prb_dl: 50,
        n_prb_ul: 50,
        cell_identity: 0x02a4_8611,
        tac: 21_512,
        band: 3,
        mcc: 310,
        mnc_digits: 3,
        mnc: 410,
        allowed_access: 0,
    }
}

fn signalling(pdu_type: u8, message: &[u8]) -> msg::RrcOta {
    msg::RrcOta {
        version: 8,
        rrc_release: 10,
        rrc_version: 0x40,
        nr_release: None,
        nr_version: None,
        bearer: 1,
        pci: 185,
        earfcn: 1300,
        tti: None,
        pdu_type,
        sib_mask: Some(0),
        message: message.to_vec(),
    }
}

#[test]
fn cells_get_pseudonyms_and_the_network_is_the_test_network() {
    let cell = serving_cell();
    let log = hdlc_log(&[(0xb0c2, cell.emit()), (0xb0c2, cell.emit())]);
    let (out, changes) = scrub(&log, usize::MAX);
    let (_, ts_raw, payload) = &payloads(&out)[0];
    let (is, _) = msg::RrcServCell::parse(payload).unwrap().unwrap();
    assert_eq!(*ts_raw, AT);
    assert_eq!((is.mcc, is.mnc_digits, is.mnc), (1, 2, 1));
    assert_eq!((is.earfcn_dl, is.band, is.n_prb_dl), (1300, 3, 50));
    let names = Pseudonyms::new(&KEY);
    assert_eq!(u64::from(is.pci), names.number(Identity::PhysicalCell, 185));
    assert_eq!(u64::from(is.cell_identity), names.number(Identity::Cell, 0x02a4_8611));
    assert!(is.pci != 185 && is.cell_identity != cell.cell_identity && is.tac != cell.tac);
    assert_eq!((changes.of("networks"), changes.of("cell_identities")), (2, 2));
}

#[test]
fn signalling_keeps_its_length_and_whether_it_hands_over() {
    let handover = [&[0x22, 0x08][..], b"\x12\x34\x56IMSI"].concat();
    let log = hdlc_log(&[
        (0xb0c0, signalling(6, &handover).emit()),
        (0xb0c0, signalling(8, b"\x22\x08 attach IMEI").emit()),
    ]);
    let (out, changes) = scrub(&log, 7);
    assert!(!contains(&out, b"IMSI") && !contains(&out, b"IMEI"));
    let mut handovers = Vec::new();
    let mut sink = |tagged: crate::diag::Tagged| {
        if let Record::Rrc(m) = tagged.record {
            handovers.push((m.handover, m.size_bytes));
        }
    };
    let mut reader = LogReader::new();
    reader.push(&out, &mut sink);
    reader.finish(&mut sink);
    assert_eq!(handovers, [(Some(true), 9), (None, 14)]);
    assert_eq!(changes.of("signalling_messages_emptied"), 2);
}

#[test]
fn keys_payload_and_what_is_not_decoded_are_gone() {
    // 0xB0A3 with keys of 0xAA and a PDU whose first bytes were logged.
    let mut pdcp = vec![1, 1, 0, 0, 195, 1, 0, 0];
    pdcp.extend([0xaa; 32]);
    pdcp.extend([2, 3, 1, 0]);
    pdcp.extend([0x43, 0x45, 100, 0, 6, 0, 0x11, 0x09, 7, 0, 0, 0]);
    pdcp.extend(b"SECRET");
    let length = (pdcp.len() - 4) as u16;
    pdcp[6..8].copy_from_slice(&length.to_le_bytes());
    let nas = b"\x01IMSI 001010123456789".to_vec();
    // A subpacket of an unknown version.
    let newer = [&[1, 1, 0, 0, 7, 99, 12, 0][..], b"TMSI1234"].concat();
    let log = hdlc_log(&[(0xb0a3, pdcp), (0xb0ed, nas), (0xb063, newer)]);
    let (out, changes) = scrub(&log, 13);
    assert!(!contains(&out, &[0xaa; 4]));
    for secret in ["SECRET", "IMSI", "TMSI"] {
        assert!(!contains(&out, secret.as_bytes()), "{secret}");
    }
    let left = payloads(&out);
    assert_eq!((left[1].0, &left[1].2[..]), (0xb0ed, &[1][..]));
    assert_eq!((left[2].0, &left[2].2[..]), (0xb063, &[1, 1, 0, 0, 7, 99, 4, 0][..]));
    assert_eq!(changes.of("undecoded_messages_emptied"), 2);
    assert_eq!(changes.of("cipher_keys"), 1);
}

#[test]
fn of_an_rlc_pdu_its_header_stays() {
    // Data, poll, no extension, SN 5; then its payload.
    let mut pdu =
        LoggedPdu { tti: None, size_bytes: 50, head: smallvec![0b1010_0000, 5, b'N', b'A', b'S'] };
    let changes = &mut Changes::default();
    let names = Pseudonyms::new(&KEY);
    Blanking { names: &names, changes }.pdu(&mut pdu, 10);
    assert_eq!((pdu.head, changes.of("rlc_payload_bytes")), (smallvec![0b1010_0000, 5], 3));
}

#[test]
fn the_identities_among_mac_control_elements_are_blanked() {
    // C-RNTI, short BSR, then an SDU: three subheaders, 0x1234, BSR 0x47.
    let mut header = vec![0x20 | 27, 0x20 | 29, 3, 0x12, 0x34, 0x47];
    assert_eq!(MacHeader::blank_identities(Direction::Ul, &mut header), 1);
    assert_eq!(header, [0x20 | 27, 0x20 | 29, 3, 0, 0, 0x47]);
    // A contention resolution identity, and bytes after it are no header.
    let mut header = vec![28, 1, 2, 3, 4, 5, 6, 7, 8];
    assert_eq!(MacHeader::blank_identities(Direction::Dl, &mut header), 2);
    assert_eq!(header, [28, 0, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn containers_stay() {
    let packets = [serving_cell().emit(), vec![1; 30]];
    let build = |emit: &dyn Fn(&LogPacket<'_>, &mut Vec<u8>)| {
        let mut out = Vec::new();
        for (n, payload) in packets.iter().chain(&packets).enumerate() {
            let ts_raw = 0x00f1_2345_0000_0000 + ((n as u64) << 16);
            let at = crate::diag::time::stamp(ts_raw);
            emit(
                &LogPacket { offset: 0, subscription: 0, code: 0xb0c2, ts_raw, at, payload },
                &mut out,
            );
        }
        out
    };
    let hdf = |log: &LogPacket<'_>, out: &mut Vec<u8>| {
        out.extend([0x55; 9]);
        frame::emit_log(0, log.code, log.ts_raw, log.payload, out);
    };
    for (container, bytes) in [
        (Container::Hdlc, build(&|log, out| log.emit_hdlc(out))),
        (Container::Dlf, build(&|log, out| log.emit_dlf(out))),
        (Container::Hdf, build(&hdf)),
    ] {
        let (out, changes) = scrub(&bytes, usize::MAX);
        assert_eq!(LogReader::recognise(&out), Some(container));
        assert_eq!((payloads(&out).len(), changes.of("messages")), (4, 4), "{container:?}");
    }
}

/// Time stamps of messages, and `None` for each span that cannot be read.
fn messages_and_damage(bytes: &[u8]) -> Vec<Option<u64>> {
    let mut deframer = Deframer::new();
    deframer.push(bytes);
    deframer.finish_last();
    let mut out = Vec::new();
    while let Some(event) = deframer.poll() {
        match event {
            Event::Log(log) => out.push(Some(log.ts_raw)),
            Event::Problem(problem) if problem.severity == Severity::Damage => out.push(None),
            other => panic!("{other:?}"),
        }
    }
    out
}

#[test]
fn what_cannot_be_read_cannot_be_read_in_the_copy() {
    let payload = [&serving_cell().emit()[..], b"IDENTITY"].concat();
    for (is_dlf, expected) in [(false, 4_u64), (true, 3)] {
        let (mut log, mut starts) = (Vec::new(), Vec::new());
        for n in 0..20_u64 {
            starts.push(log.len());
            let ts_raw = 0x00f1_2345_0000_0000 + (n << 16);
            let at = crate::diag::time::stamp(ts_raw);
            let packet = LogPacket {
                offset: 0,
                subscription: 0,
                code: 0xb0c2,
                ts_raw,
                at,
                payload: &payload,
            };
            if is_dlf { packet.emit_dlf(&mut log) } else { packet.emit_hdlc(&mut log) }
        }
        // Two next to each other, one alone, and the end. In DLF the length breaks the chain.
        for n in [5, 6, 12] {
            log[starts[n]] ^= 0x55;
        }
        log.truncate(log.len() - 5);
        let (copy, changes) = scrub(&log, 11);
        let found = messages_and_damage(&log);
        assert_eq!(found.iter().filter(|one| one.is_none()).count() as u64, expected, "{found:?}");
        assert_eq!(messages_and_damage(&copy), found);
        assert_eq!(changes.of("unreadable_frames_replaced"), expected);
        assert!(!contains(&copy, b"IDENTITY"));
    }
}

proptest! {
    #[test]
    fn any_payload_of_any_message(
        which in any::<prop::sample::Index>(), mut payload in prop::collection::vec(any::<u8>(), 1..200),
        version in 0u8..130, piece in 1usize..300,
    ) {
        let code = Message::CODES[which.index(Message::CODES.len())];
        payload[0] = version;
        let log = hdlc_log(&[(code, payload.clone()), (code, payload)]);
        let (out, changes) = scrub(&log, piece);
        prop_assert_eq!(&out, &scrub(&log, usize::MAX).0);
        prop_assert_eq!(changes.of("messages"), 2);
        prop_assert_eq!(payloads(&out).len(), 2);
        // Decoded messages can be decoded again.
        let counts = |bytes: &[u8]| {
            payloads(bytes)
                .iter()
                .map(|(code, at, payload)| {
                    (*code, *at, matches!(Message::parse(*code, payload), Ok(Some(_))))
                })
                .collect::<Vec<_>>()
        };
        prop_assert_eq!(counts(&log), counts(&out));
    }
}
