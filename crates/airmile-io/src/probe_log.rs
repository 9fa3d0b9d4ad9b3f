//! The log of `airmile probe`: transfers over several ports, and when their bytes arrived.

use std::path::Path;

use airmile_model::printable;
use airmile_model::transfer::MAX_TRANSFER_BYTES;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::input::{Progress, SizeLimit, read_text};

/// A probe's log. Times are in microseconds since the Unix epoch, by the client's clock.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ProbeLog {
    /// Always `probe`.
    pub document: String,
    /// Its version.
    pub version: u32,
    /// The server's name, as given.
    pub host: String,
    /// Bytes of a segment.
    pub segment_bytes: u64,
    /// Segments per connection.
    pub segments: u32,
    /// Pause before each segment of a connection, in ms.
    pub pause_ms: u64,
    /// Rounds, each with one connection per port.
    pub rounds: u32,
    /// Seed for the order of the ports.
    pub seed: u64,
    /// Whether the server's kernel restarts slow start after pauses, as the server reports; null if
    /// it does not report it.
    pub server_restarts_after_idle: Option<bool>,
    /// Connections, in the order of their creation.
    pub connections: Vec<ProbeConnection>,
    /// Transfers, in order.
    pub transfers: Vec<ProbeTransfer>,
}

/// A connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProbeConnection {
    /// The server's port.
    pub port: u16,
    /// Whether TLS was used.
    pub tls: bool,
    /// The round of the connection.
    pub round: u32,
    /// The server's address.
    pub server: String,
    /// Start of the connection.
    pub start_us: i64,
    /// Duration of the TCP handshake.
    pub connect_us: i64,
    /// Duration of the TLS handshake after it; null without TLS.
    pub tls_us: Option<i64>,
}

/// A segment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProbeTransfer {
    /// Its name: `port-PORT-N`, also in the application log next to it.
    pub id: String,
    /// Its connection, as an index into the list.
    pub connection: usize,
    /// Its turn: segments of the same turn were fetched together, one per port.
    pub turn: u32,
    /// When the request was sent.
    pub start_us: i64,
    /// When the response's first byte arrived; null if none did.
    pub first_byte_us: Option<i64>,
    /// When its last byte arrived.
    pub end_us: i64,
    /// Bytes of content.
    pub bytes: u64,
    /// Time since the previous transfer on its connection, in microseconds; null for the first.
    pub pause_us: Option<i64>,
    /// The error; null if it succeeded.
    pub failed: Option<String>,
    /// Arrivals at the socket: microseconds since the request, and bytes including headers and TLS.
    pub arrivals: Vec<(i64, u64)>,
}

impl ProbeTransfer {
    /// A field with an impossible value; times are limited so that sums of them in nanoseconds fit.
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

/// The maximum size of a log (chosen here: 40 GB of segments, one arrival per 16 kB).
const MAX_BYTES: SizeLimit = SizeLimit { name: "MAX_PROBE_LOG_BYTES", bytes: 64 << 20 };

/// The start of a probe's log.
const MARK: &[u8] = b"\"document\": \"probe\"";

impl ProbeLog {
    /// The version that is written.
    pub const VERSION: u32 = 1;
    /// The name of the file.
    pub const FILE: &str = "probe.json";

    /// Whether a file is a probe's log, by its first bytes.
    #[must_use]
    pub fn recognise(head: &[u8]) -> bool {
        let head = head.get(..256).unwrap_or(head);
        holds(head, MARK)
    }

    /// The minimum round trip to a port, in microseconds, over its handshakes: one may have waited
    /// for the radio.
    #[must_use]
    pub fn round_trip_us(&self, port: u16) -> Option<i64> {
        let connects = self.connections.iter().filter(|c| c.port == port).map(|c| c.connect_us);
        connects.filter(|us| *us > 0).min()
    }

    /// Reads a log.
    ///
    /// # Errors
    /// The file cannot be read, or is no probe's log.
    pub fn read(path: &Path, progress: &Progress) -> Result<Self> {
        let text = read_text(path, progress, MAX_BYTES)?;
        let wrong = |what: String| {
            let what = printable(&what).into_owned();
            Error::Unusable { path: path.to_owned(), what }
        };
        let mut log: Self = serde_json::from_str(&text)
            .map_err(|e| wrong(format!("is not a complete log of `airmile probe`: {e}")))?;
        let names = log.transfers.iter_mut().flat_map(|t| [Some(&mut t.id), t.failed.as_mut()]);
        let servers = log.connections.iter_mut().map(|c| Some(&mut c.server));
        for text in names.chain(servers).chain([Some(&mut log.host)]).flatten() {
            *text = printable(text).into_owned();
        }
        if log.version != Self::VERSION {
            let (found, known) = (log.version, Self::VERSION);
            return Err(wrong(format!(
                "is a probe log of version {found}; only version {known} is supported"
            )));
        }
        for transfer in &log.transfers {
            if let Some(field) = transfer.wrong_field() {
                return Err(wrong(format!(
                    "transfer {}: field `{field}` has an impossible value",
                    transfer.id
                )));
            }
        }
        let lost = log.transfers.iter().find(|t| t.connection >= log.connections.len());
        match lost {
            Some(transfer) => Err(wrong(format!(
                "transfer {}: field `connection` refers to no connection",
                transfer.id
            ))),
            None => Ok(log),
        }
    }
}

fn holds(head: &[u8], mark: &[u8]) -> bool {
    head.windows(mark.len()).any(|part| part == mark)
}
