//! The phones and servers of a scenario with their applications.

use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddrV4};

use airmile_control::claw::Feedback;
use airmile_control::{ControllerKind, RadioNeed};
use airmile_model::units::MS_NS;

use super::radio;
use super::workload::{AppEvent, EndHost, UnderWay, WorkloadServer};
use crate::core::proxy::Proxy;
use crate::net::PhoneView;
use crate::net::{Host, IpPacket};
use crate::random::{Owner, Process};
use crate::scenario::{AppConfig, CoreConfig, LinkConfig, Scenario, TransportKind};
use crate::transport::quic::{QuicControl, QuicHost};

/// The measured phone's address (RFC 1918); all users have it, each on its own network.
pub(crate) const PHONE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

/// The servers' network (TEST-NET-3, RFC 5737); each application has its own.
pub(crate) const fn server_address(app: usize) -> Ipv4Addr {
    Ipv4Addr::new(203, 0, 113, (app % 254) as u8 + 1)
}

/// An application with its transport, at either end.
#[derive(Debug)]
pub(crate) enum AppHost {
    Tcp(Box<EndHost>),
    Quic(Box<QuicHost>),
}

impl AppHost {
    fn as_host(&self) -> &dyn Host {
        match self {
            Self::Tcp(host) => host.as_ref(),
            Self::Quic(host) => host.as_ref(),
        }
    }

    fn as_host_mut(&mut self) -> &mut dyn Host {
        match self {
            Self::Tcp(host) => host.as_mut(),
            Self::Quic(host) => host.as_mut(),
        }
    }

    fn is_done(&self) -> bool {
        match self {
            Self::Tcp(host) => host.is_done(),
            Self::Quic(host) => host.is_done(),
        }
    }

    fn under_way(&self) -> Vec<UnderWay> {
        match self {
            Self::Tcp(host) => host.under_way(),
            Self::Quic(host) => host.under_way(),
        }
    }

    /// A phone's view, and its server.
    fn phone_view(&self) -> (PhoneView, Option<Ipv4Addr>) {
        let (min_rtt_ns, server) = match self {
            Self::Tcp(host) => (host.min_rtt_ns(), host.server_address()),
            Self::Quic(host) => (host.min_rtt_ns(), host.server_address()),
        };
        (PhoneView { min_rtt_ns, busy: !self.under_way().is_empty() }, server)
    }

    /// Processes a client's feedback about its radio.
    fn on_radio(&mut self, now_ns: i64, feedback: &Feedback) {
        match self {
            Self::Tcp(host) => host.on_radio(now_ns, feedback),
            Self::Quic(host) => host.on_radio(now_ns, feedback),
        }
    }

    fn poll_event(&mut self) -> Option<AppEvent> {
        match self {
            Self::Tcp(host) => host.poll_event(),
            Self::Quic(host) => host.poll_event(),
        }
    }
}

/// A host of a scenario.
#[derive(Debug)]
pub(crate) enum ScenarioHost {
    /// A phone: an application for each server.
    Phone(Vec<AppHost>),
    /// The servers of a phone.
    Servers(Vec<AppHost>),
    /// The middlebox.
    Proxy(Box<Proxy>),
    /// A host outside of the run.
    Outside(OutsideHost),
}

/// A host outside of the run: arriving packets wait to be collected, and its packets are
/// passed to [`Simulation::send`](crate::Simulation::send).
#[derive(Debug, Default)]
pub(crate) struct OutsideHost {
    pub(crate) arrived: VecDeque<(i64, IpPacket)>,
}

impl ScenarioHost {
    /// The application host that a packet is for.
    fn member(&mut self, packet: &IpPacket) -> Option<&mut AppHost> {
        let (members, server) = match self {
            Self::Phone(members) => (members, packet.src.ip()),
            Self::Servers(members) => (members, packet.dst.ip()),
            Self::Proxy(_) | Self::Outside(_) => return None,
        };
        let index = usize::from(server.octets()[3]).checked_sub(1)?;
        members.get_mut(index)
    }

    fn members(&self) -> &[AppHost] {
        match self {
            Self::Phone(members) | Self::Servers(members) => members,
            Self::Proxy(_) | Self::Outside(_) => &[],
        }
    }

    fn members_mut(&mut self) -> &mut [AppHost] {
        match self {
            Self::Phone(members) | Self::Servers(members) => members,
            Self::Proxy(_) | Self::Outside(_) => &mut [],
        }
    }

