//! Signalling and MAC headers of a log, as packets that Wireshark dissects.
//!
//! LTE signalling is written in GSMTAP (libosmocore, `gsmtap.h`) over UDP and IPv4:
//!
//! | log code | GSMTAP type |
//! |---|---|
//! | 0xB0C0 | LTE RRC (0x0D), by channel |
//! | 0xB0E0, 0xB0E1, 0xB0EA, 0xB0EB | LTE NAS (0x12) with a security header |
//! | 0xB0E2, 0xB0E3, 0xB0EC, 0xB0ED | LTE NAS (0x12), plain |
//!
//! Where Wireshark reads no GSMTAP type, the packet is an exported PDU (link type 252), which
//! names its dissector: NR signalling of 0xB821, and the MAC PDUs of 0xB063 and 0xB064, whose
//! subheaders and control elements a log has, and whose SDUs it has not.
//!
//! NAS: u8 version 1, u8 release, 2 bytes of its version, then the message (TS 24.301), as found
//! in the sample logs.

use airmile_model::tti::TTIS_PER_SFN_PERIOD;
use airmile_model::{Direction, RntiType, Stamp, Tti};

use super::msg::mac_header::LCID_PADDING;
use super::msg::{
    MacContent, MacDl, MacDlReport, MacDlReportBlock, MacHeader, MacItem, MacSubheader, MacUl,
    Message, NrRrcOta, RrcOta,
};
use super::{Deframer, Event, LogPacket};

/// Link type of a packet (pcap's registry of link-layer header types).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkType {
    /// 228: IPv4, here with UDP and GSMTAP.
    Ipv4,
    /// 252: a PDU that names its dissector.
    ExportedPdu,
}

/// A packet of the air interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AirPacket {
    /// Time of writing; of an earlier block of a batch, earlier by its TTIs.
    pub at: Stamp,
    /// Subscription of a multi-SIM phone, 1-based; 0 unknown.
    pub subscription: u8,
    /// Direction.
    pub dir: Direction,
    /// Encapsulation.
    pub link: LinkType,
    /// The logged bytes.
    pub bytes: Vec<u8>,
    /// Size on the air with all headers in bytes: a MAC PDU's SDUs are not logged.
    pub wire_bytes: u32,
}

/// Reads a log's bytes and returns its packets; damage is skipped here, as
/// [`LogReader`](super::LogReader) reports it.
#[derive(Debug, Clone, Default)]
pub struct AirReader {
    deframer: Deframer,
    left_out: u64,
}

impl AirReader {
    /// At the start of a log.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Signalling messages that have no packet: their version is unknown, they are damaged, or
    /// Wireshark has no dissector for them.
    #[must_use]
    pub const fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Takes the next bytes; packets are passed to `sink`.
    pub fn push(&mut self, bytes: &[u8], sink: &mut dyn FnMut(AirPacket)) {
        self.deframer.push(bytes);
        self.drain(sink);
    }

    /// Ends a file; another one may follow.
    pub fn end_file(&mut self, sink: &mut dyn FnMut(AirPacket)) {
        self.deframer.finish();
        self.drain(sink);
        self.deframer = Deframer::new();
    }

    fn drain(&mut self, sink: &mut dyn FnMut(AirPacket)) {
        while let Some(event) = self.deframer.poll() {
            let Event::Log(log) = event else { continue };
            let mut has_packet = false;
            packets(&log, &mut |packet| {
                has_packet = true;
                sink(packet);
            });
            let is_signalling =
                nas(log.code).is_some() || [RrcOta::CODE, NrRrcOta::CODE].contains(&log.code);
            self.left_out += u64::from(is_signalling && !has_packet);
        }
    }
}

