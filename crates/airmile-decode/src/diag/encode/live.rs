//! A modem log written in real time, as it is read from a phone.

use crate::diag::msg::PdcchDecoding;
use airmile_model::{Record, TtiIndex};

use super::{LogCollector, Options, Written, frame_all, position};

/// An uplink grant is known 4 TTIs before its block (TS 36.213, 8): messages about
/// decoded candidates wait for it, and one more.
const CANDIDATES_WAIT_TTIS: i64 = 5;

/// Takes records; returns the bytes that a modem would have written by now.
///
/// Messages are returned in the order of writing, like those of [`write`](super::write),
/// each once its time has come.
pub struct LiveLog {
    options: Options,
    log: Option<LogCollector>,
    /// Records of this TTI; and all, until the cell and the time are known.
    pending: Vec<Record>,
}

impl LiveLog {
    /// An empty one.
    #[must_use]
    pub const fn new(options: Options) -> Self {
        Self { options, log: None, pending: Vec::new() }
    }

    /// A record, in the order of TTIs.
    pub fn push(&mut self, record: &Record) {
        self.pending.push(record.clone());
    }

    /// The bytes written until a time in ns since the Unix epoch, before which all
    /// records were pushed.
    pub fn tick(&mut self, now_ns: i64) -> Vec<u8> {
        if self.log.is_none() {
            let is_timed = |record: &Record| record.at().is_some() && position(record).is_some();
            if self.pending.iter().any(is_timed) {
                self.log = LogCollector::new(&self.pending, self.options.profile).ok();
            }
        }
        let Some(log) = &mut self.log else { return Vec::new() };
        // A block contains its report, whatever their order of arrival.
        log.uplink.know(&self.pending);
        for record in self.pending.drain(..) {
            log.push(&record);
        }
        let now_ms = (now_ns - log.origin_ns) as f64 / 1e6;
        log.write_until(now_ms);
        let due: Vec<Written> = log.out.extract_if(.., |(at, _)| *at <= now_ms).collect();
        let ns = |ms: f64| log.origin_ns + (ms * 1e6) as i64;
        let mut out: Vec<_> = due.into_iter().map(|(ms, message)| (ns(ms), message)).collect();
        out.sort_by_key(|(at, _)| *at);
        frame_all(out, &self.options)
    }
}

impl LogCollector {
    /// Writes the batches due until then.
    fn write_until(&mut self, now_ms: f64) {
        let now = now_ms as i64;
        self.downlink.write_due(now, &self.versions, self.cell, &mut self.out);
        self.uplink.write_due(now, &self.versions, self.cell, &mut self.out);
        self.statistics_due(now);
        let later = self.candidates.split_off(&TtiIndex(now - CANDIDATES_WAIT_TTIS));
        let decoded = std::mem::replace(&mut self.candidates, later);
        self.decoded(decoded);
        self.uplink.forget_before(now - 1_000);
    }

    /// Messages about candidates decoded on the control channel.
    pub(super) fn decoded(&mut self, all: super::Candidates) {
        // Codes of 0xB130 for 5, 10, 15 and 20 MHz; others are not known.
        let code = [25, 50, 75, 100].iter().position(|&n_prb| n_prb == self.cell.n_prb);
        let (Some(version), Some(code)) = (self.versions.pdcch, code) else { return };
        for (tti, candidates) in all {
            let message = PdcchDecoding {
                version,
                tti: Some(tti.wrapped()),
                bandwidth_code: code as u8 + 2,
                frame_structure: 0,
                n_enb_antennas_code: 0,
                cp_code: 0,
                carrier: 0,
                candidates: candidates.into(),
            };
            self.out.push((super::prompt(tti, PdcchDecoding::CODE), message.into()));
        }
    }
}
