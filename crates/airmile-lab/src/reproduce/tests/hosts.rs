//! Experiments between real hosts, tested with simulated hosts.

use super::*;

/// Simulated hosts: the scenario's own applications in virtual time, with the files of a
/// run in real time.
struct Virtual;

impl Hosts for Virtual {
    fn missing(&self, programs: &[Program]) -> Option<String> {
        programs.contains(&Program::Player).then(|| "no player".to_owned())
    }

    fn run(
        &self,
        scenario: &Scenario,
        job: &Job,
        read: &mut dyn FnMut(&std::path::Path) -> Result<()>,
    ) -> Result<Lateness> {
        assert!(job.script.starts_with("curl ") && job.file_bytes > 0, "{job:?}");
        let dir = tempfile::tempdir().unwrap();
        crate::run::leave(scenario, &dir.path().join("run"), false)?;
        read(&dir.path().join("run"))?;
        Ok(late(2_000))
    }
}

/// Statistics in which all TTIs have this lateness.
fn late(us: u64) -> Lateness {
    Lateness {
        n_tti: 100,
        p50_us: us,
        p99_us: us,
        p999_us: us,
        max_us: us,
        late_ttis: if us > 1_000 { 100 } else { 0 },
        limit_us: 1_000,
        work_p99_us: us,
    }
}

/// Hosts whose curl and player are three downloads of 350 kB every 4 s in virtual time,
/// over the port named in the script; with the player's log.
struct Scripted {
    /// Runs over this port fail.
    fails_at: Option<u16>,
}

impl Hosts for Scripted {
    fn missing(&self, _: &[Program]) -> Option<String> {
        None
    }

    fn run(
        &self,
        scenario: &Scenario,
        job: &Job,
        read: &mut dyn FnMut(&std::path::Path) -> Result<()>,
    ) -> Result<Lateness> {
        let named = job.script.split("$AIRMILE_SERVER:").nth(1);
        let digits = |words: &str| words.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok();
        let port: u16 = named.and_then(digits).unwrap_or(80);
        if self.fails_at == Some(port) {
            return Err(Error::Option("the browser ended".to_owned()));
        }
        let app = format!(
            "[[apps]]\nname = \"segment\"\nport = {port}\n\
             workload = {{ kind = \"periodic\", bytes = 350_000, count = 3, period_ms = 4_000 }}"
        );
        let apps = Scenario::from_toml(&app).unwrap().apps;
        let scenario = Scenario { apps, ..scenario.clone() };
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("run");
        let run = crate::run::leave(&scenario, &dir, false)?;
        assert_eq!((run.transfers.len(), job.script.contains("PLAYER")), (3, job.video.is_some()));
        // Past the middlebox 1.5 times the bitrate, and a third of the stall.
        let keeps_warm = job.script.contains("--keep-warm");
        let (bps, stalled_ms) = match port {
            7777 => (1_200_000, 100),
            _ if keeps_warm => (1_120_000, 100),
            _ => (800_000, 300),
        };
        let mut log = String::from("{\"event\":\"speed_test\",\"value\":675000}\n");
        for (n, (from_ns, to_ns)) in monitor::spans(&dir)?.into_iter().enumerate() {
            log += &format!(
                "{{\"at_ns\":{from_ns},\"event\":\"request\",\"id\":\"s{n}\"}}\n\
                 {{\"at_ns\":{to_ns},\"event\":\"end\",\"id\":\"s{n}\",\"bytes\":350000,\"value\":{bps}}}\n\
                 {{\"at_ns\":{to_ns},\"event\":\"buffer\",\"value\":4000}}\n"
            );
        }
        log += &format!("{{\"event\":\"resumed\",\"value\":{stalled_ms}}}\n");
        log += "{\"event\":\"speed_test\",\"value\":650000}\n";
        if keeps_warm {
            let text = r#"{"fetches":20,"bytes":10500,"mediaBytes":1050000,"kept":1,"alone":1,"radioMj":11,"radioWithoutMj":10}"#;
            let event = serde_json::json!({"event": "keep_warm", "what": text});
            log += &format!("{event}\n");
        }
        std::fs::write(dir.join("command.jsonl"), log).unwrap();
        read(&dir)?;
        Ok(late(200))
    }
}

#[test]
fn a_video_between_tests_of_speed() {
    let all = Scripted { fails_at: None };
    let Reproduced { rows, figures, failed, .. } = with_hosts("bursttracker-fig1", Some(&all));
    check_figures("bursttracker-fig1", &figures);
    assert_eq!(failed, None);
    let of = |what: &str| ours(&rows, what);
    assert_eq!(of("speed test before the video"), 5.4);
    assert_eq!(of("speed test after the video"), 5.2);
    // A fifth of a cell, and a slow start.
    let video = of("video, mean throughput of its segments");
    assert!((1.0..5.4).contains(&video), "{video}");
}

#[test]
fn segments_through_the_middlebox_and_past_it() {
    let all = Scripted { fails_at: None };
    let Reproduced { rows, figures, .. } = with_hosts("bursttracker-fig8", Some(&all));
    check_figures("bursttracker-fig8", &figures);
    let of = |what: &str| ours(&rows, what);
    let release = of("port 80: release by the server, median of segments");
    let [through, past] = [80, 7777].map(|port| of(&format!("port {port}: delivery to the phone")));
    // As in virtual time, where the server is as fast as figure 7's.
    assert!((10.0..60.0).contains(&release), "{release}");
    assert!(release < past && 1.5 * past < through && through < 1_500.0, "{past} {through}");
}

