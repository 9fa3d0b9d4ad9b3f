//! A user's data bearer: the queues at both ends, and packets waiting before them.

use std::collections::VecDeque;

use airmile_model::{Direction, RlcMode};

use crate::mac::Uplink;
use crate::phy::Frame;
use crate::random::Owner;
use crate::rlc::{AmReceiver, AmSender, RlcEnd, Sdu, in_transit_bytes};
use crate::rrc::Rrc;
use crate::scenario::{LinkConfig, RlcConfig, Scenario};

/// The data bearer of a user.
#[derive(Debug, Clone)]
pub(crate) struct Bearer {
    pub(crate) enb: RlcEnd,
    pub(crate) phone: RlcEnd,
    pub(crate) uplink: Uplink,
    pub(crate) rrc: Rrc,
    modes: [RlcMode; 2],
    dl_limit_bytes: u64,
    firmware_bytes: u64,
    device_queue_packets: usize,
    /// Packets for a phone in idle, waiting for its paging.
    paged: VecDeque<Sdu>,
    /// Packets in the phone waiting for room in the firmware's buffer.
    device_queue: VecDeque<Sdu>,
    dropped_bytes: [u64; 2],
}

impl Bearer {
    pub(crate) fn new(scenario: &Scenario, link: &LinkConfig, owner: Owner, frame: Frame) -> Self {
        let nr_sn_bits = scenario.cell.nr.map(|nr| nr.rlc_sn_bits);
        let scaled = |config: &RlcConfig| RlcConfig { nr_sn_bits, ..frame.scaled_rlc(config) };
        let end = |sends: &RlcConfig, receives: &RlcConfig| RlcEnd {
            sender: AmSender::new(scaled(sends)),
            receiver: AmReceiver::new(scaled(receives)),
        };
        let uplink = &scenario.uplink;
        Self {
            enb: end(&scenario.dl_rlc, &scenario.ul_rlc),
            phone: end(&scenario.ul_rlc, &scenario.dl_rlc),
            uplink: Uplink::new(scenario, link, owner, frame),
            rrc: Rrc::new(scenario.rrc.as_ref(), frame.first_tti(), frame),
            modes: [&scenario.dl_rlc, &scenario.ul_rlc].map(|rlc| match rlc.unacknowledged {
                true => RlcMode::Um,
                false => RlcMode::Am,
            }),
            dl_limit_bytes: scenario.cell.queue_bytes,
            firmware_bytes: uplink.firmware_bytes.unwrap_or(u64::MAX),
            device_queue_packets: uplink.device_queue_packets as usize,
            paged: VecDeque::new(),
            device_queue: VecDeque::new(),
            dropped_bytes: [0; 2],
        }
    }

    /// Queues a packet; returns whether there was room.
    pub(crate) fn push(&mut self, dir: Direction, sdu: Sdu, tti: i64) -> bool {
        self.rrc.wake(dir, tti);
        let fits = match dir {
            Direction::Dl => {
                let waits = self.waiting_bytes(dir) + self.enb.sender.queue_bytes();
                waits + u64::from(sdu.bytes) <= self.dl_limit_bytes
            }
            Direction::Ul => {
                self.device_queue.len() < self.device_queue_packets || self.has_room(sdu)
            }
        };
        if !fits {
            self.dropped_bytes[dir as usize] += u64::from(sdu.bytes);
            return false;
        }
        match dir {
            Direction::Dl if self.rrc.is_connected() => self.enb.sender.push(sdu),
            Direction::Dl => self.paged.push_back(sdu),
            Direction::Ul => {
                self.device_queue.push_back(sdu);
                self.feed_firmware();
            }
        }
        true
    }

    /// Whether the firmware's buffer has room for a packet.
    fn has_room(&self, sdu: Sdu) -> bool {
        let queued = self.phone.sender.queue_bytes();
        self.rrc.is_connected()
            // One packet always fits.
            && (queued == 0 || queued + u64::from(sdu.bytes) <= self.firmware_bytes)
    }

    /// Whether an uplink packet of `bytes` bytes would now enter the firmware's buffer
    /// directly or wait for RRC only.
    pub(crate) fn takes_up(&self, bytes: u32) -> bool {
        let queued = self.phone.sender.queue_bytes();
        self.device_queue.is_empty()
            && (queued == 0 || queued + u64::from(bytes) <= self.firmware_bytes)
    }

    fn feed_firmware(&mut self) {
        while let Some(&sdu) = self.device_queue.front()
            && self.has_room(sdu)
        {
            self.device_queue.pop_front();
            self.phone.sender.push(sdu);
        }
    }

    /// Starts a TTI: timers, RRC, and packets that waited for them.
    pub(crate) fn tick(&mut self, tti: i64) {
        for end in [&mut self.enb, &mut self.phone] {
            end.sender.tick(tti);
            end.receiver.tick(tti);
        }
        self.rrc.tick(tti, self.enb.sender.queue_bytes() + self.phone.sender.queue_bytes() > 0);
        if self.rrc.is_connected() {
            self.paged.drain(..).for_each(|sdu| self.enb.sender.push(sdu));
            self.feed_firmware();
        }
    }

    /// Size of a block that would hold all data waiting for the phone, with a number of MAC
    /// control elements.
    pub(crate) fn dl_wants(&self, tti: i64, control: usize) -> u64 {
        let status = match self.enb.receiver.status_bytes(tti) {
            0 => 0,
            bytes => bytes + 3,
        };
        self.enb.sender.wanted_bytes() + u64::from(status) + 2 * control as u64
    }

    /// RLC mode in a direction.
    pub(crate) const fn mode(&self, dir: Direction) -> RlcMode {
        self.modes[dir as usize]
    }

    const fn ends(&self, dir: Direction) -> (&AmSender, &AmReceiver) {
        match dir {
            Direction::Dl => (&self.enb.sender, &self.phone.receiver),
            Direction::Ul => (&self.phone.sender, &self.enb.receiver),
        }
    }

    /// Bytes in the queue in a direction.
    pub(crate) fn queue_bytes(&self, dir: Direction) -> u64 {
        self.ends(dir).0.queue_bytes()
    }

    /// Bytes waiting before the queue in a direction.
    fn waiting_bytes(&self, dir: Direction) -> u64 {
        let waiting = match dir {
            Direction::Dl => &self.paged,
            Direction::Ul => &self.device_queue,
        };
        waiting.iter().map(|sdu| u64::from(sdu.bytes)).sum()
    }

    /// Bytes never sent in a direction, and bytes sent of undelivered SDUs.
    pub(crate) fn undelivered_bytes(&self, dir: Direction) -> (u64, u64) {
        let (sender, receiver) = self.ends(dir);
        (sender.new_bytes() + self.waiting_bytes(dir), in_transit_bytes(sender, receiver))
    }

    /// Bytes dropped for lack of room.
    pub(crate) const fn dropped_bytes(&self, dir: Direction) -> u64 {
        self.dropped_bytes[dir as usize]
    }
}
