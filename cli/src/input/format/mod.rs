//! The formats of lines: each reads a line's time, its request's duration, and the key that is asked for.
//!
//! A [`Parser`] is made for one format and one key, refuses a key that its format can not have, and then
//! looks only at what it needs. Keys are the bytes of the line as they stand (of JSON text: unescaped).

pub(super) mod csv;
pub(super) mod nginx;

mod clf;
mod epoch;
mod json;

use ::regex::bytes::{CaptureLocations, Regex};

use super::{
    moment::{Stamp, Why},
    options::{Format, KeySpec},
};

/// What a line says.
#[derive(Debug)]
pub(super) struct Parsed<'a> {
    /// The line's time.
    pub(super) stamp: Stamp,
    /// How long the request had taken by then, in nanoseconds; 0 if the line does not say.
    pub(super) took: u64,
    /// The key.
    pub(super) key: &'a [u8],
}

/// Reads the lines of one format.
pub(super) trait Parser {
    /// Reads one line.
    ///
    /// # Errors
    /// Why the line can not be used.
    fn parse<'a>(&'a mut self, line: &'a [u8]) -> Result<Parsed<'a>, Why>;
}

/// The keys that depend on the format.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Want {
    Nothing,
    Client,
    Path,
    User,
    Header(String),
}

/// A parser whose key comes from the line as a whole.
struct Raw<K> {
    parser: Box<dyn Parser>,
    key: K,
}

/// A match in the line.
struct Matched {
    expression: Regex,
    groups: CaptureLocations,
}

/// A comma-separated column of the line.
struct Column {
    column: usize,
    scratch: Vec<u8>,
}

/// A key found in the line as a whole.
trait RawKey {
    fn find<'a>(&'a mut self, line: &'a [u8]) -> Result<&'a [u8], Why>;
}

/// A parser of this format that gives this key.
///
/// # Errors
/// The format has no such key.
pub(super) fn parser(format: &Format, key: &KeySpec) -> Result<Box<dyn Parser>, String> {
    let want = match key {
        KeySpec::None | KeySpec::Regex(_) | KeySpec::Csv(_) => Want::Nothing,
        KeySpec::Client => Want::Client,
        KeySpec::Path => Want::Path,
        KeySpec::User => Want::User,
        KeySpec::Header(name) => Want::Header(name.clone()),
    };
    let parser = of_format(format, &want).map_err(|why| format!("there is no key {key}: {why}"))?;
    Ok(match key {
        KeySpec::Regex(expression) => {
            let groups = expression.capture_locations();
            Box::new(Raw { parser, key: Matched { expression: expression.clone(), groups } })
        }
        KeySpec::Csv(column) => {
            Box::new(Raw { parser, key: Column { column: *column, scratch: Vec::new() } })
        }
        _ => parser,
    })
}

fn of_format(format: &Format, want: &Want) -> Result<Box<dyn Parser>, String> {
    Ok(match format {
        Format::Auto => return Err("the format is not yet known".into()),
        Format::Combined => Box::new(clf::Clf::new(want, true)?),
        Format::Common => Box::new(clf::Clf::new(want, false)?),
        Format::Nginx(template) => Box::new(template.parser(want)?),
        Format::Json(field) => Box::new(json::Json::new(field, want)),
        Format::Csv(column) if *want == Want::Nothing => Box::new(csv::Csv::new(*column)),
        Format::Csv(_) => return Err("CSV has columns, as in csv:2".into()),
        Format::Epoch => Box::new(epoch::Epoch::new(want)?),
    })
}

