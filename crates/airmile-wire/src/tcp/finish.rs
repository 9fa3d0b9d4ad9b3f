//! Turns a flow that is over into a row.

use airmile_model::Leg;
use airmile_model::flow::FlowRow;
use airmile_model::{Protocol, Termination};

use super::flow::{Closing, End, FlowState, UdpTotals};
use super::options::StudyOptions;
use super::rows::Sink;
use super::side::Side;
use super::user::UserState;

/// Large flow of sections 5 and 6: more than this towards the client ...
pub(super) const LARGE_BYTES: u64 = 1_000_000;
/// ... in more than this.
pub(super) const LARGE_NS: i64 = 5_000_000_000;

/// Maximum plausible promotion (chosen here: 3G took 2 s).
const MAX_PROMOTION_NS: i64 = 5_000_000_000;

impl FlowState {
    /// Ends the flow. `why` is given if no FIN or RST ended it; `leg`: of a split
    /// connection.
    pub(super) fn end(
        &mut self,
        number: u64,
        (why, leg): (Termination, Option<Leg>),
        mut user: Option<&mut UserState>,
        sink: &mut Sink<'_>,
    ) -> FlowRow {
        self.learn_clocks(user.as_deref_mut());
        for data in Side::BOTH {
            self.ends[data].full.end(self.last_ns);
            for over in self.ends[data].episodes.finish() {
                self.episode_row(data, &over, sink.options.min_rto_ns, sink.rows);
            }
            self.bandwidth_rows(user.as_deref_mut(), data.other(), true, sink);
        }
        let row = self.row(number, (why, leg), sink.options);
        if let Some(user) = user.filter(|_| !self.is_aside()) {
            user.low_use_ns += low_use_ns(&row);
        }
        row
    }

    /// The device's clock from this flow, or this flow's from the device.
    fn learn_clocks(&mut self, user: Option<&mut UserState>) {
        let Some(user) = user else { return };
        let clock = self.ends[Side::Client].clock;
        let own = clock.tick_ns().or_else(|| clock.likely_ns());
        if let Some(tick_ns) = own {
            user.learn_tick(tick_ns, clock.span_ns());
        }
        self.device_tick_ns = clock.tick_ns().or(user.tick_ns());
    }

    fn termination(&self, why: Termination) -> Termination {
        match self.closing {
            _ if self.is_tcp() && self.only_syns => Termination::SynOnly,
            Closing::Fin => Termination::Fin,
            Closing::Rst => Termination::Rst,
            Closing::Open => why,
        }
    }

    pub(super) fn row(
        &self,
        user: u64,
        (why, leg): (Termination, Option<Leg>),
        options: &StudyOptions,
    ) -> FlowRow {
        let [client, server] = &self.ends.0;
        let (address, port) = self.client();
        let (server_address, server_port) = self.server();
        let proxied = self.is_tcp() && options.proxy_ports.contains(&server_port);
        let tick_ns =
            client.clock.tick_ns().or(self.device_tick_ns.filter(|_| client.clock.is_seen()));
        let promotion_ns = tick_ns
            .and_then(|tick| self.handshake.promotion_ns(tick))
            .filter(|ns| (0..=MAX_PROMOTION_NS).contains(ns));
        let offers = [client.offer, server.offer];
        let both = |of: fn(&super::flow::Offer) -> bool| {
            offers.iter().all(|o| o.seen).then(|| offers.iter().all(of))
        };
        let [up, down] = Side::BOTH.map(|side| self.totals(side));
        let (congestion_control, confidence) = server.sender.guess();
        let duration_ns = self.last_ns - self.start_ns;
        let rtt = server.stream.rtt;
        let [client_losses, server_losses] = [client, server].map(|end| end.stream.losses());
        FlowRow {
            flow: self.number,
            user,
            protocol: if self.is_tcp() { Protocol::Tcp } else { Protocol::Udp },
            ip_version: if address.is_v4() { 4 } else { 6 },
            client: address.to_string(),
            client_port: port,
            server: server_address.to_string(),
            server_port,
            client_by: self.client_by,
            start_ns: self.start_ns,
            duration_ns,
            payload_to_end_ns: self.last_payload_ns.get().map(|at| (self.last_ns - at).max(0)),
            termination: self.termination(why),
            mid_flow: self.mid_flow,
            proxied,
            leg,
            server_name: self.app.server_name().map(str::to_owned),
            application: self.app.name(),
            dl_packets: down.packets,
            ul_packets: up.packets,
            dl_bytes: down.bytes,
            ul_bytes: up.bytes,
            dl_ip_bytes: down.ip_bytes,
            ul_ip_bytes: up.ip_bytes,
            dl_data_ns: down.data_ns,
            ul_data_ns: up.data_ns,
            max_gap_ns: self.max_gap_ns,
            upstream_rtt_ns: self.handshake.upstream_ns(),
            downstream_rtt_ns: self.handshake.downstream_ns(),
            promotion_ns,
            client_tick_ns: tick_ns,
            server_tick_ns: server.clock.tick_ns(),
            client_mss_bytes: client.offer.mss_bytes,
            server_mss_bytes: server.offer.mss_bytes,
            client_window_scale: client.offer.window_scale,
            server_window_scale: server.offer.window_scale,
            sack: both(|o| o.sack),
            timestamps: both(|o| o.timestamps).or_else(|| {
                let has = offers_stamps(client, server);
                // What was cut off may have been time stamps.
                (self.is_tcp() && (has || !self.options_cut)).then_some(has)
            }),
            client_initial_window_bytes: self.initial_window(Side::Client),
            client_min_window_bytes: client.min_window.get().map(u64::from),
            server_initial_window_bytes: self.initial_window(Side::Server),
            client_zero_windows: client.zero_windows.into(),
            window_full_ns: server.full.total_ns,
            window_full_first: server
                .full
                .first_ns
                .get()
                .filter(|_| duration_ns > 0)
                .map(|at| (at - self.start_ns) as f64 / duration_ns as f64),
            dl_segments: server.stream.totals.segments,
            ul_segments: client.stream.totals.segments,
            dl_retx: server_losses.retx,
            ul_retx: client_losses.retx,
            dl_retx_bytes: server_losses.retx_bytes,
            ul_retx_bytes: client_losses.retx_bytes,
            dl_retx_fast: server_losses.retx_fast,
            dl_retx_timeout: server_losses.retx_timeout,
            dl_retx_probe: server_losses.retx_probe,
            dl_retx_spurious: server_losses.retx_spurious,
            dl_reordered: server_losses.reordered,
            dl_out_of_order: server_losses.out_of_order,
            dl_dup_acks: server_losses.dup_acks,
            ul_dup_acks: client_losses.dup_acks,
            keep_alives: self.keep_alives.into(),
            window_probes: self.window_probes.into(),
            dl_unseen_bytes: self.unseen_bytes(Side::Server),
            ul_unseen_bytes: self.unseen_bytes(Side::Client),
            rtt_samples: rtt.n,
            rtt_min_ns: rtt.least(),
            rtt_mean_ns: rtt.mean(),
            rtt_max_ns: (rtt.n > 0).then_some(rtt.max),
            max_flight_bytes: server.stream.totals.max_flight.unsigned_abs(),
            slow_starts: server.episodes.slow_starts.into(),
            timers_too_soon: server.episodes.timers_too_soon.into(),
            available_bps: server.bandwidth.as_ref().and_then(|b| b.mean_bps()),
            available_samples: server.bandwidth.as_ref().map_or(0, |b| b.samples()),
            ul_available_bps: client.bandwidth.as_ref().and_then(|b| b.mean_bps()),
            shared: self.shared,
            congestion_control,
            congestion_control_confidence: confidence,
            quic_handshake_ns: self.app.quic_handshake_ns(),
        }
    }

