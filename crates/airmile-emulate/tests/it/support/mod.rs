//! A link in virtual time, and two ends of a TCP connection over it.
#![allow(dead_code, clippy::expect_used)]

pub mod chain;

use std::collections::{BinaryHeap, VecDeque};
use std::net::{Ipv4Addr, SocketAddrV4};

use airmile_emulate::tcp::{TcpConfig, TcpConnection, TcpSegment};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

pub const MS: i64 = 1_000_000;

/// Impairments of a link.
#[derive(Debug, Clone, Copy)]
pub struct LinkConfig {
    pub rate_bps: Option<u64>,
    pub delay_ns: i64,
    /// Queue capacity; further packets are dropped.
    pub queue_packets: usize,
    pub loss: f64,
    pub duplicate: f64,
    /// Share of packets that arrive late, and by how much.
    pub reorder: f64,
    pub reorder_ns: i64,
    /// Drops every packet with this number.
    pub drop_every: Option<u64>,
}

impl LinkConfig {
    pub fn new(rate_bps: u64, delay_ms: i64, queue_packets: usize) -> Self {
        Self {
            rate_bps: Some(rate_bps),
            delay_ns: delay_ms * MS,
            queue_packets,
            loss: 0.0,
            duplicate: 0.0,
            reorder: 0.0,
            reorder_ns: 0,
            drop_every: None,
        }
    }
}

struct Arrival<T> {
    at_ns: i64,
    number: u64,
    item: T,
}

impl<T> PartialEq for Arrival<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.at_ns, self.number) == (other.at_ns, other.number)
    }
}
impl<T> Eq for Arrival<T> {}
impl<T> PartialOrd for Arrival<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<T> Ord for Arrival<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (other.at_ns, other.number).cmp(&(self.at_ns, self.number))
    }
}

/// One direction.
pub struct Link<T> {
    pub config: LinkConfig,
    rng: ChaCha8Rng,
    free_ns: i64,
    /// When the packets in the queue leave it.
    departures: VecDeque<i64>,
    arrivals: BinaryHeap<Arrival<T>>,
    number: u64,
    pub dropped: u64,
    pub carried: u64,
    offered: u64,
}

impl<T: Clone> Link<T> {
    pub fn new(config: LinkConfig, seed: u64) -> Self {
        Self {
            config,
            rng: ChaCha8Rng::seed_from_u64(seed),
            free_ns: 0,
            departures: VecDeque::new(),
            arrivals: BinaryHeap::new(),
            number: 0,
            dropped: 0,
            carried: 0,
            offered: 0,
        }
    }

    fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0
            && ((self.rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64) < probability
    }

    pub fn send(&mut self, now_ns: i64, bytes: u32, item: T) {
        while self.departures.front().is_some_and(|&at_ns| at_ns <= now_ns) {
            self.departures.pop_front();
        }
        self.offered += 1;
        let nth = self.config.drop_every.is_some_and(|n| self.offered.is_multiple_of(n));
        if nth || self.chance(self.config.loss) || self.departures.len() > self.config.queue_packets
        {
            self.dropped += 1;
            return;
        }
        self.carried += 1;
        let duration_ns = self
            .config
            .rate_bps
            .map_or(0, |bps| (u128::from(bytes) * 8 * 1_000_000_000 / u128::from(bps)) as i64);
        self.free_ns = self.free_ns.max(now_ns) + duration_ns;
        self.departures.push_back(self.free_ns);
        let mut at_ns = self.free_ns + self.config.delay_ns;
        if self.chance(self.config.reorder) {
            at_ns += self.config.reorder_ns;
        }
        if self.chance(self.config.duplicate) {
            self.arrive(at_ns, item.clone());
        }
        self.arrive(at_ns, item);
    }

    fn arrive(&mut self, at_ns: i64, item: T) {
        self.number += 1;
        self.arrivals.push(Arrival { at_ns, number: self.number, item });
    }

    /// Delays all packets in transit, and those after them.
    pub fn hold(&mut self, now_ns: i64, duration_ns: i64) {
        self.free_ns = self.free_ns.max(now_ns) + duration_ns;
        let held = std::mem::take(&mut self.arrivals).into_iter();
        self.arrivals = held.map(|a| Arrival { at_ns: a.at_ns + duration_ns, ..a }).collect();
    }

    pub fn next_ns(&self) -> Option<i64> {
        self.arrivals.peek().map(|a| a.at_ns)
    }

    pub fn receive(&mut self, now_ns: i64) -> Option<T> {
        self.arrivals.peek().filter(|a| a.at_ns <= now_ns)?;
        self.arrivals.pop().map(|a| a.item)
    }
}

pub fn address(host: u8, port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, host), port)
}

