//! One end of a TCP connection, without I/O.

mod output;
mod state;

pub use state::TcpState;

use std::net::SocketAddrV4;

use airmile_control::claw::Feedback;

use crate::net::{SackBlock, TcpSegment};
use crate::scenario::TcpConfig;
use crate::transport::tcp::receiver::Receiver;
use crate::transport::tcp::recovery::Incoming;
use crate::transport::tcp::sender::Sender;
use crate::transport::tcp::stats::{EventKind, Limit, Snapshot, Stats};

/// Bytes of the timestamps option with its padding (RFC 7323, appendix A).
const TIMESTAMPS_BYTES: u64 = 12;

/// Unanswered keep-alive probes after which the peer is given up (Linux's
/// `tcp_keepalive_probes`).
const MAX_KEEP_ALIVES: u32 = 9;

/// One end of a connection.
///
/// Pass it arriving segments ([`handle_segment`](Self::handle_segment)) and the time
/// ([`handle_timeout`](Self::handle_timeout)). After each of these, and after the
/// application has read, written or finished, send all segments of
/// [`poll_transmit`](Self::poll_transmit) and call again at
/// [`poll_timeout`](Self::poll_timeout).
///
/// Bytes are counted and not stored, except for literals ([`Literal`](super::Literal)).
#[derive(Debug, Clone)]
pub struct TcpConnection {
    config: TcpConfig,
    local: SocketAddrV4,
    remote: SocketAddrV4,
    pub(super) state: TcpState,
    /// Initial sequence numbers, ours and the peer's.
    iss: u32,
    irs: u32,
    pub(super) sender: Sender,
    pub(super) receiver: Receiver,
    timestamps: bool,
    /// TS.Recent and Last.ACK.sent (RFC 7323, 4.3).
    ts_recent: u32,
    last_ack_sent: u64,
    ts_offset: u32,
    /// Window scales, and whether both sides offered one.
    own_scale: u8,
    peer_scale: u8,
    scaling: bool,
    pub(super) reset_due: bool,
    close_at_ns: Option<i64>,
    keep_alive_at_ns: Option<i64>,
    keep_alives: u32,
    peer_finish_told: bool,
}

impl TcpConnection {
    /// Opens a connection: the first segment to send is the SYN. `random` determines the
    /// initial sequence number and the timestamps' offset.
    #[must_use]
    pub fn connect(
        now_ns: i64,
        local: SocketAddrV4,
        remote: SocketAddrV4,
        config: TcpConfig,
        random: u64,
    ) -> Self {
        Self::new(now_ns, local, remote, config, random, TcpState::SynSent)
    }

    /// Answers a SYN: `None` if the segment is not one.
    #[must_use]
    pub fn accept(
        now_ns: i64,
        local: SocketAddrV4,
        remote: SocketAddrV4,
        syn: &TcpSegment,
        config: TcpConfig,
        random: u64,
    ) -> Option<Self> {
        if !syn.flags.syn || syn.flags.ack || syn.flags.rst {
            return None;
        }
        let mut connection =
            Self::new(now_ns, local, remote, config, random, TcpState::SynReceived);
        connection.sender.stats.segments_received += 1;
        connection.apply_options(syn);
        Some(connection)
    }

    fn new(
        now_ns: i64,
        local: SocketAddrV4,
        remote: SocketAddrV4,
        config: TcpConfig,
        random: u64,
        state: TcpState,
    ) -> Self {
        let largest = config.receive.max_buffer_bytes.max(config.receive.buffer_bytes);
        // RFC 7323, 2.3: the smallest scale that can express the largest window.
        let own_scale = (0..14).find(|scale| largest >> scale <= 0xffff).unwrap_or(14);
        let mut sender = Sender::new(config.clone(), now_ns);
        // Before the peer's first window only the SYN is sent.
        sender.rwnd_bytes = 0;
        Self {
            local,
            remote,
            state,
            iss: (random >> 32) as u32,
            irs: 0,
            sender,
            receiver: Receiver::new(&config),
            timestamps: config.timestamps,
            ts_recent: 0,
            last_ack_sent: 0,
            ts_offset: random as u32,
            own_scale,
            peer_scale: 0,
            scaling: true,
            reset_due: false,
            close_at_ns: None,
            keep_alive_at_ns: None,
            keep_alives: 0,
            peer_finish_told: false,
            config,
        }
    }

