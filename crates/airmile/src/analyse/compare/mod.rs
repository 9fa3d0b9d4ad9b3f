//! `compare`: compares runs or ports (BurstTracker, 4.5 and 5.1).

mod flows;
mod gather;
mod pages;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use airmile_wire::compare::{
    ComparisonOutcome, GroupFinding, MIN_TRANSFERS, PairFinding, Sample, judge,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::radio::{Missing, RadioOptions};
use crate::fact::Restarter;
use airmile_io::FileReport;
use airmile_io::error::{Error, Result};
use airmile_io::input::Progress;
pub use airmile_io::probe_log::{ProbeConnection, ProbeLog, ProbeTransfer};
use gather::{GroupedTransfer, Run, gather};
pub use pages::{ComparedLoads, ComparedPage};

/// How transfers are grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GroupBy {
    /// By port if there are several known ports, else by run.
    #[default]
    Auto,
    /// By the server's port, across all runs.
    Port,
    /// By run.
    Run,
}

/// Options of `compare`.
#[derive(Debug, Clone, PartialEq)]
pub struct CompareOptions {
    /// How transfers are grouped.
    pub by: GroupBy,
    /// Only these ports; all if empty.
    pub ports: Vec<u16>,
    /// Seed of intervals and tests.
    pub seed: u64,
    /// Options of the radio analysis.
    pub radio: RadioOptions,
}

impl CompareOptions {
    /// The seed unless another is given.
    pub const SEED: u64 = 1;
}

impl Default for CompareOptions {
    fn default() -> Self {
        let (by, radio) = (GroupBy::default(), RadioOptions::default());
        Self { by, ports: Vec::new(), seed: Self::SEED, radio }
    }
}

/// The verdict of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CompareVerdict {
    /// A middlebox restarts slow start on some ports.
    MiddleboxRestarts,
    /// Slow start restarts in some runs over the same port: the sender, or a middlebox.
    Restarts,
    /// The rate of some is limited.
    Throttling,
    /// A page takes longer to load in some runs, and transfers do not show why.
    PageLoadTime,
    /// They do not differ noticeably.
    NoDifference,
    /// No verdict is possible.
    CannotTell,
}

/// The verdict in a text for people.
impl std::fmt::Display for CompareVerdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::MiddleboxRestarts => "middlebox restarts",
            Self::Restarts => "restarts",
            Self::Throttling => "throttling",
            Self::PageLoadTime => "page load time",
            Self::NoDifference => "no difference",
            Self::CannotTell => "cannot tell",
        })
    }
}

/// The result of `compare`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Comparison {
    /// The verdict.
    pub verdict: CompareVerdict,
    /// The same as a sentence.
    pub says: String,
    /// Confidence of the verdict, 0 to 1: 1 minus its p.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub confidence: f64,
    /// The groups that the verdict is about, by name: those that restart or are limited.
    pub about: Vec<String>,
    /// The groups that they are compared with.
    pub against: Vec<String>,
    /// Remarks on the verdict, or why there is none.
    pub notes: Vec<String>,
    /// What to do next.
    pub next_step: String,
    /// `port` or `run`.
    pub grouped_by: &'static str,
    /// Whether the groups were measured in turn, under the same conditions.
    pub by_turns: bool,
    /// The groups.
    pub groups: Vec<ComparedGroup>,
    /// All pairs of groups.
    pub pairs: Vec<ComparedPair>,
    /// The pages that several runs loaded.
    pub pages: Vec<ComparedPage>,
    /// The runs.
    pub runs: Vec<ComparedRun>,
    /// What is missing for a better result, and how to capture it.
    pub missing: Vec<Missing>,
    /// The files.
    pub files: Vec<FileReport>,
}

