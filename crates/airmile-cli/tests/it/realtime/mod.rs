//! `airmile lab shell` in namespaces: `make test-realtime`. Without root or user namespaces each
//! test prints SKIPPED.

mod congestion_marks;
mod packets_of_the_log;

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use pcap_file::pcapng::PcapNgReader;
use pcap_file::pcapng::blocks::Block;

/// A cell without other users.
const SCENARIO: &str = "about = \"alone\"\nseed = 5\ntail_ms = 100\n[core]\nrtt_ms = 20\n";

fn airmile() -> Command {
    Command::new(env!("CARGO_BIN_EXE_airmile"))
}

/// Whether another program can create namespaces here, and the tests' programs are installed;
/// prints what is missing.
fn is_able(test: &str) -> bool {
    let runs = |words: &[&str]| {
        let (program, arguments) = words.split_first().unwrap();
        Command::new(program).args(arguments).output().is_ok_and(|done| done.status.success())
    };
    let device = File::options().read(true).write(true).open("/dev/net/tun");
    let lacks = [
        (
            runs(&["unshare", "-nm", "true"]) || runs(&["unshare", "-Unm", "true"]),
            "root or user namespaces (and unshare of util-linux)",
        ),
        (device.is_ok(), "/dev/net/tun"),
        (runs(&["curl", "--version"]), "curl"),
        (runs(&["python3", "--version"]), "python3"),
    ];
    let lacks: Vec<&str> = lacks.iter().filter(|(is, _)| !is).map(|(_, what)| *what).collect();
    if !lacks.is_empty() {
        eprintln!("SKIPPED {test}: this machine lacks {}", lacks.join(", "));
    }
    lacks.is_empty()
}

fn command(dir: &Path, scenario: &str, options: &[&str], words: &[&str]) -> Command {
    let file = dir.join("cell.toml");
    fs::write(&file, scenario).unwrap();
    let mut command = airmile();
    command.args(["lab", "shell"]).arg(&file).args(options);
    // These tests are independent of the machine's load.
    command.args(["--late-limit-ms", "60000", "--"]).args(words).current_dir(dir);
    command
}

fn shell(dir: &Path, scenario: &str, options: &[&str], words: &[&str]) -> Output {
    command(dir, scenario, options, words).output().unwrap()
}

/// A file in which no part equals another.
fn file(path: &Path, bytes: usize) -> Vec<u8> {
    let words = (0..bytes.div_ceil(4) as u32).map(|n| n.wrapping_mul(0x9e37_79b9).to_le_bytes());
    let mut contents: Vec<u8> = words.flatten().collect();
    contents.truncate(bytes);
    fs::write(path, &contents).unwrap();
    contents
}

/// A packet of a capture: interface, direction, time, length, and its head.
struct Seen {
    interface: u32,
    comes_in: bool,
    at_ns: i64,
    ip_bytes: u32,
    head: Vec<u8>,
}

fn capture(path: &Path) -> Vec<Seen> {
    let mut reader = PcapNgReader::new(BufReader::new(File::open(path).unwrap())).unwrap();
    let mut all = Vec::new();
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(packet) = block.unwrap() {
            use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption::Flags;
            let comes_in =
                packet.options.iter().any(|o| matches!(o, Flags(flags) if flags & 3 == 1));
            all.push(Seen {
                interface: packet.interface_id,
                comes_in,
                at_ns: packet.timestamp.as_nanos() as i64,
                ip_bytes: packet.original_len,
                head: packet.data.to_vec(),
            });
        }
    }
    all
}

/// Rows of a table by column.
fn table(path: &Path) -> Vec<HashMap<String, String>> {
    let text = fs::read_to_string(path).unwrap();
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    let row = |line: &str| {
        let cells = line.split(',').map(str::to_owned);
        header.iter().map(|name| (*name).to_owned()).zip(cells).collect()
    };
    lines.map(row).collect()
}

