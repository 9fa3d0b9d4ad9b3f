//! The targets: each takes any bytes and panics if an invariant is violated.

use airmile_capture::application::{
    ApplicationFormat, ApplicationReader, HarScrubber, read_application,
};
use airmile_capture::packet::scrub::CaptureScrubber;
use airmile_capture::packet::{CaptureReader, Captured, Frame, dissect, link};
use airmile_control::claw::feedback::{
    FeedbackKey, FeedbackReport, FeedbackReporter, OPTION_BYTES, OptionReader, SessionOptions,
    Sessions,
};
use airmile_control::qcut::{ModemReport, ReportExtractor};
use airmile_decode::diag::Tagged;
use airmile_decode::diag::coresight::CoreSightDemux;
use airmile_decode::diag::frame::Packet;
use airmile_decode::diag::gsmtap::AirReader;
use airmile_decode::diag::msg::{BsrElement, MacHeader, RlcHeader};
use airmile_decode::diag::nhdlc::{self, NhdlcDeframer};
use airmile_decode::diag::scrub::LogScrubber;
use airmile_decode::diag::{
    Container, Counts, Deframer, Event, Message, PromptReader, dlf, hdlc, time,
};
use airmile_decode::sniffer::{SnifferKind, SnifferReader};
use airmile_decode::text::TextReader;
use airmile_emulate::{WireError, net};
use airmile_model::flow::PacketRow;
use airmile_model::packet::{Address, Ecn, SeqNum, TcpFlags, TcpHeader, Transport};
use airmile_model::{Direction, Record, Severity};
use airmile_pseudonym::{KEY_BYTES, Pseudonyms};
use airmile_wire::tcp::{PacketStudy, StudyOptions, Tables};

/// A target.
pub type Target = fn(&[u8]);

/// All targets by name; the corpus of each is in the directory of that name.
pub const TARGETS: &[(&str, Target)] = &[
    ("deframe", deframe),
    ("hdlc_frame", hdlc_frame),
    ("nhdlc", nhdlc),
    ("diag_packet", diag_packet),
    ("pdsch", pdsch),
    ("pdcch", pdcch),
    ("pusch", pusch),
    ("mac", mac),
    ("rlc", rlc),
    ("pdcp", pdcp),
    ("rrc", rrc),
    ("measurements", measurements),
    ("mac_header", mac_header),
    ("rlc_header", rlc_header),
    ("counters", counters),
    ("nr", nr),
    ("log_text", log_text),
    ("sniffer", sniffer),
    ("capture", capture),
    ("application", application),
    ("packet", packet),
    ("emulated_packet", emulated_packet),
    ("scrub_capture", scrub_capture),
    ("scrub_log", scrub_log),
    ("scrub_har", scrub_har),
    ("air_packets", air_packets),
    ("coresight", coresight),
    ("application_log", application_log),
    ("claw_feedback", claw_feedback),
    ("prompt", prompt),
];

/// The contents of a deframed stream, for comparison.
#[derive(Debug, Default, PartialEq)]
pub struct Summary {
    /// The container.
    pub container: Option<Container>,
    /// Good and bad frames.
    pub counts: Counts,
    /// Hash of all events in order.
    pub hash: u64,
    /// Log packets.
    pub logs: u64,
    /// Packets of other kinds.
    pub others: u64,
    /// Problems by severity.
    pub problems: [u64; 3],
    /// Messages read without a problem.
    pub whole: u64,
    /// Messages read in part.
    pub partial: u64,
    /// Messages whose head was incomplete.
    pub failed: u64,
    /// Messages of an unknown code or version.
    pub unknown: u64,
}

