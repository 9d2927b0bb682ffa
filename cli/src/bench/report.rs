//! The measured rows for people: one line for each algorithm and number of threads.

use std::fmt::Write;

use super::{Answer, BenchReport, Row, Time};
use crate::text::{Cell, YELLOW, grouped, heads, plain, table};

/// Writes the report as text, with colours if `colour`.
pub(crate) fn render(report: &BenchReport, colour: bool) -> String {
    let mut text = String::new();
    for floor in &report.floors {
        let threads = floor.threads;
        let word = if threads == 1 { "thread" } else { "threads" };
        let _ = write!(
            text,
            "{threads} {word}; a bare load and compare-and-swap: {:.1} ns\n\n{}\n",
            floor.ns,
            table(&rows(report, threads), colour)
        );
    }
    if report.floors.iter().any(|floor| floor.threads == 1) {
        let verdict = match report.slow.as_slice() {
            [] => "Every algorithm can admit at least 10 million times a second on one core with the coarse clock."
                .to_owned(),
            slow => format!(
                "Slow: {}: below 10 million admissions a second on one core with the coarse clock.",
                slow.join(", ")
            ),
        };
        let _ = writeln!(text, "{verdict}\n");
    }
    let proofs = report.proofs.iter().map(|proof| {
        vec![
            plain(proof.algorithm),
            plain(grouped(proof.threads as u64)),
            plain(grouped(proof.admitted)),
            plain(grouped(proof.peak)),
            plain(grouped(proof.bound)),
        ]
    });
    let names = heads(["algorithm", "threads", "admitted", "peak", "bound"]);
    let proofs: Vec<_> = [names].into_iter().chain(proofs).collect();
    let _ = write!(
        text,
        "Recorded at 1,000 per 10ms, counted afterwards; no window went over its bound:\n\n{}",
        table(&proofs, colour)
    );
    text
}

fn rows(report: &BenchReport, threads: usize) -> Vec<Vec<Cell>> {
    let mut names = heads(["algorithm"]);
    for answer in ["admitted", "refused"] {
        for clock in [Time::Coarse, Time::Precise] {
            names.extend(heads([format!("{answer}, {}: ns", clock.as_str()).as_str(), "M/s", "x CAS"]));
        }
    }
    let of_threads: Vec<&Row> = report.rows.iter().filter(|row| row.threads == threads).collect();
    let lines = of_threads.chunk_by(|a, b| a.algorithm == b.algorithm).map(|rows| {
        let mut cells = vec![plain(rows[0].algorithm)];
        for row in rows {
            let slow = row.clock == Time::Coarse
                && row.answer == Answer::Admitted
                && row.threads == 1
                && report.slow.contains(&row.algorithm);
            cells.push(plain(format!("{:.1}", row.ns_per_check)));
            cells.push((format!("{:.1}", row.checks_per_second / 1e6), slow.then_some(YELLOW)));
            cells.push(plain(format!("{:.1}", row.x_cas)));
        }
        cells
    });
    [names].into_iter().chain(lines).collect()
}
