//! Rows written by a packet study: one table each.

use crate::radio::Direction;
use crate::record;
use crate::row::Row;
use crate::wire::{
    ClientBy, CongestionControl, Leg, Protocol, RttSource, SenderPhase, TcpEventKind, Termination,
};

record! { "flows"
/// One flow: packets of a 5-tuple without a pause of an hour. `dl` is towards the client.
#[derive(serde::Deserialize)]
pub struct FlowRow {
    /// Number of the flow: that of its first packet among the IP packets of the capture.
    pub flow: u64,
    /// Number of the user session (table `users`).
    pub user: u64,
    /// `tcp` or `udp`.
    pub protocol: Protocol,
    /// IP version: 4 or 6.
    pub ip_version: u8,
    /// The client's address.
    pub client: String,
    /// The client's port.
    pub client_port: u16,
    /// The server's address.
    pub server: String,
    /// The server's port.
    pub server_port: u16,
    /// Rule that identified the client: `client_net`, `syn`, `private`, `port` or
    /// `first_packet`.
    pub client_by: ClientBy,
    /// Time of the first packet in nanoseconds since the Unix epoch.
    pub start_ns: i64,
    /// From the first packet to the last in nanoseconds.
    pub duration_ns: i64,
    /// From the last byte of payload to the last packet in nanoseconds.
    pub payload_to_end_ns: Option<i64>,
    /// Its termination: `fin`, `rst`, `syn_only`, `idle`, `replaced` by another
    /// connection on the same ports, `crowded` out when too many are open (live), or
    /// `capture_end`.
    pub termination: Termination,
    /// True: the capture began in the middle of it (TCP without a SYN).
    pub mid_flow: bool,
    /// True: it used the proxy's ports, so the upstream RTT is to the proxy.
    pub proxied: bool,
    /// If the capture holds both legs of a split connection: the leg towards the `client`
    /// or the `server`. Null otherwise.
    pub leg: Option<Leg>,
    /// Name of the server, from TLS or QUIC (SNI) or HTTP (Host).
    pub server_name: Option<String>,
    /// Application protocol: `http`, `tls`, `quic`, `dns`, or the ALPN name.
    pub application: Option<String>,
    /// Packets towards the client, without duplicates of the capture.
    pub dl_packets: u64,
    /// Packets from the client.
    pub ul_packets: u64,
    /// Payload towards the client in bytes, without retransmissions.
    pub dl_bytes: u64,
    /// Payload from the client in bytes, without retransmissions.
    pub ul_bytes: u64,
    /// IP bytes towards the client, headers and retransmissions included.
    pub dl_ip_bytes: u64,
    /// IP bytes from the client.
    pub ul_ip_bytes: u64,
    /// From the first payload towards the client to the last, in nanoseconds.
    pub dl_data_ns: i64,
    /// From the first payload from the client to the last, in nanoseconds.
    pub ul_data_ns: i64,
    /// Longest pause between two packets in nanoseconds.
    pub max_gap_ns: i64,
    /// SYN to SYN-ACK at the monitor: the part towards the server (RFC 9293 handshake; paper 4.2).
    pub upstream_rtt_ns: Option<i64>,
    /// SYN-ACK to ACK at the monitor: the part towards the client.
    pub downstream_rtt_ns: Option<i64>,
    /// Promotion delay of the radio in nanoseconds (paper 4.2), if the handshake qualifies.
    pub promotion_ns: Option<i64>,
    /// Time stamp clock of the client in nanoseconds a tick (paper 6.1, equation 3).
    pub client_tick_ns: Option<f64>,
    /// Time stamp clock of the server in nanoseconds a tick.
    pub server_tick_ns: Option<f64>,
    /// MSS of the client's SYN in bytes.
    pub client_mss_bytes: Option<u16>,
    /// MSS of the server's SYN in bytes.
    pub server_mss_bytes: Option<u16>,
    /// Window scale of the client.
    pub client_window_scale: Option<u8>,
    /// Window scale of the server.
    pub server_window_scale: Option<u8>,
    /// Whether both permit SACK.
    pub sack: Option<bool>,
    /// Whether both sides send time stamps.
    pub timestamps: Option<bool>,
    /// First window of the client after its SYN in bytes, scaled.
    pub client_initial_window_bytes: Option<u64>,
    /// Smallest window of the client in bytes, scaled.
    pub client_min_window_bytes: Option<u64>,
    /// First window of the server after its SYN in bytes, scaled.
    pub server_initial_window_bytes: Option<u64>,
    /// Times that the client's window closed to zero.
    pub client_zero_windows: u64,
    /// Nanoseconds in which less than a segment of the client's window was left.
    pub window_full_ns: i64,
    /// When that first happened, as a share of the flow's duration.
    pub window_full_first: Option<f64>,
    /// Segments with payload towards the client.
    pub dl_segments: u64,
    /// Segments with payload from the client.
    pub ul_segments: u64,
    /// Retransmitted segments towards the client (without bare FIN and SYN, probes and
    /// duplicates of the capture).
    pub dl_retx: u64,
    /// Retransmitted segments from the client.
    pub ul_retx: u64,
    /// Payload towards the client, in bytes, that the capture has a second time: of a segment lost before
    /// the capture, it has only the retransmission.
    pub dl_retx_bytes: u64,
    /// Payload from the client, in bytes, that the capture has a second time.
    pub ul_retx_bytes: u64,
    /// Of `dl_retx`: fast retransmissions.
    pub dl_retx_fast: u64,
    /// Of `dl_retx`: by timeout.
    pub dl_retx_timeout: u64,
    /// Of `dl_retx`: tail loss probes (RFC 8985, 7).
    pub dl_retx_probe: u64,
    /// Of `dl_retx`: spurious, the bytes had been acknowledged.
    pub dl_retx_spurious: u64,
    /// Segments towards the client that were reordered on the path.
    pub dl_reordered: u64,
    /// Segments towards the client that passed out of sequence: reordered, or repeated after others.
    pub dl_out_of_order: u64,
    /// Duplicate ACKs of the client (RFC 5681, 2; RFC 6675).
    pub dl_dup_acks: u64,
    /// Duplicate ACKs of the server.
    pub ul_dup_acks: u64,
    /// Keep-alive probes, both ways.
    pub keep_alives: u64,
    /// Probes of a closed window, both ways.
    pub window_probes: u64,
    /// Payload towards the client that was acknowledged but not captured, in bytes.
    pub dl_unseen_bytes: u64,
    /// Payload from the client that was acknowledged but not captured, in bytes.
    pub ul_unseen_bytes: u64,
    /// RTT samples between the monitor and the client.
    pub rtt_samples: u64,
    /// Their minimum in nanoseconds.
    pub rtt_min_ns: Option<i64>,
    /// Their mean in nanoseconds.
    pub rtt_mean_ns: Option<i64>,
    /// Their maximum in nanoseconds.
    pub rtt_max_ns: Option<i64>,
    /// Maximum bytes in flight towards the client.
    pub max_flight_bytes: u64,
    /// Bursts of duplicate ACKs that were followed by a slow start (paper 5, R_ss).
    pub slow_starts: u64,
    /// Bursts of duplicate ACKs in which the sender's timer expired too soon: the
    /// retransmission was in flight.
    pub timers_too_soon: u64,
    /// Mean of the available downlink bandwidth in bit/s (paper 6.1, equation 2).
    pub available_bps: Option<f64>,
    /// Number of windows in that mean.
    pub available_samples: u64,
    /// Mean of the available uplink bandwidth in bit/s.
    pub ul_available_bps: Option<f64>,
    /// Whether another flow of the user received data at the same time (1 s rule).
    pub shared: bool,
    /// The server's congestion control, inferred: `cubic`, `reno`, `bbr` or `unknown`.
    pub congestion_control: CongestionControl,
    /// Confidence in it, 0 to 1.
    pub congestion_control_confidence: f64,
    /// Handshake of QUIC: first Initial to the client's first short header packet, in nanoseconds.
    pub quic_handshake_ns: Option<i64>,
}}

