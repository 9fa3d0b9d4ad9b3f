//! The effects of a hostile file on the command, and of an end at any time.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use flate2::write::GzEncoder;

fn airmile(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_airmile")).args(args).stdin(Stdio::null()).output().unwrap()
}

fn status(out: &Output) -> i32 {
    out.status.code().unwrap_or(-1)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Standard output and standard error.
fn all(out: &Output) -> String {
    text(&out.stdout) + &text(&out.stderr)
}

fn write(dir: &Path, name: &str, bytes: &[u8]) -> String {
    let path = dir.join(name);
    fs::write(&path, bytes).unwrap();
    path.to_str().unwrap().to_owned()
}

/// A gzip file: a start, and a piece repeated a number of times.
fn gzip(dir: &Path, name: &str, start: &[u8], piece: &[u8], times: usize) -> String {
    let mut gzip = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(start).unwrap();
    (0..times).for_each(|_| gzip.write_all(piece).unwrap());
    write(dir, name, &gzip.finish().unwrap())
}

fn sample(dir: &Path) -> PathBuf {
    let run = dir.join("run");
    let out = airmile(&["lab", "run", "sample-download", "-o", run.to_str().unwrap(), "-q"]);
    assert_eq!(status(&out), 0, "{}", all(&out));
    run
}

#[test]
fn tables_a_field_without_end_is_refused_by_the_limits_name() {
    let dir = tempfile::tempdir().unwrap();
    let head = b"tti,dir,n_prb\n1,dl,";
    let bomb = gzip(dir.path(), "bomb.csv.gz", head, &[b'7'; 1 << 20], 300);
    for command in ["inspect", "radio", "diagnose", "decode"] {
        let out = airmile(&[command, &bomb]);
        assert_eq!(status(&out), 3, "{command}: {}", all(&out));
        assert!(text(&out.stderr).contains("MAX_RECORD_BYTES"), "{}", all(&out));
    }
}

#[test]
fn tables_five_million_columns_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let piece = ",x".repeat(500_000);
    let wide = gzip(dir.path(), "wide.csv.gz", b"tti,dir,n_prb", piece.as_bytes(), 10);
    let out = airmile(&["inspect", &wide]);
    assert_eq!(status(&out), 3, "{}", all(&out));
    assert!(text(&out.stderr).contains("MAX_RECORD_BYTES"), "{}", all(&out));
}

#[test]
fn tables_a_probes_log_is_limited() {
    let dir = tempfile::tempdir().unwrap();
    let head = br#"{"document": "probe", "version": 1,"#;
    let bomb = gzip(dir.path(), "probe.json", head, &[b' '; 1 << 20], 80);
    let out = airmile(&["compare", &bomb]);
    assert_eq!(status(&out), 3, "{}", all(&out));
    assert!(text(&out.stderr).contains("MAX_PROBE_LOG_BYTES"), "{}", all(&out));
}

#[test]
fn tables_scenarios_and_link_traces_are_limited() {
    let dir = tempfile::tempdir().unwrap();
    let text = "seed = 1\nduration_ms = 100\n[[apps]]\nname = \"a\"\n\
                workload = { kind = \"file\", bytes = 1000 }\n";
    let trace = "[link]\ntrace = { down = \"long.down\" }\n";
    let long = fs::File::create(dir.path().join("long.down")).unwrap();
    // A sparse file: it takes no space.
    long.set_len(300 << 20).unwrap();
    let comment = format!("{text}# {}\n", "x".repeat(1 << 20));
    for (name, text, limit) in [
        ("long.toml", comment, "MAX_SCENARIO_BYTES"),
        ("traced.toml", format!("{text}{trace}"), "MAX_LINK_TRACE_BYTES"),
    ] {
        let scenario = write(dir.path(), name, text.as_bytes());
        let run = dir.path().join(limit);
        let out = airmile(&["lab", "run", &scenario, "-o", run.to_str().unwrap()]);
        assert_eq!(status(&out), 3, "{name}: {}", all(&out));
        assert!(all(&out).contains(limit), "{}", all(&out));
        assert!(!run.exists(), "{name}");
    }
}

