use airmile_model::{ApplicationLog, Severity};

use super::super::{ApplicationFormat, read_application};
use super::*;

/// The events of a log in words: transfers, then events, with ms since `FROM_MS`.
fn described(text: &str) -> Vec<String> {
    let format = ApplicationFormat::recognise(text.as_bytes()).unwrap();
    let log = read_application(format, text.as_bytes());
    let from_ns = FROM_MS * 1_000_000;
    let ms = |ns: i64| (ns - from_ns) as f64 / 1e6;
    let mut out: Vec<String> = Vec::new();
    for t in &log.transfers {
        let more = match (t.failed, t.unfinished) {
            (true, _) => " failed",
            (_, true) => " unfinished",
            _ => "",
        };
        out.push(format!(
            "{} {}..{} {} B {} Mbit/s wait {}{more}",
            t.id,
            ms(t.start_ns),
            ms(t.end_ns),
            t.bytes.unwrap_or(0),
            t.bitrate_bps.unwrap_or(0.0) / 1e6,
            t.phases.wait_ns.map_or(-1.0, |ns| ns as f64 / 1e6)
        ));
    }
    for event in &log.events {
        let value = event.value.map_or_else(String::new, |value| format!(" {value}"));
        out.push(format!("{} {}{value}", ms(event.at_ns), event.kind));
    }
    out.extend(log.problems.kept.iter().map(ToString::to_string));
    out
}

const FROM_MS: i64 = 1_700_000_000_000;

#[test]
fn the_labs_own() {
    let text = concat!(
        r#"{"at_ns":1700000000000000000,"app":"segment","event":"segment_chosen","id":"segment-1","value":2000000}"#,
        "\n",
        r#"{"at_ns":1700000000000000000,"app":"segment","event":"request","id":"segment-1","what":"http://a/1.m4s"}"#,
        "\n",
        r#"{"at_ns":1700000000040000000,"app":"segment","event":"first_byte","id":"segment-1"}"#,
        "\n",
        r#"{"at_ns":1700000000100000000,"app":"segment","event":"end","id":"segment-1","bytes":500,"value":2000000}"#,
        "\n",
        r#"{"at_ns":1700000000120000000,"app":"segment","event":"playback_started"}"#,
        "\n",
        r#"{"at_ns":1700000000200000000,"app":"segment","event":"stalled"}"#,
        "\n",
        r#"{"at_ns":1700000000210000000,"app":"segment","event":"segment_chosen","id":"segment-2","value":1000000}"#,
        "\n",
        r#"{"at_ns":1700000000210000000,"app":"segment","event":"request","id":"segment-2","what":"http://a/2.m4s"}"#,
        "\n",
        r#"{"at_ns":1700000000500000000,"app":"segment","event":"resumed","value":300}"#,
        "\n",
        r#"{"at_ns":1700000000600000000,"app":"segment","event":"buffer","value":1500}"#,
        "\n",
    );
    let expected = [
        "segment-1 0..100 500 B 2 Mbit/s wait 40",
        "segment-2 210..600 0 B 1 Mbit/s wait -1 unfinished",
        "120 started",
        "200 stall 300",
        "210 switch 1000000",
        "600 buffer 1500",
    ];
    assert_eq!(described(text), expected);
}

#[test]
fn dash_js() {
    let text = concat!(
        r#"{"player":"dash.js","version":"5.0.0"}"#,
        "\n",
        r#"{"at_ms":1700000000010,"event":"fragmentLoadingStarted","request":{"url":"https://a/7.m4s","index":7,"mediaType":"video","type":"MediaSegment","startDate":"2023-11-14T22:13:20.005Z","representation":{"bandwidth":3000000}}}"#,
        "\n",
        r#"{"at_ms":1700000000090,"event":"fragmentLoadingCompleted","request":{"url":"https://a/7.m4s","index":7,"mediaType":"video","type":"MediaSegment","startDate":"2023-11-14T22:13:20.005Z","firstByteDate":"2023-11-14T22:13:20.045Z","endDate":"2023-11-14T22:13:20.085Z","bytesLoaded":800,"bandwidth":3000000}}"#,
        "\n",
        r#"{"at_ms":1700000000100,"event":"playbackPlaying"}"#,
        "\n",
        r#"{"at_ms":1700000000200,"event":"bufferStalled","mediaType":"audio"}"#,
        "\n",
        r#"{"at_ms":1700000000210,"event":"playbackWaiting"}"#,
        "\n",
        r#"{"at_ms":1700000000310,"event":"playbackPlaying"}"#,
        "\n",
        r#"{"at_ms":1700000000320,"event":"bufferLevelUpdated","mediaType":"video","bufferLevel":4.5}"#,
        "\n",
        r#"{"at_ms":1700000000330,"event":"playbackSeeking"}"#,
        "\n",
    );
    let expected =
        ["video-7 5..85 800 B 3 Mbit/s wait 40", "100 started", "210 stall 100", "320 buffer 4500"];
    let got = described(text);
    assert_eq!(got[..4], expected);
    assert!(got[4].contains("1 events that are of no use here, the first \"playbackSeeking\""));
}

