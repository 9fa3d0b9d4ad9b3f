use super::*;
use crate::diag::msg::shared::bytes_of;

#[test]
fn v22_byte_by_byte() {
    let mut payload = bytes_of(
        "01 01 00 00     # version 1, one subpacket
         19 16 EC 01     # id 25, version 22, 492 = 4 + 488 bytes
         14 05 00 00     # EARFCN 1300
         01 00 00 00     # one cell
         4D 12 00 00     # 0x124D: PCI 77, serving index 1 << 9, serving 1 << 12
         00 12 00 00     # 0x1200: SFN 512, subframe 4 << 10
         00 00 00 00
         00 00 00 00
         00 00 14 00     # RSRP of antenna 0: 1280 << 10
         00 00 4E 00     # of antenna 1: 1248 << 12
         00 00 00 00
         00 20 50 00     # combined: 1282 << 12
         00 00 14 00     # RSRQ of antenna 0: 320 << 12
         30 01 00 00     # of antenna 1: 304
         00 20 05 00     # combined: 328 << 10
         00 80 07 38     # RSSI: antenna 0 480 << 10, antenna 1 448 << 21
         00 00 00 00
         E2 01 00 00     # combined: 482
         00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
         5E 8B 02 00     # SNR: antenna 0 350, antenna 1 325 << 9",
    );
    payload.resize(8 + 488, 0);
    let (meas, problem) = ServCellMeas::parse(&payload).unwrap().unwrap();
    assert_eq!(problem, None);
    let cell = meas.subpackets[0];
    assert_eq!((cell.earfcn, cell.pci, cell.is_serving), (1300, 77, Some(true)));
    assert_eq!((cell.n_cells, cell.serving_cell), (Some(1), 1));
    assert_eq!(cell.tti, Tti::new(512, 4));
    assert_eq!(cell.rsrp_rx0_dbm, Some(-100.0));
    assert_eq!(cell.rsrp_rx1_dbm, Some(-102.0));
    assert_eq!(cell.rsrp_dbm, Some(-99.875));
    assert_eq!(cell.rsrq_rx0_db, Some(-10.0));
    assert_eq!(cell.rsrq_rx1_db, Some(-11.0));
    assert_eq!(cell.rsrq_db, Some(-9.5));
    assert_eq!(cell.rssi_rx0_dbm, Some(-80.0));
    assert_eq!(cell.rssi_rx1_dbm, Some(-82.0));
    assert_eq!(cell.rssi_dbm, Some(-79.875));
    assert_eq!((cell.snr_rx0_db, cell.snr_rx1_db), (Some(15.0), Some(12.5)));
    assert_eq!(meas.emit(), payload);
    // A raw 0 is "not measured".
    payload[8 + 84..][..4].fill(0);
    let (meas, _) = ServCellMeas::parse(&payload).unwrap().unwrap();
    assert_eq!(meas.subpackets[0].snr_rx0_db, None);
}

/// A measurement with each field set in its own 32-bit or 16-bit word, at the position
/// given by the layout's description.
fn built(version: u8, len: usize, words: &[(usize, u32)]) -> ServCellSubpacket {
    let mut payload = bytes_of("01 01 00 00 19 00 00 00");
    payload[5] = version;
    payload[6..8].copy_from_slice(&(len as u16 + 4).to_le_bytes());
    payload.resize(8 + len, 0);
    for &(at, value) in words {
        for (byte, value) in payload[8 + at..].iter_mut().zip(value.to_le_bytes()) {
            *byte |= value;
        }
    }
    let (meas, problem) = ServCellMeas::parse(&payload).unwrap().unwrap();
    assert_eq!(problem, None);
    meas.subpackets[0]
}

