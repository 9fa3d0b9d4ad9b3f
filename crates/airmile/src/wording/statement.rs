//! The sentences of a session's diagnosis.

use airmile_blind::{Suspect, Suspicion};
use airmile_model::{Direction, Verdict};
use airmile_wire::attribute::CaptureSite;
use airmile_wire::compare::RestartsSeen;

use super::{bounds, candidates, link, suspect, whole_percent};
use crate::fact::{Restarter, Statement};

/// Joins the statements to a text, one sentence each, in order.
pub(crate) fn says(statements: &[Statement]) -> String {
    statements.iter().map(statement).collect::<Vec<_>>().join(" ")
}

fn statement(statement: &Statement) -> String {
    match statement {
        Statement::EmptyWindow => "No verdict: nothing was logged between --from and --to.".into(),
        Statement::PollsAlone => "No verdict: the files hold no allocations. RLC poll bits show \
            when data waited, but not what was transferred; see what is missing."
            .into(),
        Statement::NoAllocations => {
            "No verdict: the files hold no allocations; see what is missing.".into()
        }
        Statement::OnlySmall { bytes } => format!(
            "No verdict: the log shows only small exchanges ({bytes} bytes). Log while a transfer \
             runs, or set --min-bytes."
        ),
        Statement::NotWhole => "No verdict: the log, between --from and --to if these are set, has \
            none of the given transfers from its start to its end. Set other limits, or diagnose the log \
            without the list of transfers."
            .into(),
        Statement::NoEvidence => {
            "No verdict: the log lacks the evidence; see what is missing.".into()
        }
        Statement::Demand { verdict, dir, demand, limited, n, limits } => {
            let granted = Some(demand - limited).filter(|share| *share >= 0.005);
            let mut out = demand_of(*verdict, *dir, (*limited, granted), *n, *limits);
            if let Some(granted) = granted {
                out.push_str(&format!(
                    " During another {:.0} % it waited for a report and a grant, or nothing shows that it \
                     waited for capacity.",
                    granted * 100.0
                ));
            }
            out
        }
        Statement::Unjudged { dir, n } => {
            let what = if *dir == Direction::Dl { "download" } else { "upload" };
            match n {
                1 => format!("No verdict on the {what}: its evidence says why."),
                _ => format!("No verdict on the {n} {what}s: their evidence says why."),
            }
        }
        Statement::Unjoined(says) => format!("The captures were not used: {says}."),
        Statement::FewApart { apart, n } => format!(
            "Causes are given only for transfers that did not overlap another: {apart} of {n}."
        ),
        Statement::ServerHadSent => "The server had sent what was requested: something between \
            the server and the cell held it. Capture at the phone, too."
            .into(),
        Statement::Leading { cause, restarter, share, bounds: within, near, beside_radio } => {
            let other = if *beside_radio { " other than the radio" } else { "" };
            let whose = restarter.map_or("", by);
            let near = near.map_or_else(String::new, |(cause, share)| {
                format!(" Almost as long: {cause}, {:.0} %.", share * 100.0)
            });
            format!(
                "Leading cause{other}: {cause}{whose}, {:.0} % of the time ({}).{near}",
                share * 100.0,
                bounds(*within)
            )
        }
        Statement::NoDownload => "No verdict: the captures show no download of sufficient size. \
            Capture while one runs, or set --min-bytes."
            .into(),
        Statement::OnlyUpload { bytes } => format!(
            "No verdict: the captures show an upload of {:.2} MB and no download of sufficient size. \
             Packets alone do not show whether the uplink limited an upload: log the modem while it runs \
             (`airmile live --port`), and pass both.",
            *bytes as f64 / 1e6
        ),
        Statement::AlsoUploaded { bytes } => format!(
            "The phone also sent {:.2} MB in uploads, which are not judged by packets alone.",
            *bytes as f64 / 1e6
        ),
        Statement::HeadersCut { cut, frames } => format!(
            "No verdict: {cut} of {frames} frames are cut within a header, so their packets are not \
             known. Capture longer headers (`tcpdump -s 128`)."
        ),
        Statement::OneDirection => "No verdict: the capture holds the packets of one direction \
            alone, so it shows no round trips. Capture both directions."
            .into(),
        Statement::Captured(CaptureSite::Inside) => "No verdict: the capture was taken inside the \
            phone, where a VPN ends its connections, or over loopback: it shows nothing of the cell, \
            nor of the servers. Log the modem, or capture with root or at the server (docs/phones.md)."
            .into(),
        Statement::Captured(site) => format!(
            "No verdict: the capture was taken {} and does not show how data arrived at the phone. \
             Capture at the phone, and log its modem.",
            if *site == CaptureSite::Server { "at the server" } else { "between server and phone" }
        ),
        Statement::TooLittle => "No verdict: too few packets for a pattern, a rate as low as a \
            call's, or datagrams not known to be QUIC (`scrub` cuts its first bytes)."
            .into(),
        Statement::NoSuspect { n, suspects, counts, queued } => format!(
            "No verdict by packets alone on what limited {}{}.{}",
            transfers(*n),
            one_by_one(*n, suspects, counts),
            about_radio(suspects, *queued)
        ),
        Statement::Suspected { n, of, first, restarter } => {
            suspected((*n, *of), first, *restarter)
        }
        Statement::LossRecovery { share } => format!(
            "Packets are lost on the path: their retransmission took {:.0} % of the time. A modem \
             log shows whether the radio lost them.",
            share * 100.0
        ),
        Statement::Restarts { seen: RestartsSeen { restarted, known, .. }, share, restarter } => {
            format!(
                "After pauses, {restarted} of {known} transfers grew from an initial window, which \
                 took {:.0} % of the time: slow start restarts{} (`airmile compare` measures it).",
                share * 100.0,
                by(*restarter)
            )
        }
        Statement::Setup { share } => format!(
            "Handshakes and requests before the first byte took {:.0} % of the time.",
            share * 100.0
        ),
        Statement::NoApplicationTransfer => "No verdict: the application's log holds no transfer \
            over the network; see what is missing."
            .into(),
        Statement::ApplicationAlone { log, before_first_byte } => {
            let mut out = format!(
                "No verdict on the link: an application's log shows how long its transfers took, \
                 not what the link did meanwhile. It shows: {log}"
            );
            if let Some(share) = before_first_byte {
                out.push_str(&format!(
                    " {:.0} % of the transfers' time passed before the first byte.",
                    share * 100.0
                ));
            }
            out
        }
    }
}

