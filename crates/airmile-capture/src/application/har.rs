//! HTTP Archive 1.2 (Odvarko, Jain, Davies; github.com/ahmadnassri/har-spec,
//! versions/1.2.md), as Chrome, Firefox, Safari and proxies export it. Fields that
//! begin with `_` are Chrome's.

use airmile_model::{AppPage, AppTransfer, Direction, Phases, TransferKind, printable};
use serde_json::Value;

use super::cmcd::Cmcd;
use super::fields::{Entry, ns_of_ms, ns_of_rfc3339, number_of, parse, type_name};
use super::{FormatReader, Gathered, NO_RESPONSE};

pub(super) const WANTED: &[&str] = &["log.entries[]", "log.pages[]"];

/// Schemes of URLs that use no network (`data` to `moz-extension`), or of sockets, which do not end.
const LOCAL_SCHEMES: &[&str] =
    &["data", "blob", "file", "about", "chrome", "chrome-extension", "moz-extension", "ws", "wss"];

/// Longer than this (a week) is no time of a request (chosen here).
const LONGEST_MS: f64 = 604_800_000.0;

/// Reads entries.
#[derive(Debug, Default)]
pub(super) struct Har {
    number: u64,
    /// Entries with a time, but without its phases.
    without_timings: u64,
    decoded_bytes: u64,
    /// Whether the log has its array of entries, of whatever type.
    has_entries: bool,
    cmcd: super::cmcd::PlayerSessions,
}

