//! The written trace is decoded again and compared with the result.

use std::collections::BTreeMap;
use std::path::PathBuf;

use airmile_decode::diag::Tagged;
use airmile_model::{Direction, Grant, Measurement, Position, Record, Stamp, TtiIndex};
use airmile_testing::shared_data;
use proptest::prelude::*;
use prost::Message;

use super::*;
use crate::{Exports, Inputs, Progress, Subject, export};
use airmile_io::perfetto::proto::{COUNTER, SLICE_BEGIN, SLICE_END, Trace as Decoded, Value};

#[derive(Debug, Clone, PartialEq)]
struct Slice {
    start_ns: u64,
    end_ns: u64,
    name: String,
    args: BTreeMap<String, Value>,
    depth: usize,
}

#[derive(Debug, Default)]
struct Shown {
    slices: BTreeMap<String, Vec<Slice>>,
    counters: BTreeMap<String, Vec<(u64, f64)>>,
    units: BTreeMap<String, String>,
}

/// Reads a trace as a viewer does: events by their time, those of one time in the order of writing;
/// an end ends the last started slice of its track.
fn show(bytes: &[u8]) -> Shown {
    let mut shown = Shown::default();
    let mut tracks = BTreeMap::new();
    let mut names = BTreeMap::new();
    let mut arguments = BTreeMap::new();
    let mut events = Vec::new();
    for packet in Decoded::decode(bytes).unwrap().packet {
        assert!(packet.trusted_packet_sequence_id.unwrap() != 0);
        if let Some(interned) = packet.interned_data {
            names.extend(interned.event_names.into_iter().map(|n| (n.iid, n.name.unwrap())));
            let new = interned.debug_annotation_names.into_iter();
            arguments.extend(new.map(|n| (n.iid, n.name.unwrap())));
        }
        if let Some(track) = packet.track_descriptor {
            assert!(track.parent_uuid.is_none_or(|p| tracks.contains_key(&p)), "parents first");
            let name = track.name.unwrap();
            if let Some(counter) = track.counter {
                shown.units.insert(name.clone(), counter.unit_name.unwrap());
            }
            assert!(tracks.insert(track.uuid.unwrap(), name).is_none(), "one track a number");
        }
        events.extend(packet.track_event.map(|event| (packet.timestamp.unwrap(), event)));
    }
    events.sort_by_key(|(ns, _)| *ns);
    let mut open: BTreeMap<u64, Vec<Slice>> = BTreeMap::new();
    for (ns, event) in events {
        let uuid = event.track_uuid.unwrap();
        let track = tracks[&uuid].clone();
        let stack = open.entry(uuid).or_default();
        match event.r#type.unwrap() {
            SLICE_BEGIN => {
                let name = event.name.unwrap_or_else(|| names[&event.name_iid].clone());
                let args = event.debug_annotations.into_iter();
                let args = args.map(|a| (arguments[&a.name_iid].clone(), a.value.unwrap()));
                let (args, depth) = (args.collect(), stack.len());
                stack.push(Slice { start_ns: ns, end_ns: ns, name, args, depth });
            }
            SLICE_END => {
                let slice = Slice { end_ns: ns, ..stack.pop().expect("an end has a beginning") };
                shown.slices.entry(track).or_default().push(slice);
            }
            COUNTER => {
                let value = event.double_counter_value;
                let value = value.unwrap_or_else(|| event.counter_value.unwrap() as f64);
                shown.counters.entry(track).or_default().push((ns, value));
            }
            other => panic!("{other}"),
        }
    }
    assert!(open.values().all(Vec::is_empty), "each slice has an end");
    for slices in shown.slices.values_mut() {
        slices.sort_by_key(|slice| (slice.start_ns, slice.depth));
    }
    shown
}

fn int(value: i64) -> Value {
    Value::Int(value)
}

fn words(value: &str) -> Value {
    Value::Text(value.to_owned())
}

