//! Scrubs a capture in pieces, keeping the container format.

use airmile_model::Problem;

use super::frame::Scrubbing;
use crate::packet::capture::{CaptureFormat, CaptureReader, Captured, Frame};
use crate::packet::pcap::Magic;
use airmile_pseudonym::{Changes, Pseudonyms};

/// Bytes of a pcap file's header.
const PCAP_HEADER: usize = 24;

/// Maximum number of interfaces described; a capture with more is damaged or crafted
/// (chosen here).
const MAX_INTERFACES: usize = 1 << 10;

/// Scrubs a capture.
///
/// Call order: [`push`](Self::push) its bytes, then [`finish`](Self::finish).
/// A pcap stays one, with its resolution; a pcapng stays one, with nanoseconds
/// as its resolution. Both become little-endian.
pub struct CaptureScrubber {
    names: Pseudonyms,
    reader: CaptureReader,
    /// The capture's first bytes, until the container's header is written.
    head: Vec<u8>,
    writer: Option<CaptureWriter>,
    changes: Changes,
    scratch: Vec<u8>,
}

impl CaptureScrubber {
    /// At the start of a capture.
    #[must_use]
    pub fn new(names: Pseudonyms) -> Self {
        Self {
            names,
            reader: CaptureReader::new(),
            head: Vec::new(),
            writer: None,
            changes: Changes::default(),
            scratch: Vec::new(),
        }
    }

    /// Takes the next bytes; appends scrubbed ones to `out`.
    pub fn push(&mut self, piece: &[u8], out: &mut Vec<u8>, problem: &mut dyn FnMut(Problem)) {
        if self.writer.is_none() {
            let missing = PCAP_HEADER.saturating_sub(self.head.len());
            self.head.extend_from_slice(piece.get(..missing).unwrap_or(piece));
            self.writer = CaptureWriter::begin(&self.head, out);
        }
        self.each(out, problem, |reader, mut sink| reader.push(piece, &mut sink));
    }

    /// Ends the capture.
    pub fn finish(&mut self, out: &mut Vec<u8>, problem: &mut dyn FnMut(Problem)) {
        self.each(out, problem, |reader, mut sink| reader.finish(&mut sink));
        for (kind, n) in self.reader.passed_blocks() {
            self.changes.add(block_name(kind), n);
        }
    }

    /// The changes and cuts so far.
    #[must_use]
    pub const fn changes(&self) -> &Changes {
        &self.changes
    }

    /// The pseudonyms, for the next capture.
    #[must_use]
    pub fn into_pseudonyms(self) -> Pseudonyms {
        self.names
    }

    fn each(
        &mut self,
        out: &mut Vec<u8>,
        problem: &mut dyn FnMut(Problem),
        read: impl FnOnce(&mut CaptureReader, &mut dyn FnMut(Captured<'_>)),
    ) {
        let Self { names, reader, writer, changes, scratch, .. } = self;
        read(reader, &mut |captured| match captured {
            Captured::Problem(what) => problem(what),
            Captured::Frame(frame) => {
                let Some(writer) = writer else { return };
                changes.add("frames", 1);
                Scrubbing { names, changes }.frame(&frame, scratch);
                writer.frame(&frame, scratch, out);
            }
        });
    }
}

/// The name of a left-out pcapng block in the list of changes.
const fn block_name(kind: u32) -> &'static str {
    match kind {
        4 => "name_resolution_blocks",
        5 => "interface_statistics_blocks",
        0x0a => "decryption_secrets_blocks",
        0xbad | 0x4000_0bad => "custom_blocks",
        _ => "other_blocks",
    }
}

enum CaptureWriter {
    Pcap {
        nanoseconds: bool,
    },
    PcapNg {
        /// Number and link type of each in the original, in the order of their first
        /// frames, which is their number in the output.
        interfaces: Vec<(u32, u32)>,
    },
}

impl CaptureWriter {
    /// Begins the file, once the first bytes show its format; `None` until then.
    fn begin(head: &[u8], out: &mut Vec<u8>) -> Option<Self> {
        match CaptureReader::recognise(head)? {
            CaptureFormat::Pcap => {
                let magic = Magic::of(*head.first_chunk()?)?;
                let header = head.first_chunk::<PCAP_HEADER>()?;
                let (snap, link) = (magic.order.u32(header, 16)?, magic.order.u32(header, 20)?);
                let nanoseconds = magic.nanoseconds;
                let number: u32 = if nanoseconds { 0xa1b2_3c4d } else { 0xa1b2_c3d4 };
                out.extend(number.to_le_bytes());
                // Version 2.4; time zone and accuracy, which are unused.
                out.extend([2, 0, 4, 0]);
                out.extend([0; 8]);
                out.extend(snap.to_le_bytes());
                // Without the frame check sequence's length, as the sequence is cut.
                out.extend((link & 0x0fff_ffff).to_le_bytes());
                Some(Self::Pcap { nanoseconds })
            }
            CaptureFormat::PcapNg => {
                // A section of unknown length, version 1.0.
                let mut body = vec![0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0];
                body.extend([0xff; 8]);
                block(0x0a0d_0d0a, &[&body], out);
                Some(Self::PcapNg { interfaces: Vec::new() })
            }
        }
    }

