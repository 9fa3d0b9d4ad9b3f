//! The downlink queue is not empty: others hold the cell, or the signal carries little.

use airmile_model::Cause;

use super::{Context, Explain, Relief};

/// Others hold the PRBs.
pub(super) struct Contention;

impl Explain for Contention {
    fn cause(&self) -> Cause {
        Cause::RadioContention
    }

    fn words(&self, seen: &Context) -> String {
        let others = seen.split.others().unwrap_or(0.0) * 100.0;
        format!("data waited at the base station, where others held {others:.0} % of the PRBs")
    }

    fn next_step(&self, _: &Context) -> String {
        "others hold the cell: fewer bytes (lower bitrate, compression, caching) or another hour; \
         compare link throughput with `airmile radio`"
            .into()
    }

    /// Alone in the cell the phone has all PRBs.
    fn relief(&self, seen: &Context) -> Relief {
        let own = 1.0 - seen.split.others().unwrap_or(0.0);
        Relief { faster: 1.0 / own.max(0.01), ..Relief::default() }
    }
}

/// What the phone's own PRBs carry.
pub(super) struct Signal;

impl Explain for Signal {
    fn cause(&self) -> Cause {
        Cause::RadioSignal
    }

    fn words(&self, seen: &Context) -> String {
        let mut words = "data waited at the base station, and this phone held the PRBs: only what \
            they carry limits it"
            .to_owned();
        if let Some(efficiency) = seen.split.efficiency() {
            let percent = efficiency * 100.0;
            words.push_str(&format!(" ({percent:.0} % of what MCS 28 on one layer would)"));
        }
        words
    }

    fn next_step(&self, _: &Context) -> String {
        "the signal limits it: repeat it in a better place before changing the application, and \
         compare both with `airmile radio`; fewer bytes help"
            .into()
    }

    /// The best signal: MCS 28 on one layer, nothing sent twice.
    fn relief(&self, seen: &Context) -> Relief {
        let efficiency = seen.split.efficiency().unwrap_or(1.0);
        Relief { faster: 1.0 / efficiency, stays: efficiency, ..Relief::default() }
    }
}
