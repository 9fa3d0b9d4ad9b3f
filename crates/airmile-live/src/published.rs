//! What an engine publishes.

use std::sync::Arc;

use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};

use crate::snapshot::{LiveEvent, Snapshot};

/// A reader's handle on an engine: cloning is cheap.
#[derive(Debug, Clone)]
pub struct Published {
    pub(crate) snapshots: watch::Receiver<Arc<Snapshot>>,
    pub(crate) events: EventSenders,
}

/// The event channels. Flows have their own, as a large number may end at once and would displace
/// events of the radio.
#[derive(Debug, Clone)]
pub(crate) struct EventSenders {
    pub(crate) radio: broadcast::Sender<Arc<LiveEvent>>,
    pub(crate) flows: broadcast::Sender<Arc<LiveEvent>>,
}

/// New events, as they occur.
#[derive(Debug)]
pub struct Events {
    radio: broadcast::Receiver<Arc<LiveEvent>>,
    flows: broadcast::Receiver<Arc<LiveEvent>>,
}

impl Events {
    /// The next event.
    ///
    /// # Errors
    /// The engine has ended, or events were missed.
    pub async fn recv(&mut self) -> Result<Arc<LiveEvent>, RecvError> {
        tokio::select! {
            biased;
            event = self.radio.recv() => event,
            event = self.flows.recv() => event,
        }
    }
}

impl Published {
    /// The current state.
    #[must_use]
    pub fn now(&self) -> Arc<Snapshot> {
        Arc::clone(&self.snapshots.borrow())
    }

    /// Snapshots as they are published; only the last one is kept.
    #[must_use]
    pub fn snapshots(&self) -> watch::Receiver<Arc<Snapshot>> {
        self.snapshots.clone()
    }

    /// Events from now on.
    #[must_use]
    pub fn events(&self) -> Events {
        Events { radio: self.events.radio.subscribe(), flows: self.events.flows.subscribe() }
    }
}
