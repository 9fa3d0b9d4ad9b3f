use super::*;

#[test]
fn what_stays_in_the_clients_network_asks_for_no_advice() {
    let advice = |client: &str, server: &str| {
        let mut summary = StudySummary::default();
        (summary.energy_mj[0], summary.energy_mj[2]) = (10.0, 5.0);
        let mut one = PeriodicRequests {
            client: client.into(),
            server: server.into(),
            period_s: 2.0,
            requests: 20,
            bytes: 9_000,
            idle_share: 0.9,
        };
        summary.periodic.push(one.clone());
        let what = periodic(&summary).map(|finding| finding.what);
        // What stays there does not hide what leaves it.
        (one.server, one.bytes) = ("198.51.100.7".into(), 10);
        summary.periodic.push(one);
        assert!(periodic(&summary).is_some(), "{server}");
        what.is_some()
    };
    for (client, server) in [
        ("192.168.152.126", "224.0.0.7"),
        ("192.168.152.126", "192.168.7.255"),
        ("192.168.152.126", "255.255.255.255"),
        ("169.254.8.219", "169.254.1.1"),
        ("10.0.0.6", "10.0.0.138"),
        ("fe80::9bd:81dd:2fdc:5750", "ff02::c"),
        ("2001:db8::2", "2001:db8::1"),
    ] {
        assert!(!advice(client, server), "{client} {server}");
    }
    for (client, server) in [
        ("10.0.0.6", "198.51.100.7"),
        ("10.0.0.6", "10.9.0.7"),
        ("198.51.100.1", "198.51.100.7"),
        ("2001:db8::2", "2001:db8:1::1"),
    ] {
        assert!(advice(client, server), "{client} {server}");
    }
}

#[test]
fn handshakes_of_one_client_do_not_place_the_capture_for_others() {
    let mut summary = StudySummary::default();
    summary.upstream_ms.push(50.0);
    summary.downstream_ms.push(0.1);
    let overview = |clients: &[&str]| {
        let mut all = Overview::default();
        for client in clients {
            let mut one = Overview::default();
            one.note_client(client);
            all.merge(one);
        }
        all
    };
    let placed = |clients: &[&str]| at_phone(&summary, &overview(clients)).is_some();
    assert!(placed(&["10.0.0.1"]) && placed(&["10.0.0.1", "10.0.0.1", "2001:db8::1"]));
    assert!(!placed(&["10.0.0.1", "10.0.0.2"]));
}

#[test]
fn few_retransmissions_are_stated_and_not_judged() {
    let mut summary = StudySummary::default();
    summary.tcp.flows = 1;
    let says = |segments, retx| {
        let mut overview = Overview::default();
        let down = &mut overview.down;
        (down.bytes, down.segments, down.retx) = (100_000, segments, retx);
        sentence(&summary, &overview, &[], false)
    };
    let few = "4 of 70 segments to clients sent again, too few to judge: 1 TCP flow";
    assert!(says(70, 4).starts_with(few), "{}", says(70, 4));
    assert!(says(70, 0).starts_with("Nothing stands out: 1 TCP flow"));
    assert!(says(7_000, 4).starts_with("Nothing stands out: 1 TCP flow"));
}

/// At the phone nothing shows what its server had in flight: no value, and no "Nothing stands out".
#[test]
fn a_capture_at_the_phone_has_no_figures_of_the_sender() {
    let mut summary = StudySummary::default();
    summary.tcp.flows = 1;
    (summary.dl_flows, summary.window_full_flows) = (1, 0);
    let overview = Overview::default();
    let says = sentence(&summary, &overview, &[], true);
    assert!(!says.contains("Nothing stands out"), "{says}");
    // Of an upload, the sender is the phone.
    let mut upload = Overview::default();
    (upload.up.bytes, upload.up.segments) = (50_000_000, 40_000);
    assert!(sentence(&summary, &upload, &[], true).starts_with("Nothing stands out"));
    let mut figures = crate::compare::compare(&summary, None);
    let of = |figures: &[crate::compare::Compared]| {
        let window = figures.iter().find(|one| one.what.starts_with("downlink flows with a full"));
        window.unwrap().here
    };
    assert_eq!(of(&figures), Some(0.0));
    crate::compare::hide_senders(&mut figures);
    assert_eq!(of(&figures), None);
    let is_hidden = |name: &&str| figures.iter().any(|one| one.what == *name && one.here.is_none());
    assert!(crate::compare::OF_SENDER.iter().all(is_hidden), "{figures:?}");
}