impl FormatReader for Har {
    fn value(&mut self, path: &str, offset: u64, bytes: &[u8], found: &mut Gathered) {
        match path {
            "log.entries[]" => {
                self.number += 1;
                found.log.items += 1;
                if let Some(value) = parse(bytes, offset, path, found) {
                    self.entry(Entry { value: &value, offset }, found);
                }
            }
            "log.pages[]" => {
                if let Some(value) = parse(bytes, offset, path, found) {
                    page(&Entry { value: &value, offset }, found);
                }
            }
            "log.creator" | "log.browser" => {
                if let Some(value) = parse(bytes, offset, path, found) {
                    let text = |name: &str| value.get(name).and_then(Value::as_str);
                    let words: Vec<&str> =
                        [text("name"), text("version")].into_iter().flatten().collect();
                    // The browser, if there is one, comes after the program that wrote
                    // the file.
                    if !words.is_empty() {
                        found.log.made_by = Some(words.join(" "));
                    }
                }
            }
            // Arrays are returned by element: these are of another type.
            "" | "log" | "log.entries" | "log.pages" => {
                self.has_entries |= path != "log.pages";
                let wanted = if matches!(path, "" | "log") { "an object" } else { "an array" };
                if let Some(value) = parse(bytes, offset, path, found) {
                    let what = if path.is_empty() { "the document" } else { path };
                    let is = type_name(&value);
                    found.unreadable(offset, format!("{what}: expected {wanted}, found {is}"));
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, path: &str, found: &mut Gathered) {
        match path {
            "log.entries" => self.has_entries = true,
            "log" if !self.has_entries => {
                found.unreadable(0, "log.entries: missing; it lists the requests".into());
            }
            _ => {}
        }
    }

    fn finish(&mut self, found: &mut Gathered) {
        // Times are written in ms, and browsers reduce their resolution further.
        found.log.scale.placed_within_ns = 1_000_000;
        if self.without_timings > 0 {
            let n = self.without_timings;
            found.note(format!("{n} entries without timings: their phases are not known"));
        }
        if self.decoded_bytes > 0 {
            let n = self.decoded_bytes;
            found.note(format!("{n} entries give only their size after decompression"));
        }
        self.cmcd.finish(found);
    }
}

impl Har {
    fn entry(&mut self, entry: Entry<'_>, found: &mut Gathered) {
        if let Some((path, wanted, is)) = wrong_type(&entry) {
            let what = format!("{path}: expected {wanted}, found {is}; the entry is left out");
            found.unreadable(entry.offset, what);
            return;
        }
        let url = entry.text("request.url", found).unwrap_or_default();
        let resource = entry.get("_resourceType").and_then(Value::as_str);
        if local_scheme(url).is_some() || resource == Some("websocket") {
            found.log.not_transfers += 1;
            return;
        }
        let Some(started) = entry.text("startedDateTime", found) else {
            found.bad(entry.offset, "startedDateTime: missing; the entry is left out".into());
            return;
        };
        let Some(start_ns) = ns_of_rfc3339(started) else {
            let what = "startedDateTime: expected a date and time as in \
                        2024-05-01T10:00:00.100Z; the entry is left out";
            found.unreadable(entry.offset, what.into());
            return;
        };
        let phases = phases(&entry, found);
        let parts = phases.before_first_byte_ns().into_iter().chain(phases.receive_ns);
        let parts_ns = parts.reduce(i64::saturating_add);
        let is_time = |ms: &f64| (0.0..=LONGEST_MS).contains(ms);
        let total = entry.number("time", found).filter(is_time).and_then(ns_of_ms);
        let Some(duration_ns) = total.or(parts_ns) else {
            let is =
                entry.get("time").map_or("missing".into(), |ms| format!("{ms} is no time in ms"));
            found.bad(entry.offset, format!("time: {is}, and there are no timings in its place"));
            return;
        };
        let (down, decoded) = received(&entry, found);
        if from_cache(&entry, down) {
            found.log.from_cache += 1;
            return;
        }
        // WebPageTest writes a negative status for a request without a response: a push that the
        // browser cancelled took no time.
        let status = entry.number("response.status", found);
        if duration_ns == 0 && status.is_some_and(|status| status < 0.0) {
            found.log.not_transfers += 1;
            return;
        }
        if parts_ns.is_none() {
            self.without_timings += 1;
        }
        let body_sent = entry.count("request.bodySize", found);
        let sent = sum([entry.count("request.headersSize", found), body_sent]);
        let upload = body_sent.unwrap_or(0) > down.unwrap_or(0);
        let mut transfer = AppTransfer::new(
            self.number.to_string(),
            start_ns,
            start_ns.saturating_add(duration_ns),
        );
        transfer.dir = Some(if upload { Direction::Ul } else { Direction::Dl });
        transfer.bytes = if upload { sent } else { down };
        transfer.bytes_decoded = decoded && !upload;
        self.decoded_bytes += u64::from(transfer.bytes_decoded);
        transfer.url = Some(url.to_owned());
        transfer.page = entry.name("pageref");
        transfer.initiator = entry.text("_initiator.url", found).map(str::to_owned);
        transfer.kind = kind(&entry, url, resource);
        transfer.phases = phases;
        transfer.connection = entry.name("connection").or_else(|| entry.name("_connectionId"));
        transfer.protocol = protocol(&entry);
        let named = entry.get("response._error").map(|why| why.as_str().unwrap_or(NO_RESPONSE));
        let error = named.or_else(|| status.is_some_and(|n| n <= 0.0).then_some(NO_RESPONSE));
        transfer.error = error.map(str::to_owned);
        transfer.failed = error.is_some() || status.is_some_and(|status| status >= 400.0);
        let cmcd = Cmcd::of_url(url).or_else(|| cmcd_of_headers(&entry));
        if let Some(cmcd) = cmcd {
            transfer.bitrate_bps = cmcd.bitrate_bps();
            self.cmcd.push(start_ns, cmcd, None);
        }
        found.transfer(transfer);
    }
}

/// The first field that an entry needs and that is of another type: path, expected and found type.
pub(super) fn wrong_type(entry: &Entry<'_>) -> Option<(&'static str, &'static str, &'static str)> {
    if !entry.value.is_object() {
        return Some(("log.entries[]", "an object", type_name(entry.value)));
    }
    let fields = [
        ("startedDateTime", "a text"),
        ("time", "a number"),
        ("timings", "an object"),
        ("request", "an object"),
        ("request.url", "a text"),
    ];
    fields.into_iter().find_map(|(path, wanted)| {
        let value = entry.get(path)?;
        let is = type_name(value);
        let fits = is == wanted || wanted == "a number" && number_of(value).is_some();
        (!fits).then_some((path, wanted, is))
    })
}

/// Takes a page; entries cannot refer to one without an id or a start.
fn page(entry: &Entry<'_>, found: &mut Gathered) {
    let started = entry.text("startedDateTime", found).and_then(ns_of_rfc3339);
    let (Some(id), Some(start_ns)) = (entry.name("id"), started) else { return };
    // Browsers write -1 for events that did not occur.
    let mut first = |names: &[&str]| {
        let each = names.iter().filter_map(|name| entry.number(name, found));
        each.filter(|ms| *ms > 0.0).reduce(f64::min)
    };
    // WebPageTest's and browsertime's fields; Chrome's title is the URL.
    let texts = ["_URL", "_url", "title"].into_iter().filter_map(|name| entry.get(name)?.as_str());
    let url =
        texts.into_iter().find(|text| text.starts_with("http://") || text.starts_with("https://"));
    let page = AppPage {
        id: printable(&id).into_owned(),
        url: url.map(|url| printable(url).into_owned()),
        start_ns,
        // Extensions of WebPageTest and browsertime, in addition to the standard's
        // fields.
        first_paint_ms: first(&[
            "pageTimings._firstPaint",
            "pageTimings._firstContentfulPaint",
            "_firstPaint",
            "_firstContentfulPaint",
            "_render",
        ]),
        content_loaded_ms: first(&["pageTimings.onContentLoad"]),
        loaded_ms: first(&["pageTimings.onLoad"]),
    };
    found.log.pages.push(page);
}

/// The scheme of a request that uses no network, or does not end.
pub(super) fn local_scheme(url: &str) -> Option<&'static str> {
    let own = url.split(':').next().unwrap_or_default();
    LOCAL_SCHEMES.iter().copied().find(|scheme| own.eq_ignore_ascii_case(scheme))
}

fn sum<const N: usize>(parts: [Option<u64>; N]) -> Option<u64> {
    parts.into_iter().flatten().reduce(u64::saturating_add)
}

/// Phases of the time (HAR 1.2, `timings`): -1 stands for a phase that did not occur, and
/// `connect` includes `ssl`. A value that is no time leaves its phase out.
fn phases(entry: &Entry<'_>, found: &mut Gathered) -> Phases {
    let mut at = |name: &str| {
        let path = format!("timings.{name}");
        let value = entry.get(&path)?;
        // Differences of rounded times can be negative, too.
        let ms = number_of(value).filter(|ms| (-1.0..=LONGEST_MS).contains(ms));
        let ns = ms.and_then(|ms| ns_of_ms(ms.max(0.0)));
        if ns.is_none() {
            let is = if value.is_number() { value.to_string() } else { type_name(value).into() };
            let what = format!("{path}: expected ms or -1, found {is}; the phase is left out");
            found.damage(entry.offset, what);
        }
        ns
    };
    let tls_ns = at("ssl");
    Phases {
        blocked_ns: at("blocked"),
        dns_ns: at("dns"),
        connect_ns: at("connect").map(|ns| (ns - tls_ns.unwrap_or(0)).max(0)),
        tls_ns,
        send_ns: at("send"),
        wait_ns: at("wait"),
        receive_ns: at("receive"),
    }
}

/// Bytes of the answer, and whether they are after decompression: the bytes transferred
/// (Chrome's `_transferSize`), else header and body, else the content.
fn received(entry: &Entry<'_>, found: &mut Gathered) -> (Option<u64>, bool) {
    if let Some(bytes) = entry.count("response._transferSize", found).filter(|bytes| *bytes > 0) {
        return (Some(bytes), false);
    }
    if let Some(body) = entry.count("response.bodySize", found) {
        return (sum([Some(body), entry.count("response.headersSize", found)]), false);
    }
    let Some(content) = entry.count("response.content.size", found) else { return (None, false) };
    match entry.number("response.content.compression", found) {
        Some(saved) if saved > 0.0 => (Some(content.saturating_sub(saved as u64)), false),
        Some(_) => (Some(content), false),
        None => (Some(content), true),
    }
}

/// Whether the cache answered: Chrome has a field for it, and before it had one wrote a body of 0 bytes
/// and its size, with no bytes transferred; Firefox writes the cache's entry and no bytes.
fn from_cache(entry: &Entry<'_>, down: Option<u64>) -> bool {
    let entry_there = |name| {
        entry.get(name).is_some_and(|value| value.as_object().is_some_and(|o| !o.is_empty()))
    };
    let of = |path| entry.get(path).and_then(Value::as_f64);
    let empty = ["response._transferSize", "response.bodySize"].map(of) == [Some(0.0); 2];
    entry.get("_fromCache").is_some()
        || empty && of("response.content.size").is_some_and(|bytes| bytes > 0.0)
        || down.unwrap_or(0) == 0
            && (entry_there("cache.beforeRequest") || entry_there("cache.afterRequest"))
}

fn protocol(entry: &Entry<'_>) -> Option<String> {
    let version = ["response.httpVersion", "request.httpVersion"].into_iter().find_map(|path| {
        entry.get(path)?.as_str().filter(|text| !text.is_empty() && *text != "unknown")
    })?;
    Some(match version.to_ascii_lowercase().as_str() {
        "h2" | "http/2" | "http/2.0" => "h2".to_owned(),
        "h3" | "http/3" | "http/3.0" => "h3".to_owned(),
        other => other.to_owned(),
    })
}

fn kind(entry: &Entry<'_>, url: &str, resource: Option<&str>) -> TransferKind {
    let mime = entry.get("response.content.mimeType").and_then(Value::as_str).unwrap_or_default();
    let by_name = kind_of_name(url)
        .filter(|kind| matches!(kind, TransferKind::Manifest | TransferKind::Media));
    if let Some(kind) = by_name {
        return kind;
    }
    match resource {
        Some("document") => return TransferKind::Document,
        Some("script" | "stylesheet" | "font") => return TransferKind::Code,
        Some("image") => return TransferKind::Image,
        Some("media") => return TransferKind::Media,
        _ => {}
    }
    let mime = mime.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match mime.as_str() {
        "application/dash+xml" | "application/vnd.apple.mpegurl" | "application/x-mpegurl" => {
            TransferKind::Manifest
        }
        mime if mime.starts_with("video/") || mime.starts_with("audio/") => TransferKind::Media,
        _ if matches!(resource, Some("xhr" | "fetch")) => TransferKind::Fetch,
        "text/html" | "application/xhtml+xml" => TransferKind::Document,
        "text/css" | "text/javascript" | "application/javascript" => TransferKind::Code,
        mime if mime.starts_with("font/") => TransferKind::Code,
        mime if mime.starts_with("image/") => TransferKind::Image,
        _ => TransferKind::Other,
    }
}

/// The kind of transfer by a URL's ending.
pub(super) fn kind_of_name(url: &str) -> Option<TransferKind> {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let (_, ending) = path.rsplit('/').next()?.rsplit_once('.')?;
    Some(match ending.to_ascii_lowercase().as_str() {
        "mpd" | "m3u8" => TransferKind::Manifest,
        "m4s" | "m4v" | "m4a" | "mp4" | "cmfv" | "cmfa" | "ts" | "aac" | "webm" => {
            TransferKind::Media
        }
        "js" | "mjs" | "css" | "woff" | "woff2" => TransferKind::Code,
        "png" | "jpg" | "jpeg" | "gif" | "webp" | "avif" | "svg" => TransferKind::Image,
        "html" | "htm" => TransferKind::Document,
        _ => return None,
    })
}

/// CMCD in the request's headers (CTA-5004, section 2.2).
fn cmcd_of_headers(entry: &Entry<'_>) -> Option<Cmcd> {
    let mut cmcd: Option<Cmcd> = None;
    for header in entry.get("request.headers")?.as_array()? {
        let name = header.get("name").and_then(Value::as_str).unwrap_or_default();
        if name.len() > 5 && name.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("cmcd-"))
        {
            let text = header.get("value").and_then(Value::as_str).unwrap_or_default();
            cmcd.get_or_insert_default().add(text);
        }
    }
    cmcd
}

#[cfg(test)]
mod tests;
