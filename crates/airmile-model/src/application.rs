//! What applications note down about their own transfers: browsers, players,
//! speed tests.

use serde::{Deserialize, Serialize};

use crate::problem::{Problem, Severity};
use crate::radio::Direction;
use crate::stamp::{Clock, Stamp};
use crate::transfer::Transfer;
use crate::vocabulary::vocabulary;

/// What the times of a log count from.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum TimeBase {
    /// The application's wall clock: nanoseconds since the Unix epoch.
    #[default]
    Wall,
    /// Nanoseconds since a start that the log does not place in the day.
    Unplaced,
}

/// The clock of a log's times.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct TimeScale {
    /// What they count from.
    pub base: TimeBase,
    /// How exactly the log places its start, in nanoseconds: durations may be finer.
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

/// How a transfer's time passed, in nanoseconds, as its application measured it;
/// `None` where the log does not tell, zero where it did not take place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, schemars::JsonSchema)]
pub struct Phases {
    /// In the application's own queue, before anything went out.
    pub blocked_ns: Option<i64>,
    /// Name lookup.
    pub dns_ns: Option<i64>,
    /// TCP handshake, or QUIC's with its TLS.
    pub connect_ns: Option<i64>,
    /// TLS handshake, beside `connect_ns`.
    pub tls_ns: Option<i64>,
    /// Sending the request.
    pub send_ns: Option<i64>,
    /// From the request to the first byte of the answer.
    pub wait_ns: Option<i64>,
    /// From the first byte to the last.
    pub receive_ns: Option<i64>,
}

impl Phases {
    /// Lookup and handshakes; `None` where none of them is told.
    #[must_use]
    pub fn setup_ns(&self) -> Option<i64> {
        sum([self.dns_ns, self.connect_ns, self.tls_ns])
    }

    /// All before the first byte; `None` where nothing of it is told.
    #[must_use]
    pub fn before_first_byte_ns(&self) -> Option<i64> {
        sum([self.blocked_ns, self.setup_ns(), self.send_ns, self.wait_ns])
    }
}

fn sum<const N: usize>(parts: [Option<i64>; N]) -> Option<i64> {
    parts.into_iter().flatten().reduce(i64::saturating_add)
}

/// A transfer as an application saw it.
#[derive(Debug, Clone, PartialEq)]
pub struct AppTransfer {
    /// Its name in the log, or its number.
    pub id: String,
    /// URL, whole; may hold secrets ([`AppTransfer::name`] does not).
    pub url: Option<String>,
    /// The page that it is of, by [`AppPage::id`].
    pub page: Option<String>,
    /// The whole URL of what asked for it.
    pub initiator: Option<String>,
    /// What it was.
    pub kind: TransferKind,
    /// Which way most of it went.
    pub dir: Option<Direction>,
    /// Start in nanoseconds, by the log's clock.
    pub start_ns: i64,
    /// End in nanoseconds (exclusive).
    pub end_ns: i64,
    /// Bytes on the application's side of the transport.
    pub bytes: Option<u64>,
    /// Whether bytes are after decompression, as those before are not told.
    pub bytes_decoded: bool,
    /// How its time passed.
    pub phases: Phases,
    /// The connection that carried it.
    pub connection: Option<String>,
    /// Protocol, as in `h2`, `h3`, `http/1.1`.
    pub protocol: Option<String>,
    /// Bitrate of a media segment, in bits per second.
    pub bitrate_bps: Option<f64>,
    /// Whether it failed or was given up.
    pub failed: bool,
    /// Whether it had not ended: end and bytes are those so far.
    pub unfinished: bool,
}

impl AppTransfer {
    /// A transfer of which nothing but its time is known.
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
            unfinished: false,
        }
    }

    /// Its URL without user, query and fragment, where tokens are.
    #[must_use]
    pub fn name(&self) -> Option<String> {
        self.url.as_deref().map(cut_url)
    }
}

