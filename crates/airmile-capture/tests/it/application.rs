//! Applications' logs of each format: what they hold, however they are cut, torn or
//! damaged.

use airmile_capture::application::{ApplicationFormat, ApplicationReader, read_application};
use airmile_model::{ApplicationLog, PlayerEventKind};
use proptest::prelude::*;

/// Format, transfers, their bytes, stalls, rates.
type Expected = (ApplicationFormat, usize, u64, usize, usize);

fn samples() -> Vec<(&'static str, &'static [u8], Expected)> {
    macro_rules! sample {
        ($name:literal, $($expected:tt)+) => {
            ($name, include_bytes!(concat!("application/", $name)).as_slice(), ($($expected)+))
        };
    }
    use ApplicationFormat as Format;
    vec![
        sample!("chrome.har", Format::Har, 2, 6_200 + 1_600_900, 0, 0),
        sample!("firefox.har", Format::Har, 2, 4_400 + 70_500, 0, 0),
        sample!("netlog.json", Format::NetLog, 4, 3_201_170, 0, 0),
        sample!("v03.qlog", Format::Qlog, 2, 46_000 + 900, 0, 1),
        sample!("later.sqlog", Format::QlogSequence, 2, 46_000 + 900, 0, 1),
        sample!("dashjs.jsonl", Format::Player, 3, 850 + 310_000 + 200_000, 1, 0),
        sample!("hlsjs.jsonl", Format::Player, 1, 501_000, 1, 0),
        sample!("media3.jsonl", Format::Player, 1, 1_900_000, 1, 0),
        sample!("shaka.json", Format::PlayerArray, 1, 700_000, 1, 0),
        sample!("lab.jsonl", Format::Player, 2, 615_000 + 2_400_000, 1, 0),
        sample!("lab-dashjs.jsonl", Format::Player, 6, 3_001_698, 0, 0),
        sample!("access.log", Format::Cmcd, 3, 1_600_900 + 1_590_000 + 400_000, 1, 0),
        sample!("iperf3-client-reverse.json", Format::Iperf3, 1, 25_427_968, 0, 2),
        sample!("iperf3-server.json", Format::Iperf3, 1, 25_427_968, 0, 3),
    ]
}

fn counts_of(log: &ApplicationLog) -> (usize, u64, usize, usize) {
    let bytes = log.transfers.iter().filter_map(|transfer| transfer.bytes).sum();
    let stalls = log.events.iter().filter(|event| event.kind == PlayerEventKind::Stall).count();
    (log.transfers.len(), bytes, stalls, log.rates.len())
}

#[test]
fn each_format_is_recognised_and_read() {
    for (name, bytes, (format, transfers, sum, stalls, rates)) in samples() {
        assert_eq!(ApplicationFormat::recognise(bytes), Some(format), "{name}");
        let log = read_application(format, bytes);
        assert_eq!(counts_of(&log), (transfers, sum, stalls, rates), "{name}: {:?}", log.problems);
        assert!(!log.problems.damaged, "{name}: {:?}", log.problems);
        assert_eq!(log.bad_items, 0, "{name}: {:?}", log.problems);
        let from = log.span_ns().unwrap().0;
        let years = from / 1_000_000_000 / 31_557_600;
        assert!((50..60).contains(&years), "{name} begins {years} years after 1970");
    }
}

/// Real ones of a browser and a server on one machine: 3 MB and 200 kB took as long
/// as the server took (300 ms for the last).
#[test]
fn chromiums_own_log() {
    let (_, bytes, _) = samples().swap_remove(2);
    let log = read_application(ApplicationFormat::NetLog, bytes);
    assert_eq!(log.made_by.as_deref(), Some("Chromium 156.0.8078.79"));
    let slow = log.transfers.last().unwrap();
    assert_eq!(slow.name().as_deref(), Some("http://127.0.0.1:18765/slow.bin"));
    assert!((300..320).contains(&(slow.phases.wait_ns.unwrap() / 1_000_000)), "{slow:?}");
    assert_eq!(slow.phases.connect_ns, Some(0));
    assert!(log.transfers.iter().all(|transfer| !transfer.failed && !transfer.unfinished));
    let connections: Vec<_> = log.transfers.iter().map(|t| t.connection.as_deref()).collect();
    assert_eq!(connections, [Some("126"); 4]);
}

#[test]
fn a_torn_file_gives_what_comes_before_and_says_so() {
    for (name, bytes, (format, ..)) in samples() {
        let whole = read_application(format, bytes);
        let torn = read_application(format, &bytes[..bytes.len() * 9 / 10]);
        assert!(torn.items <= whole.items, "{name}");
        assert!(torn.items > 0, "{name}");
        assert!(!torn.problems.kept.is_empty(), "{name}");
    }
}

fn by_pieces(format: ApplicationFormat, bytes: &[u8], piece: usize) -> ApplicationLog {
    let mut reader = ApplicationReader::new(format);
    bytes.chunks(piece).for_each(|piece| reader.push(piece));
    reader.finish()
}

/// What holds for any bytes.
fn check(log: &ApplicationLog) {
    for transfer in &log.transfers {
        assert!(transfer.start_ns <= transfer.end_ns);
        assert!(transfer.name().is_none_or(|name| !name.contains("token")), "{transfer:?}");
    }
    assert!(log.transfers.windows(2).all(|pair| pair[0].start_ns <= pair[1].start_ns));
    assert!(log.bad_items <= log.items * 2 + 8);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_cut_gives_the_same(sample in 0_usize..14, piece in 1_usize..400) {
        let (_, bytes, (format, ..)) = samples().swap_remove(sample);
        prop_assert_eq!(by_pieces(format, bytes, piece), read_application(format, bytes));
    }

    #[test]
    fn damage_is_survived(
        sample in 0_usize..14,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
        cut in any::<prop::sample::Index>(),
    ) {
        let (_, bytes, (format, ..)) = samples().swap_remove(sample);
        let mut bytes = bytes.to_vec();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(cut.index(bytes.len()) + 1);
        check(&read_application(format, &bytes));
        let log = by_pieces(format, &bytes, 97);
        prop_assert_eq!(log, read_application(format, &bytes));
    }

    #[test]
    fn numbers_of_any_size_are_survived(sample in 0_usize..14, number in "-?[1-9][0-9]{0,25}(e[0-9]{1,3})?", digit in any::<prop::sample::Index>()) {
        let (_, bytes, (format, ..)) = samples().swap_remove(sample);
        let text = String::from_utf8_lossy(bytes).into_owned();
        let numbers: Vec<(usize, &str)> = text.match_indices(':').collect();
        let (at, _) = *digit.get(&numbers);
        let end = text[at + 1..].find([',', '}', ']', '\n']).map_or(text.len(), |n| at + 1 + n);
        let changed = format!("{}{number}{}", &text[..=at], &text[end..]);
        check(&read_application(format, changed.as_bytes()));
    }
}
