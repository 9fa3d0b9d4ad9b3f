import pathlib
def sub(p,*pairs):
    f=pathlib.Path(p); s=f.read_text()
    for a,b in pairs:
        if s.count(a)!=1: print(p, s.count(a), repr(a[:70]))
        s=s.replace(a,b)
    f.write_text(s)
M='airmile-model/src/'
sub(M+'lib.rs',('pub mod flow;\n','pub mod flow;\npub mod median;\n'),('    confidence_percent, limited_part,','    confidence_percent, granted_part, limited_part,'))
sub(M+'spans.rs',('//! Spans of time, each from one number of nanoseconds to another.','//! Spans, each from one number to another: of nanoseconds, or of bytes.'),
 ('pub fn merged(mut spans: Vec<(i64, i64)>) -> Vec<(i64, i64)> {','pub fn merged<T: Ord + Copy>(mut spans: Vec<(T, T)>) -> Vec<(T, T)> {'),
 ('let mut out: Vec<(i64, i64)> = Vec::new();','let mut out: Vec<(T, T)> = Vec::new();'))
sub(M+'finding.rs',('''/// The part of throughput time, 0 to 1, in which the radio limited a transfer:''','''/// The part of throughput time, 0 to 1, in which the base station had granted all reported data.
#[must_use]
pub fn granted_part(granted_ms: Option<f64>, throughput_time_ms: Option<f64>) -> f64 {
    let both = granted_ms.zip(throughput_time_ms.filter(|ms| *ms > 0.0));
    both.map_or(0.0, |(granted_ms, ms)| granted_ms / ms)
}

/// The part of throughput time, 0 to 1, in which the radio limited a transfer:'''),
('''        let granted = self.granted_ms.zip(self.throughput_time_ms.filter(|ms| *ms > 0.0));
        limited_part(granted.map_or(0.0, |(granted_ms, ms)| granted_ms / ms))
''','''        limited_part(granted_part(self.granted_ms, self.throughput_time_ms))
'''))
sub('airmile-radio/src/transfer/finding.rs',('VerdictThresholds, limited_part,','VerdictThresholds, granted_part, limited_part,'),
('let granted_part = granted as f64 / meter.in_burst.max(1) as f64;','let granted_part = granted_part(granted_ms, throughput_time_ms);'))
sub('airmile-emulate/src/rlc/receiver.rs',('''        self.parts.push(part);
        self.parts.sort_unstable();
        let mut merged: Vec<(u32, u32)> = Vec::with_capacity(self.parts.len());
        for &(from, to) in &self.parts {
            match merged.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(to),
                _ => merged.push((from, to)),
            }
        }
        self.parts = merged;
''','''        self.parts.push(part);
        self.parts = merged(std::mem::take(&mut self.parts));
'''),('use super::{AmdPdu,','use airmile_model::spans::merged;\n\nuse super::{AmdPdu,'))
# medians
sub('airmile-wire/src/compare/sample.rs',('''
/// The median of values; `None` without any.
#[must_use]
pub fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    let (low, high) = (values.get(last / 2)?, values.get(last.div_ceil(2))?);
    Some(low.midpoint(*high))
}
''',''),('use schemars::JsonSchema;\n','use airmile_model::median::median;\nuse schemars::JsonSchema;\n'))
sub('airmile-wire/src/compare/mod.rs',('is_by_turns, measure, median,','is_by_turns, measure,'))
sub('airmile-wire/src/compare/loads.rs',('use super::sample::median;\n','use airmile_model::median::median;\n'))
sub('airmile/src/analyse/compare/pages.rs',('use airmile_wire::compare::{LoadDifference, largest_difference, median};','use airmile_model::median::median;\nuse airmile_wire::compare::{LoadDifference, largest_difference};'))
sub('airmile-wire/src/clocks/line.rs',('''
fn median(values: &mut [i64]) -> Option<i64> {
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}
''',''),('//! One clock as a line over another.\n','//! One clock as a line over another.\n\nuse airmile_model::median::upper_median;\n'),
('let offset_ns = median(&mut rest)?;','let offset_ns = upper_median(&mut rest, i64::cmp)?;'),('let middle = median(&mut off)? as f64;','let middle = upper_median(&mut off, i64::cmp)? as f64;'))
sub('airmile-wire/src/attribute/policer.rs',('''fn median(values: &[f64]) -> Option<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

''',''),('use airmile_model::TcpEventKind;\n','use airmile_model::TcpEventKind;\nuse airmile_model::median::upper_median;\n'),
('let rates: Vec<f64> = between','let mut rates: Vec<f64> = between'),('let usual = median(&rates)?;','let usual = upper_median(&mut rates, f64::total_cmp)?;'),
('let tokens: Vec<f64> = between','let mut tokens: Vec<f64> = between'),('&& median(&tokens)? >= FULLER','&& upper_median(&mut tokens, f64::total_cmp)? >= FULLER'))
sub('airmile/src/analyse/page/parts.rs',('''fn median(values: &mut [i64]) -> Option<i64> {
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}

''',''),('use airmile_model::{AppTransfer,','use airmile_model::median::upper_median;\nuse airmile_model::{AppTransfer,'),
('''        let usual_ns = median(&mut alone).zip(median(&mut in_crowd)).and_then(|(alone, crowd)| {
''','''        let [usual, crowd] =
            [&mut alone, &mut in_crowd].map(|waits| upper_median(waits, i64::cmp));
        let usual_ns = usual.zip(crowd).and_then(|(alone, crowd)| {
'''))
sub('airmile/src/analyse/compare/flows.rs',('''        all.sort_unstable();
        all.get(all.len() / 2).copied()
''','''        upper_median(&mut all, i64::cmp)
'''),('use airmile_model::packet::Address;\n','use airmile_model::median::upper_median;\nuse airmile_model::packet::Address;\n'))
sub('airmile-radio/src/burst/allocation.rs',('''    near.sort_unstable();
    near.get(near.len() / 2).copied()
''','''    upper_median(&mut near, u32::cmp)
'''),('use airmile_model::TtiSpan;\n','use airmile_model::TtiSpan;\nuse airmile_model::median::upper_median;\n'))
sub('airmile-radio/src/burst/unpadded.rs',('''    let middle = paddings.len() / 2;
    let median = match paddings {
        [] => return 0.0,
        paddings => *paddings.select_nth_unstable(middle).1,
    };
''','''    let Some(median) = upper_median(paddings, u32::cmp) else { return 0.0 };
'''))
sub('airmile-packets/src/live.rs',('''        let middle = rtts.len() / 2;
        (!rtts.is_empty()).then(|| *rtts.select_nth_unstable(middle).1 as f64 / 1e6)
''','''        upper_median(&mut rtts, i64::cmp).map(|rtt| rtt as f64 / 1e6)
'''),('use airmile_model::flow::{FlowRow, PacketRow};\n','use airmile_model::flow::{FlowRow, PacketRow};\nuse airmile_model::median::upper_median;\n'))
sub('airmile-cli/src/commands/radio.rs',('''        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied()
''','''        upper_median(&mut values, f64::total_cmp)
'''),('use airmile::model::{Direction,','use airmile::model::median::upper_median;\nuse airmile::model::{Direction,'))
# example
sub('airmile-wire/src/tcp/trace.rs',('''#[cfg(test)]
impl TracedPacket {
    /// An ACK at time 0, without payload, time stamps and what it acknowledges: what tests change.
    pub(crate) const EXAMPLE''','''impl TracedPacket {
    /// An ACK at time 0, without payload, time stamps and what it acknowledges: what tests change.
    pub const EXAMPLE'''))
