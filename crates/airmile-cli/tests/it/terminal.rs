//! What a terminal of 80 columns shows, through a pseudo-terminal (`script` of util-linux). Without
//! it, the tests print SKIPPED.

use std::path::Path;
use std::process::Command;

use airmile_testing::{shared, skipped};

use crate::command::sample;

/// The lines that a terminal of this width shows to who works in this folder: a file's own path may
/// be longer than a line.
fn shown(columns: usize, folder: &Path, args: &[&str]) -> Option<Vec<String>> {
    let is_there = Command::new("script").arg("--version").output();
    if !is_there.is_ok_and(|out| String::from_utf8_lossy(&out.stdout).contains("util-linux")) {
        skipped("needs `script` of util-linux");
        return None;
    }
    let quoted: Vec<String> = args.iter().map(|arg| format!("'{arg}'")).collect();
    let airmile = env!("CARGO_BIN_EXE_airmile");
    let command =
        format!("stty cols {columns} && '{airmile}' -q --color never {}", quoted.join(" "));
    let mut script = Command::new("script");
    let done = script.args(["-qec", &command, "/dev/null"]).current_dir(folder).output().unwrap();
    let text = String::from_utf8(done.stdout).unwrap();
    let lines: Vec<String> = text.lines().map(|line| line.trim_end().to_owned()).collect();
    assert!(lines.len() > 5, "{text}");
    for line in &lines {
        assert!(line.chars().count() <= columns, "{line}\n{text}");
    }
    // A number and its unit are not parted.
    for pair in lines.windows(2) {
        let [line, next] = pair else { continue };
        let unit = next.trim_start().split([' ', ',', '.', ';', ')']).next().unwrap_or_default();
        let is_unit = ["%", "ms", "s", "kB", "MB", "Mbit/s"].contains(&unit);
        let is_number = line.ends_with(|c: char| c.is_ascii_digit());
        assert!(!(is_number && is_unit), "{line}\n{next}");
    }
    Some(lines)
}

/// The header of a table, in whose first line these words are, and its first row; the columns' words
/// are joined over the header's lines.
fn table(lines: &[String], begins: &str, row: &str) -> (String, String) {
    let at = lines.iter().position(|line| line.starts_with(begins)).unwrap();
    let end = at + lines[at..].iter().position(|line| line.starts_with(row)).unwrap();
    (lines[at..end].join(" "), lines[end].clone())
}

#[test]
fn eighty_columns_show_what_a_table_is_for() {
    let (_keep, run) = sample("page");
    let Some(lines) = shown(80, &run, &["diagnose", "."]) else { return };
    let (header, row) = table(&lines, "id ", "page-1 ");
    for words in ["demand", "verdict", "confidence"] {
        assert!(header.contains(words), "{header}");
    }
    assert!(row.contains(" % "), "{row}");
    assert!(lines.iter().any(|line| line.starts_with("(Without start")), "{lines:#?}");
    assert!(lines.iter().any(|line| line.starts_with("page-12 ")), "{lines:#?}");
    let Some(lines) = shown(80, &run, &["radio", "."]) else { return };
    let (header, _) = table(&lines, "id ", "page-1 ");
    for words in ["throughput", "demand", "Mbit/s", "verdict"] {
        assert!(header.contains(words), "{header}");
    }
    assert!(lines.iter().any(|line| line.starts_with("(Without evidence")), "{lines:#?}");
    assert!(lines.iter().any(|line| line.contains("times in UTC, 2026-01-05")), "{lines:#?}");
    let Some(lines) = shown(80, &run, &["packets", "server.pcapng"]) else { return };
    let at = lines.iter().position(|line| line.starts_with("flow ")).unwrap();
    let header = lines[at..at + 3].join(" ");
    assert!(header.contains("RTT") && header.contains("resent"), "{header}");
}

/// Each value of table 1 stands below the name that it has in a pipe.
#[test]
fn table_1_has_no_value_below_another_name() {
    let (_keep, run) = sample("page");
    for width in [60, 80, 100, 120, 160] {
        let Some(lines) = shown(width, &run, &["packets", "phone.pcapng"]) else { return };
        let (header, row) = table(&lines, "table 1", "dl_kbps ");
        let values: Vec<&str> = row.split_whitespace().skip(3).collect();
        // Of the paper: 5 % of downlink rates, in the order of the columns.
        let names =
            ["here", "paper", "3GTest", "4GTest LTE", "4GTest WiMAX", "NYC cell", "NYC WiFi"];
        let all = ["569", "74-222", "2112", "431", "108", "404", "99", "347", "28", "267"];
        let kept = values.len() - 1;
        assert_eq!(values[1..], all[..kept], "{width}: {row}");
        for name in names.iter().take(kept) {
            let words = name.split(' ').all(|word| header.contains(word));
            assert!(words, "{width}: {name}: {header}");
        }
        let is_cut = kept < all.len();
        let note = lines.iter().any(|line| line.starts_with("(Without Manchester WiFi"));
        assert_eq!(is_cut, note, "{width}: {row}");
        assert!(lines.iter().any(|line| line.starts_with("handshake_rtt_ms ")), "{width}");
    }
}

/// Of a list of the slowest transfers, the first are explained.
#[test]
fn rows_of_many_transfers_are_matched_with_their_explanations() {
    let (_keep, run) = sample("web-browsing");
    let Some(lines) = shown(80, &run, &["diagnose", "."]) else { return };
    let begin = lines.iter().position(|line| line.starts_with("The 10 slowest transfers")).unwrap();
    let id = |line: &String| line.split(' ').next().unwrap_or_default().to_owned();
    let rows: Vec<String> =
        lines[begin..].iter().map(id).filter(|id| id.starts_with("object-")).collect();
    assert_eq!(rows.len(), 13, "{lines:#?}");
    assert_eq!(rows[..3], rows[10..], "{lines:#?}");
    assert!(lines.iter().any(|line| line.starts_with("The 3 slowest, explained (-v: all 210)")));
}

/// Shared captures and logs: no line is wider than the terminal.
#[test]
fn real_files_fit_eighty_columns() {
    let data = shared().join("data");
    for (command, file) in [
        ("packets", "pcap/emu-lte_mixed.mon.pcap.gz"),
        ("diagnose", "diag/seoul2021_upload_500KB.mi2log"),
        ("radio", "diag/seoul2021_upload_500KB.mi2log"),
        ("inspect", "diag/seoul2021_upload_500KB.mi2log"),
    ] {
        if data.join(file).exists() {
            shown(80, &data, &[command, file]);
        } else {
            skipped(data.join(file).display());
        }
    }
}