/// A server that sends and a client that reads, with a link in each direction.
pub struct Pair {
    pub now_ns: i64,
    pub client: TcpConnection,
    pub server: Option<TcpConnection>,
    server_config: TcpConfig,
    pub down: Link<TcpSegment>,
    pub up: Link<TcpSegment>,
    /// Bytes that the server has yet to write, and whether it then finishes.
    pub to_write: u64,
    pub finish: bool,
    pub read_bytes: u64,
    /// Maximum bytes that the client reads at once, and how often.
    pub read_rate_bps: Option<u64>,
    read_from_ns: i64,
    /// Every segment, with its time and whether it went down.
    pub trace: Vec<(i64, bool, TcpSegment)>,
    pub keep_trace: bool,
}

impl Pair {
    pub fn new(
        server: TcpConfig,
        client: TcpConfig,
        down: LinkConfig,
        up: LinkConfig,
        seed: u64,
    ) -> Self {
        let client = TcpConnection::connect(
            0,
            address(1, 40_000),
            address(2, 80),
            client,
            seed.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        );
        Self {
            now_ns: 0,
            client,
            server: None,
            server_config: server,
            down: Link::new(down, seed),
            up: Link::new(up, seed ^ 0xffff),
            to_write: 0,
            finish: false,
            read_bytes: 0,
            read_rate_bps: None,
            read_from_ns: 0,
            trace: Vec::new(),
            keep_trace: false,
        }
    }

    fn note(&mut self, down: bool, segment: &TcpSegment) {
        if self.keep_trace {
            self.trace.push((self.now_ns, down, segment.clone()));
        }
    }

    fn exchange(&mut self) {
        let now_ns = self.now_ns;
        while let Some(segment) = self.up.receive(now_ns) {
            match &mut self.server {
                Some(server) => server.handle_segment(now_ns, &segment),
                None => {
                    self.server = TcpConnection::accept(
                        now_ns,
                        address(2, 80),
                        address(1, 40_000),
                        &segment,
                        self.server_config.clone(),
                        0xdead_beef_ffff_fff0,
                    );
                }
            }
        }
        while let Some(segment) = self.down.receive(now_ns) {
            self.client.handle_segment(now_ns, &segment);
        }
        self.client.handle_timeout(now_ns);
        if let Some(server) = &mut self.server {
            server.handle_timeout(now_ns);
            if server.is_established() {
                self.to_write -= server.write(self.to_write);
                if self.to_write == 0 && self.finish {
                    server.finish();
                }
            }
        }
        let allowed = match self.read_rate_bps {
            None => u64::MAX,
            Some(bps) => {
                let due = (now_ns - self.read_from_ns) as u128 * u128::from(bps) / 8_000_000_000;
                (due as u64).saturating_sub(self.read_bytes)
            }
        };
        self.read_bytes += self.client.read(now_ns, allowed);
        if self.client.is_read_to_end() {
            self.client.finish();
        }
        while let Some(segment) = self.client.poll_transmit(now_ns) {
            self.note(false, &segment);
            self.up.send(now_ns, 20 + segment.header_bytes() + segment.payload_bytes(), segment);
        }
        while let Some(segment) = self.server.as_mut().and_then(|s| s.poll_transmit(now_ns)) {
            self.note(true, &segment);
            self.down.send(now_ns, 20 + segment.header_bytes() + segment.payload_bytes(), segment);
        }
    }

    fn next_ns(&self) -> Option<i64> {
        let reads = self.read_rate_bps.map(|_| self.now_ns + 10 * MS);
        [
            self.down.next_ns(),
            self.up.next_ns(),
            self.client.poll_timeout(),
            self.server.as_ref().and_then(TcpConnection::poll_timeout),
            reads,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Runs until `until_ns` or until there are no more events.
    pub fn run(&mut self, until_ns: i64) {
        let mut same = 0;
        loop {
            self.exchange();
            let Some(next_ns) = self.next_ns().filter(|&ns| ns <= until_ns) else { break };
            same = if next_ns <= self.now_ns { same + 1 } else { 0 };
            assert!(same < 1000, "time stands still at {} ns", self.now_ns);
            self.now_ns = self.now_ns.max(next_ns);
        }
        self.now_ns = until_ns.max(self.now_ns);
    }

    /// Runs until the client has read this many bytes; returns when.
    pub fn run_until_read(&mut self, bytes: u64, limit_ns: i64) -> Option<i64> {
        while self.read_bytes < bytes {
            self.exchange();
            if self.read_bytes >= bytes {
                break;
            }
            let next_ns = self.next_ns().filter(|&ns| ns <= limit_ns)?;
            self.now_ns = self.now_ns.max(next_ns);
        }
        Some(self.now_ns)
    }

    pub fn server(&self) -> &TcpConnection {
        self.server.as_ref().expect("the handshake has begun")
    }
}
