//! State of the kernel's TCP senders, from the `TCP_INFO` of all sockets in a host's
//! namespace (sock_diag(7)).

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use airmile_emulate::tcp::{Limit, Snapshot};
use airmile_emulate::{PHONE_ADDRESS, SERVER_ADDRESS, SenderPlace, SenderState};
use airmile_host::Attempt;
use airmile_host::clock::monotonic_ns;
use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_sock_diag::SockDiagMessage;
use netlink_packet_sock_diag::constants::{AF_INET, AF_INET6, IPPROTO_TCP};
use netlink_packet_sock_diag::inet::nlas::Nla;
use netlink_packet_sock_diag::inet::{ExtensionFlags, InetRequest, SocketId, StateFlags};
use netlink_sys::protocols::NETLINK_SOCK_DIAG;
use netlink_sys::{Socket, SocketAddr};

use crate::error::Result;
use crate::namespace::Namespace;
use crate::recorder::Senders;

/// Polling interval (chosen here: several times within the shortest round trip of the
/// scenarios, 20 ms, at negligible load).
const EVERY: Duration = Duration::from_millis(10);

/// Maximum size of a part of the kernel's answer to a dump (netlink(7): a larger buffer has
/// no use; it has 32 KiB since Linux 4.9).
const ANSWER_BYTES: usize = 32_768;

/// TCP states (the kernel's tcp_states.h) in which a socket may have data to send.
const SENDING: StateFlags = StateFlags::ESTABLISHED
    .union(StateFlags::FIN_WAIT1)
    .union(StateFlags::CLOSE_WAIT)
    .union(StateFlags::LAST_ACK)
    .union(StateFlags::CLOSING);

/// Conversion from the monotonic clock to the run's clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunClock {
    /// A time of the monotonic clock.
    pub(crate) monotonic_ns: i64,
    /// The same time in ns since the Unix epoch.
    pub(crate) wall_ns: i64,
}

impl RunClock {
    fn now_ns(self) -> i64 {
        self.wall_ns + monotonic_ns() - self.monotonic_ns
    }
}

/// Polls the senders of a host in a thread of its namespace, until stopped.
pub(crate) fn watch(
    namespace: &Namespace,
    clock: RunClock,
    out: Senders,
    stop: Arc<AtomicBool>,
) -> Result<JoinHandle<()>> {
    let place = place_of(namespace.name());
    let look = move || -> io::Result<()> {
        let mut senders = KernelSenders::new()?;
        while !stop.load(Ordering::Relaxed) {
            let at_ns = clock.now_ns();
            senders.look(&mut |local, remote, snapshot| {
                let place = place(local);
                out.send(SenderState { at_ns, place, local, remote, snapshot });
            })?;
            thread::sleep(EVERY);
        }
        Ok(())
    };
    // Without the kernel's support nothing is reported.
    let look = move || drop(look());
    let start = || thread::Builder::new().name("senders".to_owned()).spawn(look);
    Ok(namespace.run(start)?.attempt(|| "cannot start the thread that polls senders".to_owned())?)
}

/// The role of a host's socket, from its local address.
fn place_of(host: &'static str) -> impl Fn(SocketAddrV4) -> SenderPlace + Send + 'static {
    move |local| match host {
        "phone" => SenderPlace::Phone,
        "server" => SenderPlace::Server,
        // It answers for the server.
        _ if *local.ip() == SERVER_ADDRESS => SenderPlace::ProxyToPhone,
        _ => SenderPlace::ProxyToServer,
    }
}

/// The senders of a namespace.
struct KernelSenders {
    socket: Socket,
    requests: [Vec<u8>; 2],
    last: HashMap<(SocketAddrV4, SocketAddrV4), Snapshot>,
}

impl KernelSenders {
    fn new() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_SOCK_DIAG)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        // Dual-stack servers have IPv6 sockets.
        let requests = [(AF_INET, SocketId::new_v4()), (AF_INET6, SocketId::new_v6())];
        Ok(Self { socket, requests: requests.map(request), last: HashMap::new() })
    }

    /// Reports changes since the last poll.
    fn look(
        &mut self,
        report: &mut dyn FnMut(SocketAddrV4, SocketAddrV4, Snapshot),
    ) -> io::Result<()> {
        for request in &self.requests {
            self.socket.send(request, 0)?;
            let mut is_done = false;
            while !is_done {
                let mut answer = Vec::with_capacity(ANSWER_BYTES);
                self.socket.recv(&mut answer, 0)?;
                is_done = read(&answer, &mut |local, remote, snapshot| {
                    if self.last.insert((local, remote), snapshot) != Some(snapshot) {
                        report(local, remote, snapshot);
                    }
                })?;
            }
        }
        Ok(())
    }
}

