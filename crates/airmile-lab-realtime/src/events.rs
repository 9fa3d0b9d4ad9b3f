//! Events while a command runs: exits of commands, and signals.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use airmile_host::Attempt;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::command::Running;
use crate::error::Result;

/// Maximum time for a command to terminate on request (chosen here).
const ENDS_WITHIN: Duration = Duration::from_secs(1);

/// A signal within this time after a command's exit is assumed to be the one that ended the
/// command (chosen here: far over the delivery time, under the time for a second key
/// press).
const SAME_KEY: Duration = Duration::from_millis(100);

/// While a run ends, a signal terminates this process as usual, except the terminal's
/// signal that also ended the command.
pub(crate) fn end_at_once_on_signal(happened: mpsc::Receiver<RunEvent>) {
    let ended = Instant::now();
    let wait = move || {
        for event in happened {
            if let RunEvent::Signal(signal) = event
                && ended.elapsed() > SAME_KEY
            {
                let _ = signal_hook::low_level::emulate_default_handler(signal);
            }
        }
    };
    // Without this thread the run still ends by itself.
    let _ = thread::Builder::new().name("ending".to_owned()).spawn(wait);
}

/// Events while a command runs.
pub(crate) enum RunEvent {
    /// The phone's command has ended.
    Phone(u8),
    /// The server's command has ended.
    Server(u8),
    /// This process received a signal.
    Signal(i32),
}

/// Waits until the phone's command has exited; returns its exit status, and the server's if
/// that has exited before.
pub(crate) fn wait(phone: Running, happened: &mpsc::Receiver<RunEvent>) -> (u8, Option<u8>) {
    let mut asked = None;
    let mut server = None;
    loop {
        let event = match asked {
            None => happened.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(_) => happened.recv_timeout(ENDS_WITHIN),
        };
        match event {
            Ok(RunEvent::Phone(status)) => return (asked.unwrap_or(status), server),
            Ok(RunEvent::Server(status)) => server = Some(status),
            // The terminal also sends these to the command, which decides.
            Ok(RunEvent::Signal(SIGINT | SIGQUIT)) => {}
            Ok(RunEvent::Signal(signal)) => {
                asked = Some(u8::try_from(128 + signal).unwrap_or(1));
                phone.terminate();
            }
            Err(RecvTimeoutError::Timeout) => phone.kill(),
            Err(RecvTimeoutError::Disconnected) => return (asked.unwrap_or(1), server),
        }
    }
}

/// Ends the server's command, if it is still running.
pub(crate) fn end_server(server: Running, happened: &mpsc::Receiver<RunEvent>) {
    server.terminate();
    let is_server = |event: RunEvent| matches!(event, RunEvent::Server(_));
    if !happened.recv_timeout(ENDS_WITHIN).is_ok_and(is_server) {
        server.kill();
    }
}

pub(crate) fn watch_signals(events: mpsc::Sender<RunEvent>) -> Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGHUP, SIGINT, SIGQUIT])
        .attempt(|| "cannot watch for signals".to_owned())?;
    let watch = move || {
        for signal in signals.forever() {
            if events.send(RunEvent::Signal(signal)).is_err() {
                break;
            }
        }
    };
    let watcher = thread::Builder::new().name("signals".to_owned()).spawn(watch);
    Ok(watcher
        .map(drop)
        .attempt(|| "cannot start the thread that watches for signals".to_owned())?)
}
