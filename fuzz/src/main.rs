//! The mutating driver; see `README.md`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;

use airmile_decode::diag::{coresight, hdlc};
use airmile_fuzz::generate::{self, Kind};
use airmile_fuzz::mutate::damage;
use airmile_fuzz::targets::{self, Summary};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const USAGE: &str = "airmile-fuzz [--iterations N] [--seed N] [--first N] | --write-corpus DIR";

struct Options {
    iterations: u64,
    seed: u64,
    first: u64,
    corpus: Option<String>,
}

fn options() -> Result<Options, String> {
    let mut options = Options { iterations: 1_000_000, seed: 1, first: 0, corpus: None };
    let mut args = std::env::args().skip(1);
    while let Some(name) = args.next() {
        let value = args.next().ok_or(USAGE)?;
        let number = || value.parse::<u64>().map_err(|error| format!("{name} {value}: {error}"));
        match name.as_str() {
            "--iterations" => options.iterations = number()?,
            "--seed" => options.seed = number()?,
            "--first" => options.first = number()?,
            "--write-corpus" => options.corpus = Some(value),
            _ => return Err(USAGE.to_owned()),
        }
    }
    Ok(options)
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    if let Some(dir) = &options.corpus {
        return match write_corpus(Path::new(dir)) {
            Ok(files) => {
                println!("{files} files in {dir}");
                ExitCode::SUCCESS
            }
            Err(error) => {
                eprintln!("{dir}: {error}");
                ExitCode::from(3)
            }
        };
    }
    run(&options)
}

/// Totals over all inputs.
#[derive(Default)]
struct Totals {
    frames: u64,
    files: u64,
    bytes: u64,
    good_frames: u64,
    bad_frames: u64,
    logs: u64,
    others: u64,
    problems: [u64; 3],
    whole: u64,
    partial: u64,
    failed: u64,
    unknown: u64,
}

impl Totals {
    fn add(&mut self, summary: &Summary) {
        self.bytes += summary.counts.bytes;
        self.good_frames += summary.counts.good_frames;
        self.bad_frames += summary.counts.bad_frames;
        self.logs += summary.logs;
        self.others += summary.others;
        for (total, problems) in self.problems.iter_mut().zip(summary.problems) {
            *total += problems;
        }
        self.whole += summary.whole;
        self.partial += summary.partial;
        self.failed += summary.failed;
        self.unknown += summary.unknown;
    }
}

fn run(options: &Options) -> ExitCode {
    let kinds = generate::kinds();
    let mut totals = Totals::default();
    for iteration in options.first..options.first.saturating_add(options.iterations) {
        // Each iteration has its own generator, so that it can be repeated.
        let mut rng = ChaCha8Rng::seed_from_u64(options.seed);
        rng.set_stream(iteration);
        let outcome = catch_unwind(AssertUnwindSafe(|| once(&kinds, &mut rng, &mut totals)));
        if outcome.is_err() {
            eprintln!("panic in iteration {iteration} of seed {}", options.seed);
            return ExitCode::FAILURE;
        }
    }
    let Totals { frames, files, bytes, good_frames, bad_frames, logs, others, .. } = totals;
    let [normal, warnings, damage] = totals.problems;
    println!("inputs      {} ({frames} frames, {files} files, {bytes} bytes)", frames + files);
    println!("frames      {good_frames} good, {bad_frames} bad");
    println!("packets     {logs} logs, {others} others");
    println!("problems    {normal} normal, {warnings} warnings, {damage} damage");
    println!(
        "messages    {} whole, {} partial, {} without head, {} unknown",
        totals.whole, totals.partial, totals.failed, totals.unknown
    );
    println!("panics      0");
    ExitCode::SUCCESS
}

/// One input: with probability three quarters a single frame with a damaged payload and a
/// correct CRC, else a damaged file.
fn once(kinds: &[Kind], rng: &mut ChaCha8Rng, totals: &mut Totals) {
    if rng.random_range(0..4) > 0 {
        totals.frames += 1;
        let kind = kinds[rng.random_range(0..kinds.len())];
        let mut payload = generate::payload(kind, rng);
        let other = payload.clone();
        for _ in 0..rng.random_range(1..4) {
            damage(&mut payload, &other, rng);
        }
        // The parser itself, which must be able to write what it reads.
        let mut chosen = vec![0];
        chosen.extend_from_slice(&payload);
        for target in [targets::pdsch, targets::mac, targets::rlc, targets::measurements] {
            chosen[0] = rng.random();
            target(&chosen);
        }
        let log = generate::Log {
            subscription: rng.random_range(0..3),
            code: kind.code,
            ts_raw: rng.random(),
            payload,
        };
        let mut packet = generate::packet(&log);
        if rng.random_range(0..4) == 0 {
            damage(&mut packet, &other, rng);
        }
        targets::diag_packet(&packet);
        let mut stream = Vec::new();
        hdlc::encode(&packet, &mut stream);
        totals.add(&targets::summarise(&stream, usize::MAX));
        // Text, damaged in the same way.
        let [text, table] = generate::texts(rng).map(str::as_bytes);
        for (target, text) in [(targets::log_text as fn(&[u8]), text), (targets::sniffer, table)] {
            let mut bytes = text.to_vec();
            for _ in 0..rng.random_range(1..6) {
                damage(&mut bytes, text, rng);
            }
            target(&bytes);
        }
    } else {
        totals.files += 1;
        let count = rng.random_range(1..8);
        let logs = generate::logs(count, rng);
        let mut file = match rng.random_range(0..4) {
            0 => generate::hdlc_file(&logs),
            1 => generate::dlf_file(&logs),
            2 => generate::hdf_file(&logs, rng),
            _ => generate::qmdl2_file(&logs, rng),
        };
        let other = file.clone();
        for _ in 0..rng.random_range(0..5) {
            damage(&mut file, &other, rng);
        }
        targets::deframe(&file);
        targets::scrub_log(&file);
        targets::air_packets(&file);
        targets::prompt(&file);
        targets::coresight(&file);
        let mut trace = coresight::encode(&file);
        damage(&mut trace, &other, rng);
        targets::coresight(&trace);
        totals.add(&targets::summarise(&file, usize::MAX));
    }
}

