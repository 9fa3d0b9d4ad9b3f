//! The kernel's own accounting of BPF run time (`kernel.bpf_stats_enabled`).

use std::collections::BTreeMap;
use std::fs;
use std::os::fd::AsFd;

use airmile_host::Attempt;
use libbpf_rs::query::ProgInfoIter;
use libbpf_rs::{Object, Program};

use super::ProgramTime;
use crate::error::Result;

const SWITCH: &str = "/proc/sys/kernel/bpf_stats_enabled";

/// Accounting is enabled during the lifetime of this value. A killed process leaves it on:
/// that costs each run of a program some 20 ns, and `sysctl kernel.bpf_stats_enabled=0`
/// disables it.
#[derive(Debug)]
pub(super) struct Stats {
    before: String,
}

impl Stats {
    /// Enables accounting.
    ///
    /// # Errors
    /// The system refuses.
    pub(super) fn start() -> Result<Self> {
        let what = || SWITCH.to_owned();
        let before = fs::read_to_string(SWITCH).attempt(what)?;
        fs::write(SWITCH, "1\n").attempt(what)?;
        Ok(Self { before })
    }

    /// Run time of each program of an object.
    pub(super) fn of(object: &Object) -> BTreeMap<String, ProgramTime> {
        let id = |program: Program<'_>| Program::id_from_fd(program.as_fd()).ok();
        let ours: Vec<u32> = object.progs().filter_map(id).collect();
        ProgInfoIter::default()
            .filter(|info| ours.contains(&info.id) && info.run_cnt > 0)
            .map(|info| {
                let time = ProgramTime {
                    runs: info.run_cnt,
                    mean_ns: info.run_time_ns as f64 / info.run_cnt as f64,
                };
                (info.name.to_string_lossy().into_owned(), time)
            })
            .collect()
    }
}

impl Drop for Stats {
    fn drop(&mut self) {
        // A process allowed to enable it may also disable it.
        let _ = fs::write(SWITCH, &self.before);
    }
}
