//! The sentences of a comparison.

use std::collections::BTreeSet;

use super::gather::Run;
use super::pages::PageDifference;
use super::{CompareVerdict, ComparedGroup, MIN_TRANSFERS};
use crate::analyse::radio::{Missing, MissingKind};
use crate::fact::Restarter;
use crate::wording::{page_cause_by, time};

/// Restarts confirm a verdict from this share of a group's time on (chosen here).
const CONFIRMED_FROM: f64 = 0.1;

/// The note on a server whose own restarts hide a middlebox's.
pub(super) const SERVER_RESTARTS: &str = "the server's own kernel restarts slow start after \
     pauses, which hides what a middlebox does: sysctl -w net.ipv4.tcp_slow_start_after_idle=0 there";

/// Names as a list; ports abbreviated.
fn list(names: &[String]) -> String {
    let ports: Option<Vec<&str>> = names.iter().map(|name| name.strip_prefix("port ")).collect();
    let (before, names) = match ports {
        Some(ports) if ports.len() > 1 => ("ports ", ports),
        Some(ports) if ports.len() == 1 => ("port ", ports),
        _ => ("", names.iter().map(String::as_str).collect()),
    };
    let joined = match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        None => String::new(),
    };
    format!("{before}{joined}")
}

pub(super) fn says(
    (verdict, restarter): (CompareVerdict, Restarter),
    about: &[String],
    against: &[String],
    groups: &[ComparedGroup],
    notes: &[String],
) -> String {
    let are = if about.len() == 1 { "is" } else { "are" };
    let rate = |names: &[String]| {
        let [name] = names else { return None };
        let group = groups.iter().find(|group| group.name == *name)?;
        Some(group.finding.late_rate_bps?.value / 1e6)
    };
    let rates = rate(about).zip(rate(against));
    let (about, against) = (list(about), list(against));
    match verdict {
        CompareVerdict::MiddleboxRestarts => format!(
            "A middlebox restarts slow start on {about}, not on {against}: after pauses, \
             transfers there start with an initial window."
        ),
        CompareVerdict::Restarts => {
            let by = match restarter {
                Restarter::Sender => "by the sender, as captures at both ends show",
                _ => "by the sender, or by a middlebox on its path",
            };
            format!("Slow start restarts after pauses in {about}, not in {against}: {by}.")
        }
        CompareVerdict::Throttling => {
            let rates = rates.map_or_else(String::new, |(own, other)| {
                format!(" ({own:.2} Mbit/s; the other gets {other:.2})")
            });
            format!(
                "{} {are} limited to a lower rate than {against}{rates}, and neither by the downlink \
                 nor by a restart: throttling, or a slower path there.",
                starts_upper(&about)
            )
        }
        CompareVerdict::NoDifference => {
            let all: Vec<String> = groups.iter().map(|group| group.name.clone()).collect();
            format!("No noticeable difference between {}.", list(&all))
        }
        CompareVerdict::CannotTell => match notes.first() {
            Some(why) => format!("No verdict: {why}."),
            None => "No verdict from these runs.".to_owned(),
        },
        // Its sentence is that of the page.
        CompareVerdict::PageLoadTime => String::new(),
    }
}

/// By how much the load of a page took longer, whether that is more than chance, and why.
pub(super) fn load_time(load: &PageDifference<'_>) -> String {
    let [(slow, slow_ms), (quick, quick_ms)] = load.by_time;
    let cause = load.cause.map_or_else(String::new, |(cause, ms)| {
        format!("; of the difference, {} is {}", time(ms), page_cause_by(cause, load.evidence))
    });
    let doubt = match (load.found.p, load.found.certain_p()) {
        (None, _) => format!(
            " A test of whether this is chance needs {MIN_TRANSFERS} loads in each run, here {}.",
            load.found.loads
        ),
        (Some(p), None) => format!(" This may be chance (p = {p:.2})."),
        _ => String::new(),
    };
    format!(
        "Page {} took {:.1} times as long to load in {slow} as in {quick} ({}, not {}{cause}).{doubt} ",
        load.url,
        load.found.factor(),
        time(slow_ms),
        time(quick_ms)
    )
}

