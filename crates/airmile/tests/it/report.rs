//! The HTML report is complete, loads nothing from a network, and matches the document.

use crate::page::unpacked;
use airmile::write::report::write_html;
use airmile::{Document, Inputs, Progress, RadioOptions, Report, diagnose, report};
use serde_json::Value;

/// Grants as a table: two transfers with a pause in between.
fn inputs(dir: &tempfile::TempDir) -> Inputs {
    let path = dir.path().join("grants <b>.csv");
    let mut text = String::from("tti,dir,n_prb,n_prb_cell,tbs_bytes,retx,padding_bytes\n");
    for tti in (100..2_100).chain(9_000..9_500) {
        let last = tti == 2_099 || tti == 9_499;
        let padding = if last { 500 } else { 0 };
        text.push_str(&format!("{tti},dl,{},50,1000,0,{padding}\n", if last { 5 } else { 48 }));
    }
    std::fs::write(&path, text).unwrap();
    Inputs { files: vec![path], ..Inputs::default() }
}

fn html(report: &Report) -> String {
    let mut out = Vec::new();
    write_html(&mut out, report).unwrap();
    String::from_utf8(out).unwrap()
}

/// The content of the element with an id.
fn element<'a>(html: &'a str, id: &str) -> &'a str {
    let from = html.find(&format!("id=\"{id}\">")).unwrap_or_else(|| panic!("no {id}"));
    let text = html[from..].split_once('>').unwrap().1;
    text.split_once("</script>").unwrap().0
}

fn json(html: &str, id: &str) -> Value {
    serde_json::from_str(element(html, id)).unwrap()
}

fn array(html: &str, name: &str) -> Vec<u8> {
    unpacked(element(html, &format!("array-{name}")))
}

#[test]
fn the_document_parses_back_equal() {
    let dir = tempfile::tempdir().unwrap();
    let inputs = inputs(&dir);
    let options = RadioOptions::default();
    let whole = report(&inputs, &options, &Progress::default()).unwrap();
    let page = html(&whole);
    let alone = diagnose(&inputs, &options, &Progress::default()).unwrap();
    let alone = serde_json::to_value(Document::new("diagnose", &alone)).unwrap();
    assert_eq!(json(&page, "airmile-document"), alone);
    assert_eq!(alone["transfers"].as_array().unwrap().len(), 2);
}

#[test]
fn nothing_is_asked_of_a_network() {
    let dir = tempfile::tempdir().unwrap();
    let whole = report(&inputs(&dir), &RadioOptions::default(), &Progress::default()).unwrap();
    let page = html(&whole);
    assert!(page.contains("http-equiv=\"Content-Security-Policy\" content=\"default-src 'none';"));
    let lower = page.to_lowercase();
    for outside in
        ["src=", "<link", "@import", "url(", "http://", "https://", "fetch(", "xmlhttprequest"]
    {
        assert!(!lower.contains(outside), "{outside}");
    }
    // The file's name is text.
    assert!(!page.contains("<b>") && page.contains("&lt;b&gt;.csv - airmile</title>"));
}

#[test]
fn series_are_what_was_scheduled() {
    let dir = tempfile::tempdir().unwrap();
    let whole = report(&inputs(&dir), &RadioOptions::default(), &Progress::default()).unwrap();
    let page = html(&whole);
    let head = json(&page, "airmile-series");
    assert_eq!((&head["first_tti"], &head["n_tti"]), (&0.into(), &9_500.into()));
    let share = array(&page, "dl.share");
    // Two of three blocks of 4096 TTIs: the idle one is omitted.
    assert_eq!(array(&page, "dl.blocks"), [0_u32.to_le_bytes(), 2_u32.to_le_bytes()].concat());
    assert_eq!(share.len(), 2 * 4_096);
    assert_eq!((share[99], share[100], share[2_099], share[2_100]), (0, 241, 26, 0));
    let start = array(&page, "dl.burst.start");
    assert_eq!(start.len() / 4, whole.radio.bursts.len());
    assert_eq!(start[..4], 100_u32.to_le_bytes());
    assert!(head["arrays"].get("ul.share").is_none());
}

#[test]
fn an_uplink_alone_is_drawn_too() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("grants.csv");
    let mut text = String::from("tti,dir,n_prb,n_prb_cell,tbs_bytes\n");
    for tti in 0..100 {
        text.push_str(&format!("{tti},ul,10,50,1000\n"));
    }
    std::fs::write(&path, text).unwrap();
    let inputs = Inputs { files: vec![path], ..Inputs::default() };
    let whole = report(&inputs, &RadioOptions::default(), &Progress::default()).unwrap();
    assert_eq!(whole.series.ul.blocks.len(), 1);
    assert!(whole.series.dl.blocks.is_empty());
    assert_eq!(array(&html(&whole), "ul.share")[..100], [51; 100]);
}

