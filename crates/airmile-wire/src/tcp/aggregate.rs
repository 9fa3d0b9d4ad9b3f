//! Available bandwidth of a user whose flows share it: the sum of what each
//! receives in the same 250 ms (paper 6.1: "summing up the predicted bandwidth
//! for different flows", if together they send at C or more).

use std::collections::{BTreeMap, VecDeque};

use airmile_model::Direction;
use airmile_model::flow::{BandwidthSample, PacketRow};
use smallvec::SmallVec;

use super::bandwidth::{BIN_NS, BandwidthWindow, SendRateThreshold};

const SECOND_NS: i64 = 1_000_000_000;
/// Maximum number of seconds with concurrent flows kept: windows wait for G, for some
/// seconds or to a flow's end (chosen here: half an hour, 32 KB).
const MAX_SECONDS: usize = 2_048;
/// Maximum number of bins that wait for windows of other flows (chosen here: 256 s, long
/// after the windows of all flows with a known G).
const MAX_BINS: usize = 1_024;

/// Sums over the windows of one user's downlink flows.
#[derive(Debug, Default)]
pub(super) struct AggregateBandwidth {
    /// Seconds in which several flows received, and how many.
    seconds: VecDeque<(i64, u32)>,
    bins: BTreeMap<i64, BinSum>,
}

#[derive(Debug, Clone, Default)]
struct BinSum {
    /// Flow numbers: two windows of one flow may have their middles in one bin.
    flows: SmallVec<[u64; 4]>,
    bytes: u64,
    r_snd_bps: f64,
    r_rcv_bps: f64,
}

impl AggregateBandwidth {
    /// Notes the number of flows, two or more, that received in this second so far.
    pub(super) fn concurrent_flows(&mut self, second: i64, flows: u32) {
        match self.seconds.back_mut() {
            Some(last) if last.0 == second => last.1 = flows,
            _ => {
                if self.seconds.len() >= MAX_SECONDS {
                    self.seconds.pop_front();
                }
                self.seconds.push_back((second, flows));
            }
        }
    }

    /// How many flows received in the second around a time.
    pub(super) fn flows_at(&self, at_ns: i64) -> u32 {
        let second = at_ns.div_euclid(SECOND_NS);
        let found = self.seconds.iter().rev().find(|(other, _)| *other <= second);
        found.filter(|(other, _)| *other == second).map_or(1, |(_, flows)| *flows)
    }

    /// Takes a window of a flow with concurrent flows; the first of each flow in a bin
    /// counts. May return the row of an earlier bin.
    pub(super) fn push(
        &mut self,
        (user, flow): (u64, u64),
        window: &BandwidthWindow,
        tick_ns: f64,
        threshold: SendRateThreshold,
    ) -> Option<PacketRow> {
        let sum = self.bins.entry(window.middle_ns().div_euclid(BIN_NS)).or_default();
        if sum.flows.contains(&flow) {
            return None;
        }
        sum.flows.push(flow);
        sum.bytes += window.bytes().unsigned_abs();
        sum.r_snd_bps += window.r_snd_bps();
        sum.r_rcv_bps += window.r_rcv_bps(tick_ns);
        if self.bins.len() <= MAX_BINS {
            return None;
        }
        let (bin, sum) = self.bins.pop_first()?;
        self.row(user, bin, &sum, threshold)
    }

    /// The rows of the bins that are left.
    pub(super) fn finish(
        &mut self,
        user: u64,
        threshold: SendRateThreshold,
        rows: &mut Vec<PacketRow>,
    ) {
        let bins = std::mem::take(&mut self.bins);
        rows.extend(bins.iter().filter_map(|(bin, sum)| self.row(user, *bin, sum, threshold)));
    }

    /// A bin's row, if each flow that received has a window, and the total sending rate
    /// is enough to show the bandwidth.
    fn row(
        &self,
        user: u64,
        bin: i64,
        sum: &BinSum,
        threshold: SendRateThreshold,
    ) -> Option<PacketRow> {
        let time_ns = bin * BIN_NS + BIN_NS / 2;
        let flows = sum.flows.len() as u32;
        let all = flows >= 2 && flows >= self.flows_at(time_ns);
        let enough = match threshold {
            SendRateThreshold::Fixed(least) => sum.r_snd_bps >= least,
            SendRateThreshold::Auto => true,
        };
        (all && enough).then_some(PacketRow::Bandwidth(BandwidthSample {
            flow: None,
            user,
            flows,
            time_ns,
            dir: Direction::Dl,
            window_ns: BIN_NS,
            bytes: sum.bytes,
            r_snd_bps: sum.r_snd_bps,
            r_rcv_bps: sum.r_rcv_bps,
        }))
    }
}

#[cfg(test)]
mod tests {
    use airmile_model::packet::{Address, Ecn, Packet, SeqNum, TcpFlags, TcpHeader, Transport};

