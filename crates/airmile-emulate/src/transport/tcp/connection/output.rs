//! Segments that a connection sends.

use std::ops::Range;

use super::{TcpConnection, TcpState};
use crate::net::{Flags, SackBlock, TcpSegment};
use crate::transport::tcp::sender::Outgoing;

impl TcpConnection {
    /// A segment to send now.
    pub fn poll_transmit(&mut self, now_ns: i64) -> Option<TcpSegment> {
        if std::mem::take(&mut self.reset_due) {
            let next = self.sender.next;
            let mut reset = self.segment(now_ns, next..next);
            reset.flags.rst = true;
            return Some(self.count(reset));
        }
        if self.state == TcpState::Closed {
            return None;
        }
        if self.state != TcpState::TimeWait
            && let Some(Outgoing { range, .. }) = self.sender.poll(now_ns)
        {
            let segment = self.segment(now_ns, range);
            if segment.flags.fin {
                self.step_state(now_ns);
            }
            return Some(self.count(segment));
        }
        if std::mem::take(&mut self.sender.window_probe_due) && self.sender.una > 0 {
            // As in Linux: a segment just below the window, which triggers an ACK.
            let mut probe = self.segment(now_ns, self.sender.una..self.sender.una);
            probe.seq = probe.seq.wrapping_sub(1);
            return Some(self.count(probe));
        }
        if self.receiver.acks.due(now_ns) && self.receiver.next > 0 && self.sender.una > 0 {
            let next = self.sender.next;
            let ack = self.segment(now_ns, next..next);
            return Some(self.count(ack));
        }
        None
    }

    fn count(&mut self, segment: TcpSegment) -> TcpSegment {
        let stats = &mut self.sender.stats;
        stats.segments_sent += 1;
        stats.data_segments_sent += u64::from(segment.payload_bytes() > 0);
        stats.bytes_sent += u64::from(segment.payload_bytes());
        segment
    }

    /// The segment for a range of positions, acknowledging received data.
    fn segment(&mut self, now_ns: i64, range: Range<u64>) -> TcpSegment {
        let syn = range.start == 0 && range.end > 0;
        let fin = self.sender.fin().is_some_and(|fin| range.contains(&fin));
        let ack = self.receiver.next > 0;
        let first = range.start.max(1) - 1;
        let payload = first..(range.end.max(1) - 1 - u64::from(fin)).max(first);
        let scale = if syn { 0 } else { self.own_scale };
        let window = self.receiver.take_window(scale, self.sender.mss_bytes);
        // 40 bytes of options: room for three blocks in addition to timestamps.
        let max_blocks = if self.timestamps { 3 } else { 4 };
        let use_sack = self.sender.sack && !syn;
        let blocks =
            if use_sack { self.receiver.take_sack(max_blocks, self.config.d_sack) } else { vec![] };
        let sequence = |p: u64| self.irs.wrapping_add(p as u32);
        let sack = blocks
            .iter()
            .map(|b| SackBlock { start_seq: sequence(b.start), end_seq: sequence(b.end) })
            .collect();
        self.last_ack_sent = self.receiver.next;
        self.receiver.acks.on_sent();
        TcpSegment {
            seq: self.iss.wrapping_add(range.start as u32),
            ack: if ack { sequence(self.receiver.next) } else { 0 },
            flags: Flags {
                syn,
                ack,
                fin,
                rst: false,
                psh: !payload.is_empty() && payload.end == self.sender.written_bytes,
            },
            window,
            mss_bytes: syn.then_some(self.config.mss_bytes),
            window_scale: (syn && self.scaling).then_some(self.own_scale),
            sack_permitted: syn && if ack { self.sender.sack } else { self.config.sack },
            timestamps: self.timestamps.then(|| (self.ts_val(now_ns), self.ts_recent)),
            sack,
            literals: self.sender.literals(&payload),
            payload,
        }
    }
}
