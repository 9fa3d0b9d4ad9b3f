//! Builds and parses kernel messages (netlink(7)): only a few messages of rtnetlink and
//! nfnetlink are needed, some of them fifty times a second (docs/decisions/0016).

pub(crate) mod queue;
pub(crate) mod route;
pub(crate) mod traffic;

use std::io;
use std::os::fd::AsRawFd;

use netlink_sys::{Socket, SocketAddr, protocols};
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv, send};

// linux/netlink.h.
pub(crate) const REQUEST: u16 = 0x1;
pub(crate) const CREATE: u16 = 0x400;
pub(crate) const EXCLUSIVE: u16 = 0x200;
pub(crate) const REPLACE: u16 = 0x100;
const ACKNOWLEDGE: u16 = 0x4;
const DUMP: u16 = 0x300;
const ERROR: u16 = 2;
const DONE: u16 = 3;
const NESTED: u16 = 0x8000;
const HEADER_BYTES: usize = 16;

/// Maximum length of an answer (chosen here: the kernel fills a page at a time).
const ANSWER_BYTES: usize = 64 * 1024;

/// A message under construction.
#[derive(Debug, Clone)]
pub(crate) struct NetlinkMessage(Vec<u8>);

impl NetlinkMessage {
    pub(crate) fn new(kind: u16, flags: u16) -> Self {
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        Self(bytes)
    }

    /// Appends the message's own header.
    pub(crate) fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self.pad()
    }

    pub(crate) fn attribute(mut self, kind: u16, value: &[u8]) -> Self {
        // Longer ones do not occur: values are numbers, names and data read from the
        // kernel.
        let length = u16::try_from(value.len() + 4).unwrap_or(u16::MAX);
        self.0.extend_from_slice(&length.to_ne_bytes());
        self.0.extend_from_slice(&kind.to_ne_bytes());
        self.0.extend_from_slice(value);
        self.pad()
    }

    pub(crate) fn number(self, kind: u16, value: u32) -> Self {
        self.attribute(kind, &value.to_ne_bytes())
    }

    pub(crate) fn name(self, kind: u16, name: &str) -> Self {
        let mut value = name.as_bytes().to_vec();
        value.push(0);
        self.attribute(kind, &value)
    }

    pub(crate) fn nested(self, kind: u16, inside: impl FnOnce(Self) -> Self) -> Self {
        let built = inside(Self(Vec::new()));
        self.attribute(kind | NESTED, &built.0)
    }

    fn pad(mut self) -> Self {
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    fn finish(mut self, flags: u16, sequence: u32) -> Vec<u8> {
        let length = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        let all = u16::from_ne_bytes([self.0[6], self.0[7]]) | flags;
        self.0[..4].copy_from_slice(&length.to_ne_bytes());
        self.0[6..8].copy_from_slice(&all.to_ne_bytes());
        self.0[8..12].copy_from_slice(&sequence.to_ne_bytes());
        self.0
    }
}

/// A number in a message, if it is long enough.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2)?.try_into().ok().map(u16::from_ne_bytes)
}

/// Consecutive attributes; a truncated one ends them.
pub(crate) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16_at(bytes, 0)?);
        let kind = u16_at(bytes, 2)? & 0x3fff;
        let value = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// Messages in received data: kind, sequence number and body.
pub(crate) fn messages(mut bytes: &[u8]) -> impl Iterator<Item = (u16, u32, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::try_from(u32_at(bytes, 0)?).ok()?;
        let (kind, sequence) = (u16_at(bytes, 4)?, u32_at(bytes, 8)?);
        let body = bytes.get(HEADER_BYTES..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, sequence, body))
    })
}

