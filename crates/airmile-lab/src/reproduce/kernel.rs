//! Repeats experiments of virtual time with the kernel's TCP between real hosts, as further
//! rows of the same experiment.

use airmile_emulate::Scenario;
use airmile_wire::tcp::StudyOptions;

use super::ExperimentResult;
use super::hosts::{Hosts, Job, Program, RealRuns};
use super::monitor::{Observation, read_run};
use super::runs::Work;
use airmile::Result;

/// A job that only runs `curl`, with further arguments for it.
pub(super) fn fetch(file_bytes: u64, words: &str, query: &str) -> Job {
    Job {
        script: format!(
            "curl -q --noproxy '*' -fsS -o /dev/null {words} \"http://$AIRMILE_SERVER/file{query}\""
        ),
        file_bytes,
        video: None,
        ports: Vec::new(),
    }
}

/// Observations of a monitor between core and radio network for each job.
pub(super) fn watch(
    work: &Work<'_>,
    hosts: &dyn Hosts,
    cases: &[(Scenario, Job)],
) -> Result<RealRuns<Observation>> {
    work.in_real_time(
        hosts,
        cases,
        |case| Ok(case.clone()),
        |_, dir| read_run(dir, &StudyOptions::default()),
    )
}

/// Adds the rows of runs with the kernel's TCP to those of virtual time.
pub(super) fn with_kernel(
    mut found: ExperimentResult,
    work: &Work<'_>,
    with: impl FnOnce(&dyn Hosts) -> Result<ExperimentResult>,
) -> Result<ExperimentResult> {
    match work.hosts(&[Program::Curl]) {
        Ok(hosts) => {
            let real = with(hosts)?;
            found.rows.extend(real.rows.into_iter().map(|mut row| {
                row.what = format!("kernel TCP: {}", row.what);
                row
            }));
            found.figures.extend(real.figures);
            found.lateness.extend(real.lateness);
            found.failed.extend(real.failed);
        }
        Err(why) => found.skipped = Some(format!("kernel TCP: {why}")),
    }
    Ok(found)
}
