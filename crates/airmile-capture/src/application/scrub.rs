//! Makes HARs that can be shared. The copy is built from known fields: numbers and times stay, texts
//! stay if they are of a closed list, names become pseudonyms, and all else is left out: headers,
//! cookies, queries, contents, comments.

use std::net::IpAddr;

use airmile_model::{Problem, Severity};
use airmile_pseudonym::{Changes, Pseudonyms};
use serde_json::{Map, Value, json};

use super::fields::{Entry, ns_of_rfc3339, number_of};
use super::har::{WANTED, kind_of_name, local_scheme, wrong_type};
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
            problem(Problem::at(self.bytes, Severity::Damage, what));
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
        let value = serde_json::from_slice::<Value>(bytes).unwrap_or_default();
        let is_page = path == "log.pages[]";
        let wrong = match wrong_type(&Entry { value: &value, offset }) {
            _ if !value.is_object() => Some(format!("{path}: no object")),
            Some((field, wanted, is)) if !is_page => {
                Some(format!("{field}: expected {wanted}, found {is}"))
            }
            _ => None,
        };
        let is_readable = wrong.is_none();
        if let Some(what) = wrong {
            let what = format!("{what}; it is left out");
            problem(Problem::at(offset, Severity::Damage, what));
        }
        if is_page {
            let page = is_readable.then(|| self.page(&value));
            return self.pages.extend(page);
        }
        // Of an entry that cannot be read only its place stays: transfers have its number.
        let entry = if is_readable { self.entry(&value) } else { Value::Null };
        if self.entries == 0 {
            self.begin(out);
        } else {
            out.extend_from_slice(b",\n");
        }
        self.entries += 1;
        self.changes.add("requests", u64::from(is_readable));
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
        // Of any value the reader takes that the cache answered.
        if value.get("_fromCache").is_some_and(|from| !from.is_null()) {
            out.entry("_fromCache").or_insert_with(|| "other".into());
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
        // The reader leaves local URLs out by their scheme, which therefore stays. Of these, only
        // sockets have hosts; `data:` holds contents.
        let local = local_scheme(url);
        let has_host = matches!(local, None | Some("ws" | "wss"));
        let Some((scheme, rest)) = url.split_once("://").filter(|_| has_host) else {
            return format!("{}:", local.unwrap_or("other"));
        };
        let known = ["http", "https"].into_iter().find(|own| scheme.eq_ignore_ascii_case(own));
        let scheme = local.or(known).unwrap_or("other");
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
        format!("{scheme}://{host}{port}{path}")
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
        // Some programs write numbers as texts.
        let own = at(value, path);
        let number = own.filter(|own| own.is_number()).cloned();
        if let Some(number) = number.or_else(|| own.and_then(number_of).map(Value::from)) {
            set(&mut out, path, number);
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
mod tests;
