//! Makes HARs that can be shared. The copy is built from known fields: numbers and times stay, texts
//! stay if they are of a closed list, names become pseudonyms, and all else is left out: headers,
//! cookies, queries, contents, comments.

use std::net::IpAddr;

use airmile_model::{Problem, Severity};
use airmile_pseudonym::{Changes, Pseudonyms};
use serde_json::{Map, Value, json};

use super::fields::ns_of_rfc3339;
use super::har::{WANTED, kind_of_name};
use super::scan::{JsonPart, Scanner};

/// Numbers of entries and pages that stay.
const NUMBERS: &[&str] = &[
    "time",
    "request.headersSize",
    "request.bodySize",
    "response.status",
    "response.headersSize",
    "response.bodySize",
    "response._transferSize",
    "response.content.size",
    "response.content.compression",
    "timings.blocked",
    "timings.dns",
    "timings.connect",
    "timings.ssl",
    "timings.send",
    "timings.wait",
    "timings.receive",
    "pageTimings.onContentLoad",
    "pageTimings.onLoad",
    "pageTimings._firstPaint",
    "pageTimings._firstContentfulPaint",
    "_firstPaint",
    "_firstContentfulPaint",
    "_render",
];

const VERSIONS: &[&str] =
    &["http/1.0", "http/1.1", "h2", "http/2", "http/2.0", "h3", "http/3", "http/3.0"];

/// Texts that stay if they are among these, in any case.
const TEXTS: &[(&str, &[&str])] = &[
    ("request.method", &["get", "head", "post", "put", "delete", "options", "patch", "connect"]),
    ("request.httpVersion", VERSIONS),
    ("response.httpVersion", VERSIONS),
    ("_fromCache", &["disk", "memory"]),
    ("_initiator.type", &["parser", "script", "preload", "redirect", "preflight", "other"]),
    (
        "_resourceType",
        &[
            "document",
            "script",
            "stylesheet",
            "font",
            "image",
            "media",
            "xhr",
            "fetch",
            "websocket",
            "other",
        ],
    ),
];

/// Content types that stay (IANA, media types); of others, the part before the slash.
const MEDIA_TYPES: &[&str] = &[
    "application/dash+xml",
    "application/vnd.apple.mpegurl",
    "application/x-mpegurl",
    "application/javascript",
    "application/xhtml+xml",
    "application/json",
    "text/html",
    "text/css",
    "text/javascript",
];

/// Scrubs a HAR.
///
/// Call order: [`push`](Self::push) its bytes, then [`finish`](Self::finish).
#[derive(Debug)]
pub struct HarScrubber {
    scanner: Scanner,
    copy: HarCopy,
    bytes: u64,
}

/// The copy so far.
#[derive(Debug)]
struct HarCopy {
    names: Pseudonyms,
    changes: Changes,
    entries: u64,
    pages: Vec<Value>,
}

impl HarScrubber {
    /// At the start of a HAR.
    #[must_use]
    pub fn new(names: Pseudonyms) -> Self {
        let (changes, pages) = (Changes::default(), Vec::new());
        let copy = HarCopy { names, changes, entries: 0, pages };
        Self { scanner: Scanner::new(WANTED), copy, bytes: 0 }
    }

    /// Takes the next bytes; appends scrubbed ones to `out`.
    pub fn push(&mut self, piece: &[u8], out: &mut Vec<u8>, problem: &mut dyn FnMut(Problem)) {
        let Self { scanner, copy, bytes } = self;
        scanner.push(piece, &mut |part| copy.take(part, out, problem));
        *bytes += piece.len() as u64;
    }

    /// Ends the HAR.
    pub fn finish(&mut self, out: &mut Vec<u8>, problem: &mut dyn FnMut(Problem)) {
        let scanner = std::mem::replace(&mut self.scanner, Scanner::new(WANTED));
        let copy = &mut self.copy;
        if let Some(path) = scanner.finish(&mut |part| copy.take(part, out, problem)) {
            let what = format!("the file ends inside {path}; what comes before was copied");
            problem(Problem { offset: self.bytes, severity: Severity::Damage, what });
        }
        // Without entries nothing has been written.
        if copy.entries == 0 {
            copy.begin(out);
        }
        let pages = Value::from(std::mem::take(&mut copy.pages));
        out.extend_from_slice(format!("\n],\n\"pages\":{pages}}}}}\n").as_bytes());
    }

