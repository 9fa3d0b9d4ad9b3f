//! A figure as SVG: axes with units, points, the paper's values, and a legend next to them,
//! never over them.

use plotters::coord::Shift;
use plotters::coord::ranged1d::AsRangedCoord;
use plotters::coord::ranged1d::ValueFormatter;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::figure::{Axis, Figure, Kind, Series};

/// Size in pixels.
const SIZE: (u32, u32) = (860, 500);
/// Height of the title and of the caption.
const TITLE: u32 = 44;
const CAPTION: u32 = 44;
/// Width of the legend.
const LEGEND: u32 = 230;
/// Characters in a line of the legend and of the caption.
const LEGEND_CHARS: usize = 30;
const CAPTION_CHARS: usize = 130;
/// Height of a line of text in the legend.
const LINE: i32 = 17;

/// Colours that colour-blind readers can distinguish (Okabe and Ito 2008).
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(90, 90, 90),
];
const INK: RGBColor = RGBColor(34, 34, 34);
const GREY: RGBColor = RGBColor(222, 222, 222);
/// Half the size of a marker for the paper's points: crosses for its first series, rings
/// for the others.
const CROSS: i32 = 5;
/// The paper's values.
const PAPER: RGBColor = RGBColor(0, 0, 0);

type Drawn<T> = Result<T, String>;

fn failed(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// The figure as an SVG document, or the drawing error.
pub(super) fn svg(figure: &Figure) -> Drawn<String> {
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
        root.fill(&WHITE).map_err(failed)?;
        let (head, rest) = root.split_vertically(TITLE);
        let (middle, foot) = rest.split_vertically(SIZE.1 - TITLE - CAPTION);
        let (plot, legend) = middle.split_horizontally(SIZE.0 - LEGEND);
        write(&head, &figure.title, (16, 16), 17, HPos::Left)?;
        for (at, line) in wrapped(&figure.caption, CAPTION_CHARS).iter().take(2).enumerate() {
            write(&foot, line, (16, 6 + 17 * at as i32), 12, HPos::Left)?;
        }
        let x = range(figure, &figure.x, |(x, _)| x, |r| r.x);
        let y = range(figure, &figure.y, |(_, y)| y, |r| r.y);
        let mut chart = ChartBuilder::on(&plot);
        chart.margin(6).margin_right(18).x_label_area_size(48).y_label_area_size(64);
        let ends = (x, y);
        let (x, y) = (x.0..x.1, y.0..y.1);
        // Linear and logarithmic axes have different types.
        match (figure.x.log, figure.y.log) {
            (false, false) => fill(&mut chart, figure, x, y, ends)?,
            (true, false) => fill(&mut chart, figure, x.log_scale(), y, ends)?,
            (false, true) => fill(&mut chart, figure, x, y.log_scale(), ends)?,
            (true, true) => fill(&mut chart, figure, x.log_scale(), y.log_scale(), ends)?,
        }
        self::legend(&legend, figure)?;
        root.present().map_err(failed)?;
    }
    Ok(text)
}

/// Range of an axis: as specified, otherwise from its points.
fn range(
    figure: &Figure,
    axis: &Axis,
    of: fn((f64, f64)) -> f64,
    paper: fn(&super::figure::Reference) -> Option<f64>,
) -> (f64, f64) {
    if let Some(range) = axis.range {
        return range;
    }
    let points = figure.series.iter().flat_map(|s| s.points.iter().map(|p| of(*p)));
    let values = points.chain(figure.paper.iter().filter_map(paper));
    let values = values.filter(|v| !axis.log || *v > 0.0);
    let (low, high) =
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
    match (low.is_finite(), axis.log) {
        (false, false) => (0.0, 1.0),
        (false, true) => (1.0, 10.0),
        (true, true) => (low / 1.15, high * 1.15),
        (true, false) => {
            let room = 0.05 * (high - low.min(0.0)).max(f64::MIN_POSITIVE);
            (if low < 0.0 { low - room } else { 0.0 }, high + room)
        }
    }
}

