//! One module a command: arguments to the facade, its answer to the screen.

pub mod claw;
mod claw_attach;
pub mod compare;
pub mod decode;
pub mod diagnose;
pub mod engine;
pub mod inspect;
pub mod lab;
pub mod live;
pub mod manual;
pub mod packets;
pub mod probe;
pub mod qcut;
pub mod radio;
pub mod record;
pub mod scrub;
pub mod shell;

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
    budget: Option<&Budget>,
    document: impl serde::Serialize,
    damaged: bool,
) -> Result<Outcome> {
    let Some(budget) = budget else { return Ok(Outcome::of(damaged)) };
    let document: Value = serde_json::to_value(document)?;
    let over = budget.exceeded_by(&document)?;
    if !over.is_empty() {
        output::warn(global, &format!("over budget ({budget}): {}", over.join(", ")));
        return Ok(Outcome::OverBudget);
    }
    if document.get("transfers").and_then(Value::as_array).is_some_and(Vec::is_empty) {
        output::warn(global, &format!("no transfers to hold against the budget ({budget})"));
    }
    Ok(Outcome::of(damaged))
}

/// Time of day of a time in microseconds.
fn time_of_day(us: i64) -> String {
    let text = format_utc(us.saturating_mul(1_000));
    text.get(11..).unwrap_or(&text).to_owned()
}
