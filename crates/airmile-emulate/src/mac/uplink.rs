//! The uplink shared channel of a phone: scheduling requests, buffer status
//! reports, grants, and blocks.

use std::collections::VecDeque;

use airmile_model::Modulation;

use super::{Harq, Transmission};
use super::{LEAST_BLOCK_BYTES, MacFormat, MacPdu, SHORT_BSR_BYTES};
use crate::phy::Frame;
use crate::phy::{Fading, LinkAdaptation, Mcs, McsLadder, linear};
use crate::random::{Owner, Process, Random};
use crate::rlc::RlcEnd;
use crate::scenario::{LinkConfig, LinkTrace, MAX_TRANSMISSIONS, Scenario, UplinkConfig};
use std::sync::Arc;

/// TTIs from a transmission to the base station's reaction (chosen here: as from a grant to
/// its transmission, TS 36.213, 8).
const NOTICE_TTIS: i64 = 4;

/// Bytes granted on a scheduling request, whose need is unknown (chosen here: holds a
/// buffer status report and a TCP acknowledgement).
const SR_GRANT_BYTES: u64 = 80;

/// retxBSR-Timer (TS 36.331, MAC-MainConfig: the minimum, sf320).
const BSR_RETX_TTIS: i64 = 320;

/// Information on its way to the base station about the phone's buffer.
#[derive(Debug, Clone, Copy)]
enum Notice {
    /// A scheduling request, sent in a TTI.
    Request { sent: i64 },
    /// A BSR of this many bytes, sent in a TTI.
    Report { bytes: u64, sent: i64 },
}

/// A block sent by the phone in a TTI.
#[derive(Debug)]
pub(crate) struct UplinkBlock {
    pub(crate) transmission: Transmission,
    pub(crate) n_prb: u16,
    pub(crate) tbs_bytes: u32,
    pub(crate) modulation: Modulation,
    /// Its contents, at the first transmission.
    pub(crate) built: Option<MacPdu>,
    /// Index of its BSR, at the first transmission.
    pub(crate) bsr_index: Option<u8>,
    pub(crate) departed_bytes: u32,
    /// The PDU received by the base station, if any.
    pub(crate) received: Option<MacPdu>,
}

/// The assignment of a grant.
#[derive(Debug, Clone, Copy)]
struct Assigned {
    n_prb: u16,
    mcs: Mcs,
}

#[derive(Debug, Clone)]
struct UplinkPayload {
    pdu: MacPdu,
    bsr: Option<(i64, u8)>,
}

/// The phone's uplink.
#[derive(Debug, Clone)]
pub(crate) struct Uplink {
    config: UplinkConfig,
    frame: Frame,
    trace: Option<Arc<LinkTrace>>,
    fading: Fading,
    adaptation: LinkAdaptation,
    /// The last TTI, and the last whose channel was computed: the channel advances with the
    /// clock, but is only computed on demand.
    now: i64,
    known: i64,
    harq: Harq<UplinkPayload>,
    format: MacFormat,
    blocks: Random,
    /// Grants in transit, by TTI of transmission.
    grants: VecDeque<(i64, Assigned)>,
    /// Bytes of recent grants by TTI of transmission.
    granted: VecDeque<(i64, u64)>,
    /// Last TTI that was granted.
    last_granted: i64,
    /// The base station's estimate of the phone's buffer.
    believed_bytes: u64,
    notices: VecDeque<(i64, Notice)>,
    bsr: BsrState,
}

/// The phone's side of buffer status reporting (TS 36.321, 5.4.5).
#[derive(Debug, Clone)]
struct BsrState {
    /// A BSR is triggered and not cancelled.
    triggered: bool,
    /// A scheduling request is pending (5.4.4): a regular BSR had no grant.
    request: bool,
    /// Whether data was waiting when the last TTI ended.
    had_data: bool,
    /// periodicBSR-Timer; 0: infinity.
    period_ttis: u32,
    /// Expiry of periodicBSR-Timer and retxBSR-Timer.
    periodic_due: Option<i64>,
    retx_due: Option<i64>,
}

impl BsrState {
    const fn new(period_ttis: u32) -> Self {
        Self {
            triggered: false,
            request: false,
            had_data: false,
            period_ttis,
            periodic_due: None,
            retx_due: None,
        }
    }

    /// Starts a TTI, with data waiting or not, and with a grant or not.
    fn tick(&mut self, tti: i64, has_data: bool, granted: bool) {
        let due = |timer: Option<i64>| timer.is_some_and(|due| due <= tti);
        if due(self.periodic_due) {
            self.periodic_due = None;
            self.triggered = true;
        }
        // Regular BSR: data for an empty buffer, or no grant for a long time.
        if has_data && (!self.had_data || due(self.retx_due)) {
            self.triggered = true;
            self.request |= !granted;
        }
        if due(self.retx_due) {
            self.retx_due = None;
        }
    }