type Ends = ((f64, f64), (f64, f64));

/// Draws the axes and their contents.
fn fill<'a, X, Y>(
    chart: &mut ChartBuilder<'_, '_, SVGBackend<'a>>,
    figure: &Figure,
    x: X,
    y: Y,
    (xs, ys): Ends,
) -> Drawn<()>
where
    X: AsRangedCoord<Value = f64>,
    Y: AsRangedCoord<Value = f64>,
    X::CoordDescType: ValueFormatter<f64>,
    Y::CoordDescType: ValueFormatter<f64>,
{
    let mut chart = chart.build_cartesian_2d(x, y).map_err(failed)?;
    chart
        .configure_mesh()
        .light_line_style(WHITE.mix(0.0))
        .bold_line_style(GREY)
        .axis_style(INK)
        .x_desc(figure.x.label)
        .y_desc(figure.y.label)
        .x_labels(8)
        .y_labels(7)
        .x_label_formatter(&|v| number(*v))
        .y_label_formatter(&|v| number(*v))
        .label_style(("sans-serif", 12, &INK))
        .axis_desc_style(("sans-serif", 13, &INK))
        .draw()
        .map_err(failed)?;
    let logs = (figure.x.log, figure.y.log);
    for (series, colour) in figure.series.iter().zip(COLOURS.iter().cycle()) {
        match series.kind {
            Kind::Scatter => {
                let dots =
                    series.points.iter().map(|p| Circle::new(*p, 2, colour.mix(0.6).filled()));
                chart.draw_series(dots).map_err(failed)?;
            }
            Kind::Curve | Kind::Cdf => {
                let style = colour.stroke_width(2);
                chart.draw_series(LineSeries::new(path(series, logs), style)).map_err(failed)?;
            }
        }
    }
    let mut crosses: Option<&str> = None;
    for reference in &figure.paper {
        let line = match (reference.x, reference.y) {
            (Some(x), Some(y)) => {
                if *crosses.get_or_insert(reference.name) == reference.name {
                    let cross = Cross::new((x, y), CROSS, PAPER.stroke_width(2));
                    chart.draw_series([cross]).map_err(failed)?;
                } else {
                    let ring = Circle::new((x, y), CROSS, PAPER.stroke_width(2));
                    chart.draw_series([ring]).map_err(failed)?;
                }
                continue;
            }
            (Some(x), None) => [(x, ys.0), (x, ys.1)],
            (None, Some(y)) => [(xs.0, y), (xs.1, y)],
            (None, None) => continue,
        };
        let dashes = DashedLineSeries::new(line, 6, 4, PAPER.into());
        chart.draw_series(dashes).map_err(failed)?;
    }
    Ok(())
}

