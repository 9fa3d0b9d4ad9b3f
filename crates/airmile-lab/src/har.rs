//! Pages of a run in a browser's export format: HTTP Archive 1.2, with Chrome's
//! `_initiator`.

use std::io::Write;

use airmile::format_utc;
use airmile_emulate::{LoadedPage, PageRequest, Scenario};
use serde_json::{Value, json};

/// The server name in requests.
const HOST: &str = "server.airmile.test";

/// Writes the pages of a run.
pub(crate) fn write(
    out: &mut dyn Write,
    scenario: &Scenario,
    pages: &[LoadedPage],
) -> std::io::Result<()> {
    let id = |page: &LoadedPage| {
        let app = scenario.apps.get(page.app).map_or("app", |app| app.name.as_str());
        format!("{app}-page-{}", page.page + 1)
    };
    let each = pages.iter().map(|page| {
        let first = page.requests.first().map_or_else(String::new, url);
        json!({
            "startedDateTime": time(page.start_ns),
            "id": id(page),
            "title": first,
            "pageTimings": {
                "onContentLoad": -1,
                "onLoad": page.loaded_ns.map_or(-1.0, |ns| ms(ns - page.start_ns)),
            },
        })
    });
    let entries = pages.iter().flat_map(|page| {
        let ended = page.requests.iter().filter(|request| request.end_ns.is_some());
        ended.map(|request| entry(request, page, &id(page)))
    });
    let har = json!({
        "log": {
            "version": "1.2",
            "creator": {"name": "airmile lab", "version": env!("CARGO_PKG_VERSION")},
            "pages": each.collect::<Vec<_>>(),
            "entries": entries.collect::<Vec<_>>(),
        }
    });
    serde_json::to_writer_pretty(&mut *out, &har)?;
    out.write_all(b"\n")
}

fn entry(request: &PageRequest, page: &LoadedPage, page_id: &str) -> Value {
    let end_ns = request.end_ns.unwrap_or(request.wanted_ns);
    let looked_up_ns = request.wanted_ns + request.lookup_ns;
    let begun_ns = request.begun_ns.unwrap_or(end_ns);
    let sent_ns = request.connected_ns.unwrap_or(begun_ns);
    let first_ns = request.first_byte_ns.unwrap_or(end_ns);
    let part = |from: i64, to: i64| ms((to - from).max(0));
    let made = |made: bool, from: i64, to: i64| if made { part(from, to) } else { -1.0 };
    let parent = page.requests.iter().find(|one| Some(one.transfer) == request.initiator);
    let initiator = match parent {
        Some(parent) => json!({"type": "parser", "url": url(parent)}),
        None => json!({"type": "other"}),
    };
    let status = if request.failed { 0 } else { 200 };
    json!({
        "pageref": page_id,
        "_initiator": initiator,
        "startedDateTime": time(request.wanted_ns),
        "time": part(request.wanted_ns, end_ns),
        "request": {
            "method": "GET",
            "url": url(request),
            "httpVersion": "http/1.1",
            "headersSize": -1,
            "bodySize": 0,
        },
        "response": {
            "status": status,
            "httpVersion": "http/1.1",
            "headersSize": -1,
            "bodySize": request.bytes,
            "content": {"size": request.bytes, "mimeType": mime(request)},
        },
        "serverIPAddress": request.addresses.map(|(_, server)| server.ip().to_string()),
        "connection": request.addresses.map(|(own, _)| own.port().to_string()),
        "cache": {},
        "timings": {
            "blocked": part(looked_up_ns, begun_ns),
            "dns": made(request.lookup_ns > 0, 0, request.lookup_ns),
            "connect": made(request.connected_ns.is_some(), begun_ns, sent_ns),
            "ssl": -1,
            "send": 0,
            "wait": part(sent_ns, first_ns),
            "receive": part(first_ns, end_ns),
        },
    })
}

/// The first request of a page is its document.
const fn mime(request: &PageRequest) -> &'static str {
    if request.initiator.is_none() { "text/html" } else { "application/octet-stream" }
}

/// The requested URL, without the query for the lab's server.
fn url(request: &PageRequest) -> String {
    let path = request.path.split('?').next().unwrap_or_default();
    format!("http://{HOST}{path}")
}

fn ms(ns: i64) -> f64 {
    (ns as f64 / 1e3).round() / 1e3
}

/// HAR time format: ISO 8601 with milliseconds.
fn time(ns: i64) -> String {
    format_utc(ns).replacen(' ', "T", 1) + "Z"
}
