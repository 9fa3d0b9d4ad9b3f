//! The server: responds to the heads of requests.

use std::collections::BTreeMap;

use super::http::{Request, response_head};
use super::{AppEvent, SocketApplication, Sockets, StreamId};

const MS: i64 = 1_000_000;

/// Default block of a paced response: 10 ms worth (chosen here: well under a segment's time
/// at the paced rates).
const BLOCK_MS: u64 = 10;

/// State of a stream's response.
#[derive(Debug, Clone)]
enum ResponseState {
    /// Waiting for a head.
    Idle,
    /// Reading the request's body.
    Upload { left_bytes: u64, request: Request },
    /// Think time.
    Think { until_ns: i64, request: Request },
    /// Writing the head.
    Head { status: u16, request: Request },
    /// Writing the body.
    Body { left_bytes: u64, request: Request, began_ns: i64, written_bytes: u64 },
}

/// A server that answers every request on every stream.
#[derive(Debug, Default)]
pub struct WorkloadServer {
    streams: BTreeMap<StreamId, ResponseState>,
    /// When a stream continues, independent of arriving data.
    wake_ns: Option<i64>,
}

impl WorkloadServer {
    /// A server without streams.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

/// Bytes that pacing allows in total since the body's start, and when it allows more.
fn allowance(request: &Request, elapsed_ns: i64) -> (u64, Option<i64>) {
    let mut sending_ns = elapsed_ns;
    let mut next_ns = None;
    if let Some((on_ms, off_ms)) = request.on_off_ms {
        let ns = |ms: u64| i64::try_from(ms).unwrap_or(i64::MAX / MS).saturating_mul(MS);
        let (on_ns, cycle_ns) = (ns(on_ms), ns(on_ms).saturating_add(ns(off_ms)).max(1));
        let (cycles, into_ns) = (elapsed_ns / cycle_ns, elapsed_ns % cycle_ns);
        sending_ns = cycles * on_ns + into_ns.min(on_ns);
        if into_ns >= on_ns {
            let again_ns = (cycles + 1) * cycle_ns;
            let paced = request.rate_bps.is_some();
            // Without a rate only the pause limits it.
            return (if paced { rate_bytes(request, sending_ns) } else { 0 }, Some(again_ns));
        }
        next_ns = Some(cycles * cycle_ns + on_ns);
    }
    let Some(rate_bps) = request.rate_bps.filter(|&bps| bps > 0) else {
        return (u64::MAX, next_ns);
    };
    let block = block_bytes(request, rate_bps);
    let block_ns = (u128::from(block) * 8_000_000_000 / u128::from(rate_bps)).max(1);
    let block_ns = i64::try_from(block_ns).unwrap_or(i64::MAX);
    let blocks_ns = (sending_ns / block_ns + 1).saturating_mul(block_ns);
    (rate_bytes(request, sending_ns), Some(elapsed_ns.saturating_add(blocks_ns - sending_ns)))
}

fn block_bytes(request: &Request, rate_bps: u64) -> u64 {
    request.block_bytes.unwrap_or(rate_bps / 8 * BLOCK_MS / 1000).max(1)
}

/// Whole blocks due after sending for a time; the first is due at once.
fn rate_bytes(request: &Request, sending_ns: i64) -> u64 {
    let Some(rate_bps) = request.rate_bps.filter(|&bps| bps > 0) else { return u64::MAX };
    let block = u128::from(block_bytes(request, rate_bps));
    let due = u128::try_from(sending_ns).unwrap_or(0) * u128::from(rate_bps) / 8_000_000_000;
    u64::try_from((due / block + 1) * block).unwrap_or(u64::MAX)
}

impl ResponseState {
    /// Advances the response; returns when to continue if no data arrives before.
    fn advance(
        self,
        now_ns: i64,
        stream: StreamId,
        sockets: &mut dyn Sockets,
    ) -> (Self, bool, Option<i64>) {
        match self {
            Self::Idle => {
                let Some(head) = sockets.read_head(now_ns, stream) else {
                    return (Self::Idle, false, None);
                };
                let next = match Request::parse(&head) {
                    Some(request) => Self::Upload { left_bytes: request.upload_bytes, request },
                    None => Self::Head { status: 400, request: Request::default() },
                };
                (next, true, None)
            }
            Self::Upload { left_bytes: 0, request } => {
                let think_ms = i64::try_from(request.think_ms.unwrap_or(0)).unwrap_or(i64::MAX);
                let until_ns = now_ns.saturating_add(think_ms.saturating_mul(MS));
                (Self::Think { until_ns, request }, true, None)
            }
            Self::Upload { left_bytes, request } => {
                let read = sockets.read(now_ns, stream, left_bytes);
                (Self::Upload { left_bytes: left_bytes - read, request }, read > 0, None)
            }
            Self::Think { until_ns, request } if until_ns <= now_ns => {
                let status = if request.bytes > 0 { 200 } else { 204 };
                (Self::Head { status, request }, true, None)
            }
            Self::Think { until_ns, request } => {
                (Self::Think { until_ns, request }, false, Some(until_ns))
            }
            Self::Head { status, request } => {
                let head = response_head(status, request.bytes);
                if !sockets.write_head(now_ns, stream, &head) {
                    return (Self::Head { status, request }, false, None);
                }
                let left_bytes = request.bytes;
                (Self::Body { left_bytes, request, began_ns: now_ns, written_bytes: 0 }, true, None)
            }
            Self::Body { left_bytes: 0, .. } => {
                sockets.end_exchange(stream);
                (Self::Idle, true, None)
            }
            Self::Body { left_bytes, request, began_ns, written_bytes } => {
                let (allowed, next_ns) = allowance(&request, now_ns - began_ns);
                let room = allowed.saturating_sub(written_bytes).min(left_bytes);
                let written = sockets.write(now_ns, stream, room);
                let next = Self::Body {
                    left_bytes: left_bytes - written,
                    request,
                    began_ns,
                    written_bytes: written_bytes + written,
                };
                let again_ns = next_ns.map(|ns| began_ns.saturating_add(ns));
                (next, written > 0 && written == room, again_ns)
            }
        }
    }
}

impl SocketApplication for WorkloadServer {
    fn advance(&mut self, now_ns: i64, sockets: &mut dyn Sockets) {
        while let Some(stream) = sockets.accept() {
            self.streams.insert(stream, ResponseState::Idle);
        }
        self.wake_ns = None;
        let mut ended = Vec::new();
        for (&stream, slot) in &mut self.streams {
            let mut answer = std::mem::replace(slot, ResponseState::Idle);
            loop {
                let (next, moved, wake_ns) = answer.advance(now_ns, stream, sockets);
                answer = next;
                let wake_ns = wake_ns.filter(|&ns| ns > now_ns);
                if !moved {
                    self.wake_ns = [self.wake_ns, wake_ns].into_iter().flatten().min();
                    break;
                }
            }
            let gone = sockets.addresses(stream).is_none();
            if gone || matches!(answer, ResponseState::Idle) && sockets.is_ended(stream) {
                ended.push(stream);
            }
            *slot = answer;
        }
        for stream in ended {
            self.streams.remove(&stream);
            sockets.finish(stream);
        }
    }

