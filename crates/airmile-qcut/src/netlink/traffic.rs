//! Queueing disciplines and classes (linux/pkt_sched.h): an HTB or a CAKE whose rate
//! follows the gate's estimate, and the restoration of the former one.

use std::io;

use airmile_control::qcut::OPEN_BYTES_PER_S;

use super::{CREATE, EXCLUSIVE, Netlink, NetlinkMessage, REPLACE, attributes, u32_at};

const NEW_QDISC: u16 = 36;
const DELETE_QDISC: u16 = 37;
const GET_QDISC: u16 = 38;
const NEW_CLASS: u16 = 40;
const GET_CLASS: u16 = 42;

/// Attributes of all disciplines.
const KIND: u16 = 1;
const OPTIONS: u16 = 2;
const STATISTICS: u16 = 7;
const BASIC: u16 = 1;
const QUEUE: u16 = 3;

/// Attributes of HTB.
const PARAMETERS: u16 = 1;
const INITIAL: u16 = 2;
const RATE_64: u16 = 6;
const CEILING_64: u16 = 7;

/// Attributes of fq_codel.
const TARGET_US: u16 = 1;
const QUANTUM: u16 = 6;

/// Attributes of TBF.
const BUCKET: u16 = 1;
const BUCKET_RATE_64: u16 = 4;
const BUCKET_BYTES: u16 = 6;

/// Attributes of CAKE, and its tins by four groups of DSCP (diffserv4).
const BASE_RATE_64: u16 = 2;
const DIFFSERV_MODE: u16 = 3;
const DIFFSERV_4: u32 = 1;

/// A rate that limits nothing, in bytes per second.
const NO_LIMIT_BYTES_PER_S: u64 = 125_000_000_000;

const ROOT: u32 = 0xffff_ffff;

/// The major number of our HTB (chosen here: unlikely to be used by hand).
pub(crate) const MAJOR: u32 = 0xa11e;

/// The class below the root, which has the rate.
const WHOLE: u32 = 1;

/// Classes by tier, as minor numbers.
pub(crate) const CLASSES: [u32; 3] = [0x10, 0x20, 0x30];

/// Burst of a class, in ns at its rate (chosen here: the period of rate changes; at least
/// two large packets).
const BURST_NS: u64 = 2_000_000;
const LEAST_BURST_BYTES: u64 = 3_100;

/// Guaranteed share of a class when all others are busy: the share that the core's queueing
/// leaves to lower tiers (5 %, as chosen there).
const LEAST_SHARE: u64 = 20;

/// A queueing discipline at an interface's root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Root {
    pub(crate) kind: String,
    /// 0: the kernel's default, which it restores by itself.
    pub(crate) handle: u32,
    /// Its options in the kernel's format.
    pub(crate) options: Vec<u8>,
}

/// The leaf below each class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leaf {
    /// A queue for each flow, with CoDel.
    FqCodel,
    /// One short queue, if the kernel has no fq_codel: below a TBF without a limit, which
    /// segments GSO packets.
    Bucket {
        /// Two large packets of the interface: larger ones are segmented.
        bytes: u32,
    },
    /// One queue with room for GSO packets, if there is no TBF either.
    Fifo,
}

/// Counters of a class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ClassCounts {
    pub(crate) sent_bytes: u64,
    pub(crate) sent_packets: u64,
    pub(crate) dropped: u64,
    pub(crate) waiting_packets: u64,
    pub(crate) waiting_bytes: u64,
}