#[test]
fn hls_js_by_a_monotonic_clock() {
    let text = concat!(
        r#"{"player":"hls.js","wall_ms":1700000000000,"monotonic_ms":5000}"#,
        "\n",
        r#"{"at_ms":5010,"event":"hlsFragLoading","frag":{"sn":3,"level":1,"type":"main","url":"https://a/3.ts"}}"#,
        "\n",
        r#"{"at_ms":5100,"event":"hlsFragLoaded","bitrate":2500000,"frag":{"sn":3,"level":1,"type":"main","url":"https://a/3.ts","stats":{"loaded":900,"loading":{"start":5012,"first":5050,"end":5098}}}}"#,
        "\n",
        r#"{"at_ms":5150,"event":"playing"}"#,
        "\n",
        r#"{"at_ms":5200,"event":"hlsError","details":"bufferStalledError","fatal":false}"#,
        "\n",
        r#"{"at_ms":5230,"event":"hlsLevelSwitched","level":0,"bitrate":800000}"#,
        "\n",
        r#"{"at_ms":5260,"event":"playing"}"#,
        "\n",
        r#"{"at_ms":5300,"event":"hlsFragLoading","frag":{"sn":4,"level":0,"type":"main"}}"#,
        "\n",
        r#"{"at_ms":5350,"event":"ended"}"#,
        "\n",
    );
    let expected = [
        "main-1-3 12..98 900 B 2.5 Mbit/s wait 38",
        "main-0-4 300..350 0 B 0 Mbit/s wait -1 unfinished",
        "150 started",
        "200 stall 60",
        "230 switch 800000",
        "350 ended",
    ];
    assert_eq!(described(text), expected);
}

#[test]
fn shaka() {
    let text = concat!(
        r#"{"player":"Shaka Player","events":["#,
        r#"{"at_ms":1700000000500,"event":"response","type":1,"uri":"https://a/1.mp4","timeMs":400,"bytes":7000,"bandwidth":1200000},"#,
        r#"{"at_ms":1700000000510,"event":"buffering","buffering":false},"#,
        r#"{"at_ms":1700000000600,"event":"buffering","buffering":true},"#,
        r#"{"at_ms":1700000000650,"event":"buffering","buffering":false},"#,
        r#"{"at_ms":1700000000660,"event":"adaptation","newTrack":{"bandwidth":1200000}},"#,
        r#"{"at_ms":1700000000670,"event":"adaptation","newTrack":{"bandwidth":600000}},"#,
        r#"{"at_ms":1700000000680,"event":"stats","stats":{"estimatedBandwidth":5e6},"buffer_ms":800},"#,
        r#"{"at_ms":1700000000690,"event":"response","type":1,"uri":"x"}"#,
        "]}",
    );
    let expected = [
        "1 100..500 7000 B 1.2 Mbit/s wait -1",
        "510 started",
        "600 stall 50",
        "670 switch 600000",
        "680 estimate 5000000",
        "680 buffer 800",
    ];
    let got = described(text);
    assert_eq!(got[..6], expected);
    assert!(got[6].contains("timeMs: missing"), "{got:?}");
}

