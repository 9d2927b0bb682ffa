//! The proposed limit as code: what a user pastes.

use std::fmt::Write;

use super::{
    choice,
    figures::{Choice, Snippet},
};
use crate::text;

/// What the snippets are to say.
pub(super) struct Wanted<'a> {
    /// What has a limit of its own; `none`: all together.
    pub(super) key: &'a str,
    pub(super) window: u64,
    pub(super) limit: u64,
    /// The limit for all keys together, if there is a capacity.
    pub(super) together: Option<u64>,
    pub(super) choice: &'a Choice,
    /// The most keys that were alive at once.
    pub(super) alive: u64,
}

/// One limit in a snippet.
struct Part<'a> {
    name: &'static str,
    whose: String,
    key: &'a str,
    limit: u64,
    buckets: Option<u64>,
    /// Room for so many keys; `None`: there is but one limiter.
    keys: Option<u64>,
}

/// The proposed limit in Rust, C and TOML. With a capacity a second limit, for all together, follows; it is the only
/// one where all have but one limit.
pub(super) fn write(wanted: &Wanted<'_>) -> Snippet {
    let all = |limit, buckets| Part {
        name: "limiter_for_all",
        whose: "for all together".to_owned(),
        key: "none",
        limit,
        buckets,
        keys: None,
    };
    // One log, however long, is nothing beside the keys.
    let together = wanted.together.map(|limit| all(limit, choice::buckets_for_all(limit, wanted.window)));
    let mut parts = Vec::new();
    match wanted.key {
        "none" => parts.push(together.unwrap_or(all(wanted.limit, wanted.choice.buckets))),
        key => {
            // A key may hold what ends a comment.
            let whose = format!("for each key ({})", plain(key));
            let buckets = wanted.choice.buckets;
            // More may come than came.
            let keys = Some(wanted.alive.saturating_mul(2));
            parts.push(Part { name: "limiter", whose, key, limit: wanted.limit, buckets, keys });
            parts.extend(together);
        }
    }
    Snippet {
        rust: rust(&parts, wanted.window),
        c: c(&parts, wanted.window),
        toml: toml(&parts, wanted.window),
    }
}

fn rust(parts: &[Part<'_>], window: u64) -> String {
    let mut names = vec!["ConfigError", "Limiter", "Precise"];
    names.extend(parts.iter().map(Part::kind));
    names.extend(parts.iter().filter_map(|part| part.keys).map(|_| "Keyed"));
    names.sort_unstable();
    names.dedup();
    let mut code = format!("use std::time::Duration;\nuse tollgate::{{{}}};\n", names.join(", "));
    for part in parts {
        let kind = part.kind();
        let build = match part.buckets {
            Some(buckets) => format!("buckets({buckets})"),
            None => "max_cost(1)".to_owned(),
        };
        let builder = format!("{kind}::builder({}, window).{build}", underscored(part.limit));
        let (room, limits, made) = match part.keys {
            Some(keys) => (
                format!(", with room for {}", text::count(keys, "key")),
                "Keyed<str>".to_owned(),
                format!(
                    "let each = {builder}.config()?;\n    Ok(Limiter::precise(Keyed::builder(each, {}).build()?))",
                    underscored(keys)
                ),
            ),
            None => (String::new(), kind.to_owned(), format!("Ok(Limiter::precise({builder}.build()?))")),
        };
        let _ = write!(
            code,
            "\n/// {} per {}, {}{room}.\npub fn {}() -> Result<Limiter<{limits}, Precise>, ConfigError> {{\n    \
             let window = Duration::from_nanos({});\n    {made}\n}}\n",
            text::grouped(part.limit),
            text::span(window),
            part.whose,
            part.name,
            underscored(window),
        );
    }
    code
}

fn c(parts: &[Part<'_>], window: u64) -> String {
    let mut code = "#include <tollgate/tollgate.h>\n".to_owned();
    for part in parts {
        let (algorithm, bound) = match part.buckets {
            Some(buckets) => ("TOLLGATE_WINDOW", format!("    .buckets = {buckets},\n")),
            None => ("TOLLGATE_LOG", "    .max_cost = 1,\n".to_owned()),
        };
        let _ = write!(
            code,
            "\n/* {} per {}, {}. */\nstatic const tollgate_config_t {}_config = {{\n    \
             .struct_size = sizeof(tollgate_config_t),\n    .algorithm = {algorithm},\n    .rule_count = 1,\n{bound}    \
             .clock = TOLLGATE_CLOCK_PRECISE,\n    .rules = {{{{ .limit = {}u, .window_ns = {}u }}}},\n}};\n",
            text::grouped(part.limit),
            text::span(window),
            part.whose,
            part.name,
            part.limit,
            window,
        );
    }
    code
}

fn toml(parts: &[Part<'_>], window: u64) -> String {
    let tables = parts.iter().map(|part| {
        let buckets = part.buckets.map_or(String::new(), |buckets| format!("buckets = {buckets}\n"));
        format!(
            "[[limit]]\nkey = {}\nalgorithm = \"{}\"\n{buckets}limit = {}\nwindow_ns = {} # {}\n",
            quoted(part.key),
            if part.buckets.is_some() { "window" } else { "log" },
            part.limit,
            underscored(window),
            text::span(window)
        )
    });
    tables.collect::<Vec<_>>().join("\n")
}

/// Text that ends no comment and no line.
fn plain(text: &str) -> String {
    text.chars().filter(|c| c.is_ascii_graphic() && !"*/\\".contains(*c) || *c == ' ').collect()
}

/// A basic string of TOML.
fn quoted(text: &str) -> String {
    let escaped = text.chars().map(|c| match c {
        '"' | '\\' => format!("\\{c}"),
        c if c.is_control() => format!("\\u{:04X}", u32::from(c)),
        c => c.to_string(),
    });
    format!("\"{}\"", escaped.collect::<String>())
}

/// Digits as Rust and TOML group them.
fn underscored(n: u64) -> String {
    text::grouped(n).replace(',', "_")
}

// === impl Part ===

impl Part<'_> {
    fn kind(&self) -> &'static str {
        if self.buckets.is_some() { "Window" } else { "Log" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A key is what the user typed, and may look like code.
    #[test]
    fn keys_stay_inside_their_comments_and_strings() {
        let choice =
            Choice { algorithm: "log", buckets: None, bytes_per_key: 8, bytes: 8, why: String::new() };
        let key = "regex:*/ x \"\\\n";
        let snippet = write(&Wanted { key, window: 7, limit: 3, together: None, choice: &choice, alive: 4 });
        assert!(snippet.c.contains("/* 3 per 7ns, for each key (regex: x \"). */"), "{}", snippet.c);
        assert!(
            snippet.rust.contains("/// 3 per 7ns, for each key (regex: x \"), with room for 8 keys.\n"),
            "{}",
            snippet.rust
        );
        assert!(snippet.toml.contains("key = \"regex:*/ x \\\"\\\\\\u000A\"\n"), "{}", snippet.toml);
    }
}
