//! The files of a lab run, and their diagnosis.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::Path;

use airmile::model::Verdict;
use airmile::{Inputs, Progress, RadioOptions, diagnose};
use airmile_lab::{LabOptions, Scenario, run_scenario, run_scenario_with};
use pcap_file::pcapng::{Block, PcapNgReader};

fn judge(dir: &Path) -> Verdict {
    let inputs = Inputs { files: vec![dir.to_owned()], ..Inputs::default() };
    diagnose(&inputs, &RadioOptions::default(), &Progress::default()).unwrap().session.verdict
}

/// Number of packets in a capture, and whether their times are in order.
fn packets(path: &Path) -> (usize, bool) {
    let mut reader = PcapNgReader::new(File::open(path).unwrap()).unwrap();
    let mut times = Vec::new();
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(packet) = block.unwrap() {
            assert_eq!(packet.data[0], 0x45, "IPv4 without options");
            times.push(packet.timestamp);
        }
    }
    (times.len(), times.is_sorted())
}

#[test]
fn a_directory_is_diagnosed_as_it_was_made() {
    let dir = tempfile::tempdir().unwrap();
    for (name, expected) in
        [("busy-file", Verdict::RadioContention), ("wireline-limited", Verdict::Wireline)]
    {
        let out = dir.path().join(name);
        let run = run_scenario(name, None, &out).unwrap();
        assert_eq!(judge(&out), expected, "{name}");
        assert!(run.files.iter().all(|file| out.join(&file.name).is_file()));
        // Without its cause, the transfer takes less.
        let found = &run.counterfactuals[0];
        assert!(found.without_ms.unwrap() < 0.6 * found.duration_ms.unwrap(), "{found:?}");
        for capture in ["phone.pcapng", "server.pcapng"] {
            let (n, sorted) = packets(&out.join(capture));
            // 10 MB in segments of 1448 bytes, and an ACK for every second one.
            assert!(n > 9_000 && sorted, "{name} {capture}: {n}");
        }
        // Running the scenario file again gives the same log.
        let again = dir.path().join(format!("{name}-again"));
        let file = out.join("scenario.toml");
        run_scenario(file.to_str().unwrap(), None, &again).unwrap();
        let read = |dir: &Path, file: &str| fs::read(dir.join(file)).unwrap();
        for file in &run.files {
            assert!(read(&out, &file.name) == read(&again, &file.name), "{name} {}", file.name);
        }
    }
}

#[test]
fn a_link_trace_is_read_beside_its_scenario() {
    let dir = tempfile::tempdir().unwrap();
    // 1500 bytes each ms: 12 Mbit/s.
    let trace: String = (1..=1_000).map(|ms| format!("{ms}\n")).collect();
    fs::write(dir.path().join("flat.down"), trace).unwrap();
    let file = dir.path().join("replay.toml");
    let text = "duration_ms = 20_000\nlink = { trace = { down = \"flat.down\" } }\n\
                apps = [{ name = \"file\", workload = { kind = \"file\", bytes = 6_000_000 } }]\n";
    fs::write(&file, text).unwrap();
    let out = dir.path().join("out");
    run_scenario(file.to_str().unwrap(), None, &out).unwrap();
    let table = fs::read_to_string(out.join("transfer_truth.csv")).unwrap();
    let ms: f64 = table.lines().nth(1).unwrap().rsplit(',').next().unwrap().parse().unwrap();
    // 4 s at 12 Mbit/s, with headers and slow start a little more.
    assert!((4_100.0..4_800.0).contains(&ms), "{ms}");
    // The run's directory contains the trace, wherever it is run again.
    let moved = dir.path().join("moved");
    fs::rename(&out, &moved).unwrap();
    fs::remove_file(dir.path().join("flat.down")).unwrap();
    let again = dir.path().join("again");
    run_scenario(moved.join("scenario.toml").to_str().unwrap(), None, &again).unwrap();
    for file in ["transfer_truth.csv", "link-down.trace", "phone.pcapng"] {
        let read = |dir: &Path| fs::read(dir.join(file)).unwrap();
        assert!(read(&moved) == read(&again), "{file}");
    }
}

