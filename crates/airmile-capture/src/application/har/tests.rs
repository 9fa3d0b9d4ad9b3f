use airmile_model::{LostEntries, PlayerEventKind};

use super::super::{ApplicationFormat, read_application};
use super::*;

fn read(entries: &str) -> airmile_model::ApplicationLog {
    let text = format!(
        r#"{{"log":{{"version":"1.2","creator":{{"name":"WebInspector","version":"537"}},"entries":[{entries}]}}}}"#
    );
    assert_eq!(ApplicationFormat::recognise(text.as_bytes()), Some(ApplicationFormat::Har));
    read_application(ApplicationFormat::Har, text.as_bytes())
}

const CHROME: &str = r#"{"_resourceType":"fetch","connection":"17","request":{"url":"https://a.example/v/7.m4s?token=x","method":"GET","bodySize":0,"headersSize":-1},
  "response":{"status":200,"httpVersion":"HTTP/2.0","_transferSize":5000,"bodySize":-1,"content":{"size":4000,"mimeType":"video/mp4"}},
  "startedDateTime":"2024-05-01T10:00:00.100Z","time":60.5,
  "timings":{"blocked":1.5,"dns":4,"connect":25,"ssl":10,"send":1,"wait":20,"receive":9}}"#;

#[test]
fn an_entry_of_chrome() {
    let log = read(CHROME);
    assert_eq!(log.problems.kept, []);
    assert_eq!(log.made_by.as_deref(), Some("WebInspector 537"));
    let [transfer] = log.transfers.as_slice() else { panic!("{log:?}") };
    assert_eq!(transfer.end_ns - transfer.start_ns, 60_500_000);
    assert_eq!(transfer.start_ns, 1_714_557_600_100_000_000);
    assert_eq!((transfer.bytes, transfer.kind), (Some(5000), TransferKind::Media));
    assert_eq!(transfer.name().as_deref(), Some("https://a.example/v/7.m4s?…"));
    assert_eq!(
        (transfer.protocol.as_deref(), transfer.connection.as_deref()),
        (Some("h2"), Some("17"))
    );
    let phases = transfer.phases;
    assert_eq!((phases.connect_ns, phases.tls_ns), (Some(15_000_000), Some(10_000_000)));
    assert_eq!(phases.setup_ns(), Some(29_000_000));
}

