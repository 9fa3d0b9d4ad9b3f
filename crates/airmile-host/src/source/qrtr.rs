//! The DIAG service of a modem by QRTR: sockets of the family AF_QIPCRTR (linux/qrtr.h).
//!
//! A lookup at the name service returns the node and port of service 4097. No machine
//! with such a modem was available: the layout is the kernel's, the rest follows public
//! documentation.

use std::fs::File;
use std::io;
use std::mem::size_of;
use std::os::fd::OwnedFd;
use std::time::Duration;

use socket2::{Domain, SockAddr, SockAddrStorage, Socket, Type};

const AF_QIPCRTR: u16 = 42;
/// The port of the name service on each node.
const PORT_CONTROL: u32 = 0xffff_fffe;
/// The service of DIAG, and its instance on the modem.
const DIAG_SERVICE: u32 = 4_097;
const DIAG_INSTANCE: u32 = 1;
/// Kinds of control packets.
const NEW_SERVER: u32 = 4;
const NEW_LOOKUP: u32 = 10;
/// Timeout of the name service's answer (chosen here).
const ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// `struct sockaddr_qrtr`.
#[repr(C)]
#[derive(Clone, Copy)]
struct SockaddrQrtr {
    family: u16,
    node: u32,
    port: u32,
}

/// An address of the family, which no library supports.
#[allow(unsafe_code, reason = "the kernel's address as a C struct, which no library has")]
fn address(node: u32, port: u32) -> SockAddr {
    let mut storage = SockAddrStorage::zeroed();
    let len = size_of::<SockaddrQrtr>() as u32;
    // SAFETY: the struct is the platform's address of this family, of plain numbers, and it
    // is shorter than the storage; `len` is its length.
    unsafe {
        *storage.view_as::<SockaddrQrtr>() = SockaddrQrtr { family: AF_QIPCRTR, node, port };
        SockAddr::new(storage, len)
    }
}

/// The node of a socket's own address.
#[allow(unsafe_code, reason = "the kernel's address as a C struct, which no library has")]
fn own_node(socket: &Socket) -> io::Result<u32> {
    let mut storage = socket.local_addr()?.as_storage();
    // SAFETY: as above; the kernel filled it in for a socket of this family.
    Ok(unsafe { storage.view_as::<SockaddrQrtr>() }.node)
}

/// A control packet: kind, service, instance, node, port.
fn control(fields: [u32; 5]) -> Vec<u8> {
    fields.into_iter().flat_map(u32::to_le_bytes).collect()
}

/// The server of a control packet: service, instance, node, port.
fn server(packet: &[u8]) -> Option<[u32; 4]> {
    let mut fields = packet.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]));
    (fields.next()? == NEW_SERVER).then_some(())?;
    Some([fields.next()?, fields.next()?, fields.next()?, fields.next()?])
}

/// Connects a socket to the modem's DIAG service.
///
/// # Errors
/// The kernel has no QRTR, or no modem offers the service.
pub(super) fn connect() -> io::Result<File> {
    let socket = Socket::new(Domain::from(i32::from(AF_QIPCRTR)), Type::DGRAM, None)?;
    let node = own_node(&socket)?;
    let lookup = control([NEW_LOOKUP, DIAG_SERVICE, 0, 0, 0]);
    socket.send_to(&lookup, &address(node, PORT_CONTROL))?;
    socket.set_read_timeout(Some(ANSWER_WITHIN))?;
    let mut found: Option<[u32; 4]> = None;
    loop {
        let mut packet = [0; 64];
        let n = io::Read::read(&mut &socket, &mut packet)?;
        match server(packet.get(..n).unwrap_or_default()) {
            // The list ends with an empty entry.
            Some([0, ..]) => break,
            Some(entry @ [DIAG_SERVICE, instance, ..])
                if found.is_none() || instance & 0xff == DIAG_INSTANCE =>
            {
                found = Some(entry);
            }
            _ => {}
        }
    }
    let Some([_, _, node, port]) = found else {
        let why = "no modem offers DIAG by QRTR (service 4097)";
        return Err(io::Error::new(io::ErrorKind::NotFound, why));
    };
    socket.connect(&address(node, port))?;
    socket.set_nonblocking(true)?;
    Ok(OwnedFd::from(socket).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_of_the_name_service() {
        let lookup = control([NEW_LOOKUP, DIAG_SERVICE, 0, 0, 0]);
        assert_eq!(lookup[..8], [10, 0, 0, 0, 1, 16, 0, 0]);
        assert_eq!(lookup.len(), 20);
        assert_eq!(server(&lookup), None);
        let answer = control([NEW_SERVER, DIAG_SERVICE, 1, 0, 14]);
        assert_eq!(server(&answer), Some([DIAG_SERVICE, 1, 0, 14]));
        assert_eq!(server(&answer[..16]), None);
    }

    /// Against our own service, if the kernel has the family.
    #[test]
    fn a_service_of_our_own_is_found_and_received_from() {
        let server = match Socket::new(Domain::from(i32::from(AF_QIPCRTR)), Type::DGRAM, None) {
            Ok(server) => server,
            Err(error) => {
                let why = format_args!("this kernel has no AF_QIPCRTR ({error})");
                return airmile_testing::skipped(why);
            }
        };
        let node = own_node(&server).unwrap();
        let publish = |port| control([NEW_SERVER, DIAG_SERVICE, DIAG_INSTANCE, node, port]);
        // The first packet binds the socket to a port of its own.
        let lookup = control([NEW_LOOKUP, 1, 0, 0, 0]);
        server.send_to(&lookup, &address(node, PORT_CONTROL)).unwrap();
        let mut own = server.local_addr().unwrap().as_storage();
        #[allow(unsafe_code, reason = "the kernel's address as a C struct")]
        // SAFETY: as in `own_node`.
        let port = unsafe { own.view_as::<SockaddrQrtr>() }.port;
        server.send_to(&publish(port), &address(node, PORT_CONTROL)).unwrap();
        let mut modem = connect().unwrap();
        io::Write::write_all(&mut modem, b"hello").unwrap();
        let mut packet = [0; 64];
        loop {
            let n = io::Read::read(&mut &server, &mut packet).unwrap();
            if packet[..n] == *b"hello" {
                break;
            }
        }
    }

    #[test]
    fn an_address_is_the_kernels() {
        let address = address(3, PORT_CONTROL);
        assert_eq!((address.family(), address.len()), (AF_QIPCRTR, 12));
    }
}
