//! Responses of the server: heads are parsed, contents are counted.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use crate::turn::ByteStream;

/// Bytes read at a time.
const CHUNK_BYTES: usize = 65_536;
/// Maximum length of a response head (chosen here).
const MAX_HEAD_BYTES: usize = 65_536;
/// Minimum rate in bytes per second over a response; below it the transfer has failed (chosen
/// here: a quarter of a tariff that is throttled to 32 kbit/s).
const LEAST_RATE: u64 = 1_000;

/// The fields of a response head, apart from its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProbeAnswer {
    pub(super) goes_on: bool,
    pub(super) restarts: Option<bool>,
}

/// Maximum duration of a response of so many bytes, given the maximum time without progress.
fn longest(timeout: Duration, bytes: u64) -> Duration {
    timeout.saturating_add(Duration::from_secs(bytes / LEAST_RATE))
}

/// Sends a request, and reads the response to its end; its content is counted. A server that
/// sends less than 1 kB/s after the timeout cannot hold the probe.
pub(super) fn receive(
    stream: &mut dyn ByteStream,
    request: &str,
    most: u64,
    timeout: Duration,
    bytes: &mut u64,
) -> std::io::Result<ProbeAnswer> {
    let begun = Instant::now();
    let in_time = || match begun.elapsed() <= longest(timeout, most) {
        true => Ok(()),
        false => Err(std::io::Error::other("the answer takes too long: under 1 kB/s")),
    };
    stream.write_all(request.as_bytes())?;
    stream.flush()?;
    let mut head = Vec::new();
    let mut buffer = vec![0; CHUNK_BYTES];
    let (length, answer) = loop {
        in_time()?;
        let n = read(stream, &mut buffer)?;
        head.extend_from_slice(buffer.get(..n).unwrap_or_default());
        if let Some((head_bytes, length, answer)) = read_head(&head)? {
            *bytes = (head.len() - head_bytes) as u64;
            if length > most {
                return Err(std::io::Error::other(format!(
                    "the answer has {length} bytes, and {most} were asked for by Range"
                )));
            }
            break (length, answer);
        }
        if head.len() > MAX_HEAD_BYTES {
            return Err(std::io::Error::other("the answer's head does not end"));
        }
    };
    while *bytes < length {
        in_time()?;
        *bytes += read(stream, &mut buffer)? as u64;
    }
    Ok(answer)
}

/// Reads at least one byte.
fn read(stream: &mut dyn ByteStream, buffer: &mut [u8]) -> std::io::Result<usize> {
    loop {
        match stream.read(buffer) {
            Ok(0) => return Err(std::io::Error::other("the server closed the connection")),
            Ok(n) => return Ok(n),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return Err(std::io::Error::other("no data within the timeout"));
            }
            Err(e) => return Err(e),
        }
    }
}

/// Length of a response head and of its content, and its fields; `None` if the head is incomplete.
fn read_head(head: &[u8]) -> std::io::Result<Option<(usize, u64, ProbeAnswer)>> {
    let wrong = |what: String| std::io::Error::other(what);
    let mut headers = [httparse::EMPTY_HEADER; 128];
    let mut response = httparse::Response::new(&mut headers);
    let head_bytes = match response.parse(head) {
        Ok(httparse::Status::Complete(bytes)) => bytes,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(e) => return Err(wrong(format!("the answer is no HTTP/1.1: {e}"))),
    };
    let of = |name: &str| {
        let found = response.headers.iter().find(|h| h.name.eq_ignore_ascii_case(name));
        found.and_then(|header| std::str::from_utf8(header.value).ok()).map(str::trim)
    };
    match response.code {
        Some(200 | 206) => {}
        code => return Err(wrong(format!("the server answered {}", code.unwrap_or_default()))),
    }
    let length = of("content-length").and_then(|text| text.parse().ok());
    let length = length.ok_or_else(|| wrong("the answer has no length".to_owned()))?;
    let goes_on = !of("connection").is_some_and(|text| text.eq_ignore_ascii_case("close"));
    let restarts = of("airmile-slow-start-after-idle").map(|text| text != "0");
    Ok(Some((head_bytes, length, ProbeAnswer { goes_on, restarts })))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends its bytes one at a time, the last of them again and again, with pauses.
    struct Dripping(Vec<u8>);

    impl std::io::Read for Dripping {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            if self.0.len() == 1 {
                std::thread::sleep(Duration::from_millis(5));
            }
            buffer[0] = self.0[0];
            if self.0.len() > 1 {
                self.0.remove(0);
            }
            Ok(1)
        }
    }

    impl std::io::Write for Dripping {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_server_that_drips_does_not_hold_the_probe() {
        for head in ["HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n", "HTTP/1.1 200 OK\r\nX: "] {
            let mut stream = Dripping([head.as_bytes(), b"a"].concat());
            let begun = Instant::now();
            let mut bytes = 0;
            let timeout = Duration::from_millis(100);
            let error = receive(&mut stream, "GET", 999, timeout, &mut bytes).unwrap_err();
            assert!(error.to_string().contains("too long"), "{error}");
            // At its rate it would take 5 s.
            assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
            assert!(bytes < 999, "{bytes}");
        }
        // A slow network is no such server: 32 kbit/s are allowed, and a fourth of it.
        assert_eq!(longest(Duration::from_secs(30), 400_000), Duration::from_secs(430));
    }

    #[test]
    fn heads_are_read() {
        let check = |head: &str, expected: Option<(u64, bool, Option<bool>)>| {
            let got = read_head(head.as_bytes()).unwrap();
            let got = got.map(|(_, length, a)| (length, a.goes_on, a.restarts));
            assert_eq!(got, expected, "{head}");
        };
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n";
        check(&format!("{head}\r\n"), Some((7, true, None)));
        check(&format!("{head}Connection: Close\r\n\r\n"), Some((7, false, None)));
        check(
            &format!("{head}Airmile-Slow-Start-After-Idle: 1\r\n\r\nabc"),
            Some((7, true, Some(true))),
        );
        check(head, None);
        let wrong = |head: &str, words: &str| {
            let error = read_head(head.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        };
        wrong("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "404");
        wrong("HTTP/1.1 200 OK\r\n\r\n", "no length");
        wrong("hello\r\n\r\n", "no HTTP");
    }
}
