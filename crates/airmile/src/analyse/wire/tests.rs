//! What tests of causes have of a phone.

use airmile_wire::attribute::WaitTimeline;

use super::*;

impl Wire {
    /// A phone without packets.
    pub(crate) fn example() -> Self {
        Self {
            attribution: Attribution::default(),
            uploads: None,
            server_views: Vec::new(),
            others: Some(ByteBins::default()),
            others_unknown: Vec::new(),
            followed: ByteBins::default(),
            hosts: Vec::new(),
            arrivals: Arrivals::new(),
            answers: None,
            exchanges: Vec::new(),
            name: "phone.pcapng".to_owned(),
            clocks: Vec::new(),
            clock_error_ns: 0,
            is_aligned: true,
            round_trip_ns: 100_000_000,
            empty_round_trip_ns: 100_000_000,
            openings: [const { Vec::new() }; 2],
            place: CaptureSite::Phone,
            restarter: Restarter::SenderOrMiddlebox,
            has_server: false,
            server: None,
            is_split: false,
            hides_queues: false,
            reader_is_slow: false,
            loses: false,
            hidden_queue: None,
            ecn: Vec::new(),
        }
    }
}

/// A capture of a part of a transfer is known by its bytes: within the transfer's time, on a clock of which
/// the offset is known.
#[test]
fn a_capture_of_a_part_holds_a_part_of_the_bytes() {
    let finding = crate::analyse::causes::example_finding();
    let mut wire = Wire::example();
    // 100,000 bytes in a second.
    wire.followed.add(500_000_000, 30_000);
    wire.others.as_mut().unwrap().add(600_000_000, 10_000);
    wire.followed.add(5_000_000_000, 90_000);
    assert_eq!(wire.holds(&finding), 0.4);
    assert_eq!(wire.holds(&TransferFinding { bytes: None, ..finding.clone() }), 1.0);
    wire.is_aligned = false;
    assert_eq!(wire.holds(&finding), 1.3);
    // Another address may have the rest, in a part of the capture.
    for (part, is_aligned, held) in [
        ((2_000_000_000, 3_000_000_000), true, 0.4),
        ((900_000_000, 3_000_000_000), true, 1.0),
        ((2_000_000_000, 3_000_000_000), false, 1.0),
    ] {
        (wire.others_unknown, wire.is_aligned) = (vec![part], is_aligned);
        assert_eq!(wire.holds(&finding), held, "{part:?}");
    }
}

/// What the phone sent counts, over TCP or QUIC; of a log's bytes also what acknowledges the other direction. Of
/// another user it is unknown.
#[test]
fn an_upload_is_held_over_any_transport() {
    let finding = crate::analyse::causes::example_finding();
    let upload = TransferFinding { dir: Direction::Ul, bytes: Some(100_000), ..finding };
    let mut sent = ByteBins::default();
    sent.add(500_000_000, 80_000);
    let mut wire = Wire::example();
    wire.attribution = Attribution::new(WaitTimeline::new(), sent);
    assert_eq!(wire.holds(&upload), 0.8);
    wire.followed.add(500_000_000, 400_000);
    assert_eq!(wire.holds(&upload), 1.0);
    wire.attribution = Attribution::default();
    assert_eq!(wire.holds(&upload), 0.2);
    wire.others = None;
    assert_eq!(wire.holds(&upload), 1.0);
}
