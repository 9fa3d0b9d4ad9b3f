//! Limits on concurrent connections.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use airmile_host::net::host_prefix;
use airmile_host::thread::lock;

use super::ServeLimits;

/// Places for connections: in total, per host, per port.
#[derive(Debug)]
pub(super) struct ClientPlaces {
    all: usize,
    per_host: usize,
    /// A port's share: filling one port leaves the others free.
    per_port: usize,
    taken: Mutex<TakenPlaces>,
}

#[derive(Debug, Default)]
struct TakenPlaces {
    all: usize,
    by_host: HashMap<IpAddr, usize>,
    by_port: HashMap<u16, usize>,
}

impl ClientPlaces {
    pub(super) fn new(limits: ServeLimits, ports: usize) -> Arc<Self> {
        let (all, per_host) = (limits.connections, limits.per_address);
        let per_port = all.div_ceil(ports.max(1));
        Arc::new(Self { all, per_host, per_port, taken: Mutex::default() })
    }
}

/// A connection's place; freed when dropped.
#[derive(Debug)]
pub(super) struct ClientPlace {
    places: Arc<ClientPlaces>,
    host: IpAddr,
    port: u16,
}

impl ClientPlace {
    pub(super) fn take(places: &Arc<ClientPlaces>, address: IpAddr, port: u16) -> Option<Self> {
        let host = host_prefix(address);
        let mut taken = lock(&places.taken);
        let of_host = taken.by_host.get(&host).copied().unwrap_or(0);
        let of_port = taken.by_port.get(&port).copied().unwrap_or(0);
        if taken.all >= places.all || of_host >= places.per_host || of_port >= places.per_port {
            return None;
        }
        taken.all += 1;
        taken.by_host.insert(host, of_host + 1);
        taken.by_port.insert(port, of_port + 1);
        drop(taken);
        Some(Self { places: places.clone(), host, port })
    }
}

impl Drop for ClientPlace {
    fn drop(&mut self) {
        let mut taken = lock(&self.places.taken);
        taken.all = taken.all.saturating_sub(1);
        give_back(&mut taken.by_host, &self.host);
        give_back(&mut taken.by_port, &self.port);
    }
}

fn give_back<K: std::hash::Hash + Eq>(counts: &mut HashMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count = count.saturating_sub(1);
        if *count == 0 {
            counts.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(connections: usize, per_address: usize, ports: usize) -> Arc<ClientPlaces> {
        ClientPlaces::new(ServeLimits { connections, per_address, ..ServeLimits::default() }, ports)
    }

    #[test]
    fn a_host_has_so_many_places() {
        let places = places(3, 2, 1);
        let [one, other] = [IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2])];
        let take = |address| ClientPlace::take(&places, address, 80);
        let first = take(one).unwrap();
        let _second = take(one).unwrap();
        assert!(take(one).is_none());
        let _third = take(other).unwrap();
        assert!(take(other).is_none());
        drop(first);
        assert!(take(one).is_some());
    }

    #[test]
    fn addresses_of_a_64_are_one_host() {
        let places = places(64, 2, 1);
        let address = |last| -> IpAddr { format!("2001:db8:0:1:{last}::1").parse().unwrap() };
        let all: Vec<_> =
            (0..8).map(|last| ClientPlace::take(&places, address(last), 80)).collect();
        assert_eq!(all.iter().flatten().count(), 2);
        assert!(ClientPlace::take(&places, "2001:db8:0:2::1".parse().unwrap(), 80).is_some());
    }

    #[test]
    fn a_port_has_its_share_of_the_places() {
        let places = places(64, 64, 4);
        let host = |n: u8| IpAddr::from([192, 0, 2, n]);
        let flood: Vec<_> =
            (0..64).filter_map(|n| ClientPlace::take(&places, host(n), 443)).collect();
        assert_eq!(flood.len(), 16);
        assert!(ClientPlace::take(&places, host(99), 80).is_some());
    }
}
