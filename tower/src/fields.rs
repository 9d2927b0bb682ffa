//! The fields that tell a client of its limits.
//!
//! Spans are whole seconds, rounded up: a client that waits so long finds what it was promised. Counts are never
//! negative. No `RateLimit` field carries a moment, only spans; `X-RateLimit-Reset` may, by choice.

use std::{
    fmt::Write,
    time::{Duration, SystemTime},
};

use http::{HeaderMap, HeaderName, HeaderValue};
use tollgate::{Denied, Nanos, Quota, Reason};

use crate::{Policy, tier::Ruling};

/// Which fields tell of limits, by the version of the draft that defines them (draft-ietf-httpapi-ratelimit-headers). It is
/// not a standard yet, and its shape has changed twice.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Fields {
    /// None.
    None,
    /// `RateLimit-Limit`, `-Remaining` and `-Reset`, with `RateLimit-Policy: 100;w=60`.
    Draft6,
    /// `RateLimit: limit=100, remaining=42, reset=7`, with `RateLimit-Policy: 100;w=60`.
    Draft7,
    /// `RateLimit: "default";r=42;t=7`, with `RateLimit-Policy: "default";q=100;w=60`: several policies by name.
    #[default]
    Draft10,
}

/// What `X-RateLimit-Reset` tells: there are servers of either kind, and no way for a client to know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Legacy {
    /// The moment, in seconds since 1970, as GitHub's.
    Moment,
    /// The span until then, in seconds.
    Span,
}

/// What the fields are made by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    pub(crate) fields: Fields,
    pub(crate) legacy: Option<Legacy>,
    /// The time since 1970.
    pub(crate) unix_time: fn() -> Duration,
}

/// Fields to be added to an answer.
#[derive(Debug, Default)]
pub(crate) struct Told(Vec<(HeaderName, HeaderValue)>);

/// The names of all fields that a layer may add, for `Access-Control-Expose-Headers`: without it a page from elsewhere does not
/// see them.
pub const FIELDS: [HeaderName; 10] = [
    http::header::RETRY_AFTER,
    RATELIMIT,
    RATELIMIT_POLICY,
    LIMIT,
    REMAINING,
    RESET,
    X_LIMIT,
    X_REMAINING,
    X_USED,
    X_RESET,
];

const RATELIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATELIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const LIMIT: HeaderName = HeaderName::from_static("ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("ratelimit-reset");
const X_LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const X_REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const X_USED: HeaderName = HeaderName::from_static("x-ratelimit-used");
const X_RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// The largest integer of a structured field (RFC 9651).
const INTEGER_MAX: u64 = 999_999_999_999_999;

const SECOND: u64 = 1_000_000_000;

/// Whole seconds, rounded up.
pub(crate) fn seconds(span: Nanos) -> u64 {
    span.as_nanos().div_ceil(SECOND)
}

/// The seconds of `Retry-After`: rounded up, and at least 1.
pub(crate) fn retry_seconds(span: Nanos) -> u64 {
    seconds(span).max(1)
}

/// The time since 1970 by the system's clock; zero before that.
pub(crate) fn system_time() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

// === impl Form ===

impl Form {
    /// Whether there is anything to tell.
    pub(crate) fn tells(&self) -> bool {
        self.fields != Fields::None || self.legacy.is_some()
    }

    /// The fields for a ruling; none where the request falls under no limit.
    pub(crate) fn of(&self, ruling: &Ruling<'_>) -> Told {
        let mut told = Told::default();
        let Some(policy) = ruling.policy() else { return told };
        let quota = ruling.quota();
        let wait = wait(&quota, &ruling.decision.err());
        match self.fields {
            Fields::None => {}
            Fields::Draft6 => {
                told.add(RATELIMIT_POLICY, &older_policies(ruling));
                told.add_number(LIMIT, quota.limit);
                told.add_number(REMAINING, quota.remaining);
                told.add_number(RESET, wait.map_or(0, seconds));
            }
            Fields::Draft7 => {
                told.add(RATELIMIT_POLICY, &older_policies(ruling));
                let mut figures = String::with_capacity(ROOM);
                number(&mut figures, "limit=", quota.limit);
                number(&mut figures, ", remaining=", quota.remaining);
                number(&mut figures, ", reset=", wait.map_or(0, seconds));
                told.add(RATELIMIT, &figures);
            }
            Fields::Draft10 => {
                told.add(RATELIMIT_POLICY, &policies(ruling));
                told.add(RATELIMIT, &limit(&policy, &quota, wait));
            }
        }
        if let Some(legacy) = self.legacy {
            told.add_number(X_LIMIT, quota.limit);
            told.add_number(X_REMAINING, quota.remaining);
            told.add_number(X_USED, quota.limit.saturating_sub(quota.remaining));
            if let Some(wait) = wait {
                told.add_number(X_RESET, self.reset(legacy, wait));
            }
        }
        told
    }

    fn reset(&self, legacy: Legacy, wait: Nanos) -> u64 {
        match legacy {
            Legacy::Span => seconds(wait),
            Legacy::Moment => seconds(Nanos::from((self.unix_time)()) + wait),
        }
    }
}

/// The span until more is to be had; `None` if waiting changes nothing: everything is free, or the cost is above the limit.
fn wait(quota: &Quota, denied: &Option<Denied>) -> Option<Nanos> {
    match denied.map(|denied| denied.reason) {
        None | Some(Reason::Limit { .. } | Reason::Full { .. }) => Some(quota.next_after),
        Some(_) => None,
    }
    .filter(|&wait| wait > Nanos::ZERO)
}

/// `"default";r=42;t=7`.
fn limit(policy: &Policy<'_>, quota: &Quota, wait: Option<Nanos>) -> String {
    let mut item = String::with_capacity(ROOM);
    named(&mut item, policy.name);
    number(&mut item, ";r=", quota.remaining.min(INTEGER_MAX));
    if let Some(wait) = wait {
        number(&mut item, ";t=", seconds(wait));
    }
    item
}

/// `"burst";q=10;w=1, "daily";q=1000;w=86400`; a window that is no whole number of seconds is not told.
fn policies(ruling: &Ruling<'_>) -> String {
    let mut list = String::with_capacity(ROOM * ruling.limits.len());
    for Policy { name, rule } in ruling.policies() {
        list.push_str(if list.is_empty() { "" } else { ", " });
        named(&mut list, name);
        number(&mut list, ";q=", rule.limit.min(INTEGER_MAX));
        if let Some(window) = whole_seconds(rule.window) {
            number(&mut list, ";w=", window);
        }
    }
    list
}

/// `10;w=1, 1000;w=86400`.
fn older_policies(ruling: &Ruling<'_>) -> String {
    let mut list = String::with_capacity(ROOM * ruling.limits.len());
    for Policy { rule, .. } in ruling.policies() {
        let comma = if list.is_empty() { "" } else { ", " };
        number(&mut list, comma, rule.limit);
        number(&mut list, ";w=", seconds(rule.window));
    }
    list
}

/// Room for an item, so that its text seldom grows.
const ROOM: usize = 48;

fn named(text: &mut String, name: &str) {
    text.push('"');
    text.push_str(name);
    text.push('"');
}

/// A number after some text: in every answer, so without the machinery of `format!`.
fn number(text: &mut String, before: &str, number: u64) {
    text.push_str(before);
    // The last digit first; 20 are the most.
    let (mut digits, mut first, mut rest) = ([b'0'; 20], 19, number);
    while rest > 9 {
        digits[first] += (rest % 10) as u8;
        (first, rest) = (first - 1, rest / 10);
    }
    digits[first] += rest as u8;
    text.extend(digits[first..].iter().map(|&digit| char::from(digit)));
}

/// The window in seconds, if it is a whole number of them.
pub(crate) fn whole_seconds(window: Nanos) -> Option<u64> {
    window.as_nanos().is_multiple_of(SECOND).then(|| seconds(window))
}

/// Writing into a string does not fail.
pub(crate) fn push(text: &mut String, more: std::fmt::Arguments<'_>) {
    text.write_fmt(more).unwrap_or_default();
}

// === impl Told ===

impl Told {
    /// Adds a text, which is printable: names are by their check. (Copied, to its length: what has room to spare would be kept
    /// behind one more pointer.)
    fn add(&mut self, name: HeaderName, text: &str) {
        if let Ok(value) = HeaderValue::from_str(text) {
            self.0.push((name, value));
        }
    }

    fn add_number(&mut self, name: HeaderName, number: u64) {
        self.0.push((name, number.into()));
    }

    /// Puts the fields into an answer. What a layer within has told stays first: lists get one line more, for policies
    /// that are not told of yet; other fields of a kind (`X-RateLimit-*`, and the rest) that it has told are that layer's,
    /// since it is the nearer one to the handler.
    pub(crate) fn put(self, headers: &mut HeaderMap) {
        let (told, told_x) = (headers.contains_key(RATELIMIT_POLICY), headers.contains_key(X_LIMIT));
        for (name, value) in self.0 {
            let within = if name.as_str().starts_with("x-") { told_x } else { told };
            let left = if within { untold(headers, &name, &value) } else { Some(value) };
            if let Some(value) = left {
                headers.append(name, value);
            }
        }
    }
}

/// The items of a list that a field does not have by their names; `None` if it has all of them, or where there is no list.
fn untold(headers: &HeaderMap, name: &HeaderName, list: &HeaderValue) -> Option<HeaderValue> {
    let list = list.to_str().ok().filter(|list| list.starts_with('"'))?;
    let is_told = |item: &str| {
        let lines = headers.get_all(name).iter().filter_map(|line| line.to_str().ok());
        lines.flat_map(items).any(|told| name_of(told) == name_of(item))
    };
    let left: Vec<&str> = items(list).filter(|item| !is_told(item)).collect();
    if left.is_empty() { None } else { HeaderValue::from_str(&left.join(", ")).ok() }
}

/// The items of a structured list: between the commas that stand in no string.
fn items(list: &str) -> impl Iterator<Item = &str> {
    let (mut quoted, mut escaped) = (false, false);
    let divides = move |c: char| {
        quoted ^= c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        c == ',' && !quoted
    };
    list.split(divides).map(|item| item.trim_matches([' ', '\t']))
}

/// The string that an item is.
fn name_of(item: &str) -> Option<&str> {
    item.strip_prefix('"')?.split('"').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_rounded_up() {
        let of = |nanos| (seconds(Nanos::from_nanos(nanos)), retry_seconds(Nanos::from_nanos(nanos)));
        assert_eq!(of(0), (0, 1));
        assert_eq!(of(1), (1, 1));
        assert_eq!(of(SECOND), (1, 1));
        assert_eq!(of(SECOND + 1), (2, 2));
        assert_eq!(of(u64::MAX), (18_446_744_074, 18_446_744_074));
    }

    #[test]
    fn numbers_are_written_whole() {
        for given in [0, 7, 10, 1_234_567_890, u64::MAX] {
            let mut text = String::new();
            number(&mut text, "n=", given);
            assert_eq!(text, format!("n={given}"));
        }
    }

    #[test]
    fn windows_that_are_no_whole_seconds_are_not_told() {
        assert_eq!(whole_seconds(Nanos::from_secs(60)), Some(60));
        assert_eq!(whole_seconds(Nanos::from_millis(100)), None);
    }

    #[test]
    fn fields_of_a_layer_within_stay() {
        let told = |of: &str| {
            let mut told = Told::default();
            told.add(RATELIMIT_POLICY, &format!("\"{of}\";q=9;w=1"));
            told.add(RATELIMIT, &format!("\"{of}\";r=1"));
            told.add(X_LIMIT, &format!("limit of {of}"));
            told
        };
        let mut headers = HeaderMap::new();
        for of in ["route", "global", "route"] {
            told(of).put(&mut headers);
        }
        let all = |name| headers.get_all(name).iter().collect::<Vec<_>>();
        assert_eq!(all(RATELIMIT), ["\"route\";r=1", "\"global\";r=1"]);
        assert_eq!(all(RATELIMIT_POLICY), ["\"route\";q=9;w=1", "\"global\";q=9;w=1"]);
        assert_eq!(all(X_LIMIT), ["limit of route"]);
    }

    fn put(headers: &mut HeaderMap, name: HeaderName, text: &str) {
        let mut told = Told::default();
        told.add(name, text);
        told.put(headers);
    }

    #[test]
    fn policies_are_told_once_each_and_by_their_whole_names() {
        for (within, outside, expected) in [
            // Some are told of, and some not.
            (r#""a";q=1"#, r#""a";q=2, "b";q=3"#, vec![r#""a";q=1"#, r#""b";q=3"#]),
            (r#""a";q=1, "b";q=2"#, r#""b";q=3, "a";q=4"#, vec![r#""a";q=1, "b";q=2"#]),
            // What divides items and parameters may stand in a name.
            (r#""a;b";q=1"#, r#""a";q=2"#, vec![r#""a;b";q=1"#, r#""a";q=2"#]),
            (r#""a";q=1"#, r#""a;b";q=2"#, vec![r#""a";q=1"#, r#""a;b";q=2"#]),
            (
                r#""a;x, y";q=1"#,
                r#""a;x";q=2, "b, c";q=3"#,
                vec![r#""a;x, y";q=1"#, r#""a;x";q=2, "b, c";q=3"#],
            ),
            (r#""a", "b""#, r#"", ";q=2"#, vec![r#""a", "b""#, r#"", ";q=2"#]),
        ] {
            let mut headers = HeaderMap::new();
            put(&mut headers, RATELIMIT_POLICY, within);
            put(&mut headers, RATELIMIT_POLICY, outside);
            assert_eq!(headers.get_all(RATELIMIT_POLICY).iter().collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn fields_of_a_kind_that_nobody_within_has_told_are_added() {
        let mut headers = HeaderMap::new();
        put(&mut headers, RATELIMIT_POLICY, r#""route";q=1"#);
        put(&mut headers, X_LIMIT, "9");
        put(&mut headers, LIMIT, "9");
        assert_eq!((headers.get(X_LIMIT).unwrap(), headers.get(LIMIT)), (&HeaderValue::from(9), None));
    }
}