#[test]
fn errors_name_file_line_and_field() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("bad.toml");
    for (text, expected) in [
        ("[cell]\nn_prb = 51\n", "bad.toml: line 2, column 9: cell.n_prb: must be 6, 15, 25"),
        ("seeds = 1\n", "bad.toml: line 1, column 1: unknown field `seeds`"),
    ] {
        fs::write(&file, text).unwrap();
        let error = run_scenario(file.to_str().unwrap(), None, dir.path()).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
    let error = run_scenario("no-such", None, dir.path()).unwrap_err().to_string();
    assert!(error.contains("no-such: no scenario has this name"), "{error}");
    assert!(error.contains("no such file") && error.contains("busy-video"), "{error}");
    let error = run_scenario(dir.path().to_str().unwrap(), None, dir.path()).unwrap_err();
    assert!(error.to_string().ends_with("is a directory: use a scenario file"), "{error}");
}

/// A scenario file with the given text.
fn scenario_file(dir: &Path, name: &str, text: &str) -> String {
    let file = dir.join(name);
    fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

const FILE_APP: &str = "[[apps]]\nname = \"a\"\n[apps.workload]\nkind = \"file\"\nbytes =";

#[test]
fn a_former_run_is_replaced_only_when_told() {
    let dir = tempfile::tempdir().unwrap();
    let traced = format!("link = {{ trace = {{ down = \"t\" }} }}\n{FILE_APP} 20_000\n");
    fs::write(dir.path().join("t"), "1\n2\n").unwrap();
    let traced = scenario_file(dir.path(), "traced.toml", &traced);
    let plain = scenario_file(dir.path(), "plain.toml", &format!("{FILE_APP} 10_000\n"));
    let out = dir.path().join("out");
    let run = |file: &str, force: bool, out: &Path| {
        run_scenario_with(file, LabOptions { seed: None, force }, out)
    };
    run(&traced, false, &out).unwrap();
    fs::write(out.join("notes.txt"), "mine").unwrap();
    // Of a run that was interrupted.
    let part = out.join(".phone.pcapng.4711.part");
    fs::write(&part, "").unwrap();
    let error = run(&plain, false, &out).unwrap_err().to_string();
    assert!(error.contains("contains an earlier run") && error.contains("--force"), "{error}");
    assert!(out.join("link-down.trace").is_file());
    let again = run(&plain, true, &out).unwrap();
    assert!(!out.join("link-down.trace").exists() && out.join("notes.txt").is_file());
    assert!(!part.exists());
    assert!(again.files.iter().all(|file| file.name != "link-down.trace"));
    // A directory of other contents is rejected, with or without force.
    let other = dir.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("truth.csv"), "mine").unwrap();
    for force in [false, true] {
        let error = run(&plain, force, &other).unwrap_err().to_string();
        assert!(error.contains("is not empty and does not contain an earlier run"), "{error}");
    }
    assert_eq!(fs::read_dir(&other).unwrap().count(), 1);
}

#[test]
fn what_had_not_ended_is_told_and_judged_so_far() {
    let dir = tempfile::tempdir().unwrap();
    let text = format!("duration_ms = 4_000\n{FILE_APP} 50_000_000\n");
    let file = scenario_file(dir.path(), "cut.toml", &text);
    let out = dir.path().join("out");
    let run = run_scenario(&file, None, &out).unwrap();
    assert!(run.transfers[0].unfinished && run.transfers[0].bytes < Some(50_000_000));
    assert!(run.warnings[0].contains("no transfer ended within 4000 ms: cut: a-1"));
    let table = fs::read_to_string(out.join("transfers.csv")).unwrap();
    assert!(table.lines().nth(1).unwrap().ends_with(",dl,true"), "{table}");
    let inputs = Inputs { files: vec![out], ..Inputs::default() };
    let found = diagnose(&inputs, &RadioOptions::default(), &Progress::default()).unwrap();
    assert_eq!(found.session.verdict, Verdict::RadioSignal);
    let text = serde_json::to_string(&found).unwrap();
    assert!(text.contains("still in progress"), "{text}");
}

#[test]
fn a_run_of_nr_says_that_it_has_no_modem_log() {
    let dir = tempfile::tempdir().unwrap();
    let text = format!("[cell]\nnumerology = 1\n{FILE_APP} 4_000_000\n");
    let file = scenario_file(dir.path(), "nr.toml", &text);
    let out = dir.path().join("out");
    let run = run_scenario(&file, None, &out).unwrap();
    assert!(run.notes[0].contains("no modem log"), "{:?}", run.notes);
    let manifest = fs::read_to_string(out.join("manifest.json")).unwrap();
    assert!(manifest.contains("no modem log"), "{manifest}");
    let inputs = Inputs { files: vec![out], ..Inputs::default() };
    let found = diagnose(&inputs, &RadioOptions::default(), &Progress::default()).unwrap();
    let text = serde_json::to_string(&found).unwrap();
    // Only the first request is sent before the first grant.
    assert!(!text.contains("modem's clock?") && text.contains("the log begins"), "{text}");
}

