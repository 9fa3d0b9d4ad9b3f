//! Text exports of QXDM and QCAT, from outside.

use airmile_decode::diag::Tagged;
use airmile_decode::text::{TextReader, TextStats};
use airmile_model::{Grant, Record, RntiType};
use airmile_testing::shared_data;
use proptest::prelude::*;

fn read(bytes: &[u8], cuts: &[usize]) -> (Vec<Tagged>, TextStats) {
    let mut reader = TextReader::new();
    let mut out = Vec::new();
    let mut rest = bytes;
    for &cut in cuts.iter().cycle() {
        let (now, later) = rest.split_at(cut.min(rest.len()));
        reader.push(now, &mut |tagged| out.push(tagged));
        rest = later;
        if rest.is_empty() {
            break;
        }
    }
    reader.finish(&mut |tagged| out.push(tagged));
    (out, reader.stats().clone())
}

const AT_ONCE: &[usize] = &[usize::MAX];

fn grants(records: &[Tagged]) -> Vec<&Grant> {
    let grant = |tagged| match tagged {
        &Tagged { record: Record::Grant(ref grant), .. } => Some(grant),
        _ => None,
    };
    records.iter().filter_map(grant).collect()
}

/// As QCAT lays it out; the values are made up.
const QCAT: &str = include_str!("samples/qcat.txt");

#[test]
fn qcat_tables() {
    assert!(TextReader::recognise(QCAT.as_bytes()));
    let (records, stats) = read(QCAT.as_bytes(), AT_ONCE);
    let rows: Vec<_> = grants(&records)
        .iter()
        .map(|g| (g.position.tti.0, g.position.cell, g.tb, g.n_prb, g.tbs_bytes, g.retx))
        .collect();
    let expected = [
        // Sizes as the standard has them, with the CRC (25 bytes) or without.
        // The second block's row has blank leading columns.
        (1_556, 0, 0, Some(6), Some(225), Some(false)),
        (1_556, 0, 1, Some(6), Some(225), Some(false)),
        (1_558, 1, 0, Some(3), Some(7), Some(true)),
        (1_559, 0, 0, Some(4), Some(22), None),
        (20_479, 0, 0, Some(16), Some(123), None),
        (20_480, 0, 0, Some(16), Some(124), None),
    ];
    assert_eq!(rows, expected);
    assert_eq!(grants(&records)[3].rnti, RntiType::Si);
    assert_eq!(grants(&records)[4].position.numerology, 1);
    // The last slot was written at once; the one before it is half a ms older,
    // though it is in the frame before.
    let ns: Vec<_> = grants(&records).iter().skip(4).map(|g| g.at.unwrap().ns).collect();
    assert_eq!(ns[1] - ns[0], 500_000);
    assert_eq!(ns[1] % 1_000_000_000, 140_000_000);
    // The row with an `x` and the one that continues it, each at its place.
    let places: Vec<_> = stats.problems.kept.iter().map(|p| p.offset.unwrap() as usize).collect();
    let bad = QCAT.find("   |  2|       x|").unwrap();
    assert_eq!(places, [bad, bad + QCAT[bad..].find('\n').unwrap() + 1]);
    let counts: Vec<_> =
        stats.messages.iter().map(|((code, name), n)| (*code, name.as_str(), n.decoded)).collect();
    let expected = [
        (0xb173, "LTE PDSCH Stat Indication", 1),
        (0xb821, "NR5G RRC OTA Packet", 0),
        (0xb887, "NR5G MAC PDSCH Status", 1),
    ];
    assert_eq!(counts, expected);
}

#[test]
fn a_table_without_its_columns_is_told() {
    let text = QCAT.replace("|TB Size|", "|XX Size|");
    let (_, stats) = read(text.as_bytes(), AT_ONCE);
    assert_eq!(stats.bad_packets, 1);
    assert!(stats.problems.kept[0].what.contains("tbsizebytes"), "{:?}", stats.problems);
}

#[allow(clippy::disallowed_methods, reason = "tests read their samples")]
#[test]
fn the_public_nr_sample() {
    let Some(path) = shared_data("diag/qxdm_text_nr_0xB887_sample.txt") else { return };
    let bytes = std::fs::read(path).unwrap();
    let (records, stats) = read(&bytes, AT_ONCE);
    let rows: Vec<_> = grants(&records)
        .iter()
        .map(|g| {
            let at = (g.position.numerology, g.position.tti.0);
            (at, g.n_prb, g.tbs_bytes, g.mcs, g.harq_id, g.rv, g.crc_ok)
        })
        .collect();
    let row = |slot, n_prb, bytes, harq, rv, ok| {
        ((1, slot), Some(n_prb), Some(bytes), Some(18), Some(harq), Some(rv), Some(ok))
    };
    let expected = [
        row(631 * 20 + 16, 4, 1_281, 5, 0, true),
        row(632 * 20 + 3, 4, 469, 8, 0, false),
        row(632 * 20 + 6, 4, 1_281, 5, 0, true),
        row(632 * 20 + 7, 3, 349, 10, 2, false),
        row(632 * 20 + 10, 4, 1_281, 3, 0, true),
        row(632 * 20 + 13, 4, 469, 1, 0, false),
        row(632 * 20 + 17, 3, 349, 8, 2, false),
    ];
    assert_eq!(rows, expected);
    // 17:29:19.449705, when slot 3 of frame 632 was written, and a slot is
    // half a ms: each at its distance from it, and none after it was written.
    let slots_off = [-7, 0, 3, 4, 7, 10, 14];
    let us: Vec<_> = grants(&records).iter().map(|g| g.at.unwrap().ns / 1_000).collect();
    assert_eq!(us, slots_off.map(|slots| 62_959_449_705 + slots * 500));
    let layers = grants(&records).iter().all(|g| g.layers == Some(4) && g.rnti == RntiType::C);
    assert!(layers);
    // The summary lines are not packets of their own.
    assert_eq!(stats.packets, 3);
}

proptest! {
    #[test]
    fn any_chunking_gives_the_same(
        cuts in prop::collection::vec(1usize..200, 1..6),
        at in 0..QCAT.len(), byte: u8,
    ) {
        let mut text = QCAT.as_bytes().to_vec();
        text[at] = byte;
        let (whole, one) = read(&text, AT_ONCE);
        let (pieces, two) = read(&text, &cuts);
        prop_assert_eq!(whole, pieces);
        prop_assert_eq!(one.problems, two.problems);
    }
}