    fn frame(&mut self, frame: &Frame<'_>, data: &[u8], out: &mut Vec<u8>) {
        let captured = u32::try_from(data.len()).unwrap_or(u32::MAX).to_le_bytes();
        let wire = frame.wire_bytes.to_le_bytes();
        match self {
            Self::Pcap { nanoseconds } => {
                let unit = if *nanoseconds { 1 } else { 1_000 };
                let seconds = frame.at_ns.div_euclid(1_000_000_000) as u32;
                let fraction = (frame.at_ns.rem_euclid(1_000_000_000) / unit) as u32;
                out.extend(seconds.to_le_bytes());
                out.extend(fraction.to_le_bytes());
                out.extend(captured);
                out.extend(wire);
                out.extend_from_slice(data);
            }
            Self::PcapNg { interfaces } => {
                let own = (frame.interface, frame.link);
                let same = |other: &(u32, u32)| *other == own;
                let alike = |other: &(u32, u32)| other.1 == own.1;
                let known = interfaces.iter().position(same).or_else(|| {
                    // Beyond the maximum, interfaces with the same link type are merged.
                    let many = interfaces.len() >= MAX_INTERFACES;
                    many.then(|| interfaces.iter().position(alike)).flatten()
                });
                let id = known.unwrap_or_else(|| {
                    interface(frame.link, out);
                    interfaces.push(own);
                    interfaces.len() - 1
                });
                let id = u32::try_from(id).unwrap_or(u32::MAX);
                let ticks = u64::try_from(frame.at_ns).unwrap_or(0);
                let mut head = [0; 20];
                head[..4].copy_from_slice(&id.to_le_bytes());
                head[4..8].copy_from_slice(&((ticks >> 32) as u32).to_le_bytes());
                head[8..12].copy_from_slice(&(ticks as u32).to_le_bytes());
                head[12..16].copy_from_slice(&captured);
                head[16..].copy_from_slice(&wire);
                block(6, &[&head, data], out);
            }
        }
    }
}

/// An interface description: the link type, no snap length, nanoseconds.
fn interface(link: u32, out: &mut Vec<u8>) {
    let [low, high, ..] = link.to_le_bytes();
    let head = [low, high, 0, 0, 0, 0, 0, 0];
    // if_tsresol (9), one byte: 10^-9 s; then the end of the options.
    block(1, &[&head, &[9, 0, 1, 0, 9, 0, 0, 0], &[0, 0, 0, 0]], out);
}

/// A block of pcapng: type, length, body to the next multiple of four, length.
fn block(kind: u32, parts: &[&[u8]], out: &mut Vec<u8>) {
    let body: usize = parts.iter().map(|part| part.len()).sum();
    let padding = body.next_multiple_of(4) - body;
    let total = u32::try_from(body + padding + 12).unwrap_or(u32::MAX).to_le_bytes();
    out.extend(kind.to_le_bytes());
    out.extend(total);
    parts.iter().for_each(|part| out.extend_from_slice(part));
    out.extend(&[0; 4][..padding]);
    out.extend(total);
}
