//! Requests that several logs of applications describe.

use std::collections::BTreeMap;

use airmile_model::AppTransfer;

/// Requests by their end in ms: those of earlier logs.
pub(super) type Logged<'a> = BTreeMap<i64, Vec<&'a AppTransfer>>;

pub(super) const fn end_ms(transfer: &AppTransfer) -> i64 {
    transfer.end_ns.div_euclid(1_000_000)
}

/// The path of a URL, without its query: a log may have no host, and another no query.
fn path(transfer: &AppTransfer) -> Option<&str> {
    let url = transfer.url.as_deref()?;
    let url = url.split_once("://").map_or(url, |(_, rest)| &rest[rest.find('/').unwrap_or(0)..]);
    url.split('?').next()
}

/// The same request in another log: one that ended then, to a millisecond, with its path, or without one,
/// with its start. Each describes one.
pub(super) fn take_logged<'a>(
    transfer: &AppTransfer,
    others: &mut Logged<'a>,
) -> Option<&'a AppTransfer> {
    let (end, own) = (end_ms(transfer), path(transfer));
    let same = |other: &&AppTransfer| match own.zip(path(other)) {
        Some((own, other)) => own == other,
        None => transfer.start_ns.abs_diff(other.start_ns) <= 1_000_000,
    };
    others.range_mut(end - 1..=end + 1).find_map(|(_, at)| {
        let found = at.iter().position(same)?;
        Some(at.swap_remove(found))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_in_two_logs_is_one() {
        let request = |start_ms: i64, end_ms: i64, url: &str| AppTransfer {
            url: Some(url.to_owned()),
            ..AppTransfer::new("one".into(), start_ms * 1_000_000, end_ms * 1_000_000)
        };
        let one = request(855, 983, "/page/0/10?bytes=81500");
        let mut others = Logged::from([(983, vec![&one])]);
        let in_har = request(790, 983, "http://server.example/page/0/10");
        let other = request(790, 983, "http://server.example/page/0/11");
        assert_eq!(take_logged(&other, &mut others), None);
        assert_eq!(take_logged(&in_har, &mut others), Some(&one));
        assert_eq!(take_logged(&in_har, &mut others), None);
    }
}
