//! Every record of the public sample logs against a reference decoder's
//! output (MobileInsight 6.0.0).
//!
//! The logs are of the shared material (`airmile_testing`).
//!
//! A message is projected onto the reference's own field names (`project/`) and compared
//! field by field. A field of the reference that the projection lacks must be listed in
//! `exceptions.rs` with a reason.

mod counters;
mod exceptions;
mod project;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use airmile_decode::diag::{Deframer, Event, LogPacket, Message, names};
use airmile_testing::{shared_files, skipped};
use serde_json::Value;

fn samples() -> Vec<PathBuf> {
    shared_files("diag", &[".mi2log", ".qmdl"])
}

/// The logs beside which there is such a file.
fn samples_with(suffix: &str) -> Vec<PathBuf> {
    let mut logs = samples();
    logs.retain(|log| {
        let is_there = sibling(log, suffix).exists();
        if !is_there {
            skipped(format_args!("{} has no {suffix}", log.display()));
        }
        is_there
    });
    logs
}

#[allow(clippy::disallowed_methods, reason = "tests read their samples")]
fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap()
}

fn sibling(log: &Path, suffix: &str) -> PathBuf {
    let stem = log.file_stem().unwrap().to_str().unwrap();
    log.with_file_name(format!("{stem}.{suffix}"))
}

