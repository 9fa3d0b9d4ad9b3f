//! The uplink buffer from a log, without delay: for control, which cannot wait until all
//! messages about a TTI have arrived, as [`LogReader`](super::LogReader) does.
//!
//! Each message is used by itself: transmissions from 0xB139 (from 0xB064 if a modem has
//! no 0xB139), buffer status reports from 0xB064, samples of the buffer from 0xB066; of NR
//! both from 0xB872. Times are those of the TTIs, derived from the times of writing: the message written
//! soonest after its last TTI defines the relation of the two, so all times are late by
//! that message's delay.

use airmile_model::tti::{TTIS_PER_SFN_PERIOD, Tti};
use airmile_model::{
    BufferStatus, Direction, Grant, GrantSources, Position, Record, Stamp, TtiIndex, TtiSpan,
};

use super::msg::{MacUl, Message, NrSlot, NrUlTb, PuschTx, UlBufferStatus};
use super::{Deframer, Event};

/// A TTI of LTE, in ns.
const TTI_NS: i64 = 1_000_000;
const PERIOD_NS: i64 = TTIS_PER_SFN_PERIOD * TTI_NS;

/// How long the soonest message counts, in ns (chosen here: the SFN's clock and the log's
/// diverge by less than a TTI in it).
const WINDOW_NS: i64 = 20_000_000_000;

/// Maximum delay of a message after its last TTI, in ns (a batch of 0xB139 or 0xB064 that
/// does not fill: 100 ms, with margin). More indicates another cell's SFN.
const LATEST_NS: i64 = 400_000_000;

/// Reads a log's bytes; see the [module](self).
#[derive(Debug, Clone, Default)]
pub struct PromptReader {
    deframer: Deframer,
    phase: Phase,
    nr_phase: Phase,
    has_pusch: bool,
}

impl PromptReader {
    /// Anywhere in a log.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes; records of the primary carrier's uplink are passed to
    /// `sink`.
    pub fn push(&mut self, bytes: &[u8], sink: &mut dyn FnMut(Record)) {
        self.deframer.push(bytes);
        while let Some(event) = self.deframer.poll() {
            let Event::Log(packet) = event else { continue };
            let wanted = [PuschTx::CODE, MacUl::CODE, UlBufferStatus::CODE, NrUlTb::CODE];
            if !wanted.contains(&packet.code) {
                continue;
            }
            // Damaged messages are skipped here, and reported elsewhere.
            let Ok(Some(parsed)) = Message::parse(packet.code, packet.payload) else { continue };
            let written_ns = packet.at.ns;
            match &parsed.message {
                Message::PuschTx(m) => self.pusch(written_ns, m, sink),
                Message::MacUl(m) => self.mac(written_ns, m, sink),
                Message::UlBufferStatus(m) => self.buffer(written_ns, m, sink),
                Message::NrUlTb(m) => self.nr(written_ns, m, sink),
                _ => {}
            }
        }
    }

    /// The positions of records of these TTIs, in order.
    fn place(&mut self, written_ns: i64, last: Option<Tti>) -> impl Fn(Tti) -> Placed + use<> {
        // A transmission that began in that TTI ended a TTI later.
        let end_ns = written_ns - TTI_NS;
        if let Some(last) = last {
            self.phase.push(end_ns, offset_ns(last));
        }
        let phase = self.phase.clone();
        move |tti| {
            let ns = phase.time_of(end_ns, offset_ns(tti), TTI_NS);
            let tti = TtiIndex(ns.div_euclid(TTI_NS));
            (Stamp::modem(ns), Position { timing_segment: 0, cell: 0, numerology: 0, tti })
        }
    }

    fn pusch(&mut self, written_ns: i64, m: &PuschTx, sink: &mut dyn FnMut(Record)) {
        self.has_pusch = true;
        let place = self.place(written_ns, m.records.iter().rev().find_map(|record| record.tti));
        for record in m.records.iter().filter(|record| record.carrier.unwrap_or(0) == 0) {
            let Some((at, position)) = record.tti.map(&place) else { continue };
            let mut grant = Grant::new(position, Direction::Ul, 0);
            grant.at = Some(at);
            grant.tbs_bytes = Some(record.tbs_bytes.into());
            grant.retx = Some(record.retx_index > 0);
            grant.sources = GrantSources::PUSCH_TX;
            sink(grant.into());
        }
    }

    fn mac(&mut self, written_ns: i64, m: &MacUl, sink: &mut dyn FnMut(Record)) {
        let blocks = || m.subpackets.iter().flat_map(|subpacket| &subpacket.blocks);
        let last = blocks().rev().find_map(|block| block.tti);
        let place = self.place(written_ns, last);
        for block in blocks().filter(|block| block.cell.unwrap_or(0) == 0) {
            let Some((at, position)) = block.tti.map(&place) else { continue };
            if !self.has_pusch {
                let mut grant = Grant::new(position, Direction::Ul, 0);
                (grant.at, grant.retx) = (Some(at), Some(false));
                grant.tbs_bytes = Some(block.grant_bytes.into());
                grant.sources = GrantSources::MAC;
                sink(grant.into());
            }
            let reports = block.subheaders().bsr();
            for report in reports.into_iter().flat_map(|bsr| bsr.records(Some(at), position)) {
                sink(report.into());
            }
        }
    }