fn starts_upper(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// A note if groups have different servers, so that their paths may differ. A middlebox is then
/// named only by captures at both ends.
pub(super) fn servers_differ(verdict: CompareVerdict, groups: &[ComparedGroup]) -> Option<String> {
    let known = groups.iter().filter(|group| !group.servers.is_empty());
    let sets: Vec<BTreeSet<&String>> = known.map(|group| group.servers.iter().collect()).collect();
    let apart = sets.iter().enumerate().any(|(at, set)| {
        sets.get(at + 1..).unwrap_or_default().iter().any(|other| set.is_disjoint(other))
    });
    let what = match verdict {
        CompareVerdict::MiddleboxRestarts => {
            "the restarts are a middlebox's by captures at both ends, other differences may be theirs"
        }
        _ => "the difference may be theirs, not the network's",
    };
    apart.then(|| format!("the groups' servers differ: {what}"))
}

/// A note if packets were captured nearer to the server: its client may be a middlebox.
pub(super) fn captured_at_server(runs: &[Run]) -> Option<String> {
    let of = |wanted| runs.iter().find(|run| run.nearer_server == Some(wanted));
    let server = &of(true)?.name;
    Some(match of(false) {
        Some(phone) => format!(
            "the captures are from different places, {} nearer to the phone and {server} nearer to the \
             server: the difference may be the way between them, such as a middlebox that splits \
             connections",
            phone.name
        ),
        None => format!(
            "{server} was captured nearer to the server than to the phone: rates are of what is \
             acknowledged, by the phone or by a middlebox that splits connections"
        ),
    })
}

/// A note if the diagnosis of the same transfers confirms the verdict.
pub(super) fn shown_by_a_diagnosis(
    verdict: CompareVerdict,
    about: &[String],
    groups: &[ComparedGroup],
) -> Option<String> {
    let restarts = matches!(verdict, CompareVerdict::MiddleboxRestarts | CompareVerdict::Restarts);
    let named: Vec<String> = groups
        .iter()
        .filter(|group| restarts && about.contains(&group.name))
        .filter_map(|group| {
            let cause = group.causes.iter().find(|c| c.cause == "slow_start_restart")?;
            (cause.share >= CONFIRMED_FROM).then(|| {
                format!(
                    "{} ({:.0} %)",
                    list(std::slice::from_ref(&group.name)),
                    cause.share * 100.0
                )
            })
        })
        .collect();
    (!named.is_empty())
        .then(|| format!("the diagnosis also finds restarts in {}", named.join(" and ")))
}

pub(super) const fn next_step(
    verdict: CompareVerdict,
    (by_turns, of_page): (bool, bool),
) -> &'static str {
    match verdict {
        CompareVerdict::MiddleboxRestarts => {
            "serve over the port that passes, over QUIC, or keep the window warm with a byte in \
             each pause; a capture at the server shows whether it sends at once"
        }
        CompareVerdict::Restarts => {
            "at the server: sysctl net.ipv4.tcp_slow_start_after_idle=0; if the restarts remain, \
             run `airmile probe` over ports 80, 443 and 7777"
        }
        CompareVerdict::Throttling => {
            "repeat at another hour and through a tunnel: a cap remains, a slower path does not"
        }
        CompareVerdict::NoDifference => {
            "diagnose one of them to find what limits all: airmile diagnose RUN"
        }
        CompareVerdict::PageLoadTime => {
            "see what the slower load waited for, and what each fix saves: airmile diagnose RUN"
        }
        CompareVerdict::CannotTell if of_page => {
            "load the page four times and more in each run, in turn"
        }
        CompareVerdict::CannotTell if !by_turns => {
            "measure them in turn, under the same conditions: airmile probe run HOST"
        }
        CompareVerdict::CannotTell => {
            "fetch more segments: airmile probe run HOST --rounds 3; capture packets at the same time"
        }
    }
}

pub(super) fn missing(seen: &BTreeSet<&str>, verdict: CompareVerdict) -> Vec<Missing> {
    let mut missing = Vec::new();
    if !seen.contains("modem log") {
        missing.push(Missing::new(
            MissingKind::Radio,
            "link demand: whether the downlink limited them",
            "log the modem while they run, and put the log into the run's directory",
        ));
    }
    if !seen.contains("captures") && verdict == CompareVerdict::CannotTell {
        missing.push(Missing::new(
            MissingKind::Packets,
            "the start of transfers, packet by packet",
            "tcpdump -i any -s 128 -w RUN/phone.pcap tcp, while they run",
        ));
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_a_row() {
        let check = |names: &[&str], expected: &str| {
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            assert_eq!(list(&names), expected);
        };
        check(&["port 80"], "port 80");
        check(&["port 80", "port 443"], "ports 80 and 443");
        check(&["a", "b", "c"], "a, b and c");
        check(&["a", "port 80"], "a and port 80");
        check(&[], "");
    }

    /// A run's directory may be named like a list.
    #[test]
    fn a_name_with_and_is_one_name() {
        let check = |names: &[&str], expected: &str| {
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            let verdict = (CompareVerdict::Throttling, Restarter::SenderOrMiddlebox);
            let says = says(verdict, &names, &["free".to_owned()], &[], &[]);
            assert!(says.starts_with(expected), "{says}");
        };
        check(&["before and after"], "Before and after is limited to a lower rate than free");
        check(&["port 80", "port 443"], "Ports 80 and 443 are limited to a lower rate than free");
    }
}
