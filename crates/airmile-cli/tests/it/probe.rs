//! `airmile compare` and `airmile probe` as commands: documents, exit statuses; and the port test
//! through the lab's middlebox in real time (`make test-realtime`).

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

fn airmile() -> Command {
    Command::new(env!("CARGO_BIN_EXE_airmile"))
}

fn output(args: &[&str]) -> Output {
    airmile().args(args).stdin(Stdio::null()).output().unwrap()
}

fn path(dir: &Path, name: &str) -> String {
    dir.join(name).to_str().unwrap().to_owned()
}

/// A `--json` document, checked against its schema.
fn document(name: &str, args: &[&str]) -> Value {
    let out = output(&[args, &["--json", "-q"]].concat());
    let document: Value = serde_json::from_slice(&out.stdout).unwrap_or_else(|e| {
        panic!("{e}: {}", String::from_utf8_lossy(&out.stderr));
    });
    check(name, &document);
    assert_eq!((&document["document"], &document["version"]), (&name.into(), &1.into()));
    document
}

fn check(schema: &str, document: &Value) {
    let file =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/schema/{schema}.json"));
    let schema: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(document).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:#?}");
}

/// A server that ends with the test.
struct Serving(Child);

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Serves on free loopback ports; returns the ports.
fn serve() -> (Serving, Vec<String>) {
    let mut child = airmile()
        .args(["probe", "serve", "--ports", "0,0,0", "--tls", "", "-q"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().take(3);
    let port = |line: std::io::Result<String>| {
        let line = line.unwrap();
        let rest = line.strip_prefix("http://127.0.0.1:").unwrap();
        rest.split_once('/').unwrap().0.to_owned()
    };
    let ports = lines.map(port).collect();
    (Serving(child), ports)
}

#[test]
fn ports_are_probed_and_compared() {
    let (_serving, ports) = serve();
    let dir = tempfile::tempdir().unwrap();
    let run = path(dir.path(), "run");
    let ports = ports.join(",");
    let args = [
        "probe",
        "run",
        "127.0.0.1",
        "--ports",
        &ports,
        "--tls",
        "",
        "--segments",
        "5",
        "--pause",
        "0.01",
        "--segment-bytes",
        "50000",
        "-o",
        &run,
    ];
    let answer = document("compare", &args);
    assert_eq!(answer["groups"].as_array().unwrap().len(), 3);
    assert_eq!(answer["groups"][0]["transfers"], 5);
    let log: Value =
        serde_json::from_str(&fs::read_to_string(dir.path().join("run/probe.json")).unwrap())
            .unwrap();
    check("probe", &log);
    // The same again; an earlier probe remains without --force.
    assert_eq!(document("compare", &["compare", &run])["verdict"], answer["verdict"]);
    assert_eq!(output(&args).status.code(), Some(3));
    assert_eq!(output(&[&args[..], &["--force", "-q"]].concat()).status.code(), Some(0));
    // Its application log is read as any other.
    let diagnosis = document("diagnose", &["diagnose", &run]);
    assert_eq!(diagnosis["transfers"].as_array().unwrap().len(), 15);
}

#[test]
fn what_cannot_be_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let run = path(dir.path(), "run");
    let check = |args: &[&str], status: i32, words: &str| {
        let out = output(args);
        let message = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(status), "{args:?}: {message}");
        assert!(message.contains(words), "{args:?}: {message}");
    };
    check(&["compare", &run], 3, "run");
    check(&["compare"], 2, "RUN");
    check(&["compare", &run, "--by", "colour"], 2, "port");
    check(&["probe", "run", "ftp://a", "-o", &run], 2, "give a host");
    check(&["probe", "run", "127.0.0.1", "--tls", "99", "-o", &run], 2, "not among --ports");
    check(&["probe", "run", "127.0.0.1", "--segments", "0", "-o", &run], 2, "above 0");
    check(&["probe", "serve", "--ports", "x"], 2, "ports");
}

#[test]
fn help_has_examples() {
    for command in
        [&["compare", "--help"][..], &["probe", "serve", "--help"], &["probe", "run", "--help"]]
    {
        let out = output(command);
        assert!(String::from_utf8_lossy(&out.stdout).contains("Examples:"), "{command:?}");
    }
}

/// The lab's cell in real time, with a middlebox at ports 80 and 443: kernel TCP, the probe's own
/// server and client.
#[test]
#[ignore = "needs namespaces: make test-realtime"]
fn the_middlebox_s_ports_are_told_by_a_probe() {
    let able = Command::new("unshare").args(["-nm", "true"]).status().is_ok_and(|s| s.success());
    if !able || !Path::new("/dev/net/tun").exists() {
        eprintln!("SKIPPED the_middlebox_s_ports_are_told_by_a_probe: needs root and /dev/net/tun");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let scenario = dir.path().join("cell.toml");
    fs::write(
        &scenario,
        "seed = 5\ntail_ms = 100\n[core]\nrtt_ms = 80\nproxy_rtt_ms = 70\n[server_tcp]\n\
         slow_start_after_idle = false\n[proxy]\nports = [{ port = 80, slow_start_after_idle = true }, \
         { port = 443, slow_start_after_idle = true }]\n[[competing]]\nkind = \"full_buffer\"\nusers = 1\n",
    )
    .unwrap();
    let program = env!("CARGO_BIN_EXE_airmile");
    let server = format!("{program} probe serve --bind 0.0.0.0");
    let run = path(dir.path(), "run");
    let out = airmile()
        .args(["lab", "shell"])
        .arg(&scenario)
        .args(["--late-limit-ms", "60000", "--server", &server, "-o", &run, "--", program])
        .args(["probe", "run", "203.0.113.1", "--segments", "9", "--pause", "3", "-o"])
        .arg(dir.path().join("probe"))
        .output()
        .unwrap();
    let printed =
        format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    eprintln!("{printed}");
    assert_eq!(out.status.code(), Some(0), "{printed}");
    // From the probe's own times; then with the modem log and captures of the run.
    let expected = serde_json::json!(["port 80", "port 443"]);
    let alone = document("compare", &["compare", &path(dir.path(), "probe")]);
    assert_eq!((&alone["verdict"], &alone["about"]), (&"middlebox_restarts".into(), &expected));
    // The lab's transfers are on its own clock; the probe records their turns.
    fs::copy(dir.path().join("probe/probe.json"), dir.path().join("run/probe.json")).unwrap();
    let whole = document("compare", &["compare", &run]);
    assert_eq!((&whole["verdict"], &whole["about"]), (&"middlebox_restarts".into(), &expected));
    let demand = |group: usize| whole["groups"][group]["link_demand"]["value"].as_f64().unwrap();
    eprintln!("link demand: {:.2}, {:.2}, {:.2}", demand(0), demand(1), demand(2));
    assert!(demand(2) > demand(0) && demand(2) > demand(1));
}
