//! Comparisons of runs and ports, on runs of the lab with known truth.

use std::fs;
use std::path::{Path, PathBuf};

use airmile::comparison::Restarts;
use airmile::model::PageCause;
use airmile::{
    CompareOptions, CompareVerdict, Comparison, GroupBy, Inputs, Progress, RadioOptions, compare,
    diagnose,
};

const SCENARIO: &str = include_str!("../../../airmile-emulate/scenarios/middlebox-ports.toml");

/// A run of the scenario, with `change` applied to its text.
fn run(dir: &Path, name: &str, change: &[(&str, &str)]) -> PathBuf {
    let text = change.iter().fold(SCENARIO.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replace(from, to)
    });
    // Its cause may have no effect on the remaining transfers.
    let text = text.split("[[causes]]").next().unwrap();
    let file = dir.join(format!("{name}.toml"));
    fs::write(&file, text).unwrap();
    let out = dir.join(name);
    airmile_lab::run_scenario(&file.display().to_string(), None, &out).unwrap();
    out
}

fn of(runs: &[PathBuf], by: GroupBy) -> Comparison {
    let options = CompareOptions { by, ..CompareOptions::default() };
    compare(runs, &options, &Progress::default()).unwrap()
}

/// Pages of two runs: what an app's developer asks after a change.
#[test]
fn pages_are_compared_one_by_one() {
    let dir = tempfile::tempdir().unwrap();
    let runs = ["page-slow-server", "page"].map(|name| {
        let out = dir.path().join(name);
        airmile_lab::run_scenario(name, None, &out).unwrap();
        some(&out, &format!("{name}-har"), &["page.har"])
    });
    let answer = of(&runs, GroupBy::Auto);
    let [page] = answer.pages.as_slice() else { panic!("{:?}", answer.pages) };
    assert_eq!(page.url, "http://server.airmile.test/page/0/0");
    let [slow, quick] = page.loads.as_slice() else { panic!("{page:?}") };
    assert!(slow.run.ends_with("page-slow-server-har") && slow.difference_ms.is_none(), "{slow:?}");
    assert_eq!(quick.difference_ms, Some(quick.load_ms - slow.load_ms));
    // The server thinks for 400 ms before each of the three levels of the page, and more often.
    assert!(quick.difference_ms.unwrap() < -1_200.0, "{quick:?}");
    assert_eq!(slow.verdict, PageCause::Server);
    assert!(slow.shares_ms["server"] > 0.5 * slow.wait_ms, "{slow:?}");
}

/// A log with several loads of the page in another, a minute apart, each 1 ms longer.
fn repeated(har: &Path, loads: i64) {
    let mut log: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(har).unwrap()).unwrap();
    for name in ["pages", "entries"] {
        let once = log["log"][name].as_array().unwrap().clone();
        let again = (0..loads).flat_map(|n| once.iter().cloned().map(move |one| (n, one)));
        let again = again.map(|(n, mut one)| {
            let at =
                one["startedDateTime"].as_str().unwrap().replace("T09:00", &format!("T09:0{n}"));
            one["startedDateTime"] = at.into();
            let page = if name == "pages" { "id" } else { "pageref" };
            one[page] = format!("load-{n}").into();
            if let Some(ms) = one.pointer("/pageTimings/onLoad").and_then(|ms| ms.as_f64()) {
                one["pageTimings"]["onLoad"] = (ms + n as f64).into();
            }
            one
        });
        log["log"][name] = again.collect();
    }
    fs::write(har, log.to_string()).unwrap();
}

/// A page that takes four times as long is the first fact, and the verdict where it is more than
/// chance; its few transfers do not hide it.
#[test]
fn a_slower_page_is_the_first_fact() {
    let dir = tempfile::tempdir().unwrap();
    let runs = ["page", "page-slow-server"].map(|name| {
        let out = dir.path().join(name);
        airmile_lab::run_scenario(name, None, &out).unwrap();
        some(&out, &format!("{name}-har"), &["page.har"])
    });
    let once = of(&runs, GroupBy::Auto);
    assert_eq!(once.verdict, CompareVerdict::CannotTell, "{once:#?}");
    let fact = "Page http://server.airmile.test/page/0/0 took 3.9 times as long to load in ";
    assert!(once.says.starts_with(fact), "{}", once.says);
    for part in [
        "page-slow-server-har as in ",
        "(2.1 s, not 536 ms",
        "is your server",
        "in each run, here 1.",
    ] {
        assert!(once.says.contains(part), "{part}: {}", once.says);
    }
    assert!(once.next_step.contains("four times"), "{}", once.next_step);

    runs.iter().for_each(|run| repeated(&run.join("page.har"), 5));
    let answer = of(&runs, GroupBy::Auto);
    assert_eq!(answer.verdict, CompareVerdict::PageLoadTime, "{answer:#?}");
    assert!(answer.says.starts_with(fact) && answer.confidence > 0.95, "{answer:#?}");
    assert!(answer.about[0].ends_with("page-slow-server-har"), "{:?}", answer.about);
    // The same page is none of a difference. The same path twice would be one run.
    let copy = some(&runs[0], "page-again", &["page.har"]);
    let same = of(&[runs[0].clone(), copy], GroupBy::Run);
    assert!(same.verdict != CompareVerdict::PageLoadTime && !same.says.contains("as long"));
}

