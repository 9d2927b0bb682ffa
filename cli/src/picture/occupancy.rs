//! How full the true window really was, algorithm by algorithm, against the limit.

use plotters::prelude::*;

use super::{Area, Drawn, FONT, GRID, INK, LETTERS, LINES, MUTED, Panel, legend, mark, moment, up_to};
use crate::{text, timeline::Timeline};

/// The fullest true window of any key, over time.
pub(crate) struct Occupancy {
    pub(crate) limit: u64,
    pub(crate) window_ns: u64,
    /// What was judged, the most interesting first.
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
            "At each time, the most admissions of any key in the {} before. The dashed line is the limit of {}: \
             a line that passes it let a burst through around a bucket's edge, or out of its spare tokens.",
            text::span(self.window_ns),
            text::grouped(self.limit)
        )
    }

    fn draw(&self, area: &Area<'_>) -> Drawn {
        let mut names: Vec<_> =
            self.series.iter().zip(LINES).map(|(series, colour)| (series.name.clone(), colour)).collect();
        names.push((format!("limit {}", text::grouped(self.limit)), INK));
        let area = legend(area, &names)?;
        let lines: Vec<Vec<(f64, f64)>> = self.series.iter().map(|series| line(&series.timeline)).collect();
        let points = || lines.iter().flatten();
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
        for (line, colour) in lines.into_iter().zip(LINES).rev() {
            chart.draw_series(LineSeries::new(line, colour.stroke_width(2)))?;
        }
        let limit = [(start, self.limit as f64), (end, self.limit as f64)];
        chart.draw_series(DashedLineSeries::new(limit, 8, 5, INK.stroke_width(2)))?;
        Ok(())
    }
}

/// The peaks over time; where nobody came, nothing is known to stand.
fn line(timeline: &Timeline) -> Vec<(f64, f64)> {
    let half = timeline.width() as f64 / 2.0;
    timeline.bins().map(|(at, bin)| (at as f64 + half, bin.peak as f64)).collect()
}
