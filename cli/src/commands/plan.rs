//! `tollgate plan`.

use super::{check_file, check_range, print, same_file, told};
use crate::{
    args::PlanJob,
    failure::Failure,
    input::{self, Request},
    lineup::{Name, Settings},
    output, picture,
    plan::{Planner, WINDOWS_MAX, figures::PlanReport, html, report, try_capacity},
    progress::Bar,
};

/// Reads the input twice, the second time from memory, and prints the plan.
pub(crate) fn plan(job: &PlanJob) -> Result<(), Failure> {
    check(job)?;
    let mut planner = Planner::new(job);
    let bar = Bar::new("planning", &job.input.files);
    let mut take = |request: Request<'_>| {
        bar.request();
        planner.take(request.key, request.time)
    };
    let summary = input::read::<input::Error>(&job.input, &bar, &mut take)?;
    drop(bar);

    let bar = Bar::steps("trying limits", planner.requests());
    let pictures = job.html.is_some() || job.plot.is_some();
    let plan = planner.plan::<Failure>(job, pictures, || bar.request())?;
    drop(bar);

    let report = PlanReport {
        input: told(&job.input, summary, plan.keys as usize, plan.span),
        key: job.input.key.to_string(),
        refuse_at_most_ppb: job.refuse_at_most.parts(),
        windows: &plan.windows,
    };
    if let Some(path) = &job.plot {
        let panels = plan.panels();
        let panels: Vec<_> = panels.iter().map(|panel| panel.as_ref()).collect();
        output::whole(path, &picture::sheet(&panels)?)?;
    }
    if let Some(path) = &job.html {
        output::whole(path, &html::render(&report, &plan, job.refuse_at_most)?)?;
    }
    print(&report, job.json, |colour| report::render(&report, &plan, job.refuse_at_most, colour))?;
    Ok(())
}

/// Checks what can be checked before a line is read: times, windows, files to write.
fn check(job: &PlanJob) -> Result<(), Failure> {
    check_range(&job.input)?;
    if job.windows.len() > WINDOWS_MAX {
        let windows = job.windows.len();
        return Err(Failure::Usage(format!("--windows: {windows} windows are more than {WINDOWS_MAX}")));
    }
    for &window in &job.windows {
        let settings = Settings::single(1, window, None);
        settings.build(Name::Log, 0).map_err(|why| Failure::Usage(format!("--windows: {why}")))?;
        try_capacity(job, window).map_err(|why| Failure::Usage(format!("--capacity: {why}")))?;
    }
    for path in job.plot.iter().chain(&job.html) {
        check_file(path, &job.input)?;
    }
    if let (Some(plot), Some(html)) = (&job.plot, &job.html)
        && same_file(plot, html)
    {
        let path = plot.display();
        return Err(Failure::Usage(format!(
            "--plot and --html both name {path}, and one would be overwritten"
        )));
    }
    Ok(())
}