/// Processes with a word in their command line.
fn processes_with(word: &str) -> usize {
    let dirs = fs::read_dir("/proc").unwrap().flatten();
    let lines = dirs.filter_map(|dir| fs::read(dir.path().join("cmdline")).ok());
    lines.filter(|line| String::from_utf8_lossy(line).contains(word)).count()
}

/// Waits for a condition, long enough for a busy machine.
fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < until, "{what}");
        sleep(Duration::from_millis(20));
    }
}

#[test]
#[ignore = "needs namespaces: make test-realtime"]
fn the_exit_status_is_the_command_s() {
    if !is_able("the_exit_status_is_the_command_s") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let check = |script: &str, status: i32| {
        let got = shell(dir.path(), SCENARIO, &[], &["sh", "-c", script]);
        assert_eq!(got.status.code(), Some(status), "{script}: {got:?}");
    };
    check("exit 0", 0);
    check("exit 7", 7);
    check("kill -9 $$", 137);
    check("test \"$AIRMILE_SERVER $AIRMILE_PHONE\" = '203.0.113.1 10.0.0.2'", 0);
    let got = shell(dir.path(), SCENARIO, &[], &["/no/such/program"]);
    assert_eq!(got.status.code(), Some(127), "{got:?}");
}

#[test]
#[ignore = "needs namespaces: make test-realtime"]
fn modem_log_captures_and_truth_agree() {
    if !is_able("modem_log_captures_and_truth_agree") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    fs::create_dir(dir.join("www")).unwrap();
    let contents = file(&dir.join("www/file"), 1_500_000);
    let script = "curl -sS -o got $AIRMILE_URL/file && \
                  curl -sS -r 100-299 -o part -w '%{http_code}' $AIRMILE_URL/file";
    let options = ["--serve", "www", "-o", "run"];
    let got = shell(dir, SCENARIO, &options, &["sh", "-c", script]);
    assert_eq!(got.status.code(), Some(0), "{got:?}");
    assert_eq!(got.stdout, b"206");
    assert!(fs::read(dir.join("got")).unwrap() == contents, "the file arrived unchanged");
    assert!(fs::read(dir.join("part")).unwrap() == contents[100..300]);

    // The phone receives what the server sent, byte for byte and in order.
    let run = dir.join("run");
    let (phone, server) = (capture(&run.join("phone.pcapng")), capture(&run.join("server.pcapng")));
    let heads = |seen: &[Seen], comes_in: bool| -> Vec<(u32, Vec<u8>)> {
        let those = seen.iter().filter(|packet| packet.comes_in == comes_in);
        those.map(|packet| (packet.ip_bytes, packet.head.clone())).collect()
    };
    let down = heads(&phone, true);
    assert!(heads(&server, false).starts_with(&down) && down.len() > 1_000);
    assert!(heads(&phone, false).starts_with(&heads(&server, true)));

    // The modem log has the same bytes in RLC PDUs, with two of PDCP per packet, and 2 to 5 % at
    // most for headers, status and retransmissions.
    let ip_bytes: u64 = down.iter().map(|(bytes, _)| u64::from(bytes + 2)).sum();
    let number = |row: &HashMap<String, String>, name: &str| row[name].parse::<u64>().unwrap_or(0);
    let pdus = table(&run.join("rlc.csv"));
    let data = pdus.iter().filter(|pdu| pdu["dir"] == "dl" && pdu["status"] == "0");
    let rlc_bytes: u64 = data.map(|pdu| number(pdu, "size_bytes")).sum();
    assert!((ip_bytes..ip_bytes + ip_bytes / 20).contains(&rlc_bytes), "{rlc_bytes} of {ip_bytes}");

    // So has the truth: the events of the transfer's queue lie within its time.
    let transfers = table(&run.join("transfers.csv"));
    assert_eq!(number(&transfers[0], "bytes") / 1_000, 1_500, "{transfers:?}");
    let truth = table(&run.join("transfer_truth.csv"));
    let (busy, all) = (&truth[0]["throughput_time_ms"], &truth[0]["duration_ms"]);
    assert!(busy.parse::<f64>().unwrap() <= all.parse::<f64>().unwrap(), "{busy} of {all}");

    let manifest = fs::read_to_string(run.join("manifest.json")).unwrap();
    for word in ["\"kind\": \"real\"", "\"p99_us\"", "\"seed\": 5", "\"exit_status\": 0"] {
        assert!(manifest.contains(word), "{word} in {manifest}");
    }
    let answer = airmile().args(["diagnose", "--json"]).arg(&run).output().unwrap();
    assert_eq!(answer.status.code(), Some(0), "{answer:?}");
    assert!(String::from_utf8_lossy(&answer.stdout).contains("\"link_demand\""));
}

