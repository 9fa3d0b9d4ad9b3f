//! What differs from "the command runs, with status 0": each with its reason.

/// How a command is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Handling {
    /// Not run, with the reason.
    Skipped(&'static str),
    /// Ends with this status.
    Status(i32),
    /// Runs until a signal: terminated after its first output.
    Terminated,
    /// Not run where Python lacks a module; the second command, if any, takes its place.
    Needs(&'static str, Option<&'static str>),
    /// Has a text replaced by free ports.
    FreePorts(&'static str),
}

use Handling::{FreePorts, Needs, Skipped, Status, Terminated};

/// A rule for the commands of a document that begin with a text.
pub(super) struct Rule {
    pub(super) document: &'static str,
    pub(super) begins: &'static str,
    pub(super) handling: Handling,
}

const fn rule(document: &'static str, begins: &'static str, handling: Handling) -> Rule {
    Rule { document, begins, handling }
}

const MODEM: &str = "needs a modem";
const NETWORK: &str = "needs a network";
const ROOT: &str = "needs root";

/// Each of these applies to a command; one that applies to none fails.
pub(super) const RULES: &[Rule] = &[
    rule("README.md", "make demo", Skipped("builds the command")),
    rule("README.md", "make check", Skipped("runs this test")),
    rule("README.md", "airmile lab reproduce", Skipped("a name; takes minutes")),
    rule("app-developer.md", "airmile diagnose page.har phone.pcap --fail-if", Status(1)),
    rule("operator.md", "pip install", Skipped(NETWORK)),
    rule(
        "operator.md",
        "mkdir day && python",
        Needs(
            "numpy",
            Some(
                "airmile lab run receive-window -o made && mkdir day && \
                 cp made/server.pcapng day/0000.pcap",
            ),
        ),
    ),
    rule("operator.md", "airmile packets day --engine ray", Needs("airmile, ray", None)),
    rule("operator.md", "airmile packets s3:", Skipped(NETWORK)),
    rule("operator.md", "import duckdb", Needs("airmile, ray, duckdb", None)),
    rule("researcher.md", "import airmile as am\nimport polars", Needs("airmile, polars", None)),
    rule("researcher.md", "from concurrent.futures", Needs("airmile", None)),
    rule("researcher.md", "airmile lab reproduce", Skipped("takes minutes; `make accuracy`")),
    rule("router-owner.md", "scp -O", Skipped(NETWORK)),
    rule("router-owner.md", "ssh root@", Skipped(NETWORK)),
    rule("router-owner.md", "airmile diagnose router.pcap", Skipped(NETWORK)),
    rule("router-owner.md", "airmile diagnose drive", Skipped(MODEM)),
    rule("router-owner.md", "airmile record", Skipped(MODEM)),
    rule("router-owner.md", "socat", Skipped(MODEM)),
    rule("router-owner.md", "kill $!", Skipped("ends the step before, which is not run")),
    rule("router-owner.md", "airmile live --port", Skipped(MODEM)),
    rule("router-owner.md", "airmile live --follow", Terminated),
    rule("router-owner.md", "airmile packets --interface", Skipped(ROOT)),
    rule("router-owner.md", "sudo airmile qcut run", Skipped(ROOT)),
    rule("router-owner.md", "airmile probe run probe.example.org", Skipped(NETWORK)),
    rule("router-owner.md", "sudo airmile probe serve", Skipped(ROOT)),
    rule("router-owner.md", "airmile probe serve --ports", FreePorts("8080,7777")),
    rule("router-owner.md", "airmile probe run 127.0.0.1", FreePorts("8080,7777")),
];

/// The files that a document's reader has.
pub(super) const HAVE: &[(&str, &str)] = &[(
    "README.md",
    "airmile lab run page -o made && cp made/modem.mi2log log.mi2log && \
         cp made/phone.pcapng phone.pcap && cp made/page.har page.har",
)];
