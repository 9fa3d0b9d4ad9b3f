//! The router's state of a flow and of a user.

use airmile_model::packet::{Address, Packet, SeqNum, TcpFlags, TcpHeader};

use super::super::flow::FlowKey;
use super::super::options::StudyOptions;
use super::super::side::Side;
use super::Route;

/// The state that decides how long a flow lasts. It fills a cache line.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub(super) struct RoutedFlow {
    pub(super) key: FlowKey,
    pub(super) last_ns: i64,
    /// First sequence number of either end, the lower first.
    pub(super) first_seq: [u32; 2],
    pub(super) user: u32,
    pub(super) partition: u8,
    pub(super) state: u16,
}

impl RoutedFlow {
    pub(super) const LIVE: u16 = 1;
    /// The client is the higher end.
    pub(super) const CLIENT_HIGH: u16 = 1 << 1;
    pub(super) const SYN_ACK: u16 = 1 << 2;
    /// The handshake is over, or was before the capture.
    pub(super) const ESTABLISHED: u16 = 1 << 3;
    pub(super) const CLOSED: u16 = 1 << 4;
    /// Either end's first sequence number is known.
    pub(super) const FIRST_SEQ: [u16; 2] = [1 << 5, 1 << 6];
    /// The client's SYN was seen.
    pub(super) const SYN: u16 = 1 << 7;
    /// Another connection began on the same ports during this one.
    pub(super) const TWIN: u16 = 1 << 8;
    /// That connection was answered, and this one continued.
    pub(super) const SPLIT: u16 = 1 << 9;
    /// Either end has sent its FIN.
    pub(super) const FIN: [u16; 2] = [1 << 10, 1 << 11];
    /// UDP.
    pub(super) const UDP: u16 = 1 << 12;
    /// With these, only a segment with SYN, FIN or RST changes the state.
    const SETTLED: u16 = Self::ESTABLISHED | Self::FIRST_SEQ[0] | Self::FIRST_SEQ[1];

    pub(super) const fn is(&self, bit: u16) -> bool {
        self.state & bit != 0
    }

    pub(super) const fn is_closing(&self) -> bool {
        self.is(Self::CLOSED) || self.is(Self::FIN[0]) || self.is(Self::FIN[1])
    }

    /// Maximum time without a packet.
    pub(super) const fn patience_ns(&self, options: &StudyOptions) -> i64 {
        if self.is(Self::CLOSED) {
            return options.linger_ns;
        }
        let is_answered = self.is(Self::ESTABLISHED) || self.is(Self::SYN_ACK);
        match options.brief_idle_ns {
            Some(brief_ns) if self.is(Self::UDP) || !is_answered => brief_ns,
            _ => options.idle_ns,
        }
    }

    pub(super) const fn client(&self) -> usize {
        self.is(Self::CLIENT_HIGH) as usize
    }

    /// Whether a packet comes too late to belong to this flow.
    #[inline]
    pub(super) const fn is_over(&self, packet: &Packet<'_>, options: &StudyOptions) -> bool {
        packet.at_ns.saturating_sub(self.last_ns) > options.idle_ns
    }

    /// Whether a packet of the flow's addresses and ports belongs to it and changes nothing but its time.
    #[inline]
    pub(super) fn just_continues(&self, packet: &Packet<'_>, options: &StudyOptions) -> bool {
        let settled = |tcp: &TcpHeader| {
            !begins_or_ends(tcp) && self.state & (Self::SETTLED | Self::TWIN) == Self::SETTLED
        };
        packet.tcp().is_none_or(settled) && !self.is_over(packet, options)
    }

    /// Takes the time of a packet of the end `from` (0: the lower); returns its route.
    #[inline]
    pub(super) fn pass(&mut self, packet: &Packet<'_>, flow: u32, from: usize) -> Route {
        self.last_ns = self.last_ns.max(packet.at_ns);
        Route { partition: self.partition, flow, sender: Side::of(self.client(), from) }
    }

    /// Notes a segment of the end `from`.
    pub(super) fn tcp(&mut self, tcp: &TcpHeader, from: usize) {
        if begins_or_ends(tcp) || self.state & Self::SETTLED != Self::SETTLED {
            self.advance(tcp, from);
        }
    }

    fn advance(&mut self, tcp: &TcpHeader, from: usize) {
        let (syn, ack) = (tcp.flags.has(TcpFlags::SYN), tcp.flags.has(TcpFlags::ACK));
        let rst = tcp.flags.has(TcpFlags::RST);
        self.begins_at(from, tcp.seq);
        if ack && !rst {
            self.begins_at(1 - from, tcp.ack);
        }
        if tcp.flags.has(TcpFlags::FIN) {
            self.state |= Self::FIN[from];
        }
        // A half-closed flow lasts: the other FIN may come minutes later (paper 4.1).
        if rst || self.is(Self::FIN[0]) && self.is(Self::FIN[1]) {
            self.state |= Self::CLOSED;
        }
        let up = from == self.client();
        if syn && !ack && up {
            self.state |= Self::SYN;
        } else if syn && ack && !up {
            self.state |= Self::SYN_ACK;
        } else if !syn && ack && up && self.is(Self::SYN_ACK) {
            self.state |= Self::ESTABLISHED;
        }
    }

    pub(super) const fn begins_at(&mut self, end: usize, seq: SeqNum) {
        if !self.is(Self::FIRST_SEQ[end]) {
            self.state |= Self::FIRST_SEQ[end];
            self.first_seq[end] = seq.0;
        }
    }

    /// Whether a SYN of the end `from` begins another connection on the same ports.
    pub(super) const fn is_replaced_by(&self, tcp: &TcpHeader, from: usize) -> bool {
        let same = !self.is(Self::FIRST_SEQ[from]) || self.first_seq[from] == tcp.seq.0;
        !same && (self.is_closing() || self.is(Self::ESTABLISHED))
    }
}

/// Whether a segment has SYN, FIN or RST.
const fn begins_or_ends(tcp: &TcpHeader) -> bool {
    const BEGIN_OR_END: u8 = TcpFlags::SYN.0 | TcpFlags::FIN.0 | TcpFlags::RST.0;
    tcp.flags.0 & BEGIN_OR_END != 0
}

#[derive(Debug)]
pub(super) struct UserEntry {
    pub(super) number: u64,
    pub(super) address: Address,
    pub(super) last_ns: i64,
    pub(super) open_flows: u32,
    pub(super) partition: u8,
}