    /// Its TCP hosts; the box's connections are separate.
    pub(crate) fn tcp_hosts(&self) -> impl Iterator<Item = &EndHost> {
        self.members().iter().filter_map(|member| match member {
            AppHost::Tcp(host) => Some(host.as_ref()),
            AppHost::Quic(_) => None,
        })
    }

    /// The same, mutable, to poll events.
    pub(crate) fn tcp_hosts_mut(&mut self) -> impl Iterator<Item = &mut EndHost> {
        self.members_mut().iter_mut().filter_map(|member| match member {
            AppHost::Tcp(host) => Some(host.as_mut()),
            AppHost::Quic(_) => None,
        })
    }

    /// Whether all applications have finished.
    pub(crate) fn is_done(&self) -> bool {
        self.members().iter().all(AppHost::is_done)
    }

    /// Exchanges in progress, by application.
    pub(crate) fn under_way(&self) -> Vec<(usize, UnderWay)> {
        let of = |(app, member): (usize, &AppHost)| {
            member.under_way().into_iter().map(move |exchange| (app, exchange))
        };
        self.members().iter().enumerate().flat_map(of).collect()
    }

    /// Log events of the applications, by application.
    pub(crate) fn events(&mut self) -> Vec<(usize, AppEvent)> {
        let mut out = Vec::new();
        for (app, member) in self.members_mut().iter_mut().enumerate() {
            out.extend(std::iter::from_fn(|| member.poll_event()).map(|event| (app, event)));
        }
        out
    }
}

impl Host for ScenarioHost {
    fn handle_packet(&mut self, now_ns: i64, packet: IpPacket) {
        if let Self::Proxy(proxy) = self {
            proxy.handle_packet(now_ns, packet);
        } else if let Self::Outside(outside) = self {
            outside.arrived.push_back((now_ns, packet));
        } else if let Some(member) = self.member(&packet) {
            if let Some(feedback) = radio::parse(&packet) {
                return member.on_radio(now_ns, &feedback);
            }
            member.as_host_mut().handle_packet(now_ns, packet);
        }
    }

    fn handle_timeout(&mut self, now_ns: i64) {
        if let Self::Proxy(proxy) = self {
            proxy.handle_timeout(now_ns);
        }
        for member in self.members_mut() {
            let member = member.as_host_mut();
            if member.poll_timeout().is_some_and(|due| due <= now_ns) {
                member.handle_timeout(now_ns);
            }
        }
    }

    fn poll_transmit(&mut self, now_ns: i64) -> Option<IpPacket> {
        match self {
            Self::Proxy(proxy) => proxy.poll_transmit(now_ns),
            _ => self
                .members_mut()
                .iter_mut()
                .find_map(|member| member.as_host_mut().poll_transmit(now_ns)),
        }
    }

    fn poll_timeout(&self) -> Option<i64> {
        match self {
            Self::Proxy(proxy) => proxy.poll_timeout(),
            _ => self.members().iter().filter_map(|member| member.as_host().poll_timeout()).min(),
        }
    }

    fn phone_view(&self) -> PhoneView {
        let views = self.members().iter().map(|member| member.phone_view().0);
        views.fold(PhoneView::default(), |all, one| PhoneView {
            min_rtt_ns: [all.min_rtt_ns, one.min_rtt_ns].into_iter().flatten().min(),
            busy: all.busy || one.busy,
        })
    }

    fn servers(&self) -> Vec<Ipv4Addr> {
        self.members().iter().filter_map(|member| member.phone_view().1).collect()
    }
}

/// The hosts of a user.
#[derive(Debug, Clone)]
pub struct SimulatedUser<H> {
    /// Name of the user, which alone determines its random numbers. Unused for the first
    /// user, the measured phone.
    pub name: String,
    /// The phone's address: packets for it go to the phone, all others to the server.
    pub address: Ipv4Addr,
    /// The phone.
    pub phone: H,
    /// The server.
    pub server: H,
    /// A box between core network and base station that processes the packets of both
    /// sides.
    pub proxy: Option<H>,
    /// The core network beyond the base station.
    pub core: CoreConfig,
    /// The radio link; the measured phone's is the scenario's.
    pub link: LinkConfig,
}

