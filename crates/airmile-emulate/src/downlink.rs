//! The downlink shared channel: users, who is served in a TTI, and how their
//! blocks fare. User 0 is the measured phone.

use airmile_model::tables::McsTable;

use crate::harq::{Block, Harq, Transmission};
use crate::link::{Fading, LinkAdaptation, linear};
use crate::mac::{LEAST_BLOCK_BYTES, MacPdu, TIMING_ADVANCE};
use crate::random::Random;
use crate::rlc::{AmReceiver, AmSender};
use crate::scenario::{Competing, Scenario};
use crate::scheduler::{Allocation, Candidate, Scheduler, rbg_prb};

/// TTIs between two timing advance commands (chosen here, below the timers of
/// TS 36.331, TimeAlignmentTimer).
const TIMING_ADVANCE_PERIOD_TTIS: i64 = 640;

/// Spread in dB of the other users' mean SNR about the phone's (chosen here).
const OTHERS_SPREAD_DB: f64 = 8.0;

/// The ends of the data bearer on one side.
#[derive(Debug, Clone)]
pub(crate) struct RlcEnd {
    pub(crate) sender: AmSender,
    pub(crate) receiver: AmReceiver,
}

/// What another user has to receive.
#[derive(Debug, Clone)]
enum Backlog {
    /// The phone: its bearer has the bytes.
    Bearer,
    /// Never empty.
    Full,
    /// Files with pauses; the next one comes at a TTI.
    Sporadic { bytes: u64, next: i64, mean_file_bytes: f64, mean_pause_ms: f64 },
}

#[derive(Debug, Clone)]
struct User {
    fading: Fading,
    adaptation: LinkAdaptation,
    harq: Harq<MacPdu>,
    backlog: Backlog,
    dice: Random,
}

/// A block sent to the phone in a TTI.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) transmission: Transmission,
    pub(crate) n_prb: u16,
    pub(crate) tbs_bytes: u32,
    pub(crate) modulation: airmile_model::Modulation,
    /// RLC data that left the queue.
    pub(crate) departed_bytes: u32,
    /// What the phone got, if the block was received.
    pub(crate) received: Option<MacPdu>,
}

/// What happened in a TTI.
#[derive(Debug, Default)]
pub(crate) struct DownlinkTti {
    pub(crate) to_phone: Option<Sent>,
    /// PRB pairs in use, and by how many users.
    pub(crate) n_prb: u16,
    pub(crate) users: u16,
}

/// The downlink of the cell.
#[derive(Debug, Clone)]
pub(crate) struct Downlink {
    n_prb: u16,
    users: Vec<User>,
    scheduler: Scheduler,
    next_timing_advance: i64,
}

impl Downlink {
    pub(crate) fn new(scenario: &Scenario, first_tti: i64) -> Self {
        let link = &scenario.link;
        let mut placing = Random::new(scenario.seed, 10);
        let count = usize::from(scenario.competing.users()) + 1;
        let user = |n: usize| {
            let spread = if n == 0 { 0.0 } else { (placing.uniform() - 0.5) * OTHERS_SPREAD_DB };
            let mean_db = link.snr_mean_db + spread;
            let random = Random::new(scenario.seed, 1_000 + 2 * n as u64);
            let fading =
                Fading::new(mean_db, link.fading_sigma_db, link.fading_coherence_ms, random);
            let first_snr_db = fading.snr_db();
            User {
                fading,
                adaptation: LinkAdaptation::new(
                    McsTable::Pdsch64Qam,
                    link.bler_target,
                    first_snr_db,
                ),
                harq: Harq::new(),
                backlog: backlog(n, &scenario.competing, first_tti),
                dice: Random::new(scenario.seed, 1_001 + 2 * n as u64),
            }
        };
        let users = (0..count).map(user).collect();
        let scheduler = Scheduler::new(scenario.cell.scheduler, scenario.cell.n_prb, count);
        let next_timing_advance = first_tti + TIMING_ADVANCE_PERIOD_TTIS;
        Self { n_prb: scenario.cell.n_prb, users, scheduler, next_timing_advance }
    }

    /// The phone's channel: SNR and deviation from its mean, in dB.
    pub(crate) fn phone_fade_db(&self) -> f64 {
        self.users[0].fading.fade_db()
    }

    /// Goes through a TTI; `enb` is the base station's end of the bearer.
    pub(crate) fn step(&mut self, tti: i64, enb: &mut RlcEnd) -> DownlinkTti {
        for user in &mut self.users {
            user.fading.step();
            user.adaptation.observe(tti, user.fading.snr_db());
            user.arrive(tti);
        }
        let control = self.control(tti);
        let candidates: Vec<Candidate> =
            (0..self.users.len()).filter_map(|n| self.candidate(n, tti, enb, &control)).collect();
        let mut out = DownlinkTti::default();
        let mut served = vec![0; self.users.len()];
        for allocation in self.scheduler.allocate(&candidates) {
            let Some(sent) = self.users[allocation.user].send(allocation, tti, enb, &control)
            else {
                continue;
            };
            out.n_prb += sent.n_prb;
            out.users += 1;
            served[allocation.user] = sent.tbs_bytes;
            if allocation.user == 0 {
                if !sent.transmission.retx && !control.is_empty() {
                    self.next_timing_advance = tti + TIMING_ADVANCE_PERIOD_TTIS;
                }
                out.to_phone = Some(sent);
            }
        }
        self.scheduler.account(|n| served[n]);
        out
    }

