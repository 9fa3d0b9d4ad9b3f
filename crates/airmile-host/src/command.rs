//! What the programs' commands share: options of all of them, secrets, and text on a terminal.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::time::Duration;

use airmile_model::{printable, printable_lines};
use clap::{ArgAction, Args, ColorChoice};

use crate::{Attempt, SystemError, files};

/// Options of every command, after its own in its help.
#[derive(Debug, Clone, Args)]
#[command(next_display_order = 900)]
pub struct Global {
    /// Print JSON instead of tables (docs/schemas.md lists the documents)
    #[arg(long, global = true)]
    pub json: bool,
    /// Print no progress and no warnings
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Print all problems, bursts and transfers
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub verbose: u8,
    /// Colour the verdict: on a terminal (`auto`, unless NO_COLOR is set), `always` or `never`
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    #[arg(hide_default_value = true, hide_possible_values = true)]
    pub color: ColorChoice,
}

impl Global {
    /// Whether standard output is coloured.
    #[must_use]
    pub fn has_colour(&self) -> bool {
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let can =
            || io::stdout().is_terminal() && std::env::var_os("TERM").is_none_or(|t| t != "dumb");
        match self.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            // https://no-color.org
            ColorChoice::Auto => can() && !is_set("NO_COLOR"),
        }
    }

    /// Prints a one-line warning.
    pub fn warn(&self, text: &str) {
        if !self.quiet {
            to_stderr(&format!("airmile: {}", printable(text)));
        }
    }
}

/// Seconds above 0.
///
/// # Errors
/// The text is something else.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds| *seconds > 0.0);
    let duration = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    duration.ok_or_else(|| "give seconds above 0".into())
}

/// The token of a server, from `--token-file` or the environment: never from the command
/// line, where others on the machine would see it.
///
/// # Errors
/// The file cannot be read, or others may read it.
pub fn token(file: Option<&Path>) -> Result<Option<String>, SystemError> {
    let token = match file {
        Some(path) => {
            let text = files::read_secret(path);
            Some(text.attempt(|| format!("--token-file {}", path.display()))?)
        }
        None => std::env::var("AIRMILE_TOKEN").ok(),
    };
    Ok(token.map(|token| token.trim().to_owned()).filter(|token| !token.is_empty()))
}

/// Writes a text to standard error. Control characters from input cannot move the cursor. A failure
/// (`2>&1 | head`) cannot be reported.
pub fn to_stderr(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", printable_lines(text));
}

/// Prints a text on standard output; control characters from input cannot move the cursor.
///
/// # Errors
/// It cannot be written.
pub fn print(text: &str) -> io::Result<()> {
    io::stdout().lock().write_all(printable_lines(text).as_bytes())
}

/// A colour of a terminal, by its parameter of "select graphic rendition" (ECMA-48, 8.3.117).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// 33
    Yellow,
    /// 34
    Blue,
    /// 35
    Magenta,
    /// 39
    Default,
}

/// Prints a text on standard output as [`print()`] does, bold and in a colour.
///
/// # Errors
/// It cannot be written.
pub fn print_coloured(text: &str, colour: Colour) -> io::Result<()> {
    let parameter = match colour {
        Colour::Yellow => 33,
        Colour::Blue => 34,
        Colour::Magenta => 35,
        Colour::Default => 39,
    };
    let lines = printable_lines(text);
    let text = lines.trim_end_matches('\n');
    writeln!(io::stdout().lock(), "\x1b[1;{parameter}m{text}\x1b[0m")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_above_zero() {
        assert_eq!(seconds("1.5"), Ok(Duration::from_millis(1_500)));
        for text in ["0", "-1", "", "nan", "1e300", "5s"] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }
}
