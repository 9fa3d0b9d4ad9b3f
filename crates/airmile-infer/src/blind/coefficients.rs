//! Fitted by `airmile-accuracy --blind-fit`; not written by hand.

use super::model::Table;

pub(super) static STAMPED: Table = Table { scale: [(0.0, 0.0); 28], weights: [(0.0, [0.0; 28]); 8] };
pub(super) static PLAIN: Table = Table { scale: [(0.0, 0.0); 28], weights: [(0.0, [0.0; 28]); 8] };
pub(super) static DATAGRAMS: Table = Table { scale: [(0.0, 0.0); 28], weights: [(0.0, [0.0; 28]); 8] };
