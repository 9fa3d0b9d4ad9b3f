//! Recognises a file by its content, never by its name.

use airmile_capture::application::ApplicationFormat;
use airmile_capture::packet::{CaptureReader, Captured, Dissector};
use airmile_decode::diag::{Container, LogReader};
use airmile_decode::sniffer::SnifferKind;
use airmile_decode::table::TableKind;
use airmile_decode::text::TextReader;
use airmile_model::packet::Transport;

/// Names and link types of the interfaces of a pcapng with packets of the air interface: IPv4, and
/// Wireshark's exported PDUs (the registry of LINKTYPE values).
pub const AIR_INTERFACES: [(&str, u16); 2] = [("gsmtap", 228), ("pdu", 252)];

/// The format of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A Qualcomm DIAG log.
    ModemLog(Container),
    /// A text export of QXDM or QCAT.
    LogText,
    /// A passive sniffer's table.
    Sniffer(SnifferKind),
    /// One of the documented tables.
    Table(TableKind),
    /// An application log: HAR, NetLog, qlog, player's log, iperf3.
    Application(ApplicationFormat),
    /// Empty.
    Empty,
    /// A known format that is no modem log, table or application log.
    Foreign(Foreign),
    /// An unknown format.
    Unknown,
}

/// Known formats that are no modem log, table or application log, each with the next step. Captures
/// are read by other means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Foreign {
    /// QXDM's compound file.
    Isf,
    /// libpcap capture.
    Pcap,
    /// pcapng capture.
    PcapNg,
    /// Packets of the air interface, as `decode` and other programs write them from a modem log.
    AirPackets,
    /// A Parquet file.
    Parquet,
    /// JSON of some kind.
    Json,
    /// An image: JPEG, PNG or GIF.
    Picture,
    /// Compressed with xz or bzip2.
    Packed,
    /// A zip archive; office documents and Android packages are zip archives, too.
    Zip,
    /// A tar archive without a modem log.
    Tar,
    /// A PDF.
    Pdf,
    /// A program, or a library.
    Program,
    /// A web page, or XML.
    Markup,
    /// A table with a start and an end, but not in microseconds or TTIs.
    OtherTimes,
    /// A documented table with semicolons or tabs between its columns.
    OtherSeparator,
    /// Text in UTF-16.
    Utf16,
}

impl Foreign {
    /// A description, with the next step.
    #[must_use]
    pub const fn advice(self) -> &'static str {
        match self {
            Self::Isf => {
                "a QXDM .isf (compound file), whose layout is not public: open it in QXDM or QCAT \
                 and export it as .dlf or as parsed text"
            }
            Self::Pcap | Self::PcapNg => {
                "a packet capture: `airmile packets` and `airmile diagnose` read it; about the radio \
                 link ask the modem log of the same time (.mi2log, .qmdl, .dlf)"
            }
            Self::AirPackets => {
                "signalling and MAC headers of the air interface for Wireshark (GSMTAP), as `airmile \
                 decode --format pcapng` writes them, and no packets of the phone's transfers: give \
                 the modem log that they are from (.mi2log, .qmdl, .dlf)"
            }
            Self::Parquet => "a Parquet file: give the log that it was made from",
            Self::Json => {
                "JSON of no kind that is read: give a modem log, a grant table or a transfers CSV \
                 (docs/records.md), or an application's log (docs/application-logs.md)"
            }
            Self::Picture => "a picture (JPEG, PNG or GIF): give a log, a capture or a HAR",
            Self::Packed => {
                "compressed with xz or bzip2: decompress it first (`xz -d`, `bzip2 -d`); gzip and \
                 zstd are read as they are"
            }
            Self::Zip => "a zip archive: unpack it, and give the log or capture in it",
            Self::Tar => {
                "a tar archive without a modem log in it: unpack it, and give the log or capture in \
                 it. A sysdiagnose has the baseband's trace only after Apple's baseband profile was \
                 installed (docs/phones.md)"
            }
            Self::OtherTimes => {
                "a table with a start and an end in other columns than those of transfers: give \
                 id,start_us,end_us,bytes with times in microseconds (ms times 1000), or \
                 id,start_tti,end_tti,bytes (docs/records.md)"
            }
            Self::OtherSeparator => {
                "a table with semicolons or tabs between its columns: write it with commas, and \
                 numbers without them"
            }
            Self::Utf16 => "text in UTF-16: write it in UTF-8",
            Self::Pdf => "a PDF: give the log that it is about",
            Self::Program => "a program: give the log or capture that it wrote",
            Self::Markup => {
                "a web page or XML: save requests as HAR (developer tools, Network, Save all as \
                 HAR), and give that"
            }
        }
    }
}