/// The result for files, and the trace.
fn run(files: Vec<PathBuf>, transfers: Option<PathBuf>) -> (RadioReport, Diagnosis, Shown) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("trace.pftrace");
    let inputs = Inputs { files, transfers, ..Inputs::default() };
    let exports = Exports { perfetto: Some(path.clone()), ..Exports::default() };
    let options = RadioOptions::default();
    let (radio, diagnosis) =
        export(&inputs, &options, &exports, Subject::Diagnosis, &Progress::default()).unwrap();
    (radio, diagnosis, show(&std::fs::read(path).unwrap()))
}

/// TTIs are counted by the base station's clock, slices are on the log's clock, whose stamps are
/// off by up to 2 ms in the available logs. With synthetic times it is exact.
fn same_ms(a: f64, b: f64) -> bool {
    (a - b).abs() < 2.5
}

fn check_against_the_answer(radio: &RadioReport, diagnosis: &Diagnosis, shown: &Shown) {
    let verdict = &shown.slices["Verdict"];
    assert_eq!(verdict.len(), 1);
    assert_eq!(verdict[0].name, diagnosis.session.says);
    let count = |track: &str| shown.slices.get(track).map_or(0, Vec::len) as u64;
    assert_eq!(count("Downlink grants"), radio.evidence_counts.dl_blocks);
    assert_eq!(count("Uplink grants"), radio.evidence_counts.ul_blocks);
    for (dir, track) in [(Direction::Dl, "Downlink bursts"), (Direction::Ul, "Uplink bursts")] {
        let bursts: Vec<&Burst> = radio.bursts.iter().filter(|b| b.dir == dir).collect();
        assert_eq!(bursts.len() as u64, count(track));
        for (burst, slice) in bursts.iter().zip(shown.slices.get(track).into_iter().flatten()) {
            assert_eq!(slice.name, format!("until {}", burst.closed_by));
            assert_eq!(slice.args["bytes"], int(burst.bytes as i64));
            assert_eq!(slice.args["start_tti"], int(burst.start_tti.0));
            let ms = (slice.end_ns - slice.start_ns) as f64 / 1e6;
            assert!(same_ms(ms, burst.n_tti() as f64), "{ms} {burst:?}");
        }
    }
    let found = &shown.slices["Transfers"];
    assert_eq!(found.len(), diagnosis.transfers.len());
    for transfer in &diagnosis.transfers {
        let name = format!("{}: {}", transfer.id, transfer.verdict);
        let slice = found.iter().find(|slice| slice.name == name).unwrap();
        assert_eq!(slice.args["verdict"], words(transfer.verdict.as_str()));
        assert_eq!(slice.args["confidence"], Value::Double(transfer.confidence));
        assert_eq!(slice.args["next_step"], words(&transfer.next_step));
        let ms = (slice.end_ns - slice.start_ns) as f64 / 1e6;
        assert!(same_ms(ms, transfer.finding.duration_ms), "{ms}");
        if let Some(start_us) = transfer.finding.start_us {
            assert!((slice.start_ns / 1_000).abs_diff(start_us as u64) < 1_000);
        }
    }
    let load: Vec<f64> = radio.cell_load.iter().map(|w| w.load * 100.0).collect();
    let counted = shown.counters.get("Cell load").into_iter().flatten().map(|(_, v)| *v);
    assert_eq!(counted.collect::<Vec<f64>>(), load);
}

#[test]
fn samples_are_shown_as_they_were_diagnosed() {
    for (scenario, has) in [("sample-download", "Downlink"), ("sample-upload", "Uplink")] {
        let dir = tempfile::tempdir().unwrap();
        airmile_lab::run_scenario(scenario, None, dir.path()).unwrap();
        let (radio, diagnosis, shown) = run(vec![dir.path().join("modem.mi2log")], None);
        check_against_the_answer(&radio, &diagnosis, &shown);
        assert!(!shown.slices[&format!("{has} bursts")].is_empty());
        for (track, unit) in [
            ("Downlink PRBs per TTI", "PRB"),
            ("Uplink buffer", "bytes"),
            ("RSRP", "dBm"),
            ("RSRQ", "dB"),
            ("SNR", "dB"),
            ("Cell load", "%"),
        ] {
            assert!(!shown.counters[track].is_empty(), "{scenario} {track}");
            assert_eq!(shown.units[track], unit);
        }
    }
}

