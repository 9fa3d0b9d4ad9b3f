//! A network namespace, held by a thread in it.

use std::sync::mpsc;
use std::thread;

use airmile_host::Attempt;
use nix::sched::{CloneFlags, unshare};

use crate::error::{Error, Result};
use crate::privilege::refused;

type Job = Box<dyn FnOnce() + Send>;

/// A network namespace. It disappears when this value and everything started in it has
/// ended.
#[derive(Debug)]
pub(crate) struct Namespace {
    name: &'static str,
    jobs: mpsc::Sender<Job>,
}

impl Namespace {
    /// An empty namespace.
    pub(crate) fn new(name: &'static str) -> Result<Self> {
        let (jobs, queue) = mpsc::channel::<Job>();
        let (made, is_made) = mpsc::channel();
        let hold = move || {
            let result = unshare(CloneFlags::CLONE_NEWNET);
            let is_in = result.is_ok();
            let _ = made.send(result);
            if is_in {
                queue.into_iter().for_each(|job| job());
            }
        };
        thread::Builder::new()
            .name(format!("ns-{name}"))
            .spawn(hold)
            .attempt(|| format!("cannot start the thread of {name}"))?;
        is_made
            .recv()
            .map_err(|_| Error::Thread(name))?
            .map_err(|e| refused("cannot make a network namespace", e.into()))?;
        Ok(Self { name, jobs })
    }

    /// Its name.
    pub(crate) const fn name(&self) -> &'static str {
        self.name
    }

    /// Runs a function in it and returns the result. Threads and processes started by the
    /// function are in it, too.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        let (done, result) = mpsc::channel();
        let job = Box::new(move || {
            let _ = done.send(job());
        });
        self.jobs.send(job).map_err(|_| Error::Thread(self.name))?;
        result.recv().map_err(|_| Error::Thread(self.name))
    }
}