impl Kind {
    /// Recognises an input by its first bytes.
    #[must_use]
    pub fn of(head: &[u8]) -> Self {
        if head.is_empty() {
            return Self::Empty;
        }
        if let Some(foreign) = by_magic(head) {
            return Self::Foreign(foreign);
        }
        if let Some(table) = header_line(head).and_then(TableKind::recognise) {
            return Self::Table(table);
        }
        if let Some(sniffer) = SnifferKind::recognise(head) {
            return Self::Sniffer(sniffer);
        }
        if TextReader::recognise(head) {
            return Self::LogText;
        }
        if let Some(format) = ApplicationFormat::recognise(head) {
            return Self::Application(format);
        }
        if let Some(container) = LogReader::recognise(head) {
            return Self::ModemLog(container);
        }
        match text_kind(head) {
            Some(foreign) => Self::Foreign(foreign),
            None => Self::Unknown,
        }
    }

    /// Whether it holds an application's transfers.
    #[must_use]
    pub const fn holds_transfers(self) -> bool {
        matches!(self, Self::Table(TableKind::Transfers) | Self::Application(_))
    }

    /// Whether it is a packet capture.
    #[must_use]
    pub const fn is_capture(self) -> bool {
        matches!(self, Self::Foreign(Foreign::Pcap | Foreign::PcapNg))
    }

    /// The name used in documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ModemLog(Container::Hdlc) => "modem_log_hdlc",
            Self::ModemLog(Container::Qmdl2) => "modem_log_qmdl2",
            Self::ModemLog(Container::Dlf) => "modem_log_dlf",
            Self::ModemLog(Container::Hdf) => "modem_log_hdf",
            Self::LogText => "modem_log_text",
            Self::Sniffer(SnifferKind::Falcon) => "sniffer_falcon",
            Self::Sniffer(SnifferKind::NgScope) => "sniffer_ng_scope",
            Self::Sniffer(SnifferKind::NrScope) => "sniffer_nr_scope",
            Self::Sniffer(SnifferKind::SrsRanLog) => "gnb_log_srsran",
            Self::Sniffer(SnifferKind::SrsRanConsole) => "gnb_console_srsran",
            Self::Sniffer(SnifferKind::OaiStatistics) => "gnb_log_oai",
            Self::Table(TableKind::Grants) => "grant_table",
            Self::Table(TableKind::Rlc) => "rlc_table",
            Self::Table(TableKind::Transfers) => "transfers",
            Self::Table(TableKind::Truth) => "truth",
            Self::Table(TableKind::TransferTruth) => "transfer_truth",
            Self::Application(format) => format.name(),
            Self::Empty => "empty",
            Self::Foreign(Foreign::Isf) => "isf",
            Self::Foreign(Foreign::Pcap) => "pcap",
            Self::Foreign(Foreign::PcapNg) => "pcapng",
            Self::Foreign(Foreign::AirPackets) => "air_packets",
            Self::Foreign(Foreign::Parquet) => "parquet",
            Self::Foreign(Foreign::Json) => "json",
            Self::Foreign(Foreign::Picture) => "picture",
            Self::Foreign(Foreign::Tar) => "tar",
            Self::Foreign(Foreign::Packed) => "compressed",
            Self::Foreign(Foreign::Zip) => "zip",
            Self::Foreign(Foreign::Pdf) => "pdf",
            Self::Foreign(Foreign::Program) => "program",
            Self::Foreign(Foreign::Markup) => "markup",
            Self::Foreign(Foreign::OtherTimes) => "table_of_other_times",
            Self::Foreign(Foreign::OtherSeparator) => "table_of_other_separator",
            Self::Foreign(Foreign::Utf16) => "text_utf16",
            Self::Unknown => "unknown",
        }
    }
}

