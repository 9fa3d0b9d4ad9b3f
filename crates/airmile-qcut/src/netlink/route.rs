//! Links, routes and rules (rtnetlink(7)) that direct traffic to a TUN device and back out.

use std::io;
use std::net::IpAddr;

use super::{CREATE, EXCLUSIVE, Netlink, NetlinkMessage, attributes, u32_at};

const SET_LINK: u16 = 19;
const NEW_ROUTE: u16 = 24;
const DELETE_ROUTE: u16 = 25;
const GET_ROUTE: u16 = 26;
const NEW_RULE: u16 = 32;
const DELETE_RULE: u16 = 33;

/// Attributes of links.
const MTU: u16 = 4;
const QUEUE_LENGTH: u16 = 13;

/// Attributes of routes.
const DESTINATION: u16 = 1;
const OUTPUT: u16 = 4;
const GATEWAY: u16 = 5;
const PRIORITY: u16 = 6;
const PREFERRED_SOURCE: u16 = 7;
const METRICS: u16 = 8;
const MULTIPATH: u16 = 9;
const CACHE: u16 = 12;
const TABLE: u16 = 15;

/// Attributes of rules.
const RULE_PRIORITY: u16 = 6;
const RULE_MARK: u16 = 10;
const RULE_TABLE: u16 = 15;
const RULE_MASK: u16 = 16;
const TO_TABLE: u8 = 1;
const INVERT: u32 = 2;

const MAIN: u32 = 254;
const SCOPE_LINK: u8 = 253;
const UNICAST: u8 = 1;
/// Blackhole, unreachable and prohibit; and the type that continues with the next rule,
/// which is the main table's.
const REFUSING: [u8; 3] = [6, 7, 8];
const THROW: u8 = 9;
/// Protocol of our routes (chosen here: not used by iproute2).
const PROTOCOL: u8 = 0xa1;

/// Address families (linux/socket.h).
pub(crate) const FAMILIES: [u8; 2] = [2, 10];

/// Sets a link up, with an MTU and a queue length.
pub(crate) fn set_up(netlink: &mut Netlink, index: u32, mtu: u32, packets: u32) -> io::Result<()> {
    let mut head = [0; 16];
    head[4..8].copy_from_slice(&index.to_ne_bytes());
    // IFF_UP is the only changed flag.
    head[8] = 1;
    head[12] = 1;
    let message = NetlinkMessage::new(SET_LINK, 0).raw(&head);
    netlink.request(message.number(MTU, mtu).number(QUEUE_LENGTH, packets))
}

/// Copies the main table to another one, with one device replaced by another. Multipath
/// routes are left out; returns their number.
pub(crate) fn copy_routes(
    netlink: &mut Netlink,
    family: u8,
    (from, to): (u32, u32),
    table: u32,
    source: Option<IpAddr>,
) -> io::Result<usize> {
    let mut head = [0; 12];
    head[0] = family;
    let all = netlink.dump(NetlinkMessage::new(GET_ROUTE, 0).raw(&head))?;
    let mut copies: Vec<(u8, NetlinkMessage)> = Vec::new();
    let mut left_out = 0;
    for body in &all {
        match copied(body, (from, to), table, source) {
            Copied::Route(scope, message) => copies.push((scope, message)),
            Copied::LeftOut => left_out += 1,
            Copied::NotOfTable => {}
        }
    }
    // Gateways are reached by routes of a narrower scope, which must come first.
    copies.sort_by_key(|(scope, _)| std::cmp::Reverse(*scope));
    for (_, message) in copies {
        match netlink.request(message) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
            _ => {}
        }
    }
    Ok(left_out)
}

enum Copied {
    Route(u8, NetlinkMessage),
    LeftOut,
    NotOfTable,
}

/// A route of the main table, rewritten for the other one.
fn copied(body: &[u8], (from, to): (u32, u32), table: u32, source: Option<IpAddr>) -> Copied {
    let Some((head, rest)) = body.split_at_checked(12) else { return Copied::NotOfTable };
    let number = |kind: u16| {
        attributes(rest).find(|(of, _)| *of == kind).and_then(|(_, value)| u32_at(value, 0))
    };
    // Refusing routes become lookups in the main table: without them the refused traffic
    // would pass, and once the device is gone nothing is refused that was not before.
    let refuses = REFUSING.contains(&head[7]);
    if number(TABLE).unwrap_or(u32::from(head[4])) != MAIN || !(head[7] == UNICAST || refuses) {
        return Copied::NotOfTable;
    }
    if attributes(rest).any(|(kind, _)| kind == MULTIPATH) {
        return Copied::LeftOut;
    }
    // Neighbours with link-local addresses stay on their interface (RFC 4291, 2.5.6).
    let is_link_local = attributes(rest).any(|(kind, value)| {
        kind == DESTINATION
            && value.len() == 16
            && matches!(value, [0xfe, second, ..] if second & 0xc0 == 0x80)
    });
    let moves = number(OUTPUT) == Some(from) && !is_link_local;
    let mut own = [0; 12];
    own.copy_from_slice(head);
    // The table's number has 32 bits elsewhere; flags are the kernel's (rtm_flags).
    (own[4], own[5]) = (0, PROTOCOL);
    own[8..12].fill(0);
    if refuses {
        own[7] = THROW;
    }
    if moves {
        own[6] = SCOPE_LINK;
    }
    let mut message =
        NetlinkMessage::new(NEW_ROUTE, CREATE | EXCLUSIVE).raw(&own).number(TABLE, table);
    let mut has_source = false;
    for (kind, value) in attributes(rest) {
        match kind {
            TABLE | CACHE => {}
            GATEWAY if moves => {}
            OUTPUT if moves => message = message.number(OUTPUT, to),
            METRICS => message = message.attribute(METRICS | super::NESTED, value),
            // Attributes that a request may have; those that the kernel adds are left out.
            // The kernel reports loopback for some refusing routes.
            OUTPUT if refuses => {}
            DESTINATION | OUTPUT | GATEWAY | PREFERRED_SOURCE | PRIORITY => {
                has_source |= kind == PREFERRED_SOURCE;
                message = message.attribute(kind, value);
            }
            _ => {}
        }
    }
    // The device has no address: the address of the other one applies.
    if let Some(address) = source.filter(|_| moves && !has_source) {
        message = match address {
            IpAddr::V4(address) => message.attribute(PREFERRED_SOURCE, &address.octets()),
            IpAddr::V6(address) => message.attribute(PREFERRED_SOURCE, &address.octets()),
        };
    }
    Copied::Route(own[6], message)
}