    /// A block for new data is built, with a BSR in it, or with all waiting data.
    fn on_block(&mut self, tti: i64, reported: bool, emptied: bool) {
        if reported && self.period_ttis > 0 {
            self.periodic_due = Some(tti + i64::from(self.period_ttis));
        }
        if reported || emptied {
            self.triggered = false;
            self.request = false;
        }
    }
}

impl Uplink {
    /// The uplink of a user with the radio link `link`.
    pub(crate) fn new(scenario: &Scenario, link: &LinkConfig, owner: Owner, frame: Frame) -> Self {
        let first_tti = frame.first_tti();
        let random = owner.random(scenario.seed, Process::UlFading);
        let link = frame.scaled_link(link);
        let fading = Fading::new(link.ul_snr_mean_db, &link, first_tti, random);
        let adaptation = LinkAdaptation::new(
            McsLadder::uplink(scenario.cell.nr),
            link.bler_target,
            fading.snr_db(),
        );
        Self {
            config: scenario.uplink.clone(),
            trace: link.ul_trace.clone(),
            fading,
            adaptation,
            now: first_tti - 1,
            known: first_tti - 1,
            harq: Harq::new(frame.harq_round_trip_ttis(), MAX_TRANSMISSIONS),
            format: MacFormat::of_cell(scenario.cell.nr),
            blocks: owner.random(scenario.seed, Process::UlBlocks),
            grants: VecDeque::new(),
            granted: VecDeque::new(),
            last_granted: first_tti - i64::from(scenario.uplink.grant_every_tti),
            believed_bytes: 0,
            notices: VecDeque::new(),
            bsr: BsrState::new(scenario.uplink.bsr_period_tti),
            frame,
        }
    }

    /// Marks the channel of a TTI as current, connected or not.
    pub(crate) const fn observe(&mut self, tti: i64) {
        self.now = tti;
    }

    /// Computes the channel up to the present TTI.
    fn catch_up(&mut self) {
        while self.known < self.now {
            self.known += 1;
            self.fading.advance(self.known);
            self.adaptation.observe(self.known, self.fading.snr_db());
        }
    }

    /// Simulates the phone's part of a TTI, which must be [observed](Self::observe) first;
    /// `phone` is its end of the bearer. The base station's [`grant`](Self::grant) follows.
    pub(crate) fn step(&mut self, tti: i64, phone: &mut RlcEnd) -> Option<UplinkBlock> {
        self.take_notices(tti);
        let granted = self.grants.front().is_some_and(|(at, _)| *at <= tti);
        self.bsr.tick(tti, buffer_bytes(phone, tti) > 0, granted);
        let sent = if self.frame.is_uplink(tti) {
            self.request(tti);
            self.transmit(tti, phone)
        } else {
            None
        };
        self.bsr.had_data = buffer_bytes(phone, tti) > 0;
        sent
    }

    /// The deviation of the channel from its mean, in dB.
    #[cfg(test)]
    pub(crate) fn fade_db(&self) -> f64 {
        let mut now = self.clone();
        now.catch_up();
        now.fading.fade_db()
    }

    /// Whether a scheduling request is pending.
    pub(crate) const fn requests(&self) -> bool {
        self.bsr.request
    }

    /// PRB pairs of a retransmission in a TTI.
    pub(crate) fn taken_prb(&self, at: i64) -> u16 {
        self.harq.retx_prb_at(at)
    }

    /// The MCS of the phone in a TTI.
    fn mcs(&self, at: i64) -> Mcs {
        match &self.trace {
            Some(trace) => {
                let bytes =
                    trace.bytes_at(self.frame.run_ms(at)) / self.frame.slots_per_ms() as u32;
                self.adaptation.replayed(bytes, self.config.max_prb)
            }
            None => self.adaptation.mcs(0.0),
        }
    }

    /// Bytes that the phone could have sent in a TTI on all PRB pairs that it may be given.
    pub(crate) fn capacity_bytes(&mut self, tti: i64) -> u32 {
        if !self.frame.is_uplink(tti) {
            return 0;
        }
        self.catch_up();
        let most = self.config.max_prb;
        self.mcs(tti).tbs_bytes(self.format.uplink_prb(most, most))
    }

