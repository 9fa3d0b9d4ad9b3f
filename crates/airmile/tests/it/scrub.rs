//! Copies that can be shared: they identify nobody, and give the same results as the originals.

use std::collections::HashSet;
use std::fs;
use std::io::{Read, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use airmile::capture::packet::{CaptureReader, Captured, dissect, link};
use airmile::model::flow::PacketRow;
use airmile::model::packet::Address;
use airmile::packet_study::{PacketStudy, StudyOptions, Tables};
use airmile::pseudonym::{KEY_BYTES, Pseudonyms};
use airmile::{
    Input, Inputs, Progress, RadioOptions, ScrubOptions, ScrubReport, diagnose, read_capture,
    read_inputs, scrub,
};
use airmile_testing::shared_files;
use serde_json::Value;

const KEY: [u8; KEY_BYTES] = [0x5a; KEY_BYTES];

/// A key file of [`KEY`], in its own directory.
fn workplace() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let key = dir.path().join("key");
    fs::write(&key, format!("airmile-scrub-key-1 {}\n", "5a".repeat(KEY_BYTES))).unwrap();
    (dir, key)
}

fn scrubbed(input: &Path, output: &Path, key: &Path) -> ScrubReport {
    let options = ScrubOptions { output: output.to_owned(), key: Some(key.to_owned()) };
    scrub(&[input.to_owned()], &options, &Progress::default()).unwrap()
}

/// A frame of a capture: its link type and its bytes.
type Frame = (u32, Vec<u8>);

fn contents(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    // The readable part of a torn file suffices.
    let _ = Input::open(path, &Progress::default()).unwrap().read_to_end(&mut bytes);
    bytes
}

fn frames(bytes: &[u8]) -> Vec<Frame> {
    let mut frames = Vec::new();
    let mut take = |captured: Captured<'_>| {
        if let Captured::Frame(frame) = captured {
            frames.push((frame.link, frame.data.to_vec()));
        }
    };
    let mut reader = CaptureReader::new();
    reader.push(bytes, &mut take);
    reader.finish(&mut take);
    frames
}

/// Data that could identify who was captured.
#[derive(Default)]
struct Identities {
    addresses: HashSet<IpAddr>,
    macs: HashSet<[u8; 6]>,
    /// Eight bytes of text, at any place.
    words: HashSet<[u8; 8]>,
}

/// Eight letters, digits or signs, with enough different ones.
fn is_word(word: &[u8; 8]) -> bool {
    let different: HashSet<&u8> = word.iter().collect();
    word.iter().all(u8::is_ascii_graphic) && different.len() >= 4
}

impl Identities {
    /// For frames of which only these remain: the text that was cut from them.
    fn of(frames: &[Frame], left: &[Frame]) -> Self {
        let mut all = Self::default();
        for (n, (link, data)) in frames.iter().enumerate() {
            let frame = airmile::capture::packet::Frame {
                offset: 0,
                at_ns: 0,
                interface: 0,
                link: *link,
                wire_bytes: data.len() as u32,
                data,
            };
            if let Ok(packet) = dissect(&frame) {
                all.addresses.extend([packet.src.ip(), packet.dst.ip()]);
            }
            if *link == link::ETHERNET && data.len() >= 14 {
                all.macs.extend(
                    data[..12].chunks_exact(6).map(|mac| <[u8; 6]>::try_from(mac).unwrap()),
                );
            }
            let cut = data.get(left.get(n).map_or(0, |(_, left)| left.len())..).unwrap_or_default();
            all.words.extend(cut.array_windows_of_eight().filter(is_word));
        }
        // These are common to all; as bytes they occur in any header.
        all.addresses.retain(|ip| !ip.is_unspecified() && !ip.is_loopback());
        all.addresses.remove(&IpAddr::V4(std::net::Ipv4Addr::BROADCAST));
        all.macs.retain(|mac| *mac != [0; 6] && *mac != [0xff; 6]);
        all
    }

