//! Pages of the lab with an injected cause: the verdict names it, with the request and the saving
//! of a fix.

use std::path::{Path, PathBuf};

use airmile::model::{PageCause, Verdict};
use airmile::{Diagnosis, Inputs, Limits, Page, Progress, RadioOptions, TimePoint, diagnose};
use airmile_emulate::Scenario;
use airmile_emulate::workload::{WebConfig, Workload};

/// A page of a document and six objects in an idle cell.
fn page(change: impl Fn(&mut Scenario, &mut WebConfig)) -> (tempfile::TempDir, Scenario) {
    let mut scenario = airmile_lab::load("page").unwrap();
    let Workload::Web(mut web) = scenario.apps[0].workload.clone() else { panic!() };
    change(&mut scenario, &mut web);
    scenario.apps[0].workload = Workload::Web(web);
    let dir = tempfile::tempdir().unwrap();
    airmile_lab::leave(&scenario, &dir.path().join("run"), false).unwrap();
    (dir, scenario)
}

fn diagnosed(dir: &Path, names: &[&str]) -> Diagnosis {
    let files = names.iter().map(|name| dir.join("run").join(name)).collect();
    let inputs = Inputs { files, ..Inputs::default() };
    diagnose(&inputs, &RadioOptions::default(), &Progress::default()).unwrap()
}

fn only(answer: &Diagnosis) -> &Page {
    let [page] = answer.pages.as_slice() else { panic!("{} pages", answer.pages.len()) };
    let sum: f64 = page.shares.values().sum();
    assert!((sum - page.wait_ms).abs() < 0.01, "{sum} of {}", page.wait_ms);
    page
}

fn saved(page: &Page, cause: PageCause) -> f64 {
    page.savings.iter().find(|one| one.cause == cause).map_or(0.0, |one| one.saves_ms)
}

#[test]
fn a_slow_server_is_named_with_its_request_and_what_it_costs() {
    let load = |think_ms: u64| {
        let (dir, _) = page(|_, web| web.think_ms = think_ms);
        let answers = ["page.har", "phone.pcapng", "modem.mi2log"];
        let each = (1..=3).map(|n| diagnosed(dir.path(), &answers[..n]));
        (each.collect::<Vec<_>>(), dir)
    };
    let (slow, _slow) = load(400);
    let (quick, _quick) = load(0);
    let quick_ms = only(&quick[0]).wait_ms;
    for (answer, evidence) in slow.iter().zip(["log", "packets", "radio"]) {
        let page = only(answer);
        assert_eq!((page.verdict, page.evidence), (PageCause::Server, evidence), "{page:#?}");
        assert!(page.says.contains("your server"), "{}", page.says);
        assert_eq!(page.url, "http://server.airmile.test/page/0/0");
        let cost_ms = page.wait_ms - quick_ms;
        let saves_ms = saved(page, PageCause::Server);
        assert!((saves_ms - cost_ms).abs() < 0.1 * page.wait_ms, "{saves_ms} {cost_ms}");
        let first = &page.savings[0];
        assert!(first.says.contains("would save") && first.says.contains("/page/0/"), "{first:?}");
        let again = |next: &str| next.contains("capture packets at the phone and the server");
        assert!(!answer.transfers.iter().any(|one| again(&one.next_step)), "{evidence}");
    }
}

/// A narrow cell, by the modem log and the browser's log alone: what was received while the downlink
/// queue was not empty is the radio's.
#[test]
fn a_narrow_cell_is_named_without_packets() {
    let (dir, _) = page(|scenario, web| {
        (scenario.cell.n_prb, scenario.uplink.max_prb) = (6, 6);
        (web.objects, web.page_bytes) = (12, 800_000);
    });
    let answers = [&["page.har"][..], &["page.har", "modem.mi2log"]];
    let [log, radio] = answers.map(|files| diagnosed(dir.path(), files));
    let (log, radio) = (only(&log), only(&radio));
    assert_eq!((log.verdict, radio.verdict), (PageCause::Transfer, PageCause::Radio));
    assert_eq!((log.evidence, radio.evidence), ("log", "radio"));
    assert!(radio.shares["radio"] > 0.75 * radio.wait_ms, "{}", radio.says);
}

