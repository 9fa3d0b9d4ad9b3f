//! Headers of packets passing an interface (packet(7)): incoming ones only, or all.

use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use airmile_control::qcut::{ProbeId, Qcut};
use airmile_host::clock::{monotonic_ns, wall_ns};
use nix::errno::Errno;
use nix::ifaddrs::getifaddrs;
use nix::sys::socket::{
    ControlMessageOwned, LinkAddr, MsgFlags, bind, recvmsg, setsockopt, sockopt,
};
use nix::sys::time::{TimeSpec, TimeValLike};
use socket2::{Domain, Protocol, Socket, Type};

use crate::header::{self, IncomingAnswer};

/// linux/if_ether.h. A socket bound to one protocol receives incoming packets; one bound to
/// all of them also receives outgoing packets.
const ALL: u16 = 0x0003;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;

/// linux/if_packet.h.
const OUTGOING: u8 = 4;

/// Bytes read of a packet: headers with all their options.
const HEAD_BYTES: usize = 160;
/// Kernel buffer while this process is busy (chosen here: 0.1 s of 300 Mbit/s).
const KERNEL_BYTES: usize = 4 << 20;
/// Packets processed before other work gets a turn (chosen here).
const AT_A_TIME: usize = 4_096;

/// Sockets at an interface.
#[derive(Debug)]
pub(crate) struct Tap {
    sockets: Vec<Socket>,
    index: usize,
    /// The monotonic clock less the wall clock, in ns.
    offset_ns: i64,
}

/// A packet that passed.
pub(crate) struct PassedPacket<'a> {
    /// Time in ns of the gate's clock.
    pub(crate) at_ns: i64,
    pub(crate) is_outgoing: bool,
    /// Bytes of the IP packet.
    pub(crate) bytes: u32,
    pub(crate) head: &'a [u8],
}

impl Tap {
    /// Starts capturing; `outgoing`: also outgoing packets.
    pub(crate) fn open(name: &str, index: u32, outgoing: bool) -> io::Result<Self> {
        let protocols: &[u16] = if outgoing { &[ALL] } else { &[IPV4, IPV6] };
        let sockets = protocols.iter().map(|protocol| open(name, *protocol));
        let sockets = sockets.collect::<io::Result<_>>()?;
        Ok(Self { sockets, index: index as usize, offset_ns: monotonic_ns() - wall_ns() })
    }

    /// Become readable when a packet has passed.
    pub(crate) fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.sockets.iter().map(AsFd::as_fd)
    }

    /// Packets that have passed.
    pub(crate) fn receive(&mut self, mut take: impl FnMut(PassedPacket<'_>)) -> io::Result<()> {
        self.offset_ns = monotonic_ns() - wall_ns();
        for socket in &self.sockets {
            for _ in 0..AT_A_TIME {
                if !self.receive_one(socket, &mut take)? {
                    break;
                }
            }
        }
        Ok(())
    }

    fn receive_one(
        &self,
        socket: &Socket,
        take: &mut impl FnMut(PassedPacket<'_>),
    ) -> io::Result<bool> {
        let mut head = [0; HEAD_BYTES];
        let mut control = nix::cmsg_space!(TimeSpec);
        let mut pieces = [IoSliceMut::new(&mut head)];
        // Returns the whole length, even if truncated.
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_TRUNC;
        let fd = socket.as_raw_fd();
        let received = match recvmsg::<LinkAddr>(fd, &mut pieces, Some(&mut control), flags) {
            Ok(received) => received,
            Err(Errno::EAGAIN) => return Ok(false),
            // The link went down: packets arrive again when it is up.
            Err(Errno::EINTR | Errno::ENETDOWN) => return Ok(true),
            Err(error) => return Err(error.into()),
        };
        let (bytes, from) = (received.bytes, received.address);
        let stamp = received.cmsgs()?.find_map(|message| match message {
            ControlMessageOwned::ScmTimestampns(stamp) => Some(stamp.num_nanoseconds()),
            _ => None,
        });
        let Some(from) = from.filter(|from| from.ifindex() == self.index) else { return Ok(true) };
        take(PassedPacket {
            at_ns: stamp.map_or_else(monotonic_ns, |wall_ns| wall_ns + self.offset_ns),
            is_outgoing: from.pkttype() == OUTGOING,
            bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
            head: &head[..bytes.min(HEAD_BYTES)],
        });
        Ok(true)
    }
}

fn open(name: &str, protocol: u16) -> io::Result<Socket> {
    let protocol = Protocol::from(i32::from(protocol.to_be()));
    let socket = Socket::new(Domain::PACKET, Type::DGRAM, Some(protocol))?;
    // Without a link address (TUN) it cannot be bound: packets of other interfaces arrive,
    // too, and are skipped.
    let of_link = getifaddrs()?
        .filter(|entry| entry.interface_name == name)
        .find_map(|entry| entry.address?.as_link_addr().copied());
    if let Some(address) = of_link {
        bind(socket.as_raw_fd(), &address)?;
    }
    let _ = setsockopt(&socket, sockopt::RcvBufForce, &KERNEL_BYTES)
        .or_else(|_| setsockopt(&socket, sockopt::RcvBuf, &KERNEL_BYTES));
    setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
    Ok(socket)
}

/// Applies an incoming packet that answers an outgoing one: an acknowledgement, or a reply
/// to our echo.
pub(crate) fn apply_answer<P>(
    qcut: &mut Qcut<P>,
    identifier: Option<u16>,
    passed: &PassedPacket<'_>,
) {
    match header::incoming(passed.head) {
        Some(IncomingAnswer::Acknowledged { flow, up_to }) => {
            for number in up_to {
                qcut.acknowledged(passed.at_ns, flow, number);
            }
        }
        Some(IncomingAnswer::Echo(of, number)) if Some(of) == identifier => {
            qcut.probe_answered(passed.at_ns, ProbeId(number.into()));
        }
        _ => {}
    }
}