    /// What was changed so far.
    #[must_use]
    pub const fn changes(&self) -> &Changes {
        &self.copy.changes
    }

    /// The pseudonyms, for the next file.
    #[must_use]
    pub fn into_pseudonyms(self) -> Pseudonyms {
        self.copy.names
    }
}

impl HarCopy {
    fn begin(&self, out: &mut Vec<u8>) {
        let creator = json!({"name": "airmile scrub", "version": ""});
        let head = format!("{{\"log\":{{\"version\":\"1.2\",\"creator\":{creator},\"entries\":[\n");
        out.extend_from_slice(head.as_bytes());
    }

    fn take(&mut self, part: JsonPart<'_>, out: &mut Vec<u8>, problem: &mut dyn FnMut(Problem)) {
        let (path, offset, bytes) = match part {
            JsonPart::Value { path, offset, bytes } => (path, offset, bytes),
            JsonPart::End { .. } => return,
            JsonPart::Problem(found) => return problem(found),
        };
        if !WANTED.contains(&path) {
            return self.changes.add("fields_left_out", 1);
        }
        let value = match serde_json::from_slice::<Value>(bytes) {
            Ok(value) if value.is_object() => value,
            _ => {
                let what = format!("{path}: no object; it is left out");
                return problem(Problem { offset, severity: Severity::Damage, what });
            }
        };
        if path == "log.pages[]" {
            let page = self.page(&value);
            return self.pages.push(page);
        }
        let entry = self.entry(&value);
        if self.entries == 0 {
            self.begin(out);
        } else {
            out.extend_from_slice(b",\n");
        }
        self.entries += 1;
        self.changes.add("requests", 1);
        out.extend_from_slice(entry.to_string().as_bytes());
    }

    fn page(&mut self, value: &Value) -> Value {
        let mut out = known(value);
        if let Some(id) = name_of(value.get("id")) {
            out.insert("id".into(), self.name("page", &id).into());
        }
        out.insert("title".into(), "".into());
        out.into()
    }

    fn entry(&mut self, value: &Value) -> Value {
        let mut out = known(value);
        if let Some(id) = name_of(value.get("pageref")) {
            out.insert("pageref".into(), self.name("page", &id).into());
        }
        for path in ["request.url", "_initiator.url"] {
            if let Some(url) = at(value, path).and_then(Value::as_str) {
                let url = self.url(url);
                set(&mut out, path, url.into());
            }
        }
        if let Some(mime) = at(value, "response.content.mimeType").and_then(Value::as_str)
            && let Some(mime) = media_type(mime)
        {
            set(&mut out, "response.content.mimeType", mime.into());
        }
        // A port or a count.
        for name in ["connection", "_connectionId"] {
            let id = name_of(value.get(name))
                .filter(|id| id.len() <= 10 && id.bytes().all(|byte| byte.is_ascii_digit()));
            id.map(|id| out.insert(name.into(), id.into()));
        }
        let address = value.get("serverIPAddress").and_then(Value::as_str);
        let address = address.map(|text| text.trim_matches(['[', ']']));
        if let Some(address) = address.and_then(|text| text.parse().ok()) {
            out.insert("serverIPAddress".into(), self.address(address).to_string().into());
        }
        if let Some(error) = at(value, "response._error").filter(|error| !error.is_null()) {
            let own = error.as_str().filter(|text| {
                let is_known =
                    |byte: u8| byte.is_ascii_uppercase() || b"_0123456789".contains(&byte);
                text.strip_prefix("net::").is_some_and(|name| name.bytes().all(is_known))
            });
            set(&mut out, "response._error", own.unwrap_or("an error").into());
        }
        for path in ["cache.beforeRequest", "cache.afterRequest"] {
            let is_there = |value: &Value| value.as_object().is_some_and(|of| !of.is_empty());
            if at(value, path).is_some_and(is_there) {
                set(&mut out, path, json!({"eTag": ""}));
            }
        }
        out.into()
    }