#[test]
fn a_late_name_lookup_is_named() {
    let (dir, _) = page(|_, web| web.dns_ms = 900);
    let answer = diagnosed(dir.path(), &["page.har", "phone.pcapng"]);
    let page = only(&answer);
    assert_eq!(page.verdict, PageCause::Dns, "{}", page.says);
    assert!((page.shares["dns"] - 900.0).abs() < 2.0, "{:?}", page.shares);
    assert!((saved(page, PageCause::Dns) - 900.0).abs() < 2.0);
}

#[test]
fn requests_that_wait_for_each_other_are_blocked() {
    let (dir, _) = page(|_, web| (web.lanes, web.objects, web.think_ms) = (1, 16, 60));
    let answer = diagnosed(dir.path(), &["page.har", "phone.pcapng"]);
    let page = only(&answer);
    assert_eq!(page.verdict, PageCause::Blocked, "{}", page.says);
    let blocked = page.requests.iter().flat_map(|one| &one.parts);
    assert!(
        blocked.filter(|part| part.cause == PageCause::Blocked).all(|p| p.blocked_by.is_some())
    );
}

/// A scenario of a page with 20 objects, and the page's answers by log, by packets and with the
/// radio's log.
fn answers(text: &str) -> (Vec<Diagnosis>, tempfile::TempDir) {
    let page = "\n[[apps]]\nname = \"page\"\nstart_ms = 3_000\nworkload = { kind = \"web\", \
                objects = 20, page_bytes = 1_500_000, depth = 3, parse_ms = 20 }\n";
    let text = format!("seed = 31\nduration_ms = 60_000\n{text}{page}");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("scenario.toml");
    std::fs::write(&path, text).unwrap();
    let scenario = airmile_lab::load(path.to_str().unwrap()).unwrap();
    airmile_lab::leave(&scenario, &dir.path().join("run"), false).unwrap();
    let files = ["page.har", "phone.pcapng", "modem.mi2log"];
    ((1..=3).map(|n| diagnosed(dir.path(), &files[..n])).collect(), dir)
}

/// An upload of the same phone delays requests and acknowledgements: it leads, ahead of the round
/// trips and the slow start that it lengthens.
#[test]
fn an_upload_during_a_page_leads() {
    let upload = "[uplink]\ngrant_every_tti = 4\nfirmware_bytes = 300_000\n\n[[apps]]\n\
                  name = \"upload\"\nstart_ms = 500\n\
                  workload = { kind = \"upload\", bytes = 6_000_000 }\n";
    let (with, _dir) = answers(upload);
    for answer in &with[1..] {
        let page = only(answer);
        println!("{}: {}", page.evidence, page.says);
        assert_eq!(page.verdict, PageCause::UplinkQueue, "{}", page.says);
    }
}

/// Parallel responses over a slow line queue, and first bytes wait in that queue: a log alone cannot
/// blame the server, and names the capture that would show it.
#[test]
fn queueing_of_parallel_responses_is_not_the_servers_for_certain() {
    let line = "[core.down.limit]\nrate_bps = 2_000_000\nqueue_bytes = 250_000\n";
    let (with, _dir) = answers(line);
    let page = only(&with[0]);
    println!("{}", page.says);
    let share = |cause: &str| page.shares.get(cause).copied().unwrap_or(0.0) / page.wait_ms;
    assert!(share("server") < 0.1, "{}", page.says);
    assert!(page.says.contains("your server or a queue"), "{}", page.says);
    assert!(page.says.contains("a packet capture would show"), "{}", page.says);
}

