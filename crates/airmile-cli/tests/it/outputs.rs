//! Reports and traces written in addition to the output.

use std::fs;
use std::path::Path;

use crate::command::{airmile, document, path, sample, status, text};

#[test]
fn reports_and_traces_are_made() {
    let (_keep, run) = sample("sample-rate-limited");
    let log = path(&run, "modem.mi2log");
    for command in ["diagnose", "radio"] {
        let alone = document(command, &[command, &log]);
        let (html, trace) = (path(&run, "report.html"), path(&run, "trace.pftrace"));
        let args = [command, &log, "--html", &html, "--perfetto", &trace];
        assert_eq!(document(command, &args), alone);
        let page = fs::read_to_string(&html).unwrap();
        assert!(page.contains("\"verdict\":\"not_radio\""));
        let bytes = fs::read(&trace).unwrap();
        for words in ["The downlink was not the bottleneck", "not_radio", "Downlink grants"] {
            let there = bytes.windows(words.len()).any(|at| at == words.as_bytes());
            assert!(there, "{words}");
        }
        fs::remove_file(&html).unwrap();
        fs::remove_file(&trace).unwrap();
    }
}

/// Texts and pages are in the zone given, documents in none.
#[test]
fn times_are_in_the_zone_given() {
    let (_keep, run) = sample("sample-rate-limited");
    let log = path(&run, "modem.mi2log");
    let seen = |tz: &str, args: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_airmile"));
        let done = command.env("TZ", tz).arg("inspect").arg(&log).args(args).output().unwrap();
        text(&done.stdout)
    };
    // The lab's logs begin at 09:00 UTC. A pipe has UTC, whatever the machine's zone.
    for (tz, args, start, zone) in [
        ("XYZ-3", &[][..], "2026-01-05 09:00:", " UTC ("),
        ("XYZ-3", &["--time-zone", "local"], "2026-01-05 12:00:", " UTC+03:00 ("),
        ("XYZ-3", &["--time-zone", "-03:30"], "2026-01-05 05:30:", " UTC-03:30 ("),
        ("XYZ-3", &["--time-zone", "+15"], "2026-01-06 00:00:", " UTC+15:00 ("),
    ] {
        let shown = seen(tz, args);
        assert!(shown.contains(start) && shown.contains(zone), "{args:?}: {shown}");
    }
    let plain = seen("UTC", &["--json"]);
    assert_eq!(seen("XYZ-3", &["--json", "--time-zone", "local"]), plain);
    let from = |args: &[&str]| document("diagnose", &[&["diagnose", &log][..], args].concat());
    let limited = from(&["--from", "2026-01-05T09:00:10Z"]);
    assert_ne!(limited, from(&[]));
    assert_eq!(from(&["--from", "11:00:10", "--time-zone", "+02:00"]), limited);
    assert_eq!(from(&["--from", "11:00:10+02:00", "--time-zone", "-05:00"]), limited);
    // A zone limits nothing.
    assert_eq!(from(&["--time-zone", "+02:00"]), from(&[]));
    let (html, wrong) = (path(&run, "zone.html"), "Mars/Olympus");
    assert_eq!(status(&["diagnose", &log, "--html", &html, "--time-zone", "+02:00"]), 0);
    let page = fs::read_to_string(&html).unwrap();
    let zone = page.split_once("id=\"airmile-zone\">").unwrap().1.split_once('<').unwrap().0;
    let zone: serde_json::Value = serde_json::from_str(zone).unwrap();
    assert!(zone["name"].is_null() && zone["offsets"][0][1] == 7_200, "{zone}");
    let refused = airmile(&["inspect", &log, "--time-zone", wrong]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("is no time zone of this system"));
}

/// If such a file cannot be written, standard output stays empty, also with `--json`: a reader must
/// not take half a result for a whole one.
#[test]
fn reports_and_traces_that_cannot_be_written() {
    let (_keep, run) = sample("sample-rate-limited");
    let log = path(&run, "modem.mi2log");
    let nowhere = path(&run, "no/such/directory/out");
    let directory = run.to_str().unwrap();
    for option in ["--html", "--perfetto"] {
        for json in [&[][..], &["--json"]] {
            for (out, says, code) in [
                (nowhere.as_str(), "cannot write: No such file", 3),
                (directory, "cannot write: Is a directory", 3),
                (log.as_str(), "is one of the files to read", 2),
            ] {
                let done = airmile(&[&["diagnose", &log, option, out][..], json].concat());
                let message = text(&done.stderr);
                assert_eq!(done.status.code(), Some(code), "{option} {out}: {message}");
                assert!(message.contains(says) && message.contains(out), "{message}");
                assert!(done.stdout.is_empty(), "{option} {out}");
            }
        }
    }
    assert_eq!(status(&["diagnose", &log]), 0, "the log is unchanged");
    let trace = path(&run, "trace.pftrace");
    assert_eq!(status(&["radio", "/no/such/file", "--perfetto", &trace]), 3);
    assert!(!Path::new(&trace).exists(), "no trace without input");
}