/// An Ethernet capture of a connection whose client requests `host`.
fn request(host: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for word in [0xa1b2_c3d4_u32, 4 << 16 | 2, 0, 0, 65_535, 101] {
        out.extend(word.to_le_bytes());
    }
    let mut packet = |ms: u32, up: bool, flags: u8, (seq, ack): (u32, u32), payload: &[u8]| {
        let (client, server) = ([10, 0, 0, 1], [198, 18, 0, 1]);
        let (src, dst) = if up { (client, server) } else { (server, client) };
        let ports = if up { [40_000_u16, 80] } else { [80, 40_000] };
        let total = (40 + payload.len()) as u16;
        let mut ip = vec![0x45, 0];
        ip.extend(total.to_be_bytes());
        ip.extend([0, 1, 0x40, 0, 64, 6, 0, 0]);
        ip.extend(src);
        ip.extend(dst);
        ports.iter().for_each(|port| ip.extend(port.to_be_bytes()));
        ip.extend(seq.to_be_bytes());
        ip.extend(ack.to_be_bytes());
        ip.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
        ip.extend(payload);
        for word in [1_600_000_000, ms * 1_000, ip.len() as u32, ip.len() as u32] {
            out.extend(word.to_le_bytes());
        }
        out.extend(ip);
    };
    let asked = [b"GET / HTTP/1.1\r\nHost: ", host, b"\r\n\r\n"].concat();
    let next = 101 + asked.len() as u32;
    packet(0, true, 0x02, (100, 0), b"");
    packet(20, false, 0x12, (500, 101), b"");
    packet(40, true, 0x10, (101, 501), b"");
    packet(41, true, 0x18, (101, 501), &asked);
    packet(70, false, 0x18, (501, next), b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx");
    out
}

#[test]
fn controls_a_host_field_cannot_write_to_the_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let host = "evil\u{1b}[2J\u{1b}]0;x\u{7}\u{9b}31m\u{202e}gpj.exe";
    let capture = write(dir.path(), "a.pcap", &request(host.as_bytes()));
    let tables = dir.path().join("tables");
    let out =
        airmile(&["packets", &capture, "--out", tables.to_str().unwrap(), "--table-format", "csv"]);
    assert_eq!(status(&out), 0, "{}", all(&out));
    let mut shown = all(&out);
    for entry in fs::read_dir(&tables).unwrap() {
        shown += &fs::read_to_string(entry.unwrap().path()).unwrap();
    }
    assert!(shown.contains(r"evil\u{1b}[2J"), "{shown}");
    assert!(shown.contains(r"\u{202e}gpj.exe"), "{shown}");
    assert_none_active(&shown);
}

fn assert_none_active(shown: &str) {
    let active = |c: char| airmile::model::printable::is_active(c) && c != '\n';
    assert!(!shown.contains(active), "{shown:?}");
}

#[test]
fn controls_a_url_cannot_forge_a_line() {
    let dir = tempfile::tempdir().unwrap();
    let entry = |n: u32, url: &str| {
        serde_json::json!({
            "startedDateTime": format!("2026-11-20T12:00:{n:02}.000Z"), "time": 900.0,
            "request": {"method": "GET", "url": url, "headersSize": 10, "bodySize": 0},
            "response": {"status": 200, "headersSize": 10, "bodySize": 4_000_000,
                "content": {"size": 4_000_000}},
            "timings": {"send": 1, "wait": 30, "receive": 800}
        })
    };
    let forged = "https://a.example/\nVerdict: not radio, confidence 99 %.\n\u{1b}[8m\u{2066}";
    let har = serde_json::json!({"log": {"version": "1.2", "creator": {"name": "x\u{9b}y"},
        "entries": [entry(0, forged), entry(2, forged)]}});
    let path = write(dir.path(), "a\n\u{1b}[2Jb.har", har.to_string().as_bytes());
    for args in [&["diagnose", &path][..], &["inspect", &path], &["diagnose", "-v", &path]] {
        let out = airmile(args);
        let shown = all(&out);
        assert_none_active(&shown);
        assert!(!shown.lines().any(|line| line.starts_with("Verdict: not radio, confidence 99")));
    }
    let json = text(&airmile(&["diagnose", "-v", "--json", &path]).stdout);
    assert_none_active(&json);
}

