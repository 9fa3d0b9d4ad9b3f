//! The first process of a command's PID namespace: it starts the command and forwards
//! signals; when it ends, every process in the namespace ends.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use rustix::fs::{Mode, OFlags};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGTERM};
use signal_hook::iterator::Signals;

/// Exit status for a command that cannot be run, and for one that was not found (POSIX,
/// 2.8.2 of the shell).
const NOT_RUN: u8 = 126;
const NOT_FOUND: u8 = 127;

/// Runs a command as the first process of a PID namespace; returns its exit status, or 128
/// plus the number of the signal that ended it. With `lingers` it stays until all processes
/// have ended.
#[must_use]
pub fn inside(words: &[OsString], lingers: bool, parent: Option<&str>) -> u8 {
    // Elsewhere it would end unrelated processes.
    if std::process::id() != 1 {
        let _ = writeln!(
            io::stderr(),
            "airmile: this command must be the first process of a namespace"
        );
        return NOT_RUN;
    }
    // If the parent is killed, everything here must end.
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    // It may already have been killed; then no signal arrives.
    if let Some(parent) = parent {
        let Ok(parent) = File::open(Path::new("/proc").join(parent)) else { return NOT_RUN };
        let _ = thread::Builder::new().name("parent".to_owned()).spawn(move || end_after(&parent));
    }
    let Ok(mut signals) = Signals::new([SIGTERM, SIGHUP, SIGCHLD]) else { return NOT_RUN };
    see_own_processes();
    give_back_rights();
    let Some((program, arguments)) = words.split_first() else { return NOT_FOUND };
    let child = match Command::new(program).args(arguments).spawn() {
        Ok(child) => child,
        Err(error) => {
            let _ = writeln!(io::stderr(), "airmile: {}: {error}", program.display());
            return if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_RUN };
        }
    };
    let child = Pid::from_raw(i32::try_from(child.id()).unwrap_or(i32::MAX));
    let mut status = None;
    for signal in signals.forever() {
        if signal != SIGCHLD {
            // To the child, or to all processes but this one (kill(2)): lingering processes
            // may have left their parent long ago.
            let _ = kill(if lingers { Pid::from_raw(-1) } else { child }, Signal::SIGTERM);
            continue;
        }
        loop {
            match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(pid, code)) if pid == child => {
                    status = u8::try_from(code).ok()
                }
                Ok(WaitStatus::Signaled(pid, signal, _)) if pid == child => {
                    status = u8::try_from(128 + signal as i32).ok();
                }
                Ok(WaitStatus::StillAlive) => break,
                Err(Errno::ECHILD) => return status.unwrap_or(1),
                Err(_) => break,
                Ok(_) => {}
            }
            if let Some(status) = status.filter(|_| !lingers) {
                return status;
            }
        }
    }
    status.unwrap_or(1)
}

/// Ends this process, and with it its namespace, if its parent ended before the death
/// signal was set: checks once more after that.
fn end_after(parent: &File) {
    thread::sleep(Duration::from_secs(1));
    // The directory of a thread that has ended is empty.
    if rustix::fs::openat(parent, "stat", OFlags::RDONLY, Mode::empty()).is_err() {
        std::process::exit(NOT_RUN.into());
    }
}

/// Mounts `/proc` and `/sys` of this namespace. If the system forbids this, they show the
/// one outside, and commands still run.
fn see_own_processes() {
    let none = None::<&str>;
    let private = mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none);
    if private.is_err() {
        return;
    }
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    for kind in ["proc", "sysfs"] {
        let place = if kind == "proc" { "/proc" } else { "/sys" };
        let _ = mount(Some(kind), place, Some(kind), flags, none);
    }
}

/// Drops the capability that [`see_own_processes`] needed, unless running as root.
fn give_back_rights() {
    let _ = clear_ambient_capability_set();
    if let Ok(sets) = capabilities(None) {
        let inheritable = sets.inheritable.difference(CapabilitySet::SYS_ADMIN);
        let _ = rustix::thread::set_capabilities(None, CapabilitySets { inheritable, ..sets });
    }
}

/// The exit status of a shell for a process that has ended.
pub(crate) fn status_of(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}
