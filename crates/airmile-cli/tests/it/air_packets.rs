//! `decode --format pcapng`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use airmile::capture::packet::{CaptureReader, Captured};
use airmile_testing::{shared_data, skipped};

use crate::command::{airmile, path, sample, status, text};

/// Link types of the frames of a pcapng, by the interfaces' own numbers.
fn links(file: &str) -> BTreeMap<u32, usize> {
    let mut links = BTreeMap::new();
    let mut take = |captured: Captured<'_>| match captured {
        Captured::Frame(frame) => {
            assert!(frame.data.len() <= frame.wire_bytes as usize);
            *links.entry(frame.link).or_default() += 1;
        }
        Captured::Problem(problem) => panic!("{problem:?}"),
    };
    let mut reader = CaptureReader::new();
    reader.push(&fs::read(file).unwrap(), &mut take);
    reader.finish(&mut take);
    links
}

#[test]
fn the_blocks_of_a_log_are_its_mac_packets() {
    let (_keep, run) = sample("sample-download");
    let (log, out) = (path(&run, "modem.mi2log"), path(&run, "air.pcapng"));
    let written = airmile(&["decode", &log, "--format", "pcapng", "-o", &out]);
    assert_eq!(written.status.code(), Some(0));
    let found = links(&out);
    // Every block of this phone, in both directions.
    let blocks = text(&airmile(&["decode", &log, "--only", "mac_block"]).stdout);
    let own = blocks.lines().filter(|line| line.contains("\"rnti\":\"c\"")).count();
    assert!(own > 1_000, "{own}");
    assert_eq!(found.get(&252), Some(&own));
    let says = text(&written.stderr);
    assert!(says.contains(&format!("wrote {} packets", found.values().sum::<usize>())), "{says}");
    // A pipe holds the same bytes.
    let piped = airmile(&["-q", "decode", &log, "--format", "pcapng"]);
    assert_eq!((piped.status.code(), piped.stdout), (Some(0), fs::read(&out).unwrap()));
    // The limits are those of records.
    let part = airmile(&["decode", &log, "--format", "pcapng", "-o", &out, "--to", "1"]);
    assert_eq!(part.status.code(), Some(0));
    assert!((1..own).contains(&links(&out)[&252]));
}

#[test]
fn packets_need_a_modem_log_and_a_file_of_their_own() {
    let (_keep, run) = sample("sample-download");
    let log = path(&run, "modem.mi2log");
    let before = fs::read(&log).unwrap();
    assert_eq!(status(&["decode", &log, "--format", "pcapng", "-o", &log]), 2);
    assert_eq!(fs::read(&log).unwrap(), before);
    let table = path(&run, "grants.csv");
    fs::write(&table, "tti,dir,n_prb\n1,dl,5\n").unwrap();
    let refused = airmile(&["decode", &table, "--format", "pcapng"]);
    assert_eq!((refused.status.code(), refused.stdout.len()), (Some(3), 0));
    assert!(text(&refused.stderr).contains("is not a modem log"), "{refused:?}");
    assert_eq!(status(&["decode", &log, "--format", "pcapng", "--only", "grant"]), 2);
    assert_eq!(status(&["decode", &log, "--format", "json", "-o", &path(&run, "dir")]), 2);
    // What is readable is written, and the status says that the rest is lost.
    let torn = path(&run, "torn.mi2log");
    let mut bytes = before;
    bytes[20_000..20_400].fill(0x55);
    fs::write(&torn, bytes).unwrap();
    let out = path(&run, "torn.pcapng");
    assert_eq!(status(&["decode", &torn, "--format", "pcapng", "-o", &out]), 4);
    assert!(links(&out)[&252] > 1_000);
}

/// Wireshark reads the packets of real logs: what each is, and none is malformed.
#[test]
fn wireshark_dissects_the_packets_of_real_logs() {
    let tshark = Command::new("tshark").arg("-v").output();
    if tshark.is_err() {
        return skipped("needs tshark");
    }
    let dir = tempfile::tempdir().unwrap();
    // RRC with NAS in it, NAS, NR RRC and MAC, in the numbers of the logs' own messages.
    let expected: [(&str, &[(&str, usize)]); 4] = [
        (
            "diag/mi_xiaomi_mi10_20201116_123302.mi2log",
            &[("gsmtap.type == 13", 890), ("gsmtap.type == 18", 72), ("exported_pdu", 63)],
        ),
        ("diag/mi_bler_sample.mi2log", &[("gsmtap.type == 13", 159), ("gsmtap.type == 18", 19)]),
        ("diag/pixelxl_2018_download.mi2log", &[("mac-lte", 2_104), ("lte_rrc", 54)]),
        ("modern/lte_b063_v50.qmdl", &[("mac-lte", 197), ("mac-lte.dlsch.lcid", 197)]),
    ];
    for (name, filters) in expected {
        let out = dir.path().join("air.pcapng");
        let Some(log) = shared_data(name) else { continue };
        let args = ["-q", "decode", "--format", "pcapng", "-o"];
        airmile(&[&args[..], &[out.to_str().unwrap(), log.to_str().unwrap()]].concat());
        for (filter, count) in filters {
            assert_eq!(frames(&out, filter), *count, "{name}: {filter}");
        }
        assert_eq!(frames(&out, "_ws.malformed"), 0, "{name}");
    }
}

fn frames(file: &Path, filter: &str) -> usize {
    let args = ["-r", file.to_str().unwrap(), "-Y", filter, "-T", "fields", "-e", "frame.number"];
    let out = Command::new("tshark").args(args).output().unwrap();
    assert!(out.status.success(), "{}", text(&out.stderr));
    text(&out.stdout).lines().count()
}