/// struct tcmsg.
fn head(index: u32, handle: u32, parent: u32) -> [u8; 20] {
    let mut head = [0; 20];
    for (at, value) in [(4, index), (8, handle), (12, parent)] {
        head[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }
    head
}

const fn class(minor: u32) -> u32 {
    MAJOR << 16 | minor
}

/// The discipline at an interface's root.
pub(crate) fn root_of(netlink: &mut Netlink, index: u32) -> io::Result<Option<Root>> {
    let all = netlink.dump(NetlinkMessage::new(GET_QDISC, 0).raw(&head(index, 0, 0)))?;
    let is_root =
        |body: &&Vec<u8>| u32_at(body, 4) == Some(index) && u32_at(body, 12) == Some(ROOT);
    Ok(all.iter().find(is_root).and_then(|body| {
        let mut root = Root { kind: String::new(), handle: u32_at(body, 8)?, options: Vec::new() };
        for (kind, value) in attributes(body.get(20..)?) {
            match kind {
                KIND => root.kind = text(value),
                OPTIONS => root.options = value.to_vec(),
                _ => {}
            }
        }
        Some(root)
    }))
}

/// Whether the kernel has a discipline, or loads it: loopback is asked for one with options that
/// it refuses, so that none is made.
pub(crate) fn is_known(netlink: &mut Netlink, kind: &str) -> io::Result<bool> {
    /// The first interface of each network namespace.
    const LOOPBACK: u32 = 1;
    // Each has a number of 32 bits or more as its first attributes: one byte is refused by the
    // policy of its options (ERANGE), and none at all by HTB (EINVAL).
    let message = NetlinkMessage::new(NEW_QDISC, CREATE | REPLACE | EXCLUSIVE)
        .raw(&head(LOOPBACK, 0, ROOT))
        .name(KIND, kind);
    let message = match kind {
        "htb" => message,
        _ => message.nested(OPTIONS, |of| of.attribute(1, &[0]).attribute(2, &[0])),
    };
    match netlink.request(message) {
        Ok(()) => {
            let ours = NetlinkMessage::new(DELETE_QDISC, 0).raw(&head(LOOPBACK, 0, ROOT));
            netlink.request(ours).map(|()| true)
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => Err(e),
        Err(_) => Ok(true),
    }
}

fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value.strip_suffix(&[0]).unwrap_or(value)).into_owned()
}

/// Removes our discipline and restores the former one; returns whether this was necessary.
/// Repeated if the former discipline could not be restored at the first try.
pub(crate) fn put_back(
    netlink: &mut Netlink,
    index: u32,
    former: Option<&Root>,
) -> io::Result<bool> {
    let stands = root_of(netlink, index)?;
    let is_ours = stands.as_ref().is_some_and(|root| root.handle == MAJOR << 16);
    if is_ours {
        netlink.request(NetlinkMessage::new(DELETE_QDISC, 0).raw(&head(
            index,
            MAJOR << 16,
            ROOT,
        )))?;
    }
    // The kernel's default cannot be read and restores itself. Another discipline at the
    // root was installed since then by someone else.
    let is_free = is_ours || stands.is_none_or(|root| root.handle == 0);
    let Some(root) = former.filter(|root| root.handle != 0 && is_free) else {
        return Ok(is_ours);
    };
    let message = NetlinkMessage::new(NEW_QDISC, CREATE | REPLACE)
        .raw(&head(index, root.handle, ROOT))
        .name(KIND, &root.kind);
    netlink.request(match root.options.is_empty() {
        true => message,
        false => message.attribute(OPTIONS, &root.options),
    })?;
    Ok(true)
}

/// Kind of a discipline below an interface's root that is not ours: it would be removed
/// with the root and not come back.
pub(crate) fn child_of(netlink: &mut Netlink, index: u32) -> io::Result<Option<String>> {
    /// The parents of `ingress` and `clsact`, which are independent of the root.
    const INGRESS: u32 = 0xffff_fff1;
    let all = netlink.dump(NetlinkMessage::new(GET_QDISC, 0).raw(&head(index, 0, 0)))?;
    let child = all.iter().find(|body| {
        let number = |at| u32_at(body, at).unwrap_or_default();
        // Disciplines that the kernel created by itself have handle 0.
        number(4) == index && number(8) != 0 && ![0, ROOT, INGRESS].contains(&number(12))
    });
    Ok(child.map(|body| {
        let kind = attributes(body.get(20..).unwrap_or_default()).find(|(kind, _)| *kind == KIND);
        kind.map_or_else(String::new, |(_, value)| text(value))
    }))
}

/// Opens the rate of our HTB or CAKE; returns whether one exists.
pub(crate) fn open_rate(netlink: &mut Netlink, index: u32) -> io::Result<bool> {
    let Some(root) = root_of(netlink, index)?.filter(|root| root.handle == MAJOR << 16) else {
        return Ok(false);
    };
    match root.kind.as_str() {
        "cake" => set_cake(netlink, index, OPEN_BYTES_PER_S)?,
        // The short queues keep their length: they are empty at this rate.
        _ => netlink.request_all(rates(index, OPEN_BYTES_PER_S, 0))?,
    }
    Ok(true)
}

/// Installs a CAKE at the root.
pub(crate) fn install_cake(netlink: &mut Netlink, index: u32, bytes_per_s: u64) -> io::Result<()> {
    netlink.request(cake(index, bytes_per_s, CREATE | REPLACE))
}

/// Changes the rate of the CAKE.
pub(crate) fn set_cake(netlink: &mut Netlink, index: u32, bytes_per_s: u64) -> io::Result<()> {
    netlink.request(cake(index, bytes_per_s, REPLACE))
}