/// Whether these are the first bytes of a tar archive (POSIX ustar, GNU).
pub(crate) fn is_tar(head: &[u8]) -> bool {
    head.get(257..262) == Some(b"ustar")
}

/// Whether all interfaces before a pcapng's first packet are [`AIR_INTERFACES`]: a file merged with a
/// phone's capture has others, too.
fn is_of_air(head: &[u8]) -> bool {
    // Byte-order magic of the section header (draft-ietf-opsawg-pcapng, 4.1).
    let is_big_endian = head.get(8..12) == Some(&[0x1a, 0x2b, 0x3c, 0x4d]);
    let number = |bytes: Option<&[u8]>| {
        let value = bytes?.iter().fold(0, |sum, &byte| sum << 8 | usize::from(byte));
        let swapped = bytes?.iter().rev().fold(0, |sum, &byte| sum << 8 | usize::from(byte));
        Some(if is_big_endian { value } else { swapped })
    };
    // The value of if_name, option 2 of an interface description (4.2), as its name is in `block`.
    let is_named = |block: &[u8], name: &str| {
        let mut rest = block.get(16..).unwrap_or_default();
        while let (Some(code), Some(length)) = (number(rest.get(..2)), number(rest.get(2..4))) {
            match code {
                0 => return false,
                2 => return rest.get(4..4 + length) == Some(name.as_bytes()),
                _ => rest = rest.get(4 + length.next_multiple_of(4)..).unwrap_or_default(),
            }
        }
        false
    };
    let (mut rest, mut interfaces) = (head, 0);
    while let (Some(kind), Some(length)) = (number(rest.get(..4)), number(rest.get(4..8))) {
        let Some((block, next)) = rest.split_at_checked(length).filter(|_| length >= 12) else {
            break;
        };
        match kind {
            // Interface description.
            1 => {
                let link = number(block.get(8..10));
                let is_air = |(name, own): &(&str, u16)| {
                    link == Some(usize::from(*own)) && is_named(block, name)
                };
                if !AIR_INTERFACES.iter().any(is_air) {
                    return false;
                }
                interfaces += 1;
            }
            // Packets.
            2 | 3 | 6 => break,
            _ => {}
        }
        rest = next;
    }
    interfaces > 0
}

/// Whether a capture's first datagrams are GSMTAP alone (libosmocore, gsmtap.h: UDP port 4729, version 2,
/// a header of four words), as QCSuper, SCAT and base stations write signalling.
fn is_gsmtap(head: &[u8]) -> bool {
    let (mut dissector, mut reader) = (Dissector::new(), CaptureReader::new());
    let (mut has_others, mut has_gsmtap) = (false, false);
    reader.push(head, &mut |captured| {
        let Captured::Frame(frame) = captured else { return };
        if has_others {
            return;
        }
        dissector.push(&frame, &mut |read| {
            let Ok(packet) = read else { return };
            let is_own = matches!(packet.transport, Transport::Udp)
                && packet.dst_port == 4_729
                && packet.payload.starts_with(&[2, 4]);
            has_gsmtap |= is_own;
            // Without a reader of port 4729, ICMP answers each.
            has_others |= !is_own && matches!(packet.transport, Transport::Udp | Transport::Tcp(_));
        });
    });
    has_gsmtap && !has_others
}

