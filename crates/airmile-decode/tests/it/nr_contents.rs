//! Contents of NR blocks (0xB857) in a log with their grants (0xB887).

use airmile_decode::diag::msg::*;
use airmile_decode::diag::{LogPacket, LogReader, Message, Tagged, time};
use airmile_model::nr_tables::{NrMcsTable, nr_mcs, nr_tbs_bits};
use airmile_model::{Grant, Modulation, Record, RlcPdu, RntiType};

const N_PRB: u16 = 50;
const MCS: u8 = 10;

fn tbs_bytes() -> u32 {
    nr_tbs_bits(nr_mcs(NrMcsTable::Qam64, MCS).unwrap(), 1, N_PRB, 132).unwrap() / 8
}

/// A grant in slot 9 of a frame at 30 kHz.
fn grant(frame: u16) -> Message {
    let block = NrPdschBlock {
        carrier_word: 0,
        bandwidth_index: 12,
        pci: 500,
        arfcn: 634_080,
        tb: 0,
        tbs_bytes: tbs_bytes(),
        numerology: 1,
        mcs: MCS,
        n_prb: N_PRB,
        rv: 0,
        harq_id: 7,
        rnti_type: RntiType::C,
        k1: 2,
        layers: 1,
        crc_ok: true,
        new_data: true,
        ndi: true,
        discard_mode: 0,
        retx_count: 0,
        recombined: false,
        modulation: Modulation::Qam16,
        rx_antennas: 3,
    };
    let time = NrSlot { frame, slot: 9, numerology: 1 };
    let records = vec![NrPdschRecord { time, blocks: vec![block] }];
    NrPdschStatus { major: 2, minor: 5, entry_bytes: 20, records }.into()
}

/// What was in it: a PDU of 500 bytes with a poll, a STATUS PDU, padding.
fn contents(frame: u16) -> Message {
    let bearer = NrRlcBearer {
        lcid: 4,
        pdcp_sn_code: 0,
        kind: 2,
        rlc_index: 0,
        rlc_sn_code: 0,
        rlc_mode: 1,
        counters: [0; 6],
    };
    let logged = vec![
        NrSubPdu([0x44, 0x01, 0xF4, 0xC0, 0, 0, 0, 0, 0, 0, 0, 0]),
        NrSubPdu([0x04, 0x03, 0x00, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        NrSubPdu([0x3F, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
    ];
    let block =
        NrDlDataBlock { tbs_bytes: tbs_bytes(), slot: 9, frame, subheaders: 3, carrier: 0, logged };
    NrDlData { last_time: 0, bearers: vec![bearer], blocks: vec![block] }.into()
}

fn read(experimental: bool) -> (Vec<Grant>, Vec<RlcPdu>, u64) {
    let mut log = Vec::new();
    for (i, message) in (0u16..).zip([grant(10), contents(11), grant(11), contents(12)]) {
        let ts_raw = time::from_unix_ns(1_700_000_000_000_000_000 + i64::from(i) * 1_000_000);
        let payload = message.emit();
        LogPacket {
            offset: 0,
            subscription: 0,
            code: message.code(),
            ts_raw,
            at: time::stamp(ts_raw),
            payload: &payload,
        }
        .emit_hdlc(&mut log);
    }
    let (mut grants, mut pdus) = (Vec::new(), Vec::new());
    let mut sink = |tagged: Tagged| match tagged.record {
        Record::Grant(grant) => grants.push(grant),
        Record::Rlc(pdu) => pdus.push(pdu),
        _ => {}
    };
    let mut reader = LogReader::new().experimental(experimental);
    reader.push(&log, &mut sink);
    reader.finish(&mut sink);
    let stats = reader.stats();
    let of_contents = stats.messages.iter().filter(|(key, _)| key.code == NrDlData::CODE);
    (grants, pdus, of_contents.map(|(_, count)| count.decoded).sum())
}

#[test]
fn contents_give_padding_and_poll_bits_on_request() {
    let (grants, pdus, decoded) = read(true);
    assert_eq!(decoded, 2);
    // The contents may be written before the grant. Of frame 10 there are none.
    let padding: Vec<_> = grants.iter().map(|g| (g.padding_bytes, g.data_bytes)).collect();
    assert_eq!(padding, [(None, None), (Some(tbs_bytes() - 508), Some(503))]);
    let heads: Vec<_> = pdus.iter().map(|p| (p.size_bytes, p.poll, p.status)).collect();
    assert_eq!(heads[..2], [(500, Some(true), false), (3, None, true)]);
    assert_eq!((pdus[0].position, pdus[0].sn), (grants[1].position, None));
    assert_eq!(pdus[0].at, grants[1].at);
}

#[test]
fn contents_are_counted_and_not_read_otherwise() {
    let (grants, pdus, decoded) = read(false);
    assert_eq!((grants.len(), pdus.len(), decoded), (2, 0, 0));
    assert!(grants.iter().all(|grant| grant.padding_bytes.is_none()));
}
