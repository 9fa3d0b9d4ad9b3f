//! From messages to records: TTIs unwrapped, one grant from several messages, everything
//! in TTI order.
//!
//! Messages are logged some time after the transmission: 0xB173 up to 300 ms, RLC batches
//! 100 ms and more. Records therefore wait until the log's clock is [`HORIZON_TTIS`] past
//! them. By then all messages about a TTI have arrived, the grant is assembled
//! (precedence: see the modules `downlink` and `uplink`) and the records are returned in
//! TTI order. Later records are returned at once, out of order, and counted.

mod cells;
mod downlink;
mod mac;
mod nr;
pub(crate) mod nr_order;
mod orphans;
mod plain;
mod pool;
mod signalling;
mod timing;
mod uplink;
mod waiting;

use std::collections::BTreeMap;

use airmile_model::tti::{Tti, TtiIndex};
use airmile_model::window::{SegmentTti, TtiWindow};
use airmile_model::{
    CellInfo, Hole, MAX_DISORDER_NS, PdschDecode, Position, Record, RlcPdu, RntiType, Stamp,
    UlTxStats,
};

use self::cells::bandwidth;
use self::downlink::{DlParts, HarqMemory};
use self::mac::{LOGGED_NEAR_TTIS, LoggedTtis};
use self::nr_order::NrOrder;
use self::orphans::{OrphanRun, is_assignment};
use self::pool::Pool;
use self::timing::{CellId, Timing};
use self::uplink::UlParts;
use self::waiting::{PartsPool, Place, Waiting};
use crate::diag::msg::{Message, PdschDecoding, PdschPacket, PdschStat, PuschTx};

/// How long records wait for other messages about their TTI. Chosen here: six times the
/// longest delay in real logs (0.3 s).
pub const HORIZON_TTIS: i64 = 2_000;

/// Minimum silence of the whole log that is reported as a hole. Chosen here: past the
/// longest idle DRX cycle (2.56 s, TS 36.304 7.1), in which a sleeping phone still
/// measures once.
const SILENCE_NS: i64 = 4_000_000_000;

/// Configuration indexes from here on are signalling bearers, as 0xB081 shows
/// (33 is SRB1, 34 SRB2).
const FIRST_SRB_INDEX: u8 = 32;

/// Assembles the records of one subscription's messages.
#[derive(Debug, Clone, Default)]
pub struct Assembler {
    timing: Timing,
    waiting: TtiWindow<Waiting>,
    /// Downlink assignments of the waiting TTIs.
    dl: PartsPool<DlParts>,
    /// Their uplink grants.
    ul: PartsPool<UlParts>,
    /// Their records that are not joined.
    records: Pool<Record>,
    mac_ttis: LoggedTtis,
    /// TTIs of downlink RLC PDUs that 0xB082 logged.
    rlc_ttis: LoggedTtis,
    harq: HarqMemory,
    harq_segment: u32,
    /// By timing segment and cell, as given by a message.
    bandwidth_prb: BTreeMap<(u32, u8), u16>,
    highest_prb: BTreeMap<(u32, u8), u16>,
    reported_bandwidth: BTreeMap<(u32, u8), (u16, &'static str)>,
    orphans: OrphanRun,
    /// Slots of NR, which have their own timing.
    nr: NrOrder,
    /// Of the last NR downlink block: 0xB857 does not state it.
    nr_numerology: Option<u8>,
    clock_jumps: u64,
    released: Option<SegmentTti>,
    last_written_ns: Option<i64>,
    latest_ns: Option<i64>,
    /// What is far in time from the one before: the next one shows whether its time is wrong.
    held: Option<(Stamp, Option<Message>)>,
    damaged: bool,
    late: u64,
    untimed: u64,
    /// Records that wait for no TTI, in order of arrival.
    at_once: Vec<Record>,
}

impl Assembler {
    /// Takes the next message, written at `at`, or only its time if it is not decoded; complete records go
    /// to `give`, in TTI order. A message with a time of its own between two in order has that of the
    /// later one: a batch that seems to wait longer bounds no relation of TTIs to the clock.
    pub fn push(&mut self, at: Stamp, message: Option<Message>, give: &mut impl FnMut(Record)) {
        self.settle(Some(at));
        match self.last_written_ns {
            Some(last_ns) if last_ns.abs_diff(at.ns) > MAX_DISORDER_NS.unsigned_abs() => {
                self.held = Some((at, message));
            }
            _ => self.take(at, message.as_ref()),
        }
        self.release(give);
    }