#[test]
fn media3() {
    let text = concat!(
        r#"{"player":"Media3","version":"1.4.1","wall_ms":1700000000000,"monotonic_ms":90000}"#,
        "\n",
        r#"{"at_ms":90010,"event":"onLoadStarted","loadTaskId":12,"uri":"https://a/12.mp4","dataType":1,"trackType":2,"bitrate":4000000}"#,
        "\n",
        r#"{"at_ms":90110,"event":"onLoadCompleted","loadTaskId":12,"uri":"https://a/12.mp4","dataType":1,"trackType":2,"bitrate":4000000,"loadDurationMs":100,"bytesLoaded":600}"#,
        "\n",
        r#"{"at_ms":90120,"event":"onPlaybackStateChanged","state":3}"#,
        "\n",
        r#"{"at_ms":90150,"event":"onDownstreamFormatChanged","trackType":2,"bitrate":4000000}"#,
        "\n",
        r#"{"at_ms":90155,"event":"onDownstreamFormatChanged","trackType":1,"bitrate":64000}"#,
        "\n",
        r#"{"at_ms":90160,"event":"onDownstreamFormatChanged","trackType":2,"bitrate":2000000}"#,
        "\n",
        r#"{"at_ms":90200,"event":"onPlaybackStateChanged","state":2,"totalBufferedDurationMs":0}"#,
        "\n",
        r#"{"at_ms":90300,"event":"onPlaybackStateChanged","state":3}"#,
        "\n",
        r#"{"at_ms":90310,"event":"onBandwidthEstimate","bitrateEstimate":9000000}"#,
        "\n",
    );
    let expected = [
        "12 10..110 600 B 4 Mbit/s wait -1",
        "120 started",
        "160 switch 2000000",
        "200 buffer 0",
        "200 stall 100",
        "310 estimate 9000000",
    ];
    assert_eq!(described(text), expected);
}

/// The lab's log states the bytes of an upload with its request, in real time also with its end.
#[test]
fn directions_of_the_lab() {
    let text = concat!(
        r#"{"at_ns":1700000000000000000,"app":"up","event":"request","id":"up-1","bytes":600}"#,
        "\n",
        r#"{"at_ns":1700000000100000000,"app":"up","event":"end","id":"up-1","bytes":0}"#,
        "\n",
    );
    let check = |text: &str, dir: Direction, bytes: u64| {
        let log = read_application(ApplicationFormat::Player, text.as_bytes());
        let [transfer] = log.transfers.as_slice() else { panic!("{:?}", log.transfers) };
        assert_eq!((transfer.dir, transfer.bytes), (Some(dir), Some(bytes)));
    };
    check(text, Direction::Ul, 600);
    check(&text.replace("\"bytes\":0", "\"bytes\":600"), Direction::Ul, 600);
    check(&text.replace("\"end\"", "\"failed\""), Direction::Ul, 0);
    check(&text.replace("\"bytes\":0", "\"bytes\":900"), Direction::Dl, 900);
    check(
        &text.replace(",\"bytes\":600", "").replace("\"bytes\":0", "\"bytes\":9"),
        Direction::Dl,
        9,
    );
}

#[test]
fn times_that_no_head_places_are_told() {
    let text =
        "{\"at_ms\":50,\"event\":\"playing\"}\n{\"at_ms\":70,\"event\":\"waiting\"}\n{\"at\n";
    let log = read_application(ApplicationFormat::Player, text.as_bytes());
    assert_eq!(log.scale.base, TimeBase::Unplaced);
    assert_eq!((log.items, log.bad_items, log.problems.damaged), (3, 1, true));
    assert_eq!(log.events.len(), 2);
}

/// What cannot be right is damage, and no rate is computed from it.
#[test]
fn impossible_times() {
    let log = |at_ms: &str, end: &str| {
        let text = format!(
            concat!(
                r#"{{"at_ms":1700000000000,"event":"hlsFragLoading","frag":{{"sn":3,"type":"main"}}}}"#,
                "\n",
                r#"{{"at_ms":{},"event":"hlsFragLoaded","frag":{{"sn":3,"type":"main","stats":{{"loaded":900,"loading":{{"start":1700000000000,"end":{}}}}}}}}}"#,
                "\n",
            ),
            at_ms, end
        );
        read_application(ApplicationFormat::Player, text.as_bytes())
    };
    let is_damaged =
        |log: &ApplicationLog| log.problems.kept.iter().any(|p| p.severity == Severity::Damage);
    let good = log("1700000000500", "1700000000400");
    assert!(!is_damaged(&good) && good.transfers[0].end_ns == 1_700_000_000_400_000_000);
    let before = log("1700000000500", "1600000000000");
    assert!(is_damaged(&before), "{before:?}");
    assert_eq!(before.transfers[0].end_ns, 1_700_000_000_500_000_000);
    for at_ms in ["null", "\"soon\""] {
        let log = log(at_ms, "1700000000400");
        assert!(is_damaged(&log) && log.bad_items == 1, "{log:?}");
    }
}