/// FNV-1a.
fn mix(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

impl Summary {
    fn add(&mut self, event: Event<'_>) {
        self.hash = match &event {
            Event::Log(log) => {
                let hash = mix(self.hash, &log.offset.to_le_bytes());
                let hash = mix(hash, &log.code.to_le_bytes());
                let hash = mix(hash, &log.ts_raw.to_le_bytes());
                mix(hash, log.payload)
            }
            Event::Other(other) => mix(self.hash, &[other.command, other.subscription]),
            Event::Problem(problem) => mix(self.hash, problem.to_string().as_bytes()),
        };
        match event {
            Event::Log(log) => {
                self.logs += 1;
                assert_eq!(log.at, time::stamp(log.ts_raw));
                match Message::parse(log.code, log.payload) {
                    Ok(Some(parsed)) if parsed.problem.is_none() => self.whole += 1,
                    Ok(Some(_)) => self.partial += 1,
                    Ok(None) => self.unknown += 1,
                    Err(_) => self.failed += 1,
                }
            }
            Event::Other(_) => self.others += 1,
            Event::Problem(problem) => {
                self.problems[match problem.severity {
                    Severity::Normal => 0,
                    Severity::Warning => 1,
                    Severity::Damage => 2,
                }] += 1;
            }
        }
    }
}

/// Deframes and parses a stream pushed in pieces of `chunk` bytes.
#[must_use]
pub fn summarise(data: &[u8], chunk: usize) -> Summary {
    let mut summary = Summary::default();
    let mut deframer = Deframer::new();
    for piece in data.chunks(chunk.max(1)) {
        deframer.push(piece);
        while let Some(event) = deframer.poll() {
            summary.add(event);
        }
    }
    deframer.finish();
    while let Some(event) = deframer.poll() {
        summary.add(event);
    }
    summary.container = deframer.container();
    summary.counts = deframer.counts();
    summary
}

/// Container recognition, deframing and parsing; the result does not depend on the chunking.
pub fn deframe(data: &[u8]) {
    let whole = summarise(data, usize::MAX);
    let chunk = 1 + usize::from(data.last().copied().unwrap_or(0));
    assert_eq!(whole, summarise(data, chunk));
    assert_eq!(whole.counts.bytes, data.len() as u64);
}

/// HDLC: unescaping any bytes; encoded data decodes.
pub fn hdlc_frame(data: &[u8]) {
    let mut frame = Vec::new();
    let _ = hdlc::unescape(data, &mut frame);
    let _ = hdlc::check(&frame);
    if data.is_empty() {
        return;
    }
    let mut encoded = Vec::new();
    hdlc::encode(data, &mut encoded);
    assert_eq!(encoded.pop(), Some(hdlc::TERMINATOR));
    assert!(!encoded.contains(&hdlc::TERMINATOR));
    assert!(hdlc::unescape(&encoded, &mut frame).is_ok());
    assert_eq!(hdlc::check(&frame), Ok(data));
}

/// The DIAG packet: a packet that is read is written again, as HDLC and as DLF.
pub fn diag_packet(data: &[u8]) {
    let _ = dlf::RecordHeader::read(data);
    let Ok((Packet::Log(log), _)) = Packet::parse(0, data) else { return };
    let mut encoded = Vec::new();
    log.emit_hdlc(&mut encoded);
    encoded.pop();
    let mut frame = Vec::new();
    assert!(hdlc::unescape(&encoded, &mut frame).is_ok());
    let packet = hdlc::check(&frame).map(|frame| Packet::parse(0, frame));
    assert_eq!(packet, Ok(Ok((Packet::Log(log), None))));
    let mut record = Vec::new();
    log.emit_dlf(&mut record);
    assert_eq!(record.len(), dlf::HEADER_LEN + log.payload.len());
}

/// Parses a payload; a message that is read must be the same after writing and reading
/// again. The first byte chooses among `codes`.
fn message(codes: &[u16], data: &[u8]) {
    let Some((&choice, payload)) = data.split_first() else { return };
    let code = codes[usize::from(choice) % codes.len()];
    let parsed = match Message::parse(code, payload) {
        Ok(Some(parsed)) => parsed,
        Ok(None) => return,
        Err(error) => {
            assert!(error.at <= payload.len(), "{error}");
            return;
        }
    };
    if let Some(problem) = parsed.problem {
        assert!(problem.at <= payload.len(), "{problem}");
    }
    match Message::parse(code, &parsed.message.emit()) {
        Ok(Some(again)) => {
            assert_eq!(again.message, parsed.message);
            assert_eq!(again.problem, None);
        }
        other => assert!(matches!(other, Ok(Some(_))), "{other:?}"),
    }
}

/// 0xB126, 0xB132, 0xB173.
pub fn pdsch(data: &[u8]) {
    message(&[0xB126, 0xB132, 0xB173], data);
}

/// 0xB130.
pub fn pdcch(data: &[u8]) {
    message(&[0xB130], data);
}

/// 0xB139.
pub fn pusch(data: &[u8]) {
    message(&[0xB139], data);
}

/// 0xB063, 0xB064, 0xB066, 0xB067.
pub fn mac(data: &[u8]) {
    message(&[0xB063, 0xB064, 0xB066, 0xB067], data);
}

/// 0xB082, 0xB092.
pub fn rlc(data: &[u8]) {
    message(&[0xB082, 0xB092], data);
}

/// 0xB0A3, 0xB0B3.
pub fn pdcp(data: &[u8]) {
    message(&[0xB0A3, 0xB0B3], data);
}

/// 0xB0C0, 0xB0C1, 0xB0C2.
pub fn rrc(data: &[u8]) {
    message(&[0xB0C0, 0xB0C1, 0xB0C2], data);
}

/// 0xB179, 0xB18A, 0xB193, 0xB195.
pub fn measurements(data: &[u8]) {
    message(&[0xB179, 0xB18A, 0xB193, 0xB195], data);
}

/// MAC subheaders of any bytes; sizes never exceed the block.
pub fn mac_header(data: &[u8]) {
    let Some((head, header)) = data.split_first_chunk::<4>() else { return };
    let tbs = u32::from(u16::from_le_bytes([head[0], head[1]]));
    let padding = u32::from(u16::from_le_bytes([head[2], head[3]]));
    for direction in [Direction::Dl, Direction::Ul] {
        let parsed = MacHeader::parse(direction, header, tbs, padding);
        if let Some(bytes) = parsed.sdu_bytes(0..=31) {
            assert!(bytes + header.len() as u32 + padding <= tbs);
        }
        if let Some(BsrElement::Short { lcg, index, .. }) = parsed.bsr() {
            assert!(lcg < 4 && index < 64);
        }
    }
}

/// RLC headers of any bytes.
pub fn rlc_header(data: &[u8]) {
    for sn_bits in [10, 16] {
        let Some(header) = RlcHeader::parse(data, sn_bits) else { continue };
        if let RlcHeader::Status { complete: true, .. } = &header {
            assert_eq!(RlcHeader::parse(&header.emit(sn_bits), sn_bits), Some(header));
        }
    }
}

/// 0xB821, 0xB823, 0xB872, 0xB881, 0xB887, 0xB97F, 0xB857.
pub fn nr(data: &[u8]) {
    message(&[0xB821, 0xB823, 0xB872, 0xB881, 0xB887, 0xB97F, 0xB857], data);
}

/// 0xB087, 0xB097, 0xB888.
pub fn counters(data: &[u8]) {
    message(&[0xB087, 0xB097, 0xB888], data);
}

/// Frames between marks; the result does not depend on the chunking, every byte is in a
/// frame, skipped, or waiting, and framed packets are found.
pub fn nhdlc(data: &[u8]) {
    let cut = |chunk: usize| {
        let mut deframer = NhdlcDeframer::default();
        let mut packets: Vec<Vec<u8>> = Vec::new();
        for piece in data.chunks(chunk) {
            deframer.push(piece);
            while let Some(packet) = deframer.poll() {
                packets.push(packet.to_vec());
            }
        }
        (packets, deframer.skipped_bytes())
    };
    let (packets, skipped) = cut(data.len().max(1));
    assert_eq!((packets.clone(), skipped), cut(3));
    let framed: usize = packets.iter().map(|packet| packet.len() + 5).sum();
    assert!(framed as u64 + skipped <= data.len() as u64);
    let mut again = Vec::new();
    for packet in &packets {
        assert!(nhdlc::encode(packet, &mut again).is_some());
    }
    let mut deframer = NhdlcDeframer::default();
    deframer.push(&again);
    for packet in &packets {
        assert_eq!(deframer.poll(), Some(&packet[..]));
    }
    assert_eq!(deframer.skipped_bytes(), 0);
}

/// Text exports; the result does not depend on the chunking, problems are inside the text.
pub fn log_text(data: &[u8]) {
    let read = |chunk: usize| {
        let mut reader = TextReader::new();
        let mut out: Vec<Tagged> = Vec::new();
        for piece in data.chunks(chunk) {
            reader.push(piece, &mut |tagged| out.push(tagged));
        }
        reader.finish(&mut |tagged| out.push(tagged));
        (out, reader.stats().clone())
    };
    let (whole, stats) = read(usize::MAX);
    let (pieces, _) = read(1 + usize::from(data.last().copied().unwrap_or(0)));
    assert_eq!(whole, pieces);
    assert_eq!(stats.bytes, data.len() as u64);
    assert!(
        stats
            .problems
            .kept
            .iter()
            .filter_map(|problem| problem.offset)
            .all(|offset| offset < stats.bytes)
    );
}

/// Sniffers' tables, of each kind; a cell's use includes the selected user's own.
pub fn sniffer(data: &[u8]) {
    let _ = SnifferKind::recognise(data);
    let kinds = [
        SnifferKind::Falcon,
        SnifferKind::NgScope,
        SnifferKind::NrScope,
        SnifferKind::SrsRanLog,
        SnifferKind::SrsRanConsole,
        SnifferKind::OaiStatistics,
    ];
    for kind in kinds {
        let read = |chunk: usize| {
            let mut reader = SnifferReader::new(kind);
            data.chunks(chunk).for_each(|piece| reader.push(piece));
            let mut out = Vec::new();
            reader.finish(None, &mut |record| out.push(record));
            out
        };
        let whole = read(usize::MAX);
        assert_eq!(whole, read(1 + usize::from(data.last().copied().unwrap_or(0))));
        for record in whole {
            if let Record::CellUse(used) = record {
                assert!(used.n_prb_own <= used.n_prb);
            }
        }
    }
}

/// A capture in any pieces gives the same frames, each with its offset, and its packets
/// can be studied.
pub fn capture(data: &[u8]) {
    let whole = capture_hash(data, data.len().max(1));
    assert_eq!(whole, capture_hash(data, 7));
    let mut study =
        PacketStudy::new(StudyOptions { tables: Tables::ALL, ..StudyOptions::default() });
    let mut reader = CaptureReader::new();
    let mut sink = |captured: Captured<'_>| {
        if let Captured::Frame(frame) = captured
            && let Ok(packet) = dissect(&frame)
        {
            study.push(&packet);
        }
    };
    reader.push(data, &mut sink);
    reader.finish(&mut sink);
    assert_eq!(reader.offset(), data.len() as u64);
    let packets = study.finish().quality.packets;
    assert!(packets <= data.len() as u64);
}

