//! The sums of a study.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use airmile_model::flow::{FlowRow, HttpRow, PacketRow, UserRow};
use airmile_model::{
    ClientBy, CongestionControl, Direction, Leg, Protocol, TcpEventKind, Termination,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::finish::{is_large, utilisation};
use super::flight::FlightCounts;
use super::quality::Quality;
use super::user::UserState;
use crate::distribution::{Correlation, Distribution};

/// First windows of over 99 % of the paper's flows: 131,712 +- 600 bytes (7.2).
pub const USUAL_WINDOW_BYTES: RangeInclusive<u64> = 131_112..=132_312;

/// Maximum number of rhythms in a summary (chosen here).
pub(super) const MAX_PERIODIC: usize = 100;
/// Sizes of the rate distributions of figure 5, besides that over all flows (the paper's
/// text does not name its classes: a decade each, chosen here).
pub const RATE_SIZES_BYTES: [u64; 3] = [10_000, 100_000, 1_000_000];
/// Bytes in flight are counted for flows with more than this towards the client (4.3).
pub(super) const COUNTED_BYTES: u64 = 1_000_000;

/// Content type for `application/octet-stream` in answers to byte-range requests, which
/// come mostly from video players (paper 7.1).
pub const RANGES: &str = "application/octet-stream; by range";

/// What a summary needs of a user apart from its row.
#[derive(Debug)]
pub(super) struct UserSums {
    /// Its periodic requests.
    periodic: Vec<PeriodicRequests>,
    /// Flows that received in a second, and in how many seconds.
    concurrency: Vec<(usize, u64)>,
}

impl UserSums {
    /// For the user with this row.
    pub(super) fn from_user(row: &UserRow, user: &UserState) -> Self {
        let found = user.rhythms.found().take(MAX_PERIODIC);
        let periodic = found.map(|(rhythm, found)| PeriodicRequests {
            client: row.client.clone(),
            server: rhythm.server.to_string(),
            period_s: found.period_ns as f64 / S,
            requests: found.requests,
            bytes: rhythm.bytes,
            idle_share: found.idle_share,
        });
        let seconds = user.concurrency().filter(|(_, seconds)| *seconds > 0);
        Self { periodic: periodic.collect(), concurrency: seconds.collect() }
    }
}

/// Periodic requests of one client to one server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PeriodicRequests {
    /// The client's address.
    pub client: String,
    /// The server's address.
    pub server: String,
    /// Mean interval in seconds.
    pub period_s: f64,
    /// Requests.
    pub requests: u32,
    /// Payload bytes, both ways.
    pub bytes: u64,
    /// Share of the time between the first and the last of them without traffic.
    pub idle_share: f64,
}

/// Counts of flows and bytes of a protocol or port.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Share {
    /// Flows.
    pub flows: u64,
    /// Payload bytes, both ways.
    pub bytes: u64,
}

