//! DIAG in a CoreSight trace, which an iPhone's baseband writes into a sysdiagnose.
//!
//! A trace is a sequence of frames of 16 bytes (Arm CoreSight architecture, IHI 0029, trace
//! formatter): bytes 0, 2 to 14 are a change of the trace's source if bit 0 is set (its identity
//! in the other seven), else data whose bit 0 is in byte 15; odd ones are data. A bit of byte 15
//! delays a change by a byte. Full-frame synchronisation (0x7FFFFFFF) may come between frames.
//! That DIAG has source 0x32 is from public descriptions; no real trace was available.

use super::{LogReader, hdlc};

const FRAME_BYTES: usize = 16;
const SYNC: [u8; 4] = [0xff, 0xff, 0xff, 0x7f];
/// The source of DIAG.
const DIAG_SOURCE: u8 = 0x32;
/// Minimum number of frames of a trace (chosen here).
const MIN_FRAMES: usize = 16;

/// Takes DIAG out of a trace.
#[derive(Debug, Clone, Default)]
pub struct CoreSightDemux {
    /// Bytes of an incomplete frame.
    partial: Vec<u8>,
    source: u8,
}

impl CoreSightDemux {
    /// At the start of a trace.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether these are the first bytes of a trace with DIAG in it.
    #[must_use]
    pub fn recognise(head: &[u8]) -> bool {
        // A change to the source of DIAG: most inputs have none, and need no more than this.
        let change = DIAG_SOURCE << 1 | 1;
        if head.len() < MIN_FRAMES * FRAME_BYTES || !head.iter().step_by(2).any(|b| *b == change) {
            return false;
        }
        let mut diag = Vec::new();
        Self::new().push(head, &mut diag);
        LogReader::recognise(&diag).is_some()
    }

    /// Takes the next bytes; those of DIAG are appended to `out`.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.partial.extend_from_slice(bytes);
        let partial = std::mem::take(&mut self.partial);
        let mut rest = partial.as_slice();
        loop {
            if let Some(after) = rest.strip_prefix(&SYNC) {
                rest = after;
                continue;
            }
            // A frame that synchronisation interrupts is incomplete: the source is unknown until
            // the next change.
            let Some(whole) = rest.get(..FRAME_BYTES + SYNC.len() - 1) else { break };
            if let Some(at) = memchr::memmem::find(whole, &SYNC) {
                self.source = 0;
                rest = rest.get(at..).unwrap_or_default();
                continue;
            }
            let Some((frame, after)) = rest.split_first_chunk::<FRAME_BYTES>() else { break };
            self.frame(frame, out);
            rest = after;
        }
        self.partial = rest.to_vec();
    }

    /// Ends the trace: its last frame.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        let partial = std::mem::take(&mut self.partial);
        let rest = partial.strip_prefix(&SYNC).unwrap_or(&partial);
        if let Some((frame, _)) = rest.split_first_chunk::<FRAME_BYTES>() {
            self.frame(frame, out);
        }
    }

    fn frame(&mut self, frame: &[u8; FRAME_BYTES], out: &mut Vec<u8>) {
        let [pairs @ .., flags] = frame;
        for (n, pair) in pairs.chunks(2).enumerate() {
            let flag = flags >> n & 1;
            let (first, second) = (pair.first().copied().unwrap_or(0), pair.get(1));
            let mut data = |source: u8, byte: u8| {
                if source == DIAG_SOURCE {
                    out.push(byte);
                }
            };
            if first & 1 == 0 {
                data(self.source, first | flag);
                second.iter().for_each(|byte| data(self.source, **byte));
            } else {
                let (old, new) = (self.source, first >> 1);
                let of_second = if flag == 1 { old } else { new };
                second.iter().for_each(|byte| data(of_second, **byte));
                self.source = new;
            }
        }
    }
}

/// A trace with these bytes of DIAG, each frame of it after one of another source; for tests. The
/// last frame is filled with ends of HDLC frames.
#[must_use]
pub fn encode(diag: &[u8]) -> Vec<u8> {
    const OTHER_SOURCE: u8 = 0x11;
    let mut out = Vec::new();
    for piece in diag.chunks(FRAME_BYTES - 2) {
        out.push(OTHER_SOURCE << 1 | 1);
        out.extend([0x40; FRAME_BYTES - 1]);
        let mut frame = vec![DIAG_SOURCE << 1 | 1];
        frame.extend(piece);
        frame.resize(FRAME_BYTES - 1, hdlc::TERMINATOR);
        let mut flags = 0;
        for (n, byte) in frame.iter_mut().step_by(2).enumerate().skip(1) {
            flags |= (*byte & 1) << n;
            *byte &= !1;
        }
        out.append(&mut frame);
        out.push(flags);
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn diag_of(trace: &[u8], piece: usize) -> Vec<u8> {
        let (mut demux, mut out) = (CoreSightDemux::new(), Vec::new());
        trace.chunks(piece).for_each(|bytes| demux.push(bytes, &mut out));
        demux.finish(&mut out);
        out
    }

    #[test]
    fn sources_are_separated() {
        let trace = [
            // Source 0x32 at once: 0x41, 0x42 and 0x43 (whose bit 0 is in the last byte) ...
            [0x65, 0x41, 0x42, 0x42, 0x42, 0x44, 0x21, 0x99, 0, 0, 0, 0, 0, 0, 0, 0b100],
            // ... after source 0x10 until here, delayed by a byte: 0x98 is of source 0x10.
            [0x65, 0x98, 0x50, 0x51, 0x21, 0x52, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0b101],
        ];
        let mut bytes = trace[0].to_vec();
        bytes.extend(SYNC);
        bytes.extend(trace[1]);
        // The change to 0x10 in the second frame is delayed, too: 0x52 is of DIAG.
        assert_eq!(diag_of(&bytes, 40), [0x41, 0x42, 0x42, 0x43, 0x44, 0x50, 0x51, 0x52]);
        assert_eq!(diag_of(&bytes, 3), diag_of(&bytes, 40));
    }

    #[test]
    fn a_trace_that_begins_within_a_frame_is_read_from_the_next_synchronisation() {
        let frame = [0x65, 0x41, 0x42, 0x42, 0x42, 0x44, 0x21, 0x99, 0, 0, 0, 0, 0, 0, 0, 0b100];
        let trace = [&frame[5..], &SYNC, &frame].concat();
        assert_eq!(diag_of(&trace, 3), [0x41, 0x42, 0x42, 0x43, 0x44]);
    }

    proptest! {
        #[test]
        fn any_bytes_in_any_pieces(bytes in prop::collection::vec(any::<u8>(), 0..400), piece in 1_usize..50) {
            let whole = diag_of(&bytes, 400);
            prop_assert!(whole.len() <= bytes.len());
            prop_assert_eq!(diag_of(&bytes, piece), whole);
            let _ = CoreSightDemux::recognise(&bytes);
        }
    }
}
