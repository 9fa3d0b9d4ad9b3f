//! The HTTP interface: each path answers as documented, access control works, and slow
//! clients do not block the engine.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::mpsc::sync_channel;

use crate::common::{append, bursts_of_file, decided, sample, taken, wait_until};
use airmile::{RadioOptions, Zone};
use airmile_host::http::HttpServer;
use airmile_host::source::LogSource;
use airmile_live::engine::Engine;
use airmile_live::server::serve;
use serde_json::{Value, json};

struct LogConfigResponse {
    status: u16,
    head: String,
    body: String,
}

impl LogConfigResponse {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

fn ask(at: SocketAddr, path: &str, headers: &str) -> LogConfigResponse {
    let mut stream = TcpStream::connect(at).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    LogConfigResponse { status, head: head.to_lowercase(), body: body.to_owned() }
}

fn get(at: SocketAddr, path: &str) -> LogConfigResponse {
    ask(at, path, "Host: localhost\r\n")
}

/// An engine that has read a log.
fn engine(path: &Path) -> (Engine, u64) {
    engine_of("sample-download", path)
}

fn engine_of(scenario: &str, path: &Path) -> (Engine, u64) {
    let bytes = sample(scenario);
    append(path, &bytes);
    let engine =
        Engine::start(&LogSource::Follow(path.to_owned()), RadioOptions::default(), None).unwrap();
    let published = engine.published();
    wait_until("the log is read", || taken(&published.now()) == bytes.len() as u64);
    (engine, bytes.len() as u64)
}

fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

#[test]
fn every_documented_path_answers_by_its_schema() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, n) = engine(&dir.path().join("log"));
    let server = serve(loopback(), None, engine.published(), Zone::UTC).unwrap();
    let at = server.address();
    let document = get(at, "/v1/openapi.json").json();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    let mut checked = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        let content = item["get"]["responses"]["200"]["content"].as_object().unwrap();
        let (kind, content) = content.iter().next().unwrap();
        if kind == "text/event-stream" {
            continue;
        }
        let answer = get(at, path);
        assert_eq!(answer.status, 200, "{path}");
        assert!(answer.head.contains(&format!("content-type: {kind}")), "{path}: {}", answer.head);
        if let Some(schema) = content.get("schema") {
            let schema =
                json!({ "$ref": schema["$ref"], "components": document["components"].clone() });
            let validator = jsonschema::validator_for(&schema).unwrap();
            let errors: Vec<String> =
                validator.iter_errors(&answer.json()).map(|e| e.to_string()).collect();
            assert!(errors.is_empty(), "{path}: {errors:?}");
            checked += 1;
        }
    }
    assert_eq!(checked, 5);
    assert!(get(at, "/").body.contains("data-zone=\"UTC\""));
    let zone = Zone::parse("-03:30").unwrap();
    let newfoundland = serve(loopback(), None, engine.published(), zone).unwrap();
    assert!(get(newfoundland.address(), "/").body.contains("data-zone=\"-03:30\""));
    assert_eq!(get(at, "/v1/status").json()["intake"]["bytes"], n);
    assert!(!get(at, "/v1/transfers").json()["transfers"].as_array().unwrap().is_empty());
    assert_eq!(get(at, "/v1/bursts?limit=2").json()["bursts"].as_array().unwrap().len(), 2);
    // All that there are, up to the documented maximum.
    assert_eq!(get(at, "/v1/bursts?limit=4294967295").status, 200);
    assert_eq!(get(at, "/v1/bursts?limit=4294967296").status, 400);
    let refused = get(at, "/v1/bursts?limit=x");
    assert_eq!((refused.status, refused.json()["error"].is_string()), (400, true));
    assert_eq!(get(at, "/v1/nothing").status, 404);
}