    /// Blocks of NR: what was built, without its padding. The message names no carrier.
    fn nr(&mut self, written_ns: i64, m: &NrUlTb, sink: &mut dyn FnMut(Record)) {
        let blocks = || {
            m.ttis
                .iter()
                .flat_map(|tti| tti.blocks.iter().map(move |block| (tti.time(block), block)))
        };
        // As in `place`.
        let end_ns = |slot: NrSlot| written_ns - TtiSpan(1).ns(slot.numerology);
        if let Some((last, _)) = blocks().next_back() {
            self.nr_phase.push(end_ns(last), last.since_frame_0_ns());
        }
        for (slot, block) in blocks() {
            let (numerology, slot_ns) = (slot.numerology, TtiSpan(1).ns(slot.numerology));
            let ns = self.nr_phase.time_of(end_ns(slot), slot.since_frame_0_ns(), slot_ns);
            let tti = TtiIndex(ns.div_euclid(slot_ns));
            let position = Position { timing_segment: 0, cell: 0, numerology, tti };
            let at = Some(Stamp::modem(ns));
            sink(Grant { at, ..block.grant(position) }.into());
            for report in block.reports() {
                sink(report.record(at, position).into());
            }
        }
    }

    /// The last sample of a message: the earlier ones are older.
    fn buffer(&mut self, written_ns: i64, m: &UlBufferStatus, sink: &mut dyn FnMut(Record)) {
        let last = m.subpackets.iter().flat_map(|subpacket| &subpacket.samples).next_back();
        let Some((sample, tti)) = last.and_then(|sample| Some((sample, sample.tti?))) else {
            return;
        };
        let (at, position) = self.place(written_ns, Some(tti))(tti);
        let sum = |of: &dyn Fn(usize) -> u32| {
            (0..sample.channels.len()).map(of).fold(0_u32, u32::saturating_add)
        };
        sink(
            BufferStatus {
                at: Some(at),
                position,
                // Of all channels together.
                lcid: None,
                priority: None,
                new_bytes: sum(&|n| sample.channels[n].new_data_bytes()),
                retx_bytes: sum(&|n| sample.channels[n].retx_bytes),
                control_bytes: sum(&|n| sample.channels[n].control_bytes.into()),
            }
            .into(),
        );
    }
}

type Placed = (Stamp, Position);

/// The relation of TTIs to the log's time: the time of TTI 0, modulo the SFN's period.
#[derive(Debug, Clone, Default)]
struct Phase {
    /// The minimum of this window and of the previous one.
    least_ns: [Option<i64>; 2],
    began_ns: i64,
}

impl Phase {
    /// Records that the last TTI of a message had ended by then.
    fn push(&mut self, end_ns: i64, offset_ns: i64) {
        if end_ns - self.began_ns > WINDOW_NS {
            self.least_ns = [None, self.least_ns[0]];
            self.began_ns = end_ns;
        }
        let phase_ns = end_ns - offset_ns;
        if let Some(known) = self.least() {
            let later_ns = around(phase_ns - known);
            if (-LATEST_NS..=LATEST_NS).contains(&later_ns) {
                let here = known + later_ns;
                let least = &mut self.least_ns[0];
                *least = Some(least.map_or(here, |least| least.min(here)));
                return;
            }
        }
        // The first, or another cell's.
        self.least_ns = [Some(phase_ns), None];
        self.began_ns = end_ns;
    }

    fn least(&self) -> Option<i64> {
        self.least_ns.into_iter().flatten().min()
    }

    /// The time of a TTI of `tti_ns`, at an offset in the SFN's period, that had ended by then.
    fn time_of(&self, end_ns: i64, offset_ns: i64, tti_ns: i64) -> i64 {
        let Some(phase_ns) = self.least() else { return end_ns };
        let at_ns = phase_ns + offset_ns;
        // The last one that is not after it, within a TTI.
        end_ns + tti_ns - (end_ns + tti_ns - at_ns).rem_euclid(PERIOD_NS)
    }
}

/// Where a TTI begins in the SFN's period.
fn offset_ns(tti: Tti) -> i64 {
    i64::from(tti.count()) * TTI_NS
}

/// A difference of phases, the short way round.
const fn around(ns: i64) -> i64 {
    (ns + PERIOD_NS / 2).rem_euclid(PERIOD_NS) - PERIOD_NS / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soonest_message_sets_the_time() {
        const MS: i64 = TTI_NS;
        let tti = |count| offset_ns(Tti::from_count(count).unwrap());
        let mut phase = Phase::default();
        // TTI n begins at 1000 + n ms; messages come 7, 2 and 90 ms after its end.
        for (count, late_ms) in [(100, 7), (200, 2), (300, 90)] {
            phase.push((1_000 + i64::from(count) + late_ms) * MS, tti(count));
        }
        let at = |written_ms: i64, count| phase.time_of(written_ms * MS, tti(count), MS) / MS;
        assert_eq!(at(1_390, 300), 1_302);
        assert_eq!(at(1_390, 250), 1_252);
        // Across the counter's wrap, and a period later.
        assert_eq!(at(1_390, 10_239), 1_302 - 301);
        assert_eq!(at(1_390 + 10_240, 300), 1_302 + 10_240);
        // Another cell's counter.
        phase.push(5_000 * MS, tti(7_000));
        assert_eq!(phase.time_of(5_000 * MS, tti(7_000), MS), 5_000 * MS);
    }
}
