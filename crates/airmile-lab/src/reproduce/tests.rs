mod hosts;

use airmile_emulate::Scenario;

use super::*;

/// Rows of an experiment at the minimum size.
fn rows(name: &'static str) -> Vec<Row> {
    let names = [name.to_owned()];
    let (runs, mut summary) = (RunCount::default(), FigureSummary::default());
    let done = reproduce(&names, Size::Quick, None, &runs, &mut summary).unwrap();
    assert_eq!(summary, FigureSummary { begun: vec![(name, 1, 1)], ended: 1 });
    assert!(runs.done() > 0 && runs.done() == runs.of(), "{} of {}", runs.done(), runs.of());
    assert_eq!(done.experiments.len(), 1);
    let Reproduced { rows, figures, .. } = done.experiments.into_iter().next().unwrap();
    check_figures(name, &figures);
    for row in &rows {
        assert!(row.ours.is_none_or(f64::is_finite), "{name}: {row:?}");
        assert_eq!(row.ratio.is_some(), row.paper.is_some() && row.ours.is_some(), "{row:?}");
        if let (Some(low), Some(ours), Some(high)) = (row.low, row.ours, row.high) {
            assert!(low <= ours + 1e-9 && ours <= high + 1e-9, "{name}: {row:?}");
        }
    }
    rows
}

#[derive(Debug, Default, PartialEq)]
struct FigureSummary {
    begun: Vec<(&'static str, usize, usize)>,
    ended: usize,
}

impl Follower for FigureSummary {
    fn begins(&mut self, experiment: &Experiment, at: usize, of: usize) {
        self.begun.push((experiment.name, at, of));
    }

