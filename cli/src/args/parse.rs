//! What the values of options are made of: counts, spans, rules, rates, shares.

use std::{fmt, path::PathBuf, time::Duration};

use jiff::{Span, SpanRelativeTo};
use tollgate::Rule;

const SECOND: u64 = 1_000_000_000;

/// A part of a whole, in thousand-millionths: exact, so that two programs agree on what is "at most".
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Share(u64);

/// So many requests in such a span.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Capacity {
    pub(crate) count: u64,
    pub(crate) per_ns: u64,
}

// === impl Share ===

impl Share {
    /// What is a whole.
    pub(crate) const WHOLE: u64 = 1_000_000_000;

    /// In thousand-millionths.
    pub(crate) fn parts(self) -> u64 {
        self.0
    }

    /// The most of `all` that is at most this share.
    pub(crate) fn of(self, all: u64) -> u64 {
        (u128::from(all) * u128::from(self.0) / u128::from(Self::WHOLE)) as u64
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = format!("{}.{:07}", self.0 / 10_000_000, self.0 % 10_000_000);
        write!(f, "{}%", digits.trim_end_matches('0').trim_end_matches('.'))
    }
}

// === parsers ===

/// A whole number; the standard library's own messages name no bound.
pub(crate) fn parse_count(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("`{text}` is not a whole number from 0 to {}", u64::MAX))
}

/// A span such as `100ms`, `1s`, `1m 30s`, `1d` (24 hours).
pub(crate) fn parse_span(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a span such as 100ms, 1s, 5m, 1h, 1d");
    let span: Span = text.parse().map_err(|_| wrong())?;
    let span = span.to_duration(SpanRelativeTo::days_are_24_hours()).map_err(|_| wrong())?;
    if span.is_zero() || span.is_negative() {
        return Err(format!("`{text}` is not above 0"));
    }
    Duration::try_from(span).map_err(|_| wrong())
}

/// A rule such as `200/100ms`.
pub(super) fn parse_rule(text: &str) -> Result<Rule, String> {
    let wrong = || format!("`{text}` is not a rule such as 200/100ms");
    let (limit, window) = text.split_once('/').ok_or_else(wrong)?;
    let limit = parse_count(limit.trim()).map_err(|why| format!("{}: {why}", wrong()))?;
    Ok(Rule::new(limit, parse_span(window.trim()).map_err(|why| format!("{}: {why}", wrong()))?))
}

/// A rate such as `1200/s`, `50/100ms`, `72000/m`: above 0.
pub(crate) fn parse_rate(text: &str) -> Result<Capacity, String> {
    let wrong = || format!("`{text}` is not a rate such as 1200/s, 50/100ms, 72000/m");
    let (count, per) = text.split_once('/').ok_or_else(wrong)?;
    let count: u64 = count.trim().parse().map_err(|_| wrong())?;
    let per = per.trim();
    let span = if per.starts_with(|c: char| c.is_ascii_digit()) { per.to_owned() } else { format!("1{per}") };
    let per = parse_span(&span).map_err(|_| wrong())?;
    match u64::try_from(per.as_nanos()) {
        Ok(per_ns) if count > 0 => Ok(Capacity { count, per_ns }),
        _ => Err(wrong()),
    }
}

/// A share such as `0.1%` or `0.001`: from 0 to a whole, to nine decimals of the whole.
pub(crate) fn parse_share(text: &str) -> Result<Share, String> {
    let wrong = || format!("`{text}` is not a share from 0% to 100% such as 0.1% (at most 7 decimals)");
    let (number, decimals) = match text.strip_suffix('%') {
        Some(number) => (number.trim_end(), 7),
        None => (text, 9),
    };
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || part.len() > decimals || !digits(whole) || !digits(part) {
        return Err(wrong());
    }
    let whole: u64 = whole.parse().map_err(|_| wrong())?;
    let part: u64 = format!("{part:0<decimals$}").parse().map_err(|_| wrong())?;
    let unit = 10_u64.pow(decimals as u32);
    let parts = whole.checked_mul(unit).and_then(|whole| whole.checked_add(part)).ok_or_else(wrong)?;
    if parts > Share::WHOLE { Err(wrong()) } else { Ok(Share(parts)) }
}

