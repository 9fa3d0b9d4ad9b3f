//! Requests for segments, and their answers.

use std::io::{BufWriter, Read, Write};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::{ServeLimits, ServerShared};
use crate::content::Content;

/// Maximum length of a request head (chosen here: browsers send 1 kB).
const MAX_HEAD_BYTES: usize = 8_192;
/// Content is written in pieces of this size (chosen here: a TLS record).
const PIECE_BYTES: usize = 16_384;

/// Answers a connection's requests in sequence.
pub(super) fn answer_all(
    mut stream: impl Read + Write,
    shared: &ServerShared,
) -> std::io::Result<()> {
    let mut head = Vec::new();
    for n in 1..=shared.limits.requests {
        let most = shared.limits.request;
        let Some((asked, used)) = read_request(&mut stream, &mut head, most)? else {
            return Ok(());
        };
        head.drain(..used);
        let last = n == shared.limits.requests || shared.stop.load(Ordering::Relaxed);
        if !answer(&mut stream, asked, last, shared)? {
            return Ok(());
        }
    }
    Ok(())
}

/// The requested content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Segment { bytes: u64, number: u64 },
    Other(u16),
}

/// Reads a request's head; `None` if the client has ended, or takes longer than `most`
/// from its first byte on.
fn read_request(
    stream: &mut impl Read,
    head: &mut Vec<u8>,
    most: Duration,
) -> std::io::Result<Option<(Asked, usize)>> {
    let mut buffer = [0; 2_048];
    let mut begun = None;
    loop {
        if !head.is_empty() && begun.get_or_insert_with(Instant::now).elapsed() > most {
            return Ok(None);
        }
        if let Some(found) = parse(head) {
            return Ok(Some(found));
        }
        if head.len() > MAX_HEAD_BYTES {
            return Ok(Some((Asked::Other(431), head.len())));
        }
        match stream.read(&mut buffer)? {
            0 => return Ok(None),
            n => head.extend_from_slice(buffer.get(..n).unwrap_or_default()),
        }
    }
}

/// A request's meaning and its length; `None` if it is incomplete.
fn parse(head: &[u8]) -> Option<(Asked, usize)> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut request = httparse::Request::new(&mut headers);
    let length = match request.parse(head) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return None,
        Err(_) => return Some((Asked::Other(400), head.len())),
    };
    let asked = match (request.method, request.path) {
        (Some("GET"), Some(path)) => segment(path),
        _ => Asked::Other(405),
    };
    Some((asked, length))
}

/// `/segment?bytes=N&n=NUMBER`.
fn segment(path: &str) -> Asked {
    let Some(query) = path.strip_prefix("/segment?") else { return Asked::Other(404) };
    let of = |name: &str| {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| *key == name).and_then(|(_, value)| value.parse().ok())
    };
    match of("bytes") {
        Some(bytes) => Asked::Segment { bytes, number: of("n").unwrap_or(0) },
        None => Asked::Other(400),
    }
}

/// Answers a request; returns whether the connection continues.
fn answer(
    stream: &mut impl Write,
    asked: Asked,
    last: bool,
    shared: &ServerShared,
) -> std::io::Result<bool> {
    let limits = &shared.limits;
    let status = match asked {
        Asked::Segment { bytes, .. } if bytes > limits.segment_bytes => 413,
        Asked::Segment { bytes, .. } => {
            // The unused part is returned below.
            let served = shared.served_bytes.fetch_add(bytes, Ordering::Relaxed);
            let room = served.saturating_add(bytes) <= limits.total_bytes;
            if !room {
                shared.served_bytes.fetch_sub(bytes, Ordering::Relaxed);
            }
            if room { 200 } else { 503 }
        }
        Asked::Other(status) => status,
    };
    let (Asked::Segment { bytes, number }, 200) = (asked, status) else {
        let reason = match status {
            400 => "Bad Request",
            404 => "Not Found",
            405 => "Method Not Allowed",
            413 => "Content Too Large",
            431 => "Request Header Fields Too Large",
            _ => "Service Unavailable",
        };
        let head = format!("HTTP/1.1 {status} {reason}\r\nContent-Length: 0\r\n");
        stream.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes())?;
        stream.flush()?;
        return Ok(false);
    };
    let restarts = match shared.restarts {
        Some(restarts) => format!("Airmile-Slow-Start-After-Idle: {}\r\n", u8::from(restarts)),
        None => String::new(),
    };
    let connection = if last { "close" } else { "keep-alive" };
    let mut out = BufWriter::with_capacity(PIECE_BYTES, stream);
    write!(
        out,
        "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: {bytes}\r\n\
         Cache-Control: no-store, no-transform\r\n{restarts}Connection: {connection}\r\n\r\n"
    )?;
    let mut left = bytes;
    let written = write_content(&mut out, number, bytes, limits, &mut left);
    shared.served_bytes.fetch_sub(left, Ordering::Relaxed);
    written.map(|()| !last)
}