    /// Bytes of an end that were acknowledged without passing. Of an end without a packet, the last
    /// acknowledged of a closed connection is its FIN (RFC 9293, 3.4).
    fn unseen_bytes(&self, end: Side) -> u64 {
        let totals = self.ends[end].stream.totals;
        let fin = totals.packets == 0 && self.closing == Closing::Fin;
        totals.unseen_bytes.saturating_sub(fin.into())
    }

    fn totals(&self, end: Side) -> Directed {
        let span = |first: Option<i64>, last: Option<i64>| {
            last.zip(first).map_or(0, |(last, first)| (last - first).max(0))
        };
        if self.is_tcp() {
            let stream = &self.ends[end].stream;
            let totals = stream.totals;
            let data_ns = span(stream.first_data_ns.get(), stream.last_data_ns.get());
            let (packets, bytes, ip_bytes) = (totals.packets, totals.bytes, totals.ip_bytes);
            return Directed { packets, bytes, ip_bytes, data_ns };
        }
        let udp = self.udp.as_ref().map_or_else(UdpTotals::default, |udp| udp[end]);
        let data_ns = span(udp.first_ns, udp.last_ns);
        Directed { packets: udp.packets, bytes: udp.bytes, ip_bytes: udp.ip_bytes, data_ns }
    }
}

struct Directed {
    packets: u64,
    bytes: u64,
    ip_bytes: u64,
    data_ns: i64,
}

const fn offers_stamps(client: &End, server: &End) -> bool {
    client.clock.is_seen() && server.clock.is_seen()
}

/// Whether a flow is large (sections 5 and 6).
pub(super) const fn is_large(row: &FlowRow) -> bool {
    row.dl_bytes > LARGE_BYTES && row.dl_data_ns > LARGE_NS
}

/// Minimum number of windows for a flow's available bandwidth: 1 s of them (chosen here:
/// the time over which the accuracy of the estimate is measured).
const MIN_SAMPLES: u64 = 4;

/// Used over available bandwidth of a large flow that had the link for itself (paper
/// 6.3). Above 1 the windows had a lower bandwidth than the rest.
#[must_use]
pub fn utilisation(row: &FlowRow) -> Option<f64> {
    let known = is_large(row) && !row.shared && row.available_samples >= MIN_SAMPLES;
    let available = row.available_bps.filter(|_| known)?;
    let used = row.dl_bytes as f64 * 8e9 / row.duration_ns.max(1) as f64;
    Some(used / available)
}

/// Time that the radio was on because the bandwidth was not used.
fn low_use_ns(row: &FlowRow) -> f64 {
    let data = row.dl_data_ns as f64;
    let needed = |available: f64| row.dl_bytes as f64 * 8e9 / available;
    row.available_bps.filter(|_| is_large(row)).map_or(0.0, |a| (data - needed(a)).max(0.0))
}
