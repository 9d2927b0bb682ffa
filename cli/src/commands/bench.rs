//! `tollgate bench`.

use super::print;
use crate::{
    args::BenchJob,
    bench::{Answer, BenchReport, Time, floor, prove, report, row, slow},
    failure::Failure,
    progress::Bar,
};

/// The rows of each algorithm, in the order of the table.
const ROWS: [(Answer, Time); 4] = [
    (Answer::Admitted, Time::Coarse),
    (Answer::Admitted, Time::Precise),
    (Answer::Refused, Time::Coarse),
    (Answer::Refused, Time::Precise),
];

/// Measures every algorithm, proves that none went over, and prints the report.
pub(crate) fn bench(job: &BenchJob) -> Result<(), Failure> {
    let time = job.seconds / ROWS.len() as u32;
    let most = job.threads.iter().copied().max().unwrap_or(1);
    let steps = job.threads.len() * (1 + job.names.len() * ROWS.len()) + job.names.len();
    let bar = Bar::tasks(steps as u64);
    let (mut floors, mut rows, mut proofs) = (Vec::new(), Vec::new(), Vec::new());
    for &threads in &job.threads {
        bar.task(format!("compare-and-swap, {threads} threads"));
        let floor = floor(threads, time);
        for &name in &job.names {
            for (answer, clock) in ROWS {
                bar.task(format!("{name}, {threads} threads"));
                rows.push(row(name, answer, clock, threads, time, &floor)?);
            }
        }
        floors.push(floor);
    }
    for &name in &job.names {
        bar.task(format!("{name}: counting what was admitted"));
        proofs.push(prove(name, most, time)?);
    }
    drop(bar);
    let report = BenchReport { floors, slow: slow(&rows), rows, proofs };
    print(&report, job.json, |colour| report::render(&report, colour))?;
    Ok(())
}