    /// MAC control elements that are due for the phone.
    fn control(&self, tti: i64) -> Vec<u8> {
        if tti >= self.next_timing_advance { vec![TIMING_ADVANCE] } else { Vec::new() }
    }

    fn candidate(&self, n: usize, tti: i64, enb: &RlcEnd, control: &[u8]) -> Option<Candidate> {
        let user = &self.users[n];
        let retx_prb = user.harq.due(tti).and_then(|id| user.harq.block(id)).map(|b| b.n_prb);
        let wanted = match user.backlog {
            Backlog::Bearer => bearer_wants(enb, control, tti),
            Backlog::Full => u64::MAX,
            Backlog::Sporadic { bytes, .. } => bytes,
        };
        let mcs = user.adaptation.mcs();
        let can_start = wanted > 0 && user.harq.free(tti).is_some();
        let need_prb = if can_start {
            let n_prb = mcs.prbs_for(wanted.max(LEAST_BLOCK_BYTES.into()), self.n_prb);
            n_prb.next_multiple_of(rbg_prb(self.n_prb)).min(self.n_prb)
        } else {
            0
        };
        let rate_bytes = f64::from(mcs.tbs_bytes(self.n_prb));
        (retx_prb.is_some() || need_prb > 0).then_some(Candidate {
            user: n,
            retx_prb,
            need_prb,
            rate_bytes,
        })
    }
}

/// Bytes of a block that would hold all that waits for the phone.
fn bearer_wants(enb: &RlcEnd, control: &[u8], tti: i64) -> u64 {
    let status = match enb.receiver.status_bytes(tti) {
        0 => 0,
        bytes => bytes + 3,
    };
    enb.sender.wanted_bytes() + u64::from(status) + 2 * control.len() as u64
}

fn backlog(n: usize, competing: &Competing, first_tti: i64) -> Backlog {
    match *competing {
        Competing::Sporadic { mean_file_bytes, mean_pause_ms, .. } if n > 0 => Backlog::Sporadic {
            bytes: 0,
            next: first_tti,
            mean_file_bytes: mean_file_bytes.into(),
            mean_pause_ms: mean_pause_ms.into(),
        },
        _ if n > 0 => Backlog::Full,
        _ => Backlog::Bearer,
    }
}

impl User {
    /// Lets a file arrive, or draws the pause after one.
    fn arrive(&mut self, tti: i64) {
        let Backlog::Sporadic { bytes, next, mean_file_bytes, mean_pause_ms } = &mut self.backlog
        else {
            return;
        };
        if *bytes > 0 {
            *next = i64::MAX;
        } else if *next == i64::MAX {
            *next = tti + exponential(&mut self.dice, *mean_pause_ms) as i64;
        } else if *next <= tti {
            *bytes = 1 + exponential(&mut self.dice, *mean_file_bytes) as u64;
        }
    }

    /// Sends a block on the PRBs that were allocated; `None` if they cannot
    /// hold a block worth sending.
    fn send(
        &mut self,
        allocation: Allocation,
        tti: i64,
        enb: &mut RlcEnd,
        control: &[u8],
    ) -> Option<Sent> {
        let id = if allocation.retx {
            self.harq.due(tti)?
        } else {
            self.start(allocation.n_prb, tti, enb, control)?
        };
        let block = self.harq.block(id)?;
        let (n_prb, tbs_bytes, modulation) = (block.n_prb, block.tbs_bytes, block.mcs.modulation);
        let departed_bytes = if allocation.retx { 0 } else { block.body.departed_bytes() };
        let snr = linear(self.fading.snr_db());
        let dice = &mut self.dice;
        let (transmission, gone) = self.harq.transmit(id, tti, snr, |bler| dice.chance(bler))?;
        if !transmission.retx {
            self.adaptation.learn(transmission.crc_ok);
        }
        let received = gone.filter(|_| transmission.crc_ok).map(|block: Block<_>| block.body);
        Some(Sent { transmission, n_prb, tbs_bytes, modulation, departed_bytes, received })
    }

    fn start(&mut self, n_prb: u16, tti: i64, enb: &mut RlcEnd, control: &[u8]) -> Option<usize> {
        let mcs = self.adaptation.mcs();
        let tbs_bytes = mcs.tbs_bytes(n_prb);
        let id = self.harq.free(tti)?;
        if tbs_bytes < LEAST_BLOCK_BYTES {
            return None;
        }
        let body = match &mut self.backlog {
            Backlog::Bearer => {
                let RlcEnd { sender, receiver } = enb;
                MacPdu::fill(tbs_bytes, control.to_vec(), receiver, sender, tti)
            }
            Backlog::Full => MacPdu::default(),
            Backlog::Sporadic { bytes, .. } => {
                *bytes = bytes.saturating_sub(tbs_bytes.into());
                MacPdu::default()
            }
        };
        self.harq.load(id, body, mcs, n_prb);
        Some(id)
    }
}

/// An exponentially distributed number.
fn exponential(dice: &mut Random, mean: f64) -> f64 {
    -mean * (1.0 - dice.uniform()).ln()
}
