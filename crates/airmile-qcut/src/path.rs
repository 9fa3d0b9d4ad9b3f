//! Where held packets come from and go to.

use std::io;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;

use airmile_control::qcut::PacketInfo;

use crate::header;
use crate::netlink::queue::Queue;

/// Takes a packet, what is known of it, and whom it is for.
pub(crate) type TakePacket<'a, P> = dyn FnMut(PacketInfo, Option<IpAddr>, P) + 'a;

/// Where packets come from and go to.
pub(crate) trait PacketPath {
    /// A packet that is held.
    type Packet;

    /// Becomes readable when packets are there.
    fn fd(&self) -> BorrowedFd<'_>;

    /// Packets that came.
    fn receive(&mut self, take: &mut TakePacket<'_, Self::Packet>) -> io::Result<()>;

    /// It may go.
    fn release(&mut self, packet: Self::Packet);

    /// It is dropped.
    fn discard(&mut self, packet: Self::Packet);

    /// All that was said since the last time is done.
    fn flush(&mut self) -> io::Result<()>;

    /// Packets that could not be handed on.
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