fn transfers(n: usize) -> String {
    if n == 1 { "the transfer".to_owned() } else { format!("the {n} transfers") }
}

fn transfers_of(dir: Direction, n: usize) -> String {
    let what = if dir == Direction::Dl { "download" } else { "upload" };
    if n == 1 { format!("the {what}") } else { format!("its {n} {what}s") }
}

const fn by(restarter: Restarter) -> &'static str {
    match restarter {
        Restarter::Middlebox => " by a middlebox",
        Restarter::Sender => " by the server",
        Restarter::SenderOrMiddlebox => " by the server or a middlebox",
    }
}

fn demand_of(
    verdict: Verdict,
    dir: Direction,
    (demand, granted): (f64, Option<f64>),
    n: usize,
    [not_radio_below, radio_at_least]: [f64; 2],
) -> String {
    let (link, share) = (link(dir), demand * 100.0);
    // Transfers of the other direction may stand in the same table.
    let of = transfers_of(dir, n);
    let (queued, empty) = (whole_percent(share), whole_percent(100.0 - share));
    match verdict {
        Verdict::Radio => {
            format!("The {link} was the bottleneck: data waited for it during {queued} % of {of}.")
        }
        Verdict::NotRadio if share >= 50.0 => {
            let below = whole_percent(not_radio_below * 100.0);
            let queued = percent_below(share, not_radio_below);
            format!(
                "The {link} was not what limited {of}: data waited for it during {queued} % of the \
                 time, and a verdict is mixed from {below} % on."
            )
        }
        Verdict::NotRadio if granted.is_some() => format!(
            "The {link} was not the bottleneck: data waited for its capacity during {queued} % of {of}."
        ),
        Verdict::NotRadio => {
            format!(
                "The {link} was not the bottleneck: its queue was empty during {empty} % of {of}."
            )
        }
        Verdict::Mixed => format!(
            "The {link} was the bottleneck for part of the time: data waited for it during \
             {} % of {of}.",
            percent_below(share, radio_at_least)
        ),
        _ => "No verdict from these files.".into(),
    }
}

/// A share in percent that is not rounded to the limit above it: 74.9 % is less than 75 %, which 75 %
/// is not.
fn percent_below(share: f64, limit: f64) -> String {
    let whole = whole_percent(share);
    match whole == whole_percent(limit * 100.0) {
        true => format!("{:.1}", (share * 10.0).floor() / 10.0),
        false => whole,
    }
}

/// Probability from which a sentence states that the radio link was not the bottleneck (chosen here).
const NOT_RADIO_FROM: f64 = 0.9;

