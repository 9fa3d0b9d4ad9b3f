use proptest::prelude::*;

use super::*;

const LE_US: [u8; 4] = [0xd4, 0xc3, 0xb2, 0xa1];

fn pcap(records: &[(u32, &[u8])]) -> Vec<u8> {
    let mut out = LE_US.to_vec();
    out.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0]);
    for (seconds, data) in records {
        let n = data.len() as u32;
        for word in [*seconds, 5, n, n + 1000] {
            out.extend(word.to_le_bytes());
        }
        out.extend_from_slice(data);
    }
    out
}

fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let mut body = body.to_vec();
    body.resize(body.len().next_multiple_of(4), 0);
    let length = body.len() as u32 + 12;
    [&kind.to_le_bytes()[..], &length.to_le_bytes(), &body, &length.to_le_bytes()].concat()
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}

fn section() -> Vec<u8> {
    block(0x0a0d_0d0a, &words(&[0x1a2b_3c4d, 1, u32::MAX, u32::MAX]))
}

/// An interface whose clock ticks in nanoseconds.
fn interface(link: u32) -> Vec<u8> {
    block(1, &words(&[link, 96, 0x0001_0009, 9, 0]))
}

fn packet(interface: u32, ns: u64, data: &[u8]) -> Vec<u8> {
    let n = data.len() as u32;
    let mut body = words(&[interface, (ns >> 32) as u32, ns as u32, n, n + 7]);
    body.extend_from_slice(data);
    block(6, &body)
}

/// Frames as (offset, ns, interface, link, wire bytes, data), then problems.
type Read = (Vec<(u64, i64, u32, u32, u32, Vec<u8>)>, Vec<String>);

fn read(capture: &[u8], piece: usize) -> Read {
    let (mut frames, mut problems) = (Vec::new(), Vec::new());
    let mut sink = |captured: Captured<'_>| match captured {
        Captured::Frame(f) => {
            frames.push((f.offset, f.at_ns, f.interface, f.link, f.wire_bytes, f.data.to_vec()));
        }
        Captured::Problem(p) => problems.push(p.to_string()),
    };
    let mut reader = CaptureReader::new();
    capture.chunks(piece).for_each(|piece| reader.push(piece, &mut sink));
    reader.finish(&mut sink);
    (frames, problems)
}

#[test]
fn pcap_records_with_their_places() {
    let capture = pcap(&[(1, b"abc"), (2, b"defgh")]);
    let (frames, problems) = read(&capture, 1000);
    assert_eq!(frames[0], (24, 1_000_005_000, 0, 1, 1003, b"abc".to_vec()));
    assert_eq!(frames[1], (43, 2_000_005_000, 0, 1, 1005, b"defgh".to_vec()));
    assert!(problems.is_empty());
}

