//! Source and sink of held packets.

use std::io;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;

use airmile_control::qcut::PacketInfo;

use crate::header;
use crate::netlink::queue::Queue;

/// Receives a packet with its properties and destination.
pub(crate) type TakePacket<'a, P> = dyn FnMut(PacketInfo, Option<IpAddr>, P) + 'a;

/// Source and sink of packets.
pub(crate) trait PacketPath {
    /// A held packet.
    type Packet;

    /// Becomes readable when packets arrive.
    fn fd(&self) -> BorrowedFd<'_>;

    /// Packets that arrived.
    fn receive(&mut self, take: &mut TakePacket<'_, Self::Packet>) -> io::Result<()>;

    /// Releases a packet.
    fn release(&mut self, packet: Self::Packet);

    /// Drops a packet.
    fn discard(&mut self, packet: Self::Packet);

    /// Carries out all decisions since the last call.
    fn flush(&mut self) -> io::Result<()>;

    /// Number of packets that could not be passed on.
    fn failed(&self) -> u64;
}

impl PacketPath for Queue {
    type Packet = u32;

    fn fd(&self) -> BorrowedFd<'_> {
        self.fd()
    }

    fn receive(&mut self, take: &mut TakePacket<'_, u32>) -> io::Result<()> {
        self.receive(|id, bytes, head| {
            let (info, far) = header::outgoing(head, bytes);
            take(info, far, id);
        })
    }

    fn release(&mut self, id: u32) {
        self.decide(id, true);
    }

    fn discard(&mut self, id: u32) {
        self.decide(id, false);
    }

    fn flush(&mut self) -> io::Result<()> {
        self.flush()
    }

    fn failed(&self) -> u64 {
        self.refused()
    }
}
