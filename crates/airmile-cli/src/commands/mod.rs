//! One module a command: arguments to the facade, its answer to the screen.

pub mod decode;
pub mod diagnose;
pub mod inspect;
pub mod lab;
pub mod radio;

use airmile::{Budget, format_utc};
use anyhow::Result;
use serde_json::Value;

use crate::Outcome;
use crate::args::Global;
use crate::output;

/// Checks a budget on a document, tells what exceeds it, and gives how the
/// command ends.
fn settle(
    global: &Global,
    fail_if: Option<&str>,
    document: impl serde::Serialize,
    damaged: bool,
) -> Result<Outcome> {
    let Some(expression) = fail_if else { return Ok(Outcome::of(damaged)) };
    let document: Value = serde_json::to_value(document)?;
    let over = Budget::parse(expression)?.exceeded_by(&document)?;
    if over.is_empty() {
        return Ok(Outcome::of(damaged));
    }
    output::warn(global, &format!("over budget ({expression}): {}", over.join(", ")));
    Ok(Outcome::OverBudget)
}

/// Time of day of a time in microseconds.
fn time_of_day(us: i64) -> String {
    let text = format_utc(us.saturating_mul(1_000));
    text.get(11..).unwrap_or(&text).to_owned()
}
