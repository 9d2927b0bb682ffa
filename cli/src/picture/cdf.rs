//! How many keys pass which number in their busiest window: where a limit meets them.

use plotters::prelude::*;

use super::{Area, BLUE, Drawn, FONT, GRID, INK, LETTERS, MUTED, Panel, RED, legend, mark};
use crate::text;

/// The distribution of the keys' busiest windows.
pub(crate) struct Cdf {
    pub(crate) window_ns: u64,
    pub(crate) limit: u64,
    /// The busiest window of each key, in ascending order.
    pub(crate) peaks: Vec<u32>,
}

// === impl Cdf ===

impl Panel for Cdf {
    fn title(&self) -> String {
        format!("Keys by their busiest {}", text::span(self.window_ns))
    }

    fn reading(&self) -> String {
        let met = self.peaks.len() - self.peaks.partition_point(|&peak| u64::from(peak) <= self.limit);
        format!(
            "The share of keys whose busiest {} holds at most so many requests. Keys to the right of the proposed \
             limit of {} would meet it: {} of {}.",
            text::span(self.window_ns),
            text::grouped(self.limit),
            text::grouped(met as u64),
            text::count(self.peaks.len() as u64, "key")
        )
    }

    fn draw(&self, area: &Area<'_>) -> Drawn {
        let limit = format!("limit {}", text::grouped(self.limit));
        let area = legend(area, &[("share of keys".to_owned(), BLUE), (limit, RED)])?;
        let most = u64::from(self.peaks.last().copied().unwrap_or(0)).max(self.limit).max(1) as f64 * 1.2;
        let mut chart = ChartBuilder::on(&area)
            .x_label_area_size(34)
            .y_label_area_size(50)
            .build_cartesian_2d((1.0..most.max(2.0)).log_scale(), 0.0..1.02)?;
        chart
            .configure_mesh()
            .x_labels(8)
            .y_labels(6)
            .bold_line_style(GRID)
            .light_line_style(super::SURFACE)
            .axis_style(MUTED)
            .label_style((FONT, LETTERS).into_font().color(&INK))
            .x_label_formatter(&|n| mark(*n))
            .y_label_formatter(&|share| format!("{:.0}%", share * 100.0))
            .draw()?;
        chart.draw_series(LineSeries::new(steps(&self.peaks), BLUE.stroke_width(2)))?;
        let limit = self.limit.max(1) as f64;
        chart.draw_series(DashedLineSeries::new([(limit, 0.0), (limit, 1.0)], 8, 5, RED.stroke_width(2)))?;
        Ok(())
    }
}

/// A step at each number that some key has as its peak.
fn steps(peaks: &[u32]) -> Vec<(f64, f64)> {
    let mut points = vec![(1.0, 0.0)];
    let mut done = 0;
    for equal in peaks.chunk_by(|a, b| a == b) {
        let (at, before) = (f64::from(equal[0]).max(1.0), done as f64 / peaks.len() as f64);
        done += equal.len();
        points.extend([(at, before), (at, done as f64 / peaks.len() as f64)]);
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_as_high_as_its_keys_are_many() {
        let wanted = [(1.0, 0.0), (1.0, 0.0), (1.0, 0.25), (3.0, 0.25), (3.0, 0.75), (9.0, 0.75), (9.0, 1.0)];
        assert_eq!(steps(&[1, 3, 3, 9]), wanted);
    }
}