sub('airmile/src/analyse/wire/phone/tests.rs',('''                dir: Direction::Dl,
                seq: SeqNum(seq),
                flags,
                timestamps: None,
                event: None,
                offset_bytes: 1,
                payload_bytes: bytes as u32,
                new_bytes: bytes,
                flight_bytes: bytes,
                ack: None,
            });''','''                dir: Direction::Dl,
                seq: SeqNum(seq),
                flags,
                offset_bytes: 1,
                payload_bytes: bytes as u32,
                new_bytes: bytes,
                flight_bytes: bytes,
                ..TracedPacket::EXAMPLE
            });'''),('''            timestamps: None,
            event: None,
            offset_bytes: segment.map_or(0''','''            offset_bytes: segment.map_or(0'''),('''            new_bytes: segment.map_or(0, |_| SEGMENT_BYTES as u64),
            flight_bytes: 0,
            ack: None,
        };''','''            new_bytes: segment.map_or(0, |_| SEGMENT_BYTES as u64),
            ..TracedPacket::EXAMPLE
        };'''))
# emulate rlc sender
sub('airmile-emulate/src/rlc/sender.rs',('''        if self.config.unacknowledged {
            self.vt_s += 1;
            let part = (0, field_bytes);
            return Some(AmdPdu {
                sn,
                elements,
                field_bytes,
                part,
                size_bytes,
                poll: false,
                retx: false,
                format,
            });
        }
        self.unacknowledged.insert(sn, SentPdu { elements: Arc::clone(&elements), field_bytes });
        self.vt_s += 1;
        // 5.2.2.1: counted upon assembly of a new AMD PDU.
        self.pdu_without_poll += 1;
        self.byte_without_poll += u64::from(field_bytes);
        let part''','''        if !self.config.unacknowledged {
            let sent = SentPdu { elements: Arc::clone(&elements), field_bytes };
            self.unacknowledged.insert(sn, sent);
            // 5.2.2.1: counted upon assembly of a new AMD PDU.
            self.pdu_without_poll += 1;
            self.byte_without_poll += u64::from(field_bytes);
        }
        self.vt_s += 1;
        let part'''))