#[test]
fn verdicts_are_those_of_the_report_with_captures_and_of_captures_alone() {
    let dir = tempfile::tempdir().unwrap();
    airmile_lab::run_scenario("rate-limited-server", None, dir.path()).unwrap();
    let (log, capture) = (dir.path().join("modem.mi2log"), dir.path().join("phone.pcapng"));
    let (radio, diagnosis, shown) = run(vec![log, capture.clone()], None);
    assert_ne!(radio.transfers[0].verdict, diagnosis.transfers[0].verdict, "a cause is named");
    check_against_the_answer(&radio, &diagnosis, &shown);
    let (_, diagnosis, shown) = run(vec![capture], None);
    let found = &shown.slices["Transfers"];
    assert_eq!((found.len(), diagnosis.transfers.len()), (1, 1));
    let duration_ms = (found[0].end_ns - found[0].start_ns) as f64 / 1e6;
    assert!(same_ms(duration_ms, diagnosis.transfers[0].finding.duration_ms), "{duration_ms}");
}

/// Grants, TTI by TTI, by hand.
#[test]
fn a_table_by_hand() {
    let dir = tempfile::tempdir().unwrap();
    let grants = dir.path().join("grants.csv");
    let mut text = String::from("tti,dir,n_prb,n_prb_cell,tb,tbs_bytes,mcs,retx,padding_bytes\n");
    text.push_str("10,dl,50,50,0,1000,20,0,0\n10,dl,50,50,1,900,18,0,0\n");
    text.push_str("11,dl,50,50,0,1000,,1,0\n14,dl,4,50,0,100,20,0,70\n");
    std::fs::write(&grants, text).unwrap();
    let transfers = dir.path().join("transfers.csv");
    // Two overlap; the third is far outside of the log.
    let rows = "a,10,13,1\nb,12,15,1\nc,900000,900100,1\n";
    std::fs::write(&transfers, format!("id,start_tti,end_tti,bytes\n{rows}")).unwrap();
    let (_, _, shown) = run(vec![grants], Some(transfers));
    let ms = |ms: u64| ms * 1_000_000;
    let table: Vec<(u64, u64, &str, usize)> = shown.slices["Downlink grants"]
        .iter()
        .map(|s| (s.start_ns, s.end_ns, s.name.as_str(), s.depth))
        .collect();
    assert_eq!(
        table,
        [
            (ms(10), ms(11), "MCS 20", 0),
            (ms(10), ms(11), "MCS 18", 1),
            (ms(11), ms(12), "retransmission", 0),
            (ms(14), ms(15), "MCS 20", 0),
        ]
    );
    let second = &shown.slices["Downlink grants"][1].args;
    for (name, value) in [("tti", 10), ("n_prb", 50), ("mcs", 18), ("tbs_bytes", 900), ("tb", 1)] {
        assert_eq!(second[name], int(value), "{name}");
    }
    assert!(!second.contains_key("harq_id"), "unknown values are omitted");
    assert_eq!(
        shown.counters["Downlink PRBs per TTI"],
        [(ms(10), 50.0), (ms(12), 0.0), (ms(14), 4.0), (ms(15), 0.0)]
    );
    let spans: Vec<(u64, u64, &str)> = shown.slices["Transfers"]
        .iter()
        .map(|s| (s.start_ns, s.end_ns, s.name.split_once(':').unwrap().0))
        .collect();
    assert_eq!(spans, [(ms(10), ms(13), "a"), (ms(12), ms(15), "b"), (ms(15), ms(15), "c")]);
    let far = &shown.slices["Transfers"][2].args;
    assert_eq!(far["start_tti"], int(900_000), "its own times are kept");
}

