//! Experiments between real hosts: each run is `airmile lab shell` in its own process; its
//! files are read when it has ended.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use airmile::{Error, Result};
use airmile_host::thread::lock;
use airmile_lab::reproduce::{Hosts, Job, Program, Video};
use airmile_lab::{Lateness, Scenario};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tempfile::TempDir;

/// The exit status of a run whose command succeeded but whose TTIs were late.
const LATE: i32 = 5;

/// Maximum time for a run to terminate on request, including its command and its files
/// (chosen here).
const ENDS_WITHIN: Duration = Duration::from_secs(10);

/// Path of the player in a clone of the repository.
const PLAYER: &str = "lab/player/play.mjs";

/// Runs jobs of experiments, one at a time.
#[derive(Debug)]
pub struct RealHosts {
    /// Program and first arguments that run `lab shell`.
    launcher: Vec<OsString>,
    /// Why no run is possible, according to a run that does nothing.
    refused: OnceLock<Option<String>>,
    /// Why the player cannot be run.
    no_player: OnceLock<Option<String>>,
    /// Directory of videos and runs; removed at the end, also if a signal ends this
    /// process.
    place: Mutex<Option<TempDir>>,
    /// The run that currently writes there.
    writer: Arc<RunLock>,
}

/// The run that writes into the directory; only one at a time.
#[derive(Debug, Default)]
struct RunLock {
    now: Mutex<Now>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Now {
    /// Whether a run is being prepared, executed or read.
    is_busy: bool,
    /// Its process.
    runs: Option<Pid>,
    /// A signal was received: no further run may start.
    is_over: bool,
}

/// Permission of a run to write, until dropped.
struct Busy<'a>(&'a RunLock);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.lock().is_busy = false;
        self.0.changed.notify_all();
    }
}

