//! Pauses of one connection's data, after which its sender may restart slow start.

use airmile_wire::compare::{Growth, growth};
use airmile_wire::tcp::{LINUX_MIN_RTO_NS, may_restart_after_ns};

use super::phone::CapturedPhone;
use super::span::{TransferSpan, within};

/// The pauses of one connection.
#[derive(Debug, Default)]
pub(super) struct Pauses {
    last_ns: Option<i64>,
    /// Ends and lengths of those of `LINUX_MIN_RTO_NS` or more, each longer than those before it.
    longer: Vec<(i64, i64)>,
}

impl Pauses {
    /// Takes the time of data.
    pub(super) fn push(&mut self, at_ns: i64) {
        let Some(last_ns) = self.last_ns.replace(at_ns) else { return };
        let pause_ns = at_ns.saturating_sub(last_ns);
        let longest_ns =
            self.longer.last().map_or(LINUX_MIN_RTO_NS.saturating_sub(1), |(_, ns)| *ns);
        if pause_ns > longest_ns {
            self.longer.push((at_ns, pause_ns));
        }
    }

    /// Whether there is any.
    pub(super) const fn any(&self) -> bool {
        !self.longer.is_empty()
    }

    /// First and last data after a pause of a time-out (RFC 5681, 4.1), which is longer on a longer
    /// path.
    pub(super) fn after(&self, rtt_ns: Option<i64>) -> Option<(i64, i64)> {
        let timer_ns = may_restart_after_ns(rtt_ns.unwrap_or(0));
        let (first_ns, _) = self.longer.iter().find(|(_, ns)| *ns >= timer_ns)?;
        Some((*first_ns, self.last_ns?))
    }
}

impl CapturedPhone {
    /// How the rate of a transfer over TCP grew, if its connection had paused.
    #[must_use]
    pub fn growth_after_pause(&self, span: &TransferSpan) -> Option<Growth> {
        if !self.paused_before(span) {
            return None;
        }
        let arrivals = within(&self.arrivals, span.from_ns, span.to_ns);
        let arrivals: Vec<(i64, u64)> =
            arrivals.map(|(at, bytes)| (*at, u64::from(*bytes))).collect();
        growth(&arrivals, self.base_rtt_ns)
    }
}
