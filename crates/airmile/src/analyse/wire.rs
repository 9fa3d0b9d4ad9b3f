//! Captures beside a modem log: what the senders of the phone's transfers
//! waited for.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use airmile_infer::attribute::{Attribution, ByteBins, Radio, SenderStory, Shares, Waits};
use airmile_infer::tcp::{PacketStudy, StudyOptions, Traced, TracedPacket};
use airmile_model::packet::{Address, Packet, TcpFlags, Transport};

use crate::error::{Error, Result};
use crate::input::{Input, Progress};
use crate::packets::read_capture;
use crate::recognise::{Foreign, Kind};
use crate::session::{FileReport, Inputs, captures_in};

/// A round trip on one side of the monitor under this share of the other's: the
/// monitor is at that end (chosen here).
const AT_END_SHARE: f64 = 0.1;
/// Slow starts after idle time that a server's own packets show, of those that
/// the phone sees: under this share they are somebody else's (chosen here).
const OWN_RESTARTS: f64 = 0.34;

/// Where a capture was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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
    /// IP bytes of all that is not TCP (QUIC for one), whose senders nobody follows.
    others: ByteBins,
    /// Payload over TCP towards the phone.
    followed: ByteBins,
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

fn is_capture(path: &Path) -> Result<bool> {
    // What comes once cannot be looked at twice.
    if path.as_os_str() == "-" || !path.is_file() {
        return Ok(false);
    }
    Ok(Kind::of(Input::open(path, &Progress::default())?.head()).is_capture())
}

impl Wire {
    /// Reads captures of one phone, taken at one or several places.
    ///
    /// # Errors
    /// One cannot be read.
    pub(crate) fn read(captures: &[PathBuf], progress: &Progress) -> Result<Option<Self>> {
        // A phone's own capture is smaller than its server's, of whose clients the
        // known one is kept.
        let bytes = |path: &PathBuf| path.metadata().map_or(0, |meta| meta.len());
        let mut order: Vec<usize> = (0..captures.len()).collect();
        order.sort_by_key(|at| captures.get(*at).map(bytes));
        let mut files = vec![None; captures.len()];
        let mut seen = Vec::new();
        let mut known = HashSet::new();
        for (at, path) in order.iter().filter_map(|at| Some((*at, captures.get(*at)?))) {
            let mut capture = Capture { known, ..Capture::default() };
            let mut study =
                PacketStudy::new(StudyOptions { traced: Traced::All, ..StudyOptions::default() });
            let report = read_capture(path, progress, &mut |packet| {
                study.push(packet);
                capture.note(packet);
                while let Some(traced) = study.poll_trace() {
                    capture.push(&traced);
                }
            })?;
            if let Some(file) = files.get_mut(at) {
                *file = Some(report);
            }
            known = capture.isns();
            seen.push(capture.finish());
        }
        Ok(Self::of(seen, files.into_iter().flatten().collect()))
    }

