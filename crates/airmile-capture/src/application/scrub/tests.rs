use airmile_model::ApplicationLog;
use proptest::prelude::*;
use proptest::sample::select;

use super::super::{ApplicationFormat, read_application};
use super::*;

const SECRETS: &[&str] =
    &["example", "alice", "token", "192.0.2.7", "secret", "42.mp4", "Cookie", "sid-1", "Ann"];

fn scrubbed(har: &Value) -> (String, Changes) {
    let (copy, changes, problems) = scrubbed_with_problems(har);
    assert!(problems.is_empty(), "{problems:?}");
    (copy, changes)
}

fn scrubbed_with_problems(har: &Value) -> (String, Changes, Vec<Problem>) {
    let text = har.to_string();
    let mut scrubber = HarScrubber::new(Pseudonyms::new(&[7; 32]));
    let (mut out, mut problems) = (Vec::new(), Vec::new());
    // In pieces.
    for piece in text.as_bytes().chunks(13) {
        scrubber.push(piece, &mut out, &mut |problem| problems.push(problem));
    }
    scrubber.finish(&mut out, &mut |problem| problems.push(problem));
    (String::from_utf8(out).unwrap(), scrubber.changes().clone(), problems)
}

fn har() -> Value {
    let entry = |url: &str| {
        json!({
            "pageref": "Ann's page", "startedDateTime": "2026-01-05T09:00:07.503Z", "time": 138.0,
            "_initiator": {"type": "script", "url": "https://www.example.com/alice"},
            "_resourceType": "media", "connection": "443", "comment": "secret",
            "request": {
                "method": "GET", "url": url, "httpVersion": "h2", "headersSize": 100,
                "bodySize": 0, "headers": [{"name": "Cookie", "value": "secret"}],
                "queryString": [{"name": "token", "value": "secret"}],
            },
            "response": {
                "status": 200, "httpVersion": "h2", "headersSize": 90, "bodySize": 5000,
                "content": {"size": 5000, "mimeType": "video/secret", "text": "secret"},
                "redirectURL": "https://alice.example", "_error": null,
            },
            "serverIPAddress": "192.0.2.7", "cache": {},
            "timings": {"blocked": 1, "dns": 2, "connect": 40, "ssl": 20, "send": 0,
                        "wait": 50, "receive": 45, "comment": "secret"},
        })
    };
    json!({"log": {
        "version": "1.2", "creator": {"name": "example", "version": "alice"},
        "pages": [{"id": "Ann's page", "title": "alice", "pageTimings": {"onLoad": 536.0},
                   "startedDateTime": "2026-01-05T09:00:07.503Z"}],
        "entries": [
            entry("https://alice:secret@www.example.com:8443/a/42.mp4?sid-1=token"),
            entry("https://www.example.com:8443/a/42.mp4?sid-1=token"),
            entry("http://192.0.2.7/"),
        ],
    }})
}

#[test]
fn a_copy_has_times_and_sizes_and_no_names() {
    let (copy, changes) = scrubbed(&har());
    for secret in SECRETS {
        assert!(!copy.contains(secret), "{secret}: {copy}");
    }
    assert_eq!((changes.of("requests"), changes.of("urls")), (3, 6));
    let before = read_application(ApplicationFormat::Har, har().to_string().as_bytes());
    let after = read_application(ApplicationFormat::Har, copy.as_bytes());
    assert_eq!(after.transfers.len(), 3);
    for (was, is) in before.transfers.iter().zip(&after.transfers) {
        assert_eq!((was.start_ns, was.end_ns, was.bytes), (is.start_ns, is.end_ns, is.bytes));
        assert_eq!((&was.phases, was.kind, &was.protocol), (&is.phases, is.kind, &is.protocol));
        assert_eq!(was.connection, is.connection);
    }
    let url = |at: usize| after.transfers[at].url.clone().unwrap();
    assert!(url(0).starts_with("https://host-") && url(0).ends_with(".mp4"), "{}", url(0));
    assert!(url(0).contains(".invalid:8443/path-"), "{}", url(0));
    assert_eq!(url(0), url(1));
    // As in a capture.
    let [a, b, c, d] = Pseudonyms::new(&[7; 32]).v4([192, 0, 2, 7]);
    assert_eq!(url(2), format!("http://{a}.{b}.{c}.{d}/"));
    assert_eq!(after.pages[0].loaded_ms, Some(536.0));
    assert_eq!(Some(&after.pages[0].id), after.transfers[0].page.as_ref());
}

#[test]
fn a_har_without_entries_stays_one() {
    let (copy, _) = scrubbed(&json!({"log": {"creator": {}, "entries": []}}));
    let log = read_application(ApplicationFormat::Har, copy.as_bytes());
    assert!(log.transfers.is_empty() && log.problems.kept.is_empty(), "{copy}");
}

fn read(har: &str) -> ApplicationLog {
    read_application(ApplicationFormat::Har, har.as_bytes())
}

/// A log with an entry of these fields.
fn with(fields: Value) -> Value {
    let mut entry = json!({"startedDateTime": "2026-01-05T09:00:07.503Z", "time": 138.0});
    entry.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    json!({"log": {"entries": [entry]}})
}