/// The points of a line; a distribution is drawn as steps. A logarithmic axis cannot show
/// zero.
fn path(series: &Series, logs: (bool, bool)) -> Vec<(f64, f64)> {
    if series.kind != Kind::Cdf {
        let drawn = series.points.iter().copied();
        return drawn.filter(|(x, y)| (!logs.0 || *x > 0.0) && (!logs.1 || *y > 0.0)).collect();
    }
    let mut below = 0.0;
    let steps = series.points.iter().flat_map(|&(x, y)| {
        let from = std::mem::replace(&mut below, y);
        [(x, from), (x, y)]
    });
    steps.collect()
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

fn legend(area: &Area<'_>, figure: &Figure) -> Drawn<()> {
    let mut y = 20;
    for (series, colour) in figure.series.iter().zip(COLOURS.iter().cycle()) {
        match series.kind {
            Kind::Scatter => area.draw(&Circle::new((12, y), 4, colour.filled())),
            Kind::Curve | Kind::Cdf => {
                area.draw(&PathElement::new([(2, y), (22, y)], colour.stroke_width(3)))
            }
        }
        .map_err(failed)?;
        y = words(area, &series.name, y)?;
    }
    if figure.paper.is_empty() {
        return Ok(());
    }
    y += 8;
    let mut named: Vec<&str> = Vec::new();
    let mut crosses: Option<&str> = None;
    for reference in &figure.paper {
        if named.contains(&reference.name) {
            continue;
        }
        named.push(reference.name);
        if reference.x.is_none() || reference.y.is_none() {
            for from in [2, 10, 18] {
                let dash = PathElement::new([(from, y), (from + 4, y)], PAPER.stroke_width(1));
                area.draw(&dash).map_err(failed)?;
            }
        } else if *crosses.get_or_insert(reference.name) == reference.name {
            area.draw(&Cross::new((12, y), CROSS, PAPER.stroke_width(2))).map_err(failed)?;
        } else {
            area.draw(&Circle::new((12, y), CROSS, PAPER.stroke_width(2))).map_err(failed)?;
        }
        y = words(area, &format!("paper: {}", reference.name), y)?;
    }
    Ok(())
}

/// A legend text next to its mark; returns the position of the next one.
fn words(area: &Area<'_>, text: &str, mut y: i32) -> Drawn<i32> {
    for line in wrapped(text, LEGEND_CHARS) {
        write(area, &line, (30, y), 12, HPos::Left)?;
        y += LINE;
    }
    Ok(y + 4)
}

fn write(area: &Area<'_>, text: &str, at: (i32, i32), size: u32, align: HPos) -> Drawn<()> {
    let style = ("sans-serif", size).into_text_style(area).color(&INK);
    let style = style.pos(Pos::new(align, VPos::Center));
    area.draw(&Text::new(text.to_owned(), at, style)).map_err(failed)
}

/// Text in lines of at most `chars` characters, broken at words.
fn wrapped(text: &str, chars: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + word.chars().count() < chars => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// A tick's number, with no more digits than necessary.
fn number(value: f64) -> String {
    let digits = match value.abs() {
        10.0.. => 1,
        0.1.. => 2,
        _ => 4,
    };
    let text = format!("{value:.digits$}");
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::super::figure::Axis;
    use super::*;

    #[test]
    fn every_kind_of_axis_and_mark_is_drawn() {
        for (x, y) in [(false, false), (true, false), (false, true), (true, true)] {
            let axis = |label, log| Axis { label, log, range: None };
            let figure = Figure::new("f", "a < b", axis("x (ms)", x), axis("y (%)", y))
                .caption("n = 3 runs")
                .with(Series::curve("a line", vec![(1.0, 1.0), (100.0, 50.0)]))
                .with(Series::scatter("dots", vec![(2.0, 3.0)]))
                .with(Series::cdf("a distribution", &[1.0, 2.0]))
                .paper_point("its point", 10.0, 10.0)
                .paper_x("its line", 20.0)
                .paper_y("its other", 30.0);
            let text = svg(&figure).unwrap();
            for needle in ["x (ms)", "y (%)", "a &lt; b", "n = 3 runs", "paper: its point"] {
                assert!(text.contains(needle), "{needle}: {text}");
            }
            assert_eq!(text.matches("<circle").count(), 2, "a dot, and its mark in the legend");
        }
    }

    #[test]
    fn nothing_to_draw_is_drawn_as_that() {
        let figure = Figure::new("f", "none", Axis::log("x"), Axis::new("y"));
        assert!(svg(&figure.with(Series::cdf("none", &[f64::NAN]))).is_ok());
        let flat = Figure::new("f", "flat", Axis::log("x"), Axis::new("y"));
        assert!(svg(&flat.with(Series::curve("zero", vec![(0.0, 0.0)]))).is_ok());
    }

    #[test]
    fn numbers_and_lines() {
        for (value, expected) in
            [(0.0, "0"), (1200.0, "1200"), (0.25, "0.25"), (0.0001, "0.0001"), (2.50, "2.5")]
        {
            assert_eq!(number(value), expected);
        }
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
    }
}