    fn of(mut seen: Vec<Vec<Phone>>, files: Vec<FileReport>) -> Option<Self> {
        // Nearest to the phone first: its connections are those over the air.
        seen.sort_by_key(|users| users.first().map(|user| (user.place, user.begun_ns())));
        let mut seen = seen.into_iter().filter(|users| !users.is_empty());
        let mut first = seen.next()?.into_iter().next()?;
        let mut rest = Vec::new();
        for users in seen {
            if users.first().is_some_and(|user| user.place == first.place) {
                first.go_on(users);
            } else {
                rest.push(users);
            }
        }
        let mut rest = rest.into_iter();
        let server = rest.find(|users| users.iter().any(|user| user.place == Place::Server));
        let server = server.and_then(|users| first.among(users));
        let restarter = match server {
            _ if first.place == Place::Server => Restarter::SenderOrMiddlebox,
            Some(server) => first.who_restarts(&server),
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
        Some(Self {
            attribution,
            others: first.others,
            followed: first.followed,
            place: first.place,
            restarter,
            files,
        })
    }

    /// Splits a transfer, of which the radio's spans are given; `None` where most of
    /// what passed meanwhile was not TCP.
    pub(crate) fn split(&self, from_ns: i64, to_ns: i64, radio: Radio<'_>) -> Option<Shares> {
        let followed = self.followed.within(from_ns, to_ns);
        let follows = followed > 0 && followed >= self.others.within(from_ns, to_ns);
        follows.then(|| self.attribution.split(from_ns, to_ns, Some(radio)))
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

impl Connection {
    /// Whether both are one. Address translation may have changed the client's end;
    /// a proxy that splits has another sequence number.
    fn is(&self, other: &Self) -> bool {
        self.server_isn.is_some()
            && self.server_isn == other.server_isn
            && self.ends.map(|ends| ends[1]) == other.ends.map(|ends| ends[1])
    }
}

/// One user of a capture.
#[derive(Debug, Default)]
struct User {
    waits: Waits,
    uplink: ByteBins,
    followed: ByteBins,
    dl_bytes: u64,
    /// It has a connection that another capture has, too.
    known: bool,
    connections: BTreeMap<u64, Connection>,
}

#[derive(Debug, Default)]
struct Capture {
    users: BTreeMap<u64, User>,
    /// Ends of the packet at hand.
    ends: Option<Ends>,
    held: Vec<airmile_infer::attribute::Held>,
    /// Bytes that are not TCP's.
    others: ByteBins,
    /// Sequence numbers of servers that captures before have shown.
    known: HashSet<u32>,
}

/// Users that a capture keeps at most, but for half as many again: the known ones and those who
/// received the most (chosen here: a server has thousands, and each has its spans).
const MOST_USERS: usize = 64;

impl Capture {
    /// What is known of servers by this capture and those before.
    fn isns(&self) -> HashSet<u32> {
        let connections = self.users.values().flat_map(|user| user.connections.values());
        let own = connections.filter_map(|connection| connection.server_isn);
        self.known.iter().copied().chain(own).collect()
    }

    /// Forgets the users who are neither known nor received much.
    fn forget(&mut self) {
        let rank = |(number, user): (&u64, &User)| (user.known, user.dl_bytes, *number);
        let mut ranks: Vec<_> = self.users.iter().map(rank).collect();
        ranks.sort_unstable();
        ranks.truncate(ranks.len().saturating_sub(MOST_USERS));
        for (.., number) in ranks {
            self.users.remove(&number);
        }
    }

    fn note(&mut self, packet: &Packet<'_>) {
        if !matches!(packet.transport, Transport::Tcp(_)) {
            self.others.add(packet.at_ns, packet.payload_bytes.into());
        }
        self.ends = Some([(packet.src, packet.src_port), (packet.dst, packet.dst_port)]);
    }

    fn push(&mut self, packet: &TracedPacket) {
        if self.users.len() >= MOST_USERS + MOST_USERS / 2 && !self.users.contains_key(&packet.user)
        {
            self.forget();
        }
        let user = self.users.entry(packet.user).or_default();
        let connection = user.connections.entry(packet.flow).or_default();
        let down = packet.dir == "dl";
        if connection.ends.is_none() {
            connection.ends =
                self.ends.map(|[from, to]| if down { [to, from] } else { [from, to] });
        }
        if down && packet.flags.has(TcpFlags::SYN) {
            connection.server_isn = Some(packet.seq.0);
            user.known |= self.known.contains(&packet.seq.0);
        }
        if down {
            user.dl_bytes += packet.new_bytes;
            user.followed.add(packet.at_ns, packet.new_bytes);
        } else {
            user.uplink.add(packet.at_ns, packet.new_bytes);
        }
        self.held.clear();
        connection.story.push(packet, &mut self.held);
        user.waits.push(&self.held);
    }

    /// Each user as if it were the phone, who received the most first.
    fn finish(self) -> Vec<Phone> {
        let mut users: Vec<Phone> = self.users.into_values().map(Phone::of).collect();
        users.sort_by_key(|user| std::cmp::Reverse(user.dl_bytes));
        // With many users it is not told whose they are.
        if let [only] = users.as_mut_slice() {
            only.others = self.others;
        }
        users
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
    uplink: ByteBins,
    followed: ByteBins,
    others: ByteBins,
    connections: Vec<Connection>,
    place: Place,
    downstream_ns: i64,
    dl_bytes: u64,
}

impl Phone {
    fn of(user: User) -> Self {
        let connections: Vec<Connection> = user.connections.into_values().collect();
        let upstream = median(connections.iter().filter_map(|c| c.story.upstream_rtt_ns()));
        let downstream = median(connections.iter().filter_map(|c| c.story.downstream_rtt_ns()));
        let place = match (upstream, downstream) {
            (Some(up), Some(down)) if (down as f64) < up as f64 * AT_END_SHARE => Place::Phone,
            (Some(up), Some(down)) if (up as f64) < down as f64 * AT_END_SHARE => Place::Server,
            _ => Place::Between,
        };
        Self {
            waits: user.waits,
            uplink: user.uplink,
            followed: user.followed,
            others: ByteBins::default(),
            connections,
            place,
            downstream_ns: downstream.unwrap_or(0),
            dl_bytes: user.dl_bytes,
        }
    }

    /// When its first packet waited for something, in nanoseconds.
    fn begun_ns(&self) -> Option<i64> {
        self.waits.spans().first().map(|span| span.from_ns)
    }

    /// Goes on with the next part of a capture; another view of the same time is left out.
    fn go_on(&mut self, users: Vec<Self>) {
        let Some(next) = users.into_iter().next() else { return };
        if self.waits.append(&next.waits) {
            self.uplink.append(&next.uplink);
            self.followed.append(&next.followed);
            self.others.append(&next.others);
            self.connections.extend(next.connections);
            self.dl_bytes += next.dl_bytes;
        }
    }

    /// The same phone among the users of another capture: by a connection of both, or
    /// else, as behind a proxy that splits, by the same ends; or who is alone there.
    fn among(&self, mut users: Vec<Self>) -> Option<Self> {
        let n = users.len();
        let ends = |a: &Connection, b: &Connection| a.ends.is_some() && a.ends == b.ends;
        let by_connection = users.iter().position(|user| self.any_pair(user, Connection::is));
        let by_ends = || users.iter().position(|user| self.any_pair(user, ends));
        let at = by_connection.or_else(by_ends).or((n == 1).then_some(0))?;
        Some(users.swap_remove(at))
    }

    fn any_pair(&self, other: &Self, is: impl Fn(&Connection, &Connection) -> bool) -> bool {
        self.connections.iter().any(|mine| other.connections.iter().any(|c| is(mine, c)))
    }

    /// By what the server's own capture shows of the connections that restart: each
    /// port may have another middlebox, or none.
    fn who_restarts(&self, server: &Self) -> Restarter {
        let restart: Vec<&Connection> =
            self.connections.iter().filter(|c| !c.story.restarts_ns().is_empty()).collect();
        let there =
            restart.iter().filter(|mine| server.connections.iter().any(|c| mine.is(c))).count();
        let seen: usize = restart.iter().map(|c| c.story.restarts_ns().len()).sum();
        let own: usize = server.connections.iter().map(|c| c.story.restarts_ns().len()).sum();
        match there {
            _ if seen == 0 => Restarter::SenderOrMiddlebox,
            0 if (own as f64) < seen as f64 * OWN_RESTARTS => Restarter::Middlebox,
            n if n == restart.len() => Restarter::Sender,
            _ => Restarter::SenderOrMiddlebox,
        }
    }
}

#[cfg(test)]
mod tests {
    use airmile_model::packet::SeqNum;

    use super::*;

    /// Of a thousand clients of a server, those with the most bytes are kept, and the
    /// one that the phone's own capture has shown.
    #[test]
    fn a_server_with_many_clients() {
        let mut capture = Capture { known: HashSet::from([77]), ..Capture::default() };
        for user in 0..1000_u64 {
            let isn = if user == 3 { 77 } else { 1_000_000 + user as u32 };
            for (seq, flags, bytes) in [(isn, TcpFlags::SYN, 0), (isn + 1, TcpFlags::ACK, user)] {
                capture.push(&TracedPacket {
                    flow: user,
                    user,
                    at_ns: user as i64 * 1_000_000,
                    dir: "dl",
                    seq: SeqNum(seq),
                    flags,
                    timestamps: None,
                    event: None,
                    offset_bytes: 1,
                    payload_bytes: bytes as u32,
                    new_bytes: bytes,
                    flight_bytes: bytes,
                    ack: None,
                });
            }
        }
        assert!(capture.users.len() <= MOST_USERS + MOST_USERS / 2);
        assert!(capture.users.contains_key(&3) && capture.users.contains_key(&999));
        assert!(!capture.users.contains_key(&4));
    }
}
