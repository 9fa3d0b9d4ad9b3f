//! Twenty page profiles (figure 16), and five of them with all algorithms (figure 17).

use super::{
    Axis, CASES, CLAW, CQIC, CUBIC, Experiment, ExperimentResult, Figure, Row, Series, VEGAS,
    VERUS, Work, bars, mean, name, page, run_cases, web,
};
use airmile::Result;

pub(in crate::reproduce) const FIGURE_16: Experiment = Experiment {
    name: "claw-fig16",
    source: "CLAW, MobiSys 2017, figures 15 and 16",
    what: "20 pages with today's sizes and object counts, over HTTP/2 in an idle cell",
    run: figure_16,
};

pub(in crate::reproduce) const FIGURE_17: Experiment = Experiment {
    name: "claw-fig17",
    source: "CLAW, MobiSys 2017, figure 17",
    what: "five of the pages by every algorithm",
    run: figure_17,
};

/// Log-normal spreads around the median mobile page of the HTTP Archive: 2,311 kB and 66
/// requests (Web Almanac 2024, chapter Page weight). The 90th percentiles of 2019 are 6 MB
/// with a median of 1.9, and 179 with a median of 74 requests (Web Almanac 2019, chapter
/// 18): natural logarithms of those ratios over 1.2816 give the spreads.
const MEDIAN: (f64, f64) = (2_311_000.0, 66.0);
const SPREAD: (f64, f64) = (0.90, 0.69);

/// The normal distribution's quantiles at 2.5, 7.5, ... 47.5 %; the upper ones are the same
/// with opposite sign.
const QUANTILES: [f64; 10] =
    [-1.960, -1.440, -1.150, -0.935, -0.755, -0.598, -0.454, -0.319, -0.189, -0.063];

/// A page's bytes, objects and depth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Profile {
    bytes: u64,
    objects: u32,
    depth: u32,
}

/// Twenty profiles: sizes at evenly spaced quantiles; object counts at quantiles within
/// some ranks of the size's, as no small page has many objects (figure 16); depths of 3 to
/// 6 (chosen here: document, style sheet or script, their references).
fn profiles() -> Vec<Profile> {
    let z = |rank: usize| if rank < 10 { QUANTILES[rank] } else { -QUANTILES[19 - rank] };
    let of = |rank: usize| {
        let near = [2, -1, 3, 0, -3, 1, -2][rank % 7];
        let other = (rank as i64 + near).clamp(0, 19) as usize;
        let bytes = (MEDIAN.0 * (SPREAD.0 * z(rank)).exp()).round() as u64;
        let objects = (MEDIAN.1 * (SPREAD.1 * z(other)).exp()).round() as u32;
        Profile { bytes, objects: objects.max(1), depth: 3 + rank as u32 % 4 }
    };
    (0..20).map(of).collect()
}

fn cases(profiles: &[Profile]) -> Result<Vec<(String, airmile_emulate::Scenario)>> {
    let case = |profile: &Profile| {
        let Profile { bytes, objects, depth } = *profile;
        let scenario = page(|scenario| {
            if let Some(web) = web(scenario) {
                web.page_bytes = bytes;
                web.objects = objects;
                web.depth = depth;
            }
        })?;
        Ok((format!("{} kB, {objects} objects", bytes / 1_000), scenario))
    };
    profiles.iter().map(case).collect()
}

fn figure_16(work: &Work<'_>) -> Result<ExperimentResult> {
    let mut profiles = profiles();
    profiles.truncate(work.size.of(2, 20, 20) as usize);
    let cases = run_cases(work, &cases(&profiles)?, &[CLAW, CUBIC], work.size.of(1, 6, 20))?;
    let mut rows: Vec<Row> = cases.iter().map(|case| case.against_cubic(None)).collect();
    let means: Vec<f64> = cases.iter().map(|case| mean(&case.changes(CUBIC)).value).collect();
    let of = |p: f64| super::super::estimate::quantile(&means, p);
    let no_interval = |e: super::super::estimate::Estimate| super::super::estimate::Estimate {
        interval: None,
        ..e
    };
    let row = Row::new("smallest change of the pages", "%", no_interval(of(1.0)));
    rows.push(row.paper(-27.0));
    let row = Row::new("largest change of the pages", "%", no_interval(of(0.0)));
    rows.push(row.paper(-48.0));
    let all: Vec<f64> = cases.iter().flat_map(|case| case.changes(CUBIC)).collect();
    rows.push(super::judged(Row::new(
        "all pages: CLAW's load time against Cubic's",
        "%",
        mean(&all),
    )));
    let points = profiles.iter().zip(&means).map(|(p, change)| (p.bytes as f64 / 1e6, *change));
    let figure = Figure::new(
        "pages",
        "Change of the load time against Cubic by the page's size",
        Axis::new("page (MB)"),
        Axis::new("change of load time (%)").from(-80.0, 20.0),
    )
    .with(Series::scatter("pages", points.collect()))
    .paper_y("least", -27.0)
    .paper_y("largest", -48.0)
    .caption(format!("n = {} runs each way for each page.", work.size.of(1, 6, 20)));
    Ok(ExperimentResult { rows, figures: vec![figure], ..ExperimentResult::default() })
}

fn figure_17(work: &Work<'_>) -> Result<ExperimentResult> {
    let every_fourth: Vec<Profile> = profiles().into_iter().skip(2).step_by(4).collect();
    let algorithms = [CLAW, CUBIC, CQIC, VEGAS, VERUS];
    let cases = run_cases(work, &cases(&every_fourth)?, &algorithms, work.size.of(1, 6, 20))?;
    let mut rows: Vec<Row> = cases.iter().flat_map(|case| case.rows(None)).collect();
    for kind in [CUBIC, CQIC, VEGAS, VERUS] {
        let times: Vec<f64> = cases
            .iter()
            .flat_map(|case| case.of(kind).iter().zip(case.of(CLAW)))
            .map(|(other, claw)| 100.0 * (other.page_ms / claw.page_ms - 1.0))
            .collect();
        let row =
            Row::new(format!("all pages: {} slower than CLAW by", name(kind)), "%", mean(&times));
        rows.push(if kind == CQIC { row.paper(50.0) } else { row });
    }
    let figure = bars("Load time of five pages", CASES, &cases);
    Ok(ExperimentResult { rows, figures: vec![figure], ..ExperimentResult::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_spread_as_pages_are() {
        let all = profiles();
        assert_eq!(all.len(), 20);
        let bytes: Vec<u64> = all.iter().map(|p| p.bytes).collect();
        assert!(bytes.is_sorted());
        // The median lies between the 10th and the 11th; the 90th percentile, between the
        // 18th and the 19th, is 3.2 times that.
        assert!(bytes[9] < 2_311_000 && 2_311_000 < bytes[10]);
        assert!(bytes[17] < 7_300_000 && 7_300_000 < bytes[18], "{bytes:?}");
        assert!(all.iter().take(5).all(|p| p.objects <= 66), "no small page has many objects");
    }
}