#[test]
fn local_urls_stay_local() {
    for (url, copied) in [
        ("data:image/svg+xml,<svg xmlns=\"http://www.w3.org/2000/svg\"/>", "data:"),
        ("blob:https://www.example.com/alice", "blob:"),
        ("chrome-extension://alice/a.js", "chrome-extension:"),
        ("file:///home/alice/a.html", "file:"),
        ("FILE:///home/alice/a.html", "file:"),
        ("wss:alice", "wss:"),
    ] {
        let har = with(json!({"request": {"url": url}}));
        assert_eq!(read(&har.to_string()).not_transfers, 1, "{url}");
        let (copy, _) = scrubbed(&har);
        let log = read(&copy);
        assert_eq!((log.transfers.len(), log.not_transfers), (0, 1), "{url}: {copy}");
        let copy: Value = serde_json::from_str(&copy).unwrap();
        assert_eq!(copy["log"]["entries"][0]["request"]["url"], copied);
    }
    let (copy, _) = scrubbed(&with(json!({"request": {"url": "wss://www.example.com/alice"}})));
    assert!(copy.contains("\"wss://host-") && !copy.contains("alice"), "{copy}");
}

#[test]
fn numbers_written_as_texts_stay() {
    let har = with(json!({"time": "12.3", "response": {"bodySize": " 500 "}, "timings": {
        "wait": "7", "receive": "Ann"}}));
    let (copy, _) = scrubbed(&har);
    let [transfer] = &read(&copy).transfers[..] else { panic!("{copy}") };
    assert_eq!(transfer.end_ns - transfer.start_ns, 12_300_000);
    assert_eq!((transfer.bytes, transfer.phases.wait_ns), (Some(500), Some(7_000_000)));
    assert!(!copy.contains("Ann"), "{copy}");
}

#[test]
fn an_entry_that_cannot_be_read_has_its_place() {
    for (fields, says) in [
        (json!({"request": "alice"}), "request: expected an object, found a text; it is left out"),
        (json!({"timings": []}), "timings: expected an object, found an array; it is left out"),
        (json!({"time": "Ann"}), "time: expected a number, found a text; it is left out"),
    ] {
        let (copy, changes, problems) = scrubbed_with_problems(&with(fields));
        assert_eq!((problems.len(), changes.of("requests")), (1, 0));
        assert_eq!(problems[0].what, says);
        let copy: Value = serde_json::from_str(&copy).unwrap();
        assert_eq!(copy["log"]["entries"], json!([null]));
    }
}

/// A value of a field: as it should be, in another form, or of another type.
fn any_of(values: &[Value]) -> impl Strategy<Value = Value> + use<> {
    let others = [json!(null), json!("Ann"), json!([]), json!({}), json!(-1), json!("-1")];
    select([values, values, &others].concat())
}

proptest! {
    /// Number, times and bytes of transfers are the same in the copy.
    #[test]
    fn a_copy_is_read_like_the_original(
        url in any_of(&[
            json!("https://a.example/v/1.mp4"), json!("HTTP://a.example/"), json!("data:,://"),
            json!("blob:https://a.example/"), json!("chrome://a"), json!("moz-extension://a/b"),
            json!("wss://a.example/"), json!("ws:a://b"), json!("about:blank"), json!("a"),
        ]),
        started in any_of(&[json!("2026-01-05T09:00:07.503Z"), json!("2026-01-05T10:00:00+01:00")]),
        time in any_of(&[json!(138.25), json!("12.3"), json!(" 5 "), json!(7)]),
        timings in any_of(&[json!({"wait": 5.5, "receive": "2"}), json!({"wait": {}, "ssl": 3})]),
        sizes in any_of(&[json!(5000), json!("700"), json!(0)]),
        sent in any_of(&[json!(9000), json!("80")]),
        resource in any_of(&[json!("websocket"), json!("image")]),
        from_cache in any_of(&[json!(null), json!(null), json!("memory"), json!(true)]),
        cached in any_of(&[json!({"hitCount": 1}), json!({})]),
        response in select(vec!["bodySize", "_transferSize", "content"]),
    ) {
        let sizes = if response == "content" { json!({"size": sizes}) } else { sizes };
        let har = json!({"log": {"entries": [{"time": 1}, {
            "startedDateTime": started, "time": time, "timings": timings,
            "request": {"url": url, "bodySize": sent}, "response": {response: sizes},
            "_resourceType": resource, "_fromCache": from_cache, "cache": {"beforeRequest": cached},
        }]}});
        let (copy, ..) = scrubbed_with_problems(&har);
        let (before, after) = (read(&har.to_string()), read(&copy));
        let facts = |log: &ApplicationLog| {
            let of = log.transfers.iter();
            let of = of.map(|one| (one.id.clone(), one.start_ns, one.end_ns, one.bytes, one.phases));
            (of.collect::<Vec<_>>(), log.not_transfers, log.from_cache, log.bad_items)
        };
        prop_assert_eq!(facts(&before), facts(&after), "{}: {}", har, copy);
    }
}