/// Fields without a default are needed: a user has to find them.
#[test]
fn every_field_of_competing_users_and_of_pages_is_documented() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let docs = fs::read_to_string(root.join("docs/lab.md")).unwrap();
    let schema = fs::read_to_string(root.join("docs/schema/scenario.json")).unwrap();
    let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    let kinds = |of: &str| schema["$defs"][of]["oneOf"].as_array().unwrap().iter();
    assert_eq!(kinds("Competing").count(), 5);
    for kind in kinds("Competing").chain(kinds("Workload")) {
        for name in kind["properties"].as_object().unwrap().keys() {
            assert!(docs.contains(&format!("`{name}`")), "{name} is not in docs/lab.md");
        }
    }
    let empty = |name: &str| airmile_lab::load(name).unwrap().causes.is_empty();
    for one in airmile_lab::scenarios().iter().filter(|one| empty(one.name)) {
        let family = format!("`{}-*`", one.name.split('-').next().unwrap());
        let named = docs.contains(&format!("`{}`", one.name)) || docs.contains(&family);
        assert!(named, "{} has no causes", one.name);
    }
}

#[test]
fn every_file_and_column_is_documented() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/lab.md");
    let docs = fs::read_to_string(docs).unwrap();
    let (example, _) = docs.split_once("```toml\n").unwrap().1.split_once("```").unwrap();
    Scenario::from_toml(example).unwrap();
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("t"), "1\n1\n2\n").unwrap();
    let text = format!(
        "duration_ms = 3_000\nlink = {{ trace = {{ down = \"t\", up = \"t\" }} }}\n\
         [core.down]\nloss = 0.01\n[proxy]\n\
         ports = [{{ port = 443, slow_start_after_idle = true }}]\n{FILE_APP} 1_000_000\n\
         [[causes]]\nlabel = \"loss\"\nset = {{ core = {{ down = {{ loss = 0.0 }} }} }}\n"
    );
    let file = scenario_file(dir.path(), "all.toml", &text);
    let out = dir.path().join("out");
    let run = run_scenario(&file, None, &out).unwrap();
    assert_eq!(run.files.len(), fs::read_dir(&out).unwrap().count());
    assert_eq!(run.files.len(), 24);
    for file in &run.files {
        let name = format!("`{}`", file.name);
        let mut sections = docs.split("\n### ").skip(1);
        let section = sections.find(|section| section.lines().next().unwrap().contains(&name));
        let section = section.unwrap_or_else(|| panic!("{name} is not in docs/lab.md"));
        let text = String::from_utf8_lossy(&fs::read(out.join(&file.name)).unwrap()).into_owned();
        let columns: Vec<String> = match file.name.rsplit_once('.').unwrap().1 {
            "csv" => text.lines().next().unwrap().split(',').map(str::to_owned).collect(),
            "jsonl" => {
                assert!(!text.is_empty(), "{name}");
                let keys = |line: &str| -> Vec<String> {
                    let object: serde_json::Value = serde_json::from_str(line).unwrap();
                    object.as_object().unwrap().keys().cloned().collect()
                };
                text.lines().flat_map(keys).collect()
            }
            _ => Vec::new(),
        };
        for column in columns {
            assert!(section.contains(&format!("`{column}`")), "{name}: `{column}`");
        }
    }
}

/// Some columns of a table, by row.
fn columns<const N: usize>(table: &Path, names: [&str; N]) -> Vec<[String; N]> {
    let mut reader = csv::Reader::from_path(table).unwrap();
    let header = reader.headers().unwrap().clone();
    let at = names.map(|name| header.iter().position(|column| column == name).unwrap());
    let row = |row: csv::StringRecord| at.map(|at| row[at].to_owned());
    reader.records().map(|r| row(r.unwrap())).collect()
}

/// PRB pairs by TTI and cell of run-length coded rows of one direction.
fn prbs(rows: &[[String; 4]]) -> BTreeMap<(i64, u8), u32> {
    let mut sums = BTreeMap::new();
    for [tti, n_tti, cell, n_prb] in rows {
        let tti: i64 = tti.parse().unwrap();
        for tti in tti..tti + n_tti.parse::<i64>().unwrap() {
            *sums.entry((tti, cell.parse().unwrap())).or_default() += n_prb.parse::<u32>().unwrap();
        }
    }
    sums.retain(|_, sum| *sum > 0);
    sums
}

