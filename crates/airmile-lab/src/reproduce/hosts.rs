//! Interface for experiments between real hosts. This crate cannot run them, and reports
//! SKIPPED without an implementation.

use std::path::Path;

use airmile_emulate::Scenario;

use super::Row;
use super::estimate::Estimate;
use super::runs::Work;
use crate::manifest::Lateness;
use airmile::Result;

/// A program that a job needs in addition to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// `curl` as the phone.
    Curl,
    /// The DASH player in Chromium (lab/player), and a video for it.
    Player,
}

/// A video (lab/player/video.mjs).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Video {
    /// Its length.
    pub seconds: u64,
    /// The length of its segments.
    pub segment_s: u64,
    /// Its bitrates, rising; none: the ten of `video.mjs`.
    pub bitrates_bps: &'static [u64],
}

/// The phone's part in a run between real hosts. The server offers files over HTTP, on port
/// 80, each port that the scenario's middlebox intercepts, and the ports given here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Script for `sh -c`. `$AIRMILE_SERVER` is the server's address, `$AIRMILE_APP_LOG` a
    /// file for log entries, `$AIRMILE_PLAYER` the player's program.
    pub script: String,
    /// Size of the server's file `file`.
    pub file_bytes: u64,
    /// The video of the server's `video/manifest.mpd`; absent: no video.
    pub video: Option<Video>,
    /// Further ports of the server.
    pub ports: Vec<u16>,
}

/// Runs scenarios between real hosts.
pub trait Hosts: Sync {
    /// Why jobs with these programs cannot run here; `None`: they can.
    fn missing(&self, programs: &[Program]) -> Option<String>;

    /// Runs a job as the scenario's phone, in real time. `read` gets the directory with the
    /// run's files, which is removed afterwards.
    ///
    /// # Errors
    /// The run failed, the script failed, or `read` returned an error.
    fn run(
        &self,
        scenario: &Scenario,
        job: &Job,
        read: &mut dyn FnMut(&Path) -> Result<()>,
    ) -> Result<Lateness>;
}

/// Results of runs between real hosts, their lateness, and failures.
pub(super) struct RealRuns<T> {
    /// One for each case; `None`: that run failed.
    pub(super) results: Vec<Option<T>>,
    pub(super) lateness: Vec<Lateness>,
    /// The reason for each failed run.
    pub(super) failed: Vec<String>,
}

impl<T> RealRuns<T> {
    /// The available results.
    pub(super) fn there(&self) -> Vec<&T> {
        self.results.iter().flatten().collect()
    }
}

impl Work<'_> {
    /// The implementation for jobs with these programs, or why they are skipped.
    pub(super) fn hosts(&self, programs: &[Program]) -> std::result::Result<&dyn Hosts, String> {
        let Some(hosts) = self.hosts else {
            return Err("needs real hosts: `airmile lab reproduce` on Linux has them".to_owned());
        };
        hosts.missing(programs).map_or(Ok(hosts), Err)
    }

    /// Runs jobs one after the other, as each uses the machine's clock. A failure does not
    /// affect the others.
    pub(super) fn in_real_time<C, T>(
        &self,
        hosts: &dyn Hosts,
        cases: &[C],
        job: impl Fn(&C) -> Result<(Scenario, Job)>,
        read: impl Fn(&C, &Path) -> Result<T>,
    ) -> Result<RealRuns<T>> {
        self.runs.expect(cases.len());
        let mut runs = RealRuns { results: Vec::new(), lateness: Vec::new(), failed: Vec::new() };
        for (at, case) in cases.iter().enumerate() {
            let (scenario, job) = job(case)?;
            let mut result = None;
            let ran = hosts.run(&scenario, &job, &mut |dir| {
                result = Some(read(case, dir)?);
                Ok(())
            });
            match ran {
                Ok(late) => runs.lateness.push(late),
                Err(error) => {
                    result = None;
                    runs.failed.push(format!("run {} of {}: {error}", at + 1, cases.len()));
                }
            }
            runs.results.push(result);
            self.runs.ended();
        }
        Ok(runs)
    }
}

/// The lateness of an experiment's runs as a row; and that they are invalid if some were
/// too late.
pub(super) fn lateness_row(lateness: &[Lateness]) -> (Option<Row>, Option<String>) {
    let Some(worst) = lateness.iter().max_by_key(|late| late.p99_us) else { return (None, None) };
    let (worst_ms, limit_ms) = (worst.p99_us as f64 / 1e3, worst.limit_us as f64 / 1e3);
    let value = Estimate { value: worst_ms, n: lateness.len() as u64, interval: None };
    let row =
        Row::new("real time: lateness of TTIs, 99th percentile of the worst run", "ms", value)
            .note("of runs between real hosts; over 1 ms they are invalid");
    let late = lateness.iter().filter(|late| !late.is_valid()).count();
    let invalid = (late > 0).then(|| {
        format!(
            "{late} of {} runs in real time were late: 99th percentile up to {worst_ms:.3} ms, \
             limit {limit_ms} ms; run it again on an idle machine",
            lateness.len()
        )
    });
    (Some(row), invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_run_is_invalid() {
        let of = |p99_us| Lateness {
            n_tti: 1_000,
            p50_us: 20,
            p99_us,
            p999_us: p99_us,
            max_us: p99_us,
            late_ttis: 0,
            limit_us: 1_000,
            work_p99_us: 100,
        };
        let check = |p99_us: &[u64], worst_ms: Option<f64>, invalid: bool| {
            let late: Vec<Lateness> = p99_us.iter().copied().map(of).collect();
            let (row, invalid_reason) = lateness_row(&late);
            assert_eq!(
                (row.and_then(|row| row.ours), invalid_reason.is_some()),
                (worst_ms, invalid)
            );
        };
        check(&[], None, false);
        check(&[200, 1_000], Some(1.0), false);
        check(&[200, 1_001], Some(1.001), true);
    }
}
