//! A phone that downloads files over TCP, and its server.
#![allow(dead_code)]

use std::net::{Ipv4Addr, SocketAddrV4};

use airmile_emulate::net::{Host, IpPacket, Transport};
use airmile_emulate::tcp::{ConnectionId, Endpoint, TcpConfig};
use airmile_emulate::{CoreConfig, LinkConfig, SimulatedUser};

pub const PHONE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
pub const SERVER: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);

/// Either end: the phone opens a connection for each file, which is the request; the server
/// sends `file_bytes` on each and closes it.
#[derive(Debug)]
pub struct Files {
    endpoint: Endpoint,
    is_phone: bool,
    file_bytes: u64,
    pause_ns: i64,
    next_ns: i64,
    left: u32,
    current: Option<(ConnectionId, i64, u64)>,
    unwritten: Vec<(ConnectionId, u64)>,
    /// Start, end and bytes of each file.
    pub ended: Vec<(i64, i64, u64)>,
}

impl Files {
    pub fn phone(file_bytes: u64, start_ns: i64, pause_ns: i64, files: u32, seed: u64) -> Self {
        Self {
            endpoint: Endpoint::new(PHONE, TcpConfig::default(), seed),
            is_phone: true,
            file_bytes,
            pause_ns,
            next_ns: start_ns,
            left: files,
            current: None,
            unwritten: Vec::new(),
            ended: Vec::new(),
        }
    }

    pub fn server(file_bytes: u64, seed: u64) -> Self {
        let mut endpoint = Endpoint::new(SERVER, TcpConfig::default(), seed);
        endpoint.listen(443);
        let phone = Self::phone(file_bytes, 0, 0, 0, seed);
        Self { endpoint, is_phone: false, ..phone }
    }

    fn act(&mut self, now_ns: i64) {
        if self.is_phone {
            self.fetch(now_ns);
            return;
        }
        while let Some(id) = self.endpoint.accept() {
            self.unwritten.push((id, self.file_bytes));
        }
        for (id, left) in &mut self.unwritten {
            let Some(connection) = self.endpoint.connection(*id) else { continue };
            if *left > 0 && connection.writable_bytes() > 0 {
                let Some(connection) = self.endpoint.connection_mut(*id) else { continue };
                *left -= connection.write(*left);
                if *left == 0 {
                    connection.finish();
                }
            }
        }
        self.unwritten.retain(|(_, left)| *left > 0);
    }

    fn fetch(&mut self, now_ns: i64) {
        if self.current.is_none() && self.left > 0 && now_ns >= self.next_ns {
            self.left -= 1;
            let id = self.endpoint.connect(now_ns, SocketAddrV4::new(SERVER, 443));
            self.current = Some((id, now_ns, 0));
        }
        let Some((id, start_ns, got)) = &mut self.current else { return };
        if self.endpoint.connection(*id).is_some_and(|c| c.readable_bytes() > 0)
            && let Some(connection) = self.endpoint.connection_mut(*id)
        {
            *got += connection.read(now_ns, u64::MAX);
        }
        if *got >= self.file_bytes {
            if let Some(connection) = self.endpoint.connection_mut(*id) {
                connection.finish();
            }
            self.ended.push((*start_ns, now_ns, *got));
            self.next_ns = now_ns + self.pause_ns;
            self.current = None;
        }
    }
}

impl Host for Files {
    fn handle_packet(&mut self, now_ns: i64, packet: IpPacket) {
        if let Transport::Tcp(segment) = &packet.transport {
            self.endpoint.handle_segment(now_ns, packet.dst, packet.src, segment);
        }
        self.act(now_ns);
    }

    fn handle_timeout(&mut self, now_ns: i64) {
        self.endpoint.handle_timeout(now_ns);
        self.act(now_ns);
    }

    fn poll_transmit(&mut self, now_ns: i64) -> Option<IpPacket> {
        self.endpoint.poll_transmit(now_ns)
    }

    fn poll_timeout(&self) -> Option<i64> {
        let next = (self.current.is_none() && self.left > 0).then_some(self.next_ns);
        [self.endpoint.poll_timeout(), next].into_iter().flatten().min()
    }
}

/// A user that downloads files of a size, from `start_ns` on.
pub fn user(
    file_bytes: u64,
    start_ns: i64,
    pause_ns: i64,
    link: LinkConfig,
    core: CoreConfig,
    seed: u64,
) -> SimulatedUser<Files> {
    SimulatedUser {
        name: format!("user {seed}"),
        address: PHONE,
        phone: Files::phone(file_bytes, start_ns, pause_ns, u32::MAX, 2 * seed),
        server: Files::server(file_bytes, 2 * seed + 1),
        proxy: None,
        core,
        link,
    }
}
