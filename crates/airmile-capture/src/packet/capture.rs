//! Reads captures in pieces: finds whole blocks, keeps partial ones, resumes after
//! damage.

use airmile_model::{Problem, Severity};

use super::{pcap, pcapng};

/// Maximum plausible record. A BIG TCP segment has up to 512 KB; tcpdump itself takes no
/// more than 256 KB of one (chosen here: 1 MB).
pub(super) const MAX_RECORD_BYTES: u32 = 1 << 20;

/// Maximum plausible pcapng block; name resolution and custom blocks are larger than
/// packets (chosen here: 16 MB).
pub(super) const MAX_BLOCK_BYTES: u32 = 16 << 20;

/// The container format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaptureFormat {
    /// libpcap's own.
    Pcap,
    /// pcapng (draft-ietf-opsawg-pcapng).
    PcapNg,
}

/// One captured frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Byte offset of its record in the (uncompressed) capture.
    pub offset: u64,
    /// Nanoseconds since the Unix epoch.
    pub at_ns: i64,
    /// The interface, counted from 0 over the whole capture.
    pub interface: u32,
    /// Link type of that interface.
    pub link: u32,
    /// Bytes on the wire.
    pub wire_bytes: u32,
    /// Captured bytes.
    pub data: &'a [u8],
}

/// The contents of a capture, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Captured<'a> {
    /// A frame.
    Frame(Frame<'a>),
    /// Unreadable data, and where.
    Problem(Problem),
}

/// The result of parsing the available bytes.
pub(super) enum ParseStep<'a> {
    /// A frame, and how many bytes it took.
    Frame(Frame<'a>, usize),
    /// Bytes without a frame.
    Skip(usize),
    /// Unreadable bytes, and why.
    Damage(Problem, usize),
    /// Not enough: the total number of bytes needed.
    Need(usize),
}

enum Format {
    Unknown,
    Pcap(pcap::Pcap),
    PcapNg(pcapng::PcapNg),
    /// Not a capture: the rest is skipped.
    Foreign,
}

/// Reads a capture in pieces.
///
/// Pieces of any size give the same frames. Whole records are borrowed from the piece;
/// only a record split across pieces is copied.
pub struct CaptureReader {
    format: Format,
    /// Offset of the first unconsumed byte.
    offset: u64,
    torn: Vec<u8>,
    needed: usize,
    /// Where skipped bytes begin.
    damaged_from: Option<u64>,
}

impl Default for CaptureReader {
    fn default() -> Self {
        Self::new()
    }
}

impl CaptureReader {
    /// A reader at the start of a capture.
    #[must_use]
    pub const fn new() -> Self {
        Self { format: Format::Unknown, offset: 0, torn: Vec::new(), needed: 0, damaged_from: None }
    }

    /// Recognises a capture by its first bytes.
    #[must_use]
    pub fn recognise(head: &[u8]) -> Option<CaptureFormat> {
        let magic = head.first_chunk::<4>()?;
        if pcap::Magic::of(*magic).is_some() {
            return Some(CaptureFormat::Pcap);
        }
        (*magic == pcapng::SECTION_MAGIC).then_some(CaptureFormat::PcapNg)
    }

    /// Bytes consumed so far, of whole records.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// Blocks of a pcapng that were skipped as they hold no packet, by type: name
    /// resolution, statistics, secrets, vendor-specific ones.
    pub fn passed_blocks(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        let passed = match &self.format {
            Format::PcapNg(pcapng) => Some(&pcapng.passed),
            _ => None,
        };
        passed.into_iter().flatten().map(|(&kind, &n)| (kind, n))
    }

    /// Packets that a pcapng says were lost during the capture (Interface Statistics Blocks).
    #[must_use]
    pub fn lost_packets(&self) -> u64 {
        match &self.format {
            Format::PcapNg(pcapng) => pcapng.lost(),
            _ => 0,
        }
    }

    /// Packets of a pcapng without a time (Simple Packet Blocks): they have that of the one before.
    #[must_use]
    pub const fn timeless_packets(&self) -> u64 {
        match &self.format {
            Format::PcapNg(pcapng) => pcapng.timeless,
            _ => 0,
        }
    }

    /// Packets of a pcapng whose time is not from 1970 to 2116: they have the nearest of these.
    #[must_use]
    pub const fn impossible_times(&self) -> u64 {
        match &self.format {
            Format::PcapNg(pcapng) => pcapng.impossible,
            _ => 0,
        }
    }

