//! The process that restores the system: it waits for its pipe to close, which the kernel
//! does however the instance ends. Until then the pipe carries a heartbeat; while the
//! heartbeat is missing, no packets are directed to the hanging instance.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use airmile_host::Attempt;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use crate::error::{Error, Result};
use crate::instance::{Lock, StateFile, Suspended};

/// Output of the guard: it holds the lock, another one holds it, or changes of a former
/// instance are left.
const READY: &str = "ready";
const TAKEN: &str = "taken";
const LEFT: &str = "left";

/// Maximum time to restore the system (chosen here: some commands, each of which waits for
/// others to finish).
const ENDS_WITHIN: Duration = Duration::from_secs(20);

/// Interval of the instance's heartbeat, in ns.
pub(crate) const BEAT_EVERY_NS: i64 = 200_000_000;

/// An instance without a heartbeat for this time hangs (chosen here: five heartbeats; TCP
/// waits 1 s before its first retransmission, RFC 6298, 2.1).
const HUNG_AFTER: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// Result of [`restore`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Restored {
    /// An instance runs; nothing was touched.
    Runs(u32),
    /// There was nothing to restore.
    Nothing,
    /// Everything was restored.
    Done,
    /// These changes could not be undone.
    Failed(Vec<String>),
}

/// Undoes the changes of an instance whose guard was killed, too.
///
/// # Errors
/// The instance's file cannot be read.
pub fn restore(interface: &str) -> Result<Restored> {
    let Some(_lock) = Lock::take(interface)? else {
        let pid = StateFile::open(interface)?.map_or(0, |file| file.instance.pid);
        return Ok(Restored::Runs(pid));
    };
    let Some(left) = StateFile::open(interface)? else { return Ok(Restored::Nothing) };
    let failed = left.undo();
    Ok(if failed.is_empty() { Restored::Done } else { Restored::Failed(failed) })
}

/// Runs the guard; standard input is the pipe from the instance. Returns the exit status.
///
/// # Errors
/// The instance's file cannot be read.
pub fn guard(interface: &str) -> Result<u8> {
    // Service stops and terminal signals reach the whole process group: the instance ends
    // by them, and the guard by the instance's end.
    for signal in [SIGTERM, SIGINT, SIGHUP, SIGQUIT] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))
            .attempt(|| "cannot ignore signals".to_owned())?;
    }
    let say = |words: &str| {
        let mut out = io::stdout();
        writeln!(out, "{words}").and_then(|()| out.flush())
    };
    let Some(_lock) = Lock::take(interface)? else {
        let _ = say(TAKEN);
        return Ok(3);
    };
    // Left by a former instance whose guard was killed.
    if let Some(left) = StateFile::open(interface)? {
        let failed = left.undo();
        report_failures(&failed);
        if !failed.is_empty() {
            // A new instance would replace the file, which has what is left.
            let _ = say(LEFT);
            return Ok(3);
        }
    }
    say(READY).attempt(|| "cannot answer".to_owned())?;
    watch(interface);
    let failed = StateFile::open(interface)?.map_or_else(Vec::new, StateFile::undo);
    report_failures(&failed);
    Ok(u8::from(!failed.is_empty()))
}

