//! Window transfers: a phone that sends requests and a server that sends data, or the
//! reverse for an upload. Simple and deterministic: the core network loses nothing, so
//! there is no loss recovery and no congestion avoidance. It is not TCP: packets dropped by
//! a full queue are missing for good, and a transfer with a missing byte does not end.

use std::collections::VecDeque;

use airmile_model::{Direction, TtiIndex};

use crate::random::{Owner, Process, Random};
use crate::scenario::{INITIAL_WINDOW_SEGMENTS, MSS_BYTES, Traffic, WindowConfig};

/// Header bytes of every packet on the bearer: IPv4, TCP with timestamps (RFC 7323), PDCP
/// with a 12-bit SN.
const HEADER_BYTES: u32 = 20 + 32 + 2;
/// A request's application bytes (chosen here: a short HTTP GET).
const REQUEST_BYTES: u32 = 300;
/// Minimum variance term of the retransmission timeout in ms (as in Linux; RFC 6298 has 1 s
/// for the whole).
const RTO_VARIANCE_MS: f64 = 200.0;
/// Segments of a video differ in size by up to this share (chosen here).
const SEGMENT_SIZE_SPREAD: f64 = 0.2;

/// A packet in transit between phone and server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WindowPacket {
    pub(crate) flow: usize,
    /// Bytes as an RLC SDU.
    pub(crate) bytes: u32,
    kind: WindowPacketKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WindowPacketKind {
    /// A request of the phone for a number of bytes.
    Request { bytes: u64 },
    /// Application data; `last` of its transfer.
    Data { payload: u64, sent: i64, last: bool },
    /// Acknowledges data whose last packet was sent in TTI `sent`.
    Ack { payload: u64, sent: i64 },
}

/// When data may be sent.
#[derive(Debug, Clone)]
enum Pace {
    Window(SendWindow),
    /// Bits per TTI, and accumulated bits.
    Rate {
        bits_per_tti: f64,
        credit_bits: f64,
    },
}

#[derive(Debug, Clone)]
struct SendWindow {
    config: WindowConfig,
    cwnd: u64,
    in_flight: u64,
    srtt_ms: Option<f64>,
    last_sent: i64,
}

impl SendWindow {
    fn new(config: WindowConfig) -> Self {
        let cwnd = INITIAL_WINDOW_SEGMENTS * MSS_BYTES;
        Self { config, cwnd, in_flight: 0, srtt_ms: None, last_sent: i64::MIN }
    }

    fn allows(&mut self, payload: u64, now: i64) -> bool {
        let rto_ms = self.srtt_ms.unwrap_or(0.0) + RTO_VARIANCE_MS;
        let idle_ms = now.saturating_sub(self.last_sent) as f64;
        if self.config.restart_after_idle && self.in_flight == 0 && idle_ms > rto_ms {
            // RFC 5681, 4.1: the restart window is the initial one at most.
            self.cwnd = self.cwnd.min(INITIAL_WINDOW_SEGMENTS * MSS_BYTES);
        }
        let cwnd = self.cwnd.min(self.config.max_bytes.into());
        self.in_flight + payload <= cwnd
    }

    fn on_ack(&mut self, payload: u64, rtt_ms: f64) {
        self.in_flight = self.in_flight.saturating_sub(payload);
        // Slow start (RFC 5681, 3.1), up to the set window.
        self.cwnd = (self.cwnd + payload).min(self.config.max_bytes.into());
        let srtt_ms = self.srtt_ms.unwrap_or(rtt_ms);
        self.srtt_ms = Some(srtt_ms + (rtt_ms - srtt_ms) / 8.0); // RFC 6298, 2.3
    }
}

/// The sending side of a flow's data.
#[derive(Debug, Clone)]
struct DataSender {
    pace: Pace,
    unsent: u64,
}

impl DataSender {
    fn step(&mut self, flow: usize, now: i64, out: &mut VecDeque<WindowPacket>) {
        if let Pace::Rate { bits_per_tti, credit_bits } = &mut self.pace {
            *credit_bits = if self.unsent > 0 { *credit_bits + *bits_per_tti } else { 0.0 };
        }
        while self.unsent > 0 {
            let payload = self.unsent.min(MSS_BYTES);
            let bytes = payload as u32 + HEADER_BYTES;
            let allowed = match &mut self.pace {
                Pace::Window(window) => window.allows(payload, now),
                Pace::Rate { credit_bits, .. } => *credit_bits >= f64::from(bytes * 8),
            };
            if !allowed {
                break;
            }
            match &mut self.pace {
                Pace::Window(window) => {
                    window.in_flight += payload;
                    window.last_sent = now;
                }
                Pace::Rate { credit_bits, .. } => *credit_bits -= f64::from(bytes * 8),
            }
            self.unsent -= payload;
            let kind = WindowPacketKind::Data { payload, sent: now, last: self.unsent == 0 };
            out.push_back(WindowPacket { flow, bytes, kind });
        }
    }

