//! MAC protocol data units (TS 36.321, 6.1.2; TS 38.321, 6.1.2): control elements, RLC
//! PDUs of one bearer, padding.

use super::MacFormat;
use crate::rlc::{AmReceiver, AmSender, Pdu};

/// Logical channel of the data bearer: 1 and 2 are signalling (TS 36.331, 9.1.2).
pub(crate) const DATA_LCID: u8 = 3;
/// Bytes of a short BSR, and of a long one, with their subheaders (6.1.3.1).
pub(crate) const SHORT_BSR_BYTES: u32 = 2;
const LONG_BSR_BYTES: u32 = 4;

/// Minimum useful block size, in bytes (chosen here: a subheader, an RLC header with a
/// length indicator and a few bytes of data).
pub(crate) const LEAST_BLOCK_BYTES: u32 = 12;

/// A MAC PDU: the contents of a transport block.
#[derive(Debug, Clone, Default)]
pub(crate) struct MacPdu {
    format: MacFormat,
    /// Control elements, by LCID. All used here have one byte, except the long BSR with
    /// three.
    pub(crate) control: Vec<u8>,
    pub(crate) pdus: Vec<Pdu>,
    /// Padding bytes without the subheader.
    pub(crate) padding_bytes: u32,
    /// One-byte padding subheaders at the front, in place of 1 or 2 bytes.
    front_padding: u32,
    /// Whether the last subheader is for padding.
    tail_padding: bool,
}

impl MacPdu {
    /// Fills a block: control elements, a STATUS PDU, then data. The rest holds a padding
    /// BSR if the phone sends the block (`uplink`) without another BSR.
    pub(crate) fn fill(
        format: MacFormat,
        tbs_bytes: u32,
        control: Vec<u8>,
        receiver: &mut AmReceiver,
        sender: &mut AmSender,
        tti: i64,
        uplink: bool,
    ) -> Self {
        let mut block = Self { format, ..Self::default() };
        // A control element is a subheader of one byte and one byte.
        let mut left = tbs_bytes;
        for lcid in control {
            if left >= 2 {
                left -= 2;
                block.control.push(lcid);
            }
        }
        let mut last_bytes = None;
        while let Some(room) = block.room_for_next(left, last_bytes) {
            let Some(pdu) = block.next_pdu(room, receiver, sender, tti) else { break };
            // An SDU before the last has a length field: its subheader grows.
            let size_bytes = pdu.size_bytes();
            match format {
                MacFormat::Lte => {
                    left -= last_bytes.map_or(0, |last| format.length_field_bytes(last));
                    left -= 1 + size_bytes;
                    last_bytes = Some(size_bytes);
                }
                MacFormat::Nr => left -= 1 + format.length_field_bytes(size_bytes) + size_bytes,
            }
            block.pdus.push(pdu);
        }
        if uplink && !block.has_bsr() {
            left -= block.add_padding_bsr(left);
        }
        block.pad(left, last_bytes);
        block
    }

    fn next_pdu(
        &self,
        room: u32,
        receiver: &mut AmReceiver,
        sender: &mut AmSender,
        tti: i64,
    ) -> Option<Pdu> {
        if self.pdus.is_empty()
            && let Some(status) = receiver.take_status(room, tti)
        {
            return Some(Pdu::Status(status));
        }
        sender.build(room, tti).map(Pdu::Data)
    }

    /// Fills the `left` bytes with padding (6.1.2: one or two bytes at the front, more at
    /// the end).
    fn pad(&mut self, left: u32, last_bytes: Option<u32>) {
        if self.format == MacFormat::Nr {
            self.tail_padding = left > 0;
            self.padding_bytes = left.saturating_sub(1);
            return;
        }
        match (left, last_bytes) {
            (0, _) => {}
            (1 | 2, _) => self.front_padding = left,
            (_, last) => {
                self.tail_padding = true;
                self.padding_bytes =
                    left - 1 - last.map_or(0, |bytes| self.format.length_field_bytes(bytes));
            }
        }
    }

    /// Adds a BSR in place of `left` bytes of padding: the long one if it fits, otherwise
    /// the short one; returns its bytes (5.4.5, Padding BSR; one logical channel group has
    /// data).
    fn add_padding_bsr(&mut self, left: u32) -> u32 {
        let (lcid, bytes) = match (left, self.format.long_bsr()) {
            (LONG_BSR_BYTES.., Some(long)) => (long, LONG_BSR_BYTES),
            (SHORT_BSR_BYTES.., _) => (self.format.short_bsr(), SHORT_BSR_BYTES),
            _ => return 0,
        };
        self.control.push(lcid);
        bytes
    }

    /// Whether an uplink block has a BSR.
    pub(crate) fn has_bsr(&self) -> bool {
        let (short, long) = (self.format.short_bsr(), self.format.long_bsr());
        self.control.iter().any(|&lcid| lcid == short || Some(lcid) == long)
    }

    /// Whether it has a BSR of all logical channel groups.
    pub(crate) fn has_long_bsr(&self) -> bool {
        self.format.long_bsr().is_some_and(|long| self.control.contains(&long))
    }

    /// Format of the PDU.
    pub(crate) const fn format(&self) -> MacFormat {
        self.format
    }

    /// Room for another SDU in `left` bytes, after one of `last_bytes`.
    fn room_for_next(&self, left: u32, last_bytes: Option<u32>) -> Option<u32> {
        let format = self.format;
        let subheaders = match format {
            MacFormat::Lte => 1 + last_bytes.map_or(0, |last| format.length_field_bytes(last)),
            // A 16-bit length if the SDU may need it.
            MacFormat::Nr => 1 + format.length_field_bytes(left),
        };
        left.checked_sub(subheaders).filter(|&room| room > 0)
    }

