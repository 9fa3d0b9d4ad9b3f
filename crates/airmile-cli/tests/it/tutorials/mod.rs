//! Runs the commands of the README, the index and the tutorials, as written, one after another.

mod document;
mod rules;

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use document::{Step, steps};
use rules::{HAVE, Handling, RULES};

/// A step that ran.
struct Ran {
    line: String,
    expected: i32,
    status: Option<i32>,
    printed: String,
    errors: String,
    quoted: Vec<String>,
}

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The README, the index and all tutorials.
fn documents() -> Vec<PathBuf> {
    let docs = repository().join("docs");
    let tutorials = std::fs::read_dir(docs.join("tutorials")).unwrap();
    let mut out: Vec<PathBuf> = tutorials.map(|entry| entry.unwrap().path()).collect();
    out.extend([repository().join("README.md"), docs.join("index.md")]);
    out.sort();
    out
}

fn name(path: &Path) -> &str {
    path.file_name().unwrap().to_str().unwrap()
}

/// The directories in which a shell finds commands: this build's first, then that of
/// `$AIRMILE_PYTHON`, whose packages the Python programs need.
fn search_path() -> std::ffi::OsString {
    let own = Path::new(env!("CARGO_BIN_EXE_airmile")).parent().unwrap().to_owned();
    let python = std::env::var_os("AIRMILE_PYTHON").map(PathBuf::from);
    let python = python.and_then(|path| Some(path.parent()?.to_owned()));
    let others = std::env::var_os("PATH").unwrap_or_default();
    let all = std::iter::once(own).chain(python).chain(std::env::split_paths(&others));
    std::env::join_paths(all).unwrap()
}

fn python_has(modules: &str) -> bool {
    let mut command = Command::new("python3");
    command.args(["-c", &format!("import {modules}")]).env("PATH", search_path());
    command.output().is_ok_and(|out| out.status.success())
}

/// Ports of loopback that were free a moment ago.
fn free_ports() -> String {
    let held: Vec<TcpListener> =
        (0..2).map(|_| TcpListener::bind(("127.0.0.1", 0)).unwrap()).collect();
    let ports = held.iter().map(|one| one.local_addr().unwrap().port().to_string());
    ports.collect::<Vec<_>>().join(",")
}

/// The line that runs a step and its expected status; `None` if it is skipped.
fn plan(document: &str, step: &Step, ports: &str) -> Option<(String, Handling)> {
    let mut line = match step {
        Step::Shell { line, .. } => line.clone(),
        Step::Python(program) => {
            format!("cat >program.py <<'PROGRAM'\n{program}PROGRAM\npython3 program.py")
        }
    };
    // Paths of the source tree, in which that tutorial is followed.
    let scripts = repository().join("tests/scale");
    line = line.replace(" tests/scale", &format!(" {}", scripts.display()));
    line = line.replace("python ", "python3 ");
    let of_step =
        |rule: &&rules::Rule| rule.document == document && step.text().starts_with(rule.begins);
    let step_text = step.text().trim_end();
    let skipped =
        |why: &str| airmile_testing::skipped(format_args!("{document}: {step_text}: {why}"));
    match RULES.iter().find(of_step).map(|rule| rule.handling) {
        Some(Handling::Skipped(why)) => {
            skipped(why);
            None
        }
        Some(Handling::Needs(modules, other)) if !python_has(modules) => {
            skipped(&format!("needs Python with {modules} (AIRMILE_PYTHON=PYTHON)"));
            other.map(|other| (other.to_owned(), Handling::Status(0)))
        }
        Some(Handling::FreePorts(text)) => Some((line.replace(text, ports), Handling::Status(0))),
        Some(handling @ (Handling::Status(_) | Handling::Terminated)) => Some((line, handling)),
        Some(Handling::Needs(..)) | None => Some((line, Handling::Status(0))),
    }
}

