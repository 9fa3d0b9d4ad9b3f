//! Detects two captures of the same traffic, for example at the phone and at the server:
//! read as one they would contain each packet twice, a round trip apart.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use airmile_model::packet::{Packet, TcpFlags};

/// Maximum number of SYNs kept (chosen here: 8 MB at most; captures of the same traffic
/// begin alike).
const MOST_SYNS: usize = 1 << 18;

/// The connections that begin in each file.
#[derive(Debug, Default)]
pub struct Views {
    /// The file of each SYN. A retransmitted SYN has another identification, and usually
    /// another time stamp.
    seen: HashMap<u64, usize>,
    file: usize,
    syns: u64,
    again: u64,
    /// Over all files.
    pub repeated: u64,
}

impl Views {
    /// Starts the next file.
    pub fn next_file(&mut self) {
        self.file += 1;
        (self.syns, self.again) = (0, 0);
    }

    /// A hash that identifies a new connection; `None` if no connection begins.
    #[must_use]
    pub fn mark(packet: &Packet<'_>) -> Option<u64> {
        let tcp = packet.tcp()?;
        if !tcp.flags.has(TcpFlags::SYN) || tcp.flags.has(TcpFlags::ACK) {
            return None;
        }
        let mut hasher = DefaultHasher::new();
        (packet.src.words(), packet.dst.words(), packet.src_port, packet.dst_port)
            .hash(&mut hasher);
        (tcp.seq.0, packet.ip_id, tcp.timestamps).hash(&mut hasher);
        Some(hasher.finish())
    }

    /// The next packet.
    pub fn push(&mut self, packet: &Packet<'_>) {
        if let Some(mark) = Self::mark(packet) {
            self.push_mark(mark);
        }
    }

    /// Records that a connection begins.
    pub fn push_mark(&mut self, mark: u64) {
        self.syns += 1;
        let room = self.seen.len() < MOST_SYNS;
        match self.seen.get(&mark) {
            Some(&file) if file != self.file => {
                self.again += 1;
                self.repeated += 1;
            }
            None if room => {
                self.seen.insert(mark, self.file);
            }
            _ => {}
        }
    }

    /// A description, if most connections of this file also begin in an earlier one.
    /// Consecutive files may share some at their boundary.
    #[must_use]
    pub fn same_traffic(&self) -> Option<String> {
        (2 * self.again > self.syns).then(|| {
            format!(
                "{} of its {} connections are also in an earlier file: two views of the same \
                 traffic; give one of them",
                self.again, self.syns
            )
        })
    }
}
