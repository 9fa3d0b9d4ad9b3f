//! qlog of QUIC and HTTP/3: draft-ietf-quic-qlog-main-schema, -quic-events and
//! -h3-events, as of qlog 0.3 (draft 01 to 03) and later ones, in which times are
//! relative to an epoch and events have the prefixes `quic:` and `http3:`. Of the drafts
//! before them (draft-marx-qlog-main-schema-00 and -01) those whose events are arrays.
//!
//! Requests are the bidirectional streams opened by a client (RFC 9000, 2.1), from the
//! STREAM frames of packets; names come from HTTP/3's HEADERS frames.

use std::collections::BTreeMap;

use airmile_model::units::SECOND_NS;
use airmile_model::{AppTransfer, Direction, RatePoint, TimeBase};
use serde_json::Value;

use super::fields::{Entry, ns_of_ms, ns_of_rfc3339, parse};
use super::{FormatReader, Gathered};

pub(super) const WANTED: &[&str] = &["traces[].events[]"];

/// A first request this soon after the handshake waited for it (chosen here).
const SOON_NS: i64 = 100_000_000;
/// Earlier times count from some start (chosen here: 1980).
const EARLIEST_DAY_NS: i64 = 315_532_800 * SECOND_NS;

/// The vantage point of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Vantage {
    #[default]
    Client,
    Server,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum TimeFormat {
    /// Relative to the reference, or to 1970 without one.
    #[default]
    Relative,
    Absolute,
    /// Relative to the previous event.
    Delta,
}

/// One direction of a stream.
#[derive(Debug, Clone, Copy, Default)]
struct Half {
    first_ns: Option<i64>,
    last_ns: i64,
    bytes: u64,
    finished: bool,
}

impl Half {
    /// Takes a STREAM frame; returns how many of its bytes are new.
    fn note(&mut self, at_ns: i64, end: u64, fin: bool) -> u64 {
        self.last_ns = if self.first_ns.is_some() { self.last_ns.max(at_ns) } else { at_ns };
        self.first_ns.get_or_insert(at_ns);
        self.finished |= fin;
        let new = end.saturating_sub(self.bytes);
        self.bytes = self.bytes.max(end);
        new
    }
}

/// A stream with a request, as sent and received by its side.
#[derive(Debug, Clone, Default)]
struct Stream {
    sent: Half,
    received: Half,
    reset: bool,
    scheme: Option<String>,
    authority: Option<String>,
    path: Option<String>,
}

/// A second of a connection.
#[derive(Debug, Clone, Copy, Default)]
struct Second {
    sent_bytes: u64,
    received_bytes: u64,
    lost: u64,
    rtt_sum_us: f64,
    rtts: u32,
}

#[derive(Debug, Clone, Default)]
struct QuicConnection {
    first_ns: Option<i64>,
    handshake_ns: Option<i64>,
    /// First packets under 1-RTT keys.
    sent_1rtt_ns: Option<i64>,
    received_1rtt_ns: Option<i64>,
    http3: bool,
    streams: BTreeMap<u64, Stream>,
    seconds: BTreeMap<i64, Second>,
}

/// Reads traces.
#[derive(Debug, Default)]
pub(super) struct Qlog {
    vantage: Vantage,
    format: TimeFormat,
    /// The origin of times; a trace may give it, and its vantage point, after its events.
    reference_ns: i64,
    last_ns: i64,
    connections: BTreeMap<String, QuicConnection>,
    trace: u64,
    unplaced: bool,
    /// Names of the values of events that are arrays, and whether their times are in µs.
    fields: Vec<String>,
    in_us: bool,
    version: String,
    /// Number of events that are arrays of values without such names.
    arrays: u64,
}

impl FormatReader for Qlog {
    fn value(&mut self, path: &str, offset: u64, bytes: &[u8], found: &mut Gathered) {
        match path {
            "traces[].events[]" => {
                found.log.items += 1;
                if let Some(value) = parse(bytes, offset, path, found) {
                    self.event(Entry { value: &value, offset }, found);
                }
            }
            "traces[].common_fields"
            | "traces[].vantage_point"
            | "traces[].event_fields"
            | "traces[].configuration" => {
                if let Some(value) = parse(bytes, offset, path, found) {
                    let name = path.trim_start_matches("traces[].");
                    self.head(&serde_json::json!({ name: value }), offset, found);
                }
            }
            // A record of a sequence.
            "" => {
                let at = bytes.iter().position(|&byte| byte != 0x1e).unwrap_or(0);
                let bytes = bytes.get(at..).unwrap_or_default();
                let Some(value) = parse(bytes, offset + at as u64, "record", found) else { return };
                let entry = Entry { value: &value, offset };
                if let Some(trace) = value.get("trace") {
                    self.head(trace, offset, found);
                    self.title(&entry, found);
                } else {
                    found.log.items += 1;
                    self.event(entry, found);
                }
            }
            "title" | "qlog_version" => {
                let text = String::from_utf8_lossy(bytes).trim_matches('"').to_owned();
                let named = if path == "title" { text } else { format!("qlog {text}") };
                if path != "title" {
                    self.version.clone_from(&named);
                }
                found.log.made_by.get_or_insert(named);
            }
            _ => {}
        }
    }

