//! The downlink shared channel of a carrier: its users, the scheduling of a TTI, and the
//! outcome of blocks. ScheduledUser 0 is the measured phone; users with bearers come first,
//! users with byte traffic after them.

use std::sync::Arc;

use airmile_model::Modulation;

use super::Bearer;
use crate::mac::Backlog;
use crate::mac::{Block, Harq, Transmission};
use crate::mac::{Candidate, PrbAllocation, Scheduler, rbg_prb};
use crate::mac::{LEAST_BLOCK_BYTES, MacFormat, MacPdu};
use crate::phy::Frame;
use crate::phy::{Fading, LinkAdaptation, Mcs, McsLadder, Subbands, is_cqi_occasion, linear};
use crate::random::{Owner, Process, Random};
use crate::scenario::{Competing, LinkConfig, LinkTrace, NrConfig, SchedulerKind};
use crate::user::UserId;

/// TTIs between two timing advance commands (chosen here, below the timers of
/// TS 36.331, TimeAlignmentTimer).
const TIMING_ADVANCE_PERIOD_TTIS: i64 = 640;

/// Spread of the other users' mean SNR around the phone's, in dB (chosen here).
const OTHERS_SPREAD_DB: f64 = 8.0;

#[derive(Debug, Clone)]
struct ScheduledUser {
    fading: Fading,
    adaptation: LinkAdaptation,
    subbands: Option<Subbands>,
    trace: Option<Arc<LinkTrace>>,
    harq: Harq<MacPdu>,
    /// Absent: the bytes are in the user's bearer.
    backlog: Option<Backlog>,
    blocks: Random,
}

/// A block sent to a user in a TTI.
#[derive(Debug)]
pub(crate) struct DownlinkBlock {
    pub(crate) user: usize,
    pub(crate) transmission: Transmission,
    pub(crate) n_prb: u16,
    pub(crate) tbs_bytes: u32,
    pub(crate) modulation: Modulation,
    pub(crate) layers: u8,
    /// RLC data bytes that left the queue.
    pub(crate) departed_bytes: u32,
    /// The PDU received by the user, if the block was received.
    pub(crate) received: Option<MacPdu>,
}

/// Configuration of a carrier.
#[derive(Debug)]
pub(crate) struct CarrierSetup<'a> {
    pub(crate) seed: u64,
    pub(crate) frame: Frame,
    pub(crate) first_tti: i64,
    /// 0 is the primary carrier.
    pub(crate) carrier: u64,
    pub(crate) n_prb: u16,
    /// For NR carriers.
    pub(crate) nr: Option<NrConfig>,
    pub(crate) scheduler: SchedulerKind,
    /// Maximum transmissions of a block.
    pub(crate) harq_transmissions: u8,
    /// The users with bearers, with their links.
    pub(crate) links: &'a [(Owner, LinkConfig)],
    pub(crate) competing: &'a [Competing],
}

/// The downlink of a carrier.
#[derive(Debug, Clone)]
pub(crate) struct Downlink {
    frame: Frame,
    n_prb: u16,
    format: MacFormat,
    users: Vec<ScheduledUser>,
    bearers: usize,
    scheduler: Scheduler,
    /// All resource block groups, if their quality is modelled.
    groups: Vec<u16>,
    capacity_bytes: u32,
    /// For each user with a bearer.
    next_timing_advance: Vec<i64>,
}