/// A URL without user, query and fragment; `?…` stands for a query.
#[must_use]
pub fn cut_url(url: &str) -> String {
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
    /// What happened in a player.
    PlayerEventKind {
        /// The first picture.
        Started = "started",
        /// The picture stood still; the value is how long, in ms, where it went on.
        Stall = "stall",
        /// Another bitrate from here on; the value is it, in bits per second.
        Switch = "switch",
        /// What lay in the buffer; the value is it, in ms.
        Buffer = "buffer",
        /// The player's own estimate of throughput, in bits per second.
        Estimate = "estimate",
        /// The end was played.
        Ended = "ended",
        /// Something failed.
        Failed = "failed",
    }
}

/// Something that a player noted down.
#[derive(Debug, Clone, PartialEq)]
pub struct PlayerEvent {
    /// When, in nanoseconds by the log's clock; of a stall its begin.
    pub at_ns: i64,
    /// What.
    pub kind: PlayerEventKind,
    /// How much, by its kind.
    pub value: Option<f64>,
}

/// A rate over a time, as speed tests give it per second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct RatePoint {
    /// Start in nanoseconds by the log's clock.
    pub start_ns: i64,
    /// End in nanoseconds (exclusive).
    pub end_ns: i64,
    /// Which way.
    pub dir: Direction,
    /// Bytes of all streams together.
    pub bytes: u64,
    /// Segments that the sender sent again; null where it is not told.
    pub retransmits: Option<u64>,
    /// Mean round trip of the streams, in microseconds; null where it is not told.
    pub rtt_us: Option<f64>,
    /// Congestion windows of the streams together, in bytes; null where not told.
    pub cwnd_bytes: Option<u64>,
}

/// A page that a browser loaded. Times after its start are in ms.
#[derive(Debug, Clone, PartialEq)]
pub struct AppPage {
    /// Its name in the log.
    pub id: String,
    /// When its load began, in nanoseconds by the log's clock.
    pub start_ns: i64,
    /// When something of it was first painted.
    pub first_paint_ms: Option<f64>,
    /// When its document was parsed (`DOMContentLoaded`).
    pub content_loaded_ms: Option<f64>,
    /// When all of it was there (`load`).
    pub loaded_ms: Option<f64>,
}

/// All of an application's log.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ApplicationLog {
    /// What wrote it, as it says itself.
    pub made_by: Option<String>,
    /// The clock of its times.
    pub scale: TimeScale,
    /// Transfers over the network, by their start.
    pub transfers: Vec<AppTransfer>,
    /// Pages, by their start.
    pub pages: Vec<AppPage>,
    /// What a player noted down, in order.
    pub events: Vec<PlayerEvent>,
    /// Rates of a speed test, in order.
    pub rates: Vec<RatePoint>,
    /// Entries that were read: requests, events, lines.
    pub items: u64,
    /// Entries that could not be read.
    pub bad_items: u64,
    /// Requests that the cache answered, which are no transfers.
    pub from_cache: u64,
    /// Entries that are no transfers, such as `data:` URLs and web sockets.
    pub not_transfers: u64,
    /// What was wrong, the first ones in words.
    pub problems: Vec<Problem>,
    /// Problems beyond those.
    pub more_problems: u64,
    /// Whether some of it could not be read.
    pub damaged: bool,
}

/// Problems that are kept in words (chosen here).
const KEPT_PROBLEMS: usize = 100;

impl ApplicationLog {
    /// Notes a problem.
    pub fn problem(&mut self, problem: Problem) {
        self.damaged |= problem.severity == Severity::Damage;
        if self.problems.len() < KEPT_PROBLEMS {
            self.problems.push(problem);
        } else {
            self.more_problems += 1;
        }
    }

    /// Moves all times by a map from this log's clock to another, such as an
    /// offset: the one way in which clocks are aligned. The map must not turn
    /// times around.
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

    /// The transfers for the estimators, their times taken to be of `clock`: of a
    /// log whose times are not placed in the day there are none.
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
