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
        if parts_ns.is_none() {
            self.without_timings += 1;
        }
        let (down, decoded) = received(&entry, found);
        if from_cache(&entry, down) {
            found.log.from_cache += 1;
            return;
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
        let status = entry.number("response.status", found);
        let named = entry.get("response._error").map(|why| why.as_str().unwrap_or(NO_RESPONSE));
        let error = named.or_else(|| (status == Some(0.0)).then_some(NO_RESPONSE));
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
    let page = AppPage {
        id: printable(&id).into_owned(),
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

/// Whether the cache answered: Chrome has a field for it; Firefox writes the cache's
/// entry and no bytes.
fn from_cache(entry: &Entry<'_>, down: Option<u64>) -> bool {
    let entry_there = |name| {
        entry.get(name).is_some_and(|value| value.as_object().is_some_and(|o| !o.is_empty()))
    };
    entry.get("_fromCache").is_some()
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
mod tests {
    use airmile_model::{LostEntries, PlayerEventKind};

    use super::super::{ApplicationFormat, read_application};
    use super::*;

    fn read(entries: &str) -> airmile_model::ApplicationLog {
        let text = format!(
            r#"{{"log":{{"version":"1.2","creator":{{"name":"WebInspector","version":"537"}},"entries":[{entries}]}}}}"#
        );
        assert_eq!(ApplicationFormat::recognise(text.as_bytes()), Some(ApplicationFormat::Har));
        read_application(ApplicationFormat::Har, text.as_bytes())
    }

    const CHROME: &str = r#"{"_resourceType":"fetch","connection":"17","request":{"url":"https://a.example/v/7.m4s?token=x","method":"GET","bodySize":0,"headersSize":-1},
      "response":{"status":200,"httpVersion":"HTTP/2.0","_transferSize":5000,"bodySize":-1,"content":{"size":4000,"mimeType":"video/mp4"}},
      "startedDateTime":"2024-05-01T10:00:00.100Z","time":60.5,
      "timings":{"blocked":1.5,"dns":4,"connect":25,"ssl":10,"send":1,"wait":20,"receive":9}}"#;

    #[test]
    fn an_entry_of_chrome() {
        let log = read(CHROME);
        assert_eq!(log.problems, []);
        assert_eq!(log.made_by.as_deref(), Some("WebInspector 537"));
        let [transfer] = log.transfers.as_slice() else { panic!("{log:?}") };
        assert_eq!(transfer.end_ns - transfer.start_ns, 60_500_000);
        assert_eq!(transfer.start_ns, 1_714_557_600_100_000_000);
        assert_eq!((transfer.bytes, transfer.kind), (Some(5000), TransferKind::Media));
        assert_eq!(transfer.name().as_deref(), Some("https://a.example/v/7.m4s?…"));
        assert_eq!(
            (transfer.protocol.as_deref(), transfer.connection.as_deref()),
            (Some("h2"), Some("17"))
        );
        let phases = transfer.phases;
        assert_eq!((phases.connect_ns, phases.tls_ns), (Some(15_000_000), Some(10_000_000)));
        assert_eq!(phases.setup_ns(), Some(29_000_000));
    }

    #[test]
    fn what_is_lacking_or_wrong_is_told() {
        // Entry, transfers, bad ones, from the cache, others, first problem.
        let check = |entry: &str, expected: (usize, u64, u64, u64), problem: &str| {
            let log = read(entry);
            let got = (log.transfers.len(), log.bad_items, log.from_cache, log.not_transfers);
            let first = log.problems.first().map(ToString::to_string).unwrap_or_default();
            assert_eq!((got, first.contains(problem)), (expected, true), "{entry}: {first}");
        };
        let start = r#""startedDateTime":"2024-05-01T10:00:00Z""#;
        check(&format!("{{{start},\"time\":5}}"), (1, 0, 0, 0), "1 entries without timings");
        check(&format!("{{{start}}}"), (0, 1, 0, 0), "byte 85: time: missing");
        check(&format!("{{{start},\"time\":-5}}"), (0, 1, 0, 0), "time: -5 is no time in ms");
        check(&format!("{{{start},\"time\":1e12}}"), (0, 1, 0, 0), "is no time in ms");
        check(
            &format!("{{{start},\"time\":[]}}"),
            (0, 1, 0, 0),
            "time: expected a number, found an array",
        );
        check(r#"{"time":5}"#, (0, 1, 0, 0), "startedDateTime: missing");
        check(r#"{"time":5,}"#, (0, 1, 0, 0), "byte 95: log.entries[]: trailing comma");
        assert_eq!(read(r#"{"time":5,}"#).lost, LostEntries::Any);
        check(r#"{"request":{"url":"data:x"}}"#, (0, 0, 0, 1), "");
        check(&format!("{{{start},\"time\":5,\"_fromCache\":\"disk\"}}"), (0, 0, 1, 0), "");
        check("7", (0, 1, 0, 0), "byte 85: log.entries[]: expected an object, found a number");
        let of_type = |field: &str, is: &str| {
            let entry = format!("{{{start},\"time\":5,{field}}}");
            let problem = format!("byte 85: {is}; the entry is left out");
            check(&entry, (0, 1, 0, 0), &problem);
            assert!(read(&entry).damaged, "{entry}");
        };
        of_type("\"request\":7", "request: expected an object, found a number");
        of_type("\"request\":{\"url\":[]}", "request.url: expected a text, found an array");
        of_type("\"timings\":\"x\"", "timings: expected an object, found a text");
        of_type("\"startedDateTime\":7", "startedDateTime: expected a text, found a number");
        let phase = |timings: &str, problem: &str| {
            let entry = format!("{{{start},\"time\":5,\"timings\":{timings}}}");
            check(&entry, (1, 0, 0, 0), problem);
            let log = read(&entry);
            assert_eq!(log.damaged, !problem.is_empty(), "{timings}");
            assert_eq!(log.transfers[0].phases.receive_ns, Some(3_000_000), "{timings}");
        };
        phase(r#"{"wait":"2","dns":-1,"connect":-0.2,"ssl":null,"receive":3}"#, "");
        for (of, is) in [("\"x\"", "a text"), ("{}", "an object"), ("-5", "-5"), ("1e300", "1e")] {
            let told = format!("byte 85: timings.wait: expected ms or -1, found {is}");
            phase(&format!("{{\"wait\":{of},\"receive\":3}}"), &told);
        }
        of_type("\"time\":{}", "time: expected a number, found an object");
        of_type("\"time\":\"soon\"", "time: expected a number, found a text");
        of_type(
            "\"startedDateTime\":\"soon\"",
            "startedDateTime: expected a date and time as in 2024-05-01T10:00:00.100Z",
        );
    }

    #[test]
    fn a_log_of_another_shape_is_damaged() {
        let check = |text: &str, problem: &str| {
            let log = read_application(ApplicationFormat::Har, text.as_bytes());
            let found: Vec<String> = log.problems.iter().map(ToString::to_string).collect();
            assert_eq!(found, [problem], "{text}");
            assert_eq!((log.damaged, log.bad_items), (true, 1), "{text}");
        };
        check(
            r#"{"log":{"entries":"x"}}"#,
            "byte 18: log.entries: expected an array, found a text",
        );
        check(
            r#"{"log":{"entries":{"a":1}}}"#,
            "byte 18: log.entries: expected an array, found an object",
        );
        check(r#"{"log":{"entries":null}}"#, "byte 18: log.entries: expected an array, found null");
        check(r#"{"log":["entries"]}"#, "byte 7: log: expected an object, found an array");
        check(r#"{"log":{"creator":{}}}"#, "byte 0: log.entries: missing; it lists the requests");
        check(
            r#"{"log":{"pages":5,"entries":[]}}"#,
            "byte 16: log.pages: expected an array, found a number",
        );
        let empty = read_application(ApplicationFormat::Har, br#"{"log":{"entries":[]}}"#);
        assert_eq!((empty.problems.as_slice(), empty.damaged), ([].as_slice(), false));
    }

    #[test]
    fn sizes_as_far_as_they_are_told() {
        let check = |response: &str, bytes: Option<u64>, decoded: bool| {
            let log = read(&format!(
                r#"{{"startedDateTime":"2024-05-01T10:00:00Z","time":5,"response":{response}}}"#
            ));
            assert_eq!((log.transfers[0].bytes, log.transfers[0].bytes_decoded), (bytes, decoded));
        };
        check(r#"{"_transferSize":700,"bodySize":5}"#, Some(700), false);
        check(r#"{"bodySize":500,"headersSize":100}"#, Some(600), false);
        check(r#"{"bodySize":-1,"content":{"size":900,"compression":300}}"#, Some(600), false);
        check(r#"{"bodySize":-1,"content":{"size":900}}"#, Some(900), true);
        check("{}", None, false);
    }

    #[test]
    fn cmcd_in_urls_and_headers() {
        let log = read(
            r#"{"startedDateTime":"2024-05-01T10:00:00Z","time":5,"request":{"url":"https://a/1.m4s?CMCD=bl%3D2000%2Cbr%3D3200%2Cot%3Dv"}},
            {"startedDateTime":"2024-05-01T10:00:01Z","time":5,"request":{"url":"https://a/2.m4s","headers":[{"name":"CMCD-Object","value":"br=1600,ot=v"},{"name":"cmcd-status","value":"bs"}]}}"#,
        );
        let rates: Vec<_> = log.transfers.iter().map(|t| t.bitrate_bps).collect();
        assert_eq!(rates, [Some(3.2e6), Some(1.6e6)]);
        let kinds: Vec<_> = log.events.iter().map(|event| (event.kind, event.value)).collect();
        assert_eq!(
            kinds,
            [
                (PlayerEventKind::Buffer, Some(2000.0)),
                (PlayerEventKind::Stall, None),
                (PlayerEventKind::Switch, Some(1.6e6)),
            ]
        );
    }
}
