//! The client: fetches segments over several ports in alternation.

use std::io::ErrorKind;
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

use airmile::{ProbeLog, ProbeTransfer};
use airmile_host::clock::SteadyWallClock;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::answer::{ProbeAnswer, receive};
use crate::connection::{ArrivalLog, connect};
use crate::turn::{ByteStream, Probe, Turn};
use crate::{Error, Result};

/// Fetches all segments; calls `report` after each transfer. Failures are logged, and the
/// connection is reopened at the next turn.
///
/// # Errors
/// The name has no address, or no segment arrived.
pub fn run(probe: &Probe, report: &mut dyn FnMut(&ProbeTransfer, u16)) -> Result<ProbeLog> {
    let host = &probe.target.host;
    let failed = |source| Error::Name { host: host.clone(), source };
    let address = (host.as_str(), 0).to_socket_addrs().map_err(failed)?.next();
    let none = || failed(std::io::Error::new(ErrorKind::NotFound, "has no address"));
    let ip = address.ok_or_else(none)?.ip();
    let mut log = ProbeLog {
        document: "probe".to_owned(),
        version: ProbeLog::VERSION,
        host: host.clone(),
        segment_bytes: probe.segment_bytes,
        segments: probe.segments,
        pause_ms: u64::try_from(probe.pause.as_millis()).unwrap_or(u64::MAX),
        rounds: probe.rounds,
        seed: probe.seed,
        ..ProbeLog::default()
    };
    let clock = SteadyWallClock::start();
    let mut random = ChaCha8Rng::seed_from_u64(probe.seed);
    let mut counts = vec![0_u32; probe.ports.len()];
    for round in 0..probe.rounds {
        let mut open: Vec<Option<OpenConnection>> = probe.ports.iter().map(|_| None).collect();
        for segment in 0..probe.segments {
            let mut order: Vec<usize> = (0..probe.ports.len()).collect();
            for last in (1..order.len()).rev() {
                order.swap(last, random.random_range(0..=last));
            }
            for at in order {
                let (Some(port), Some(slot), Some(count)) =
                    (probe.ports.get(at).copied(), open.get_mut(at), counts.get_mut(at))
                else {
                    continue;
                };
                *count += 1;
                let turn = Turn {
                    id: format!("port-{port}-{count}"),
                    number: u64::from(round) * u64::from(probe.segments) + u64::from(segment),
                    round,
                    address: SocketAddr::new(ip, port),
                };
                let first = slot.is_none();
                take(probe, &turn, &clock, slot, &mut log);
                if let Some(transfer) = log.transfers.last() {
                    report(transfer, port);
                }
                let is_last = round + 1 == probe.rounds && segment + 1 == probe.segments;
                if !(is_last || first && probe.segments == 1) {
                    // Ports divide each pause among them, so that they alternate.
                    let ports = u32::try_from(probe.ports.len()).unwrap_or(1).max(1);
                    std::thread::sleep(probe.pause / ports);
                }
            }
        }
    }
    match log.transfers.iter().find(|transfer| transfer.failed.is_none()) {
        Some(_) => Ok(log),
        None => {
            let why = log.transfers.iter().find_map(|transfer| transfer.failed.clone());
            Err(Error::Nothing(why.unwrap_or_else(|| "no segment was requested".to_owned())))
        }
    }
}

/// An open connection.
struct OpenConnection {
    stream: Box<dyn ByteStream>,
    arrivals: ArrivalLog,
    /// Its index in the log.
    at: usize,
    /// When the last byte of the previous segment arrived.
    last_us: Option<i64>,
}

/// Takes a turn, and logs it.
fn take(
    probe: &Probe,
    turn: &Turn,
    clock: &SteadyWallClock,
    slot: &mut Option<OpenConnection>,
    log: &mut ProbeLog,
) {
    if slot.is_none() {
        let noted = connect(probe, turn, clock);
        log.connections.push(noted.0);
        let at = log.connections.len() - 1;
        match noted.1 {
            Ok((stream, arrivals)) => {
                *slot = Some(OpenConnection { stream, arrivals, at, last_us: None })
            }
            Err(why) => {
                log.transfers.push(lost(turn, clock, at, why.to_string()));
                return;
            }
        }
    }
    let Some(connection) = slot else { return };
    if let Some(last_us) = connection.last_us {
        // The pause is kept for any order of ports.
        let waited = clock.now_us().saturating_sub(last_us);
        let pause_us = i64::try_from(probe.pause.as_micros()).unwrap_or(i64::MAX);
        if let Ok(left) = u64::try_from(pause_us.saturating_sub(waited)) {
            std::thread::sleep(Duration::from_micros(left));
        }
    }
    let mut transfer = lost(turn, clock, connection.at, String::new());
    transfer.pause_us = connection.last_us.map(|last_us| transfer.start_us - last_us);
    let fetched = fetch(probe, turn, clock, connection, &mut transfer);
    transfer.end_us = clock.now_us();
    connection.last_us = Some(transfer.end_us);
    match fetched {
        Ok(ProbeAnswer { goes_on, restarts }) => {
            transfer.failed = None;
            log.server_restarts_after_idle = restarts.or(log.server_restarts_after_idle);
            if !goes_on {
                *slot = None;
            }
        }
        Err(why) => {
            transfer.failed = Some(why.to_string());
            *slot = None;
        }
    }
    log.transfers.push(transfer);
}

/// A transfer without data.
fn lost(turn: &Turn, clock: &SteadyWallClock, connection: usize, why: String) -> ProbeTransfer {
    let now_us = clock.now_us();
    ProbeTransfer {
        id: turn.id.clone(),
        connection,
        turn: u32::try_from(turn.number).unwrap_or(u32::MAX),
        start_us: now_us,
        first_byte_us: None,
        end_us: now_us,
        bytes: 0,
        pause_us: None,
        failed: Some(why),
        arrivals: Vec::new(),
    }
}

fn fetch(
    probe: &Probe,
    turn: &Turn,
    clock: &SteadyWallClock,
    connection: &mut OpenConnection,
    transfer: &mut ProbeTransfer,
) -> std::io::Result<ProbeAnswer> {
    let path = probe.target.path_of(turn.number, probe.segment_bytes);
    // For third-party content, the first part.
    let range = match &probe.target.path {
        Some(_) => format!("Range: bytes=0-{}\r\n", probe.segment_bytes.saturating_sub(1)),
        None => String::new(),
    };
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {}:{}\r\nUser-Agent: airmile-probe/{}\r\nAccept: */*\r\n\
         Accept-Encoding: identity\r\n{range}\r\n",
        probe.target.authority(),
        turn.address.port(),
        env!("CARGO_PKG_VERSION")
    );
    // Arrivals of the handshake, and since.
    connection.arrivals.take();
    transfer.start_us = clock.now_us();
    let most = probe.segment_bytes;
    let (stream, timeout) = (connection.stream.as_mut(), probe.timeout);
    let answer = receive(stream, &request, most, timeout, &mut transfer.bytes);
    let came = connection.arrivals.take();
    transfer.first_byte_us = came.first().map(|(at_us, _)| *at_us);
    transfer.arrivals = came.iter().map(|(at_us, n)| (at_us - transfer.start_us, *n)).collect();
    answer
}