fn capture_hash(data: &[u8], piece: usize) -> (u64, u64) {
    let (mut hash, mut frames) = (0, 0);
    let mut sink = |captured: Captured<'_>| match captured {
        Captured::Frame(frame) => {
            assert!(frame.offset + frame.data.len() as u64 <= data.len() as u64);
            frames += 1;
            hash = mix(mix(hash, &frame.offset.to_le_bytes()), frame.data);
        }
        Captured::Problem(problem) => hash = mix(hash, problem.to_string().as_bytes()),
    };
    let mut reader = CaptureReader::new();
    data.chunks(piece).for_each(|piece| reader.push(piece, &mut sink));
    reader.finish(&mut sink);
    (hash, frames)
}

/// Payloads of one flow, both directions: a byte for transport and port, then pieces with
/// their length in two bytes, of which the highest bit is the direction.
pub fn application(data: &[u8]) {
    let Some((&selector, mut rest)) = data.split_first() else { return };
    let is_tcp = selector & 1 != 0;
    let port = [80, 443, 53, 8080][usize::from(selector >> 1 & 3)];
    let ends = [(Address::v4([10, 0, 0, 1]), 40_000), (Address::v4([192, 0, 2, 1]), port)];
    let mut study =
        PacketStudy::new(StudyOptions { tables: Tables::ALL, ..StudyOptions::default() });
    let (mut sent, mut bytes) = ([1_u32; 2], 0);
    for at in 0.. {
        let Some((length, behind)) = rest.split_first_chunk::<2>() else { break };
        let length = u16::from_be_bytes(*length);
        let up = at == 0 || length & 0x8000 == 0;
        let (payload, behind) = behind.split_at(usize::from(length & 0x7fff).min(behind.len()));
        rest = behind;
        let (from, to) = (usize::from(!up), usize::from(up));
        let header = TcpHeader {
            seq: SeqNum(sent[from]),
            ack: SeqNum(sent[to]),
            flags: TcpFlags(TcpFlags::ACK.0),
            window: u16::MAX,
            ..TcpHeader::default()
        };
        sent[from] = sent[from].wrapping_add(payload.len() as u32);
        bytes += payload.len() as u64;
        study.push(&airmile_model::packet::Packet {
            at_ns: at * 1_000_000,
            src: ends[from].0,
            dst: ends[to].0,
            src_port: ends[from].1,
            dst_port: ends[to].1,
            protocol: if is_tcp { 6 } else { 17 },
            transport: if is_tcp { Transport::Tcp(header) } else { Transport::Udp },
            ecn: Ecn::NotEct,
            ip_id: None,
            ip_bytes: 40 + payload.len() as u32,
            payload_bytes: payload.len() as u32,
            payload,
            fragmented: false,
            tunnelled: false,
            interface: 0,
        });
    }
    let mut flows = 0;
    let _ = study.finish_with(&mut |row| {
        if let PacketRow::Flow(flow) = row {
            flows += 1;
            assert_eq!(flow.dl_bytes + flow.ul_bytes, bytes);
            let name = flow.server_name.unwrap_or_default() + &flow.application.unwrap_or_default();
            assert!(!name.contains(char::is_control), "{name:?}");
        }
    });
    assert!(flows <= 1);
}

