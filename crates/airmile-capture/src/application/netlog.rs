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
    from: Option<i64>,
    to: Option<i64>,
}

impl Span {
    fn note(&mut self, phase: Phase, at: i64) {
        match phase {
            Phase::Begin => {
                self.from.get_or_insert(at);
            }
            Phase::End if self.from.is_some() => self.to = Some(at),
            _ => {}
        }
    }

    /// Its overlap with two times; zero if it had not ended.
    fn within(self, from: i64, to: i64) -> i64 {
        let (Some(begin), Some(end)) = (self.from, self.to) else { return 0 };
        (end.min(to) - begin.max(from)).max(0)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    None,
    Begin,
    End,
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
    start: i64,
    url: String,
    carrier: Option<(NetLogSource, i64)>,
    bound: Option<i64>,
    send: Span,
    headers: Span,
    protocol: Option<String>,
    status: Option<u16>,
    raw_bytes: u64,
    bytes: u64,
    sent_bytes: u64,
    last: Option<i64>,
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
    last: i64,
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
        open.sort_by_key(|(id, request)| (request.start, *id));
        for (id, request) in open {
            self.done(id, request, true, found);
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

    fn event(&mut self, entry: Entry<'_>, found: &mut Gathered) {
        let number = |path: &str| entry.get(path).and_then(Value::as_u64);
        // Some processes have negative ids.
        let id_at = |path: &str| entry.get(path).and_then(Value::as_i64);
        let at = entry.number("time", found).filter(|ms| ms.abs() < LARGEST_MS);
        let (Some(at), Some(id)) = (at, id_at("source.id")) else {
            found.bad(entry.offset, "time or source.id: missing".into());
            return;
        };
        let at = at as i64;
        self.last = self.last.max(at);
        let source = number("source.type").and_then(|n| self.sources.get(&n)).copied();
        let source = source.unwrap_or(NetLogSource::Other);
        let phase = number("phase").and_then(|n| self.phases.get(&n)).copied();
        let phase = phase.unwrap_or(Phase::None);
        let kind = number("type").and_then(|n| self.types.get(&n)).copied();
        let kind = kind.unwrap_or(Type::Other);
        let depends = id_at("params.source_dependency.id").map(|id| {
            let source = number("params.source_dependency.type");
            let source = source.and_then(|n| self.sources.get(&n)).copied();
            (source.unwrap_or(NetLogSource::Other), id)
        });
        match source {
            NetLogSource::Request => self.of_request(id, kind, phase, at, depends, &entry, found),
            NetLogSource::Job => {
                if let Some(carrier) = depends.filter(|(source, _)| source.carries()) {
                    self.jobs.insert(id, carrier);
                }
                if kind == Type::JobAlive && phase == Phase::End {
                    self.jobs.remove(&id);
                }
            }
            NetLogSource::Socket | NetLogSource::Http2 | NetLogSource::Quic => {
                self.of_carrier(id, kind, phase, at, depends);
            }
            NetLogSource::Other if kind == Type::Resolve => {
                self.lookups.entry(id).or_default().note(phase, at);
            }
            NetLogSource::Other => {}
        }
    }

    fn of_carrier(
        &mut self,
        id: i64,
        kind: Type,
        phase: Phase,
        at: i64,
        depends: Option<(NetLogSource, i64)>,
    ) {
        if kind == Type::SocketAlive && phase == Phase::End {
            self.carriers.remove(&id);
            return;
        }
        let carrier = self.carriers.entry(id).or_default();
        match (kind, depends) {
            (Type::TcpConnect, _) => carrier.tcp.note(phase, at),
            (Type::TlsConnect, _) => carrier.tls.note(phase, at),
            (Type::SocketAlive, Some((_, job))) => {
                carrier.dns = self.lookups.remove(&job).unwrap_or_default();
            }
            (_, Some((NetLogSource::Socket, socket))) => carrier.over = Some(socket),
            _ => {}
        }
    }

    #[allow(clippy::too_many_arguments, reason = "the fields of one event")]
    fn of_request(
        &mut self,
        id: i64,
        kind: Type,
        phase: Phase,
        at: i64,
        depends: Option<(NetLogSource, i64)>,
        entry: &Entry<'_>,
        found: &mut Gathered,
    ) {
        let url = entry.get("params.url").and_then(Value::as_str);
        match (kind, phase) {
            (Type::RequestAlive, Phase::End) => {
                if let Some(request) = self.requests.remove(&id) {
                    self.done(id, request, false, found);
                }
                return;
            }
            // A redirected request starts again.
            (Type::StartJob, Phase::Begin) => {
                let before = self.requests.get(&id).filter(|request| request.send.from.is_some());
                if let Some(before) = before.cloned() {
                    self.done(id, before, false, found);
                    self.requests.remove(&id);
                }
            }
            _ => {}
        }
        let request =
            self.requests.entry(id).or_insert_with(|| Request { start: at, ..Request::default() });
        if let Some(url) = url {
            url.clone_into(&mut request.url);
        }
        if let Some(carrier) = depends.filter(|(source, _)| source.carries()) {
            request.carrier = Some(carrier);
            request.bound.get_or_insert(at);
        }
        let count = entry.get("params.byte_count").and_then(Value::as_u64).unwrap_or(0);
        match kind {
            Type::BoundToJob => {
                request.bound = Some(at);
                let carrier = depends.and_then(|(_, job)| self.jobs.get(&job)).copied();
                request.carrier = carrier.or(request.carrier);
            }
            Type::Send => request.send.note(phase, at),
            Type::SendBody => {
                let bytes = entry.get("params.length").and_then(Value::as_u64);
                request.sent_bytes = bytes.unwrap_or(request.sent_bytes);
            }
            Type::ReadHeaders => {
                request.headers.note(phase, at);
                request.last = Some(at);
            }
            Type::ResponseHeaders => {
                let line = entry.get("params.headers").and_then(|headers| headers.get(0));
                request.answer(line.and_then(Value::as_str).unwrap_or_default());
            }
            Type::RawBytes => {
                request.raw_bytes = request.raw_bytes.saturating_add(count);
                request.last = Some(at);
            }
            Type::Bytes => {
                request.bytes = request.bytes.saturating_add(count);
                request.last = Some(at);
            }
            _ => {}
        }
    }

    /// A request has ended, or the log has.
    fn done(&self, id: i64, request: Request, open: bool, found: &mut Gathered) {
        let web = request.url.starts_with("http://") || request.url.starts_with("https://");
        let Some(sent) = request.send.from.filter(|_| web) else {
            if web && request.bytes > 0 {
                found.log.from_cache += 1;
            } else {
                found.log.not_transfers += 1;
            }
            return;
        };
        let end = if open { self.last } else { request.last.unwrap_or(sent) };
        let ns = |ms: i64| ms.saturating_add(self.offset_ms).saturating_mul(MS_NS);
        let mut transfer = AppTransfer::new(id.to_string(), ns(request.start), ns(end));
        // The end of the request comes when its last user releases it.
        transfer.unfinished = open && request.last.is_none();
        if open {
            transfer.end_ns = ns(request.last.unwrap_or(self.last));
            transfer.unfinished = true;
        }
        transfer.kind = kind_of_name(&request.url).unwrap_or(transfer.kind);
        let down = if request.raw_bytes > 0 { request.raw_bytes } else { request.bytes };
        let up = request.sent_bytes > down;
        transfer.dir = Some(if up { Direction::Ul } else { Direction::Dl });
        transfer.bytes = Some(if up { request.sent_bytes } else { down });
        let unanswered = request.headers.to.is_none() && !open;
        transfer.error = unanswered.then(|| NO_RESPONSE.to_owned());
        transfer.failed = unanswered || request.status.is_some_and(|status| status >= 400);
        let ready = request.bound.unwrap_or(sent).clamp(request.start, sent.max(request.start));
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
                let within = |span: Span| span.within(request.start, ready) * MS_NS;
                transfer.phases.dns_ns = Some(within(socket.dns));
                transfer.phases.connect_ns = Some(within(socket.tcp));
                transfer.phases.tls_ns = Some(within(socket.tls));
            }
        }
        let setup_ns = transfer.phases.setup_ns().unwrap_or(0);
        transfer.phases.blocked_ns = Some(((sent - request.start) * MS_NS - setup_ns).max(0));
        let send_end = request.send.to.unwrap_or(sent);
        transfer.phases.send_ns = Some((send_end - sent).max(0) * MS_NS);
        if let Some(first) = request.headers.to {
            transfer.phases.wait_ns = Some((first - send_end).max(0) * MS_NS);
            transfer.phases.receive_ns = Some((end - first).max(0) * MS_NS);
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