record! { "tcp_events"
/// An event out of the ordinary in a TCP flow.
pub struct TcpEvent {
    /// Number of the flow.
    pub flow: u64,
    /// Time in nanoseconds since the Unix epoch.
    pub time_ns: i64,
    /// Direction of the data concerned: `dl` or `ul`.
    pub dir: Direction,
    /// Its kind: `retx_fast`, `retx_timeout`, `retx_probe`, `retx_spurious`, `retx_other`, `reordered`, `ahead`, `dup_ack`, `dsack`, `keep_alive`, `window_probe`, `zero_window`, `window_full`, `syn_again`, `fin_again`, `wild_sequence`, `slow_start`, `recovered`.
    pub event: TcpEventKind,
    /// Offset of the first byte in the stream, from the first sequence number captured.
    pub offset_bytes: i64,
    /// Bytes concerned.
    pub bytes: u64,
    /// Bytes in flight when it passed.
    pub flight_bytes: u64,
    /// `slow_start`, `recovered`: duplicate ACKs of the burst.
    pub dup_acks: Option<u64>,
    /// `slow_start`, `recovered`: rate from 100 to 200 ms after the last duplicate ACK
    /// over that in the first 100 ms; null if nothing came in those.
    pub r_ss: Option<f64>,
    /// `slow_start`, `recovered`: last RTT before the burst in nanoseconds.
    pub rtt_before_ns: Option<i64>,
    /// `slow_start`, `recovered`: last RTT from its SACKs in nanoseconds; without SACK, as if segments had come in order.
    pub rtt_during_ns: Option<i64>,
    /// `slow_start`, `recovered`: RTT of the retransmission in nanoseconds.
    pub rtt_retx_ns: Option<i64>,
    /// RTO by RFC 6298 before the burst, without a minimum, in nanoseconds.
    pub rto_ns: Option<i64>,
    /// The same, with the duplicate ACKs used as samples.
    pub rto_with_dup_acks_ns: Option<i64>,
    /// Whether those samples would have kept the timer from expiring (the minimum RTO is
    /// an option: 200 ms).
    pub avoided: Option<bool>,
    /// `slow_start`, `recovered`: whether the sender's timer expired although the fast
    /// retransmission was in flight and arrived: an undesired slow start by its cause,
    /// not by R_ss.
    pub timer_too_soon: Option<bool>,
}}