    fn poll_timeout(&self) -> Option<i64> {
        self.wake_ns
    }

    fn poll_event(&mut self) -> Option<AppEvent> {
        None
    }

    fn is_done(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pacing_by_hand() {
        let check = |request: &Request, elapsed_ms: i64, bytes: u64, next_ms: Option<i64>| {
            let (allowed, next_ns) = allowance(request, elapsed_ms * MS);
            assert_eq!((allowed, next_ns.map(|ns| ns / MS)), (bytes, next_ms), "{elapsed_ms} ms");
        };
        let free = Request::default();
        check(&free, 5, u64::MAX, None);
        // 800 kbit/s in blocks of 10,000 bytes: one every 100 ms.
        let paced =
            Request { rate_bps: Some(800_000), block_bytes: Some(10_000), ..Request::default() };
        check(&paced, 0, 10_000, Some(100));
        check(&paced, 99, 10_000, Some(100));
        check(&paced, 100, 20_000, Some(200));
        // Half a second on, half a second off.
        let on_off = Request { on_off_ms: Some((500, 500)), ..Request::default() };
        check(&on_off, 499, u64::MAX, Some(500));
        check(&on_off, 500, 0, Some(1000));
        check(&on_off, 1000, u64::MAX, Some(1500));
        let both = Request { on_off_ms: Some((500, 500)), ..paced };
        check(&both, 450, 50_000, Some(500));
        check(&both, 700, 60_000, Some(1000));
        check(&both, 1050, 60_000, Some(1100));
    }
}