#[test]
fn real_logs_are_shown_as_they_were_diagnosed() {
    for name in ["pixelxl_2018_download.mi2log", "seoul2021_upload_500KB.mi2log"] {
        let Some(path) = shared_data(&format!("diag/{name}")) else { continue };
        let (radio, diagnosis, shown) = run(vec![path], None);
        check_against_the_answer(&radio, &diagnosis, &shown);
    }
}

#[test]
fn nothing_is_written_over_or_left_behind() {
    let dir = tempfile::tempdir().unwrap();
    let grants = dir.path().join("grants.csv");
    std::fs::write(&grants, "tti,dir,n_prb\n1,dl,5\n").unwrap();
    let empty = dir.path().join("transfers.csv");
    std::fs::write(&empty, "id,start_us,end_us,bytes\na,1,2,3\n").unwrap();
    let out = dir.path().join("trace");
    let says = |input: &PathBuf, perfetto: &PathBuf| {
        let inputs = Inputs { files: vec![input.clone()], ..Inputs::default() };
        let exports = Exports { perfetto: Some(perfetto.clone()), ..Exports::default() };
        let options = RadioOptions::default();
        export(&inputs, &options, &exports, Subject::Diagnosis, &Progress::default())
            .unwrap_err()
            .to_string()
    };
    assert!(says(&grants, &grants).contains("is one of the files to read"));
    assert_eq!(std::fs::read_to_string(&grants).unwrap(), "tti,dir,n_prb\n1,dl,5\n");
    let nowhere = dir.path().join("none/trace");
    assert!(says(&grants, &nowhere).contains("cannot write"), "{}", says(&grants, &nowhere));
    assert!(says(&empty, &out).contains("no radio records"));
    assert!(!out.exists());
    // Another file stays, and an earlier trace if nothing is written.
    let earlier = [BEGINS, b"precious"].concat();
    for (content, words) in [(&b"precious"[..], "exists"), (&earlier, "no radio records")] {
        std::fs::write(&out, content).unwrap();
        assert!(says(&empty, &out).contains(words));
        assert_eq!(std::fs::read(&out).unwrap(), content);
    }
    assert!(says(&grants, &PathBuf::from("-")).contains("name a file"));
    // One file under two names.
    let exports = Exports { html: Some(out.clone()), perfetto: Some(dir.path().join("./trace")) };
    let inputs = Inputs { files: vec![grants], ..Inputs::default() };
    let options = RadioOptions::default();
    let both =
        export(&inputs, &options, &exports, Subject::Diagnosis, &Progress::default()).unwrap_err();
    assert!(both.to_string().contains("name different files"));
}

/// Each leg of EN-DC has TTIs of its own: its grants are on time, on its own tracks.
#[test]
fn times_of_two_legs_do_not_fall() {
    let dir = tempfile::tempdir().unwrap();
    airmile_lab::run_scenario("nsa-split-bearer", None, dir.path()).unwrap();
    let path = dir.path().join("trace.pftrace");
    let inputs = Inputs { files: vec![dir.path().join("nr_modem.mi2log")], ..Inputs::default() };
    let exports = Exports { perfetto: Some(path.clone()), ..Exports::default() };
    export(&inputs, &RadioOptions::default(), &exports, Subject::Diagnosis, &Progress::default())
        .unwrap();
    let bytes = std::fs::read(path).unwrap();
    let mut last = BTreeMap::new();
    for packet in Decoded::decode(&*bytes).unwrap().packet {
        let Some(event) = packet.track_event else { continue };
        if event.r#type == Some(COUNTER) {
            let (track, ns) = (event.track_uuid.unwrap(), packet.timestamp.unwrap());
            let before = last.insert(track, ns).unwrap_or(0);
            assert!(before <= ns, "{track}: {before} {ns}");
        }
    }
    let shown = show(&bytes);
    let of = |track: &&String| track.contains(" grants");
    let tracks: Vec<&str> = shown.slices.keys().filter(of).map(String::as_str).collect();
    let links = ["Downlink grants", "Downlink grants, LTE", "Uplink grants", "Uplink grants, LTE"];
    assert_eq!(tracks, links, "none is late");
}