/// A dump request for all TCP sockets of a family that may send.
fn request((family, socket_id): (u8, SocketId)) -> Vec<u8> {
    let request = InetRequest {
        family,
        protocol: IPPROTO_TCP,
        extensions: ExtensionFlags::INFO,
        states: SENDING,
        socket_id,
    };
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | NLM_F_DUMP;
    let mut message = NetlinkMessage::new(header, SockDiagMessage::InetRequest(request).into());
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    bytes
}

/// Parses a datagram of the kernel's answer; returns whether it was the last.
fn read(
    mut answer: &[u8],
    report: &mut dyn FnMut(SocketAddrV4, SocketAddrV4, Snapshot),
) -> io::Result<bool> {
    while !answer.is_empty() {
        let message = NetlinkMessage::<SockDiagMessage>::deserialize(answer);
        let message = message.map_err(|e| io::Error::other(e.to_string()))?;
        let bytes = (message.header.length as usize).next_multiple_of(4).max(4);
        answer = answer.get(bytes..).unwrap_or_default();
        match message.payload {
            NetlinkPayload::InnerMessage(SockDiagMessage::InetResponse(response)) => {
                let id = &response.header.socket_id;
                let local = address(id.source_address, id.source_port);
                let remote = address(id.destination_address, id.destination_port);
                let info = response.nlas.iter().find_map(|nla| match nla {
                    Nla::TcpInfo(info) => snapshot(info),
                    _ => None,
                });
                if let (Some(local), Some(remote), Some(info)) = (local, remote, info) {
                    report(local, remote, info);
                }
            }
            NetlinkPayload::Done(_) => return Ok(true),
            NetlinkPayload::Error(error) => return Err(error.to_io()),
            _ => {}
        }
    }
    Ok(false)
}

/// An address of the emulated network; others belong to a host's internal traffic.
fn address(ip: IpAddr, port: u16) -> Option<SocketAddrV4> {
    let ip = match ip {
        IpAddr::V4(ip) => ip,
        IpAddr::V6(ip) => ip.to_ipv4_mapped()?,
    };
    let ours: [Ipv4Addr; 2] = [PHONE_ADDRESS, SERVER_ADDRESS];
    ours.contains(&ip).then_some(SocketAddrV4::new(ip, port))
}

