//! Hosts that send datagrams through cells of all kinds: invariants of every run.

use std::net::{Ipv4Addr, SocketAddrV4};

use airmile_emulate::net::{Host, IpPacket, Transport};
use airmile_emulate::{
    CapturePoint, CellConfig, Competing, CoreConfig, DrxConfig, LinkConfig, PathConfig, RateLimit,
    RrcConfig, RunSink, Scenario, SchedulerKind, SecondaryConfig, SimulatedUser, Simulation,
    SimulationEnd, UplinkConfig, UserId,
};
use airmile_model::{Direction, Record};
use proptest::prelude::*;
use proptest::sample::select;

const PHONE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);

/// Sends a number of datagrams, one every `period_ns`; counts received ones.
#[derive(Debug, Clone)]
struct Pulse {
    from: Ipv4Addr,
    to: Ipv4Addr,
    payload_bytes: usize,
    period_ns: i64,
    left: u32,
    next_ns: i64,
    sent: u16,
    got: u32,
    /// A box: forwards packets.
    relay: Vec<IpPacket>,
    relays: bool,
}

impl Pulse {
    fn new(to_phone: bool, payload_bytes: usize, period_ns: i64, left: u32) -> Self {
        let (from, to) = if to_phone { (SERVER, PHONE) } else { (PHONE, SERVER) };
        Self {
            from,
            to,
            payload_bytes,
            period_ns,
            left,
            next_ns: 0,
            sent: 0,
            got: 0,
            relay: Vec::new(),
            relays: false,
        }
    }

    fn relay() -> Self {
        Self { relays: true, ..Self::new(true, 0, 1, 0) }
    }
}

impl Host for Pulse {
    fn handle_packet(&mut self, now_ns: i64, packet: IpPacket) {
        assert!(now_ns > 0);
        self.got += 1;
        if self.relays {
            self.relay.push(packet);
        }
    }

    fn handle_timeout(&mut self, now_ns: i64) {
        self.next_ns = self.next_ns.max(now_ns);
    }

    fn poll_transmit(&mut self, now_ns: i64) -> Option<IpPacket> {
        if let Some(packet) = self.relay.pop() {
            return Some(packet);
        }
        if self.left == 0 || self.next_ns > now_ns {
            return None;
        }
        self.left -= 1;
        self.sent += 1;
        self.next_ns = self.next_ns.max(now_ns) + self.period_ns;
        Some(IpPacket {
            src: SocketAddrV4::new(self.from, 5_000),
            dst: SocketAddrV4::new(self.to, 6_000),
            ip_id: self.sent,
            transport: Transport::Udp(vec![0; self.payload_bytes]),
        })
    }

    fn poll_timeout(&self) -> Option<i64> {
        (self.left > 0).then_some(self.next_ns)
    }
}

/// Everything that a sink receives, as text.
#[derive(Debug, Default, PartialEq)]
struct SinkLog {
    packets: Vec<(i64, CapturePoint, u16)>,
    records: Vec<Record>,
    drops: usize,
}

impl RunSink for SinkLog {
    fn record(&mut self, record: Record) {
        self.records.push(record);
    }

    fn packet(&mut self, at_ns: i64, point: CapturePoint, packet: &IpPacket) {
        self.packets.push((at_ns, point, packet.ip_id));
    }

    fn dropped(
        &mut self,
        _at_ns: i64,
        _user: UserId,
        _point: airmile_emulate::DropPoint,
        _packet: &IpPacket,
    ) {
        self.drops += 1;
    }
}

fn users(scenario: &Scenario, n: usize, period_us: i64, proxy: bool) -> Vec<SimulatedUser<Pulse>> {
    (0..n)
        .map(|user| SimulatedUser {
            name: format!("user {user}"),
            address: PHONE,
            phone: Pulse::new(false, 200, 3 * period_us * 1_000, 150),
            server: Pulse::new(true, 1_300, period_us * 1_000, 600),
            proxy: (proxy && user == 0).then(Pulse::relay),
            core: scenario.core.clone(),
            link: LinkConfig { snr_mean_db: 6.0 + 3.0 * user as f64, ..LinkConfig::default() },
        })
        .collect()
}