/// Tells the format from the first lines of a file: the one that reads the most of them.
///
/// Only lines that also have the key count, as long as there are any. Common log lines of which any has a
/// quoted column behind its request count as combined. A line of JSON may hold a bracketed date, and even a
/// whole common log line: JSON wins if it reads as many. Of its time fields the finest name known wins. Without
/// any line there is nothing to read, and any format does.
///
/// # Errors
/// No format reads any line.
pub(super) fn detect(sample: &[u8], key: &KeySpec) -> Result<Format, String> {
    /// So many lines tell.
    const LINES: usize = 100;
    let lines = || {
        let lines = sample.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        lines.filter(|line| !line.is_empty()).take(LINES)
    };
    let Some(first) = lines().next() else { return Ok(Format::Combined) };
    let mut candidates = Vec::new();
    if lines().any(|line| line.starts_with(b"{")) {
        candidates.extend(json::TIMES.iter().map(|field| Format::Json((*field).into())));
    }
    // Combined reads what common reads, and has more keys.
    candidates.extend([Format::Combined, Format::Epoch]);
    let best = |key: &KeySpec| {
        let mut best = (0, None);
        for format in &candidates {
            let Ok(mut parser) = parser(format, key) else { continue };
            let read = lines().filter(|line| parser.parse(line).is_ok()).count();
            if read > best.0 {
                best = (read, Some(format.clone()));
            }
        }
        best.1
    };
    match best(key).or_else(|| best(&KeySpec::None)) {
        Some(Format::Combined) if !lines().any(clf::is_combined) => Ok(Format::Common),
        Some(format) => Ok(format),
        None => Err(format!(
            "no known format reads its first lines, the first of which is \"{}\"; --format names one",
            super::shown(first)
        )),
    }
}

/// The value of a column or field, unless it stands for "none".
fn given<'a>(value: &'a [u8], want: &Want) -> Result<&'a [u8], Why> {
    match (value, want) {
        (b"" | b"-", Want::Client) => Err("it has no client"),
        (b"" | b"-", Want::Path) => Err("it has no path"),
        (b"" | b"-", Want::User) => Err("it has no user"),
        (b"" | b"-", Want::Header(_)) => Err("it has no such header"),
        _ => Ok(value),
    }
}

/// The path of a request line: its second word up to the query.
fn path(request: &[u8]) -> &[u8] {
    request.split(|byte| *byte == b' ').nth(1).map_or(b"", without_query)
}

fn without_query(target: &[u8]) -> &[u8] {
    &target[..memchr::memchr(b'?', target).unwrap_or(target.len())]
}

// === impl Raw ===

impl<K: RawKey> Parser for Raw<K> {
    fn parse<'a>(&'a mut self, line: &'a [u8]) -> Result<Parsed<'a>, Why> {
        let parsed = self.parser.parse(line)?;
        Ok(Parsed { key: self.key.find(line)?, ..parsed })
    }
}

impl RawKey for Matched {
    fn find<'a>(&'a mut self, line: &'a [u8]) -> Result<&'a [u8], Why> {
        const NO_MATCH: Why = "the key's regex does not match it";
        self.expression.captures_read(&mut self.groups, line).ok_or(NO_MATCH)?;
        let group = usize::from(self.groups.len() > 1);
        self.groups.get(group).map(|(start, end)| &line[start..end]).ok_or(NO_MATCH)
    }
}

