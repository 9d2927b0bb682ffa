//! Makes calls of one row for callgrind to count: `instructions ROW CALLS`; without arguments, lists the rows.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut rows = tollgate_benches::calls();
    let mut arguments = std::env::args().skip(1);
    let Some(name) = arguments.next() else {
        rows.iter().for_each(|row| println!("{}", row.name()));
        return ExitCode::SUCCESS;
    };
    let row = rows.iter_mut().find(|row| row.name() == name);
    let (Some(row), Some(Ok(calls))) = (row, arguments.next().map(|calls| calls.parse())) else {
        eprintln!("usage: instructions [ROW CALLS]");
        return ExitCode::FAILURE;
    };
    row.make_counted(calls);
    ExitCode::SUCCESS
}
