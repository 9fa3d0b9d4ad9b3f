//! Windows of the cell's load.

use airmile_radio::load::LoadEstimate;

use airmile_radio::watch::TransferWatch;

/// Windows of the primary cell's load.
#[derive(Debug, Clone, Default)]
pub(crate) struct Windows {
    /// `None` unless they are kept.
    pub(super) kept: Option<Vec<LoadEstimate>>,
    /// Number of windows with an unknown load.
    pub(super) unknown: u64,
}

impl Windows {
    /// Collects load estimates; those of the primary cell also go to the watch.
    pub(super) fn take(
        &mut self,
        windows: impl IntoIterator<Item = LoadEstimate>,
        watch: &mut TransferWatch,
    ) {
        for window in windows.into_iter().filter(|window| window.cell == 0) {
            self.unknown += u64::from(window.load.is_none() || window.n_free_prb.is_none());
            if let Some(kept) = &mut self.kept {
                kept.push(window.clone());
            }
            watch.take_load(window);
        }
    }
}
