//! Where a capture was taken, from the round trips on the two sides of the monitor.

use std::collections::{BTreeMap, BTreeSet};

use airmile_model::packet::Address;

use super::SenderModel;

/// If one side's round trip is less than this share of the other's, the monitor is at
/// that end (chosen here).
const AT_END_SHARE: f64 = 0.1;
/// This near to the client there is no radio in between (chosen here: the client's own
/// stack takes less, the air interface more).
const AT_PHONE_NS: i64 = 2_000_000;
/// The minimum round trip over a cellular link: LTE's user plane takes 4 ms one way (TR
/// 36.912, 11.3.2), NR's with its longest slot about as long both ways (TR 37.910,
/// 5.7.1).
pub const MIN_RADIO_RTT_NS: i64 = 4_000_000;

/// Where a capture was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum CaptureSite {
    /// At the phone: after the air interface.
    Phone,
    /// Between the phone and the server.
    Between,
    /// At the server.
    Server,
    /// Inside a host: over loopback, or before a VPN on the phone that ends its connections.
    Inside,
    /// Unknown: no round trip was measured.
    #[default]
    Unknown,
}

/// Round trips between the monitor and either end, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sides {
    /// On the server's side.
    pub upstream_ns: Option<i64>,
    /// On the client's side.
    pub downstream_ns: Option<i64>,
    /// The shortest there: a phone's stack is slow at times, and a radio link always.
    pub least_downstream_ns: Option<i64>,
}

impl Sides {
    /// From the connections of a phone, by the upper quartile: a proxy that splits each
    /// connection is near to one end of each leg, so half of the legs are near to either.
    pub fn from_connections<'a>(models: impl Iterator<Item = &'a SenderModel> + Clone) -> Self {
        let upstream_ns = models.clone().filter_map(SenderModel::upstream_rtt_ns);
        let downstream_ns = models.filter_map(SenderModel::downstream_rtt_ns);
        Self {
            upstream_ns: upper_quartile(upstream_ns.collect()),
            least_downstream_ns: downstream_ns.clone().min(),
            downstream_ns: upper_quartile(downstream_ns.collect()),
        }
    }

    /// Where the monitor was.
    #[must_use]
    pub fn place(&self) -> CaptureSite {
        let (Some(up), Some(down)) = (self.upstream_ns, self.downstream_ns) else {
            return CaptureSite::Unknown;
        };
        let is_near = |one: i64, other: i64| (one as f64) < other as f64 * AT_END_SHARE;
        // A radio link may be a small share of a long path, but takes a time of its own.
        let crosses_radio = self.least_downstream_ns.is_none_or(|ns| ns >= MIN_RADIO_RTT_NS);
        let at_phone = down < AT_PHONE_NS && down <= up;
        if at_phone || is_near(down, up) && !crosses_radio {
            CaptureSite::Phone
        } else if is_near(up, down) {
            CaptureSite::Server
        } else {
            CaptureSite::Between
        }
    }
}

/// No path over a cell and the internet to servers in so many networks takes less than this to each
/// (chosen here: a VPN on a phone acknowledges after 1 to 9 ms in public captures, and its servers answer
/// after 52 ms and more).
const INSIDE_NS: i64 = 10_000_000;
const INSIDE_NETWORKS: usize = 4;
/// One of so many servers that are as near as this answers sooner (chosen here).
const ANSWER_NS: i64 = 15_000_000;

/// Whether the connections of an address end inside its host, by the round trips to its servers: over
/// loopback, or at a VPN, which has a private address and acknowledges for servers of all networks (IPv4:
/// of 16 bits, IPv6: of 32) at once, while no first request is answered at once.
#[must_use]
pub fn ends_inside<'a>(
    own: Address,
    connections: impl Iterator<Item = (Option<Address>, &'a SenderModel)>,
) -> bool {
    // A VPN does not end QUIC.
    let tcp = connections.filter(|(_, model)| !model.is_encrypted());
    let times = |(server, model): (Option<Address>, &SenderModel)| {
        Some((server?, model.upstream_rtt_ns()?, model.first_answer_ns()))
    };
    are_ended(own, tcp.filter_map(times))
}