    /// Those found in bytes: binary in either order, or as text.
    fn found_in(&self, bytes: &[u8]) -> Vec<String> {
        let mut found = Vec::new();
        let text = String::from_utf8_lossy(bytes);
        // One byte four times is padding as often as an address.
        let mut octets: HashSet<Vec<u8>> =
            self.addresses.iter().flat_map(|ip| both_orders(*ip)).collect();
        octets.retain(|octets| octets.iter().any(|octet| *octet != octets[0]));
        for length in [4, 16] {
            found.extend(
                bytes.windows(length).filter(|w| octets.contains(*w)).map(|w| format!("{w:?}")),
            );
        }
        for ip in &self.addresses {
            let name = ip.to_string();
            // `::2` and the like occur in any text.
            found.extend((name.len() >= 7 && text.contains(&name)).then_some(name));
        }
        let hex = |mac: &[u8; 6], between: &str| mac.map(|b| format!("{b:02x}")).join(between);
        for mac in &self.macs {
            let names = [hex(mac, ":"), hex(mac, "-"), hex(mac, "")];
            found.extend(names.into_iter().filter(|name| text.to_lowercase().contains(name)));
        }
        found.extend(bytes.windows(6).filter(|w| self.macs.contains(*w)).map(|w| format!("{w:?}")));
        found.extend(
            bytes
                .array_windows_of_eight()
                .filter(|w| self.words.contains(w))
                .map(|w| format!("text {:?}", String::from_utf8_lossy(&w))),
        );
        found
    }
}