/// Packets separate the two: what arrived on other connections shows since when it had been queued.
#[test]
fn packets_name_the_line_in_which_first_bytes_are_queued() {
    let line = "[core.down.limit]\nrate_bps = 2_000_000\nqueue_bytes = 250_000\n";
    let (with, _dir) = answers(line);
    for answer in &with[1..] {
        let page = only(answer);
        println!("{}: {}", page.evidence, page.says);
        let share = |cause: &str| page.shares.get(cause).copied().unwrap_or(0.0) / page.wait_ms;
        assert_eq!(page.verdict, PageCause::Wireline, "{}", page.says);
        assert!(share("server") < 0.05, "{}", page.says);
        // The line carries 1.5 MB in 6 of its 6.6 seconds, in parallel or not.
        let blocked_ms = saved(page, PageCause::Blocked);
        assert!(blocked_ms <= 0.08 * page.wait_ms, "{blocked_ms} of {}", page.wait_ms);
        for part in ["first byte", "in the queue of the path", "minimum round trip"] {
            assert!(page.says.contains(part), "{part}: {}", page.says);
        }
    }
}

/// A browser's log without some of its requests, as an export of a filtered list has it.
fn without_requests(dir: &Path, keep: impl Fn(usize, usize) -> bool) {
    let path = dir.join("run/page.har");
    let mut har: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    let entries = har["log"]["entries"].as_array_mut().unwrap();
    let (mut n, all) = (0, entries.len());
    entries.retain(|_| {
        n += 1;
        keep(n - 1, all)
    });
    std::fs::write(&path, har.to_string()).unwrap();
}

/// Time in which only requests passed that the log lacks is not the page's own.
#[test]
fn requests_missing_in_the_log_are_named() {
    let (_, dir) = answers("[core.down.limit]\nrate_bps = 2_000_000\nqueue_bytes = 250_000\n");
    without_requests(dir.path(), |n, all| n < all / 2);
    let answer = diagnosed(dir.path(), &["page.har", "phone.pcapng"]);
    let page = only(&answer);
    println!("{}", page.says);
    let share = |cause: &str| page.shares.get(cause).copied().unwrap_or(0.0) / page.wait_ms;
    assert!(share("unlogged") > 0.3 && share("browser") < 0.1, "{}", page.says);
    assert!(page.says.contains("requests that the log lacks"), "{}", page.says);
}

/// The rest of the log still fits the capture at one offset, whatever is missing.
#[test]
fn a_log_with_half_of_its_requests_is_not_moved() {
    let line = "[core.down.limit]\nrate_bps = 2_000_000\nqueue_bytes = 250_000\n";
    let scenarios: [fn(&str) -> tempfile::TempDir; 3] =
        [|line| answers(line).1, |_| answers("").1, |_| page(|_, _| {}).0];
    let keeps: [fn(usize, usize) -> bool; 4] =
        [|n, _| n % 2 == 0, |n, _| n % 2 == 1, |n, all| n < all / 2, |n, all| n >= all / 2];
    let mut aligned = 0;
    for scenario in scenarios {
        for keep in keeps {
            let dir = scenario(line);
            without_requests(dir.path(), keep);
            let answer = diagnosed(dir.path(), &["page.har", "phone.pcapng"]);
            let clock = answer.clocks.iter().find(|one| one.file == "transfers").unwrap();
            println!("{}", clock.says);
            let Some(offset_ms) = clock.offset_ms else { continue };
            assert!(!clock.corrected, "{}", clock.says);
            assert!(offset_ms.abs() <= clock.error_ms.unwrap(), "{}", clock.says);
            aligned += 1;
        }
    }
    assert!(aligned >= 6, "{aligned}");
}

/// The diagnosis of one run's browser log and another run's capture.
fn mixed(log: &Path, capture: &Path) -> airmile::Result<Diagnosis> {
    let files = vec![log.join("run/page.har"), capture.join("run/phone.pcapng")];
    let inputs = Inputs { files, ..Inputs::default() };
    diagnose(&inputs, &RadioOptions::default(), &Progress::default())
}

