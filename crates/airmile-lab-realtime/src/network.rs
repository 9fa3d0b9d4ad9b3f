//! Devices, addresses, routes and settings of a host's namespace.

use std::fs;
use std::io;
use std::net::Ipv4Addr;

use airmile_control::ControllerKind;
use airmile_emulate::tcp::LossDetection;
use airmile_emulate::{CapturePoint, PHONE_ADDRESS, SERVER_ADDRESS};
use airmile_host::Attempt;
use futures_util::TryStreamExt;
use rtnetlink::packet_route::IpProtocol;
use rtnetlink::packet_route::link::LinkAttribute;
use rtnetlink::packet_route::route::{RouteAttribute, RouteMetric, RouteType};
use rtnetlink::packet_route::rule::{RuleAction, RuleAttribute, RulePortRange};
use rtnetlink::{Handle, LinkUnspec, RouteMessageBuilder};
use tun_rs::{DeviceBuilder, SyncDevice};

use crate::error::{Result, netlink};

/// The kernel's settings of TCP (`scenario.server_tcp` and the like).
pub(crate) type Tcp = airmile_emulate::tcp::TcpConfig;

/// Queue length of a device, for the next TTI (chosen here: 120 Mbit of full packets; the
/// default of 500 is half a ms of 12 Gbit/s, and a whole window may be sent at once).
const DEVICE_PACKETS: u32 = 10_000;

/// Routing table for connections that a box intercepts.
const TAKEN: u32 = 100;

/// A device of a host.
#[derive(Debug, Clone, Copy)]
struct Link {
    name: &'static str,
    point: CapturePoint,
    /// Destinations reached by it; absent: all.
    to: Option<Ipv4Addr>,
}

/// Configuration of a host's namespace.
#[derive(Debug, Clone)]
pub(crate) struct Host {
    address: Option<Ipv4Addr>,
    links: Vec<Link>,
    tcp: Tcp,
    /// For a box: ports whose connections end here.
    taken: Vec<u16>,
    forwards: bool,
}

impl Host {
    /// The phone.
    pub(crate) fn phone(tcp: Tcp) -> Self {
        let link = Link { name: "lte0", point: CapturePoint::Phone, to: None };
        Self {
            address: Some(PHONE_ADDRESS),
            links: vec![link],
            tcp,
            taken: vec![],
            forwards: false,
        }
    }

    /// The server.
    pub(crate) fn server(tcp: Tcp) -> Self {
        let link = Link { name: "core0", point: CapturePoint::Server, to: None };
        let address = Some(SERVER_ADDRESS);
        Self { address, links: vec![link], tcp, taken: vec![], forwards: false }
    }

    /// A box that intercepts the connections to some ports and forwards the others.
    pub(crate) fn middlebox(tcp: Tcp, taken: Vec<u16>) -> Self {
        let ran = Link { name: "ran0", point: CapturePoint::ProxyRan, to: Some(PHONE_ADDRESS) };
        let core = Link { name: "core0", point: CapturePoint::ProxyCore, to: None };
        Self { address: None, links: vec![ran, core], tcp, taken, forwards: true }
    }

    /// Configures the caller's namespace as this host; returns its devices.
    pub(crate) fn set_up(self) -> Result<Vec<(CapturePoint, SyncDevice)>> {
        for (key, value) in self.sysctls() {
            let path = format!("/proc/sys/net/{key}");
            fs::write(&path, &value).attempt(|| format!("cannot set {path} to {value}"))?;
        }
        let mut devices = Vec::new();
        for link in &self.links {
            // Addresses and routes are set by netlink, and packets are at most the MTU: a
            // device without offload.
            let device = DeviceBuilder::new().name(link.name).enable(false).build_sync();
            let device = device.attempt(|| format!("cannot make the device {}", link.name))?;
            device
                .set_nonblocking(true)
                .attempt(|| format!("cannot use the device {}", link.name))?;
            devices.push((link.point, device));
        }
        with_netlink(async |handle| self.connect(&handle).await)?
            .attempt(|| "cannot set up addresses and routes".to_owned())?;
        Ok(devices)
    }

    /// The scenario's TCP options for which the kernel has a setting.
    fn sysctls(&self) -> Vec<(&'static str, String)> {
        let Tcp { timestamps, sack, slow_start_after_idle, receive, send_buffer_bytes, .. } =
            &self.tcp;
        let flag = |on: &bool| u8::from(*on).to_string();
        // Bits of ip-sysctl's tcp_recovery, and modes of its tcp_early_retrans.
        let finds_by_time = u8::from(self.tcp.loss_detection == LossDetection::Rack);
        let probes = if self.tcp.tail_loss_probe { 3 } else { 0 };
        // Linux counts half of a buffer as overhead (tcp_adv_win_scale 1).
        let buffers = |first: u64, most: u64| format!("4096 {} {}", 2 * first, 2 * most.max(first));
        let mut all = vec![
            ("ipv6/conf/all/disable_ipv6", "1".to_owned()),
            ("ipv6/conf/default/disable_ipv6", "1".to_owned()),
            ("ipv4/tcp_no_metrics_save", "1".to_owned()),
            ("ipv4/ip_unprivileged_port_start", "0".to_owned()),
            ("ipv4/tcp_timestamps", flag(timestamps)),
            ("ipv4/tcp_sack", flag(sack)),
            ("ipv4/tcp_slow_start_after_idle", flag(slow_start_after_idle)),
            ("ipv4/tcp_recovery", finds_by_time.to_string()),
            ("ipv4/tcp_early_retrans", probes.to_string()),
            ("ipv4/tcp_rmem", buffers(receive.buffer_bytes, receive.max_buffer_bytes)),
            ("ipv4/tcp_wmem", buffers(16_384, *send_buffer_bytes)),
        ];
        // Nothing to disable in a kernel without IPv6.
        all.retain(|(key, _)| {
            !key.starts_with("ipv6/") || fs::exists("/proc/sys/net/ipv6").is_ok_and(|there| there)
        });
        if self.forwards {
            // Packets of both sides have addresses other than the box's.
            all.push(("ipv4/ip_forward", "1".to_owned()));
            all.push(("ipv4/conf/all/rp_filter", "0".to_owned()));
            all.push(("ipv4/conf/default/rp_filter", "0".to_owned()));
            all.push(("ipv4/conf/all/send_redirects", "0".to_owned()));
        }
        all
    }

