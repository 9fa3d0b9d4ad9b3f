//! Requirements of standards on a run, tested from outside.

use airmile_emulate::net::IpPacket;
use airmile_emulate::{
    CellConfig, CoreConfig, DropPoint, OtherConfig, PathConfig, RunSink, Scenario, Traffic, UserId,
    WindowConfig, run_into,
};

/// One phone that receives a file from a window sender.
fn windowed(bytes: u64, queue_bytes: u64) -> Scenario {
    let window = WindowConfig { max_bytes: 400_000, restart_after_idle: true };
    Scenario {
        duration_ms: 5_000,
        cell: CellConfig { queue_bytes, ..CellConfig::default() },
        traffic: vec![Traffic::Download { id: "file".to_owned(), start_ms: 0, bytes, window }],
        ..Scenario::default()
    }
}

#[derive(Debug, Default)]
struct Drops(Vec<(DropPoint, u32)>);

impl RunSink for Drops {
    fn dropped(&mut self, _at_ns: i64, user: UserId, point: DropPoint, packet: &IpPacket) {
        assert_eq!(user, UserId::MEASURED);
        self.0.push((point, packet.ip_bytes()));
    }
}

#[test]
fn a_window_sender_whose_packets_are_dropped_does_not_end() {
    // A window of 400 kB into a queue of 50 kB.
    let mut drops = Drops::default();
    let outcome = run_into(&windowed(2_000_000, 50_000), &mut drops).unwrap();
    let dropped_bytes: u64 = drops.0.iter().map(|&(_, bytes)| u64::from(bytes) + 2).sum();
    assert!(dropped_bytes > 0);
    assert!(drops.0.iter().all(|&(point, _)| point == DropPoint::BaseStation));
    assert_eq!(dropped_bytes, outcome.totals[0][0].dropped_bytes);
    assert!(outcome.transfers.is_empty(), "{:?}", outcome.transfers);
    // With enough room for everything the transfer ends, without drops.
    let mut drops = Drops::default();
    let outcome = run_into(&windowed(2_000_000, 3_000_000), &mut drops).unwrap();
    assert_eq!((drops.0.len(), outcome.transfers.len()), (0, 1));
}

#[test]
fn what_window_senders_do_not_honour_is_refused() {
    let check = |change: &dyn Fn(&mut Scenario), field: &str| {
        let mut scenario = windowed(1_000, 3_000_000);
        change(&mut scenario);
        let error = run_into(&scenario, &mut ()).unwrap_err().to_string();
        assert!(error.starts_with(field), "{field}: {error}");
        scenario.traffic.clear();
        assert_eq!(scenario.validate(), Ok(()), "{field} alone");
    };
    let core = |down, up| CoreConfig { down, up, ..CoreConfig::default() };
    let lossy = || PathConfig { loss: 0.1, ..PathConfig::default() };
    let late = || PathConfig { jitter_ms: 1.0, ..PathConfig::default() };
    check(&|s| s.core = core(lossy(), PathConfig::default()), "core.down:");
    check(&|s| s.core = core(PathConfig::default(), late()), "core.up:");
    check(&|s| s.proxy = Some(airmile_emulate::proxy::ProxyConfig::default()), "proxy:");
    let other: OtherConfig = serde_json::from_str(r#"{"apps": []}"#).unwrap();
    check(&|s| s.others = vec![other.clone()], "others:");
    check(&|s| s.cell.numerology = 1, "cell.numerology:");
    check(&|s| s.server_tcp.sack = false, "phone_tcp, server_tcp or quic:");
}

#[test]
fn what_lies_deeper_is_checked_too() {
    let check = |toml: &str, field: &str| {
        let error = Scenario::from_toml(toml).and_then(|s| s.validate()).unwrap_err().to_string();
        assert!(error.contains(field), "{toml}: {error}");
    };
    let other = |link: &str| format!("[[others]]\napps = []\n{link}");
    check(&other("link = { snr_mean_db = nan }"), "others.0.link.snr_mean_db");
    check(&other("link = { fading_coherence_ms = 0.0 }"), "others.0.link.fading_coherence_ms");
    check(&other("link = { bler_target = 7.0 }"), "others.0.link.bler_target");
    check(&other("core = { down = { loss = 7.0 } }"), "others.0.core.down.loss");
    check("[cell.secondary]\nn_prb = 7", "cell.secondary.n_prb");
    check("[cell.secondary]\npci = 504", "cell.secondary.pci");
    check("[cell.secondary]\nsnr_offset_db = nan", "cell.secondary.snr_offset_db");
    check("[server_tcp]\nmss_bytes = 65535", "server_tcp.mss_bytes");
    check("[phone_tcp]\nmss_bytes = 0", "phone_tcp.mss_bytes");
}
