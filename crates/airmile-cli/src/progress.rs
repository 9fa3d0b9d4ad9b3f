//! Progress on standard error, once a command has run for two seconds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use airmile::{Inputs, Progress};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::args::Global;

/// Before this nothing is shown.
const PATIENCE: Duration = Duration::from_secs(2);
const STEP: Duration = Duration::from_millis(100);

/// Shows how far reading is until it is dropped.
pub struct Shown {
    /// What the facade counts in.
    pub progress: Progress,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Shown {
    /// Starts to watch the reading of `inputs`.
    pub fn start(global: &Global, inputs: &Inputs) -> Self {
        let progress = Progress::default();
        let stop = Arc::new(AtomicBool::new(false));
        let sizes = inputs.files.iter().chain(&inputs.transfers).map(std::fs::metadata);
        let total: u64 = sizes.filter_map(|m| m.ok().map(|m| m.len())).sum();
        let thread = (!global.quiet).then(|| {
            let (progress, stop) = (progress.clone(), stop.clone());
            std::thread::spawn(move || watch(&progress, &stop, total))
        });
        Self { progress, stop, thread }
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // The thread only draws; that it failed is nothing to tell.
            let _ = thread.join();
        }
    }
}

fn watch(progress: &Progress, stop: &AtomicBool, total: u64) {
    let mut waited = Duration::ZERO;
    while waited < PATIENCE {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        std::thread::park_timeout(STEP);
        waited += STEP;
    }
    let bar = if total > 0 { ProgressBar::new(total) } else { ProgressBar::no_length() };
    bar.set_draw_target(ProgressDrawTarget::stderr());
    let style = "{spinner} reading {bytes} of {total_bytes} [{bar:30}] {bytes_per_sec}, {eta} left";
    if let Ok(style) = ProgressStyle::with_template(style) {
        bar.set_style(style);
    }
    while !stop.load(Ordering::Relaxed) {
        bar.set_position(progress.bytes());
        std::thread::park_timeout(STEP);
    }
    bar.finish_and_clear();
}