#[test]
fn v4_as_described() {
    let cell = built(
        4,
        64,
        &[
            (0, 1300),
            (2, 77 | 1 << 9),
            (4, 600 | 3 << 10),
            (12, 1000 << 10),
            (16, 1001 << 12),
            (20, 1002 << 12),
            (24, 300 << 12),
            (28, 301 | 302 << 20),
            (32, 400 << 10 | 401 << 21),
            (36, 402),
            (60, 250 | 251 << 9),
        ],
    );
    assert_eq!((cell.earfcn, cell.pci, cell.serving_cell), (1300, 77, 1));
    assert_eq!((cell.tti, cell.sfn, cell.is_serving), (None, Some(600), None));
    let rsrp = [cell.rsrp_rx0_dbm, cell.rsrp_rx1_dbm, cell.rsrp_dbm];
    assert_eq!(rsrp, [Some(-117.5), Some(-117.4375), Some(-117.375)]);
    let rsrq = [cell.rsrq_rx0_db, cell.rsrq_rx1_db, cell.rsrq_db];
    assert_eq!(rsrq, [Some(-11.25), Some(-11.1875), Some(-11.125)]);
    let rssi = [cell.rssi_rx0_dbm, cell.rssi_rx1_dbm, cell.rssi_dbm];
    assert_eq!(rssi, [Some(-85.0), Some(-84.9375), Some(-84.875)]);
    assert_eq!(cell.snr_rx0_db, Some(5.0));
}

/// v48 and v59: -90 dBm, -12 dB and -61 dBm fit 50 PRBs; an RSSI of -62.5 dBm fits nothing.
#[test]
fn a_layout_without_a_sample_is_taken_where_it_adds_up() {
    for (version, len, shift) in [(48, 152, 0), (50, 152, 0), (59, 156, 4), (66, 156, 4)] {
        let words = |rssi: u32| {
            [
                (0, 1300),
                (12 + shift, 77 | 1 << 12),
                (16 + shift, 512 | 4 << 10),
                (28 + shift, 1440 << 10),
                (32 + shift, 1424 << 12),
                (44 + shift, 1440),
                (48 + shift, 288 | 272 << 20),
                (56 + shift, 288),
                (60 + shift, rssi | 784 << 11),
                (68 + shift, 784),
                (104 + shift, 300 | 310 << 9),
            ]
        };
        let cell = built(version, len, &words(784));
        assert_eq!((cell.earfcn, cell.pci, cell.tti), (1300, 77, Tti::new(512, 4)));
        assert_eq!((cell.rsrp_rx0_dbm, cell.rsrp_rx1_dbm), (Some(-90.0), Some(-91.0)));
        assert_eq!((cell.rsrq_rx0_db, cell.rssi_rx0_dbm), (Some(-12.0), Some(-61.0)));
        assert_eq!((cell.rsrp_dbm, cell.snr_rx1_db), (Some(-90.0), Some(11.0)));
        let meas = ServCellMeas { version: 1, subpackets: vec![cell] };
        assert_eq!(ServCellMeas::parse(&meas.emit()).unwrap().unwrap().0, meas);
        let mut other = meas;
        other.subpackets[0].rssi_rx0_dbm = Some(-62.5);
        assert_eq!(ServCellMeas::parse(&other.emit()), Ok(None), "v{version}");
    }
}

#[test]
fn v18_as_described() {
    let cell = built(
        18,
        48,
        &[
            (0, 1300),
            (4, 77 | 1 << 12),
            (8, 512 | 4 << 10),
            (21, 1000 << 2),
            (25, 1001 << 4),
            (29, 1002 << 4),
            (33, 300 << 4),
            (37, 301 << 2 | 302 << 12),
            (41, 400 << 2 | 401 << 13),
        ],
    );
    assert_eq!((cell.earfcn, cell.pci, cell.is_serving), (1300, 77, Some(true)));
    assert_eq!(cell.tti, Tti::new(512, 4));
    let rsrp = [cell.rsrp_rx0_dbm, cell.rsrp_rx1_dbm, cell.rsrp_dbm];
    assert_eq!(rsrp, [Some(-117.5), Some(-117.4375), Some(-117.375)]);
    let rsrq = [cell.rsrq_rx0_db, cell.rsrq_rx1_db, cell.rsrq_db];
    assert_eq!(rsrq, [Some(-11.25), Some(-11.1875), Some(-11.125)]);
    let rssi = [cell.rssi_rx0_dbm, cell.rssi_rx1_dbm, cell.rssi_dbm];
    assert_eq!(rssi, [Some(-85.0), Some(-84.9375), Some(-84.9375)]);
    assert_eq!(cell.snr_rx0_db, None);
}