    /// The base station processes arrived information.
    fn take_notices(&mut self, tti: i64) {
        while let Some(&(due, notice)) = self.notices.front()
            && due <= tti
        {
            self.notices.pop_front();
            self.believed_bytes = match notice {
                // A phone that was granted a TTI since then can send a BSR there.
                Notice::Request { sent } if self.granted.iter().any(|(at, _)| *at > sent) => {
                    self.believed_bytes
                }
                Notice::Request { .. } => self.believed_bytes.max(SR_GRANT_BYTES),
                Notice::Report { bytes, sent } => {
                    let since = self.granted.iter().filter(|(at, _)| *at > sent);
                    bytes.saturating_sub(since.map(|(_, bytes)| bytes).sum())
                }
            };
        }
        self.granted.retain(|(at, _)| *at > tti - 2 * self.frame.harq_round_trip_ttis());
    }

    /// Sends scheduling requests while one is pending (TS 36.321, 5.4.4; sr-ProhibitTimer
    /// 0).
    fn request(&mut self, tti: i64) {
        if self.bsr.request && self.is_sr_occasion(tti) {
            self.notices.push_back((tti + NOTICE_TTIS, Notice::Request { sent: tti }));
        }
    }

    /// The first uplink TTI of each period.
    fn is_sr_occasion(&self, tti: i64) -> bool {
        let period = i64::from(self.config.sr_period_ms) * self.frame.slots_per_ms();
        let since = tti.rem_euclid(period);
        !(tti - since..tti).any(|earlier| self.frame.is_uplink(earlier))
    }

    /// The base station grants the TTI `at`, with at most `free_prb` PRB pairs; returns the
    /// PRB pairs granted. Uplink HARQ is synchronous: the TTI determines the process, and a
    /// retransmission has priority (TS 36.213, 8).
    pub(crate) fn grant(&mut self, tti: i64, at: i64, free_prb: u16) -> u16 {
        let spaced = at - self.last_granted >= i64::from(self.config.grant_every_tti);
        let most = self.config.max_prb.min(free_prb);
        let process = self.harq.of_tti(at);
        if self.believed_bytes == 0
            || !spaced
            || most == 0
            || !self.frame.is_uplink(at)
            || !self.harq.is_free(process, at)
        {
            return 0;
        }
        self.catch_up();
        let mcs = self.mcs(at);
        // Headers: MAC 3, BSR 2, RLC 2 and some length indicators.
        let wanted = self.believed_bytes + 16;
        let n_prb = self.format.uplink_prb(mcs.prbs_for(wanted, most), most);
        let tbs_bytes = mcs.tbs_bytes(n_prb);
        if tbs_bytes < LEAST_BLOCK_BYTES {
            // Other users, or a trace, may leave more at another time; a whole grant that
            // is too small stays so.
            if most == self.config.max_prb && self.trace.is_none() {
                self.believed_bytes = 0;
            }
            return 0;
        }
        self.grants.push_back((at, Assigned { n_prb, mcs }));
        self.granted.push_back((at, tbs_bytes.into()));
        self.last_granted = at;
        // The phone receives the grant and starts retxBSR-Timer (TS 36.321, 5.4.5).
        self.bsr.retx_due = Some(tti + BSR_RETX_TTIS);
        self.believed_bytes = self.believed_bytes.saturating_sub(tbs_bytes.into());
        n_prb
    }

    fn transmit(&mut self, tti: i64, phone: &mut RlcEnd) -> Option<UplinkBlock> {
        let (id, mut sent) = match self.harq.due(tti) {
            Some(id) => (id, None),
            None => {
                let assigned = self.grants.front().filter(|(at, _)| *at <= tti)?.1;
                self.grants.pop_front();
                let id = self.harq.of_tti(tti);
                (id, Some(self.start(id, assigned, tti, phone)))
            }
        };
        let block = self.harq.block(id)?;
        let (n_prb, tbs_bytes, modulation) = (block.n_prb, block.tbs_bytes, block.mcs.modulation);
        self.catch_up();
        let snr = linear(self.fading.snr_db());
        let blocks = &mut self.blocks;
        let (transmission, gone) = self.harq.transmit(id, tti, snr, |bler| blocks.chance(bler))?;
        if !transmission.retx {
            self.adaptation.learn(transmission.crc_ok);
        }
        let received = gone.filter(|_| transmission.crc_ok).map(|block| block.body);
        match received.as_ref().map(|carried| carried.bsr) {
            Some(Some((sent, index))) => {
                // More than 150000: counts as the table's last bound.
                let bytes = self.format.bsr_bytes(index).unwrap_or(150_000).into();
                self.notices.push_back((tti + NOTICE_TTIS, Notice::Report { bytes, sent }));
            }
            // A full block without a report may have left data waiting: without another
            // small grant the phone would wait for retxBSR-Timer (base station
            // implementations differ; chosen here).
            Some(None) => {
                self.notices.push_back((tti + NOTICE_TTIS, Notice::Request { sent: tti }));
            }
            None => {}
        }
        let built = sent.take();
        Some(UplinkBlock {
            transmission,
            n_prb,
            tbs_bytes,
            modulation,
            departed_bytes: built.as_ref().map_or(0, |carried| carried.pdu.departed_bytes()),
            bsr_index: built.as_ref().and_then(|carried| carried.bsr).map(|(_, index)| index),
            built: built.map(|carried| carried.pdu),
            received: received.map(|carried| carried.pdu),
        })
    }

