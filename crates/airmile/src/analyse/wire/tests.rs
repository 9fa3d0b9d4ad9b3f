//! What tests of causes have of a phone.

use super::*;

impl Wire {
    /// A phone without packets.
    pub(crate) fn example() -> Self {
        Self {
            attribution: Attribution::default(),
            uploads: None,
            heard: None,
            others: ByteBins::default(),
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
