//! Reads a whole log in pieces: bytes in, records out, with statistics.

use std::collections::BTreeMap;

use airmile_model::{Problem, Problems, Record, Severity, UnknownMessage};

use super::assemble::Assembler;
use super::frame::{CMD_SECURE_LOG, LogPacket};
use super::msg::{Message, SizeCheck};
use super::stream::{Container, Deframer, Event};

/// A record, and its subscription.
#[derive(Debug, Clone, PartialEq)]
pub struct Tagged {
    /// Subscription of a multi-SIM phone, 1-based; 0 in a table.
    pub subscription: u8,
    /// The record.
    pub record: Record,
}

/// The key of a kind of message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct MessageKey {
    /// Log code, as in 0xB173.
    pub code: u16,
    /// The payload's first byte.
    pub version: Option<u8>,
    /// Major version, of NR messages: the payload's third and fourth byte.
    pub major: Option<u16>,
    /// Version of the first subpacket, of messages that have subpackets.
    pub sub: Option<u8>,
}

/// How often a message occurred, and was decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MessageCount {
    /// Occurrences.
    pub count: u64,
    /// Decoded, at least in part.
    pub decoded: u64,
}

/// The contents of a log.
#[derive(Debug, Clone, Default)]
pub struct LogStats {
    /// Bytes.
    pub bytes: u64,
    /// Frames (or DLF records), good and bad.
    pub frames: u64,
    /// Frames with a bad CRC, or spans without a record.
    pub bad_frames: u64,
    /// First time of writing, in nanoseconds since the Unix epoch.
    pub first_ns: Option<i64>,
    /// Last time of writing.
    pub last_ns: Option<i64>,
    /// How the sizes of NR blocks agree with the standard, by message and version. A
    /// version that disagrees is not read.
    pub size_checks: BTreeMap<MessageKey, SizeCheck>,
    /// Messages by code and versions.
    pub messages: BTreeMap<MessageKey, MessageCount>,
    /// Its problems; damaged if anything was lost to damage.
    pub problems: Problems,
    /// Records that arrived after the horizon, out of order.
    pub late_records: u64,
    /// Packets of the modem's secure log, which are encrypted.
    pub encrypted: u64,
}

/// Reads a modem log: framing, messages and assembly in one, per subscription.
#[derive(Debug, Clone, Default)]
pub struct LogReader {
    deframer: Deframer,
    assemblers: BTreeMap<u8, Assembler>,
    stats: LogStats,
    experimental: bool,
}

/// Subscriptions count from 1; packets without the wrapper belong to the same modem's
/// first one.
const FIRST_SUBSCRIPTION: u8 = 1;

impl LogReader {
    /// At the start of a log.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Also reads messages whose layout is from a single public source, without a sample
    /// ([`Message::is_experimental`]).
    #[must_use]
    pub fn experimental(self, experimental: bool) -> Self {
        Self { experimental, ..self }
    }

    /// The next part of a rotated log: TTIs and cells continue from this one.
    #[must_use]
    pub fn next_file(self) -> Self {
        let Self { assemblers, experimental, .. } = self;
        Self { assemblers, experimental, ..Self::default() }
    }

    /// Recognises a log by its first bytes: two good frames or records, or one and
    /// nothing invalid.
    #[must_use]
    pub fn recognise(head: &[u8]) -> Option<Container> {
        let mut deframer = Deframer::new();
        deframer.push(head);
        deframer.finish();
        while deframer.poll().is_some() {}
        let counts = deframer.counts();
        let good = counts.good_frames >= 2 || (counts.good_frames == 1 && counts.bad_frames == 0);
        deframer.container().filter(|_| good)
    }

    /// Time of the first whole log packet in the first bytes of a log, in
    /// nanoseconds since the Unix epoch.
    #[must_use]
    pub fn first_stamp_ns(head: &[u8]) -> Option<i64> {
        let mut deframer = Deframer::new();
        deframer.push(head);
        deframer.finish();
        while let Some(event) = deframer.poll() {
            if let Event::Log(packet) = event {
                return Some(packet.at.ns);
            }
        }
        None
    }

    /// Takes the next bytes; complete records are passed to `sink`.
    pub fn push(&mut self, bytes: &[u8], sink: &mut dyn FnMut(Tagged)) {
        self.deframer.push(bytes);
        self.drain(sink);
    }

    /// Marks lost bytes, as when a modem was disconnected or the log was rotated: truncated
    /// frames at both sides are dropped, and the time until the next one is a hole.
    pub fn note_gap(&mut self, sink: &mut dyn FnMut(Tagged)) {
        self.end_file(sink);
        self.deframer = self.deframer.next_part();
        self.assemblers.values_mut().for_each(Assembler::note_damage);
    }

    /// Ends one part of a rotated log: [`Self::next_file`] may follow, and records that
    /// it may still affect wait for it.
    pub fn end_file(&mut self, sink: &mut dyn FnMut(Tagged)) {
        self.deframer.finish();
        self.drain(sink);
    }

    /// Ends the log: all waiting records are passed to `sink`.
    pub fn finish(&mut self, sink: &mut dyn FnMut(Tagged)) {
        self.deframer.finish_last();
        self.drain(sink);
        for (&subscription, assembler) in &mut self.assemblers {
            let jumps = assembler.clock_jumps();
            assembler.finish(&mut |record| sink(Tagged { subscription, record }));
            self.stats.note_clock(assembler, jumps, self.deframer.counts().bytes);
        }
    }

    /// Whether anything so far was lost to damage.
    #[must_use]
    pub const fn is_damaged(&self) -> bool {
        self.stats.problems.damaged
    }