impl Downlink {
    pub(crate) fn new(setup: &CarrierSetup) -> Self {
        let first = &setup.links[0].1;
        let mut users = Vec::new();
        for (owner, link) in setup.links {
            users.push(ScheduledUser::new(setup, owner.on_carrier(setup.carrier), link, 0.0, None));
        }
        for (owner, kind) in owners_of(setup.competing, setup.carrier) {
            let place = owner.random(setup.seed, Process::Place).uniform();
            let spread_db = (place - 0.5) * OTHERS_SPREAD_DB;
            users.push(ScheduledUser::new(setup, owner, first, spread_db, Some(kind)));
        }
        let bearers = setup.links.len();
        let groups = match setup.scheduler {
            SchedulerKind::PfFrequency => (0..setup.n_prb.div_ceil(rbg_prb(setup.n_prb))).collect(),
            _ => Vec::new(),
        };
        let scheduler =
            Scheduler::new(setup.scheduler, setup.n_prb, users.len(), setup.frame.slots_per_ms());
        Self {
            frame: setup.frame,
            n_prb: setup.n_prb,
            format: MacFormat::of_cell(setup.nr),
            users,
            bearers,
            scheduler,
            groups,
            capacity_bytes: 0,
            next_timing_advance: vec![setup.first_tti + TIMING_ADVANCE_PERIOD_TTIS; bearers],
        }
    }

    /// The deviation of a user's channel from its mean, in dB.
    pub(crate) fn fade_db(&self, user: UserId) -> f64 {
        self.users[user.index()].fading.fade_db()
    }

    pub(crate) const fn n_prb(&self) -> u16 {
        self.n_prb
    }

    /// Quality of a resource block group for a user, relative to that.
    #[cfg(test)]
    pub(crate) fn offset_db(&self, user: usize, group: u16) -> f64 {
        self.users[user].offset_db(&[group])
    }

    /// Bytes that the phone could have received in the last TTI on all PRB pairs.
    pub(crate) const fn capacity_bytes(&self) -> u32 {
        self.capacity_bytes
    }

    /// Number of users.
    pub(crate) const fn users(&self) -> usize {
        self.users.len()
    }

    /// Number of users with bearers, which come first.
    pub(crate) const fn bearers(&self) -> usize {
        self.bearers
    }

    /// Simulates a TTI; returns the blocks sent.
    pub(crate) fn step(&mut self, tti: i64, bearers: &mut [Bearer]) -> Vec<DownlinkBlock> {
        let reports = is_cqi_occasion(tti);
        for (n, user) in self.users.iter_mut().enumerate() {
            // Independent of scheduling: a channel does not depend on its use. For users
            // with byte traffic it stays as last reported.
            if n < self.bearers || reports {
                user.fading.advance(tti);
            }
            user.adaptation.observe(tti, user.fading.snr_db());
            if reports && let Some(subbands) = &mut user.subbands {
                subbands.renew(tti, &user.adaptation, self.n_prb);
            }
            if let Some(backlog) = &mut user.backlog
                && tti % self.frame.slots_per_ms() == 0
            {
                backlog.arrive(self.frame.ms(tti));
            }
        }
        self.capacity_bytes = 0;
        if !self.frame.is_downlink(tti) {
            return Vec::new();
        }
        // Before link adaptation learns the outcome of this TTI.
        let phone_mcs =
            self.users[UserId::MEASURED.index()].mcs(&self.groups, self.frame, tti, self.n_prb);
        self.capacity_bytes = phone_mcs.tbs_bytes(self.n_prb);
        let allocations = self.allocate(tti, bearers);
        let mut out = Vec::with_capacity(allocations.len());
        for allocation in allocations {
            let n = allocation.user;
            let control = self.control(n, tti);
            let bearer = if n < self.bearers { Some(&mut bearers[n]) } else { None };
            let mcs = self.users[n].mcs(&allocation.groups, self.frame, tti, self.n_prb);
            let Some(sent) =
                self.users[n].send(&allocation, mcs, tti, bearer, (self.format, &control))
            else {
                continue;
            };
            if !sent.transmission.retx && !control.is_empty() {
                self.next_timing_advance[n] = tti + TIMING_ADVANCE_PERIOD_TTIS;
            }
            out.push(sent);
        }
        // Only the first successful reception counts: failed transmissions deliver nothing.
        let arrived = out.iter().filter(|sent| sent.transmission.crc_ok);
        let served: Vec<(usize, u32)> = arrived.map(|sent| (sent.user, sent.tbs_bytes)).collect();
        self.scheduler.account(&served);
        out
    }

