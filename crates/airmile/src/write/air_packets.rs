//! Signalling and MAC headers of modem logs as pcapng, for Wireshark.

use std::borrow::Cow;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use airmile_decode::diag::gsmtap::{AirPacket, AirReader, LinkType};
use airmile_io::error::{Error, Result};
use airmile_io::input::Progress;
use airmile_io::limits::{LimitFilter, Limits};
use airmile_model::Direction;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::pcapng::{PcapNgBlock, PcapNgWriter};
use pcap_file::{DataLink, PcapError};

use crate::session::{Inputs, Loaded, LogBytes, Session};

/// if_tsresol: 10^-9 s.
const NANOSECONDS: u8 = 9;

/// Flags of a packet: towards the phone, and from it (pcapng, 4.3.1).
const INBOUND: u32 = 1;
const OUTBOUND: u32 = 2;

/// Link type, name and description of each interface, by its number.
const INTERFACES: [(DataLink, &str, &str); 2] = [
    (DataLink::IPV4, "gsmtap", "LTE signalling in GSMTAP, UDP port 4729"),
    (DataLink::WIRESHARK_UPPER_PDU, "pdu", "LTE MAC headers and NR signalling as exported PDUs"),
];

/// Writes the packets of the air interface of modem logs as pcapng; returns their number, and the
/// number of signalling messages that have none.
///
/// # Errors
/// An input cannot be read or is not a modem log; or `out` cannot be written.
pub fn air_packets(
    inputs: &Inputs,
    (limits, subscription): (Limits, Option<u8>),
    progress: &Progress,
    out: &mut dyn Write,
) -> Result<(Loaded, [u64; 2])> {
    let session = Session::open(inputs, progress)?.of_logs()?;
    let mut file = PacketFile::begin(out).map_err(failed)?;
    let (mut reader, mut filter) = (AirReader::new(), LimitFilter::new(limits));
    // The start is the log's, as for records.
    session.first_stamp_ns().map(|start_ns| filter.keeps_ns(start_ns));
    let (mut n_packets, mut error) = (0, None);
    let mut push = |packet: AirPacket| {
        let wanted = subscription.is_none_or(|one| one == packet.subscription.max(1));
        if error.is_none() && wanted && filter.keeps_ns(packet.at.ns) {
            error = file.packet(&packet).err();
            n_packets += 1;
        }
    };
    let loaded = session.read_log_bytes(&mut |bytes| match bytes {
        LogBytes::Piece(piece) => reader.push(piece, &mut push),
        LogBytes::EndOfFile => reader.end_file(&mut push),
    })?;
    error.map_or(Ok((loaded, [n_packets, reader.left_out()])), |error| Err(failed(error)))
}

fn failed(error: PcapError) -> Error {
    let source = match error {
        PcapError::IoError(source) => source,
        other => std::io::Error::other(other.to_string()),
    };
    Error::Write { path: Path::new("pcapng").to_owned(), source }
}

struct PacketFile<'a> {
    writer: PcapNgWriter<&'a mut dyn Write>,
}

impl<'a> PacketFile<'a> {
    fn begin(out: &'a mut dyn Write) -> std::result::Result<Self, PcapError> {
        let program = concat!("airmile ", env!("CARGO_PKG_VERSION"));
        let section = SectionHeaderBlock {
            options: vec![SectionHeaderOption::UserApplication(Cow::Borrowed(program))],
            ..SectionHeaderBlock::default()
        };
        let mut writer = PcapNgWriter::with_section_header(out, section)?;
        for (link, name, what) in INTERFACES {
            let mut interface = InterfaceDescriptionBlock::new(link, 0);
            interface.options = vec![
                InterfaceDescriptionOption::IfName(Cow::Borrowed(name)),
                InterfaceDescriptionOption::IfDescription(Cow::Borrowed(what)),
                InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
            ];
            writer.write_block(&interface.into_block())?;
        }
        Ok(Self { writer })
    }

    fn packet(&mut self, packet: &AirPacket) -> std::result::Result<(), PcapError> {
        let mut block = EnhancedPacketBlock::default();
        block.interface_id = match packet.link {
            LinkType::Ipv4 => 0,
            LinkType::ExportedPdu => 1,
        };
        block.timestamp = Duration::from_nanos(u64::try_from(packet.at.ns).unwrap_or(0));
        block.original_len = packet.wire_bytes;
        block.data = Cow::Borrowed(&packet.bytes);
        let flags = match packet.dir {
            Direction::Dl => INBOUND,
            Direction::Ul => OUTBOUND,
        };
        block.options = vec![EnhancedPacketOption::Flags(flags)];
        self.writer.write_block(&block.into_block()).map(drop)
    }
}
