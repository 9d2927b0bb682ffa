//! The pictures, as SVG.

use std::{error::Error, fs, path::Path as File};

use plotters::{coord::Shift, prelude::*};
use tollgate_benches::Axis;

use crate::{
    Report, crowd,
    drive::{Path, Time},
    lineup::{self, Side},
    memory, single,
};

const INK: RGBColor = RGBColor(0x1f, 0x23, 0x28);
const MUTED: RGBColor = RGBColor(0x59, 0x63, 0x6e);
const GRID: RGBColor = RGBColor(0xd8, 0xde, 0xe4);
const BLUE: RGBColor = RGBColor(0x09, 0x69, 0xda);
const AMBER: RGBColor = RGBColor(0xd2, 0x8b, 0x0a);
/// Lines, in the order in which they come.
const LINES: [RGBColor; 8] = [
    BLUE,
    RGBColor(0x1a, 0x7f, 0x37),
    RGBColor(0xcf, 0x22, 0x2e),
    RGBColor(0x82, 0x50, 0xdf),
    AMBER,
    RGBColor(0x1b, 0x7c, 0x83),
    RGBColor(0xbf, 0x39, 0x89),
    MUTED,
];

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), Box<dyn Error>>;

/// A line: its name and its points.
struct Line(String, Vec<(f64, f64)>);

/// What the axes say.
struct Axes<'a> {
    title: &'a str,
    x: &'a str,
    y: &'a str,
}

/// Draws all of them into a folder.
pub(crate) fn draw(report: &Report, folder: &File) -> Drawn {
    fs::create_dir_all(folder)?;
    algorithms(report, &folder.join("algorithms.svg"))?;
    threads(report, &folder.join("threads.svg"))?;
    shapes(report, &folder.join("shapes.svg"))?;
    bytes(report, &folder.join("memory.svg"))
}

/// A picture, drawn on white.
fn sheet(file: &File, size: (u32, u32), draw: impl FnOnce(&Area<'_>) -> Drawn) -> Drawn {
    let root = SVGBackend::new(file, size).into_drawing_area();
    root.fill(&WHITE)?;
    draw(&root)?;
    root.present()?;
    Ok(())
}

fn text<'a>(size: i32) -> TextStyle<'a> {
    ("sans-serif", size).into_font().color(&INK)
}

/// Nanoseconds a check by algorithm, the time passed in: two bars each.
fn algorithms(report: &Report, file: &File) -> Drawn {
    const ROW: i32 = 30;
    let shown = || lineup::ALL.iter().filter(|it| !it.own_clock);
    let size = (900, 70 + ROW as u32 * shown().count() as u32);
    sheet(file, size, |area| {
        area.draw_text("ns per check, one thread, time passed in", &text(20), (12, 10))?;
        for (place, (name, colour)) in [("admitted", BLUE), ("refused", AMBER)].into_iter().enumerate() {
            let x = 560 + 150 * place as i32;
            area.draw(&Rectangle::new([(x, 14), (x + 14, 28)], colour.filled()))?;
            area.draw_text(name, &text(16), (x + 20, 12))?;
        }
        let ns = |name, path| report.singles.median(&single::Label { name, path, time: Time::Passed });
        let all = shown().flat_map(|it| Path::BOTH.map(|path| ns(it.name, path)));
        let most = all.fold(1.0, f64::max);
        for (row, it) in shown().enumerate() {
            let y = 48 + ROW * row as i32;
            let weight = if it.side == Side::Ours { FontStyle::Bold } else { FontStyle::Normal };
            let name = ("sans-serif", 15, weight).into_font().color(&INK);
            area.draw_text(it.name, &name, (12, y + 4))?;
            for (bar, (path, colour)) in Path::BOTH.into_iter().zip([BLUE, AMBER]).enumerate() {
                let (ns, y) = (ns(it.name, path), y + 12 * bar as i32);
                if ns.is_nan() {
                    continue;
                }
                let end = 250 + (ns / most * 570.0) as i32;
                area.draw(&Rectangle::new([(250, y), (end, y + 10)], colour.filled()))?;
                area.draw_text(&format!("{ns:.1}"), &text(12), (end + 5, y - 1))?;
            }
        }
        Ok(())
    })
}

/// Throughput by threads, admitted and refused.
fn threads(report: &Report, file: &File) -> Drawn {
    let names = [
        "one CAS",
        "counter",
        "log of single permits",
        "log",
        "sharded counter",
        "governor",
        "deque, parking_lot",
        "deque, std mutex",
    ];
    sheet(file, (900, 860), |area| {
        for (path, area) in Path::BOTH.into_iter().zip(area.split_evenly((2, 1))) {
            let line = |name: &'static str| {
                let name = if name == "one CAS" { lineup::floor(path) } else { name };
                let at = |threads| 1e3 / report.crowds.median(&crowd::Label { name, path, threads });
                Line(name.to_owned(), crowd::THREADS.map(|threads| (threads as f64, at(threads))).to_vec())
            };
            let title = format!("{path:?}: millions a second by threads, one limiter, precise clock");
            let axes = Axes { title: &title, x: "threads", y: "million calls/s" };
            lines(&area, &axes, &names.map(line))?;
        }
        Ok(())
    })
}

