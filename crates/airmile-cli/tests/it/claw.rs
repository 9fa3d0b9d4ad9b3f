//! `airmile claw`: errors, and a file served and fetched.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::command::{airmile, path, text};

#[test]
fn claw_says_what_is_missing() {
    let check = |args: &[&str], expected: &str| {
        let out = airmile(&[&["claw"], args].concat());
        let message = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{args:?}: {message}");
        assert!(message.contains(expected), "{args:?}: {message}");
    };
    let dir = tempfile::tempdir().unwrap();
    let short = path(dir.path(), "short.key");
    fs::write(&short, "00ff").unwrap();
    fs::set_permissions(&short, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    check(&["get", "https://localhost:9/"], "give --ca with the server's certificate");
    check(&["get", "http://localhost:9/", "--insecure"], "give an https URL");
    check(
        &["get", "https://localhost:9/", "--insecure", "--report", "9", "--load", "2"],
        "between 0 and 1",
    );
    check(&["agent", "--to", "127.0.0.1:9"], "give --modem, --follow");
    check(&["agent", "--to", "127.0.0.1:9", "--report", "9"], "needs --key-file");
    check(&["agent", "--to", "nowhere", "--report", "9"], "an address with its port");
    check(&["get", "localhost:9/", "--insecure"], "give an https URL");
    check(&["serve", ".", "--cap", "0"], "give Mbit/s above 0");
    check(&["serve", ".", "--cap-window", "0"], "give bytes above 0");
    let with_reports = ["serve", ".", "--window", "cubic", "--reports", "127.0.0.1:0"];
    check(&with_reports, "reports are for CLAW's window alone");
    let both = ["agent", "--tcp-option", "--to", "127.0.0.1:9", "--report", "9"];
    check(&both, "cannot be used with");
    if !cfg!(feature = "bpf") {
        check(&["attach"], "--features bpf");
        check(&["agent", "--tcp-option", "--report", "9"], "--features bpf");
    }
    let out = airmile(&["claw", "serve", &short]);
    assert!(text(&out.stderr).contains("not a directory"), "{}", text(&out.stderr));
    let out = airmile(&["claw", "serve", ".", "--reports", "127.0.0.1:0", "--key-file", &short]);
    assert_eq!(out.status.code(), Some(3));
    assert!(text(&out.stderr).contains("64 hexadecimal digits"), "{}", text(&out.stderr));
}

/// A server of a test, ended by it.
struct Serving(std::process::Child);

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `claw get` and `claw agent` against `claw serve`, over loopback.
#[test]
fn claw_serves_and_gets() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("image.png"), vec![7; 300_000]).unwrap();
    let site = dir.path().to_str().unwrap();
    let words = ["claw", "serve", site, "--bind", "127.0.0.1:0", "--reports", "127.0.0.1:0"];
    let mut server = Command::new(env!("CARGO_BIN_EXE_airmile"))
        .args(words)
        .args(["--cap-window", "60000", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let _server = Serving(server);
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    let about = next();
    let base = format!("https://{}", about["address"].as_str().unwrap());
    let get = |words: &[&str]| {
        let url = format!("{base}/image.png");
        let out = airmile(&[&["claw", "get", &url, "--insecure", "--json"], words].concat());
        assert!(out.status.success(), "{}", text(&out.stderr));
        serde_json::from_slice::<Value>(&out.stdout).unwrap()
    };
    let got = get(&["--report", "600000", "--times", "3"]);
    assert_eq!(got["n"], 3);
    for fetch in got["fetches"].as_array().unwrap() {
        assert_eq!((&fetch["status"], &fetch["bytes"]), (&200.into(), &300_000.into()));
        // A report is 27 bytes (docs/claw-feedback.md).
        let reports = fetch["reports"].as_u64().unwrap();
        assert!(reports > 0, "{fetch}");
        assert_eq!(fetch["report_bytes"], 27 * reports, "{fetch}");
    }
    let events = (0..6).map(|_| next());
    let ended: Vec<Value> = events.filter(|event| event["event"] == "ended").collect();
    assert_eq!(ended.len(), 3);
    for event in ended {
        assert!(event["most_client_window_bytes"].as_u64().unwrap() <= 60_000, "{event}");
    }
    // A missing log is reported, and the page is loaded as without one.
    let none = path(dir.path(), "none.qmdl");
    let out = airmile(&["claw", "get", &format!("{base}/"), "--insecure", "--follow", &none]);
    assert!(text(&out.stderr).contains("no reports were sent"), "{}", text(&out.stderr));
}
