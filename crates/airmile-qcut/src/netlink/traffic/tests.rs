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
fn queues_below_a_class() {
    let options = |leaf| {
        let bytes = below(7, CLASSES[1], leaf, 1_000_000, CREATE).finish(0, 0);
        let body = bytes[16 + 20..].to_vec();
        let mut kind = String::new();
        let mut options = Vec::new();
        for (of, value) in attributes(&body) {
            match of {
                KIND => kind = text(value),
                _ => options = value.to_vec(),
            }
        }
        (kind, options)
    };
    // 50 ms of 1 MB/s; room for GSO packets.
    assert_eq!(options(Leaf::Fifo), ("bfifo".to_owned(), 131_072_u32.to_ne_bytes().to_vec()));
    let (kind, inside) = options(Leaf::Bucket { bytes: 3_028 });
    let inside: Vec<(u16, &[u8])> = attributes(&inside).collect();
    assert_eq!(kind, "tbf");
    // struct tc_tbf_qopt has 36 bytes, with the limit after two rates of 12.
    assert_eq!((inside[0].1.len(), u32_at(inside[0].1, 24)), (36, Some(50_000)));
    assert_eq!(inside[2], (BUCKET_BYTES, &3_028_u32.to_ne_bytes()[..]));
}

#[test]
fn a_cake_at_a_rate() {
    let bytes = cake(7, 1_000_000, REPLACE).finish(0, 0);
    let body = &bytes[16..];
    assert_eq!((u32_at(body, 4), u32_at(body, 12)), (Some(7), Some(ROOT)));
    let found: Vec<_> = attributes(&body[20..]).collect();
    assert_eq!(found[0], (KIND, &b"cake\0"[..]));
    let inside: Vec<_> = attributes(found[1].1).collect();
    assert_eq!(inside[0], (BASE_RATE_64, &1_000_000_u64.to_ne_bytes()[..]));
    assert_eq!(inside[1], (DIFFSERV_MODE, &1_u32.to_ne_bytes()[..]));
}

#[test]
fn counts_of_a_class() {
    let mut basic = 5_000_u64.to_ne_bytes().to_vec();
    basic.extend([4_u32, 0].iter().flat_map(|value| value.to_ne_bytes()));
    let queue: Vec<u8> =
        [2_u32, 3_000, 7, 0, 0].iter().flat_map(|value| value.to_ne_bytes()).collect();
    let message = NetlinkMessage::new(0, 0)
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
