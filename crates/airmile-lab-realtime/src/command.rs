//! Commands in a host's namespace.

use std::ffi::OsString;
use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;

use airmile_host::Attempt;
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, configure_capability_in_ambient_set,
    set_capabilities,
};

use crate::error::{Error, Result};
use crate::inside::status_of;
use crate::namespace::Namespace;
use crate::privilege::refused;

/// A command to run.
#[derive(Debug)]
pub(crate) struct Start {
    /// Program and first arguments that run [`inside`](crate::inside()).
    pub(crate) launcher: Vec<OsString>,
    /// Program and arguments.
    pub(crate) words: Vec<OsString>,
    /// Added to the environment.
    pub(crate) environment: Vec<(&'static str, OsString)>,
    /// Continue while any process started by the command is running.
    pub(crate) lingers: bool,
    /// Standard input, output and error.
    pub(crate) stdio: [Stdio; 3],
}

/// A running command.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Running(Pid);

impl Running {
    /// Asks it to terminate.
    pub(crate) fn terminate(self) {
        let _ = kill(self.0, Signal::SIGTERM);
    }

    /// Kills it and everything that it has started.
    pub(crate) fn kill(self) {
        let _ = kill(self.0, Signal::SIGKILL);
    }
}

/// Starts a command in a namespace; its exit status is passed to `ended`.
pub(crate) fn start(
    namespace: &Namespace,
    start: Start,
    ended: impl FnOnce(u8) + Send + 'static,
) -> Result<Running> {
    let name = namespace.name();
    let (started, is_started) = mpsc::channel();
    let wait = move || match start.spawn() {
        Ok(mut child) => {
            let _ = started.send(Ok(child.id()));
            // A child that cannot be waited for no longer exists.
            ended(child.wait().map_or(1, status_of));
        }
        Err(error) => {
            let _ = started.send(Err(error));
        }
    };
    // The thread is the command's parent, and stays as long as it runs: a child dies with
    // the thread that created it.
    namespace
        .run(move || thread::Builder::new().name(format!("run-{name}")).spawn(wait).map(drop))?
        .attempt(|| format!("cannot start a thread in {name}"))?;
    let id = is_started.recv().map_err(|_| Error::Thread(name))??;
    Ok(Running(Pid::from_raw(i32::try_from(id).unwrap_or(i32::MAX))))
}

impl Start {
    /// Starts it as the first process of a PID namespace, with its own mounts.
    fn spawn(self) -> Result<Child> {
        unshare(CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWNS)
            .map_err(|e| refused("cannot make namespaces of processes and mounts", e.into()))?;
        // In a user namespace a program starts without capabilities, unless they are
        // ambient. `inside` needs this one, and drops it afterwards.
        let _ = raise(CapabilitySet::SYS_ADMIN);
        let mut launcher = self.launcher.into_iter();
        let program = launcher.next().unwrap_or_default();
        let [input, output, error] = self.stdio;
        let mut command = Command::new(&program);
        command.args(launcher);
        // As seen in this /proc, which may belong to another namespace.
        if let Ok(parent) = fs::read_link("/proc/thread-self") {
            command.arg("--parent").arg(parent);
        }
        if self.lingers {
            command.arg("--linger");
            // The terminal's signals are for the phone's command.
            command.process_group(0);
        }
        command.arg("--").args(self.words);
        command.envs(self.environment).stdin(input).stdout(output).stderr(error);
        Ok(command.spawn().attempt(|| format!("cannot run {}", program.display()))?)
    }
}

/// Passes a capability on to the programs started by this thread.
fn raise(capability: CapabilitySet) -> rustix::io::Result<()> {
    let sets = capabilities(None)?;
    set_capabilities(None, CapabilitySets { inheritable: sets.inheritable | capability, ..sets })?;
    configure_capability_in_ambient_set(capability, true)
}