    fn end(&mut self, path: &str, found: &mut Gathered) {
        if path == "traces[]" {
            self.close(found);
        }
    }

    fn finish(&mut self, found: &mut Gathered) {
        self.close(found);
        found.log.scale.placed_within_ns = 1_000_000;
        if self.unplaced {
            found.log.scale.base = TimeBase::Unplaced;
            let what = "common_fields.reference_time: missing or monotonic; the times cannot be \
                        placed in the day";
            found.note(what.into());
        }
        if self.arrays > 0 {
            let (n, version) = (self.arrays, &self.version);
            found.unreadable(
                0,
                format!(
                    "{version}: {n} events are arrays, as before 0.3, without the names of their \
                     values (event_fields: relative_time, category, event, data); they are not read"
                ),
            );
        }
    }
}

impl Qlog {
    fn title(&self, entry: &Entry<'_>, found: &mut Gathered) {
        let version = entry.name("qlog_version").map(|version| format!("qlog {version}"));
        found.log.made_by = entry.name("title").or(version).or(Some("qlog".into()));
    }

    /// Reads the fields common to all events of a trace.
    fn head(&mut self, trace: &Value, offset: u64, found: &mut Gathered) {
        let entry = Entry { value: trace, offset };
        let side = entry.get("vantage_point.flow").or_else(|| entry.get("vantage_point.type"));
        match side.and_then(Value::as_str) {
            Some("server") => self.vantage = Vantage::Server,
            Some("client") => self.vantage = Vantage::Client,
            _ => {}
        }
        if let Some(fields) = entry.get("event_fields").and_then(Value::as_array) {
            let names = fields.iter().filter_map(Value::as_str);
            self.fields = names.map(str::to_ascii_lowercase).collect();
        }
        if let Some(units) = entry.get("configuration.time_units").and_then(Value::as_str) {
            self.in_us = units == "us";
            if self.in_us && !self.connections.is_empty() {
                let what =
                    "configuration.time_units: given after the events, whose times are wrong";
                found.warn(offset, what.into());
            }
        }
        let Some(common) = trace.get("common_fields") else { return };
        let common = Entry { value: common, offset };
        self.format = match common.text("time_format", found) {
            Some("absolute") => TimeFormat::Absolute,
            Some("delta" | "relative_to_previous_event") => TimeFormat::Delta,
            _ => TimeFormat::Relative,
        };
        // Before draft 06 a number of ms, then an object.
        let reference = match common.get("reference_time") {
            Some(Value::Object(_)) => {
                let of = |name: &str| {
                    let path = format!("reference_time.{name}");
                    common.get(&path).and_then(Value::as_str).and_then(ns_of_rfc3339)
                };
                // The epoch of a monotonic clock is no time of day.
                let clock = common.get("reference_time.clock_type").and_then(Value::as_str);
                let epoch = of("epoch").filter(|_| clock != Some("monotonic"));
                epoch.or_else(|| of("wall_clock_time"))
            }
            Some(_) => {
                let ms = common.number("reference_time", found);
                ms.and_then(|ms| ns_of_ms(if self.in_us { ms / 1e3 } else { ms }))
            }
            None => None,
        };
        self.reference_ns = reference.unwrap_or(0);
        if self.format == TimeFormat::Delta && !self.connections.is_empty() {
            let what = "common_fields.time_format: given after the events, whose times are wrong";
            found.warn(offset, what.into());
        }
    }