#[test]
fn records_of_no_numerology_do_not_change_the_axis() {
    let mut bytes = Vec::new();
    let mut trace = Trace::new(&mut bytes, "x", &RadioOptions::default());
    for tti in 0..100 {
        let position = Position { numerology: 1, ..Position::lte(tti) };
        let record = Record::Grant(Grant::new(position, Direction::Dl, 5));
        trace.push(&Tagged { subscription: 0, record });
    }
    let hole = airmile_model::Hole { at: None, position: Position::lte(100), n_tti: 10, why: "x" };
    trace.push(&Tagged { subscription: 0, record: hole.into() });
    for phone in trace.phones.values_mut() {
        phone.finish(&mut trace.out).unwrap();
    }
    drop(trace);
    let hole = &show(&bytes).slices["Gaps in the log"][0];
    assert_eq!((hole.start_ns, hole.end_ns), (50_000_000, 55_000_000));
}

proptest! {
    /// In any order of blocks, each has its slice of at most a TTI, and slices do not overlap
    /// partially.
    #[test]
    fn any_order_of_grants(
        ttis in prop::collection::vec((0_i64..40, any::<bool>(), 0_u8..2), 0..60),
    ) {
        let mut bytes = Vec::new();
        let mut trace = Trace::new(&mut bytes, "x", &RadioOptions::default());
        for (tti, up, cell) in &ttis {
            let position = Position { cell: *cell, ..Position::lte(*tti) };
            let dir = if *up { Direction::Ul } else { Direction::Dl };
            let record = Record::Grant(Grant {
                at: Some(Stamp::modem(1_000_000_000 + tti * 1_000_000)),
                ..Grant::new(position, dir, 5)
            });
            trace.push(&Tagged { subscription: 0, record });
        }
        for phone in trace.phones.values_mut() {
            phone.finish(&mut trace.out).unwrap();
        }
        drop(trace);
        let shown = show(&bytes);
        let mut n = 0;
        for slices in shown.slices.values() {
            n += slices.len();
            for slice in slices {
                let Value::Int(tti) = slice.args["tti"] else { panic!("{slice:?}") };
                let start_ns = u64::try_from(1_000_000_000 + tti * 1_000_000).unwrap();
                prop_assert_eq!((slice.start_ns, slice.end_ns), (start_ns, start_ns + 1_000_000));
            }
        }
        prop_assert_eq!(n, ttis.len());
    }
}

/// A trace's memory does not grow with the grants.
#[test]
fn grants_are_not_held() {
    struct Sink(u64);
    impl Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len() as u64;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut trace = Trace::new(Sink(0), "x", &RadioOptions::default());
    for tti in 0..200_000 {
        let mut grant = Grant::new(Position::lte(tti), Direction::Dl, (tti % 50) as u16);
        grant.mcs = Some((tti % 29) as u8);
        trace.push(&Tagged { subscription: 0, record: Record::Grant(grant) });
    }
    let phone = &trace.phones[&0];
    assert_eq!(phone.held(), 2, "a track for grants, one for PRBs, no anchor without times");
    assert!(trace.out.names() < 50, "names are as many as there are MCS and fields");
}

#[test]
fn a_failing_disk_is_told() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::Error::from(io::ErrorKind::StorageFull))
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut trace = Trace::new(Full, "x", &RadioOptions::default());
    let measurement = Measurement {
        at: None,
        position: Position { tti: TtiIndex(3), ..Position::default() },
        earfcn: 1,
        pci: 1,
        rsrp_rx0_dbm: None,
        rsrp_rx1_dbm: None,
        rsrp_dbm: Some(-100.0),
        rsrq_rx0_db: None,
        rsrq_rx1_db: None,
        rsrq_db: None,
        rssi_rx0_dbm: None,
        rssi_rx1_dbm: None,
        rssi_dbm: None,
        snr_rx0_db: None,
        snr_rx1_db: None,
    };
    trace.push(&Tagged { subscription: 0, record: measurement.into() });
    assert_eq!(trace.failed.unwrap().kind(), io::ErrorKind::StorageFull);
}