    /// Takes the next piece; whole items go to `sink`.
    pub fn push(&mut self, mut piece: &[u8], sink: &mut impl FnMut(Captured<'_>)) {
        while !self.torn.is_empty() && !piece.is_empty() {
            let wanted = self.needed.saturating_sub(self.torn.len()).max(1).min(piece.len());
            let (head, rest) = piece.split_at(wanted);
            self.torn.extend_from_slice(head);
            piece = rest;
            let torn = std::mem::take(&mut self.torn);
            let used = self.consume(&torn, sink);
            let mut torn = torn;
            torn.drain(..used);
            self.torn = torn;
        }
        if !piece.is_empty() {
            let used = self.consume(piece, sink);
            self.torn.extend_from_slice(piece.get(used..).unwrap_or_default());
        }
    }

    /// Ends the capture: a truncated last record becomes a problem, and records hidden by
    /// a wrong length are searched after it.
    pub fn finish(&mut self, sink: &mut impl FnMut(Captured<'_>)) {
        let torn = std::mem::take(&mut self.torn);
        if matches!(self.format, Format::Unknown) {
            let is_pcap =
                torn.first_chunk::<4>().is_some_and(|magic| pcap::Magic::of(*magic).is_some());
            let what = match torn.len() {
                0 => "the capture is empty".to_owned(),
                n if is_pcap => {
                    format!("the file ends inside its header: {n} of 24 bytes are there")
                }
                _ => "not a packet capture".to_owned(),
            };
            sink(damage(self.offset, what));
            self.offset += torn.len() as u64;
            return;
        }
        if !torn.is_empty() && self.damaged_from.is_none() {
            let (there, needed) = (torn.len(), self.needed);
            let what =
                format!("the capture ends inside a record: {there} of {needed} bytes are there");
            sink(damage(self.offset, what));
            self.damaged_from = Some(self.offset);
        }
        let mut at = 0;
        while at < torn.len() {
            self.search();
            self.offset += 1;
            at += 1;
            at += self.consume(torn.get(at..).unwrap_or_default(), sink);
        }
        self.damaged_from = None;
    }

    /// Makes the parser search for the next record instead of expecting one.
    fn search(&mut self) {
        match &mut self.format {
            Format::Pcap(pcap) => pcap.search_on(),
            Format::PcapNg(pcapng) => pcapng.search_on(),
            Format::Unknown | Format::Foreign => {}
        }
    }

    /// Handles the whole items in `bytes`; returns how many bytes were used.
    fn consume(&mut self, bytes: &[u8], sink: &mut impl FnMut(Captured<'_>)) -> usize {
        let mut at = 0;
        loop {
            let rest = bytes.get(at..).unwrap_or_default();
            if rest.is_empty() {
                return at;
            }
            let step = match &mut self.format {
                Format::Pcap(pcap) => {
                    let whole = pcap.records(rest, self.offset, self.damaged_from.is_some(), sink);
                    if whole > 0 {
                        at += whole;
                        self.offset += whole as u64;
                        continue;
                    }
                    pcap.step(rest, self.offset)
                }
                Format::PcapNg(pcapng) => pcapng.step(rest, self.offset),
                Format::Foreign => ParseStep::Skip(rest.len()),
                Format::Unknown => self.begin(rest),
            };
            let used = match step {
                ParseStep::Frame(frame, used) => {
                    self.end_damage(self.offset, sink);
                    sink(Captured::Frame(frame));
                    used
                }
                ParseStep::Skip(used) => used,
                ParseStep::Damage(problem, used) => {
                    if self.damaged_from.is_none() {
                        sink(Captured::Problem(problem));
                        self.damaged_from = Some(self.offset);
                    }
                    used
                }
                ParseStep::Need(needed) => {
                    self.needed = needed;
                    return at;
                }
            };
            at += used;
            self.offset += used as u64;
        }
    }

    fn begin(&mut self, rest: &[u8]) -> ParseStep<'static> {
        let Some(magic) = rest.first_chunk::<4>() else { return ParseStep::Need(4) };
        if let Some(magic) = pcap::Magic::of(*magic) {
            let Some(header) = rest.first_chunk::<24>() else { return ParseStep::Need(24) };
            self.format = Format::Pcap(pcap::Pcap::new(magic, header));
            return ParseStep::Skip(24);
        }
        if *magic == pcapng::SECTION_MAGIC {
            self.format = Format::PcapNg(pcapng::PcapNg::default());
            return ParseStep::Skip(0);
        }
        self.format = Format::Foreign;
        let what = "not a packet capture: neither pcap nor pcapng".into();
        ParseStep::Damage(Problem::at(0, Severity::Damage, what), rest.len())
    }

    /// Reports how much was skipped, once reading resumes.
    fn end_damage(&mut self, now: u64, sink: &mut impl FnMut(Captured<'_>)) {
        let Some(from) = self.damaged_from.take() else { return };
        let what = format!("skipped {} bytes, resumed at byte {now}", now - from);
        sink(Captured::Problem(Problem::at(from, Severity::Warning, what)));
    }
}

fn damage(offset: u64, what: String) -> Captured<'static> {
    Captured::Problem(Problem::at(offset, Severity::Damage, what))
}

/// Reads integers in the byte order of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ByteOrder {
    pub(super) big: bool,
}

impl ByteOrder {
    pub(super) fn u16(self, bytes: &[u8], at: usize) -> Option<u16> {
        let bytes = *bytes.get(at..)?.first_chunk::<2>()?;
        Some(if self.big { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
    }

    pub(super) fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        let bytes = *bytes.get(at..)?.first_chunk::<4>()?;
        Some(if self.big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    pub(super) fn u64(self, bytes: &[u8], at: usize) -> Option<u64> {
        let bytes = *bytes.get(at..)?.first_chunk::<8>()?;
        Some(if self.big { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) })
    }
}

#[cfg(test)]
mod tests;
