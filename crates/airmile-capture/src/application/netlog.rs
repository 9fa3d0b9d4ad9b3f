//! Chrome's NetLog (`--log-net-log`, `chrome://net-export`): the events of its network
//! stack (chromium.org/developers/design-documents/network-stack/netlog; names of
//! `net/log/net_log_event_type_list.h`). Numbers of types depend on the build:
//! `constants` lists them. A log of a browser that was killed is not terminated.

use std::collections::HashMap;

use airmile_model::units::MS_NS;
use airmile_model::{AppTransfer, Direction};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::fields::{Entry, parse};
use super::har::kind_of_name;
use super::{FormatReader, Gathered, NO_RESPONSE};

pub(super) const WANTED: &[&str] = &["events[]"];

/// Larger times are invalid (chosen here: so that no sum of them overflows, 2096).
const LARGEST_MS: f64 = 4e12;

/// Events that are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Type {
    RequestAlive,
    StartJob,
    BoundToJob,
    Send,
    SendBody,
    ReadHeaders,
    ResponseHeaders,
    RawBytes,
    Bytes,
    SocketAlive,
    TcpConnect,
    TlsConnect,
    Resolve,
    JobAlive,
    /// Any other; only its dependency counts.
    Other,
}

impl Type {
    fn of(name: &str) -> Self {
        match name {
            "REQUEST_ALIVE" => Self::RequestAlive,
            "URL_REQUEST_START_JOB" => Self::StartJob,
            "HTTP_STREAM_REQUEST_BOUND_TO_JOB" => Self::BoundToJob,
            "HTTP_TRANSACTION_SEND_REQUEST" => Self::Send,
            "HTTP_TRANSACTION_SEND_REQUEST_BODY" => Self::SendBody,
            "HTTP_TRANSACTION_READ_HEADERS" => Self::ReadHeaders,
            "HTTP_TRANSACTION_READ_RESPONSE_HEADERS" => Self::ResponseHeaders,
            "URL_REQUEST_JOB_BYTES_READ" => Self::RawBytes,
            "URL_REQUEST_JOB_FILTERED_BYTES_READ" => Self::Bytes,
            "SOCKET_ALIVE" => Self::SocketAlive,
            "TCP_CONNECT" => Self::TcpConnect,
            "SSL_CONNECT" => Self::TlsConnect,
            "HOST_RESOLVER_MANAGER_REQUEST" | "HOST_RESOLVER_IMPL_REQUEST" => Self::Resolve,
            "HTTP_STREAM_JOB" => Self::JobAlive,
            _ => Self::Other,
        }
    }
}

/// Sources that are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NetLogSource {
    Request,
    Job,
    Socket,
    Http2,
    Quic,
    Other,
}

impl NetLogSource {
    fn of(name: &str) -> Self {
        match name {
            "URL_REQUEST" => Self::Request,
            "HTTP_STREAM_JOB" => Self::Job,
            "SOCKET" => Self::Socket,
            "HTTP2_SESSION" => Self::Http2,
            "QUIC_SESSION" => Self::Quic,
            _ => Self::Other,
        }
    }

    /// Whether it carries requests.
    const fn carries(self) -> bool {
        matches!(self, Self::Socket | Self::Http2 | Self::Quic)
    }
}

/// A span with a begin and an end, in ms of the log.
#[derive(Debug, Clone, Copy, Default)]
struct Span {
    from_ms: Option<i64>,
    to_ms: Option<i64>,
}

impl Span {
    fn note(&mut self, event: &NetEvent<'_>) {
        match event.phase {
            Phase::Begin => {
                self.from_ms.get_or_insert(event.at_ms);
            }
            Phase::End if self.from_ms.is_some() => self.to_ms = Some(event.at_ms),
            _ => {}
        }
    }

    /// Its overlap with two times; zero if it had not ended.
    fn within(self, from_ms: i64, to_ms: i64) -> i64 {
        let (Some(begin_ms), Some(end_ms)) = (self.from_ms, self.to_ms) else { return 0 };
        (end_ms.min(to_ms) - begin_ms.max(from_ms)).max(0)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    None,
    Begin,
    End,
}

/// An event of a source.
struct NetEvent<'a> {
    entry: Entry<'a>,
    source: NetLogSource,
    /// The source's number.
    id: i64,
    kind: Type,
    phase: Phase,
    at_ms: i64,
    /// Another source that this one depends on.
    depends: Option<(NetLogSource, i64)>,
}

