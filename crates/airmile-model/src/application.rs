//! Application logs of their own transfers: browsers, players, speed tests.

use serde::{Deserialize, Serialize};

use crate::problem::{Problem, Problems};
use crate::radio::Direction;
use crate::stamp::{Clock, Stamp};
use crate::transfer::Transfer;
use crate::vocabulary::vocabulary;

/// The origin of a log's times.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum TimeBase {
    /// The application's wall clock: nanoseconds since the Unix epoch.
    #[default]
    Wall,
    /// Nanoseconds since a start with an unknown time of day.
    Unplaced,
}

/// The clock of a log's times.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct TimeScale {
    /// Their origin.
    pub base: TimeBase,
    /// Uncertainty of the log's start, in nanoseconds: durations may be finer.
    pub placed_within_ns: i64,
}

vocabulary! {
    /// What was transferred.
    TransferKind {
        /// A page.
        Document = "document",
        /// Script, style sheet, font.
        Code = "code",
        /// Image.
        Image = "image",
        /// Video or audio.
        Media = "media",
        /// A player's manifest or playlist.
        Manifest = "manifest",
        /// A request of a script.
        Fetch = "fetch",
        /// A speed test.
        Test = "test",
        /// Anything else, or not known.
        Other = "other",
    }
}

/// Phases of a transfer's time, in nanoseconds, as measured by its application; `None` if
/// the log does not have it, zero if it did not take place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, schemars::JsonSchema)]
pub struct Phases {
    /// In the application's own queue, before anything was sent.
    pub blocked_ns: Option<i64>,
    /// Name lookup.
    pub dns_ns: Option<i64>,
    /// TCP handshake, or QUIC's with its TLS.
    pub connect_ns: Option<i64>,
    /// TLS handshake, not included in `connect_ns`.
    pub tls_ns: Option<i64>,
    /// Sending the request.
    pub send_ns: Option<i64>,
    /// From the request to the first byte of the answer.
    pub wait_ns: Option<i64>,
    /// From the first byte to the last.
    pub receive_ns: Option<i64>,
}

impl Phases {
    /// Lookup and handshakes; `None` if none of them is known.
    #[must_use]
    pub fn setup_ns(&self) -> Option<i64> {
        sum([self.dns_ns, self.connect_ns, self.tls_ns])
    }

    /// Everything before the first byte; `None` if nothing of it is known.
    #[must_use]
    pub fn before_first_byte_ns(&self) -> Option<i64> {
        sum([self.blocked_ns, self.setup_ns(), self.send_ns, self.wait_ns])
    }
}

fn sum<const N: usize>(parts: [Option<i64>; N]) -> Option<i64> {
    parts.into_iter().flatten().reduce(i64::saturating_add)
}

/// A transfer from an application's log.
#[derive(Debug, Clone, PartialEq)]
pub struct AppTransfer {
    /// Its name in the log, or its number.
    pub id: String,
    /// URL, whole; may hold secrets ([`AppTransfer::name`] does not).
    pub url: Option<String>,
    /// Its page, by [`AppPage::id`].
    pub page: Option<String>,
    /// The whole URL of its initiator.
    pub initiator: Option<String>,
    /// What was transferred.
    pub kind: TransferKind,
    /// The direction with the most bytes.
    pub dir: Option<Direction>,
    /// Start in nanoseconds, by the log's clock.
    pub start_ns: i64,
    /// End in nanoseconds (exclusive).
    pub end_ns: i64,
    /// Bytes on the application's side of the transport.
    pub bytes: Option<u64>,
    /// Whether `bytes` is after decompression, because the compressed size is unknown.
    pub bytes_decoded: bool,
    /// The phases of its time.
    pub phases: Phases,
    /// The connection that carried it.
    pub connection: Option<String>,
    /// Protocol, as in `h2`, `h3`, `http/1.1`.
    pub protocol: Option<String>,
    /// Bitrate of a media segment, in bits per second.
    pub bitrate_bps: Option<f64>,
    /// Whether it failed or was aborted.
    pub failed: bool,
    /// Why there was no whole response, in the log's words or `no response`.
    pub error: Option<String>,
    /// Whether it had not ended: end and bytes are the values so far.
    pub unfinished: bool,
}

impl AppTransfer {
    /// When its request was sent: after queue, name lookup and connection set-up.
    #[must_use]
    pub fn sent_ns(&self) -> i64 {
        let p = self.phases;
        let before = [p.blocked_ns, p.dns_ns, p.connect_ns, p.tls_ns];
        before.into_iter().flatten().fold(self.start_ns, i64::saturating_add)
    }

