//! Whom the packets are for that wait: who holds the queue.

use std::collections::HashMap;
use std::net::IpAddr;

use crate::status::WaitingHost;

/// Hosts in a status (chosen here).
const SHOWN: usize = 8;

/// A packet that waits, and whom it is for.
#[derive(Debug)]
pub(crate) struct WaitingPacket<P> {
    pub(crate) to: Option<IpAddr>,
    pub(crate) bytes: u32,
    pub(crate) packet: P,
}

/// Packets and bytes that wait, by host. It has no more hosts than packets wait.
#[derive(Debug, Default)]
pub(crate) struct WaitingHosts(HashMap<IpAddr, (u64, u64)>);

impl WaitingHosts {
    /// A packet waits from now on.
    pub(crate) fn add<P>(&mut self, packet: &WaitingPacket<P>) {
        if let Some(to) = packet.to {
            let host = self.0.entry(to).or_default();
            host.0 += 1;
            host.1 += u64::from(packet.bytes);
        }
    }

    /// It waits no more.
    pub(crate) fn remove<P>(&mut self, packet: &WaitingPacket<P>) {
        let Some(to) = packet.to else { return };
        if let Some(host) = self.0.get_mut(&to) {
            host.0 = host.0.saturating_sub(1);
            host.1 = host.1.saturating_sub(packet.bytes.into());
            if host.0 == 0 {
                self.0.remove(&to);
            }
        }
    }

    /// Those that most bytes wait for.
    pub(crate) fn most(&self) -> Vec<WaitingHost> {
        let mut all: Vec<WaitingHost> = self
            .0
            .iter()
            .map(|(to, &(packets, bytes))| WaitingHost { to: to.to_string(), packets, bytes })
            .collect();
        all.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.to.cmp(&b.to)));
        all.truncate(SHOWN);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_most_wait_for_come_first_and_nothing_stays() {
        let packet = |last: u8, bytes| WaitingPacket {
            to: Some(IpAddr::from([192, 0, 2, last])),
            bytes,
            packet: (),
        };
        let mut hosts = WaitingHosts::default();
        for last in 0..20 {
            hosts.add(&packet(last, 100 * u32::from(last)));
        }
        hosts.add(&packet(3, 10_000));
        hosts.add(&WaitingPacket { to: None, bytes: 1, packet: () });
        let most = hosts.most();
        assert_eq!(most.len(), SHOWN);
        let expected = WaitingHost { to: "192.0.2.3".to_owned(), packets: 2, bytes: 10_300 };
        assert_eq!(most[0], expected);
        hosts.remove(&packet(3, 10_000));
        for last in 0..20 {
            hosts.remove(&packet(last, 100 * u32::from(last)));
        }
        assert!(hosts.0.is_empty());
    }
}