impl NetEvent<'_> {
    /// The carrier of requests that it depends on.
    fn carrier(&self) -> Option<(NetLogSource, i64)> {
        self.depends.filter(|(source, _)| source.carries())
    }

    fn ends(&self, kind: Type) -> bool {
        self.kind == kind && self.phase == Phase::End
    }
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestEnd {
    /// By an event.
    Logged,
    /// With the log.
    Cut,
}

/// A carrier of requests: a socket, or a session over one.
#[derive(Debug, Clone, Default)]
struct Carrier {
    dns: Span,
    tcp: Span,
    tls: Span,
    /// The socket of a session.
    over: Option<i64>,
}

#[derive(Debug, Clone, Default)]
struct Request {
    start_ms: i64,
    url: String,
    carrier: Option<(NetLogSource, i64)>,
    bound_ms: Option<i64>,
    send: Span,
    headers: Span,
    protocol: Option<String>,
    status: Option<u16>,
    raw_bytes: u64,
    bytes: u64,
    sent_bytes: u64,
    last_ms: Option<i64>,
}

/// Reads events.
#[derive(Debug, Default)]
pub(super) struct NetLog {
    types: HashMap<u64, Type>,
    sources: HashMap<u64, NetLogSource>,
    phases: HashMap<u64, Phase>,
    /// Offset from the log's ms to those since 1970.
    offset_ms: i64,
    requests: HashMap<i64, Request>,
    carriers: HashMap<i64, Carrier>,
    jobs: HashMap<i64, (NetLogSource, i64)>,
    /// Lookups of the sources that connect sockets.
    lookups: HashMap<i64, Span>,
    last_ms: i64,
}

impl FormatReader for NetLog {
    fn value(&mut self, path: &str, offset: u64, bytes: &[u8], found: &mut Gathered) {
        match path {
            "constants" => {
                if let Some(value) = parse(bytes, offset, path, found) {
                    self.constants(Entry { value: &value, offset }, found);
                }
            }
            "events[]" => {
                found.log.items += 1;
                if self.types.is_empty() {
                    if found.log.items == 1 {
                        let what = "constants: missing before the events, whose types they name";
                        found.bad(offset, what.into());
                    }
                    return;
                }
                if self.is_of_no_use(bytes) {
                    return;
                }
                if let Some(value) = parse(bytes, offset, path, found) {
                    self.event(Entry { value: &value, offset }, found);
                }
            }
            _ => {}
        }
    }

    fn may_stay_open(&self) -> bool {
        true
    }

    fn finish(&mut self, found: &mut Gathered) {
        let mut open: Vec<(i64, Request)> = self.requests.drain().collect();
        open.sort_by_key(|(id, request)| (request.start_ms, *id));
        for (id, request) in open {
            self.done(id, request, RequestEnd::Cut, found);
        }
        found.log.scale.placed_within_ns = MS_NS;
    }
}

/// The fields parsed first: most events of a log are of no use here.
#[derive(Deserialize)]
struct EventHead {
    #[serde(rename = "type")]
    kind: u64,
    #[serde(default)]
    time: Option<IgnoredAny>,
    #[serde(default)]
    source: Option<IgnoredAny>,
}

impl NetLog {
    /// Whether a whole event is of an unused type without a dependency.
    fn is_of_no_use(&self, bytes: &[u8]) -> bool {
        let head: Result<EventHead, _> = serde_json::from_slice(bytes);
        head.is_ok_and(|head| {
            head.time.is_some()
                && head.source.is_some()
                && self.types.get(&head.kind).is_none_or(|kind| *kind == Type::Other)
                && memchr::memmem::find(bytes, b"source_dependency").is_none()
        })
    }

    fn constants(&mut self, entry: Entry<'_>, found: &mut Gathered) {
        let numbers = |name: &str| {
            let object = entry.get(name).and_then(Value::as_object);
            let pairs = object.into_iter().flatten();
            pairs.filter_map(|(name, number)| Some((number.as_u64()?, name.as_str())))
        };
        self.types = numbers("logEventTypes").map(|(n, name)| (n, Type::of(name))).collect();
        self.sources =
            numbers("logSourceType").map(|(n, name)| (n, NetLogSource::of(name))).collect();
        self.phases = numbers("logEventPhase")
            .map(|(n, name)| match name {
                "PHASE_BEGIN" => (n, Phase::Begin),
                "PHASE_END" => (n, Phase::End),
                _ => (n, Phase::None),
            })
            .collect();
        if self.types.is_empty() {
            found.warn(entry.offset, "constants.logEventTypes: missing".into());
        }
        match entry.number("timeTickOffset", found) {
            Some(ms) if ms.abs() < LARGEST_MS => self.offset_ms = ms as i64,
            _ => found.warn(entry.offset, "constants.timeTickOffset: missing".into()),
        }
        let client = [entry.name("clientInfo.name"), entry.name("clientInfo.version")];
        let words: Vec<String> = client.into_iter().flatten().collect();
        found.log.made_by = Some(words.join(" ")).filter(|words| !words.is_empty());
    }