/// Five loads before and after a change, as browsers' logs in one directory or as a directory each.
#[test]
fn repeated_runs_of_a_directory_count_as_one() {
    let dir = tempfile::tempdir().unwrap();
    let scenarios = [("page", "before"), ("page-slow-server", "after")];
    let runs = scenarios.map(|(scenario, name)| {
        let out = dir.path().join(scenario);
        airmile_lab::run_scenario(scenario, None, &out).unwrap();
        let all = dir.path().join(name);
        fs::create_dir(&all).unwrap();
        for n in 0..5 {
            fs::copy(out.join("page.har"), all.join(format!("load-{n}.har"))).unwrap();
        }
        all
    });
    let check = |answer: &Comparison| {
        assert_eq!(answer.verdict, CompareVerdict::PageLoadTime, "{answer:#?}");
        assert_eq!(answer.about, [runs[1].display().to_string()]);
        assert_eq!((answer.runs.len(), answer.pages.len()), (2, 1));
        let loads = answer.pages[0].loads.iter().map(|loads| loads.times_ms.len());
        assert_eq!(loads.collect::<Vec<_>>(), [5, 5]);
    };
    check(&of(&runs, GroupBy::Auto));
    // What cannot be read is reported.
    let empty = runs[0].join("load-5.har");
    fs::write(&empty, "").unwrap();
    let answer = of(&runs, GroupBy::Auto);
    check(&answer);
    assert!(answer.damaged(), "{:?}", answer.files);
    fs::remove_file(empty).unwrap();
    for run in &runs {
        for n in 0..5 {
            let (har, of) = (run.join(format!("load-{n}.har")), run.join(n.to_string()));
            fs::create_dir(&of).unwrap();
            fs::rename(har, of.join("page.har")).unwrap();
        }
    }
    check(&of(&runs, GroupBy::Auto));
}

/// A directory with some of a run's files.
fn some(run: &Path, name: &str, files: &[&str]) -> PathBuf {
    let dir = run.with_file_name(name);
    fs::create_dir(&dir).unwrap();
    for file in files {
        fs::copy(run.join(file), dir.join(file)).unwrap();
    }
    dir
}

#[track_caller]
fn is_of_the_middlebox(answer: &Comparison) {
    assert_eq!(answer.verdict, CompareVerdict::MiddleboxRestarts, "{answer:#?}");
    assert_eq!(
        (&answer.about[..], &answer.against[..]),
        (&["port 80".to_owned(), "port 443".to_owned()][..], &["port 7777".to_owned()][..],)
    );
    assert!(
        answer
            .says
            .starts_with("A middlebox restarts slow start on ports 80 and 443, not on port 7777")
    );
    assert!(answer.by_turns && answer.confidence > 0.95);
}

