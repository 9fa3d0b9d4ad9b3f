//! Threads that stop when their owner is dropped, and locks.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use signal_hook::consts::{SIGINT, SIGTERM};

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
    /// A handler cannot be installed.
    pub fn set_by_signals(&self) -> io::Result<()> {
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, self.shared())?;
            signal_hook::flag::register(signal, self.shared())?;
        }
        Ok(())
    }

    /// The flag itself, for signal handlers.
    #[must_use]
    pub fn shared(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
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
