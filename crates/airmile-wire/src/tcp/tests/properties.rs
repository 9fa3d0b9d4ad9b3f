//! Properties of a study: cuts, order, copies and shifts of time change no result.

use proptest::prelude::*;

use super::*;

/// A whole download: `sizes` of segments from the server, each acknowledged.
fn download(sizes: &[u32], base: u32) -> Vec<P> {
    let mut packets = vec![
        p(0, true, SYN, 99, 0, 0),
        p(20, false, SYN | ACK, base.wrapping_sub(1), 100, 0),
        p(60, true, ACK, 100, base, 0),
    ];
    let mut seq = base;
    for (n, size) in sizes.iter().enumerate() {
        let (at, id) = (100 + 10 * n as i64, n as u16 + 1);
        packets.push(p(at, false, ACK, seq, 100, *size).id(id));
        seq = seq.wrapping_add(*size);
        packets.push(p(at + 5, true, ACK, 100, seq, 0).id(id));
    }
    packets
}

/// The totals that segmentation, copies and initial sequence numbers do not change.
fn totals(packets: &[P]) -> (u64, u64, u64, u64) {
    let (flows, _) = run(packets);
    assert_eq!(flows.len(), 1);
    (flows[0].dl_bytes, flows[0].dl_retx_bytes, flows[0].dl_unseen_bytes, flows[0].ul_bytes)
}

proptest! {
    #[test]
    fn any_segmentation_gives_the_same_totals(cuts in prop::collection::vec(1_u32..3000, 1..20), base in any::<u32>()) {
        let whole: u32 = cuts.iter().sum();
        prop_assert_eq!(totals(&download(&cuts, base)), totals(&download(&[whole], 7)));
    }

    #[test]
    fn reordering_and_copies_change_no_totals(
        sizes in prop::collection::vec(1_u32..1500, 2..12),
        swaps in prop::collection::vec(0_usize..11, 0..6),
        copies in prop::collection::vec(any::<bool>(), 40),
    ) {
        let plain = download(&sizes, 1000);
        let mut data: Vec<P> = plain.iter().skip(3).filter(|p| !p.up).copied().collect();
        for at in swaps {
            if at + 1 < data.len() {
                let (a, b) = (data[at].ms, data[at + 1].ms);
                data.swap(at, at + 1);
                (data[at].ms, data[at + 1].ms) = (a, b);
            }
        }
        let last = data.last().map_or(0, |p| p.ms) + 50;
        let end = 1000 + sizes.iter().sum::<u32>();
        let all = plain[..3].iter().chain(&data).copied().chain([p(last, true, ACK, 100, end, 0)]);
        let all: Vec<P> = all.zip(copies.into_iter().cycle())
            .flat_map(|(p, twice)| std::iter::repeat_n(p, 1 + usize::from(twice)))
            .collect();
        prop_assert_eq!(totals(&all), totals(&plain));
    }

    #[test]
    fn a_time_shift_shifts_times_and_nothing_else(sizes in prop::collection::vec(1_u32..1500, 1..12), shift in 0_i64..1_000_000) {
        let plain = download(&sizes, 1000);
        let shifted: Vec<P> = plain.iter().map(|p| P { ms: p.ms + shift, ..*p }).collect();
        let (before, _) = run(&plain);
        let (mut after, _) = run(&shifted);
        after[0].start_ns -= shift * MS;
        prop_assert_eq!(before, after);
    }

    #[test]
    fn nothing_panics(packets in prop::collection::vec((prop_oneof![0_i64..9000, 0_i64..4_000_000_000_000], any::<bool>(), any::<u8>(), any::<u32>(), any::<u32>(), 0_u32..70_000, any::<u16>()), 0..60)) {
        let packets: Vec<P> = packets
            .into_iter()
            .map(|(ms, up, flags, seq, ack, len, window)| p(ms, up, flags, seq, ack, len).window(window))
            .collect();
        run(&packets);
    }
}