#[test]
fn truth_has_every_user_of_every_carrier() {
    let dir = tempfile::tempdir().unwrap();
    let text = "
        duration_ms = 4_000
        [cell]
        scheduler = \"round_robin\"
        [cell.secondary]
        competing = [{ kind = \"full_buffer\", users = 1 }]
        [[competing]]
        kind = \"full_buffer\"
        users = 2
        [[others]]
        [[others.apps]]
        name = \"theirs\"
        workload = { kind = \"upload\", bytes = 3_000_000 }
        [[apps]]
        name = \"ours\"
        workload = { kind = \"file\", bytes = 9_000_000 }
    ";
    let out = dir.path().join("out");
    run_scenario(&scenario_file(dir.path(), "all.toml", text), None, &out).unwrap();
    let table = out.join("allocations.csv");
    let all = columns(&table, ["dir", "user", "tti", "n_tti", "cell", "n_prb"]);
    let of = |wanted: &dyn Fn(&str, &str) -> bool| -> Vec<[String; 4]> {
        let rows = all.iter().filter(|[dir, user, ..]| wanted(dir, user));
        rows.map(|[_, _, tti, n_tti, cell, n_prb]| [tti, n_tti, cell, n_prb].map(String::to_owned))
            .collect()
    };
    // The phone, another, two of the primary carrier, one of the secondary.
    let users: BTreeSet<(&str, &str)> =
        all.iter().map(|[_, user, _, _, cell, _]| (user.as_str(), cell.as_str())).collect();
    let expected = [("0", "0"), ("0", "1"), ("1", "0"), ("2", "0"), ("3", "0"), ("4", "1")];
    assert_eq!(users.into_iter().collect::<Vec<_>>(), expected);
    // The users' sum is the cell's use.
    let cell = columns(&out.join("cell_use.csv"), ["tti", "n_tti", "cell", "n_prb"]);
    assert_eq!(prbs(&of(&|dir, _| dir == "dl")), prbs(&cell));
    // The phone's allocation matches its grants.
    for way in ["dl", "ul"] {
        let grants = columns(&out.join("grants.csv"), ["dir", "tti", "cell", "n_prb"]);
        let grants = grants.into_iter().filter(|[dir, ..]| dir == way);
        let grants: Vec<_> =
            grants.map(|[_, tti, cell, n_prb]| [tti, "1".to_owned(), cell, n_prb]).collect();
        assert_eq!(prbs(&of(&|dir, user| dir == way && user == "0")), prbs(&grants), "{way}");
    }
    // Both carriers and the uplink had capacity in every TTI.
    let capacity = columns(&out.join("capacity.csv"), ["dir", "cell", "n_tti", "capacity_bytes"]);
    for (way, cell) in [("dl", "0"), ("dl", "1"), ("ul", "0")] {
        let of = capacity.iter().filter(|[dir, at, ..]| (dir.as_str(), at.as_str()) == (way, cell));
        let (mut ttis, mut least) = (0, u32::MAX);
        for [_, _, n_tti, bytes] in of {
            ttis += n_tti.parse::<u32>().unwrap();
            least = least.min(bytes.parse().unwrap());
        }
        assert_eq!(ttis, 4_000, "{way} {cell}");
        // 20 PRB pairs at least, of the worst MCS: 536 bits (TS 36.213, 7.1.7.2.1-1).
        assert!(least >= 536 / 8, "{way} {cell}: {least}");
    }
}

#[test]
fn counterfactuals_compare_the_same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let text = "
        duration_ms = 40_000
        [[apps]]
        name = \"v\"
        [apps.workload]
        kind = \"video\"
        duration_ms = 20_000
        variation = 0.3
        [core.down.limit]
        rate_bps = 2_000_000
        [[causes]]
        label = \"wireline\"
        remove = [\"core.down.limit\"]
    ";
    let file = scenario_file(dir.path(), "video.toml", text);
    let run = run_scenario(&file, None, &dir.path().join("out")).unwrap();
    assert_eq!(run.counterfactuals.len(), 5);
    for found in &run.counterfactuals {
        assert_eq!(found.bytes, found.without_bytes);
        assert!(found.without_ms < found.duration_ms, "{found:?}");
    }
}
