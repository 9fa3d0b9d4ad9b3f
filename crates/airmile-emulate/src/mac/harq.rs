//! HARQ: stop-and-wait processes (TS 36.321, 5.3.2 and 5.4.2).

use crate::phy::Mcs;

/// Redundancy versions in the order of use (TS 36.321, 5.4.2.2).
const RV_ORDER: [u8; 4] = [0, 2, 3, 1];

/// A transport block in a process.
#[derive(Debug, Clone)]
pub(crate) struct Block<B> {
    /// What it carries.
    pub(crate) body: B,
    pub(crate) n_prb: u16,
    pub(crate) mcs: Mcs,
    pub(crate) tbs_bytes: u32,
    transmissions: u8,
    snr_sum: f64,
}

#[derive(Debug, Clone)]
struct Process<B> {
    ndi: bool,
    /// First TTI at which it can be used, or must retransmit.
    due: i64,
    block: Option<Block<B>>,
}

/// A transmission as seen on the air interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Transmission {
    pub(crate) harq_id: u8,
    pub(crate) ndi: bool,
    pub(crate) rv: u8,
    /// MCS index as signalled.
    pub(crate) mcs: u8,
    pub(crate) retx: bool,
    pub(crate) crc_ok: bool,
}

/// The HARQ entity of a link.
#[derive(Debug, Clone)]
pub(crate) struct Harq<B> {
    processes: Vec<Process<B>>,
    round_trip_ttis: i64,
    max_transmissions: u8,
}

impl<B> Harq<B> {
    /// A HARQ entity with as many processes as the round trip has TTIs; a block is given up
    /// after `max_transmissions`.
    pub(crate) fn new(round_trip_ttis: i64, max_transmissions: u8) -> Self {
        let idle = |_| Process { ndi: false, due: i64::MIN, block: None };
        let processes = (0..round_trip_ttis).map(idle).collect();
        Self { processes, round_trip_ttis, max_transmissions }
    }

    /// The process of a TTI, if the TTI determines it (TS 36.213, 8).
    pub(crate) fn of_tti(&self, tti: i64) -> usize {
        tti.rem_euclid(self.round_trip_ttis) as usize
    }

    /// PRB pairs of the retransmission due in a TTI.
    pub(crate) fn retx_prb_at(&self, tti: i64) -> u16 {
        let process = &self.processes[self.of_tti(tti)];
        process.block.as_ref().filter(|_| process.due <= tti).map_or(0, |block| block.n_prb)
    }

    /// The process whose retransmission has been due longest.
    pub(crate) fn due(&self, tti: i64) -> Option<usize> {
        let waits = |&id: &usize| {
            let process = &self.processes[id];
            process.block.is_some() && process.due <= tti
        };
        (0..self.processes.len()).filter(waits).min_by_key(|&id| self.processes[id].due)
    }

    /// Whether new data can be sent on a process.
    pub(crate) fn is_free(&self, id: usize, tti: i64) -> bool {
        self.processes[id].block.is_none() && self.processes[id].due <= tti
    }

    /// A free process for new data.
    pub(crate) fn free(&self, tti: i64) -> Option<usize> {
        (0..self.processes.len()).find(|&id| self.is_free(id, tti))
    }

    /// The block that a process holds.
    pub(crate) fn block(&self, id: usize) -> Option<&Block<B>> {
        self.processes[id].block.as_ref()
    }

    /// Puts a new block into a free process: toggles its NDI.
    pub(crate) fn load(&mut self, id: usize, body: B, mcs: Mcs, n_prb: u16) {
        let process = &mut self.processes[id];
        process.ndi = !process.ndi;
        let tbs_bytes = mcs.tbs_bytes(n_prb);
        process.block = Some(Block { body, n_prb, mcs, tbs_bytes, transmissions: 0, snr_sum: 0.0 });
    }

    /// Transmits the block of a process. `fails` decides for a given BLER. Returns the
    /// transmission, and the block if it leaves the process: received, or failed for the
    /// last time. `None` if the process is empty.
    pub(crate) fn transmit(
        &mut self,
        id: usize,
        tti: i64,
        snr: f64,
        fails: impl FnOnce(f64) -> bool,
    ) -> Option<(Transmission, Option<Block<B>>)> {
        let process = &mut self.processes[id];
        let block = process.block.as_mut()?;
        block.snr_sum += snr;
        let rv = RV_ORDER[usize::from(block.transmissions) % RV_ORDER.len()];
        let retx = block.transmissions > 0;
        block.transmissions += 1;
        process.due = tti + self.round_trip_ttis;
        let crc_ok = !fails(block.mcs.bler(block.snr_sum));
        let mcs = if retx { block.mcs.retx_index() } else { block.mcs.index };
        let gone = crc_ok || block.transmissions >= self.max_transmissions;
        let harq_id = id as u8;
        let transmission = Transmission { harq_id, ndi: process.ndi, rv, mcs, retx, crc_ok };
        Some((transmission, if gone { process.block.take() } else { None }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phy::{FDD_ROUND_TRIP_TTIS, LinkAdaptation, McsLadder};
    use crate::scenario::MAX_TRANSMISSIONS;

    #[test]
    fn retransmits_after_8_ttis_in_rv_order_and_gives_up_after_4() {
        let mcs = LinkAdaptation::new(McsLadder::downlink(None), 0.1, 10.0).mcs(0.0);
        let mut harq = Harq::new(FDD_ROUND_TRIP_TTIS, MAX_TRANSMISSIONS);
        let id = harq.free(0).unwrap();
        harq.load(id, "block", mcs, 10);
        for (n, (tti, rv)) in [(0, 0), (8, 2), (16, 3), (24, 1)].into_iter().enumerate() {
            if n > 0 {
                assert_eq!((harq.due(tti - 1), harq.due(tti)), (None, Some(id)));
            }
            let (sent, gone) = harq.transmit(id, tti, 1.0, |_| true).unwrap();
            assert_eq!((sent.rv, sent.retx, sent.ndi), (rv, n > 0, true));
            assert_eq!(gone.is_some(), n == 3);
        }
        assert!(!harq.is_free(id, 31));
        assert!(harq.is_free(id, 32));
        harq.load(id, "next", mcs, 10);
        assert!(!harq.transmit(id, 32, 1.0, |_| false).unwrap().0.ndi);
    }
}
