//! Transfers as spans of time.

/// By default a pause between an answer and the next request ends a transfer (chosen here, as
/// in `airmile-radio`'s `detect`).
pub(super) const PAUSE_NS: i64 = 500_000_000;

/// The transport of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TransportKind {
    /// TCP with time stamps: continuous round-trip samples.
    Stamped,
    /// TCP without time stamps: queues are not visible.
    Plain,
    /// Datagrams: only arrivals are visible.
    Datagrams,
}

/// A transfer to the phone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransferSpan {
    /// Its request, or the connection's first packet, in nanoseconds.
    pub from_ns: i64,
    /// Its last data, in nanoseconds.
    pub to_ns: i64,
    /// Payload.
    pub bytes: u64,
    /// Its transport.
    pub transport: TransportKind,
}

impl TransferSpan {
    /// Its duration, in nanoseconds.
    #[must_use]
    pub const fn ns(&self) -> i64 {
        self.to_ns.saturating_sub(self.from_ns)
    }
}

/// The entries of a list in a span, both ends included.
pub(super) fn within<T>(
    list: &[(i64, T)],
    from_ns: i64,
    to_ns: i64,
) -> impl Iterator<Item = &(i64, T)> {
    let first = list.partition_point(|(at, _)| *at < from_ns);
    list.iter().skip(first).take_while(move |(at, _)| *at <= to_ns)
}

/// Merges spans that overlap or follow each other without a pause of this length. The transport of most
/// of the bytes decides.
pub(super) fn joined(mut spans: Vec<TransferSpan>, pause_ns: i64) -> Vec<TransferSpan> {
    spans.sort_by_key(|span| (span.from_ns, span.to_ns));
    let mut out: Vec<TransferSpan> = Vec::new();
    let mut most = 0;
    for span in spans {
        match out.last_mut() {
            Some(last) if span.from_ns <= last.to_ns.saturating_add(pause_ns) => {
                if span.bytes > most {
                    (most, last.transport) = (span.bytes, span.transport);
                }
                last.to_ns = last.to_ns.max(span.to_ns);
                last.bytes = last.bytes.saturating_add(span.bytes);
            }
            _ => {
                most = span.bytes;
                out.push(span);
            }
        }
    }
    out
}
