//! Pictures, as SVG: panels that stand alone in a report or one above the other in a file.
//!
//! Colours are few and fixed, so that a page can name each of them and give it another one in the dark
//! ([`PALETTE`]).

mod buckets;
mod cdf;
mod occupancy;
mod traffic;

use std::fmt;

use jiff::Timestamp;
use plotters::{coord::Shift, prelude::*};

pub(crate) use self::{
    buckets::{BucketRow, Buckets},
    cdf::Cdf,
    occupancy::{Occupancy, Series},
    traffic::Traffic,
};

/// The size of a panel.
const WIDTH: u32 = 480;
const HEIGHT: u32 = 320;

const FONT: &str = "sans-serif";
/// The size of letters at axes: legible on a telephone, where a panel is smaller.
const LETTERS: u32 = 17;

const SURFACE: RGBColor = RGBColor(0xff, 0xff, 0xff);
const INK: RGBColor = RGBColor(0x1f, 0x23, 0x28);
const MUTED: RGBColor = RGBColor(0x59, 0x63, 0x6e);
const GRID: RGBColor = RGBColor(0xd8, 0xde, 0xe4);
const BLUE: RGBColor = RGBColor(0x09, 0x69, 0xda);
const GREEN: RGBColor = RGBColor(0x1a, 0x7f, 0x37);
const RED: RGBColor = RGBColor(0xcf, 0x22, 0x2e);
const AMBER: RGBColor = RGBColor(0x9a, 0x67, 0x01);
const VIOLET: RGBColor = RGBColor(0x82, 0x50, 0xdf);
const TEAL: RGBColor = RGBColor(0x1b, 0x7c, 0x83);

/// Every colour, and what it becomes in the dark.
pub(crate) const PALETTE: [(RGBColor, &str); 10] = [
    (SURFACE, "#0d1117"),
    (INK, "#e6edf3"),
    (MUTED, "#9198a1"),
    (GRID, "#30363d"),
    (BLUE, "#4493f8"),
    (GREEN, "#3fb950"),
    (RED, "#f85149"),
    (AMBER, "#d29922"),
    (VIOLET, "#ab7df8"),
    (TEAL, "#39c5cf"),
];

/// Where panels are drawn.
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), Error>;

/// A picture of one thing.
pub(crate) trait Panel {
    /// What it shows.
    fn title(&self) -> String;

    /// How to read it, in a sentence or two.
    fn reading(&self) -> String;

    /// Draws everything but the title.
    fn draw(&self, area: &Area<'_>) -> Drawn;
}

/// Why a picture could not be drawn.
#[derive(Debug)]
pub(crate) struct Error(String);

// === SVG ===

/// One panel as SVG.
///
/// # Errors
/// [`Error`] with what the plotting library says.
pub(crate) fn svg(panel: &dyn Panel) -> Result<String, Error> {
    sheet(&[panel])
}

/// Panels one above the other, as SVG that scales with the room it gets.
///
/// # Errors
/// [`Error`] with what the plotting library says.
pub(crate) fn sheet(panels: &[&dyn Panel]) -> Result<String, Error> {
    let mut text = String::new();
    {
        let size = (WIDTH, HEIGHT * panels.len() as u32);
        let root = SVGBackend::with_string(&mut text, size).into_drawing_area();
        root.fill(&SURFACE)?;
        for (panel, area) in panels.iter().zip(root.split_evenly((panels.len().max(1), 1))) {
            area.draw_text(&panel.title(), &(FONT, 21).into_font().color(&INK), (12, 8))?;
            panel.draw(&area.margin(32, 6, 8, 36))?;
        }
        root.present()?;
    }
    // The library knows its text to be a number of pixels wide; a page knows better how wide it is.
    let sized = format!("width=\"{WIDTH}\" height=\"{}\" ", HEIGHT * panels.len() as u32);
    Ok(text.replacen(&sized, "", 1))
}

/// The names of lines or areas, each with its colour, along the top of `area`; what is left below.
fn legend<'a>(area: &Area<'a>, names: &[(String, RGBColor)]) -> Result<Area<'a>, Error> {
    let (mut x, mut y) = (4, 4);
    for (name, colour) in names {
        let width = 24 + 8 * name.chars().count() as i32;
        if x + width > WIDTH as i32 - 20 && x > 4 {
            (x, y) = (4, y + 20);
        }
        area.draw(&Rectangle::new([(x, y + 3), (x + 11, y + 12)], colour.filled()))?;
        area.draw_text(name, &(FONT, LETTERS).into_font().color(&INK), (x + 16, y))?;
        x += width;
    }
    Ok(area.split_vertically(y + 22).1)
}

/// The ends of an axis of whole numbers from 0, with some room above.
fn up_to(most: u64) -> std::ops::Range<f64> {
    0.0..(most.max(1) as f64 * 1.08)
}

/// A whole number at a mark of an axis, short.
fn mark(n: f64) -> String {
    let (n, unit) = match n {
        n if n >= 1e9 => (n / 1e9, "G"),
        n if n >= 1e6 => (n / 1e6, "M"),
        n if n >= 1e4 => (n / 1e3, "k"),
        n => (n, ""),
    };
    let text = format!("{n:.1}");
    format!("{}{unit}", text.trim_end_matches('0').trim_end_matches('.'))
}

/// A moment at a mark of an axis that is `span` long: the time of day, or the day.
fn moment(ns: f64, span: f64) -> String {
    const DAY: f64 = 86.4e12;
    let Ok(moment) = Timestamp::from_nanosecond(ns as i128) else { return String::new() };
    let format = if span > 2.0 * DAY {
        "%m-%d %H:%M"
    } else if span < 10e9 {
        "%H:%M:%S%.3f"
    } else {
        "%H:%M:%S"
    };
    moment.strftime(format).to_string()
}

// === impl Error ===

impl<E: std::error::Error + Send + Sync> From<DrawingAreaErrorKind<E>> for Error {
    fn from(error: DrawingAreaErrorKind<E>) -> Self {
        Self(error.to_string())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a picture could not be drawn: {}", self.0)
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_short() {
        for (n, text) in
            [(0.0, "0"), (0.5, "0.5"), (9_999.0, "9999"), (12_500.0, "12.5k"), (3e6, "3M"), (2e9, "2G")]
        {
            assert_eq!(mark(n), text);
        }
    }

    #[test]
    fn moments_are_as_fine_as_their_axis() {
        for (span, text) in [(1e9, "22:13:20.000"), (60e9, "22:13:20"), (1e15, "11-14 22:13")] {
            assert_eq!(moment(1.7e18, span), text);
        }
    }

    #[test]
    fn no_two_colours_are_alike() {
        for (i, (colour, dark)) in PALETTE.iter().enumerate() {
            let mut others = PALETTE[..i].iter();
            assert!(others.all(|(other, shade)| other != colour && shade != dark), "{dark}");
        }
    }
}
