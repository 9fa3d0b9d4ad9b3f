//! The study of one capture on one core: a router, a shard, and their sums.

use std::collections::VecDeque;

use airmile_model::flow::{FlowRow, PacketRow};
use airmile_model::packet::Packet;

use super::flow::FlowState;
use super::opt64::Opt64;
use super::options::{StudyOptions, Tables};
use super::quality::Quality;
use super::route::{Change, PacketRouter};
use super::shard::{Finding, FindingKind, PacketShard, ShardCounts};
use super::summary::{Gathered, StudySummary};
use super::trace::TracedPacket;
use crate::app::PacketContext;

/// Studies a capture's packets in the order of the capture.
#[derive(Debug)]
pub struct PacketStudy {
    router: PacketRouter,
    shard: PacketShard,
    changes: Vec<Change>,
    collector: Collector,
    rows: VecDeque<PacketRow>,
}

impl PacketStudy {
    /// A study without packets yet.
    #[must_use]
    pub fn new(options: StudyOptions) -> Self {
        Self {
            router: PacketRouter::new(options.clone()),
            collector: Collector::new(options.tables),
            shard: PacketShard::new(options),
            changes: Vec::new(),
            rows: VecDeque::new(),
        }
    }

    /// A study that returns rows without sums, so that its memory is that of open flows;
    /// [`finish`](Self::finish) then has only the quality of the capture.
    #[must_use]
    pub fn rows_only(options: StudyOptions) -> Self {
        let tables = options.tables;
        Self { collector: Collector { tables, gathered: None }, ..Self::new(options) }
    }

    /// Advances the clock: flows and users that are over end without another packet.
    pub fn advance(&mut self, now_ns: i64) {
        self.router.advance(now_ns, &mut self.changes);
        self.change();
        self.collect();
    }

    /// The clock was set back to `now_ns`: open flows continue from there.
    pub fn set_back(&mut self, now_ns: i64) {
        self.router.set_back(now_ns);
    }

    /// Takes the next packet of the capture.
    #[inline]
    pub fn push(&mut self, packet: &Packet<'_>) {
        let route = self.router.push(packet, &mut self.changes);
        if !self.changes.is_empty() {
            self.change();
        }
        if let Some(route) = route {
            self.shard.push(route, packet);
        }
        if self.shard.has_found() {
            self.collect();
        }
    }

    /// The next row of the requested tables.
    pub fn poll(&mut self) -> Option<PacketRow> {
        self.rows.pop_front()
    }

    /// The next packet of the traced flows.
    pub fn poll_trace(&mut self) -> Option<TracedPacket> {
        self.shard.poll_trace()
    }

    /// The capture's quality so far.
    #[must_use]
    pub fn quality(&self) -> Quality {
        self.router.quality().with(self.shard.counts())
    }

    /// The open flows with the latest packets, the latest first, as rows with their
    /// values so far; `open` ends them.
    #[must_use]
    pub fn latest_flows(&self, most: usize) -> Vec<FlowRow> {
        self.shard.latest_flows(most)
    }

    /// Number of open flows.
    #[must_use]
    pub fn open_flows(&self) -> usize {
        self.router.open_flows()
    }

    /// Ends the capture: closes all flows and sums up. The remaining rows are dropped:
    /// [`finish_with`](Self::finish_with) returns them.
    #[must_use]
    pub fn finish(self) -> StudySummary {
        self.finish_with(&mut |_| {})
    }

    /// As [`finish`](Self::finish), passing the remaining rows to `sink`.
    #[must_use]
    pub fn finish_with(mut self, sink: &mut dyn FnMut(PacketRow)) -> StudySummary {
        self.rows.drain(..).for_each(&mut *sink);
        let (shard, collector) = (&mut self.shard, &mut self.collector);
        self.router.finish(&mut |change| {
            shard.change(&change);
            for finding in shard.drain() {
                collector.push(finding, sink);
            }
        });
        self.collector.finish(*self.router.quality(), self.shard.counts())
    }

    fn change(&mut self) {
        for change in self.changes.drain(..) {
            self.shard.change(&change);
        }
    }

    fn collect(&mut self) {
        for finding in self.shard.drain() {
            self.collector.push(finding, &mut |row| self.rows.push_back(row));
        }
    }
}

/// Sums up findings, and returns rows of the requested tables.
#[derive(Debug)]
pub struct Collector {
    tables: Tables,
    gathered: Option<Gathered>,
}

impl Collector {
    /// A collector for these tables.
    #[must_use]
    pub fn new(tables: Tables) -> Self {
        Self { tables, gathered: Some(Gathered::default()) }
    }

    /// Takes a finding, in the order of the packets that caused them.
    pub fn push(&mut self, finding: Finding, sink: &mut dyn FnMut(PacketRow)) {
        let tables = self.tables;
        match finding.0 {
            FindingKind::FlowState(row, flights) => {
                if let Some(gathered) = &mut self.gathered {
                    gathered.flow(&row, flights.as_ref());
                }
                if tables.flows {
                    sink(PacketRow::Flow(row));
                }
            }
            FindingKind::UserState(row, sums) => {
                if let Some(gathered) = &mut self.gathered {
                    gathered.user(&row, *sums);
                }
                if tables.users {
                    sink(PacketRow::User(row));
                }
            }
            FindingKind::Row(row) => {
                if let Some(gathered) = &mut self.gathered {
                    gathered.row(&row);
                }
                self.give(row, sink);
            }
            FindingKind::Aside(row) => self.give(row, sink),
        }
    }

    fn give(&self, row: PacketRow, sink: &mut dyn FnMut(PacketRow)) {
        let tables = self.tables;
        let wanted = match row {
            PacketRow::Flow(_) => tables.flows,
            PacketRow::Tcp(_) => tables.tcp_events,
            PacketRow::Rtt(_) => tables.rtt_samples,
            PacketRow::Inflight(_) => tables.inflight_samples,
            PacketRow::Bandwidth(_) => tables.bandwidth_samples,
            PacketRow::Http(_) => tables.http,
            PacketRow::Dns(_) => tables.dns,
            PacketRow::User(_) => tables.users,
        };
        if wanted {
            sink(row);
        }
    }

    /// The sums, with the counts of routers and shards.
    #[must_use]
    pub fn finish(self, quality: Quality, counts: ShardCounts) -> StudySummary {
        self.gathered.unwrap_or_default().summary(quality.with(counts))
    }
}

impl FlowState {
    /// Notes the time of a packet.
    pub(super) fn touch(&mut self, packet: &Packet<'_>, control: bool) {
        self.max_gap_ns = self.max_gap_ns.max(packet.at_ns - self.last_ns);
        self.last_ns = self.last_ns.max(packet.at_ns);
        if packet.payload_bytes > 0 && !control {
            self.last_payload_ns = Opt64::some(packet.at_ns);
        }
    }

    pub(super) fn place(&self, user: u64, up: bool) -> PacketContext {
        let server_port = self.server().1;
        PacketContext { flow: self.number, user, up, server_port, tcp: self.is_tcp() }
    }
}
