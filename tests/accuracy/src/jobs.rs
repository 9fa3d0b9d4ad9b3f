//! Runs of the lab on all cores.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Works on each item, on as many threads as there are cores; results in the items' order.
/// `work` also gets the number of its thread, for a directory of its own.
///
/// # Errors
/// The first error of `work` by thread; the other threads finish their items.
pub fn on_all_cores<T: Sync, R: Send>(
    items: &[T],
    work: impl Fn(usize, &T) -> anyhow::Result<R> + Sync,
) -> anyhow::Result<Vec<R>> {
    let next = AtomicUsize::new(0);
    let (next, work) = (&next, &work);
    let thread = move |number: usize| -> anyhow::Result<Vec<(usize, R)>> {
        let mut done = Vec::new();
        while let at = next.fetch_add(1, Ordering::Relaxed)
            && let Some(item) = items.get(at)
        {
            done.push((at, work(number, item)?));
        }
        Ok(done)
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let parts: Vec<anyhow::Result<_>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..cores).map(|n| scope.spawn(move || thread(n))).collect();
        let joined = threads.into_iter().map(|thread| match thread.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        joined.collect()
    });
    let mut all = Vec::new();
    for part in parts {
        all.extend(part?);
    }
    all.sort_by_key(|(at, _)| *at);
    Ok(all.into_iter().map(|(_, result)| result).collect())
}