fn both_orders(ip: IpAddr) -> [Vec<u8>; 2] {
    let mut bytes = match ip {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let forward = bytes.clone();
    bytes.reverse();
    [forward, bytes]
}

trait Windows {
    fn array_windows_of_eight(&self) -> impl Iterator<Item = [u8; 8]>;
}

impl Windows for [u8] {
    fn array_windows_of_eight(&self) -> impl Iterator<Item = [u8; 8]> {
        self.windows(8).map(|w| <[u8; 8]>::try_from(w).unwrap())
    }
}

/// Rows of a capture's tables, without those that depend on payload; `name` gives names to
/// addresses.
fn rows(path: &Path, mut name: impl FnMut(&str) -> String) -> Vec<Value> {
    let mut study =
        PacketStudy::new(StudyOptions { tables: Tables::ALL, ..StudyOptions::default() });
    let mut rows = Vec::new();
    read_capture(path, &Progress::default(), &mut |packet| {
        study.push(packet);
        rows.extend(std::iter::from_fn(|| study.poll()));
    })
    .unwrap();
    let summary = study.finish_with(&mut |row| rows.push(row));
    rows.retain(|row| !matches!(row, PacketRow::Http(_) | PacketRow::Dns(_)));
    let columns = PacketRow::tables();
    let mut values: Vec<Value> = Vec::new();
    for row in &rows {
        let (_, _, columns) = columns.iter().find(|(name, ..)| *name == row.name()).unwrap();
        let mut cells = Vec::new();
        row.values(&mut |value| cells.push(value.to_json()));
        let names = columns.iter().map(|column| column.name.to_owned());
        values.push(names.zip(cells).collect::<serde_json::Map<_, _>>().into());
    }
    for fields in values.iter_mut().filter_map(Value::as_object_mut) {
        for told_by_payload in ["server_name", "application", "quic_handshake_ns"] {
            fields.remove(told_by_payload);
        }
        for side in ["client", "server"] {
            if let Some(Value::String(address)) = fields.get_mut(side) {
                *address = name(address);
            }
        }
    }
    let mut quality = summary.quality;
    // Options that extend beyond the header have been removed.
    (quality.payload_cut, quality.options_cut) = (0, 0);
    values.push(serde_json::to_value(quality).unwrap());
    values
}

fn pseudonym(names: &mut Pseudonyms, address: &str) -> String {
    let is = match address.parse().unwrap() {
        IpAddr::V4(ip) => Address::v4(names.v4(ip.octets())),
        IpAddr::V6(ip) => Address::v6(names.v6(ip.octets())),
    };
    is.to_string()
}

/// Nothing identifies anybody, and the study's tables are the same.
fn check_capture(input: &Path, copy: &Path, key: &Path) -> ScrubReport {
    let report = scrubbed(input, copy, key);
    let (before, after) = (contents(input), contents(copy));
    let found = Identities::of(&frames(&before), &frames(&after)).found_in(&after);
    assert!(found.is_empty(), "{}: {found:?}", input.display());
    let mut names = Pseudonyms::new(&KEY);
    let expected = rows(input, |address| pseudonym(&mut names, address));
    let is = rows(copy, str::to_owned);
    assert_eq!(expected.len(), is.len(), "{}", input.display());
    for (expected, is) in expected.iter().zip(&is) {
        assert_eq!(expected, is, "{}", input.display());
    }
    report
}

/// An Ethernet capture of a DNS lookup, a TLS client hello and a request.
fn planted() -> Vec<u8> {
    let mut out = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    out.extend(65_535_u32.to_le_bytes());
    out.extend(1_u32.to_le_bytes());
    let dns =
        [&[0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 6][..], b"hidden\x07example\0\0\x01\0\x01"].concat();
    let hello =
        [&[22, 3, 1, 0, 60][..], b"................server-name.hidden.example........."].concat();
    let request =
        b"GET /private HTTP/1.1\r\nHost: hidden.example\r\nCookie: session=c00c1e\r\n\r\n";
    for (n, (protocol, port, payload)) in
        [(17, 53, &dns[..]), (6, 443, &hello), (6, 80, &request[..])].into_iter().enumerate()
    {
        let mut above = [54_321_u16, port].map(u16::to_be_bytes).concat();
        if protocol == 6 {
            above.extend([
                0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x50, 0x18, 1, 0, 9, 9, 0, 0,
            ]);
        } else {
            above.extend([0, 8 + payload.len() as u8, 9, 9]);
        }
        above.extend_from_slice(payload);
        let mut frame =
            vec![0x00, 0x1b, 0x21, 0x3c, 0x9d, 0xf8, 0x00, 0x16, 0x3e, 0x5e, 0x6c, 0x7b];
        frame.extend([8, 0, 0x45, 0, 0, 20 + above.len() as u8, 0, 1, 0, 0, 64, protocol, 7, 7]);
        frame.extend([10, 77, 143, 29, 198, 51, 100, 231]);
        frame.extend(above);
        out.extend(1_700_000_000_u32.to_le_bytes());
        out.extend((n as u32).to_le_bytes());
        out.extend([frame.len() as u32, frame.len() as u32].map(u32::to_le_bytes).concat());
        out.extend(frame);
    }
    out
}

#[test]
fn nothing_that_was_planted_is_found() {
    let (dir, key) = workplace();
    let input = dir.path().join("planted.pcap");
    fs::write(&input, planted()).unwrap();
    let identities = Identities::of(&frames(&planted()), &[]);
    // The search finds what is there.
    let before = identities.found_in(&planted());
    for planted in
        ["[10, 77, 143, 29]", "text \"session=\"", "text \"hidden.e\"", "[0, 22, 62, 94, 108, 123]"]
    {
        assert!(before.iter().any(|found| found == planted), "{planted}: {before:?}");
    }
    let copy = dir.path().join("copy.pcap");
    let report = check_capture(&input, &copy, &key);
    assert_eq!(report.files[0].changes["checksums_over_cut_payload"], 3);
    for name in ["hidden", "session", "private"] {
        assert!(!String::from_utf8_lossy(&contents(&copy)).contains(name));
    }
}

#[test]
fn a_run_of_the_lab_answers_as_before() {
    let (dir, key) = workplace();
    let run = dir.path().join("run");
    let left = airmile_lab::run_scenario("wireline-limited", None, &run).unwrap();
    let names = left.files.iter().map(|file| &file.name);
    let captures: Vec<&String> = names.filter(|name| name.ends_with(".pcapng")).collect();
    assert!(captures.len() >= 2, "{:?}", left.files);
    for capture in captures {
        let report = check_capture(&run.join(capture), &dir.path().join(capture), &key);
        assert!(!report.damaged());
    }
    check_log(&run.join("modem.mi2log"), &dir.path().join("copy.mi2log"), &key);
}

/// Records without the cell's identity, and without undecoded content.
fn records(inputs: &Inputs) -> Vec<Value> {
    let mut records = Vec::new();
    read_inputs(inputs, &Progress::default(), &mut |tagged| {
        let mut fields = tagged.record.to_json();
        for name in ["pci", "cell_identity", "tac", "mcc", "mnc", "offset", "payload"] {
            fields.remove(name);
        }
        records.push(fields.into());
    })
    .unwrap();
    records
}

/// The same verdict, with the same evidence, and the same records.
fn check_log(input: &Path, copy: &Path, key: &Path) -> ScrubReport {
    let report = scrubbed(input, copy, key);
    let answers = [input, copy].map(|path| {
        let inputs = Inputs { files: vec![path.to_owned()], ..Inputs::default() };
        let answer = diagnose(&inputs, &RadioOptions::default(), &Progress::default()).unwrap();
        let transfers = serde_json::to_value(&answer.transfers).unwrap();
        ((answer.session.verdict, answer.session.confidence, transfers), records(&inputs))
    });
    let [(before, was), (after, is)] = answers;
    assert_eq!(before, after, "{}", input.display());
    assert_eq!(was.len(), is.len(), "{}", input.display());
    for (was, is) in was.iter().zip(&is) {
        assert_eq!(was, is, "{}", input.display());
    }
    report
}

#[test]
fn real_captures_keep_their_tables_and_lose_their_names() {
    let (dir, key) = workplace();
    for input in shared_files("pcap", &[".pcap", ".pcap.gz", ".pcapng"]) {
        let copy = dir.path().join(input.file_name().unwrap());
        check_capture(&input, &copy, &key);
    }
}

#[test]
fn real_logs_keep_their_verdicts() {
    let (dir, key) = workplace();
    for input in shared_files("diag", &[".mi2log", ".qmdl"]) {
        let copy = dir.path().join(input.file_name().unwrap());
        let report = check_log(&input, &copy, &key);
        assert!(report.files[0].changes["messages"] > 0);
    }
}

#[test]
fn containers_and_compression_stay_and_the_manifest_tells() {
    let (dir, key) = workplace();
    let gz = dir.path().join("imei-351234.pcap.gz");
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(&planted()).unwrap();
    fs::write(&gz, encoder.finish().unwrap()).unwrap();
    let zst = dir.path().join("b.pcap.zst");
    fs::write(&zst, zstd::encode_all(&planted()[..], 1).unwrap()).unwrap();
    let out = dir.path().join("shared");
    let options = ScrubOptions { output: out.clone(), key: Some(key.clone()) };
    let report = scrub(&[gz, zst], &options, &Progress::default()).unwrap();
    let names: Vec<&str> = report.files.iter().map(|f| f.output.as_str()).collect();
    assert_eq!(
        names,
        ["capture-1.pcap.gz", "capture-2.pcap.zst"],
        "names can identify phones, too"
    );
    let copies = names.map_contents(&out);
    assert_eq!(copies[0], copies[1]);
    assert_eq!(fs::read(out.join(names[0])).unwrap()[..2], [0x1f, 0x8b]);
    let manifest = fs::read_to_string(out.join("manifest.json")).unwrap();
    assert!(!manifest.contains("351234") && !manifest.contains(&"5a".repeat(8)), "{manifest}");
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    assert_eq!((&manifest["document"], &manifest["version"]), (&"scrub".into(), &1.into()));
    assert_eq!(manifest["key_fingerprint"].as_str().unwrap().len(), 16);
    assert_eq!(manifest["files"][0]["changes"]["frames"], 3);
    // A digest of the input without a key would confirm guesses of what was replaced.
    assert_eq!(manifest["files"][0]["input_hmac_sha256"].as_str().unwrap().len(), 64);
    assert_eq!(manifest["files"][0].get("input_sha256"), None);
}

trait Contents {
    fn map_contents(&self, dir: &Path) -> Vec<Vec<u8>>;
}

impl Contents for Vec<&str> {
    fn map_contents(&self, dir: &Path) -> Vec<Vec<u8>> {
        self.iter().map(|name| contents(&dir.join(name))).collect()
    }
}

#[test]
fn a_key_is_made_once_and_read_by_its_owner_alone() {
    let (dir, _) = workplace();
    let input = dir.path().join("planted.pcap");
    fs::write(&input, planted()).unwrap();
    let copy = dir.path().join("copy.pcap");
    let run = |output: &Path, key: Option<PathBuf>| {
        let options = ScrubOptions { output: output.to_owned(), key };
        scrub(std::slice::from_ref(&input), &options, &Progress::default())
    };
    let report = run(&copy, None).unwrap();
    assert!(report.key_made);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&report.key_file).unwrap().permissions().mode() & 0o777, 0o600);
    }
    // The same key gives the same copy; another key another one.
    let [again, other] = ["again.pcap", "other.pcap"].map(|name| dir.path().join(name));
    assert!(!run(&again, Some(report.key_file.clone())).unwrap().key_made);
    run(&other, Some(dir.path().join("new.key"))).unwrap();
    assert_eq!(contents(&copy), contents(&again));
    assert_ne!(contents(&copy), contents(&other));
    // No file is overwritten, and a failed run leaves none.
    let error = run(&copy, Some(report.key_file.clone())).unwrap_err().to_string();
    assert!(error.contains("exists already"), "{error}");
    let error = run(&input, Some(report.key_file)).unwrap_err().to_string();
    assert!(error.contains("exists already"), "{error}");
    assert_eq!(contents(&input), planted());
    let text = dir.path().join("text");
    fs::write(&text, "hello\n").unwrap();
    let failed = dir.path().join("failed.pcap");
    let options = ScrubOptions { output: failed.clone(), key: None };
    let error = scrub(&[text], &options, &Progress::default()).unwrap_err().to_string();
    assert!(error.contains("can be scrubbed"), "{error}");
    assert!(!failed.exists() && !dir.path().join("failed.pcap.key").exists());
}

