use airmile_model::nr_tables::nr_size_is_possible;

use super::*;

/// Share of failed first transmissions over a minute on a fading link.
fn first_bler(mean_db: f64) -> f64 {
    let mut fading = Fading::new(mean_db, &LinkConfig::default(), 0, Random::new(1, 1));
    let mut link = LinkAdaptation::new(McsLadder::downlink(None), 0.1, mean_db);
    let mut dice = Random::new(1, 2);
    let mut failed = 0;
    for tti in 0..60_000 {
        fading.advance(tti);
        link.observe(tti, fading.snr_db());
        let crc_ok = !dice.chance(link.mcs(0.0).bler(linear(fading.snr_db())));
        link.learn(crc_ok);
        failed += u32::from(!crc_ok);
    }
    f64::from(failed) / 60_000.0
}

#[test]
fn outer_loop_holds_the_target() {
    for mean_db in [2.0, 8.0, 14.0] {
        let bler = first_bler(mean_db);
        assert!((bler - 0.1).abs() < 0.02, "{mean_db} dB: {bler}");
    }
}

/// A log's blocks are checked against the sizes of TS 38.214, those of a link trace too.
#[test]
fn blocks_of_a_link_trace_have_sizes_of_nr() {
    let nr = NrConfig { layers: 2, ..NrConfig::default() };
    let link = LinkAdaptation::new(McsLadder::downlink(Some(nr)), 0.1, 20.0);
    for bytes in [0, 750, 1_500, 6_000, 20_000] {
        let mcs = link.replayed(bytes, 106);
        let whole = mcs.tbs_bytes(106);
        assert!(whole.abs_diff(bytes) <= bytes / 30, "{whole} of {bytes} bytes");
        for n_prb in (1..=106).filter(|_| bytes > 0) {
            let size = mcs.tbs_bytes(n_prb);
            assert!(
                size == 0 || nr_size_is_possible(size, mcs.index, mcs.modulation, 2, n_prb),
                "{size} bytes on {n_prb} PRBs"
            );
        }
    }
}

#[test]
fn every_report_is_used_six_ttis_later() {
    let mut link = LinkAdaptation::new(McsLadder::downlink(None), 0.1, 1.0);
    let mut used = Vec::new();
    // Each report has another CQI: 1, 4, 7, ... dB.
    for tti in 0..40 {
        let before = link.reported_snr_db;
        link.observe(tti, 1.0 + 3.0 * tti.div_euclid(5) as f64);
        if link.reported_snr_db != before {
            used.push(tti);
        }
    }
    // The first one repeats the initial CQI.
    assert_eq!(used, [11, 16, 21, 26, 31, 36]);
}

#[test]
fn combining_two_transmissions_is_worth_3_db() {
    let mcs = mcs_of(McsTable::Pdsch64Qam, 10).unwrap();
    let at_threshold = linear(mcs.required_snr_db);
    assert!((mcs.bler(at_threshold) - 0.1).abs() < 1e-9);
    assert!((mcs.bler(2.0 * at_threshold) - 0.000_27).abs() < 0.000_1);
}

#[test]
fn allocation_is_the_smallest_that_fits() {
    let mcs = mcs_of(McsTable::Pdsch64Qam, 28).unwrap();
    let n_prb = mcs.prbs_for(1_500, 50);
    assert!(mcs.tbs_bytes(n_prb) >= 1_500 && mcs.tbs_bytes(n_prb - 1) < 1_500);
    assert_eq!(mcs.prbs_for(1_000_000, 50), 50);
    assert_eq!(mcs.prbs_for(1, 50), 1);
}