    /// A URL with its scheme, port and known ending; the rest is a pseudonym.
    fn url(&mut self, url: &str) -> String {
        self.changes.add("urls", 1);
        let Some((scheme, rest)) = url.split_once("://") else {
            // Such as `data:`, which holds contents.
            let scheme = url.split(':').next().unwrap_or_default();
            let is_local = ["data", "blob", "about"].contains(&scheme);
            return format!("{}:", if is_local { scheme } else { "other" });
        };
        let scheme = ["http", "https", "ws", "wss"].into_iter().find(|known| *known == scheme);
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let authority = authority.rsplit('@').next().unwrap_or_default();
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if port.parse::<u16>().is_ok() => (host, format!(":{port}")),
            _ => (authority, String::new()),
        };
        let host = match host.trim_matches(['[', ']']).parse() {
            Ok(IpAddr::V6(address)) => format!("[{}]", self.address(address.into())),
            Ok(address) => self.address(address).to_string(),
            Err(_) => format!("{}.invalid", self.name("host", &host.to_ascii_lowercase())),
        };
        let path = match path {
            "" | "/" => path.to_owned(),
            _ => {
                let ending = kind_of_name(url).and_then(|_| {
                    let name = path.split(['?', '#']).next().unwrap_or_default();
                    Some(format!(".{}", name.rsplit_once('.')?.1))
                });
                format!("/{}{}", self.name("path", path), ending.unwrap_or_default())
            }
        };
        format!("{}://{host}{port}{path}", scheme.unwrap_or("other"))
    }

    fn address(&mut self, address: IpAddr) -> IpAddr {
        self.changes.add("ip_addresses", 1);
        match address {
            IpAddr::V4(own) => self.names.v4(own.octets()).into(),
            IpAddr::V6(own) => self.names.v6(own.octets()).into(),
        }
    }

    fn name(&self, kind: &str, text: &str) -> String {
        format!("{kind}-{:016x}", self.names.text(&format!("{kind} {text}")))
    }
}

/// The fields that stay as they are.
fn known(value: &Value) -> Map<String, Value> {
    let mut out = Map::new();
    if let Some(at) = value.get("startedDateTime")
        && at.as_str().and_then(ns_of_rfc3339).is_some()
    {
        out.insert("startedDateTime".into(), at.clone());
    }
    for path in NUMBERS {
        if let Some(number) = at(value, path).filter(|number| number.is_number()) {
            set(&mut out, path, number.clone());
        }
    }
    for (path, texts) in TEXTS {
        let own = at(value, path).and_then(Value::as_str);
        if let Some(text) = own.filter(|own| texts.contains(&&*own.to_ascii_lowercase())) {
            set(&mut out, path, text.into());
        }
    }
    out
}

/// A name, which some programs write as a number.
fn name_of(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn media_type(mime: &str) -> Option<String> {
    let mime = mime.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if MEDIA_TYPES.contains(&mime.as_str()) {
        return Some(mime);
    }
    let (kind, _) = mime.split_once('/')?;
    let is_known = ["video", "audio", "image", "font", "text", "application"].contains(&kind);
    is_known.then(|| format!("{kind}/x"))
}

fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(value, |value, name| value.get(name))
}