    /// Applies the options of a SYN or its answer (RFC 9293, 3.7.1; RFC 7323, 1.3).
    fn apply_options(&mut self, syn: &TcpSegment) {
        self.irs = syn.seq;
        self.receiver.next = 1;
        self.timestamps = self.config.timestamps && syn.timestamps.is_some();
        self.ts_recent = syn.timestamps.map_or(0, |(val, _)| val);
        self.last_ack_sent = 0;
        self.sender.sack = self.config.sack && syn.sack_permitted;
        match syn.window_scale {
            Some(scale) => self.peer_scale = scale.min(14),
            None => {
                self.peer_scale = 0;
                self.own_scale = 0;
                self.scaling = false;
            }
        }
        let mss_option = u64::from(syn.mss_bytes.unwrap_or(536));
        let options = if self.timestamps { TIMESTAMPS_BYTES } else { 0 };
        let mss_bytes = mss_option.min(u64::from(self.config.mss_bytes)).saturating_sub(options);
        self.sender.set_mss(mss_bytes.max(1));
    }

    /// The local address.
    #[must_use]
    pub fn local(&self) -> SocketAddrV4 {
        self.local
    }

    /// The peer's address.
    #[must_use]
    pub fn remote(&self) -> SocketAddrV4 {
        self.remote
    }

    /// The connection state.
    #[must_use]
    pub fn state(&self) -> TcpState {
        self.state
    }

    /// Whether the application can write: the handshake is done, and this side is open.
    #[must_use]
    pub fn is_established(&self) -> bool {
        matches!(self.state, TcpState::Established | TcpState::CloseWait)
    }