    fn ended(&mut self, so_far: &Reproduction) -> Result<()> {
        self.ended = so_far.experiments.len();
        Ok(())
    }
}

/// Figures have unique names, units, points within bounds, and can be drawn.
fn check_figures(experiment: &str, figures: &[Figure]) {
    assert!(!figures.is_empty(), "{experiment}");
    let names: std::collections::HashSet<&str> = figures.iter().map(|f| f.name).collect();
    assert_eq!(names.len(), figures.len(), "{experiment}");
    for figure in figures {
        let name = format!("{experiment}-{}", figure.name);
        assert!(figure.series.iter().any(|s| !s.points.is_empty()), "{name} is empty");
        assert!(figure.series.iter().all(|s| s.points.len() <= MAX_POINTS), "{name}");
        for axis in [&figure.x, &figure.y] {
            assert!(axis.label.contains('(') || axis.label.contains("R_ss"), "{name}: {axis:?}");
        }
        assert!(!figure.caption.is_empty(), "{name}");
        let drawn = draw::svg(figure).unwrap();
        assert!(drawn.contains(figure.x.label), "{name}");
        if let Ok(dir) = std::env::var("AIRMILE_FIGURES") {
            std::fs::create_dir_all(&dir).unwrap();
            std::fs::write(format!("{dir}/{name}.svg"), drawn).unwrap();
        }
    }
}

fn ours(rows: &[Row], what: &str) -> f64 {
    let found = rows.iter().find(|row| row.what == what);
    found.and_then(|row| row.ours).unwrap_or_else(|| panic!("no `{what}` in {rows:#?}"))
}

#[test]
fn names_are_checked_and_scenarios_read() {
    let names = ["fig99".to_owned()];
    let error = reproduce(&names, Size::Quick, None, &RunCount::default(), &mut ()).unwrap_err();
    assert!(error.to_string().contains("bursttracker-table1"), "{error}");
    let names = ["bursttracker-tabel1".to_owned()];
    let error = reproduce(&names, Size::Quick, None, &RunCount::default(), &mut ()).unwrap_err();
    assert!(error.to_string().contains("(did you mean `bursttracker-table1`?)"), "{error}");
}

/// Every share is within bounds.
fn check_shares(rows: &[Row]) {
    for row in rows.iter().filter(|row| row.unit == "%") {
        let ours = row.ours.unwrap_or(0.0);
        assert!((0.0..=100.0).contains(&ours), "{row:?}");
    }
}

#[test]
fn table_1() {
    let rows = rows("bursttracker-table1");
    let of = |what: &str| ours(&rows, what);
    for app in ["file", "video"] {
        let error = |kind: &str, of_runs: &str| {
            of(&format!("{app}: error of {kind}, {of_runs} percentile"))
        };
        assert!(error("ours", "50th") <= 0.5 && error("ours", "75th") <= 2.0, "{app}");
        // Accuracy of each kind of evidence; the rule and Active time are worse, as in the
        // paper.
        let medians = ["ours", "allocations alone", "the paper's rule", "Active time"]
            .map(|kind| error(kind, "50th"));
        assert!(medians.is_sorted(), "{app}: {medians:?}");
        assert!(medians[2] < 15.0 && (20.0..90.0).contains(&medians[3]), "{app}: {medians:?}");
        // With whole TTIs Active time misses contention; with shared TTIs it does not, and
        // the rule fails.
        let by = |scheduler: &str, kind: &str| {
            of(&format!("{app}, {scheduler}: error of {kind}, median"))
        };
        assert!(by("whole TTIs", "Active time") > 10.0 * by("whole TTIs", "the paper's rule"));
        assert!(by("round robin", "the paper's rule") > 10.0 * by("round robin", "Active time"));
        for scheduler in ["whole TTIs", "round robin", "PF in frequency", "blind equal"] {
            assert!(by(scheduler, "ours") <= 0.5, "{app}, {scheduler}");
        }
    }
    let shares = |app: &str| {
        ["25th", "50th", "75th"].map(|p| of(&format!("{app}: throughput time, {p} percentile")))
    };
    for app in ["file", "video", "video, segments of 1 s, buffer full"] {
        let shares = shares(app);
        assert!(shares.is_sorted() && shares[0] > 50.0 && shares[2] <= 100.0, "{app}: {shares:?}");
    }
    // Pauses before each segment leave less of it.
    assert!(shares("video, segments of 1 s, buffer full")[1] < shares("video")[1]);
}

#[test]
fn thresholds() {
    let rows = rows("bursttracker-thresholds");
    assert_eq!(rows.len(), 18);
    for row in &rows {
        // With whole TTIs the rule works, whatever its thresholds.
        let error = row.ours.unwrap();
        assert!(row.n == 2 && (0.0..20.0).contains(&error), "{row:?}");
    }
}

#[test]
fn shares_of_ttis() {
    let fig3 = rows("bursttracker-fig3");
    for whole in ["whole TTIs", "max C/I", "blind equal"] {
        assert_eq!(ours(&fig3, &format!("{whole}: busy TTIs that one user has")), 100.0);
    }
    assert!(ours(&fig3, "round robin: busy TTIs that one user has") < 50.0);
    assert!(ours(&fig3, "PF in frequency: busy TTIs that one user has") < 50.0);
    let fig4 = rows("bursttracker-fig4");
    let sum: f64 = fig4.iter().take(3).filter_map(|row| row.ours).sum();
    assert!((sum - 100.0).abs() < 1e-9, "{sum}");
    let of = |what: &str| ours(&fig4, what);
    assert!(of("TTIs in which a user has over 90 %") > 60.0);
    assert!(of("under 40 %, objects a tenth as large") > of("TTIs in which a user has under 40 %"));
    let fig5 = rows("bursttracker-fig5");
    for cell in ["idle", "busy"] {
        let of =
            |how: &str| ours(&fig5, &format!("{cell} cell, {how}: median share when scheduled"));
        assert!(of("128 kB at a time") > 80.0, "{cell}");
        assert!((10.0..70.0).contains(&of("1,470 bytes at a time")), "{cell}");
    }
}

#[test]
fn demand_of_files_and_video() {
    let rows = rows("bursttracker-fig6");
    assert_eq!(rows.len(), 24);
    check_shares(&rows);
    let of = |arm: &str| ours(&rows, &format!("{arm}: mean link demand"));
    // Shortened: a megabyte, three segments. Each request costs its round trip, so that
    // short segments, and pauses, leave less.
    assert!(of("file") > 50.0 && of("file") < 98.0);
    assert!(of("video, segments of 1 s") < of("video"));
    assert!(of("video, segments of 1 s, buffer full") < of("video, buffer full"));
    let restart = of("video, segments of 1 s, buffer full");
    let no_restart = of("video, segments of 1 s, buffer full, no restart");
    assert!((restart - no_restart).abs() < 10.0, "{restart} {no_restart}");
}

#[test]
fn release_and_delivery() {
    let rows = rows("bursttracker-fig7");
    let of = |what: &str| ours(&rows, what);
    let release = of("release by the server, median of segments");
    let delivery = of("delivery to the phone, the middlebox restarts");
    let far = of("the same, 80 ms more between middlebox and cell");
    let steady = of("delivery to the phone, no restart");
    // 700 kbit/s times 4 s at once are 28 ms at 100 Mbit/s; after a restart it takes round
    // trips of slow start, and longer ones take longer.
    assert!((10.0..60.0).contains(&release), "{release}");
    assert!(release < steady && 1.5 * steady < delivery, "{steady} {delivery}");
    assert!(1.3 * delivery < far && far < 1_500.0, "{delivery} {far}");
}

#[test]
fn flight_and_round_trip() {
    let rows = rows("huang-fig10-13");
    let of = |what: &str| ours(&rows, what);
    let correlation = of("correlation of bytes in flight and RTT, mean of flows");
    assert!((0.5..=1.0).contains(&correlation), "{correlation}");
    let rtt = |flight: &str| of(&format!("median RTT with {flight} in flight"));
    assert!(rtt("200 to 400 kB") < rtt("400 to 800 kB"));
    assert!(rtt("400 to 800 kB") < rtt("from 800 kB"));
    assert!(rtt("under 100 kB") >= 30.0, "no less than the path's");
    let over = "segments with over 200 kB in flight";
    assert!(of(over) > 50.0);
    assert_eq!(of("the same, a receive window that stays at 131.7 kB"), 0.0);
    // No more than the capacity of the base station's queue and the path.
    assert!((500.0..8_000.0).contains(&of("most in flight")));
}

#[test]
fn slow_starts() {
    let rows = rows("huang-fig15-16");
    assert_eq!(rows.len(), 10);
    check_shares(&rows);
    let of = |what: &str| ours(&rows, what);
    let r_ss = of("R_ss, the timer does not run out");
    assert!((0.5..2.0).contains(&r_ss), "{r_ss}");
    // Samples from SACK prevent timeouts of the sender of 2012.
    let old = of("bursts with a timeout, sender of 2012");
    assert!(old > 0.0 && of("bursts with a timeout, RTT from SACK") < old / 2.0, "{old}");
    assert!(of("remedy in the sender (RTT from SACK): bursts with a timeout, fewer by") > 50.0);
    assert!(of("in flight after such a burst") > 500.0);
}

#[test]
fn clocks_and_bandwidth() {
    let rows = rows("huang-fig18-20");
    let of = |what: &str| ours(&rows, what);
    for tick in ["1 ms", "10 ms"] {
        let error = |delta: &str| of(&format!("mean error of G = {tick}, delta_G {delta}"));
        assert!(error("3 s") < 1.0 && 5.0 * error("3 s") < error("0.1 s"), "{tick}");
        // Only the clock: no uplink in between.
        let alone = of(&format!("mean error of G = {tick}, delta_G 3 s, no uplink between"));
        assert!(alone <= 0.1, "{tick}: {alone}");
        let bandwidth = of(&format!("mean error of the bandwidth, 1 s, G = {tick}, ours"));
        assert!((1.0..40.0).contains(&bandwidth), "{tick}: {bandwidth}");
    }
    // Most of it because a sample covers 250 ms.
    let whole = of("the same, 1 s, mean of the samples within");
    assert!(whole < of("the same, 1 s, a sample without error"), "{whole}");
}

#[test]
fn utilisation_by_round_trip() {
    let rows = rows("huang-rtt-utilisation");
    assert_eq!(rows.len(), 24);
    let of =
        |rtt: u32, what: &str| ours(&rows, &format!("utilisation, RTT {rtt} ms, bandwidth {what}"));
    for row in &rows {
        // No more than the link's capacity, except for the rounding of 3 s.
        assert!(row.ours.unwrap() <= 101.0 && row.ours.unwrap() > 0.0, "{row:?}");
    }
    for variation in ["+-30 %", "+-90 %"] {
        assert!(of(20, variation) > 90.0, "{variation}");
        let shallow = |rtt| of(rtt, &format!("{variation}, queue of 50 packets"));
        assert!(shallow(600) < 60.0 && shallow(600) < shallow(20), "{variation}");
        assert!(shallow(600) < of(600, variation), "{variation}");
    }
}

#[test]
fn players() {
    let slow = rows("huang-fig23");
    let of = |what: &str| ours(&slow, what);
    // A megabyte at 100 kB/s, and at the link's rate.
    assert!((9.0..12.0).contains(&of("download, slow reader")));
    assert!((1.5..5.0).contains(&of("download, a reader that keeps up")));
    let slower = of("the same, read at 300 kbit/s");
    let [smallest, first] = [of("smallest receive window"), of("first receive window")];
    assert!(slower < smallest && 5.0 * smallest < first, "{slower} {smallest} {first}");
    let periodic = rows("huang-fig24");
    let of = |what: &str| ours(&periodic, what);
    assert!((of("period of the requests, as found") - 10.0).abs() < 0.5);
    assert!((80.0..100.0).contains(&of("time without traffic between them")));
    // With a tail of 10 s and a request every 10 s the radio never rests.
    assert!(of("radio connected, tail of 10 s") >= 99.0);
}

#[test]
fn uploads_and_what_waits_beside_them() {
    let fig20 = rows("qcut-fig20");
    for signal in ["good signal", "fair signal"] {
        // CoDel at the Qdisc does not change the firmware's buffer.
        let none = ours(&fig20, &format!("{signal}, no CoDel: RTT_F, median"));
        let codel = ours(&fig20, &format!("{signal}, CoDel, target 5 ms: RTT_F, median"));
        assert!(none > 200.0 && codel > 0.4 * none, "{signal}: {none} {codel}");
    }
    let fig21 = rows("qcut-fig21");
    for signal in ["weak signal", "strong signal"] {
        let of = |variant: &str, what: &str| ours(&fig21, &format!("{signal}, {variant}: {what}"));
        let share = of("QCut-D (20 ms)", "throughput of Cubic's");
        let over = of("QCut-D (20 ms)", "RTT_F over the idle path");
        assert!((80.0..=110.0).contains(&share) && over < 40.0, "{signal}: {share} {over}");
        assert!(of("Cubic", "RTT_F over the idle path") > 3.0 * over, "{signal}");
    }
}

#[test]
fn steps_under_the_gate() {
    let rows = rows("qcut-steps");
    for step in ["handover", "rate drops tenfold", "modem silent for 2 s"] {
        assert_eq!(ours(&rows, &format!("{step}: packets lost otherwise")), 0.0, "{step}");
        let held = ours(&rows, &format!("{step}: maximum firmware occupancy"));
        assert!((3.0..120.0).contains(&held), "{step}: {held}");
    }
}

#[test]
fn rows_become_files() {
    let dir = tempfile::tempdir().unwrap();
    let row = Row::new("a thing", "ms", estimate::quantile(&[1.0, 1.0, 1.0, 3.0, 3.0, 3.0], 0.5))
        .paper(4.0);
    let rows = vec![row];
    let axes = (Axis::new("time (ms)"), Axis::new("share (%)"));
    let figure = Figure::new("f", "a figure", axes.0, axes.1)
        .with(Series::curve("ours", vec![(1.0, 2.0), (3.0, 4.0)]))
        .paper_x("its value", 5.0);
    let one = Reproduced {
        name: "x",
        source: "y",
        what: "z",
        rows,
        skipped: None,
        invalid: None,
        failed: None,
        figures: vec![figure],
    };
    let done = Reproduction { size: Size::Quick, experiments: vec![one] };
    prepare(dir.path(), false).unwrap();
    let files = write_files(&done, dir.path()).unwrap();
    let refused = prepare(dir.path(), false).unwrap_err().to_string();
    assert!(refused.contains("contains an earlier reproduction"), "{refused}");
    prepare(dir.path(), true).unwrap();
    let names: Vec<_> = files.iter().map(|f| f.file_name().unwrap().to_str().unwrap()).collect();
    let expected = [
        "reproduce.csv",
        "reproduce.json",
        "reproduce.parquet",
        "reproduce_series.parquet",
        "x-f.svg",
    ];
    assert_eq!(names, expected);
    assert_eq!(
        std::fs::read_dir(dir.path()).unwrap().count(),
        files.len(),
        "no partial file is left"
    );
    check_parquet(&files[2], 1, 16, "ratio", "`ours` / `paper`.");
    check_parquet(
        &files[3],
        3,
        9,
        "x",
        "Position on the horizontal axis; null: a value of the paper for any x.",
    );
    let text = std::fs::read_to_string(&files[0]).unwrap();
    let expected = "experiment,source,what,unit,paper,ours,ratio,at_least,at_most,held,n,low,high,\
                    note,size,valid\nx,y,a thing,ms,4.0,2.0,0.5,,,,6,1.0,3.0,,quick,true\n";
    assert_eq!(text, expected);
}

fn check_parquet(path: &std::path::Path, rows: usize, columns: usize, name: &str, doc: &str) {
    let file = std::fs::File::open(path).unwrap();
    let builder = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file);
    let builder = builder.unwrap();
    let schema = builder.schema().clone();
    let batches = builder.build().unwrap().map(std::result::Result::unwrap);
    assert_eq!(batches.map(|batch| batch.num_rows()).sum::<usize>(), rows);
    assert_eq!(schema.fields().len(), columns);
    assert!(schema.fields().iter().all(|field| field.metadata().contains_key("doc")), "{schema}");
    assert_eq!(schema.field_with_name(name).unwrap().metadata()["doc"], doc);
}

#[test]
fn a_paper_names_its_experiments() {
    let of = |name: &str| -> Vec<&str> {
        EXPERIMENTS.iter().filter(|e| e.is_named(name)).map(|e| e.name).collect()
    };
    assert_eq!(of("qcut"), ["qcut-fig20", "qcut-fig21", "qcut-fig22", "qcut-steps", "qcut-log"]);
    assert_eq!(of("qcut-steps"), ["qcut-steps"]);
    assert!(of("qc").is_empty());
}