    fn allocate(&mut self, tti: i64, bearers: &[Bearer]) -> Vec<PrbAllocation> {
        let mut candidates = Vec::new();
        for (n, user) in self.users.iter().enumerate() {
            let wanted = match &user.backlog {
                Some(backlog) => backlog.bytes(),
                None => {
                    let Some(bearer) = bearers.get(n).filter(|b| b.rrc.monitors_pdcch(tti)) else {
                        continue;
                    };
                    let control = usize::from(tti >= self.next_timing_advance[n]);
                    bearer.dl_wants(tti, control)
                }
            };
            candidates.extend(user.candidate(n, wanted, tti, self.frame, self.n_prb));
        }
        self.scheduler.allocate(&candidates)
    }

    /// MAC control elements that are due for a user.
    fn control(&self, n: usize, tti: i64) -> Vec<u8> {
        let due = self.next_timing_advance.get(n).is_some_and(|&next| tti >= next);
        if due { vec![self.format.timing_advance()] } else { Vec::new() }
    }
}

/// The users with byte traffic, identified by kind and by number within the kind.
fn owners_of(competing: &[Competing], carrier: u64) -> impl Iterator<Item = (Owner, &Competing)> {
    let before = move |at: usize, kind: &Competing| -> u16 {
        let same = competing[..at].iter().filter(|other| other.kind() == kind.kind());
        same.map(Competing::users).sum()
    };
    let each = competing.iter().enumerate();
    each.flat_map(move |(at, kind)| {
        let first = before(at, kind);
        (first..first + kind.users()).map(move |number| {
            let name = format!("competing {} {number}", kind.kind());
            (Owner::named(&name).on_carrier(carrier), kind)
        })
    })
}

impl ScheduledUser {
    fn new(
        setup: &CarrierSetup,
        owner: Owner,
        link: &LinkConfig,
        spread_db: f64,
        competing: Option<&Competing>,
    ) -> Self {
        let link = setup.frame.scaled_link(link);
        let random = |process| owner.random(setup.seed, process);
        let mean_db = link.snr_mean_db + spread_db;
        let fading = Fading::new(mean_db, &link, setup.first_tti, random(Process::DlFading));
        let adaptation =
            LinkAdaptation::new(McsLadder::downlink(setup.nr), link.bler_target, fading.snr_db());
        let first_ms = setup.frame.ms(setup.first_tti);
        let backlog = competing.map(|kind| Backlog::new(kind, first_ms, random(Process::Backlog)));
        let subbands = (setup.scheduler == SchedulerKind::PfFrequency).then(|| {
            let groups = setup.n_prb.div_ceil(rbg_prb(setup.n_prb));
            let random = random(Process::Subbands);
            Subbands::new(groups, link.subband_sigma_db, link.fading_coherence_ms, random)
        });
        Self {
            fading,
            adaptation,
            subbands,
            trace: link.dl_trace.clone().filter(|_| competing.is_none()),
            harq: Harq::new(setup.frame.harq_round_trip_ttis(), setup.harq_transmissions),
            backlog,
            blocks: random(Process::DlBlocks),
        }
    }

