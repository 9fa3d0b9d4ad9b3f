//! Options: identifying ones become padding, in place.

use airmile_pseudonym::Changes;

/// IPv4 options (RFC 791, 3.1): router alert stays (RFC 2113).
pub(super) fn ipv4(options: &mut [u8], changes: &mut Changes) {
    const ROUTER_ALERT: u8 = 148;
    walk(options, changes, "ip_options", |kind, _| kind == ROUTER_ALERT);
}

/// TCP options (RFC 9293, 3.2): MSS, window scale, SACK and timestamps stay; cookies,
/// keys and addresses do not.
pub(super) fn tcp(options: &mut [u8], changes: &mut Changes) {
    walk(options, changes, "tcp_options", |kind, length| match kind {
        2 => length == 4,
        3 => length == 3,
        4 => length == 2,
        // RFC 2018, 3: one to four blocks.
        5 => matches!(length, 10 | 18 | 26 | 34),
        8 => length == 10,
        _ => false,
    });
}

/// Kind 0 ends the list, kind 1 is a no-operation, all others have a length. Removed
/// options become no-operations; after the end, or an impossible length, everything
/// becomes zero.
fn walk(
    options: &mut [u8],
    changes: &mut Changes,
    what: &'static str,
    stays: impl Fn(u8, usize) -> bool,
) {
    let mut at = 0;
    while let Some(&[kind, ref rest @ ..]) = options.get(at..) {
        let length = match (kind, rest.first()) {
            (1, _) => {
                at += 1;
                continue;
            }
            // Truncated after its kind.
            (2.., None) => 1,
            (2.., Some(&length)) if length >= 2 => usize::from(length),
            _ => {
                let behind = &mut options[at..];
                changes.add(what, u64::from(behind.iter().any(|&byte| byte != 0)));
                return behind.fill(0);
            }
        };
        let end = (at + length).min(options.len());
        if !stays(kind, length) {
            options[at..end].fill(1);
            changes.add(what, 1);
        }
        at = end;
    }
}

/// Options of IPv6's hop-by-hop and destination headers (RFC 8200, 4.2):
/// router alert (RFC 2711) and jumbo payload (RFC 2675) stay.
pub(super) fn ipv6(options: &mut [u8], changes: &mut Changes) {
    const PAD_1: u8 = 0;
    const PAD_N: u8 = 1;
    const ROUTER_ALERT: u8 = 5;
    const JUMBO: u8 = 0xc2;
    let mut at = 0;
    while let Some(&[kind, ref rest @ ..]) = options.get(at..) {
        let length = match (kind, rest.first()) {
            (PAD_1, _) | (_, None) => 1,
            (_, Some(&length)) => 2 + usize::from(length),
        };
        let end = (at + length).min(options.len());
        if kind != PAD_1 && !matches!((kind, length), (ROUTER_ALERT, 4) | (JUMBO, 6)) {
            changes.add("ipv6_options", u64::from(kind != PAD_N));
            options[at] = PAD_N;
            options[(at + 2).min(end)..end].fill(0);
        }
        at = end;
    }
}