/// Sums of a study, gathered as flows end.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct StudySummary {
    /// Properties of the capture that decide how far to trust the rest.
    pub quality: Quality,
    /// First packet, in nanoseconds since the Unix epoch.
    pub start_ns: Option<i64>,
    /// Last packet.
    pub end_ns: Option<i64>,
    /// User sessions.
    pub users: u64,
    /// TCP flows.
    pub tcp: Share,
    /// UDP flows.
    pub udp: Share,
    /// TCP by the server's port.
    pub tcp_ports: BTreeMap<u16, Share>,
    /// TCP flows by termination.
    pub terminations: BTreeMap<Termination, u64>,
    /// Flows by application, if it is known.
    pub applications: BTreeMap<String, Share>,
    /// Flows by the rule that identified their client.
    pub client_by: BTreeMap<ClientBy, u64>,
    /// Bytes of TCP flows towards clients, flows with any.
    pub dl_bytes: Distribution,
    /// Bytes of TCP flows from clients.
    pub ul_bytes: Distribution,
    /// Durations of TCP flows in seconds.
    pub duration_s: Distribution,
    /// Last payload to the end, in seconds.
    pub payload_to_end_s: Distribution,
    /// Rates towards clients in bit/s, of flows with data.
    pub dl_rate_bps: Distribution,
    /// Rates from clients in bit/s.
    pub ul_rate_bps: Distribution,
    /// Correlations of log size and duration, duration and rate, rate and size, of
    /// downlinks.
    pub dl_correlations: [Correlation; 3],
    /// The same of uplinks.
    pub ul_correlations: [Correlation; 3],
    /// Rates towards clients in bit/s, of flows over [`RATE_SIZES_BYTES`].
    pub dl_rate_by_size_bps: [Distribution; 3],
    /// Seconds of users with one receiving flow, and with more.
    pub seconds: [u64; 2],
    /// Flows that receive in a second of a user, over seconds with any.
    pub concurrency: Distribution,
    /// SYN to SYN-ACK in milliseconds, without the proxy's connections.
    pub upstream_ms: Distribution,
    /// The same for the proxy's connections.
    pub proxy_ms: Distribution,
    /// SYN-ACK to ACK in milliseconds.
    pub downstream_ms: Distribution,
    /// Both together, without the proxy's connections.
    pub handshake_ms: Distribution,
    /// Upstream over downstream, without the proxy's connections.
    pub rtt_ratio: Distribution,
    /// Promotion delays in milliseconds.
    pub promotion_ms: Distribution,
    /// DNS lookups in milliseconds.
    pub dns_ms: Distribution,
    /// DNS lookups without an answer.
    pub dns_unanswered: u64,
    /// Retransmitted over all downlink segments, of TCP flows with downlink data.
    pub retx_share: Distribution,
    /// Bytes in flight of flows over 1 MB, at each segment.
    pub flight_bytes: Distribution,
    /// Large flows: more than 1 MB and 5 s of data.
    pub large_flows: u64,
    /// Of them, with a retransmission.
    pub large_with_loss: u64,
    /// Of them, with a slow start after duplicate ACKs.
    pub large_with_slow_start: u64,
    /// Duplicate ACKs of large flows.
    pub large_dup_acks: Distribution,
    /// Out-of-order segments of large flows.
    pub large_out_of_order: Distribution,
    /// Their ratio, of large flows with an out-of-order segment.
    pub dup_ack_ratio: Distribution,
    /// Slow starts after a timeout that RTT samples of duplicate ACKs would have avoided,
    /// and others.
    pub timeouts_avoided: [u64; 2],
    /// TCP flows with time stamps.
    pub with_timestamps: u64,
    /// Ticks of client clocks of large flows, in milliseconds.
    pub tick_ms: Distribution,
    /// Available downlink bandwidth of 250 ms windows in bit/s, of single flows and of
    /// all flows of a user together.
    pub available_bps: Distribution,
    /// Sending rates in those windows in bit/s.
    pub send_rate_bps: Distribution,
    /// Used over available bandwidth of large flows without concurrent flows.
    pub utilisation: Distribution,
    /// TCP flows with downlink data.
    pub dl_flows: u64,
    /// Of them, with a full receive window.
    pub window_full_flows: u64,
    /// When it first happened, as a share of the flow's duration.
    pub window_full_first: Distribution,
    /// Share of the flow's duration lost to it.
    pub window_full_share: Distribution,
    /// First windows of clients within [`USUAL_WINDOW_BYTES`].
    pub initial_windows_usual: u64,
    /// First windows of clients, in bytes.
    pub initial_window_bytes: Distribution,
    /// Bytes of HTTP responses by content type.
    pub content_types: BTreeMap<String, u64>,
    /// Periodic requests.
    pub periodic: Vec<PeriodicRequests>,
    /// Closed flows whose FIN or RST came more than 10 s after the payload.
    pub late_closes: u64,
    /// Flows that were closed.
    pub closed: u64,
    /// Energy in millijoule: all, late closes, periodic transfers, low utilisation.
    pub energy_mj: [f64; 4],
    /// Time with the radio on and in tails, in nanoseconds.
    pub radio_ns: [i64; 2],
    /// Table 1: downlink throughput in kbit/s, uplink in kbit/s.
    pub table1_kbps: [Distribution; 2],
    /// Congestion controls inferred, of flows with one.
    pub congestion_controls: BTreeMap<CongestionControl, u64>,
    /// QUIC handshakes in milliseconds.
    pub quic_handshake_ms: Distribution,
}

/// Gathers the sums of a study.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    sums: StudySummary,
}

const MS: f64 = 1e6;
const S: f64 = 1e9;

impl Gathered {
    pub(super) fn summary(self, quality: Quality) -> StudySummary {
        let mut sums = self.sums;
        let own = sums.quality;
        sums.quality = Quality {
            unseen_bytes: own.unseen_bytes,
            mid_flow: own.mid_flow,
            client_guessed: own.client_guessed,
            use_above_available: own.use_above_available,
            split_connections: own.split_connections,
            ..quality
        };
        sums
    }