#[test]
fn metrics_are_in_prometheus_format() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, n) = engine(&dir.path().join("log"));
    let server = serve(loopback(), None, engine.published(), Zone::UTC).unwrap();
    let text = get(server.address(), "/metrics").body;
    let mut names = Vec::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(kind == "gauge" || name.ends_with("_total"), "{line}");
            names.push(name.to_owned());
        } else if !line.starts_with('#') {
            let (name, value) = line.rsplit_once(' ').unwrap();
            let name = name.split('{').next().unwrap();
            assert!(names.iter().any(|n| n == name), "{line}");
            assert!(value.parse::<f64>().unwrap().is_finite(), "{line}");
        }
    }
    assert!(text.contains(&format!("airmile_input_bytes_total {n}\n")), "{text}");
    assert!(text.contains("airmile_bursts_total{dir=\"dl\"} "), "{text}");
}

/// Each transfer that has ended is counted, although the log still grows.
#[test]
fn transfers_are_counted_at_their_end() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let bytes = sample("busy-video");
    append(&path, &bytes);
    let engine = Engine::start(&LogSource::Follow(path), RadioOptions::default(), None).unwrap();
    let published = engine.published();
    wait_until("the log is read", || taken(&published.now()) == bytes.len() as u64);
    let server = serve(loopback(), None, published, Zone::UTC).unwrap();
    let text = get(server.address(), "/metrics").body;
    let shown = get(server.address(), "/v1/transfers").json();
    let ended = shown["transfers"].as_array().unwrap().iter().filter(|t| t["state"] != "open");
    let counts = |name: &str| -> f64 {
        let values = text.lines().filter_map(|line| line.strip_prefix(name)?.rsplit_once(' '));
        values.map(|(_, value)| value.parse::<f64>().unwrap()).sum()
    };
    let counted = counts("airmile_transfers_total{") - counts("airmile_transfers_corrected_total{");
    assert!(counted > 0.0 && counted == ended.count() as f64, "{counted}: {shown} {text}");
}

#[test]
fn only_those_who_may_enter() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, _) = engine(&dir.path().join("log"));
    let open = serve(loopback(), None, engine.published(), Zone::UTC).unwrap();
    let check = |server: &HttpServer, path: &str, headers: &str, expected: u16| {
        let answer = ask(server.address(), path, headers);
        assert_eq!(answer.status, expected, "{path} {headers:?}");
    };
    check(&open, "/v1/status", "Host: 127.0.0.1:80\r\n", 200);
    check(&open, "/v1/status", "Host: [::1]:80\r\n", 200);
    // A foreign name that resolves to this host (DNS rebinding).
    check(&open, "/v1/status", "Host: evil.example\r\n", 401);
    check(&open, "/v1/status", "Host: 127.0.0.1.evil.example\r\n", 401);
    let locked =
        serve(loopback(), Some("s3cret-s3cret-s3cret"), engine.published(), Zone::UTC).unwrap();
    for path in ["/", "/metrics", "/v1/status", "/v1/events", "/nothing"] {
        check(&locked, path, "Host: localhost\r\n", 401);
    }
    check(&locked, "/v1/status", "Host: a\r\nAuthorization: Bearer wr0ng-wr0ng-wr0ng-\r\n", 401);
    check(&locked, "/v1/status", "Host: a\r\nAuthorization: Bearer s3cret-s3cret-s3cret\r\n", 200);
    check(&locked, "/v1/status?token=s3cret-s3cret-s3cret", "Host: a\r\n", 200);
    // Nothing is served to other hosts without a token.
    let elsewhere = SocketAddr::from(([0, 0, 0, 0], 0));
    let error = serve(elsewhere, None, engine.published(), Zone::UTC).unwrap_err();
    assert!(error.to_string().contains("set a token"), "{error}");
    let error = serve(elsewhere, Some(""), engine.published(), Zone::UTC).unwrap_err();
    assert!(error.to_string().contains("set a token"), "{error}");
}