/// The packets of a log packet.
fn packets(log: &LogPacket<'_>, sink: &mut dyn FnMut(AirPacket)) {
    if let Some((dir, subtype)) = nas(log.code) {
        if let Some((&[1, _, _, _], message)) = log.payload.split_first_chunk()
            && !message.is_empty()
        {
            let head = GsmtapHeader { kind: LTE_NAS, subtype, dir, ..GsmtapHeader::default() };
            sink(head.packet(log, log.at, message, message.len() as u32));
        }
        return;
    }
    if ![MacDl::CODE, MacUl::CODE, RrcOta::CODE, NrRrcOta::CODE].contains(&log.code) {
        return;
    }
    let Ok(Some(parsed)) = Message::parse(log.code, log.payload) else { return };
    match &parsed.message {
        Message::RrcOta(m) => sink_some(rrc(log, m), sink),
        Message::NrRrcOta(m) => sink_some(nr_rrc(log, m), sink),
        Message::MacDl(m) => {
            let blocks = m.subpackets.iter().flat_map(|subpacket| &subpacket.blocks);
            let user = |rnti| matches!(rnti, RntiType::C | RntiType::Sps | RntiType::TempC);
            let blocks = blocks.filter(|block| user(block.rnti_type)).map(|block| MacPdu {
                dir: Direction::Dl,
                tti: block.tti,
                rnti_type: block.rnti_type,
                carrier: block.cell.unwrap_or(0),
                header: block.header.to_vec(),
                tbs_bytes: block.tbs_bytes.into(),
            });
            mac(log, blocks.collect(), sink);
        }
        Message::MacUl(m) => {
            let blocks = m.subpackets.iter().flat_map(|subpacket| &subpacket.blocks);
            let blocks = blocks.map(|block| MacPdu {
                dir: Direction::Ul,
                tti: block.tti,
                rnti_type: block.rnti_type,
                carrier: block.cell.unwrap_or(0),
                header: block.header.to_vec(),
                tbs_bytes: block.grant_bytes.into(),
            });
            mac(log, blocks.collect(), sink);
        }
        Message::MacDlReport(m) => mac(log, reported(m), sink),
        _ => {}
    }
}

fn sink_some(packet: Option<AirPacket>, sink: &mut dyn FnMut(AirPacket)) {
    packet.into_iter().for_each(sink);
}

const LTE_RRC: u8 = 0x0d;
const LTE_NAS: u8 = 0x12;

/// Direction and GSMTAP subtype (0 plain, 1 with a security header) of a NAS message.
const fn nas(code: u16) -> Option<(Direction, u8)> {
    match code {
        0xB0E0 | 0xB0EA => Some((Direction::Dl, 1)),
        0xB0E1 | 0xB0EB => Some((Direction::Ul, 1)),
        0xB0E2 | 0xB0EC => Some((Direction::Dl, 0)),
        0xB0E3 | 0xB0ED => Some((Direction::Ul, 0)),
        _ => None,
    }
}

/// Whether a message is empty, or was emptied for sharing ([`super::scrub`]): zeros, after the two
/// bytes by which a handover is known. A dissector would take them for another message.
fn is_emptied(message: &[u8]) -> bool {
    let zeros = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0);
    zeros(message) || (message.len() > 4 && message.get(2..).is_some_and(zeros))
}

fn rrc(log: &LogPacket<'_>, m: &RrcOta) -> Option<AirPacket> {
    let (subtype, dir) = match m.channel()? {
        "DL-CCCH" => (0, Direction::Dl),
        "DL-DCCH" => (1, Direction::Dl),
        "UL-CCCH" => (2, Direction::Ul),
        "UL-DCCH" => (3, Direction::Ul),
        "BCCH-DL-SCH" => (5, Direction::Dl),
        "PCCH" => (6, Direction::Dl),
        _ => return None,
    };
    let head = GsmtapHeader { kind: LTE_RRC, subtype, dir, arfcn: m.earfcn, tti: m.tti };
    (!is_emptied(&m.message)).then(|| head.packet(log, log.at, &m.message, m.message.len() as u32))
}

/// Dissector and direction of an NR RRC message. The PDU identities are those of version 8 that
/// were confirmed on a real log; Wireshark has no dissector for its identity 10, an
/// `RRCReconfigurationComplete` by itself.
const fn nr_dissector(m: &NrRrcOta) -> Option<(&'static str, Direction)> {
    match (m.version, m.pdu_id) {
        (8, 1) => Some(("nr-rrc.bcch.bch", Direction::Dl)),
        (8, 8) => Some(("nr-rrc.ul.dcch", Direction::Ul)),
        (8, 9) => Some(("nr-rrc.rrc_reconf", Direction::Dl)),
        (8, 26) => Some(("nr-rrc.radiobearerconfig", Direction::Dl)),
        _ => None,
    }
}

fn nr_rrc(log: &LogPacket<'_>, m: &NrRrcOta) -> Option<AirPacket> {
    let (dissector, dir) = nr_dissector(m)?;
    let message = &m.message;
    let packet = || exported(log, (log.at, dir), dissector, message, message.len() as u32);
    (!is_emptied(message)).then(packet)
}

