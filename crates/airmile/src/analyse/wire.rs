//! Captures beside a modem log: what the senders of the phone's transfers
//! waited for.

use std::collections::BTreeMap;
use std::path::PathBuf;

use airmile_infer::attribute::{Attribution, Radio, SenderStory, Shares, UplinkUse, Waits};
use airmile_infer::tcp::{PacketStudy, StudyOptions, Traced, TracedPacket};
use airmile_model::packet::{Address, Packet, TcpFlags};

use crate::error::{Error, Result};
use crate::input::{Input, Progress};
use crate::packets::read_capture;
use crate::recognise::{Foreign, Kind};
use crate::session::{FileReport, Inputs};

/// A round trip on one side of the monitor under this share of the other's: the
/// monitor is at that end (chosen here).
const AT_END_SHARE: f64 = 0.1;
/// Slow starts after idle time that a server's own packets show, of those that
/// the phone sees: under this share they are somebody else's (chosen here).
const OWN_RESTARTS: f64 = 0.34;

/// Where a capture was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Phone,
    Between,
    Server,
}

/// Who restarts slow start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Restarter {
    /// Only the phone's side was seen.
    SenderOrMiddlebox,
    Sender,
    Middlebox,
}

/// What captures tell of the phone.
#[derive(Debug)]
pub(crate) struct Wire {
    attribution: Attribution,
    pub(crate) place: Place,
    pub(crate) restarter: Restarter,
    pub(crate) files: Vec<FileReport>,
}

/// Inputs without captures, and the captures.
///
/// # Errors
/// A file or directory cannot be read; there are captures alone.
pub(crate) fn part(inputs: &Inputs) -> Result<(Inputs, Vec<PathBuf>)> {
    let mut captures = Vec::new();
    let mut rest = Inputs { files: Vec::new(), ..inputs.clone() };
    for path in &inputs.files {
        if path.is_dir() {
            captures.extend(captures_in(path)?);
            rest.files.push(path.clone());
        } else if is_capture(path)? {
            captures.push(path.clone());
        } else {
            rest.files.push(path.clone());
        }
    }
    // Where data waited is told by the radio's records alone.
    match captures.first() {
        Some(path) if rest.files.is_empty() => {
            let what = format!("is {}", Foreign::Pcap.advice());
            Err(Error::Unusable { path: path.clone(), what })
        }
        _ => Ok((rest, captures)),
    }
}

fn captures_in(dir: &std::path::Path) -> Result<Vec<PathBuf>> {
    let mut out = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(|e| Error::read(dir, e))? {
        let path = entry.map_err(|e| Error::read(dir, e))?.path();
        if path.is_file() && is_capture(&path)? {
            out.push(path);
        }
    }
    out.sort();
    Ok(out)
}

fn is_capture(path: &std::path::Path) -> Result<bool> {
    // What comes once cannot be looked at twice.
    if path.as_os_str() == "-" || !path.is_file() {
        return Ok(false);
    }
    let input = Input::open(path, &Progress::default())?;
    Ok(matches!(Kind::of(input.head()), Kind::Foreign(Foreign::Pcap | Foreign::PcapNg)))
}

impl Wire {
    /// Reads captures of one phone, taken at one or several places.
    ///
    /// # Errors
    /// One cannot be read.
    pub(crate) fn read(captures: &[PathBuf], progress: &Progress) -> Result<Option<Self>> {
        let mut files = Vec::new();
        let mut seen = Vec::new();
        for path in captures {
            let mut capture = Capture::default();
            let mut study =
                PacketStudy::new(StudyOptions { traced: Traced::All, ..StudyOptions::default() });
            let report = read_capture(path, progress, &mut |packet| {
                study.push(packet);
                capture.note(packet);
                while let Some(traced) = study.poll_trace() {
                    capture.push(&traced);
                }
            })?;
            files.push(report);
            seen.extend(capture.finish());
        }
        Ok(Self::of(seen, files))
    }

    fn of(mut seen: Vec<Phone>, files: Vec<FileReport>) -> Option<Self> {
        // Nearest to the phone first: its connections are those over the air.
        seen.sort_by_key(|phone| phone.place as u8);
        let mut seen = seen.into_iter();
        let first = seen.next()?;
        let server = seen.find(|other| other.place == Place::Server);
        let restarter = match &server {
            _ if first.place == Place::Server => Restarter::SenderOrMiddlebox,
            Some(server) => first.who_restarts(server),
            None => Restarter::SenderOrMiddlebox,
        };
        // What leaves the server comes to the cell half a round trip later.
        let delay_ns = match first.place {
            Place::Server | Place::Between => first.downstream_ns / 2,
            Place::Phone => 0,
        };
        let attribution = Attribution::new(first.waits.later(delay_ns), first.uplink);
        let attribution = match first.place {
            Place::Server => attribution.at_server(),
            Place::Phone | Place::Between => attribution,
        };
        Some(Self { attribution, place: first.place, restarter, files })
    }