    /// A transfer with only its time known.
    #[must_use]
    pub const fn new(id: String, start_ns: i64, end_ns: i64) -> Self {
        Self {
            id,
            url: None,
            page: None,
            initiator: None,
            kind: TransferKind::Other,
            dir: None,
            start_ns,
            end_ns,
            bytes: None,
            bytes_decoded: false,
            phases: Phases {
                blocked_ns: None,
                dns_ns: None,
                connect_ns: None,
                tls_ns: None,
                send_ns: None,
                wait_ns: None,
                receive_ns: None,
            },
            connection: None,
            protocol: None,
            bitrate_bps: None,
            failed: false,
            error: None,
            unfinished: false,
        }
    }

    /// Its URL without user, query and fragment, which may hold tokens.
    #[must_use]
    pub fn name(&self) -> Option<String> {
        self.url.as_deref().map(cut_url)
    }
}

/// A URL without user, query and fragment; `?…` stands for a query.
#[must_use]
pub fn cut_url(url: &str) -> String {
    // Browsers read a backslash as a slash (WHATWG URL, 4.4).
    let url = &url.replace('\\', "/");
    let end = url.find(['?', '#']).unwrap_or(url.len());
    let query = url[end..].starts_with('?');
    let (scheme, rest) = match url[..end].split_once("//") {
        Some((scheme, rest)) if scheme.is_empty() || scheme.ends_with(':') => (Some(scheme), rest),
        _ => (None, &url[..end]),
    };
    let authority_end = rest.find('/').unwrap_or(rest.len());
    let host_at = match scheme {
        Some(_) => rest[..authority_end].rfind('@').map_or(0, |at| at + 1),
        None => 0,
    };
    let mut out = scheme.map_or_else(String::new, |scheme| format!("{scheme}//"));
    out.push_str(&rest[host_at..]);
    if query {
        out.push_str("?…");
    }
    out
}

vocabulary! {
    /// An event in a player.
    PlayerEventKind {
        /// The first frame.
        Started = "started",
        /// Playback stalled; the value is the duration in ms, if it resumed.
        Stall = "stall",
        /// A switch to another bitrate; the value is the bitrate in bits per second.
        Switch = "switch",
        /// The buffer level; the value is in ms.
        Buffer = "buffer",
        /// The player's own estimate of throughput, in bits per second.
        Estimate = "estimate",
        /// Playback reached the end.
        Ended = "ended",
        /// Something failed.
        Failed = "failed",
    }
}

/// An event that a player logged.
#[derive(Debug, Clone, PartialEq)]
pub struct PlayerEvent {
    /// Its time, in nanoseconds by the log's clock; of a stall its start.
    pub at_ns: i64,
    /// Its kind.
    pub kind: PlayerEventKind,
    /// Its value, depending on the kind.
    pub value: Option<f64>,
}

/// A rate over an interval, as speed tests report it per second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct RatePoint {
    /// Start in nanoseconds by the log's clock.
    pub start_ns: i64,
    /// End in nanoseconds (exclusive).
    pub end_ns: i64,
    /// The direction.
    pub dir: Direction,
    /// Bytes of all streams together.
    pub bytes: u64,
    /// Retransmitted segments of the sender, or lost datagrams; null if unknown.
    pub retransmits: Option<u64>,
    /// Mean round trip of the streams, in microseconds; null if unknown.
    pub rtt_us: Option<f64>,
    /// Sum of the congestion windows of the streams, in bytes; null if unknown.
    pub cwnd_bytes: Option<u64>,
}

/// A page that a browser loaded. Times after its start are in ms.
#[derive(Debug, Clone, PartialEq)]
pub struct AppPage {
    /// Its name in the log.
    pub id: String,
    /// Its URL, whole, if the log gives one.
    pub url: Option<String>,
    /// When its load began, in nanoseconds by the log's clock.
    pub start_ns: i64,
    /// Time of the first paint.
    pub first_paint_ms: Option<f64>,
    /// When its document was parsed (`DOMContentLoaded`).
    pub content_loaded_ms: Option<f64>,
    /// Time when everything was loaded (`load`).
    pub loaded_ms: Option<f64>,
}

/// The contents of an application log.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ApplicationLog {
    /// The program that wrote it, by its own name.
    pub made_by: Option<String>,
    /// The clock of its times.
    pub scale: TimeScale,
    /// Transfers over the network, in order of their start.
    pub transfers: Vec<AppTransfer>,
    /// Transfers outside of the limits on the time, in the same order.
    pub left_out: Vec<AppTransfer>,
    /// Pages, in order of their start.
    pub pages: Vec<AppPage>,
    /// Events that a player logged, in order.
    pub events: Vec<PlayerEvent>,
    /// Rates of a speed test, in order.
    pub rates: Vec<RatePoint>,
    /// Entries read: requests, events, lines.
    pub items: u64,
    /// Unreadable entries.
    pub bad_items: u64,
    /// Requests answered by the cache, which are no transfers.
    pub from_cache: u64,
    /// Entries that are no transfers, such as `data:` URLs and web sockets.
    pub not_transfers: u64,
    /// Its problems; damaged if part of it was unreadable.
    pub problems: Problems,
    /// The entries that it may lack because of that.
    pub lost: LostEntries,
}

