//! Captures a network interface (packet(7)): pcap with nanoseconds, Linux cooked, so that
//! all kinds of interface are read alike.

use std::io::{self, IoSliceMut, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::ifaddrs::getifaddrs;
use nix::net::if_::{InterfaceFlags, if_nameindex, if_nametoindex};
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType, bind,
    recvmsg, setsockopt, socket, sockopt,
};
use nix::sys::time::{TimeSpec, TimeVal, TimeValLike};

use crate::thread::StopFlag;

/// Bytes kept of each packet (chosen here: enough for the names in a client hello, with
/// which QUIC fills its packets, and the head of a request; other payload is not used).
const SNAP_BYTES: usize = 2_048;
/// Size of the kernel's buffer (chosen here: 0.1 s of 1 Gbit/s).
const KERNEL_BYTES: usize = 16 << 20;
/// Interval of checks for the end when no packets pass (chosen here).
const LOOK_US: i64 = 100_000;
/// Interval of checks for an interface that may vanish silently (chosen here: far below the
/// second within which events are reported).
const LOOK: Duration = Duration::from_millis(200);
/// pcap: times in nanoseconds, version 2.4, LINKTYPE_LINUX_SLL.
const MAGIC_NS: u32 = 0xa1b2_3c4d;
const LINK_SLL: u32 = 113;
const SLL_BYTES: usize = 16;
/// linux/if_packet.h.
const PACKET_OUTGOING: u8 = 4;
/// linux/if_arp.h.
const ARPHRD_LOOPBACK: u16 = 772;

/// Why an interface cannot be captured.
#[derive(Debug, thiserror::Error)]
pub enum InterfaceError {
    /// It does not exist.
    #[error("{name}: there is no such interface; there are {}", there.join(", "))]
    Unknown {
        /// The requested name.
        name: String,
        /// The existing ones.
        there: Vec<String>,
    },
    /// The kernel denies it.
    #[error(
        "{name}: capturing needs CAP_NET_RAW: be root, or give the program the capability \
         (setcap cap_net_raw+ep)"
    )]
    Denied {
        /// The interface.
        name: String,
    },
    /// Another error.
    #[error("{name}: {what}: {source}")]
    System {
        /// The interface.
        name: String,
        /// The attempted operation.
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },
}

/// A running capture of an interface. It ends after its duration, and with SIGINT or
/// SIGTERM, of which the first no longer kills the process.
#[derive(Debug)]
pub struct InterfaceCapture {
    socket: OwnedFd,
    name: String,
    /// Index of the interface; an unbound socket also receives packets of others.
    index: usize,
    /// An unbound socket gets no notice when the interface vanishes: when to check next.
    look_at: Option<Instant>,
    end: Option<Instant>,
    stop: StopFlag,
    dropped: Arc<AtomicU32>,
    frame: Vec<u8>,
    /// Part of the file that is not yet read.
    pending: Vec<u8>,
    at: usize,
}

impl InterfaceCapture {
    /// Starts a capture.
    ///
    /// # Errors
    /// There is no such interface, or the kernel denies it.
    pub fn open(name: &str, duration: Option<Duration>) -> Result<Self, InterfaceError> {
        let stop = StopFlag::new();
        let capture = Self::open_until(name, duration, stop.clone())?;
        stop.set_by_signals().map_err(|source| InterfaceError::System {
            name: name.to_owned(),
            what: "signal",
            source,
        })?;
        Ok(capture)
    }

