//! The short paths of usual packets beside the general ones.

use proptest::prelude::*;

use super::*;

/// A router and a shard with the short paths, and both without.
struct Both {
    short: (PacketRouter, PacketShard),
    general: (PacketRouter, PacketShard),
    packets: u64,
    /// Segments that took the shard's.
    usual: u64,
}

impl Both {
    fn new(options: &StudyOptions) -> Self {
        let new = || (PacketRouter::new(options.clone()), PacketShard::new(options.clone()));
        Self { short: new(), general: new(), packets: 0, usual: 0 }
    }

    /// Takes a packet; returns the flows of both then.
    fn push(&mut self, packet: &Packet<'_>) -> [String; 2] {
        let mut changes = [Vec::new(), Vec::new()];
        let number = self.packets;
        self.packets += 1;
        let route = self.short.0.place(packet, number, packet.at_ns, &mut changes[0]);
        let general = &mut self.general.0;
        let general = general.place_by::<false>(packet, number, packet.at_ns, &mut changes[1]);
        assert_eq!(general, route);
        assert_eq!(format!("{:?}", changes[0]), format!("{:?}", changes[1]));
        let ((_, short), (_, general)) = (&mut self.short, &mut self.general);
        for change in &changes[0] {
            short.change(change);
            general.change(change);
        }
        if let (Some(route), Some(tcp)) = (route, packet.tcp()) {
            general.take_any(packet, tcp, route);
            if short.take_usual(packet, tcp, route) {
                self.usual += 1;
            } else {
                short.take_any(packet, tcp, route);
            }
        }
        [format!("{:?}", short.flows), format!("{:?}", general.flows)]
    }

    /// All state, and all findings so far.
    fn states(&self) -> [String; 2] {
        [format!("{:?}", self.short), format!("{:?}", self.general)]
    }
}

/// What one end has sent, and what it has acknowledged of the other.
#[derive(Clone, Copy)]
struct Sender {
    next: u32,
    acked: u32,
}

/// What happens next in one of the connections of a user.
#[derive(Debug, Clone, Copy)]
struct Step {
    connection: usize,
    up: bool,
    what: u8,
    bytes: u32,
    after_us: u32,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let what = prop_oneof![24 => Just(0_u8), 24 => Just(1), 1 => 2_u8..17];
    let after_us = prop_oneof![20 => 0_u32..3_000, 3 => 0_u32..300_000, 1 => 0_u32..4_000_000];
    let bytes = prop_oneof![6 => Just(1_000_u32), 2 => 0_u32..4_000, 1 => 0_u32..3];
    let step = (0_usize..3, prop::bool::weighted(0.4), what, bytes, after_us).prop_map(
        |(connection, up, what, bytes, after_us)| Step { connection, up, what, bytes, after_us },
    );
    prop::collection::vec(step, 1..200)
}

/// What a capture is like.
#[derive(Debug, Clone, Copy)]
struct Scene {
    stamped: bool,
    /// 0: whole handshakes, 1: each SYN-ACK comes after its ACK, 2: no SYN-ACKs, 3: no handshakes.
    opening: u8,
    /// First sequence numbers less 100.
    base: u32,
    /// The third connection is the other leg of the first.
    is_split: bool,
    /// Only packets of the server.
    one_sided: bool,
    with_ids: bool,
    /// Clients send HTTP.
    http: bool,
    all_tables: bool,
    traced: bool,
}

impl Scene {
    const PLAIN: Self = Self {
        stamped: true,
        opening: 0,
        base: 0,
        is_split: false,
        one_sided: false,
        with_ids: true,
        http: false,
        all_tables: false,
        traced: false,
    };

    fn options(&self) -> StudyOptions {
        let default = StudyOptions::default();
        StudyOptions {
            tables: if self.all_tables { Tables::ALL } else { default.tables },
            traced: Traced::Flows(if self.traced { vec![0] } else { Vec::new() }),
            ..default
        }
    }

