//! The interleaving in lines.

use std::collections::HashMap;

use super::{Access, Event, Failure};
use crate::{
    history::{MAIN, thread_name},
    trace::Op,
};

pub(super) fn lines(failure: &Failure) -> Vec<String> {
    let mut newest = HashMap::new();
    let (mut lines, mut running) = (Vec::new(), None);
    for event in &failure.events {
        let (thread, text) = match *event {
            Event::Begin(i) => {
                let record = &failure.history[i];
                (record.thread, format!("{} {{", record.call.at(record.now)))
            }
            Event::End(i) => {
                let record = &failure.history[i];
                let answer = record.answer.map_or_else(String::new, |answer| answer.to_string());
                (record.thread, format!("}} {answer}"))
            }
            Event::Frozen(thread) => (thread, "  FROZEN here, for good".into()),
            Event::Access(ref access) => (access.thread, line(failure, access, &mut newest)),
        };
        if running.is_some_and(|before| before != thread && before != MAIN && thread != MAIN) {
            lines.push(String::new());
        }
        running = Some(thread);
        lines.push(format!("{}  {text}", name(failure, thread)));
    }
    fold(lines)
}

/// Says a run of the same few lines once.
fn fold(lines: Vec<String>) -> Vec<String> {
    let mut folded = Vec::new();
    let mut i = 0;
    'next: while i < lines.len() {
        for period in 1..=6 {
            let end = lines.len();
            let repeats = |&n: &usize| {
                let (from, to) = (i + n * period, i + (n + 1) * period);
                to <= end && lines[from..to] == lines[i..i + period]
            };
            let times = (1..).take_while(repeats).count();
            if times >= 3 {
                folded.extend_from_slice(&lines[i..i + period]);
                folded.push(format!("      ... and {times} times more"));
                i += (times + 1) * period;
                continue 'next;
            }
        }
        folded.push(lines[i].clone());
        i += 1;
    }
    folded
}

fn name(failure: &Failure, thread: usize) -> String {
    // The clock's thread comes last and makes no calls.
    if thread > failure.scenario.threads.len() { "clock".into() } else { thread_name(thread) }
}

fn line(failure: &Failure, access: &Access, newest: &mut HashMap<u32, u64>) -> String {
    let site = access.site.short();
    let Some(word) = access.word else {
        let order = access.order.map_or_else(String::new, |order| format!("({order:?})"));
        return format!("  {site:<22} {}{order}", access.op.name());
    };
    let name = failure.word(word);
    let value = |value| failure.value(word, value);
    let orders = match (access.order, access.failure) {
        (Some(order), Some(failed)) => format!("{order:?}/{failed:?}"),
        (Some(order), None) => format!("{order:?}"),
        _ => String::new(),
    };
    let effect = access.effect;
    let mut text = match (access.op, effect.read, effect.wrote, effect.wanted) {
        (Op::Read | Op::Write, ..) => format!("{name}: {}", access.op.name()),
        (Op::Lock, _, Some(_), _) => format!("{name}.lock()"),
        (Op::Lock, _, None, _) => format!("{name}.lock()  is held: waits"),
        (Op::Unlock, ..) => format!("{name}.unlock()"),
        (Op::CompareExchange, Some(read), wrote, Some((current, new))) => {
            let outcome =
                if wrote.is_some() { "swapped".into() } else { format!("failed, saw {}", value(read)) };
            format!("{name}.cas({} => {}, {orders})  {outcome}", value(current), value(new))
        }
        (op, None, Some(wrote), _) => format!("{name}.{}({}, {orders})", op.name(), value(wrote)),
        (op, Some(read), Some(wrote), _) => {
            format!("{name}.{}({orders})  {} => {}", op.name(), value(read), value(wrote))
        }
        (op, Some(read), None, _) => format!("{name}.{}({orders})  saw {}", op.name(), value(read)),
        (op, None, None, _) => format!("{name}.{}({orders})", op.name()),
    };
    if let (Op::Load, Some(read), Some(&last)) = (access.op, effect.read, newest.get(&word))
        && read != last
    {
        text += &format!("  STALE, the newest is {}", value(last));
    }
    if let Some(wrote) = effect.wrote {
        newest.insert(word, wrote);
    } else if let Some(read) = effect.read {
        // What a word held from the start is known once it is read.
        newest.entry(word).or_insert(read);
    }
    format!("  {site:<22} {text}")
}
