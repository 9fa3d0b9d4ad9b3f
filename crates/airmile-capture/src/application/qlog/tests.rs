use super::super::{ApplicationFormat, read_application};

/// An event of a request of 3000 bytes: 40 ms of handshake, 30 ms to the first
/// byte, 20 ms to the last.
fn events(quic: &str, http: &str) -> Vec<String> {
    let packet = |at: f64, event: &str, kind: &str, frames: &str| {
        format!(
            r#"{{"time":{at},"name":"{quic}:{event}","data":{{"header":{{"packet_type":"{kind}"}},"frames":[{frames}]}}}}"#
        )
    };
    let stream = |offset: u32, length: u32, fin: bool| {
        format!(
            r#"{{"frame_type":"stream","stream_id":0,"offset":{offset},"length":{length},"fin":{fin}}}"#
        )
    };
    vec![
        packet(0.0, "packet_sent", "initial", ""),
        packet(40.0, "packet_sent", "1RTT", &stream(0, 50, true)),
        format!(
            r#"{{"time":40,"name":"{http}:frame_created","data":{{"stream_id":0,"frame":{{"frame_type":"headers","headers":[{{"name":":authority","value":"a.example"}},{{"name":":path","value":"/v.m4s?t=1"}}]}}}}}}"#
        ),
        packet(70.0, "packet_received", "1RTT", &stream(0, 1000, false)),
        format!(
            r#"{{"time":80.5,"name":"{}","data":{{"latest_rtt":30}}}}"#,
            if quic == "quic" {
                "quic:recovery_metrics_updated"
            } else {
                "recovery:metrics_updated"
            }
        ),
        packet(90.0, "packet_received", "1RTT", &stream(1000, 2000, true)),
    ]
}

fn check(text: &str, format: ApplicationFormat, start_ms: i64) {
    assert_eq!(ApplicationFormat::recognise(text.as_bytes()), Some(format));
    let log = read_application(format, text.as_bytes());
    assert_eq!(log.problems.kept, []);
    let [transfer] = log.transfers.as_slice() else { panic!("{log:?}") };
    assert_eq!(transfer.start_ns, start_ms * 1_000_000);
    assert_eq!(transfer.end_ns - transfer.start_ns, 90_000_000);
    assert_eq!(transfer.bytes, Some(3000));
    assert_eq!(transfer.url.as_deref(), Some("https://a.example/v.m4s?t=1"));
    assert_eq!(transfer.protocol.as_deref(), Some("h3"));
    let p = transfer.phases;
    let parts = [p.blocked_ns, p.connect_ns, p.wait_ns, p.receive_ns].map(|ns| ns.unwrap());
    assert_eq!(parts, [0, 40_000_000, 30_000_000, 20_000_000]);
    assert_eq!((log.rates[0].bytes, log.rates[0].rtt_us), (3000, Some(30_000.0)));
}

#[test]
fn contained_files_of_0_3() {
    let events = events("transport", "http").join(",\n");
    let text = format!(
        r#"{{"qlog_version":"0.3","qlog_format":"JSON","title":"curl","traces":[{{"vantage_point":{{"type":"client"}},"common_fields":{{"ODCID":"ab","time_format":"relative","reference_time":1700000000000}},"events":[{events}]}}]}}"#
    );
    check(&text, ApplicationFormat::Qlog, 1_700_000_000_000);
}

#[test]
fn sequences_with_record_separators_and_an_epoch() {
    let head = r#"{"file_schema":"urn:ietf:params:qlog:file:sequential","serialization_format":"application/qlog+json-seq","trace":{"vantage_point":{"type":"client"},"common_fields":{"time_format":"relative_to_epoch","reference_time":{"clock_type":"system","epoch":"2023-11-14T22:13:20.000Z"}}}}"#;
    let mut text = format!("\u{1e}{head}\n");
    for event in events("quic", "http3") {
        text.push_str(&format!("\u{1e}{event}\n"));
    }
    check(&text, ApplicationFormat::QlogSequence, 1_700_000_000_000);
    let lines = text.replace('\u{1e}', "");
    check(&lines, ApplicationFormat::QlogSequence, 1_700_000_000_000);
}

