//! Records of phones and modems since 2020, compared with what is known of them.

use std::collections::BTreeMap;

use airmile_decode::diag::msg::{MacDlReport, MacItem, NrPdschBlock, PdschStat, SizeCheck};
use airmile_decode::diag::{Deframer, Event, LogReader, Message, MessageKey, Tagged};
use airmile_decode::sniffer::{SnifferKind, SnifferReader};
use airmile_model::nr_tables::{NrMcsTable, nr_data_res_of, nr_data_res_per_prb};
use airmile_model::tables::tbs_bits;
use airmile_model::{Grant, GrantSources, Record, RlcMode, RntiType};
use airmile_testing::shared_data;

/// A file of the shared logs, if it is there.
#[allow(clippy::disallowed_methods, reason = "tests read their samples")]
fn sample(name: &str) -> Option<Vec<u8>> {
    shared_data(&format!("modern/{name}")).map(|path| std::fs::read(path).unwrap())
}

/// The payloads of a file of hexadecimal log records, one per line.
fn payloads(text: &[u8]) -> Vec<(u16, Vec<u8>)> {
    let text = std::str::from_utf8(text).unwrap();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines
        .map(|line| {
            let bytes: Vec<u8> = line.as_bytes().chunks(2).map(byte).collect();
            (u16::from_le_bytes([bytes[2], bytes[3]]), bytes[12..].to_vec())
        })
        .collect()
}

/// All records of a log, and the messages in it.
fn read(bytes: &[u8]) -> (Vec<Record>, BTreeMap<MessageKey, (u64, u64)>) {
    let mut reader = LogReader::new();
    let mut records = Vec::new();
    let mut sink = |tagged: Tagged| records.push(tagged.record);
    reader.push(bytes, &mut sink);
    reader.finish(&mut sink);
    let stats = reader.stats();
    assert_eq!((stats.bad_frames, stats.problems.damaged), (0, false));
    assert_eq!(stats.problems.kept, []);
    let messages = stats.messages.iter().map(|(key, n)| (*key, (n.count, n.decoded))).collect();
    (records, messages)
}

const fn key(code: u16, version: u8) -> MessageKey {
    MessageKey { code, version: Some(version), major: None, sub: None }
}

/// Whether an LTE transport block may have this size (TS 36.213, table 7.1.7.2.1-1).
fn is_lte_size(bytes: u32) -> bool {
    let bits = Some(8 * bytes);
    (0..=33).any(|i_tbs| (1..=110).any(|n_prb| tbs_bits(i_tbs, n_prb) == bits))
}

#[test]
fn every_block_of_0xb063_v50_closes() {
    let Some(text) = sample("lte_b063_v50.hex") else { return };
    let (mut blocks, mut with_subheader, mut polls) = (0, 0, 0);
    for (code, payload) in payloads(&text) {
        let parsed = Message::parse(code, &payload).unwrap().unwrap();
        assert_eq!(parsed.problem, None);
        let emitted = parsed.message.emit();
        assert_eq!(emitted.len(), payload.len(), "all bytes are explained");
        assert_eq!(Message::parse(code, &emitted).unwrap().unwrap().message, parsed.message);
        let Message::MacDlReport(MacDlReport { version: 50, blocks: found, .. }) = parsed.message
        else {
            panic!("not a report of version 50");
        };
        for block in found {
            blocks += 1;
            with_subheader += u32::from(block.unexplained_bytes() == -1);
            assert!(matches!(block.unexplained_bytes(), 0 | -1), "{block:?}");
            assert!(is_lte_size(block.tbs_bytes), "{block:?}");
            assert!(block.padding_bytes <= block.tbs_bytes && block.tti.is_some());
            let polled = |item: &&MacItem| matches!(item, MacItem::Sdu { rlc, .. } if rlc.poll);
            polls += block.items.iter().filter(polled).count();
        }
    }
    assert_eq!((blocks, with_subheader), (209, 95));
    assert!(polls > 20, "{polls}");
}