/// A log may hold RLC PDUs but no allocation: bursts, but no blocks.
#[test]
fn the_axis_covers_bursts_without_an_allocation() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rlc.csv");
    let mut text = String::from("tti,dir,bearer,sn,size_bytes,poll\n");
    for (sn, tti) in (5_000..5_400).enumerate() {
        text.push_str(&format!("{tti},dl,3,{sn},1000,{}\n", u8::from(tti % 100 == 99)));
    }
    std::fs::write(&path, text).unwrap();
    let inputs = Inputs { files: vec![path], ..Inputs::default() };
    let whole = report(&inputs, &RadioOptions::default(), &Progress::default()).unwrap();
    assert!(whole.series.dl.blocks.is_empty());
    let last = whole.radio.bursts.iter().map(|b| b.end_tti.0).max().unwrap();
    let head = json(&html(&whole), "airmile-series");
    let first = head["first_tti"].as_i64().unwrap();
    assert_eq!(first, 4_096, "the block before the first burst");
    assert_eq!(first + head["n_tti"].as_i64().unwrap(), last);
    assert!(whole.diagnosis.session.says.contains("RLC poll bits show when data waited"));
}

fn u32s(html: &str, name: &str) -> Vec<u32> {
    let bytes = array(html, name);
    bytes.chunks_exact(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect()
}

/// A run of the lab with captures and an application's log: senders and requests are on the radio's
/// axis, and inside their transfers.
#[test]
fn senders_and_requests_are_on_the_axis() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    airmile_lab::run_scenario("receive-window", None, &run).unwrap();
    let of = |files: Vec<std::path::PathBuf>| {
        let inputs = Inputs { files, ..Inputs::default() };
        html(&report(&inputs, &RadioOptions::default(), &Progress::default()).unwrap())
    };
    let page = of(vec![run.clone()]);
    let (head, document) = (json(&page, "airmile-series"), json(&page, "airmile-document"));
    let transfer = &document["transfers"][0];
    let place = |key: &str| {
        u32::try_from(transfer[key].as_i64().unwrap() - head["first_tti"].as_i64().unwrap())
            .unwrap()
    };
    let (from, to) = (place("start_tti"), place("end_tti"));
    let (at, most) = (u32s(&page, "flight.tti"), u32s(&page, "flight.most"));
    assert_eq!(at.len(), most.len());
    assert!(at.iter().all(|at| (from..=to).contains(at)), "{from} to {to}: {at:?}");
    assert!(at.windows(2).all(|pair| pair[0] < pair[1]));
    // The scenario's window of 64 kB is in flight for most of it.
    let full = most.iter().filter(|bytes| (50_000..=65_536).contains(*bytes)).count();
    assert!(full * 2 > most.len(), "{full} of {}", most.len());
    let rwnd = u32s(&page, "rwnd.least");
    assert!(rwnd.iter().any(|bytes| (50_000..=65_536).contains(bytes)));
    let rtt = u32s(&page, "rtt.most");
    assert!(rtt.iter().any(|us| (100_000..300_000).contains(us)), "{rtt:?}");
    // Clocks of files are aligned within some ms.
    assert!(u32s(&page, "mark.from")[0].abs_diff(from) <= 5);
    assert_eq!(head["marks"][0], "request");
    // What limited it, in order, and mostly the window.
    let (starts, ends) = (u32s(&page, "cause.start"), u32s(&page, "cause.end"));
    assert!(starts.windows(2).zip(&ends).all(|(pair, end)| (pair[0]..=pair[1]).contains(end)));
    let mut ttis = std::collections::BTreeMap::<String, u32>::new();
    for ((start, end), code) in starts.iter().zip(&ends).zip(array(&page, "cause.code")) {
        let name = head["causes"][usize::from(code)].as_str().unwrap();
        *ttis.entry(name.to_owned()).or_default() += end - start;
    }
    for (name, ms) in transfer["shares"].as_object().unwrap() {
        let (name, ms) = (if name.starts_with("radio") { "radio" } else { name }, ms.as_f64());
        let drawn = f64::from(ttis.get(name).copied().unwrap_or(0));
        println!("{name}: {ms:?} ms, drawn {drawn}");
    }
    let window = f64::from(ttis["receive_window"]);
    let share = transfer["shares"]["receive_window"].as_f64().unwrap();
    assert!((window - share).abs() < 0.05 * share, "{window} of {share} ms");
    // The capture's frames during each piece of evidence.
    let name = head["capture"].as_str().unwrap();
    let files = document["files"].as_array().unwrap();
    let file = files.iter().find(|file| file["path"] == name).unwrap();
    let frames = head["frames"][0].as_array().unwrap();
    assert_eq!(frames.len(), transfer["evidence"].as_array().unwrap().len());
    let known: Vec<_> = frames.iter().filter(|one| !one.is_null()).collect();
    let all = known.iter().map(|one| (one[0].as_u64().unwrap(), one[1].as_u64().unwrap()));
    let n = file["items"].as_u64().unwrap();
    assert!(
        all.clone().all(|(first, last)| 1 <= first && first <= last && last <= n),
        "{frames:?}"
    );
    assert!(all.into_iter().any(|(first, last)| last - first > n / 2), "{frames:?} of {n}");

    // The application's log alone: no radio, but its requests.
    let alone = of(vec![run.join("app.jsonl")]);
    let head = json(&alone, "airmile-series");
    assert!(!head["arrays"].as_object().unwrap().contains_key("flight.tti"));
    assert_eq!(u32s(&alone, "mark.from")[0], 0);
    assert!(head["n_tti"].as_i64().unwrap() >= i64::from(to - from) - 1);
    assert_eq!(head["anchors"].as_array().unwrap().len(), 1);
}