#[test]
fn events_come_as_they_happen() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let engine =
        Engine::start(&LogSource::Follow(path.clone()), RadioOptions::default(), None).unwrap();
    let server = serve(loopback(), None, engine.published(), Zone::UTC).unwrap();
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.write_all(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    lines.by_ref().find(|line| line.is_empty()).unwrap();
    append(&path, &sample("sample-rate-limited"));
    let mut next = |name: &str| {
        let wanted = format!("event: {name}");
        lines.by_ref().find(|line| *line == wanted).unwrap();
        let data = lines.by_ref().next().unwrap();
        serde_json::from_str::<Value>(data.strip_prefix("data: ").unwrap()).unwrap()
    };
    let burst = next("burst");
    assert_eq!(burst["event"], "burst");
    assert!(burst["end_tti"].as_i64() > burst["start_tti"].as_i64());
    assert!(next("transfer")["verdict"].is_string());
}

#[test]
fn clients_that_are_stuck_do_not_hold_up_the_engine() {
    let bytes = sample("sample-video");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let (sender, lines) = sync_channel(1 << 16);
    let source = LogSource::Follow(path.clone());
    let mut engine = Engine::start(&source, RadioOptions::default(), Some(sender)).unwrap();
    let server = serve(loopback(), None, engine.published(), Zone::UTC).unwrap();
    let at = server.address();
    let stuck = |request: &str| {
        let mut stream = TcpStream::connect(at).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        stream
    };
    // They never read, or never finish their request.
    let mut clients: Vec<TcpStream> =
        (0..32).map(|_| stuck("GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")).collect();
    clients.extend((0..40).map(|_| stuck("GET /v1/status HTTP/1.1\r\nHost: loc")));
    for client in &mut clients[..32] {
        let mut head = [0; 12];
        client.read_exact(&mut head).unwrap();
        assert_eq!(&head, b"HTTP/1.1 200");
    }
    let one_more = get(at, "/v1/events");
    assert_eq!(one_more.status, 503);
    let published = engine.published();
    let mut written = 0;
    for part in bytes.chunks(bytes.len() / 20 + 1) {
        append(&path, part);
        written += part.len() as u64;
        wait_until("it is read", || taken(&published.now()) == written);
        assert_eq!(get(at, "/v1/status").json()["intake"]["bytes"], written);
    }
    engine.stop();
    assert_eq!(decided(lines.try_iter()), bursts_of_file(&bytes));
    drop(clients);
}

/// A TTI of NR is a slot: 0.5 ms at 30 kHz.
#[test]
fn times_of_bursts_are_by_the_length_of_their_slots() {
    let dir = tempfile::tempdir().unwrap();
    let (mut engine, _) = engine_of("nr-two-carriers", &dir.path().join("log"));
    engine.stop();
    let server = serve(loopback(), None, engine.published(), Zone::UTC).unwrap();
    let bursts = get(server.address(), "/v1/bursts?limit=1024").json();
    let (mut dl_ms, mut longest_ms, mut last_bytes) = (0.0, 0.0_f64, 0.0);
    for burst in bursts["bursts"].as_array().unwrap() {
        let of = |name: &str| burst[name].as_f64().unwrap();
        let (slots, ms) = (of("end_tti") - of("start_tti"), of("duration_ms"));
        assert_eq!(ms, slots / 2.0, "{burst}");
        assert!((of("end_us") - of("start_us") - ms * 1e3).abs() <= 1_000.0, "{burst}");
        // What did not fill the last slot leaves with it.
        last_bytes += of("last_bytes");
        let waited = of("bytes") - of("last_bytes");
        assert_eq!(of("rate_bps"), waited * 8_000.0 / ms, "{burst}");
        if burst["dir"] == "dl" {
            dl_ms += ms;
        }
        longest_ms = longest_ms.max(ms);
    }
    assert!(longest_ms > 100.0 && last_bytes > 0.0, "{longest_ms} {last_bytes}");
    let metrics = get(server.address(), "/metrics").body;
    let value = |name: &str| {
        let line = metrics.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().parse::<f64>().unwrap()
    };
    let seconds = value("airmile_burst_seconds_total{dir=\"dl\"}")
        - value("airmile_burst_seconds_corrected_total{dir=\"dl\"}");
    assert!((seconds - dl_ms / 1e3).abs() < 1e-6, "{seconds} s, {dl_ms} ms");
}
