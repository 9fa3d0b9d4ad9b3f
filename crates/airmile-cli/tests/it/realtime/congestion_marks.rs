//! A modem that marks its queue (ECN), over the kernel's TCP, and what `diagnose` tells of it.

use std::fs;

use super::{SCENARIO, airmile, is_able, shell};

const SINK: &str = "
import socket
sink = socket.create_server(('', 5001))
while True:
    one, _ = sink.accept()
    while one.recv(65536): pass
    one.close()
";

/// Uploads; without ECN if its second argument is 0.
const UPLOAD: &str = "
import os, socket, sys
open('/proc/sys/net/ipv4/tcp_ecn', 'w').write(sys.argv[2])
one = socket.create_connection((os.environ['AIRMILE_SERVER'], 5001))
one.sendall(b'x' * int(sys.argv[1]))
one.shutdown(socket.SHUT_WR)
one.recv(1)
";

/// Marks by `diagnose`: whether the uplink's queue is marked, by the given files of the run.
fn told(dir: &std::path::Path, files: &[&str]) -> Option<serde_json::Value> {
    let mut command = airmile();
    command.args(["diagnose", "--json"]);
    command.args(files.iter().map(|name| dir.join("run").join(name)));
    let done = command.output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let answer: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    answer["ecn"].as_array().unwrap().iter().find(|path| path["dir"] == "ul").cloned()
}

#[test]
#[ignore = "needs namespaces: make test-realtime"]
fn a_queue_that_is_marked_is_told_from_one_that_is_not() {
    if !is_able("a_queue_that_is_marked_is_told_from_one_that_is_not") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for (name, script) in [("sink.py", SINK), ("upload.py", UPLOAD)] {
        fs::write(dir.path().join(name), script).unwrap();
    }
    let phone_alone = ["modem.mi2log", "phone.pcapng", "transfers.csv"];
    let both = ["modem.mi2log", "phone.pcapng", "server.pcapng", "transfers.csv"];
    let marks = ["--mark-uplink-above-ms", "50"];
    for (options, ecn, is_marked) in
        [(&marks[..], "1", Some(true)), (&[], "1", Some(false)), (&marks, "0", None)]
    {
        let server = ["-o", "run", "--force", "--server", "python3 sink.py"];
        let options: Vec<&str> = server.iter().chain(options).copied().collect();
        let words = ["python3", "upload.py", "3000000", ecn];
        let done = shell(dir.path(), SCENARIO, &options, &words);
        assert!(done.status.success(), "{done:?}");
        for (files, source) in [(&phone_alone[..], "ecn_echo"), (&both[..], "arrivals")] {
            let told = told(dir.path(), files);
            let Some(is_marked) = is_marked else {
                assert_eq!(told, None, "not ECN-capable");
                continue;
            };
            let told = told.unwrap();
            assert_eq!(told["counted_by"], source, "{told}");
            assert_eq!(told["queue_is_marked"], is_marked, "{told}");
            // Nearly all of the upload waits.
            let [queued, all] =
                ["queued_packets", "capable_packets"].map(|key| told[key].as_u64().unwrap());
            assert!(queued * 10 > all * 7 && all > 1_000, "{told}");
            let [marked, queued_marked] =
                ["marked_packets", "queued_marked_packets"].map(|key| told[key].as_u64().unwrap());
            assert!(queued_marked <= marked && marked <= all, "{told}");
        }
    }
}