#[test]
#[ignore = "needs namespaces: make test-realtime"]
fn a_middlebox_splits_the_ports_that_it_takes() {
    if !is_able("a_middlebox_splits_the_ports_that_it_takes") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    fs::create_dir(dir.join("www")).unwrap();
    let contents = file(&dir.join("www/file"), 300_000);
    // Acknowledgements that reach the server within its own delay are the box's.
    let check = |ports: &str, splits: bool| {
        let scenario = format!("{SCENARIO}proxy_rtt_ms = 10\n[proxy]\nports = [{ports}]\n");
        let script = "curl -sS -o got $AIRMILE_URL/file";
        let options = ["--serve", "www", "-o", "run"];
        let got = shell(dir, &scenario, &options, &["sh", "-c", script]);
        assert_eq!(got.status.code(), Some(0), "{got:?}");
        assert!(fs::read(dir.join("got")).unwrap() == contents);
        let seen = capture(&dir.join("run/proxy.pcapng"));
        let side = |interface: u32| -> Vec<&Vec<u8>> {
            let down = seen.iter().filter(|packet| packet.head[12..16] == [203, 0, 113, 1]);
            down.filter(|packet| packet.interface == interface).map(|packet| &packet.head).collect()
        };
        let (ran, core) = (side(0), side(1));
        assert!(!ran.is_empty() && !core.is_empty());
        // The sequence numbers of the response to the first SYN: one connection, or two.
        let is_same = ran[0][24..28] == core[0][24..28];
        assert_eq!(is_same, !splits, "{ports}");
        fs::remove_dir_all(dir.join("run")).unwrap();
    };
    check("{ port = 80, slow_start_after_idle = true }", true);
    check("{ port = 443, slow_start_after_idle = true }", false);
    check(
        "{ port = 443, slow_start_after_idle = true }, { port = 80, slow_start_after_idle = false }",
        true,
    );
}

#[test]
#[ignore = "needs namespaces: make test-realtime"]
fn nothing_is_left_however_it_ends() {
    if !is_able("nothing_is_left_however_it_ends") {
        return;
    }
    let check = |signal: Option<&str>, status: Option<i32>, seconds: &str| {
        let dir = tempfile::tempdir().unwrap();
        let script = format!(
            "sleep {seconds} & echo up; sleep {}",
            if signal.is_some() { seconds } else { "0" }
        );
        let server = format!("sleep {seconds} & exec python3 -m http.server 8000");
        let mut child: Child =
            command(dir.path(), SCENARIO, &["--server", &server], &["sh", "-c", &script])
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
        if let Some(signal) = signal {
            eventually("it starts", || processes_with(seconds) >= 5);
            let pid = child.id().to_string();
            assert!(Command::new("kill").args(["-s", signal, &pid]).status().unwrap().success());
        }
        assert_eq!(child.wait().unwrap().code(), status, "{signal:?}");
        eventually("processes end", || processes_with(seconds) == 0);
    };
    check(None, Some(0), "98701.5");
    check(Some("TERM"), Some(143), "98702.5");
    check(Some("HUP"), Some(129), "98703.5");
    check(Some("KILL"), None, "98704.5");
}