    fn event(&mut self, entry: Entry<'_>, found: &mut Gathered) {
        let named;
        let entry = match entry.value.as_array().map(|values| self.named(values)) {
            None => entry,
            Some(Some(event)) => {
                named = event;
                Entry { value: &named, ..entry }
            }
            Some(None) => {
                self.arrays += 1;
                return;
            }
        };
        let to_ms = if self.in_us { 1e-3 } else { 1.0 };
        let name = entry.text("name", found).unwrap_or_default();
        let Some(time_ns) = entry.ms("time", found) else {
            found.bad(entry.offset, format!("time: missing, in an event {name:?}"));
            return;
        };
        let time_ns = if self.in_us { time_ns / 1_000 } else { time_ns };
        let at_ns = match self.format {
            TimeFormat::Absolute | TimeFormat::Relative => time_ns,
            TimeFormat::Delta => self.last_ns.saturating_add(time_ns),
        };
        self.last_ns = at_ns;
        let group = entry.name("group_id").or_else(|| entry.name("ODCID")).unwrap_or_default();
        let connection = self.connections.entry(group).or_default();
        connection.first_ns.get_or_insert(at_ns);
        let Some(data) = entry.value.get("data") else { return };
        let data = Entry { value: data, offset: entry.offset };
        // `transport:` and `recovery:` of 0.3 became `quic:`.
        let (category, event) = name.split_once(':').unwrap_or(("", name));
        match event {
            "packet_sent" => connection.packet(at_ns, true, &data, found),
            "packet_received" => connection.packet(at_ns, false, &data, found),
            "packet_lost" => connection.second(at_ns).lost += 1,
            "metrics_updated" | "metric_update" | "recovery_metrics_updated" => {
                let rtt =
                    data.number("latest_rtt", found).or_else(|| data.number("smoothed_rtt", found));
                if let Some(ms) = rtt.filter(|ms| *ms > 0.0) {
                    let second = connection.second(at_ns);
                    second.rtt_sum_us += ms * to_ms * 1e3;
                    second.rtts += 1;
                }
            }
            "connection_state_updated" => {
                let state = data.get("new").and_then(Value::as_str).unwrap_or_default();
                if matches!(
                    state,
                    "handshake_complete"
                        | "handshake_completed"
                        | "handshake_confirmed"
                        | "active"
                        | "connected"
                ) {
                    connection.handshake_ns.get_or_insert(at_ns);
                }
            }
            "frame_created" | "frame_parsed" if matches!(category, "http" | "h3" | "http3") => {
                connection.http3 = true;
                connection.headers(&data, found);
            }
            _ => {}
        }
    }

    /// An event that is an array, in the form of later versions, if its values have names.
    fn named(&self, values: &[Value]) -> Option<Value> {
        let of = |name: &str| values.get(self.fields.iter().position(|field| field == name)?);
        let (time, category) = (of("relative_time")?, of("category")?.as_str()?);
        let event = of("event").or_else(|| of("event_type"))?.as_str()?;
        let data = of("data");
        Some(
            serde_json::json!({ "time": time, "name": format!("{category}:{event}"), "data": data }),
        )
    }

    /// Ends a trace: reports its contents.
    fn close(&mut self, found: &mut Gathered) {
        let base_ns = match self.format {
            TimeFormat::Absolute => 0,
            TimeFormat::Relative | TimeFormat::Delta => self.reference_ns,
        };
        for (group, connection) in std::mem::take(&mut self.connections) {
            let n = self.trace;
            let first = connection.first_ns.map_or(0, |ns| ns.saturating_add(base_ns));
            self.unplaced |= first < EARLIEST_DAY_NS;
            let name = if group.is_empty() { format!("{n}") } else { group };
            connection.report(
                &name,
                ConnectionSummary { number: n, vantage: self.vantage, base_ns },
                found,
            );
            self.trace += 1;
        }
        self.format = TimeFormat::default();
        (self.reference_ns, self.last_ns, self.in_us) = (0, 0, false);
    }
}

/// The summary of a connection at the end of its trace.
#[derive(Debug, Clone, Copy)]
struct ConnectionSummary {
    number: u64,
    vantage: Vantage,
    base_ns: i64,
}

impl QuicConnection {
    fn second(&mut self, at_ns: i64) -> &mut Second {
        self.seconds.entry(at_ns.div_euclid(SECOND_NS)).or_default()
    }

    /// Takes the STREAM frames of a packet.
    fn packet(&mut self, at_ns: i64, sent: bool, data: &Entry<'_>, found: &mut Gathered) {
        let kind = data.get("header.packet_type").or_else(|| data.get("packet_type"));
        let kind = kind.and_then(Value::as_str);
        if kind.is_some_and(|kind| kind.eq_ignore_ascii_case("1rtt")) {
            let first = if sent { &mut self.sent_1rtt_ns } else { &mut self.received_1rtt_ns };
            first.get_or_insert(at_ns);
        }
        let frames = data.get("frames").and_then(Value::as_array).into_iter().flatten();
        for frame in frames {
            let frame = Entry { value: frame, offset: data.offset };
            let id = ["stream_id", "id"].into_iter().find_map(|path| frame.count(path, found));
            let Some(id) = id else { continue };
            // Bidirectional streams opened by a client.
            if id % 4 != 0 {
                continue;
            }
            match frame.get("frame_type").and_then(Value::as_str) {
                Some("stream") => {}
                Some("reset_stream") => {
                    self.streams.entry(id).or_default().reset = true;
                    continue;
                }
                _ => continue,
            }
            let lengths = ["length", "raw.payload_length", "raw.length"];
            let length = lengths.into_iter().find_map(|path| frame.count(path, found)).unwrap_or(0);
            let end = frame.count("offset", found).unwrap_or(0).saturating_add(length);
            let fin = frame.get("fin").and_then(Value::as_bool) == Some(true);
            let stream = self.streams.entry(id).or_default();
            let half = if sent { &mut stream.sent } else { &mut stream.received };
            let new = half.note(at_ns, end, fin);
            let second = self.second(at_ns);
            let bytes = if sent { &mut second.sent_bytes } else { &mut second.received_bytes };
            *bytes = bytes.saturating_add(new);
        }
    }

