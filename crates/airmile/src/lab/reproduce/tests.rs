use super::*;

/// Rows of an experiment, as little as it can run.
fn rows(name: &'static str) -> Vec<Row> {
    let names = [name.to_owned()];
    let (runs, mut told) = (RunCount::default(), Told::default());
    let done = reproduce(&names, Size::Quick, None, &runs, &mut told).unwrap();
    assert_eq!(told, Told { begun: vec![(name, 1, 1)], ended: 1 });
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
struct Told {
    begun: Vec<(&'static str, usize, usize)>,
    ended: usize,
}

impl Follower for Told {
    fn begins(&mut self, experiment: &Experiment, at: usize, of: usize) {
        self.begun.push((experiment.name, at, of));
    }

    fn ended(&mut self, so_far: &Reproduction) -> Result<()> {
        self.ended = so_far.experiments.len();
        Ok(())
    }
}

/// Figures have names of their own, units, points within bounds, and are drawn.
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
}

#[test]
fn table_1() {
    let rows = rows("bursttracker-table1");
    let of = |what| ours(&rows, what);
    assert!(of("file: error of ours, 50th percentile") <= 0.5);
    assert!(of("video: error of ours, 50th percentile") <= 0.5);
    assert!(of("file: throughput time, 50th percentile") > 30.0);
}

#[test]
fn thresholds() {
    let rows = rows("bursttracker-thresholds");
    assert_eq!(rows.len(), 18);
    assert!(rows.iter().all(|row| row.n == 2));
}

#[test]
fn shares_of_ttis() {
    let fig3 = rows("bursttracker-fig3");
    assert_eq!(ours(&fig3, "whole TTIs: busy TTIs that one user has"), 100.0);
    assert!(ours(&fig3, "round robin: busy TTIs that one user has") < 50.0);
    let fig4 = rows("bursttracker-fig4");
    let sum: f64 = fig4.iter().take(3).filter_map(|row| row.ours).sum();
    assert!((sum - 100.0).abs() < 1e-9, "{sum}");
    let fig5 = rows("bursttracker-fig5");
    let of = |what: &str| ours(&fig5, &format!("{what}: median share when scheduled"));
    assert!(of("idle cell, 128 kB at a time") > of("idle cell, 1,470 bytes at a time"));
}

#[test]
fn demand_of_files_and_video() {
    let rows = rows("bursttracker-fig6");
    assert!(ours(&rows, "file: mean link demand") > 0.0);
    assert_eq!(rows.len(), 24);
}

#[test]
fn release_and_delivery() {
    let rows = rows("bursttracker-fig7");
    let of = |what| ours(&rows, what);
    let delivery = of("delivery to the phone, the middlebox restarts");
    assert!(of("release by the server, median of segments") < delivery);
    assert!(of("delivery to the phone, no restart") < delivery);
}

#[test]
fn flight_and_round_trip() {
    let rows = rows("huang-fig10-13");
    assert!(ours(&rows, "correlation of bytes in flight and RTT, mean of flows") > 0.3);
}

/// Hosts that are none: the scenario's own applications in virtual time, whose
/// files are those of a run in real time.
struct Virtual;

impl Hosts for Virtual {
    fn missing(&self, programs: &[Program]) -> Option<String> {
        programs.contains(&Program::Player).then(|| "no player".to_owned())
    }

    fn run(
        &self,
        scenario: &airmile_emulate::Scenario,
        job: &Job,
        read: &mut dyn FnMut(&std::path::Path) -> Result<()>,
    ) -> Result<Lateness> {
        assert!(job.script.starts_with("curl ") && job.file_bytes > 0, "{job:?}");
        let dir = tempfile::tempdir().unwrap();
        crate::lab::leave(scenario, &dir.path().join("run"), false)?;
        read(&dir.path().join("run"))?;
        let (us, ttis) = (2_000, 100);
        Ok(Lateness {
            n_tti: ttis,
            p50_us: us,
            p99_us: us,
            p999_us: us,
            max_us: us,
            late_ttis: ttis,
            limit_us: 1_000,
            work_p99_us: us,
        })
    }
}

fn with_hosts(name: &str, hosts: Option<&dyn Hosts>) -> Reproduced {
    let names = [name.to_owned()];
    let done = reproduce(&names, Size::Quick, hosts, &RunCount::default(), &mut ()).unwrap();
    done.experiments.into_iter().next().unwrap()
}

#[test]
fn real_hosts_are_asked_for_and_their_lateness_is_told() {
    for name in ["bursttracker-fig1", "bursttracker-fig8", "bursttracker-fig9"] {
        let Reproduced { rows, skipped, invalid, .. } = with_hosts(name, None);
        assert!(rows.is_empty() && skipped.is_some() && invalid.is_none(), "{name}");
    }
    let skipped = with_hosts("bursttracker-fig9", Some(&Virtual)).skipped;
    assert_eq!(skipped.as_deref(), Some("no player"));
    // What is read from files is what was seen in memory.
    let Reproduced { rows, skipped, invalid, .. } = with_hosts("huang-fig10-13", Some(&Virtual));
    let correlation = "correlation of bytes in flight and RTT, mean of flows";
    let in_files = ours(&rows, &format!("kernel TCP: {correlation}"));
    assert!((in_files - ours(&rows, correlation)).abs() < 1e-9, "{in_files}");
    assert!(skipped.is_none() && invalid.is_some_and(|told| told.starts_with("2 of 2")));
}

#[test]
fn slow_starts() {
    assert_eq!(rows("huang-fig15-16").len(), 10);
}

#[test]
fn clocks_and_bandwidth() {
    let rows = rows("huang-fig18-20");
    let of = |what| ours(&rows, what);
    let long = of("mean error of G = 10 ms, delta_G 3 s");
    assert!(long < of("mean error of G = 10 ms, delta_G 0.1 s"));
    assert!(long < 1.0);
}

#[test]
fn utilisation_by_round_trip() {
    let rows = rows("huang-rtt-utilisation");
    let of = |rtt| ours(&rows, &format!("utilisation, RTT {rtt} ms, bandwidth +-30 %"));
    assert!(of(20) > 0.0 && of(20) <= 101.0);
}

#[test]
fn players() {
    let slow = rows("huang-fig23");
    let of = |what| ours(&slow, what);
    assert!(of("download, slow reader") > of("download, a reader that keeps up"));
    let periodic = rows("huang-fig24");
    let period = ours(&periodic, "period of the requests, as found");
    assert!((period - 10.0).abs() < 0.5, "{period}");
}

#[test]
fn rows_become_files() {
    let dir = tempfile::tempdir().unwrap();
    let row = Row::new("a thing", "ms", estimate::quantile(&[1.0, 3.0], 0.5)).paper(4.0);
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
        figures: vec![figure],
    };
    let done = Reproduction { size: Size::Quick, experiments: vec![one] };
    let files = write_files(&done, dir.path()).unwrap();
    let names: Vec<_> = files.iter().map(|f| f.file_name().unwrap().to_str().unwrap()).collect();
    let expected = [
        "reproduce.csv",
        "reproduce.json",
        "reproduce.parquet",
        "reproduce_series.parquet",
        "x-f.svg",
    ];
    assert_eq!(names, expected);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), files.len(), "no part is left");
    check_parquet(&files[2], 1, 12, "ratio", "`ours` / `paper`.");
    check_parquet(
        &files[3],
        3,
        9,
        "x",
        "Place along the bottom axis; null: a value of the paper for any x.",
    );
    let text = std::fs::read_to_string(&files[0]).unwrap();
    let expected = "experiment,source,what,unit,paper,ours,ratio,n,low,high,note,size\n\
                    x,y,a thing,ms,4.0,2.0,0.5,2,1.0,3.0,,quick\n";
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
