//! The approach of a VPN app: routes lead into a TUN device, the gate reads it, and
//! released packets are sent through the interface directly.

use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsFd, BorrowedFd};

use airmile_host::Attempt;
use nix::ifaddrs::getifaddrs;
use nix::net::if_::if_nametoindex;
use nix::sys::socket::{setsockopt, sockopt};
use socket2::{Domain, Protocol, Socket, Type};
use tun_rs::{DeviceBuilder, SyncDevice};

use crate::error::{Error, NEEDS_ROOT, Result};
use crate::firewall::MARK;
use crate::header;
use crate::instance::{StateFile, SystemChange};
use crate::netlink::{Netlink, route};
use crate::options::Deploy;
use crate::path::{PacketPath, TakePacket};

/// Table of our routes, and priority of our rule: the last before the main table's
/// (32,766). Existing rules before it, which may lead into a VPN, still apply first: a rule
/// without a priority of its own gets a number below the existing ones.
const TABLE: u32 = 0xa11e;
const RULE: u32 = 32_765;

/// IPPROTO_RAW: packets include their IP header (raw(7)).
const WITH_HEADER: i32 = 255;

/// Queue length of the device (chosen here).
const DEVICE_PACKETS: u32 = 4_096;
/// Kernel send buffer (chosen here).
const SEND_BYTES: usize = 4 << 20;
/// Packets processed before other work gets a turn (chosen here).
const AT_A_TIME: usize = 256;
/// Maximum size of an IP packet.
const MOST_BYTES: usize = 65_535;

/// The device and the outgoing sockets.
pub(crate) struct Tunnel {
    device: SyncDevice,
    /// For IPv4 and IPv6; the second if the host has it.
    out: [Option<Socket>; 2],
    buffer: Vec<u8>,
    failed: u64,
    /// Messages for the user.
    pub(crate) notes: Vec<String>,
}

impl Tunnel {
    /// Creates the device and redirects to it the traffic that would leave by the
    /// interface.
    pub(crate) fn open(state: &mut StateFile, interface: &str, index: u32) -> Result<Self> {
        let name = format!("qcut{index}");
        let mtu = mtu_of(interface);
        let device = DeviceBuilder::new().name(&name).enable(false).build_sync();
        let device = device.map_err(|error| {
            let why = format!(
                "cannot make the device {name}: {error} (in a container: --device /dev/net/tun)"
            );
            Error::deployment(Deploy::Tun, interface, &why)
        })?;
        device.set_nonblocking(true).attempt(|| format!("cannot use the device {name}"))?;
        let mut tunnel = Self {
            device,
            out: [None, None],
            buffer: vec![0; MOST_BYTES],
            failed: 0,
            notes: Vec::new(),
        };
        let out = |domain| {
            open_out(domain, interface)
                .refused(|| format!("cannot send by {interface}"), NEEDS_ROOT)
        };
        tunnel.out[0] = Some(out(Domain::IPV4)?);
        tunnel.out[1] = out(Domain::IPV6).ok();
        let own = if_nametoindex(name.as_str())
            .map_err(io::Error::from)
            .attempt(|| format!("cannot find the device {name}"))?;
        let mut netlink = Netlink::route().attempt(|| "cannot open a netlink socket".to_owned())?;
        route::set_up(&mut netlink, own, mtu, DEVICE_PACKETS)
            .attempt(|| format!("cannot set {name} up"))?;
        accept_answers(state, interface)?;
        for family in route::FAMILIES {
            tunnel.lead(state, &mut netlink, family, (interface, index, own))?;
        }
        Ok(tunnel)
    }

    fn lead(
        &mut self,
        state: &mut StateFile,
        netlink: &mut Netlink,
        family: u8,
        (interface, index, own): (&str, u32, u32),
    ) -> Result<()> {
        let source = address_of(interface, family);
        // Without an address no traffic of the family leaves by the interface.
        if source.is_none() || (family != route::FAMILIES[0] && self.out[1].is_none()) {
            return Ok(());
        }
        state.add(SystemChange::Routes { family, table: TABLE })?;
        // Remains of an instance that was killed.
        let _ = route::empty(netlink, family, TABLE);
        let left_out = route::copy_routes(netlink, family, (index, own), TABLE, source)
            .attempt(|| "cannot copy routes".to_owned())?;
        if left_out > 0 {
            let note = format!("{left_out} multipath routes do not pass the gate");
            self.notes.push(note);
        }
        state.add(SystemChange::Rule { family, priority: RULE, mark: MARK, table: TABLE })?;
        Ok(route::add_rule(netlink, (family, RULE), MARK, TABLE)
            .attempt(|| "cannot add a routing rule".to_owned())?)
    }

