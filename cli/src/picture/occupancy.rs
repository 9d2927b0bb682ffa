//! How full the true window really was, algorithm by algorithm, against the limit.

use plotters::prelude::*;

use super::{
    AMBER, Area, BLUE, Drawn, FONT, GREEN, GRID, INK, LETTERS, MUTED, Panel, RED, TEAL, VIOLET, legend, mark,
    moment, up_to,
};
use crate::{
    text,
    timeline::{Bin, Timeline},
};

/// Points, by time and height.
type Line = Vec<(f64, f64)>;

/// The fullest true window of any key, over time.
pub(crate) struct Occupancy {
    pub(crate) limit: u64,
    pub(crate) window_ns: u64,
    /// How many keys are shown, if they are not all: the busiest.
    pub(crate) keys: Option<u64>,
    /// What was judged.
    pub(crate) series: Vec<Series>,
}

/// What one algorithm let stand in a window.
#[derive(Clone)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) timeline: Timeline,
}

// === impl Occupancy ===

impl Panel for Occupancy {
    fn title(&self) -> String {
        format!("Fullest true window of {} against the limit", text::span(self.window_ns))
    }

    fn reading(&self) -> String {
        format!(
            "After each request{}, the admissions of its key in the {} before: the most of any key at each time. The \
             dashed line is the limit of {}; a line above it let a burst through around the edge of a window, or \
             out of tokens saved up.",
            self.keys.map_or(String::new(), |keys| format!(" of the {} busiest keys", text::grouped(keys))),
            text::span(self.window_ns),
            text::grouped(self.limit)
        )
    }

    fn draw(&self, area: &Area<'_>) -> Drawn {
        let mut names: Vec<_> =
            self.series.iter().map(|series| (series.name.clone(), colour(&series.name))).collect();
        names.push((format!("limit {}", text::grouped(self.limit)), INK));
        let area = legend(area, &names)?;
        let lines: Vec<(RGBColor, Vec<Line>)> =
            self.series.iter().map(|series| (colour(&series.name), lines(&series.timeline))).collect();
        let points = || lines.iter().flat_map(|(_, lines)| lines.iter().flatten());
        let start = points().map(|(at, _)| *at).reduce(f64::min).unwrap_or(0.0);
        let end = points().map(|(at, _)| *at).reduce(f64::max).unwrap_or(0.0).max(start + 1e6);
        let most = points().map(|(_, n)| *n as u64).max().unwrap_or(0).max(self.limit.min(1 << 53));
        let mut chart = ChartBuilder::on(&area)
            .x_label_area_size(34)
            .y_label_area_size(50)
            .build_cartesian_2d(start..end, up_to(most))?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .x_labels(4)
            .y_labels(6)
            .bold_line_style(GRID)
            .light_line_style(super::SURFACE)
            .axis_style(MUTED)
            .label_style((FONT, LETTERS).into_font().color(&INK))
            .x_label_formatter(&|at| moment(*at, end - start))
            .y_label_formatter(&|n| mark(*n))
            .draw()?;
        // The first ones are drawn last, on top.
        for (colour, lines) in lines.into_iter().rev() {
            for line in lines {
                chart.draw_series(LineSeries::new(line, colour.stroke_width(2)))?;
            }
        }
        let limit = [(start, self.limit as f64), (end, self.limit as f64)];
        chart.draw_series(DashedLineSeries::new(limit, 8, 5, INK.stroke_width(2)))?;
        Ok(())
    }
}

/// The colour that an algorithm has in every picture; those that look like another one share a quiet one.
fn colour(name: &str) -> RGBColor {
    match name.split(' ').next().unwrap_or_default() {
        "log" => BLUE,
        "window" => GREEN,
        "fixed" => RED,
        "two-window" => AMBER,
        "token" => VIOLET,
        "paced" => TEAL,
        _ => MUTED,
    }
}

/// The peaks over time, as steps; where nobody came, nothing is drawn.
fn lines(timeline: &Timeline) -> Vec<Line> {
    let width = timeline.width() as f64;
    let bins: Vec<_> = timeline.bins().collect();
    let stretches = bins.split(|(_, bin)| bin.requests() == 0).filter(|bins| !bins.is_empty());
    let steps = stretches.map(|bins| {
        let step = |&(at, bin): &(u64, Bin)| {
            let (at, peak) = (at as f64, bin.peak as f64);
            [(at, peak), (at + width, peak)]
        };
        bins.iter().flat_map(step).collect()
    });
    steps.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_nobody_came_nothing_is_drawn() {
        let mut timeline = Timeline::default();
        for (ms, level) in [(0, 3), (1, 4), (5, 2)] {
            timeline.count(ms * 1_000_000, true, level);
        }
        let wanted = [vec![(0.0, 3.0), (1e6, 3.0), (1e6, 4.0), (2e6, 4.0)], vec![(5e6, 2.0), (6e6, 2.0)]];
        assert_eq!(lines(&timeline), wanted);
    }
}
