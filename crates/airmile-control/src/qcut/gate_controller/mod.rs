//! Combines queues, gate and evidence.

mod state;

use serde::{Deserialize, Serialize};

use super::autorate::{Autorate, AutorateConfig};
use super::class::{PacketInfo, Tier};
use super::delay::{DelayConfig, HandoverMark, RoundTripEstimator};
use super::estimate::{EstimateConfig, Estimator, ModemReport, ReportCounts};
use super::gate::Limit;
use super::log_quality::LogQuality;
use super::passive::{AckMatcher, AnsweredSegment};
use super::queue::{DropReason, FlowQueues, MTU_BYTES, PassingFlows, QueueConfig, QueueCounts};
use super::rate::transmission_time_ns;

pub use state::{GateState, OPEN_BYTES_PER_S};

/// Evidence of how much the modem holds.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum BufferEvidence {
    /// The modem's reports; round trips while it is silent.
    #[default]
    Modem,
    /// Round trips alone.
    RoundTrips,
    /// Round trips of probes that set the rate of a shaper ([`Autorate`]): the baseline.
    Autorate,
    /// None: only the queueing is active, whatever waits below it.
    Nothing,
}

/// Parameters.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct QcutConfig {
    /// How much the modem may hold.
    pub limit: Limit,
    /// Evidence of how much it holds.
    pub evidence: BufferEvidence,
    /// Queueing above the gate.
    pub queue: QueueConfig,
    /// The estimate from the modem's reports.
    pub estimate: EstimateConfig,
    /// The estimate from round trips.
    pub delay: DelayConfig,
    /// Parameters of the baseline.
    pub autorate: AutorateConfig,
}

/// A modem that holds data and has reported nothing for this time is silent, in ns (chosen
/// here: two and a half of the slowest log's batches, 40 ms).
const SILENT_NS: i64 = 100_000_000;

/// A silence up to this long, in ns, may end at any time (chosen here).
const SHORT_SILENCE_NS: i64 = 2_500_000_000;

/// After the last urgent packet, more are expected for this time, in ns (chosen here: some
/// round trips, as in a page load).
const AWAITED_NS: i64 = 300_000_000;

/// Without any evidence the rate is this fraction of the last known one, and at least this
/// many bytes per second (chosen here: a large packet every 100 ms).
const TRICKLE_SHARE: u64 = 4;
const MIN_TRICKLE_BYTES_PER_S: u64 = 15_000;

/// Whatever the evidence shows, a packet passes after this time, in ns: no report can shut
/// the gate for good (chosen here).
const SHUT_NS: i64 = 1_000_000_000;

/// How often the gate checks a limit that time alone may open, in ns: from a TTI to a log's batch.
const MIN_WAIT_NS: i64 = 1_000_000;
const MAX_WAIT_NS: i64 = 10_000_000;

/// A probe to send: small, and ahead of waiting packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProbeId(pub u64);

/// Maximum number of remembered probes.
const MAX_PROBES: usize = 64;

/// The uplink's gate with the queueing above it; `P` is the packet type.
#[derive(Debug, Clone)]
pub struct Qcut<P> {
    config: QcutConfig,
    queues: FlowQueues<(PacketInfo, P)>,
    estimator: Estimator,
    returns: RoundTripEstimator,
    passive: AckMatcher,
    passing: PassingFlows,
    autorate: Autorate,
    quality: LogQuality,
    /// Since when, at the latest, the modem has had data and sent no report.
    unreported_since_ns: Option<i64>,
    /// When a report was last used.
    reported_ns: Option<i64>,
    /// When a packet was last passed to the modem.
    handed_ns: i64,
    /// Destination of the last packet: probes are assumed to share its path.
    far: u64,
    /// When a packet of a sparse flow last arrived during a bulk transfer.
    awaited_ns: Option<i64>,
    probes: std::collections::VecDeque<(ProbeId, i64, HandoverMark)>,
    next_probe: u64,
    probed_ns: Option<i64>,
    silences: u64,
    was_unheard: bool,
    /// Whether the modem has ever reported its buffer.
    reports_buffer: bool,
}

