//! MAC protocol data units (TS 36.321, 6.1.2): control elements, RLC PDUs of
//! one bearer, padding.

use crate::rlc::{AmReceiver, AmSender, Pdu};

/// Logical channel of the data bearer: 1 and 2 are signalling (TS 36.331, 9.1.2).
pub(crate) const DATA_LCID: u8 = 3;
/// Timing advance command (table 6.2.1-1).
pub(crate) const TIMING_ADVANCE: u8 = 29;
/// Short BSR (table 6.2.1-2).
pub(crate) const SHORT_BSR: u8 = 29;
/// Long BSR (table 6.2.1-2).
pub(crate) const LONG_BSR: u8 = 30;
/// Bytes of a short BSR, and of a long one, with their subheaders (6.1.3.1).
pub(crate) const SHORT_BSR_BYTES: u32 = 2;
const LONG_BSR_BYTES: u32 = 4;
/// Padding (tables 6.2.1-1 and 6.2.1-2).
const PADDING: u8 = 31;

/// The smallest block that is worth a grant, in bytes (chosen here: a subheader,
/// an RLC header with a length indicator and a few bytes of data).
pub(crate) const LEAST_BLOCK_BYTES: u32 = 12;

/// A MAC PDU: what a transport block carries.
#[derive(Debug, Clone, Default)]
pub(crate) struct MacPdu {
    /// Control elements, by LCID. All used here have one byte, but for the long
    /// BSR, which has three.
    pub(crate) control: Vec<u8>,
    pub(crate) pdus: Vec<Pdu>,
    /// Padding bytes, its subheader apart.
    pub(crate) padding_bytes: u32,
    /// One-byte padding subheaders at the front, in place of 1 or 2 bytes.
    front_padding: u32,
    /// Whether the last subheader is padding's.
    tail_padding: bool,
}

impl MacPdu {
    /// Fills a block: control elements, a STATUS PDU, then data. What is left
    /// takes a padding BSR if the phone sends it (`uplink`) and it has none.
    pub(crate) fn fill(
        tbs_bytes: u32,
        control: Vec<u8>,
        receiver: &mut AmReceiver,
        sender: &mut AmSender,
        tti: i64,
        uplink: bool,
    ) -> Self {
        let mut block = Self::default();
        // A control element is a subheader of one byte and one byte.
        let mut left = tbs_bytes;
        for lcid in control {
            if left >= 2 {
                left -= 2;
                block.control.push(lcid);
            }
        }
        let mut last_bytes = None;
        while let Some(room) = room_for_next(left, last_bytes) {
            let Some(pdu) = block.next_pdu(room, receiver, sender, tti) else { break };
            // Those before the last have a length: their subheader grows.
            left -= last_bytes.map_or(0, length_field_bytes) + 1 + pdu.size_bytes();
            last_bytes = Some(pdu.size_bytes());
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

    /// Fills the `left` bytes with padding (6.1.2: one or two bytes go to the
    /// front, more to the end).
    fn pad(&mut self, left: u32, last_bytes: Option<u32>) {
        match (left, last_bytes) {
            (0, _) => {}
            (1 | 2, _) => self.front_padding = left,
            (_, last) => {
                self.tail_padding = true;
                self.padding_bytes = left - 1 - last.map_or(0, length_field_bytes);
            }
        }
    }

    /// Puts a BSR where `left` bytes would be padding: the long one where it
    /// fits, else the short one; gives its bytes (5.4.5, Padding BSR; one logical
    /// channel group has data).
    fn add_padding_bsr(&mut self, left: u32) -> u32 {
        let (lcid, bytes) = match left {
            LONG_BSR_BYTES.. => (LONG_BSR, LONG_BSR_BYTES),
            SHORT_BSR_BYTES.. => (SHORT_BSR, SHORT_BSR_BYTES),
            _ => return 0,
        };
        self.control.push(lcid);
        bytes
    }

    /// Whether a block of the phone's has a BSR.
    pub(crate) fn has_bsr(&self) -> bool {
        self.control.iter().any(|lcid| matches!(*lcid, SHORT_BSR | LONG_BSR))
    }

    /// Bytes of MAC SDUs: all belong to the data bearer.
    pub(crate) fn sdu_bytes(&self) -> u32 {
        self.pdus.iter().map(Pdu::size_bytes).sum()
    }

    /// Bytes of RLC data that leave the queue with this block.
    pub(crate) fn departed_bytes(&self) -> u32 {
        let data = |pdu: &Pdu| match pdu {
            Pdu::Data(pdu) => pdu.part.1 - pdu.part.0,
            Pdu::Status(_) => 0,
        };
        self.pdus.iter().map(data).sum()
    }

    /// The subheaders in order, as records write them: the LCID, and of an SDU
    /// also its bytes.
    pub(crate) fn subheaders(&self) -> Vec<String> {
        let front = (0..self.front_padding).map(|_| PADDING.to_string());
        let control = self.control.iter().map(u8::to_string);
        let sdus = self.pdus.iter().map(|pdu| format!("{DATA_LCID}:{}", pdu.size_bytes()));
        let tail = self.tail_padding.then(|| PADDING.to_string());
        front.chain(control).chain(sdus).chain(tail).collect()
    }
}

/// F and L fields of a subheader that is not the last (6.2.1).
const fn length_field_bytes(sdu_bytes: u32) -> u32 {
    if sdu_bytes < 128 { 1 } else { 2 }
}

/// Room for a further SDU in `left` bytes, behind one of `last_bytes`.
fn room_for_next(left: u32, last_bytes: Option<u32>) -> Option<u32> {
    let subheaders = 1 + last_bytes.map_or(0, length_field_bytes);
    left.checked_sub(subheaders).filter(|&room| room > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rlc::Sdu;
    use crate::scenario::RlcConfig;

    fn fill(sdu_bytes: u32, tbs_bytes: u32, control: &[u8]) -> (u32, String) {
        fill_way(sdu_bytes, tbs_bytes, control, false)
    }

    /// Fills a block from a queue of one SDU; gives padding and subheaders.
    fn fill_way(sdu_bytes: u32, tbs_bytes: u32, control: &[u8], uplink: bool) -> (u32, String) {
        let mut receiver = AmReceiver::new(RlcConfig::default());
        let mut sender = AmSender::new(RlcConfig::default());
        sender.push(Sdu { id: 0, bytes: sdu_bytes });
        let block =
            MacPdu::fill(tbs_bytes, control.to_vec(), &mut receiver, &mut sender, 0, uplink);
        let long = if block.control.contains(&LONG_BSR) { 2 } else { 0 };
        let control_bytes = 2 * block.control.len() as u32 + long;
        let lengths = if block.tail_padding { length_field_bytes(block.sdu_bytes()) } else { 0 };
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
        assert_eq!(fill(1_000, 200, &[TIMING_ADVANCE]), (0, "29 3:197".into()));
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
        // One that is there already is enough.
        assert_eq!(fill(110, &[SHORT_BSR]), (3, "29 3:102 31".into()));
    }
}