/// Until the pipe closes: removes what holds packets back while no heartbeat arrives, and
/// recreates it when one does; what fails then, at the next one.
fn watch(interface: &str) {
    let pipe = io::stdin();
    let mut is_beating = false;
    let mut suspended: Option<Suspended> = None;
    loop {
        // Setup may take long: the timeout applies from the first heartbeat on.
        let timeout = is_beating.then_some(HUNG_AFTER);
        let mut fds = [PollFd::new(&pipe, PollFlags::IN)];
        match poll(&mut fds, timeout.as_ref()) {
            Ok(0) => {
                let file = StateFile::open(interface).ok().flatten();
                let already = suspended.unwrap_or_default();
                let taken = match file {
                    Some(file) => file.suspend(&already),
                    None => already,
                };
                report_failures(&taken.failed);
                say_hung(interface, "does not respond: packets bypass it");
                suspended = Some(taken);
                // Until the next heartbeat nothing more can be done.
                is_beating = false;
                continue;
            }
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(_) => return,
        }
        match rustix::io::read(&pipe, &mut [0_u8; 64]) {
            Ok(0) => return,
            Ok(_) => {
                is_beating = true;
                if let Some(mut left) = suspended.take() {
                    if left.resume() {
                        report_failures(&left.failed);
                    }
                    if left.is_over() {
                        say_hung(interface, "responds again");
                    } else {
                        suspended = Some(left);
                    }
                }
            }
            Err(Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

fn say_hung(interface: &str, what: &str) {
    let _ = writeln!(io::stderr(), "airmile: qcut: {interface}: the gate {what}");
}

/// Prints what could not be undone; the reader of standard error may be gone.
fn report_failures(failed: &[String]) {
    for what in failed {
        let _ = writeln!(io::stderr(), "airmile: qcut: cannot be restored: {what}");
    }
}

/// The guard as seen by its instance.
#[derive(Debug)]
pub(crate) struct Guard {
    child: Child,
    interface: String,
}

impl Guard {
    /// Starts the guard; `launcher` is the program and its first arguments that run
    /// [`guard`]. When this returns, the changes of a former instance are undone.
    pub(crate) fn start(launcher: &[OsString], interface: &str) -> Result<Self> {
        let what = || "cannot start the restoring process".to_owned();
        let (program, arguments) =
            launcher.split_first().ok_or_else(|| io::Error::other("no program")).attempt(what)?;
        let mut child = Command::new(program)
            .args(arguments)
            .args(["--up", interface])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Not in the terminal's process group, so that its signals do not reach it.
            .process_group(0)
            .spawn()
            .attempt(what)?;
        let mut line = String::new();
        if let Some(out) = child.stdout.take() {
            BufReader::new(out).read_line(&mut line).attempt(what)?;
        }
        if let Some(pipe) = &child.stdin {
            // A hanging guard must not block the instance.
            fcntl_setfl(pipe, OFlags::NONBLOCK).attempt(what)?;
        }
        let mut guard = Self { child, interface: interface.to_owned() };
        match line.trim() {
            READY => Ok(guard),
            TAKEN => Err(Error::Unfit(format!(
                "{interface}: airmile qcut runs there already; `airmile qcut watch --up {interface}` shows it"
            ))),
            LEFT => Err(Error::Unfit(format!(
                "{interface}: changes of a former run are left, so this one does not start; \
                 `airmile qcut restore --up {interface}` tries again to undo them"
            ))),
            _ => {
                let status = guard.child.wait();
                Ok(Err(io::Error::other(format!("it ended: {status:?}"))).attempt(what)?)
            }
        }
    }

    /// Sends a heartbeat. Must be called every [`BEAT_EVERY_NS`] or more often.
    pub(crate) fn beat(&self) {
        if let Some(pipe) = &self.child.stdin {
            // If the pipe is full, enough heartbeats are pending.
            let _ = rustix::io::write(pipe, &[0]);
        }
    }

    /// Whether the guard still runs.
    pub(crate) fn is_there(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Lets the guard restore the system, and waits for it.
    pub(crate) fn end(mut self) -> Result<()> {
        drop(self.child.stdin.take());
        let until = Instant::now() + ENDS_WITHIN;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(None) if Instant::now() < until => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                _ => break,
            }
        }
        // The guard was killed, or failed: once more from here.
        let interface = &self.interface;
        Err(Error::Unfit(match restore(interface)? {
            Restored::Done | Restored::Nothing => format!(
                "{interface}: the restoring process was killed, so this \
                 one ends, too; the system is restored"
            ),
            Restored::Runs(_) => format!(
                "{interface}: restoring takes long; `airmile qcut restore --up \
                 {interface}` shows whether it is done"
            ),
            Restored::Failed(what) => format!(
                "{interface}: cannot be restored: {}; `airmile qcut restore --up {interface}` \
                 tries again",
                what.join("; ")
            ),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_starts_only_if_its_guard_is_ready() {
        for (answer, expected) in [
            (READY, None),
            (TAKEN, Some("qcut watch --up none0")),
            (LEFT, Some("qcut restore --up none0")),
            ("", Some("it ended")),
        ] {
            let launcher = ["sh", "-c", "echo $0", answer].map(OsString::from);
            let told = Guard::start(&launcher, "none0").err().map(|error| error.to_string());
            match (expected, told) {
                (None, None) => {}
                (Some(words), Some(told)) => assert!(told.contains(words), "{told}"),
                (_, told) => panic!("{answer}: {told:?}"),
            }
        }
    }
}
