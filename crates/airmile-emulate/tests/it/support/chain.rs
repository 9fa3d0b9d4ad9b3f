//! Hosts in a row, connected by links.

use std::net::Ipv4Addr;

use airmile_emulate::net::{Host, IpPacket};

use super::{Link, LinkConfig};

/// Hosts in a row. A packet moves towards the host with its destination address; a host
/// without an address is a box on the path.
pub struct Chain<'a> {
    pub now_ns: i64,
    hosts: Vec<(&'a mut dyn Host, Option<Ipv4Addr>)>,
    /// Between neighbours: to the right and to the left.
    pub links: Vec<(Link<IpPacket>, Link<IpPacket>)>,
    /// Every packet with its time, the host that sent it, and whether it went to the right.
    pub trace: Vec<(i64, usize, bool, IpPacket)>,
}

impl<'a> Chain<'a> {
    pub fn new(
        hosts: Vec<(&'a mut dyn Host, Option<Ipv4Addr>)>,
        links: &[LinkConfig],
        seed: u64,
    ) -> Self {
        let links = links
            .iter()
            .zip(0..)
            .map(|(&config, i)| (Link::new(config, seed + i), Link::new(config, !seed + i)))
            .collect();
        Self { now_ns: 0, hosts, links, trace: Vec::new() }
    }

    fn send(&mut self, from: usize, packet: IpPacket) {
        let at = |ip| self.hosts.iter().position(|(_, address)| *address == Some(ip));
        let to = at(*packet.dst.ip()).expect("every destination is in the row");
        let right = to > from;
        self.trace.push((self.now_ns, from, right, packet.clone()));
        let link = if right { &mut self.links[from].0 } else { &mut self.links[from - 1].1 };
        link.send(self.now_ns, packet.ip_bytes(), packet);
    }

    fn step(&mut self) {
        let now_ns = self.now_ns;
        for i in 0..self.links.len() {
            while let Some(packet) = self.links[i].0.receive(now_ns) {
                self.hosts[i + 1].0.handle_packet(now_ns, packet);
            }
            while let Some(packet) = self.links[i].1.receive(now_ns) {
                self.hosts[i].0.handle_packet(now_ns, packet);
            }
        }
        for i in 0..self.hosts.len() {
            if self.hosts[i].0.poll_timeout().is_some_and(|at_ns| at_ns <= now_ns) {
                self.hosts[i].0.handle_timeout(now_ns);
            }
            while let Some(packet) = self.hosts[i].0.poll_transmit(now_ns) {
                self.send(i, packet);
            }
        }
    }

    /// Runs until a time or until there are no more events.
    pub fn run(&mut self, until_ns: i64) {
        let mut same = 0;
        loop {
            self.step();
            let links = self.links.iter().flat_map(|(r, l)| [r.next_ns(), l.next_ns()]);
            let hosts = self.hosts.iter().map(|(host, _)| host.poll_timeout());
            let next_ns = links.chain(hosts).flatten().min();
            let Some(next_ns) = next_ns.filter(|&ns| ns <= until_ns) else { break };
            same = if next_ns <= self.now_ns { same + 1 } else { 0 };
            assert!(same < 10_000, "time stands still at {} ns", self.now_ns);
            self.now_ns = self.now_ns.max(next_ns);
        }
    }
}