/// The name of a picture to write.
pub(super) fn parse_svg(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    if path.extension().is_some_and(|end| end.eq_ignore_ascii_case("svg")) {
        Ok(path)
    } else {
        Err(format!("`{text}` does not end in .svg, and pictures are SVG"))
    }
}

/// Windows such as `1s`; the library bounds them when a limiter is built.
pub(super) fn parse_window(text: &str) -> Result<u64, String> {
    let span = parse_span(text)?;
    u64::try_from(span.as_nanos()).map_err(|_| format!("`{text}` is longer than {} s", u64::MAX / SECOND))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_to_the_nanosecond() {
        for (text, ns) in [
            ("1ns", 1),
            ("100ms", 100_000_000),
            ("1s", 1_000_000_000),
            ("1.5s", 1_500_000_000),
            ("1m", 60_000_000_000),
            ("1m 30s", 90_000_000_000),
            ("1h", 3_600_000_000_000),
            ("1d", 86_400_000_000_000),
        ] {
            assert_eq!(parse_span(text), Ok(Duration::from_nanos(ns)), "{text}");
        }
        for text in ["", "1", "s", "1 fortnight", "1e9s", "9999999999999999999s", "1y"] {
            assert_eq!(
                parse_span(text),
                Err(format!("`{text}` is not a span such as 100ms, 1s, 5m, 1h, 1d")),
                "{text}"
            );
        }
        for text in ["0s", "-1s"] {
            assert_eq!(parse_span(text), Err(format!("`{text}` is not above 0")));
        }
    }

    #[test]
    fn rules_are_a_limit_and_a_span() {
        assert_eq!(parse_rule("200/100ms"), Ok(Rule::new(200, Duration::from_millis(100))));
        assert_eq!(parse_rule("0/1d"), Ok(Rule::new(0, Duration::from_secs(86_400))));
        for text in ["", "200", "200/", "/1s", "-1/1s", "1.5/1s", "200/0s", "99999999999999999999/1s"] {
            assert!(parse_rule(text).is_err_and(|why| why.contains(text)), "{text}");
        }
    }

    #[test]
    fn rates_are_a_count_and_a_unit_or_a_span() {
        for (text, count, per_ns) in
            [("1200/s", 1_200, SECOND), ("50/100ms", 50, SECOND / 10), ("7 / m", 7, 60 * SECOND)]
        {
            assert_eq!(parse_rate(text), Ok(Capacity { count, per_ns }), "{text}");
        }
        for text in ["", "1200", "0/s", "-1/s", "1/", "1/0s", "1/parsec", "99999999999999999999/s"] {
            assert!(parse_rate(text).is_err_and(|why| why.contains(text)), "{text}");
        }
    }

    #[test]
    fn shares_are_exact() {
        for (text, parts, shown) in [
            ("0%", 0, "0%"),
            ("0.1%", 1_000_000, "0.1%"),
            ("0.001", 1_000_000, "0.1%"),
            ("12.3456789%", 123_456_789, "12.3456789%"),
            ("100%", Share::WHOLE, "100%"),
            ("1", Share::WHOLE, "100%"),
        ] {
            assert_eq!(parse_share(text), Ok(Share(parts)), "{text}");
            assert_eq!(Share(parts).to_string(), shown);
        }
        for text in
            ["", "%", ".1%", "-1%", "1e-3", "100.1%", "1.1", "0.12345678%", "٣%", "99999999999999999999"]
        {
            assert!(parse_share(text).is_err_and(|why| why.contains(text)), "{text}");
        }
    }

    /// A third of a request can not be refused.
    #[test]
    fn at_most_is_rounded_down() {
        assert_eq!(Share(1_000_000).of(999), 0);
        assert_eq!(Share(1_000_000).of(1_000), 1);
        assert_eq!(Share(Share::WHOLE).of(u64::MAX), u64::MAX);
    }
}
