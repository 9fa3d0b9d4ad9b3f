//! Inputs of several tests.

use std::path::{Path, PathBuf};

use airmile::codec::diag::{Deframer, Event};
use airmile::{Diagnosis, Inputs, Progress, RadioOptions, diagnose};
use airmile_testing::shared_files;

/// Modem logs of the lab, and real ones if available.
pub fn logs(dir: &Path) -> Vec<PathBuf> {
    let mut logs = Vec::new();
    // The samples have all kinds of records; the others are long.
    for scenario in airmile_lab::scenarios().iter().filter(|s| s.name.starts_with("sample-")) {
        let into = dir.join(scenario.name);
        airmile_lab::run_scenario(scenario.name, None, &into).unwrap();
        logs.push(into.join("modem.mi2log"));
    }
    logs.extend(shared_files("diag", &[".mi2log", ".qmdl"]));
    logs
}

/// Diagnoses files with default options.
pub fn diagnosis_of(files: &[PathBuf]) -> Diagnosis {
    let inputs = Inputs { files: files.to_vec(), ..Inputs::default() };
    diagnose(&inputs, &RadioOptions::default(), &Progress::default()).unwrap()
}

/// Runs a scenario of the library into a directory of its name.
pub fn library_run(scenario: &str, dir: &Path) -> PathBuf {
    let out = dir.join(scenario);
    airmile_lab::run_scenario(scenario, None, &out).unwrap();
    out
}

/// Runs the text of a scenario into `dir/run`.
pub fn scenario_run(scenario: &str, dir: &Path) -> PathBuf {
    let (file, out) = (dir.join("scenario.toml"), dir.join("run"));
    std::fs::write(&file, scenario).unwrap();
    airmile_lab::run_scenario(file.to_str().unwrap(), None, &out).unwrap();
    out
}

/// A modem log without the messages of some codes and times, in nanoseconds.
pub fn without_messages(log: &[u8], is_left_out: impl Fn(u16, i64) -> bool) -> Vec<u8> {
    let mut deframer = Deframer::new();
    let mut kept = Vec::new();
    for frame in log.split_inclusive(|byte| *byte == 0x7e) {
        deframer.push(frame);
        let mut is_kept = true;
        while let Some(event) = deframer.poll() {
            if let Event::Log(packet) = event {
                is_kept = !is_left_out(packet.code, packet.at.ns);
            }
        }
        kept.extend_from_slice(if is_kept { frame } else { &[] });
    }
    kept
}
