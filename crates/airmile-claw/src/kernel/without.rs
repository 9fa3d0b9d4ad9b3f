//! Without the feature `bpf`: how to get it.

use airmile_control::claw::feedback::FeedbackReport;

use super::{AttachOptions, Figures};
use crate::error::{Error, Result};

fn how() -> Error {
    Error::Option(
        "this airmile was built without the kernel's part; build it with\n  \
         cargo build --release -p airmile-cli --features bpf\n\
         which needs clang 14 or later and, on Debian, libbpf-dev libelf-dev zlib1g-dev pkg-config"
            .to_owned(),
    )
}

/// Whose connections are meant: nobody's, ever.
#[derive(Debug)]
pub enum ControlGroup {}

impl ControlGroup {
    /// Says how to get it.
    ///
    /// # Errors
    /// Always.
    pub fn open(_: Option<&std::path::Path>) -> Result<Self> {
        Err(how())
    }
}

/// What is attached: nothing, ever.
#[derive(Debug)]
pub enum Attached {}

impl Attached {
    /// Says how to get it.
    ///
    /// # Errors
    /// Always.
    pub fn new(_: &AttachOptions) -> Result<Self> {
        Err(how())
    }

    /// Where reports are taken.
    #[must_use]
    pub const fn reports(&self) -> Option<std::net::SocketAddr> {
        match *self {}
    }

    /// How it went.
    #[must_use]
    pub const fn figures(&self) -> Figures {
        match *self {}
    }
}

/// Writes options: never.
#[derive(Debug)]
pub enum OptionWriter {}

impl OptionWriter {
    /// Says how to get it.
    ///
    /// # Errors
    /// Always.
    pub fn new(_: &ControlGroup) -> Result<Self> {
        Err(how())
    }

    /// Sets what options say.
    ///
    /// # Errors
    /// Never.
    pub const fn set(&self, _: &FeedbackReport) -> Result<()> {
        match *self {}
    }

    /// How it went.
    #[must_use]
    pub const fn figures(&self) -> Figures {
        match *self {}
    }
}