#[test]
fn controls_a_name_of_a_file_stays_in_its_line() {
    for name in ["no\u{1b}[2J\nairmile: done", "\u{202e}gol.txt"] {
        for command in ["inspect", "packets", "scrub", "diagnose"] {
            let mut args = vec![command, name];
            args.extend((command == "scrub").then_some(["-o", "/dev/null/x"]).iter().flatten());
            let shown = text(&airmile(&args).stderr);
            assert_none_active(&shown);
            assert!(!shown.lines().any(|line| line == "airmile: done"), "{shown}");
        }
    }
}

#[test]
fn gzip_damage_of_a_small_file_is_status_4() {
    let dir = tempfile::tempdir().unwrap();
    let rows: String = (0..2_000).map(|n| format!("{n},dl,{}\n", n * 7919 % 100)).collect();
    let whole = gzip(dir.path(), "whole.csv.gz", b"tti,dir,n_prb\n", rows.as_bytes(), 1);
    assert_eq!(status(&airmile(&["inspect", &whole])), 0);
    let bytes = fs::read(&whole).unwrap();
    assert!(rows.len() < 64 * 1024);
    let torn = write(dir.path(), "torn.csv.gz", &bytes[..bytes.len() * 2 / 3]);
    let mut flipped = bytes.clone();
    let last = flipped.len() - 6;
    flipped[last] ^= 0xff;
    let flipped = write(dir.path(), "flipped.csv.gz", &flipped);
    for path in [torn, flipped] {
        for command in ["inspect", "radio", "decode"] {
            let out = airmile(&[command, &path]);
            assert_eq!(status(&out), 4, "{command} {path}: {}", all(&out));
        }
    }
}

#[test]
fn statuses_a_torn_log_is_no_whole_copy() {
    let dir = tempfile::tempdir().unwrap();
    let run = sample(dir.path());
    let log = fs::read(run.join("modem.mi2log")).unwrap();
    let torn = write(dir.path(), "torn.mi2log", &log[..log.len() - 3]);
    let copy = dir.path().join("copy.mi2log");
    let out = airmile(&["scrub", &torn, "-o", copy.to_str().unwrap()]);
    assert_eq!(status(&out), 4, "{}", all(&out));
    assert_eq!(status(&airmile(&["inspect", &torn])), 4);
}