/// Calls `f` with every event of a log.
fn each_event(bytes: &[u8], mut f: impl FnMut(Event<'_>)) -> Deframer {
    let mut deframer = Deframer::new();
    for chunk in bytes.chunks(1 << 16) {
        deframer.push(chunk);
        while let Some(event) = deframer.poll() {
            f(event);
        }
    }
    deframer.finish();
    while let Some(event) = deframer.poll() {
        f(event);
    }
    deframer
}

/// The compared fields of a message and version.
#[derive(Default)]
struct Row {
    records: u64,
    fields: u64,
}

#[derive(Default)]
struct Comparison {
    rows: BTreeMap<String, Row>,
    mismatches: BTreeMap<String, (u64, String)>,
    unlisted: BTreeSet<String>,
    excepted: BTreeMap<(&'static str, String), u64>,
    fields: u64,
}

impl Comparison {
    fn mismatch(&mut self, path: &str, detail: impl FnOnce() -> String) {
        let entry = self.mismatches.entry(path.to_owned()).or_insert_with(|| (0, detail()));
        entry.0 += 1;
    }

    fn value(&mut self, at: &str, path: &str, theirs: &Value, ours: &Value) {
        match (theirs, ours) {
            (Value::Object(theirs), Value::Object(ours)) => {
                for (key, theirs) in theirs {
                    let path = if path.contains(' ') {
                        format!("{path}.{key}")
                    } else {
                        format!("{path} {key}")
                    };
                    match ours.get(key) {
                        Some(ours) => self.value(at, &path, theirs, ours),
                        None => match exceptions::reason(&path) {
                            Some(reason) => {
                                *self.excepted.entry((reason, path)).or_default() += 1;
                            }
                            None => {
                                self.unlisted.insert(path);
                            }
                        },
                    }
                }
            }
            (Value::Array(theirs), Value::Array(ours)) => {
                if theirs.len() != ours.len() {
                    let (theirs, ours) = (theirs.len(), ours.len());
                    self.mismatch(path, || format!("{at}: {theirs} items, ours {ours}"));
                }
                let path = format!("{path}[]");
                for (theirs, ours) in theirs.iter().zip(ours) {
                    self.value(at, &path, theirs, ours);
                }
            }
            _ => {
                self.fields += 1;
                let equal = match (theirs.as_f64(), ours.as_f64()) {
                    (Some(theirs), Some(ours)) => {
                        (theirs - ours).abs() <= 1e-5 * ours.abs().max(1.0)
                    }
                    _ => theirs == ours,
                };
                if !equal {
                    self.mismatch(path, || format!("{at}: {theirs}, ours {ours}"));
                }
            }
        }
    }
}

/// Nanoseconds since the Unix epoch of a time such as `2020-01-01T00:00:00.05`.
fn iso_ns(text: &str) -> i64 {
    let number = |from: usize, to: usize| text[from..to].parse::<i64>().unwrap();
    let (year, month, day) = (number(0, 4), number(5, 7), number(8, 10));
    // Days from civil, proleptic Gregorian.
    let shifted = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    let days = 365 * shifted + shifted / 4 - shifted / 100 + shifted / 400 + day_of_year - 719_468;
    let seconds = days * 86_400 + number(11, 13) * 3600 + number(14, 16) * 60 + number(17, 19);
    let fraction = text
        .get(20..)
        .map_or(0, |digits| digits.parse::<i64>().unwrap() * 10i64.pow(9 - digits.len() as u32));
    seconds * 1_000_000_000 + fraction
}

fn compare(log: &LogPacket<'_>, reference: &Value, file: &str, comparison: &mut Comparison) {
    let at = format!("{file} at {}", log.offset);
    let code = format!("0x{:04X}", log.code);
    let envelope = serde_json::json!({
        "log_code": code,
        "ts_raw": log.ts_raw,
        "log_msg_len": log.payload.len() + 12,
        "diag_id": log.subscription,
    });
    for (key, ours) in envelope.as_object().unwrap() {
        let theirs = reference.get(key).cloned().unwrap_or(0.into());
        comparison.value(&at, &format!("{code} {key}"), &theirs, ours);
    }
    comparison.value(
        &at,
        &format!("{code} type"),
        &reference["type"],
        &names::name(log.code).into(),
    );
    // The reference treats the stamp's fraction as a 65536th of a tick.
    let theirs = iso_ns(reference["timestamp"].as_str().unwrap());
    let late = log.at.ns - theirs;
    comparison.fields += 1;
    if !(-1_000..=320_000).contains(&late) {
        comparison.mismatch(&format!("{code} timestamp"), || format!("{at}: {late} ns off"));
    }

    let parsed = match Message::parse(log.code, log.payload) {
        Ok(Some(parsed)) => parsed,
        Ok(None) if Message::CODES.contains(&log.code) => {
            panic!("{at}: {code} v{} is not known", log.payload[0]);
        }
        Ok(None) => return,
        Err(error) => panic!("{at}: {error}"),
    };
    if let Some(problem) = parsed.problem {
        comparison.mismatch(&format!("{code} problem"), || format!("{at}: {problem}"));
    }
    let mut theirs = reference.as_object().unwrap().clone();
    for key in ["log_code", "ts_raw", "log_msg_len", "diag_id", "type", "timestamp", "frame_offset"]
    {
        theirs.remove(key);
    }
    exceptions::correct(log.code, &mut theirs);
    let ours = project::project(&parsed.message);
    let before = comparison.fields;
    comparison.value(&at, &code, &theirs.into(), &ours);
    let row = comparison.rows.entry(project::version(&parsed.message)).or_default();
    row.records += 1;
    row.fields += comparison.fields - before;
}

#[test]
fn every_field_equals_the_reference() {
    let mut comparison = Comparison::default();
    let mut references = 0;
    let mut matched = 0;
    for log in &samples_with("reference.jsonl.gz") {
        let file = log.file_name().unwrap().to_str().unwrap();
        let gz = read(&sibling(log, "reference.jsonl.gz"));
        let lines = BufReader::new(flate2::read::GzDecoder::new(&gz[..])).lines();
        let mut by_offset: HashMap<u64, Value> = HashMap::new();
        for line in lines {
            let record: Value = serde_json::from_str(&line.unwrap()).unwrap();
            by_offset.insert(record["frame_offset"].as_u64().unwrap(), record);
        }
        references += by_offset.len();
        each_event(&read(log), |event| {
            if let Event::Log(packet) = event
                && let Some(reference) = by_offset.get(&packet.offset)
            {
                matched += 1;
                compare(&packet, reference, file, &mut comparison);
            }
        });
    }
    println!("{:<28}{:>9}{:>11}", "message and version", "records", "fields");
    for (name, row) in &comparison.rows {
        println!("{name:<28}{:>9}{:>11}", row.records, row.fields);
        assert!(row.records > 0 && row.fields > row.records, "{name} was not compared");
    }
    println!("{references} reference records, {} fields compared\n", comparison.fields);
    println!("not compared:");
    for ((reason, path), count) in &comparison.excepted {
        println!("{count:>8}  {path}: {reason}");
    }
    assert_eq!(matched, references, "reference records without a frame");
    assert!(
        comparison.unlisted.is_empty(),
        "neither compared nor excepted: {:#?}",
        comparison.unlisted
    );
    assert!(comparison.mismatches.is_empty(), "{:#?}", comparison.mismatches);
}

#[test]
fn frames_and_codes_are_counted_alike() {
    for log in &samples_with("counts.json") {
        let counts: Value = serde_json::from_slice(&read(&sibling(log, "counts.json"))).unwrap();
        let mut codes: BTreeMap<String, u64> = BTreeMap::new();
        let mut commands: BTreeMap<String, u64> = BTreeMap::new();
        let mut subscriptions: BTreeMap<String, u64> = BTreeMap::new();
        let mut damage = 0;
        let deframer = each_event(&read(log), |event| {
            let (command, subscription) = match event {
                Event::Log(packet) => {
                    *codes.entry(format!("0x{:04X}", packet.code)).or_default() += 1;
                    (0x10, packet.subscription)
                }
                Event::Other(other) => (other.command, other.subscription),
                Event::Problem(problem) => {
                    damage += u32::from(problem.severity != airmile_model::Severity::Normal);
                    return;
                }
            };
            *commands.entry(format!("0x{command:02X}")).or_default() += 1;
            if subscription != 0 {
                *subscriptions.entry(subscription.to_string()).or_default() += 1;
            }
        });
        let frames = &counts["frames"];
        let ours = deframer.counts();
        assert_eq!(frames["good_frames"], ours.good_frames, "{}", log.display());
        assert_eq!(
            frames["bad_crc_frames"].as_u64().unwrap_or(0),
            ours.bad_frames,
            "{}",
            log.display()
        );
        assert_eq!(counts["bytes"], ours.bytes);
        // One log has a frame in its middle whose writer was interrupted; all other bad
        // pieces are truncated ends.
        assert_eq!(damage, u32::from(log.ends_with("mi_xiaomi_mi10_20201116_123302.mi2log")));
        assert_eq!(counts["diag_command_codes"], serde_json::json!(commands), "{}", log.display());
        assert_eq!(counts["dual_sim_wrapper_0x98_by_id"], serde_json::json!(subscriptions));
        let theirs = counts["log_code_counts"].as_object().unwrap();
        let theirs: BTreeMap<_, _> =
            theirs.iter().map(|(code, c)| (code.clone(), c["count"].as_u64().unwrap())).collect();
        assert_eq!(theirs, codes, "{}", log.display());
    }
}

#[test]
fn as_dlf_a_log_decodes_identically() {
    for log in &samples() {
        let bytes = read(log);
        let mut dlf = Vec::new();
        let mut hdlc = Vec::new();
        let mut direct = Vec::new();
        each_event(&bytes, |event| {
            if let Event::Log(packet) = event {
                packet.emit_dlf(&mut dlf);
                packet.emit_hdlc(&mut hdlc);
                direct.push((packet.code, packet.ts_raw, packet.at, packet.payload.to_vec()));
            }
        });
        for container in [&dlf, &hdlc] {
            let mut packets = direct.iter();
            let deframer = each_event(container, |event| {
                let Event::Log(packet) = event else { panic!("{event:?}") };
                let payload = packet.payload.to_vec();
                let theirs = (packet.code, packet.ts_raw, packet.at, payload);
                assert_eq!(packets.next(), Some(&theirs), "{}", log.display());
            });
            assert_eq!(packets.next(), None);
            assert_eq!(deframer.counts().bad_frames, 0);
        }
    }
}

/// What a message emits decodes to the same message, also for real ones.
#[test]
fn emitted_messages_decode_to_themselves() {
    for log in &samples() {
        each_event(&read(log), |event| {
            let Event::Log(packet) = event else { return };
            if let Ok(Some(parsed)) = Message::parse(packet.code, packet.payload) {
                let again = Message::parse(packet.code, &parsed.message.emit());
                let again = again.unwrap().unwrap();
                assert_eq!(again.message, parsed.message);
                assert_eq!(again.problem, None);
            }
        });
    }
}