    /// The candidate for a TTI with `wanted` bytes waiting.
    fn candidate(
        &self,
        n: usize,
        wanted: u64,
        tti: i64,
        frame: Frame,
        n_prb_cell: u16,
    ) -> Option<Candidate<'_>> {
        let retx_prb = self.harq.due(tti).and_then(|id| self.harq.block(id)).map(|b| b.n_prb);
        if wanted == 0 && retx_prb.is_none() {
            return None;
        }
        let mcs = self.mcs(&[], frame, tti, n_prb_cell);
        let holds_one = mcs.tbs_bytes(n_prb_cell) >= LEAST_BLOCK_BYTES;
        let can_start = wanted > 0 && holds_one && self.harq.free(tti).is_some();
        let need_prb = if can_start {
            let n_prb = mcs.prbs_for(wanted.max(LEAST_BLOCK_BYTES.into()), n_prb_cell);
            n_prb.next_multiple_of(rbg_prb(n_prb_cell)).min(n_prb_cell)
        } else {
            0
        };
        let rate_bytes = f64::from(mcs.tbs_bytes(n_prb_cell));
        let group_rates = self.subbands.as_ref().map_or(&[][..], Subbands::rates);
        (retx_prb.is_some() || need_prb > 0).then_some(Candidate {
            user: n,
            retx_prb,
            need_prb,
            rate_bytes,
            group_rates,
        })
    }

    /// The MCS of a block on some resource block groups (empty: all).
    fn mcs(&self, groups: &[u16], frame: Frame, tti: i64, n_prb: u16) -> Mcs {
        if let Some(trace) = &self.trace {
            let bytes = trace.bytes_at(frame.run_ms(tti)) / frame.slots_per_ms() as u32;
            return self.adaptation.replayed(bytes, n_prb);
        }
        self.adaptation.mcs(self.offset_db(groups))
    }

    /// Quality of some resource block groups relative to the carrier, in dB.
    fn offset_db(&self, groups: &[u16]) -> f64 {
        self.subbands.as_ref().map_or(0.0, |subbands| subbands.offset_db(groups))
    }

    /// Sends a block on the allocated PRBs; `None` if they cannot hold a useful block.
    fn send(
        &mut self,
        allocation: &PrbAllocation,
        mcs: Mcs,
        tti: i64,
        bearer: Option<&mut Bearer>,
        (format, control): (MacFormat, &[u8]),
    ) -> Option<DownlinkBlock> {
        let id = if allocation.retx {
            self.harq.due(tti)?
        } else {
            self.start(allocation.n_prb, mcs, tti, bearer, (format, control))?
        };
        let block = self.harq.block(id)?;
        let (n_prb, tbs_bytes, mcs) = (block.n_prb, block.tbs_bytes, block.mcs);
        let departed_bytes = if allocation.retx { 0 } else { block.body.departed_bytes() };
        let snr = linear(self.fading.snr_db() + self.offset_db(&allocation.groups));
        let blocks = &mut self.blocks;
        let (transmission, gone) = self.harq.transmit(id, tti, snr, |bler| blocks.chance(bler))?;
        if !transmission.retx {
            self.adaptation.learn(transmission.crc_ok);
        }
        let received = gone.filter(|_| transmission.crc_ok).map(|block: Block<_>| block.body);
        let user = allocation.user;
        Some(DownlinkBlock {
            user,
            transmission,
            n_prb,
            tbs_bytes,
            modulation: mcs.modulation,
            layers: mcs.layers(),
            departed_bytes,
            received,
        })
    }

    fn start(
        &mut self,
        n_prb: u16,
        mcs: Mcs,
        tti: i64,
        bearer: Option<&mut Bearer>,
        (format, control): (MacFormat, &[u8]),
    ) -> Option<usize> {
        let tbs_bytes = mcs.tbs_bytes(n_prb);
        let id = self.harq.free(tti)?;
        if tbs_bytes < LEAST_BLOCK_BYTES {
            return None;
        }
        let body = match (&mut self.backlog, bearer) {
            (Some(backlog), _) => {
                backlog.remove(tbs_bytes.into());
                MacPdu::default()
            }
            (None, Some(bearer)) => {
                let end = &mut bearer.enb;
                let (receiver, sender) = (&mut end.receiver, &mut end.sender);
                MacPdu::fill(format, tbs_bytes, control.to_vec(), receiver, sender, tti, false)
            }
            (None, None) => return None,
        };
        self.harq.load(id, body, mcs, n_prb);
        Some(id)
    }
}
