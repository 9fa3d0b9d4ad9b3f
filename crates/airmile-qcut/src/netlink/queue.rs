//! Packets that the kernel queues for user space (linux/netfilter/nfnetlink_queue.h): their
//! headers are read here and verdicts are sent back, several in a message.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use netlink_sys::{Socket, SocketAddr, protocols};
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv, send, setsockopt, sockopt};

use super::{NetlinkMessage, REQUEST, attributes, error_of, messages};

/// NFNL_SUBSYS_QUEUE and its messages.
const SUBSYSTEM: u16 = 3 << 8;
const PACKET: u16 = SUBSYSTEM;
const VERDICT: u16 = SUBSYSTEM | 1;
const CONFIG: u16 = SUBSYSTEM | 2;

/// Attributes of a packet and of a verdict.
const PACKET_HEADER: u16 = 1;
const VERDICT_HEADER: u16 = 2;
const PAYLOAD: u16 = 10;
const WHOLE_LENGTH: u16 = 13;

/// Attributes of the configuration.
const COMMAND: u16 = 1;
const PARAMETERS: u16 = 2;
const MOST_PACKETS: u16 = 3;
const MASK: u16 = 4;
const FLAGS: u16 = 5;
const BIND: u8 = 1;
const COPY_PACKET: u8 = 2;
/// A full queue lets packets pass.
const FAIL_OPEN: u32 = 1;

/// linux/netfilter.h.
const NF_DROP: u32 = 0;
const NF_ACCEPT: u32 = 1;

/// Bytes read of a packet: headers with all their options.
const HEAD_BYTES: u32 = 160;

/// Receive buffer of the socket (chosen here: some thousand headers, as the kernel counts
/// them).
const SOCKET_BYTES: usize = 8 << 20;

/// Packets processed before other work gets a turn (chosen here).
const AT_A_TIME: usize = 256;

/// Bytes of a verdict's message (headers of netlink and nfnetlink, an attribute of two
/// numbers), and verdicts in one call: a quarter of the minimum that a socket may send at
/// once by default (net.core.wmem_default: 212,992 bytes).
const VERDICT_BYTES: usize = 32;
const AT_ONCE: usize = 1_024;

/// Queue numbers that are tried.
const FIRST_NUMBER: u16 = 6_700;
const NUMBERS: u16 = 64;

/// A kernel queue.
#[derive(Debug)]
pub(crate) struct Queue {
    socket: Socket,
    number: u16,
    buffer: Vec<u8>,
    verdicts: Vec<u8>,
    /// Verdicts that the kernel rejected.
    refused: u64,
}

impl Queue {
    /// Opens the first unused queue.
    pub(crate) fn open(most_packets: u32) -> io::Result<Self> {
        let mut last = io::ErrorKind::AddrInUse.into();
        for number in FIRST_NUMBER..FIRST_NUMBER + NUMBERS {
            match Self::open_number(number, most_packets) {
                Ok(queue) => return Ok(queue),
                // EBUSY: used by another process. EPERM despite sufficient rights: the
                // same, on older kernels.
                Err(e) if e.raw_os_error() == Some(Errno::EBUSY as i32) => last = e,
                Err(e) => return Err(e),
            }
        }
        Err(last)
    }

    fn open_number(number: u16, most_packets: u32) -> io::Result<Self> {
        let mut socket = Socket::new(protocols::NETLINK_NETFILTER)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        let mut queue =
            Self { socket, number, buffer: vec![0; 8 << 10], verdicts: Vec::new(), refused: 0 };
        queue.configure(|of| of.attribute(COMMAND, &[BIND, 0, 0, 0]))?;
        let mut parameters = HEAD_BYTES.to_be_bytes().to_vec();
        parameters.push(COPY_PACKET);
        queue.configure(|of| of.attribute(PARAMETERS, &parameters))?;
        queue.configure(|of| {
            of.attribute(MOST_PACKETS, &most_packets.to_be_bytes())
                .attribute(FLAGS, &FAIL_OPEN.to_be_bytes())
                .attribute(MASK, &FAIL_OPEN.to_be_bytes())
        })?;
        // Without room for a header the packet passes, as the queue fails open: no error.
        queue.socket.set_no_enobufs(true)?;
        let fd = queue.socket.as_fd();
        let _ = setsockopt(&fd, sockopt::RcvBufForce, &SOCKET_BYTES)
            .or_else(|_| setsockopt(&fd, sockopt::RcvBuf, &SOCKET_BYTES));
        queue.socket.set_non_blocking(true)?;
        Ok(queue)
    }

    /// nfgenmsg: any family, version 0, the queue's number.
    fn head(&self) -> [u8; 4] {
        let [high, low] = self.number.to_be_bytes();
        [0, 0, high, low]
    }

