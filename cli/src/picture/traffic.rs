//! Requests over time: what was admitted, and on top of it what was refused.

use plotters::prelude::*;

use super::{Area, BLUE, Drawn, FONT, GRID, INK, LETTERS, MUTED, Panel, RED, legend, mark, moment, up_to};
use crate::{text, timeline::Timeline};

/// Admitted and refused over time.
pub(crate) struct Traffic<'a> {
    /// Who decided, and by which limit.
    pub(crate) by: String,
    pub(crate) timeline: &'a Timeline,
}

// === impl Traffic ===

impl Panel for Traffic<'_> {
    fn title(&self) -> String {
        format!("Traffic, {}", self.by)
    }

    fn reading(&self) -> String {
        let width = text::span(self.timeline.width());
        format!("Requests in each {width}: admitted below, refused on top of them.")
    }

    fn draw(&self, area: &Area<'_>) -> Drawn {
        let width = self.timeline.width();
        let refused = ("refused".to_owned(), RED);
        let area = legend(area, &[(format!("admitted in {}", text::span(width)), BLUE), refused])?;
        let bins: Vec<_> = self.timeline.bins().collect();
        let start = bins.first().map_or(0, |(at, _)| *at) as f64;
        let end = bins.last().map_or(0, |(at, _)| at + width) as f64;
        let end = end.max(start + width as f64);
        let most = bins.iter().map(|(_, bin)| bin.requests()).max().unwrap_or(0);
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
        // Steps, since a bin is one height all through.
        let steps = |height: fn(&crate::timeline::Bin) -> u64| {
            bins.iter()
                .flat_map(|(at, bin)| {
                    let height = height(bin) as f64;
                    [(*at as f64, height), ((at + width) as f64, height)]
                })
                .collect::<Vec<_>>()
        };
        chart.draw_series(AreaSeries::new(steps(|bin| bin.requests()), 0.0, RED))?;
        chart.draw_series(AreaSeries::new(steps(|bin| bin.admitted), 0.0, BLUE))?;
        Ok(())
    }
}
