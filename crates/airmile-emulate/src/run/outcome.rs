//! Results of a run that has ended.

use std::collections::BTreeMap;

use airmile_model::{Direction, Stamp, Transfer, TransferTruth, TtiIndex};

use super::SimulationEnd;
use crate::cell::{CellTruth, throughput_time_ms};
use crate::host::{AppLog, AppNote, LoadedPage, TimedTransfer};
use crate::phy::Frame;

/// A transfer with its truth.
#[derive(Debug, Clone, PartialEq)]
pub struct EmulatedTransfer {
    /// The transfer as its application would log it.
    pub transfer: Transfer,
    /// Direction of its data.
    pub dir: Direction,
    /// State of the queue in that direction.
    pub truth: TransferTruth,
}

impl EmulatedTransfer {
    /// Throughput time over duration.
    #[must_use]
    pub fn link_demand(&self) -> f64 {
        self.truth.duration_ms.map_or(f64::NAN, |ms| self.truth.throughput_time_ms / ms)
    }
}

/// Bytes of SDUs in a direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteTotals {
    /// The direction.
    pub dir: Direction,
    /// Bytes that arrived at the queue.
    pub arrived_bytes: u64,
    /// Bytes delivered, as whole SDUs in sequence.
    pub delivered_bytes: u64,
    /// Bytes never sent.
    pub unsent_bytes: u64,
    /// Bytes sent of undelivered SDUs.
    pub in_transit_bytes: u64,
    /// Bytes dropped for lack of room.
    pub dropped_bytes: u64,
}

impl ByteTotals {
    /// Totals of a user in a direction, from bytes that arrived at the queue and were
    /// delivered, bytes unsent and in transit, and bytes dropped.
    pub(super) const fn new(
        dir: Direction,
        (arrived_bytes, delivered_bytes): (u64, u64),
        (unsent_bytes, in_transit_bytes): (u64, u64),
        dropped_bytes: u64,
    ) -> Self {
        Self { dir, arrived_bytes, delivered_bytes, unsent_bytes, in_transit_bytes, dropped_bytes }
    }
}

/// Result of a run, in addition to the output of its [`super::RunSink`].
#[derive(Debug, Clone, PartialEq)]
pub struct RunOutcome {
    /// First TTI.
    pub first_tti: TtiIndex,
    /// TTIs.
    pub n_tti: u32,
    /// Time of TTI index 0 in ns since the Unix epoch.
    pub epoch_ns: i64,
    /// Length of a TTI in ns.
    pub slot_ns: i64,
    /// Truth known only to the base station.
    pub truth: CellTruth,
    /// Transfers of the measured phone that ended, by start.
    pub transfers: Vec<EmulatedTransfer>,
    /// Transfers that started and did not end, with the bytes so far, by start: for an
    /// upload, the bytes that the application had written.
    pub unfinished: Vec<EmulatedTransfer>,
    /// Bytes of each user, downlink and uplink, by where they are at the end.
    pub totals: Vec<[ByteTotals; 2]>,
    /// Log entries of the applications, in time order.
    pub notes: Vec<AppNote>,
    /// The same for the other phones, in their order in the scenario.
    pub others: Vec<Vec<AppNote>>,
    /// Bitrates that the measured phone's video players chose, by the
    /// application's name and by segment.
    pub choices: BTreeMap<String, Vec<u64>>,
    /// Pages that the measured phone's browsers loaded, by start.
    pub pages: Vec<LoadedPage>,
}

impl RunOutcome {
    /// Outcome of a run that has ended, with its applications' log.
    pub(super) fn from_simulation<H>(
        ended: SimulationEnd<H>,
        frame: Frame,
        mut app_log: AppLog,
    ) -> Self {
        let transfers = with_truth(app_log.ended, &ended.truth, frame);
        let unfinished = with_truth(app_log.unfinished, &ended.truth, frame);
        app_log.notes.sort_by_key(|note| note.at_ns);
        Self {
            first_tti: ended.first_tti,
            n_tti: ended.n_tti,
            epoch_ns: frame.epoch_ns(),
            slot_ns: frame.slot_ns(),
            truth: ended.truth,
            transfers,
            unfinished,
            totals: ended.totals,
            notes: app_log.notes,
            others: Vec::new(),
            choices: app_log.choices,
            pages: app_log.pages.finish(),
        }
    }
}

/// Transfers with their truth, by start.
pub(super) fn with_truth(
    timed: Vec<TimedTransfer>,
    truth: &CellTruth,
    frame: Frame,
) -> Vec<EmulatedTransfer> {
    let mut all: Vec<EmulatedTransfer> =
        timed.into_iter().map(|timed| transfer_with_truth(timed, truth, frame)).collect();
    all.sort_by_key(|transfer| transfer.transfer.tti.map(|(start, _)| start));
    all
}

/// A transfer with the state of its direction's queue in that time.
fn transfer_with_truth(timed: TimedTransfer, truth: &CellTruth, frame: Frame) -> EmulatedTransfer {
    let TimedTransfer { id, dir, start_ns, end_ns, bytes, unfinished } = timed;
    let runs = if dir == Direction::Dl { &truth.dl } else { &truth.ul };
    let start = TtiIndex(frame.ttis_at(start_ns).0);
    let end = TtiIndex(frame.ttis_at(end_ns).1);
    let slot_ms = frame.slot_ns() as f64 / 1e6;
    let throughput_time_ms = throughput_time_ms(runs, start, end) * slot_ms;
    let duration_ms = Some(end.since(start) as f64 * slot_ms);
    let time = Some((Stamp::modem(start_ns), Stamp::modem(end_ns)));
    let truth = TransferTruth { id: id.clone(), throughput_time_ms, duration_ms };
    let tti = Some((start, end));
    EmulatedTransfer {
        transfer: Transfer { id, time, tti, bytes: Some(bytes), dir: Some(dir), unfinished },
        dir,
        truth,
    }
}
