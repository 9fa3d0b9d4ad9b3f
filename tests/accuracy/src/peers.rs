//! Compares the packet study with tshark and tcptrace on the same captures: frame by frame,
//! and by totals of connections. Neither peer is the truth; differences are printed with
//! their reason.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use airmile_model::Protocol;
use airmile_wire::tcp::SendRateThreshold;
use anyhow::Context;

use crate::capture::{Kept, frames, study, tagged_events};

/// Classification of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Word {
    Retransmission,
    OutOfOrder,
    DupAck,
}

/// Prints differences; `None` without the captures.
pub fn measure(shared: &Path) -> anyhow::Result<Option<bool>> {
    let dir = shared.join("data/pcap");
    if !dir.join("truth.json").is_file() {
        println!("SKIPPED: no {}", dir.display());
        return Ok(None);
    }
    let mut names: Vec<String> = std::fs::read_dir(&dir)?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.ends_with(".tshark.csv.gz"))
        .map(|name| name.trim_end_matches(".tshark.csv.gz").to_owned())
        .collect();
    names.sort();
    let mut unexplained = 0;
    println!("== Compared with tshark 4.0.17 (frames) and tcptrace 6.6.7 (totals)\n");
    for name in names {
        unexplained += capture(&dir, &name)?;
    }
    println!("\n{unexplained} differences without a reason");
    Ok(Some(unexplained == 0))
}