    pub(super) fn user(&mut self, row: &UserRow, user: UserSums) {
        let sums = &mut self.sums;
        sums.users += 1;
        sums.seconds[0] += row.seconds_one_flow;
        sums.seconds[1] += row.seconds_more_flows;
        for (flows, seconds) in user.concurrency {
            sums.concurrency.push_n(flows as f64, seconds);
        }
        sums.radio_ns[0] += row.radio_on_ns;
        sums.radio_ns[1] += row.radio_tail_ns;
        let parts = [row.energy_late_close_mj, row.energy_periodic_mj, row.energy_low_use_mj];
        sums.energy_mj[0] += row.energy_mj;
        for (sum, part) in sums.energy_mj.iter_mut().skip(1).zip(parts) {
            *sum += part;
        }
        let room = MAX_PERIODIC.saturating_sub(sums.periodic.len());
        sums.periodic.extend(user.periodic.into_iter().take(room));
    }

    /// Rows other than flows and users.
    pub(super) fn row(&mut self, row: &PacketRow) {
        let sums = &mut self.sums;
        match row {
            PacketRow::Dns(row) => match row.lookup_ns {
                Some(ns) => sums.dns_ms.push(ns as f64 / MS),
                None => sums.dns_unanswered += 1,
            },
            PacketRow::Http(row) if row.status.is_some() => {
                let kind = content_type(row);
                *sums.content_types.entry(kind).or_default() += row.response_bytes;
            }
            PacketRow::Bandwidth(row) if row.dir == Direction::Dl && row.is_whole_link() => {
                sums.available_bps.push(row.r_rcv_bps);
                if row.r_snd_bps.is_finite() {
                    sums.send_rate_bps.push(row.r_snd_bps);
                }
            }
            PacketRow::Tcp(row)
                if row.event == TcpEventKind::SlowStart && row.dir == Direction::Dl =>
            {
                if let Some(avoided) = row.avoided {
                    sums.timeouts_avoided[usize::from(!avoided)] += 1;
                }
            }
            _ => {}
        }
    }

    pub(super) fn flow(&mut self, row: &FlowRow, flights: Option<&FlightCounts>) {
        let sums = &mut self.sums;
        if row.leg == Some(Leg::Server) {
            sums.quality.split_connections += 1;
            return;
        }
        let end_ns = row.start_ns + row.duration_ns;
        sums.start_ns = Some(sums.start_ns.map_or(row.start_ns, |at| at.min(row.start_ns)));
        sums.end_ns = Some(sums.end_ns.map_or(end_ns, |at| at.max(end_ns)));
        sums.quality.client_guessed +=
            u64::from(matches!(row.client_by, ClientBy::Port | ClientBy::FirstPacket));
        *sums.client_by.entry(row.client_by).or_default() += 1;
        let bytes = row.dl_bytes + row.ul_bytes;
        if let Some(application) = &row.application {
            count(sums.applications.entry(application.clone()).or_default(), bytes);
        }
        if let Some(ns) = row.quic_handshake_ns {
            sums.quic_handshake_ms.push(ns as f64 / MS);
        }
        if row.protocol == Protocol::Udp {
            count(&mut sums.udp, bytes);
            return;
        }
        count(&mut sums.tcp, bytes);
        count(sums.tcp_ports.entry(row.server_port).or_default(), bytes);
        sums.sizes(row);
        sums.latency(row);
        sums.losses(row, flights);
        sums.application(row);
    }
}

/// A response's content type; untyped bytes requested by range count apart ([`RANGES`]).
fn content_type(row: &HttpRow) -> String {
    match row.content_type.as_deref() {
        Some("application/octet-stream") if row.range => RANGES.to_owned(),
        Some(kind) => kind.to_owned(),
        None => "unknown".to_owned(),
    }
}

fn count(share: &mut Share, bytes: u64) {
    share.flows += 1;
    share.bytes += bytes;
}

