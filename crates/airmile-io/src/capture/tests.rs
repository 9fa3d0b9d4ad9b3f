use super::*;
use crate::pcapng::{DataLink, PcapNgFile, PcapNgInterface, PcapNgPacket};

/// A capture of raw IP (UDP without data) at these times in ms.
fn capture(times_ms: &[u32]) -> Vec<u8> {
    let words = |words: &[u32]| words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<_>>();
    let mut out = words(&[0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, 101]);
    let udp = [
        0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2, 0, 53, 0, 53, 0, 8,
        0, 0,
    ];
    for ms in times_ms {
        out.extend(words(&[1_000 + ms / 1_000, ms % 1_000 * 1_000, 28, 28]));
        out.extend(udp);
    }
    out
}

/// A study and a diagnosis put packets in order, and agree on which come too late.
#[test]
fn packets_that_are_too_late_are_damage_whoever_reads() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let files = [file.path().to_owned()];
    for (times_ms, order_ms, expected) in [
        (&[0, 10, 20, 30][..], &[0, 10, 20, 30][..], false),
        (&[0, 400, 100, 500], &[0, 100, 400, 500], false),
        (&[0, 400, 1_000, 300, 1_100], &[0, 400, 300, 1_000, 1_100], true),
    ] {
        std::fs::write(file.path(), capture(times_ms)).unwrap();
        let progress = Progress::default();
        let captures = CaptureReading { captures: (&files).into(), limits: Default::default() };
        let mut order = Vec::new();
        let mut note = |packet: &Packet<'_>| order.push(packet.at_ns / 1_000_000 - 1_000_000);
        let (reports, _) = read_captures(captures, &progress, &mut note).unwrap();
        assert_eq!(order, order_ms);
        let sorted = read_capture(file.path(), &progress, &mut |_| {}).unwrap();
        assert_eq!((reports[0].damaged, sorted.damaged), (expected, expected), "{times_ms:?}");
        assert_eq!(reports[0].problems, sorted.problems);
        assert_eq!(reports[0].items, times_ms.len() as u64);
    }
}

/// Parts of a ring, as a shell orders their names (`cap1 cap10 cap2`), are read as one in order of time.
#[test]
fn files_are_read_in_order_of_their_first_packets() {
    let dir = tempfile::tempdir().unwrap();
    let parts = [("cap1", &[0, 10][..]), ("cap10", &[40, 50]), ("cap2", &[20, 30]), ("cap3", &[])];
    let files = parts.map(|(name, times_ms)| {
        let path = dir.path().join(name);
        std::fs::write(&path, capture(times_ms)).unwrap();
        path
    });
    let captures = CaptureReading { captures: (&files).into(), limits: Default::default() };
    let mut order = Vec::new();
    let mut note = |packet: &Packet<'_>| order.push(packet.at_ns / 1_000_000 - 1_000_000);
    let (reports, _) = read_captures(captures, &Progress::default(), &mut note).unwrap();
    assert_eq!(order, [0, 10, 20, 30, 40, 50]);
    let is_read_as = |(file, name): (&FileReport, &str)| file.path.ends_with(name);
    assert!(reports.iter().zip(["cap1", "cap2", "cap10", "cap3"]).all(is_read_as), "{reports:?}");
    assert!(reports[..3].iter().all(|file| file.problems.is_empty()), "{reports:?}");
}

/// Behind the first bytes, and from a stream, packets stay in the order of the file.
#[test]
fn packets_out_of_order_that_are_not_put_in_order_are_reported() {
    let stream = CaptureStream {
        name: "-".into(),
        read: Box::new(std::io::Cursor::new(capture(&[0, 400, 100, 500]))),
    };
    let captures =
        CaptureReading { captures: Captures::Stream(stream), limits: Default::default() };
    let (reports, _) = read_captures(captures, &Progress::default(), &mut |_| {}).unwrap();
    let what = "1 packet not in order of time";
    assert!(reports[0].problems[0].what.starts_with(what), "{reports:?}");
}

/// The packets of a stream are seen once: it is warned of its clock as a file is.
#[test]
fn a_coarse_clock_of_a_stream_is_reported() {
    let times_ms: Vec<u32> = (0..60).map(|i| i * i / 3 * 10).collect();
    let read = |captures: Captures<'_>| {
        let reading = CaptureReading { captures, limits: Default::default() };
        let (reports, _) = read_captures(reading, &Progress::default(), &mut |_| {}).unwrap();
        reports[0].problems.clone()
    };
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), capture(&times_ms)).unwrap();
    let of_file = read((&[file.path().to_owned()]).into());
    assert!(of_file[0].what.starts_with("its clock has ticks of 10 ms"), "{of_file:?}");
    let bytes = std::io::Cursor::new(capture(&times_ms));
    let stream = CaptureStream { name: "-".into(), read: Box::new(bytes) };
    assert_eq!(read(Captures::Stream(stream)), of_file);
}

#[test]
fn packets_with_impossible_times_are_damage() {
    let raw = PcapNgInterface { link: DataLink::RAW, name: "phone", what: "" };
    let mut out = PcapNgFile::begin(Vec::new(), None, 0, &[raw]).unwrap();
    for at_ns in [1_000, 1_600_000_000_000_000_000, i64::MAX] {
        let data = &capture(&[0])[40..];
        let packet = PcapNgPacket { interface_id: 0, at_ns, inbound: true, data, wire_bytes: 28 };
        out.packet(&packet).unwrap();
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), out.into_inner()).unwrap();
    let report = read_capture(file.path(), &Progress::default(), &mut |_| {}).unwrap();
    let what = "1 packet has a time that is not from 1970 to 2116";
    assert!(report.problems[0].what.starts_with(what), "{report:?}");
    assert!(report.damaged);
}
