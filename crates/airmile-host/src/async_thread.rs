//! Threads with a runtime that stop when their owner is dropped.

use std::fmt;
use std::io;
use std::thread::{self, JoinHandle};

use tokio::runtime::Runtime;
use tokio::sync::oneshot;

/// Resolves when an [`AsyncWorker`] must stop.
pub type Stopped = oneshot::Receiver<()>;

/// A thread with a runtime, which is stopped and joined when this is dropped.
pub struct AsyncWorker {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for AsyncWorker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncWorker").finish_non_exhaustive()
    }
}

impl AsyncWorker {
    /// A single-threaded runtime.
    ///
    /// # Errors
    /// The system denies a resource.
    pub fn runtime() -> io::Result<Runtime> {
        tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()
    }

    /// Runs a future on its own thread; the future ends soon after its argument resolves.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start<F: Future<Output = ()>>(
        name: &str,
        runtime: Runtime,
        run: impl FnOnce(Stopped) -> F + Send + 'static,
    ) -> io::Result<Self> {
        let (stop, stopped) = oneshot::channel();
        let thread = thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || runtime.block_on(run(stopped)))?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }

    /// Waits until it ends by itself.
    pub fn wait(mut self) {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for AsyncWorker {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic was reported on standard error by its thread.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn a_future_ends_with_its_owner() {
        let ended = Arc::new(AtomicBool::new(false));
        let its_ended = ended.clone();
        let run = move |stopped: Stopped| async move {
            let _ = stopped.await;
            its_ended.store(true, Ordering::Relaxed);
        };
        drop(AsyncWorker::start("test", AsyncWorker::runtime().unwrap(), run).unwrap());
        assert!(ended.load(Ordering::Relaxed));
    }
}