fn cake(index: u32, bytes_per_s: u64, flags: u16) -> NetlinkMessage {
    NetlinkMessage::new(NEW_QDISC, flags)
        .raw(&head(index, MAJOR << 16, ROOT))
        .name(KIND, "cake")
        .nested(OPTIONS, |of| {
            of.attribute(BASE_RATE_64, &bytes_per_s.to_ne_bytes()).number(DIFFSERV_MODE, DIFFSERV_4)
        })
}

/// Installs an HTB at the root, with a class for each tier; returns the leaves' kind.
/// `packet_bytes`: the interface's maximum packet with its link header.
pub(crate) fn install(
    netlink: &mut Netlink,
    index: u32,
    bytes_per_s: u64,
    packet_bytes: u32,
) -> io::Result<Leaf> {
    // struct tc_htb_glob: version 3, rate to quantum, the default class.
    let initial: Vec<u8> =
        [3, 10, CLASSES[1], 0, 0].iter().flat_map(|value: &u32| value.to_ne_bytes()).collect();
    netlink.request(
        NetlinkMessage::new(NEW_QDISC, CREATE | REPLACE)
            .raw(&head(index, MAJOR << 16, ROOT))
            .name(KIND, "htb")
            .nested(OPTIONS, |of| of.attribute(INITIAL, &initial)),
    )?;
    netlink.request_all(rates(index, bytes_per_s, CREATE))?;
    let bytes = packet_bytes.saturating_mul(2);
    let mut leaf = Leaf::FqCodel;
    let [first, others @ ..] = CLASSES;
    for of in [Leaf::FqCodel, Leaf::Bucket { bytes }, Leaf::Fifo] {
        leaf = of;
        let message = below(index, first, leaf, bytes_per_s, CREATE | EXCLUSIVE);
        match netlink.request(message) {
            Ok(()) => break,
            // ENOENT: the kernel does not have it.
            Err(e) if e.kind() == io::ErrorKind::NotFound && leaf != Leaf::Fifo => {}
            Err(e) => return Err(e),
        }
    }
    let of_others = others.map(|minor| below(index, minor, leaf, bytes_per_s, CREATE | EXCLUSIVE));
    netlink.request_all(of_others.into())?;
    Ok(leaf)
}

/// Changes the rate, and with it the length of short queues.
pub(crate) fn set_rate(
    netlink: &mut Netlink,
    index: u32,
    bytes_per_s: u64,
    leaf: Leaf,
) -> io::Result<()> {
    let mut all = rates(index, bytes_per_s, 0);
    if leaf != Leaf::FqCodel {
        all.extend(CLASSES.map(|minor| below(index, minor, leaf, bytes_per_s, REPLACE)));
    }
    netlink.request_all(all)
}

/// A short queue holds 50 ms, the delay of a page's requests during an upload. Its minimum
/// is two initial windows (RFC 6928) if bursts are segmented, and otherwise two GSO packets
/// of the maximum size, which are dropped whole without room (chosen here).
fn below(index: u32, minor: u32, leaf: Leaf, bytes_per_s: u64, flags: u16) -> NetlinkMessage {
    let message = NetlinkMessage::new(NEW_QDISC, flags).raw(&head(
        index,
        (MAJOR + minor) << 16,
        class(minor),
    ));
    let limit = |least: u64| u32::try_from((bytes_per_s / 20).max(least)).unwrap_or(u32::MAX);
    match leaf {
        Leaf::FqCodel => message
            .name(KIND, "fq_codel")
            .nested(OPTIONS, |of| of.number(TARGET_US, 5_000).number(QUANTUM, 1_514)),
        Leaf::Bucket { bytes } => message.name(KIND, "tbf").nested(OPTIONS, |of| {
            of.attribute(BUCKET, &bucket(limit(33_000)))
                .attribute(BUCKET_RATE_64, &NO_LIMIT_BYTES_PER_S.to_ne_bytes())
                .number(BUCKET_BYTES, bytes)
        }),
        Leaf::Fifo => message.name(KIND, "bfifo").number(OPTIONS, limit(2 * 65_536)),
    }
}

/// struct tc_tbf_qopt: the rate is in a separate 64-bit attribute; no peak rate; the limit;
/// bucket and packet size are separate attributes in bytes.
fn bucket(limit_bytes: u32) -> Vec<u8> {
    let mut out = Vec::new();
    for rate in [u32::MAX, 0] {
        // Ethernet's link layer, so that the kernel builds no rate table.
        out.extend([0, u8::from(rate > 0), 0, 0, 0, 0, 0, 0]);
        out.extend(rate.to_ne_bytes());
    }
    for value in [limit_bytes, 0, 0] {
        out.extend(value.to_ne_bytes());
    }
    out
}