    /// An event by its numbers; `None` without a time or a source.
    fn parsed<'a>(&self, entry: Entry<'a>, found: &mut Gathered) -> Option<NetEvent<'a>> {
        let number = |path: &str| entry.get(path).and_then(Value::as_u64);
        // Some processes have negative ids.
        let id_at = |path: &str| entry.get(path).and_then(Value::as_i64);
        let source_at = |path: &str| {
            let source = number(path).and_then(|n| self.sources.get(&n)).copied();
            source.unwrap_or(NetLogSource::Other)
        };
        let at_ms = entry.number("time", found).filter(|ms| ms.abs() < LARGEST_MS);
        let (Some(at_ms), Some(id)) = (at_ms, id_at("source.id")) else {
            found.bad(entry.offset, "time or source.id: missing".into());
            return None;
        };
        let phase = number("phase").and_then(|n| self.phases.get(&n)).copied();
        let kind = number("type").and_then(|n| self.types.get(&n)).copied();
        let depends = id_at("params.source_dependency.id")
            .map(|id| (source_at("params.source_dependency.type"), id));
        Some(NetEvent {
            source: source_at("source.type"),
            id,
            kind: kind.unwrap_or(Type::Other),
            phase: phase.unwrap_or(Phase::None),
            at_ms: at_ms as i64,
            depends,
            entry,
        })
    }

    fn event(&mut self, entry: Entry<'_>, found: &mut Gathered) {
        let Some(event) = self.parsed(entry, found) else { return };
        self.last_ms = self.last_ms.max(event.at_ms);
        match event.source {
            NetLogSource::Request => self.of_request(&event, found),
            NetLogSource::Job => {
                if let Some(carrier) = event.carrier() {
                    self.jobs.insert(event.id, carrier);
                }
                if event.ends(Type::JobAlive) {
                    self.jobs.remove(&event.id);
                }
            }
            NetLogSource::Socket | NetLogSource::Http2 | NetLogSource::Quic => {
                self.of_carrier(&event);
            }
            NetLogSource::Other if event.kind == Type::Resolve => {
                self.lookups.entry(event.id).or_default().note(&event);
            }
            NetLogSource::Other => {}
        }
    }

    fn of_carrier(&mut self, event: &NetEvent<'_>) {
        if event.ends(Type::SocketAlive) {
            self.carriers.remove(&event.id);
            return;
        }
        let carrier = self.carriers.entry(event.id).or_default();
        match (event.kind, event.depends) {
            (Type::TcpConnect, _) => carrier.tcp.note(event),
            (Type::TlsConnect, _) => carrier.tls.note(event),
            (Type::SocketAlive, Some((_, job))) => {
                carrier.dns = self.lookups.remove(&job).unwrap_or_default();
            }
            (_, Some((NetLogSource::Socket, socket))) => carrier.over = Some(socket),
            _ => {}
        }
    }

    fn of_request(&mut self, event: &NetEvent<'_>, found: &mut Gathered) {
        let (id, at_ms, entry) = (event.id, event.at_ms, &event.entry);
        match (event.kind, event.phase) {
            (Type::RequestAlive, Phase::End) => {
                if let Some(request) = self.requests.remove(&id) {
                    self.done(id, request, RequestEnd::Logged, found);
                }
                return;
            }
            // A redirected request starts again.
            (Type::StartJob, Phase::Begin) => {
                let is_sent = |request: &&Request| request.send.from_ms.is_some();
                if let Some(before) = self.requests.get(&id).filter(is_sent).cloned() {
                    self.done(id, before, RequestEnd::Logged, found);
                    self.requests.remove(&id);
                }
            }
            _ => {}
        }
        let new = || Request { start_ms: at_ms, ..Request::default() };
        let request = self.requests.entry(id).or_insert_with(new);
        if let Some(url) = entry.get("params.url").and_then(Value::as_str) {
            url.clone_into(&mut request.url);
        }
        if let Some(carrier) = event.carrier() {
            request.carrier = Some(carrier);
            request.bound_ms.get_or_insert(at_ms);
        }
        let count = entry.get("params.byte_count").and_then(Value::as_u64).unwrap_or(0);
        match event.kind {
            Type::BoundToJob => {
                request.bound_ms = Some(at_ms);
                let carrier = event.depends.and_then(|(_, job)| self.jobs.get(&job)).copied();
                request.carrier = carrier.or(request.carrier);
            }
            Type::Send => request.send.note(event),
            Type::SendBody => {
                let bytes = entry.get("params.length").and_then(Value::as_u64);
                request.sent_bytes = bytes.unwrap_or(request.sent_bytes);
            }
            Type::ReadHeaders => {
                request.headers.note(event);
                request.last_ms = Some(at_ms);
            }
            Type::ResponseHeaders => {
                let line = entry.get("params.headers").and_then(|headers| headers.get(0));
                request.answer(line.and_then(Value::as_str).unwrap_or_default());
            }
            Type::RawBytes => {
                request.raw_bytes = request.raw_bytes.saturating_add(count);
                request.last_ms = Some(at_ms);
            }
            Type::Bytes => {
                request.bytes = request.bytes.saturating_add(count);
                request.last_ms = Some(at_ms);
            }
            _ => {}
        }
    }

    /// A request has ended, or the log has.
    fn done(&self, id: i64, request: Request, end: RequestEnd, found: &mut Gathered) {
        let open = end == RequestEnd::Cut;
        let web = request.url.starts_with("http://") || request.url.starts_with("https://");
        let Some(sent_ms) = request.send.from_ms.filter(|_| web) else {
            if web && request.bytes > 0 {
                found.log.from_cache += 1;
            } else {
                found.log.not_transfers += 1;
            }
            return;
        };
        let end_ms = if open { self.last_ms } else { request.last_ms.unwrap_or(sent_ms) };
        let ns = |ms: i64| ms.saturating_add(self.offset_ms).saturating_mul(MS_NS);
        let mut transfer = AppTransfer::new(id.to_string(), ns(request.start_ms), ns(end_ms));
        // The end of the request comes when its last user releases it.
        if open {
            transfer.end_ns = ns(request.last_ms.unwrap_or(self.last_ms));
            transfer.unfinished = true;
        }
        transfer.kind = kind_of_name(&request.url).unwrap_or(transfer.kind);
        let down = if request.raw_bytes > 0 { request.raw_bytes } else { request.bytes };
        let up = request.sent_bytes > down;
        transfer.dir = Some(if up { Direction::Ul } else { Direction::Dl });
        transfer.bytes = Some(if up { request.sent_bytes } else { down });
        let unanswered = request.headers.to_ms.is_none() && !open;
        transfer.error = unanswered.then(|| NO_RESPONSE.to_owned());
        transfer.failed = unanswered || request.status.is_some_and(|status| status >= 400);
        let bound_ms = request.bound_ms.unwrap_or(sent_ms);
        let ready_ms = bound_ms.clamp(request.start_ms, sent_ms.max(request.start_ms));
        if let Some((source, carrier)) = request.carrier {
            transfer.connection = Some(carrier.to_string());
            transfer.protocol = match source {
                NetLogSource::Http2 => Some("h2".to_owned()),
                NetLogSource::Quic => Some("h3".to_owned()),
                _ => request.protocol.clone(),
            };
            let own = self.carriers.get(&carrier);
            let socket = own.and_then(|own| own.over).and_then(|id| self.carriers.get(&id)).or(own);
            if let Some(socket) = socket {
                let within = |span: Span| span.within(request.start_ms, ready_ms) * MS_NS;
                transfer.phases.dns_ns = Some(within(socket.dns));
                transfer.phases.connect_ns = Some(within(socket.tcp));
                transfer.phases.tls_ns = Some(within(socket.tls));
            }
        }
        let setup_ns = transfer.phases.setup_ns().unwrap_or(0);
        transfer.phases.blocked_ns = Some(((sent_ms - request.start_ms) * MS_NS - setup_ns).max(0));
        let send_end_ms = request.send.to_ms.unwrap_or(sent_ms);
        transfer.phases.send_ns = Some((send_end_ms - sent_ms).max(0) * MS_NS);
        if let Some(first_ms) = request.headers.to_ms {
            transfer.phases.wait_ns = Some((first_ms - send_end_ms).max(0) * MS_NS);
            transfer.phases.receive_ns = Some((end_ms - first_ms).max(0) * MS_NS);
        }
        transfer.url = Some(request.url);
        found.transfer(transfer);
    }
}

impl Request {
    /// Takes a status line; Chrome also writes one for HTTP/2 and 3.
    fn answer(&mut self, line: &str) {
        let mut words = line.split(' ');
        let version = words.next().unwrap_or_default();
        if version.starts_with("HTTP/") {
            self.protocol = Some(version.to_ascii_lowercase());
        }
        self.status = words.find_map(|word| word.parse().ok());
    }
}

#[cfg(test)]
mod tests;