/// Writes a segment; `left` is the unwritten part.
fn write_content(
    out: &mut impl Write,
    number: u64,
    bytes: u64,
    limits: &ServeLimits,
    left: &mut u64,
) -> std::io::Result<()> {
    let most = limits.idle + Duration::from_secs(bytes / limits.least_rate.max(1));
    let begun = Instant::now();
    let mut content = Content::new(number, bytes);
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match content.fill(&mut piece) {
            0 => return out.flush(),
            _ if begun.elapsed() > most => return Err(std::io::ErrorKind::TimedOut.into()),
            n => {
                out.write_all(piece.get(..n).unwrap_or_default())?;
                *left = left.saturating_sub(n as u64);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU64};

    use super::super::places::ClientPlaces;
    use super::*;

    #[test]
    fn requests_are_read() {
        let check = |head: &str, expected: Option<(Asked, usize)>| {
            assert_eq!(parse(head.as_bytes()), expected, "{head}");
        };
        let get = "GET /segment?bytes=400000&n=7 HTTP/1.1\r\nHost: a\r\n\r\n";
        check(get, Some((Asked::Segment { bytes: 400_000, number: 7 }, get.len())));
        // With two requests, the first.
        check(&get.repeat(2), Some((Asked::Segment { bytes: 400_000, number: 7 }, get.len())));
        check(&get[..20], None);
        let check = |head: &str, status: u16| {
            assert_eq!(parse(head.as_bytes()).map(|(asked, _)| asked), Some(Asked::Other(status)));
        };
        check("GET / HTTP/1.1\r\n\r\n", 404);
        check("GET /segment?n=1 HTTP/1.1\r\n\r\n", 400);
        check("GET /segment?bytes=-1 HTTP/1.1\r\n\r\n", 400);
        check("POST /segment?bytes=1 HTTP/1.1\r\n\r\n", 405);
        check("\x16\x03\x01\x02 hello\r\n\r\n", 400);
    }

    #[test]
    fn limits_hold() {
        let shared = |total_bytes| ServerShared {
            limits: ServeLimits { segment_bytes: 1_000, total_bytes, ..ServeLimits::default() },
            stop: AtomicBool::new(false),
            places: ClientPlaces::new(ServeLimits::default(), 1),
            served_bytes: AtomicU64::new(0),
            restarts: None,
        };
        let ask = |bytes, shared: &ServerShared| {
            let mut out = Vec::new();
            let goes_on =
                answer(&mut out, Asked::Segment { bytes, number: 0 }, false, shared).unwrap();
            (String::from_utf8_lossy(&out[9..12]).into_owned(), goes_on)
        };
        let free = shared(1_000_000);
        assert_eq!(ask(1_000, &free), ("200".to_owned(), true));
        assert_eq!(ask(1_001, &free), ("413".to_owned(), false));
        assert_eq!(ask(u64::MAX, &free), ("413".to_owned(), false));
        let tight = shared(1_500);
        assert_eq!(ask(1_000, &tight), ("200".to_owned(), true));
        assert_eq!(ask(1_000, &tight), ("503".to_owned(), false));
        // Refused bytes do not count.
        assert_eq!(ask(500, &tight), ("200".to_owned(), true));
    }

    /// A client that sends a byte at a time, and reads none.
    struct Drip;

    impl Read for Drip {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            std::thread::sleep(Duration::from_millis(1));
            buffer[0] = b'G';
            Ok(1)
        }
    }

    #[test]
    fn who_drips_a_request_or_takes_nothing_is_sent_away() {
        let mut head = Vec::new();
        let read = read_request(&mut Drip, &mut head, Duration::from_millis(5));
        assert_eq!(read.unwrap(), None);
        let limits =
            ServeLimits { idle: Duration::ZERO, least_rate: u64::MAX, ..ServeLimits::default() };
        let mut left = 50_000;
        let written = write_content(&mut Vec::new(), 0, 50_000, &limits, &mut left);
        assert_eq!(written.unwrap_err().kind(), std::io::ErrorKind::TimedOut);
        assert_eq!(left, 50_000);
    }
}
