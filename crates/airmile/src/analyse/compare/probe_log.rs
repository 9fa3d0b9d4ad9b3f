//! What `airmile probe` writes down: transfers over several ports, and when their
//! bytes came.

use std::path::Path;

use airmile_model::printable;
use airmile_model::transfer::MAX_TRANSFER_BYTES;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use airmile_io::error::{Error, Result};
use airmile_io::input::{Progress, SizeLimit, read_text};

/// A probe's log. Times are in microseconds since the Unix epoch, by the client's clock.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ProbeLog {
    /// Always `probe`.
    pub document: String,
    /// Its version.
    pub version: u32,
    /// The server's name, as it was given.
    pub host: String,
    /// Bytes of a segment.
    pub segment_bytes: u64,
    /// Segments of a connection.
    pub segments: u32,
    /// Pause before each segment of a connection, in ms.
    pub pause_ms: u64,
    /// Rounds, each with a connection for each port.
    pub rounds: u32,
    /// What the order of ports was drawn from.
    pub seed: u64,
    /// Whether the server's kernel restarts slow start behind pauses, as it says
    /// itself; null where it does not.
    pub server_restarts_after_idle: Option<bool>,
    /// Connections, in the order in which they were made.
    pub connections: Vec<ProbeConnection>,
    /// Transfers, in order.
    pub transfers: Vec<ProbeTransfer>,
}

/// A connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProbeConnection {
    /// The server's port.
    pub port: u16,
    /// Whether TLS was spoken.
    pub tls: bool,
    /// The round it was made in.
    pub round: u32,
    /// The server's address.
    pub server: String,
    /// When it was asked for.
    pub start_us: i64,
    /// How long the TCP handshake took.
    pub connect_us: i64,
    /// How long the TLS handshake took beside that; null without TLS.
    pub tls_us: Option<i64>,
}

/// A segment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProbeTransfer {
    /// Its name: `port-PORT-N`, also in the application log beside.
    pub id: String,
    /// Its connection, by its place in the list.
    pub connection: usize,
    /// Its turn: segments of the same turn were taken together, a port each.
    pub turn: u32,
    /// When the request went.
    pub start_us: i64,
    /// When the answer's first byte came; null where none did.
    pub first_byte_us: Option<i64>,
    /// When its last byte came.
    pub end_us: i64,
    /// Bytes of content.
    pub bytes: u64,
    /// Time since the transfer before on its connection, in microseconds; null for
    /// the first.
    pub pause_us: Option<i64>,
    /// What failed; null where nothing did.
    pub failed: Option<String>,
    /// What came at the socket when: microseconds since the request, and bytes, heads
    /// and TLS included.
    pub arrivals: Vec<(i64, u64)>,
}

impl ProbeTransfer {
    /// A field whose value no transfer has; times are such that sums of them in
    /// nanoseconds fit.
    fn wrong_field(&self) -> Option<&'static str> {
        const MOST_US: i64 = i64::MAX / 4_000;
        let in_order = self.arrivals.windows(2).all(|pair| pair[0].0 <= pair[1].0);
        let sum = self.arrivals.iter().try_fold(0_u64, |sum, (_, bytes)| sum.checked_add(*bytes));
        let is_time = |us: i64| (0..=MOST_US).contains(&us);
        let is_size = |bytes: u64| bytes <= MAX_TRANSFER_BYTES;
        if !is_size(self.bytes) {
            Some("bytes")
        } else if !is_time(self.start_us) {
            Some("start_us")
        } else if !is_time(self.end_us) || self.end_us < self.start_us {
            Some("end_us")
        } else if self.pause_us.is_some_and(|us| !is_time(us)) {
            Some("pause_us")
        } else if !in_order
            || !sum.is_some_and(is_size)
            || self.arrivals.iter().any(|(us, _)| !is_time(*us))
        {
            Some("arrivals")
        } else {
            None
        }
    }
}

/// The maximum size of a log (chosen here: 40 GB of segments, an arrival each 16 kB).
const MAX_BYTES: SizeLimit = SizeLimit { name: "MAX_PROBE_LOG_BYTES", bytes: 64 << 20 };

/// What a probe's log begins with.
const MARK: &[u8] = b"\"document\": \"probe\"";

impl ProbeLog {
    /// The version that is written.
    pub const VERSION: u32 = 1;
    /// What the file is called.
    pub const FILE: &str = "probe.json";

    /// Whether a file is a probe's log, by its first bytes.
    #[must_use]
    pub fn recognise(head: &[u8]) -> bool {
        let head = head.get(..256).unwrap_or(head);
        holds(head, MARK)
    }

    /// The least that a round trip to a port took, in microseconds, of its handshakes: one
    /// may have waited for the radio.
    pub(super) fn round_trip_us(&self, port: u16) -> Option<i64> {
        let connects = self.connections.iter().filter(|c| c.port == port).map(|c| c.connect_us);
        connects.filter(|us| *us > 0).min()
    }

    /// Reads a log.
    ///
    /// # Errors
    /// The file cannot be read, or is none.
    pub fn read(path: &Path, progress: &Progress) -> Result<Self> {
        let text = read_text(path, progress, MAX_BYTES)?;
        let wrong = |what: String| {
            let what = printable(&what).into_owned();
            Error::Unusable { path: path.to_owned(), what }
        };
        let mut log: Self = serde_json::from_str(&text)
            .map_err(|e| wrong(format!("is no whole log of `airmile probe`: {e}")))?;
        let names = log.transfers.iter_mut().flat_map(|t| [Some(&mut t.id), t.failed.as_mut()]);
        let servers = log.connections.iter_mut().map(|c| Some(&mut c.server));
        for text in names.chain(servers).chain([Some(&mut log.host)]).flatten() {
            *text = printable(text).into_owned();
        }
        if log.version != Self::VERSION {
            let (found, known) = (log.version, Self::VERSION);
            return Err(wrong(format!(
                "is a probe's log of version {found}, and {known} is what is read here"
            )));
        }
        for transfer in &log.transfers {
            if let Some(field) = transfer.wrong_field() {
                return Err(wrong(format!("transfer {}: field `{field}` cannot be", transfer.id)));
            }
        }
        let lost = log.transfers.iter().find(|t| t.connection >= log.connections.len());
        match lost {
            Some(transfer) => Err(wrong(format!(
                "transfer {}: field `connection` names none of the connections",
                transfer.id
            ))),
            None => Ok(log),
        }
    }
}

fn holds(head: &[u8], mark: &[u8]) -> bool {
    head.windows(mark.len()).any(|part| part == mark)
}