/// The error in an acknowledgement.
pub(crate) fn error_of(body: &[u8]) -> io::Result<()> {
    match u32_at(body, 0).map(u32::cast_signed) {
        Some(0) => Ok(()),
        Some(code) => Err(io::Error::from_raw_os_error(-code)),
        None => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// A socket for requests that are acknowledged.
#[derive(Debug)]
pub(crate) struct Netlink {
    socket: Socket,
    sequence: u32,
    buffer: Vec<u8>,
}

impl Netlink {
    /// Opens a socket to the kernel's routing: links, routes, rules, queueing.
    pub(crate) fn route() -> io::Result<Self> {
        let mut socket = Socket::new(protocols::NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self { socket, sequence: 0, buffer: vec![0; ANSWER_BYTES] })
    }

    /// Sends a request and waits for its acknowledgement.
    pub(crate) fn request(&mut self, message: NetlinkMessage) -> io::Result<()> {
        self.request_all(vec![message])
    }

    /// Sends several requests; all are tried, and the first error is returned.
    pub(crate) fn request_all(&mut self, all: Vec<NetlinkMessage>) -> io::Result<()> {
        let first = self.sequence.wrapping_add(1);
        let mut out = Vec::new();
        let mut open = all.len();
        for message in all {
            self.sequence = self.sequence.wrapping_add(1);
            out.extend(message.finish(REQUEST | ACKNOWLEDGE, self.sequence));
        }
        send(self.socket.as_raw_fd(), &out, MsgFlags::empty())?;
        let mut outcome = Ok(());
        while open > 0 {
            let length = self.receive()?;
            for (kind, sequence, body) in messages(&self.buffer[..length]) {
                if kind == ERROR && sequence.wrapping_sub(first) < 1 << 31 {
                    open -= 1;
                    outcome = outcome.and(error_of(body));
                }
                if open == 0 {
                    break;
                }
            }
        }
        outcome
    }

    /// Requests all objects of a kind; returns the bodies of the answers.
    pub(crate) fn dump(&mut self, message: NetlinkMessage) -> io::Result<Vec<Vec<u8>>> {
        self.sequence = self.sequence.wrapping_add(1);
        let sequence = self.sequence;
        let out = message.finish(REQUEST | DUMP, sequence);
        send(self.socket.as_raw_fd(), &out, MsgFlags::empty())?;
        let mut found = Vec::new();
        loop {
            let length = self.receive()?;
            for (kind, of, body) in messages(&self.buffer[..length]) {
                match kind {
                    _ if of != sequence => {}
                    DONE => return Ok(found),
                    ERROR => return error_of(body).map(|()| found),
                    _ => found.push(body.to_vec()),
                }
            }
        }
    }

    fn receive(&mut self) -> io::Result<usize> {
        loop {
            match recv(self.socket.as_raw_fd(), &mut self.buffer, MsgFlags::empty()) {
                Err(Errno::EINTR) => {}
                result => return Ok(result?),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_built_is_read() {
        let message = NetlinkMessage::new(40, REQUEST)
            .raw(&[1, 2, 3, 4])
            .name(1, "htb")
            .nested(2, |of| of.number(5, 7).attribute(6, &[9]));
        let bytes = message.finish(ACKNOWLEDGE, 3);
        assert_eq!(bytes.len() % 4, 0);
        let (kind, sequence, body) = messages(&bytes).next().unwrap();
        assert_eq!((kind, sequence, &body[..4]), (40, 3, &[1, 2, 3, 4][..]));
        let found: Vec<_> = attributes(&body[4..]).collect();
        assert_eq!(found[0], (1, &b"htb\0"[..]));
        let inside: Vec<_> = attributes(found[1].1).collect();
        assert_eq!(inside, [(5, &7_u32.to_ne_bytes()[..]), (6, &[9][..])]);
        // Truncated data is parsed as far as it goes, and no further.
        for end in 0..bytes.len() {
            for (_, _, body) in messages(&bytes[..end]) {
                assert!(attributes(body).count() < 9);
            }
        }
    }

    #[test]
    fn the_kernel_answers() {
        // RTM_GETLINK of all links: every process can see loopback.
        let mut netlink = Netlink::route().unwrap();
        let links = netlink.dump(NetlinkMessage::new(18, 0).raw(&[0; 16])).unwrap();
        let is_loopback = |body: &Vec<u8>| {
            attributes(&body[16..]).any(|(kind, value)| kind == 3 && value == b"lo\0")
        };
        assert!(links.iter().any(is_loopback));
        // A qdisc of an interface that does not exist.
        let refused = netlink.request(NetlinkMessage::new(37, 0).raw(&[0xff; 20])).unwrap_err();
        assert!(refused.raw_os_error().is_some(), "{refused}");
    }
}
