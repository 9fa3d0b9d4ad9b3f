use super::super::{ApplicationFormat, read_application};

const CONSTANTS: &str = r#"{"constants":{"clientInfo":{"name":"Chrome","version":"1"},"logEventPhase":{"PHASE_BEGIN":1,"PHASE_END":2,"PHASE_NONE":0},
"logEventTypes":{"REQUEST_ALIVE":2,"URL_REQUEST_START_JOB":3,"HTTP_STREAM_REQUEST_BOUND_TO_JOB":4,"HTTP_TRANSACTION_SEND_REQUEST":5,"HTTP_TRANSACTION_READ_HEADERS":6,"URL_REQUEST_JOB_FILTERED_BYTES_READ":7,"SOCKET_ALIVE":8,"TCP_CONNECT":9,"SSL_CONNECT":10,"HOST_RESOLVER_MANAGER_REQUEST":11,"SOCKET_POOL_BOUND_TO_SOCKET":12},
"logSourceType":{"URL_REQUEST":1,"HTTP_STREAM_JOB":2,"SOCKET":3,"TCP_CONNECT_JOB":4},"timeTickOffset":1700000000000},
"events":[
"#;

/// Time, phase, source type, source, type, parameters.
fn event(at: i64, phase: u8, source: (u8, u64), kind: u8, params: &str) -> String {
    let (of, id) = source;
    format!(
        "{{\"params\":{{{params}}},\"phase\":{phase},\"source\":{{\"id\":{id},\"type\":{of}}},\"time\":\"{at}\",\"type\":{kind}}},\n"
    )
}

fn request() -> String {
    const REQUEST: (u8, u64) = (1, 70);
    const JOB: (u8, u64) = (2, 71);
    const SOCKET: (u8, u64) = (3, 73);
    const CONNECT: (u8, u64) = (4, 72);
    let on = |id: i64, of: u8| format!("\"source_dependency\":{{\"id\":{id},\"type\":{of}}}");
    [
        event(100, 1, REQUEST, 2, "\"url\":\"https://a.example/x?token=1\""),
        event(100, 1, REQUEST, 3, "\"url\":\"https://a.example/x?token=1\""),
        event(110, 1, CONNECT, 11, ""),
        event(130, 2, CONNECT, 11, ""),
        event(130, 1, SOCKET, 8, &on(72, 4)),
        event(130, 1, SOCKET, 9, ""),
        event(170, 2, SOCKET, 9, ""),
        event(170, 1, SOCKET, 10, ""),
        event(220, 2, SOCKET, 10, ""),
        event(220, 0, JOB, 12, &on(73, 3)),
        event(221, 0, REQUEST, 4, &on(71, 2)),
        event(222, 1, REQUEST, 5, ""),
        event(224, 2, REQUEST, 5, ""),
        event(224, 1, REQUEST, 6, ""),
        event(264, 2, REQUEST, 6, ""),
        event(300, 0, REQUEST, 7, "\"byte_count\":5000"),
        event(340, 0, REQUEST, 7, "\"byte_count\":700"),
    ]
    .concat()
}

#[test]
fn a_request_with_its_connection() {
    let text = format!("{CONSTANTS}{}", request());
    assert_eq!(ApplicationFormat::recognise(text.as_bytes()), Some(ApplicationFormat::NetLog));
    let end = event(390, 2, (1, 70), 2, "");
    for (end, closed) in [(format!("{end}]}}"), true), (String::new(), false)] {
        let log = read_application(ApplicationFormat::NetLog, format!("{text}{end}").as_bytes());
        let [transfer] = log.transfers.as_slice() else { panic!("{log:?}") };
        let ms = |ns: i64| ns / 1_000_000 - 1_700_000_000_000;
        assert_eq!((ms(transfer.start_ns), ms(transfer.end_ns)), (100, 340));
        assert_eq!(transfer.bytes, Some(5_700));
        assert_eq!(transfer.unfinished, !closed);
        let p = transfer.phases;
        let parts =
            [p.blocked_ns, p.dns_ns, p.connect_ns, p.tls_ns, p.send_ns, p.wait_ns, p.receive_ns];
        let parts = parts.map(|ns| ns.unwrap() / 1_000_000);
        assert_eq!(parts, [12, 20, 40, 50, 2, 40, 76]);
        assert_eq!(parts.iter().sum::<i64>(), 240);
        // A browser that was killed leaves its log unterminated.
        assert_eq!((log.problems.kept.len(), log.problems.damaged), (usize::from(!closed), false));
    }
}

#[test]
fn torn_and_bad_events() {
    let check = |events: &str, problem: &str, damaged: bool| {
        let log =
            read_application(ApplicationFormat::NetLog, format!("{CONSTANTS}{events}").as_bytes());
        let first = log.problems.kept.first().map(ToString::to_string).unwrap_or_default();
        assert!(first.contains(problem), "{first}");
        assert_eq!(log.problems.damaged, damaged, "{first}");
    };
    check("{\"time\":\"1\",\"so", "the file ends inside events[]", true);
    check("{\"time\":\"1\"}]}", "time or source.id: missing", false);
    check("{\"time\":1,,}]}", "events[]: key must be a string", true);
    let log = read_application(ApplicationFormat::NetLog, br#"{"events":[{"time":"1"}]}"#);
    assert!(log.problems.kept[0].what.contains("constants: missing"));
}