/// With all files; without the packets; with the phone's packets alone; and as three runs of one
/// port each.
#[test]
fn the_ports_of_a_middlebox_are_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    let whole = run(dir.path(), "whole", &[]);
    let answer = of(std::slice::from_ref(&whole), GroupBy::Auto);
    is_of_the_middlebox(&answer);
    let truth = true_demand(&whole);
    for (group, truth) in answer.groups.iter().zip(truth) {
        assert_eq!(group.finding.transfers, 12);
        let found = group.finding.link_demand.unwrap();
        assert!((found.value - truth).abs() < 0.03, "{}: {found:?}, truth {truth}", group.name);
        assert!(found.low.unwrap() < truth && truth < found.high.unwrap(), "{found:?} {truth}");
    }
    assert_eq!(answer.groups[0].causes[0].cause, "slow_start_restart");
    // Each port has its own server in the lab, and captures at both ends make that immaterial.
    let servers = answer.notes.iter().find(|note| note.contains("servers differ")).unwrap();
    assert!(servers.contains("captures at both ends"), "{servers}");

    let captures = some(&whole, "captures", &["phone.pcapng", "server.pcapng", "proxy.pcapng"]);
    // As the diagnosis of the same files does.
    is_of_the_middlebox(&of(std::slice::from_ref(&captures), GroupBy::Auto));
    let inputs = Inputs { files: vec![captures], ..Inputs::default() };
    let diagnosis = diagnose(&inputs, &RadioOptions::default(), &Progress::default()).unwrap();
    let says = &diagnosis.session.says;
    assert!(says.contains("A middlebox restarts it."), "{says}");

    // Each port has its own server in the lab: without captures at both ends the restarts may be
    // the server's.
    let answer = of(&[some(&whole, "phone", &["phone.pcapng"])], GroupBy::Auto);
    assert_eq!(answer.verdict, CompareVerdict::Restarts, "{answer:#?}");
    assert_eq!(answer.about, ["port 80", "port 443"]);
    assert!(answer.notes.iter().any(|note| note.contains("the difference may be theirs")));
    assert_eq!(answer.groups[0].finding.link_demand, None);
    assert_eq!(answer.missing.len(), 1);

    // Without packets the ports and connections are unknown. Link demand differs, but not why.
    let runs: Vec<PathBuf> = [("a", 80), ("b", 7_777)]
        .into_iter()
        .map(|(name, port)| {
            let ports = [80, 443, 7_777]
                .map(|from| (format!("port = {from}\nwork"), format!("port = {port}\nwork")));
            let change: Vec<(&str, &str)> =
                ports.iter().map(|(from, to)| (from.as_str(), to.as_str())).collect();
            let run = run(dir.path(), name, &change);
            some(&run, &format!("{name}-radio"), &["modem.mi2log", "app.jsonl"])
        })
        .collect();
    let answer = of(&runs, GroupBy::Auto);
    assert_eq!((answer.verdict, answer.grouped_by), (CompareVerdict::CannotTell, "run"));
    let demand = answer.pairs[0].finding.link_demand.unwrap();
    assert!(demand.estimate.value > 0.1 && demand.p < 0.05, "{demand:?}");
}

/// The server's capture shows data as they are sent; acknowledgements show the rate of the path, here
/// without a middlebox.
#[test]
fn captures_at_server_and_phone_show_the_same_rates() {
    let dir = tempfile::tempdir().unwrap();
    let proxied = "[proxy]\nports = [\n  { port = 80, slow_start_after_idle = true },\n  \
                   { port = 443, slow_start_after_idle = true },\n]";
    let whole = run(dir.path(), "whole", &[(proxied, "")]);
    let [phone, server] = ["phone", "server"].map(|name| whole.join(format!("{name}.pcapng")));
    let answer = of(&[phone, server.clone()], GroupBy::Run);
    let rate = |at: usize| answer.groups[at].finding.throughput_bps.unwrap().value;
    let rtt = |at: usize| answer.groups[at].finding.rtt_ms.unwrap();
    // Within the delay of the last acknowledgement, some 40 ms of 400.
    assert!((0.9..=1.0).contains(&(rate(1) / rate(0))), "{} and {}", rate(0), rate(1));
    assert!((rtt(1) / rtt(0) - 1.0).abs() < 0.1, "{} and {}", rtt(0), rtt(1));
    let notes = |answer: &Comparison, words: &str| {
        assert!(answer.notes.iter().any(|note| note.contains(words)), "{:?}", answer.notes);
    };
    notes(&answer, "the captures are from different places");
    notes(&of(&[server], GroupBy::Auto), "was captured nearer to the server than to the phone");
}

/// A capture at one end does not show which host restarts, with the log of the application or without.
#[test]
fn one_capture_does_not_show_who_restarts() {
    let dir = tempfile::tempdir().unwrap();
    let proxied = "[proxy]\nports = [\n  { port = 80, slow_start_after_idle = true },\n  \
                   { port = 443, slow_start_after_idle = true },\n]";
    let restarting = ("[server_tcp]\nslow_start_after_idle = false", "");
    let runs = [
        run(dir.path(), "restarts", &[(proxied, ""), restarting]),
        run(dir.path(), "keeps", &[(proxied, "")]),
    ];
    let check = |name: &str, files: &[&str], by: &str| {
        let parts = runs.each_ref().map(|whole| {
            let whole_name = whole.file_name().unwrap().display();
            some(whole, &format!("{whole_name}-{name}"), files)
        });
        let answer = of(&parts, GroupBy::Run);
        assert_eq!(answer.verdict, CompareVerdict::Restarts, "{answer:#?}");
        assert!(answer.says.ends_with(by), "{}", answer.says);
    };
    let unknown = "by the sender, or by a middlebox on its path.";
    check("server", &["server.pcapng"], unknown);
    check("logged", &["server.pcapng", "app.jsonl"], unknown);
    let both = "by the sender, as captures at both ends show.";
    check("both", &["server.pcapng", "phone.pcapng"], both);
}