    use super::super::bandwidth::AckPoint;
    use super::super::{PacketStudy, StudyOptions, StudySummary, Tables};
    use super::*;

    /// A window of 250 ticks of 1 ms around the middle of `bin`.
    fn window(bin: i64, bytes: i64, r_snd_bps: f64) -> BandwidthWindow {
        let (at_ns, to_ns) = (bin * BIN_NS, (bin + 1) * BIN_NS);
        let first = AckPoint { at_ns, ..AckPoint::default() };
        let sending_ns = (bytes as f64 * 8e9 / r_snd_bps) as i64;
        let last = AckPoint {
            at_ns: to_ns,
            rtt: (BIN_NS - sending_ns) << 1,
            ticks: 250,
            acked: bytes as u32,
        };
        BandwidthWindow { ends: [first, last], way_back_ns: 0 }
    }

    /// Windows by bin, flow and bytes, sent at 20 Mbit/s each, and the rows: time in ms,
    /// flows, Mbit/s.
    #[track_caller]
    fn check(
        concurrent_flows: &[(i64, u32)],
        windows: &[(i64, u64, i64)],
        threshold: SendRateThreshold,
        expected: &[(i64, u32, f64)],
    ) {
        let mut aggregate = AggregateBandwidth::default();
        concurrent_flows
            .iter()
            .for_each(|&(second, flows)| aggregate.concurrent_flows(second, flows));
        let mut rows = Vec::new();
        for &(bin, flow, bytes) in windows {
            rows.extend(aggregate.push((0, flow), &window(bin, bytes, 20e6), 1e6, threshold));
        }
        aggregate.finish(0, threshold, &mut rows);
        let got: Vec<_> = rows
            .iter()
            .filter_map(|row| match row {
                PacketRow::Bandwidth(row) => {
                    Some((row.time_ns / 1_000_000, row.flows, row.r_rcv_bps / 1e6))
                }
                _ => None,
            })
            .collect();
        assert_eq!(got, expected);
    }

    #[test]
    fn windows_of_one_bin_are_summed() {
        // 125,000 bytes in 250 ms are 4 Mbit/s, 62,500 are 2.
        let windows = [(4, 7, 125_000), (5, 7, 125_000), (4, 8, 62_500), (6, 7, 125_000)];
        let auto = SendRateThreshold::Auto;
        check(&[(1, 2)], &windows, auto, &[(1125, 2, 6.0)]);
        // A third flow received, and its window is missing.
        check(&[(1, 3)], &windows, auto, &[]);
        check(&[(0, 3), (1, 2), (2, 3)], &windows, auto, &[(1125, 2, 6.0)]);
        // Two windows of one flow are not two flows'.
        check(&[(1, 2)], &[(4, 7, 125_000), (4, 7, 62_500)], auto, &[]);
        // 20 Mbit/s each: together over 30, and not over 50.
        check(&[(1, 2)], &windows, SendRateThreshold::Fixed(30e6), &[(1125, 2, 6.0)]);
        check(&[(1, 2)], &windows, SendRateThreshold::Fixed(50e6), &[]);
    }

    const MS: i64 = 1_000_000;
    const SYN: u8 = TcpFlags::SYN.0;
    const ACK: u8 = TcpFlags::ACK.0;

