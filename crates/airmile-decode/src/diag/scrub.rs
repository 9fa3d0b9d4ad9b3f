//! Modem logs that can be shared.
//!
//! A decoded message is written again from its fields ([`Message::emit`]): unexplained
//! bytes become zeros, and cipher keys and logged payload never were fields. Fields that
//! identify a cell or a user get pseudonyms; the network becomes the test network 001-01.
//! Of a message that is not decoded only code, time and version stay, so that the log
//! keeps its density (holes in it are significant). In the place of bytes that cannot be
//! read, the copy has a filler that cannot be read either: its readers find the same
//! damage, and the same hole. Packets other than log messages
//! (debug text, events, responses) and a `.qmdl2`'s leading section are left out.
//!
//! EARFCN, band, bandwidth and times stay: they reveal the operator's spectrum, possibly
//! the operator, but no user.

use airmile_model::{Direction, Problem, RntiType, Severity};

use super::dlf;
use super::frame::{self, LogPacket};
use super::hdlc::TERMINATOR;
use super::msg::{LoggedPdu, MacHeader, MacItem, Message, NrUlBlock, RlcHeader};
use super::reader::{WITH_SUBPACKETS, is_nr};
use super::stream::{Container, Deframer, Event};
use airmile_pseudonym::{Changes, Identity, Pseudonyms};

/// MCC 001, MNC 01 (TS 23.003, 2.2; ITU-T E.212, annex A: test networks).
const TEST_NETWORK: (u16, u8, u16) = (1, 2, 1);

/// No HDLC frame: it is too short for a CRC.
const NO_FRAME: [u8; 2] = [0, TERMINATOR];
/// No DLF record: its length does not include the head.
const NO_RECORD: [u8; dlf::HEADER_LEN] = [0; dlf::HEADER_LEN];

/// Scrubs a modem log.
///
/// Call order: [`push`](Self::push) its bytes, then [`finish`](Self::finish). The
/// container stays, except that a `.qmdl2` becomes plain HDLC frames.
pub struct LogScrubber {
    names: Pseudonyms,
    deframer: Deframer,
    changes: Changes,
}

impl LogScrubber {
    /// At the start of a log.
    #[must_use]
    pub fn new(names: Pseudonyms) -> Self {
        Self { names, deframer: Deframer::new(), changes: Changes::default() }
    }

    /// Takes the next bytes; scrubbed ones are appended to `out`.
    pub fn push(&mut self, piece: &[u8], out: &mut Vec<u8>, problem: &mut dyn FnMut(Problem)) {
        self.deframer.push(piece);
        self.drain(out, problem);
    }

    /// Ends the log; another part of it may be another file.
    pub fn finish(&mut self, out: &mut Vec<u8>, problem: &mut dyn FnMut(Problem)) {
        self.deframer.finish();
        self.drain(out, problem);
    }

    /// Ends the log's last part: truncated data at its end is lost.
    pub fn finish_last(&mut self, out: &mut Vec<u8>, problem: &mut dyn FnMut(Problem)) {
        self.deframer.finish_last();
        self.drain(out, problem);
    }

    /// The changes and cuts so far.
    #[must_use]
    pub const fn changes(&self) -> &Changes {
        &self.changes
    }

    /// The pseudonyms, for the next log.
    #[must_use]
    pub fn into_pseudonyms(self) -> Pseudonyms {
        self.names
    }