/// A group of transfers.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ComparedGroup {
    /// Its name.
    pub name: String,
    /// The server's port, if all transfers have one.
    pub port: Option<u16>,
    /// The runs that its transfers are from.
    pub runs: Vec<String>,
    /// Servers' addresses.
    pub servers: Vec<String>,
    /// Share of its time by cause, 0 to 1, the largest first, from the diagnosis; empty without a
    /// modem log.
    pub causes: Vec<CauseShare>,
    /// Its measures.
    #[serde(flatten)]
    pub finding: GroupFinding,
}

/// A cause and its share of a group's time.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CauseShare {
    /// The cause, as `diagnose` names it.
    pub cause: &'static str,
    /// Its share, 0 to 1.
    pub share: f64,
}

/// The comparison of two groups.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ComparedPair {
    /// The first group's name.
    pub first: String,
    /// The second's.
    pub second: String,
    /// The difference, second minus first.
    #[serde(flatten)]
    pub finding: PairFinding,
}

/// A run.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ComparedRun {
    /// Its path as given.
    pub path: String,
    /// Downloads of 20 kB and more in it.
    pub transfers: usize,
    /// The evidence for them.
    pub seen_by: Vec<&'static str>,
}

impl Comparison {
    /// Whether any input was damaged.
    #[must_use]
    pub fn damaged(&self) -> bool {
        self.files.iter().any(|file| file.damaged)
    }
}

/// Compares runs, or the ports in them.
///
/// # Errors
/// A run cannot be read, or none of them holds a download.
pub fn compare(
    runs: &[PathBuf],
    options: &CompareOptions,
    progress: &Progress,
) -> Result<Comparison> {
    options.radio.check()?;
    let mut read = Vec::with_capacity(runs.len());
    for path in runs {
        let mut run = gather(path, &options.radio, progress)?;
        let wanted = |transfer: &GroupedTransfer| {
            options.ports.is_empty()
                || transfer.port.is_some_and(|port| options.ports.contains(&port))
        };
        run.transfers.retain(wanted);
        read.push(run);
    }
    if read.iter().all(|run| run.transfers.is_empty()) && pages::compared(&read).is_empty() {
        let names: Vec<&str> = read.iter().map(|run| run.name.as_str()).collect();
        return Err(Error::NothingToAnalyse(format!(
            "{}: no downloads of {} kB or more to compare{}{}",
            names.join(", "),
            gather::LEAST_BYTES / 1_000,
            options.radio.limits.words(),
            if options.ports.is_empty() { "" } else { " over these ports" }
        )));
    }
    let by_port = match options.by {
        GroupBy::Port => true,
        GroupBy::Run => false,
        GroupBy::Auto => has_several_ports(&read),
    };
    let (groups, left_out) = large_enough(group(&read, by_port));
    let mut answer = conclude(read, &groups, by_port, options.seed);
    answer.notes.extend(left_out);
    Ok(answer)
}

/// Whether the ports of most transfers are known, and there are several.
fn has_several_ports(runs: &[Run]) -> bool {
    let all: Vec<Option<u16>> =
        runs.iter().flat_map(|run| run.transfers.iter().map(|transfer| transfer.port)).collect();
    let known = all.iter().flatten().count();
    let several = all.iter().flatten().collect::<BTreeSet<_>>().len() > 1;
    // A few unknown ones are ignored.
    several && known * 10 >= all.len() * 9
}

/// Groups with enough transfers for a test, if there are two of them: a port with one download does
/// not prevent a verdict on the others.
fn large_enough(groups: Vec<Group>) -> (Vec<Group>, Option<String>) {
    let is_enough = |group: &Group| group.transfers.len() >= MIN_TRANSFERS;
    if groups.iter().filter(|group| is_enough(group)).count() < 2 {
        return (groups, None);
    }
    let (enough, few): (Vec<Group>, Vec<Group>) = groups.into_iter().partition(is_enough);
    let names: Vec<String> =
        few.iter().map(|group| format!("{} ({})", group.name, group.transfers.len())).collect();
    let note = format!("ignored, with too few transfers: {}", names.join(", "));
    (enough, (!names.is_empty()).then_some(note))
}

