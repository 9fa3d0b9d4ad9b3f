//! Queueing disciplines and classes (linux/pkt_sched.h): an HTB whose rate follows
//! the gate's estimate, and the former one put back.

use std::io;

use super::{CREATE, EXCLUSIVE, Message, Netlink, REPLACE, attributes, u32_at};

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

/// HTB's.
const PARAMETERS: u16 = 1;
const INITIAL: u16 = 2;
const RATE_64: u16 = 6;
const CEILING_64: u16 = 7;

/// fq_codel's.
const TARGET_US: u16 = 1;
const QUANTUM: u16 = 6;

const ROOT: u32 = 0xffff_ffff;

/// The major number of our HTB (chosen here: nobody numbers so by hand).
pub(crate) const MAJOR: u32 = 0xa11e;

/// The class below the root, which has the rate.
const WHOLE: u32 = 1;

/// Classes by tier, as minor numbers.
pub(crate) const CLASSES: [u32; 3] = [0x10, 0x20, 0x30];

/// What a class may send at once, in ns of its rate (chosen here: a change's
/// period; no less than two large packets).
const BURST_NS: u64 = 2_000_000;
const LEAST_BURST_BYTES: u64 = 3_100;

/// Of the rate that a class may have even when all others want it: the share that
/// the queueing of the core leaves to lower tiers (chosen here as it is there, 5 %).
const LEAST_SHARE: u64 = 20;

/// A queueing discipline at an interface's root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Root {
    pub(crate) kind: String,
    /// 0: the kernel's own choice, which comes back by itself.
    pub(crate) handle: u32,
    /// Its options, as the kernel tells and takes them.
    pub(crate) options: Vec<u8>,
}

/// The leaf below each class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leaf {
    /// A queue for each flow, with CoDel.
    FqCodel,
    /// One short queue, where the kernel has no better.
    Fifo,
}

/// What a class has done.
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

/// What stands at an interface's root.
pub(crate) fn root_of(netlink: &mut Netlink, index: u32) -> io::Result<Option<Root>> {
    let all = netlink.dump(Message::new(GET_QDISC, 0).raw(&head(index, 0, 0)))?;
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

fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value.strip_suffix(&[0]).unwrap_or(value)).into_owned()
}

/// Takes our HTB away and puts back what was there; gives whether ours was there.
pub(crate) fn put_back(
    netlink: &mut Netlink,
    index: u32,
    former: Option<&Root>,
) -> io::Result<bool> {
    let is_ours = root_of(netlink, index)?.is_some_and(|root| root.handle == MAJOR << 16);
    if is_ours {
        netlink.request(Message::new(DELETE_QDISC, 0).raw(&head(index, MAJOR << 16, ROOT)))?;
        if let Some(root) = former.filter(|root| root.handle != 0) {
            let message = Message::new(NEW_QDISC, CREATE | REPLACE)
                .raw(&head(index, root.handle, ROOT))
                .name(KIND, &root.kind);
            netlink.request(match root.options.is_empty() {
                true => message,
                false => message.attribute(OPTIONS, &root.options),
            })?;
        }
    }
    Ok(is_ours)
}

/// Puts an HTB at the root, with a class for each tier; gives what stands below.
pub(crate) fn install(netlink: &mut Netlink, index: u32, bytes_per_s: u64) -> io::Result<Leaf> {
    // struct tc_htb_glob: version 3, rate to quantum, the class of what has none.
    let initial: Vec<u8> =
        [3, 10, CLASSES[1], 0, 0].iter().flat_map(|value: &u32| value.to_ne_bytes()).collect();
    netlink.request(
        Message::new(NEW_QDISC, CREATE | REPLACE)
            .raw(&head(index, MAJOR << 16, ROOT))
            .name(KIND, "htb")
            .nested(OPTIONS, |of| of.attribute(INITIAL, &initial)),
    )?;
    netlink.request_all(rates(index, bytes_per_s, CREATE))?;
    let mut leaf = Leaf::FqCodel;
    for minor in CLASSES {
        leaf = below(netlink, index, minor, leaf, bytes_per_s)?;
    }
    Ok(leaf)
}

/// Changes the rate, and the length of short queues with it.
pub(crate) fn set_rate(
    netlink: &mut Netlink,
    index: u32,
    bytes_per_s: u64,
    leaf: Leaf,
) -> io::Result<()> {
    let mut all = rates(index, bytes_per_s, 0);
    if leaf == Leaf::Fifo {
        all.extend(CLASSES.map(|minor| fifo(index, minor, bytes_per_s, REPLACE)));
    }
    netlink.request_all(all)
}

