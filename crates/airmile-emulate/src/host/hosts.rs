//! The phones and servers of a scenario: who runs which application, and what
//! the applications noted down.

use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddrV4};

use airmile_control::claw::Feedback;
use airmile_control::{ControllerKind, RadioNeed};
use airmile_model::Direction;

use crate::net::{Host, Packet};
use crate::proxy::Proxy;
use crate::quic::{QuicControl, QuicHost};
use crate::radio::{self, PhoneView};
use crate::random::{Owner, Process};
use crate::run::{AppNote, Timed};
use crate::scenario::{AppConfig, Carrier, CoreConfig, LinkConfig, Scenario};
use crate::simulation::User;
use crate::workload::{AppEvent, AppEventKind, EndHost, Server, UnderWay};

/// The measured phone's address (RFC 1918); every user has it, on a network of
/// its own.
pub(crate) const PHONE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

/// The servers' network (TEST-NET-3, RFC 5737); each application has its own.
pub(crate) const fn server_address(app: usize) -> Ipv4Addr {
    Ipv4Addr::new(203, 0, 113, (app % 254) as u8 + 1)
}

const MS_NS: i64 = 1_000_000;

/// An application with its transport, at either end.
#[derive(Debug)]
pub(crate) enum Member {
    Tcp(Box<EndHost>),
    Quic(Box<QuicHost>),
}

impl Member {
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