fn by_magic(head: &[u8]) -> Option<Foreign> {
    match head {
        [0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1, ..] => Some(Foreign::Isf),
        [0x0a, 0x0d, 0x0d, 0x0a, ..]
        | [0xd4, 0xc3, 0xb2, 0xa1, ..]
        | [0xa1, 0xb2, 0xc3, 0xd4, ..]
        | [0x4d, 0x3c, 0xb2, 0xa1, ..]
        | [0xa1, 0xb2, 0x3c, 0x4d, ..] => Some(match head.first() {
            Some(0x0a) if is_of_air(head) => Foreign::AirPackets,
            _ if is_gsmtap(head) => Foreign::AirPackets,
            Some(0x0a) => Foreign::PcapNg,
            _ => Foreign::Pcap,
        }),
        [b'P', b'A', b'R', b'1', ..] => Some(Foreign::Parquet),
        [0xff, 0xd8, 0xff, ..] | [0x89, b'P', b'N', b'G', ..] | [b'G', b'I', b'F', b'8', ..] => {
            Some(Foreign::Picture)
        }
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] | [b'B', b'Z', b'h', b'1'..=b'9', ..] => {
            Some(Foreign::Packed)
        }
        [b'P', b'K', 3, 4, ..] => Some(Foreign::Zip),
        [b'%', b'P', b'D', b'F', b'-', ..] => Some(Foreign::Pdf),
        [0x7f, b'E', b'L', b'F', ..] => Some(Foreign::Program),
        _ if is_tar(head) => Some(Foreign::Tar),
        _ => None,
    }
}

fn header_line(head: &[u8]) -> Option<&str> {
    let end = head.iter().position(|&b| b == b'\n').unwrap_or(head.len());
    std::str::from_utf8(head.get(..end)?).ok().map(|line| line.trim_end_matches('\r'))
}