/// A forgotten file name after an output option does not cost the user the next file.
#[test]
fn only_earlier_outputs_are_replaced() {
    let (_keep, run) = sample("sample-rate-limited");
    let log = path(&run, "modem.mi2log");
    let tables = path(&run, "tables");
    fs::create_dir(&tables).unwrap();
    let report = |name: &str| format!("junit={}", path(&run, name));
    let (junit, file) = (report("out"), path(&run, "out"));
    assert_eq!(status(&["lab", "run", "page", "-o", &path(&run, "page")]), 0);
    let capture = path(&run, "page/phone.pcapng");
    for (args, out) in [
        (&["diagnose", &log, "--html", &file][..], "out"),
        (&["radio", &log, "--html", &file], "out"),
        (&["diagnose", &log, "--perfetto", &file], "out"),
        (&["diagnose", &log, "--fail-if", "bytes < 1", "--report", &junit], "out"),
        (&["diagnose", &log, "-o", &tables], "tables/diagnose.json"),
        (&["decode", &log, "-o", &file, "--format", "pcapng"], "out"),
        (&["decode", &log, "-o", &tables], "tables/grant.parquet"),
        (&["packets", &capture, "--html", &file], "out"),
        (&["packets", &capture, "--out", &tables], "tables/flows.parquet"),
        (&["packets", &capture, "--out", &tables, "--table-format", "csv"], "tables/flows.csv"),
    ] {
        let out = run.join(out);
        assert_eq!(status(args), 0, "{args:?}: a new file");
        assert_eq!(status(args), 0, "{args:?}: over the earlier output");
        for precious in ["{\"log\": {\"version\": \"1.2\"}}", "notes\n"] {
            fs::write(&out, precious).unwrap();
            let refused = airmile(args);
            let said = text(&refused.stderr);
            assert_eq!(refused.status.code(), Some(2), "{args:?}: {said}");
            assert!(said.contains("name another file, or delete this one"), "{said}");
            assert!(refused.stdout.is_empty(), "{args:?}");
            assert_eq!(fs::read_to_string(&out).unwrap(), precious, "{args:?}");
        }
        fs::remove_file(&out).unwrap();
    }
}

/// At the phone, round trips to the client are those of the phone itself: near zero.
#[test]
fn round_trips_are_shown_where_they_include_the_network() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    assert_eq!(status(&["lab", "run", "page", "-o", &path(dir.path(), "run")]), 0);
    let shown = |name: &str| text(&airmile(&["packets", &path(&run, name)]).stdout);
    let phone = shown("phone.pcapng");
    assert!(phone.contains("Captured at the phone") && !phone.contains("RTT ms"), "{phone}");
    let server = shown("server.pcapng");
    assert!(server.contains("RTT ms") && !server.contains("Captured at the phone"), "{server}");
}

/// A pipe has colours only with `always`, and the same text.
#[test]
fn verdicts_are_coloured_where_asked_for() {
    let (_keep, run) = sample("sample-rate-limited");
    let log = path(&run, "modem.mi2log");
    let shown = |args: &[&str]| text(&airmile(&[&["diagnose", &log], args].concat()).stdout);
    let plain = shown(&[]);
    assert!(plain.starts_with("The downlink was not the bottleneck"), "{plain}");
    assert_eq!(shown(&["--color", "never"]), plain);
    let coloured = shown(&["--color", "always"]);
    // The hue of "not radio" in the report.
    assert!(coloured.starts_with("\x1b[1;33mThe downlink was not the bottleneck"), "{coloured}");
    assert_eq!(coloured.replace("\x1b[1;33m", "").replace("\x1b[0m", ""), plain);
    // A page's verdict comes first.
    let page = sample("page-slow-server");
    let har = path(&page.1, "page.har");
    let coloured = text(&airmile(&["diagnose", &har, "--color", "always"]).stdout);
    assert!(
        coloured.starts_with("\x1b[1;33mPage http://server.airmile.test/page/0/0\n"),
        "{coloured}"
    );
    let json = shown(&["--color", "always", "--json"]);
    assert!(!json.contains('\x1b'), "{json}");
    assert_eq!(status(&["diagnose", &log, "--color", "red"]), 2);
}

/// Many transfers are summed up, the slowest listed; `-v` lists all. What was written is stated with
/// its size.
#[test]
fn many_transfers_are_summed_up_and_outputs_stated() {
    let (_keep, run) = sample("sample-rate-limited");
    let (log, table) = (path(&run, "modem.mi2log"), path(&run, "many.csv"));
    let given = fs::read_to_string(run.join("transfers.csv")).unwrap();
    let (header, first) = given.split_once('\n').unwrap();
    let at = |name: &str| header.split(',').position(|column| column == name).unwrap();
    let field = |name: &str| first.lines().next().unwrap().split(',').nth(at(name)).unwrap();
    let start_us: i64 = field("start_us").parse().unwrap();
    // 200 transfers, each a ms longer than the one before.
    let rows = (0..200).map(|n| {
        let start_us = start_us + n * 60_000;
        format!("t{n},{start_us},{},1000\n", start_us + 40_000 + n * 1_000)
    });
    fs::write(&table, format!("id,start_us,end_us,bytes\n{}", rows.collect::<String>())).unwrap();
    let html = path(&run, "report.html");
    let args = ["diagnose", &log, "--transfers", &table, "--html", &html];
    let out = airmile(&args);
    let (shown, notes) = (text(&out.stdout), text(&out.stderr));
    assert!(
        shown.contains("The 10 slowest transfers (-v: all 200; times in UTC, 2026-"),
        "{shown}"
    );
    let listed = |shown: &str| shown.lines().filter(|line| line.starts_with('t')).count();
    assert!(shown.contains("\nt199 ") && !shown.contains("\nt100 "), "{shown}");
    let all = text(&airmile(&[&args[..], &["-v"]].concat()).stdout);
    assert!(listed(&all) >= 200, "{}", listed(&all));
    let kilobytes = fs::metadata(&html).unwrap().len() as f64 / 1e3;
    let wrote = format!("wrote {html} ({kilobytes:.1} kB)");
    assert!(notes.contains(&wrote), "{wrote}: {notes}");
}