/// By each server, a round trip to it, and the time of a first answer.
fn are_ended(own: Address, times: impl Iterator<Item = (Address, i64, Option<i64>)>) -> bool {
    let mut least_ns: BTreeMap<Address, i64> = BTreeMap::new();
    let mut answer_ns: Option<i64> = None;
    for (server, rtt_ns, first_ns) in times.filter(|(server, ..)| !server.is_private()) {
        let least = least_ns.entry(server).or_insert(rtt_ns);
        *least = rtt_ns.min(*least);
        answer_ns = answer_ns.into_iter().chain(first_ns).min();
    }
    let network = |server: &Address| match server.words() {
        [_, low] if server.is_v4() => low >> 16,
        [high, _] => high >> 32,
    };
    let networks: BTreeSet<u64> = least_ns.keys().map(network).collect();
    let is_far = answer_ns.is_some_and(|ns| ns > ANSWER_NS);
    let at_once = || least_ns.values().all(|ns| *ns <= INSIDE_NS);
    let is_ended = networks.len() >= INSIDE_NETWORKS && is_far && at_once();
    own.ip().is_loopback() || own.is_private() && is_ended
}

fn upper_quartile(mut values: Vec<i64>) -> Option<i64> {
    values.sort_unstable();
    values.get(values.len() * 3 / 4).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A phone in Wi-Fi has near servers, too: they answer at once, and are not the only ones.
    #[test]
    fn a_vpn_acknowledges_at_once_for_servers_everywhere() {
        let answered = |own: [u8; 4], rtts_ms: &[([u8; 2], i64)], first_ms: Option<i64>| {
            let ns = |ms: i64| ms * 1_000_000;
            let each = rtts_ms.iter().map(|&([a, b], ms)| {
                (Address::v4([a, b, 7, 1]), ns(ms), first_ms.map(|late_ms| ns(ms + late_ms)))
            });
            are_ended(Address::v4(own), each)
        };
        let of = |own, rtts_ms: &_| answered(own, rtts_ms, Some(50));
        let vpn = [10, 8, 0, 1];
        let all = [([54, 230], 1), ([46, 51], 2), ([52, 17], 9), ([65, 39], 4), ([65, 39], 900)];
        assert!(of(vpn, &all));
        // A resolver or a host nearby shows nothing.
        assert!(of(vpn, &[&all[..], &[([192, 168], 40)]].concat()));
        assert!(!of(vpn, &[&all[..], &[([8, 8], 11)]].concat()) && !of(vpn, &all[..3]));
        assert!(!of([54, 77, 0, 1], &all) && of([127, 0, 0, 1], &[]));
        // Behind fibre, with a network of CDNs in each city.
        let late = [Some(15), Some(14), Some(2), None].map(|late| answered(vpn, &all, late));
        assert_eq!(late, [true, false, false, false]);
    }

    #[test]
    fn a_radio_link_on_a_long_path_is_no_phone() {
        // Round trips in microseconds: to the server, to the client, the least of these.
        let check = |upstream: i64, downstream: i64, least: i64, expected: CaptureSite| {
            let ns = |us: i64| Some(us * 1_000);
            let sides = Sides {
                upstream_ns: ns(upstream),
                downstream_ns: ns(downstream),
                least_downstream_ns: ns(least),
            };
            assert_eq!(sides.place(), expected, "{sides:?}");
        };
        check(40_000, 100, 100, CaptureSite::Phone);
        // A slow phone (a public capture).
        check(148_041, 10_284, 274, CaptureSite::Phone);
        // In front of a cell of ns-3, and the same on a longer path.
        check(94_002, 14_998, 7_964, CaptureSite::Between);
        check(194_002, 14_998, 7_964, CaptureSite::Between);
        check(100, 40_000, 40_000, CaptureSite::Server);
    }
}
