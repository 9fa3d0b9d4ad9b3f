//! `airmile packets --interface` in namespaces: `make test-realtime`. Without root or user
//! namespaces each test prints SKIPPED.

use std::process::{Command, Output};

/// Connections of known sizes over the loopback interface.
const TRAFFIC: &str = r#"
import socket, threading
server = socket.create_server(("127.0.0.1", 0))
def serve():
    for n in range(20):
        c, _ = server.accept()
        c.sendall(bytes(1000 * (n + 1))); c.close()
threading.Thread(target=serve).start()
for n in range(20):
    c = socket.create_connection(server.getsockname())
    while c.recv(65536): pass
    c.close()
datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
datagrams.sendto(b"x" * 100, ("127.0.0.1", 9))
"#;

fn unshare() -> Option<&'static str> {
    let works = |how: &str| {
        let tried = Command::new("unshare").args([how, "true"]).output();
        tried.is_ok_and(|done| done.status.success())
    };
    ["-n", "-rn"].into_iter().find(|how| works(how))
}

/// Runs a sh script in its own network namespace; `$AIRMILE` is the command.
fn in_namespace(test: &str, script: &str) -> Option<Output> {
    let lacks = |program: &str| Command::new(program).arg("--version").output().is_err();
    let missing = ["ip", "python3"].into_iter().find(|program| lacks(program));
    let (Some(how), None) = (unshare(), missing) else {
        eprintln!("SKIPPED {test}: needs root or user namespaces, ip and python3");
        return None;
    };
    let script = format!("set -e; ip link set lo up\n{script}");
    let mut command = Command::new("unshare");
    command.args([how, "sh", "-c", &script]).env("AIRMILE", env!("CARGO_BIN_EXE_airmile"));
    Some(command.env("TRAFFIC", TRAFFIC).output().unwrap())
}

fn document(done: &Output) -> serde_json::Value {
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    serde_json::from_slice(&done.stdout).unwrap()
}

/// The traffic, each packet once.
fn check(document: &serde_json::Value) {
    assert_eq!((&document["tcp_flows"], &document["udp_flows"]), (&20.into(), &1.into()));
    let flows = document["flows"].as_array().unwrap();
    let tcp = flows.iter().filter(|flow| flow["protocol"] == "tcp");
    let mut down: Vec<u64> = tcp.map(|flow| flow["dl_bytes"].as_u64().unwrap()).collect();
    down.sort_unstable();
    assert_eq!(down, (1..=20).map(|n| n * 1000).collect::<Vec<u64>>());
    assert!(flows.iter().all(|flow| flow["dl_retx"] == 0));
    assert_eq!(document["quality"]["copies"], 0);
    assert_eq!(document["quality"]["unseen_bytes"], 0);
}

#[test]
#[ignore = "namespaces: make test-realtime"]
fn for_some_seconds() {
    let script = "$AIRMILE packets --interface lo --duration 4 --json & sleep 1
        python3 -c \"$TRAFFIC\"; wait $!";
    if let Some(done) = in_namespace("for_some_seconds", script) {
        check(&document(&done));
    }
}