/// Entries that a damaged log may lack.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum LostEntries {
    /// None: at most fields of entries were unreadable.
    #[default]
    None,
    /// Those after the last one read: the log was cut off.
    Last,
    /// Entries anywhere in it.
    Any,
}

impl ApplicationLog {
    /// Notes a problem.
    pub fn problem(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    /// Moves all times by a map from this log's clock to another, such as an offset: the
    /// only way in which clocks are aligned. The map must be monotonic.
    pub fn retime(&mut self, map: impl Fn(i64) -> i64) {
        for transfer in &mut self.transfers {
            transfer.start_ns = map(transfer.start_ns);
            transfer.end_ns = map(transfer.end_ns);
        }
        for page in &mut self.pages {
            page.start_ns = map(page.start_ns);
        }
        for event in &mut self.events {
            event.at_ns = map(event.at_ns);
        }
        for rate in &mut self.rates {
            rate.start_ns = map(rate.start_ns);
            rate.end_ns = map(rate.end_ns);
        }
    }

    /// The transfers for the estimators, with their times assigned to `clock`; empty for
    /// a log with unknown times of day.
    #[must_use]
    pub fn transfers_on(&self, clock: Clock) -> Vec<Transfer> {
        if self.scale.base == TimeBase::Unplaced {
            return Vec::new();
        }
        let stamp = |ns| Stamp { clock, ns };
        self.transfers
            .iter()
            .map(|transfer| Transfer {
                id: transfer.id.clone(),
                time: Some((stamp(transfer.start_ns), stamp(transfer.end_ns))),
                tti: None,
                bytes: transfer.bytes,
                dir: transfer.dir,
                unfinished: transfer.unfinished,
            })
            .collect()
    }

    /// First and last time in it, in nanoseconds.
    #[must_use]
    pub fn span_ns(&self) -> Option<(i64, i64)> {
        let transfers = self.transfers.iter().map(|t| (t.start_ns, t.end_ns));
        let events = self.events.iter().map(|e| (e.at_ns, e.at_ns));
        let rates = self.rates.iter().map(|r| (r.start_ns, r.end_ns));
        transfers.chain(events).chain(rates).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_hold_no_tokens() {
        let check = |url: &str, expected: &str| assert_eq!(cut_url(url), expected);
        check("https://a.example/v/1.m4s?token=abc#t=1", "https://a.example/v/1.m4s?…");
        check("https://user:pw@a.example/x#frag", "https://a.example/x");
        check("https://a.example/@me/x", "https://a.example/@me/x");
        check("/v/1.m4s?CMCD=br%3D3200", "/v/1.m4s?…");
        check("https://u@", "https://");
        check("//user:pw@a.example/x", "//a.example/x");
        check("https:\\\\u:pw@a.example/x", "https://a.example/x");
        check("/v//me@x", "/v//me@x");
        check("", "");
    }

    #[test]
    fn phases_before_the_first_byte_add_up() {
        let phases = Phases { dns_ns: Some(5), connect_ns: Some(7), ..Phases::default() };
        assert_eq!((phases.setup_ns(), phases.before_first_byte_ns()), (Some(12), Some(12)));
        assert_eq!(Phases::default().before_first_byte_ns(), None);
        let phases = Phases { blocked_ns: Some(1), wait_ns: Some(20), tls_ns: Some(3), ..phases };
        assert_eq!((phases.setup_ns(), phases.before_first_byte_ns()), (Some(15), Some(36)));
    }

    #[test]
    fn one_map_moves_all_times() {
        let event = PlayerEvent { at_ns: 5, kind: PlayerEventKind::Stall, value: None };
        let transfers = vec![AppTransfer::new("a".into(), 10, 30)];
        let mut log =
            ApplicationLog { transfers, events: vec![event], ..ApplicationLog::default() };
        assert_eq!(log.span_ns(), Some((5, 30)));
        log.retime(|ns| ns + 100);
        assert_eq!(log.span_ns(), Some((105, 130)));
        let transfers = log.transfers_on(Clock::Modem);
        assert_eq!(transfers[0].time, Some((Stamp::modem(110), Stamp::modem(130))));
        log.scale.base = TimeBase::Unplaced;
        assert_eq!(log.transfers_on(Clock::Modem), []);
    }
}
