//! The report as one file of HTML: no network, no script; light and dark; wide and narrow.

use std::fmt::Write;

use super::{Plan, figures::PlanReport, report};
use crate::{
    args::Share,
    picture::{self, PALETTE},
    report::{source, top, whose},
    text::{Cell, grouped, percent, span},
};

/// The page's own colours are the pictures' ink, surface and grid.
const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1f2328;--muted:#59636e;--surface:#fff;--box:#f6f8fa;--line:#d8dee4;--mark:#0969da}
@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--muted:#9198a1;--surface:#0d1117;--box:#161b22;--line:#30363d;--mark:#4493f8}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:76rem;padding:1rem;background:var(--surface);color:var(--ink);
font:16px/1.5 system-ui,sans-serif;overflow-wrap:anywhere}
h1{font-size:1.4rem;margin:.5rem 0}h2{font-size:1.1rem;margin:1.5rem 0 .5rem}p{margin:.4rem 0}
.muted,figcaption{color:var(--muted);font-size:.9rem}
.limit{border:1px solid var(--line);border-left:4px solid var(--mark);background:var(--box);padding:.6rem 1rem;border-radius:6px}
.limit b{font-size:1.6rem}
.wide{overflow-x:auto}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.9rem}
th,td{padding:.25rem .7rem;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}
th:first-child,td:first-child{text-align:left;padding-left:0}
.pictures{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,30rem),1fr));gap:1rem}
figure{margin:0;border:1px solid var(--line);border-radius:6px;padding:.5rem;min-width:0}
svg{width:100%;height:auto;display:block}
pre{overflow-x:auto;background:var(--box);border:1px solid var(--line);border-radius:6px;padding:.7rem;font-size:.85rem;overflow-wrap:normal}
summary{cursor:pointer;padding:.3rem 0}
";

/// Writes the page.
///
/// # Errors
/// [`picture::Error`] if a picture could not be drawn.
pub(crate) fn render(
    report: &PlanReport<'_>,
    plan: &Plan,
    refuse_at_most: Share,
) -> Result<String, picture::Error> {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>tollgate plan</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>\n{STYLE}{}</style>\n</head>\n<body>\n\
         <h1>A limit from real traffic</h1>\n<p class=\"muted\">{}</p>\n",
        dark(),
        escaped(&source(&report.input)),
    );
    if let Some(first) = report.windows.first().filter(|_| report.input.requests > 0) {
        let _ = writeln!(
            page,
            "<div class=\"limit\"><p><b>{} per {}</b> {}</p>\n<p>Refuses {} of {} requests ({}), and {} of {} keys \
             at least once. Asked for: at most {refuse_at_most} of both. Take <b style=\"font-size:1em\">{}</b>: {}.</p></div>",
            grouped(first.limit.proposed),
            span(first.window_ns),
            escaped(&whose(&report.input, &report.key)),
            grouped(first.refused.requests),
            grouped(report.input.requests),
            escaped(&percent(first.refused.requests, report.input.requests)),
            grouped(first.refused.keys),
            grouped(report.input.keys),
            report::taken(first),
            escaped(&first.choice.why),
        );
    }
    page.push_str("<h2>Pictures</h2>\n<div class=\"pictures\">\n");
    for panel in plan.panels() {
        let picture = picture::svg(panel.as_ref())?;
        let _ = writeln!(
            page,
            "<figure>\n{picture}\n<figcaption>{}</figcaption></figure>",
            escaped(&panel.reading())
        );
    }
    page.push_str("</div>\n");
    table(&mut page, "Busiest window of each key, and of all together", &report::traffic(plan));
    table(&mut page, "Smallest limits", &report::limits(report));
    for window in report.windows {
        for text in [
            format!("{}: take {}: {}.", span(window.window_ns), report::taken(window), window.choice.why),
            report::together(window, report),
        ] {
            if !text.is_empty() {
                let _ = writeln!(page, "<p>{}</p>", escaped(&text));
            }
        }
    }
    for window in report.windows {
        let per = span(window.window_ns);
        table(&mut page, &format!("Other limits per {per}"), &report::effects(report, window));
        if !window.refused_most.is_empty() {
            let title = format!("Refused most at {} per {per}", grouped(window.limit.proposed));
            table(&mut page, &title, &top(&window.refused_most));
        }
        if !window.counter.is_empty() {
            let title =
                format!("The window counter at {} per {per}, by buckets", grouped(window.limit.proposed));
            table(&mut page, &title, &report::counter(report, window));
        }
    }
    let notes = report::notes(report, plan);
    if !notes.is_empty() {
        page.push_str("<h2>Notes</h2>\n<ul>\n");
        for note in notes {
            let _ = writeln!(page, "<li style=\"white-space:pre-line\">{}</li>", escaped(&note));
        }
        page.push_str("</ul>\n");
    }
    let proposed = if report.input.requests > 0 { report.windows } else { &[] };
    if !proposed.is_empty() {
        page.push_str("<h2>Code</h2>\n");
    }
    for window in proposed {
        let per = span(window.window_ns);
        for (language, code) in
            [("Rust", &window.snippet.rust), ("C", &window.snippet.c), ("TOML", &window.snippet.toml)]
        {
            let _ = writeln!(
                page,
                "<details open><summary>{language}, for windows of {per}</summary><pre>{}</pre></details>",
                escaped(code)
            );
        }
    }
    page.push_str("</body>\n</html>\n");
    Ok(page)
}

/// What the pictures' colours become in the dark.
fn dark() -> String {
    let rules = PALETTE.iter().map(|(colour, dark)| {
        let name = format!("#{:02X}{:02X}{:02X}", colour.0, colour.1, colour.2);
        format!("svg [fill=\"{name}\"]{{fill:{dark}}}svg [stroke=\"{name}\"]{{stroke:{dark}}}\n")
    });
    format!("@media(prefers-color-scheme:dark){{\n{}}}\n", rules.collect::<String>())
}

fn table(page: &mut String, title: &str, rows: &[Vec<Cell>]) {
    let _ = write!(page, "<h2>{}</h2>\n<div class=\"wide\"><table>\n", escaped(title));
    for (place, row) in rows.iter().enumerate() {
        let tag = if place == 0 { "th" } else { "td" };
        let cells = row.iter().map(|(text, paint)| match paint {
            Some(_) if place > 0 => format!("<{tag}><b>{}</b></{tag}>", escaped(text)),
            _ => format!("<{tag}>{}</{tag}>", escaped(text)),
        });
        let _ = writeln!(page, "<tr>{}</tr>", cells.collect::<String>());
    }
    page.push_str("</table></div>\n");
}

/// Text that is nothing but text: a log holds what strangers sent.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.trim_end().chars() {
        match c {
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '&' => safe.push_str("&amp;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c => safe.push(c),
        }
    }
    safe
}
