//! A phone that reports on its radio to its servers (MobiSys 2017, 5): a reader gets the
//! modem's records, as a program on the phone would, and its reports are sent as UDP
//! packets through the phone's own queue, the air interface and the core network.
//!
//! The reader is implemented elsewhere ([`RadioReader`]): it does inference.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddrV4};

use airmile_control::RadioNeed;
use airmile_control::claw::{Bottleneck, Feedback};
use airmile_model::Record;
use airmile_model::units::MS_NS;

use crate::net::{IpPacket, PhoneView, Transport};
use crate::random::Random;
use crate::scenario::RadioReportConfig;
use crate::user::UserId;

/// Source and destination port of reports (chosen here: a dynamic one, RFC 6335, 6).
pub(crate) const REPORT_PORT: u16 = 61_017;

/// Bytes of a report's payload: its contents, and room for an authenticator of 16 bytes and
/// a token of 6 (chosen here).
const REPORT_BYTES: usize = 64;

/// Polling interval of a reader, in ns (chosen here: a tick of a phone's scheduler).
const TICK_NS: i64 = 5_000_000;

/// Setup of a reader.
#[derive(Debug, Clone, PartialEq)]
pub struct ReaderSetup {
    /// The phone's user.
    pub user: UserId,
    /// The feedback that the user's server needs.
    pub need: RadioNeed,
    /// The scenario's settings.
    pub config: RadioReportConfig,
}

/// A program on the phone that reads the modem's log.
pub trait RadioReader: std::fmt::Debug + Send {
    /// A record written by the modem, in time order.
    fn record(&mut self, record: &Record);

    /// A report to send now.
    fn poll(&mut self, now_ns: i64, phone: PhoneView) -> Option<Feedback>;
}

/// Makes readers for a run.
pub type Readers<'a> = dyn Fn(&ReaderSetup) -> Box<dyn RadioReader> + Sync + 'a;

/// A reader on its phone.
#[derive(Debug)]
pub(crate) struct Reporter {
    reader: Box<dyn RadioReader>,
    config: RadioReportConfig,
    losses: Random,
    /// Records with the times at which they become readable.
    log: VecDeque<(i64, Record)>,
    next_ns: i64,
    reports: u16,
}

impl Reporter {
    pub(crate) const fn new(
        reader: Box<dyn RadioReader>,
        config: RadioReportConfig,
        losses: Random,
        start_ns: i64,
    ) -> Self {
        Self { reader, config, losses, log: VecDeque::new(), next_ns: start_ns, reports: 0 }
    }

    /// A record that the modem writes at a time.
    pub(crate) fn record(&mut self, now_ns: i64, record: Record) {
        self.log.push_back((now_ns + i64::from(self.config.log_delay_ms) * MS_NS, record));
    }

    /// Whether the reader must be polled now.
    pub(crate) const fn is_due(&self, now_ns: i64) -> bool {
        now_ns >= self.next_ns
    }

    /// Polls the reader; returns a report, unless it is lost.
    pub(crate) fn ask(&mut self, now_ns: i64, phone: PhoneView) -> Option<Feedback> {
        self.next_ns = now_ns + TICK_NS;
        while self.log.front().is_some_and(|(due_ns, _)| *due_ns <= now_ns) {
            if let Some((_, record)) = self.log.pop_front() {
                self.reader.record(&record);
            }
        }
        let feedback = self.reader.poll(now_ns, phone)?;
        let lost = self.config.loss > 0.0 && self.losses.chance(self.config.loss);
        (!lost).then_some(feedback)
    }

    /// A report as a packet to a server.
    pub(crate) fn packet(
        &mut self,
        phone: Ipv4Addr,
        server: Ipv4Addr,
        feedback: &Feedback,
    ) -> IpPacket {
        self.reports = self.reports.wrapping_add(1);
        IpPacket {
            src: SocketAddrV4::new(phone, REPORT_PORT),
            dst: SocketAddrV4::new(server, REPORT_PORT),
            ip_id: self.reports,
            transport: Transport::Udp(emit(feedback)),
        }
    }
}

