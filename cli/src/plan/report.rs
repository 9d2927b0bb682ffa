//! The plan as text: first the traffic, then the limits, then why, whom, with what, and the code.

use std::fmt::Write;

use super::{
    Plan,
    figures::{PlanReport, WindowPlan},
};
use crate::{
    args::Share,
    report::{input_notes, listed, source, sparkline, top, whose},
    text::{BOLD, Cell, bytes, count, grouped, heads, percent, plain, shown, span, table},
};

/// How wide the sparkline of a row may be.
const SPARKLINE: usize = 24;

/// Writes the plan as text, with colours if `colour`.
pub(crate) fn render(report: &PlanReport<'_>, plan: &Plan, refuse_at_most: Share, colour: bool) -> String {
    let mut text = source(&report.input);
    let _ = writeln!(
        text,
        "To refuse: at most {refuse_at_most} of the requests and of the keys; limits {}",
        whose(&report.input, &report.key)
    );
    text.push_str(&sparkline(plan.traffic()));
    let windows = report.windows;
    let _ = write!(
        text,
        "\nBusiest window of each key, and of all together:\n\n{}",
        table(&traffic(plan), colour)
    );
    let _ = write!(text, "\nSmallest limits:\n\n{}\n", table(&limits(report), colour));
    for window in windows {
        let _ = writeln!(text, "{}: take {}: {}", span(window.window_ns), taken(window), window.choice.why);
    }
    for window in windows {
        text.push_str(&together(window, report));
    }
    let Some(first) = windows.first() else { return text };
    let name = format!("{} per {}", grouped(first.limit.proposed), span(first.window_ns));
    let _ = write!(
        text,
        "\nOther limits per {}:\n\n{}",
        span(first.window_ns),
        table(&effects(report, first), colour)
    );
    if !first.refused_most.is_empty() {
        let _ = write!(text, "\nRefused most at {name}:\n\n{}", table(&top(&first.refused_most), colour));
    }
    if !first.counter.is_empty() {
        let rows = table(&counter(report, first), colour);
        let _ = write!(text, "\nThe window counter at {name}, by buckets:\n\n{rows}");
    }
    text.push_str(&listed(&notes(report, plan)));
    if report.input.requests == 0 {
        return text;
    }
    for (language, code) in
        [("Rust", &first.snippet.rust), ("C", &first.snippet.c), ("TOML", &first.snippet.toml)]
    {
        let _ = match colour {
            true => write!(text, "\n\x1b[{BOLD}m{language}\x1b[0m\n\n"),
            false => write!(text, "\n{language}\n\n"),
        };
        for line in code.lines() {
            let _ = writeln!(text, "{}", format!("    {line}").trim_end());
        }
    }
    text
}

/// What each window held.
pub(crate) fn traffic(plan: &Plan) -> Vec<Vec<Cell>> {
    let names = [
        "window",
        "p50",
        "p90",
        "p99",
        "p99.9",
        "max",
        "all keys",
        "x mean",
        "alive",
        "busiest key over time",
    ];
    let rows = plan.windows.iter().zip(&plan.fullest).map(|(window, fullest)| {
        let peaks = window.peaks;
        let numbers = [peaks.p50, peaks.p90, peaks.p99, peaks.p999, peaks.max, window.together_peak];
        let mean = window.together_mean.filter(|mean| *mean > 0.0);
        let mut cells = vec![plain(span(window.window_ns))];
        cells.extend(numbers.map(|n| plain(grouped(n))));
        cells.push(plain(
            mean.map_or("-".to_owned(), |mean| format!("{:.1}", window.together_peak as f64 / mean)),
        ));
        cells.push(plain(grouped(window.keys_alive)));
        cells.push(plain(fullest.sparkline(SPARKLINE, |bin| bin.peak)));
        cells
    });
    [heads(names)].into_iter().chain(rows).collect()
}

/// The proposed limits.
pub(crate) fn limits(report: &PlanReport<'_>) -> Vec<Vec<Cell>> {
    let names = [
        "window",
        "limit",
        "by requests",
        "by keys",
        "refused",
        "",
        "keys met",
        "take",
        "bytes/key",
        "memory",
    ];
    let rows = report.windows.iter().map(|window| {
        let limit = window.limit;
        vec![
            plain(span(window.window_ns)),
            (grouped(limit.proposed), Some(BOLD)),
            plain(grouped(limit.by_requests)),
            plain(grouped(limit.by_keys)),
            plain(grouped(window.refused.requests)),
            plain(percent(window.refused.requests, report.input.requests)),
            plain(grouped(window.refused.keys)),
            plain(taken(window)),
            plain(grouped(window.choice.bytes_per_key)),
            plain(bytes(window.choice.bytes)),
        ]
    });
    [heads(names)].into_iter().chain(rows).collect()
}

