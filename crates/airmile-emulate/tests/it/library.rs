//! Link demand of the named scenarios, in a table for comparison by hand.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use airmile_control::claw::{Bottleneck, Feedback};
use airmile_emulate::{
    LinkConfig, LinkTrace, PhoneView, RadioReader, ReaderSetup, RunSink, RunTrace, Scenario,
    SenderPlace, SenderState, Traffic, WindowConfig, library, named, run, run_into, run_with,
};
use airmile_model::{Direction, Grant, Record};

fn trace(name: &str) -> RunTrace {
    run(&named(name).unwrap().scenario()).unwrap()
}

/// Link demand over all transfers of a run, without the pauses between them.
fn link_demand(trace: &RunTrace) -> f64 {
    let throughput_ms: f64 = trace.transfers.iter().map(|t| t.truth.throughput_time_ms).sum();
    let duration_ms: f64 = trace.transfers.iter().filter_map(|t| t.truth.duration_ms).sum();
    throughput_ms / duration_ms
}

fn grants(trace: &RunTrace, dir: Direction) -> impl Iterator<Item = &Grant> {
    trace.records.iter().filter_map(move |record| match record {
        Record::Grant(grant) if grant.dir == dir => Some(grant),
        _ => None,
    })
}

#[test]
fn link_demand_tells_the_scenarios_apart() {
    // Name, transfers, link demand from and to.
    let expected = [
        ("sample-download", 1, 0.90, 1.00),
        ("sample-rate-limited", 1, 0.00, 0.40),
        ("sample-video", 12, 0.40, 0.75),
        ("sample-upload", 1, 0.90, 1.00),
    ];
    assert_eq!(expected.map(|row| row.0), [0, 1, 2, 3].map(|n| library()[n].name));
    for (name, transfers, from, to) in expected {
        let trace = trace(name);
        let demand = link_demand(&trace);
        println!(
            "{name}: {} TTIs, {} records, link demand {demand:.3}",
            trace.n_tti,
            trace.records.len()
        );
        for t in &trace.transfers {
            println!("  {} {:?} ms, {:.3}", t.transfer.id, t.truth.duration_ms, t.link_demand());
        }
        assert_eq!(trace.transfers.len(), transfers, "{name}");
        assert!((from..=to).contains(&demand), "{name}: {demand}");
    }
}

#[test]
fn a_log_has_what_real_logs_have() {
    let trace = trace("sample-download");
    let first: Vec<_> = grants(&trace, Direction::Dl).filter(|g| g.retx == Some(false)).collect();
    let failed = first.iter().filter(|grant| grant.crc_ok == Some(false)).count();
    let bler = failed as f64 / first.len() as f64;
    println!("{} first transmissions, {:.1} % failed", first.len(), 100.0 * bler);
    assert!((0.07..=0.13).contains(&bler), "{bler}");
    for name in ["grant", "rlc", "buffer_status", "bsr", "mac_block", "measurement", "cell_info"] {
        let count = trace.records.iter().filter(|record| record.name() == name).count();
        println!("{name}: {count}");
        assert!(count > 0, "{name}");
    }
    // Whole TTIs: an allocation is all of the cell, or trimmed to what is left.
    let full = first.iter().filter(|grant| grant.n_prb == Some(50)).count();
    assert!(full * 10 > first.len() * 5, "{full} of {}", first.len());
}

#[test]
fn a_link_trace_begins_with_the_run() {
    // No capacity in the second half of each 2 s.
    let text: String = (0..1_000).map(|ms| format!("{ms}\n{ms}\n")).collect::<String>() + "2000\n";
    let trace = Some(Arc::new(LinkTrace::parse(&text).unwrap()));
    let scenario = Scenario {
        duration_ms: 6_000,
        link: LinkConfig { dl_trace: trace, ..LinkConfig::default() },
        traffic: vec![Traffic::Download {
            id: "file".to_owned(),
            start_ms: 0,
            bytes: 100_000_000,
            window: WindowConfig::default(),
        }],
        ..Scenario::default()
    };
    let trace = run(&scenario).unwrap();
    let ms: Vec<i64> = grants(&trace, Direction::Dl)
        .map(|grant| grant.position.tti.since(trace.first_tti))
        .collect();
    assert!(ms.iter().all(|ms| ms % 2_000 < 1_000), "{ms:?}");
    assert!([0, 1, 2].iter().all(|round| ms.contains(&(round * 2_000 + 500))), "{ms:?}");
}

/// Durations in ms of a scenario's transfers.
fn durations(scenario: &Scenario) -> Vec<f64> {
    let outcome = run_into(scenario, &mut ()).unwrap();
    outcome.transfers.iter().filter_map(|t| t.truth.duration_ms).collect()
}

#[test]
fn with_drx_answers_wait_for_half_a_cycle() {
    let scenario = named("drx").unwrap().scenario();
    let mean = |ms: &[f64]| ms.iter().sum::<f64>() / ms.len() as f64;
    let (with, without) = (durations(&scenario), durations(&scenario.without(0).unwrap()));
    assert_eq!((with.len(), without.len()), (20, 20));
    // A cycle of 320 ms with 10 ms of listening: 310 / 320 of the responses wait 155 ms on
    // average, 150 ms overall.
    let wait_ms = mean(&with) - mean(&without);
    println!("{:.1} ms with DRX, {:.1} without", mean(&with), mean(&without));
    assert!((110.0..190.0).contains(&wait_ms), "{wait_ms}");
}