/// A frame of any link type: the parsed data lies within it.
pub fn packet(data: &[u8]) {
    let Some((&selector, data)) = data.split_first() else { return };
    let links = [
        link::ETHERNET,
        link::RAW,
        link::LINUX_SLL,
        link::LINUX_SLL2,
        link::PPP,
        link::NULL,
        link::NFLOG,
        link::PKTAP,
    ];
    let link = links[usize::from(selector) % links.len()];
    let wire_bytes = u32::try_from(data.len()).unwrap_or(u32::MAX);
    let frame = Frame { offset: 0, at_ns: 0, interface: 0, link, wire_bytes, data };
    if let Ok(packet) = dissect(&frame) {
        assert!(packet.payload.len() <= data.len());
        assert!(packet.payload.len() as u64 <= u64::from(packet.payload_bytes));
    }
}

/// A packet of the emulator, unchanged and with its lengths and checksums repaired,
/// without which little is reached; a parsed packet is written again.
pub fn emulated_packet(data: &[u8]) {
    for bytes in [data.to_vec(), mended(data)] {
        match net::IpPacket::parse(&bytes) {
            Ok(packet) => {
                let written = packet.emit();
                assert_eq!(packet.ip_bytes() as usize, written.len());
                assert!(written.len() <= bytes.len());
                assert_eq!(net::IpPacket::parse(&written).as_ref(), Ok(&packet));
            }
            Err(WireError::Short { wanted, present, .. }) => assert!(present < wanted),
            Err(WireError::Value { offset, .. } | WireError::Checksum { offset, .. }) => {
                assert!(offset < bytes.len())
            }
        }
    }
}

