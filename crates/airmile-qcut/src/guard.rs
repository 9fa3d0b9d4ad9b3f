//! The process that puts things back: it waits for its pipe to close, which the
//! kernel does however the instance ends. Until then the pipe carries a heartbeat: while
//! that is missing, nothing leads packets to an instance that hangs.

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

/// What the guard says when it holds the place.
const READY: &str = "ready";
const TAKEN: &str = "taken";

/// How long it may take to put things back (chosen here: some commands, each of
/// which waits for others' to end).
const ENDS_WITHIN: Duration = Duration::from_secs(20);

/// How often the instance gives a sign of life, in ns.
pub(crate) const BEAT_EVERY_NS: i64 = 200_000_000;

/// An instance without one for so long hangs (chosen here: five of them; TCP waits 1 s
/// before it first sends again, RFC 6298, 2.1).
const HUNG_AFTER: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// What [`restore`] did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Restored {
    /// An instance runs; nothing was touched.
    Runs(u32),
    /// There was nothing to put back.
    Nothing,
    /// Everything was put back.
    Done,
    /// This could not be.
    Failed(Vec<String>),
}

/// Puts back what an instance has left behind whose guard was ended, too.
///
/// # Errors
/// Its file cannot be read.
pub fn restore(interface: &str) -> Result<Restored> {
    let Some(_lock) = Lock::take(interface)? else {
        let pid = StateFile::open(interface)?.map_or(0, |file| file.instance.pid);
        return Ok(Restored::Runs(pid));
    };
    let Some(left) = StateFile::open(interface)? else { return Ok(Restored::Nothing) };
    let failed = left.undo();
    Ok(if failed.is_empty() { Restored::Done } else { Restored::Failed(failed) })
}

/// The guard itself: standard input is the pipe from the instance. Gives the exit
/// status.
///
/// # Errors
/// The file of the instance cannot be read.
pub fn guard(interface: &str) -> Result<u8> {
    // A service's stop and a terminal's keys go to all of a group: the instance
    // ends by them, and we by its end.
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
    // A former instance's, whose guard was ended.
    if let Some(left) = StateFile::open(interface)? {
        tell(&left.undo());
    }
    say(READY).attempt(|| "cannot answer".to_owned())?;
    watch(interface);
    let failed = StateFile::open(interface)?.map_or_else(Vec::new, StateFile::undo);
    tell(&failed);
    Ok(u8::from(!failed.is_empty()))
}

/// Until the pipe closes: takes away what packets wait by while no heartbeat comes, and
/// makes it again when one does.
fn watch(interface: &str) {
    let pipe = io::stdin();
    let mut is_beating = false;
    let mut suspended: Option<Suspended> = None;
    loop {
        // Setting up may take long: the first beat comes after it.
        let timeout = (is_beating && suspended.is_none()).then_some(HUNG_AFTER);
        let mut fds = [PollFd::new(&pipe, PollFlags::IN)];
        match poll(&mut fds, timeout.as_ref()) {
            Ok(0) => {
                let file = StateFile::open(interface).ok().flatten();
                let taken = file.map(|file| file.suspend()).unwrap_or_default();
                tell(&taken.failed);
                say_hung(interface, "does not respond: packets pass by it");
                suspended = Some(taken);
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
                if let Some(suspended) = suspended.take() {
                    tell(&suspended.resume());
                    say_hung(interface, "responds again");
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

/// Nobody may listen any more.
fn tell(failed: &[String]) {
    for what in failed {
        let _ = writeln!(io::stderr(), "airmile: qcut: cannot be put back: {what}");
    }
}

/// The guard as its instance sees it.
#[derive(Debug)]
pub(crate) struct Guard {
    child: Child,
    interface: String,
}

impl Guard {
    /// Starts it; `launcher` are program and first arguments that lead to
    /// [`guard`]. A former instance's changes are undone when this returns.
    pub(crate) fn start(launcher: &[OsString], interface: &str) -> Result<Self> {
        let what = || "cannot start the process that puts things back".to_owned();
        let (program, arguments) =
            launcher.split_first().ok_or_else(|| io::Error::other("no program")).attempt(what)?;
        let mut child = Command::new(program)
            .args(arguments)
            .args(["--up", interface])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // The terminal's keys are not for it.
            .process_group(0)
            .spawn()
            .attempt(what)?;
        let mut said = String::new();
        if let Some(out) = child.stdout.take() {
            BufReader::new(out).read_line(&mut said).attempt(what)?;
        }
        if let Some(pipe) = &child.stdin {
            // A guard that hangs holds nothing up.
            fcntl_setfl(pipe, OFlags::NONBLOCK).attempt(what)?;
        }
        let mut guard = Self { child, interface: interface.to_owned() };
        match said.trim() {
            READY => Ok(guard),
            TAKEN => Err(Error::Unfit(format!(
                "{interface}: airmile qcut runs there already; `airmile qcut watch --up {interface}` shows it"
            ))),
            _ => {
                let status = guard.child.wait();
                Ok(Err(io::Error::other(format!("it ended: {status:?}"))).attempt(what)?)
            }
        }
    }

    /// That the instance goes on. To be called each [`BEAT_EVERY_NS`] or more often.
    pub(crate) fn beat(&self) {
        if let Some(pipe) = &self.child.stdin {
            // A full pipe has enough of them.
            let _ = rustix::io::write(pipe, &[0]);
        }
    }

    /// Whether it is still there.
    pub(crate) fn is_there(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Has it put things back, and waits until it has.
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
        // It was ended by somebody, or could not: once more from here.
        let interface = &self.interface;
        Err(Error::Unfit(match restore(interface)? {
            Restored::Done | Restored::Nothing => format!(
                "{interface}: the process that puts things back was ended by somebody, so this \
                 one ends, too; all is as it was before"
            ),
            Restored::Runs(_) => format!(
                "{interface}: it takes long to put things back; `airmile qcut restore --up \
                 {interface}` tells whether it was done"
            ),
            Restored::Failed(what) => format!(
                "{interface}: cannot be put back: {}; `airmile qcut restore --up {interface}` \
                 tries again",
                what.join("; ")
            ),
        }))
    }
}
