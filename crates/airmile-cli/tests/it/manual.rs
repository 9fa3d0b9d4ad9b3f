//! Completions and the manual.

use std::fs;
use std::path::Path;

use super::command::{airmile, path, status, text};

/// What Bash offers for the last of some words.
fn completed(words: &[&str]) -> Option<String> {
    let script = text(&airmile(&["completions", "bash"]).stdout);
    let last = words.len() - 1;
    let program = format!(
        "{script}\nCOMP_WORDS=({}); COMP_CWORD={last}; _airmile airmile {} {}; echo ${{COMPREPLY[@]}}",
        words.join(" "),
        words[last],
        words[last - 1]
    );
    match std::process::Command::new("bash").args(["--norc", "-c", &program]).output() {
        Ok(out) => Some(text(&out.stdout).trim().to_owned()),
        Err(error) => {
            airmile_testing::skipped(format_args!("no bash: {error}"));
            None
        }
    }
}

#[test]
fn completions_and_the_manual_know_every_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = text(&airmile(&["completions", shell]).stdout);
        assert!(script.contains("packets") && script.contains("send-rate"), "{shell}");
        let names = ["bash", "zsh", "fish"].contains(&shell);
        assert_eq!(script.contains("busy-video"), names, "{shell}");
    }
    if let Some(offered) = completed(&["airmile", "lab", "run", "busy-v"]) {
        assert_eq!(offered, "busy-video");
    }
    assert_eq!(status(&["completions", "cmd"]), 2);
    let dir = tempfile::tempdir().unwrap();
    let pages = path(dir.path(), "man1");
    assert_eq!(status(&["man", &pages]), 0);
    for page in ["airmile.1", "airmile-packets.1", "airmile-lab-run.1"] {
        let page = fs::read_to_string(Path::new(&pages).join(page)).unwrap();
        assert!(page.contains(".TH"), "{page}");
    }
}