/// The bytes with correct version, lengths and checksums (RFC 791, 9293, 768), if there
/// is room for them.
fn mended(data: &[u8]) -> Vec<u8> {
    const HEADER: usize = 20;
    let mut bytes = data.to_vec();
    bytes.truncate(usize::from(u16::MAX));
    let length = bytes.len() as u16;
    let tcp = bytes.get(9).is_some_and(|protocol| protocol % 2 == 0);
    let (protocol, at) = if tcp { (6, HEADER + 16) } else { (17, HEADER + 6) };
    if bytes.len() < at + 2 {
        return bytes;
    }
    bytes[0] = 0x45;
    bytes[2..4].copy_from_slice(&length.to_be_bytes());
    bytes[9] = protocol;
    bytes[10..12].fill(0);
    let sum = ones_complement(&bytes[..HEADER], 0);
    bytes[10..12].copy_from_slice(&sum);
    if !tcp {
        bytes[HEADER + 4..HEADER + 6].copy_from_slice(&(length - HEADER as u16).to_be_bytes());
    }
    bytes[at..at + 2].fill(0);
    let mut pseudo = bytes[12..HEADER].to_vec();
    pseudo.extend([0, protocol]);
    pseudo.extend((length - HEADER as u16).to_be_bytes());
    let start = u32::from(u16::from_be_bytes(ones_complement(&pseudo, 0)) ^ 0xffff);
    let sum = ones_complement(&bytes[HEADER..], start);
    bytes[at..at + 2].copy_from_slice(&sum);
    bytes
}

