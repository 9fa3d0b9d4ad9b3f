//! `airmile qcut`: keeps the uplink queue of this host short.

use anyhow::Result;

use crate::Outcome;
use crate::args::{Global, QcutCommand};

/// Elsewhere there are other queues.
#[cfg(not(target_os = "linux"))]
pub fn run(_: &Global, _: &QcutCommand) -> Result<Outcome> {
    anyhow::bail!(airmile_qcut::NEEDS_LINUX)
}

#[cfg(target_os = "linux")]
pub fn run(global: &Global, command: &QcutCommand) -> Result<Outcome> {
    use airmile_qcut::command::{self, CommandError};

    let program = std::env::current_exe()?;
    let is_python =
        program.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"python"));
    // The Python package has the command in it.
    let launcher: &[&str] = if is_python { &["-m", "airmile", "qcut"] } else { &["qcut"] };
    match command::run(global, command, launcher) {
        Ok(status) => Ok(Outcome::Status(status)),
        Err(CommandError::Option(why)) => Err(airmile::Error::Option(why).into()),
        Err(CommandError::Output(error)) => Err(error.into()),
        Err(CommandError::Failed(why)) => Err(anyhow::Error::msg(why)),
    }
}