    /// The problems so far that are kept as text, by their discovery.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.stats.problems.kept
    }

    /// The contents so far.
    #[must_use]
    pub fn stats(&self) -> LogStats {
        let counts = self.deframer.counts();
        let mut stats = LogStats {
            bytes: counts.bytes,
            frames: counts.good_frames + counts.bad_frames,
            bad_frames: counts.bad_frames,
            late_records: self.assemblers.values().map(Assembler::late_records).sum(),
            ..self.stats.clone()
        };
        let untimed: u64 = self.assemblers.values().map(Assembler::untimed_records).sum();
        if untimed > 0 {
            stats.problems.push(Problem::of_file(
                Severity::Warning,
                format!("{untimed} records state no valid time and were left out"),
            ));
        }
        if stats.encrypted > 0 {
            stats.problems.push(Problem::of_file(
                Severity::Warning,
                format!(
                    "{} packets are encrypted (secure log, command 0x9E) and cannot be read",
                    stats.encrypted
                ),
            ));
        }
        stats
    }

    fn drain(&mut self, sink: &mut dyn FnMut(Tagged)) {
        let Self { deframer, assemblers, stats, experimental } = self;
        while let Some(event) = deframer.poll() {
            let packet = match event {
                Event::Log(packet) => packet,
                Event::Other(other) => {
                    stats.encrypted += u64::from(other.command == CMD_SECURE_LOG);
                    continue;
                }
                Event::Problem(problem) => {
                    if problem.severity == Severity::Damage {
                        assemblers.values_mut().for_each(Assembler::note_damage);
                    }
                    stats.problems.push(problem);
                    continue;
                }
            };
            stats.first_ns = stats.first_ns.or(Some(packet.at.ns));
            let subscription = packet.subscription.max(FIRST_SUBSCRIPTION);
            let assembler = assemblers.entry(subscription).or_default();
            let version = packet.payload.first().copied();
            let key = MessageKey {
                code: packet.code,
                version,
                major: major_version(&packet),
                sub: sub_version(&packet),
            };
            let jumps = assembler.clock_jumps();
            let parsed = Message::parse(packet.code, packet.payload);
            let believed = match &parsed {
                Ok(Some(parsed)) => {
                    (*experimental || !parsed.message.is_experimental())
                        && stats.believes(key, &parsed.message)
                }
                _ => false,
            };
            let count = stats.messages.entry(key).or_default();
            count.count += 1;
            let mut give = |record| sink(Tagged { subscription, record });
            match parsed {
                Ok(Some(parsed)) if believed => {
                    count.decoded += 1;
                    assembler.push(packet.at, Some(parsed.message), &mut give);
                    if let Some(error) = parsed.problem {
                        stats.message_problem(packet.offset, &error);
                    }
                }
                other => {
                    if let Err(error) = other {
                        stats.message_problem(packet.offset, &error);
                    }
                    assembler.push(packet.at, None, &mut give);
                    let unknown = UnknownMessage {
                        at: Some(packet.at),
                        code: packet.code,
                        version,
                        offset: packet.offset,
                        subscription: packet.subscription,
                        payload: shareable(&packet).to_vec(),
                    };
                    give(unknown.into());
                }
            }
            stats.note_clock(assembler, jumps, packet.offset);
        }
    }
}

/// Messages that consist of subpackets.
pub(super) const WITH_SUBPACKETS: [u16; 10] =
    [0xB063, 0xB064, 0xB066, 0xB067, 0xB082, 0xB092, 0xB0A3, 0xB0B3, 0xB193, 0xB195];

/// Version of a message's first subpacket, which determines the layout of messages with
/// subpackets.
fn sub_version(packet: &LogPacket<'_>) -> Option<u8> {
    // u8 version, u8 subpackets, 2 bytes; u8 id, u8 version. Later message
    // versions have none.
    match packet.payload {
        &[1, _, _, _, _, sub, ..] if WITH_SUBPACKETS.contains(&packet.code) => Some(sub),
        _ => None,
    }
}

/// Major version of an NR message: u16 minor, u16 major.
fn major_version(packet: &LogPacket<'_>) -> Option<u16> {
    match packet.payload {
        &[_, _, low, high, ..] if is_nr(packet.code) => Some(u16::from_le_bytes([low, high])),
        _ => None,
    }
}

/// Whether a log code is of NR.
pub(super) const fn is_nr(code: u16) -> bool {
    matches!(code >> 8, 0xB8 | 0xB9)
}

/// The payload, except of PDCP messages (0xB0A0 to 0xB0BF): they hold cipher keys, which
/// never leave the log.
fn shareable<'a>(packet: &LogPacket<'a>) -> &'a [u8] {
    if (0xB0A0..=0xB0BF).contains(&packet.code) { &[] } else { packet.payload }
}

impl LogStats {
    /// Takes the times of an assembler, and states a jump of its clock since there were `jumps`.
    fn note_clock(&mut self, assembler: &Assembler, jumps: u64, offset: u64) {
        self.last_ns = self.last_ns.max(assembler.latest_ns());
        if assembler.clock_jumps() > jumps {
            self.problems.push(Problem::at(
                offset,
                Severity::Warning,
                "the clock jumps back: another log, or the same one again, begins here \
                 and is taken as following"
                    .into(),
            ));
        }
    }

    /// Whether the layout of a message is plausible. For a kind with checkable blocks,
    /// all of the log so far counts.
    fn believes(&mut self, key: MessageKey, message: &Message) -> bool {
        let Some(check) = message.size_check() else { return true };
        let all = self.size_checks.entry(key).or_default();
        *all = all.plus(check);
        all.holds()
    }

    fn message_problem(&mut self, offset: u64, error: &super::msg::MessageError) {
        let what = error.to_string();
        self.problems.push(Problem::at(offset, Severity::Warning, what));
    }
}
