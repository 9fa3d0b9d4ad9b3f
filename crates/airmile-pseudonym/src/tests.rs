use std::net::{Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::*;

fn pseudonyms() -> Pseudonyms {
    Pseudonyms::new(&[7; KEY_BYTES])
}

fn v4(text: &str) -> Ipv4Addr {
    let address: Ipv4Addr = text.parse().unwrap();
    pseudonyms().v4(address.octets()).into()
}

fn v6(text: &str) -> Ipv6Addr {
    let address: Ipv6Addr = text.parse().unwrap();
    pseudonyms().v6(address.octets()).into()
}

#[test]
fn special_addresses_stay() {
    for text in ["0.0.0.0", "255.255.255.255"] {
        assert_eq!(v4(text).to_string(), text);
    }
    for text in ["::", "::1"] {
        assert_eq!(v6(text).to_string(), text);
    }
}

#[test]
fn networks_stay_and_hosts_change() {
    for (text, network) in [
        ("10.9.0.2", "10."),
        ("192.168.1.20", "192.168."),
        ("169.254.3.4", "169.254."),
        ("127.0.0.1", "127."),
    ] {
        let is = v4(text).to_string();
        assert!(is.starts_with(network) && is != text, "{text} became {is}");
    }
    assert_eq!(v6("fe80::1:2:3:4").segments()[..4], [0xfe80, 0, 0, 0]);
    assert_ne!(v6("fe80::1:2:3:4"), "fe80::1:2:3:4".parse::<Ipv6Addr>().unwrap());
    assert_eq!(v6("ff02::1:ff00:1234").segments()[0], 0xff02);
    assert_eq!(v6("fd00::1").octets()[0] & 0xfe, 0xfc);
}

#[test]
fn an_ipv4_address_within_ipv6_has_the_same_pseudonym() {
    assert_eq!(v6("::ffff:198.51.100.7").to_ipv4_mapped(), Some(v4("198.51.100.7")));
}

#[test]
fn macs_keep_their_kind() {
    let mut names = pseudonyms();
    assert_eq!(names.mac([0xff; 6]), [0xff; 6]);
    assert_eq!(names.mac([0; 6]), [0; 6]);
    for first in [0x00, 0x01, 0x02, 0x03] {
        let mac = [first, 0x1a, 0x2b, 0x3c, 0x4d, 0x5e];
        let is = names.mac(mac);
        assert_eq!(is[0] & 3, first & 3);
        assert_ne!(is, mac);
    }
}

#[test]
fn another_key_gives_other_pseudonyms() {
    let address = [198, 51, 100, 7];
    assert_ne!(Pseudonyms::new(&[8; KEY_BYTES]).v4(address), pseudonyms().v4(address));
}

#[test]
fn small_ranges_are_permuted() {
    let names = pseudonyms();
    let mut cells: Vec<u64> = (0..504).map(|n| names.number(Identity::PhysicalCell, n)).collect();
    cells.sort_unstable();
    assert!(cells.into_iter().eq(0..504));
    assert_eq!(names.number(Identity::PhysicalCell, 504), 504);
    assert_eq!(names.checksum(0), 0);
    assert!((1..=u16::MAX).step_by(97).all(|n| names.checksum(n) != 0));
}

proptest! {
    #[test]
    fn prefixes_are_preserved(a: u32, b: u32, keep in 0u32..=32) {
        // Random pairs seldom agree: make them agree in the first bits.
        let b = a ^ (b & u32::MAX.checked_shr(keep).unwrap_or(0));
        let mut names = pseudonyms();
        let [x, y] = [a, b].map(|n| u32::from_be_bytes(names.v4(n.to_be_bytes())));
        prop_assert_eq!((a ^ b).leading_zeros(), (x ^ y).leading_zeros());
    }

    #[test]
    fn prefixes_of_ipv6_are_preserved(a: u128, b: u128, keep in 0u32..=128, group: bool) {
        let a = if group { a | 0xff << 120 } else { a };
        let b = a ^ (b & u128::MAX.checked_shr(keep).unwrap_or(0));
        let mut names = pseudonyms();
        let [x, y] = [a, b].map(|n| u128::from_be_bytes(names.v6(n.to_be_bytes())));
        prop_assert_eq!((a ^ b).leading_zeros(), (x ^ y).leading_zeros());
    }

    #[test]
    fn private_stays_private_and_public_public(a: u32) {
        use airmile_model::packet::Address;
        let bytes = a.to_be_bytes();
        let is = pseudonyms().v4(bytes);
        prop_assert_eq!(Address::v4(bytes).is_private(), Address::v4(is).is_private());
    }

    #[test]
    fn numbers_do_not_collide(a in 0u64..1 << 46, b in 0u64..1 << 46) {
        let names = pseudonyms();
        let [x, y] = [a, b].map(|n| names.number(Identity::Mac, n));
        prop_assert_eq!(a == b, x == y);
    }
}

#[test]
fn a_text_has_one_pseudonym_under_a_key() {
    let of = |key: u8, text: &str| Pseudonyms::new(&[key; KEY_BYTES]).text(text);
    assert_eq!(of(1, "a.example"), of(1, "a.example"));
    let all = [
        of(1, ""),
        of(1, "a"),
        of(1, "a\0"),
        of(1, "a.example"),
        of(1, "a.example and more than a block"),
        of(2, "a.example"),
    ];
    assert_eq!(all.iter().collect::<std::collections::BTreeSet<_>>().len(), all.len());
}