    /// Starts a capture that runs until `stop` is set, and leaves signals alone.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_until(
        name: &str,
        duration: Option<Duration>,
        stop: StopFlag,
    ) -> Result<Self, InterfaceError> {
        let failed = |what| {
            move |errno: Errno| match errno {
                Errno::EPERM | Errno::EACCES => InterfaceError::Denied { name: name.to_owned() },
                errno => InterfaceError::System {
                    name: name.to_owned(),
                    what,
                    source: io::Error::from(errno),
                },
            }
        };
        let index = if_nametoindex(name)
            .map_err(|_| InterfaceError::Unknown { name: name.to_owned(), there: names() })?;
        let socket = socket(
            AddressFamily::Packet,
            SockType::Datagram,
            SockFlag::SOCK_CLOEXEC,
            SockProtocol::EthAll,
        )
        .map_err(failed("socket"))?;
        let address = link_address(name);
        if let Some(address) = &address {
            bind(socket.as_raw_fd(), address).map_err(failed("bind"))?;
        }
        // Without privilege, the kernel's own limit applies.
        let _ = setsockopt(&socket, sockopt::RcvBufForce, &KERNEL_BYTES)
            .or_else(|_| setsockopt(&socket, sockopt::RcvBuf, &KERNEL_BYTES));
        let look = TimeVal::microseconds(LOOK_US);
        setsockopt(&socket, sockopt::ReceiveTimeout, &look).map_err(failed("SO_RCVTIMEO"))?;
        setsockopt(&socket, sockopt::ReceiveTimestampns, &true)
            .map_err(failed("SO_TIMESTAMPNS"))?;
        setsockopt(&socket, sockopt::RxqOvfl, &1).map_err(failed("SO_RXQ_OVFL"))?;
        Ok(Self {
            socket,
            name: name.to_owned(),
            index: index as usize,
            look_at: address.is_none().then(Instant::now),
            end: duration.map(|duration| Instant::now() + duration),
            stop,
            dropped: Arc::default(),
            frame: vec![0; SNAP_BYTES],
            pending: file_header(),
            at: 0,
        })
    }

    /// Number of packets that the kernel has dropped so far because the reader was too slow; its
    /// counter has 32 bits (SO_RXQ_OVFL).
    #[must_use]
    pub fn dropped(&self) -> Arc<AtomicU32> {
        self.dropped.clone()
    }

    fn is_over(&self) -> bool {
        self.stop.is_set() || self.end.is_some_and(|end| Instant::now() >= end)
    }

    /// Appends the capture's file to `out`: until this many bytes are there, the time is
    /// over, or the capture ends.
    ///
    /// # Errors
    /// The interface is gone, or went down.
    pub fn read_for(
        &mut self,
        out: &mut Vec<u8>,
        most_bytes: usize,
        wait: Duration,
    ) -> io::Result<()> {
        let until = Instant::now() + wait;
        while out.len() < most_bytes && !self.is_over() {
            if self.at >= self.pending.len() {
                self.receive(Some(until))?;
            }
            let rest = self.pending.get(self.at..).unwrap_or_default();
            if rest.is_empty() || Instant::now() >= until {
                break;
            }
            out.extend_from_slice(rest);
            self.at = self.pending.len();
        }
        Ok(())
    }

    /// Checks what the kernel does not report for an interface without a link address
    /// (wwan in raw-IP mode, ppp, tun): that it went down, vanished, or was replaced by
    /// another of the same name.
    fn look(&mut self) -> io::Result<()> {
        let now = Instant::now();
        let Some(at) = self.look_at.as_mut().filter(|at| **at <= now) else { return Ok(()) };
        *at = now + LOOK;
        match if_nametoindex(self.name.as_str()) {
            Ok(index) if index as usize == self.index => {}
            Ok(_) | Err(_) => return Err(Errno::ENODEV.into()),
        }
        let is_up = is_up(&self.name)?;
        if is_up { Ok(()) } else { Err(Errno::ENETDOWN.into()) }
    }

    /// Waits for a packet; `None` if the capture is over, or the time.
    fn receive(&mut self, until: Option<Instant>) -> io::Result<()> {
        while !self.is_over() && until.is_none_or(|until| Instant::now() < until) {
            self.look()?;
            let mut control = nix::cmsg_space!(TimeSpec, u32);
            let mut pieces = [IoSliceMut::new(&mut self.frame)];
            let received = recvmsg::<LinkAddr>(
                self.socket.as_raw_fd(),
                &mut pieces,
                Some(&mut control),
                MsgFlags::MSG_TRUNC,
            );
            let message = match received {
                Ok(message) => message,
                Err(Errno::EAGAIN | Errno::EINTR) => continue,
                Err(errno) => return Err(errno.into()),
            };
            let Some(from) = message.address else { continue };
            // Loopback delivers each packet twice, outgoing and incoming.
            let twice = from.hatype() == ARPHRD_LOOPBACK && from.pkttype() == PACKET_OUTGOING;
            if from.ifindex() != self.index || twice {
                continue;
            }
            let mut time = None;
            for control in message.cmsgs()? {
                match control {
                    ControlMessageOwned::ScmTimestampns(at) => time = Some(at),
                    ControlMessageOwned::RxqOvfl(n) => {
                        self.dropped.store(n, Ordering::Relaxed);
                    }
                    _ => {}
                }
            }
            let Some(time) = time else { continue };
            let bytes = message.bytes;
            let kept = bytes.min(SNAP_BYTES);
            self.pending.clear();
            self.at = 0;
            for field in [
                u32::try_from(time.tv_sec()).unwrap_or(u32::MAX),
                u32::try_from(time.tv_nsec()).unwrap_or_default(),
                (SLL_BYTES + kept) as u32,
                (SLL_BYTES + bytes) as u32,
            ] {
                self.pending.extend(field.to_le_bytes());
            }
            cooked(&from, &mut self.pending);
            self.pending.extend(self.frame.get(..kept).unwrap_or_default());
            return Ok(());
        }
        self.pending.clear();
        self.at = 0;
        Ok(())
    }
}