    /// A packet of connection `n` at a monitor near the server; the client is 20 ms away,
    /// and its clock ticks each ms.
    fn packet(
        ms: i64,
        n: u16,
        up: bool,
        flags: u8,
        numbers: (u32, u32),
        len: u32,
    ) -> Packet<'static> {
        let ends = [(Address::v4([10, 0, 0, 1]), 40_000 + n), (Address::v4([192, 0, 2, 1]), 443)];
        let [(src, src_port), (dst, dst_port)] = if up { ends } else { [ends[1], ends[0]] };
        let ticks = if up { ms - 20 } else { ms };
        let header = TcpHeader {
            seq: SeqNum(numbers.0),
            ack: SeqNum(numbers.1),
            flags: TcpFlags(flags),
            window: u16::MAX,
            window_scale: (flags & SYN != 0).then_some(8),
            timestamps: Some(((ticks + 1_000) as u32, 1)),
            ..TcpHeader::default()
        };
        Packet {
            at_ns: ms * MS,
            src,
            dst,
            src_port,
            dst_port,
            protocol: 6,
            transport: Transport::Tcp(header),
            ecn: Ecn::NotEct,
            ip_id: Some(0),
            ip_bytes: 52 + len,
            payload_bytes: len,
            payload: &[],
            fragmented: false,
            tunnelled: false,
            interface: 0,
        }
    }

    /// Ten seconds of two downloads over a link of 10 Mbit/s, a segment of 1250 bytes
    /// each ms, in turn; the queue takes 60 ms, an ACK is for two segments.
    fn two_downloads() -> Vec<Packet<'static>> {
        let mut packets = Vec::new();
        for n in [0, 1] {
            packets.push(packet(0, n, true, SYN, (99, 0), 0));
            packets.push(packet(0, n, false, SYN | ACK, (999, 100), 0));
            packets.push(packet(40, n, true, ACK, (100, 1_000), 0));
            packets.push(packet(41, n, true, ACK, (100, 1_000), 100));
        }
        for i in 0..10_000_u32 {
            let (n, at) = ((i % 2) as u16, i / 2);
            let (ms, seq) = (100 + i64::from(i), 1_000 + 1_250 * at);
            packets.push(packet(ms, n, false, ACK, (seq, 200), 1_250));
            if at % 2 == 1 {
                // The queue is empty when the first arrive.
                let queue_ms = i64::from(i.min(60));
                packets.push(packet(ms + 40 + queue_ms, n, true, ACK, (200, seq + 1_250), 0));
            }
        }
        packets.sort_by_key(|packet| packet.at_ns);
        packets
    }

    fn samples(threshold: SendRateThreshold) -> (Vec<BandwidthSample>, StudySummary) {
        samples_of(&two_downloads(), threshold)
    }

    fn samples_of(
        packets: &[Packet<'static>],
        threshold: SendRateThreshold,
    ) -> (Vec<BandwidthSample>, StudySummary) {
        let options = StudyOptions {
            tables: Tables::ALL,
            send_rate_threshold: threshold,
            ..StudyOptions::default()
        };
        let mut study = PacketStudy::new(options);
        packets.iter().for_each(|packet| study.push(packet));
        let mut samples = Vec::new();
        let summary = study.finish_with(&mut |row| {
            if let PacketRow::Bandwidth(row) = row {
                samples.push(row);
            }
        });
        (samples, summary)
    }

    #[test]
    fn two_flows_over_one_link_are_its_rate() {
        for (threshold, alone) in
            [(SendRateThreshold::Fixed(8e6), false), (SendRateThreshold::Auto, true)]
        {
            let (samples, summary) = samples(threshold);
            // At first the queue grows: queued bytes do not arrive.
            let steady = samples.iter().filter(|sample| sample.time_ns > 300 * MS);
            let (sums, parts): (Vec<_>, Vec<_>) = steady.partition(|sample| sample.flow.is_none());
            // 40 bins, less those of the ends.
            assert!(sums.len() >= 30, "{}", sums.len());
            for sum in &sums {
                assert_eq!(sum.flows, 2);
                assert!((sum.r_rcv_bps / 10e6 - 1.0).abs() < 0.03, "{sum:?}");
            }
            // 5 Mbit/s each: not over 8, but queued.
            assert_eq!(!parts.is_empty(), alone);
            for part in &parts {
                assert!((part.r_rcv_bps / 5e6 - 1.0).abs() < 0.05, "{part:?}");
            }
            let median = summary.available_bps.quantile(0.5).unwrap_or_default();
            assert!((median / 10e6 - 1.0).abs() < 0.03, "{median}");
        }
        // More than both send.
        assert!(samples(SendRateThreshold::Fixed(12e6)).0.is_empty());
    }

    #[test]
    fn flows_whose_data_is_still_queued_share_the_link() {
        // All data passes in the first half; the queue and its ACKs last to the end.
        let mut packets = two_downloads();
        for packet in packets.iter_mut().filter(|packet| packet.payload_bytes > 1_000) {
            packet.at_ns = 100 * MS + (packet.at_ns - 100 * MS) / 2;
        }
        packets.sort_by_key(|packet| packet.at_ns);
        let (samples, _) = samples_of(&packets, SendRateThreshold::Auto);
        let late = samples.iter().filter(|sample| sample.time_ns > 6_200 * MS);
        let alone: Vec<_> = late.clone().filter(|sample| sample.flows == 1).collect();
        // The second of the last ACKs has nothing in flight any more.
        assert!(alone.iter().all(|sample| sample.time_ns > 9_900 * MS), "{alone:?}");
        assert!(late.filter(|sample| sample.flow.is_none()).count() >= 10);
    }

    #[test]
    fn memory_has_a_limit() {
        let windows: Vec<(i64, u64)> = (0..4_000).flat_map(|bin| [(bin, 7), (bin, 8)]).collect();
        let mut aggregate = AggregateBandwidth::default();
        (0..1_000).for_each(|second| aggregate.concurrent_flows(second, 2));
        let early = windows.iter().filter_map(|&(bin, flow)| {
            let window = window(bin, 125_000, 20e6);
            let row = aggregate.push((0, flow), &window, 1e6, SendRateThreshold::Auto);
            assert!(aggregate.bins.len() <= MAX_BINS);
            row
        });
        let early = early.count();
        let mut rows = Vec::new();
        aggregate.finish(0, SendRateThreshold::Auto, &mut rows);
        assert_eq!(early + rows.len(), 4_000);
    }
}