/// The users of a scenario that begins at `start_ns`; the first is measured.
pub(crate) fn users(scenario: &Scenario, start_ns: i64) -> Vec<SimulatedUser<ScenarioHost>> {
    let (name, owner, apps) = (String::new(), Owner::PHONE, &scenario.apps);
    let phone = Role { name, owner, apps, start_ns, control: None };
    let mut users = vec![user(scenario, phone, scenario.core.clone(), scenario.link.clone())];
    if let Some(config) = &scenario.proxy {
        users[0].proxy =
            Some(ScenarioHost::Proxy(Box::new(Proxy::new(config.clone(), scenario.seed))));
    }
    let mut numbers: BTreeMap<String, u16> = BTreeMap::new();
    for other in &scenario.others {
        let runs: Vec<&str> = other.apps.iter().map(|app| app.name.as_str()).collect();
        let number = numbers.entry(runs.join(" ")).or_default();
        for _ in 0..other.count {
            // Named by the applications they run, and a number among users with the same
            // ones.
            let name = format!("other {} {number}", runs.join(" "));
            *number += 1;
            let owner = Owner::named(&name);
            let share = owner.random(scenario.seed, Process::Start).uniform();
            let start_ns = start_ns + (share * f64::from(other.start_spread_ms)) as i64 * MS_NS;
            let link = other.link.as_ref().unwrap_or(&scenario.link).clone();
            let link = LinkConfig { dl_trace: None, ul_trace: None, ..link };
            let control = other.control;
            let role = Role { name, owner, apps: &other.apps, start_ns, control };
            users.push(user(scenario, role, other.core.clone(), link));
        }
    }
    users
}

/// The radio feedback that each user's servers need, in the order of [`users`].
pub(crate) fn radio_needs(scenario: &Scenario) -> Vec<Option<RadioNeed>> {
    let of = |apps: &[AppConfig], control: Option<ControllerKind>| {
        let tcp = control.unwrap_or(scenario.server_tcp.control);
        apps.iter().find_map(|app| match (app.transport, scenario.quic.control) {
            (TransportKind::Tcp, _) => tcp.radio_need(),
            (TransportKind::Quic, QuicControl::Ours(kind)) => kind.radio_need(),
            (TransportKind::Quic, _) => None,
        })
    };
    let others = scenario.others.iter().flat_map(|other| {
        let need = of(&other.apps, other.control);
        std::iter::repeat_n(need, other.count.into())
    });
    std::iter::once(of(&scenario.apps, None)).chain(others).collect()
}

/// The applications of a user, and their start time.
struct Role<'a> {
    name: String,
    owner: Owner,
    apps: &'a [AppConfig],
    start_ns: i64,
    /// Congestion control of the servers' TCP, in place of the scenario's.
    control: Option<ControllerKind>,
}

fn user(
    scenario: &Scenario,
    role: Role<'_>,
    core: CoreConfig,
    link: LinkConfig,
) -> SimulatedUser<ScenarioHost> {
    let Role { name, owner, apps, start_ns, control } = role;
    let mut phone = Vec::new();
    let mut servers = Vec::new();
    for (app, config) in apps.iter().enumerate() {
        // A separate seed for each application, so that adding one does not change the
        // others.
        let seed = Owner::named(&config.name).seed(owner.seed(scenario.seed));
        let address = server_address(app);
        let client = config.workload.client(start_ns + i64::from(config.start_ms) * MS_NS, seed);
        let server = SocketAddrV4::new(address, config.port);
        let answers = Box::new(WorkloadServer::new());
        let (near, far) = match config.transport {
            TransportKind::Tcp => {
                let (phone_tcp, mut server_tcp) =
                    (scenario.phone_tcp.clone(), scenario.server_tcp.clone());
                server_tcp.control = control.unwrap_or(server_tcp.control);
                let near = EndHost::client(PHONE, server, phone_tcp, client, seed);
                let far = EndHost::server(
                    address,
                    &[config.port],
                    server_tcp,
                    answers,
                    seed.wrapping_add(1),
                );
                (AppHost::Tcp(Box::new(near)), AppHost::Tcp(Box::new(far)))
            }
            TransportKind::Quic => {
                let quic = &scenario.quic;
                let near = QuicHost::client(PHONE, server, quic, client, seed);
                let far = QuicHost::server(server, quic, answers, seed.wrapping_add(1));
                (AppHost::Quic(Box::new(near)), AppHost::Quic(Box::new(far)))
            }
        };
        phone.push(near);
        servers.push(far);
    }
    let (phone, server) = (ScenarioHost::Phone(phone), ScenarioHost::Servers(servers));
    SimulatedUser { name, address: PHONE, phone, server, proxy: None, core, link }
}