record! { "rtt_samples"
/// One RTT between the monitor and the receiver of the data.
pub struct RttSample {
    /// Number of the flow.
    pub flow: u64,
    /// Time of the acknowledgement in nanoseconds since the Unix epoch.
    pub time_ns: i64,
    /// Direction of the data: `dl` measures towards the client, `ul` towards the server.
    pub dir: Direction,
    /// The RTT in nanoseconds.
    pub rtt_ns: i64,
    /// Bytes in flight when the acknowledgement passed, before it is applied.
    pub flight_bytes: u64,
    /// Its source: `ack`, `sack`, the `order` of segments after duplicate ACKs without
    /// SACK, or QUIC's `spin` bit.
    pub by: RttSource,
}}

record! { "inflight_samples"
/// Bytes in flight at a send opportunity.
pub struct InflightSample {
    /// Number of the flow.
    pub flow: u64,
    /// Time of the segment in nanoseconds since the Unix epoch.
    pub time_ns: i64,
    /// Direction of the data: `dl` or `ul`.
    pub dir: Direction,
    /// Bytes in flight at the monitor, the segment included.
    pub flight_bytes: u64,
    /// Bytes in flight at the sender: without the effect of ACKs that were on their way to it.
    pub sender_flight_bytes: u64,
    /// Congestion window of the sender in bytes, if neither the application nor the
    /// receive window limited it and no loss was being repaired.
    pub cwnd_bytes: Option<u64>,
    /// Window of the receiver in bytes, if its scale is known.
    pub rwnd_bytes: Option<u64>,
    /// The sender's phase: `slow_start`, `congestion_avoidance`, `recovery`,
    /// `after_timeout` or `after_idle`.
    pub phase: SenderPhase,
}}

record! { "bandwidth_samples"
/// Available bandwidth in one window of a flow, or of all flows of a user (paper 6.1).
pub struct BandwidthSample {
    /// Number of the flow; null: the sum of the user's receiving flows.
    pub flow: Option<u64>,
    /// Number of the user session.
    pub user: u64,
    /// Number of the user's flows that received in the second; of a sum, the number of
    /// flows in it.
    pub flows: u32,
    /// Middle of the window in nanoseconds since the Unix epoch.
    pub time_ns: i64,
    /// `dl` or `ul`.
    pub dir: Direction,
    /// Length of the window by the receiver's clock in nanoseconds.
    pub window_ns: i64,
    /// Bytes acknowledged in it.
    pub bytes: u64,
    /// Sending rate in bit/s (equation 1).
    pub r_snd_bps: f64,
    /// Receiving rate, which is the available bandwidth, in bit/s (equation 2).
    pub r_rcv_bps: f64,
}}

impl BandwidthSample {
    /// Whether it is of all that the user receives: one of several flows has only its share
    /// of the link.
    #[must_use]
    pub const fn is_whole_link(&self) -> bool {
        self.flow.is_none() || self.flows == 1
    }
}