/// Says that the radio link was not the bottleneck, if that is known; else, how to know more.
fn about_radio(suspects: &[Suspicion], queued: Option<f64>) -> String {
    if let Some(share) = queued {
        return format!(
            " It was not the radio link: packets were queued between server and phone during {:.0} % of \
             the time.",
            share * 100.0
        );
    }
    let elsewhere =
        suspects.iter().filter(|one| !matches!(one.suspect, Suspect::Radio | Suspect::Other));
    let probability: f64 = elsewhere.map(|one| one.probability).sum();
    if probability < NOT_RADIO_FROM {
        return " Log the modem and repeat it.".to_owned();
    }
    format!(" It was not the radio link (probability {:.0} %).", probability * 100.0)
}

/// What is probable for all transfers, or what is named for some.
fn one_by_one(n: usize, suspects: &[Suspicion], counts: &[(Suspect, usize)]) -> String {
    let all = candidates(suspects);
    if counts.is_empty() {
        return format!(": {all}");
    }
    let unknown = n - counts.iter().map(|(_, n)| n).sum::<usize>();
    let each = counts.iter().map(|(one, n)| format!("{} in {n}", suspect(*one)));
    let unknown = (unknown > 0).then(|| format!("unknown in {unknown}"));
    let each: Vec<String> = each.chain(unknown).collect();
    format!(" together: {all}; one by one: {}", each.join(", "))
}

fn suspected((n, of): (usize, usize), first: &Suspicion, restarter: Restarter) -> String {
    let more = match (first.suspect, restarter) {
        (Suspect::Radio, _) => {
            " Packets do not show whether other users held the cell or the signal was weak."
        }
        (Suspect::SlowStartRestart, Restarter::Middlebox) => " A middlebox restarts it.",
        (Suspect::SlowStartRestart, Restarter::Sender) => " The server restarts it.",
        _ => "",
    };
    let part = if n == of { String::new() } else { format!("{n} of ") };
    format!(
        "By packets alone, {} was the bottleneck of {part}{} (probability {:.0} %).{more}",
        suspect(first.suspect),
        transfers(of),
        first.probability * 100.0
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn that_it_was_not_the_radio_is_told_where_nothing_is_named() {
        let says = |sender, queued| {
            let suspects = [(Suspect::Wireline, 0.5), (Suspect::SenderLimited, sender)]
                .map(|(suspect, probability)| Suspicion { suspect, probability });
            let (suspects, counts) = (suspects.to_vec(), Vec::new());
            statement(&Statement::NoSuspect { n: 1, suspects, counts, queued })
        };
        assert!(says(0.45, None).ends_with(" 45 %. It was not the radio link (probability 95 %)."));
        assert!(says(0.3, None).ends_with(" 30 %. Log the modem and repeat it."));
        assert_eq!(says(0.45, Some(0.02)).matches("not the radio").count(), 1);
    }

    #[test]
    fn transfers_with_different_suspects_are_counted() {
        let first = Suspicion { suspect: Suspect::Radio, probability: 0.68 };
        let says = |n, of| {
            let restarter = Restarter::SenderOrMiddlebox;
            statement(&Statement::Suspected { n, of, first, restarter })
        };
        assert!(says(1, 1).contains("of the transfer (probability 68 %)."), "{}", says(1, 1));
        assert!(says(2, 3).contains("of 2 of the 3 transfers (probability 68 %)"));
        assert!(says(3, 3).contains("bottleneck of the 3 transfers"), "{}", says(3, 3));
        let counts = vec![(Suspect::Wireline, 2), (Suspect::FirstSlowStart, 1)];
        let none = |n| {
            let (suspects, counts) = (vec![first], counts.clone());
            statement(&Statement::NoSuspect { n, suspects, counts, queued: None })
        };
        assert!(
            none(8).contains("the 8 transfers together: the radio link 68 %; one by one: "),
            "{}",
            none(8)
        );
        assert!(none(8).contains(" in 2, ") && none(8).contains(" in 1, unknown in 5."));
        assert!(none(3).contains(" in 1. Log the modem"), "{}", none(3));
    }

    #[test]
    fn a_share_below_the_limit_is_not_rounded_to_it() {
        let says =
            |verdict, demand| demand_of(verdict, Direction::Dl, (demand, None), 1, [0.75, 0.9]);
        for (verdict, demand, expected) in [
            (
                Verdict::NotRadio,
                0.749_6,
                "during 74.9 % of the time, and a verdict is mixed from 75 %",
            ),
            (Verdict::Mixed, 0.899_3, "during 89.9 % of"),
            (Verdict::Mixed, 0.84, "during 84 % of"),
            (Verdict::Radio, 0.9, "during 90 % of"),
        ] {
            let says = says(verdict, demand);
            assert!(says.contains(expected), "{says}");
        }
    }
}
