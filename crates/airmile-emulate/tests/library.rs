//! What the named scenarios show, as a table that a reader can check.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests, with a table to read")]

use airmile_emulate::{Trace, library, named, run};
use airmile_model::{Direction, Grant, Record};

fn trace(name: &str) -> Trace {
    run(&named(name).unwrap().scenario()).unwrap()
}

/// Link demand over all transfers of a run: pauses between them left out.
fn link_demand(trace: &Trace) -> f64 {
    let throughput_ms: f64 = trace.transfers.iter().map(|t| t.truth.throughput_time_ms).sum();
    let duration_ms: f64 = trace.transfers.iter().filter_map(|t| t.truth.duration_ms).sum();
    throughput_ms / duration_ms
}

fn grants(trace: &Trace, dir: Direction) -> impl Iterator<Item = &Grant> {
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
