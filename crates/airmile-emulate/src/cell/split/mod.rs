//! A split bearer over LTE and NR (EN-DC, TS 37.340): a cell of each with its own RLC and
//! MAC, and PDCP above both.
//!
//! The clock is NR's slots. PDCP is at NR's base station: it fills the legs up to their
//! desired buffer sizes (TS 38.425, 5.4.2), the LTE leg over X2.

mod pdcp;

use std::collections::{BTreeMap, VecDeque};

use airmile_model::units::MS_NS;
use airmile_model::{Direction, Record};

use super::truth::{Allocated, Capacity, QueueTruth};
use super::{Cell, CellPlace, CellTruth, Delivery, LegTruth};
use crate::phy::Frame;
use crate::rlc::Sdu;
use crate::scenario::{Competing, LinkConfig, Scenario, SplitConfig, UplinkConfig};
use crate::user::UserId;
use pdcp::PdcpReceiver;

/// Separates the NR leg's random streams from those of LTE's carriers.
const NR_STREAMS: u64 = 2;

/// PDCP in one direction.
#[derive(Debug, Clone)]
struct Pdcp {
    next_count: u64,
    /// Packets on their way, by COUNT.
    packets: BTreeMap<u64, Sdu>,
    receiver: PdcpReceiver,
    dropped_bytes: u64,
    truth: QueueTruth,
}

impl Pdcp {
    fn new(config: &SplitConfig) -> Self {
        Self {
            next_count: 0,
            packets: BTreeMap::new(),
            receiver: PdcpReceiver::new(i64::from(config.t_reordering_ms) * MS_NS),
            dropped_bytes: 0,
            truth: QueueTruth::default(),
        }
    }

    /// Numbers a packet: the legs identify packets by COUNT.
    fn number(&mut self, sdu: Sdu) -> Sdu {
        let count = self.next_count;
        self.next_count += 1;
        self.packets.insert(count, sdu);
        Sdu { id: count, bytes: sdu.bytes }
    }

    /// Processes a packet delivered by a leg; returns the packets that are now in order.
    fn receive(&mut self, sdu: Sdu, now_ns: i64) -> Vec<Sdu> {
        match self.receiver.receive(sdu.id, now_ns) {
            Some(counts) => self.release(counts),
            None => {
                self.packets.remove(&sdu.id);
                self.dropped_bytes += u64::from(sdu.bytes);
                Vec::new()
            }
        }
    }

    fn tick(&mut self, now_ns: i64) -> Vec<Sdu> {
        let counts = self.receiver.tick(now_ns);
        self.release(counts)
    }

    fn release(&mut self, counts: Vec<u64>) -> Vec<Sdu> {
        counts.into_iter().filter_map(|count| self.packets.remove(&count)).collect()
    }

    /// Bytes delivered by a leg that wait for earlier packets.
    fn waiting_bytes(&self) -> u64 {
        let of = |count: u64| self.packets.get(&count).map_or(0, |sdu| u64::from(sdu.bytes));
        self.receiver.waiting().map(of).sum()
    }
}

/// The two cells of the measured phone.
#[derive(Debug, Clone)]
pub(super) struct SplitCells {
    pub(super) nr: Cell,
    config: SplitConfig,
    /// NR slots in an LTE TTI, and how many of the present one have passed.
    slots_per_tti: u32,
    slots_over: u32,
    dl: Pdcp,
    ul: Pdcp,
    /// Numbered packets waiting in PDCP at the base station.
    queue: VecDeque<Sdu>,
    queue_bytes: u64,
    /// Packets on X2 with their arrival times at LTE's base station.
    on_x2: VecDeque<(i64, Sdu)>,
    /// By direction: whether data left LTE's queue in its present TTI.
    lte_left: [bool; 2],
    deliveries: VecDeque<Delivery>,
}

