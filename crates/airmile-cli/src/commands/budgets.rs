//! Budgets: checked against the result, and reported.

use std::path::Path;

use airmile::model::Severity;
use airmile::{Error, FileReport, check_outputs, schemas, write_whole};
use anyhow::Result;
use serde_json::Value;

use crate::Outcome;
use crate::args::{BudgetArgs, Global};
use crate::budget::{Budget, BudgetReport, BudgetState, Held};
use crate::output;

/// The maximum number of transfers named on standard error; the reports have all.
const MAX_NAMED: usize = 10;

/// The name of wrong usage in a report.
const USAGE: &str = "usage";

/// Budgets, and where they are reported.
pub struct Budgets {
    budgets: Vec<Budget>,
    reports: Vec<BudgetReport>,
}

impl Budgets {
    /// Parses budgets and checks them against the schema of the command's document. An error is also
    /// in the report.
    ///
    /// # Errors
    /// A budget is no expression, or can never hold.
    pub fn parse(args: &BudgetArgs, document: &str) -> Result<Self> {
        Self::parsed(args, document).inspect_err(|error| {
            let reports = args.report.clone();
            let unparsed = Self { budgets: Vec::new(), reports };
            // The error of the budget is the one to see.
            let writable = unparsed.check_outputs([]);
            let _ =
                writable.and_then(|()| unparsed.write(&[], &[(USAGE.into(), error.to_string())]));
        })
    }

    fn parsed(args: &BudgetArgs, document: &str) -> Result<Self> {
        let budgets = args.fail_if.iter().map(|text| Budget::parse(text));
        let budgets = budgets.collect::<airmile::Result<Vec<_>>>()?;
        if !budgets.is_empty()
            && let Some((_, schema)) = schemas().into_iter().find(|(name, _)| *name == document)
        {
            budgets.iter().try_for_each(|budget| budget.check(&schema))?;
        }
        Ok(Self { budgets, reports: args.report.clone() })
    }

    /// Refuses a report that would be written over an input or a file of the user.
    ///
    /// # Errors
    /// One would.
    pub fn check_outputs<'a>(&self, inputs: impl IntoIterator<Item = &'a Path>) -> Result<()> {
        let files = self.reports.iter().filter_map(|report| match report {
            BudgetReport::Junit(path) => {
                Some((path.clone(), BudgetReport::JUNIT_BEGINS.as_bytes()))
            }
            BudgetReport::Github => None,
        });
        Ok(check_outputs(files, inputs)?)
    }

    /// Reports inputs that could not be analysed, or do not belong together: a report of an earlier run
    /// would stay in its place.
    ///
    /// # Errors
    /// The error, or that of writing a report.
    pub fn analysed<T>(&self, result: airmile::Result<T>) -> Result<T> {
        if let Err(error) = &result
            && !matches!(error, Error::Write { .. })
            && !self.budgets.is_empty()
        {
            let name = if matches!(error, Error::Option(_)) { USAGE } else { "input" };
            self.write(&[], &[(name.into(), error.to_string())])?;
        }
        Ok(result?)
    }

    fn write(&self, judged: &[(&Budget, Vec<Held>)], broken: &[(String, String)]) -> Result<()> {
        for report in &self.reports {
            match report {
                BudgetReport::Junit(path) => {
                    write_whole(path, Budget::junit(judged, broken).as_bytes())?;
                }
                BudgetReport::Github => {
                    let lines = Budget::github(judged, broken);
                    lines.iter().for_each(|line| output::notice(line));
                }
            }
        }
        Ok(())
    }

    /// Evaluates the budgets on a document, reports those exceeded or not evaluable, and returns how
    /// the command ends.
    pub fn settle(
        &self,
        global: &Global,
        document: impl serde::Serialize,
        files: &[FileReport],
    ) -> Result<Outcome> {
        let damaged: Vec<_> = files.iter().filter(|file| file.damaged).map(damage).collect();
        let read = Outcome::of(!damaged.is_empty());
        if self.budgets.is_empty() {
            return Ok(read);
        }
        let document: Value = serde_json::to_value(document)?;
        let judged: Vec<(&Budget, Vec<Held>)> =
            self.budgets.iter().map(|budget| (budget, budget.judge(&document))).collect();
        self.write(&judged, &damaged)?;
        for (budget, held) in &judged {
            report(global, budget, held);
        }
        let any = |state: BudgetState| {
            judged.iter().flat_map(|(_, held)| held).any(|one| one.state == state)
        };
        Ok(if any(BudgetState::Exceeded) {
            Outcome::OverBudget
        } else if any(BudgetState::NotEvaluable) {
            Outcome::BudgetNotEvaluable
        } else {
            read
        })
    }
}

/// A damaged file's name, and what was damaged.
fn damage(file: &FileReport) -> (String, String) {
    let problems = file.problems.iter().filter(|problem| problem.severity == Severity::Damage);
    let each: Vec<String> = problems.take(MAX_NAMED).map(ToString::to_string).collect();
    (file.path.clone(), format!("damaged: {}", each.join("; ")))
}

/// Names the transfers, pages or session over a budget, and those it cannot be evaluated for.
fn report(global: &Global, budget: &Budget, held: &[Held]) {
    let warn = |state: BudgetState, what: &str, why: fn(&Held) -> String| {
        let which: Vec<&Held> = held.iter().filter(|one| one.state == state).collect();
        if which.is_empty() {
            return;
        }
        let each = which.iter().take(MAX_NAMED);
        let mut named: Vec<String> = each.map(|one| format!("{}: {}", one.id, why(one))).collect();
        if which.len() > MAX_NAMED {
            named.push(format!("{} more", which.len() - MAX_NAMED));
        }
        output::warn(global, &format!("{what} ({budget}): {}", named.join("; ")));
    };
    warn(BudgetState::Exceeded, "over budget", Held::found_text);
    warn(BudgetState::NotEvaluable, "budget cannot be evaluated", Held::unknown_text);
}