    fn headers(&mut self, data: &Entry<'_>, found: &mut Gathered) {
        let Some(id) = data.count("stream_id", found) else { return };
        if id % 4 != 0 {
            return;
        }
        let stream = self.streams.entry(id).or_default();
        let headers = data.get("frame.headers").and_then(Value::as_array).into_iter().flatten();
        for header in headers {
            let text = |name: &str| header.get(name).and_then(Value::as_str).map(str::to_owned);
            match text("name").as_deref() {
                Some(":scheme") => stream.scheme = text("value"),
                Some(":authority") => stream.authority = text("value"),
                Some(":path") => stream.path = text("value"),
                _ => {}
            }
        }
    }

    fn report(mut self, name: &str, summary: ConnectionSummary, found: &mut Gathered) {
        let client = summary.vantage == Vantage::Client;
        // The client has its keys when it uses them; the server when it sees them used.
        let keys = if client { self.sent_1rtt_ns } else { self.received_1rtt_ns };
        let handshake = keys.into_iter().chain(self.handshake_ns).min();
        let setup = self.first_ns.zip(handshake);
        let setup = setup.map(|(from, to)| (from, to.saturating_sub(from).max(0)));
        for (order, (id, stream)) in std::mem::take(&mut self.streams).into_iter().enumerate() {
            let (up, down) = match client {
                true => (stream.sent, stream.received),
                false => (stream.received, stream.sent),
            };
            let Some(mut start_ns) = up.first_ns.or(down.first_ns) else {
                found.log.not_transfers += 1;
                continue;
            };
            let mut connect_ns = 0;
            // The first request waited for the handshake.
            if let Some((from_ns, took_ns)) = setup
                && order == 0
                && start_ns.saturating_sub(from_ns.saturating_add(took_ns)) <= SOON_NS
            {
                connect_ns = took_ns.min(start_ns.saturating_sub(from_ns).max(0));
                start_ns = start_ns.min(from_ns);
            }
            let upload = up.bytes > down.bytes;
            let last = |half: Half| half.first_ns.map(|_| half.last_ns);
            let end_ns = last(down).max(last(up).filter(|_| upload)).unwrap_or(start_ns);
            let at = |ns: i64| ns.saturating_add(summary.base_ns);
            let mut transfer =
                AppTransfer::new(format!("{}-{id}", summary.number), at(start_ns), at(end_ns));
            transfer.dir = Some(if upload { Direction::Ul } else { Direction::Dl });
            transfer.bytes = Some(up.bytes.max(down.bytes));
            transfer.phases.connect_ns = Some(connect_ns);
            if let (Some(asked), Some(first)) = (up.first_ns, down.first_ns) {
                let before = asked.saturating_sub(start_ns).saturating_sub(connect_ns);
                transfer.phases.blocked_ns = Some(before.max(0));
                transfer.phases.wait_ns = Some(first.saturating_sub(asked).max(0));
                transfer.phases.receive_ns = Some(down.last_ns.saturating_sub(first).max(0));
            }
            transfer.url = stream.url();
            let kind = transfer.url.as_deref().and_then(super::har::kind_of_name);
            transfer.kind = kind.unwrap_or(transfer.kind);
            transfer.connection = Some(name.to_owned());
            transfer.protocol = Some(if self.http3 { "h3" } else { "quic" }.to_owned());
            transfer.unfinished = !down.finished && !stream.reset && !upload;
            transfer.failed = stream.reset;
            found.transfer(transfer);
        }
        for (second, of) in &self.seconds {
            let start_ns = second.saturating_mul(SECOND_NS).saturating_add(summary.base_ns);
            found.log.rates.push(RatePoint {
                start_ns,
                end_ns: start_ns.saturating_add(SECOND_NS),
                dir: Direction::Dl,
                bytes: if client { of.received_bytes } else { of.sent_bytes },
                retransmits: Some(of.lost),
                rtt_us: (of.rtts > 0).then(|| of.rtt_sum_us / f64::from(of.rtts)),
                cwnd_bytes: None,
            });
        }
    }
}

impl Stream {
    fn url(&self) -> Option<String> {
        let path = self.path.as_deref()?;
        let scheme = self.scheme.as_deref().unwrap_or("https");
        Some(match &self.authority {
            Some(authority) => format!("{scheme}://{authority}{path}"),
            None => path.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests;