/// Cost by limit and by buckets.
fn shapes(report: &Report, file: &File) -> Drawn {
    sheet(file, (900, 860), |area| {
        let axes = [(Axis::Limit, "limit"), (Axis::Buckets, "buckets")];
        for ((axis, name), area) in axes.into_iter().zip(area.split_evenly((2, 1))) {
            let mut all: Vec<Line> = Vec::new();
            for row in report.shapes.series.iter().filter(|row| row.label.axis == axis) {
                let point = (row.label.at as f64, row.median(0));
                match all.iter_mut().find(|line| line.0 == row.label.series) {
                    Some(line) => line.1.push(point),
                    None => all.push(Line(row.label.series.to_owned(), vec![point])),
                }
            }
            let title = format!("ns per check by {name}, one thread, time passed in");
            lines(&area, &Axes { title: &title, x: name, y: "ns" }, &all)?;
        }
        Ok(())
    })
}

/// Bytes by limit.
fn bytes(report: &Report, file: &File) -> Drawn {
    let names = [
        "log",
        "compact log",
        "counter, 10 buckets",
        "counter, 1,000 buckets",
        "sampling log",
        "wheel",
        "token bucket",
        "deque",
    ];
    sheet(file, (900, 430), |area| {
        let all = names.map(|name| {
            let full =
                |limit| memory::find(&report.bytes, name, limit).map_or(f64::NAN, |row| row.full as f64);
            Line(name.to_owned(), memory::LIMITS.map(|limit| (limit as f64, full(limit))).to_vec())
        });
        lines(area, &Axes { title: "bytes of a full limiter by limit", x: "limit", y: "bytes" }, &all)
    })
}

/// Lines over logarithmic axes.
fn lines(area: &Area<'_>, axes: &Axes<'_>, all: &[Line]) -> Drawn {
    let ends = |of: fn(&(f64, f64)) -> f64| {
        let values = || all.iter().flat_map(|line| &line.1).map(of).filter(|value| value.is_finite());
        (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max))
    };
    let ((left, right), (low, high)) = (ends(|point| point.0), ends(|point| point.1));
    if !(left < right && low <= high) {
        return Err(format!("{}: nothing to draw", axes.title).into());
    }
    let mut chart = ChartBuilder::on(area)
        .caption(axes.title, text(20))
        .margin(12)
        .margin_right(210)
        .x_label_area_size(42)
        .y_label_area_size(66)
        .build_cartesian_2d((left..right).log_scale(), (low * 0.7..high * 1.4).log_scale())?;
    chart
        .configure_mesh()
        .bold_line_style(GRID)
        .light_line_style(WHITE)
        .axis_style(MUTED)
        .label_style(text(14))
        .x_desc(axes.x)
        .y_desc(axes.y)
        .x_label_formatter(&|x| mark(*x))
        .y_label_formatter(&|y| mark(*y))
        .draw()?;
    for (line, colour) in all.iter().zip(LINES.into_iter().cycle()) {
        let points = || line.1.iter().copied().filter(|point| point.1.is_finite());
        chart.draw_series(LineSeries::new(points(), colour.stroke_width(2)))?;
        chart.draw_series(points().map(|point| Circle::new(point, 3, colour.filled())))?;
    }
    let (pixels, _) = area.get_pixel_range();
    for (row, (line, colour)) in all.iter().zip(LINES.into_iter().cycle()).enumerate() {
        let (x, y) = (pixels.len() as i32 - 200, 60 + 24 * row as i32);
        area.draw(&Rectangle::new([(x, y), (x + 14, y + 12)], colour.filled()))?;
        area.draw_text(&line.0, &text(14), (x + 20, y - 1))?;
    }
    Ok(())
}

/// A number at an axis, short.
fn mark(n: f64) -> String {
    match n {
        n if n >= 1e6 => format!("{}M", n / 1e6),
        n if n >= 1e4 => format!("{}k", n / 1e3),
        n => format!("{}", (n * 100.0).round() / 100.0),
    }
}