    /// The packet of a connection at a time.
    fn packet(&self, now_us: i64, connection: usize, p: P) -> Packet<'static> {
        let mut packet = p.packet();
        packet.at_ns = now_us * 1_000;
        let is_leg = connection == 2 && self.is_split;
        let address = Address::v4([192, 0, 2, if is_leg { 0 } else { connection as u8 }]);
        let server = if p.up { &mut packet.dst } else { &mut packet.src };
        *server = address;
        packet.ip_id = packet.ip_id.filter(|_| self.with_ids);
        if self.http && p.up {
            packet.payload = b"GET / HTTP/1.1\r\n";
        }
        if let (Transport::Tcp(tcp), true) = (&mut packet.transport, self.stamped) {
            tcp.timestamps = Some(((now_us / 1_000) as u32, 1));
        }
        packet
    }

    fn packets(&self, steps: &[Step]) -> Vec<Packet<'static>> {
        let mut out: Vec<Packet<'static>> = Vec::new();
        let mut ends = [0, 0, 500_000].map(|leg: u32| {
            let (client, server) =
                (self.base.wrapping_add(leg + 100), self.base.wrapping_add(1000));
            [Sender { next: client, acked: server }, Sender { next: server, acked: client }]
        });
        for (connection, [client, server]) in ends.iter().enumerate() {
            let (seq, ack) = (client.next, server.next);
            let [first, second] = [seq.wrapping_sub(1), ack.wrapping_sub(1)];
            let mut rest = [p(0, false, SYN | ACK, second, seq, 0), p(0, true, ACK, seq, ack, 0)];
            if self.opening == 1 {
                rest.reverse();
            }
            if self.opening < 3 {
                out.push(self.packet(0, connection, p(0, true, SYN, first, 0, 0)));
            }
            if self.opening < 2 {
                out.push(self.packet(20_000, connection, rest[0]));
                out.push(self.packet(60_000, connection, rest[1]));
            }
        }
        let mut now_us = 60_000;
        for (n, step) in steps.iter().enumerate() {
            now_us += i64::from(step.after_us);
            let [client, server] = &mut ends[step.connection];
            let (own, other) = if step.up { (client, server) } else { (server, client) };
            let (mut flags, mut seq, mut bytes, mut sack) = (ACK, own.next, step.bytes, None);
            let (mut window, mut id) = (1_000, n as u16);
            let waiting = other.next.wrapping_sub(own.acked);
            let mut next = own.next;
            match step.what {
                0 => next = next.wrapping_add(bytes),
                1 => (own.acked, bytes) = (other.next, 0),
                2 => (own.acked, bytes) = (other.next.wrapping_sub(waiting.min(bytes)), 0),
                3 => (own.acked, next) = (other.next, next.wrapping_add(bytes)),
                // Lost before the monitor.
                4 => {
                    own.next = next.wrapping_add(bytes);
                    continue;
                }
                5 => seq = seq.wrapping_sub(bytes),
                6 => {
                    sack = Some((other.next.wrapping_sub(bytes), other.next));
                    bytes = 0;
                }
                7 => window = (bytes % 3) as u16,
                8 => seq = seq.wrapping_add(bytes * 1_000),
                9 => flags |= TcpFlags::PSH.0,
                10 if n % 4 == 0 => flags |= FIN,
                11 if n % 8 == 0 => flags = TcpFlags::RST.0,
                12 => now_us -= 5_000,
                13 => id = id.wrapping_sub(1),
                14 => {
                    let mut copy = out.last().copied();
                    copy.iter_mut().for_each(|copy| copy.at_ns += 1_000_000);
                    out.extend(copy);
                    continue;
                }
                15 => flags = SYN,
                _ => bytes = 0,
            }
            own.next = next;
            let mut p = p(0, step.up, flags, seq, own.acked, bytes).window(window).id(id);
            p.sack = sack;
            out.push(self.packet(now_us, step.connection, p));
        }
        out.retain(|packet| !self.one_sided || packet.src_port == 443);
        out
    }
}

fn scenes() -> impl Strategy<Value = Scene> {
    let base = prop_oneof![Just(0_u32), Just(u32::MAX - 9_000)];
    let flags = (any::<[bool; 4]>(), prop::array::uniform3(prop::bool::weighted(0.2)));
    (0_u8..4, base, flags).prop_map(|(opening, base, (even, rare))| {
        let ([stamped, is_split, with_ids, all_tables], [one_sided, http, traced]) = (even, rare);
        Scene { stamped, opening, base, is_split, one_sided, with_ids, http, all_tables, traced }
    })
}

proptest! {
    #[test]
    fn a_usual_packet_is_as_any(steps in steps(), scene in scenes()) {
        let mut both = Both::new(&scene.options());
        for packet in scene.packets(&steps) {
            let [short, general] = both.push(&packet);
            prop_assert_eq!(short, general);
        }
        let [short, general] = both.states();
        prop_assert_eq!(short, general);
    }
}

/// In a download, an upload and with losses: the share of usual segments, in percent.
#[test]
fn most_segments_are_usual() {
    let step = |up, what| Step { connection: 1, up, what, bytes: 1_000, after_us: 900 };
    for (up, every, least) in [(false, 0, 98), (true, 0, 98), (false, 40, 80)] {
        let mut steps = Vec::new();
        for n in 1..500 {
            steps.extend([step(up, 0), step(up, 0), step(!up, 1)]);
            if every > 0 && n % every == 0 {
                // A segment is sent again, after two ACKs with SACK.
                steps.extend([step(up, 4), step(up, 0), step(!up, 6), step(!up, 6), step(up, 5)]);
            }
        }
        let mut both = Both::new(&Scene::PLAIN.options());
        let packets = Scene::PLAIN.packets(&steps);
        packets.iter().for_each(|packet| _ = both.push(packet));
        let [short, general] = both.states();
        assert_eq!(short, general);
        let share = both.usual * 100 / both.packets;
        assert!(share >= least, "{share} % of {}", both.packets);
    }
}
