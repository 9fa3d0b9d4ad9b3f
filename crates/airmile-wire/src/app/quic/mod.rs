//! QUIC, from the unencrypted parts of its headers (RFC 9000, 17; RFC 9312).

mod initial;
mod spin;

use airmile_model::packet::Packet;

use super::tls::Hello;
use initial::Initials;
use spin::Spin;

const LONG: u8 = 0x80;
const FIXED: u8 = 0x40;
const SPIN: u8 = 0x20;

#[derive(Debug, Default)]
pub(super) struct QuicState {
    first_ns: Option<i64>,
    confirmed_ns: Option<i64>,
    spin: Spin,
    /// What the client's Initial packets contained so far; `None` once the hello is
    /// complete or the handshake is over.
    initials: Option<Box<Initials>>,
    hello: Option<Hello>,
}

impl QuicState {
    pub(super) fn handshake_ns(&self) -> Option<i64> {
        Some((self.confirmed_ns? - self.first_ns?).max(0))
    }

    /// The client hello, when more of it is known than before.
    pub(super) const fn take_hello(&mut self) -> Option<Hello> {
        self.hello.take()
    }

    fn long(&mut self, datagram: &[u8]) {
        let initials = self.initials.get_or_insert_default();
        if let Some((hello, whole)) = initials.push(datagram) {
            self.hello = Some(hello);
            if whole {
                self.initials = Some(Box::new(Initials::over()));
            }
        }
    }

    /// Takes a datagram.
    pub(super) fn push(&mut self, up: bool, packet: &Packet<'_>) {
        let Some(&first) = packet.payload.first() else { return };
        let now = packet.at_ns;
        if first & LONG != 0 {
            if up {
                self.first_ns.get_or_insert(now);
                self.long(packet.payload);
            }
            return;
        }
        if first & FIXED == 0 {
            return;
        }
        if up {
            self.confirmed_ns.get_or_insert(now);
            self.initials = None;
        }
        let spin = first & SPIN != 0;
        if up {
            self.spin.push_up(now, spin, self.handshake_ns());
        } else {
            self.spin.push_down(now, spin);
        }
    }

    /// The next RTT between monitor and client by the spin bit, and its time.
    pub(super) fn poll_rtt(&mut self) -> Option<(i64, i64)> {
        self.spin.poll()
    }
}

#[cfg(test)]
mod tests {
    use airmile_model::packet::{Address, Ecn, Transport};

    use super::*;

    fn push(quic: &mut QuicState, ms: i64, up: bool, first: u8) {
        let payload = [first, 0, 0, 0, 1, 0];
        let packet = Packet {
            at_ns: ms,
            src: Address::v4([10, 0, 0, 1]),
            dst: Address::v4([192, 0, 2, 1]),
            src_port: 40_000,
            dst_port: 443,
            protocol: 17,
            transport: Transport::Udp,
            ecn: Ecn::NotEct,
            ip_id: None,
            ip_bytes: 34,
            payload_bytes: 6,
            payload: &payload,
            fragmented: false,
            tunnelled: false,
            interface: 0,
        };
        quic.push(up, &packet);
    }

    #[test]
    fn handshake_and_spin() {
        let mut quic = QuicState::default();
        push(&mut quic, 0, true, 0xc3);
        push(&mut quic, 30, false, 0xc3);
        push(&mut quic, 70, true, 0x43);
        assert_eq!(quic.handshake_ns(), Some(70));
        // The server repeats the client's bit, and the client turns it.
        for round in 0..6 {
            let bit = if round % 2 == 0 { 0 } else { SPIN };
            push(&mut quic, 100 + 70 * round, false, 0x43 | bit);
            push(&mut quic, 142 + 70 * round, true, 0x43 | (bit ^ SPIN));
        }
        let rtts: Vec<_> = std::iter::from_fn(|| quic.poll_rtt()).collect();
        assert_eq!(rtts, [212, 282, 352, 422, 492].map(|at| (at, 42)), "the first has no edge");
    }
}
