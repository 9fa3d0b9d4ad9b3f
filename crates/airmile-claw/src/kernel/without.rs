//! Replacement without the feature `bpf`: every call explains how to build it.

use airmile_control::claw::feedback::FeedbackReport;

use super::{AttachOptions, Figures};
use crate::error::{Error, Result};

fn how() -> Error {
    Error::Option(
        "this airmile was built without the BPF programs; build it with\n  \
         cargo build --release -p airmile-cli --features bpf\n\
         which needs clang 14 or later and, on Debian, libbpf-dev libelf-dev zlib1g-dev pkg-config"
            .to_owned(),
    )
}

/// The control group; cannot be opened in this build.
#[derive(Debug)]
pub enum ControlGroup {}

impl ControlGroup {
    /// Fails with build instructions.
    ///
    /// # Errors
    /// Always.
    pub fn open(_: Option<&std::path::Path>) -> Result<Self> {
        Err(how())
    }
}

/// The attached programs; cannot be created in this build.
#[derive(Debug)]
pub enum Attached {}

impl Attached {
    /// Fails with build instructions.
    ///
    /// # Errors
    /// Always.
    pub fn new(_: &AttachOptions) -> Result<Self> {
        Err(how())
    }

    /// Address on which reports are received.
    #[must_use]
    pub const fn reports(&self) -> Option<std::net::SocketAddr> {
        match *self {}
    }

    /// Counters of the run.
    #[must_use]
    pub const fn figures(&self) -> Figures {
        match *self {}
    }
}

/// Writer of options; cannot be created in this build.
#[derive(Debug)]
pub enum OptionWriter {}

impl OptionWriter {
    /// Fails with build instructions.
    ///
    /// # Errors
    /// Always.
    pub fn new(_: &ControlGroup) -> Result<Self> {
        Err(how())
    }

    /// Sets the contents of the option.
    ///
    /// # Errors
    /// Never.
    pub const fn set(&self, _: &FeedbackReport) -> Result<()> {
        match *self {}
    }

    /// Counters of the run.
    #[must_use]
    pub const fn figures(&self) -> Figures {
        match *self {}
    }
}