    fn on_ack(&mut self, payload: u64, sent: i64, now: i64) {
        if let Pace::Window(window) = &mut self.pace {
            window.on_ack(payload, (now - sent) as f64);
        }
    }
}

/// A transfer that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WindowTransfer {
    pub(crate) id: String,
    pub(crate) dir: Direction,
    pub(crate) start: TtiIndex,
    pub(crate) end: TtiIndex,
    pub(crate) bytes: u64,
}

/// The player's buffer of a video.
#[derive(Debug, Clone)]
struct SegmentBuffer {
    segment_ms: i64,
    capacity_ms: i64,
    held_ms: i64,
}

/// One entry of a scenario's traffic.
#[derive(Debug, Clone)]
pub(crate) struct WindowFlow {
    index: usize,
    dir: Direction,
    start: i64,
    planned: VecDeque<(String, u64)>,
    current: Option<(String, u64, i64)>,
    player: Option<SegmentBuffer>,
    sender: DataSender,
    /// Data received and not acknowledged yet: bytes, packets.
    unacknowledged: (u64, u32),
    /// Bytes of the current transfer that have arrived.
    arrived: u64,
    /// Application bytes of the current transfer at its receiver, as far as the phone
    /// knows.
    received: u64,
    ended: Vec<WindowTransfer>,
    from_phone: VecDeque<WindowPacket>,
    from_server: VecDeque<WindowPacket>,
}

impl WindowFlow {
    pub(crate) fn new(index: usize, traffic: &Traffic, first_tti: i64, seed: u64) -> Self {
        let window = |config: &WindowConfig| Pace::Window(SendWindow::new(config.clone()));
        let one = |id: &String, bytes: u64| VecDeque::from([(id.clone(), bytes)]);
        let (dir, start_ms, planned, pace) = match traffic {
            Traffic::Download { id, start_ms, bytes, window: config } => {
                (Direction::Dl, start_ms, one(id, *bytes), window(config))
            }
            Traffic::Upload { id, start_ms, bytes, window: config } => {
                (Direction::Ul, start_ms, one(id, *bytes), window(config))
            }
            Traffic::Paced { id, start_ms, bytes, rate_bps } => {
                let bits_per_tti = *rate_bps as f64 / 1_000.0;
                let pace = Pace::Rate { bits_per_tti, credit_bits: 0.0 };
                (Direction::Dl, start_ms, one(id, *bytes), pace)
            }
            Traffic::Video {
                id,
                start_ms,
                segments,
                segment_ms,
                bitrate_bps,
                window: config,
                ..
            } => {
                let mean = bitrate_bps * u64::from(*segment_ms) / 8_000;
                let random = Owner::named(id).random(seed, Process::Segments);
                let planned = plan_segments(id, *segments, mean, random);
                (Direction::Dl, start_ms, planned, window(config))
            }
        };
        let player = match *traffic {
            Traffic::Video { segment_ms, buffer_ms, .. } => Some(SegmentBuffer {
                segment_ms: segment_ms.into(),
                capacity_ms: i64::from(buffer_ms).max(segment_ms.into()),
                held_ms: 0,
            }),
            _ => None,
        };
        Self {
            index,
            dir,
            start: first_tti + i64::from(*start_ms),
            planned,
            current: None,
            player,
            sender: DataSender { pace, unsent: 0 },
            unacknowledged: (0, 0),
            arrived: 0,
            received: 0,
            ended: Vec::new(),
            from_phone: VecDeque::new(),
            from_server: VecDeque::new(),
        }
    }

    /// Whether everything has been transferred.
    pub(crate) fn is_done(&self) -> bool {
        self.planned.is_empty() && self.current.is_none()
    }

    pub(crate) fn into_ended(self) -> Vec<WindowTransfer> {
        self.ended
    }

    /// The unfinished transfer at a TTI, with the bytes that have arrived.
    pub(crate) fn under_way(&self, end: TtiIndex) -> Option<WindowTransfer> {
        let (id, _, start) = self.current.clone()?;
        Some(WindowTransfer { id, dir: self.dir, start: TtiIndex(start), end, bytes: self.arrived })
    }

    /// Simulates a TTI: the application starts planned transfers, and the data's sender
    /// sends what it may.
    pub(crate) fn step(&mut self, now: i64) {
        if let Some(player) = &mut self.player {
            player.held_ms = (player.held_ms - 1).max(0);
        }
        if self.current.is_none() && now >= self.start && self.has_room() {
            self.begin(now);
        }
        let out = match self.dir {
            Direction::Dl => &mut self.from_server,
            Direction::Ul => &mut self.from_phone,
        };
        self.sender.step(self.index, now, out);
    }

    /// Whether the player can buffer another segment.
    fn has_room(&self) -> bool {
        self.player.as_ref().is_none_or(|p| p.held_ms + p.segment_ms <= p.capacity_ms)
    }

