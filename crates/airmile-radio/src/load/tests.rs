use airmile_model::{CellInfo, Clock, Position};
use proptest::prelude::*;

use super::*;

/// A cell that follows the standard: slope, noise over reference power, load.
#[derive(Debug, Clone, Copy)]
struct Synthetic {
    slope: f64,
    snr_db: f64,
}

impl Synthetic {
    /// A phone's measurement on it.
    fn measure(self, tti: i64, load: f64) -> Measurement {
        let noise = 12.0 * 10f64.powf(-self.snr_db / 10.0);
        let rsrq_db = -10.0 * (4.0 + noise + self.slope * 16.0 * load).log10();
        reading(tti, rsrq_db as f32, Some(self.snr_db as f32))
    }

    /// Load by window: own share first, then that of other users for the same time.
    fn records(self, loads: &[(f64, bool)]) -> Vec<Record> {
        let mut records = vec![describe()];
        for (n, (load, own)) in loads.iter().enumerate() {
            for k in 0..20 {
                let tti = n as i64 * WINDOW_MS + 10 * k;
                records.push(self.measure(tti, *load).into());
                if *own {
                    let mut grant =
                        Grant::new(Position::lte(tti), Direction::Dl, (load * 50.0) as u16);
                    grant.mcs = Some(10);
                    records.push(grant.into());
                }
            }
        }
        records
    }
}

fn describe() -> Record {
    Record::CellInfo(CellInfo {
        at: None,
        timing_segment: 0,
        cell: 0,
        pci: None,
        earfcn: None,
        n_prb_dl: Some(50),
        n_prb_ul: None,
        n_tx_antennas: Some(2),
        band: None,
        source: "test",
    })
}

fn reading(tti: i64, rsrq_db: f32, snr_db: Option<f32>) -> Measurement {
    Measurement {
        at: Some(Stamp { clock: Clock::Modem, ns: tti * 1_000_000 }),
        position: Position::lte(tti),
        earfcn: 6300,
        pci: 70,
        rsrp_rx0_dbm: Some(-100.0),
        rsrp_rx1_dbm: None,
        rsrp_dbm: Some(-100.0),
        rsrq_rx0_db: Some(rsrq_db),
        rsrq_rx1_db: None,
        rsrq_db: Some(rsrq_db),
        rssi_rx0_dbm: None,
        rssi_rx1_dbm: None,
        rssi_dbm: None,
        snr_rx0_db: snr_db,
        snr_rx1_db: snr_db,
    }
}

fn estimate(records: &[Record], fit: Fit) -> Vec<LoadEstimate> {
    let mut estimator = LoadEstimator::new(LoadOptions { fit, ..LoadOptions::default() });
    records.iter().for_each(|record| estimator.push(record));
    estimator.finish()
}

#[test]
fn plain_equation_7_by_hand() {
    // One port: idle 1/2 (-3.01 dB), full 1/12; two ports: 1/4 and 1/20
    // (CLAW, section 4.2 (i), (ii)).
    let cases = [
        (2.0, 1, 0.0),
        (12.0, 1, 1.0),
        (7.0, 1, 0.5),
        (4.0, 2, 0.0),
        (20.0, 2, 1.0),
        (12.0, 2, 0.5),
    ];
    for (inverse_q, n_ant, share) in cases {
        let rsrq_db = -10.0 * f64::log10(inverse_q);
        assert!((plain_share(rsrq_db, n_ant) - share).abs() < 1e-9, "1/Q {inverse_q}, {n_ant}");
        assert!((plain_rsrq_db(share, n_ant) - rsrq_db).abs() < 1e-9);
    }
    // Values outside of the model are clipped.
    assert_eq!((plain_share(-1.0, 2), plain_share(-20.0, 2)), (0.0, 1.0));
}

#[test]
fn slope_and_floor_are_recovered() {
    let cell = Synthetic { slope: 0.4, snr_db: 6.0 };
    // Idle, own downloads, others at 60 %, own again.
    let loads = [(0.0, false), (1.0, true), (1.0, true), (1.0, true), (0.6, false), (1.0, true)];
    let found = estimate(&cell.records(&loads), Fit::Others);
    assert_eq!(found.len(), loads.len());
    for (window, (load, _)) in found.iter().zip(loads) {
        assert!((window.load.unwrap() - load).abs() < 0.02, "{window:?}");
        assert!(window.confidence > 0.7, "{window:?}");
    }
    // 60 % of 200 x 50 pairs in use, none by the phone: 20 pairs a TTI are free, and MCS
    // 10 (16QAM, I_TBS 9) is from the window before.
    let others = &found[4];
    assert_eq!(others.own_share, 0.0);
    assert!((others.free_prb().unwrap() - 20.0).abs() < 1.0);
    let bits = f64::from(airmile_model::tables::tbs_bits(9, 20).unwrap());
    assert!((others.capacity_bps.unwrap() / 1_000.0 - bits).abs() < 0.05 * bits);
    let bytes = others.capacity_bytes().unwrap();
    assert!((bytes - others.capacity_bps.unwrap() * 0.2 / 8.0).abs() < 1e-6);
    // Plain equation 7 sees noise as load, and a full cell as half empty.
    let plain = estimate(&cell.records(&loads), Fit::Plain);
    assert!(plain[0].load.unwrap() > 0.15 && plain[1].load.unwrap() < 0.65);
}