fn below(
    netlink: &mut Netlink,
    index: u32,
    minor: u32,
    leaf: Leaf,
    bytes_per_s: u64,
) -> io::Result<Leaf> {
    if leaf == Leaf::FqCodel {
        let message = Message::new(NEW_QDISC, CREATE | EXCLUSIVE)
            .raw(&head(index, (MAJOR + minor) << 16, class(minor)))
            .name(KIND, "fq_codel")
            .nested(OPTIONS, |of| of.number(TARGET_US, 5_000).number(QUANTUM, 1_514));
        match netlink.request(message) {
            Ok(()) => return Ok(leaf),
            // ENOENT: the kernel has none.
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(e),
        }
    }
    netlink.request(fifo(index, minor, bytes_per_s, CREATE | EXCLUSIVE))?;
    Ok(Leaf::Fifo)
}

/// A queue of 50 ms, which a page's requests wait for beside an upload; no less than
/// two initial windows (RFC 6928), as a sender's burst comes in one piece, which is
/// dropped whole where it has no room (chosen here).
fn fifo(index: u32, minor: u32, bytes_per_s: u64, flags: u16) -> Message {
    let limit = u32::try_from((bytes_per_s / 20).max(33_000)).unwrap_or(u32::MAX);
    Message::new(NEW_QDISC, flags)
        .raw(&head(index, (MAJOR + minor) << 16, class(minor)))
        .name(KIND, "bfifo")
        .number(OPTIONS, limit)
}

/// The classes at a rate.
fn rates(index: u32, bytes_per_s: u64, flags: u16) -> Vec<Message> {
    let one = |parent: u32, minor: u32, rate: u64, priority: u32| {
        Message::new(NEW_CLASS, flags)
            .raw(&head(index, class(minor), parent))
            .name(KIND, "htb")
            .nested(OPTIONS, |of| {
                let of = of.attribute(PARAMETERS, &parameters(rate, bytes_per_s, priority));
                // Where 32 bits are not enough.
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
        // struct tc_ratespec: Ethernet's link layer, so that the kernel makes no
        // table of times; neither overhead nor least size.
        out.extend([0, 1, 0, 0, 0, 0, 0, 0]);
        out.extend(u32::try_from(bytes_per_s).unwrap_or(u32::MAX).to_ne_bytes());
    }
    for bytes_per_s in [rate, ceiling] {
        // In ticks of 64 ns.
        let least_ns = LEAST_BURST_BYTES.saturating_mul(1_000_000_000) / bytes_per_s.max(1);
        let ticks = least_ns.max(BURST_NS) / 64;
        out.extend(u32::try_from(ticks).unwrap_or(u32::MAX).to_ne_bytes());
    }
    // A large packet in turn, no level, and the priority.
    for value in [1_514, 0, priority] {
        out.extend(value.to_ne_bytes());
    }
    out
}

/// What our classes have done, by tier.
pub(crate) fn counts(netlink: &mut Netlink, index: u32) -> io::Result<[ClassCounts; 3]> {
    let all = netlink.dump(Message::new(GET_CLASS, 0).raw(&head(index, 0, 0)))?;
    let mut found = [ClassCounts::default(); 3];
    for body in &all {
        let handle = u32_at(body, 8).unwrap_or_default();
        let of = CLASSES.iter().position(|minor| class(*minor) == handle);
        if let Some(tier) = of.and_then(|at| found.get_mut(at)) {
            read_counts(body.get(20..).unwrap_or_default(), tier);
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
mod tests {
    use super::*;

    #[test]
    fn a_class_in_bytes() {
        let bytes = parameters(50_000, 1_000_000, 2);
        assert_eq!(bytes.len(), 44);
        assert_eq!(u32_at(&bytes, 8), Some(50_000));
        assert_eq!(u32_at(&bytes, 20), Some(1_000_000));
        // 3100 bytes at 50 kB/s are 62 ms; at 1 MB/s 3.1 ms.
        assert_eq!(u32_at(&bytes, 24), Some(62_000_000 / 64));
        assert_eq!(u32_at(&bytes, 28), Some(3_100_000 / 64));
        assert_eq!((u32_at(&bytes, 32), u32_at(&bytes, 40)), (Some(1_514), Some(2)));
    }

    #[test]
    fn counts_of_a_class() {
        let mut basic = 5_000_u64.to_ne_bytes().to_vec();
        basic.extend([4, 0, 0, 0, 0, 0, 0, 0]);
        let queue: Vec<u8> =
            [2_u32, 3_000, 7, 0, 0].iter().flat_map(|value| value.to_ne_bytes()).collect();
        let message = Message::new(0, 0)
            .nested(STATISTICS, |of| of.attribute(BASIC, &basic).attribute(QUEUE, &queue));
        let bytes = message.finish(0, 0);
        let mut counts = ClassCounts::default();
        read_counts(&bytes[16..], &mut counts);
        let expected = ClassCounts {
            sent_bytes: 5_000,
            sent_packets: 4,
            dropped: 7,
            waiting_packets: 2,
            waiting_bytes: 3_000,
        };
        assert_eq!(counts, expected);
    }
}
