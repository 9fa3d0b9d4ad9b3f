use std::process::{Command, Output};

fn run(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_airmile-qcut")).args(words).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn the_version_has_commit_and_features() {
    let done = run(&["--version"]);
    let version = text(&done.stdout);
    assert!(version.starts_with(&format!("airmile-qcut {}", env!("AIRMILE_VERSION"))), "{version}");
    assert!(version.contains("features: "), "{version}");
}

#[test]
fn check_names_each_deployment_and_what_it_costs() {
    let done = run(&["check", "--up", "lo", "--json", "--deploy", "none"]);
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    let report: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    let deploys = report["deploys"].as_array().unwrap();
    let names: Vec<&str> = deploys.iter().map(|each| each["deploy"].as_str().unwrap()).collect();
    assert_eq!(names, ["nfqueue", "htb", "cake", "tun", "none"]);
    assert!(deploys.iter().all(|each| each["cost"].as_str().is_some_and(|cost| !cost.is_empty())));
    let shown = text(&run(&["check", "--up", "lo"]).stdout);
    assert!(shown.contains("--deploy auto") && shown.contains("nfqueue"), "{shown}");
}

#[test]
fn what_is_missing_is_a_part_of_this_machine_and_not_a_guess() {
    // Without any program of the packet filter.
    let done = Command::new(env!("CARGO_BIN_EXE_airmile-qcut"))
        .args(["check", "--up", "lo", "--json", "--deploy", "nfqueue"])
        .env("PATH", "/nonexistent")
        .output()
        .unwrap();
    assert_eq!(done.status.code(), Some(3), "{done:?}");
    let report: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    let missing = report["deploys"][0]["missing"].to_string();
    assert!(missing.contains("nft"), "{missing}");
}

#[test]
fn statuses_are_those_of_the_whole_command() {
    for (words, status, expected) in [
        (&["run"][..], 2, "--up"),
        (&["run", "--up", "none77"], 3, "there is no such interface"),
        (&["run", "--up", "lo", "--limit", "20"], 2, "use a time such as 20ms"),
        (&["run", "--up", "lo", "--publish", "mqtt:x"], 2, "mqtt://HOST"),
        (&["run", "--up", "lo", "--classify", "none,dns"], 2, "none goes with nothing else"),
        (&["check", "--up", "lo", "-v"], 2, "unexpected argument '-v'"),
        (&["check", "--up", "lo", "--color", "never"], 2, "unexpected argument '--color'"),
        (&["watch", "--up", "none77"], 3, "airmile-qcut run --up IFACE"),
    ] {
        let done = run(words);
        let told = text(&done.stderr);
        assert_eq!(done.status.code(), Some(status), "{words:?}: {told}");
        assert!(told.contains(expected), "{words:?}: {told}");
    }
}

#[test]
fn a_guard_does_not_start_over_a_change_that_it_cannot_undo() {
    use std::os::unix::fs::MetadataExt;
    let dir = tempfile::tempdir().unwrap();
    let namespace = std::fs::metadata("/proc/thread-self/ns/net").unwrap().ino();
    let state = dir.path().join(format!("qcut-none77-{namespace}.json"));
    let content = r#"{"interface":"none77","deploy":"tun","pid":1,"metrics":null,
        "steps":[{"change":"command","words":["false"]}]}"#;
    std::fs::write(&state, content).unwrap();
    let done = Command::new(env!("CARGO_BIN_EXE_airmile-qcut"))
        .args(["guard", "--up", "none77"])
        .env("RUNTIME_DIRECTORY", dir.path())
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    assert_eq!(done.status.code(), Some(3), "{done:?}");
    assert_eq!(text(&done.stdout), "left\n");
    let told = text(&done.stderr);
    assert!(told.contains("cannot be restored: ") && told.contains("\"false\""), "{told}");
    let left = std::fs::read_to_string(&state).unwrap();
    assert!(left.contains("\"false\""), "{left}");
}