impl SplitCells {
    /// The NR leg of a scenario that has one.
    pub(super) fn new(scenario: &Scenario, config: &SplitConfig) -> Self {
        let link = &scenario.link;
        let link = LinkConfig {
            snr_mean_db: link.snr_mean_db + config.snr_offset_db,
            ul_snr_mean_db: link.ul_snr_mean_db + config.snr_offset_db,
            dl_trace: None,
            ul_trace: None,
            ..link.clone()
        };
        let competing: Vec<Competing> = config.competing.clone();
        let uplink = UplinkConfig { max_prb: config.uplink_max_prb, ..scenario.uplink.clone() };
        let leg = Scenario {
            cell: leg_cell(&config.cell),
            split: None,
            link,
            competing,
            uplink,
            ..scenario.clone()
        };
        let frame = Frame::of_leg(&leg);
        let place = CellPlace { first_cell: 1, streams: NR_STREAMS };
        Self {
            nr: Cell::build(&leg, &[], frame, place),
            slots_per_tti: frame.slots_per_ms() as u32,
            slots_over: 0,
            dl: Pdcp::new(config),
            ul: Pdcp::new(config),
            queue: VecDeque::new(),
            queue_bytes: 0,
            on_x2: VecDeque::new(),
            lte_left: [false; 2],
            deliveries: VecDeque::new(),
            config: config.clone(),
        }
    }

    /// The LTE leg of a scenario.
    pub(super) fn lte(scenario: &Scenario) -> Cell {
        let leg = Scenario { cell: leg_cell(&scenario.cell), ..scenario.clone() };
        Cell::build(&leg, &[], Frame::new(&leg), CellPlace::default())
    }

    const fn pdcp(&self, dir: Direction) -> &Pdcp {
        match dir {
            Direction::Dl => &self.dl,
            Direction::Ul => &self.ul,
        }
    }

    pub(super) fn push(&mut self, lte: &mut Cell, dir: Direction, sdu: Sdu) -> bool {
        let fits = match dir {
            Direction::Dl => {
                let queued = self.queue_bytes(lte, dir) + self.x2_bytes();
                queued + u64::from(sdu.bytes) <= self.config.cell.queue_bytes
            }
            Direction::Ul => return self.push_uplink(lte, sdu),
        };
        if !fits {
            self.dl.dropped_bytes += u64::from(sdu.bytes);
            return false;
        }
        let numbered = self.dl.number(sdu);
        self.queue_bytes += u64::from(numbered.bytes);
        self.queue.push_back(numbered);
        true
    }

    /// Passes an uplink packet to a leg at once (TS 38.323, 5.2.1): NR's, or above the
    /// threshold the one with the shorter queue.
    fn push_uplink(&mut self, lte: &mut Cell, sdu: Sdu) -> bool {
        let dir = Direction::Ul;
        let queued = |cell: &Cell| cell.undelivered_bytes(UserId::MEASURED, dir).0;
        let (by_lte, by_nr) = (queued(lte), queued(&self.nr));
        let above = self.config.uplink_threshold_bytes.is_some_and(|most| by_lte + by_nr >= most);
        let leg = if above && by_lte < by_nr { lte } else { &mut self.nr };
        let numbered = Sdu { id: self.ul.next_count, bytes: sdu.bytes };
        let fits = leg.push(UserId::MEASURED, dir, numbered);
        if fits {
            self.ul.number(sdu);
        } else {
            self.ul.dropped_bytes += u64::from(sdu.bytes);
        }
        fits
    }

    /// Fills the legs' queues from PDCP, the shorter one first.
    fn feed(&mut self, lte: &mut Cell, now_ns: i64) {
        let (user, dir) = (UserId::MEASURED, Direction::Dl);
        while let Some(&(due_ns, sdu)) = self.on_x2.front()
            && due_ns <= now_ns
        {
            self.on_x2.pop_front();
            lte.push(user, dir, sdu);
        }
        while let Some(&sdu) = self.queue.front() {
            let lte_share = (lte.queue_bytes(user, dir) + self.x2_bytes()) as f64
                / self.config.lte_queue_bytes as f64;
            let nr_share =
                self.nr.queue_bytes(user, dir) as f64 / self.config.nr_queue_bytes as f64;
            if lte_share.min(nr_share) >= 1.0 {
                break;
            }
            self.queue.pop_front();
            self.queue_bytes -= u64::from(sdu.bytes);
            if nr_share <= lte_share {
                self.nr.push(user, dir, sdu);
            } else {
                let due_ns = now_ns + i64::from(self.config.x2_delay_ms) * MS_NS;
                self.on_x2.push_back((due_ns, sdu));
            }
        }
    }

    fn x2_bytes(&self) -> u64 {
        self.on_x2.iter().map(|(_, sdu)| u64::from(sdu.bytes)).sum()
    }

