//! Probes for round trips without acknowledgements: at most one echo every 200 ms.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};

use nix::sys::socket::{setsockopt, sockopt};
use socket2::{Domain, Protocol, Socket, Type};

/// Data bytes of an echo, as for ping (56 bytes: 84 with the headers).
const DATA_BYTES: usize = 56;
const ECHO_REQUEST: u8 = 8;

/// Sends echoes (RFC 792) past the gate.
#[derive(Debug)]
pub(crate) struct Prober {
    socket: Socket,
    identifier: u16,
}

impl Prober {
    /// Opens a socket at an interface; its packets have the mark that the rules let pass.
    pub(crate) fn open(interface: &str, mark: u32) -> io::Result<Self> {
        let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::ICMPV4))?;
        setsockopt(&socket, sockopt::Mark, &mark)?;
        setsockopt(&socket, sockopt::BindToDevice, &interface.into())?;
        // Answers are read by the tap on incoming packets.
        let _ = setsockopt(&socket, sockopt::RcvBuf, &2_048);
        socket.set_nonblocking(true)?;
        let identifier = (std::process::id() & 0xffff) as u16;
        Ok(Self { socket, identifier })
    }

    /// Identifier of its echoes.
    pub(crate) const fn identifier(&self) -> u16 {
        self.identifier
    }

    /// Sends an echo.
    pub(crate) fn send(&self, to: Ipv4Addr, number: u16) -> io::Result<()> {
        let bytes = echo(self.identifier, number);
        self.socket.send_to(&bytes, &SocketAddrV4::new(to, 0).into()).map(drop)
    }
}

fn echo(identifier: u16, number: u16) -> Vec<u8> {
    let mut bytes = vec![ECHO_REQUEST, 0, 0, 0];
    bytes.extend(identifier.to_be_bytes());
    bytes.extend(number.to_be_bytes());
    bytes.resize(8 + DATA_BYTES, 0);
    let sum = checksum(&bytes).to_be_bytes();
    bytes[2..4].copy_from_slice(&sum);
    bytes
}

/// The Internet checksum (RFC 1071) of an even number of bytes.
fn checksum(bytes: &[u8]) -> u16 {
    let mut sum: u32 = 0;
    for pair in bytes.chunks_exact(2) {
        sum += u32::from(u16::from_be_bytes([pair[0], pair[1]]));
    }
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_sums_up() {
        let bytes = echo(0x1234, 7);
        assert_eq!(bytes.len(), 64);
        // Including the checksum, the sum is all ones.
        assert_eq!(checksum(&bytes), 0);
    }
}