    fn send(&mut self, packet: &[u8]) -> io::Result<()> {
        let to = match header::outgoing(packet, 0).1 {
            Some(IpAddr::V4(to)) => SocketAddr::from(SocketAddrV4::new(to, 0)),
            Some(IpAddr::V6(to)) => SocketAddrV6::new(to, 0, 0, 0).into(),
            None => return Err(io::ErrorKind::InvalidData.into()),
        };
        let socket = self.out[usize::from(to.is_ipv6())].as_ref();
        let socket = socket.ok_or(io::ErrorKind::Unsupported)?;
        socket.send_to(packet, &to.into()).map(drop)
    }
}

impl PacketPath for Tunnel {
    type Packet = Vec<u8>;

    fn fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }

    fn receive(&mut self, take: &mut TakePacket<'_, Vec<u8>>) -> io::Result<()> {
        for _ in 0..AT_A_TIME {
            match self.device.recv(&mut self.buffer) {
                Ok(length) => {
                    let packet = self.buffer.get(..length).unwrap_or_default().to_vec();
                    let bytes = u32::try_from(length).unwrap_or(u32::MAX);
                    let (info, far) = header::outgoing(&packet, bytes);
                    // Neighbour and router discovery of the device itself.
                    if !far.is_some_and(is_of_link) {
                        take(info, far, packet);
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn release(&mut self, packet: Vec<u8>) {
        if self.send(&packet).is_err() {
            self.failed += 1;
        }
    }

    fn discard(&mut self, _: Vec<u8>) {}

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn failed(&self) -> u64 {
        self.failed
    }
}

/// Whether an address is link-scoped (RFC 4291, 2.5.6 and 2.7).
const fn is_of_link(to: IpAddr) -> bool {
    match to {
        IpAddr::V4(_) => false,
        IpAddr::V6(to) => to.is_unicast_link_local() || to.is_multicast(),
    }
}

fn open_out(domain: Domain, interface: &str) -> io::Result<Socket> {
    let socket = Socket::new(domain, Type::RAW, Some(Protocol::from(WITH_HEADER)))?;
    setsockopt(&socket, sockopt::Mark, &MARK)?;
    setsockopt(&socket, sockopt::BindToDevice, &interface.into())?;
    let _ = setsockopt(&socket, sockopt::SndBufForce, &SEND_BYTES);
    // The socket receives nothing.
    let _ = setsockopt(&socket, sockopt::RcvBuf, &2_048);
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Source address of packets that leave by the interface.
fn address_of(interface: &str, family: u8) -> Option<IpAddr> {
    let own = getifaddrs().ok()?.filter(|entry| entry.interface_name == interface);
    let mut of_family = own.filter_map(|entry| {
        let address = entry.address?;
        match family {
            2 => address.as_sockaddr_in().map(|at| IpAddr::from(at.ip())),
            _ => address.as_sockaddr_in6().map(|at| IpAddr::from(at.ip())),
        }
    });
    of_family.find(|address| match address {
        IpAddr::V4(_) => true,
        IpAddr::V6(address) => !address.is_unicast_link_local(),
    })
}

/// A strict reverse-path filter would drop packets that come back by the interface, as the
/// route there now leads to the device: sets the filter to loose (ip-sysctl, rp_filter).
fn accept_answers(state: &mut StateFile, interface: &str) -> Result<()> {
    const STRICT: &str = "1";
    const LOOSE: &str = "2";
    let path = |of: &str| format!("/proc/sys/net/ipv4/conf/{of}/rp_filter");
    let of = |name: &str| read_setting(&path(name)).unwrap_or_default();
    let (all, own) = (of("all"), of(interface));
    // The larger of the two settings applies.
    if own == LOOSE || all == LOOSE || (own != STRICT && all != STRICT) {
        return Ok(());
    }
    state.add(SystemChange::Setting { path: path(interface), value: own })?;
    Ok(fs::write(path(interface), LOOSE).attempt(|| format!("cannot set {}", path(interface)))?)
}

/// MTU of an interface in bytes.
pub(crate) fn mtu_of(interface: &str) -> u32 {
    let mtu = read_setting(&format!("/sys/class/net/{interface}/mtu"));
    mtu.and_then(|text| text.parse().ok()).unwrap_or(1_500)
}

fn read_setting(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}