    /// Takes what is held, before the next message.
    fn settle(&mut self, next: Option<Stamp>) {
        let Some((at, message)) = self.held.take() else { return };
        let is_wrong =
            |(before_ns, next): &(i64, Stamp)| Stamp::is_lone(*before_ns, at.ns, next.ns);
        let right = self.last_written_ns.zip(next).filter(is_wrong);
        self.take(right.map_or(at, |(_, next)| next), message.as_ref());
    }

    fn take(&mut self, at: Stamp, message: Option<&Message>) {
        self.note_holes(at);
        let Some(message) = message else { return };
        match message {
            Message::PdschPacket(m) => self.pdsch_packet(at, m),
            Message::PdschStat(m) => self.pdsch_stat(at, m),
            Message::PdschDecoding(m) => self.pdsch_decoding(at, m),
            Message::PdcchDecoding(m) => self.pdcch(at, m),
            Message::MacDl(m) => self.mac_dl(at, m),
            Message::MacDlReport(m) => self.mac_dl_report(at, m),
            Message::MacUl(m) => self.mac_ul(at, m),
            Message::UlBufferStatus(m) => self.buffer_status(at, m),
            Message::UlTxStatistics(m) => {
                for s in &m.subpackets {
                    self.emit_now(UlTxStats {
                        at: Some(at),
                        n_tti: s.n_tti,
                        padding_bsr: s.padding_bsr,
                        regular_bsr: s.regular_bsr,
                        periodic_bsr: s.periodic_bsr,
                        cancelled_bsr: s.cancelled_bsr,
                        granted_bytes: s.granted_bytes,
                        used_bytes: s.used_bytes,
                    });
                }
            }
            Message::RlcDl(m) => self.rlc_dl(at, m),
            Message::RlcUl(m) => self.rlc_ul(at, m),
            Message::PuschTx(m) => self.pusch(at, m),
            Message::ServCellMeas(m) => self.measurement(at, m),
            Message::RrcMib(m) => self.cell_info(CellInfo {
                pci: Some(m.pci),
                earfcn: Some(m.earfcn),
                n_prb_dl: bandwidth(m.n_prb_dl),
                n_tx_antennas: Some(m.n_tx_antennas),
                ..self.blank_cell(at, 0, "0xB0C1")
            }),
            Message::RrcServCell(m) => self.cell_info(CellInfo {
                pci: Some(m.pci),
                earfcn: Some(m.earfcn_dl),
                n_prb_dl: bandwidth(m.n_prb_dl),
                n_prb_ul: bandwidth(m.n_prb_ul),
                band: Some(m.band),
                ..self.blank_cell(at, 0, "0xB0C2")
            }),
            Message::IntraFreqMeas(m) => self.intra_freq(at, m),
            Message::NeighbourMeas(m) => self.neighbours(at, m),
            Message::RlmReport(m) => self.radio_link(at, m),
            Message::RrcOta(m) => self.rrc_message(at, m),
            Message::PdcpDl(m) => self.pdcp(at, m),
            Message::PdcpUl(m) => self.pdcp(at, m),
            Message::RlcDlStats(m) => self.rlc_counters(at, m),
            Message::RlcUlStats(m) => self.rlc_counters(at, m),
            Message::NrPdschStatus(m) => self.nr_pdsch_status(at, m),
            Message::NrPdschStats(m) => self.nr_counters(at, m),
            Message::NrDlData(m) => self.nr_dl_data(at, m),
            Message::NrUlTb(m) => self.nr_ul_tb(at, m),
            Message::NrUlTbStats(m) => self.nr_ul_counters(at, m),
            Message::NrMeas(m) => self.nr_measurements(at, m),
            Message::NrServCell(m) => self.nr_cell(at, m),
            Message::NrRrcOta(m) => self.nr_rrc_message(at, m),
        }
    }

    /// Marks lost bytes before the next message: the time in between is a hole.
    pub fn note_damage(&mut self) {
        self.settle(None);
        self.damaged = true;
    }

    /// Passes all waiting records to `give`.
    pub fn finish(&mut self, give: &mut impl FnMut(Record)) {
        self.settle(None);
        self.at_once.drain(..).for_each(&mut *give);
        self.release_through((u32::MAX, TtiIndex(i64::MAX)), give);
        self.nr.release(None, give);
    }

    /// Number of backward jumps of the log's clock: several logs in one, or the same one
    /// again.
    #[must_use]
    pub const fn clock_jumps(&self) -> u64 {
        self.clock_jumps
    }

    /// The latest time of writing, unless a message alone has it.
    #[must_use]
    pub const fn latest_ns(&self) -> Option<i64> {
        self.latest_ns
    }

    /// Records that arrived after their TTI had been returned.
    #[must_use]
    pub const fn late_records(&self) -> u64 {
        self.late
    }