#[test]
fn ports_of_a_middlebox() {
    let all = Scripted { fails_at: None };
    let Reproduced { rows, figures, .. } = with_hosts("bursttracker-fig9", Some(&all));
    check_figures("bursttracker-fig9", &figures);
    check_shares(&rows);
    let of = |what: &str| ours(&rows, what);
    let segments =
        |port: u16, what: &str| of(&format!("0.78 Mbit/s, segments of 4 s, port {port}: {what}"));
    for what in ["link demand", "true link demand", "throughput of a segment after a pause, median"]
    {
        let [through, tls, past] = [80, 443, 7777].map(|port| segments(port, what));
        // The same seed: the two ports of the middlebox have equal results.
        assert!(
            through < past && (through - tls).abs() < 0.1 * through,
            "{what}: {through} {tls} {past}"
        );
    }
    assert_eq!(of("bitrate, port 7777 against 80").round(), 50.0);
    assert_eq!(of("time stalled, port 80"), 300.0);
    assert_eq!(of("time stalled, port 7777 against 80").round(), -67.0);
    // No switches: there is nothing to reduce.
    let switches = rows.iter().find(|row| row.what.starts_with("switches")).unwrap();
    assert_eq!((switches.ours, switches.n), (None, 1));
}

#[test]
fn a_window_that_is_kept_warm() {
    let all = Scripted { fails_at: None };
    let name = "bursttracker-fig9-warm";
    let Reproduced { rows, figures, .. } = with_hosts(name, Some(&all));
    check_figures(name, &figures);
    for player in ["segments of 400 kB", "0.7 of the throughput"] {
        let of = |what: &str| ours(&rows, &format!("{player}: {what}"));
        assert_eq!(of("bitrate past it against through it").round(), 50.0);
        assert_eq!(of("kept warm: share of that gain in bitrate").round(), 80.0);
        assert_eq!(of("kept warm: fetches"), 20.0);
        assert_eq!(of("kept warm: extra bytes by the module's own count"), 1.0);
        assert_eq!(of("kept warm: more radio energy by its model").round(), 10.0);
        // The same runs in virtual time: no data between segments.
        assert!(of("kept warm: extra bytes, both ways").abs() < 0.1);
        let [through, past] = ["through the middlebox", "past it"]
            .map(|way| of(&format!("{way}: throughput of a segment after a pause, median")));
        assert!(through < past, "{through} {past}");
    }
}

#[test]
fn what_fails_takes_nothing_from_the_others() {
    let some = Scripted { fails_at: Some(443) };
    let Reproduced { rows, failed, .. } = with_hosts("bursttracker-fig9", Some(&some));
    let text = failed.unwrap();
    assert!(text.starts_with("run 2 of 3: the browser ended; run 2 of 3: "), "{text}");
    assert_eq!(ours(&rows, "bitrate, port 7777 against 80").round(), 50.0);
    let lost = "adaptive, segments of 2 s, port 443: link demand";
    assert!(rows.iter().any(|row| row.what == lost && row.ours.is_none() && row.n == 0));
    // All of it failed, and the following experiments still run.
    let none = Scripted { fails_at: Some(80) };
    let names = ["virtual-vs-real", "bursttracker-fig8"].map(str::to_owned);
    let done = reproduce(&names, Size::Quick, Some(&none), &RunCount::default(), &mut ()).unwrap();
    assert!(done.experiments.iter().all(|one| one.failed.is_some() && one.invalid.is_none()));
    let past = "port 7777: delivery to the phone";
    assert!(ours(&done.experiments[0].rows, past) > 0.0);
}

fn with_hosts(name: &str, hosts: Option<&dyn Hosts>) -> Reproduced {
    let names = [name.to_owned()];
    let done = reproduce(&names, Size::Quick, hosts, &RunCount::default(), &mut ()).unwrap();
    done.experiments.into_iter().next().unwrap()
}

#[test]
fn real_hosts_are_asked_for_and_their_lateness_is_told() {
    for name in ["bursttracker-fig1", "bursttracker-fig8", "bursttracker-fig9"] {
        let Reproduced { rows, skipped, invalid, .. } = with_hosts(name, None);
        assert!(rows.is_empty() && skipped.is_some() && invalid.is_none(), "{name}");
    }
    let skipped = with_hosts("bursttracker-fig9", Some(&Virtual)).skipped;
    assert_eq!(skipped.as_deref(), Some("no player"));
    // Values read from files match those observed in memory.
    let Reproduced { rows, skipped, invalid, .. } = with_hosts("huang-fig10-13", Some(&Virtual));
    let correlation = "correlation of bytes in flight and RTT, mean of flows";
    let in_files = ours(&rows, &format!("kernel TCP: {correlation}"));
    assert!((in_files - ours(&rows, correlation)).abs() < 1e-9, "{in_files}");
    assert!(skipped.is_none() && invalid.is_some_and(|text| text.starts_with("2 of 2")));
}