impl RunLock {
    /// Begins a run; fails after [`end`](Self::end).
    fn begin(&self) -> io::Result<Busy<'_>> {
        let mut now = self.lock();
        if now.is_over {
            return Err(io::ErrorKind::Interrupted.into());
        }
        now.is_busy = true;
        Ok(Busy(self))
    }

    /// Runs one of its commands to completion.
    fn output(&self, command: &mut Command) -> io::Result<Output> {
        // In its own process group, so that everything it started is ended with it.
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut now = self.lock();
        if now.is_over {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let child = command.spawn()?;
        now.runs = i32::try_from(child.id()).ok().map(Pid::from_raw);
        drop(now);
        let done = child.wait_with_output();
        self.lock().runs = None;
        done
    }

    /// Terminates the present run and waits until nothing of it is written any more; no run
    /// begins after it.
    fn end(&self) {
        let mut now = self.lock();
        now.is_over = true;
        if let Some(pid) = now.runs {
            let _ = killpg(pid, Signal::SIGTERM);
        }
        let is_busy = |now: &mut Now| now.is_busy;
        let waited = self.changed.wait_timeout_while(now, ENDS_WITHIN, is_busy);
        let now = waited.unwrap_or_else(PoisonError::into_inner).0;
        if let Some(pid) = now.runs {
            let _ = killpg(pid, Signal::SIGKILL);
            drop(self.changed.wait_timeout_while(now, ENDS_WITHIN, is_busy));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Now> {
        lock(&self.now)
    }
}

impl RealHosts {
    /// With the program and first arguments that run `lab shell`.
    #[must_use]
    pub fn new(launcher: Vec<OsString>) -> Self {
        Self {
            launcher,
            refused: OnceLock::new(),
            no_player: OnceLock::new(),
            place: Mutex::new(None),
            writer: Arc::default(),
        }
    }

    /// `lab shell` with a scenario.
    fn shell(&self, scenario: &Path) -> Command {
        let mut words = self.launcher.iter();
        let mut command = Command::new(words.next().map_or_else(OsString::new, OsString::clone));
        command.args(words).arg(scenario).args(["--quiet", "--dies-with-parent"]);
        command.stdin(Stdio::null());
        command
    }

    /// Why no run is possible: tried with one that does nothing.
    fn refused(&self) -> Option<String> {
        let mut try_one = self.shell(Path::new("idle"));
        let done = try_one.args(["--late-limit-ms", "60000", "--", "true"]).output();
        match done {
            Ok(done) if done.status.success() => None,
            Ok(done) => Some(first_line(&done)),
            Err(error) => Some(format!("cannot run `lab shell`: {error}")),
        }
    }

    /// A directory for this process's runs.
    fn place(&self) -> io::Result<PathBuf> {
        let mut place = lock(&self.place);
        if let Some(place) = place.as_ref() {
            return Ok(place.path().to_owned());
        }
        let new = tempfile::Builder::new().prefix("airmile-reproduce-").tempdir()?;
        let path = new.path().to_owned();
        remove_on_signal(path.clone(), self.writer.clone())?;
        *place = Some(new);
        Ok(path)
    }

    /// A video, created once.
    fn video(&self, place: &Path, video: Video) -> Result<PathBuf> {
        let Video { seconds, segment_s, bitrates_bps } = video;
        let bitrates: Vec<String> = bitrates_bps.iter().map(u64::to_string).collect();
        let bitrates = bitrates.join(",");
        // Named by its parameters: later runs reuse it.
        let name =
            bitrates.bytes().fold(0_u64, |sum, b| sum.wrapping_mul(31).wrapping_add(b.into()));
        let dir = place.join(format!("video-{seconds}-{segment_s}-{name:x}"));
        let maker = player().and_then(|player| fs::canonicalize(player).ok());
        let maker = maker.unwrap_or_default().with_file_name("video.mjs");
        let mut make = Command::new(&maker);
        make.arg(&dir).args(["--seconds", &seconds.to_string()]);
        make.args(["--segment", &segment_s.to_string()]).stdin(Stdio::null());
        if !bitrates.is_empty() {
            make.args(["--bitrates", &bitrates]);
        }
        let done = self
            .writer
            .output(&mut make)
            .map_err(|error| cannot("the video cannot be made", error))?;
        if done.status.success() { Ok(dir) } else { Err(cannot("the video", first_line(&done))) }
    }

    fn prepare(&self, scenario: &Scenario, job: &Job) -> Result<(TempDir, Command)> {
        let place = self.place().map_err(|e| cannot("a directory cannot be made", e))?;
        let io = |e: io::Error| cannot("a run's directory cannot be filled", e);
        let run = tempfile::Builder::new().prefix("run-").tempdir_in(&place).map_err(io)?;
        let www = run.path().join("www");
        fs::create_dir(&www).map_err(io)?;
        // A sparse file: nothing is read from disk.
        let file = File::create(www.join("file")).map_err(io)?;
        file.set_len(job.file_bytes).map_err(io)?;
        if let Some(video) = job.video {
            symlink(self.video(&place, video)?, www.join("video")).map_err(io)?;
        }
        let path = run.path().join("scenario.toml");
        let text = scenario.to_toml().map_err(|e| cannot("the scenario", e))?;
        fs::write(&path, text).map_err(io)?;
        let mut command = self.shell(&path);
        command.arg("--serve").arg(&www).arg("--output").arg(run.path().join("run"));
        for port in &job.ports {
            command.args(["--serve-port", &port.to_string()]);
        }
        // Files left there by killed programs are removed with the run.
        command.env("TMPDIR", run.path());
        if let Some(player) = player() {
            command.env("AIRMILE_PLAYER", player);
        }
        command.args(["--", "sh", "-c", &job.script]);
        Ok((run, command))
    }
}

impl Hosts for RealHosts {
    fn missing(&self, programs: &[Program]) -> Option<String> {
        let refused = self.refused.get_or_init(|| self.refused()).clone();
        let lacks = |program: &Program| match program {
            // --rate exists since 7.84.
            Program::Curl => works("curl", &["--rate", "1/s", "--version"])
                .err()
                .map(|why| format!("needs curl 7.84 or later: {why}")),
            Program::Player => self.no_player.get_or_init(no_player).clone(),
        };
        refused.or_else(|| programs.iter().find_map(lacks))
    }

    fn run(
        &self,
        scenario: &Scenario,
        job: &Job,
        read: &mut dyn FnMut(&Path) -> Result<()>,
    ) -> Result<Lateness> {
        // Dropped after the run's directory.
        let _busy = self.writer.begin().map_err(|e| cannot("a run cannot begin", e))?;
        let (run, mut command) = self.prepare(scenario, job)?;
        let done = self.writer.output(&mut command);
        let done = done.map_err(|e| cannot("`lab shell` cannot be run", e))?;
        if !matches!(done.status.code(), Some(0 | LATE)) {
            return Err(cannot("a run in real time failed", last_lines(&done)));
        }
        let dir = run.path().join("run");
        let path = dir.join("manifest.json");
        let text = fs::read(&path).map_err(|e| cannot("a run left no manifest", e))?;
        let unreadable = |e| cannot("a run's manifest cannot be read", e);
        let manifest: serde_json::Value = serde_json::from_slice(&text).map_err(unreadable)?;
        let clock = &manifest["clock"];
        // The status for lateness may also be the script's own.
        if clock["exit_status"] != 0 {
            return Err(cannot("the script of a run failed", last_lines(&done)));
        }
        let lateness = serde_json::from_value(clock["lateness"].clone()).map_err(unreadable)?;
        read(&dir)?;
        Ok(lateness)
    }
}

fn cannot(what: &str, why: impl std::fmt::Display) -> Error {
    Error::Option(format!("an experiment cannot be run: {what}: {why}"))
}

/// The player's program: from the environment, the path, or the clone in which this command
/// was built; never from the current directory.
fn player() -> Option<PathBuf> {
    let named = std::env::var_os("AIRMILE_PLAYER").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&path).map(|dir| dir.join("airmile-player"));
    let here = std::env::current_exe().unwrap_or_default();
    // Other users may control directories above the command: a clone counts only if its
    // owner matches.
    let owner = |path: &Path| fs::metadata(path).map(|there| there.uid()).ok();
    let is_clone = |dir: &&Path| {
        let files = [dir.join("Cargo.toml"), dir.join(PLAYER)];
        owner(&here).is_some() && files.iter().all(|file| owner(file) == owner(&here))
    };
    let in_clone = here.ancestors().skip(1).filter(is_clone).map(|dir| dir.join(PLAYER));
    let all = named.into_iter().chain(in_path).chain(in_clone);
    let mut there = all.filter(|program| program.is_file());
    there.next().and_then(|program| std::path::absolute(program).ok())
}

fn no_player() -> Option<String> {
    let Some(player) = player() else {
        return Some(format!(
            "no DASH player: {PLAYER} of a clone after `make player`, `airmile-player` in the \
             path, or $AIRMILE_PLAYER"
        ));
    };
    let checked = works(&player.to_string_lossy(), &["--check"]);
    let checked = checked.and_then(|()| works("ffmpeg", &["-version"]));
    checked.err().map(|why| format!("the DASH player: {why}"))
}

/// Whether a program runs successfully.
fn works(program: &str, words: &[&str]) -> std::result::Result<(), String> {
    match Command::new(program).args(words).stdin(Stdio::null()).output() {
        Ok(done) if done.status.success() => Ok(()),
        Ok(done) => Err(first_line(&done)),
        Err(error) => Err(format!("{program}: {error}")),
    }
}

fn first_line(done: &Output) -> String {
    let stderr = String::from_utf8_lossy(&done.stderr);
    stderr.lines().next().map_or_else(|| done.status.to_string(), str::to_owned)
}

fn last_lines(done: &Output) -> String {
    let stderr = String::from_utf8_lossy(&done.stderr);
    let lines: Vec<&str> = stderr.lines().collect();
    let last = lines.get(lines.len().saturating_sub(5)..).unwrap_or_default();
    format!("{}; {}", done.status, last.join(" / "))
}

/// Removes a directory when a signal arrives, once no run writes there any more; then
/// terminates this process.
fn remove_on_signal(dir: PathBuf, writer: Arc<RunLock>) -> io::Result<()> {
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM])?;
    let wait = move || {
        for signal in signals.forever() {
            writer.end();
            let _ = fs::remove_dir_all(&dir);
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    };
    thread::Builder::new().name("clean-up".to_owned()).spawn(wait).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_writes_has_ended_before_the_directory_goes() {
        let writer = Arc::new(RunLock::default());
        let other = writer.clone();
        let mut sleep = Command::new("sleep");
        sleep.arg("600");
        let sleeper = thread::spawn(move || {
            let _busy = other.begin()?;
            other.output(&mut sleep)
        });
        while writer.lock().runs.is_none() {
            thread::yield_now();
        }
        writer.end();
        assert!(!writer.lock().is_busy && writer.lock().runs.is_none());
        assert!(!sleeper.join().unwrap().unwrap().status.success());
        let refused = writer.output(&mut Command::new("true")).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::Interrupted);
        assert!(writer.begin().is_err());
    }
}