    /// Bytes of MAC SDUs: all belong to the data bearer.
    pub(crate) fn sdu_bytes(&self) -> u32 {
        self.pdus.iter().map(Pdu::size_bytes).sum()
    }

    /// RLC data bytes that leave the queue with this block.
    pub(crate) fn departed_bytes(&self) -> u32 {
        let data = |pdu: &Pdu| match pdu {
            Pdu::Data(pdu) => pdu.part.1 - pdu.part.0,
            Pdu::Status(_) => 0,
        };
        self.pdus.iter().map(data).sum()
    }

    /// The subheaders in order, as in records: the LCID, and for an SDU its length.
    pub(crate) fn subheaders(&self) -> Vec<String> {
        let padding = self.format.padding();
        let front = (0..self.front_padding).map(|_| padding.to_string());
        let control = self.control.iter().map(u8::to_string);
        let sdus = self.pdus.iter().map(|pdu| format!("{DATA_LCID}:{}", pdu.size_bytes()));
        let tail = self.tail_padding.then(|| padding.to_string());
        front.chain(control).chain(sdus).chain(tail).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rlc::Sdu;
    use crate::scenario::RlcConfig;

    fn fill(sdu_bytes: u32, tbs_bytes: u32, control: &[u8]) -> (u32, String) {
        fill_way(sdu_bytes, tbs_bytes, control, false)
    }

    /// Fills a block from a queue of one SDU; returns padding and subheaders.
    fn fill_way(sdu_bytes: u32, tbs_bytes: u32, control: &[u8], uplink: bool) -> (u32, String) {
        let mut receiver = AmReceiver::new(RlcConfig::default());
        let mut sender = AmSender::new(RlcConfig::default());
        sender.push(Sdu { id: 0, bytes: sdu_bytes });
        let block = MacPdu::fill(
            MacFormat::Lte,
            tbs_bytes,
            control.to_vec(),
            &mut receiver,
            &mut sender,
            0,
            uplink,
        );
        let long = if block.has_long_bsr() { 2 } else { 0 };
        let control_bytes = 2 * block.control.len() as u32 + long;
        let lengths = if block.tail_padding {
            MacFormat::Lte.length_field_bytes(block.sdu_bytes())
        } else {
            0
        };
        let subheaders = block.front_padding + 1 + lengths + u32::from(block.tail_padding);
        let total = control_bytes + subheaders + block.sdu_bytes() + block.padding_bytes;
        assert_eq!(total, tbs_bytes, "every byte has a place");
        (block.padding_bytes, block.subheaders().join(" "))
    }

    #[test]
    fn pads_by_the_standards_rules() {
        // 100 bytes, 2 of RLC header, 1 subheader.
        assert_eq!(fill(100, 103, &[]), (0, "3:102".into()));
        assert_eq!(fill(100, 104, &[]), (0, "31 3:102".into()));
        assert_eq!(fill(100, 105, &[]), (0, "31 31 3:102".into()));
        // A length field of one byte and the padding's subheader.
        assert_eq!(fill(100, 106, &[]), (1, "3:102 31".into()));
        assert_eq!(fill(200, 206, &[]), (0, "3:202 31".into()));
        assert_eq!(fill(1_000, 200, &[]), (0, "3:199".into()));
        assert_eq!(fill(1_000, 200, &[MacFormat::Lte.timing_advance()]), (0, "29 3:197".into()));
    }

    #[test]
    fn padding_of_the_phone_holds_the_bsr_that_fits() {
        let fill = |tbs_bytes, control: &[u8]| fill_way(100, tbs_bytes, control, true);
        assert_eq!(fill(103, &[]), (0, "3:102".into()));
        assert_eq!(fill(104, &[]), (0, "31 3:102".into()));
        // Two spare bytes are a short BSR, four a long one.
        assert_eq!(fill(105, &[]), (0, "29 3:102".into()));
        assert_eq!(fill(106, &[]), (0, "31 29 3:102".into()));
        assert_eq!(fill(107, &[]), (0, "30 3:102".into()));
        assert_eq!(fill(109, &[]), (0, "31 31 30 3:102".into()));
        assert_eq!(fill(110, &[]), (1, "30 3:102 31".into()));
        // An existing BSR is sufficient.
        assert_eq!(fill(110, &[MacFormat::Lte.short_bsr()]), (3, "29 3:102 31".into()));
    }

    #[test]
    fn blocks_of_nr_have_a_length_an_sdu_and_padding_last() {
        let config = RlcConfig { nr_sn_bits: Some(18), ..RlcConfig::default() };
        let fill = |sdus: &[u32], tbs_bytes: u32| {
            let mut receiver = AmReceiver::new(config.clone());
            let mut sender = AmSender::new(config.clone());
            for (id, &bytes) in (0..).zip(sdus) {
                sender.push(Sdu { id, bytes });
            }
            let (receiver, sender) = (&mut receiver, &mut sender);
            let control = vec![MacFormat::Nr.timing_advance()];
            let block = MacPdu::fill(MacFormat::Nr, tbs_bytes, control, receiver, sender, 0, false);
            (block.padding_bytes, block.subheaders().join(" "))
        };
        // 2 of the timing advance; each SDU 3 of RLC and 2 or 3 of MAC (TS 38.321, 6.1.2).
        assert_eq!(fill(&[100, 1_000], 2 + 105 + 1_006), (0, "61 3:103 3:1003".into()));
        assert_eq!(fill(&[100], 2 + 105 + 1), (0, "61 3:103 63".into()));
        assert_eq!(fill(&[100], 2 + 105 + 41), (40, "61 3:103 63".into()));
        // A segment without an offset is the first.
        assert_eq!(fill(&[1_000], 2 + 3 + 500), (0, "61 3:500".into()));
    }
}
