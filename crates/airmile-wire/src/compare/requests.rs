//! A connection's requests and answers, with the arrivals of each answer and the pause before it. Other parts
//! separate requests in another way: see `attribute/requests.rs`.

use std::collections::VecDeque;
use std::mem;

use crate::attribute::is_request;

/// Without a round trip that is known, payload that goes up this long after the last
/// that came down is a new request (chosen here: acknowledgements above TCP, as of
/// HTTP/2, follow the data that they are for at once).
const DEFAULT_QUIET_NS: i64 = 10_000_000;
/// A connection that has carried less has no open window to lose (chosen here: four
/// initial windows of RFC 6928). A TLS handshake carries less.
const OPENED_BYTES: u64 = 60_000;
/// Arrivals within this time are merged (chosen here: a TTI of LTE).
const BIN_NS: i64 = 1_000_000;

/// A request and its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimedRequest {
    /// When the request went, in nanoseconds.
    pub start_ns: i64,
    /// When the answer's first byte came.
    pub first_byte_ns: i64,
    /// When its last byte came.
    pub end_ns: i64,
    /// Bytes of the answer.
    pub bytes: u64,
    /// Time since the last byte of the previous answer; `None` if the connection has not
    /// yet carried enough to have opened a window.
    pub pause_ns: Option<i64>,
    /// Arrivals: nanoseconds and bytes, in order.
    pub arrivals: Vec<(i64, u64)>,
}

/// Separates a connection's requests.
#[derive(Debug, Default)]
pub struct RequestTimer {
    rtt_ns: Option<i64>,
    /// When the current request was sent.
    request_ns: Option<i64>,
    /// When a message was sent that is too small for a request: one if data follows it, before a request does.
    small_ns: Option<i64>,
    arrivals: Vec<(i64, u64)>,
    /// The last byte received, and that of the previous answer.
    last_down_ns: Option<i64>,
    former_down_ns: Option<i64>,
    /// Bytes of the previous answers.
    former_bytes: u64,
    done: VecDeque<TimedRequest>,
}

impl RequestTimer {
    /// Sets the round trip of the handshake, in nanoseconds.
    pub const fn set_rtt(&mut self, rtt_ns: i64) {
        self.rtt_ns = Some(rtt_ns);
    }

    /// Takes new uplink payload: its bytes, and those of them that were captured.
    pub fn push_up(&mut self, at_ns: i64, bytes: u64, payload: &[u8]) {
        let quiet_ns = self.rtt_ns.map_or(DEFAULT_QUIET_NS, |rtt_ns| rtt_ns / 2);
        let answered = !self.arrivals.is_empty();
        if answered && self.last_down_ns.is_some_and(|last| at_ns - last < quiet_ns) {
            return;
        }
        if is_request(bytes, payload) {
            self.begin(at_ns);
        } else {
            self.small_ns = Some(at_ns);
        }
    }

    /// Begins a request, or continues one without an answer.
    fn begin(&mut self, at_ns: i64) {
        self.small_ns = None;
        if !self.arrivals.is_empty() {
            self.end();
        }
        self.request_ns.get_or_insert(at_ns);
    }

    /// Takes new downlink payload.
    pub fn push_down(&mut self, at_ns: i64, bytes: u64) {
        if bytes == 0 {
            return;
        }
        if let Some(small_ns) = self.small_ns {
            self.begin(small_ns);
        }
        match self.arrivals.last_mut() {
            Some((bin_ns, sum)) if at_ns - *bin_ns < BIN_NS => *sum += bytes,
            _ => self.arrivals.push((at_ns, bytes)),
        }
        self.last_down_ns = Some(at_ns);
    }

    /// The next completed request.
    pub fn poll(&mut self) -> Option<TimedRequest> {
        self.done.pop_front()
    }

    /// Ends the connection.
    pub fn finish(&mut self) {
        self.end();
    }

    fn end(&mut self) {
        let arrivals = mem::take(&mut self.arrivals);
        let request_ns = self.request_ns.take();
        let (Some((first_byte_ns, _)), Some(end_ns)) =
            (arrivals.first().copied(), self.last_down_ns)
        else {
            return;
        };
        let start_ns = request_ns.unwrap_or(first_byte_ns);
        let bytes: u64 = arrivals.iter().map(|(_, bytes)| bytes).sum();
        let former_ns = self.former_down_ns.filter(|_| self.former_bytes >= OPENED_BYTES);
        self.done.push_back(TimedRequest {
            start_ns,
            first_byte_ns,
            end_ns,
            bytes,
            pause_ns: former_ns.map(|former_ns| (start_ns - former_ns).max(0)),
            arrivals,
        });
        self.former_down_ns = Some(end_ns);
        self.former_bytes = self.former_bytes.saturating_add(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// `None` is a request, a number bytes down, each with its time in ms.
    fn exchanges_of(packets: &[(i64, Option<u64>)]) -> Vec<(i64, i64, u64, Option<i64>)> {
        let mut exchanges = RequestTimer::default();
        exchanges.set_rtt(80 * MS);
        for (ms, down) in packets {
            match down {
                Some(bytes) => exchanges.push_down(ms * MS, *bytes),
                None => exchanges.push_up(ms * MS, 300, &[]),
            }
        }
        exchanges.finish();
        std::iter::from_fn(|| exchanges.poll())
            .map(|e| (e.start_ns / MS, e.end_ns / MS, e.bytes, e.pause_ns.map(|ns| ns / MS)))
            .collect()
    }

    #[test]
    fn requests_behind_pauses_and_window_updates_are_told_apart() {
        let check = |packets: &[_], expected: &[_]| assert_eq!(exchanges_of(packets), expected);
        check(
            &[(0, None), (80, Some(9)), (200, Some(70_000)), (3_200, None), (3_280, Some(5))],
            &[(0, 200, 70_009, None), (3_200, 3_280, 5, Some(3_000))],
        );
        // A handshake has no window to lose.
        check(
            &[(0, None), (80, Some(4_000)), (3_200, None), (3_280, Some(5))],
            &[(0, 80, 4_000, None), (3_200, 3_280, 5, None)],
        );
        // Uplink payload right after downlink payload is no request.
        check(
            &[(0, None), (80, Some(9)), (81, None), (160, Some(9)), (161, None)],
            &[(0, 160, 18, None)],
        );
        // A request in two packets is one.
        check(&[(0, None), (1, None), (90, Some(9))], &[(0, 90, 9, None)]);
        // The capture begins in the middle.
        check(&[(5, Some(9)), (6, Some(9))], &[(5, 6, 18, None)]);
        check(&[(5, None)], &[]);
    }
}