#[test]
#[ignore = "namespaces: make test-realtime"]
fn an_interrupt_ends_it_with_the_summary() {
    // Background jobs of sh ignore SIGINT, as do their children.
    let script = "$AIRMILE packets --interface lo --json & sleep 1
        python3 -c \"$TRAFFIC\"; sleep 0.5; kill -TERM $!; wait $!";
    if let Some(done) = in_namespace("an_interrupt_ends_it_with_the_summary", script) {
        check(&document(&done));
    }
    let script = "python3 -c 'import os, signal, subprocess, time
p = subprocess.Popen([os.environ[\"AIRMILE\"], \"packets\", \"--interface\", \"lo\", \"--json\"])
time.sleep(1); subprocess.run([\"python3\", \"-c\", os.environ[\"TRAFFIC\"]], check=True)
time.sleep(0.5); p.send_signal(signal.SIGINT); raise SystemExit(p.wait())'";
    if let Some(done) = in_namespace("an_interrupt_ends_it_with_the_summary", script) {
        check(&document(&done));
    }
}

#[test]
#[ignore = "namespaces: make test-realtime"]
fn a_device_without_addresses_and_a_page() {
    // TUN has no link address to bind to.
    let script = "ip tuntap add mode tun tun7 2>/dev/null || exit 77
        ip addr add 10.9.0.1/24 dev tun7; ip link set tun7 up
        $AIRMILE packets --interface tun7 --duration 3 --html /dev/null --json & sleep 1
        python3 -c \"$TRAFFIC\"; wait $!";
    let Some(done) = in_namespace("a_device_without_addresses_and_a_page", script) else { return };
    if done.status.code() == Some(77) {
        eprintln!("SKIPPED a_device_without_addresses_and_a_page: no /dev/net/tun");
        return;
    }
    // No packet passes a TUN that no process has open, and lo is not captured.
    assert_eq!(done.status.code(), Some(3));
    let message = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(message.contains("tun7: no IP packets"), "{message}");
}

#[test]
#[ignore = "namespaces: make test-realtime"]
fn without_the_capability() {
    let script = "command -v setpriv > /dev/null || exit 77
        setpriv --bounding-set=-net_raw $AIRMILE packets --interface lo --duration 1 || echo $?";
    let Some(done) = in_namespace("without_the_capability", script) else { return };
    if done.status.code() == Some(77) {
        eprintln!("SKIPPED without_the_capability: no setpriv");
        return;
    }
    assert_eq!(String::from_utf8_lossy(&done.stdout).trim(), "3");
    let message = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(message.contains("capturing needs CAP_NET_RAW"), "{message}");
}

/// Live on the loopback interface, and its result after the traffic.
const LIVE: &str = r#"
import json, os, re, subprocess, time, urllib.request
live = subprocess.Popen([os.environ["AIRMILE"], "live", "--interface", "lo", "--json", "--listen", "127.0.0.1:0"],
                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
url, query = re.search(r"http://\S+", live.stderr.readline()).group().split("?")
# Only clients with the token see other users' connections.
try: urllib.request.urlopen(url + "v1/packets")
except urllib.error.HTTPError as refused: assert refused.code == 401
else: raise SystemExit("no token was asked for")
def packets():
    return json.loads(urllib.request.urlopen(url + "v1/packets?" + query).read())
def until(holds):
    for _ in range(300):
        now = packets()
        if holds(now): return now
        time.sleep(0.1)
    raise SystemExit(f"in vain: {now}")
until(lambda now: now["packets"]["interface"]["state"] == "connected")
subprocess.run(["python3", "-c", os.environ["TRAFFIC"]], check=True)
# Those of the questions are among them.
def sent(now):
    flows = [flow for flow in now["packets"]["flows"] + now["ended"] if flow["protocol"] == "tcp"]
    return {flow["dl_bytes"] for flow in flows} >= {1000 * (n + 1) for n in range(20)}
now = until(sent)
live.kill()
print(json.dumps(now["packets"]))
"#;

#[test]
#[ignore = "namespaces: make test-realtime"]
fn live_tells_flows_as_they_pass() {
    let script = format!("cat > $0.py <<'END'\n{LIVE}\nEND\npython3 $0.py");
    let dir = tempfile::tempdir().unwrap();
    let script = script.replace("$0", &dir.path().join("live").to_string_lossy());
    let Some(done) = in_namespace("live_tells_flows_as_they_pass", &script) else { return };
    let answer = document(&done);
    assert_eq!((&answer["dropped"], &answer["unread"]), (&0.into(), &0.into()));
    assert!(
        answer["packets"].as_u64().unwrap() > 100 && answer["ip_bytes"].as_u64().unwrap() > 210_000
    );
}

/// Live on a device without a link address that goes down, is removed, and is created again.
const AWAY: &str = r#"
import json, os, queue, re, subprocess, threading, time
def ip(*words): subprocess.run(["ip", *words], check=True)
def made():
    ip("tuntap", "add", "mode", "tun", "tun8")
    ip("addr", "add", "10.9.8.1/24", "dev", "tun8")
    ip("link", "set", "tun8", "up")
made()
live = subprocess.Popen([os.environ["AIRMILE"], "live", "--interface", "tun8", "--json"], stdout=subprocess.PIPE, text=True)
events = queue.Queue()
def listen():
    for line in live.stdout: events.put(json.loads(line))
threading.Thread(target=listen, daemon=True).start()
seen = []
def until(state):
    while True:
        event = events.get(timeout=20)
        if event["event"] == "source" and event["name"] == "tun8":
            seen.append(event["state"])
            if event["state"] == state: return event
until("connected")
ip("link", "set", "tun8", "down"); until("waiting")
# Once, however long it is away.
time.sleep(1.5); assert events.empty(), events.get()
ip("link", "set", "tun8", "up"); until("connected")
ip("link", "del", "tun8"); until("waiting")
made()
gaps = until("connected")["gaps"]
live.kill()
print(json.dumps({"seen": seen, "gaps": gaps}))
"#;

#[test]
#[ignore = "namespaces: make test-realtime"]
fn live_waits_for_a_device_that_goes() {
    let script =
        format!("test -w /dev/net/tun || exit 77\ncat > $0.py <<'END'\n{AWAY}\nEND\npython3 $0.py");
    let dir = tempfile::tempdir().unwrap();
    let script = script.replace("$0", &dir.path().join("away").to_string_lossy());
    let test = "live_waits_for_a_device_that_goes";
    let Some(done) = in_namespace(test, &script) else { return };
    if done.status.code() == Some(77) {
        eprintln!("SKIPPED {test}: no /dev/net/tun");
        return;
    }
    let answer = document(&done);
    let states = answer["seen"].as_array().unwrap();
    let waiting = states.iter().filter(|state| *state == "waiting").count();
    assert_eq!(answer["gaps"], 2, "{answer}");
    assert!(states.last().unwrap() == "connected" && waiting >= 2, "{answer}");
}

#[test]
#[ignore = "namespaces: make test-realtime"]
fn live_needs_the_capability_and_the_interface() {
    let script = "$AIRMILE live --interface none0 --lines || echo $?
        command -v setpriv > /dev/null || exit 77
        setpriv --bounding-set=-net_raw $AIRMILE live --interface lo --lines || echo $?";
    let test = "live_needs_the_capability_and_the_interface";
    let Some(done) = in_namespace(test, script) else { return };
    if done.status.code() == Some(77) {
        eprintln!("SKIPPED {test}: no setpriv");
        return;
    }
    assert_eq!(String::from_utf8_lossy(&done.stdout).trim(), "3\n3");
    let message = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(message.contains("none0: there is no such interface"), "{message}");
    assert!(message.contains("capturing needs CAP_NET_RAW"), "{message}");
}

#[test]
fn what_is_wrong_is_told() {
    let status = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_airmile"));
        let done = command.arg("packets").args(args).output().unwrap();
        (done.status.code(), String::from_utf8_lossy(&done.stderr).into_owned())
    };
    for (args, code, words) in [
        (&["--interface", "none0"][..], 3, "none0: there is no such interface; there are "),
        (&["--interface", "lo", "x.pcap"], 2, "cannot be used with"),
        (&["--duration", "5", "x.pcap"], 2, "cannot be used with"),
        (&["--duration", "5"], 2, "--interface"),
        (&["--interface", "lo", "--duration", "0"], 2, "give seconds above 0"),
        (&[], 2, "FILE"),
    ] {
        let (got, message) = status(args);
        assert_eq!(got, Some(code), "{args:?}: {message}");
        assert!(message.contains(words), "{args:?}: {message}");
    }
}