#[test]
fn nanoseconds_and_big_endian() {
    let mut out = vec![0xa1, 0xb2, 0x3c, 0x4d, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    for word in [101_u32, 3, 7, 2, 9] {
        out.extend(word.to_be_bytes());
    }
    out.extend(b"hi");
    let (frames, problems) = read(&out, 1000);
    assert_eq!(frames, [(24, 3_000_000_007, 0, 101, 9, b"hi".to_vec())]);
    assert!(problems.is_empty());
}

#[test]
fn pcapng_with_interfaces_of_several_sections() {
    let capture = [
        section(),
        interface(1),
        interface(101),
        packet(1, 5_000_000_001, b"one"),
        section(),
        interface(113),
        packet(0, 6_000_000_000, b"two"),
    ];
    let (frames, problems) = read(&capture.concat(), 1000);
    let read: Vec<_> = frames.iter().map(|f| (f.1, f.2, f.3, f.4, f.5.as_slice())).collect();
    assert_eq!(
        read,
        [
            (5_000_000_001, 1, 101, 10, b"one".as_slice()),
            (6_000_000_000, 2, 113, 10, b"two".as_slice())
        ]
    );
    assert!(problems.is_empty());
}

#[test]
fn a_torn_end_is_told_with_its_offset() {
    let capture = pcap(&[(1, b"abc"), (2, b"defgh")]);
    let (frames, problems) = read(&capture[..capture.len() - 1], 7);
    assert_eq!(frames.len(), 1);
    assert_eq!(problems, ["byte 43: the capture ends inside a record: 20 of 21 bytes are there"]);
}

#[test]
fn reading_goes_on_behind_damage() {
    let records: Vec<(u32, &[u8])> =
        (0..20).map(|n| (1000 + n, b"some packet".as_slice())).collect();
    let mut capture = pcap(&records);
    let at = 24 + 27 * 5;
    capture[at + 8..at + 12].fill(0xff);
    let (frames, problems) = read(&capture, 64);
    assert_eq!(frames.len(), 19);
    assert_eq!(problems[0], format!("byte {at}: record header: captured length makes no sense"));
    assert_eq!(problems[1], format!("byte {at}: skipped 27 bytes, resumed at byte {}", at + 27));
}

#[test]
fn a_length_past_the_end_hides_nothing() {
    let records: Vec<(u32, &[u8])> =
        (0..20).map(|n| (1000 + n, b"some packet".as_slice())).collect();
    let mut capture = pcap(&records);
    let at = 24 + 27 * 5;
    capture[at + 8..at + 12].copy_from_slice(&600_000_u32.to_le_bytes());
    let (frames, problems) = read(&capture, 64);
    assert_eq!(frames.len(), 19);
    assert!(problems[0].contains("ends inside a record"), "{problems:?}");
}

#[test]
fn damaged_pcapng_goes_on_at_the_next_block() {
    let packets: Vec<_> = (0..9).flat_map(|n| packet(0, n, b"abcdefg")).collect();
    let mut capture = [section(), interface(1), packets].concat();
    let second = section().len() + interface(1).len() + packet(0, 0, b"abcdefg").len();
    capture[second + 4] = 0xfe;
    let (frames, problems) = read(&capture, 50);
    assert_eq!(frames.len(), 8);
    assert!(problems[0].contains("total length"), "{problems:?}");
}

#[test]
fn what_is_no_capture_is_told() {
    assert_eq!(
        read(b"hello world", 4).1,
        ["byte 0: not a packet capture: neither pcap nor pcapng"]
    );
    assert_eq!(read(b"", 4).1, ["byte 0: the capture is empty"]);
    let header = &pcap(&[])[..20];
    assert_eq!(
        read(header, 4).1,
        ["byte 0: the file ends inside its header: 20 of 24 bytes are there"]
    );
}

#[test]
fn a_resolution_that_cannot_be_names_its_field() {
    let mut interface = interface(1);
    interface[20] = 80;
    let problems = read(&[section(), interface].concat(), 50).1;
    let named = "interface description block: if_tsresol: 80 is no resolution of 64 bits";
    assert!(problems[0].ends_with(named), "{problems:?}");
}

proptest! {
    #[test]
    fn any_cut_gives_the_same(
        records in prop::collection::vec((0_u32..50, prop::collection::vec(any::<u8>(), 0..40)), 0..12),
        spoil in prop::option::of((24_usize..300, any::<u8>())),
        piece in 1_usize..60,
    ) {
        let records: Vec<_> = records.iter().map(|(s, d)| (*s, d.as_slice())).collect();
        let mut capture = pcap(&records);
        if let Some((at, byte)) = spoil && let Some(slot) = capture.get_mut(at) {
            *slot = byte;
        }
        prop_assert_eq!(read(&capture, piece), read(&capture, capture.len()));
    }
}

#[test]
fn times_that_are_none_of_a_capture_are_counted() {
    // 2020, a negative time, the latest possible one, and a nanosecond more.
    let times_ns = [1_600_000_000_000_000_000, 500_u64.wrapping_neg(), 1 << 62, (1 << 62) + 1];
    let packets = times_ns.iter().flat_map(|ns| packet(0, *ns, b"abcd")).collect();
    let (mut reader, mut used_ns) = (CaptureReader::new(), Vec::new());
    reader.push(&[section(), interface(1), packets].concat(), &mut |captured| {
        if let Captured::Frame(frame) = captured {
            used_ns.push(frame.at_ns);
        }
    });
    assert_eq!(reader.impossible_times(), 2);
    assert_eq!(used_ns, [1_600_000_000_000_000_000, 1 << 62, 1 << 62, 1 << 62]);
}

#[test]
fn statistics_say_what_was_lost_and_simple_packets_have_no_time() {
    // isb_ifdrop (5) and isb_osdrop (7), of two interfaces; the latest of each counts.
    let statistics = |id: u32, drops: &[(u32, u32)]| {
        let options = drops.iter().flat_map(|&(code, n)| [8 << 16 | code, n, 0]);
        block(5, &words(&[[id, 0, 0].as_slice(), &options.collect::<Vec<_>>(), &[0]].concat()))
    };
    let pcapng = [
        section(),
        interface(1),
        interface(1),
        statistics(0, &[(4, 900), (5, 3)]),
        block(3, &words(&[4, 7])),
        statistics(0, &[(5, 30), (7, 4)]),
        statistics(1, &[(5, 200)]),
    ]
    .concat();
    let mut reader = CaptureReader::new();
    let mut frames = 0;
    reader.push(&pcapng, &mut |captured| {
        frames += u32::from(matches!(captured, Captured::Frame(_)));
    });
    assert_eq!((frames, reader.lost_packets(), reader.timeless_packets()), (1, 234, 1));
}