/// A PDU of `pdu_bytes`, of which `captured` is in the log, for a dissector (Wireshark,
/// exported_pdu.h): tag 12 names it, in a length that is a multiple of four; tag 0 ends the tags.
fn exported(
    log: &LogPacket<'_>,
    (at, dir): (Stamp, Direction),
    dissector: &str,
    captured: &[u8],
    pdu_bytes: u32,
) -> AirPacket {
    let name_bytes = dissector.len().next_multiple_of(4);
    let head_bytes = 4 + name_bytes + 4;
    let mut bytes = Vec::with_capacity(head_bytes + captured.len());
    bytes.extend([0, 12]);
    bytes.extend((name_bytes as u16).to_be_bytes());
    bytes.extend_from_slice(dissector.as_bytes());
    bytes.resize(head_bytes, 0);
    bytes.extend_from_slice(captured);
    let wire_bytes = pdu_bytes.saturating_add(head_bytes as u32);
    let (subscription, link) = (log.subscription, LinkType::ExportedPdu);
    AirPacket { at, subscription, dir, link, bytes, wire_bytes }
}

/// A block of which the log has the header.
struct MacPdu {
    dir: Direction,
    tti: Option<Tti>,
    rnti_type: RntiType,
    carrier: u8,
    /// Subheaders and control elements.
    header: Vec<u8>,
    tbs_bytes: u32,
}

/// Blocks whose contents a report describes: their headers are written anew.
fn reported(m: &MacDlReport) -> Vec<MacPdu> {
    let user = |block: &&MacDlReportBlock| block.rnti_type.is_user();
    let blocks = m.blocks.iter().filter(user).map(|block| MacPdu {
        dir: Direction::Dl,
        tti: block.tti,
        rnti_type: block.rnti_type,
        carrier: block.carrier,
        header: header_of(block),
        tbs_bytes: block.tbs_bytes,
    });
    blocks.collect()
}

/// The MAC header of a described block (TS 36.321, 6.1.2): padding of one or two bytes
/// precedes all other subheaders, more follows them.
fn header_of(block: &MacDlReportBlock) -> Vec<u8> {
    let padding = |len_bytes| MacSubheader {
        lcid: LCID_PADDING,
        content: MacContent::Padding { len_bytes: Some(len_bytes) },
    };
    let mut subheaders = Vec::with_capacity(block.items.len() + 2);
    if block.padding_bytes <= 2 {
        subheaders.extend((0..block.padding_bytes).map(|_| padding(0)));
    }
    subheaders.extend(block.items.iter().map(|item| match item {
        MacItem::ControlElement { lcid, len_bytes, payload } => {
            let bytes = payload.get(..usize::from(*len_bytes)).unwrap_or(payload);
            MacSubheader { lcid: *lcid, content: MacContent::ControlElement(bytes.into()) }
        }
        MacItem::Sdu { lcid, len_bytes, .. } => {
            let len_bytes = Some(u32::from(*len_bytes));
            MacSubheader { lcid: *lcid, content: MacContent::Sdu { len_bytes } }
        }
    }));
    if block.padding_bytes > 2 {
        subheaders.push(padding(block.padding_bytes));
    }
    MacHeader::emit(Direction::Dl, &subheaders)
}

/// A TTI of LTE, in ns.
const TTI_NS: i64 = 1_000_000;

// Fields before a MAC PDU (Wireshark, packet-mac-lte.h).
const RADIO_FDD: u8 = 1;
const TAG_PAYLOAD: u8 = 1;
const TAG_UE: u8 = 3;
const TAG_TTI: u8 = 4;
const TAG_CARRIER: u8 = 10;