#[test]
fn what_is_lacking_or_wrong_is_told() {
    // Entry, transfers, bad ones, from the cache, others, first problem.
    let check = |entry: &str, expected: (usize, u64, u64, u64), problem: &str| {
        let log = read(entry);
        let got = (log.transfers.len(), log.bad_items, log.from_cache, log.not_transfers);
        let first = log.problems.kept.first().map(ToString::to_string).unwrap_or_default();
        assert_eq!((got, first.contains(problem)), (expected, true), "{entry}: {first}");
    };
    let start = r#""startedDateTime":"2024-05-01T10:00:00Z""#;
    check(&format!("{{{start},\"time\":5}}"), (1, 0, 0, 0), "1 entries without timings");
    check(&format!("{{{start}}}"), (0, 1, 0, 0), "byte 85: time: missing");
    check(&format!("{{{start},\"time\":-5}}"), (0, 1, 0, 0), "time: -5 is no time in ms");
    check(&format!("{{{start},\"time\":1e12}}"), (0, 1, 0, 0), "is no time in ms");
    check(
        &format!("{{{start},\"time\":[]}}"),
        (0, 1, 0, 0),
        "time: expected a number, found an array",
    );
    check(r#"{"time":5}"#, (0, 1, 0, 0), "startedDateTime: missing");
    check(r#"{"time":5,}"#, (0, 1, 0, 0), "byte 95: log.entries[]: trailing comma");
    assert_eq!(read(r#"{"time":5,}"#).lost, LostEntries::Any);
    check(r#"{"request":{"url":"data:x"}}"#, (0, 0, 0, 1), "");
    check(&format!("{{{start},\"time\":5,\"_fromCache\":\"disk\"}}"), (0, 0, 1, 0), "");
    check("7", (0, 1, 0, 0), "byte 85: log.entries[]: expected an object, found a number");
    let of_type = |field: &str, is: &str| {
        let entry = format!("{{{start},\"time\":5,{field}}}");
        let problem = format!("byte 85: {is}; the entry is left out");
        check(&entry, (0, 1, 0, 0), &problem);
        assert!(read(&entry).problems.damaged, "{entry}");
    };
    of_type("\"request\":7", "request: expected an object, found a number");
    of_type("\"request\":{\"url\":[]}", "request.url: expected a text, found an array");
    of_type("\"timings\":\"x\"", "timings: expected an object, found a text");
    of_type("\"startedDateTime\":7", "startedDateTime: expected a text, found a number");
    let phase = |timings: &str, problem: &str| {
        let entry = format!("{{{start},\"time\":5,\"timings\":{timings}}}");
        check(&entry, (1, 0, 0, 0), problem);
        let log = read(&entry);
        assert_eq!(log.problems.damaged, !problem.is_empty(), "{timings}");
        assert_eq!(log.transfers[0].phases.receive_ns, Some(3_000_000), "{timings}");
    };
    phase(r#"{"wait":"2","dns":-1,"connect":-0.2,"ssl":null,"receive":3}"#, "");
    for (of, is) in [("\"x\"", "a text"), ("{}", "an object"), ("-5", "-5"), ("1e300", "1e")] {
        let told = format!("byte 85: timings.wait: expected ms or -1, found {is}");
        phase(&format!("{{\"wait\":{of},\"receive\":3}}"), &told);
    }
    of_type("\"time\":{}", "time: expected a number, found an object");
    of_type("\"time\":\"soon\"", "time: expected a number, found a text");
    of_type(
        "\"startedDateTime\":\"soon\"",
        "startedDateTime: expected a date and time as in 2024-05-01T10:00:00.100Z",
    );
}

#[test]
fn the_disk_cache_of_chrome_before_56_and_cancelled_requests_are_no_transfers() {
    // Response, time in ms; transfers, failed ones, from the cache, others.
    let check = |response: &str, time_ms: u32, expected: (usize, usize, u64, u64)| {
        let log = read(&format!(
            r#"{{"startedDateTime":"2015-12-20T13:43:36Z","time":{time_ms},"timings":{{"wait":{time_ms}}},"response":{response}}}"#
        ));
        let failed = log.transfers.iter().filter(|one| one.failed).count();
        let got = (log.transfers.len(), failed, log.from_cache, log.not_transfers);
        assert_eq!(got, expected, "{response}");
    };
    let cached = r#"{"status":200,"bodySize":0,"content":{"size":900},"_transferSize":0}"#;
    check(cached, 2, (0, 0, 1, 0));
    // Not cached: the size of the body is unknown, or the server has answered so.
    check(&cached.replace("\"bodySize\":0", "\"bodySize\":-1"), 600, (1, 0, 0, 0));
    check(&cached.replace("Size\":0}", "Size\":300}"), 300, (1, 0, 0, 0));
    check(&cached.replace("900", "0"), 300, (1, 0, 0, 0));
    // WebPageTest: pushes that the browser cancelled, and a request without a response.
    check(r#"{"status":-2,"bodySize":0,"content":{"size":0}}"#, 0, (0, 0, 0, 1));
    check(r#"{"status":-2,"bodySize":0,"content":{"size":0}}"#, 90, (1, 1, 0, 0));
}

#[test]
fn a_page_has_the_url_that_its_log_gives() {
    let check = |fields: &str, url: Option<&str>| {
        let text = format!(
            r#"{{"log":{{"pages":[{{"id":"p","startedDateTime":"2024-05-01T10:00:00Z",{fields}}}],"entries":[]}}}}"#
        );
        let log = read_application(ApplicationFormat::Har, text.as_bytes());
        assert_eq!(log.pages[0].url.as_deref(), url, "{fields}");
    };
    check(r#""title":"Run 1 for https://a/","_URL":"https://a/""#, Some("https://a/"));
    check(r#""title":"https://a/?q=1""#, Some("https://a/?q=1"));
    check(r#""title":"A page","_url":"http://a/""#, Some("http://a/"));
    check(r#""title":"A page about https://a/""#, None);
}

#[test]
fn a_log_of_another_shape_is_damaged() {
    let check = |text: &str, problem: &str| {
        let log = read_application(ApplicationFormat::Har, text.as_bytes());
        let found: Vec<String> = log.problems.kept.iter().map(ToString::to_string).collect();
        assert_eq!(found, [problem], "{text}");
        assert_eq!((log.problems.damaged, log.bad_items), (true, 1), "{text}");
    };
    check(r#"{"log":{"entries":"x"}}"#, "byte 18: log.entries: expected an array, found a text");
    check(
        r#"{"log":{"entries":{"a":1}}}"#,
        "byte 18: log.entries: expected an array, found an object",
    );
    check(r#"{"log":{"entries":null}}"#, "byte 18: log.entries: expected an array, found null");
    check(r#"{"log":["entries"]}"#, "byte 7: log: expected an object, found an array");
    check(r#"{"log":{"creator":{}}}"#, "byte 0: log.entries: missing; it lists the requests");
    check(
        r#"{"log":{"pages":5,"entries":[]}}"#,
        "byte 16: log.pages: expected an array, found a number",
    );
    let empty = read_application(ApplicationFormat::Har, br#"{"log":{"entries":[]}}"#);
    assert_eq!((empty.problems.kept.as_slice(), empty.problems.damaged), ([].as_slice(), false));
}

#[test]
fn sizes_as_far_as_they_are_told() {
    let check = |response: &str, bytes: Option<u64>, decoded: bool| {
        let log = read(&format!(
            r#"{{"startedDateTime":"2024-05-01T10:00:00Z","time":5,"response":{response}}}"#
        ));
        assert_eq!((log.transfers[0].bytes, log.transfers[0].bytes_decoded), (bytes, decoded));
    };
    check(r#"{"_transferSize":700,"bodySize":5}"#, Some(700), false);
    check(r#"{"bodySize":500,"headersSize":100}"#, Some(600), false);
    check(r#"{"bodySize":-1,"content":{"size":900,"compression":300}}"#, Some(600), false);
    check(r#"{"bodySize":-1,"content":{"size":900}}"#, Some(900), true);
    check("{}", None, false);
}

#[test]
fn cmcd_in_urls_and_headers() {
    let log = read(
        r#"{"startedDateTime":"2024-05-01T10:00:00Z","time":5,"request":{"url":"https://a/1.m4s?CMCD=bl%3D2000%2Cbr%3D3200%2Cot%3Dv"}},
        {"startedDateTime":"2024-05-01T10:00:01Z","time":5,"request":{"url":"https://a/2.m4s","headers":[{"name":"CMCD-Object","value":"br=1600,ot=v"},{"name":"cmcd-status","value":"bs"}]}}"#,
    );
    let rates: Vec<_> = log.transfers.iter().map(|t| t.bitrate_bps).collect();
    assert_eq!(rates, [Some(3.2e6), Some(1.6e6)]);
    let kinds: Vec<_> = log.events.iter().map(|event| (event.kind, event.value)).collect();
    assert_eq!(
        kinds,
        [
            (PlayerEventKind::Buffer, Some(2000.0)),
            (PlayerEventKind::Stall, None),
            (PlayerEventKind::Switch, Some(1.6e6)),
        ]
    );
}