    /// Records left out because their message has no valid time.
    #[must_use]
    pub const fn untimed_records(&self) -> u64 {
        self.untimed
    }

    fn note_holes(&mut self, at: Stamp) {
        let last = self.last_written_ns.replace(at.ns);
        self.latest_ns = self.latest_ns.max(Some(at.ns));
        let damaged = std::mem::take(&mut self.damaged);
        let Some(last) = last else { return };
        let of_lte = self.timing.note_clock(last, at.ns);
        if self.nr.note_clock(last, at.ns) || of_lte {
            self.clock_jumps += 1;
            return;
        }
        let silent = at.ns - last > SILENCE_NS;
        if !(damaged || silent) {
            return;
        }
        let n_tti = ((at.ns - last) / 1_000_000).max(1);
        let why = if damaged { "damaged bytes" } else { "silence" };
        let has_lte = self.timing.now(last).is_some();
        if has_lte {
            let position = self.timing.at(last);
            let at = Some(Stamp::modem(last));
            self.hold(position, Hole { at, position, n_tti, why });
        }
        // At 15 kHz, nothing distinguishes a hole of NR's leg from one of LTE's.
        if self.nr.numerology(last).is_some_and(|numerology| numerology > 0 || !has_lte) {
            self.nr.push_hole((last, at.ns), why);
        }
    }

    fn prompt(&mut self, at: Stamp, tti: Tti, cell: Option<CellId>) -> Position {
        self.timing.place_prompt(at.ns, tti, cell).0
    }

    fn batched(&mut self, at: Stamp, tti: Option<Tti>, cell: u8) -> Option<Position> {
        self.untimed += u64::from(tti.is_none());
        let position = self.timing.place_batched(at.ns, tti?);
        Some(Position { cell, ..position })
    }

    fn stamp(&self, position: Position) -> Option<Stamp> {
        self.timing.time_ns(position).map(Stamp::modem)
    }

    fn pdsch_packet(&mut self, at: Stamp, m: &PdschPacket) {
        let Some(tti) = m.tti else {
            self.untimed += 1;
            return;
        };
        let primary = (m.carrier == 0).then_some(CellId { pci: m.pci, earfcn: None });
        let position = Position { cell: m.carrier, ..self.prompt(at, tti, primary) };
        let highest = (u128::BITS - (m.prb_slot0 | m.prb_slot1).leading_zeros()) as u16;
        self.infer_bandwidth(at, m.carrier, highest, m.n_tx_antennas);
        self.dl_parts(position, m.rnti_type).add_demap(m);
    }

    fn pdsch_stat(&mut self, at: Stamp, m: &PdschStat) {
        for record in &m.records {
            let Some(position) = self.batched(at, record.tti, record.serving_cell) else {
                continue;
            };
            let crc = m.block_size_crc();
            for block in &record.blocks {
                self.dl_parts(position, block.rnti_type).add_stat(record.n_prb, block, crc);
            }
        }
    }

    fn pdsch_decoding(&mut self, at: Stamp, m: &PdschDecoding) {
        let Some(first) = m.first_tti else { return };
        for record in &m.records {
            let tti = first.wrapping_add(record.tti_offset.into());
            let Some(position) = self.batched(at, Some(tti), m.carrier) else { continue };
            for stream in &record.streams {
                self.dl_parts(position, record.rnti_type).add_decode(record.harq_id, stream);
                let failed = stream.code_blocks.iter().filter(|b| !b.crc_ok).count();
                let row = PdschDecode {
                    at: self.stamp(position),
                    position,
                    rnti: record.rnti_type,
                    harq_id: record.harq_id,
                    tb: stream.codeword,
                    crc_ok: stream.crc_ok,
                    ndi: stream.ndi,
                    rv: stream.rv,
                    retx_count: stream.retx_count,
                    combined: stream.combined,
                    code_rate: f32::from(stream.code_rate_x1024) / 1024.0,
                    code_blocks: u8::try_from(stream.code_blocks.len()).unwrap_or(u8::MAX),
                    code_blocks_failed: u8::try_from(failed).unwrap_or(u8::MAX),
                };
                self.hold(position, row);
            }
        }
    }

    fn pusch(&mut self, at: Stamp, m: &PuschTx) {
        for record in &m.records {
            let cell = record.carrier.unwrap_or(0);
            let Some(position) = self.batched(at, record.tti, cell) else { continue };
            self.ul_parts(position, RntiType::C).add_pusch(record);
        }
    }

    /// Returns the record's TTI; counts the record as late if that TTI was released.
    fn count_if_late(&mut self, position: Position) -> SegmentTti {
        let at = (position.timing_segment, position.tti);
        if self.released.is_some_and(|released| at < released) {
            self.late += 1;
        }
        at
    }

