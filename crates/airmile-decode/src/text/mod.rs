//! Text exports of QXDM and QCAT.
//!
//! Two dialects, distinguished line by line: QCAT's parsed message file (a dated line per
//! packet, a table or nested body) and QXDM's copy (a line with the time of day, nested
//! blocks). 0xB173 and 0xB063 (49, 50) become messages and are processed like binary
//! ones; 0xB887 becomes NR grants. Other packets are counted by their name in the text.
//!
//! QXDM's copy has no date: its times count as of 1970-01-01, and continue on the next
//! day when they step back by half a day or more.

mod fields;
mod header;
mod lte;
mod lte_mac;
mod nr;

use std::collections::BTreeMap;

use airmile_model::{Problem, Problems, Record, Severity, Stamp, UnknownMessage};

use self::fields::{Line, key_value};
use self::header::{DAY_NS, Header, When};
use crate::diag::assemble::Assembler;
use crate::diag::{Message, MessageCount, Tagged};

/// Longer lines are truncated (chosen here: ten times the widest table known).
const MAX_LINE: usize = 16 * 1024;
/// Longer bodies are truncated.
const MAX_BODY_BYTES: usize = 8 << 20;
/// Number of lines searched to recognise a text export.
const RECOGNISE_LINES: usize = 2_000;

/// A line that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Bad {
    offset: u64,
    what: String,
}

impl Bad {
    fn new(offset: u64, what: &str) -> Self {
        Self { offset, what: what.to_owned() }
    }
}

/// A number by its name, or an error.
fn number<'a, T: std::str::FromStr>(
    get: impl Fn(&'static str) -> Option<&'a str>,
    name: &'static str,
) -> Result<T, String> {
    let text = get(name).ok_or_else(|| format!("`{name}` is missing"))?;
    text.parse().map_err(|_| format!("`{name}`: {text:?} is no number in range"))
}

/// The contents of a text.
#[derive(Debug, Clone, Default)]
pub struct TextStats {
    /// Bytes.
    pub bytes: u64,
    /// Packets.
    pub packets: u64,
    /// Packets that could not be read at all.
    pub bad_packets: u64,
    /// First time of writing, in nanoseconds since the Unix epoch.
    pub first_ns: Option<i64>,
    /// Last time of writing.
    pub last_ns: Option<i64>,
    /// Packets by code and name.
    pub messages: BTreeMap<(u16, String), MessageCount>,
    /// Its problems.
    pub problems: Problems,
}

impl TextStats {
    fn problem(&mut self, offset: u64, severity: Severity, what: String) {
        self.problems.push(Problem::at(offset, severity, what));
    }
}

/// Reads a text export in pieces.
#[derive(Debug, Default)]
pub struct TextReader {
    /// The incomplete line; the part beyond the maximum is dropped.
    partial: Vec<u8>,
    line_at: u64,
    packet: Option<TextPacket>,
    /// Midnight of the current day, and the last time of day.
    day: (i64, Option<i64>),
    assemblers: BTreeMap<u8, Assembler>,
    stats: TextStats,
}

#[derive(Debug)]
struct TextPacket {
    header: Header,
    at: Stamp,
    offset: u64,
    body: Vec<Line>,
    body_bytes: usize,
}

impl TextReader {
    /// At the start of a text.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether the first bytes of an input belong to a text export.
    #[must_use]
    pub fn recognise(head: &[u8]) -> bool {
        head.split(|&b| b == b'\n').take(RECOGNISE_LINES).any(|line| {
            line.len() <= MAX_LINE
                && std::str::from_utf8(line).is_ok_and(|line| Header::read(line).is_some())
        })
    }

    /// The contents so far.
    #[must_use]
    pub const fn stats(&self) -> &TextStats {
        &self.stats
    }