/// A report's payload: integers in network byte order.
fn emit(feedback: &Feedback) -> Vec<u8> {
    let bottleneck = match feedback.bottleneck {
        Bottleneck::Cellular => 0,
        Bottleneck::Wireline => 1,
        Bottleneck::Unclear => 2,
    };
    let mut bytes = Vec::with_capacity(REPORT_BYTES);
    for number in [
        feedback.sequence,
        feedback.w_claw_bytes,
        feedback.load.to_bits(),
        feedback.radio_losses,
        feedback.queue_losses,
    ] {
        bytes.extend(number.to_be_bytes());
    }
    bytes.extend([bottleneck, u8::from(feedback.idle)]);
    bytes.resize(REPORT_BYTES, 0);
    bytes
}

/// The feedback in a packet, if it is a report.
pub(crate) fn parse(packet: &IpPacket) -> Option<Feedback> {
    let Transport::Udp(bytes) = &packet.transport else { return None };
    if packet.dst.port() != REPORT_PORT || bytes.len() != REPORT_BYTES {
        return None;
    }
    let (numbers, rest) = bytes.as_chunks::<8>();
    let [sequence, w_claw_bytes, load, radio_losses, queue_losses, flags, ..] = numbers else {
        return None;
    };
    debug_assert!(rest.is_empty(), "64 bytes are eight numbers");
    let bottleneck = match flags[0] {
        0 => Bottleneck::Cellular,
        1 => Bottleneck::Wireline,
        2 => Bottleneck::Unclear,
        _ => return None,
    };
    Some(Feedback {
        sequence: u64::from_be_bytes(*sequence),
        w_claw_bytes: u64::from_be_bytes(*w_claw_bytes),
        load: f64::from_bits(u64::from_be_bytes(*load)),
        bottleneck,
        idle: flags[1] != 0,
        radio_losses: u64::from_be_bytes(*radio_losses),
        queue_losses: u64::from_be_bytes(*queue_losses),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Counts(u64);

    impl RadioReader for Counts {
        fn record(&mut self, _record: &Record) {
            self.0 += 1;
        }

        fn poll(&mut self, _now_ns: i64, phone: PhoneView) -> Option<Feedback> {
            phone.busy.then_some(feedback(self.0))
        }
    }

    fn feedback(sequence: u64) -> Feedback {
        Feedback {
            sequence,
            w_claw_bytes: 123_456,
            load: 0.25,
            bottleneck: Bottleneck::Unclear,
            idle: true,
            radio_losses: 3,
            queue_losses: 4,
        }
    }

    fn reporter(config: RadioReportConfig) -> Reporter {
        Reporter::new(Box::new(Counts(0)), config, Random::new(1, 1), 0)
    }

    #[test]
    fn a_report_comes_back_as_it_was() {
        let mut reporter = reporter(RadioReportConfig::default());
        let (phone, server) = (Ipv4Addr::new(10, 0, 0, 2), Ipv4Addr::new(203, 0, 113, 1));
        let packet = reporter.packet(phone, server, &feedback(7));
        assert_eq!((parse(&packet), packet.ip_bytes()), (Some(feedback(7)), 92));
        for transport in [Transport::Udp(vec![0; 63]), Transport::Udp(vec![9; 64])] {
            assert_eq!(parse(&IpPacket { transport, ..packet.clone() }), None);
        }
    }

    #[test]
    fn the_log_is_late_and_reports_get_lost() {
        let config = RadioReportConfig { log_delay_ms: 20, ..RadioReportConfig::default() };
        let mut late = reporter(config.clone());
        let at = airmile_model::Stamp::modem(0);
        let record = Record::CellInfo(airmile_model::CellInfo::new(at, 0, 0, "test"));
        late.record(0, record);
        let busy = PhoneView { busy: true, min_rtt_ns: None };
        let seen = |reporter: &mut Reporter, ms: i64| {
            reporter.ask(ms * MS_NS, busy).map(|feedback| feedback.sequence)
        };
        assert_eq!([seen(&mut late, 19), seen(&mut late, 20)], [Some(0), Some(1)]);
        assert!(!late.is_due(24 * MS_NS) && late.is_due(25 * MS_NS));
        let mut lossy = reporter(RadioReportConfig { loss: 0.5, ..config });
        let arrived = (0..1_000).filter(|n| seen(&mut lossy, *n).is_some()).count();
        assert!((450..550).contains(&arrived), "{arrived}");
    }
}