impl Read for InterfaceCapture {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at >= self.pending.len() {
            self.receive(None)?;
        }
        let rest = self.pending.get(self.at..).unwrap_or_default();
        let n = rest.len().min(buffer.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..n), rest.get(..n)) {
            to.copy_from_slice(from);
        }
        self.at += n;
        Ok(n)
    }
}

/// LINKTYPE_LINUX_SLL: kind, hardware, address and its length, protocol.
fn cooked(from: &LinkAddr, out: &mut Vec<u8>) {
    out.extend(u16::from(from.pkttype()).to_be_bytes());
    out.extend(from.hatype().to_be_bytes());
    let mut address = [0; 8];
    let length = from.halen().min(6);
    for (to, byte) in address.iter_mut().zip(from.addr().unwrap_or_default()).take(length) {
        *to = byte;
    }
    out.extend((length as u16).to_be_bytes());
    out.extend(address);
    // Like the kernel: in network order.
    out.extend(from.protocol().to_ne_bytes());
}

fn file_header() -> Vec<u8> {
    let mut header = MAGIC_NS.to_le_bytes().to_vec();
    header.extend(2_u16.to_le_bytes());
    header.extend(4_u16.to_le_bytes());
    for field in [0, 0, (SLL_BYTES + SNAP_BYTES) as u32, LINK_SLL] {
        header.extend(field.to_le_bytes());
    }
    header
}

/// The address that binds a socket to an interface; one without a hardware address (TUN) has none.
fn link_address(name: &str) -> Option<LinkAddr> {
    let own = getifaddrs().ok()?.filter(|entry| entry.interface_name == name);
    own.filter_map(|entry| entry.address?.as_link_addr().copied()).next()
}

fn is_up(name: &str) -> io::Result<bool> {
    let mut own = getifaddrs()?.filter(|entry| entry.interface_name == name);
    Ok(own.any(|entry| entry.flags.contains(InterfaceFlags::IFF_UP)))
}

fn names() -> Vec<String> {
    let listed = if_nameindex().ok();
    let names = listed.iter().flatten().map(|each| each.name().to_string_lossy().into_owned());
    names.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_that_is_not_there() {
        let error = InterfaceCapture::open("none0", None).unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("none0: there is no such interface; there are "), "{text}");
    }
}
