//! Figures as data: drawn, and written as a table of points.

use schemars::JsonSchema;
use serde::Serialize;

use super::estimate::sorted;

/// Maximum points of a series: more than a picture of 800 pixels shows.
pub const MAX_POINTS: usize = 400;

/// A figure of a paper, from our runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Its name within the experiment; its file is `<experiment>-<name>.svg`.
    pub name: &'static str,
    /// What it shows.
    pub title: String,
    /// Sample sizes and further remarks.
    pub caption: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// Our results.
    pub series: Vec<Series>,
    /// Values in the paper's text.
    pub paper: Vec<Reference>,
}

/// An axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// Its quantity, with the unit.
    pub label: &'static str,
    /// Whether it is logarithmic.
    pub log: bool,
    /// Its range; absent: determined by the points.
    pub range: Option<(f64, f64)>,
}

/// How points are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Joined by a line.
    Curve,
    /// A cumulative distribution: the share in percent of values up to x.
    Cdf,
    /// Separate points.
    Scatter,
}

/// Points of one kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Name of the series.
    pub name: String,
    /// How it is drawn.
    pub kind: Kind,
    /// x and y, at most [`MAX_POINTS`].
    pub points: Vec<(f64, f64)>,
}

/// A value of the paper: a point if both coordinates are given, otherwise a line.
#[derive(Debug, Clone, PartialEq)]
pub struct Reference {
    /// Its name.
    pub name: &'static str,
    /// Position on the horizontal axis.
    pub x: Option<f64>,
    /// Position on the vertical axis.
    pub y: Option<f64>,
}

impl Axis {
    pub(super) const fn new(label: &'static str) -> Self {
        Self { label, log: false, range: None }
    }

    pub(super) const fn log(label: &'static str) -> Self {
        Self { label, log: true, range: None }
    }

    pub(super) const fn from(mut self, low: f64, high: f64) -> Self {
        self.range = Some((low, high));
        self
    }

    /// The vertical axis of a distribution.
    pub(super) const fn cdf(label: &'static str) -> Self {
        Self::new(label).from(0.0, 100.0)
    }
}

impl Figure {
    pub(super) fn new(name: &'static str, title: impl Into<String>, x: Axis, y: Axis) -> Self {
        let (title, caption) = (title.into(), String::new());
        Self { name, title, caption, x, y, series: Vec::new(), paper: Vec::new() }
    }

    pub(super) fn caption(mut self, caption: impl Into<String>) -> Self {
        self.caption = caption.into();
        self
    }

    pub(super) fn with(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }

    /// A point of the paper.
    pub(super) fn paper_point(mut self, name: &'static str, x: f64, y: f64) -> Self {
        self.paper.push(Reference { name, x: Some(x), y: Some(y) });
        self
    }

    /// A value of the paper on the horizontal axis.
    pub(super) fn paper_x(mut self, name: &'static str, x: f64) -> Self {
        self.paper.push(Reference { name, x: Some(x), y: None });
        self
    }

    /// A value of the paper on the vertical axis.
    pub(super) fn paper_y(mut self, name: &'static str, y: f64) -> Self {
        self.paper.push(Reference { name, x: None, y: Some(y) });
        self
    }
}

impl Series {
    /// Points in the order of x, connected; thinned if many.
    pub(super) fn curve(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), kind: Kind::Curve, points: thinned(points) }
    }

    /// Separate points; thinned if many.
    pub(super) fn scatter(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), kind: Kind::Scatter, points: thinned(points) }
    }

    /// The distribution of values: all of a few, evenly spaced ranks of many.
    pub(super) fn cdf(name: impl Into<String>, values: &[f64]) -> Self {
        let sorted = sorted(values);
        let n = sorted.len() as f64;
        let ranked = sorted.iter().enumerate();
        let points = ranked.map(|(at, value)| (*value, 100.0 * (at + 1) as f64 / n)).collect();
        Self { name: name.into(), kind: Kind::Cdf, points: thinned(points) }
    }
}

/// At most [`MAX_POINTS`], evenly by their order, with the first and the last.
fn thinned(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let points: Vec<_> =
        points.into_iter().filter(|(x, y)| x.is_finite() && y.is_finite()).collect();
    let n = points.len();
    if n <= MAX_POINTS {
        return points;
    }
    (0..MAX_POINTS).map(|at| points[at * (n - 1) / (MAX_POINTS - 1)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distributions_rise_to_all_and_are_bounded() {
        let few = Series::cdf("few", &[3.0, f64::NAN, 1.0]);
        assert_eq!(few.points, [(1.0, 50.0), (3.0, 100.0)]);
        let values: Vec<f64> = (0..100_000).map(f64::from).collect();
        let many = Series::cdf("many", &values);
        assert_eq!(many.points.len(), MAX_POINTS);
        assert_eq!(many.points.first(), Some(&(0.0, 0.001)));
        assert_eq!(many.points.last(), Some(&(99_999.0, 100.0)));
        assert_eq!(Series::cdf("none", &[]).points, []);
    }
}