/// What other limits would refuse.
pub(crate) fn effects(report: &PlanReport<'_>, window: &WindowPlan) -> Vec<Vec<Cell>> {
    let rows = window.effects.iter().map(|effect| {
        let proposed = effect.limit == window.limit.proposed;
        vec![
            (grouped(effect.limit), proposed.then_some(BOLD)),
            plain(grouped(effect.refused.requests)),
            plain(percent(effect.refused.requests, report.input.requests)),
            plain(grouped(effect.refused.keys)),
            plain(percent(effect.refused.keys, report.input.keys)),
            plain(if proposed { "proposed" } else { "" }),
        ]
    });
    [heads(["limit", "refused", "", "keys met", "", ""])].into_iter().chain(rows).collect()
}

/// What the counter would refuse, by its number of buckets.
pub(crate) fn counter(report: &PlanReport<'_>, window: &WindowPlan) -> Vec<Vec<Cell>> {
    let rows = window.counter.iter().map(|row| {
        vec![
            plain(grouped(row.buckets)),
            plain(grouped(row.refused[0])),
            plain(grouped(row.refused[1])),
            plain(percent(row.refused[1], report.input.requests)),
            plain(grouped(row.bytes_per_key)),
        ]
    });
    [heads(["buckets", "refused: least", "most", "", "bytes/key"])].into_iter().chain(rows).collect()
}

/// What the capacity leaves for all together; nothing without one.
pub(crate) fn together(window: &WindowPlan, report: &PlanReport<'_>) -> String {
    let Some(together) = &window.together else { return String::new() };
    format!(
        "{}: for all together {}, from the capacity less its headroom: {} ({}) would be refused; the busiest window \
         held {}\n",
        span(window.window_ns),
        grouped(together.limit),
        count(together.refused_requests, "request"),
        percent(together.refused_requests, report.input.requests),
        grouped(window.together_peak)
    )
}

/// What a reader must know to trust the figures and to read them rightly.
pub(crate) fn notes(report: &PlanReport<'_>, plan: &Plan) -> Vec<String> {
    let mut notes = Vec::new();
    if report.input.requests == 0 {
        notes
            .push("no request was read, so nothing is proposed (a limit of 0 refuses everything)".to_owned());
    }
    for window in report.windows.iter().filter(|_| report.input.requests > 0) {
        notes.extend(warnings(window, report));
    }
    for window in report.windows {
        if let Some(outlier) = &window.outlier
            && report.input.keys > 1
        {
            notes.push(format!(
                "one key stands out: {} has {} in its busiest {}; a limit of {} would refuse nobody else",
                shown(&outlier.key),
                grouped(outlier.peak),
                span(window.window_ns),
                grouped(outlier.next)
            ));
        }
    }
    if plan.coarse {
        notes.push(
            "all times are whole seconds: requests of one second count as one moment, and short windows are \
             sharper in truth than they look here"
                .to_owned(),
        );
    }
    notes.extend(input_notes(&report.input));
    notes
}

/// What must not be pasted unread: a limit of 0, and code that has another limit than the proposed one.
fn warnings(window: &WindowPlan, report: &PlanReport<'_>) -> Vec<String> {
    let (per, proposed) = (span(window.window_ns), window.limit.proposed);
    let mut warnings = Vec::new();
    if proposed == 0 {
        warnings.push(format!("0 per {per} keeps the share asked for, and refuses everything"));
    }
    let Some(together) = &window.together else { return warnings };
    if together.limit == 0 {
        warnings.push(format!("0 per {per} for all together, from the capacity, refuses everything"));
    }
    if report.key == "none" && together.limit != proposed {
        warnings.push(format!(
            "the code has the limit from the capacity, {} per {per}, not the smallest, {}",
            grouped(together.limit),
            grouped(proposed)
        ));
    }
    warnings
}

/// An algorithm, and its buckets if it has any.
pub(crate) fn taken(window: &WindowPlan) -> String {
    let choice = &window.choice;
    choice.buckets.map_or(choice.algorithm.to_owned(), |buckets| format!("{} K={buckets}", choice.algorithm))
}