/// The classes at a rate.
fn rates(index: u32, bytes_per_s: u64, flags: u16) -> Vec<NetlinkMessage> {
    let one = |parent: u32, minor: u32, rate: u64, priority: u32| {
        NetlinkMessage::new(NEW_CLASS, flags)
            .raw(&head(index, class(minor), parent))
            .name(KIND, "htb")
            .nested(OPTIONS, |of| {
                let of = of.attribute(PARAMETERS, &parameters(rate, bytes_per_s, priority));
                // For rates above 32 bits.
                match u32::try_from(bytes_per_s) {
                    Ok(_) => of,
                    Err(_) => of
                        .attribute(RATE_64, &rate.to_ne_bytes())
                        .attribute(CEILING_64, &bytes_per_s.to_ne_bytes()),
                }
            })
    };
    let mut all = vec![one(MAJOR << 16, WHOLE, bytes_per_s, 0)];
    for (priority, minor) in (0..).zip(CLASSES) {
        let share = (bytes_per_s / LEAST_SHARE).max(1);
        all.push(one(class(WHOLE), minor, share, priority));
    }
    all
}

/// struct tc_htb_opt.
fn parameters(rate: u64, ceiling: u64, priority: u32) -> Vec<u8> {
    let mut out = Vec::new();
    for bytes_per_s in [rate, ceiling] {
        // struct tc_ratespec: Ethernet's link layer, so that the kernel builds no rate
        // table; neither overhead nor minimum size.
        out.extend([0, 1, 0, 0, 0, 0, 0, 0]);
        out.extend(u32::try_from(bytes_per_s).unwrap_or(u32::MAX).to_ne_bytes());
    }
    for bytes_per_s in [rate, ceiling] {
        // In ticks of 64 ns.
        let least_ns = LEAST_BURST_BYTES.saturating_mul(1_000_000_000) / bytes_per_s.max(1);
        let ticks = least_ns.max(BURST_NS) / 64;
        out.extend(u32::try_from(ticks).unwrap_or(u32::MAX).to_ne_bytes());
    }
    // Quantum of one large packet, no level, and the priority.
    for value in [1_514, 0, priority] {
        out.extend(value.to_ne_bytes());
    }
    out
}

/// Counters of our classes by tier; all in the second for a CAKE, which has no such
/// classes.
pub(crate) fn counts(netlink: &mut Netlink, index: u32) -> io::Result<[ClassCounts; 3]> {
    let mut found = [ClassCounts::default(); 3];
    let tier = |handle: u32| CLASSES.iter().position(|minor| class(*minor) == handle);
    for body in &netlink.dump(NetlinkMessage::new(GET_CLASS, 0).raw(&head(index, 0, 0)))? {
        let of = tier(u32_at(body, 8).unwrap_or_default());
        if let Some(counts) = of.and_then(|at| found.get_mut(at)) {
            read_counts(body.get(20..).unwrap_or_default(), counts);
        }
    }
    // A class does not count the packets that its queue drops after enqueueing.
    for body in &netlink.dump(NetlinkMessage::new(GET_QDISC, 0).raw(&head(index, 0, 0)))? {
        if u32_at(body, 4) != Some(index) {
            continue;
        }
        let mut of_queue = ClassCounts::default();
        let is_cake = u32_at(body, 8) == Some(MAJOR << 16)
            && attributes(body.get(20..).unwrap_or_default())
                .any(|(kind, value)| kind == KIND && text(value) == "cake");
        read_counts(body.get(20..).unwrap_or_default(), &mut of_queue);
        match tier(u32_at(body, 12).unwrap_or_default()) {
            Some(at) => found[at].dropped = of_queue.dropped,
            None if is_cake => found[1] = of_queue,
            None => {}
        }
    }
    Ok(found)
}

fn read_counts(body: &[u8], counts: &mut ClassCounts) {
    let statistics = attributes(body).filter(|(kind, _)| *kind == STATISTICS);
    for (kind, value) in statistics.flat_map(|(_, inside)| attributes(inside)) {
        let number = |at| u32_at(value, at).map_or(0, u64::from);
        match kind {
            // struct gnet_stats_basic: 64 bits of bytes, packets.
            BASIC => {
                let bytes = value.get(..8).and_then(|bytes| bytes.try_into().ok());
                counts.sent_bytes = bytes.map_or(0, u64::from_ne_bytes);
                counts.sent_packets = number(8);
            }
            // struct gnet_stats_queue: length, backlog, drops.
            QUEUE => {
                counts.waiting_packets = number(0);
                counts.waiting_bytes = number(4);
                counts.dropped = number(8);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
