//! All connections of a phone on one time axis.

use crate::clocks::ClockLine;

use super::sender_model::{Reason, WaitSpan};

/// Bin width for counting uplink payload (chosen here).
const BIN_NS: i64 = 100_000_000;
/// An upload is in progress if at least this much payload passed in [`BUSY_BINS`] bins
/// (chosen here: 160 kbit/s over half a second, more than requests take), or did up to
/// [`LINGER_BINS`] earlier: it may stay in the phone's queue for that time.
const BUSY_BYTES: u64 = 10_000;
const BUSY_BINS: i64 = 5;
const LINGER_BINS: i64 = 30;

/// A span of the phone's time, and what it waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PhoneWait {
    /// Start in nanoseconds.
    pub from_ns: i64,
    /// End in nanoseconds.
    pub to_ns: i64,
    /// What it waited for.
    pub reason: Reason,
    /// Whether data arrived at its end.
    pub arrives: bool,
    /// Whether data also arrived within it.
    pub many: bool,
}

/// Puts the wait spans of all senders on one axis: each moment belongs to the wait for
/// the next packet of any connection.
#[derive(Debug, Clone, Default)]
pub struct WaitTimeline {
    spans: Vec<PhoneWait>,
}

impl WaitTimeline {
    /// No packets yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { spans: Vec::new() }
    }

    /// Takes the wait spans of the newest packet; packets are in order of time.
    pub fn push(&mut self, held: &[WaitSpan]) {
        let (Some(first), Some(last)) = (held.first(), held.last()) else { return };
        let cursor = self.spans.last().map_or(first.from_ns, |span| span.to_ns);
        if last.to_ns <= cursor {
            return;
        }
        if first.from_ns > cursor {
            self.add(cursor, first.from_ns, Reason::NoRequest, false);
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
            _ => self.spans.push(PhoneWait { from_ns, to_ns, reason, arrives, many: false }),
        }
    }

    /// The same, `ns` later: as seen by a receiver at that distance.
    #[must_use]
    pub fn later(mut self, ns: i64) -> Self {
        for span in &mut self.spans {
            span.from_ns = span.from_ns.saturating_add(ns);
            span.to_ns = span.to_ns.saturating_add(ns);
        }
        self
    }

    /// Moves the times to the reference clock of `line`.
    pub fn set_clock(&mut self, line: &ClockLine) {
        for span in &mut self.spans {
            span.from_ns = line.to_reference(span.from_ns);
            span.to_ns = line.to_reference(span.to_ns);
        }
    }

    /// Appends a later timeline; returns `false` if it is not later.
    pub fn append(&mut self, other: &Self) -> bool {
        let end = self.spans.last().map(|span| span.to_ns);
        let later =
            other.spans.first().is_none_or(|span| end.is_none_or(|end| span.from_ns >= end));
        if later {
            self.spans.extend_from_slice(&other.spans);
        }
        later
    }

    /// The spans that overlap a time range.
    pub fn touching(&self, from_ns: i64, to_ns: i64) -> impl Iterator<Item = &PhoneWait> {
        let first = self.spans.partition_point(|span| span.to_ns <= from_ns);
        self.spans.iter().skip(first).take_while(move |span| span.from_ns < to_ns)
    }

    /// The spans in order, without overlaps.
    #[must_use]
    pub fn spans(&self) -> &[PhoneWait] {
        &self.spans
    }
}

/// Bytes by time, in bins of a tenth of a second; empty bins are left out.
#[derive(Debug, Clone, Default)]
pub struct ByteBins {
    bins: Vec<(i64, u64)>,
}

impl ByteBins {
    /// Takes bytes, in order of time.
    pub fn add(&mut self, at_ns: i64, bytes: u64) {
        let bin = at_ns.div_euclid(BIN_NS);
        match self.bins.last_mut() {
            _ if bytes == 0 => {}
            Some((last, sum)) if *last >= bin => *sum += bytes,
            _ => self.bins.push((bin, bytes)),
        }
    }

    /// Appends later bins.
    pub fn append(&mut self, other: &Self) {
        self.bins.extend_from_slice(&other.bins);
    }

    /// Moves the times to the reference clock of `line`, at bin resolution.
    pub fn set_clock(&mut self, line: &ClockLine) {
        let old = std::mem::take(&mut self.bins);
        for (bin, bytes) in old {
            self.add(line.to_reference(bin.saturating_mul(BIN_NS)), bytes);
        }
    }

    /// Bytes of the bins that touch a span.
    #[must_use]
    pub fn within(&self, from_ns: i64, to_ns: i64) -> u64 {
        let (from, to) = (from_ns.div_euclid(BIN_NS), to_ns.div_euclid(BIN_NS));
        let first = self.bins.partition_point(|(bin, _)| *bin < from);
        let seen = self.bins.iter().skip(first).take_while(|(bin, _)| *bin <= to);
        seen.map(|(_, bytes)| bytes).sum()
    }

    /// For a phone's own payload: whether an upload was in progress in a span or shortly
    /// before it.
    #[must_use]
    pub fn is_busy(&self, from_ns: i64, to_ns: i64) -> bool {
        let (from, to) = (from_ns.div_euclid(BIN_NS) - LINGER_BINS, to_ns.div_euclid(BIN_NS));
        let first = self.bins.partition_point(|(bin, _)| *bin < from);
        let seen = self.bins.get(first..).unwrap_or_default();
        let seen = seen.get(..seen.partition_point(|(bin, _)| *bin <= to)).unwrap_or_default();
        (0..seen.len()).any(|at| {
            let window = seen.get(at..).unwrap_or_default();
            let until = window.first().map_or(0, |(bin, _)| bin + BUSY_BINS);
            let sum: u64 =
                window.iter().take_while(|(bin, _)| *bin < until).map(|(_, bytes)| bytes).sum();
            sum >= BUSY_BYTES
        })
    }
}
