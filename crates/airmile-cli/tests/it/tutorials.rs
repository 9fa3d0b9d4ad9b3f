//! Runs the commands of the tutorials, as written, one after another.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Runs a shell line in a directory, with this build's command first on the path.
fn shell(line: &str, dir: &Path) -> Output {
    let own = Path::new(env!("CARGO_BIN_EXE_airmile")).parent().unwrap().to_owned();
    let others = std::env::var_os("PATH").unwrap_or_default();
    let all = std::iter::once(own).chain(std::env::split_paths(&others));
    let path = std::env::join_paths(all).unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", line]).current_dir(dir).env("PATH", path).stdin(Stdio::null());
    command.output().unwrap()
}

/// Lines of the code blocks of a document, without comments.
fn commands(name: &str) -> Vec<String> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/tutorials").join(name);
    let text = std::fs::read_to_string(path).unwrap();
    let blocks = text.split("```").skip(1).step_by(2);
    let lines = blocks.flat_map(|block| block.lines().skip(1));
    let lines = lines.map(|line| line.split(" # ").next().unwrap_or_default().trim().to_owned());
    lines.filter(|line| !line.is_empty()).collect()
}

/// The page of the lab is slow because of its server: the first lines report it, with the savings
/// of fixes; the report is written, and the budget is exceeded.
#[test]
fn the_application_developers() {
    let dir = tempfile::tempdir().unwrap();
    let lines = commands("app-developer.md");
    assert!(lines.len() >= 8, "{lines:?}");
    let mut verdicts = 0;
    for line in &lines {
        let out = shell(line, dir.path());
        let printed = String::from_utf8(out.stdout).unwrap();
        let errors = String::from_utf8(out.stderr).unwrap();
        let budget = line.contains("--fail-if");
        assert_eq!(out.status.code(), Some(i32::from(budget)), "{line}\n{printed}\n{errors}");
        if line.starts_with("airmile diagnose") {
            verdicts += 1;
            let first: Vec<&str> = printed.lines().take(5).collect();
            assert_eq!(first[0], "Page http://server.airmile.test/page/0/0", "{printed}");
            assert!(first[1].contains(": your server "), "{printed}");
            assert!(
                first[3].contains("your server: ") && first[3].contains("would save"),
                "{printed}"
            );
        }
        if budget {
            assert!(errors.contains("page.shares.server is 0."), "{errors}");
        }
    }
    assert!(verdicts >= 3, "{lines:?}");
    let report = std::fs::read_to_string(dir.path().join("report.html")).unwrap();
    assert!(report.contains("your server: a server that responds at once would save"));
    let junit = std::fs::read_to_string(dir.path().join("budget.xml")).unwrap();
    assert!(junit.contains("failures=\"1\""), "{junit}");
}