    fn configure(&mut self, fill: impl FnOnce(NetlinkMessage) -> NetlinkMessage) -> io::Result<()> {
        let message = fill(NetlinkMessage::new(CONFIG, REQUEST).raw(&self.head()));
        let bytes = message.finish(super::ACKNOWLEDGE, 0);
        send(self.socket.as_raw_fd(), &bytes, MsgFlags::empty())?;
        loop {
            let length = recv(self.socket.as_raw_fd(), &mut self.buffer, MsgFlags::empty())?;
            for (kind, _, body) in messages(&self.buffer[..length]) {
                if kind == super::ERROR {
                    return error_of(body);
                }
            }
        }
    }

    /// Number of the queue.
    pub(crate) const fn number(&self) -> u16 {
        self.number
    }

    /// Becomes readable when packets arrive.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Verdicts that the kernel rejected: it has dropped the packet by itself.
    pub(crate) const fn refused(&self) -> u64 {
        self.refused
    }

    /// Packets that arrived: number, length and header of each.
    pub(crate) fn receive(&mut self, mut take: impl FnMut(u32, u32, &[u8])) -> io::Result<()> {
        for _ in 0..AT_A_TIME {
            let length =
                match recv(self.socket.as_raw_fd(), &mut self.buffer, MsgFlags::MSG_DONTWAIT) {
                    Ok(length) => length,
                    Err(Errno::EAGAIN) => break,
                    Err(Errno::EINTR) => continue,
                    Err(error) => return Err(error.into()),
                };
            for (kind, _, body) in messages(&self.buffer[..length]) {
                match kind {
                    PACKET => {
                        if let Some((id, bytes, head)) = packet(body) {
                            take(id, bytes, head);
                        }
                    }
                    super::ERROR if error_of(body).is_err() => self.refused += 1,
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Sets the verdict on a packet, sent with the next [`flush`](Self::flush).
    pub(crate) fn decide(&mut self, id: u32, accept: bool) {
        let verdict = if accept { NF_ACCEPT } else { NF_DROP };
        let mut value = verdict.to_be_bytes().to_vec();
        value.extend(id.to_be_bytes());
        let message = NetlinkMessage::new(VERDICT, REQUEST).raw(&self.head());
        self.verdicts.extend(message.attribute(VERDICT_HEADER, &value).finish(0, 0));
    }

    /// Sends the verdicts in messages of the size that the kernel accepts. Verdicts that
    /// could not be sent are kept.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        let mut gone = 0;
        let mut outcome = Ok(());
        for piece in self.verdicts.chunks(VERDICT_BYTES * AT_ONCE) {
            match send(self.socket.as_raw_fd(), piece, MsgFlags::empty()) {
                Ok(_) => gone += piece.len(),
                Err(error) => {
                    outcome = Err(error.into());
                    break;
                }
            }
        }
        self.verdicts.drain(..gone);
        outcome
    }
}

/// Number, length and header of a packet; `None`: another message.
fn packet(body: &[u8]) -> Option<(u32, u32, &[u8])> {
    let (mut id, mut head, mut whole) = (None, None, None);
    let number = |value: &[u8]| value.get(..4)?.try_into().ok().map(u32::from_be_bytes);
    for (kind, value) in attributes(body.get(4..)?) {
        match kind {
            PACKET_HEADER => id = number(value),
            PAYLOAD => head = Some(value),
            WHOLE_LENGTH => whole = number(value),
            _ => {}
        }
    }
    let head = head.unwrap_or_default();
    // Absent if the packet is complete.
    let bytes = whole.or_else(|| u32::try_from(head.len()).ok())?;
    Some((id?, bytes, head))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_have_one_length() {
        let value = [0; 8];
        let message =
            NetlinkMessage::new(VERDICT, REQUEST).raw(&[0; 4]).attribute(VERDICT_HEADER, &value);
        assert_eq!(message.finish(0, 0).len(), VERDICT_BYTES);
    }

    #[test]
    fn packets_are_read() {
        let build = |whole: Option<u32>| {
            let header = [0, 0, 0, 9, 8, 0, 4];
            let message = NetlinkMessage::new(PACKET, 0).raw(&[2, 0, 0, 5]);
            let message = message.attribute(PACKET_HEADER, &header).attribute(PAYLOAD, &[0x45; 30]);
            match whole {
                Some(whole) => message.attribute(WHOLE_LENGTH, &whole.to_be_bytes()),
                None => message,
            }
        };
        for (whole, bytes) in [(None, 30), (Some(1_500), 1_500)] {
            let message = build(whole).finish(0, 0);
            let (_, _, body) = messages(&message).next().unwrap();
            assert_eq!(packet(body), Some((9, bytes, &[0x45; 30][..])));
        }
        assert_eq!(packet(&[]), None);
    }
}