impl<P> Qcut<P> {
    /// A gate before the first packet.
    #[must_use]
    pub fn new(config: QcutConfig) -> Self {
        Self {
            queues: FlowQueues::new(config.queue.clone()),
            estimator: Estimator::new(config.estimate.clone()),
            returns: RoundTripEstimator::new(config.delay.clone()),
            passive: AckMatcher::default(),
            passing: PassingFlows::default(),
            autorate: Autorate::new(config.autorate.clone()),
            quality: LogQuality::default(),
            config,
            unreported_since_ns: None,
            reported_ns: None,
            handed_ns: i64::MIN,
            far: 0,
            awaited_ns: None,
            probes: std::collections::VecDeque::new(),
            next_probe: 0,
            probed_ns: None,
            silences: 0,
            was_unheard: false,
            reports_buffer: false,
        }
    }

    /// Queues a packet.
    pub fn push(&mut self, now_ns: i64, info: PacketInfo, packet: P) {
        if self.queues.push(now_ns, &info, (info, packet)) {
            self.awaited_ns = Some(now_ns);
        }
    }

    /// Processes a report of the modem.
    pub fn report(&mut self, now_ns: i64, report: ModemReport) {
        self.estimator.set_starved(self.is_awaited(now_ns));
        if let Some((_, path_ns)) = self.returns.round_trips_ns() {
            self.quality.compare(now_ns, path_ns, &mut self.estimator);
        }
        let before = self.estimator.counts();
        // Data sent during a silence is not in the log: the buffer is known again with its
        // next report.
        let is_anchor = matches!(report, ModemReport::Waiting { .. });
        let ends_silence = is_anchor || !self.reports_buffer || !self.is_silent(now_ns);
        self.estimator.push(now_ns, report);
        let counts = self.estimator.counts();
        // A report without new information is ignored. With the gate shut, no packet will
        // trigger the next one.
        if counts.used > before.used && ends_silence {
            self.reports_buffer |= is_anchor;
            let is_shut = self.likely_bytes(now_ns) >= self.limit_bytes(now_ns);
            self.unreported_since_ns = is_shut.then_some(now_ns);
            self.reported_ns = Some(now_ns);
        }
        if self.returns.has_oracle() {
            let sought = self.estimator.sought_bytes_per_s(now_ns);
            self.returns.set_oracle_rates(self.estimator.bytes_per_s(), sought);
        }
        if self.config.evidence == BufferEvidence::Modem {
            self.quality.note_report(now_ns, report, counts.bad > before.bad);
            self.queues.set_rate(self.estimator.bytes_per_s());
        }
    }

    /// A TCP acknowledgement of an uplink flow arrived: `ack` is its number, or the end of
    /// its last SACK block (RFC 2018).
    pub fn acknowledged(&mut self, now_ns: i64, flow: u64, ack: u32) {
        if let Some(segment) = self.passive.acknowledged(flow, ack) {
            self.answered(now_ns, segment);
        }
    }

    /// A probe was answered.
    pub fn probe_answered(&mut self, now_ns: i64, probe: ProbeId) {
        let Some(at) = self.probes.iter().position(|(id, ..)| *id == probe) else { return };
        let Some((_, handed_ns, mark)) = self.probes.remove(at) else { return };
        if self.config.evidence == BufferEvidence::Autorate {
            self.autorate.answered(now_ns, now_ns.saturating_sub(handed_ns));
            self.queues.set_rate(self.autorate.bytes_per_s());
        }
        self.answered(now_ns, AnsweredSegment { handed_ns: Some(handed_ns), mark, far: self.far });
    }

    fn answered(&mut self, now_ns: i64, segment: AnsweredSegment) {
        self.returns.set_starved(self.is_awaited(now_ns));
        let AnsweredSegment { handed_ns, mark, far } = segment;
        match handed_ns {
            Some(handed_ns) => self.returns.answered(now_ns, handed_ns, mark, far),
            None => self.returns.returned(now_ns, mark),
        }
        self.quality.answered(now_ns, self.returns.returned_bytes());
        if self.config.evidence == BufferEvidence::RoundTrips {
            self.queues.set_rate(self.returns.bytes_per_s());
        }
    }

