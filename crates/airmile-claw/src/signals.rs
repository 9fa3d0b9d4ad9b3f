//! Waits for a request to end.

use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use airmile_host::Attempt;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::error::Result;

/// The signals that request an end.
#[derive(Debug)]
pub struct Signals(Receiver<()>);

impl Signals {
    /// Starts to watch for them.
    ///
    /// # Errors
    /// The system refuses.
    pub fn new() -> Result<Self> {
        let mut signals = signal_hook::iterator::Signals::new([SIGTERM, SIGHUP, SIGINT])
            .attempt(|| "cannot watch for signals".to_owned())?;
        let (sender, receiver) = mpsc::channel();
        let watch = move || {
            for _ in signals.forever() {
                if sender.send(()).is_err() {
                    break;
                }
            }
        };
        let thread = thread::Builder::new().name("signals".to_owned()).spawn(watch);
        thread.map(drop).attempt(|| "cannot start a thread".to_owned())?;
        Ok(Self(receiver))
    }

    /// Waits for a signal.
    pub fn wait(&mut self) {
        // Fails only after the watching thread has ended.
        let _ = self.0.recv();
    }

    /// Waits for a signal for a limited time; returns whether one arrived.
    pub fn wait_for(&mut self, time: Duration) -> bool {
        self.0.recv_timeout(time).is_ok()
    }
}
