//! Between the hosts and the queues of the air interface.

use airmile_model::Direction;

use super::{DropPoint, LARGEST_PACKET_BYTES, PDCP_HEADER_BYTES, RunSink, Simulation};
use crate::net::{Host, IpPacket};
use crate::rlc::Sdu;
use crate::user::UserId;

impl<H: Host> Simulation<H> {
    /// Releases packets of the measured phone's queueing while the firmware has room.
    pub(super) fn release(&mut self, now_ns: i64, sink: &mut impl RunSink) {
        while self.cell.takes_up(UserId::MEASURED, LARGEST_PACKET_BYTES + PDCP_HEADER_BYTES)
            && let Some(packet) = self.device.as_mut().and_then(|device| device.poll(now_ns))
        {
            sink.handed_over(now_ns, &packet);
            self.send_air(now_ns, UserId::MEASURED, Direction::Ul, packet, sink);
        }
        while let Some(packet) = self.device.as_mut().and_then(|d| d.poll_dropped(now_ns)) {
            sink.dropped(now_ns, UserId::MEASURED, DropPoint::Phone, &packet);
        }
    }

    /// Queues a packet for the air interface.
    pub(super) fn send_air(
        &mut self,
        now_ns: i64,
        user: UserId,
        dir: Direction,
        packet: IpPacket,
        sink: &mut impl RunSink,
    ) {
        let bytes = packet.ip_bytes() + PDCP_HEADER_BYTES;
        self.users[user.index()].bytes[dir as usize].0 += u64::from(bytes);
        let id = self.free.pop().unwrap_or(self.in_air.len() as u64);
        if self.cell.push(user, dir, Sdu { id, bytes }) {
            let at = id as usize;
            if at == self.in_air.len() {
                self.in_air.push(Some(packet));
            } else {
                self.in_air[at] = Some(packet);
            }
        } else {
            if id < self.in_air.len() as u64 {
                self.free.push(id);
            }
            let point =
                if dir == Direction::Dl { DropPoint::BaseStation } else { DropPoint::Phone };
            sink.dropped(now_ns, user, point, &packet);
        }
    }

    /// Returns a packet that has crossed the air interface.
    pub(super) fn land(&mut self, id: u64) -> Option<IpPacket> {
        let packet = self.in_air.get_mut(id as usize)?.take()?;
        self.free.push(id);
        Some(packet)
    }
}