    /// Splits a transfer, of which the radio's spans are given.
    pub(crate) fn split(&self, from_ns: i64, to_ns: i64, radio: Radio<'_>) -> Shares {
        self.attribution.split(from_ns, to_ns, Some(radio))
    }
}

/// Both ends of a connection, the client's first.
type Ends = [(Address, u16); 2];

/// A connection's server side.
#[derive(Debug, Default)]
struct Connection {
    story: SenderStory,
    ends: Option<Ends>,
    /// Sequence number of the SYN-ACK: a proxy that splits has another.
    server_isn: Option<u32>,
}

/// One user of a capture.
#[derive(Debug, Default)]
struct User {
    waits: Waits,
    uplink: UplinkUse,
    dl_bytes: u64,
    connections: BTreeMap<u64, Connection>,
}

#[derive(Debug, Default)]
struct Capture {
    users: BTreeMap<u64, User>,
    /// Ends of the packet at hand.
    ends: Option<Ends>,
    held: Vec<airmile_infer::attribute::Held>,
}

impl Capture {
    fn note(&mut self, packet: &Packet<'_>) {
        self.ends = Some([(packet.src, packet.src_port), (packet.dst, packet.dst_port)]);
    }

    fn push(&mut self, packet: &TracedPacket) {
        let user = self.users.entry(packet.user).or_default();
        let connection = user.connections.entry(packet.flow).or_default();
        let down = packet.dir == "dl";
        if connection.ends.is_none() {
            connection.ends =
                self.ends.map(|[from, to]| if down { [to, from] } else { [from, to] });
        }
        if down && packet.flags.has(TcpFlags::SYN) {
            connection.server_isn = Some(packet.seq.0);
        }
        if down {
            user.dl_bytes += packet.new_bytes;
        } else {
            user.uplink.add(packet.at_ns, packet.new_bytes);
        }
        self.held.clear();
        connection.story.push(packet, &mut self.held);
        user.waits.push(&self.held);
    }

    /// The phone: the user who received the most.
    fn finish(self) -> Option<Phone> {
        let user = self.users.into_values().max_by_key(|user| user.dl_bytes)?;
        let connections: Vec<Connection> = user.connections.into_values().collect();
        let upstream = median(connections.iter().filter_map(|c| c.story.upstream_rtt_ns()));
        let downstream = median(connections.iter().filter_map(|c| c.story.downstream_rtt_ns()));
        let place = match (upstream, downstream) {
            (Some(up), Some(down)) if (down as f64) < up as f64 * AT_END_SHARE => Place::Phone,
            (Some(up), Some(down)) if (up as f64) < down as f64 * AT_END_SHARE => Place::Server,
            _ => Place::Between,
        };
        Some(Phone {
            waits: user.waits,
            uplink: user.uplink,
            connections,
            place,
            downstream_ns: downstream.unwrap_or(0),
        })
    }
}

fn median(values: impl Iterator<Item = i64>) -> Option<i64> {
    let mut values: Vec<i64> = values.collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}

/// The phone as one capture shows it.
#[derive(Debug)]
struct Phone {
    waits: Waits,
    uplink: UplinkUse,
    connections: Vec<Connection>,
    place: Place,
    downstream_ns: i64,
}

impl Phone {
    fn restarts(&self) -> usize {
        self.connections.iter().map(|c| c.story.restarts_ns().len()).sum()
    }

    /// By what the server's own capture shows of the same time.
    fn who_restarts(&self, server: &Self) -> Restarter {
        let same = |mine: &Connection| {
            server.connections.iter().any(|c| {
                c.ends == mine.ends && c.server_isn.is_some() && c.server_isn == mine.server_isn
            })
        };
        if self.connections.iter().any(same) {
            return Restarter::Sender;
        }
        let (seen, own) = (self.restarts(), server.restarts());
        if seen > 0 && (own as f64) < seen as f64 * OWN_RESTARTS {
            return Restarter::Middlebox;
        }
        Restarter::SenderOrMiddlebox
    }
}