#[test]
#[ignore = "needs namespaces: make test-realtime"]
fn several_run_at_once() {
    if !is_able("several_run_at_once") {
        return;
    }
    let dirs: Vec<_> = (0..3).map(|_| tempfile::tempdir().unwrap()).collect();
    let start = |(n, dir): (usize, &tempfile::TempDir)| {
        let www = dir.path().join("www");
        fs::create_dir(&www).unwrap();
        fs::write(www.join("who"), n.to_string()).unwrap();
        let words = ["curl", "-sS", "http://203.0.113.1/who"];
        let mut command = command(dir.path(), SCENARIO, &["--serve", "www"], &words);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let children: Vec<Child> = dirs.iter().enumerate().map(start).collect();
    for (n, child) in children.into_iter().enumerate() {
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.stdout, n.to_string().as_bytes(), "{output:?}");
    }
}

#[test]
#[ignore = "needs namespaces: make test-realtime"]
fn a_server_that_does_not_come_up_is_told() {
    if !is_able("a_server_that_does_not_come_up_is_told") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let got = shell(dir.path(), SCENARIO, &["--server", "exit 9"], &["true"]);
    assert_eq!(got.status.code(), Some(3), "{got:?}");
    let message = String::from_utf8_lossy(&got.stderr);
    assert!(message.contains("`exit 9` ended with status 9"), "{message}");
}

#[test]
#[ignore = "needs namespaces: make test-realtime"]
fn a_former_run_is_replaced_only_when_told() {
    if !is_able("a_former_run_is_replaced_only_when_told") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    let server = "echo hello; python3 -m http.server 8000";
    let check = |options: &[&str], status: i32, has_log: bool| {
        let options = [&["-o", "run"], options].concat();
        let got = shell(dir.path(), SCENARIO, &options, &["true"]);
        assert_eq!(got.status.code(), Some(status), "{options:?}: {got:?}");
        let manifest = fs::read(run.join("manifest.json")).unwrap();
        let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
        let files = manifest["files"].as_array().unwrap();
        let named = |name: &str| files.iter().any(|file| file["name"] == name);
        assert!(named("late_ttis.csv") && named("scenario.toml"), "{manifest}");
        assert_eq!((named("server.log"), run.join("server.log").exists()), (has_log, has_log));
        // All files are listed, except the list itself.
        assert_eq!(files.len() + 1, fs::read_dir(&run).unwrap().count());
    };
    check(&["--server", server], 0, true);
    check(&[], 3, true);
    check(&["--force"], 0, false);
}

/// Whether a test's program is installed; prints if not.
fn has(test: &str, program: &str, words: &[&str]) -> bool {
    let done = Command::new(program).args(words).output();
    let has = done.is_ok_and(|done| done.status.success());
    if !has {
        eprintln!("SKIPPED {test}: {program} cannot be run here");
    }
    has
}