/// The true link demand of each port.
fn true_demand(run: &Path) -> [f64; 3] {
    let text = fs::read_to_string(run.join("transfer_truth.csv")).unwrap();
    let mut reader = csv_rows(&text);
    let mut sums = [(0.0, 0.0); 3];
    for row in reader.by_ref() {
        let at = ["http-", "https-", "unreserved-"]
            .iter()
            .position(|name| row["id"].starts_with(name))
            .unwrap();
        sums[at].0 += row["throughput_time_ms"].parse::<f64>().unwrap();
        sums[at].1 += row["duration_ms"].parse::<f64>().unwrap();
    }
    sums.map(|(queued, duration)| queued / duration)
}

fn csv_rows(text: &str) -> impl Iterator<Item = std::collections::HashMap<String, String>> {
    let mut lines = text.lines();
    let header: Vec<String> = lines.next().unwrap().split(',').map(str::to_owned).collect();
    lines.map(move |line| header.iter().cloned().zip(line.split(',').map(str::to_owned)).collect())
}

/// Without the middlebox's restarts the ports are equal; if the server itself restarts, too, all of
/// them do.
#[test]
fn ports_that_are_the_same_are_not_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    let quiet = ("true }", "false }");
    let answer = of(&[run(dir.path(), "quiet", &[quiet])], GroupBy::Auto);
    let expected = [CompareVerdict::NoDifference, CompareVerdict::CannotTell];
    assert!(expected.contains(&answer.verdict), "{}", answer.says);
    assert!(answer.groups.iter().all(|g| g.finding.restarts_slow_start == Restarts::No));

    let server = ("[server_tcp]\nslow_start_after_idle = false", "");
    let answer = of(&[run(dir.path(), "server", &[server])], GroupBy::Auto);
    assert_ne!(answer.verdict, CompareVerdict::MiddleboxRestarts, "{}", answer.says);
    assert!(answer.groups.iter().all(|g| g.finding.restarts_slow_start == Restarts::Yes));
}

/// A link of 5 Mbit/s before the base station of one run: its rate is limited, and neither by a
/// restart nor by the radio.
#[test]
fn a_rate_that_is_held_down_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let quiet = ("true }", "false }");
    let line = "[core.down.limit]\nrate_bps = 5_000_000\nqueue_bytes = 200_000\n\n[server_tcp]";
    let free = run(dir.path(), "free", &[quiet]);
    let held = run(dir.path(), "held", &[quiet, ("[server_tcp]", line)]);
    let answer = of(&[free.clone(), held.clone()], GroupBy::Run);
    assert_eq!(answer.verdict, CompareVerdict::Throttling, "{answer:#?}");
    assert!(answer.about[0].ends_with("held") && answer.against[0].ends_with("free"));
    let rate = answer.groups[1].finding.late_rate_bps.unwrap().value;
    assert!((4.0e6..5.1e6).contains(&rate), "{rate}");
}

#[test]
fn too_few_transfers_are_no_verdict() {
    let dir = tempfile::tempdir().unwrap();
    let few = ("count = 12", "count = 2");
    let answer = of(&[run(dir.path(), "few", &[few])], GroupBy::Auto);
    assert_eq!(answer.verdict, CompareVerdict::CannotTell);
    assert!(answer.says.contains("too few transfers"), "{}", answer.says);
}

#[test]
fn what_is_no_run_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("notes.txt"), "of the day").unwrap();
    let refused = |path: &Path, words: &str| {
        let error = compare(&[path.to_owned()], &CompareOptions::default(), &Progress::default());
        let error = error.unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    };
    refused(dir.path(), "holds no run");
    refused(&dir.path().join("nowhere"), "nowhere");
    refused(Path::new("-"), "can be read only once");
    fs::write(dir.path().join("probe.json"), "{\n  \"document\": \"probe\",\n  \"ver").unwrap();
    refused(dir.path(), "not a complete log of `airmile probe`");
}