/// Removes the routes of a table.
pub(crate) fn empty(netlink: &mut Netlink, family: u8, table: u32) -> io::Result<()> {
    let mut head = [0; 12];
    head[0] = family;
    let all = netlink.dump(NetlinkMessage::new(GET_ROUTE, 0).raw(&head))?;
    for body in &all {
        let Some((head, rest)) = body.split_at_checked(12) else { continue };
        let is_of = |(kind, value): (u16, &[u8])| kind == TABLE && u32_at(value, 0) == Some(table);
        if head[5] != PROTOCOL || !attributes(rest).any(is_of) {
            continue;
        }
        let mut message = NetlinkMessage::new(DELETE_ROUTE, 0).raw(head);
        for (kind, value) in attributes(rest).filter(|(kind, _)| *kind != CACHE) {
            message = message.attribute(kind, value);
        }
        // A route may have disappeared with its device.
        let _ = netlink.request(message);
    }
    Ok(())
}

fn rule(kind: u16, flags: u16, family: u8, priority: u32, mark: u32, table: u32) -> NetlinkMessage {
    let mut head = [0; 12];
    (head[0], head[7]) = (family, TO_TABLE);
    head[8..12].copy_from_slice(&INVERT.to_ne_bytes());
    NetlinkMessage::new(kind, flags)
        .raw(&head)
        .number(RULE_PRIORITY, priority)
        .number(RULE_MARK, mark)
        .number(RULE_MASK, u32::MAX)
        .number(RULE_TABLE, table)
}

/// Directs traffic without the mark to the table.
pub(crate) fn add_rule(
    netlink: &mut Netlink,
    (family, priority): (u8, u32),
    mark: u32,
    table: u32,
) -> io::Result<()> {
    netlink.request(rule(NEW_RULE, CREATE | EXCLUSIVE, family, priority, mark, table))
}

/// Removes that rule; a missing one is no error. Returns whether it existed.
pub(crate) fn delete_rule(
    netlink: &mut Netlink,
    (family, priority): (u8, u32),
    mark: u32,
    table: u32,
) -> io::Result<bool> {
    match netlink.request(rule(DELETE_RULE, 0, family, priority, mark, table)) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        result => result.map(|()| true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A default route by device 3, gateway 10.0.0.1.
    fn default_route(device: u32, table: u8) -> Vec<u8> {
        let head = [2, 0, 0, 0, table, 3, 0, UNICAST, 0, 0, 0, 0];
        let message = NetlinkMessage::new(NEW_ROUTE, 0)
            .raw(&head)
            .number(TABLE, table.into())
            .attribute(GATEWAY, &[10, 0, 0, 1])
            .number(OUTPUT, device);
        message.finish(0, 0)[16..].to_vec()
    }

    #[test]
    fn routes_by_the_device_go_by_the_other() {
        let source = Some(IpAddr::from([10, 0, 0, 5]));
        let read = |body: &[u8]| match copied(body, (3, 9), 700, source) {
            Copied::Route(_, message) => {
                let bytes = message.finish(0, 0);
                Some(attributes(&bytes[28..]).map(|(kind, v)| (kind, v.to_vec())).collect())
            }
            _ => None,
        };
        let number = |value: u32| value.to_ne_bytes().to_vec();
        let ours: Vec<(u16, Vec<u8>)> =
            vec![(TABLE, number(700)), (OUTPUT, number(9)), (PREFERRED_SOURCE, vec![10, 0, 0, 5])];
        let others = vec![(TABLE, number(700)), (GATEWAY, vec![10, 0, 0, 1]), (OUTPUT, number(4))];
        assert_eq!(read(&default_route(3, 254)), Some(ours));
        assert_eq!(read(&default_route(4, 254)), Some(others));
        assert_eq!(read(&default_route(3, 255)), None);
        assert_eq!(read(&[]), None);
    }
}