#[test]
fn one_message_gives_blocks_and_pdus() {
    let Some(bytes) = sample("lte_b063_v50.qmdl") else { return };
    let (records, messages) = read(&bytes);
    assert_eq!(messages[&key(0xB063, 50)], (100, 100));
    let (mut blocks, mut grants, mut data, mut status, mut polls) = (0, 0, 0, 0, 0);
    for record in &records {
        match record {
            Record::MacBlock(block) => {
                blocks += 1;
                assert!(block.data_bytes.unwrap() + block.padding_bytes <= block.tbs_bytes);
            }
            Record::Grant(grant) => {
                grants += 1;
                assert!(grant.sources.contains(GrantSources::MAC));
                assert!(grant.padding_bytes.is_some() && grant.crc_ok == Some(true));
            }
            Record::Rlc(pdu) if pdu.status => status += 1,
            Record::Rlc(pdu) => {
                data += 1;
                assert_eq!(pdu.mode == RlcMode::Tm, pdu.bearer == 0);
                polls += u32::from(pdu.poll == Some(true));
            }
            _ => {}
        }
    }
    assert_eq!((blocks, data, status), (209, 39 + 18 + 12, 63 + 15));
    assert_eq!(grants, blocks);
    assert!(polls > 20, "{polls}");
}

#[test]
fn sizes_of_0xb173_v48_are_without_the_crc() {
    let Some(bytes) = sample("lte_b173_v48.qmdl") else { return };
    let (records, messages) = read(&bytes);
    assert_eq!(messages[&key(0xB173, 48)], (1, 1));
    let mut sizes: Vec<_> = records
        .iter()
        .filter_map(|record| match record {
            Record::Grant(grant) => grant.tbs_bytes,
            _ => None,
        })
        .collect();
    assert!(sizes.iter().all(|&bytes| is_lte_size(bytes)), "{sizes:?}");
    sizes.sort_unstable();
    assert_eq!(sizes, [7, 11, 11, 11, 11, 11, 11, 11, 549, 749]);
}

/// Six blocks on n78, one of them a retransmission.
#[test]
fn blocks_of_0xb887_v2_5_have_sizes_of_the_standard() {
    let Some(bytes) = sample("nr_b887_v2_5.qmdl") else { return };
    let mut reader = LogReader::new();
    let mut grants = Vec::new();
    let mut sink = |tagged: Tagged| match tagged.record {
        Record::Grant(grant) => grants.push(grant),
        Record::CellInfo(info) => {
            assert_eq!((info.pci, info.earfcn), (Some(502), Some(634_080)));
        }
        other => panic!("{other:?}"),
    };
    reader.push(&bytes, &mut sink);
    reader.finish(&mut sink);
    let stats = reader.stats();
    // The message written first comes last.
    let problems: Vec<&str> =
        stats.problems.kept.iter().map(|problem| problem.what.as_str()).collect();
    assert!(matches!(problems[..], [one] if one.starts_with("the clock jumps back")));
    let key = MessageKey { major: Some(2), ..key(0xB887, 5) };
    assert_eq!((stats.messages[&key].count, stats.messages[&key].decoded), (2, 2));
    assert_eq!(stats.size_checks[&key], SizeCheck { checked: 5, passed: 5 });
    let of =
        |g: &Grant| (g.tbs_bytes.unwrap(), g.mcs.unwrap(), g.n_prb.unwrap(), g.layers.unwrap());
    assert_eq!(
        grants.iter().map(of).collect::<Vec<_>>(),
        [
            (12_297, 13, 273, 3),
            (40_986, 16, 196, 3),
            (57_362, 15, 273, 3),
            (56_373, 16, 272, 3),
            (53_292, 30, 224, 3),
            (111, 12, 1, 2),
        ]
    );
    assert!(grants.iter().all(|g| g.position.numerology == 1 && g.rnti == RntiType::C));
    let retx: Vec<_> = grants.iter().map(|g| g.retx == Some(true)).collect();
    assert_eq!(retx, [false, false, false, false, true, false]);
    assert_eq!(grants[2].crc_ok, Some(false));
    let (segments, ttis): (Vec<_>, Vec<_>) =
        grants.iter().map(|g| (g.position.timing_segment, g.position.tti.0)).unzip();
    assert_eq!(segments, [0, 0, 0, 0, 0, 1]);
    assert!(ttis.is_sorted(), "{ttis:?}");
}

/// A flipped bit of any block's size: the version is no longer plausible.
#[test]
fn a_flipped_size_of_0xb887_fails_the_check() {
    let Some(bytes) = sample("nr_b887_v2_5.qmdl") else { return };
    let mut deframer = Deframer::new();
    deframer.push(&bytes);
    deframer.finish();
    let mut flips = 0;
    while let Some(event) = deframer.poll() {
        let Event::Log(log) = event else { continue };
        let entries = log.payload[15];
        for entry in 0..usize::from(entries) {
            // A record's head of 8 bytes, and its entry of 20.
            let third_word = 16 + 28 * entry + 8 + 8;
            if log.payload[third_word + 8] & 2 == 0 {
                continue; // No new transmission: its size proves nothing.
            }
            for bit in 5..23 {
                let mut payload = log.payload.to_vec();
                payload[third_word + bit / 8] ^= 1 << (bit % 8);
                let message = Message::parse(0xB887, &payload).unwrap().unwrap().message;
                let check = message.size_check().unwrap();
                assert!(check.passed < check.checked, "entry {entry}, bit {bit}");
                assert!(!check.holds(), "entry {entry}, bit {bit}: {check:?}");
                flips += 1;
            }
        }
    }
    assert_eq!(flips, 5 * 18);
}