    fn begin(&mut self, now: i64) {
        let Some((id, bytes)) = self.planned.pop_front() else { return };
        self.current = Some((id, bytes, now));
        self.arrived = 0;
        self.received = 0;
        match self.dir {
            Direction::Ul => self.sender.unsent = bytes,
            Direction::Dl => {
                let kind = WindowPacketKind::Request { bytes };
                let packet =
                    WindowPacket { flow: self.index, bytes: REQUEST_BYTES + HEADER_BYTES, kind };
                self.from_phone.push_back(packet);
            }
        }
    }

    /// A packet that the phone sends.
    pub(crate) fn poll_phone(&mut self) -> Option<WindowPacket> {
        self.from_phone.pop_front()
    }

    /// A packet that the server sends.
    pub(crate) fn poll_server(&mut self) -> Option<WindowPacket> {
        self.from_server.pop_front()
    }

    /// A packet reaches the phone or (direction uplink) the server.
    pub(crate) fn receive(&mut self, dir: Direction, packet: WindowPacket, now: i64) {
        match packet.kind {
            WindowPacketKind::Request { bytes } => self.sender.unsent += bytes,
            WindowPacketKind::Data { payload, sent, last } => {
                self.arrived += payload;
                self.acknowledge(dir, payload, sent, last);
                self.count(dir, payload, now);
            }
            WindowPacketKind::Ack { payload, sent } => {
                self.sender.on_ack(payload, sent, now);
                self.count(dir, payload, now);
            }
        }
    }

    /// Counts data at the phone, or as acknowledged by the server: the transfer ends with
    /// the last byte.
    fn count(&mut self, dir: Direction, payload: u64, now: i64) {
        if dir != Direction::Dl {
            return;
        }
        self.received += payload;
        if self.current.as_ref().is_some_and(|(_, bytes, _)| self.received >= *bytes) {
            self.end(now);
        }
    }

    /// Acknowledges every second packet, and the last one at once (RFC 5681, 4.2).
    fn acknowledge(&mut self, dir: Direction, payload: u64, sent: i64, last: bool) {
        let (bytes, packets) = self.unacknowledged;
        self.unacknowledged = (bytes + payload, packets + 1);
        if last || self.unacknowledged.1 >= 2 {
            let kind = WindowPacketKind::Ack { payload: self.unacknowledged.0, sent };
            let ack = WindowPacket { flow: self.index, bytes: HEADER_BYTES, kind };
            match dir {
                Direction::Dl => self.from_phone.push_back(ack),
                Direction::Ul => self.from_server.push_back(ack),
            }
            self.unacknowledged = (0, 0);
        }
    }

    fn end(&mut self, now: i64) {
        if let Some((id, bytes, start)) = self.current.take() {
            let (start, end) = (TtiIndex(start), TtiIndex(now + 1));
            self.ended.push(WindowTransfer { id, dir: self.dir, start, end, bytes });
        }
        if let Some(player) = &mut self.player {
            player.held_ms += player.segment_ms;
        }
    }
}

fn plan_segments(id: &str, segments: u32, mean: u64, mut dice: Random) -> VecDeque<(String, u64)> {
    let segment = |n: u32| {
        let share = 1.0 + SEGMENT_SIZE_SPREAD * (2.0 * dice.uniform() - 1.0);
        (format!("{id}-{n}"), ((mean as f64 * share) as u64).max(1))
    };
    (1..=segments).map(segment).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes sent by a window in each round trip of 50 ms, all acknowledged.
    fn rounds(config: WindowConfig, pause_after: usize, rounds: usize) -> Vec<u64> {
        let pace = Pace::Window(SendWindow::new(config));
        let mut sender = DataSender { pace, unsent: u64::MAX };
        let (mut now, mut sent) = (0, Vec::new());
        for round in 0..rounds {
            let mut out = VecDeque::new();
            sender.step(0, now, &mut out);
            let payload = out.len() as u64 * MSS_BYTES;
            sender.on_ack(payload, now, now + 50);
            sent.push(payload / MSS_BYTES);
            now += if round + 1 == pause_after { 1_000 } else { 50 };
        }
        sent
    }

    #[test]
    fn window_doubles_to_its_limit_and_restarts_after_a_pause() {
        let max_bytes = 50 * MSS_BYTES as u32;
        let restarting = WindowConfig { max_bytes, restart_after_idle: true };
        assert_eq!(rounds(restarting, 5, 8), [10, 20, 40, 50, 50, 10, 20, 40]);
        let keeping = WindowConfig { max_bytes, restart_after_idle: false };
        assert_eq!(rounds(keeping, 5, 7), [10, 20, 40, 50, 50, 50, 50]);
    }

    #[test]
    fn a_paced_sender_keeps_its_rate() {
        let pace = Pace::Rate { bits_per_tti: 2_000.0, credit_bits: 0.0 };
        let mut sender = DataSender { pace, unsent: 10_000_000 };
        let mut out = VecDeque::new();
        (0..10_000).for_each(|now| sender.step(0, now, &mut out));
        let bits: u32 = out.iter().map(|packet| packet.bytes * 8).sum();
        assert!((20_000_000 - 12_016..=20_000_000).contains(&bits), "{bits}");
    }
}