    /// Whether the connection is closed for good.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.state == TcpState::Closed && !self.reset_due
    }

    /// Counts since the start.
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats { duplicate_bytes: self.receiver.duplicate_bytes, ..self.sender.stats }
    }

    /// The minimum RTT.
    pub(crate) const fn min_rtt_ns(&self) -> Option<i64> {
        self.sender.rtt.min_rtt_ns
    }

    /// Whether it has data to send, or in flight.
    pub(crate) fn is_sending(&self) -> bool {
        let sender = &self.sender;
        self.is_established() && sender.acked_bytes() < sender.written_bytes
    }

    /// Processes the peer's feedback about its radio.
    pub(crate) fn on_radio(&mut self, now_ns: i64, feedback: &Feedback) {
        self.sender.on_radio(now_ns, feedback);
    }

    /// The current state.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let sender = &self.sender;
        Snapshot {
            cwnd_bytes: sender.cwnd_bytes(),
            ssthresh_bytes: sender.control.ssthresh_bytes(),
            flight_size_bytes: sender.flight_size_bytes(),
            pipe_bytes: sender.pipe_bytes(),
            rwnd_bytes: sender.rwnd_bytes,
            srtt_ns: sender.rtt.srtt_ns,
            rttvar_ns: sender.rtt.rttvar_ns,
            min_rtt_ns: sender.rtt.min_rtt_ns,
            rto_ns: sender.rtt.rto_ns(),
            limit: sender.limit(),
            in_recovery: sender.in_recovery(),
            acked_bytes: sender.acked_bytes(),
            retransmissions: sender.stats.retransmissions(),
            receive_buffer_bytes: self.receiver.buffer_bytes(),
        }
    }

    /// Processes a segment of this connection.
    pub fn handle_segment(&mut self, now_ns: i64, segment: &TcpSegment) {
        self.sender.stats.segments_received += 1;
        self.keep_alives = 0;
        self.arm_keep_alive(now_ns);
        match self.state {
            TcpState::Closed => {}
            TcpState::SynSent => self.handle_syn_answer(now_ns, segment),
            _ => self.handle_in_order_of_rfc(now_ns, segment),
        }
    }

    /// RFC 9293, 3.10.7.3; simultaneous open is not supported.
    fn handle_syn_answer(&mut self, now_ns: i64, segment: &TcpSegment) {
        let acks_syn = segment.flags.ack && segment.ack == self.iss.wrapping_add(1);
        if segment.flags.rst {
            if acks_syn {
                self.sender.event(now_ns, EventKind::Reset);
                self.close(now_ns);
            }
            return;
        }
        if !segment.flags.syn || !acks_syn {
            return;
        }
        self.apply_options(segment);
        self.apply_ack(now_ns, segment, 0, 1);
        self.state = TcpState::Established;
        self.receiver.acks.now = true;
        self.sender.on_established();
        self.sender.event(now_ns, EventKind::Established);
    }

    /// RFC 9293, 3.10.7.4, in its order.
    fn handle_in_order_of_rfc(&mut self, now_ns: i64, segment: &TcpSegment) {
        let fin = u64::from(segment.flags.fin);
        let length = u64::from(segment.payload_bytes()) + u64::from(segment.flags.syn) + fin;
        let Some(start) = position(segment.seq, self.irs, self.receiver.next) else {
            self.receiver.acks.now = true;
            return;
        };
        let range = start..start + length;
        if self.is_older(segment) && !segment.flags.rst {
            self.receiver.acks.now = true;
            return;
        }
        let acceptable = self.receiver.accepts(&range);
        if !acceptable && segment.flags.rst {
            return;
        }
        if segment.flags.rst {
            // Second: only the exact next number resets; others in the window get a
            // challenge ACK, as they may be forged (RFC 5961, 3.2).
            if start == self.receiver.next {
                self.sender.event(now_ns, EventKind::Reset);
                self.close(now_ns);
            } else {
                self.receiver.acks.now = true;
            }
            return;
        }
        // A repeated SYN: RFC 9293, 3.10.7.4, fourth: a challenge ACK.
        if segment.flags.syn || !segment.flags.ack {
            self.receiver.acks.now = true;
            return;
        }
        // RFC 7323, 5.3 (R1) and (R3): not from segments outside the window.
        if acceptable {
            self.note_timestamp(segment, start);
        }
        // Segments outside the window still acknowledge, as duplicates do.
        let Some(ack) = position(segment.ack, self.iss, self.sender.una) else { return };
        if ack > self.sender.next {
            self.receiver.acks.now = true;
            return;
        }
        self.apply_ack(now_ns, segment, start, ack);
        if self.state == TcpState::SynReceived && self.sender.una > 0 {
            self.state = TcpState::Established;
            self.sender.on_established();
            self.sender.event(now_ns, EventKind::Established);
        }
        if length > 0 {
            let mss_bytes = self.sender.mss_bytes;
            self.receiver.on_data(now_ns, range, segment.flags.fin, &segment.literals, mss_bytes);
        } else if !acceptable {
            self.receiver.acks.now = true;
        }
        self.step_state(now_ns);
    }

    /// RFC 7323, 5 (PAWS).
    fn is_older(&self, segment: &TcpSegment) -> bool {
        let Some((ts_val, _)) = segment.timestamps.filter(|_| self.timestamps) else {
            return false;
        };
        (ts_val.wrapping_sub(self.ts_recent) as i32) < 0
    }

    /// RFC 7323, 4.3.
    fn note_timestamp(&mut self, segment: &TcpSegment, start: u64) {
        if let Some((ts_val, _)) = segment.timestamps.filter(|_| self.timestamps)
            && start <= self.last_ack_sent
        {
            self.ts_recent = ts_val;
        }
    }

    fn apply_ack(&mut self, now_ns: i64, segment: &TcpSegment, seq: u64, ack: u64) {
        let scale = if segment.flags.syn { 0 } else { self.peer_scale };
        let echo_tick_ns = self.echo_tick_ns(now_ns, segment);
        if segment.payload_bytes() > 0
            && let Some(began_ns) = echo_tick_ns
        {
            self.receiver.on_rtt(now_ns - began_ns);
        }
        let una = self.sender.una;
        let block = |b: &SackBlock| {
            let start = position(b.start_seq, self.iss, una)?;
            Some(start..position(b.end_seq, self.iss, una)?)
        };
        let incoming = Incoming {
            ack,
            seq,
            window_bytes: u64::from(segment.window) << scale,
            sack: segment.sack.iter().filter_map(block).filter(|r| !r.is_empty()).collect(),
            bare: segment.payload_bytes() == 0 && !segment.flags.fin,
            echo_tick_ns,
        };
        self.sender.on_ack(now_ns, &incoming);
    }

    /// Start of the tick that the segment echoes.
    fn echo_tick_ns(&self, now_ns: i64, segment: &TcpSegment) -> Option<i64> {
        let (_, ts_ecr) = segment.timestamps.filter(|_| self.timestamps)?;
        let ticks = self.ts_val(now_ns).wrapping_sub(ts_ecr);
        let tick_ns = self.tick_ns();
        Some((now_ns.div_euclid(tick_ns) - i64::from(ticks)) * tick_ns)
    }

    fn tick_ns(&self) -> i64 {
        self.config.timestamp_tick_ns.max(1)
    }

    /// TSval: RFC 7323, 5.4.
    fn ts_val(&self, now_ns: i64) -> u32 {
        (now_ns.div_euclid(self.tick_ns()) as u32).wrapping_add(self.ts_offset)
    }

    /// Advances the state after FINs were sent, acknowledged or received.
    fn step_state(&mut self, now_ns: i64) {
        let peer_finished = self.receiver.fin_received();
        if peer_finished && !self.peer_finish_told {
            self.peer_finish_told = true;
            self.sender.event(now_ns, EventKind::PeerFinished);
        }
        let fin_sent = self.sender.fin().is_some_and(|fin| self.sender.next > fin);
        let fin_acked = self.sender.fin_acked();
        let by_peer_first = matches!(self.state, TcpState::CloseWait | TcpState::LastAck);
        let next = match self.state {
            TcpState::SynSent | TcpState::SynReceived | TcpState::Closed => return,
            TcpState::TimeWait => {
                // A repeated FIN: RFC 9293, 3.10.7.4, eighth.
                if self.receiver.acks.now {
                    self.close_at_ns = Some(now_ns + self.config.time_wait_ns);
                }
                return;
            }
            _ if by_peer_first && fin_acked => TcpState::Closed,
            _ if by_peer_first && fin_sent => TcpState::LastAck,
            _ => match (fin_sent, fin_acked, peer_finished) {
                (_, true, true) => TcpState::TimeWait,
                (_, true, false) => TcpState::FinWait2,
                (true, false, true) => TcpState::Closing,
                (true, false, false) => TcpState::FinWait1,
                (false, false, true) => TcpState::CloseWait,
                (false, false, false) => TcpState::Established,
            },
        };
        if next == TcpState::TimeWait {
            self.close_at_ns = Some(now_ns + self.config.time_wait_ns);
            self.sender.event(now_ns, EventKind::Closed);
        }
        self.state = next;
        if next == TcpState::Closed {
            self.sender.event(now_ns, EventKind::Closed);
            self.close(now_ns);
        }
    }

    pub(super) fn close(&mut self, now_ns: i64) {
        self.state = TcpState::Closed;
        self.sender.set_limit(now_ns, Limit::Idle);
        self.close_at_ns = None;
        self.keep_alive_at_ns = None;
    }

    fn arm_keep_alive(&mut self, now_ns: i64) {
        self.keep_alive_at_ns = self.config.keep_alive_ns.map(|ns| now_ns + ns);
    }

    /// Processes expired timers; calling it at any time is allowed.
    pub fn handle_timeout(&mut self, now_ns: i64) {
        if self.state == TcpState::Closed {
            return;
        }
        if self.close_at_ns.is_some_and(|at_ns| at_ns <= now_ns) {
            self.close(now_ns);
            return;
        }
        if self.keep_alive_at_ns.is_some_and(|at_ns| at_ns <= now_ns) {
            self.keep_alives += 1;
            self.sender.window_probe_due |= self.sender.flight_size_bytes() == 0;
            self.arm_keep_alive(now_ns);
        }
        self.receiver.acks.on_timeout(now_ns);
        if !self.sender.on_timeout(now_ns) || self.keep_alives > MAX_KEEP_ALIVES {
            self.sender.event(now_ns, EventKind::TimedOut);
            self.close(now_ns);
        }
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) at the latest.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<i64> {
        if self.state == TcpState::Closed {
            return None;
        }
        let ack_ns = self.receiver.acks.at_ns;
        [self.sender.poll_timeout(), ack_ns, self.close_at_ns, self.keep_alive_at_ns]
            .into_iter()
            .flatten()
            .min()
    }
}

/// The position of a sequence number nearest to `near`; `None` if it would lie before the
/// start of the stream.
fn position(seq: u32, initial: u32, near: u64) -> Option<u64> {
    let offset = seq.wrapping_sub(initial.wrapping_add(near as u32)) as i32;
    near.checked_add_signed(i64::from(offset))
}