/// RFC 1071, on top of `start`.
fn ones_complement(bytes: &[u8], start: u32) -> [u8; 2] {
    let mut sum = start;
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (!(sum as u16)).to_be_bytes()
}

const SCRUB_KEY: [u8; KEY_BYTES] = [0x77; KEY_BYTES];

/// Scrubs any bytes as a capture: the copy is a valid capture with the same number of
/// frames, none of them longer, and the result does not depend on the chunking.
pub fn scrub_capture(data: &[u8]) {
    let run = |piece: usize| {
        let mut scrubber = CaptureScrubber::new(Pseudonyms::new(&SCRUB_KEY));
        let mut out = Vec::new();
        data.chunks(piece).for_each(|piece| scrubber.push(piece, &mut out, &mut |_| ()));
        scrubber.finish(&mut out, &mut |_| ());
        out
    };
    let out = run(data.len().max(1));
    assert_eq!(out, run(97), "depends on the pieces");
    let (before, _) = lengths(data);
    let (after, problems) = lengths(&out);
    assert_eq!(before.len(), after.len());
    assert!(before.iter().zip(&after).all(|(before, after)| after <= before));
    assert!(out.is_empty() || problems == 0, "the copy is damaged");
}

/// Captured lengths of a capture's frames, and how many problems it has.
fn lengths(data: &[u8]) -> (Vec<usize>, u64) {
    let (mut lengths, mut problems) = (Vec::new(), 0);
    let mut take = |captured: Captured<'_>| match captured {
        Captured::Frame(frame) => lengths.push(frame.data.len()),
        Captured::Problem(_) => problems += 1,
    };
    let mut reader = CaptureReader::new();
    reader.push(data, &mut take);
    reader.finish(&mut take);
    (lengths, problems)
}