    /// A client tells of its radio.
    fn on_radio(&mut self, now_ns: i64, said: &Feedback) {
        match self {
            Self::Tcp(host) => host.on_radio(now_ns, said),
            Self::Quic(host) => host.on_radio(now_ns, said),
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
pub(crate) enum Party {
    /// A phone: an application for each server.
    Phone(Vec<Member>),
    /// The servers of a phone.
    Servers(Vec<Member>),
    /// The middlebox.
    Proxy(Box<Proxy>),
    /// A host outside of the run.
    Outside(Outside),
}

/// A host outside of the run: what arrives waits to be taken to it, and what it
/// sends comes by [`Simulation::send`](crate::Simulation::send).
#[derive(Debug, Default)]
pub(crate) struct Outside {
    pub(crate) arrived: VecDeque<(i64, Packet)>,
}

impl Party {
    /// The member that a packet is for.
    fn member(&mut self, packet: &Packet) -> Option<&mut Member> {
        let (members, server) = match self {
            Self::Phone(members) => (members, packet.src.ip()),
            Self::Servers(members) => (members, packet.dst.ip()),
            Self::Proxy(_) | Self::Outside(_) => return None,
        };
        let index = usize::from(server.octets()[3]).checked_sub(1)?;
        members.get_mut(index)
    }

    fn members(&self) -> &[Member] {
        match self {
            Self::Phone(members) | Self::Servers(members) => members,
            Self::Proxy(_) | Self::Outside(_) => &[],
        }
    }

    fn members_mut(&mut self) -> &mut [Member] {
        match self {
            Self::Phone(members) | Self::Servers(members) => members,
            Self::Proxy(_) | Self::Outside(_) => &mut [],
        }
    }

    /// Its hosts that speak TCP; the box's connections are its own.
    pub(crate) fn tcp_hosts(&self) -> impl Iterator<Item = &EndHost> {
        self.members().iter().filter_map(|member| match member {
            Member::Tcp(host) => Some(host.as_ref()),
            Member::Quic(_) => None,
        })
    }

    /// The same, to take events from.
    pub(crate) fn tcp_hosts_mut(&mut self) -> impl Iterator<Item = &mut EndHost> {
        self.members_mut().iter_mut().filter_map(|member| match member {
            Member::Tcp(host) => Some(host.as_mut()),
            Member::Quic(_) => None,
        })
    }

    /// Whether all applications have done what they wanted.
    pub(crate) fn is_done(&self) -> bool {
        self.members().iter().all(Member::is_done)
    }

    /// Exchanges that have begun and not ended, by application.
    pub(crate) fn under_way(&self) -> Vec<(usize, UnderWay)> {
        let of = |(app, member): (usize, &Member)| {
            member.under_way().into_iter().map(move |exchange| (app, exchange))
        };
        self.members().iter().enumerate().flat_map(of).collect()
    }

    /// What the applications noted down, by application.
    pub(crate) fn events(&mut self) -> Vec<(usize, AppEvent)> {
        let mut out = Vec::new();
        for (app, member) in self.members_mut().iter_mut().enumerate() {
            out.extend(std::iter::from_fn(|| member.poll_event()).map(|event| (app, event)));
        }
        out
    }
}

impl Host for Party {
    fn handle_packet(&mut self, now_ns: i64, packet: Packet) {
        if let Self::Proxy(proxy) = self {
            proxy.handle_packet(now_ns, packet);
        } else if let Self::Outside(outside) = self {
            outside.arrived.push_back((now_ns, packet));
        } else if let Some(member) = self.member(&packet) {
            if let Some(said) = radio::parse(&packet) {
                return member.on_radio(now_ns, &said);
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

    fn poll_transmit(&mut self, now_ns: i64) -> Option<Packet> {
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

/// The users of a scenario that begins at `start_ns`; the first is measured.
pub(crate) fn users(scenario: &Scenario, start_ns: i64) -> Vec<User<Party>> {
    let (name, owner, apps) = (String::new(), Owner::PHONE, &scenario.apps);
    let phone = Role { name, owner, apps, start_ns, control: None };
    let mut users = vec![user(scenario, phone, scenario.core.clone(), scenario.link.clone())];
    if let Some(config) = &scenario.proxy {
        users[0].proxy = Some(Party::Proxy(Box::new(Proxy::new(config.clone(), scenario.seed))));
    }
    let mut numbers: BTreeMap<String, u16> = BTreeMap::new();
    for other in &scenario.others {
        let runs: Vec<&str> = other.apps.iter().map(|app| app.name.as_str()).collect();
        let number = numbers.entry(runs.join(" ")).or_default();
        for _ in 0..other.count {
            // Told apart by what they run, and by number among those who do.
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

/// What the servers of each user want to be told of its phone's radio, in the order of
/// [`users`].
pub(crate) fn radio_needs(scenario: &Scenario) -> Vec<Option<RadioNeed>> {
    let of = |apps: &[AppConfig], control: Option<ControllerKind>| {
        let tcp = control.unwrap_or(scenario.server_tcp.control);
        apps.iter().find_map(|app| match (app.transport, scenario.quic.control) {
            (Carrier::Tcp, _) => tcp.radio_need(),
            (Carrier::Quic, QuicControl::Ours(kind)) => kind.radio_need(),
            (Carrier::Quic, _) => None,
        })
    };
    let others = scenario.others.iter().flat_map(|other| {
        let need = of(&other.apps, other.control);
        std::iter::repeat_n(need, other.count.into())
    });
    std::iter::once(of(&scenario.apps, None)).chain(others).collect()
}

/// Who runs which applications, and from when on.
struct Role<'a> {
    name: String,
    owner: Owner,
    apps: &'a [AppConfig],
    start_ns: i64,
    /// Of the servers' TCP, in place of the scenario's.
    control: Option<ControllerKind>,
}

fn user(scenario: &Scenario, role: Role<'_>, core: CoreConfig, link: LinkConfig) -> User<Party> {
    let Role { name, owner, apps, start_ns, control } = role;
    let mut phone = Vec::new();
    let mut servers = Vec::new();
    for (app, config) in apps.iter().enumerate() {
        // A seed for each, so that another application shifts none of them.
        let seed = Owner::named(&config.name).seed(owner.seed(scenario.seed));
        let address = server_address(app);
        let client = config.workload.client(start_ns + i64::from(config.start_ms) * MS_NS, seed);
        let server = SocketAddrV4::new(address, config.port);
        let answers = Box::new(Server::new());
        let (near, far) = match config.transport {
            Carrier::Tcp => {
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
                (Member::Tcp(Box::new(near)), Member::Tcp(Box::new(far)))
            }
            Carrier::Quic => {
                let quic = &scenario.quic;
                let near = QuicHost::client(PHONE, server, quic, client, seed);
                let far = QuicHost::server(server, quic, answers, seed.wrapping_add(1));
                (Member::Quic(Box::new(near)), Member::Quic(Box::new(far)))
            }
        };
        phone.push(near);
        servers.push(far);
    }
    let (phone, server) = (Party::Phone(phone), Party::Servers(servers));
    User { name, address: PHONE, phone, server, proxy: None, core, link }
}

/// A transfer under way.
#[derive(Debug)]
struct Begun {
    app: usize,
    transfer: u64,
    start_ns: i64,
    upload_bytes: u64,
}

/// The name of an application's transfer.
fn transfer_id(app: &str, transfer: u64) -> String {
    format!("{app}-{}", transfer + 1)
}

/// Turns the applications' events into notes and transfers.
#[derive(Debug, Default)]
pub(crate) struct Notebook {
    begun: Vec<Begun>,
    pub(crate) notes: Vec<AppNote>,
    pub(crate) ended: Vec<Timed>,
    /// Those that failed, or had not ended when the run was cut.
    pub(crate) unfinished: Vec<Timed>,
    /// Bitrates of segments, by application.
    pub(crate) choices: BTreeMap<String, Vec<u64>>,
}

impl Notebook {
    /// Takes an event of an application.
    pub(crate) fn take(&mut self, apps: &[AppConfig], app: usize, event: AppEvent) {
        let AppEvent { at_ns, kind } = event;
        let name = apps.get(app).map_or("app", |config| config.name.as_str());
        let id_of = |transfer: u64| transfer_id(name, transfer);
        let mut note = AppNote::new(at_ns, name);
        match kind {
            AppEventKind::RequestStarted { transfer, path, upload_bytes, .. } => {
                self.begun.push(Begun { app, transfer, start_ns: at_ns, upload_bytes });
                note.event = "request";
                note.id = Some(id_of(transfer));
                note.what = Some(path);
                note.bytes = Some(upload_bytes).filter(|&bytes| bytes > 0);
            }
            AppEventKind::FirstByte { transfer } => {
                note.event = "first_byte";
                note.id = Some(id_of(transfer));
            }
            AppEventKind::Ended { transfer, bytes, failed } => {
                note.event = if failed { "failed" } else { "end" };
                note.id = Some(id_of(transfer));
                note.bytes = Some(bytes);
                self.end(app, transfer, bytes, failed, at_ns, id_of(transfer));
            }
            AppEventKind::SegmentChosen { segment, bitrate_bps, buffer_ns, .. } => {
                self.choose(name, segment, bitrate_bps);
                note.event = "segment_chosen";
                note.what = Some(format!("segment {segment}, {} ms in store", buffer_ns / MS_NS));
                note.value = Some(bitrate_bps as f64);
            }
            AppEventKind::PlaybackStarted => note.event = "playback_started",
            AppEventKind::Stalled => note.event = "stalled",
            AppEventKind::Resumed { stalled_ns } => {
                note.event = "resumed";
                note.value = Some(stalled_ns as f64 / 1e6);
            }
            AppEventKind::PlaybackEnded => note.event = "playback_ended",
            AppEventKind::PageStarted { page } => {
                note.event = "page_started";
                note.what = Some(format!("page {page}"));
            }
            AppEventKind::PageLoaded { page, bytes, duration_ns } => {
                note.event = "page_loaded";
                note.what = Some(format!("page {page}"));
                note.bytes = Some(bytes);
                note.value = Some(duration_ns as f64 / 1e6);
            }
            AppEventKind::Done => note.event = "done",
        }
        self.notes.push(note);
    }

    /// A segment's bitrate; one that is asked for again has its last.
    fn choose(&mut self, app: &str, segment: u32, bitrate_bps: u64) {
        let segments = self.choices.entry(app.to_owned()).or_default();
        segments.truncate(segment as usize);
        segments.push(bitrate_bps);
    }

    fn end(
        &mut self,
        app: usize,
        transfer: u64,
        bytes: u64,
        failed: bool,
        end_ns: i64,
        id: String,
    ) {
        let found = self.begun.iter().position(|b| (b.app, b.transfer) == (app, transfer));
        let Some(begun) = found.map(|index| self.begun.swap_remove(index)) else { return };
        let uploads = begun.upload_bytes > bytes;
        let (dir, bytes) =
            if uploads { (Direction::Ul, begun.upload_bytes) } else { (Direction::Dl, bytes) };
        let start_ns = begun.start_ns;
        let timed = Timed { id, dir, start_ns, end_ns, bytes, unfinished: failed };
        if failed { self.unfinished.push(timed) } else { self.ended.push(timed) }
    }

    /// The run is over: what has begun stays unfinished. Of transfers that failed
    /// those remain that were not asked for again.
    pub(crate) fn cut(&mut self, apps: &[AppConfig], under_way: &[(usize, UnderWay)], end_ns: i64) {
        let mut cut = Vec::new();
        for begun in &self.begun {
            let is_it = |(app, way): &&(usize, UnderWay)| {
                (*app, way.transfer) == (begun.app, begun.transfer)
            };
            let found = under_way.iter().find(is_it).map(|(_, way)| *way);
            let way = found.unwrap_or(UnderWay {
                transfer: begun.transfer,
                uploads: begun.upload_bytes > 0,
                bytes: 0,
            });
            let dir = if way.uploads { Direction::Ul } else { Direction::Dl };
            let name = apps.get(begun.app).map_or("app", |config| config.name.as_str());
            let (id, start_ns) = (transfer_id(name, begun.transfer), begun.start_ns);
            cut.push(Timed { id, dir, start_ns, end_ns, bytes: way.bytes, unfinished: true });
        }
        let again =
            |failed: &Timed| self.ended.iter().chain(&cut).any(|other| other.id == failed.id);
        let mut kept: Vec<Timed> = Vec::new();
        for failed in self.unfinished.drain(..).rev().filter(|failed| !again(failed)) {
            if !kept.iter().any(|later| later.id == failed.id) {
                kept.push(failed);
            }
        }
        kept.extend(cut);
        self.unfinished = kept;
    }
}
