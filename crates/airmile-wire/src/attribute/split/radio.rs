//! What the radio's records show of a transfer's time.

/// Minimum inactivity, since the last data, before the network releases a phone's
/// connection (chosen here: networks' inactivity timers are about 10 s; 11.6 s in "A
/// close examination of performance and power characteristics of 4G LTE networks",
/// MobiSys 2012, table 1).
pub const RELEASE_NS: i64 = 5_000_000_000;
/// The same where what the phone sent then waited for [`UNGRANTED_NS`] (chosen here: no network
/// releases sooner, and no clock that was aligned is as far off).
const QUIET_NS: i64 = 1_000_000_000;
/// A connected phone has a grant sooner: a scheduling request may wait for 80 ms (TS 36.213,
/// table 10.1.5-1), or a random access is needed.
const UNGRANTED_NS: i64 = 150_000_000;
/// What the radio's records show of a transfer's time; spans are in order and without
/// overlaps.
#[derive(Debug, Clone, Copy, Default)]
pub struct RadioEvidence<'a> {
    /// When the radio's queue in the direction of the data was not empty.
    pub data_queue: &'a [RadioSpan],
    /// The same in the direction of the acknowledgements; `None` if it was not logged.
    pub ack_queue: Option<&'a [RadioSpan]>,
    /// Starts and ends of spans of [`SILENCE_NS`](super::SILENCE_NS) and more, in order, in which nothing was scheduled in
    /// either direction.
    pub silences: &'a [(i64, i64)],
    /// The log has blocks of the uplink, so that a silence is one of both directions.
    pub sees_uplink: bool,
    /// The data is the phone's.
    pub phone_sends: bool,
    /// Times of residual losses of the radio, in order.
    pub losses_ns: &'a [i64],
}

impl RadioEvidence<'_> {
    /// Time of the first grant after a time at which a packet waits, if the network may have released
    /// the phone by then. `left_ns` is given for a packet that the phone sent: the latest time at which
    /// it can have left. A silence that begins later shows a phone that was served, and waits for the
    /// answer.
    pub(super) fn connected_ns(&self, at_ns: i64, left_ns: Option<i64>) -> Option<i64> {
        let first = self.silences.partition_point(|(_, end)| *end <= at_ns);
        let (start, end) = self.silences.get(first)?;
        let quiet_ns = at_ns.saturating_sub(*start);
        let waits = quiet_ns >= QUIET_NS && end.saturating_sub(at_ns) >= UNGRANTED_NS;
        let left = self.sees_uplink && left_ns.is_some_and(|latest_ns| *end <= latest_ns);
        (waits && left || quiet_ns >= RELEASE_NS).then_some(*end)
    }
}

/// A span covered by the radio's records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RadioSpan {
    /// Start in nanoseconds.
    pub from_ns: i64,
    /// End in nanoseconds.
    pub to_ns: i64,
    /// The queue was not empty; otherwise its state is unknown.
    pub queued: bool,
}
