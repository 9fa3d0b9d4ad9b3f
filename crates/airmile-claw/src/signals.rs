//! Waits until we are asked to end.

use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use airmile_host::Attempt;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::error::Result;

/// The signals that ask a process to end.
#[derive(Debug)]
pub struct Signals(Receiver<()>);

impl Signals {
    /// Begins to watch for them.
    ///
    /// # Errors
    /// The system does not let us.
    pub fn new() -> Result<Self> {
        let mut signals = signal_hook::iterator::Signals::new([SIGTERM, SIGHUP, SIGINT])
            .attempt(|| "cannot watch for signals".to_owned())?;
        let (tell, told) = mpsc::channel();
        let watch = move || {
            for _ in signals.forever() {
                if tell.send(()).is_err() {
                    break;
                }
            }
        };
        let thread = thread::Builder::new().name("signals".to_owned()).spawn(watch);
        thread.map(drop).attempt(|| "cannot start a thread".to_owned())?;
        Ok(Self(told))
    }

    /// Waits for one.
    pub fn wait(&mut self) {
        // It never ends otherwise.
        let _ = self.0.recv();
    }

    /// Waits for one for a while; tells whether it came.
    pub fn wait_for(&mut self, time: Duration) -> bool {
        self.0.recv_timeout(time).is_ok()
    }
}
