//! The status of a running instance, as lines.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use airmile_host::format::{mbps, size};

use crate::status::GateStatus;

/// Polling interval.
pub const EVERY: Duration = Duration::from_millis(500);
/// Timeout: a running instance answers at once.
const ANSWERS_WITHIN: Duration = Duration::from_secs(2);
/// Maximum size of an answer (chosen here: some hundred times the usual).
const MOST_BYTES: u64 = 1 << 20;

/// Requests the status of an instance.
///
/// # Errors
/// The instance cannot be reached, requires a token, or is another server.
pub fn ask(address: SocketAddr, token: Option<&str>) -> io::Result<GateStatus> {
    let mut stream = TcpStream::connect_timeout(&address, ANSWERS_WITHIN)?;
    stream.set_read_timeout(Some(ANSWERS_WITHIN))?;
    stream.set_write_timeout(Some(ANSWERS_WITHIN))?;
    let mut request =
        format!("GET /v1/status HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
    if let Some(token) = token {
        request += &format!("Authorization: Bearer {token}\r\n");
    }
    stream.write_all((request + "\r\n").as_bytes())?;
    let mut answer = Vec::new();
    stream.take(MOST_BYTES).read_to_end(&mut answer)?;
    read_answer(&String::from_utf8_lossy(&answer))
}

fn read_answer(answer: &str) -> io::Result<GateStatus> {
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .ok_or_else(|| io::Error::other("not an answer of `airmile qcut run`"))?;
    match head.split_whitespace().nth(1) {
        Some("200") => serde_json::from_str(body).map_err(io::Error::other),
        Some("401") => Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "it requires its token: --token-file, or AIRMILE_TOKEN",
        )),
        _ => Err(io::Error::other(head.lines().next().unwrap_or_default().to_owned())),
    }
}

/// A status as one line.
#[must_use]
pub fn line(now: &GateStatus) -> String {
    let ms = |ms: Option<f64>| ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.0} ms"));
    let held: Vec<String> = now
        .classes
        .iter()
        .map(|class| {
            let dropped = class.dropped_aqm + class.dropped_full;
            format!("{} {}/{dropped}", class.class, class.held_packets)
        })
        .collect();
    let warnings: String = now.warnings.iter().map(|warning| format!("; {warning}")).collect();
    format!(
        "{}: modem {} of {}, {}, RTT_F {} (least {}), held/dropped: {}{warnings}",
        now.interface,
        size(now.occupancy_bytes),
        size(now.limit_bytes),
        mbps(now.rate_bps as f64),
        ms(now.rtt_f_ms),
        ms(now.least_rtt_f_ms),
        held.join(", "),
    )
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::status::ClassStatus;

    pub(crate) fn status() -> GateStatus {
        let class = |class: &str, held_packets| ClassStatus {
            class: class.to_owned(),
            held_packets,
            dropped_aqm: 2,
            ..ClassStatus::default()
        };
        GateStatus {
            interface: "wwan0".to_owned(),
            occupancy_bytes: 12_000,
            limit_bytes: 30_000,
            rate_bps: 6_000_000,
            rtt_f_ms: Some(58.4),
            classes: vec![class("urgent", 0), class("normal", 31)],
            warnings: vec!["nobody answers".to_owned()],
            ..GateStatus::default()
        }
    }

    #[test]
    fn answers_are_read() {
        let body = serde_json::to_string(&status()).unwrap();
        let read = |head: &str| read_answer(&format!("{head}\r\nx: y\r\n\r\n{body}"));
        assert_eq!(read("HTTP/1.1 200 OK").unwrap(), status());
        let denied = read("HTTP/1.1 401 Unauthorized").unwrap_err();
        assert_eq!(denied.kind(), io::ErrorKind::PermissionDenied);
        assert!(read("HTTP/1.1 404 Not Found").is_err());
        assert!(read_answer("").is_err());
    }

    #[test]
    fn a_line() {
        let expected = "wwan0: modem 12 kB of 30 kB, 6.0 Mbit/s, RTT_F 58 ms (least -), \
                        held/dropped: urgent 0/2, normal 31/2; nobody answers";
        assert_eq!(line(&status()), expected);
    }
}
