//! Addresses of hosts.

use std::net::{IpAddr, Ipv6Addr};

/// The address under which a host is counted: IPv4's own, also if mapped into IPv6, and
/// the /64 of IPv6, as a host may use any address in it (RFC 8981; RFC 4291, 2.5.4).
#[must_use]
pub fn host_prefix(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        canonical => canonical,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_its_64() {
        let prefix = |text: &str| host_prefix(text.parse().unwrap()).to_string();
        assert_eq!(prefix("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(prefix("2001:db8:1:3::1"), "2001:db8:1:3::");
        assert_eq!(prefix("::ffff:192.0.2.1"), "192.0.2.1");
        assert_eq!(prefix("192.0.2.1"), "192.0.2.1");
    }
}