/// Runs the steps of a document in one shell, in a directory of their own.
fn run(path: &Path, dir: &Path) -> Vec<Ran> {
    let document = name(path);
    let (work, log) = (dir.join("work"), dir.join("log"));
    [&work, &log].into_iter().for_each(|dir| std::fs::create_dir(dir).unwrap());
    let have = HAVE
        .iter()
        .filter(|(of, _)| *of == document)
        .map(|(_, line)| Step::Shell { line: (*line).to_owned(), quoted: Vec::new() });
    let ports = free_ports();
    let planned: Vec<(Step, String, Handling)> = have
        .chain(steps(path))
        .filter_map(|step| {
            let (line, handling) = plan(document, &step, &ports)?;
            Some((step, line, handling))
        })
        .collect();
    // What runs in the background is ended, whatever happens.
    let mut script = "trap 'kill $(jobs -p) 2>/dev/null' EXIT\n".to_owned();
    for (n, (_, line, handling)) in planned.iter().enumerate() {
        let to = |what: &str| format!("'{}'", log.join(format!("{n}.{what}")).display());
        let (out, err, status) = (to("out"), to("err"), to("status"));
        script.push_str(&match handling {
            Handling::Terminated => format!(
                "{line} >{out} 2>{err} </dev/null & own=$!\n\
                 for i in $(seq 300); do [ -s {out} ] && break; sleep 0.1; done\n\
                 kill -TERM $own; wait $own; echo $? >{status}\n"
            ),
            _ => format!("{{ {line}\n}} >{out} 2>{err} </dev/null\necho $? >{status}\n"),
        });
    }
    let mut bash = Command::new("bash");
    bash.args(["-c", &script]).current_dir(&work).env("PATH", search_path());
    let done = bash.stdin(Stdio::null()).output().unwrap();
    let read = |n: usize, what: &str| {
        let bytes = std::fs::read(log.join(format!("{n}.{what}"))).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let steps = planned.into_iter().enumerate().map(|(n, (step, line, handling))| Ran {
        line,
        expected: match handling {
            Handling::Status(status) => status,
            _ => 0,
        },
        status: read(n, "status").trim().parse().ok(),
        printed: read(n, "out"),
        errors: format!("{}{}", read(n, "err"), String::from_utf8_lossy(&done.stderr)),
        quoted: match step {
            Step::Shell { quoted, .. } => quoted,
            Step::Python(_) => Vec::new(),
        },
    });
    steps.collect()
}

/// Whether a step ended as its document states: with its status, and the quoted lines in order.
fn check(document: &str, ran: &Ran) -> Result<(), String> {
    let Ran { line, expected, status, printed, errors, quoted } = ran;
    let shown = || format!("{document}: {line}\n{printed}\n{errors}");
    if *status != Some(*expected) {
        return Err(format!("status {status:?}, not {expected}: {}", shown()));
    }
    let mut lines = printed.lines().map(str::trim_end);
    match quoted.iter().find(|wanted| !lines.any(|line| line == wanted.as_str())) {
        Some(missing) => Err(format!("not printed, or not in order: {missing:?}: {}", shown())),
        None => Ok(()),
    }
}

#[test]
fn every_command_runs_as_written() {
    let documents = documents();
    assert!(documents.len() >= 6, "{documents:?}");
    let failed: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = documents
            .iter()
            .map(|path| {
                scope.spawn(move || {
                    let dir = tempfile::tempdir().unwrap();
                    let ran = run(path, dir.path());
                    if name(path) == "app-developer.md" {
                        application_developer(&ran, &dir.path().join("work"));
                    }
                    let failed = ran.iter().filter_map(|one| check(name(path), one).err());
                    failed.collect::<Vec<_>>()
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

#[test]
fn every_rule_applies_to_a_command() {
    let all: Vec<(String, Vec<Step>)> =
        documents().iter().map(|path| (name(path).to_owned(), steps(path))).collect();
    for rule in RULES {
        let is_used = all.iter().any(|(document, steps)| {
            document == rule.document
                && steps.iter().any(|step| step.text().starts_with(rule.begins))
        });
        assert!(is_used, "{}: no command begins with {:?}", rule.document, rule.begins);
    }
    // Each tutorial has commands that run.
    for (document, steps) in all.iter().filter(|(document, _)| document != "index.md") {
        let runs = steps.iter().filter(|step| {
            let skips = |rule: &&rules::Rule| {
                rule.document == document && matches!(rule.handling, Handling::Skipped(_))
            };
            !RULES.iter().filter(skips).any(|rule| step.text().starts_with(rule.begins))
        });
        assert!(runs.count() >= 3, "{document}");
    }
}

/// The page of the lab is slow because of its server: the first lines report it, with the savings
/// of fixes; the report is written, and the budget is exceeded.
fn application_developer(ran: &[Ran], dir: &Path) {
    let mut verdicts = 0;
    for Ran { line, printed, errors, .. } in ran {
        if line.starts_with("airmile diagnose page.har") {
            verdicts += 1;
            let first: Vec<&str> = printed.lines().take(5).collect();
            assert_eq!(first[0], "Page http://server.airmile.test/page/0/0", "{printed}");
            assert!(first[1].contains(": your server "), "{printed}");
            assert!(
                first[3].contains("your server: ") && first[3].contains("would save"),
                "{printed}"
            );
        }
        if line.contains("--fail-if") {
            assert!(errors.contains("page.shares.server is 0."), "{errors}");
        }
    }
    assert!(verdicts >= 3, "{}", ran.len());
    let report = std::fs::read_to_string(dir.join("report.html")).unwrap();
    assert!(report.contains("your server: a server that responds at once would save"));
    let junit = std::fs::read_to_string(dir.join("budget.xml")).unwrap();
    assert!(junit.contains("failures=\"1\""), "{junit}");
}
