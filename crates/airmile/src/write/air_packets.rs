//! Signalling and MAC headers of modem logs as pcapng, for Wireshark.

use std::io::Write;
use std::path::Path;

use airmile_decode::diag::gsmtap::{AirPacket, AirReader, LinkType};
use airmile_io::error::{Error, Result};
use airmile_io::input::Progress;
use airmile_io::limits::{LimitFilter, Limits};
use airmile_model::Direction;

use crate::session::{Inputs, Loaded, LogBytes, Session};
use airmile_io::pcapng::{DataLink, PcapNgFile, PcapNgInterface, PcapNgPacket};
use airmile_io::recognise::AIR_INTERFACES;

/// By the numbers of `interface_id`.
const INTERFACES: [PcapNgInterface<'_>; 2] = [
    PcapNgInterface {
        link: DataLink::IPV4,
        name: AIR_INTERFACES[0].0,
        what: "LTE signalling in GSMTAP, UDP port 4729",
    },
    PcapNgInterface {
        link: DataLink::WIRESHARK_UPPER_PDU,
        name: AIR_INTERFACES[1].0,
        what: "LTE MAC headers and NR signalling as exported PDUs",
    },
];

const fn interface_id(link: LinkType) -> u32 {
    match link {
        LinkType::Ipv4 => 0,
        LinkType::ExportedPdu => 1,
    }
}

/// What every file of [`air_packets`] begins with.
#[must_use]
pub fn air_packets_begin() -> Vec<u8> {
    let begun = PcapNgFile::begin(Vec::new(), None, 0, &INTERFACES);
    begun.map(PcapNgFile::into_inner).unwrap_or_default()
}

/// Writes the packets of the air interface of modem logs as pcapng; returns their number, and the
/// number of signalling messages that have none. Errors name `out` by its path.
///
/// # Errors
/// An input cannot be read or is not a modem log; or `out` cannot be written.
pub fn air_packets(
    inputs: &Inputs,
    (limits, subscription): (Limits, Option<u8>),
    progress: &Progress,
    (path, out): (&Path, &mut dyn Write),
) -> Result<(Loaded, [u64; 2])> {
    limits.check()?;
    let session = Session::open(inputs, progress)?.of_logs()?;
    let failed = |error| Error::write(path, error);
    let mut file = PcapNgFile::begin(out, None, 0, &INTERFACES).map_err(failed)?;
    let (mut reader, mut filter) = (AirReader::new(), LimitFilter::new(limits));
    // The start is the log's, as for records.
    session.first_stamp_ns().map(|start_ns| filter.keeps_ns(start_ns));
    let (mut n_packets, mut error) = (0, None);
    let mut push = |packet: AirPacket| {
        let wanted = subscription.is_none_or(|one| one == packet.subscription.max(1));
        if error.is_none() && wanted && filter.keeps_ns(packet.at.ns) {
            let AirPacket { at, dir, link, wire_bytes, bytes, .. } = &packet;
            let packet = PcapNgPacket {
                interface_id: interface_id(*link),
                at_ns: at.ns,
                inbound: *dir == Direction::Dl,
                data: bytes,
                wire_bytes: *wire_bytes,
            };
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