    /// A packet bypassed the queues to the modem: a caller that shapes elsewhere, by the
    /// rate from [`held`](Self::held), reports it here.
    pub fn passed(&mut self, now_ns: i64, info: &PacketInfo) {
        let bytes_per_s = self.bytes_per_s(now_ns);
        let is_sparse = self.passing.note(now_ns, (info.flow, info.bytes), bytes_per_s);
        if is_sparse && self.config.queue.classes.tier(info) != Tier::Background {
            self.awaited_ns = Some(now_ns);
        }
        self.pass(now_ns, info);
    }

    /// A packet goes to the modem.
    fn pass(&mut self, now_ns: i64, info: &PacketInfo) {
        let mark = self.hand_over(now_ns, info.bytes);
        // A probe carries no user data: it does not keep the gate shut for longer.
        self.handed_ns = now_ns;
        self.far = info.far;
        if let Some(end) = info.tcp_end {
            self.passive.handed(now_ns, (info.flow, info.far), end, mark);
        }
    }

    /// The next packet for the modem, if the gate is open.
    pub fn poll(&mut self, now_ns: i64) -> Option<P> {
        if self.queues.is_empty() || !self.is_open(now_ns) {
            return None;
        }
        let (info, packet) = self.queues.pop(now_ns)?;
        self.pass(now_ns, &info);
        Some(packet)
    }

    /// A probe to send now, past the queues: [`Self::PROBE_BYTES`] long. With round trips
    /// as the only evidence, probes are sent only without acknowledgements.
    pub fn poll_probe(&mut self, now_ns: i64) -> Option<ProbeId> {
        let due = match self.config.evidence {
            BufferEvidence::Autorate => self.autorate.poll_probe(now_ns),
            BufferEvidence::RoundTrips => self.wants_probe(now_ns),
            BufferEvidence::Modem => {
                (self.is_unheard(now_ns) || self.quality.is_rejected()) && self.wants_probe(now_ns)
            }
            BufferEvidence::Nothing => false,
        };
        if !due {
            return None;
        }
        let probe = ProbeId(self.next_probe);
        self.next_probe += 1;
        self.probed_ns = Some(now_ns);
        let mark = self.hand_over(now_ns, Self::PROBE_BYTES);
        self.probes.push_back((probe, now_ns, mark));
        if self.probes.len() > MAX_PROBES {
            self.probes.pop_front();
        }
        Some(probe)
    }

    /// Bytes of a probe's IP packet (an ICMP echo with 56 bytes of data, as ping's).
    pub const PROBE_BYTES: u32 = 84;

    /// A packet that the queueing dropped, and the reason.
    pub fn poll_dropped(&mut self) -> Option<(DropReason, P)> {
        self.queues.poll_dropped().map(|(reason, (_, packet))| (reason, packet))
    }

    /// When to [`poll`](Self::poll) again at the latest if no packet, report or answer
    /// arrives before; `None`: time alone changes nothing.
    #[must_use]
    pub fn poll_timeout(&mut self, now_ns: i64) -> Option<i64> {
        let probe = match self.config.evidence {
            BufferEvidence::Autorate => self.autorate.probe_due_ns(),
            _ => None,
        };
        let gate = (!self.queues.is_empty()).then(|| self.opens_ns(now_ns));
        [probe, gate].into_iter().flatten().min()
    }

