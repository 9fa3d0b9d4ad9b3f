//! From messages to records: TTIs unwrapped, one grant from several messages,
//! everything in TTI order.
//!
//! Messages reach a log some time after the air: 0xB173 by up to 300 ms, RLC
//! batches by 100 ms and more. Records therefore wait until the log's clock is
//! [`HORIZON_TTIS`] past them; then all that speaks of a TTI has come, the
//! grant is put together (precedence: see the modules `downlink` and `uplink`) and the
//! records leave in TTI order. What comes later still is given at once, out
//! of order, and counted.

mod downlink;
mod plain;
mod signalling;
mod timing;
mod uplink;
mod waiting;

use std::collections::{BTreeMap, VecDeque};

use airmile_model::radio::lte_bandwidth_at_least;
use airmile_model::tti::{Tti, TtiIndex};
use airmile_model::window::TtiWindow;
use airmile_model::{
    CellInfo, Direction, Hole, MacBlock, PdschDecode, Position, Record, RntiType, Stamp, UlTxStats,
};

use self::downlink::{DlParts, HarqMemory};
use self::timing::{CellId, Timing};
use self::uplink::UlParts;
use self::waiting::{Place, Waiting};
use crate::diag::msg::{
    MacContent, MacDl, MacDlBlock, MacHeader, MacUl, Message, PdschDecoding, PdschPacket,
    PdschStat, PuschTx,
};

/// How long records wait for what else speaks of their TTI. Chosen here: six
/// times the longest delay seen in real logs (0.3 s).
pub const HORIZON_TTIS: i64 = 2_000;

/// Silence of the whole log from which a hole is reported. Chosen here: past
/// the longest idle DRX cycle (2.56 s, TS 36.304 7.1), in which a sleeping
/// phone still measures once.
const SILENCE_NS: i64 = 4_000_000_000;

/// MAC records this near, on both sides, show that the MAC layer was logged.
const MAC_NEAR_TTIS: i64 = 400;

/// Logical channels of data bearers (TS 36.321, table 6.2.1-1: 1 and 2 are
/// the signalling bearers' in practice, TS 36.331 9.1.2).
const DATA_LCIDS: std::ops::RangeInclusive<u8> = 3..=10;

/// Configuration indexes from here on are signalling bearers, as 0xB081 shows
/// (33 is SRB1, 34 SRB2).
const FIRST_SRB_INDEX: u8 = 32;

/// Puts together the records of one subscription's messages.
#[derive(Debug, Default)]
pub struct Assembler {
    timing: Timing,
    waiting: TtiWindow<Waiting>,
    mac_ttis: MacTtis,
    harq: HarqMemory,
    harq_segment: u32,
    /// By timing segment and cell, as a message gave it.
    bandwidth_prb: BTreeMap<(u32, u8), u16>,
    highest_prb: BTreeMap<(u32, u8), u16>,
    told_bandwidth: BTreeMap<(u32, u8), (u16, &'static str)>,
    orphans: OrphanRun,
    clock_jumps: u64,
    released: Option<(u32, TtiIndex)>,
    last_written_ns: Option<i64>,
    damaged: bool,
    late: u64,
    out: VecDeque<Record>,
}

impl Assembler {
    /// Takes the next message, written at `at`.
    pub fn push(&mut self, at: Stamp, message: &Message) {
        self.note_holes(at);
        match message {
            Message::PdschPacket(m) => self.pdsch_packet(at, m),
            Message::PdschStat(m) => self.pdsch_stat(at, m),
            Message::PdschDecoding(m) => self.pdsch_decoding(at, m),
            Message::PdcchDecoding(m) => self.pdcch(at, m),
            Message::MacDl(m) => self.mac_dl(at, m),
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
            Message::NrPdschStats(m) => self.nr_counters(at, m),
        }
        self.release(at.ns);
    }

    /// Notes that bytes were lost before the next message: what was written
    /// in between is a hole.
    pub fn note_damage(&mut self) {
        self.damaged = true;
    }

    /// Notes the writing time of a packet that is not decoded, for silence.
    pub fn note_alive(&mut self, at: Stamp) {
        self.note_holes(at);
    }

    /// The next record, in TTI order.
    pub fn poll(&mut self) -> Option<Record> {
        self.out.pop_front()
    }

    /// Gives all that still waits.
    pub fn finish(&mut self) {
        self.release_through((u32::MAX, TtiIndex(i64::MAX)));
    }

    /// How often the log's clock jumped back: several logs in one, or the same
    /// one again.
    #[must_use]
    pub const fn clock_jumps(&self) -> u64 {
        self.clock_jumps
    }