/// The blocks of a payload of 0xB887 2.5 that are new: offset of the entry, and its fields.
fn new_blocks(payload: &[u8]) -> Vec<(usize, NrPdschBlock)> {
    let message = Message::parse(0xB887, payload).unwrap().unwrap().message;
    let Message::NrPdschStatus(status) = message else { panic!("not 0xB887") };
    let blocks = status.records.into_iter().flat_map(|record| record.blocks);
    let placed = blocks.enumerate().map(|(i, block)| (16 + 28 * i + 8, block));
    placed.filter(|(_, block)| block.new_data).collect()
}

/// A flipped bit of MCS, PRBs or layers is refused, unless the flipped fields give
/// exactly the same size with some number of symbols, DMRS and overhead. No check of
/// sizes can refuse those: 17 of 80, of which 5 need no other allocation in time than the
/// true fields do.
#[test]
fn a_flip_that_0xb887_passes_gives_the_same_size() {
    let Some(bytes) = sample("nr_b887_v2_5.qmdl") else { return };
    let mut deframer = Deframer::new();
    deframer.push(&bytes);
    deframer.finish();
    let (mut flips, mut passed, mut same_allocation) = (0, 0, 0);
    while let Some(event) = deframer.poll() {
        let Event::Log(log) = event else { continue };
        let before: Vec<_> = new_blocks(log.payload);
        for (which, (entry, block)) in before.iter().enumerate() {
            // Word and bit of each field: MCS, PRBs, layers.
            let bits = (26..31).map(|bit| (8, bit));
            let bits = bits.chain((0..9).map(|bit| (12, bit))).chain((29..31).map(|bit| (12, bit)));
            for (word, bit) in bits {
                flips += 1;
                let mut payload = log.payload.to_vec();
                payload[entry + word + bit / 8] ^= 1 << (bit % 8);
                let message = Message::parse(0xB887, &payload).unwrap().unwrap().message;
                if !message.size_check().unwrap().holds() {
                    continue;
                }
                passed += 1;
                let flipped = new_blocks(&payload)[which].1;
                assert_eq!(flipped.tbs_bytes, block.tbs_bytes);
                let data_res = |block: &NrPdschBlock| -> Vec<u16> {
                    let (bytes, mcs, layers) = (block.tbs_bytes, block.mcs, block.layers);
                    let of = |table| {
                        nr_data_res_of(table, bytes, mcs, block.modulation, layers, block.n_prb)
                    };
                    NrMcsTable::ALL.into_iter().flat_map(of).collect()
                };
                let (own, other) = (data_res(block), data_res(&flipped));
                let allowed = |res: &&u16| {
                    let of = |s, d, o| nr_data_res_per_prb(s, d, o) == **res;
                    (2..=14).any(|s| (1..=4).any(|d| (0..4).any(|o| of(s, 6 * d, 6 * o))))
                };
                assert!(other.iter().find(allowed).is_some(), "{flipped:?}");
                same_allocation += u32::from(own.iter().any(|res| other.contains(res)));
                println!("{} bytes: {own:?} by the true fields, {other:?}", block.tbs_bytes);
            }
        }
    }
    assert_eq!((flips, passed, same_allocation), (80, 17, 5));
}

/// Rows of a second each: named, counted and summed up, as they have no times.
#[test]
fn a_console_trace_of_a_gnb_is_summed_up() {
    let Some(bytes) = sample("srsran_gnb_console.txt") else { return };
    assert_eq!(SnifferKind::recognise(&bytes), Some(SnifferKind::SrsRanConsole));
    let mut reader = SnifferReader::new(SnifferKind::SrsRanConsole);
    reader.push(&bytes);
    reader.finish(None, &mut |record| panic!("{record:?}"));
    let text = std::str::from_utf8(&bytes).unwrap();
    let is_row = |line: &&str| line.starts_with("   1 4601 ");
    let stats = reader.stats();
    assert_eq!(stats.rows, text.lines().filter(is_row).count() as u64);
    assert_eq!((stats.bad_rows, stats.problems.kept.len()), (0, 1));
    let words = &stats.problems.kept[0].what;
    assert!(words.contains("data waited at the base station in 0 % of the rows"), "{words}");
}