    fn drain(&mut self, out: &mut Vec<u8>, problem: &mut dyn FnMut(Problem)) {
        let Self { names, deframer, changes } = self;
        loop {
            let container = deframer.find_container();
            let log = match deframer.poll() {
                Some(Event::Log(log)) => log,
                Some(Event::Other(_)) => {
                    changes.add("packets_that_are_no_messages", 1);
                    continue;
                }
                Some(Event::Problem(what)) => {
                    let filler = match (container, what.severity) {
                        (_, Severity::Warning) | (Some(Container::Hdf), _) => &[][..],
                        // It may be the end of a part that another one follows.
                        (Some(Container::Dlf), Severity::Normal) => &[],
                        (Some(Container::Dlf), _) => &NO_RECORD,
                        _ => &NO_FRAME,
                    };
                    out.extend(filler);
                    changes.add("unreadable_frames_replaced", u64::from(!filler.is_empty()));
                    problem(what);
                    continue;
                }
                None => return,
            };
            changes.add("messages", 1);
            let payload = scrubbed(&log, names, changes);
            changes.add("bytes_cut", log.payload.len().saturating_sub(payload.len()) as u64);
            let log = LogPacket { payload: &payload, ..log };
            match container {
                Some(Container::Dlf) => log.emit_dlf(out),
                Some(Container::Hdf) => {
                    frame::emit_log(log.subscription, log.code, log.ts_raw, log.payload, out);
                }
                Some(Container::Hdlc | Container::Qmdl2) | None => log.emit_hdlc(out),
            }
        }
    }
}

/// The payload in shareable form.
fn scrubbed(log: &LogPacket<'_>, names: &Pseudonyms, changes: &mut Changes) -> Vec<u8> {
    match Message::parse(log.code, log.payload) {
        Ok(Some(parsed)) if !parsed.message.is_experimental() => {
            changes.add("messages_cut_where_they_broke_off", u64::from(parsed.problem.is_some()));
            let mut message = parsed.message;
            blank(&mut message, names, changes);
            message.emit()
        }
        Ok(_) => {
            changes.add("undecoded_messages_emptied", 1);
            versions_of(log)
        }
        Err(_) => {
            changes.add("broken_messages_emptied", 1);
            log.payload.iter().copied().take(1).collect()
        }
    }
}

/// The version of a message that is not decoded, and of its first subpacket,
/// which is left empty.
fn versions_of(log: &LogPacket<'_>) -> Vec<u8> {
    match log.payload {
        &[version @ 1, _, _, _, id, sub_version, ..] if WITH_SUBPACKETS.contains(&log.code) => {
            vec![version, 1, 0, 0, id, sub_version, 4, 0]
        }
        payload => {
            let version_bytes = if is_nr(log.code) { 4 } else { 1 };
            payload.iter().copied().take(version_bytes).collect()
        }
    }
}