    /// Records that came after their TTI had been given.
    #[must_use]
    pub const fn late_records(&self) -> u64 {
        self.late
    }

    fn note_holes(&mut self, at: Stamp) {
        let last = self.last_written_ns.replace(at.ns);
        let damaged = std::mem::take(&mut self.damaged);
        let Some(last) = last else { return };
        if self.timing.note_clock(last, at.ns) {
            self.clock_jumps += 1;
            return;
        }
        let silent = at.ns - last > SILENCE_NS;
        if (damaged || silent) && self.timing.now(last).is_some() {
            let position = self.timing.at(last);
            let n_tti = ((at.ns - last) / 1_000_000).max(1);
            let why = if damaged { "damaged bytes" } else { "silence" };
            let at = Some(Stamp::modem(last));
            self.hold(position, Hole { at, position, n_tti, why });
        }
    }

    fn prompt(&mut self, at: Stamp, tti: Tti, cell: Option<CellId>) -> Position {
        self.timing.place_prompt(at.ns, tti, cell).0
    }

    fn batched(&mut self, at: Stamp, tti: Option<Tti>, cell: u8) -> Option<Position> {
        let position = self.timing.place_batched(at.ns, tti?);
        Some(Position { cell, ..position })
    }

    fn stamp(&self, position: Position) -> Option<Stamp> {
        self.timing.time_ns(position).map(Stamp::modem)
    }

