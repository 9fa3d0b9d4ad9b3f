//! A transfer on the time axis, and what an application noted down meanwhile.

use airmile_model::{ApplicationLog, PlayerEvent, PlayerEventKind, TtiIndex};

use super::{Answer, EvidenceItem, TransferDiagnosis, bits_per_s, item, ms, plural};

/// Where a transfer is, by time and by TTI.
pub(super) struct Place {
    start_ns: i64,
    end_ns: i64,
    pub(super) whole: (TtiIndex, TtiIndex),
}

impl Place {
    pub(super) fn of(transfer: &TransferDiagnosis, answer: &Answer) -> Self {
        let finding = &transfer.finding;
        let whole = (finding.start_tti, finding.end_tti);
        let times = finding.start_us.zip(finding.end_us);
        let unplaced = || {
            let mut all = answer.applications.iter().flat_map(|app| &app.log.transfers);
            let own = all.find(|own| answer.alone && own.id == transfer.id)?;
            Some((own.start_ns, own.end_ns))
        };
        let by_time =
            times.map(|(from, to)| (from.saturating_mul(1_000), to.saturating_mul(1_000)));
        let (start_ns, end_ns) = by_time.or_else(unplaced).unwrap_or((0, 0));
        Self { start_ns, end_ns, whole }
    }

    /// Whether a time lies in it, in part.
    pub(super) const fn touches(&self, from_ns: i64, to_ns: i64) -> bool {
        from_ns < self.end_ns && to_ns > self.start_ns
    }

    fn tti(&self, ns: i64) -> TtiIndex {
        let n_tti = self.whole.1.since(self.whole.0) as f64;
        let length = self.end_ns.saturating_sub(self.start_ns).max(1) as f64;
        let share = ns.saturating_sub(self.start_ns) as f64 / length;
        TtiIndex(self.whole.0.0 + (share.clamp(0.0, 1.0) * n_tti) as i64)
    }

    /// What a player noted down meanwhile; gives its stalls, and their ms inside.
    pub(super) fn player(
        &self,
        events: &[PlayerEvent],
        evidence: &mut Vec<EvidenceItem>,
    ) -> (u64, f64) {
        let (mut n, mut stalled_ns, mut first) = (0_u64, 0, None);
        let (mut switches, mut bps) = (0_u64, None);
        let mut least: Option<f64> = None;
        for event in events {
            let inside = event.at_ns >= self.start_ns && event.at_ns < self.end_ns;
            match event.kind {
                PlayerEventKind::Stall => {
                    let long_ns = (event.value.unwrap_or(0.0) * 1e6) as i64;
                    let end_ns = event.at_ns.saturating_add(long_ns);
                    if inside || self.touches(event.at_ns, end_ns) {
                        let (from, to) = (event.at_ns.max(self.start_ns), end_ns.min(self.end_ns));
                        n += 1;
                        stalled_ns += to.saturating_sub(from).max(0);
                        first.get_or_insert((from, to.max(from)));
                    }
                }
                PlayerEventKind::Switch if inside => {
                    switches += 1;
                    bps = event.value;
                }
                PlayerEventKind::Buffer if inside => {
                    least = event.value.map(|ms| least.map_or(ms, |l| l.min(ms))).or(least);
                }
                _ => {}
            }
        }
        let stalled_ms = ms(stalled_ns);
        if let Some((from, to)) = first {
            let what = format!(
                "the picture stood still for {stalled_ms:.0} ms of it ({n} stall{})",
                plural(n)
            );
            let range = (self.tti(from), self.tti(to));
            evidence.push(item(what, Some(stalled_ms), "ms", range));
        }
        if let Some(bps) = bps {
            let what = format!(
                "the player changed its bitrate meanwhile ({switches} time{}), to {:.2} Mbit/s",
                plural(switches),
                bps / 1e6
            );
            evidence.push(item(what, Some(bps), "bit/s", self.whole));
        }
        if let Some(ms) = least {
            let what = format!("least in the player's buffer meanwhile: {:.1} s", ms / 1e3);
            evidence.push(item(what, Some(ms), "ms", self.whole));
        }
        (n, stalled_ms)
    }

    /// Rates per second meanwhile, of a speed test or a connection.
    pub(super) fn rates(&self, log: &ApplicationLog, evidence: &mut Vec<EvidenceItem>) {
        let inside = |from: i64, to: i64| self.touches(from, to);
        let longest_ns = log
            .rates
            .iter()
            .map(|rate| rate.end_ns.saturating_sub(rate.start_ns))
            .max()
            .unwrap_or(0);
        // The last interval of a test is what is left of a second.
        let rates: Vec<_> = log
            .rates
            .iter()
            .filter(|rate| rate.end_ns.saturating_sub(rate.start_ns) >= longest_ns / 2)
            .filter(|rate| inside(rate.start_ns, rate.end_ns))
            .collect();
        let bps = rates
            .iter()
            .map(|rate| bits_per_s(rate.bytes, rate.end_ns.saturating_sub(rate.start_ns)));
        let (Some(least), Some(most)) = (bps.clone().reduce(f64::min), bps.reduce(f64::max)) else {
            return;
        };
        let mut what = format!(
            "per second {:.2} to {:.2} Mbit/s by the application's log",
            least / 1e6,
            most / 1e6
        );
        let retransmits: Option<u64> =
            rates.iter().filter_map(|rate| rate.retransmits).reduce(|a, b| a.saturating_add(b));
        if let Some(n) = retransmits {
            what.push_str(&format!("; {n} segments lost or sent again"));
        }
        let rtts: Vec<f64> = rates.iter().filter_map(|rate| rate.rtt_us).collect();
        let bounds = (rtts.iter().copied().reduce(f64::min), rtts.iter().copied().reduce(f64::max));
        if let (Some(least), Some(most)) = bounds {
            what.push_str(&format!("; round trips {:.0} to {:.0} ms", least / 1e3, most / 1e3));
        }
        evidence.push(item(what, Some(least), "bit/s", self.whole));
    }
}