/// Transfers of one group, with their runs.
#[derive(Debug)]
struct Group {
    name: String,
    port: Option<u16>,
    transfers: Vec<GroupedTransfer>,
    runs: BTreeSet<String>,
}

fn group(runs: &[Run], by_port: bool) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    if by_port {
        let mut ports: BTreeMap<u16, Group> = BTreeMap::new();
        for run in runs {
            for transfer in &run.transfers {
                let Some(port) = transfer.port else { continue };
                let group = ports.entry(port).or_insert_with(|| Group {
                    name: format!("port {port}"),
                    port: Some(port),
                    transfers: Vec::new(),
                    runs: BTreeSet::new(),
                });
                group.transfers.push(transfer.clone());
                group.runs.insert(run.name.clone());
            }
        }
        groups.extend(ports.into_values());
    } else {
        for run in runs {
            let ports: BTreeSet<Option<u16>> = run.transfers.iter().map(|t| t.port).collect();
            let port = if ports.len() == 1 { ports.first().copied().flatten() } else { None };
            groups.push(Group {
                name: run.name.clone(),
                port,
                transfers: run.transfers.clone(),
                runs: BTreeSet::from([run.name.clone()]),
            });
        }
    }
    for group in &mut groups {
        group.transfers.sort_by_key(|transfer| transfer.sample.start_ns);
        // A probe records its turns; otherwise the n-th transfers of each group count as one turn.
        if group.transfers.iter().all(|transfer| transfer.sample.turn == 0) {
            group
                .transfers
                .iter_mut()
                .enumerate()
                .for_each(|(n, transfer)| transfer.sample.turn = n);
        }
    }
    groups
}

fn conclude(runs: Vec<Run>, groups: &[Group], by_port: bool, seed: u64) -> Comparison {
    let samples: Vec<Vec<Sample>> = groups
        .iter()
        .map(|group| group.transfers.iter().map(|transfer| transfer.sample.clone()).collect())
        .collect();
    let judged = judge(&samples, seed);
    let pages = pages::compared(&runs);
    let load = pages::largest(&pages, seed);
    let names = |of: &[usize]| -> Vec<String> {
        of.iter().filter_map(|at| groups.get(*at)).map(|group| group.name.clone()).collect()
    };
    let restarter = restarter(&runs, groups, &judged.about, &judged.against);
    let verdict = match judged.outcome {
        ComparisonOutcome::Restarts if restarter == Restarter::Middlebox => {
            CompareVerdict::MiddleboxRestarts
        }
        ComparisonOutcome::Restarts => CompareVerdict::Restarts,
        ComparisonOutcome::Throttling => CompareVerdict::Throttling,
        ComparisonOutcome::NoDifference => CompareVerdict::NoDifference,
        ComparisonOutcome::CannotTell => CompareVerdict::CannotTell,
    };
    let seen: BTreeSet<&str> = runs.iter().flat_map(|run| run.seen_by.iter().copied()).collect();
    let compared: Vec<ComparedGroup> = groups
        .iter()
        .zip(judged.groups)
        .map(|(group, finding)| ComparedGroup {
            name: group.name.clone(),
            port: group.port,
            runs: group.runs.iter().cloned().collect(),
            servers: servers(group),
            causes: causes(group),
            finding,
        })
        .collect();
    let name = |at: usize| groups.get(at).map(|group| group.name.clone()).unwrap_or_default();
    let pairs = judged.pairs.into_iter().map(|finding| ComparedPair {
        first: name(finding.a),
        second: name(finding.b),
        finding,
    });
    let (mut about, mut against) = (names(&judged.about), names(&judged.against));
    let mut notes = judged.notes;
    if runs.iter().any(|run| run.server_restarts) {
        notes.push(words::SERVER_RESTARTS.to_owned());
    }
    notes.extend(words::captured_at_server(&runs));
    notes.extend(words::servers_differ(verdict, &compared));
    notes.extend(words::shown_by_a_diagnosis(verdict, &about, &compared));
    let (mut verdict, mut confidence) = (verdict, judged.confidence);
    // A restart or a limited rate explains the load of a page, too.
    let is_open = matches!(verdict, CompareVerdict::NoDifference | CompareVerdict::CannotTell);
    let certain = load.as_ref().filter(|_| is_open);
    if let Some((load, p)) = certain.and_then(|load| Some((load, load.found.certain_p()?))) {
        (verdict, confidence) = (CompareVerdict::PageLoadTime, 1.0 - p);
        [about, against] = load.by_time.map(|(run, _)| vec![run.to_owned()]);
    }
    let fact = load.as_ref().map_or_else(String::new, words::load_time);
    let says = words::says((verdict, restarter), &about, &against, &compared, &notes);
    let next_step = words::next_step(verdict, (judged.by_turns, load.is_some()));
    Comparison {
        verdict,
        says: format!("{fact}{says}").trim_end().to_owned(),
        confidence,
        next_step: next_step.to_owned(),
        about,
        against,
        notes,
        grouped_by: if by_port { "port" } else { "run" },
        by_turns: judged.by_turns,
        pairs: pairs.collect(),
        missing: words::missing(&seen, verdict),
        pages,
        groups: compared,
        runs: runs
            .iter()
            .map(|run| ComparedRun {
                path: run.name.clone(),
                transfers: run.transfers.len(),
                seen_by: run.seen_by.clone(),
            })
            .collect(),
        files: runs.into_iter().flat_map(|run| run.files).collect(),
    }
}

