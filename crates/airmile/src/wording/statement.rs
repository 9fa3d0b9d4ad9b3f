//! The answer for a session, in sentences.

use airmile_model::{Direction, Verdict};
use airmile_wire::packets_only::{Suspect, Suspicion};

use super::{bounds, candidates, link, suspect};
use crate::fact::{Restarter, Statement};

/// Statements as a text: a sentence each, in order.
pub(crate) fn says(statements: &[Statement]) -> String {
    statements.iter().map(statement).collect::<Vec<_>>().join(" ")
}

fn statement(statement: &Statement) -> String {
    match statement {
        Statement::EmptyWindow => "Cannot tell: nothing was logged between --from and --to.".into(),
        Statement::PollsAlone => "Cannot tell: the files hold no allocations. RLC poll bits show \
            when data waited, but not what was transferred; see what is missing."
            .into(),
        Statement::NoAllocations => {
            "Cannot tell: the files hold no allocations; see what is missing.".into()
        }
        Statement::OnlySmall { bytes } => format!(
            "Cannot tell: the log shows no transfer worth the name ({bytes} bytes in small \
             exchanges). Log while a transfer runs, or set --min-bytes."
        ),
        Statement::NoEvidence => {
            "Cannot tell: the log does not hold the evidence; see what is missing.".into()
        }
        Statement::Demand { verdict, dir, demand, n, not_radio_below } => {
            demand_of(*verdict, *dir, *demand, *n, *not_radio_below)
        }
        Statement::FewApart { apart, n } => format!(
            "What they waited for is not told of all: {apart} of {n} ran apart from others."
        ),
        Statement::ServerHadSent => "The server had sent what was asked for: something between it \
            and the cell held it. Capture at the phone, too."
            .into(),
        Statement::Leading { cause, restarter, share, bounds: within, beside_radio } => {
            let beside = if *beside_radio { " beside the radio" } else { "" };
            let whose = restarter.map_or("", by);
            format!(
                "Leading cause{beside}: {cause}{whose}, {:.0} % of the time ({}).",
                share * 100.0,
                bounds(*within)
            )
        }
        Statement::NoDownload => "Cannot tell: the captures show no download worth the name. \
            Capture while one runs, or set --min-bytes."
            .into(),
        Statement::CapturedAtServer => "Cannot tell: the capture was taken at the server, and how \
            data came to the phone does not show. Capture at the phone, and log its modem."
            .into(),
        Statement::CapturedBetween => "Cannot tell: the capture was taken between server and \
            phone, and how data came to the phone does not show. Capture at the phone, and log \
            its modem."
            .into(),
        Statement::TooLittle => {
            "Cannot tell: too little came in the transfers' time to see a pattern.".into()
        }
        Statement::NoSuspect { n, suspects } => format!(
            "Cannot tell by packets alone what limited {}: {}. Log the modem while it runs again.",
            transfers(*n),
            candidates(suspects)
        ),
        Statement::Suspected { n, first, restarter } => suspected(*n, first, *restarter),
        Statement::NoApplicationTransfer => "Cannot tell: the application's log holds no transfer \
            over the network; see what is missing."
            .into(),
        Statement::ApplicationAlone { log, before_first_byte } => {
            let mut out = format!(
                "Cannot tell who the bottleneck was: an application's log shows how long its \
                 transfers took, not what they waited for. It tells: {log}"
            );
            if let Some(share) = before_first_byte {
                out.push_str(&format!(
                    " {:.0} % of the transfers' time was before a first byte.",
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
    demand: f64,
    n: usize,
    not_radio_below: f64,
) -> String {
    let (link, of, share) = (link(dir), transfers(n), demand * 100.0);
    match verdict {
        Verdict::Radio => format!(
            "The {link} was the bottleneck: data waited for it during {share:.0} % of {of}."
        ),
        Verdict::NotRadio if share >= 50.0 => format!(
            "The {link} was not what limited {of}: data waited for it during {share:.0} %, less \
             than the {:.0} % from which it shares the blame.",
            not_radio_below * 100.0
        ),
        Verdict::NotRadio => format!(
            "The {link} was not the bottleneck: its queue was empty during {:.0} % of {of}.",
            100.0 - share
        ),
        Verdict::Mixed => format!(
            "The {link} was the bottleneck for a part: data waited for it during {share:.0} % of \
             {of}."
        ),
        _ => "Cannot tell from these files.".into(),
    }
}

fn suspected(n: usize, first: &Suspicion, restarter: Restarter) -> String {
    let more = match (first.suspect, restarter) {
        (Suspect::Radio, _) => {
            " Whether others held the cell or the signal was weak, packets do not tell."
        }
        (Suspect::SlowStartRestart, Restarter::Middlebox) => " A middlebox restarts it.",
        (Suspect::SlowStartRestart, Restarter::Sender) => " The server restarts it.",
        _ => "",
    };
    format!(
        "By packets alone, {} was the bottleneck of {} (probability {:.0} %).{more}",
        suspect(first.suspect),
        transfers(n),
        first.probability * 100.0
    )
}