/// Scrubs any bytes as a modem log: the copy holds the same number of log packets, with
/// the same codes and times.
pub fn scrub_log(data: &[u8]) {
    let mut scrubber = LogScrubber::new(Pseudonyms::new(&SCRUB_KEY));
    let mut out = Vec::new();
    scrubber.push(data, &mut out, &mut |_| ());
    scrubber.finish(&mut out, &mut |_| ());
    let (container, logs) = log_heads(data);
    assert_eq!(scrubber.changes().of("messages"), logs.len() as u64);
    // Records without marks may be recognised as something else.
    if matches!(container, Some(Container::Hdlc | Container::Qmdl2)) && logs.len() >= 2 {
        assert_eq!(logs, log_heads(&out).1);
    }
}

/// Scrubs any bytes as a HAR: the copy is a whole HAR whose transfers have the same times and bytes,
/// and the result does not depend on the chunking.
pub fn scrub_har(data: &[u8]) {
    let run = |data: &[u8], piece: usize| {
        let mut scrubber = HarScrubber::new(Pseudonyms::new(&SCRUB_KEY));
        let mut out = Vec::new();
        data.chunks(piece).for_each(|piece| scrubber.push(piece, &mut out, &mut |_| ()));
        scrubber.finish(&mut out, &mut |_| ());
        (out, scrubber.changes().of("requests"))
    };
    let (out, requests) = run(data, data.len().max(1));
    assert_eq!(out, run(data, 7).0, "depends on the pieces");
    let transfers = |har: &[u8]| {
        let log = read_application(ApplicationFormat::Har, har).transfers.into_iter();
        log.map(|one| (one.start_ns, one.end_ns, one.bytes, one.phases)).collect::<Vec<_>>()
    };
    let found = transfers(&out);
    assert!(found.len() as u64 <= requests);
    assert_eq!(found, transfers(data), "the copy is read otherwise");
    assert_eq!(run(&out, 4_096).1, requests, "the copy lacks requests");
}

/// Writes any bytes as packets of the air interface: they do not depend on the chunking, and
/// none is longer than it was on the air.
pub fn air_packets(data: &[u8]) {
    let read = |piece| {
        let (mut reader, mut packets) = (AirReader::new(), Vec::new());
        data.chunks(piece).for_each(|bytes| reader.push(bytes, &mut |one| packets.push(one)));
        reader.end_file(&mut |one| packets.push(one));
        packets
    };
    let packets = read(31);
    assert!(packets.iter().all(|one| one.bytes.len() <= one.wire_bytes as usize));
    assert_eq!(packets, read(4_096), "depends on the pieces");
}

/// Takes DIAG out of any bytes as a CoreSight trace: it does not depend on the chunking, and is
/// no longer than the trace.
pub fn coresight(data: &[u8]) {
    let _ = CoreSightDemux::recognise(data);
    let diag = |piece| {
        let (mut demux, mut diag) = (CoreSightDemux::new(), Vec::new());
        data.chunks(piece).for_each(|bytes| demux.push(bytes, &mut diag));
        demux.finish(&mut diag);
        diag
    };
    let whole = diag(4_096);
    assert!(whole.len() <= data.len());
    assert_eq!(diag(5), whole, "depends on the pieces");
}

/// Container of a log, codes and times of its packets.
fn log_heads(data: &[u8]) -> (Option<Container>, Vec<(u16, u64)>) {
    let mut deframer = Deframer::new();
    deframer.push(data);
    deframer.finish();
    let mut heads = Vec::new();
    while let Some(event) = deframer.poll() {
        if let Event::Log(log) = event {
            heads.push((log.code, log.ts_raw));
        }
    }
    (deframer.container(), heads)
}

