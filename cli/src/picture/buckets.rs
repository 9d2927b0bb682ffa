//! What the window counter withholds, by its number of buckets.

use plotters::prelude::*;

use super::{Area, BLUE, Drawn, FONT, GREEN, GRID, INK, LETTERS, MUTED, Panel, RED, legend};
use crate::text;

/// The counter's refusals by number of buckets.
pub(crate) struct Buckets {
    pub(crate) window_ns: u64,
    pub(crate) limit: u64,
    pub(crate) requests: u64,
    /// What the exact log refuses.
    pub(crate) exact: u64,
    /// The most that may be refused.
    pub(crate) allowed: u64,
    pub(crate) rows: Vec<BucketRow>,
}

/// The counter with one number of buckets.
pub(crate) struct BucketRow {
    pub(crate) buckets: u64,
    /// Least and most refused over the places of the bucket edges.
    pub(crate) refused: [u64; 2],
}

// === impl Buckets ===

impl Buckets {
    fn percent(&self, n: u64) -> f64 {
        n as f64 * 100.0 / self.requests.max(1) as f64
    }
}

impl Panel for Buckets {
    fn title(&self) -> String {
        format!("What the counter refuses, by buckets in {}", text::span(self.window_ns))
    }

    fn reading(&self) -> String {
        format!(
            "The share of requests refused at {} per {}, least and most over the places of the bucket edges. It \
             comes down to what the exact log refuses; the difference is the counter's error.",
            text::grouped(self.limit),
            text::span(self.window_ns)
        )
    }

    fn draw(&self, area: &Area<'_>) -> Drawn {
        let names = [
            ("counter, least to most".to_owned(), BLUE),
            ("exact log".to_owned(), GREEN),
            ("asked for at most".to_owned(), RED),
        ];
        let area = legend(area, &names)?;
        let most = self.rows.iter().map(|row| row.refused[1]).max().unwrap_or(0).max(self.exact);
        let most = self.percent(most).max(self.percent(self.allowed)).max(1e-6) * 1.1;
        let count = self.rows.len();
        let mut chart = ChartBuilder::on(&area)
            .x_label_area_size(34)
            .y_label_area_size(66)
            .build_cartesian_2d(-0.5..count as f64 - 0.5, 0.0..most)?;
        let name = |place: &f64| {
            let whole = (place - place.round()).abs() < 1e-9 && *place > -0.25;
            let row = if whole { self.rows.get(place.round() as usize) } else { None };
            row.map_or(String::new(), |row| format!("{}", row.buckets))
        };
        chart
            .configure_mesh()
            .disable_x_mesh()
            .x_labels(2 * count + 1)
            .y_labels(6)
            .bold_line_style(GRID)
            .light_line_style(super::SURFACE)
            .axis_style(MUTED)
            .label_style((FONT, LETTERS).into_font().color(&INK))
            .x_label_formatter(&name)
            .y_label_formatter(&|percent| format!("{percent:.3}%"))
            .draw()?;
        for (place, row) in self.rows.iter().enumerate() {
            let [least, most] = row.refused.map(|n| self.percent(n));
            let place = place as f64;
            chart.draw_series([Rectangle::new([(place - 0.2, 0.0), (place + 0.2, least)], BLUE.filled())])?;
            chart.draw_series([
                PathElement::new([(place, least), (place, most)], BLUE.stroke_width(3)),
                PathElement::new([(place - 0.2, most), (place + 0.2, most)], BLUE.stroke_width(3)),
            ])?;
        }
        for (n, colour) in [(self.exact, GREEN), (self.allowed, RED)] {
            let line = [(-0.5, self.percent(n)), (count as f64 - 0.5, self.percent(n))];
            chart.draw_series(DashedLineSeries::new(line, 8, 5, colour.stroke_width(2)))?;
        }
        Ok(())
    }
}