    /// Shuts the gate down: returns the waiting packets in order, for the caller to send.
    pub fn finish(&mut self) -> impl Iterator<Item = P> + '_ {
        self.queues.drain().map(|(_, packet)| packet)
    }

    /// Packet counts.
    #[must_use]
    pub const fn counts(&self) -> QueueCounts {
        self.queues.counts()
    }

    /// Packet counts of a tier.
    #[must_use]
    pub const fn counts_of(&self, tier: Tier) -> QueueCounts {
        self.queues.counts_of(tier)
    }

    /// Counts of the modem's reports by their outcome.
    #[must_use]
    pub const fn reports(&self) -> ReportCounts {
        self.estimator.counts()
    }

    /// How often the modem became silent.
    #[must_use]
    pub const fn silences(&self) -> u64 {
        self.silences
    }

    /// How often the modem's log was rejected.
    #[must_use]
    pub const fn log_rejections(&self) -> u64 {
        self.quality.rejections()
    }

    /// Current state of the gate.
    #[must_use]
    pub fn held(&self, now_ns: i64) -> GateState {
        GateState {
            occupancy: self.estimator.occupancy(now_ns),
            unanswered_bytes: self.returns.occupancy_bytes(),
            limit_bytes: self.limit_bytes(now_ns),
            bytes_per_s: self.bytes_per_s(now_ns),
            round_trips_ns: self.returns.round_trips_ns(),
            silent: self.is_silent(now_ns),
            log_fault: self.quality.fault(),
            blind: self.is_blind(now_ns),
        }
    }

    fn hand_over(&mut self, now_ns: i64, bytes: u32) -> HandoverMark {
        if self.unreported_since_ns.is_none() {
            self.unreported_since_ns = Some(now_ns);
        }
        self.estimator.hand_over(now_ns, bytes);
        self.autorate.hand_over(now_ns, bytes);
        self.returns.hand_over(now_ns, bytes)
    }

    /// Whether one more packet may pass to the modem.
    fn is_open(&mut self, now_ns: i64) -> bool {
        let (silent, unheard) = (self.is_silent(now_ns), self.is_unheard(now_ns));
        self.silences += u64::from(unheard && !self.was_unheard);
        self.was_unheard = unheard;
        match self.config.evidence {
            BufferEvidence::Nothing => true,
            BufferEvidence::Autorate => self.autorate.next_ns() <= now_ns,
            _ if now_ns.saturating_sub(self.handed_ns) >= SHUT_NS => true,
            BufferEvidence::Modem if !silent => {
                self.likely_bytes(now_ns) < self.limit_bytes(now_ns)
            }
            BufferEvidence::Modem | BufferEvidence::RoundTrips => {
                let limit_bytes = self.limit_bytes(now_ns);
                if self.is_blind(now_ns) {
                    return true;
                }
                if self.is_lost(now_ns) {
                    return self.trickle_ns() <= now_ns;
                }
                self.returns.has_room(now_ns, limit_bytes)
            }
        }
    }

    /// The modem's occupancy by its reports, less acknowledged bytes.
    fn likely_bytes(&self, now_ns: i64) -> u64 {
        let likely_bytes = self.estimator.occupancy(now_ns).likely_bytes;
        match self.returns.round_trips_ns() {
            Some(_) => likely_bytes.min(self.returns.outstanding_bytes()),
            None => likely_bytes,
        }
    }

    /// Whether the modem has held data for long without a usable report.
    fn is_unheard(&self, now_ns: i64) -> bool {
        let silent_ns = SILENT_NS.max(self.estimator.gap_ns() / 2 * 5);
        let since_ns = self.unreported_since_ns;
        self.config.evidence == BufferEvidence::Modem
            && since_ns.is_some_and(|since| now_ns.saturating_sub(since) >= silent_ns)
    }

    /// Whether round trips replace the modem's log. Without any, a poor log is used.
    fn is_silent(&self, now_ns: i64) -> bool {
        self.is_unheard(now_ns) || (self.quality.is_rejected() && !self.is_lost(now_ns))
    }

    /// The rate for a limit from round trips. A modem that has just become silent usually
    /// reports again soon: until then it does not probe for more, as the minimum round trip
    /// already includes the time to a grant.
    fn round_trip_rate(&self, now_ns: i64) -> u64 {
        let is_short_silence = self.config.evidence == BufferEvidence::Modem
            && !self.quality.is_rejected()
            && self.reported_ns.is_some_and(|at| now_ns.saturating_sub(at) < SHORT_SILENCE_NS);
        if is_short_silence {
            self.returns.bytes_per_s()
        } else {
            self.returns.sought_bytes_per_s(now_ns)
        }
    }

    /// Whether there is no evidence from round trips either.
    fn is_lost(&self, now_ns: i64) -> bool {
        let round_trip_ns = self.returns.round_trips_ns().map_or(0, |(last, _)| last);
        self.returns.silent_for_ns(now_ns) > SILENT_NS.max(round_trip_ns.saturating_mul(4))
    }

    /// Whether both modem and round trips have given no evidence for so long that no host
    /// answers: then nothing is held back, as without the gate.
    fn is_blind(&self, now_ns: i64) -> bool {
        let give_up_ns = self.config.delay.give_up_ns;
        let is_deaf = match self.config.evidence {
            BufferEvidence::RoundTrips => true,
            BufferEvidence::Modem => self.unreported_since_ns.is_some_and(|since| {
                now_ns.saturating_sub(self.reported_ns.map_or(since, |at| at.max(since)))
                    > give_up_ns
            }),
            BufferEvidence::Autorate | BufferEvidence::Nothing => false,
        };
        is_deaf && self.returns.silent_for_ns(now_ns) > give_up_ns
    }

    /// When the next packet may pass without any evidence.
    fn trickle_ns(&self) -> i64 {
        let rate = self.estimator.bytes_per_s().max(self.returns.bytes_per_s()) / TRICKLE_SHARE;
        let wait_ns = transmission_time_ns(MTU_BYTES.into(), rate.max(MIN_TRICKLE_BYTES_PER_S));
        self.handed_ns.saturating_add(wait_ns)
    }

    fn wants_probe(&self, now_ns: i64) -> bool {
        let after_ns = self.config.delay.probe_after_ns;
        self.returns.silent_for_ns(now_ns) >= after_ns
            && self.probed_ns.is_none_or(|at| now_ns.saturating_sub(at) >= after_ns)
    }

    fn bytes_per_s(&self, now_ns: i64) -> u64 {
        match self.config.evidence {
            BufferEvidence::Autorate => self.autorate.bytes_per_s(),
            BufferEvidence::Modem if !self.is_silent(now_ns) => self.estimator.bytes_per_s(),
            _ => self.returns.bytes_per_s(),
        }
    }

    /// Whether packets of sparse flows are waiting.
    fn is_awaited(&self, now_ns: i64) -> bool {
        self.awaited_ns.is_some_and(|at| now_ns.saturating_sub(at) < AWAITED_NS)
    }

    fn limit_bytes(&self, now_ns: i64) -> u64 {
        let is_bulk = self.is_awaited(now_ns) && !self.queues.is_next_sparse();
        if is_bulk && self.config.evidence != BufferEvidence::Autorate {
            let short_bytes_per_s = match self.config.evidence {
                BufferEvidence::Modem if !self.is_silent(now_ns) => {
                    self.estimator.short_bytes_per_s()
                }
                _ => None,
            };
            return self.config.limit.short_bytes(self.bytes_per_s(now_ns), short_bytes_per_s);
        }
        let (limit, largest_bytes) = (self.config.limit, self.estimator.largest_block_bytes());
        match self.config.evidence {
            BufferEvidence::Modem if !self.is_silent(now_ns) => {
                let modem = &self.estimator;
                let (short, mean) = (modem.short_bytes_per_s(), modem.mean_bytes_per_s());
                limit.bytes(modem.sought_bytes_per_s(now_ns), largest_bytes, short, mean)
            }
            BufferEvidence::Autorate => {
                limit.bytes(self.autorate.bytes_per_s(), largest_bytes, None, 0)
            }
            _ => limit.bytes_by_round_trips(self.round_trip_rate(now_ns), largest_bytes),
        }
    }

    /// When the gate may open by time alone.
    fn opens_ns(&mut self, now_ns: i64) -> i64 {
        if self.is_open(now_ns) {
            return now_ns;
        }
        let wait_ns = match self.config.evidence {
            BufferEvidence::Autorate => self.autorate.next_ns().saturating_sub(now_ns),
            BufferEvidence::Modem if !self.is_silent(now_ns) => {
                let limit_bytes = self.limit_bytes(now_ns);
                let excess = self.likely_bytes(now_ns).saturating_sub(limit_bytes) + 1;
                transmission_time_ns(excess, self.estimator.bytes_per_s())
            }
            _ => MIN_WAIT_NS,
        };
        now_ns.saturating_add(wait_ns.clamp(MIN_WAIT_NS, MAX_WAIT_NS))
    }
}

#[cfg(test)]
mod tests;