/// Bytes, and the values printed for them by another decoder.
#[test]
fn nr_measurements_and_cells_as_another_decoder_prints_them() {
    let Some(text) = sample("nr_vectors.json") else { return };
    let vectors: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let bytes = |hex: &str| -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()).collect()
    };
    let (mut cells, mut beams, mut serving) = (0, 0, 0);
    for vector in vectors.as_array().unwrap() {
        let payload = bytes(vector["payload_hex"].as_str().unwrap());
        let expected = vector["expected"].as_str().unwrap();
        let db = |x128: i32| format!("{:.2}", f64::from(x128) / 128.0);
        match vector["log"].as_str().unwrap() {
            "LOG_5GNR_ML1_MEAS_DATABASE_UPDATE" => {
                let parsed = Message::parse(0xB97F, &payload).unwrap().unwrap();
                assert_eq!(parsed.problem, None, "{expected}");
                let Message::NrMeas(meas) = parsed.message else { panic!("{expected}") };
                for layer in &meas.layers {
                    assert!(expected.contains(&format!("NR-ARFCN: {}", layer.arfcn)));
                    for (i, cell) in layer.cells.iter().enumerate() {
                        let line = format!(
                            "Cell {i}: PCI: {:4}, PBCH SFN: {}, RSRP: {}, RSRQ: {}, Num Beams: {}",
                            cell.pci,
                            cell.sfn,
                            db(cell.rsrp_x128),
                            db(cell.rsrq_x128),
                            cell.beams.len()
                        );
                        assert!(expected.contains(&line), "{line} is not in {expected}");
                        cells += 1;
                        for beam in &cell.beams {
                            let line = format!(
                                "RSRP: {}/{}",
                                db(beam.rsrp_x128[0]),
                                db(beam.rsrp_x128[1])
                            );
                            assert!(expected.contains(&line), "{line} is not in {expected}");
                            assert!(expected.contains(&format!("SSB[{}]", beam.ssb)));
                            beams += 1;
                        }
                    }
                }
            }
            "LOG_5GNR_RRC_SERVING_CELL_INFO" => {
                let parsed = Message::parse(0xB823, &payload).unwrap().unwrap();
                let Message::NrServCell(cell) = parsed.message else { panic!("{expected}") };
                let line = format!(
                    "NR-ARFCN: {}/{}, Bandwidth: {}/{} MHz, Band: {}, PCI: {:4}, MCC: {}",
                    cell.arfcn_dl,
                    cell.arfcn_ul,
                    cell.bandwidth_dl_mhz,
                    cell.bandwidth_ul_mhz,
                    cell.band,
                    cell.pci,
                    cell.mcc
                );
                assert!(expected.contains(&line), "{line} is not in {expected}");
                serving += 1;
            }
            _ => {}
        }
    }
    assert_eq!((cells, beams, serving), (9, 12, 2));
}

#[test]
fn single_payloads_are_read_or_named() {
    let codes = [
        ("B083", 48),
        ("B0A1", 53),
        ("B0B6", 56),
        ("B12A", 161),
        ("B16C_v48", 48),
        ("B16D", 49),
        ("B173", 48),
        ("B184", 50),
        ("B18F", 54),
        ("B196", 41),
        ("B197", 2),
    ];
    for (name, version) in codes {
        let Some(bytes) = sample(&format!("lte_payloads/{name}_test_data.dat")) else { return };
        let code = u16::from_str_radix(&name[..4], 16).unwrap();
        assert_eq!(u16::from_le_bytes([bytes[2], bytes[3]]), code);
        assert_eq!(bytes[12], version, "{name}");
        assert_ne!(airmile_decode::diag::names::name(code), None, "{name}");
        let parsed = Message::parse(code, &bytes[12..]).unwrap();
        match parsed {
            Some(parsed) => {
                assert_eq!(parsed.problem, None, "{name}");
                let Message::PdschStat(PdschStat { records, .. }) = parsed.message else {
                    panic!("{name}");
                };
                let blocks: usize = records.iter().map(|record| record.blocks.len()).sum();
                assert_eq!((records.len(), blocks), (9, 10));
                assert_eq!(records.iter().map(|r| r.n_prb).max(), Some(8));
            }
            None => assert_ne!(code, 0xB173),
        }
    }
}
