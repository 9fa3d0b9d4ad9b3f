//! Packets as pcapng (draft-ietf-opsawg-pcapng), with times in nanoseconds.

use std::borrow::Cow;
use std::io::{self, Write};
use std::time::Duration;

pub use pcap_file::DataLink;
use pcap_file::PcapError;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::pcapng::{PcapNgBlock, PcapNgWriter};

/// if_tsresol: 10^-9 s.
const NANOSECONDS: u8 = 9;

/// Flags of a packet: towards the host, and from it (pcapng, 4.3.1).
const INBOUND: u32 = 1;
const OUTBOUND: u32 = 2;

/// An interface of a file.
#[derive(Debug, Clone, Copy)]
pub struct PcapNgInterface<'a> {
    /// Link type.
    pub link: DataLink,
    /// Name.
    pub name: &'a str,
    /// Description.
    pub what: &'a str,
}

/// A packet of a file.
#[derive(Debug, Clone, Copy)]
pub struct PcapNgPacket<'a> {
    /// Number of its interface.
    pub interface_id: u32,
    /// Nanoseconds since the Unix epoch.
    pub at_ns: i64,
    /// Whether it goes towards the host, or the phone.
    pub inbound: bool,
    /// The captured bytes.
    pub data: &'a [u8],
    /// Its size on the wire or in the air.
    pub wire_bytes: u32,
}

/// Writes a file of packets.
pub struct PcapNgFile<W: Write> {
    writer: PcapNgWriter<W>,
}

impl<W: Write> PcapNgFile<W> {
    /// Begins a file; `snap_bytes` is the maximum length of captured packets, 0 without one.
    ///
    /// # Errors
    /// `out` cannot be written.
    pub fn begin(
        out: W,
        comment: Option<&str>,
        snap_bytes: u32,
        interfaces: &[PcapNgInterface<'_>],
    ) -> io::Result<Self> {
        let program = concat!("airmile ", env!("CARGO_PKG_VERSION"));
        let mut options = vec![SectionHeaderOption::UserApplication(Cow::Borrowed(program))];
        options
            .extend(comment.map(|text| SectionHeaderOption::Comment(Cow::Owned(text.to_owned()))));
        let section = SectionHeaderBlock { options, ..SectionHeaderBlock::default() };
        let mut writer = PcapNgWriter::with_section_header(out, section).map_err(to_io)?;
        for PcapNgInterface { link, name, what } in interfaces {
            let mut block = InterfaceDescriptionBlock::new(*link, snap_bytes);
            block.options = vec![
                InterfaceDescriptionOption::IfName(Cow::Borrowed(name)),
                InterfaceDescriptionOption::IfDescription(Cow::Borrowed(what)),
                InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
            ];
            writer.write_block(&block.into_block()).map_err(to_io)?;
        }
        Ok(Self { writer })
    }

    /// Appends a packet.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn packet(&mut self, packet: &PcapNgPacket<'_>) -> io::Result<()> {
        let mut block = EnhancedPacketBlock::default();
        block.interface_id = packet.interface_id;
        block.timestamp = Duration::from_nanos(u64::try_from(packet.at_ns).unwrap_or(0));
        block.original_len = packet.wire_bytes;
        block.data = Cow::Borrowed(packet.data);
        let flags = if packet.inbound { INBOUND } else { OUTBOUND };
        block.options = vec![EnhancedPacketOption::Flags(flags)];
        self.writer.write_block(&block.into_block()).map(drop).map_err(to_io)
    }

    /// The output, which is not flushed.
    pub fn into_inner(self) -> W {
        self.writer.into_inner()
    }
}

fn to_io(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other.to_string()),
    }
}
