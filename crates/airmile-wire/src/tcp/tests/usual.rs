//! The short path of usual segments beside the general one.

use proptest::prelude::*;

use super::*;

/// Two shards: one with the short path, one without; and how many segments took it.
struct Both {
    router: PacketRouter,
    short: PacketShard,
    general: PacketShard,
    usual: usize,
}

impl Both {
    fn new(tables: Tables) -> Self {
        let options = StudyOptions { tables, ..StudyOptions::default() };
        Self {
            router: PacketRouter::new(options.clone()),
            short: PacketShard::new(options.clone()),
            general: PacketShard::new(options),
            usual: 0,
        }
    }

    fn push(&mut self, packet: &Packet<'_>) {
        let mut changes = Vec::new();
        let route = self.router.push(packet, &mut changes);
        for change in &changes {
            self.short.change(change);
            self.general.change(change);
        }
        let (Some(route), Some(tcp)) = (route, packet.tcp()) else { return };
        self.general.take_any(packet, tcp, route);
        if self.short.take_usual(packet, tcp, route) {
            self.usual += 1;
        } else {
            self.short.take_any(packet, tcp, route);
        }
    }

    /// All state and all findings so far.
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

/// What happens next in one of two connections of a user.
#[derive(Debug, Clone, Copy)]
struct Step {
    server: u8,
    up: bool,
    what: u8,
    bytes: u32,
    after_us: u32,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let what = prop_oneof![12 => Just(0_u8), 12 => Just(1), 1 => 2_u8..16];
    let after_us = prop_oneof![20 => 0_u32..3_000, 3 => 0_u32..300_000, 1 => 0_u32..4_000_000];
    let bytes = prop_oneof![6 => Just(1_000_u32), 2 => 0_u32..4_000, 1 => 0_u32..3];
    let step = (0_u8..2, prop::bool::weighted(0.4), what, bytes, after_us)
        .prop_map(|(server, up, what, bytes, after_us)| Step { server, up, what, bytes, after_us });
    prop::collection::vec(step, 1..250)
}

/// The packets of two connections; `stamped`: with time stamps; `late`: the capture has each SYN-ACK after
/// its ACK.
fn packets(steps: &[Step], stamped: bool, late: bool) -> Vec<Packet<'static>> {
    let (mut now_us, mut out) = (0_i64, Vec::new());
    let mut ends = [[Sender { next: 100, acked: 1000 }, Sender { next: 1000, acked: 100 }]; 2];
    let mut put = |now_us: i64, server: u8, p: P| {
        let mut packet = p.packet();
        packet.at_ns = now_us * 1_000;
        let address = Address::v4([192, 0, 2, server]);
        if p.up {
            packet.dst = address
        } else {
            packet.src = address
        }
        if let (Transport::Tcp(tcp), true) = (&mut packet.transport, stamped) {
            tcp.timestamps = Some(((now_us / 1_000) as u32, 1));
        }
        out.push(packet);
    };
    for server in 0..2 {
        put(0, server, p(0, true, SYN, 99, 0, 0));
        let mut rest = [p(0, false, SYN | ACK, 999, 100, 0), p(0, true, ACK, 100, 1000, 0)];
        if late {
            rest.reverse();
        }
        put(20_000, server, rest[0]);
        put(60_000, server, rest[1]);
    }
    now_us += 60_000;
    for (n, step) in steps.iter().enumerate() {
        now_us += i64::from(step.after_us);
        let [client, server] = &mut ends[usize::from(step.server)];
        let (own, other) = if step.up { (client, server) } else { (server, client) };
        let (mut flags, mut seq, mut bytes, mut sack) = (ACK, own.next, step.bytes, None);
        let mut window = 1_000;
        match step.what {
            0 => own.next += bytes,
            1 => (own.acked, bytes) = (other.next, 0),
            2 => (own.acked, bytes) = (other.next - (other.next - own.acked).min(bytes), 0),
            3 => (own.acked, own.next) = (other.next, own.next + bytes),
            // Lost before the monitor.
            4 => {
                own.next += bytes;
                continue;
            }
            5 => seq = own.next.wrapping_sub(bytes),
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
            _ => bytes = 0,
        }
        let mut p = p(0, step.up, flags, seq, own.acked, bytes).window(window).id(n as u16);
        p.sack = sack;
        put(now_us, step.server, p);
    }
    out
}

proptest! {
    #[test]
    fn a_usual_segment_is_as_any(
        steps in steps(),
        stamped in any::<bool>(),
        late in any::<bool>(),
        all in any::<bool>(),
    ) {
        let tables = if all { Tables::ALL } else { StudyOptions::default().tables };
        let mut both = Both::new(tables);
        packets(&steps, stamped, late).iter().for_each(|packet| both.push(packet));
        let [short, general] = both.states();
        prop_assert_eq!(short, general);
    }
}

/// In a download, an upload and with losses: the share of usual segments, in percent.
#[test]
fn most_segments_are_usual() {
    let step = |up, what| Step { server: 1, up, what, bytes: 1_000, after_us: 900 };
    for (up, every, least) in [(false, 0, 98), (true, 0, 98), (false, 40, 80)] {
        let mut steps = Vec::new();
        for n in 1..500 {
            steps.extend([step(up, 0), step(up, 0), step(!up, 1)]);
            if every > 0 && n % every == 0 {
                // A segment is sent again, after two ACKs with SACK.
                steps.extend([step(up, 4), step(up, 0), step(!up, 6), step(!up, 6), step(up, 5)]);
            }
        }
        let mut both = Both::new(StudyOptions::default().tables);
        let packets = packets(&steps, true, false);
        packets.iter().for_each(|packet| both.push(packet));
        let [short, general] = both.states();
        assert_eq!(short, general);
        let share = both.usual * 100 / packets.len();
        assert!(share >= least, "{share} % of {}", packets.len());
    }
}