/// The host that restarts slow start in the groups `about`: the one that captures show, as in a
/// diagnosis; else a middlebox, if `against` uses other ports of the same servers. Different servers may
/// restart, or not, by themselves.
fn restarter(runs: &[Run], groups: &[Group], about: &[usize], against: &[usize]) -> Restarter {
    let of = |at: &usize| groups.get(*at);
    let is_about = |run: &&Run| about.iter().filter_map(of).any(|g| g.runs.contains(&run.name));
    let captured = runs.iter().filter(is_about).map(|run| run.restarter);
    let captured = captured.reduce(Restarter::agreed).unwrap_or_default();
    if captured != Restarter::SenderOrMiddlebox {
        return captured;
    }
    let pairs = about.iter().flat_map(|a| against.iter().map(move |b| (a, b)));
    let by_port = pairs.filter_map(|(a, b)| of(a).zip(of(b))).all(|(a, b)| {
        let ports = a.port.zip(b.port).is_some_and(|(a, b)| a != b);
        let (a, b) = (servers(a), servers(b));
        ports && !a.is_empty() && a == b
    });
    if by_port { Restarter::Middlebox } else { Restarter::SenderOrMiddlebox }
}

fn servers(group: &Group) -> Vec<String> {
    let all: BTreeSet<&String> = group.transfers.iter().filter_map(|t| t.server.as_ref()).collect();
    all.into_iter().cloned().collect()
}

/// Shares of a group's time, the largest first, without uninformative ones.
fn causes(group: &Group) -> Vec<CauseShare> {
    let mut sums: BTreeMap<&'static str, f64> = BTreeMap::new();
    for (cause, ms) in group.transfers.iter().flat_map(|transfer| &transfer.shares) {
        *sums.entry(cause).or_default() += ms;
    }
    let whole: f64 = sums.values().sum();
    let mut shares: Vec<CauseShare> = sums
        .into_iter()
        .filter(|(_, ms)| *ms > 0.0)
        .map(|(cause, ms)| CauseShare { cause, share: ms / whole })
        .collect();
    shares.sort_by(|a, b| b.share.total_cmp(&a.share));
    shares
}