    async fn connect(&self, handle: &Handle) -> io::Result<()> {
        let up = LinkUnspec::new_with_name("lo").up().build();
        handle.link().set(up).execute().await.map_err(netlink)?;
        let mtu = u32::from(self.tcp.mss_bytes) + 40;
        for link in &self.links {
            let index = index_of(handle, link.name).await?;
            let message =
                LinkUnspec::new_with_index(index).mtu(mtu).txqueuelen(DEVICE_PACKETS).up().build();
            handle.link().set(message).execute().await.map_err(netlink)?;
            if let Some(address) = self.address {
                let add = handle.address().add(index, address.into(), 32);
                add.execute().await.map_err(netlink)?;
            }
            let route = self.route(index, link.to);
            handle.route().add(route).execute().await.map_err(netlink)?;
        }
        if !self.taken.is_empty() {
            self.take_connections(handle).await?;
        }
        Ok(())
    }

    /// A route with the scenario's congestion control and initial window.
    fn route(
        &self,
        index: u32,
        to: Option<Ipv4Addr>,
    ) -> rtnetlink::packet_route::route::RouteMessage {
        let mut route = RouteMessageBuilder::<Ipv4Addr>::new().output_interface(index);
        if let Some(to) = to {
            route = route.destination_prefix(to, 32);
        }
        if let Some(address) = self.address {
            route = route.pref_source(address);
        }
        let control = match self.tcp.control {
            ControllerKind::NewReno => "reno",
            ControllerKind::Cubic { .. } => "cubic",
            ControllerKind::Vegas => "vegas",
            ControllerKind::Bbr3 { .. } => "bbr3",
            ControllerKind::Copa { .. } => "copa",
            ControllerKind::Claw { .. } => "claw",
            ControllerKind::Cqic => "cqic",
            ControllerKind::Verus { .. } => "verus",
        };
        let metrics = vec![
            RouteMetric::CcAlgo(control.to_owned()),
            RouteMetric::InitCwnd(self.tcp.initial_window_segments),
        ];
        let mut route = route.build();
        route.attributes.push(RouteAttribute::Metrics(metrics));
        route
    }

    /// Directs packets to the intercepted ports to this host, whatever their address.
    async fn take_connections(&self, handle: &Handle) -> io::Result<()> {
        let lo = index_of(handle, "lo").await?;
        let local = RouteMessageBuilder::<Ipv4Addr>::new()
            .table_id(TAKEN)
            .kind(RouteType::Local)
            .scope(rtnetlink::packet_route::route::RouteScope::Host)
            .output_interface(lo)
            .build();
        handle.route().add(local).execute().await.map_err(netlink)?;
        for link in &self.links {
            for &port in &self.taken {
                let range = RulePortRange { start: port, end: port };
                let of_server = if link.point == CapturePoint::ProxyRan {
                    RuleAttribute::DestinationPortRange(range)
                } else {
                    RuleAttribute::SourcePortRange(range)
                };
                let mut rule = handle
                    .rule()
                    .add()
                    .v4()
                    .input_interface(link.name)
                    .table_id(TAKEN)
                    .action(RuleAction::ToTable);
                let attributes = &mut rule.message_mut().attributes;
                attributes.push(RuleAttribute::IpProtocol(IpProtocol::Tcp));
                attributes.push(of_server);
                rule.execute().await.map_err(netlink)?;
            }
        }
        Ok(())
    }
}

/// Runs a function with netlink, in the caller's namespace.
fn with_netlink<T>(work: impl AsyncFnOnce(Handle) -> T) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .attempt(|| "cannot start a runtime".to_owned())?;
    runtime.block_on(async {
        let (connection, handle, _) =
            rtnetlink::new_connection().attempt(|| "cannot open a netlink socket".to_owned())?;
        tokio::spawn(connection);
        Ok(work(handle).await)
    })
}

async fn index_of(handle: &Handle, name: &str) -> io::Result<u32> {
    let mut links = handle.link().get().match_name(name.to_owned()).execute();
    let link = links.try_next().await.map_err(netlink)?;
    link.map(|link| link.header.index).ok_or_else(|| io::Error::other(format!("no device {name}")))
}

/// Packets dropped by full devices in the caller's namespace.
pub(crate) fn lost_packets() -> Result<u64> {
    let count = async |handle: Handle| {
        let links: Vec<_> = handle.link().get().execute().try_collect().await.map_err(netlink)?;
        let attributes = links.into_iter().flat_map(|link| link.attributes);
        let lost = attributes.map(|attribute| match attribute {
            LinkAttribute::Stats64(stats) => stats.tx_dropped,
            _ => 0,
        });
        Ok::<u64, io::Error>(lost.sum())
    };
    Ok(with_netlink(count)?.attempt(|| "cannot read the devices' counters".to_owned())?)
}