#[test]
#[ignore = "needs namespaces: make test-realtime"]
fn a_middlebox_restarts_on_the_ports_where_it_should() {
    let test = "a_middlebox_restarts_on_the_ports_where_it_should";
    if !is_able(test) || !has(test, "curl", &["--rate", "1/s", "--version"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    fs::create_dir(dir.join("www")).unwrap();
    file(&dir.join("www/file"), 400_000);
    // Most of the round trip is the radio's side, so that the box has the bytes.
    let scenario = "seed = 5\ntail_ms = 100\n[core]\nrtt_ms = 60\nproxy_rtt_ms = 50\n\
                    [server_tcp]\nslow_start_after_idle = false\n[proxy]\nports = [\
                    { port = 80, slow_start_after_idle = true }, \
                    { port = 443, slow_start_after_idle = false }]\n";
    // Data packets that the box sends for the second request before the phone has acknowledged any:
    // a window of slow start has ten, a kept one has more. The kernel halves it for each RTO of the
    // pause (RFC 2861): 3 s contain enough of them.
    let first_flight = |port: u16| -> usize {
        let url = format!("http://203.0.113.1:{port}/file?[1-2]");
        let options = ["--serve", "www", "-o", "run", "--force"];
        let words = ["curl", "-sS", "--rate", "20/m", "-o", "/dev/null", &url];
        let got = shell(dir, scenario, &options, &words);
        assert_eq!(got.status.code(), Some(0), "{got:?}");
        let seen = capture(&dir.join("run/proxy.pcapng"));
        let ran = seen.iter().filter(|packet| packet.interface == 0);
        let is_down = |packet: &&Seen| packet.head[12..16] == [203, 0, 113, 1];
        let payload = |packet: &Seen| packet.ip_bytes - 20 - u32::from(packet.head[32] >> 4) * 4;
        let requests_up = |packet: &&Seen| !is_down(packet) && payload(packet) > 0;
        let all: Vec<&Seen> = ran.collect();
        let second = all.iter().rposition(requests_up).unwrap();
        let behind = &all[second + 1..];
        behind.iter().take_while(|p| is_down(p)).filter(|p| payload(p) > 0).count()
    };
    let (restarts, keeps) = (first_flight(80), first_flight(443));
    assert!((1..=10).contains(&restarts) && keeps > 10, "{restarts} and {keeps}");
}

#[test]
#[ignore = "needs namespaces: make test-realtime"]
fn nginx_can_be_the_server() {
    let test = "nginx_can_be_the_server";
    if !is_able(test) || !has(test, "nginx", &["-v"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    fs::create_dir(dir.join("www")).unwrap();
    let contents = file(&dir.join("www/file"), 200_000);
    let config = "daemon off; pid nginx.pid; error_log stderr; events {}\n\
                  http { access_log off; client_body_temp_path t1; proxy_temp_path t2;\n\
                  fastcgi_temp_path t3; uwsgi_temp_path t4; scgi_temp_path t5;\n\
                  server { listen 80; listen 7777; root www; } }\n";
    fs::write(dir.join("nginx.conf"), config).unwrap();
    // Its workers would have no access to the test's directory.
    let user = if fs::metadata("/root").is_ok() { "user root;" } else { "" };
    let here = dir.display();
    let server = format!("nginx -e stderr -p {here} -c {here}/nginx.conf -g '{user}'");
    let script = "curl -sS -o got http://203.0.113.1:7777/file";
    let got = shell(dir, SCENARIO, &["--server", &server], &["sh", "-c", script]);
    assert_eq!(got.status.code(), Some(0), "{got:?}");
    assert!(fs::read(dir.join("got")).unwrap() == contents);
}

#[test]
#[ignore = "needs namespaces: make test-realtime"]
fn a_browser_plays_and_its_log_is_the_run_s() {
    let test = "a_browser_plays_and_its_log_is_the_run_s";
    let player = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab/player");
    let path = |name: &str| player.join(name).to_str().unwrap().to_owned();
    if !is_able(test) || !has(test, &path("play.mjs"), &["--check"]) {
        return;
    }
    if !has(test, "ffmpeg", &["-version"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let video = dir.path().join("video");
    let made = Command::new(path("video.mjs")).arg(&video).args(["--seconds", "8"]).output();
    assert!(made.as_ref().unwrap().status.success(), "{made:?}");
    let options = ["--serve", "video", "-o", "run"];
    let got = shell(
        dir.path(),
        SCENARIO,
        &options,
        &[&path("play.mjs"), "--screenshot", "page.png", "--at", "3"],
    );
    assert_eq!(got.status.code(), Some(0), "{got:?}");
    let log = fs::read_to_string(dir.path().join("run/command.jsonl")).unwrap();
    let events: Vec<serde_json::Value> =
        log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |kind: &str| events.iter().filter(|event| event["event"] == kind).count();
    assert_eq!((of("end"), of("playback_started"), of("playback_ended")), (2, 1, 1), "{log}");
    // The phone's packets contain the data that the player received.
    let segments = events.iter().filter(|event| event["event"] == "end");
    let played: u64 = segments.filter_map(|event| event["bytes"].as_u64()).sum();
    let transfers = table(&dir.path().join("run/transfers.csv"));
    let brought: u64 = transfers.iter().map(|row| row["bytes"].parse::<u64>().unwrap()).sum();
    assert!(played > 50_000 && (played..played + 20_000).contains(&brought), "{played} {brought}");
    assert!(fs::read(dir.path().join("page.png")).unwrap().starts_with(b"\x89PNG"));
}
