//! Heads of HTTP/1.1 messages (RFC 9112), as far as the workloads need them.

use std::fmt::Write;

/// A client's request to the server, encoded in the request target.
///
/// ```
/// use airmile_emulate::workload::http::Request;
/// let request = Request { bytes: 1000, rate_bps: Some(500_000), ..Request::get("/clip") };
/// let head = request.head("server.test");
/// assert!(head.starts_with(b"GET /clip?bytes=1000&rate_bps=500000 HTTP/1.1\r\n"));
/// assert_eq!(Request::parse(&head), Some(request));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Request {
    /// Path before the question mark.
    pub path: String,
    /// Bytes of the response's body.
    pub bytes: u64,
    /// Bytes of the request's body; a POST if there are any.
    pub upload_bytes: u64,
    /// Maximum rate of the server's response.
    pub rate_bps: Option<u64>,
    /// The server sends in blocks of this many bytes.
    pub block_bytes: Option<u64>,
    /// Server think time before the response.
    pub think_ms: Option<u64>,
    /// The server alternates between sending and pausing for these times.
    pub on_off_ms: Option<(u64, u64)>,
}

impl Request {
    /// A GET for an empty body.
    #[must_use]
    pub fn get(path: &str) -> Self {
        Self { path: path.to_owned(), ..Self::default() }
    }

    /// The target, with the query.
    #[must_use]
    pub fn target(&self) -> String {
        let mut target = format!("{}?bytes={}", self.path, self.bytes);
        let fields = [
            ("rate_bps", self.rate_bps),
            ("block_bytes", self.block_bytes),
            ("think_ms", self.think_ms),
            ("on_ms", self.on_off_ms.map(|(on, _)| on)),
            ("off_ms", self.on_off_ms.map(|(_, off)| off)),
        ];
        for (name, value) in fields {
            if let Some(value) = value {
                // Writing to a string cannot fail.
                let _ = write!(target, "&{name}={value}");
            }
        }
        target
    }

    /// The request's head.
    #[must_use]
    pub fn head(&self, host: &str) -> Vec<u8> {
        let target = self.target();
        let head = if self.upload_bytes > 0 {
            format!(
                "POST {target} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: airmile\r\n\
                 Content-Type: application/octet-stream\r\nContent-Length: {}\r\n\r\n",
                self.upload_bytes
            )
        } else {
            format!(
                "GET {target} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: airmile\r\nAccept: */*\r\n\r\n"
            )
        };
        head.into_bytes()
    }

    /// Parses a request from its head; `None` if it is not one.
    #[must_use]
    pub fn parse(head: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(head).ok()?;
        let mut words = text.lines().next()?.split(' ');
        let (method, target) = (words.next()?, words.next()?);
        if !matches!(method, "GET" | "POST") || words.next() != Some("HTTP/1.1") {
            return None;
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let field = |name: &str| {
            let value = |pair: &str| pair.strip_prefix(name)?.strip_prefix('=')?.parse().ok();
            query.split('&').find_map(value)
        };
        Some(Self {
            path: path.to_owned(),
            bytes: field("bytes").unwrap_or(0),
            upload_bytes: content_length(text).unwrap_or(0),
            rate_bps: field("rate_bps"),
            block_bytes: field("block_bytes"),
            think_ms: field("think_ms"),
            on_off_ms: field("on_ms").zip(field("off_ms")),
        })
    }
}

/// A response's head.
#[must_use]
pub fn response_head(status: u16, bytes: u64) -> Vec<u8> {
    let reason = match status {
        200 => "OK",
        204 => "No Content",
        _ => "Bad Request",
    };
    format!(
        "HTTP/1.1 {status} {reason}\r\nServer: airmile\r\n\
         Content-Type: application/octet-stream\r\nContent-Length: {bytes}\r\n\r\n"
    )
    .into_bytes()
}

/// Length of the body announced by a response's head; `None` if it is not a response.
#[must_use]
pub fn response_bytes(head: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(head).ok()?;
    text.starts_with("HTTP/1.1 ").then(|| content_length(text).unwrap_or(0))
}

fn content_length(text: &str) -> Option<u64> {
    let value = |line: &str| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    };
    text.lines().find_map(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parse_gives_back_what_head_wrote(
            bytes: u64,
            upload_bytes: u64,
            rate_bps: Option<u64>,
            block_bytes: Option<u64>,
            think_ms: Option<u64>,
            on_off_ms: Option<(u64, u64)>,
        ) {
            let path = "/a/b.bin".to_owned();
            let request =
                Request { path, bytes, upload_bytes, rate_bps, block_bytes, think_ms, on_off_ms };
            prop_assert_eq!(Request::parse(&request.head("h")), Some(request));
        }

        #[test]
        fn any_bytes_are_taken_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = (Request::parse(&bytes), response_bytes(&bytes));
        }
    }

    #[test]
    fn responses() {
        assert_eq!(response_bytes(&response_head(200, 1234)), Some(1234));
        assert_eq!(response_bytes(b"GET / HTTP/1.1\r\n\r\n"), None);
    }
}
