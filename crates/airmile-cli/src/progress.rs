//! Progress on standard error, once a command has run for two seconds.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use airmile::{Inputs, Progress};
use airmile_lab::reproduce::RunCount;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::args::Global;

/// Nothing is shown before this time.
const PATIENCE: Duration = Duration::from_secs(2);
const STEP: Duration = Duration::from_millis(100);

/// A thread that draws until it is dropped.
struct Drawer {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drawer {
    fn start(global: &Global, draw: impl FnOnce(&AtomicBool) + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let thread = (!global.quiet).then(|| {
            let stop = stop.clone();
            std::thread::spawn(move || draw(&stop))
        });
        Self { stop, thread }
    }
}

impl Drop for Drawer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // The thread only draws; its failure needs no report.
            let _ = thread.join();
        }
    }
}

/// Shows the progress of reading until it is dropped.
pub struct Shown {
    /// The library's counters.
    pub progress: Progress,
    _drawer: Drawer,
}

impl Shown {
    /// Starts to show the reading of `inputs`.
    pub fn start(global: &Global, inputs: &Inputs) -> Self {
        let progress = Progress::default();
        let total = total(inputs.paths());
        let counted = progress.clone();
        let drawer = Drawer::start(global, move |stop| watch(&counted, stop, total));
        Self { progress, _drawer: drawer }
    }
}

/// Shows the completed runs of an experiment until it is dropped.
pub struct Runs {
    /// The library's counter.
    pub count: RunCount,
    experiment: Arc<Mutex<String>>,
    _drawer: Drawer,
}

impl Runs {
    /// Starts to show progress.
    pub fn start(global: &Global) -> Self {
        let (count, experiment) = (RunCount::default(), Arc::new(Mutex::new(String::new())));
        let (counted, named) = (count.clone(), Arc::clone(&experiment));
        let drawer = Drawer::start(global, move |stop| watch_runs(&counted, &named, stop));
        Self { count, experiment, _drawer: drawer }
    }

    /// An experiment starts.
    pub fn begin(&self, experiment: String) {
        *self.experiment.lock().unwrap_or_else(PoisonError::into_inner) = experiment;
    }
}

/// Draws each experiment that has run for longer than the patience.
fn watch_runs(count: &RunCount, experiment: &Mutex<String>, stop: &AtomicBool) {
    let (mut name, mut waited) = (String::new(), Duration::ZERO);
    let mut bar: Option<ProgressBar> = None;
    while !stop.load(Ordering::Relaxed) {
        let now = experiment.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if now != name {
            bar.take().inspect(ProgressBar::finish_and_clear);
            (name, waited) = (now, Duration::ZERO);
        }
        waited += STEP;
        if waited > PATIENCE {
            let bar = bar.get_or_insert_with(|| runs_bar(&name));
            bar.set_length(count.of() as u64);
            bar.set_position(count.done() as u64);
        }
        std::thread::park_timeout(STEP);
    }
    bar.take().inspect(ProgressBar::finish_and_clear);
}

fn runs_bar(experiment: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
    let style = "{spinner} {msg}: {pos} of {len} runs [{bar:30}]";
    if let Ok(style) = ProgressStyle::with_template(style) {
        bar.set_style(style);
    }
    bar.set_message(experiment.to_owned());
    bar
}

/// The bytes of files; `None` where something else is among them, whose bytes only reading tells.
fn total<'a>(paths: impl Iterator<Item = &'a Path>) -> Option<u64> {
    let size = |path: &Path| std::fs::metadata(path).ok().filter(|m| m.is_file()).map(|m| m.len());
    paths.map(size).sum()
}

fn watch(progress: &Progress, stop: &AtomicBool, total: Option<u64>) {
    let mut waited = Duration::ZERO;
    while waited < PATIENCE {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        std::thread::park_timeout(STEP);
        waited += STEP;
    }
    let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr());
    let style = match total {
        Some(_) => {
            "{spinner} reading {bytes} of {total_bytes} [{bar:30}] {bytes_per_sec}, {eta} left"
        }
        None => "{spinner} reading: {bytes}, {bytes_per_sec}",
    };
    if let Ok(style) = ProgressStyle::with_template(style) {
        bar.set_style(style);
    }
    while !stop.load(Ordering::Relaxed) {
        bar.set_position(progress.bytes());
        std::thread::park_timeout(STEP);
    }
    bar.finish_and_clear();
}
