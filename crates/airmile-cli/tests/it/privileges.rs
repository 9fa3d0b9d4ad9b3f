//! The privileges that commands started as root keep.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// DAC_OVERRIDE and DAC_READ_SEARCH.
const READING: u64 = 1 << 1 | 1 << 2;

/// A field of /proc/PID/status.
fn field(status: &str, name: &str) -> String {
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split(':').nth(1).unwrap().trim().to_owned()
}

#[test]
fn privileges_a_capture_as_root_keeps_two_capabilities() {
    if !rustix::process::geteuid().is_root() {
        return airmile_testing::skipped("needs root");
    }
    let dir = tempfile::tempdir().unwrap();
    let page = dir.path().join("page.html");
    // DAC_OVERRIDE is 1, NET_ADMIN 12 and NET_RAW 13 (linux/capability.h).
    let of_network = 1_u64 << 12 | 1 << 13;
    for (args, kept) in [
        (&["live", "--interface", "lo", "--lines"][..], of_network),
        (&["packets", "--interface", "lo", "--duration", "9"], of_network),
        // Outputs may be in directories of other users.
        (
            &["packets", "--interface", "lo", "--duration", "3", "--html", page.to_str().unwrap()],
            of_network | 1 << 1,
        ),
    ] {
        check_rights(args, kept);
    }
}

#[test]
fn privileges_servers_as_root_keep_ports_and_reading() {
    if !rustix::process::geteuid().is_root() {
        return airmile_testing::skipped("needs root");
    }
    let site = tempfile::tempdir().unwrap();
    let site = site.path().to_str().unwrap();
    // DAC_OVERRIDE is 1, DAC_READ_SEARCH 2, NET_BIND_SERVICE 10 (linux/capability.h).
    let reading = if has() & 1 << 2 == 0 { 1 << 1 } else { 1 << 2 };
    check_rights(&["probe", "serve", "--ports", "0", "--tls", "", "-q"], 1 << 10);
    check_rights(&["claw", "serve", site, "--bind", "127.0.0.1:0", "-q"], 1 << 10 | reading);
}

/// The capabilities that programs started here may have.
fn has() -> u64 {
    let own = fs::read_to_string("/proc/self/status").unwrap();
    u64::from_str_radix(&field(&own, "CapBnd"), 16).unwrap()
}

fn check_rights(args: &[&str], kept: u64) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_airmile"))
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let read = || fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    // Threads may end before their status is read.
    let read_tasks = || -> Vec<String> {
        let tasks = fs::read_dir(format!("/proc/{}/task", child.id())).unwrap();
        let paths = tasks.filter_map(|task| Some(task.ok()?.path().join("status")));
        paths.filter_map(|path| fs::read_to_string(path).ok()).collect()
    };
    let filters =
        if cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) { "2" } else { "0" };
    let is_restricted =
        |status: &str| field(status, "NoNewPrivs") == "1" && field(status, "Seccomp") == filters;
    let begun = Instant::now();
    let tasks = loop {
        let is_ready = is_restricted(&read());
        let tasks = read_tasks();
        if is_ready && tasks.len() > 1 || begun.elapsed() > Duration::from_secs(30) {
            break tasks;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    if args.contains(&"--html") {
        // A page needs packets.
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..20 {
            socket.send_to(b"x", socket.local_addr().unwrap()).unwrap();
        }
        assert!(child.wait().unwrap().success(), "{args:?}");
    } else {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert!(tasks.len() > 1, "{args:?}: {} threads", tasks.len());
    for status in tasks {
        for set in ["CapEff", "CapPrm", "CapBnd"] {
            let bits = u64::from_str_radix(&field(&status, set), 16).unwrap();
            assert_eq!(bits & !kept, 0, "{set}: {status}");
            // Reading other users' files, where it is kept.
            assert_eq!(bits & READING, kept & has() & READING, "{set}: {status}");
        }
        assert_eq!(field(&status, "NoNewPrivs"), "1");
        assert_eq!(field(&status, "Seccomp"), filters);
    }
}