impl RawKey for Column {
    fn find<'a>(&'a mut self, line: &'a [u8]) -> Result<&'a [u8], Why> {
        match csv::column(line, self.column, &mut self.scratch)? {
            b"" | b"-" => Err("the key's column is empty"),
            key => Ok(key),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMON: &str = "::1 - - [08/Aug/2016:16:49:16 +0800] \"GET / HTTP/1.1\" 200 5";

    fn detected(sample: &str) -> Result<String, String> {
        detected_for("none", sample)
    }

    fn detected_for(key: &str, sample: &str) -> Result<String, String> {
        detect(sample.as_bytes(), &key.parse().unwrap()).map(|format| match format {
            Format::Json(field) => format!("json:{field}"),
            other => other.to_string(),
        })
    }

    #[test]
    fn the_format_is_told_from_the_first_lines() {
        for (sample, format) in [
            (COMMON.to_owned(), "common"),
            (format!("{COMMON} \"-\" \"curl\""), "combined"),
            (format!("www.example.com:80 {COMMON}\r\n"), "common"),
            (format!("garbage\n\n{COMMON}\n{COMMON} \"-\" \"curl\"\n"), "combined"),
            ("1700000000.5 ::1\n1700000000.6 ::1\n".into(), "epoch"),
            (r#"{"level":"info","ts":1700000000.5,"msg":"x"}"#.into(), "json:ts"),
            (r#"{"time":"08/Aug/2016:16:49:16 +0800","msec":"1470646156.789"}"#.into(), "json:msec"),
            (r#"{"@timestamp":"2023-11-14T22:13:20Z"}"#.into(), "json:@timestamp"),
            (String::new(), "combined"),
            ("\n\r\n".into(), "combined"),
        ] {
            assert_eq!(detected(&sample).as_deref(), Ok(format), "{sample}");
        }
    }

    /// Apache's `%t` puts brackets around the date, and a container's log has the whole line in a field.
    #[test]
    fn json_that_holds_a_common_log_date_is_told_by_the_key() {
        let apache = r#"{"time":"[08/Aug/2016:16:49:16 +0800]","remoteIP":"192.0.2.1"}"#;
        let container = concat!(
            r#"{"log":"192.0.2.1 - - [08/Aug/2016:16:49:16 +0800] \"GET / HTTP/1.1\" 200 5\n","#,
            r#""stream":"stdout","time":"2016-08-08T08:49:16.5Z"}"#
        );
        for (key, sample, format) in [
            ("none", apache, "json:time"),
            ("client", apache, "json:time"),
            ("none", container, "json:time"),
            ("client", container, "combined"),
            // Nobody has the key: then the format is that of the lines, and the key is named as missing.
            ("user", "1700000000 ::1", "epoch"),
            ("header:x", COMMON, "common"),
        ] {
            assert_eq!(detected_for(key, sample).as_deref(), Ok(format), "{key} {sample}");
        }
    }

    #[test]
    fn an_unknown_format_is_an_error_that_shows_a_line() {
        assert_eq!(
            detected("hello\x1b[0m\nworld"),
            Err(
                "no known format reads its first lines, the first of which is \"hello\\u{1b}[0m\"; --format \
                 names one"
                    .into()
            )
        );
        assert!(detected("{\"message\":\"no time\"}").is_err());
    }

    fn key(format: &str, key: &str, line: &str) -> Result<String, Why> {
        let mut parser = parser(&format.parse().unwrap(), &key.parse().unwrap()).unwrap();
        parser.parse(line.as_bytes()).map(|parsed| String::from_utf8(parsed.key.to_vec()).unwrap())
    }

    #[test]
    fn keys_of_the_whole_line_fit_every_format() {
        let line = "1700000000 id=alice,b,-";
        assert_eq!(key("epoch", "none", line).as_deref(), Ok(""));
        assert_eq!(key("epoch", r"regex:id=(\w+)", line).as_deref(), Ok("alice"));
        assert_eq!(key("epoch", r"regex:id=\w+", line).as_deref(), Ok("id=alice"));
        assert_eq!(key("epoch", "regex:id=(bob)|alice", line), Err("the key's regex does not match it"));
        assert_eq!(key("epoch", "regex:bob", line), Err("the key's regex does not match it"));
        assert_eq!(key("epoch", "csv:2", line).as_deref(), Ok("b"));
        assert_eq!(key("epoch", "csv:3", line), Err("the key's column is empty"));
        assert_eq!(key("epoch", "csv:4", line), Err("it has fewer columns"));
        assert_eq!(key("csv:2", "csv:1", "\"a,b\",1700000000").as_deref(), Ok("a,b"));
    }

    #[test]
    fn a_key_that_a_format_lacks_is_refused_before_any_line() {
        let refused =
            |format: &str, key: &str| parser(&format.parse().unwrap(), &key.parse().unwrap()).err().unwrap();
        assert_eq!(refused("csv:1", "client"), "there is no key client: CSV has columns, as in csv:2");
        assert!(refused("epoch", "path").starts_with("there is no key path: lines that begin with an epoch"));
        assert!(
            refused("common", "header:Referer").starts_with("there is no key header:referer: the common")
        );
        assert!(
            refused("nginx:$msec", "user")
                .starts_with("there is no key user: the log_format has no $remote_user")
        );
    }

    #[test]
    fn requests_that_are_not_http_have_no_path() {
        for request in ["", "-", r"\x16\x03\x01", "GET"] {
            let line = format!("::1 - - [08/Aug/2016:16:49:16 +0800] \"{request}\" 400 0");
            assert_eq!(key("common", "path", &line), Err("it has no path"), "{request}");
            assert_eq!(key("common", "client", &line).as_deref(), Ok("::1"), "{request}");
        }
        assert_eq!(path(b"GET /a?b c"), b"/a");
        assert_eq!(path(b"GET http://h/a?b HTTP/1.1"), b"http://h/a");
    }
}
