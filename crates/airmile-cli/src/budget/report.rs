//! Results of budgets for continuous integration: JUnit XML and GitHub Actions annotations.

use std::path::PathBuf;

use super::{Budget, BudgetState, Held};
use airmile::{Error, Result};

/// Where budgets are reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BudgetReport {
    /// JUnit XML in a file.
    Junit(PathBuf),
    /// Workflow commands of GitHub Actions.
    Github,
}

impl BudgetReport {
    /// What every file of JUnit XML begins with.
    pub const JUNIT_BEGINS: &str =
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"airmile\" ";

    /// Parses `junit=FILE` or `github`.
    ///
    /// # Errors
    /// It is neither.
    pub fn parse(text: &str) -> Result<Self> {
        match text.split_once('=') {
            Some(("junit", path)) if !path.is_empty() => Ok(Self::Junit(path.into())),
            None if text == "github" => Ok(Self::Github),
            _ => Err(Error::Option(format!("--report {text}: give `junit=FILE` or `github`"))),
        }
    }
}

/// Text in XML 1.0: markup as entities, without invalid characters.
fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(' '),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => {}
            c => out.push(c),
        }
    }
    out
}

/// A value in a workflow command: characters that would end it are percent-encoded.
fn workflow(text: &str, is_property: bool) -> String {
    let text = text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    if is_property { text.replace(':', "%3A").replace(',', "%2C") } else { text }
}

fn title(held: &Held) -> String {
    held.name.as_ref().map_or_else(|| held.id.clone(), |name| format!("{} {name}", held.id))
}

impl Budget {
    /// JUnit XML: a suite for each budget, a case for each transfer, page or session; and an error
    /// for each input in `broken`, with what is wrong with it. Continuous integration splits the names
    /// of classes at dots, and shows the names of cases alone: these have the budget.
    #[must_use]
    pub fn junit(judged: &[(&Self, Vec<Held>)], broken: &[(String, String)]) -> String {
        let count = |held: &mut dyn Iterator<Item = &Held>, broken: usize| {
            let (mut cases, mut over, mut errors) = (broken, 0_usize, broken);
            for one in held {
                cases += 1;
                over += usize::from(one.is(BudgetState::Exceeded));
                errors += usize::from(one.is(BudgetState::NotEvaluable));
            }
            format!("tests=\"{cases}\" failures=\"{over}\" errors=\"{errors}\"")
        };
        let mut out = format!(
            "{}{}>\n",
            BudgetReport::JUNIT_BEGINS,
            count(&mut judged.iter().flat_map(|(_, held)| held), broken.len())
        );
        for (budget, held) in judged {
            let name = xml(&budget.text);
            out.push_str(&format!(
                "  <testsuite name=\"{name}\" {}>\n",
                count(&mut held.iter(), 0)
            ));
            for one in held {
                let case =
                    format!("name=\"{name}: {}\" classname=\"airmile.budget\"", xml(&title(one)));
                let found = xml(&one.found_text());
                out.push_str(&match one.state {
                    BudgetState::Exceeded => format!(
                        "    <testcase {case}>\n      <failure message=\"{found}\">over budget: \
                         {name}; {found}</failure>\n    </testcase>\n"
                    ),
                    BudgetState::NotEvaluable => format!(
                        "    <testcase {case}>\n      <error message=\"cannot be evaluated: \
                         {}\"/>\n    </testcase>\n",
                        xml(&one.unknown_text())
                    ),
                    BudgetState::Within => format!("    <testcase {case}/>\n"),
                });
            }
            out.push_str("  </testsuite>\n");
        }
        if !broken.is_empty() {
            let counts = count(&mut std::iter::empty(), broken.len());
            out.push_str(&format!("  <testsuite name=\"input\" {counts}>\n"));
            for (name, what) in broken.iter().map(|(name, what)| (xml(name), xml(what))) {
                out.push_str(&format!(
                    "    <testcase name=\"{name}\" classname=\"airmile.input\">\n      <error \
                     message=\"{what}\"/>\n    </testcase>\n"
                ));
            }
            out.push_str("  </testsuite>\n");
        }
        out.push_str("</testsuites>\n");
        out
    }

    /// A GitHub Actions workflow command for each one over budget or not evaluable, and for each
    /// input in `broken`.
    #[must_use]
    pub fn github(judged: &[(&Self, Vec<Held>)], broken: &[(String, String)]) -> Vec<String> {
        let mut out = Vec::new();
        for (name, what) in broken {
            let title = workflow(&format!("input: {name}"), true);
            out.push(format!("::error title={title}::{}", workflow(what, false)));
        }
        for (budget, held) in judged {
            for one in held {
                let (what, why) = match one.state {
                    BudgetState::Within => continue,
                    BudgetState::Exceeded => ("over budget", one.found_text()),
                    BudgetState::NotEvaluable => ("cannot be evaluated", one.unknown_text()),
                };
                let title = workflow(&format!("{what}: {}", title(one)), true);
                let text = workflow(&format!("{budget}: {why}"), false);
                out.push(format!("::error title={title}::{text}"));
            }
        }
        out
    }
}
