//! The kernel's own account of BPF's run time (`kernel.bpf_stats_enabled`).

use std::collections::BTreeMap;
use std::fs;
use std::os::fd::AsFd;

use airmile_host::Attempt;
use libbpf_rs::query::ProgInfoIter;
use libbpf_rs::{Object, Program};

use super::ProgramTime;
use crate::error::Result;

const SWITCH: &str = "/proc/sys/kernel/bpf_stats_enabled";

/// The account is kept as long as this is there. A process that is killed leaves it on:
/// that costs each run of a program some 20 ns, and `sysctl kernel.bpf_stats_enabled=0`
/// ends it.
#[derive(Debug)]
pub(super) struct Stats {
    before: String,
}

impl Stats {
    /// Switches it on.
    ///
    /// # Errors
    /// The system does not let us.
    pub(super) fn start() -> Result<Self> {
        let what = || SWITCH.to_owned();
        let before = fs::read_to_string(SWITCH).attempt(what)?;
        fs::write(SWITCH, "1\n").attempt(what)?;
        Ok(Self { before })
    }

    /// What each program of an object took.
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
        // Who may switch it on may switch it off.
        let _ = fs::write(SWITCH, &self.before);
    }
}