/// `struct tcp_info` of linux/tcp.h, whose layout only grows at its end. Its times are in
/// us, its windows in segments.
fn snapshot(info: &[u8]) -> Option<Snapshot> {
    /// TCP_CA_Recovery, followed by TCP_CA_Loss.
    const RECOVERY: u8 = 3;
    /// TCP_INFINITE_SSTHRESH.
    const NO_SSTHRESH: u32 = 0x7fff_ffff;
    let u32_at = |at: usize| {
        let bytes = info.get(at..at + 4)?;
        Some(u32::from_ne_bytes(bytes.try_into().ok()?))
    };
    let u64_at = |at: usize| {
        let bytes = info.get(at..at + 8)?;
        Some(u64::from_ne_bytes(bytes.try_into().ok()?))
    };
    let ns = |us: u32| i64::from(us) * 1_000;
    let ca_state = *info.get(1)?;
    let (rto, snd_mss) = (u32_at(8)?, u64::from(u32_at(16)?));
    let [unacked, sacked, lost, retrans] = [u32_at(24)?, u32_at(28)?, u32_at(32)?, u32_at(36)?];
    let (rtt, rttvar, ssthresh, cwnd) = (u32_at(68)?, u32_at(72)?, u32_at(76)?, u32_at(80)?);
    let (total_retrans, bytes_acked, unsent) = (u32_at(100)?, u64_at(120)?, u32_at(144)?);
    let min_rtt = u32_at(148)?;
    // Since Linux 5.4 and 6.2.
    let (snd_wnd, rcv_wnd) = (u32_at(228).unwrap_or(0), u32_at(232).unwrap_or(0));
    let segments = |n: u32| u64::from(n) * snd_mss;
    // tcp_packets_in_flight().
    let pipe = (unacked + retrans).saturating_sub(sacked + lost);
    let flight_size_bytes = segments(unacked);
    let limit = if unacked == 0 && unsent == 0 {
        Limit::Idle
    } else if unsent == 0 {
        Limit::Application
    } else if pipe >= cwnd {
        Limit::CongestionWindow
    } else if snd_wnd > 0 && flight_size_bytes + snd_mss > u64::from(snd_wnd) {
        Limit::ReceiveWindow
    } else {
        Limit::Pacing
    };
    let has_rtt = rtt > 0;
    Some(Snapshot {
        cwnd_bytes: segments(cwnd),
        ssthresh_bytes: if ssthresh >= NO_SSTHRESH { u64::MAX } else { segments(ssthresh) },
        flight_size_bytes,
        pipe_bytes: segments(pipe),
        rwnd_bytes: snd_wnd.into(),
        srtt_ns: has_rtt.then(|| ns(rtt)),
        rttvar_ns: ns(rttvar),
        min_rtt_ns: (has_rtt && min_rtt != u32::MAX).then(|| ns(min_rtt)),
        rto_ns: ns(rto),
        limit,
        in_recovery: ca_state >= RECOVERY,
        acked_bytes: bytes_acked,
        retransmissions: total_retrans.into(),
        receive_buffer_bytes: rcv_wnd.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel's 32-bit words, at their offsets (pahole -C tcp_info).
    fn info(words: &[(usize, u32)]) -> Vec<u8> {
        let mut bytes = vec![0; 248];
        for (at, word) in words {
            bytes[*at..at + 4].copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    #[test]
    fn tcp_info_is_read() {
        let mss = 1_448;
        let words = [
            (8, 284_000),
            (16, mss),
            (24, 20),
            (68, 81_500),
            (72, 2_000),
            (76, 0x7fff_ffff),
            (80, 20),
            (100, 3),
            (120, 70_000),
            (144, 9_000),
            (148, 80_000),
            (228, 500_000),
        ];
        let got = snapshot(&info(&words)).unwrap();
        assert_eq!((got.cwnd_bytes, got.ssthresh_bytes), (28_960, u64::MAX));
        assert_eq!((got.flight_size_bytes, got.pipe_bytes), (28_960, 28_960));
        assert_eq!((got.srtt_ns, got.rto_ns), (Some(81_500_000), 284_000_000));
        assert_eq!((got.retransmissions, got.acked_bytes), (3, 70_000));
        assert_eq!((got.limit, got.in_recovery), (Limit::CongestionWindow, false));
        let with = |more: &[(usize, u32)]| snapshot(&info(&[&words[..], more].concat())).unwrap();
        // Two were lost, one of them has been retransmitted.
        assert_eq!(with(&[(32, 2), (36, 1)]).pipe_bytes, 19 * u64::from(mss));
        assert_eq!(with(&[(144, 0)]).limit, Limit::Application);
        assert_eq!(with(&[(24, 0), (144, 0)]).limit, Limit::Idle);
        assert_eq!(with(&[(80, 90), (228, 29_000)]).limit, Limit::ReceiveWindow);
        assert_eq!(with(&[(80, 90)]).limit, Limit::Pacing);
        assert_eq!(with(&[(0, 3 << 8)]).in_recovery, cfg!(target_endian = "little"));
        // A field missing in old kernels, and truncated data.
        assert_eq!(snapshot(&info(&words)[..152]).unwrap().rwnd_bytes, 0);
        assert_eq!(snapshot(&info(&words)[..150]), None);
    }

    #[test]
    fn a_box_speaks_to_the_phone_as_the_server() {
        let check = |host, ip, place| {
            assert_eq!(place_of(host)(SocketAddrV4::new(ip, 80)), place);
        };
        check("phone", PHONE_ADDRESS, SenderPlace::Phone);
        check("server", SERVER_ADDRESS, SenderPlace::Server);
        check("box", SERVER_ADDRESS, SenderPlace::ProxyToPhone);
        check("box", PHONE_ADDRESS, SenderPlace::ProxyToServer);
    }
}
