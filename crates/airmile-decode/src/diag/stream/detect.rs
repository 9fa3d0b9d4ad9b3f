//! Detects a log's container, and where a damaged one resumes.

use super::MAX_LEADING;
use crate::diag::dlf::{self, RecordHeader};
use crate::diag::hdlc;

/// The container of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Container {
    /// HDLC frames.
    Hdlc,
    /// HDLC frames after a leading section.
    Qmdl2,
    /// DLF records.
    Dlf,
    /// Unencoded log packets between other bytes.
    Hdf,
}

/// The state of the search for the container.
#[derive(Debug, Clone, Default)]
pub(super) struct Detect {
    pub(super) hdlc: HdlcEvidence,
    pub(super) qmdl2: Option<HdlcEvidence>,
    /// Length at which to search again.
    pub(super) next: usize,
}

/// Good frames from some position on.
#[derive(Debug, Default, Clone)]
pub(super) struct HdlcEvidence {
    pub(super) at: usize,
    pub(super) good: u32,
    pub(super) bad: u32,
}

impl HdlcEvidence {
    /// Continues the search; returns the position at which two frames were good.
    pub(super) fn look(&mut self, bytes: &[u8], scratch: &mut Vec<u8>) -> Option<usize> {
        while self.good < 2 {
            let rest = bytes.get(self.at..)?;
            let len = memchr::memchr(hdlc::TERMINATOR, rest)?;
            self.at += len + 1;
            if len == 0 {
                continue;
            }
            let good =
                hdlc::unescape(&rest[..len], scratch).is_ok() && hdlc::check(scratch).is_ok();
            self.good += u32::from(good);
            self.bad += u32::from(!good);
        }
        Some(self.at)
    }
}

/// Length of the leading section of a `.qmdl2`, if `bytes` begin with one.
pub(super) fn leading_len(bytes: &[u8]) -> Option<usize> {
    let len = u32::from_le_bytes(*bytes.first_chunk::<4>()?) as usize;
    (4..=MAX_LEADING).contains(&len).then_some(len)
}

/// The position at which three chained heads were plausible; at the end of the input also
/// a chain that ends with it.
pub(super) fn dlf_evidence(bytes: &[u8], whole: bool) -> Option<usize> {
    let mut at = 0;
    for i in 0..3 {
        if whole && at == bytes.len() && at > 0 {
            return Some(at);
        }
        let head = RecordHeader::read(bytes.get(at..)?)?;
        if !head.plausible() {
            return None;
        }
        at += if i < 2 { head.len } else { dlf::HEADER_LEN };
    }
    Some(at)
}

/// Whether a stream without good frames looks like damaged DLF.
pub(super) fn any_dlf(bytes: &[u8], whole: bool) -> bool {
    RecordHeader::read(bytes).is_some_and(|head| head.plausible())
        || (1..bytes.len()).any(|at| dlf_evidence(&bytes[at..], whole).is_some())
}

/// The kind of a place in a damaged DLF stream.
pub(super) enum DamagedPlace {
    /// A head, chained to another one or to the end of the input.
    Chained,
    /// No such head.
    No,
    /// More bytes are needed to decide.
    Unclear,
}

pub(super) fn place(rest: &[u8], at: usize, finished: bool) -> DamagedPlace {
    let unclear = if finished { DamagedPlace::No } else { DamagedPlace::Unclear };
    let Some(head) = rest.get(at..).and_then(RecordHeader::read) else { return unclear };
    if !head.plausible() {
        return DamagedPlace::No;
    }
    match rest.get(at + head.len..) {
        Some([]) if finished => DamagedPlace::Chained,
        Some(behind) if behind.len() >= dlf::HEADER_LEN => {
            if RecordHeader::read(behind).is_some_and(|next| head.chains_to(&next)) {
                DamagedPlace::Chained
            } else {
                DamagedPlace::No
            }
        }
        _ => unclear,
    }
}