fn text(path: &Path) -> anyhow::Result<String> {
    let mut text = Vec::new();
    let file = File::open(path).with_context(|| path.display().to_string())?;
    flate2::read::MultiGzDecoder::new(file).read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn capture(dir: &Path, name: &str) -> anyhow::Result<usize> {
    let (kept, _) = frames(&dir.join(name))?;
    let tshark = words_of_tshark(&text(&dir.join(format!("{name}.tshark.csv.gz")))?);
    let events = tagged_events(&kept);
    let mut differences: BTreeMap<(String, String, &'static str), usize> = BTreeMap::new();
    let mut same = 0;
    for frame in 1..=kept.len() {
        let theirs = tshark.get(&frame).copied();
        let ours = events.get(&frame).map_or("-", String::as_str);
        let agree = match theirs {
            Some((Word::Retransmission, _)) => ours.starts_with("retx"),
            Some((Word::OutOfOrder, _)) => ours == "reordered",
            Some((Word::DupAck, _)) => ours == "dup_ack",
            None => !(ours.starts_with("retx") || matches!(ours, "reordered" | "dup_ack")),
        };
        if agree {
            same += 1;
            continue;
        }
        let why = match theirs {
            Some((Word::Retransmission | Word::OutOfOrder, false)) if !ours.starts_with("copy") => {
                "no payload: not a retransmission"
            }
            _ => reason(theirs.map(|t| t.0), ours, name),
        };
        let theirs = theirs.map(|t| t.0).map_or("-".to_owned(), |word| format!("{word:?}"));
        *differences.entry((theirs, ours.to_owned(), why)).or_default() += 1;
    }
    let totals = totals(dir, name, &kept)?;
    println!("{name}: {same} of {} frames as tshark; {totals}", kept.len());
    for ((theirs, ours, why), n) in &differences {
        println!("    {n:>5} tshark {theirs:<15} here {ours:<14} {why}");
    }
    let unexplained = differences.iter().filter(|((.., why), _)| why.is_empty());
    Ok(unexplained.map(|(_, n)| n).sum())
}

/// Why the two may differ; empty if no reason is known.
fn reason(theirs: Option<Word>, ours: &str, name: &str) -> &'static str {
    match (theirs, ours) {
        (_, "copy") => "a copy of the capture (same IP identification and bytes)",
        (Some(Word::OutOfOrder), o) if o.starts_with("retx") => {
            "the bytes passed before, or the IP identification is later: a retransmission; \
             tshark goes by time (within the handshake RTT)"
        }
        (Some(Word::Retransmission), "reordered") => {
            "the IP identification or time stamp is earlier"
        }
        (Some(Word::Retransmission), "fin_again" | "syn_again") => {
            "no payload: not a retransmission"
        }
        (Some(Word::Retransmission | Word::OutOfOrder), "keep_alive" | "window_probe") => {
            "a probe, not a retransmission"
        }
        (Some(Word::OutOfOrder), "fin_again" | "syn_again" | "-") => {
            "nothing of it passed before or was missing, or no payload"
        }
        (Some(Word::DupAck), "-") => {
            "RFC 5681, 2: nothing in flight, FIN or SYN set, or another window"
        }
        (None, "dup_ack") => "RFC 6675: a new SACK block counts with another window, too",
        (None, o) if o.starts_with("retx") => "tshark lost track of the stream here",
        (None, "reordered") => "a hole was filled; tshark reports the one after it as lost",
        (_, "wild_sequence") => "a sequence number far from the window",
        (Some(Word::Retransmission), "-") if name.contains("fuzz") => {
            "a spoiled sequence number came before it; tshark considers later segments old"
        }
        _ => "",
    }
}

/// tshark's classification by frame number, and whether frames have payload.
fn words_of_tshark(csv: &str) -> BTreeMap<usize, (Word, bool)> {
    let mut lines = csv.lines();
    let header: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let column = |name: &str| header.iter().position(|h| *h == name);
    let retransmission = [
        column("tcp.analysis.retransmission"),
        column("tcp.analysis.fast_retransmission"),
        column("tcp.analysis.spurious_retransmission"),
    ];
    let out_of_order = column("tcp.analysis.out_of_order");
    let dup_ack = column("tcp.analysis.duplicate_ack");
    let length = column("tcp.len");
    let mut words = BTreeMap::new();
    for line in lines {
        let fields = fields_of(line);
        let set =
            |at: Option<usize>| at.is_some_and(|at| fields.get(at).is_some_and(|f| !f.is_empty()));
        let Some(number) = fields.first().and_then(|f| f.parse().ok()) else { continue };
        let word = if set(out_of_order) {
            Word::OutOfOrder
        } else if retransmission.into_iter().any(set) {
            Word::Retransmission
        } else if set(dup_ack) {
            Word::DupAck
        } else {
            continue;
        };
        let payload = length.and_then(|at| fields.get(at)).is_some_and(|bytes| bytes != "0");
        words.insert(number, (word, payload));
    }
    words
}

/// Fields of a line; non-empty fields are quoted.
fn fields_of(line: &str) -> Vec<String> {
    let (mut fields, mut field, mut quoted) = (Vec::new(), String::new(), false);
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(std::mem::take(&mut field)),
            other => field.push(other),
        }
    }
    fields.push(field);
    fields
}

/// tcptrace's totals compared with ours.
fn totals(dir: &Path, name: &str, kept: &[Kept]) -> anyhow::Result<String> {
    let tcptrace = text(&dir.join(format!("{name}.tcptrace.txt.gz")))?;
    let sum = |label: &str| -> u64 {
        let lines = tcptrace.lines().filter(|line| line.trim_start().starts_with(label));
        // Format: a label, a number, the label again, another number.
        let numbers = lines.flat_map(|line| {
            line.split(label).filter_map(|part| part.split_whitespace().next()?.parse::<u64>().ok())
        });
        numbers.sum()
    };
    let studied = study(kept, SendRateThreshold::Auto);
    let tcp = studied.flows.iter().filter(|f| f.protocol == Protocol::Tcp);
    let (mut bytes, mut retx, mut connections) = (0, 0, 0);
    for flow in tcp {
        bytes += flow.dl_bytes + flow.ul_bytes;
        retx += flow.dl_retx + flow.ul_retx;
        connections += 1;
    }
    Ok(format!(
        "{connections} connections, {bytes} bytes, {retx} again (tcptrace {} bytes, {} again, {} out of order)",
        sum("unique bytes sent:"),
        sum("rexmt data pkts:"),
        sum("outoforder pkts:")
    ))
}