/// An application log, in the format recognised by its first bytes or, if none is, one
/// chosen by the first byte: the result does not depend on the chunking, and times are in
/// order.
pub fn application_log(data: &[u8]) {
    use ApplicationFormat as Format;
    let formats = [
        Format::Har,
        Format::NetLog,
        Format::Qlog,
        Format::QlogSequence,
        Format::Player,
        Format::PlayerArray,
        Format::Cmcd,
        Format::Iperf3,
        Format::Iperf3Stream,
    ];
    let by_byte = data.first().map(|byte| formats[usize::from(*byte) % formats.len()]);
    let Some(format) = ApplicationFormat::recognise(data).or(by_byte) else { return };
    let log = read_application(format, data);
    let mut reader = ApplicationReader::new(format);
    data.chunks(31).for_each(|piece| reader.push(piece));
    assert_eq!(reader.finish(), log, "depends on the pieces");
    assert!(log.transfers.iter().all(|transfer| transfer.start_ns <= transfer.end_ns));
    for transfer in &log.transfers {
        let name = transfer.name().unwrap_or_default();
        assert!(!name.contains('#') && name.split_once('?').is_none_or(|(_, rest)| rest == "…"));
    }
    assert!(
        log.problems
            .kept
            .iter()
            .filter_map(|problem| problem.offset)
            .all(|offset| offset <= data.len() as u64)
    );
}

/// What QCut's gate reads of a log at once: the same in any pieces, but that the end of a damaged log may
/// wait for more bytes; bounds are in order.
pub fn prompt(data: &[u8]) {
    let (whole, pieces) = (prompt_reports(data, data.len().max(1)), prompt_reports(data, 7));
    assert!(whole.starts_with(&pieces) || pieces.starts_with(&whole), "{whole:?} {pieces:?}");
}

fn prompt_reports(data: &[u8], chunk: usize) -> Vec<ModemReport> {
    let (mut reader, mut extractor) = (PromptReader::new(), ReportExtractor::default());
    let mut reports = Vec::new();
    for piece in data.chunks(chunk) {
        reader.push(piece, &mut |record| reports.extend(extractor.push(&record)));
    }
    for report in &reports {
        match *report {
            ModemReport::Sent { from_ns, to_ns, low_bytes, high_bytes, .. } => {
                assert!(from_ns < to_ns && low_bytes <= high_bytes, "{report:?}");
            }
            ModemReport::Waiting { low_bytes, high_bytes, .. } => {
                assert!(low_bytes <= high_bytes, "{report:?}");
            }
        }
    }
    reports
}

/// Feedback of CLAW: a parsed report is written unchanged, options never decrease a
/// count, and no datagram without the key is accepted or answered.
pub fn claw_feedback(data: &[u8]) {
    if let Ok(report) = FeedbackReport::decode(data) {
        assert_eq!(report.encode().as_slice(), data);
    }
    let mut reader = OptionReader::default();
    let mut last = (0, 0, 0);
    for option in data.chunks(OPTION_BYTES) {
        if let Ok(Some(report)) = reader.read(option) {
            let now = (report.sequence, report.radio_losses, report.queue_losses);
            assert!(now.0 > last.0 && now.1 >= last.1 && now.2 >= last.2);
            last = now;
        }
    }
    let key = FeedbackKey::new([7; 32]);
    let options = SessionOptions { sessions: 2, ..SessionOptions::default() };
    let mut sessions = Sessions::new(FeedbackKey::new([8; 32]), Some(key.clone()), options);
    let from = std::net::IpAddr::from([192, 0, 2, 1]);
    let taken = sessions.ingest(0, from, data);
    // A sender that guesses 128 bits may get an answer.
    assert!(taken.report.is_none() && taken.answer.is_none());
    let mut reporter = FeedbackReporter::new(key, 0, 1);
    assert!(reporter.ingest(0, data).is_err());
    // After a valid report, an invalid one changes nothing.
    let hello = reporter.send(0, &FeedbackReport::default());
    let welcome = sessions.ingest(0, from, &hello).answer;
    assert!(welcome.is_some_and(|welcome| reporter.ingest(1, &welcome).is_ok()));
    let mut datagram = reporter.send(1, &FeedbackReport::default());
    for (at, byte) in data.iter().enumerate().take(datagram.len()) {
        datagram[at] ^= byte;
    }
    let is_right = data.iter().take(datagram.len()).all(|byte| *byte == 0);
    assert_eq!(sessions.ingest(1, from, &datagram).report.is_some(), is_right);
}