#[test]
fn a_copy_without_packets_is_named() {
    let (dir, key) = workplace();
    let input = dir.path().join("none.pcap");
    // The file's header.
    fs::write(&input, &planted()[..24]).unwrap();
    let report = scrubbed(&input, &dir.path().join("copy.pcap"), &key);
    let problems: Vec<String> = report.files[0].problems.iter().map(ToString::to_string).collect();
    assert_eq!(problems, ["no packets, so the copy is of an empty capture"]);
    assert!(!report.damaged());
}

#[test]
fn a_torn_capture_is_scrubbed_as_far_as_it_goes() {
    let (dir, key) = workplace();
    let input = dir.path().join("torn.pcap");
    let whole = planted();
    fs::write(&input, &whole[..whole.len() - 5]).unwrap();
    let copy = dir.path().join("copy.pcap");
    let report = scrubbed(&input, &copy, &key);
    assert!(report.damaged());
    assert!(report.lacks.iter().any(|what| what.starts_with("damage of captures")), "{report:?}");
    assert_eq!(report.files[0].changes["frames"], 2);
    assert!(!String::from_utf8_lossy(&contents(&copy)).contains("session"));
    // Within the file's header: there is nothing to copy.
    fs::write(&input, &whole[..10]).unwrap();
    let output = dir.path().join("none.pcap");
    let options = ScrubOptions { output: output.clone(), key: Some(key) };
    let error = scrub(&[input], &options, &Progress::default()).unwrap_err().to_string();
    assert!(error.contains("torn.pcap: holds nothing that can be copied"), "{error}");
    assert!(!output.exists());
}