/// A batch of blocks, of which the last was written at the log packet's time.
fn mac(log: &LogPacket<'_>, blocks: Vec<MacPdu>, sink: &mut dyn FnMut(AirPacket)) {
    let last = blocks.iter().rev().find_map(|block| block.tti);
    for block in blocks.into_iter().filter(|block| !block.header.is_empty()) {
        let tti = block.tti.or(last);
        let earlier = match (last, tti) {
            (Some(last), Some(tti)) => i64::from(last.wrapping_since(tti)),
            _ => 0,
        };
        // A block that is listed before an earlier one has the message's time.
        let earlier = if earlier > TTIS_PER_SFN_PERIOD / 2 { 0 } else { earlier };
        let at = Stamp { ns: log.at.ns.saturating_sub(earlier * TTI_NS), ..log.at };
        let rnti_type = if block.rnti_type == RntiType::Sps { 5 } else { 3 };
        let direction = u8::from(block.dir == Direction::Dl);
        let mut bytes = vec![RADIO_FDD, direction, rnti_type];
        bytes.extend([TAG_UE, 0, log.subscription.max(1)]);
        if let Some(tti) = block.tti {
            let [high, low] = (tti.sfn() << 4 | u16::from(tti.subframe())).to_be_bytes();
            bytes.extend([TAG_TTI, high, low]);
        }
        bytes.extend([TAG_CARRIER, block.carrier, TAG_PAYLOAD]);
        let missing = block.tbs_bytes.saturating_sub(block.header.len() as u32);
        bytes.extend(block.header);
        let pdu_bytes = (bytes.len() as u32).saturating_add(missing);
        sink(exported(log, (at, block.dir), "mac-lte-framed", &bytes, pdu_bytes));
    }
}

/// The fields of a GSMTAP header that a log fills.
struct GsmtapHeader {
    kind: u8,
    subtype: u8,
    dir: Direction,
    /// EARFCN; 0 unknown. The field holds 14 bits.
    arfcn: u32,
    tti: Option<Tti>,
}

impl Default for GsmtapHeader {
    fn default() -> Self {
        Self { kind: 0, subtype: 0, dir: Direction::Dl, arfcn: 0, tti: None }
    }
}

const IPV4_BYTES: u32 = 20;
const UDP_BYTES: u32 = 8;
const GSMTAP_BYTES: u32 = 16;
const UDP_PORT: [u8; 2] = 4_729_u16.to_be_bytes();
const LOOPBACK: [u8; 4] = [127, 0, 0, 1];
const MAX_ARFCN: u16 = 0x3fff;
const UPLINK: u16 = 0x4000;

impl GsmtapHeader {
    /// Encapsulates a PDU of `pdu_bytes`, of which `captured` is in the log.
    fn packet(&self, log: &LogPacket<'_>, at: Stamp, captured: &[u8], pdu_bytes: u32) -> AirPacket {
        let wire_bytes = pdu_bytes.saturating_add(IPV4_BYTES + UDP_BYTES + GSMTAP_BYTES);
        let length = |bytes: u32| u16::try_from(bytes).unwrap_or(u16::MAX).to_be_bytes();
        let mut bytes = Vec::with_capacity(captured.len() + 44);
        // Version 4 with 5 words; no fragments; TTL 64; UDP; the checksum follows.
        bytes.extend([0x45, 0]);
        bytes.extend(length(wire_bytes));
        bytes.extend([0, 0, 0x40, 0, 64, 17, 0, 0]);
        bytes.extend(LOOPBACK);
        bytes.extend(LOOPBACK);
        let sum = ipv4_checksum(&bytes).to_be_bytes();
        bytes.splice(10..12, sum);
        bytes.extend(UDP_PORT);
        bytes.extend(UDP_PORT);
        bytes.extend(length(wire_bytes - IPV4_BYTES));
        // No UDP checksum (RFC 768).
        bytes.extend([0, 0]);
        // GSMTAP version 2, header of 4 words, type, time slot.
        bytes.extend([2, 4, self.kind, 0]);
        // An EARFCN over 14 bits would be another channel's.
        let arfcn = u16::try_from(self.arfcn).ok().filter(|arfcn| *arfcn <= MAX_ARFCN).unwrap_or(0);
        let uplink = if self.dir == Direction::Ul { UPLINK } else { 0 };
        bytes.extend((arfcn | uplink).to_be_bytes());
        // Signal and noise are unknown; frame number.
        bytes.extend([0, 0]);
        bytes.extend(self.tti.map_or(0, |tti| u32::from(tti.sfn())).to_be_bytes());
        bytes.extend([self.subtype, 0, self.tti.map_or(0, Tti::subframe), 0]);
        bytes.extend_from_slice(captured);
        let (subscription, link) = (log.subscription, LinkType::Ipv4);
        AirPacket { at, subscription, dir: self.dir, link, bytes, wire_bytes }
    }
}

/// The ones' complement sum of a header without its checksum (RFC 1071).
fn ipv4_checksum(header: &[u8]) -> u16 {
    let words = header.chunks(2).map(|pair| match pair {
        &[high, low] => u32::from(u16::from_be_bytes([high, low])),
        _ => 0,
    });
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

#[cfg(test)]
mod tests;