/// A page of which only a part is known gets no verdict, and no savings that the cut made.
#[test]
fn a_part_of_a_load_has_no_verdict() {
    let (dir, _) = page(|_, web| web.think_ms = 400);
    let run = dir.path().join("run");
    let har = std::fs::read(run.join("page.har")).unwrap();
    std::fs::write(run.join("cut.har"), &har[..har.len() / 2]).unwrap();
    let whole = diagnosed(dir.path(), &["page.har"]);
    let start_us = only(&whole).start_us.unwrap();
    let until = Limits {
        to: Some(TimePoint::Absolute(start_us * 1_000 + 800_000_000)),
        ..Limits::default()
    };
    let all = ["page.har", "phone.pcapng", "modem.mi2log"];
    let limited = (1..=3).map(|n| (&all[..n], until, "between --from and --to"));
    let cut = (&["cut.har"][..], Limits::default(), "in the log, which is damaged");
    for (names, limits, words) in limited.chain([cut]) {
        let files = names.iter().map(|name| run.join(name)).collect();
        let inputs = Inputs { files, ..Inputs::default() };
        let options = RadioOptions { limits, ..RadioOptions::default() };
        let answer = diagnose(&inputs, &options, &Progress::default()).unwrap();
        let page = only(&answer);
        assert_eq!(page.verdict, PageCause::Unknown, "{names:?}");
        assert!(page.says.contains(words) && page.savings.is_empty(), "{names:?} {}", page.says);
        assert!(page.requests.len() < only(&whole).requests.len(), "{names:?}");
    }
    // Limits around the whole load change nothing.
    let until = Limits {
        to: Some(TimePoint::Absolute(start_us * 1_000 + 60_000_000_000)),
        ..Limits::default()
    };
    let inputs = Inputs { files: vec![run.join("page.har")], ..Inputs::default() };
    let options = RadioOptions { limits: until, ..RadioOptions::default() };
    let answer = diagnose(&inputs, &options, &Progress::default()).unwrap();
    assert_eq!(only(&answer), only(&whole));
}

/// A log and a capture of different runs at about the same time: the page is judged by its log
/// alone, the transfers are those of the packets, and both state why.
#[test]
fn a_capture_of_another_run_is_not_joined() {
    let (quick, _) = page(|_, _| ());
    let (slow, _) = page(|_, web| web.think_ms = 400);
    for (log, capture) in [(&quick, &slow), (&slow, &quick)] {
        let alone = diagnosed(log.path(), &["page.har"]);
        let answer = mixed(log.path(), capture.path()).unwrap();
        let page = only(&answer);
        assert_eq!((page.evidence, page.verdict), ("log", only(&alone).verdict), "{}", page.says);
        assert!(page.says.contains("may be of another run"), "{}", page.says);
        assert!(answer.missing[0].what.contains("may be of another run"), "{:?}", answer.missing);
        assert_eq!(answer.transfers_from, "detected");
        let what = &answer.missing[0].what;
        // A modem log of the capture's run does not change that.
        let file = |of: &Path, name: &str| of.join("run").join(name);
        let files = vec![
            file(capture.path(), "modem.mi2log"),
            file(capture.path(), "phone.pcapng"),
            file(log.path(), "page.har"),
        ];
        let inputs = Inputs { files, ..Inputs::default() };
        let radio = diagnose(&inputs, &RadioOptions::default(), &Progress::default()).unwrap();
        let page = only(&radio);
        assert_eq!((page.evidence, page.verdict), ("log", only(&alone).verdict), "{}", page.says);
        assert_eq!((&radio.missing[0].what, radio.transfers_from), (what, "detected"));
        assert!(page.says.contains(what), "{}", page.says);
    }
}

