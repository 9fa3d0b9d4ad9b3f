//! The files of a lab run's directory (docs/lab.md). They are ordinary inputs; their
//! names are defined here for the code that writes them and the code that shows an input's origin.

/// The run's description.
pub const MANIFEST: &str = "manifest.json";

/// The scenario, which is written first: it marks the directory as a run's.
pub const SCENARIO: &str = "scenario.toml";

/// The links' traces, downlink and uplink.
pub const LINK_TRACES: [&str; 2] = ["link-down.trace", "link-up.trace"];

/// The output of the server's command, of a run in real time.
pub const SERVER_LOG: &str = "server.log";

/// The log of the command, of a run in real time.
pub const COMMAND_LOG: &str = "command.jsonl";

/// Every file that a run may write (docs/lab.md).
pub const RUN_FILES: [(&str, &str); 32] = [
    (MANIFEST, "what this directory is: scenario, seed, clock, files"),
    (SCENARIO, "the scenario, to run again"),
    (LINK_TRACES[0], "the downlink's trace that was replayed"),
    (LINK_TRACES[1], "the uplink's trace that was replayed"),
    ("modem.mi2log", "the phone's modem log"),
    ("nr_modem.mi2log", "the log of a modem with NR, with LTE's leg of a split bearer"),
    ("grants.csv", "blocks that the phone received and sent"),
    ("rlc.csv", "RLC PDUs that the phone received and sent"),
    ("nr_grants.csv", "of a split bearer: blocks of the NR leg"),
    ("nr_rlc.csv", "of a split bearer: RLC PDUs of the NR leg"),
    ("transfers.csv", "the application's transfers"),
    ("app.jsonl", "the application's log"),
    ("page.har", "pages as a browser's tools export them"),
    ("phone.pcapng", "packets at the phone"),
    ("proxy.pcapng", "packets at the proxy, both sides"),
    ("server.pcapng", "packets at the server"),
    ("transfer_truth.csv", "truth: throughput time of each transfer"),
    ("truth.csv", "truth: the phone's queue at the base station"),
    ("ul_truth.csv", "truth: the phone's own queue"),
    ("leg_truth.csv", "truth: the queues of each leg of a split bearer"),
    ("capacity.csv", "truth: what the cell could have carried for the phone"),
    ("cell_use.csv", "truth: PRB pairs of all users together"),
    ("allocations.csv", "truth: PRB pairs of each user"),
    ("rrc.csv", "truth: the phone's RRC states"),
    ("drops.csv", "truth: packets lost"),
    ("senders.csv", "truth: what TCP senders knew"),
    ("sender_events.jsonl", "truth: what happened to TCP senders"),
    ("causes.csv", "injected causes"),
    ("counterfactuals.csv", "each transfer with and without each cause"),
    ("late_ttis.csv", "real time: TTIs that began late"),
    (SERVER_LOG, "real time: the output of the server's command"),
    (COMMAND_LOG, "real time: the command's own log"),
];

/// Whether a run's file may have this name, in which case the directory's name is more informative.
#[must_use]
pub fn is_run_file(name: &str) -> bool {
    RUN_FILES.iter().any(|(known, _)| *known == name)
}
