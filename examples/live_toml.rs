//! Limits from a TOML file that is read again whenever it changes, while the limiter runs.
//!
//! ```sh
//! cargo run --example live_toml              # a file of its own, which it changes twice
//! cargo run --example live_toml limits.toml  # yours: edit it meanwhile
//! ```
//! The file:
//! ```toml
//! [[rules]]
//! limit = 5
//! window_ms = 1000
//! ```

use std::{
    env,
    error::Error,
    fs,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use tollgate::{Algorithm, Clock, Limiter, Live, LiveRules, Log, Precise, Rule};

/// How often the file is looked at.
const POLL: Duration = Duration::from_millis(20);

/// The rules in the text of the file.
fn parse(text: &str) -> Result<Vec<Rule>, Box<dyn Error>> {
    let table: toml::Table = text.parse()?;
    let rules = table.get("rules").and_then(|rules| rules.as_array()).ok_or("no [[rules]]")?;
    let number = |rule: &toml::Value, key: &str| {
        let number = rule.get(key).and_then(toml::Value::as_integer).ok_or(format!("no {key}"))?;
        u64::try_from(number).map_err(|_| format!("{key} {number} is below 0"))
    };
    let rule =
        |rule| Ok(Rule::new(number(rule, "limit")?, Duration::from_millis(number(rule, "window_ms")?)));
    rules.iter().map(rule).collect()
}

/// Follows the file until the process ends. A file that can not be used changes nothing, and is named. Texts are compared, not
/// times: a file that was read while it was half written may have no other time when it is whole.
fn watch(path: &Path, mut seen: String, rules: &LiveRules<Log>) {
    let mut follow = || -> Result<(), Box<dyn Error>> {
        let text = fs::read_to_string(path)?;
        if text != seen {
            seen = text;
            rules.set(&parse(&seen)?)?;
            println!("rules are now {:?}", &rules.get()[..]);
        }
        Ok(())
    };
    loop {
        thread::sleep(POLL);
        if let Err(error) = follow() {
            eprintln!("{}: {error}; the rules stay as they are", path.display());
        }
    }
}

/// Calls ten times, and tells how many were admitted.
fn call<C: Clock>(limiter: &Limiter<Live<Log>, C>) -> usize {
    (0..10).filter(|_| limiter.try_acquire()).count()
}

fn main() -> Result<(), Box<dyn Error>> {
    let given = env::args().nth(1).map(PathBuf::from);
    let path =
        given.clone().unwrap_or_else(|| env::temp_dir().join(format!("limits-{}.toml", std::process::id())));
    let write = |limit| fs::write(&path, format!("[[rules]]\nlimit = {limit}\nwindow_ms = 60000\n"));
    if given.is_none() {
        write(3)?;
    }
    let text = fs::read_to_string(&path)?;
    let all = parse(&text)?;
    let first = all.first().copied().ok_or("no rule")?;
    // Up to 1,000 permits later on, whatever the file says first.
    let log = Log::builder(first.limit, first.window.into()).capacity(1_000).build()?;
    let limiter = Limiter::new(Live::new(log)?, Precise::new());
    let rules = limiter.algorithm().handle().clone();
    rules.set(&all)?;
    let watched = path.clone();
    thread::spawn(move || watch(&watched, text, &rules));

    println!("admitted {} of 10", call(&limiter));
    if given.is_some() {
        loop {
            thread::sleep(Duration::from_secs(1));
            println!("admitted {} of 10", call(&limiter));
        }
    }
    for limit in [8, 0] {
        write(limit)?;
        while limiter.algorithm().rules()[0].limit != limit {
            thread::sleep(POLL);
        }
        println!("admitted {} of 10", call(&limiter));
    }
    Ok(fs::remove_file(&path)?)
}
