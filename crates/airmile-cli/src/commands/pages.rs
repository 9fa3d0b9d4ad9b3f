//! Page loads, as `diagnose` prints them.

use airmile::model::PageCause;
use airmile::{Page, PageRequest, PlayerSession, Zone, page_cause};

use super::Times;
use crate::output::{bytes, name, number, or_dash, table, text};
use crate::table::{MOST_LETTERS, end_of};

/// Pages explained without `-v`.
const EXPLAINED: usize = 3;
/// Fixes and requests of a page without `-v`.
const FIXES: usize = 3;
const SLOWEST: usize = 5;
/// Stalls of a player without `-v`.
const STALLS: usize = 5;

/// A page as it is printed: whole lines.
pub struct PrintedPage {
    pub verdict: PageCause,
    /// The verdict's sentence.
    pub headline: String,
    pub rest: String,
}

/// The pages of a result, the slowest first.
pub fn printed(pages: &[Page], all: bool, zone: Zone) -> Vec<PrintedPage> {
    let mut order: Vec<&Page> = pages.iter().collect();
    order.sort_by(|a, b| b.wait_ms.total_cmp(&a.wait_ms));
    let shown = if all { order.len() } else { EXPLAINED };
    let one = |page: &&Page| PrintedPage {
        verdict: page.verdict,
        headline: format!("Page {}\n{}\n", page.url, page.says),
        rest: details(page, all, zone) + "\n",
    };
    let mut out: Vec<PrintedPage> = order.iter().take(shown).map(one).collect();
    if let Some(last) = out.last_mut().filter(|_| order.len() > shown) {
        let left = order.len() - shown;
        last.rest.push_str(&format!("({left} faster pages are shown with -v.)\n\n"));
    }
    out
}

fn details(page: &Page, all: bool, zone: Zone) -> String {
    let mut out = String::new();
    let fixes = if all { page.savings.len() } else { FIXES };
    if !page.savings.is_empty() {
        out.push_str("What each fix would save:\n");
    }
    for saving in page.savings.iter().take(fixes) {
        out.push_str(&format!("  - {}\n", saving.says));
    }
    let mut requests: Vec<&PageRequest> = page.requests.iter().collect();
    requests.sort_by(|a, b| (b.end_ms - b.start_ms).total_cmp(&(a.end_ms - a.start_ms)));
    let shown = if all { requests.len() } else { SLOWEST.min(requests.len()) };
    let of = if shown < page.requests.len() {
        format!("The {shown} slowest of {} requests (-v: all)", page.requests.len())
    } else {
        "The requests, slowest first".to_owned()
    };
    let rows = requests.iter().take(shown).map(|request| {
        let is_failure = request.failed && request.cause == PageCause::Unknown;
        let cause = if is_failure { "failed" } else { page_cause(request.cause) };
        vec![
            format!("{:.0}", request.start_ms),
            format!("{:.0}", request.end_ms - request.start_ms),
            or_dash(request.bytes, bytes),
            format!("{}{cause}", if request.critical { "* " } else { "  " }),
            short(&request.url),
        ]
    });
    let since = page.start_us.map_or_else(String::new, |us| {
        format!("; 0 ms is {} in {}", zone.show(us), zone.name_at(us))
    });
    out.push_str(&format!("{of}; * is on the critical path{since}:\n"));
    let columns = [number("at ms"), number("ms"), number("bytes"), text("waited for"), name("URL")];
    out.push_str(&table(columns, rows.collect()));
    out
}

/// A player's session: its stalls, and with `-v` its changes of bitrate.
pub fn player(player: &PlayerSession, all: bool, zone: Zone) -> String {
    let mut out = format!("Player {}\n{}\n", player.path, player.says);
    let shown = if all { player.stalls.len() } else { STALLS };
    let switches: &[_] = if all { &player.switches } else { &[] };
    let listed = player.stalls.iter().take(shown).map(|stall| stall.at_us);
    let times = Times::of(zone, listed.chain(switches.iter().map(|switch| switch.at_us)));
    if times.first_us.is_some() {
        out.push_str(&format!(
            "{}:\n",
            times.title(if all { "Stalls and switches" } else { "Stalls" })
        ));
    }
    for stall in player.stalls.iter().take(shown) {
        out.push_str(&format!("  - {} {}\n", times.show(stall.at_us), stall.says));
    }
    if player.stalls.len() > shown {
        out.push_str(&format!("  ({} more stalls with -v)\n", player.stalls.len() - shown));
    }
    for switch in switches {
        out.push_str(&format!("  - {} {}\n", times.show(switch.at_us), switch.says));
    }
    out.push('\n');
    out
}

/// A URL without its scheme; the end of a long one.
fn short(url: &str) -> String {
    end_of(url.split_once("://").map_or(url, |(_, rest)| rest), MOST_LETTERS)
}
