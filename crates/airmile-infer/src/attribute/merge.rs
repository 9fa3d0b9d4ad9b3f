//! All connections of a phone on one time axis.

use super::story::{Held, Reason};

/// Uplink payload is counted in bins of this (chosen here).
const BIN_NS: i64 = 100_000_000;
/// An upload is under way where so much payload passed in [`BUSY_BINS`] bins
/// (chosen here: 160 kbit/s over half a second, above what requests take), up to
/// [`LINGER_BINS`] before: that long it may stay in the phone's queue.
const BUSY_BYTES: u64 = 10_000;
const BUSY_BINS: usize = 5;
const LINGER_BINS: usize = 30;

/// A span of the phone's time, and what it waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// Start in nanoseconds.
    pub from_ns: i64,
    /// End in nanoseconds.
    pub to_ns: i64,
    /// What for.
    pub reason: Reason,
    /// Whether data arrived at its end.
    pub arrives: bool,
    /// Whether data arrived inside of it, too.
    pub many: bool,
}

/// Puts what senders waited for on one axis: each moment goes to what the next
/// packet of any connection waited for.
#[derive(Debug, Clone, Default)]
pub struct Waits {
    spans: Vec<Wait>,
}

impl Waits {
    /// No packets yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { spans: Vec::new() }
    }

    /// Takes what the newest packet waited for, packets in order of time.
    pub fn push(&mut self, held: &[Held]) {
        let (Some(first), Some(last)) = (held.first(), held.last()) else { return };
        let cursor = self.spans.last().map_or(first.from_ns, |span| span.to_ns);
        if last.to_ns <= cursor {
            return;
        }
        if first.from_ns > cursor {
            self.add(cursor, first.from_ns, Reason::Unasked, false);
        }
        for part in held {
            let arrives = part.to_ns == last.to_ns;
            self.add(part.from_ns.max(cursor), part.to_ns, part.reason, arrives);
        }
    }

    fn add(&mut self, from_ns: i64, to_ns: i64, reason: Reason, arrives: bool) {
        if to_ns <= from_ns {
            return;
        }
        match self.spans.last_mut() {
            Some(last) if last.reason == reason && last.to_ns == from_ns => {
                last.many |= last.arrives;
                last.to_ns = to_ns;
                last.arrives = arrives;
            }
            _ => self.spans.push(Wait { from_ns, to_ns, reason, arrives, many: false }),
        }
    }

    /// The same, later: as seen where packets come after `ns`.
    #[must_use]
    pub fn later(mut self, ns: i64) -> Self {
        for span in &mut self.spans {
            span.from_ns = span.from_ns.saturating_add(ns);
            span.to_ns = span.to_ns.saturating_add(ns);
        }
        self
    }

    /// The spans in order, without overlaps.
    #[must_use]
    pub fn spans(&self) -> &[Wait] {
        &self.spans
    }
}

/// When the phone itself sent payload.
#[derive(Debug, Clone, Default)]
pub struct UplinkUse {
    origin: i64,
    bins: Vec<u64>,
}

impl UplinkUse {
    /// Takes payload of the phone, in order of time.
    pub fn add(&mut self, at_ns: i64, bytes: u64) {
        if self.bins.is_empty() {
            self.origin = at_ns.div_euclid(BIN_NS);
        }
        let Ok(bin) = usize::try_from(at_ns.div_euclid(BIN_NS) - self.origin) else { return };
        // A clock that jumps by days must not fill the memory.
        if bin >= self.bins.len() + (1 << 24) {
            return;
        }
        if bin >= self.bins.len() {
            self.bins.resize(bin + 1, 0);
        }
        if let Some(sum) = self.bins.get_mut(bin) {
            *sum += bytes;
        }
    }

    /// Whether an upload was under way in a span or shortly before it.
    #[must_use]
    pub fn is_busy(&self, from_ns: i64, to_ns: i64) -> bool {
        let bin = |ns: i64| usize::try_from(ns.div_euclid(BIN_NS) - self.origin).ok();
        let Some(to) = bin(to_ns) else { return false };
        let from = bin(from_ns).unwrap_or(0).saturating_sub(LINGER_BINS);
        let to = to.saturating_add(1).min(self.bins.len());
        let seen = self.bins.get(from..to).unwrap_or_default();
        seen.windows(BUSY_BINS.min(seen.len()).max(1)).any(|w| w.iter().sum::<u64>() >= BUSY_BYTES)
    }
}