fn run(
    scenario: &Scenario,
    users: Vec<SimulatedUser<Pulse>>,
    ttis: u32,
) -> (SimulationEnd<Pulse>, SinkLog) {
    let mut log = SinkLog::default();
    let mut simulation = Simulation::new(scenario, users).unwrap();
    for _ in 0..ttis {
        simulation.step(&mut log);
    }
    (simulation.finish(), log)
}

prop_compose! {
    fn scenario()(
        seed in any::<u64>(),
        n_prb in select(vec![6u16, 25, 50, 100]),
        scheduler in select(vec![
            SchedulerKind::WholeTti, SchedulerKind::RoundRobin, SchedulerKind::PfFrequency,
            SchedulerKind::MaxCi, SchedulerKind::BlindEqual,
        ]),
        (numerology, tdd) in (0u8..3, prop::option::of(select(vec!["DSUUD", "DSUUDDSUUD", "DDDSU"]))),
        secondary in any::<bool>(),
        rrc in prop::option::of((any::<bool>(), any::<bool>())),
        firmware_bytes in prop::option::of(2_000u64..50_000),
        queue_bytes in 10_000u64..1_000_000,
        (loss, jitter_ms, limited) in (0.0f64..0.1, 0.0f64..10.0, any::<bool>()),
    ) -> Scenario {
        let limit = limited.then_some(RateLimit {
            rate_bps: 2_000_000, queue_bytes: 20_000, from_ms: 100, to_ms: Some(700),
        });
        Scenario {
            seed,
            cell: CellConfig {
                n_prb, scheduler, numerology, queue_bytes,
                tdd: tdd.map(str::to_owned),
                secondary: secondary.then(|| SecondaryConfig {
                    competing: vec![Competing::FullBuffer { users: 1 }],
                    ..SecondaryConfig::default()
                }),
                ..CellConfig::default()
            },
            rrc: rrc.map(|(starts_idle, drx)| RrcConfig {
                starts_idle,
                paging_ms: 320,
                tail_ms: 300,
                drx: drx.then(DrxConfig::default),
                ..RrcConfig::default()
            }),
            uplink: UplinkConfig {
                max_prb: n_prb.min(20), firmware_bytes, ..UplinkConfig::default()
            },
            core: CoreConfig {
                down: PathConfig { jitter_ms, loss, limit },
                ..CoreConfig::default()
            },
            competing: vec![Competing::OnOff {
                users: 2, rate_bps: 1_000_000, mean_on_ms: 100, mean_off_ms: 100,
            }],
            ..Scenario::default()
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_byte_is_somewhere_and_every_tti_has_a_state(
        scenario in scenario(), n in 1usize..5, period_us in 300i64..3_000, proxy in any::<bool>(),
    ) {
        let (ended, log) = run(&scenario, users(&scenario, n, period_us, proxy), 1_500);
        for totals in &ended.totals {
            for t in totals {
                prop_assert_eq!(
                    t.arrived_bytes,
                    t.delivered_bytes + t.unsent_bytes + t.in_transit_bytes + t.dropped_bytes
                );
            }
        }
        for runs in [&ended.truth.dl, &ended.truth.ul] {
            let mut next = ended.first_tti;
            for run in runs {
                prop_assert_eq!(run.tti, next);
                next = next.plus(run.n_tti.into());
            }
            prop_assert_eq!(next.since(ended.first_tti), i64::from(ended.n_tti));
        }
        let rrc: u32 = ended.truth.rrc.iter().map(|run| run.n_tti).sum();
        prop_assert_eq!(rrc, ended.n_tti);
        prop_assert!(ended.truth.cell_use.iter().all(|used| used.n_prb <= scenario.cell.n_prb));
        let tdd = scenario.cell.tdd.as_deref().unwrap_or("").as_bytes();
        for record in &log.records {
            if let Record::Grant(grant) = record {
                prop_assert!(grant.n_prb <= grant.n_prb_cell);
                prop_assert_eq!(grant.position.numerology, scenario.cell.numerology);
                let letter = if grant.dir == Direction::Dl { b'D' } else { b'U' };
                let at = grant.position.tti.0 as usize;
                prop_assert!(tdd.is_empty() || tdd[at % tdd.len()] == letter);
            }
        }
        prop_assert!(log.packets.iter().map(|p| p.0).is_sorted());
    }

    #[test]
    fn the_same_seed_gives_the_same_packets(scenario in scenario(), n in 1usize..4) {
        let once = run(&scenario, users(&scenario, n, 700, true), 800).1;
        let again = run(&scenario, users(&scenario, n, 700, true), 800).1;
        prop_assert!(once == again);
    }
}

#[test]
fn all_arrives_where_nothing_is_lost() {
    let scenario = Scenario::default();
    for proxy in [false, true] {
        let (ended, log) = run(&scenario, users(&scenario, 3, 1_000, proxy), 3_000);
        assert_eq!(log.drops, 0);
        for (phone, server, _) in &ended.hosts {
            assert_eq!((phone.got, server.got), (600, 150));
        }
        // A third of the way out is between base station and box.
        let at = |point: CapturePoint| log.packets.iter().filter(|p| p.1 == point).count();
        let boxed = if proxy { 750 } else { 0 };
        assert_eq!(at(CapturePoint::Phone), 750);
        assert_eq!(at(CapturePoint::Server), 750);
        assert_eq!((at(CapturePoint::ProxyRan), at(CapturePoint::ProxyCore)), (boxed, boxed));
    }
}

#[test]
fn the_uplink_is_shared_and_no_tti_of_it_is_overbooked() {
    // Six phones that together send more than the capacity of the uplink.
    let scenario = Scenario::default();
    let users: Vec<SimulatedUser<Pulse>> = users(&scenario, 6, 1_000, false)
        .into_iter()
        .map(|user| SimulatedUser { phone: Pulse::new(false, 1_400, 500_000, 4_000), ..user })
        .collect();
    let (ended, _) = run(&scenario, users, 2_000);
    let delivered: Vec<u64> = ended.totals.iter().map(|t| t[1].delivered_bytes).collect();
    let total_bps = delivered.iter().sum::<u64>() as f64 * 8.0 / 2.0;
    // 50 PRB pairs of 12 dB: about 2.9 bit/s/Hz of 144 resource elements each.
    assert!((10e6..25e6).contains(&total_bps), "{total_bps}");
    assert!(delivered.iter().all(|&bytes| bytes > delivered[0] / 3), "{delivered:?}");
}

#[test]
fn a_thousand_users_share_a_cell() {
    let scenario = Scenario {
        // A small flow must not use a whole TTI.
        cell: CellConfig { scheduler: SchedulerKind::RoundRobin, ..CellConfig::default() },
        competing: vec![
            Competing::Web {
                users: 600,
                objects: 10,
                mean_object_bytes: 20_000,
                round_trip_ms: 60,
                mean_reading_ms: 60_000,
            },
            Competing::OnOff {
                users: 399,
                rate_bps: 100_000,
                mean_on_ms: 500,
                mean_off_ms: 49_500,
            },
        ],
        ..Scenario::default()
    };
    let (ended, _) = run(&scenario, users(&scenario, 1, 5_000, false), 4_000);
    let used: u32 = ended.truth.cell_use.iter().map(|u| u32::from(u.n_prb) * u.n_tti).sum();
    let dl = ended.totals[0][0];
    assert!(dl.delivered_bytes > 500_000, "{dl:?}, {used} PRB pairs");
}