impl StudySummary {
    /// Sections 4.1 and 4.4.
    fn sizes(&mut self, row: &FlowRow) {
        *self.terminations.entry(row.termination).or_default() += 1;
        self.quality.mid_flow += u64::from(row.mid_flow);
        self.quality.unseen_bytes += row.dl_unseen_bytes + row.ul_unseen_bytes;
        let seconds = row.duration_ns as f64 / S;
        self.duration_s.push(seconds);
        self.dl_bytes.push(row.dl_bytes as f64);
        self.ul_bytes.push(row.ul_bytes as f64);
        if let Some(ns) = row.payload_to_end_ns {
            self.payload_to_end_s.push(ns as f64 / S);
        }
        if row.dl_bytes > 0 && seconds > 0.0 {
            let sizes = RATE_SIZES_BYTES.iter().zip(&mut self.dl_rate_by_size_bps);
            for (_, rates) in sizes.filter(|(size, _)| row.dl_bytes > **size) {
                rates.push(row.dl_bytes as f64 * 8.0 / seconds);
            }
        }
        let directions = [
            (row.dl_bytes, &mut self.dl_rate_bps, &mut self.dl_correlations),
            (row.ul_bytes, &mut self.ul_rate_bps, &mut self.ul_correlations),
        ];
        for (bytes, rates, correlations) in directions {
            if bytes == 0 || seconds <= 0.0 {
                continue;
            }
            let rate = bytes as f64 * 8.0 / seconds;
            rates.push(rate);
            let (size, duration, rate) = ((bytes as f64).ln(), seconds.ln(), rate.ln());
            for (correlation, (x, y)) in
                correlations.iter_mut().zip([(size, duration), (duration, rate), (rate, size)])
            {
                correlation.push(x, y);
            }
        }
        // Table 1: large, without a pause of 1 s, not through the proxy.
        if row.proxied || row.max_gap_ns >= 1_000_000_000 {
            return;
        }
        let [down, up] = &mut self.table1_kbps;
        if row.dl_bytes >= 1_000_000 {
            down.push(row.dl_bytes as f64 * 8e6 / row.duration_ns.max(1) as f64);
        }
        if row.ul_bytes >= 200_000 {
            up.push(row.ul_bytes as f64 * 8e6 / row.duration_ns.max(1) as f64);
        }
    }

    /// Section 4.2.
    fn latency(&mut self, row: &FlowRow) {
        let (up, down) = (row.upstream_rtt_ns, row.downstream_rtt_ns);
        let ms = |ns: i64| ns as f64 / MS;
        if let Some(ns) = up {
            if row.proxied { &mut self.proxy_ms } else { &mut self.upstream_ms }.push(ms(ns));
        }
        if let Some(ns) = down {
            self.downstream_ms.push(ms(ns));
        }
        if let (Some(up), Some(down), false) = (up, down, row.proxied) {
            self.handshake_ms.push(ms(up + down));
            if down > 0 {
                self.rtt_ratio.push(up as f64 / down as f64);
            }
        }
        if let Some(ns) = row.promotion_ns {
            self.promotion_ms.push(ms(ns));
        }
    }

    /// Sections 4.3, 5 and 6.
    fn losses(&mut self, row: &FlowRow, flights: Option<&FlightCounts>) {
        self.with_timestamps += u64::from(row.timestamps == Some(true));
        if row.dl_segments > 0 {
            self.retx_share.push(row.dl_retx as f64 / row.dl_segments as f64);
        }
        if let Some(flights) = flights {
            flights.add_to(&mut self.flight_bytes);
        }
        if row.congestion_control != CongestionControl::Unknown {
            *self.congestion_controls.entry(row.congestion_control).or_default() += 1;
        }
        if !is_large(row) {
            return;
        }
        self.large_flows += 1;
        self.large_with_loss += u64::from(row.dl_retx > 0);
        self.large_with_slow_start += u64::from(row.slow_starts > 0);
        self.large_dup_acks.push(row.dl_dup_acks as f64);
        self.large_out_of_order.push(row.dl_out_of_order as f64);
        if row.dl_out_of_order > 0 {
            self.dup_ack_ratio.push(row.dl_dup_acks as f64 / row.dl_out_of_order as f64);
        }
        if let Some(ns) = row.client_tick_ns {
            self.tick_ms.push(ns / MS);
        }
        if let Some(share) = utilisation(row) {
            self.quality.use_above_available += u64::from(share > 1.0);
            self.utilisation.push(share.min(1.0));
        }
    }

    /// Section 7.
    fn application(&mut self, row: &FlowRow) {
        if matches!(row.termination, Termination::Fin | Termination::Rst) {
            self.closed += 1;
            let late = row.payload_to_end_ns.is_some_and(|ns| ns > 10_000_000_000);
            self.late_closes += u64::from(late);
        }
        if let Some(bytes) = row.client_initial_window_bytes {
            self.initial_window_bytes.push(bytes as f64);
            self.initial_windows_usual += u64::from(USUAL_WINDOW_BYTES.contains(&bytes));
        }
        if row.dl_bytes == 0 {
            return;
        }
        self.dl_flows += 1;
        if let Some(first) = row.window_full_first {
            self.window_full_flows += 1;
            self.window_full_first.push(first);
            self.window_full_share.push(row.window_full_ns as f64 / row.duration_ns.max(1) as f64);
        }
    }
}