    /// The phone fills a granted block: with a triggered BSR, unless all data fits only
    /// without it; otherwise with a padding BSR if there is room (TS 36.321, 5.4.5).
    fn start(
        &mut self,
        id: usize,
        Assigned { n_prb, mcs }: Assigned,
        tti: i64,
        phone: &mut RlcEnd,
    ) -> UplinkPayload {
        let tbs_bytes = mcs.tbs_bytes(n_prb);
        let RlcEnd { sender, receiver } = phone;
        let wanted_bytes = sender.wanted_bytes() + u64::from(receiver.status_bytes(tti));
        let fits = |control_bytes: u32| wanted_bytes + u64::from(control_bytes) <= tbs_bytes.into();
        let report = self.bsr.triggered && (fits(SHORT_BSR_BYTES) || !fits(0));
        let control = if report { vec![self.format.short_bsr()] } else { Vec::new() };
        let pdu = MacPdu::fill(self.format, tbs_bytes, control, receiver, sender, tti, true);
        let left_bytes = buffer_bytes(phone, tti);
        let bsr = pdu.has_bsr().then(|| (tti, self.format.bsr_index(left_bytes)));
        self.bsr.on_block(tti, bsr.is_some(), left_bytes == 0);
        if bsr.is_some() {
            self.bsr.retx_due = Some(tti + BSR_RETX_TTIS);
        }
        let carried = UplinkPayload { pdu, bsr };
        self.harq.load(id, carried.clone(), mcs, n_prb);
        carried
    }
}

/// Bytes available for transmission at the phone (TS 36.322, 4.5).
fn buffer_bytes(phone: &RlcEnd, tti: i64) -> u64 {
    phone.sender.queue_bytes() + u64::from(phone.receiver.status_bytes(tti))
}

/// The next size at or above `n_prb` with only the factors 2, 3 and 5 (TS 36.211, 5.3.3);
/// the last one up to `most` if there is none above.
pub(super) fn transform_size(n_prb: u16, most: u16) -> u16 {
    let is_size = |n: &u16| {
        let mut n = *n;
        for factor in [2, 3, 5] {
            while n.is_multiple_of(factor) {
                n /= factor;
            }
        }
        n == 1
    };
    (n_prb.max(1)..=most).find(is_size).or_else(|| (1..=most).rev().find(is_size)).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bsrs_are_triggered_as_5_4_5_says() {
        let mut bsr = BsrState::new(5);
        let state = |bsr: &BsrState| (bsr.triggered, bsr.request);
        bsr.tick(0, false, false);
        assert_eq!(state(&bsr), (false, false));
        // Data for an empty buffer without a grant: a request, until a BSR is sent.
        bsr.tick(1, true, false);
        assert_eq!(state(&bsr), (true, true));
        bsr.had_data = true;
        bsr.on_block(9, true, false);
        bsr.retx_due = Some(9 + BSR_RETX_TTIS);
        // More data for a non-empty buffer triggers no BSR.
        bsr.tick(10, true, false);
        assert_eq!(state(&bsr), (false, false));
        // A periodic BSR requests no grant.
        bsr.tick(14, true, false);
        assert_eq!(state(&bsr), (true, false));
        bsr.on_block(14, false, true);
        assert_eq!(state(&bsr), (false, false));
        // No more grants arrive.
        bsr.tick(9 + BSR_RETX_TTIS, true, false);
        assert_eq!(state(&bsr), (true, true));
        // periodicBSR-Timer may be infinity.
        let mut bsr = BsrState::new(0);
        bsr.had_data = true;
        bsr.on_block(0, true, false);
        bsr.tick(2_560, true, false);
        assert_eq!(state(&bsr), (false, false));
    }

    #[test]
    fn sizes_and_indexes() {
        assert_eq!([1, 7, 11, 13, 20].map(|n| transform_size(n, 20)), [1, 8, 12, 15, 20]);
        assert_eq!(transform_size(7, 7), 6);
        assert_eq!(
            [0, 1, 10, 11, 150_000, 150_001].map(|bytes| MacFormat::Lte.bsr_index(bytes)),
            [0, 1, 1, 2, 62, 63]
        );
    }
}