/// Replaces identities of cells and users by pseudonyms.
fn blank(message: &mut Message, names: &Pseudonyms, changes: &mut Changes) {
    let mut blanking = Blanking { names, changes };
    match message {
        Message::MacDl(m) => {
            for block in m.subpackets.iter_mut().flat_map(|s| &mut s.blocks) {
                blanking.mac_header(Direction::Dl, block.rnti_type, &mut block.header);
            }
        }
        Message::MacDlReport(m) => {
            for block in &mut m.blocks {
                blanking.mac_items(block.rnti_type, &mut block.items);
            }
        }
        Message::MacUl(m) => {
            for block in m.subpackets.iter_mut().flat_map(|s| &mut s.blocks) {
                blanking.mac_header(Direction::Ul, block.rnti_type, &mut block.header);
            }
        }
        Message::RlcDl(m) => {
            for s in &mut m.subpackets {
                s.pdus.iter_mut().for_each(|pdu| blanking.pdu(pdu, s.sn_bits));
            }
        }
        Message::RlcUl(m) => {
            for s in &mut m.subpackets {
                s.pdus.iter_mut().for_each(|pdu| blanking.pdu(pdu, s.sn_bits));
            }
        }
        Message::PdcpDl(m) => blanking.keys(m.subpackets.len()),
        Message::PdcpUl(m) => blanking.keys(m.subpackets.len()),
        Message::RrcOta(m) => {
            blanking.pci(&mut m.pci);
            blanking.signalling(m.channel(), &mut m.message);
        }
        Message::RrcMib(m) => blanking.pci(&mut m.pci),
        Message::RrcServCell(m) => {
            blanking.pci(&mut m.pci);
            blanking.number(Identity::Cell, &mut m.cell_identity, "cell_identities");
            blanking.number(Identity::TrackingArea, &mut m.tac, "tracking_areas");
            (m.mcc, m.mnc_digits, m.mnc) = TEST_NETWORK;
            blanking.changes.add("networks", 1);
        }
        Message::PdschPacket(m) => {
            blanking.pci(&mut m.pci);
            m.strong_interferer_pci.iter_mut().for_each(|pci| blanking.pci(pci));
            blanking.rnti(m.rnti_type, &mut m.rnti);
        }
        Message::PdschDecoding(m) => {
            blanking.pci(&mut m.pci);
            m.records.iter_mut().for_each(|r| blanking.rnti(r.rnti_type, &mut r.rnti));
        }
        Message::PuschTx(m) => blanking.pci(&mut m.pci),
        Message::IntraFreqMeas(m) => {
            blanking.pci(&mut m.pci);
            m.neighbours.iter_mut().for_each(|n| blanking.pci(&mut n.pci));
        }
        Message::ServCellMeas(m) => {
            m.subpackets.iter_mut().for_each(|s| blanking.pci(&mut s.pci));
        }
        Message::NeighbourMeas(m) => {
            for cell in m.subpackets.iter_mut().flat_map(|s| &mut s.cells) {
                blanking.pci(&mut cell.pci);
            }
        }
        Message::NrPdschStatus(m) => {
            for block in m.records.iter_mut().flat_map(|r| &mut r.blocks) {
                blanking.pci(&mut block.pci);
            }
        }
        Message::NrMeas(m) => {
            for layer in &mut m.layers {
                if layer.serving_pci != u16::MAX {
                    blanking.pci(&mut layer.serving_pci);
                }
                layer.cells.iter_mut().for_each(|cell| blanking.pci(&mut cell.pci));
            }
        }
        Message::NrRrcOta(m) => {
            blanking.pci(&mut m.pci);
            blanking.signalling(None, &mut m.message);
        }
        Message::NrServCell(m) => {
            blanking.pci(&mut m.pci);
            blanking.number(Identity::Cell, &mut m.cell_identity, "cell_identities");
            blanking.number(Identity::TrackingArea, &mut m.tac, "tracking_areas");
            (m.mcc, m.mnc_digits, m.mnc) = TEST_NETWORK;
            blanking.changes.add("networks", 1);
        }
        Message::NrUlTb(m) => {
            for block in m.ttis.iter_mut().flat_map(|tti| &mut tti.blocks) {
                blanking.nr_control(block);
            }
        }
        // Counters, allocations and control information identify nobody.
        Message::UlBufferStatus(_)
        | Message::UlTxStatistics(_)
        | Message::RlcDlStats(_)
        | Message::RlcUlStats(_)
        | Message::PdcchDecoding(_)
        | Message::PdschStat(_)
        | Message::RlmReport(_)
        // Not taken as decoded.
        | Message::NrDlData(_)
        | Message::NrUlTbStats(_)
        | Message::NrPdschStats(_) => {}
    }
}

/// The LCID of the Timing Advance Command (TS 36.321, table 6.2.1-1).
const TIMING_ADVANCE_LCID: u8 = 29;

struct Blanking<'a> {
    names: &'a Pseudonyms,
    changes: &'a mut Changes,
}