fn set(out: &mut Map<String, Value>, path: &str, value: Value) {
    match path.split_once('.') {
        None => {
            out.insert(path.to_owned(), value);
        }
        Some((name, rest)) => {
            let inner = out.entry(name).or_insert_with(|| Map::new().into());
            if let Some(inner) = inner.as_object_mut() {
                set(inner, rest, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ApplicationFormat, read_application};
    use super::*;

    const SECRETS: &[&str] =
        &["example", "alice", "token", "192.0.2.7", "secret", "42.mp4", "Cookie", "sid-1", "Ann"];

    fn scrubbed(har: &Value) -> (String, Changes) {
        let text = har.to_string();
        let mut scrubber = HarScrubber::new(Pseudonyms::new(&[7; 32]));
        let (mut out, mut problems) = (Vec::new(), Vec::new());
        // In pieces.
        for piece in text.as_bytes().chunks(13) {
            scrubber.push(piece, &mut out, &mut |problem| problems.push(problem));
        }
        scrubber.finish(&mut out, &mut |problem| problems.push(problem));
        assert!(problems.is_empty(), "{problems:?}");
        (String::from_utf8(out).unwrap(), scrubber.changes().clone())
    }

    fn har() -> Value {
        let entry = |url: &str| {
            json!({
                "pageref": "Ann's page", "startedDateTime": "2026-01-05T09:00:07.503Z", "time": 138.0,
                "_initiator": {"type": "script", "url": "https://www.example.com/alice"},
                "_resourceType": "media", "connection": "443", "comment": "secret",
                "request": {
                    "method": "GET", "url": url, "httpVersion": "h2", "headersSize": 100,
                    "bodySize": 0, "headers": [{"name": "Cookie", "value": "secret"}],
                    "queryString": [{"name": "token", "value": "secret"}],
                },
                "response": {
                    "status": 200, "httpVersion": "h2", "headersSize": 90, "bodySize": 5000,
                    "content": {"size": 5000, "mimeType": "video/secret", "text": "secret"},
                    "redirectURL": "https://alice.example", "_error": null,
                },
                "serverIPAddress": "192.0.2.7", "cache": {},
                "timings": {"blocked": 1, "dns": 2, "connect": 40, "ssl": 20, "send": 0,
                            "wait": 50, "receive": 45, "comment": "secret"},
            })
        };
        json!({"log": {
            "version": "1.2", "creator": {"name": "example", "version": "alice"},
            "pages": [{"id": "Ann's page", "title": "alice", "pageTimings": {"onLoad": 536.0},
                       "startedDateTime": "2026-01-05T09:00:07.503Z"}],
            "entries": [
                entry("https://alice:secret@www.example.com:8443/a/42.mp4?sid-1=token"),
                entry("https://www.example.com:8443/a/42.mp4?sid-1=token"),
                entry("http://192.0.2.7/"),
            ],
        }})
    }

    #[test]
    fn a_copy_has_times_and_sizes_and_no_names() {
        let (copy, changes) = scrubbed(&har());
        for secret in SECRETS {
            assert!(!copy.contains(secret), "{secret}: {copy}");
        }
        assert_eq!((changes.of("requests"), changes.of("urls")), (3, 6));
        let before = read_application(ApplicationFormat::Har, har().to_string().as_bytes());
        let after = read_application(ApplicationFormat::Har, copy.as_bytes());
        assert_eq!(after.transfers.len(), 3);
        for (was, is) in before.transfers.iter().zip(&after.transfers) {
            assert_eq!((was.start_ns, was.end_ns, was.bytes), (is.start_ns, is.end_ns, is.bytes));
            assert_eq!((&was.phases, was.kind, &was.protocol), (&is.phases, is.kind, &is.protocol));
            assert_eq!(was.connection, is.connection);
        }
        let url = |at: usize| after.transfers[at].url.clone().unwrap();
        assert!(url(0).starts_with("https://host-") && url(0).ends_with(".mp4"), "{}", url(0));
        assert!(url(0).contains(".invalid:8443/path-"), "{}", url(0));
        assert_eq!(url(0), url(1));
        // As in a capture.
        let [a, b, c, d] = Pseudonyms::new(&[7; 32]).v4([192, 0, 2, 7]);
        assert_eq!(url(2), format!("http://{a}.{b}.{c}.{d}/"));
        assert_eq!(after.pages[0].loaded_ms, Some(536.0));
        assert_eq!(Some(&after.pages[0].id), after.transfers[0].page.as_ref());
    }

    #[test]
    fn a_har_without_entries_stays_one() {
        let (copy, _) = scrubbed(&json!({"log": {"creator": {}, "entries": []}}));
        let log = read_application(ApplicationFormat::Har, copy.as_bytes());
        assert!(log.transfers.is_empty() && log.problems.is_empty(), "{copy}");
    }
}