/// Seeds for the corpora, from the emitters only.
#[allow(clippy::disallowed_methods, reason = "a command writes files")]
fn write_corpus(dir: &Path) -> std::io::Result<usize> {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let mut files = 0;
    let mut write = |target: &str, name: &str, bytes: &[u8]| {
        files += 1;
        std::fs::create_dir_all(dir.join(target))?;
        std::fs::write(dir.join(target).join(name), bytes)
    };
    let logs = generate::logs(4, &mut rng);
    write("deframe", "hdlc", &generate::hdlc_file(&logs))?;
    write("deframe", "dlf", &generate::dlf_file(&logs))?;
    write("deframe", "qmdl2", &generate::qmdl2_file(&logs, &mut rng))?;
    write("deframe", "hdf", &generate::hdf_file(&logs, &mut ChaCha8Rng::seed_from_u64(8)))?;
    write("deframe", "torn", &generate::hdlc_file(&logs)[9..])?;
    write("scrub_log", "hdlc", &generate::hdlc_file(&logs))?;
    write("scrub_log", "dlf", &generate::dlf_file(&logs))?;
    write("prompt", "hdlc", &generate::hdlc_file(&logs))?;
    let of_uplink = |log: &generate::Log| [0xB064, 0xB066, 0xB139, 0xB872].contains(&log.code);
    let mut uplink = generate::logs(300, &mut ChaCha8Rng::seed_from_u64(9));
    uplink.retain(of_uplink);
    write("prompt", "uplink", &generate::hdlc_file(&uplink))?;
    write("air_packets", "hdlc", &generate::hdlc_file(&logs))?;
    write("coresight", "hdlc", &coresight::encode(&generate::hdlc_file(&logs)))?;
    write("log_text", "qcat", generate::QCAT_TEXT.as_bytes())?;
    write("log_text", "qcat_b063", generate::QCAT_BLOCKS.as_bytes())?;
    write("log_text", "qxdm", generate::QXDM_TEXT.as_bytes())?;
    write("sniffer", "falcon", generate::FALCON.as_bytes())?;
    write("sniffer", "ng_scope", generate::NG_SCOPE.as_bytes())?;
    write("sniffer", "nr_scope", generate::NR_SCOPE.as_bytes())?;
    write("sniffer", "srsran", generate::SRSRAN.as_bytes())?;
    write("sniffer", "oai", generate::OAI.as_bytes())?;
    write("hdlc_frame", "escapes", &[0x7d, 0x5e, 0x7d, 0x5d, 0x7e, 0x7d])?;
    write(
        "nhdlc",
        "two_frames",
        &[8, 0, 5, 0, 0x7e, 1, 2, 0, 0x10, 0x7e, 0x7e, 0x7e, 1, 1, 0, 0x73, 0x7e],
    )?;
    write("diag_packet", "log", &generate::packet(&logs[0]))?;
    write("mac_header", "sdu_and_padding", &[0x2c, 0x07, 0x67, 0, 0x23, 0x86, 0xc1, 0x1f])?;
    write("rlc_header", "status_with_nacks", &[0x02, 0x87, 0x26, 0x40])?;
    for (name, packet) in generate::packets() {
        write("emulated_packet", name, &packet)?;
    }
    let families: [(&str, &[u16]); 10] = [
        ("pdsch", &[0xB126, 0xB132, 0xB173]),
        ("pdcch", &[0xB130]),
        ("pusch", &[0xB139]),
        ("mac", &[0xB063, 0xB064, 0xB066, 0xB067]),
        ("rlc", &[0xB082, 0xB092]),
        ("pdcp", &[0xB0A3, 0xB0B3]),
        ("rrc", &[0xB0C0, 0xB0C1, 0xB0C2]),
        ("counters", &[0xB087, 0xB097, 0xB888]),
        ("measurements", &[0xB179, 0xB18A, 0xB193, 0xB195]),
        ("nr", &[0xB821, 0xB823, 0xB872, 0xB881, 0xB887, 0xB97F, 0xB857]),
    ];
    for kind in generate::kinds() {
        for (target, codes) in families {
            if let Some(choice) = codes.iter().position(|&code| code == kind.code) {
                let mut bytes = vec![choice as u8];
                bytes.extend(generate::payload(kind, &mut rng));
                let version = match (kind.major, kind.subpacket) {
                    (0, Some((_, version))) => version.to_string(),
                    (0, None) => kind.version.to_string(),
                    (major, _) => format!("{major}_{}", kind.version),
                };
                write(target, &format!("{:04x}_v{version}", kind.code), &bytes)?;
            }
        }
    }
    Ok(files)
}
