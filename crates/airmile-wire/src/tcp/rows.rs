//! Rows of tables about a flow of TCP: events, episodes, bandwidth, round trips.

use airmile_model::flow::{BandwidthSample, PacketRow, RttSample, TcpEvent};
use airmile_model::{Direction, RttSource, TcpEventKind};

use super::bandwidth::{Bandwidth, BandwidthWindow};
use super::episode::Episode;
use super::flow::FlowState;
use super::options::StudyOptions;
use super::side::Side;
use super::stream::{RetransmissionCause, SegmentKind};
use super::user::UserState;

/// What decides which rows are wanted, and where they go.
pub(super) struct Sink<'a> {
    pub(super) options: &'a StudyOptions,
    pub(super) rows: &'a mut Vec<PacketRow>,
}

/// The `tcp_events` kind of a segment, if it is out of the ordinary.
pub(super) const fn event_of(kind: SegmentKind) -> Option<TcpEventKind> {
    Some(match kind {
        SegmentKind::Bare | SegmentKind::New { ahead: false } => return None,
        SegmentKind::New { ahead: true } => TcpEventKind::Ahead,
        SegmentKind::Reordered => TcpEventKind::Reordered,
        SegmentKind::Retransmission(RetransmissionCause::Fast) => TcpEventKind::RetxFast,
        SegmentKind::Retransmission(RetransmissionCause::Timeout) => TcpEventKind::RetxTimeout,
        SegmentKind::Retransmission(RetransmissionCause::TailLossProbe) => TcpEventKind::RetxProbe,
        SegmentKind::Retransmission(RetransmissionCause::Spurious) => TcpEventKind::RetxSpurious,
        SegmentKind::Retransmission(RetransmissionCause::Unknown) => TcpEventKind::RetxOther,
        SegmentKind::KeepAlive => TcpEventKind::KeepAlive,
        SegmentKind::WindowProbe => TcpEventKind::WindowProbe,
        SegmentKind::HandshakeAgain => TcpEventKind::SynAgain,
        SegmentKind::CloseAgain => TcpEventKind::FinAgain,
        SegmentKind::OutOfWindow => TcpEventKind::WildSequence,
    })
}

impl FlowState {
    /// A row of `tcp_events` about the data of `end`.
    pub(super) fn event(
        &self,
        now: i64,
        end: Side,
        event: TcpEventKind,
        offset_bytes: i64,
        bytes: u64,
        rows: &mut Vec<PacketRow>,
    ) {
        if !self.wants_events {
            return;
        }
        let flight = self.ends[end].stream.flight();
        rows.push(PacketRow::Tcp(Box::new(TcpEvent {
            flow: self.number,
            time_ns: now,
            dir: end.dir(),
            event,
            offset_bytes,
            bytes,
            flight_bytes: flight.unsigned_abs(),
            dup_acks: None,
            r_ss: None,
            rtt_before_ns: None,
            rtt_during_ns: None,
            rtt_retx_ns: None,
            rto_ns: None,
            rto_with_dup_acks_ns: None,
            avoided: None,
            timer_too_soon: None,
        })));
    }

    /// The row of a completed burst of duplicate ACKs.
    pub(super) fn episode_row(
        &self,
        data: Side,
        over: &Episode,
        min_rto_ns: i64,
        rows: &mut Vec<PacketRow>,
    ) {
        rows.push(PacketRow::Tcp(Box::new(TcpEvent {
            flow: self.number,
            time_ns: over.last_dup_ns,
            dir: data.dir(),
            event: if over.is_slow_start() {
                TcpEventKind::SlowStart
            } else {
                TcpEventKind::Recovered
            },
            offset_bytes: over.offset,
            bytes: 0,
            flight_bytes: over.flight.unsigned_abs(),
            dup_acks: Some(over.dup_acks.into()),
            r_ss: over.r_ss(),
            rtt_before_ns: over.rtt_before_ns,
            rtt_during_ns: over.rtt_during_ns,
            rtt_retx_ns: over.rtt_retx_ns,
            rto_ns: over.rto_ns(),
            rto_with_dup_acks_ns: over.rto_with_ns(),
            avoided: over.avoided(min_rto_ns),
            timer_too_soon: Some(over.timer_too_soon()),
        })));
    }

    /// Samples of the available bandwidth of the data received by `receiver`.
    pub(super) fn bandwidth_rows(
        &mut self,
        mut user: Option<&mut UserState>,
        receiver: Side,
        at_end: bool,
        sink: &mut Sink<'_>,
    ) {
        let data = receiver.other();
        let alone = !receiver.is_client() || self.is_aside();
        let waiting = |b: &&mut Box<Bandwidth>| at_end || b.has_waiting();
        let own = self.ends[receiver].clock.tick_ns();
        let Some(bandwidth) = self.ends[data].bandwidth.as_mut().filter(waiting) else { return };
        let Some(tick_ns) = own.or(self.device_tick_ns.filter(|_| at_end && receiver.is_client()))
        else {
            return;
        };
        let threshold = sink.options.send_rate_threshold;
        for window in bandwidth.drain_windows(tick_ns, at_end, threshold) {
            let mut place = (0, 1);
            if let Some(user) = &mut user {
                let flows = if alone { 1 } else { user.aggregate.flows_at(window.middle_ns()) };
                place = (user.number, flows);
                if flows > 1 {
                    let numbers = (user.number, self.number);
                    sink.rows.extend(user.aggregate.push(numbers, &window, tick_ns, threshold));
                }
            }
            if window.is_enough(threshold) {
                sink.rows.push(bandwidth_row(self.number, place, data, &window, tick_ns));
            }
        }
    }

    /// An RTT between monitor and client, by the spin bit.
    pub(super) fn spin_rtt(&mut self, now: i64, rtt_ns: i64, rows: &mut Vec<PacketRow>) {
        self.ends[Side::Server].stream.rtt.push(rtt_ns);
        rows.push(PacketRow::Rtt(RttSample {
            flow: self.number,
            time_ns: now,
            dir: Direction::Dl,
            rtt_ns,
            flight_bytes: 0,
            by: RttSource::Spin,
        }));
    }
}

fn bandwidth_row(
    flow: u64,
    (user, flows): (u64, u32),
    data: Side,
    window: &BandwidthWindow,
    tick_ns: f64,
) -> PacketRow {
    PacketRow::Bandwidth(BandwidthSample {
        flow: Some(flow),
        user,
        flows,
        time_ns: window.middle_ns(),
        dir: data.dir(),
        window_ns: (f64::from(window.ticks()) * tick_ns) as i64,
        bytes: window.bytes().unsigned_abs(),
        r_snd_bps: window.r_snd_bps(),
        r_rcv_bps: window.r_rcv_bps(tick_ns),
    })
}
