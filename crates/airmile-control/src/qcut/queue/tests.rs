use super::*;
use crate::qcut::class::TCP;

const MS: i64 = 1_000_000;

fn packet(flow: u64, bytes: u32) -> PacketInfo {
    PacketInfo { flow, bytes, protocol: TCP, far_port: 443, ..PacketInfo::default() }
}

fn no_codel() -> QueueConfig {
    QueueConfig { codel: None, ..QueueConfig::default() }
}

#[test]
fn bulk_flows_take_turns_and_a_sparse_one_goes_first() {
    let mut queues = FlowQueues::new(no_codel());
    for n in 0..4 {
        queues.push(0, &packet(1, 1_500), (1, n));
        queues.push(0, &packet(2, 1_500), (2, n));
    }
    // A quantum of 1514 leaves 14 bytes of credit: each flow sends a second
    // packet before its turn ends.
    let first: Vec<_> = (0..4).map_while(|_| queues.pop(0)).collect();
    assert_eq!(first, [(1, 0), (1, 1), (2, 0), (2, 1)]);
    queues.push(0, &packet(3, 100), (3, 0));
    let rest: Vec<_> = std::iter::from_fn(|| queues.pop(0)).collect();
    assert_eq!(rest, [(3, 0), (1, 2), (2, 2), (1, 3), (2, 3)]);
}

#[test]
fn tiers_go_in_order_and_none_starves() {
    let config = QueueConfig { ahead_bytes: 2_000, ..no_codel() };
    let mut queues = FlowQueues::new(config);
    let ack = |flow| PacketInfo { pure_ack: true, ..packet(flow, 1_000) };
    let last = |flow| PacketInfo { dscp: 8, ..packet(flow, 1_000) };
    queues.push(0, &last(1), 'b');
    queues.push(0, &packet(2, 1_000), 'n');
    for n in 3..9 {
        queues.push(0, &ack(n), 'u');
    }
    let order: String = std::iter::from_fn(|| queues.pop(0)).collect();
    // Two urgent packets, then one of the next waiting tier.
    assert_eq!(order, "uunuubuu");
}

#[test]
fn background_does_not_starve_beside_two_busy_tiers() {
    let config = QueueConfig { ahead_bytes: 2_000, ..no_codel() };
    let mut queues = FlowQueues::new(config);
    for n in 0..60 {
        let ack = PacketInfo { pure_ack: true, ..packet(1, 1_000) };
        let last = PacketInfo { dscp: 8, ..packet(3, 1_000) };
        queues.push(0, &ack, 'u');
        queues.push(0, &packet(2, 1_000), 'n');
        queues.push(n, &last, 'b');
    }
    let order: String = (0..18).map_while(|_| queues.pop(0)).collect();
    assert_eq!(order, "uunuunuubuunuunuub");
}

#[test]
fn flows_share_so_many_queues() {
    let mut queues = FlowQueues::new(no_codel());
    for flow in 0..100_000 {
        queues.push(0, &packet(flow << 32, 100), ());
    }
    assert!(queues.flows.len() <= 1_024 && queues.flows.len() > 900, "{}", queues.flows.len());
}

#[test]
fn an_acknowledgement_does_not_overtake_its_own_flow() {
    let ack = |flow| PacketInfo { pure_ack: true, ..packet(flow, 40) };
    for (pushed, expected) in [
        // Data first: the acknowledgement of the same flow waits for it.
        ([packet(1, 1_500), packet(2, 1_500), ack(1), ack(3)], [3, 0, 2, 1]),
        // Later data moves the flow down, in order.
        ([packet(2, 1_500), ack(1), packet(1, 1_500), ack(3)], [3, 0, 1, 2]),
    ] {
        let mut queues = FlowQueues::new(no_codel());
        for (n, info) in pushed.iter().enumerate() {
            queues.push(0, info, n);
        }
        let order: Vec<usize> = std::iter::from_fn(|| queues.pop(0)).collect();
        assert_eq!(order, expected);
    }
}

#[test]
fn the_longest_queue_loses_its_head_when_there_is_no_room() {
    let mut queues = FlowQueues::new(QueueConfig { max_packets: 4, ..no_codel() });
    for n in 0..4 {
        queues.push(0, &packet(1, 1_500), (1, n));
    }
    queues.push(0, &packet(2, 100), (2, 0));
    assert_eq!(queues.poll_dropped(), Some((DropReason::Full, (1, 0))));
    let counts = queues.counts();
    assert_eq!((counts.dropped_full.packets, counts.waiting.bytes), (1, 4_600));
    assert_eq!(queues.drain().collect::<Vec<_>>(), [(1, 1), (1, 2), (1, 3), (2, 0)]);
    assert!(queues.is_empty() && queues.pop(0).is_none());
}

fn codel_of_rfc() -> QueueConfig {
    QueueConfig { codel: Some(CodelConfig::default()), ..QueueConfig::default() }
}

#[test]
fn codel_drops_are_counted_and_told() {
    let mut queues = FlowQueues::new(codel_of_rfc());
    // 250 packets at once, one leaves each ms: from 5 ms on they are late, and from 105 ms
    // on they are dropped.
    for n in 0..250 {
        queues.push(0, &packet(1, 1_500), n);
    }
    let sent = (0..150).filter(|ms| queues.pop(ms * MS).is_some()).count();
    assert_eq!((sent, queues.poll_dropped()), (150, Some((DropReason::Aqm, 105))));
    let counts = queues.counts();
    assert_eq!((counts.dropped_aqm.packets, counts.waiting.packets), (1, 99));
}

/// A drop shows after a round trip, which includes the target: a second one before that takes
/// from the sender's window twice.
#[test]
fn codel_waits_for_the_effect_of_a_drop() {
    let mut queues = FlowQueues::new(QueueConfig::default());
    for n in 0..900 {
        queues.push(0, &packet(1, 1_500), n);
    }
    let mut dropped = Vec::new();
    for ms in 0..700 {
        queues.pop(ms * MS);
        dropped.extend(std::iter::from_fn(|| queues.poll_dropped()).map(|_| ms));
    }
    // Late from 100 ms on, for an interval; the next drop is one later.
    assert_eq!(dropped, [350, 600]);
}

#[test]
fn who_sends_little_beside_bulk_is_awaited() {
    let mut queues = FlowQueues::new(no_codel());
    let last = PacketInfo { dscp: 8, ..packet(3, 100) };
    for (ms, info, expected) in [
        // No bulk flow: 3000 waiting bytes are no backlog.
        (0, packet(1, 1_500), false),
        (0, packet(1, 1_500), false),
        (0, packet(2, 100), false),
        (0, packet(1, 1_500), false),
        (1, packet(2, 100), true),
        (1, last, false),
        // Two bulk flows do not wait for each other.
        (2, packet(4, 1_500), true),
        (2, packet(4, 1_500), true),
        (2, packet(4, 1_500), false),
        (2, packet(1, 1_500), false),
        (1_001, packet(2, 100), true),
        // No bulk packets for a second.
        (1_002, packet(2, 100), false),
    ] {
        assert_eq!(queues.push(ms * MS, &info, ()), expected, "{ms} {info:?}");
    }
}

#[test]
fn the_target_follows_slow_links() {
    let mut queues = FlowQueues::<()>::new(codel_of_rfc());
    for (bytes_per_s, target_ms) in [(1_000_000, 5), (450_000, 5), (125_000, 18), (12_500, 180)] {
        queues.set_rate(bytes_per_s);
        assert_eq!(queues.target_ns() / MS, target_ms, "{bytes_per_s}");
    }
}