/// Changes the times and the bytes of a run's browser log.
fn change_har(dir: &Path, seconds: i64, bytes: impl Fn(u64) -> u64) {
    let path = dir.join("run/page.har");
    let mut har: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    // 2026-01-05T09:00:07.503Z
    let later = |text: &mut serde_json::Value| {
        let time = text.as_str().unwrap();
        let field = |at: std::ops::Range<usize>| time[at].parse::<i64>().unwrap();
        let s = field(11..13) * 3_600 + field(14..16) * 60 + field(17..19) + seconds;
        let (h, m, s) = (s / 3_600, s / 60 % 60, s % 60);
        *text = format!("{}T{h:02}:{m:02}:{s:02}{}", &time[..10], &time[19..]).into();
    };
    let log = &mut har["log"];
    log["pages"].as_array_mut().unwrap().iter_mut().for_each(|p| later(&mut p["startedDateTime"]));
    for entry in log["entries"].as_array_mut().unwrap() {
        later(&mut entry["startedDateTime"]);
        let size = &mut entry["response"]["bodySize"];
        *size = bytes(size.as_u64().unwrap()).into();
    }
    std::fs::write(path, har.to_string()).unwrap();
}

/// The bytes of a modem log show a browser's log of another run, too, at the same wall time.
#[test]
fn a_log_of_other_bytes_than_the_radio_s_is_not_joined() {
    let (dir, _) = page(|_, web| (web.think_ms, web.page_bytes) = (600, 400_000));
    let (other, _) = page(|_, web| web.page_bytes = 400_000);
    let of = |files: Vec<PathBuf>| {
        let inputs = Inputs { files, ..Inputs::default() };
        diagnose(&inputs, &RadioOptions::default(), &Progress::default()).unwrap()
    };
    let own_file = |name: &str| dir.path().join("run").join(name);
    let answer = |log: &Path| of(vec![log.join("run/page.har"), own_file("modem.mi2log")]);
    let own = answer(dir.path());
    assert_eq!((only(&own).evidence, own.transfers_from), ("radio", "given"));
    let strange = answer(other.path());
    let page = only(&strange);
    assert_eq!((page.evidence, strange.transfers_from), ("log", "detected"), "{}", page.says);
    let doubt = "the modem log may be of another run than ";
    assert!(page.says.contains(doubt), "{}", page.says);
    assert!(strange.missing.iter().any(|one| one.what.starts_with(doubt)), "{:?}", strange.missing);
    // Another log of the application is of this run.
    let others = [other.path().join("run/page.har"), own_file("app.jsonl")];
    let of_run = ["modem.mi2log", "transfers.csv"].map(own_file);
    let both = of([&of_run[..], &others].concat());
    assert!(both.clocks.iter().any(|clock| clock.file.ends_with("app.jsonl")), "{:?}", both.clocks);
}

/// A filter leaves a part of the log's bytes, as another run does: neither is refused.
#[test]
fn a_capture_of_other_bytes_is_not_joined() {
    let (dir, _) = page(|_, web| web.think_ms = 60);
    let (other, _) = page(|_, web| (web.think_ms, web.page_bytes) = (400, 150_000));
    change_har(dir.path(), 0, |bytes| bytes * 4);
    let answer = mixed(dir.path(), other.path()).unwrap();
    let page = only(&answer);
    assert_eq!(page.evidence, "log", "{}", page.says);
    assert!(page.says.contains("% of the bytes"), "{}", page.says);
}

/// A table defines the transfers, with a capture, too, and a browser's log keeps its own clock.
#[test]
fn a_table_and_a_log_have_a_clock_each() {
    let (dir, _) = page(|_, _| ());
    change_har(dir.path(), 2, |bytes| bytes);
    let run = dir.path().join("run");
    let text = std::fs::read_to_string(run.join("transfers.csv")).unwrap();
    let rows: Vec<Vec<&str>> = text.lines().skip(1).map(|row| row.split(',').collect()).collect();
    let table = rows.iter().map(|row| format!("t{},{},{},{}\n", row[0], row[1], row[2], row[5]));
    let path = run.join("table.csv");
    std::fs::write(&path, format!("id,start_us,end_us,bytes\n{}", table.collect::<String>()))
        .unwrap();
    let files = vec![run.join("phone.pcapng"), run.join("page.har")];
    let inputs = Inputs { files, transfers: Some(path), ..Inputs::default() };
    let answer = diagnose(&inputs, &RadioOptions::default(), &Progress::default()).unwrap();
    assert_eq!(answer.transfers.len(), rows.len());
    for (one, row) in answer.transfers.iter().zip(&rows) {
        assert_eq!(one.id, format!("t{}", row[0]));
        assert!(one.finding.bytes > Some(0), "{}", one.id);
    }
    let clock = answer.clocks.iter().find(|clock| clock.file.ends_with("page.har")).unwrap();
    assert!((clock.offset_ms.unwrap() - 2_000.0).abs() < 100.0, "{}", clock.says);
    assert_eq!(only(&answer).evidence, "packets");
}