#[test]
fn readings_that_are_means_do_not_lower_the_slope() {
    // A rate-limited phone fills single subframes; readings of 40 ms average them with
    // idle time, except some in which the cell was full throughout.
    let anchor = |power| Anchor::Own { power, own_share: 1.0 };
    let means = [0.1, 0.15, 0.2, 0.2, 0.3, 0.4, 0.5, 0.5, 0.5];
    let slope = Slope::fit(means.map(anchor));
    assert!(!slope.agree && (slope.value - 0.5).abs() < 0.01, "{slope:?}");
    let agreed = Slope::fit([0.45, 0.5, 0.5, 0.55].map(anchor));
    assert!(agreed.agree && agreed.confidence() > slope.confidence());
}

#[test]
fn waiting_data_means_a_full_cell() {
    let waited = |power| Anchor::Waited { power };
    let check = |anchors: Vec<Anchor>, expected: Option<f64>| {
        let slope = Slope::fit(anchors);
        match expected {
            Some(value) => assert!((slope.value - value).abs() < 0.01, "{slope:?}"),
            None => assert_eq!(slope, Slope::PRIOR),
        }
    };
    let full = |n: usize| (0..n).map(|i| waited(0.4 + 0.01 * (i % 3) as f64)).collect::<Vec<_>>();
    check(full(30), Some(0.41));
    // Too few; or powers that do not occur in a cell that is always full.
    check(full(19), None);
    check((0..30).map(|i| waited(0.02 * f64::from(i))).collect(), None);
    // One of the phone's own subframes changes nothing, three outweigh all.
    let with_own = |n| {
        let mut anchors = full(30);
        anchors.extend(std::iter::repeat_n(Anchor::Own { power: 0.8, own_share: 1.0 }, n));
        anchors
    };
    check(with_own(1), Some(0.41));
    check(with_own(3), Some((0.8f64.ln() * 3.0 / 3.1).exp()));
}

#[test]
fn a_paced_flow_does_not_fill_the_cell() {
    // A small block in every TTI of an idle cell, measured every 10 ms.
    let check = |padding_bytes: Option<u32>, expected: f64| {
        let cell = Synthetic { slope: 1.0, snr_db: 15.0 };
        let mut records = cell.records(&[(0.12, false); 20]);
        let first = records.iter().find_map(|record| match record {
            Record::Measurement(m) => Some(m.position),
            _ => None,
        });
        for tti in 0..4_000 {
            let position = Position { tti: first.unwrap().tti.plus(tti), ..first.unwrap() };
            let mut grant = Grant::new(position, Direction::Dl, 6);
            (grant.n_prb_cell, grant.padding_bytes) = (Some(50), padding_bytes);
            grant.retx = Some(false);
            records.push(grant.into());
        }
        records.sort_by_key(|record| match record {
            Record::Measurement(m) => m.position.tti.0,
            Record::Grant(grant) => grant.position.tti.0,
            _ => i64::MIN,
        });
        let found = estimate(&records, Fit::Others);
        let load = found[3].load.unwrap();
        assert!((load - expected).abs() < 0.05, "{padding_bytes:?}: {:?}", found[3]);
    };
    check(Some(40), 0.12);
    check(None, 0.12);
    // Blocks without padding, TTI after TTI: more was queued than they held.
    check(Some(0), 1.0);
}

#[test]
fn the_load_includes_the_phones_own() {
    // Blocks of half the cell in 2 of 5 subframes, between the measured ones, which are idle.
    let cell = Synthetic { slope: 1.0, snr_db: 20.0 };
    let check = |with_blocks: bool| {
        let mut records = cell.records(&[(0.0, false); 2]);
        for tti in (0..WINDOW_MS).filter(|tti| with_blocks && [1, 2].contains(&(tti % 5))) {
            records.insert(2, Grant::new(Position::lte(tti), Direction::Dl, 25).into());
        }
        estimate(&records, Fit::Others).remove(0)
    };
    let (with, without) = (check(true), check(false));
    assert_eq!((with.own_share, with.load), (0.2, Some(0.2)));
    assert_eq!(with.n_idle_prb, Some(8_000.0));
    assert_eq!(with.n_free_prb, Some(10_000.0));
    assert!(
        with.confidence < 0.5 * without.confidence,
        "{} {}",
        with.confidence,
        without.confidence
    );
}