/// The copies of a run with QUIC, its directory given: those of logs, captures and HARs, with the same
/// verdict and shares.
#[test]
fn a_copied_run_of_quic_has_the_same_shares() {
    let (dir, key) = workplace();
    let run = dir.path().join("run");
    airmile_lab::run_scenario("quic-file", None, &run).unwrap();
    fs::write(run.join("page.har"), "{\"log\":{\"creator\":{\"name\":\"Ann\"},\"entries\":[]}}")
        .unwrap();
    fs::write(run.join("notes.txt"), "of the day").unwrap();
    let output = dir.path().join("shared");
    let options = ScrubOptions { output: output.clone(), key: Some(key) };
    let report = scrub(std::slice::from_ref(&run), &options, &Progress::default()).unwrap();
    let copies: Vec<&str> = report.files.iter().map(|file| file.output.as_str()).collect();
    let expected = ["log-1.mi2log", "page-2.har", "capture-3.pcapng", "capture-4.pcapng"];
    assert_eq!(copies, expected);
    assert!(report.lacks.iter().any(|what| what.contains("of QUIC")));
    assert!(report.left_out.iter().any(|file| file.path.ends_with("notes.txt")));
    assert!(!String::from_utf8_lossy(&contents(&output.join("page-2.har"))).contains("Ann"));
    let shares = |dir: &Path, names: &[&str]| {
        let files = names.iter().map(|name| dir.join(name)).collect();
        let inputs = Inputs { files, ..Inputs::default() };
        let answer = diagnose(&inputs, &RadioOptions::default(), &Progress::default()).unwrap();
        (answer.session.verdict, answer.session.leading, answer.session.shares)
    };
    let before = shares(&run, &["modem.mi2log", "phone.pcapng"]);
    assert!(before.2.contains_key("radio_contention"), "{before:?}");
    assert_eq!(shares(&output, &["log-1.mi2log", "capture-3.pcapng"]), before);
}