    /// Simulates an NR slot, and at the first slot of an LTE TTI that TTI. LTE's deliveries
    /// arrive with the TTI's last slot.
    pub(super) fn step(&mut self, lte: &mut Cell) {
        let now_ns = self.nr.now_ns();
        self.feed(lte, now_ns);
        let directions = [Direction::Dl, Direction::Ul];
        let before = directions.map(|dir| self.queue_bytes(lte, dir));
        if self.slots_over == 0 {
            lte.step();
            self.lte_left = lte.left();
        }
        self.nr.step();
        self.slots_over = (self.slots_over + 1) % self.slots_per_tti;
        let nr_left = self.nr.left();
        let tti = self.nr.tti().0 - 1;
        for dir in directions {
            let n = dir as usize;
            let leaves = self.lte_left[n] || nr_left[n];
            let after = self.queue_bytes(lte, dir);
            let pdcp = if dir == Direction::Dl { &mut self.dl } else { &mut self.ul };
            pdcp.truth.observe(tti, before[n], after, leaves);
        }
        let end_ns = self.nr.now_ns();
        let from_nr = std::iter::from_fn(|| self.nr.poll_delivery());
        let mut arrived: Vec<Delivery> = from_nr.collect();
        if self.slots_over == 0 {
            arrived.extend(std::iter::from_fn(|| lte.poll_delivery()));
        }
        for Delivery { user, dir, sdu } in arrived {
            let pdcp = if dir == Direction::Dl { &mut self.dl } else { &mut self.ul };
            let sdus = pdcp.receive(sdu, end_ns).into_iter();
            self.deliveries.extend(sdus.map(|sdu| Delivery { user, dir, sdu }));
        }
        for (dir, pdcp) in [(Direction::Dl, &mut self.dl), (Direction::Ul, &mut self.ul)] {
            let user = UserId::MEASURED;
            let sdus = pdcp.tick(end_ns).into_iter();
            self.deliveries.extend(sdus.map(|sdu| Delivery { user, dir, sdu }));
        }
    }

    pub(super) fn poll_delivery(&mut self) -> Option<Delivery> {
        self.deliveries.pop_front()
    }

    pub(super) fn poll_record(&mut self) -> Option<Record> {
        self.nr.poll_record()
    }

    /// Bytes in PDCP and in the queues of both legs: what crosses X2 does not wait for the radio.
    pub(super) fn queue_bytes(&self, lte: &Cell, dir: Direction) -> u64 {
        let legs = [lte, &self.nr].map(|leg| leg.queue_bytes(UserId::MEASURED, dir));
        let above = if dir == Direction::Dl { self.queue_bytes } else { 0 };
        above + legs.iter().sum::<u64>()
    }

    pub(super) fn undelivered_bytes(&self, lte: &Cell, dir: Direction) -> (u64, u64) {
        let legs = [lte, &self.nr].map(|leg| leg.undelivered_bytes(UserId::MEASURED, dir));
        let above = if dir == Direction::Dl { self.queue_bytes + self.x2_bytes() } else { 0 };
        let waiting = self.pdcp(dir).waiting_bytes();
        (legs[0].0 + legs[1].0 + above, legs[0].1 + legs[1].1 + waiting)
    }

    pub(super) const fn dropped_bytes(&self, dir: Direction) -> u64 {
        self.pdcp(dir).dropped_bytes
    }

    /// Truth of both cells: of the bearer in NR's slots, of each leg in its own TTIs.
    pub(super) fn into_truth(self, lte: Cell) -> CellTruth {
        let nr_numerology = self.nr.frame.numerology();
        let (lte, nr) = (lte.into_truth(), self.nr.into_truth());
        let (mut allocated, mut capacity) = (lte.allocated, lte.capacity);
        let runs = nr.allocated.into_iter();
        allocated.extend(runs.map(|run| Allocated { carrier: run.carrier + 1, ..run }));
        let runs = nr.capacity.into_iter();
        capacity.extend(runs.map(|run| Capacity { carrier: run.carrier + 1, ..run }));
        CellTruth {
            dl: self.dl.truth.into_runs(),
            ul: self.ul.truth.into_runs(),
            cell_use: lte.cell_use,
            secondary_use: nr.cell_use,
            allocated,
            capacity,
            rrc: lte.rrc,
            legs: vec![
                LegTruth { cell: 0, numerology: 0, dl: lte.dl, ul: lte.ul },
                LegTruth { cell: 1, numerology: nr_numerology, dl: nr.dl, ul: nr.ul },
            ],
        }
    }
}

/// The cell configuration of a leg: PDCP limits its queue.
fn leg_cell(cell: &crate::scenario::CellConfig) -> crate::scenario::CellConfig {
    crate::scenario::CellConfig { queue_bytes: u64::MAX, ..cell.clone() }
}
