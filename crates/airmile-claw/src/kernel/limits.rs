//! What a client can make the kernel's part do: bpf/limits.h, the very file, compiled for
//! user space.

#![allow(clippy::print_stdout, reason = "a test may")]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use super::super::OperatorLimits;

/// Runs commands of limits_main.c; a result each. `None`: there is no compiler.
fn run(commands: &[String]) -> Option<Vec<u64>> {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("limits");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("bpf/limits_main.c");
    let compile = |compiler: &str| {
        let words = ["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-o"];
        Command::new(compiler).args(words).arg(&program).arg(&source).status()
    };
    let Some(status) = ["clang", "cc"].iter().find_map(|name| compile(name).ok()) else {
        #[allow(clippy::print_stderr, reason = "a skipped test says so")]
        {
            eprintln!("SKIPPED: the limits of the kernel's part need a C compiler");
        }
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
        // No round trip yet: a tenth of a second. A round trip that cannot be.
        ("most 4000000 12500000 0", 1_250_000),
        ("most 18446744073709551615 125000000000 18446744073709551615", 7_500_000_000_000),
        // 1 MB of a window of 4 GB, in packets of 1000 bytes, to one, to four, to too many.
        ("part 4294967295 1000000 1000 1", 1_000),
        ("part 4294967295 1000000 1000 4", 250),
        ("part 4294967295 1000000 1000 1000", 2),
        // A count that went wrong gives no more than one connection has.
        ("part 4294967295 1000000 1000 0", 1_000),
        ("part 4294967295 1000000 1000 4294967295", 1_000),
        ("part 5000 1000000 1000 1", 5),
        ("part 0 1000000 1000 1", 2),
        ("part 5000 1000000 0 1", 2),
    ]);
}

/// Whatever is said, at whatever round trip, of however many connections: their windows are
/// the operator's together, or Cubic's least.
#[test]
fn no_value_passes_the_cap() {
    let OperatorLimits { window_bytes, rate_bps } =
        OperatorLimits { window_bytes: 900_000, rate_bps: 20_000_000 };
    let mut random = 88_172_645_463_325_252_u64;
    let mut next = || {
        // Marsaglia's xorshift64: any numbers do.
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
    let part = |((said, _, mss, busy), most): (&(u64, u64, u64, u64), &u64)| {
        format!("part {said} {most} {mss} {busy}")
    };
    let parts = run(&cases.iter().zip(&most).map(part).collect::<Vec<_>>()).unwrap();
    for (((said, rtt, mss, busy), most), part) in cases.iter().zip(&most).zip(&parts) {
        let of_rate = u128::from(rate_bps / 8) * u128::from(*rtt) / 1_000_000_000;
        assert!(u128::from(*most) <= of_rate && *most <= window_bytes, "{rtt}: {most}");
        let all = part * mss * busy;
        assert!(all <= *most.min(said) || *part == 2, "{said} {rtt} {mss} {busy}: {all}");
    }
}

#[test]
fn a_window_that_is_not_delivered_is_withdrawn() {
    // 100 packets of window, 20 delivered in a round trip of 100 ms, of which the least is
    // 50 ms: 10 a least round trip. At ms 0, 100, 200, 300; then it is the third.
    let ack = |ms: u64, delivered: u64, in_flight: u64, rtt_ms: u64| {
        format!("ack {}000000 {delivered} {in_flight} 1 100 {rtt_ms}000000 50000000", 1_000 + ms)
    };
    let mut commands = vec!["new".to_owned()];
    let mut expected = vec![0];
    let mut add = |command: String, result: u64| {
        commands.push(command);
        expected.push(result);
    };
    // 20 in flight are under three quarters of the window: that tells nothing.
    (0..8).for_each(|n| add(ack(n * 100, n * 20, 20, 100), 0));
    // No queue.
    add("new".to_owned(), 0);
    (0..8).for_each(|n| add(ack(n * 100, n * 99, 99, 70), 0));
    // A queue, and more than half of it delivered in a least round trip.
    add("new".to_owned(), 0);
    (0..8).for_each(|n| add(ack(n * 90, n * 99, 99, 100), 0));
    // All three: from the third round trip on it is not believed for 3 s, then 6.
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
        // More than 10 s later: the first again.
        ("loss 31000000001", 1),
        ("loss 32000000000", 2),
        ("believed 32000000000", 1),
        ("loss 33000000000", 0),
        ("believed 35999999999", 0),
        ("believed 36000000000", 1),
        // Connections that find out together count once, and the next time is twice as long.
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

/// Under a client's window of 100 packets Cubic's of 10 has a tenth of the ACKs.
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
    // Radio's and queue's count since, when it grew, now, srtt, RTT, least RTT, lost packets,
    // window, the cap.
    check(&[
        ("radios 1 0 900 1000 100 60 50 3 1000 1000", 1),
        ("radios 0 0 900 1000 100 60 50 3 1000 1000", 0),
        // Counts that went back are of another client.
        ("radios 4294967295 0 900 1000 100 60 50 3 1000 1000", 0),
        ("radios 1 1 900 1000 100 60 50 3 1000 1000", 0),
        ("radios 1 0 0 1000 100 60 50 3 1000 1000", 0),
        ("radios 1 0 799 1000 100 60 50 3 1000 1000", 0),
        ("radios 1 0 800 1000 100 60 50 3 1000 1000", 1),
        // A queue stands.
        ("radios 1 0 900 1000 100 76 50 3 1000 1000", 0),
        // A mark of congestion, and not a loss.
        ("radios 1 0 900 1000 100 60 50 0 1000 1000", 0),
        ("radios 1 0 900 1000 100 60 50 3 1001 1000", 0),
    ]);
}
