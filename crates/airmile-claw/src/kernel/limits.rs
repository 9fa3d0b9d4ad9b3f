//! Tests of the limits on feedback in the kernel: bpf/limits.h itself, compiled for user
//! space.

#![allow(clippy::print_stdout, reason = "tests may print")]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use super::super::OperatorLimits;

/// Runs commands of limits_main.c; returns one result each. `None`: there is no compiler.
fn run(commands: &[String]) -> Option<Vec<u64>> {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("limits");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("bpf/limits_main.c");
    let compile = |compiler: &str| {
        let words = ["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-o"];
        Command::new(compiler).args(words).arg(&program).arg(&source).status()
    };
    let Some(status) = ["clang", "cc"].iter().find_map(|name| compile(name).ok()) else {
        airmile_testing::skipped("the tests of the BPF limits need a C compiler");
        return None;
    };
    assert!(status.success(), "{}", source.display());
    let mut child =
        Command::new(&program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let text = commands.iter().map(|command| format!("{command}\n")).collect::<String>();
    // It answers while it reads.
    let feed = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let output = child.wait_with_output().unwrap();
    feed.join().unwrap().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let results: Vec<u64> = text.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(results.len(), commands.len());
    Some(results)
}

fn check(table: &[(&str, u64)]) {
    let commands: Vec<String> = table.iter().map(|(command, _)| (*command).to_owned()).collect();
    let Some(results) = run(&commands) else { return };
    for (n, ((command, expected), result)) in table.iter().zip(results).enumerate() {
        assert_eq!(result, *expected, "line {n}: {command}");
    }
}

#[test]
fn the_cap() {
    check(&[
        // 100 Mbit/s for 80 ms are 1 MB; 4 MB are reached at 320 ms.
        ("most 4000000 12500000 80000000", 1_000_000),
        ("most 4000000 12500000 320000000", 4_000_000),
        ("most 4000000 12500000 900000000", 4_000_000),
        // No RTT yet: 100 ms. An implausible RTT.
        ("most 4000000 12500000 0", 1_250_000),
        ("most 18446744073709551615 125000000000 18446744073709551615", 7_500_000_000_000),
        // 1 MB of a window of 4 GB, in packets of 1000 bytes, shared by one, four, and too
        // many.
        ("part 4294967295 1000000 1000 1", 1_000),
        ("part 4294967295 1000000 1000 4", 250),
        ("part 4294967295 1000000 1000 1000", 2),
        // A wrong count must not grant more than a single connection's window.
        ("part 4294967295 1000000 1000 0", 1_000),
        ("part 4294967295 1000000 1000 4294967295", 1_000),
        ("part 5000 1000000 1000 1", 5),
        ("part 0 1000000 1000 1", 2),
        ("part 5000 1000000 0 1", 2),
    ]);
}

/// Whatever is reported, at whatever RTT and number of connections: their windows together
/// stay within the operator's limit, or at Cubic's minimum.
#[test]
fn no_value_passes_the_cap() {
    let OperatorLimits { window_bytes, rate_bps } =
        OperatorLimits { window_bytes: 900_000, rate_bps: 20_000_000 };
    let mut random = 88_172_645_463_325_252_u64;
    let mut next = || {
        // Marsaglia's xorshift64.
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    let cases: Vec<_> = (0..4_000)
        .map(|n| {
            let wide = next() >> (n % 64);
            (wide, 1 + next() % 2_000_000_000, 500 + next() % 9_000, 1 + next() % 64)
        })
        .collect();
    let most =
        cases.iter().map(|(_, rtt, ..)| format!("most {window_bytes} {} {rtt}", rate_bps / 8));
    let Some(most) = run(&most.collect::<Vec<_>>()) else { return };
    let part = |((w_claw, _, mss, busy), most): (&(u64, u64, u64, u64), &u64)| {
        format!("part {w_claw} {most} {mss} {busy}")
    };
    let parts = run(&cases.iter().zip(&most).map(part).collect::<Vec<_>>()).unwrap();
    for (((w_claw, rtt, mss, busy), most), part) in cases.iter().zip(&most).zip(&parts) {
        let of_rate = u128::from(rate_bps / 8) * u128::from(*rtt) / 1_000_000_000;
        assert!(u128::from(*most) <= of_rate && *most <= window_bytes, "{rtt}: {most}");
        let all = part * mss * busy;
        assert!(all <= *most.min(w_claw) || *part == 2, "{w_claw} {rtt} {mss} {busy}: {all}");
    }
}

#[test]
fn a_window_that_is_not_delivered_is_withdrawn() {
    // A window of 100 packets, 20 delivered in a round trip of 100 ms with a minimum of 50
    // ms: 10 per minimum RTT. At ms 0, 100, 200, 300; that completes the third.
    let ack = |ms: u64, delivered: u64, in_flight: u64, rtt_ms: u64| {
        format!("ack {}000000 {delivered} {in_flight} 1 100 {rtt_ms}000000 50000000", 1_000 + ms)
    };
    let mut commands = vec!["new".to_owned()];
    let mut expected = vec![0];
    let mut add = |command: String, result: u64| {
        commands.push(command);
        expected.push(result);
    };
    // 20 in flight are under three quarters of the window: no information.
    (0..8).for_each(|n| add(ack(n * 100, n * 20, 20, 100), 0));
    // No queue.
    add("new".to_owned(), 0);
    (0..8).for_each(|n| add(ack(n * 100, n * 99, 99, 70), 0));
    // A queue, and more than half of the window delivered in a minimum RTT.
    add("new".to_owned(), 0);
    (0..8).for_each(|n| add(ack(n * 90, n * 99, 99, 100), 0));
    // All three: from the third round trip on trust is withdrawn for 3 s, then for 6.
    add("new".to_owned(), 0);
    (0..4).for_each(|n| add(ack(n * 300, n * 99, 99, 300), u64::from(n == 3)));
    add("believed 4899999999".to_owned(), 0);
    add("believed 4900000000".to_owned(), 1);
    (0..3).for_each(|n| add(ack(4_000 + n * 300, 396 + n * 99, 99, 300), u64::from(n == 2)));
    add("believed 11599999999".to_owned(), 0);
    add("believed 11600000000".to_owned(), 1);
    let Some(results) = run(&commands) else { return };
    for ((command, expected), result) in commands.iter().zip(expected).zip(results) {
        assert_eq!(result, expected, "{command}");
    }
}

#[test]
fn losses_withdraw_a_window() {
    check(&[
        ("new", 0),
        ("loss 20000000000", 1),
        ("loss 21000000000", 2),
        // More than 10 s later: counting starts again.
        ("loss 31000000001", 1),
        ("loss 32000000000", 2),
        ("believed 32000000000", 1),
        ("loss 33000000000", 0),
        ("believed 35999999999", 0),
        ("believed 36000000000", 1),
        // Simultaneous detection by several connections counts once; the next time is
        // doubled.
        ("loss 33000000001", 1),
        ("loss 37000000000", 2),
        ("loss 38000000000", 0),
        ("believed 43999999999", 0),
        ("believed 44000000000", 1),
    ]);
}

#[test]
fn a_loss_in_a_queue_withdraws_a_window_for_longer() {
    check(&[
        ("new", 0),
        ("loss 20000000000 1", 0),
        ("believed 49999999999", 0),
        ("believed 50000000000", 1),
        ("loss 50000000000 1", 0),
        ("believed 109999999999", 0),
        ("believed 110000000000", 1),
    ]);
}

/// Under a client's window of 100 packets, Cubic's window of 10 gets a tenth of the ACKs.
#[test]
fn cubic_grows_as_it_would_by_itself() {
    check(&[
        ("new", 0),
        ("own 95 10 100", 9),
        ("own 5 10 100", 1),
        ("own 4 10 100", 0),
        ("own 7 10 10", 7),
        ("own 7 20 10", 7),
        ("own 0 10 100", 0),
    ]);
}

#[test]
fn whose_losses_are() {
    // New losses of radio and queue, when the radio's grew, now, srtt, RTT, minimum RTT,
    // lost packets, window, the cap.
    check(&[
        ("radios 1 0 900 1000 100 60 50 3 1000 1000", 1),
        ("radios 0 0 900 1000 100 60 50 3 1000 1000", 0),
        // Counts that went back belong to another client.
        ("radios 4294967295 0 900 1000 100 60 50 3 1000 1000", 0),
        ("radios 1 1 900 1000 100 60 50 3 1000 1000", 0),
        ("radios 1 0 0 1000 100 60 50 3 1000 1000", 0),
        ("radios 1 0 799 1000 100 60 50 3 1000 1000", 0),
        ("radios 1 0 800 1000 100 60 50 3 1000 1000", 1),
        // A standing queue.
        ("radios 1 0 900 1000 100 76 50 3 1000 1000", 0),
        // A congestion mark instead of a loss.
        ("radios 1 0 900 1000 100 60 50 0 1000 1000", 0),
        ("radios 1 0 900 1000 100 60 50 3 1001 1000", 0),
    ]);
}