    /// Takes the next bytes; complete records are passed to `sink`.
    pub fn push(&mut self, bytes: &[u8], sink: &mut dyn FnMut(Tagged)) {
        let mut rest = bytes;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let (line, after) = rest.split_at(end);
            rest = after.get(1..).unwrap_or_default();
            self.take(line);
            self.stats.bytes += end as u64 + 1;
            self.line(sink);
            self.line_at = self.stats.bytes;
        }
        self.take(rest);
        self.stats.bytes += rest.len() as u64;
    }

    /// Ends the text: all waiting records are passed to `sink`.
    pub fn finish(&mut self, sink: &mut dyn FnMut(Tagged)) {
        if !self.partial.is_empty() {
            self.line(sink);
        }
        self.packet_done(sink);
        for (&subscription, assembler) in &mut self.assemblers {
            assembler.finish(&mut |record| sink(Tagged { subscription, record }));
        }
    }

    fn take(&mut self, part: &[u8]) {
        let room = (MAX_LINE + 1).saturating_sub(self.partial.len());
        self.partial.extend_from_slice(part.get(..part.len().min(room)).unwrap_or_default());
    }

    fn line(&mut self, sink: &mut dyn FnMut(Tagged)) {
        let bytes = std::mem::take(&mut self.partial);
        let offset = self.line_at;
        if bytes.len() > MAX_LINE {
            let what = format!("line of more than {MAX_LINE} bytes, left out");
            self.stats.problem(offset, Severity::Damage, what);
            return;
        }
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim_end_matches('\r');
        match Header::read(text) {
            Some(header) => {
                let repeats = self.packet.as_ref().is_some_and(|packet| {
                    packet.header.summary
                        && packet.header.code == header.code
                        && packet.header.when == header.when
                });
                if repeats && !header.summary {
                    // The packet of the summary line before it.
                    self.packet = None;
                }
                self.packet_done(sink);
                let at = self.stamp(offset, header.when);
                self.packet =
                    Some(TextPacket { header, at, offset, body: Vec::new(), body_bytes: 0 });
            }
            None => {
                let Some(packet) = &mut self.packet else { return };
                packet.body_bytes += text.len();
                if packet.body_bytes <= MAX_BODY_BYTES {
                    packet.body.push(Line { offset, text: text.to_owned() });
                }
            }
        }
    }

    fn stamp(&mut self, offset: u64, when: When) -> Stamp {
        match when {
            When::Dated(ns) => Stamp::modem(ns),
            When::OfDay(ns) => {
                let (midnight, last) = &mut self.day;
                match last.replace(ns) {
                    None => {
                        let what = "the text gives no date: times are as of 1970-01-01".to_owned();
                        self.stats.problem(offset, Severity::Warning, what);
                    }
                    Some(last) if last - ns > DAY_NS / 2 => *midnight += DAY_NS,
                    Some(_) => {}
                }
                Stamp::modem(*midnight + ns)
            }
        }
    }

    fn packet_done(&mut self, sink: &mut dyn FnMut(Tagged)) {
        let Some(TextPacket { header, at, offset, body, body_bytes }) = self.packet.take() else {
            return;
        };
        self.stats.packets += 1;
        // Files of single messages are not in order of time.
        self.stats.first_ns = Some(self.stats.first_ns.map_or(at.ns, |first| first.min(at.ns)));
        self.stats.last_ns = self.stats.last_ns.max(Some(at.ns));
        let subscription = body
            .iter()
            .filter_map(|line| key_value(&line.text))
            .find(|(key, _)| key == "subscriptionid")
            .and_then(|(_, value)| value.parse().ok())
            .unwrap_or(1);
        if body_bytes > MAX_BODY_BYTES {
            let what = format!("packet of more than {MAX_BODY_BYTES} bytes, cut there");
            self.stats.problem(offset, Severity::Damage, what);
        }
        let code = header.code;
        let outcome = match code {
            0xB173 => lte::pdsch_stat(&body).map(|(stat, bad)| {
                let assembler = self.assemblers.entry(subscription).or_default();
                let mut give = |record| sink(Tagged { subscription, record });
                assembler.push(at, Some(Message::PdschStat(stat)), &mut give);
                bad
            }),
            0xB063 if lte_mac::is_read(&body) => {
                lte_mac::mac_dl_report(&body).map(|(report, bad)| {
                    let assembler = self.assemblers.entry(subscription).or_default();
                    let mut give = |record| sink(Tagged { subscription, record });
                    assembler.push(at, Some(Message::MacDlReport(report)), &mut give);
                    bad
                })
            }
            0xB887 => nr::pdsch_status(&body).map(|(statuses, bad)| {
                let assembler = self.assemblers.entry(subscription).or_default();
                let mut give = |record| sink(Tagged { subscription, record });
                assembler.push_nr_blocks(at, statuses, &mut give);
                bad
            }),
            _ => {
                let payload: Vec<u8> =
                    body.iter().flat_map(|line| line.text.bytes().chain([b'\n'])).collect();
                let record: Record = UnknownMessage {
                    at: Some(at),
                    code,
                    version: None,
                    offset,
                    subscription,
                    payload,
                }
                .into();
                sink(Tagged { subscription, record });
                if let Some(assembler) = self.assemblers.get_mut(&subscription) {
                    assembler.push(at, None, &mut |record| sink(Tagged { subscription, record }));
                }
                return self.count(header, false);
            }
        };
        let label = format!("0x{code:04X} {}", header.name);
        match outcome {
            Ok(bad) => {
                for bad in bad {
                    let what = format!("{label}: {}", bad.what);
                    self.stats.problem(bad.offset, Severity::Damage, what);
                }
                self.count(header, true);
            }
            Err(what) => {
                self.stats.bad_packets += 1;
                self.stats.problem(offset, Severity::Damage, format!("{label}: {what}"));
                self.count(header, false);
            }
        }
    }

    fn count(&mut self, header: Header, decoded: bool) {
        let count = self.stats.messages.entry((header.code, header.name)).or_default();
        count.count += 1;
        count.decoded += u64::from(decoded);
    }
}
