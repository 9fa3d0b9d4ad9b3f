//! Runs our TCP over a link in virtual time, for `tests/kernel/compare.py`.
//!
//! Arguments: rate in kbit/s, one-way delay in ms, queue in packets, drop every n-th packet
//! (0: none), `cubic` or `reno`, seconds. Prints bytes read, segments retransmitted,
//! packets dropped.
#![allow(clippy::print_stdout)]

#[path = "../tests/it/support/mod.rs"]
mod support;

use airmile_control::ControllerKind;
use airmile_emulate::tcp::{ReceiveConfig, TcpConfig};
use support::{LinkConfig, Pair};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number =
        |i: usize| args.get(i).ok_or("too few arguments")?.parse().map_err(|_| "no number");
    let (rate_kbps, delay_ms, queue, nth, seconds): (u64, u64, u64, u64, u64) =
        (number(0)?, number(1)?, number(2)?, number(3)?, number(5)?);
    let control = match args.get(4).map(String::as_str) {
        Some("reno") => ControllerKind::NewReno,
        _ => ControllerKind::Cubic { hystart: false },
    };
    let link = LinkConfig::new(rate_kbps * 1000, i64::try_from(delay_ms)?, usize::try_from(queue)?);
    let down = LinkConfig { drop_every: (nth > 0).then_some(nth), ..link };
    let up = LinkConfig { rate_bps: None, queue_packets: 100_000, ..link };
    let receive = ReceiveConfig { buffer_bytes: 4 << 20, max_buffer_bytes: 0 };
    let config = TcpConfig { control, receive, ..TcpConfig::default() };
    let mut pair = Pair::new(config.clone(), config, down, up, 1);
    pair.to_write = u64::MAX / 2;
    pair.run(i64::try_from(seconds)? * 1_000_000_000);
    println!(
        "{} {} {}",
        pair.read_bytes,
        pair.server().stats().retransmissions(),
        pair.down.dropped
    );
    Ok(())
}