record! { "http"
/// One HTTP/1 request and its response.
pub struct HttpRow {
    /// Number of the flow.
    pub flow: u64,
    /// Number of the user session.
    pub user: u64,
    /// Time of the request in nanoseconds since the Unix epoch.
    pub request_ns: i64,
    /// Time of the response's first byte in nanoseconds since the Unix epoch.
    pub response_ns: Option<i64>,
    /// Time of the response's last captured byte.
    pub end_ns: Option<i64>,
    /// Method.
    pub method: String,
    /// Host.
    pub host: Option<String>,
    /// Path, without the query.
    pub path: String,
    /// Whether a byte range was requested.
    pub range: bool,
    /// Status code.
    pub status: Option<u16>,
    /// Content type, without parameters.
    pub content_type: Option<String>,
    /// Content length of the response in bytes.
    pub content_length_bytes: Option<u64>,
    /// Payload bytes of the response, its header included.
    pub response_bytes: u64,
}}

record! { "dns"
/// One DNS lookup.
pub struct DnsRow {
    /// Number of the flow.
    pub flow: u64,
    /// Number of the user session.
    pub user: u64,
    /// Time of the query in nanoseconds since the Unix epoch.
    pub query_ns: i64,
    /// Query to response at the monitor in nanoseconds.
    pub lookup_ns: Option<i64>,
    /// The requested name, as far as it was captured.
    pub name: Option<String>,
    /// Type of the requested record (1 A, 28 AAAA, ...).
    pub query_type: Option<u16>,
    /// Response code.
    pub response_code: Option<u8>,
    /// Queries sent until the response.
    pub queries: u32,
    /// `udp` or `tcp`.
    pub transport: Protocol,
}}

record! { "users"
/// One user session: packets of a client's address without a pause of an hour.
pub struct UserRow {
    /// Number of the session.
    pub user: u64,
    /// The client's address.
    pub client: String,
    /// Time of the first packet in nanoseconds since the Unix epoch.
    pub start_ns: i64,
    /// First packet to last in nanoseconds.
    pub duration_ns: i64,
    /// Flows.
    pub flows: u64,
    /// IP bytes towards the client.
    pub dl_ip_bytes: u64,
    /// IP bytes from the client.
    pub ul_ip_bytes: u64,
    /// Time stamp clock in nanoseconds a tick.
    pub tick_ns: Option<f64>,
    /// Seconds in which one TCP flow received data.
    pub seconds_one_flow: u64,
    /// Seconds in which several TCP flows received data.
    pub seconds_more_flows: u64,
    /// Radio promotions, by the model.
    pub promotions: u64,
    /// Nanoseconds in which the radio was connected, including tails, by the model.
    pub radio_on_ns: i64,
    /// Of them, tails.
    pub radio_tail_ns: i64,
    /// Radio energy in millijoule, by the model.
    pub energy_mj: f64,
    /// Of it, spent on a late FIN or RST.
    pub energy_late_close_mj: f64,
    /// Of it, spent on periodic transfers.
    pub energy_periodic_mj: f64,
    /// Of it, spent because the bandwidth was not used.
    pub energy_low_use_mj: f64,
}}

macro_rules! any_packet_row {
    ($($variant:ident($type:ty)),+ $(,)?) => {
        /// Any row of a packet study.
        #[derive(Debug, Clone, PartialEq)]
        #[allow(missing_docs, reason = "each variant is the row of its name")]
        pub enum PacketRow { $($variant($type),)+ }

        impl PacketRow {
            /// Names of all tables.
            pub const NAMES: &'static [&'static str] = &[$(<$type as Row>::NAME),+];

            /// The table's name.
            #[must_use]
            pub const fn name(&self) -> &'static str {
                match self { $(Self::$variant(_) => <$type as Row>::NAME),+ }
            }

            /// Its values, in the columns' order.
            pub fn values<'a>(&'a self, sink: &mut dyn FnMut(crate::row::Value<'a>)) {
                match self { $(Self::$variant(row) => row.values(sink)),+ }
            }

            /// Name, documentation and columns of every table.
            #[must_use]
            pub fn tables() -> Vec<(&'static str, &'static str, Vec<crate::row::Column>)> {
                vec![$((<$type as Row>::NAME, <$type as Row>::DOC, <$type as Row>::columns())),+]
            }
        }
    };
}

any_packet_row! {
    Flow(Box<FlowRow>),
    Tcp(Box<TcpEvent>),
    Rtt(RttSample),
    Inflight(InflightSample),
    Bandwidth(BandwidthSample),
    Http(Box<HttpRow>),
    Dns(Box<DnsRow>),
    User(Box<UserRow>),
}
