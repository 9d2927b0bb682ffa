//! JSON by hand: strings, numbers and lists are all there is.

use super::{Failure, Outcome, Report, Row};

pub(super) fn report(report: &Report) -> String {
    let (verdict, exhaustive, why) = match &report.outcome {
        Outcome::Pass { exhaustive, .. } => ("pass", *exhaustive, None),
        Outcome::Fail => ("fail", false, None),
        Outcome::Inconclusive { why } => ("inconclusive", false, Some(why.as_str())),
    };
    object(&[
        ("name", string(&report.name)),
        ("spec", string(&report.spec)),
        ("bound", report.bound.to_string()),
        ("verdict", string(verdict)),
        ("exhaustive", exhaustive.to_string()),
        ("why", why.map_or("null".into(), string)),
        ("rows", list(report.rows.iter().map(row))),
        ("failures", list(report.failures.iter().map(failure))),
        ("orders", list(report.orders.iter().map(|seen| string(&seen.to_string())))),
    ])
}

fn row(row: &Row) -> String {
    let why = row.void.as_ref().or(row.cut.as_ref());
    object(&[
        ("scenario", string(&row.scenario)),
        ("frozen", optional(row.frozen)),
        ("bound", optional(row.bound)),
        ("exhaustive", row.exhaustive.to_string()),
        ("executions", row.executions.to_string()),
        ("given_up", row.given_up.to_string()),
        ("steps", row.steps.to_string()),
        ("steps_alone", row.steps_alone.to_string()),
        ("ms", row.time.as_millis().to_string()),
        ("broken", row.broken.map_or("null".into(), |property| string(property.words()))),
        ("needs", optional(row.needs)),
        ("inconclusive", why.map_or("null".into(), |why| string(why))),
    ])
}

fn failure(failure: &Failure) -> String {
    let call = |record: &crate::Record| {
        object(&[
            ("thread", record.thread.to_string()),
            ("call", string(&record.call.at(record.now))),
            ("answer", record.answer.map_or("null".into(), |answer| string(&answer.to_string()))),
        ])
    };
    let frozen = failure.frozen.map(|(thread, step)| format!("[{thread},{step}]"));
    object(&[
        ("property", string(failure.property.words())),
        ("words", string(&failure.words)),
        ("scenario", string(&super::code(&failure.scenario))),
        ("preemptions", optional(failure.preemptions)),
        ("frozen", frozen.unwrap_or_else(|| "null".into())),
        ("execution", failure.execution.to_string()),
        ("calls", list(failure.history.iter().map(call))),
        ("interleaving", list(failure.interleaving().iter().filter(|l| !l.is_empty()).map(|l| string(l)))),
    ])
}

fn object(fields: &[(&str, String)]) -> String {
    let fields: Vec<_> = fields.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    format!("{{{}}}", fields.join(","))
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(","))
}

fn optional<T: ToString>(value: Option<T>) -> String {
    value.map_or("null".into(), |value| value.to_string())
}

fn string(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' => out += "\\\"",
            '\\' => out += "\\\\",
            c if (c as u32) < 0x20 => out += &format!("\\u{:04x}", c as u32),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::string;

    #[test]
    fn strings_are_escaped() {
        assert_eq!(string("a \"b\" \\ \n"), r#""a \"b\" \\ \u000a""#);
    }
}
