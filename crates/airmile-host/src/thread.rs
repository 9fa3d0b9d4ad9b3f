//! Threads that stop when their owner is dropped, and locks.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Signals within this time are one request (chosen here: far under the time for a second key
/// press; timeout(1) and shells send a signal to the process and to its group).
const SAME_REQUEST: Duration = Duration::from_millis(100);

/// Locks a mutex, also after a panic of another thread that held it. Locked data in this
/// workspace is consistent between any two statements: counts, maps, the last status.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A request to stop threads. Clones share one flag.
#[derive(Debug, Clone, Default)]
pub struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    /// A flag that is not set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Requests the stop.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the stop was requested.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Sets the flag at the first SIGINT or SIGTERM; a second one ends the process, which may take
    /// long to stop.
    ///
    /// # Errors
    /// Signals cannot be watched.
    pub fn set_by_signals(&self) -> io::Result<()> {
        self.set_by(&[SIGINT, SIGTERM])
    }

    /// As [`set_by_signals`](Self::set_by_signals), by these signals; SIGHUP alone never ends the
    /// process: a terminal that is closed sends it more than once.
    ///
    /// # Errors
    /// Signals cannot be watched.
    pub fn set_by(&self, signals: &[i32]) -> io::Result<()> {
        let mut arriving = Signals::new(signals)?;
        let stop = self.clone();
        let watch = move || {
            let mut first: Option<Instant> = None;
            for signal in arriving.forever() {
                let began = *first.get_or_insert_with(Instant::now);
                if signal != SIGHUP && began.elapsed() > SAME_REQUEST {
                    signal_hook::low_level::exit(128 + signal);
                }
                stop.set();
            }
        };
        thread::Builder::new().name("signals".to_owned()).spawn(watch).map(drop)
    }
}

/// A thread that is stopped and joined when this is dropped.
#[derive(Debug)]
pub struct Worker {
    stop: StopFlag,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    /// Starts a thread, which must check the flag often.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(
        name: &str,
        stop: StopFlag,
        run: impl FnOnce(&StopFlag) + Send + 'static,
    ) -> io::Result<Self> {
        let its_stop = stop.clone();
        let thread = thread::Builder::new().name(name.to_owned()).spawn(move || run(&its_stop))?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Whether the thread has ended by itself, or was stopped.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Requests its stop, and waits for it.
    pub fn stop(&mut self) {
        self.stop.set();
        if let Some(thread) = self.thread.take() {
            // A panic was reported on standard error by its thread.
            let _ = thread.join();
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.stop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_ends_with_its_owner() {
        let flag = StopFlag::new();
        let ended = Arc::new(AtomicBool::new(false));
        let its_ended = ended.clone();
        let worker = Worker::start("test", flag.clone(), move |stop| {
            while !stop.is_set() {
                thread::yield_now();
            }
            its_ended.store(true, Ordering::Relaxed);
        });
        let worker = worker.unwrap();
        assert!(!worker.has_ended());
        drop(worker);
        assert!(flag.is_set() && ended.load(Ordering::Relaxed));
    }

    #[test]
    fn a_lock_outlives_a_panic() {
        let shared = Arc::new(Mutex::new(1));
        let its = shared.clone();
        let panicked = thread::spawn(move || {
            let _guard = its.lock().unwrap();
            std::panic::resume_unwind(Box::new(()));
        });
        assert!(panicked.join().is_err() && shared.is_poisoned());
        assert_eq!(*lock(&shared), 1);
    }
}