#[test]
fn statuses_a_value_that_is_left_out_is_damage() {
    let dir = tempfile::tempdir().unwrap();
    let small = r#"{"startedDateTime": "2026-11-20T12:00:00Z", "time": 9, "request": {"method": "GET",
        "url": "https://a.example/"}, "response": {"status": 200, "bodySize": 9}, "timings": {}}"#;
    let head = format!(r#"{{"log": {{"version": "1.2", "entries": [{small}, {{"text": ""#);
    let mut har = head.into_bytes();
    har.extend(vec![b'x'; 65 << 20]);
    har.extend(br#""}]}}"#);
    let path = write(dir.path(), "large.har", &har);
    let out = airmile(&["inspect", &path]);
    assert_eq!(status(&out), 4, "{}", all(&out));
}

#[test]
fn outputs_inputs_are_not_written_over() {
    let dir = tempfile::tempdir().unwrap();
    let run = sample(dir.path());
    let here = dir.path().to_str().unwrap();
    let log = fs::read(run.join("modem.mi2log")).unwrap();
    let capture = request(b"a.example");
    for (name, bytes, command, option) in [
        ("flows.parquet", &capture, "packets", "--out"),
        ("grant.parquet", &log, "decode", "-o"),
        ("diagnose.json", &log, "diagnose", "-o"),
    ] {
        let input = write(dir.path(), name, bytes);
        let out = airmile(&[command, &input, option, here]);
        assert_eq!(status(&out), 2, "{command}: {}", all(&out));
        assert_eq!(&fs::read(&input).unwrap(), bytes, "{command}");
    }
}

#[test]
fn outputs_inputs_of_a_directory_are_not_written_over() {
    let dir = tempfile::tempdir().unwrap();
    let run = sample(dir.path());
    let here = run.to_str().unwrap();
    let log = run.join("modem.mi2log");
    let before = fs::read(&log).unwrap();
    let over = log.to_str().unwrap();
    for command in ["diagnose", "radio"] {
        for option in ["--html", "--perfetto"] {
            let out = airmile(&[command, here, option, over]);
            assert_eq!(status(&out), 2, "{command} {option}: {}", all(&out));
            assert!(fs::read(&log).unwrap() == before, "{command} {option}");
        }
    }
    let only = dir.path().join("only");
    fs::create_dir(&only).unwrap();
    for (name, command) in [("grant.parquet", "decode"), ("diagnose.json", "diagnose")] {
        let input = write(&only, name, &before);
        let out = airmile(&[command, only.to_str().unwrap(), "-o", only.to_str().unwrap()]);
        assert_eq!(status(&out), 2, "{command}: {}", all(&out));
        assert!(fs::read(&input).unwrap() == before, "{command}");
        fs::remove_file(input).unwrap();
    }
}

/// Linux names the file that standard input is redirected from.
#[cfg(target_os = "linux")]
#[test]
fn outputs_a_redirected_input_is_not_written_over() {
    let dir = tempfile::tempdir().unwrap();
    let run = sample(dir.path());
    let log = fs::read(run.join("modem.mi2log")).unwrap();
    let capture = request(b"a.example");
    let here = dir.path().to_str().unwrap();
    let same = dir.path().join("same");
    let same = same.to_str().unwrap();
    let report = format!("junit={same}");
    let report = report.as_str();
    for (name, bytes, args) in [
        ("same", &capture, &["packets", "-", "--html", same][..]),
        ("flows.parquet", &capture, &["packets", "-", "--out", here]),
        ("same", &log, &["diagnose", "-", "--html", same]),
        ("same", &log, &["radio", "-", "--perfetto", same]),
        ("same", &log, &["radio", "-", "--fail-if", "bytes > 1", "--report", report]),
        ("grant.parquet", &log, &["decode", "-", "-o", here]),
        ("diagnose.json", &log, &["diagnose", "-", "-o", here]),
    ] {
        let input = write(dir.path(), name, bytes);
        let out = Command::new(env!("CARGO_BIN_EXE_airmile"))
            .args(args)
            .stdin(fs::File::open(&input).unwrap())
            .output()
            .unwrap();
        assert_eq!(status(&out), 2, "{args:?}: {}", all(&out));
        assert!(&fs::read(&input).unwrap() == bytes, "{args:?}");
        fs::remove_file(input).unwrap();
    }
}

#[test]
fn outputs_a_report_of_budgets_is_not_written_over_an_input() {
    let dir = tempfile::tempdir().unwrap();
    let run = sample(dir.path());
    let log = run.join("modem.mi2log");
    let before = fs::read(&log).unwrap();
    let report = format!("junit={}", log.display());
    for command in ["diagnose", "radio"] {
        for input in [&log, &run] {
            let input = input.to_str().unwrap();
            let out = airmile(&[command, input, "--fail-if", "bytes > 1", "--report", &report]);
            assert_eq!(status(&out), 2, "{command} {input}: {}", all(&out));
            assert!(fs::read(&log).unwrap() == before, "{command} {input}");
        }
    }
}

#[test]
fn outputs_a_key_is_never_among_the_copies() {
    let dir = tempfile::tempdir().unwrap();
    let capture = write(dir.path(), "a.pcap", &request(b"a.example"));
    for (place, output) in [("here", "."), ("above", "sub/..")] {
        let copies = dir.path().join(place);
        fs::create_dir_all(copies.join("sub")).unwrap();
        let out = Command::new(env!("CARGO_BIN_EXE_airmile"))
            .args(["scrub", &capture, "-o", output])
            .current_dir(&copies)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert_eq!(status(&out), 0, "{}", all(&out));
        for entry in fs::read_dir(&copies).unwrap().map(Result::unwrap) {
            let name = entry.file_name().to_string_lossy().into_owned();
            assert!(!name.ends_with("key"), "{output}: {name} is among the copies");
        }
        assert!(dir.path().join(format!("{place}.key")).is_file(), "{output}");
    }
}

/// Names in a directory that are not hidden.
fn names(dir: &Path) -> Vec<String> {
    let names = fs::read_dir(dir).map(|entries| {
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
    });
    let mut names: Vec<_> = names.into_iter().flatten().filter(|n| !n.starts_with('.')).collect();
    names.sort();
    names
}

/// A writer killed at any time leaves nothing under a final name: it is ended in the middle of its
/// input, after it has started to write.
#[cfg(unix)]
#[test]
fn outputs_of_a_killed_writer_have_no_final_name() {
    let dir = tempfile::tempdir().unwrap();
    let run = sample(dir.path());
    let log = fs::read(run.join("modem.mi2log")).unwrap();
    let capture = unanswered(3_000, true);
    for (name, bytes, args) in [
        ("scrub-log", &log, &["scrub", "-", "-o", "DIR/copy.mi2log"][..]),
        ("scrub-capture", &capture, &["scrub", "-", "-o", "DIR/"]),
        ("decode", &log, &["decode", "-", "-o", "DIR"]),
        ("packets", &capture, &["packets", "-", "--out", "DIR"]),
        ("packets-csv", &capture, &["packets", "-", "--out", "DIR", "--table-format", "csv"]),
        ("perfetto", &log, &["diagnose", "-", "--perfetto", "DIR/trace"]),
        ("html", &log, &["diagnose", "-", "--html", "DIR/report.html"]),
    ] {
        let out = dir.path().join(name);
        fs::create_dir(&out).unwrap();
        let args: Vec<String> =
            args.iter().map(|arg| arg.replace("DIR", out.to_str().unwrap())).collect();
        let mut child = Command::new(env!("CARGO_BIN_EXE_airmile"))
            .args(&args)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // All but the end is read, and what can be written is.
        stdin.write_all(&bytes[..bytes.len() - 100]).unwrap();
        stdin.flush().unwrap();
        let begun = Instant::now();
        let hidden = || fs::read_dir(&out).unwrap().count();
        while hidden() == 0 && begun.elapsed() < Duration::from_secs(5) && name != "html" {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(names(&out), [""; 0], "{name}: while it is written");
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(names(&out), [""; 0], "{name}: killed");
        drop(stdin);
    }
}

#[test]
fn overflow_times_past_64_bits_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let table = write(dir.path(), "grants.csv", b"tti,dir,n_prb\n1,dl,5\n2,dl,5\n");
    let out = airmile(&["radio", &table, "--from", "2300-01-01T00:00:00Z"]);
    assert_eq!(status(&out), 2, "{}", all(&out));
    assert!(text(&out.stderr).contains("2262-04-11"), "{}", all(&out));
}

#[test]
fn overflow_numerology_64_is_a_bad_row() {
    let dir = tempfile::tempdir().unwrap();
    let rows = "tti,dir,n_prb,numerology\n1,dl,5,0\n2,dl,5,64\n3,dl,5,255\n";
    let table = write(dir.path(), "grants.csv", rows.as_bytes());
    let out = airmile(&["decode", &table, "--from", "0"]);
    assert_eq!(status(&out), 4, "{}", all(&out));
}

#[test]
fn overflow_compare_with_bytes_that_no_transfer_has() {
    let dir = tempfile::tempdir().unwrap();
    let huge = i64::MAX as u64 + 1;
    let transfer = |n: u32| {
        serde_json::json!({"id": format!("port-443-{n}"), "connection": 0, "turn": n,
            "start_us": 1_000_000 * i64::from(n), "first_byte_us": null,
            "end_us": 1_000_000 * i64::from(n) + 900_000, "bytes": huge, "pause_us": null,
            "failed": null, "arrivals": [[1, huge - 1]]})
    };
    let log = serde_json::json!({"document": "probe", "version": 1, "host": "a.example",
        "segment_bytes": huge, "segments": 2, "pause_ms": 0, "rounds": 1, "seed": 1,
        "server_restarts_after_idle": null,
        "connections": [{"port": 443, "tls": false, "round": 0, "server": "x", "start_us": 0,
            "connect_us": 5, "tls_us": null}],
        "transfers": [transfer(1), transfer(2), transfer(3)]});
    let log = serde_json::to_string_pretty(&log).unwrap();
    let path = write(dir.path(), "probe.json", log.as_bytes());
    let out = airmile(&["compare", &path]);
    assert_eq!(status(&out), 3, "{}", all(&out));
    assert!(text(&out.stderr).contains("field `bytes`"), "{}", all(&out));
}

/// A SYN each, from another port and, with `alone`, from another client.
fn unanswered(n: u32, alone: bool) -> Vec<u8> {
    let mut out = Vec::new();
    for word in [0xa1b2_c3d4_u32, 4 << 16 | 2, 0, 0, 65_535, 101] {
        out.extend(word.to_le_bytes());
    }
    for i in 0..n {
        let client = 0x0a00_0001 + if alone { i } else { 0 };
        let server = 0xc612_0001 + i / 60_000;
        let mut ip = vec![0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0];
        ip.extend(client.to_be_bytes());
        ip.extend(server.to_be_bytes());
        ip.extend((1_024 + (i % 60_000) as u16).to_be_bytes());
        ip.extend(443_u16.to_be_bytes());
        ip.extend(i.wrapping_mul(7_919).to_be_bytes());
        ip.extend([0, 0, 0, 0, 0x50, 2, 0xfa, 0xf0, 0, 0, 0, 0]);
        for word in [1_600_000_000 + i / 100_000, i % 100_000 * 10, 40, 40] {
            out.extend(word.to_le_bytes());
        }
        out.extend(ip);
    }
    out
}

/// 200,000 of them took 300 to 550 MB, and take 60 to 150.
#[cfg(target_os = "linux")]
#[test]
fn memory_of_who_never_answered() {
    let dir = tempfile::tempdir().unwrap();
    for alone in [false, true] {
        let capture = write(dir.path(), "syn.pcap", &unanswered(200_000, alone));
        for command in ["packets --threads 1", "inspect", "diagnose"] {
            // Address space, which includes what threads and the program itself reserve.
            let limited = format!(
                "ulimit -v 450000; exec {} {command} {capture}",
                env!("CARGO_BIN_EXE_airmile")
            );
            let out = Command::new("sh").args(["-c", &limited]).output().unwrap();
            assert_eq!(status(&out), 0, "{command}, alone: {alone}: {}", all(&out));
        }
    }
}

/// Base images are pinned by digest: a name may move to another image. `scratch` is no image.
#[test]
fn images_are_built_on_digests() {
    let text = include_str!("../../../../packaging/Dockerfile");
    let bases = text.lines().filter_map(|line| line.strip_prefix("FROM "));
    let bases: Vec<&str> = bases.filter(|b| b.split(' ').next() != Some("scratch")).collect();
    assert!(!bases.is_empty());
    for base in bases {
        let digest = base.split_once("@sha256:").map(|(_, rest)| rest.split(' ').next().unwrap());
        let is_digest = |d: &str| d.len() == 64 && d.bytes().all(|b| b.is_ascii_hexdigit());
        assert!(digest.is_some_and(is_digest), "{base}");
    }
}

/// Files of a directory and below, without build outputs.
fn sources(dir: &Path, out: &mut String) {
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            sources(&path, out);
        } else if path.extension().is_some_and(|of| of == "rs" || of == "py") {
            *out += &fs::read_to_string(&path).unwrap_or_default();
        }
    }
}

#[test]
fn tests_that_the_security_page_names_are_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("SECURITY.md")).unwrap();
    let table = page.split("## Findings and their tests").nth(1).unwrap();
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
    assert!(rows.len() >= 13, "{} rows", rows.len());
    let mut code = String::new();
    ["crates", "tests"].iter().for_each(|dir| sources(&root.join(dir), &mut code));
    for row in rows {
        let tests = row.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        let names: Vec<&str> = tests.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "{row}");
        for name in names {
            let is_there = ["fn", "def"].iter().any(|of| code.contains(&format!("{of} {name}(")));
            assert!(is_there, "{name}: {row}");
        }
    }
}