    fn dl_parts(&mut self, position: Position, rnti: RntiType) -> &mut DlParts {
        let at = self.count_if_late(position);
        self.dl.at(&mut self.waiting.at(at).dl, (position.cell, rnti))
    }

    fn ul_parts(&mut self, position: Position, rnti: RntiType) -> &mut UlParts {
        let at = self.count_if_late(position);
        self.ul.at(&mut self.waiting.at(at).ul, (position.cell, rnti))
    }

    fn hold(&mut self, position: Position, record: impl Into<Record>) {
        let record = record.into();
        let at = self.count_if_late(position);
        let slot = self.waiting.at(at);
        slot.is_assigned |= is_assignment(&record);
        self.records.push(&mut slot.other, record);
    }

    /// Holds an RLC PDU until it is known whether RLC's own message was logged.
    fn hold_mac_rlc(&mut self, position: Position, pdu: RlcPdu) {
        let at = self.count_if_late(position);
        self.records.push(&mut self.waiting.at(at).mac_rlc, pdu.into());
    }

    fn emit_now(&mut self, record: impl Into<Record>) {
        self.at_once.push(record.into());
    }

    fn release(&mut self, give: &mut impl FnMut(Record)) {
        self.at_once.drain(..).for_each(&mut *give);
        let Some(now_ns) = self.last_written_ns else { return };
        if let Some((segment, tti)) = self.timing.reached(now_ns) {
            self.release_through((segment, tti.plus(-HORIZON_TTIS)), give);
        }
        self.nr.release(Some(now_ns), give);
    }

    /// Passes everything before `until` to `give`, TTI by TTI: grants first.
    fn release_through(&mut self, until: SegmentTti, give: &mut impl FnMut(Record)) {
        let mut waiting = std::mem::take(&mut self.waiting);
        while let Some((at, slot)) = waiting.first_before(until) {
            self.release_slot(at, slot, give);
            waiting.remove_first();
        }
        self.waiting = waiting;
        self.released = self.released.max(Some(until));
        let oldest = (until.0, until.1.plus(-LOGGED_NEAR_TTIS));
        self.mac_ttis.forget_before(oldest);
        self.rlc_ttis.forget_before(oldest);
    }

    fn release_slot(&mut self, at: SegmentTti, slot: &mut Waiting, give: &mut impl FnMut(Record)) {
        let has_block = !slot.dl.is_empty();
        if let Some(hole) = self.orphans.step(at, slot.is_assigned && !has_block, has_block) {
            let at = self.stamp(hole.position);
            give(Hole { at, ..hole }.into());
        }
        // Most TTIs have neither.
        if has_block {
            for (place, parts) in self.dl.take(&mut slot.dl) {
                self.give_dl(at, place, parts, give);
            }
        }
        if !slot.ul.is_empty() {
            for (place, parts) in self.ul.take(&mut slot.ul) {
                let position = position_of(at, place);
                let n_prb_cell = self.bandwidth_prb.get(&(at.0, place.0)).copied();
                let mut grant = parts.grant(position, place.1, n_prb_cell);
                grant.at = self.stamp(position);
                give(grant.into());
            }
        }
        if !slot.mac_rlc.is_empty() {
            let is_logged = self.rlc_ttis.near(at);
            let mut give_unlogged = |pdu| {
                if !is_logged {
                    give(pdu)
                }
            };
            self.records.drain(&mut slot.mac_rlc, &mut give_unlogged);
        }
        self.records.drain(&mut slot.other, give);
    }

    fn give_dl(
        &mut self,
        at: SegmentTti,
        place: Place,
        parts: DlParts,
        give: &mut impl FnMut(Record),
    ) {
        let position = position_of(at, place);
        let n_prb_cell = self.bandwidth_prb.get(&(at.0, place.0)).copied();
        if at.0 != self.harq_segment {
            // A new cell or timing: HARQ restarts (TS 36.331, 5.3.5.4).
            self.harq_segment = at.0;
            self.harq = HarqMemory::default();
        }
        let stamp = self.stamp(position);
        let Self { harq, mac_ttis, .. } = self;
        parts.each_grant(position, place.1, n_prb_cell, |mut grant| {
            grant.at = stamp;
            if grant.rnti.is_user() {
                harq.settle(&mut grant, || mac_ttis.around(at));
            }
            give(grant.into());
        });
    }
}

fn position_of((timing_segment, tti): SegmentTti, (cell, _): Place) -> Position {
    Position { timing_segment, cell, numerology: 0, tti }
}