    fn pdsch_packet(&mut self, at: Stamp, m: &PdschPacket) {
        let Some(tti) = m.tti else { return };
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
            for block in &record.blocks {
                self.dl_parts(position, block.rnti_type).add_stat(record.n_prb, block);
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

    fn mac_dl(&mut self, at: Stamp, m: &MacDl) {
        for block in m.subpackets.iter().flat_map(|s| &s.blocks) {
            let Some(position) = self.batched(at, block.tti, block.cell.unwrap_or(0)) else {
                continue;
            };
            self.mac_ttis.insert((position.timing_segment, position.tti));
            let header = block.subheaders();
            let data_bytes = dl_data_bytes(block, header.as_ref());
            self.dl_parts(position, block.rnti_type).add_mac(block, data_bytes);
            let row = MacBlock {
                at: self.stamp(position),
                position,
                dir: Direction::Dl,
                rnti: block.rnti_type,
                harq_id: block.harq_id,
                tbs_bytes: block.tbs_bytes.into(),
                rlc_pdus: block.rlc_pdus,
                padding_bytes: block.padding_bytes.into(),
                data_bytes,
                lcids: header.as_ref().map(lcids).unwrap_or_default(),
            };
            self.hold(position, row);
        }
    }

    fn mac_ul(&mut self, at: Stamp, m: &MacUl) {
        for block in m.subpackets.iter().flat_map(|s| &s.blocks) {
            let Some(position) = self.batched(at, block.tti, block.cell.unwrap_or(0)) else {
                continue;
            };
            let header = block.subheaders();
            let data_bytes = header.sdu_bytes(DATA_LCIDS);
            self.ul_parts(position, block.rnti_type).add_mac(block, data_bytes);
            let stamp = self.stamp(position);
            self.bsr_reports(position, stamp, &header);
            let row = MacBlock {
                at: stamp,
                position,
                dir: Direction::Ul,
                rnti: block.rnti_type,
                harq_id: block.harq_id,
                tbs_bytes: block.grant_bytes.into(),
                rlc_pdus: block.rlc_pdus,
                padding_bytes: block.padding_bytes.into(),
                data_bytes,
                lcids: lcids(&header),
            };
            self.hold(position, row);
        }
    }

    fn pusch(&mut self, at: Stamp, m: &PuschTx) {
        for record in &m.records {
            let cell = record.carrier.unwrap_or(0);
            let Some(position) = self.batched(at, record.tti, cell) else { continue };
            self.ul_parts(position, RntiType::C).add_pusch(record);
        }
    }

    fn blank_cell(&self, at: Stamp, cell: u8, source: &'static str) -> CellInfo {
        CellInfo {
            at: Some(at),
            timing_segment: self.timing.now(at.ns).unwrap_or_default().0,
            cell,
            pci: None,
            earfcn: None,
            n_prb_dl: None,
            n_prb_ul: None,
            n_tx_antennas: None,
            band: None,
            source,
        }
    }

    fn cell_info(&mut self, info: CellInfo) {
        if let Some(n_prb) = info.n_prb_dl {
            let at = (info.timing_segment, info.cell);
            self.bandwidth_prb.insert(at, n_prb);
            self.told_bandwidth.insert(at, (n_prb, info.source));
        }
        self.emit_now(info);
    }

    fn tell_bandwidth(&mut self, at: Stamp, cell: u8, n_prb: u16, source: &'static str) {
        let key = (self.timing.now(at.ns).unwrap_or_default().0, cell);
        self.bandwidth_prb.insert(key, n_prb);
        if self.told_bandwidth.insert(key, (n_prb, source)) != Some((n_prb, source)) {
            self.emit_now(CellInfo { n_prb_dl: Some(n_prb), ..self.blank_cell(at, cell, source) });
        }
    }

    /// Where no message gives the bandwidth: the smallest one that holds the
    /// highest RB ever assigned.
    fn infer_bandwidth(&mut self, at: Stamp, cell: u8, highest: u16, n_tx_antennas: u8) {
        let key = (self.timing.now(at.ns).unwrap_or_default().0, cell);
        let seen = self.highest_prb.entry(key).or_default();
        if highest <= *seen {
            return;
        }
        *seen = highest;
        if self.bandwidth_prb.contains_key(&key) {
            return;
        }
        if let Some(n_prb) = lte_bandwidth_at_least(highest)
            && self.told_bandwidth.insert(key, (n_prb, "inferred")) != Some((n_prb, "inferred"))
        {
            self.emit_now(CellInfo {
                n_prb_dl: Some(n_prb),
                n_tx_antennas: Some(n_tx_antennas),
                ..self.blank_cell(at, cell, "inferred")
            });
        }
    }

    fn slot(&mut self, position: Position) -> &mut Waiting {
        let at = (position.timing_segment, position.tti);
        if self.released.is_some_and(|released| at < released) {
            self.late += 1;
        }
        self.waiting.at(at)
    }

    fn dl_parts(&mut self, position: Position, rnti: RntiType) -> &mut DlParts {
        self.slot(position).dl_parts((position.cell, rnti))
    }

    fn ul_parts(&mut self, position: Position, rnti: RntiType) -> &mut UlParts {
        self.slot(position).ul_parts((position.cell, rnti))
    }

    fn hold(&mut self, position: Position, record: impl Into<Record>) {
        let record = record.into();
        let slot = self.slot(position);
        slot.is_assigned |= is_assignment(&record);
        slot.other.push(record);
    }

    fn emit_now(&mut self, record: impl Into<Record>) {
        self.out.push_back(record.into());
    }

    fn release(&mut self, now_ns: i64) {
        if let Some((segment, tti)) = self.timing.now(now_ns) {
            self.release_through((segment, tti.plus(-HORIZON_TTIS)));
        }
    }

    /// Gives all that is before `until`, TTI by TTI: grants first.
    fn release_through(&mut self, until: (u32, TtiIndex)) {
        let mut waiting = std::mem::take(&mut self.waiting);
        while let Some((at, slot)) = waiting.first_before(until) {
            self.release_slot(at, slot);
            waiting.remove_first();
        }
        self.waiting = waiting;
        self.released = self.released.max(Some(until));
        self.mac_ttis.forget_before((until.0, until.1.plus(-MAC_NEAR_TTIS)));
    }

    fn release_slot(&mut self, at: (u32, TtiIndex), slot: &mut Waiting) {
        let has_block = !slot.dl.is_empty();
        if let Some(hole) = self.orphans.step(at, slot.is_assigned && !has_block, has_block) {
            let at = self.stamp(hole.position);
            self.out.push_back(Hole { at, ..hole }.into());
        }
        for (place, parts) in slot.dl.drain(..) {
            self.give_dl(at, place, parts);
        }
        for (place, parts) in slot.ul.drain(..) {
            let position = position_of(at, place);
            let n_prb_cell = self.bandwidth_prb.get(&(at.0, place.0)).copied();
            let mut grant = parts.grant(position, place.1, n_prb_cell);
            grant.at = self.stamp(position);
            self.out.push_back(grant.into());
        }
        self.out.extend(slot.other.drain(..));
    }

    fn give_dl(&mut self, at: (u32, TtiIndex), place: Place, parts: DlParts) {
        let position = position_of(at, place);
        let n_prb_cell = self.bandwidth_prb.get(&(at.0, place.0)).copied();
        if at.0 != self.harq_segment {
            // A new cell or timing: HARQ begins anew (TS 36.331, 5.3.5.4).
            self.harq_segment = at.0;
            self.harq = HarqMemory::default();
        }
        let stamp = self.stamp(position);
        let near = self.mac_ttis.around((at.0, at.1));
        let Self { harq, out, .. } = self;
        parts.each_grant(position, place.1, n_prb_cell, |mut grant| {
            grant.at = stamp;
            if grant.rnti.is_user() {
                harq.settle(&mut grant, near);
            }
            out.push_back(grant.into());
        });
    }
}

/// TTIs of which the MAC layer logged a block, in order.
#[derive(Debug, Default)]
struct MacTtis(VecDeque<(u32, TtiIndex)>);

impl MacTtis {
    fn insert(&mut self, at: (u32, TtiIndex)) {
        match self.0.back() {
            Some(newest) if *newest >= at => {
                if let Err(here) = self.0.binary_search(&at) {
                    self.0.insert(here, at);
                }
            }
            _ => self.0.push_back(at),
        }
    }

    fn forget_before(&mut self, at: (u32, TtiIndex)) {
        while self.0.front().is_some_and(|oldest| *oldest < at) {
            self.0.pop_front();
        }
    }

    /// Whether the MAC layer was logged within [`MAC_NEAR_TTIS`] on both sides.
    fn around(&self, (segment, tti): (u32, TtiIndex)) -> bool {
        let within = |from: TtiIndex, to: TtiIndex| {
            let first = self.0.partition_point(|at| *at < (segment, from));
            self.0.get(first).is_some_and(|at| *at < (segment, to))
        };
        within(tti.plus(-MAC_NEAR_TTIS), tti) && within(tti.plus(1), tti.plus(MAC_NEAR_TTIS))
    }
}

/// Assignments on the control channel of which no block was logged: the items
/// that hold blocks were lost there.
#[derive(Debug, Default)]
struct OrphanRun {
    run: Option<(u32, TtiIndex, TtiIndex, u32)>,
}

/// So many assignments without a block in a row are a hole. Chosen here: one
/// may be a control channel decoded by chance (a 16-bit CRC, TS 36.212 5.3.3.2,
/// over some dozen candidates a TTI), three in a row are not.
const ORPHANS: u32 = 3;
/// A hole is told in pieces of at most this length, so that it is in order
/// with what follows (chosen here, well under the estimators' lateness).
const ORPHAN_RUN_TTIS: i64 = 200;

impl OrphanRun {
    /// Takes a TTI; gives a hole that has ended or grown long.
    fn step(&mut self, at: (u32, TtiIndex), orphan: bool, block: bool) -> Option<Hole> {
        let ended = self.run.filter(|(segment, first, ..)| {
            block || *segment != at.0 || at.1.since(*first) >= ORPHAN_RUN_TTIS
        });
        if ended.is_some() {
            self.run = None;
        }
        if orphan {
            let run = self.run.get_or_insert((at.0, at.1, at.1, 0));
            run.2 = at.1;
            run.3 += 1;
        }
        let (timing_segment, first, last, count) = ended?;
        let position = Position { timing_segment, tti: first, ..Position::default() };
        (count >= ORPHANS).then(|| Hole {
            at: None,
            position,
            n_tti: last.since(first) + 1,
            why: "assignments without a block",
        })
    }
}

/// Whether a record is a decoded downlink assignment of this user.
fn is_assignment(record: &Record) -> bool {
    // Prune status 3: format 1A, 6: formats 2, 2A, 2B.
    matches!(record, Record::Dci(d) if d.rnti == RntiType::C
        && matches!(d.prune_status, 3 | 6) && d.format.starts_with(['1', '2']))
}

fn position_of((timing_segment, tti): (u32, TtiIndex), (cell, _): Place) -> Position {
    Position { timing_segment, cell, numerology: 0, tti }
}

fn bandwidth(n_prb: u8) -> Option<u16> {
    Some(u16::from(n_prb)).filter(|n| *n > 0)
}

/// Bytes of data bearers' SDUs in a block; nothing where the header was not
/// logged whole, zero in a block of another RNTI.
fn dl_data_bytes(block: &MacDlBlock, header: Option<&MacHeader>) -> Option<u32> {
    match header {
        Some(header) => header.sdu_bytes(DATA_LCIDS),
        None if block.rnti_type.is_user() => None,
        None => Some(0),
    }
}

/// The header's subheaders as text.
fn lcids(header: &MacHeader) -> String {
    let mut out = String::with_capacity(8 * header.subheaders.len());
    for s in &header.subheaders {
        if !out.is_empty() {
            out.push(' ');
        }
        push_number(&mut out, s.lcid.into());
        if let MacContent::Sdu { len_bytes: Some(bytes) } = s.content {
            out.push(':');
            push_number(&mut out, bytes);
        }
    }
    out
}

/// Writes a number without the formatter's cost: one or two stand in every block.
fn push_number(out: &mut String, n: u32) {
    if n >= 10 {
        push_number(out, n / 10);
    }
    out.push(char::from(b'0' + (n % 10) as u8));
}