impl Blanking<'_> {
    fn number<T>(&mut self, identity: Identity, value: &mut T, what: &'static str)
    where
        T: Copy + Into<u64> + TryFrom<u64>,
    {
        if let Ok(number) = T::try_from(self.names.number(identity, (*value).into())) {
            *value = number;
            self.changes.add(what, 1);
        }
    }

    fn pci(&mut self, pci: &mut u16) {
        self.number(Identity::PhysicalCell, pci, "physical_cell_identities");
    }

    /// Only an RNTI assigned to one user identifies anybody.
    fn rnti(&mut self, kind: RntiType, rnti: &mut u16) {
        if kind.is_user() || kind == RntiType::TempC {
            self.number(Identity::Rnti, rnti, "rntis");
        }
    }

    /// Cipher keys and logged payload are not fields, so they are already gone.
    fn keys(&mut self, subpackets: usize) {
        self.changes.add("cipher_keys", subpackets as u64);
    }

    /// A header to the user stays, without identities; others (random access, paging,
    /// system information) become zeros.
    fn mac_header(&mut self, dir: Direction, kind: RntiType, header: &mut [u8]) {
        if dir == Direction::Ul || kind.is_user() || kind == RntiType::TempC {
            self.changes.add("mac_identities", MacHeader::blank_identities(dir, header));
        } else if header.iter().any(|&byte| byte != 0) {
            header.fill(0);
            self.changes.add("mac_headers_of_others", 1);
        }
    }

    /// Control elements with an identity become zeros, as do those to others and
    /// unexplained bits of the PDCP PDUs.
    fn mac_items(&mut self, kind: RntiType, items: &mut [MacItem]) {
        let to_user = kind.is_user() || kind == RntiType::TempC;
        for item in items {
            match item {
                MacItem::ControlElement { lcid, payload, .. } => {
                    if (!to_user || *lcid != TIMING_ADVANCE_LCID) && *payload != [0; 9] {
                        *payload = [0; 9];
                        self.changes.add("mac_identities", 1);
                    }
                }
                MacItem::Sdu { pdcp_groups, .. } => {
                    // Bit 0 marks a following word.
                    pdcp_groups.iter_mut().flatten().for_each(|word| *word &= 1);
                }
            }
        }
    }

    /// Control elements stay up to the last buffer status report: a C-RNTI may be among
    /// the others (TS 38.321, 6.1.3.2).
    fn nr_control(&mut self, block: &mut NrUlBlock) {
        let reports_len = block.reports_len();
        let is_report = matches!(block.control.first().map(|head| head & 63), Some(59..=62));
        if !is_report && block.control.iter().any(|&byte| byte != 0) {
            block.control.fill(0);
            self.changes.add("mac_identities", 1);
        } else if let Some(rest) = block.control.get_mut(reports_len..) {
            rest.fill(0);
        }
    }

    /// The first bytes of a PDU, up to the end of its header.
    fn pdu(&mut self, pdu: &mut LoggedPdu, sn_bits: u8) {
        let header = match pdu.header(sn_bits) {
            // A truncated list must not appear complete.
            Some(RlcHeader::Status { complete: false, .. }) => return,
            Some(header) => header.emit(sn_bits),
            None => Vec::new(),
        };
        if header.len() < pdu.head.len() {
            self.changes.add("rlc_payload_bytes", (pdu.head.len() - header.len()) as u64);
            pdu.head = header.into();
        } else {
            // Bits after the header in its last byte.
            let length = pdu.head.len();
            pdu.head.copy_from_slice(header.get(..length).unwrap_or_default());
        }
    }

    /// An RRC message may hold an IMSI or a TMSI, and NAS within it an IMEI: only the two
    /// fields that identify a handover are kept (TS 36.331, DL-DCCH-Message: message
    /// type, and mobilityControlInfo).
    fn signalling(&mut self, channel: Option<&str>, message: &mut [u8]) {
        let head = match (channel, &*message) {
            (Some("DL-DCCH"), &[first, second, ..]) => [first & 0xf9, second & 0xe8],
            _ => [0, 0],
        };
        message.fill(0);
        if head == [0x20, 0x08] {
            message.iter_mut().zip(head).for_each(|(byte, bits)| *byte = bits);
        }
        self.changes.add("signalling_messages_emptied", u64::from(!message.is_empty()));
    }
}

#[cfg(test)]
mod tests;