#[test]
fn a_servers_view_and_times_without_a_place() {
    let swapped: Vec<String> = events("transport", "http")
        .into_iter()
        .map(|e| {
            if e.contains("packet_sent") {
                e.replace("packet_sent", "packet_received")
            } else {
                e.replace("packet_received", "packet_sent")
            }
        })
        .collect();
    let text = format!(
        r#"{{"qlog_version":"0.3","traces":[{{"vantage_point":{{"type":"server"}},"events":[{},{{"name":"x"}},[1,"a"]"#,
        swapped.join(",")
    );
    let log = read_application(ApplicationFormat::Qlog, text.as_bytes());
    assert_eq!(log.transfers[0].bytes, Some(3000));
    assert_eq!(log.scale.base, airmile_model::TimeBase::Unplaced);
    let problems: Vec<_> = log.problems.kept.iter().map(ToString::to_string).collect();
    assert!(problems[0].contains("time: missing, in an event \"x\""), "{problems:?}");
    assert!(problems[1].contains("the file ends inside traces[].events"), "{problems:?}");
    assert!(problems[3].contains("before 0.3"), "{problems:?}");
    assert!(log.problems.damaged);
}

#[test]
fn events_as_arrays_of_drafts_before_0_3() {
    // The draft's names of fields: stream IDs, times and offsets may be texts.
    let file = |unit: &str, fields: &str, k: u32| {
        let packet = |at: u32, event: &str, kind: &str, frames: &str| {
            format!(
                r#"["{}",0,"transport","{event}",{{"packet_type":"{kind}","header":{{}},"frames":[{frames}]}}]"#,
                at * k
            )
        };
        let stream = |offset: u32, length: u32, fin: bool| {
            format!(
                r#"{{"frame_type":"stream","id":"4","offset":"{offset}","length":{length},"fin":{fin}}}"#
            )
        };
        let events = [
            packet(0, "packet_sent", "initial", ""),
            packet(40, "packet_sent", "1RTT", &stream(0, 50, true)),
            packet(70, "packet_received", "1RTT", &stream(0, 1000, false)),
            format!(r#"[{},0,"recovery","metrics_updated",{{"latest_rtt":{}}}]"#, 80 * k, 30 * k),
            packet(90, "packet_received", "1RTT", &stream(1000, 2000, true)),
        ];
        format!(
            r#"{{ "qlog_version": "draft-00", "title": "picoquic", "traces": [
{{ "vantage_point": {{ "name": "a", "type": "client" }}{fields}{unit},
"common_fields": {{"reference_time": "1700000000000{}"}}, "events": [{}]}}]}}"#,
            if k == 1 { "" } else { "000" },
            events.join(",\n")
        )
    };
    let fields = r#","event_fields":["relative_time","path_id","category","event","data"]"#;
    for text in [
        file(r#","configuration":{"time_units":"us"}"#, fields, 1_000),
        file("", &fields.replace("event\"", "event_type\""), 1),
    ] {
        assert_eq!(ApplicationFormat::recognise(text.as_bytes()), Some(ApplicationFormat::Qlog));
        let log = read_application(ApplicationFormat::Qlog, text.as_bytes());
        assert_eq!(log.problems.kept, [], "{text}");
        let [transfer] = log.transfers.as_slice() else { panic!("{log:?}") };
        assert_eq!((transfer.start_ns, transfer.bytes), (1_700_000_000_000_000_000, Some(3000)));
        assert_eq!(transfer.end_ns - transfer.start_ns, 90_000_000);
        assert_eq!(transfer.phases.connect_ns, Some(40_000_000));
        assert_eq!((log.rates[0].bytes, log.rates[0].rtt_us), (3000, Some(30_000.0)));
    }
    // Fields without names are not guessed.
    let log = read_application(ApplicationFormat::Qlog, file("", "", 1).as_bytes());
    assert!(log.problems.damaged && log.transfers.is_empty());
    let what = log.problems.kept[0].to_string();
    assert!(what.contains("draft-00: 5 events are arrays"), "{what}");
}