#[test]
fn past_alone_begins_with_the_prior() {
    let cell = Synthetic { slope: 0.5, snr_db: 10.0 };
    let found = estimate(&cell.records(&[(1.0, true), (1.0, true)]), Fit::Past);
    assert_eq!(found[0].slope, 1.0);
    assert!((found[0].load.unwrap() - 0.5).abs() < 0.01);
    assert!((found[1].load.unwrap() - 1.0).abs() < 0.02);
    assert!(found[1].confidence > found[0].confidence);
}

#[test]
fn a_window_is_not_calibrated_on_itself() {
    // The only window with anchors: its own share must not determine its load.
    let cell = Synthetic { slope: 0.5, snr_db: 10.0 };
    let found = estimate(&cell.records(&[(0.0, false), (1.0, true)]), Fit::Others);
    assert_eq!(found[1].slope, 1.0);
    // The other one may use them.
    assert!((found[0].slope - 0.5).abs() < 0.01);
}

#[test]
fn what_cannot_be_told_has_no_value() {
    let noisy = Synthetic { slope: 0.5, snr_db: -1.0 };
    let found = estimate(&noisy.records(&[(1.0, true)]), Fit::Others);
    assert_eq!((found.len(), found[0].load, found[0].confidence), (1, None, 0.0));
    assert_eq!((found[0].free_prb(), found[0].capacity_bps), (None, None));
    // A stuck antenna is left out; without another, nothing is left.
    let stuck = vec![describe(), reading(0, -30.0, Some(10.0)).into()];
    assert_eq!(estimate(&stuck, Fit::Others)[0].load, None);
    // No measurement, no window.
    let grant = Grant::new(Position::lte(0), Direction::Dl, 50);
    assert!(estimate(&[describe(), grant.into()], Fit::Others).is_empty());
}

#[test]
fn lower_envelope_stands_in_for_snr() {
    let cell = Synthetic { slope: 0.4, snr_db: 6.0 };
    let loads = [(0.0, false), (0.0, false), (1.0, true), (1.0, true), (0.5, false)];
    let mut records = cell.records(&loads);
    for record in &mut records {
        if let Record::Measurement(m) = record {
            (m.snr_rx0_db, m.snr_rx1_db) = (None, None);
        }
    }
    for (window, (load, _)) in estimate(&records, Fit::Others).iter().zip(loads) {
        assert!((window.load.unwrap() - load).abs() < 0.03, "{window:?}");
    }
}

proptest! {
    #[test]
    fn a_later_log_gives_the_same(shift in 0i64..1_000_000, slope in 0.3f64..1.5) {
        let cell = Synthetic { slope, snr_db: 12.0 };
        let loads = [(0.2, false), (1.0, true), (0.9, true), (0.5, false)];
        let records = cell.records(&loads);
        let mut later = records.clone();
        for record in &mut later {
            match record {
                Record::Grant(grant) => grant.position.tti.0 += shift,
                Record::Measurement(m) => {
                    m.position.tti.0 += shift;
                    m.at = m.at.map(|at| Stamp { ns: at.ns + shift * 1_000_000, ..at });
                }
                _ => {}
            }
        }
        for fit in [Fit::Others, Fit::Past, Fit::Plain] {
            let (first, mut second) = (estimate(&records, fit), estimate(&later, fit));
            for window in &mut second {
                window.tti.0 -= shift;
                window.at = window.at.map(|at| Stamp { ns: at.ns - shift * 1_000_000, ..at });
            }
            prop_assert_eq!(first, second);
        }
    }

    #[test]
    fn shares_and_prbs_stay_in_bounds(
        readings in prop::collection::vec(
            (0i64..3_000, -30f32..0.0, prop::option::of(-20f32..31.0), 0u16..60), 1..80)
    ) {
        let mut records = vec![describe()];
        for (tti, rsrq_db, snr_db, n_prb) in readings {
            records.push(reading(tti, rsrq_db, snr_db).into());
            records.push(Grant::new(Position::lte(tti), Direction::Dl, n_prb).into());
        }
        for window in estimate(&records, Fit::Others) {
            prop_assert!((0.0..=1.0).contains(&window.own_share));
            prop_assert!((0.0..=1.0).contains(&window.confidence));
            if let Some(load) = window.load {
                prop_assert!((window.own_share..=1.0).contains(&load));
                let free = window.n_free_prb.unwrap();
                prop_assert!(free <= window.n_total_prb && free >= window.n_own_prb);
            }
        }
    }
}
