//! Layouts of the maps shared with bpf/claw.bpf.c.

use std::net::IpAddr;

use airmile_control::claw::feedback::{FeedbackReport, OPTION_BYTES};
use airmile_control::claw::{Bottleneck, ClawOptions};

use super::{ClientNetwork, as_ipv6};

/// `struct config`.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Config {
    pub(super) netns_cookie: u64,
    pub(super) claw: ClawOptions,
    pub(super) clients: Option<ClientNetwork>,
    /// Local and remote port of the probe.
    pub(super) probe: (u16, u16),
    pub(super) serves: bool,
    pub(super) reports: bool,
    pub(super) measures: bool,
}

impl Config {
    pub(super) fn bytes(&self) -> Vec<u8> {
        let limits = self.claw.limits;
        let ns = |ns: i64| ns.max(0).unsigned_abs();
        let mut out = Vec::new();
        for long in [
            self.netns_cookie,
            limits.window_bytes,
            limits.rate_bps / 8,
            ns(self.claw.stale_ns),
            ns(self.claw.idle_hold_ns),
            ns(self.claw.distrust_ns),
        ] {
            out.extend_from_slice(&long.to_ne_bytes());
        }
        let words = [self.claw.stale_round_trips, self.claw.full_round_trips];
        words.iter().for_each(|word| out.extend_from_slice(&word.to_ne_bytes()));
        let clients = self.clients.unwrap_or(ClientNetwork { address: 0, mask: 0 });
        // In network byte order on both sides.
        out.extend_from_slice(&clients.address.to_be_bytes());
        out.extend_from_slice(&clients.mask.to_be_bytes());
        let flags = [self.serves, self.reports, self.measures, false].map(u32::from);
        let ports = [u32::from(self.probe.0), u32::from(self.probe.1)];
        ports.iter().chain(&flags).for_each(|word| out.extend_from_slice(&word.to_ne_bytes()));
        out
    }
}

/// `struct address`.
pub(super) fn address(address: IpAddr) -> [u8; 16] {
    as_ipv6(address).octets()
}

/// `struct feedback` of a client, from its reports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ClientFeedback {
    w_bytes: u64,
    pub(super) received_ns: u64,
    in_force_ns: u64,
    full_since_ns: u64,
    radio_losses: u32,
    queue_losses: u32,
    bottleneck: u32,
    idle: bool,
}

impl ClientFeedback {
    /// Processes a report at a time of the monotonic clock (as `Claw::on_feedback`).
    pub(super) fn ingest(&mut self, now_ns: u64, report: &FeedbackReport, full_from_load: f64) {
        // An idle radio reports nothing about the cell: the previous values remain valid.
        if !report.idle || self.received_ns == 0 {
            let since = if self.full_since_ns > 0 { self.full_since_ns } else { now_ns };
            self.full_since_ns = if report.load >= full_from_load { since } else { 0 };
            self.w_bytes = report.w_claw_bytes.into();
            self.in_force_ns = now_ns;
            self.bottleneck = match report.bottleneck {
                Bottleneck::Cellular => 0,
                Bottleneck::Wireline => 1,
                Bottleneck::Unclear => 2,
            };
        }
        self.received_ns = now_ns;
        self.idle = report.idle;
        (self.radio_losses, self.queue_losses) = (report.radio_losses, report.queue_losses);
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let longs = [self.w_bytes, self.received_ns, self.in_force_ns, self.full_since_ns];
        let words = [self.radio_losses, self.queue_losses, self.bottleneck, u32::from(self.idle)];
        let longs = longs.iter().flat_map(|long| long.to_ne_bytes());
        longs.chain(words.iter().flat_map(|word| word.to_ne_bytes())).collect()
    }
}

/// `struct option`.
pub(super) fn option(bytes: [u8; OPTION_BYTES], now_ns: u64) -> Vec<u8> {
    bytes.into_iter().chain(now_ns.to_ne_bytes()).collect()
}

/// A quantile of times from a histogram with steps of 16 ns.
pub(super) fn quantile_ns(counts: &[u64], share: f64) -> Option<u64> {
    let all: u64 = counts.iter().sum();
    let wanted = (all as f64 * share).ceil().max(1.0) as u64;
    let mut so_far = 0;
    let step = counts.iter().position(|count| {
        so_far += count;
        so_far >= wanted
    });
    // The middle of the step.
    step.map(|step| step as u64 * 16 + 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_as_many_as_the_other_side_has() {
        assert_eq!(Config::default().bytes().len(), 48 + 8 + 32 + 24);
        assert_eq!(ClientFeedback::default().bytes().len(), 48);
        assert_eq!(option([0; 8], 1).len(), 16);
    }

    #[test]
    fn reports_come_into_force() {
        let mut client = ClientFeedback::default();
        let mut ingest = |now_ns: u64, load: f64, idle: bool| {
            let report = FeedbackReport {
                w_claw_bytes: now_ns as u32,
                load,
                idle,
                ..FeedbackReport::default()
            };
            client.ingest(now_ns, &report, 0.95);
            (client.w_bytes, client.received_ns, client.in_force_ns, client.full_since_ns)
        };
        assert_eq!(ingest(1, 0.5, false), (1, 1, 1, 0));
        assert_eq!(ingest(2, 0.95, false), (2, 2, 2, 2));
        assert_eq!(ingest(3, 1.0, false), (3, 3, 3, 2));
        assert_eq!(ingest(4, 0.0, true), (3, 4, 3, 2));
        assert_eq!(ingest(5, 0.9, false), (5, 5, 5, 0));
    }

    #[test]
    fn quantiles_by_hand() {
        assert_eq!(quantile_ns(&[0, 0], 0.5), None);
        assert_eq!(quantile_ns(&[1, 1, 2], 0.5), Some(24));
        assert_eq!(quantile_ns(&[1, 1, 2], 0.51), Some(40));
        assert_eq!(quantile_ns(&[1, 0, 0], 0.99), Some(8));
    }
}