fn text_kind(head: &[u8]) -> Option<Foreign> {
    if let [0xff, 0xfe, ..] | [0xfe, 0xff, ..] = head {
        return Some(Foreign::Utf16);
    }
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        // The head may end within a character.
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(head.get(..error.valid_up_to())?).ok()?
        }
        Err(_) => return None,
    };
    let header = text.lines().next().unwrap_or_default();
    if TableKind::recognise(&header.replace([';', '\t'], ",")).is_some() {
        return Some(Foreign::OtherSeparator);
    }
    let columns: Vec<&str> = header.split(',').collect();
    let names = |start: &str| columns.iter().any(|name| name.trim().starts_with(start));
    if columns.len() > 1 && names("start") && (names("end") || names("duration")) {
        return Some(Foreign::OtherTimes);
    }
    let trimmed = text.trim_start();
    if trimmed.starts_with('{') || trimmed.starts_with('[') {
        return Some(Foreign::Json);
    }
    let start: String = trimmed.chars().take(9).collect::<String>().to_ascii_lowercase();
    let markup = ["<!doctype", "<html", "<?xml"];
    markup.iter().any(|with| start.starts_with(with)).then_some(Foreign::Markup)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_by_their_header() {
        let kind = Kind::of(b"dir,tti,n_prb\ndl,1,2\n");
        assert_eq!(kind, Kind::Table(TableKind::Grants));
        assert_eq!(Kind::of(b"id,start_us,end_us\r\n"), Kind::Table(TableKind::Transfers));
    }

    #[test]
    fn packets_of_the_air_alone_are_no_capture() {
        use crate::pcapng::{DataLink, PcapNgFile, PcapNgInterface};

        let kind = |interfaces: &[(&str, DataLink)]| {
            let of = |&(name, link)| PcapNgInterface { link, name, what: "" };
            let interfaces: Vec<_> = interfaces.iter().map(of).collect();
            let bytes = PcapNgFile::begin(Vec::new(), None, 0, &interfaces).unwrap().into_inner();
            Kind::of(&bytes)
        };
        let [gsmtap, pdu] =
            AIR_INTERFACES.map(|(name, link)| (name, DataLink::from(u32::from(link))));
        let phone = ("phone", DataLink::RAW);
        let (air, capture) = (Kind::Foreign(Foreign::AirPackets), Kind::Foreign(Foreign::PcapNg));
        assert_eq!(kind(&[gsmtap, pdu]), air);
        // Several merged files.
        assert_eq!(kind(&[gsmtap, pdu, gsmtap, pdu]), air);
        assert_eq!(kind(&[gsmtap, pdu, phone]), capture);
        assert_eq!(kind(&[phone, gsmtap, pdu]), capture);
        // A user's name.
        assert_eq!(kind(&[("gsmtap", DataLink::ETHERNET)]), capture);
        assert_eq!(kind(&[]), capture);
        // In the other byte order.
        let section = b"\x0a\x0d\x0d\x0a\x1c\0\0\0\x4d\x3c\x2b\x1a\x01\0\0\0";
        let interface = b"\x01\0\0\0\x24\0\0\0\xe4\0\0\0\0\0\0\0\x02\0\x06\0gsmtap\0\0";
        let ends = [&b"\xff\xff\xff\xff\xff\xff\xff\xff\x1c\0\0\0"[..], b"\0\0\0\0\x24\0\0\0"];
        let file = [section, ends[0], interface, ends[1]].concat();
        assert_eq!(Kind::of(&file), air);
        // Cut anywhere.
        assert!((4..file.len()).all(|at| Kind::of(&file[..at]) == capture));
    }

    #[test]
    fn signalling_alone_is_no_capture() {
        // UDP datagrams by their destination port and first bytes of payload, in a pcap of raw IP.
        let kind = |datagrams: &[(u16, [u8; 2])]| {
            let words = |words: [u32; 6]| words.into_iter().flat_map(u32::to_le_bytes);
            let mut out: Vec<u8> = words([0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, 101]).collect();
            for (port, payload) in datagrams {
                out.extend([1_000_u32, 0, 30, 30].into_iter().flat_map(u32::to_le_bytes));
                out.extend([
                    0x45, 0, 0, 30, 0, 0, 0, 0, 64, 17, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 18, 121,
                ]);
                out.extend(port.to_be_bytes());
                out.extend([0, 10, 0, 0, payload[0], payload[1]]);
            }
            Kind::of(&out)
        };
        let gsmtap = (4_729, [2, 4]);
        assert_eq!(kind(&[gsmtap, gsmtap]), Kind::Foreign(Foreign::AirPackets));
        let capture = Kind::Foreign(Foreign::Pcap);
        assert_eq!(kind(&[]), capture);
        assert_eq!(kind(&[gsmtap, (443, [2, 4])]), capture);
        assert_eq!(kind(&[(443, [2, 4]), gsmtap]), capture);
        assert_eq!(kind(&[(4_729, [1, 4])]), capture);
    }

    #[test]
    fn foreign_formats_get_advice() {
        assert_eq!(Kind::of(b"\xd4\xc3\xb2\xa1\x02\0\x04\0"), Kind::Foreign(Foreign::Pcap));
        assert_eq!(Kind::of(b"{\"log\": 1}"), Kind::Foreign(Foreign::Json));
        let text = b"12:01:02.123456\t[0xB887]\tNR5G MAC PDSCH Status\nx\n";
        assert_eq!(Kind::of(text), Kind::LogText);
        assert_eq!(Kind::of(b""), Kind::Empty);
        assert_eq!(Kind::of(b"\xff\xd8\xff\xe0\0\x10JFIF"), Kind::Foreign(Foreign::Picture));
        assert_eq!(Kind::of(b"PK\x03\x04\x14\0"), Kind::Foreign(Foreign::Zip));
        assert_eq!(Kind::of(b"\xfd7zXZ\0\0\x04"), Kind::Foreign(Foreign::Packed));
        assert_eq!(Kind::of(b"BZh91AY&SY"), Kind::Foreign(Foreign::Packed));
        assert_eq!(Kind::of(b"<!DOCTYPE html><html>"), Kind::Foreign(Foreign::Markup));
        let ms = b"id,start_ms,end_ms,bytes\na,1,2,3\n";
        assert_eq!(Kind::of(ms), Kind::Foreign(Foreign::OtherTimes));
        assert!(Foreign::OtherTimes.advice().contains("start_us"));
        for text in ["id;start_us;end_us;bytes\na;1;2;3\n", "tti\tdir\tn_prb\n1\tdl\t4\n"] {
            assert_eq!(Kind::of(text.as_bytes()), Kind::Foreign(Foreign::OtherSeparator));
        }
        assert_eq!(Kind::of(b"\xff\xfei\0d\0,\0"), Kind::Foreign(Foreign::Utf16));
        assert_eq!(Kind::of(b"hello\n"), Kind::Unknown);
        assert!(Foreign::Isf.advice().contains(".dlf"));
        for capture in [Foreign::Pcap, Foreign::PcapNg] {
            assert!(capture.advice().contains("`airmile packets`"));
        }
    }
}