/// Another hour is refused with the offset that fits, unless it is a time zone's.
#[test]
fn a_log_of_another_hour_is_refused_or_aligned() {
    let (dir, _) = page(|_, _| ());
    change_har(dir.path(), 1_000, |bytes| bytes);
    let error = mixed(dir.path(), dir.path()).unwrap_err().to_string();
    assert!(error.contains("page.har does not belong to"), "{error}");
    assert!(error.contains("traffic matches if -1000."), "{error}");
    change_har(dir.path(), 2_600, |bytes| bytes);
    let answer = mixed(dir.path(), dir.path()).unwrap();
    assert_eq!(only(&answer).evidence, "packets");
    assert!(answer.clocks[0].says.contains("3600"), "{:?}", answer.clocks);
}

/// Some of the answers end in a slow start: too short to be judged by their rate.
#[test]
fn a_request_that_waits_for_the_server_most_of_its_time_is_the_servers() {
    let (dir, _) = page(|scenario, web| {
        (scenario.core.rtt_ms, web.objects, web.depth) = (25, 14, 2);
        (web.page_bytes, web.think_ms) = (126_658, 658);
    });
    let answer = diagnosed(dir.path(), &["page.har", "phone.pcapng"]);
    for one in &answer.transfers {
        let waits = one.application.as_ref().and_then(|app| app.wait_ms).unwrap_or(0.0);
        let total_ms = one.finding.duration_ms;
        assert!(waits < 0.8 * total_ms || one.verdict == Verdict::SenderLimited, "{one:?}");
    }
}

/// An image is received for 1.47 s; a request of its own goes through all of its phases until 2 s. The path is busy
/// for 1.9 s, so that each of them alone would save 100 ms: the longest is the verdict, and no sentence says that
/// another saves more.
#[test]
fn of_equal_savings_the_longest_cause_leads() {
    let entry = |url: &str, [blocked, dns, connect, wait, receive]: [i64; 5]| {
        serde_json::json!({
            "startedDateTime": "2026-01-05T09:00:00.000Z",
            "time": blocked + dns + connect + wait + receive,
            "request": { "method": "GET", "url": format!("https://a.example/{url}") },
            "response": { "status": 200, "content": { "size": 9_000, "mimeType": "image/png" } },
            "timings": { "blocked": blocked, "dns": dns, "connect": connect, "send": 0, "wait": wait,
                "receive": receive },
        })
    };
    let entries = [entry("image", [0, 0, 0, 0, 1_470]), entry("last", [120, 150, 800, 500, 430])];
    let har = serde_json::json!({ "log": { "version": "1.2", "entries": entries } });
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("run")).unwrap();
    std::fs::write(dir.path().join("run/page.har"), har.to_string()).unwrap();
    let answer = diagnosed(dir.path(), &["page.har"]);
    let page = only(&answer);
    let saves: Vec<_> = page.savings.iter().map(|one| (one.cause, one.saves_ms)).collect();
    assert!(saves.len() >= 4 && saves.iter().all(|(_, ms)| *ms == 100.0), "{saves:?}");
    assert_eq!((page.verdict, saves[0].0), (PageCause::Setup, PageCause::Setup), "{}", page.says);
    assert!(!page.says.contains("would take"), "{}", page.says);
}