#[test]
fn the_same_choices_fetch_the_same_bytes() {
    let scenario = named("busy-video").unwrap().scenario();
    let with = run_into(&scenario, &mut ()).unwrap();
    let other = scenario.without(0).unwrap();
    let bytes = |scenario: &Scenario| -> (Vec<Option<u64>>, f64) {
        let outcome = run_into(scenario, &mut ()).unwrap();
        let all = outcome.transfers.iter().map(|t| t.transfer.bytes).collect();
        (all, outcome.transfers.iter().filter_map(|t| t.truth.duration_ms).sum())
    };
    let (fetched, ms) = bytes(&scenario);
    assert_ne!(bytes(&other).0, fetched);
    let (held, without_ms) = bytes(&other.with_choices(&with.choices));
    assert_eq!(held, fetched);
    assert!(without_ms < 0.5 * ms, "{without_ms} {ms}");
}

#[test]
fn what_had_not_ended_is_told_with_its_bytes() {
    // 3 s of a fast cell and of a slow one: ended and cut.
    let of = |bytes: u64, upload: bool| {
        let kind = if upload { "upload" } else { "file" };
        let text = format!(
            "duration_ms = 3_000\napps = [{{ name = \"a\", workload = {{ kind = \"{kind}\", \
             bytes = {bytes} }} }}]"
        );
        run_into(&Scenario::from_toml(&text).unwrap(), &mut ()).unwrap()
    };
    for upload in [false, true] {
        let ended = of(100_000, upload);
        assert_eq!((ended.transfers.len(), ended.unfinished.len()), (1, 0));
        let cut = of(100_000_000, upload);
        assert_eq!((cut.transfers.len(), cut.unfinished.len()), (0, 1));
        let transfer = &cut.unfinished[0].transfer;
        assert!(transfer.unfinished && transfer.id == "a-1");
        assert_eq!(transfer.dir, Some(if upload { Direction::Ul } else { Direction::Dl }));
        assert_eq!(transfer.tti.unwrap().1, cut.first_tti.plus(3_000));
        let bytes = transfer.bytes.unwrap();
        assert!((500_000..20_000_000).contains(&bytes), "{bytes}");
    }
    let mut windows = named("sample-download").unwrap().scenario();
    windows.duration_ms = 2_000;
    let cut = run_into(&windows, &mut ()).unwrap();
    let bytes = cut.unfinished[0].transfer.bytes.unwrap();
    assert!(cut.transfers.is_empty() && (500_000..6_000_000).contains(&bytes), "{bytes}");
    assert!(cut.notes.iter().all(|note| note.event == "request"));
}

/// A program on the phone with constant feedback.
#[derive(Debug)]
struct Says {
    records: Arc<AtomicU64>,
    sequence: u64,
}

impl RadioReader for Says {
    fn record(&mut self, _record: &Record) {
        self.records.fetch_add(1, Ordering::Relaxed);
    }

    fn poll(&mut self, _now_ns: i64, phone: PhoneView) -> Option<Feedback> {
        self.sequence += 1;
        phone.busy.then_some(Feedback {
            sequence: self.sequence,
            w_claw_bytes: 200_000,
            load: 0.1,
            bottleneck: Bottleneck::Cellular,
            idle: false,
            radio_losses: 0,
            queue_losses: 0,
        })
    }
}

/// Windows of the measured phone's server.
#[derive(Default)]
struct Windows(Vec<u64>);

impl RunSink for Windows {
    fn wants_senders(&self) -> bool {
        true
    }

    fn sender_state(&mut self, state: &SenderState) {
        if state.place == SenderPlace::Server {
            self.0.push(state.snapshot.cwnd_bytes);
        }
    }
}

const CLAW: &str = r#"
    duration_ms = 20_000
    [server_tcp]
    control = { name = "claw" }
    [[apps]]
    name = "file"
    workload = { kind = "file", bytes = 1_000_000 }
    [[others]]
    control = { name = "claw" }
    apps = [{ name = "file", workload = { kind = "file", bytes = 1_000_000 } }]
"#;

/// Windows at a loss rate of reports, and the records read by each phone's program.
fn windows_and_records(loss: f64) -> (Vec<u64>, [u64; 2]) {
    let mut scenario = Scenario::from_toml(CLAW).unwrap();
    scenario.radio_reports.loss = loss;
    let records = [Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0))];
    let reader = |setup: &ReaderSetup| -> Box<dyn RadioReader> {
        Box::new(Says { records: Arc::clone(&records[setup.user.index()]), sequence: 0 })
    };
    let mut windows = Windows::default();
    run_with(&scenario, &mut windows, Some(&reader)).unwrap();
    (windows.0, records.map(|count| count.load(Ordering::Relaxed)))
}

#[test]
fn reports_set_the_servers_window() {
    let (windows, records) = windows_and_records(0.0);
    assert!(windows.contains(&200_000), "{windows:?}");
    // Grants of 1 MB, and measurements; also of the other phone.
    assert!(records.iter().all(|count| *count > 300), "{records:?}");
    let (windows, _) = windows_and_records(1.0);
    assert!(!windows.contains(&200_000), "{windows:?}");
}

#[test]
fn without_a_reader_it_is_refused() {
    let error = run_into(&Scenario::from_toml(CLAW).unwrap(), &mut ()).unwrap_err().to_string();
    assert!(error.contains("server_tcp.control") && error.contains("reader"), "{error}");
}
