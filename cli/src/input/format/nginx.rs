//! Any `log_format` of nginx: literal text and `$variables`.
//!
//! # What
//! The format is turned into one regular expression that captures only what is needed: the time (`$msec`,
//! else `$time_iso8601`, else `$time_local`), `$request_time`, and the variable that is the key. The expression
//! engine takes time linear in the line, whatever a client wrote into it, and tries every way to divide the
//! line, so that a user named `a [b` does not hide the time behind it.
//!
//! # Rules
//! - Like in nginx's configuration, the format may consist of several quoted pieces, and `\t`, `\"`, `\'` and
//!   `\\` are escapes.
//! - Further columns behind the last one, after a blank, are allowed.
//! - The client is `$remote_addr`, or without it the first address of `$http_x_forwarded_for`; the path comes
//!   from `$request`, `$request_uri`, `$uri` or `$document_uri`; `header:x-api-key` is `$http_x_api_key`.

use std::{fmt::Write, str::FromStr};

use regex::bytes::{CaptureLocations, Regex, RegexBuilder};

use super::{Parsed, Parser, Want, Why, given, path, without_query};
use crate::input::moment::{self, Stamp};

/// A `log_format`, split up.
#[derive(Clone, Debug)]
pub(in crate::input) struct Template {
    parts: Vec<Part>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Part {
    Literal(String),
    Variable(String),
}

/// Lines of a `log_format`.
pub(super) struct Nginx {
    line: Regex,
    groups: CaptureLocations,
    time: (usize, fn(&[u8]) -> Result<Stamp, Why>),
    took: Option<usize>,
    key: Option<(usize, Want, fn(&[u8]) -> &[u8])>,
}

type ReadTime = fn(&[u8]) -> Result<Stamp, Why>;
type Cut = fn(&[u8]) -> &[u8];

/// The variables that are the time, the finest first.
const TIMES: [(&str, ReadTime); 3] =
    [("msec", moment::seconds), ("time_iso8601", moment::iso), ("time_local", moment::clf)];

// === impl Template ===

impl FromStr for Template {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let template = Self { parts: parts(&unquoted(text))? };
        match TIMES.iter().any(|(name, _)| template.has(name)) {
            true => Ok(template),
            false => Err("the log_format has no time: $msec, $time_iso8601 or $time_local".into()),
        }
    }
}

impl Template {
    /// A parser that gives this key.
    ///
    /// # Errors
    /// The format has no such key.
    pub(super) fn parser(&self, want: &Want) -> Result<Nginx, String> {
        let key = self.key(want)?;
        let mut time = None;
        for (name, read) in TIMES {
            time = time.or(self.has(name).then_some((name, read)));
        }
        let (time, read) = time.ok_or("the log_format has no time")?;
        let wanted = [Some(time), Some("request_time"), key.as_ref().map(|(name, _)| name.as_str())];
        let (pattern, groups) = self.pattern(&wanted.map(Option::unwrap_or_default));
        let line = RegexBuilder::new(&pattern).unicode(false).dot_matches_new_line(true).build();
        let line = line.map_err(|error| format!("the log_format is too long: {error}"))?;
        Ok(Nginx {
            groups: line.capture_locations(),
            line,
            time: (groups[0].unwrap_or(0), read),
            took: groups[1],
            key: key.and_then(|(_, cut)| Some((groups[2]?, want.clone(), cut))),
        })
    }

    fn has(&self, name: &str) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Variable(variable) if variable == name))
    }

    /// The variable that holds the key, and how to take the key from it.
    fn key(&self, want: &Want) -> Result<Option<(String, Cut)>, String> {
        let candidates: Vec<(String, Cut)> = match want {
            Want::Nothing => return Ok(None),
            Want::Client => {
                vec![("remote_addr".into(), whole), ("http_x_forwarded_for".into(), first_address)]
            }
            Want::User => vec![("remote_user".into(), whole)],
            Want::Path => vec![
                ("request".into(), path),
                ("request_uri".into(), without_query),
                ("uri".into(), without_query),
                ("document_uri".into(), without_query),
            ],
            Want::Header(name) => vec![(format!("http_{}", name.replace('-', "_")), whole)],
        };
        let names: Vec<_> = candidates.iter().map(|(name, _)| format!("${name}")).collect();
        match candidates.into_iter().find(|(name, _)| self.has(name)) {
            Some(found) => Ok(Some(found)),
            None => Err(format!("the log_format has no {}", names.join(" or "))),
        }
    }

    /// The expression, and for each wanted variable the group that captures its first appearance.
    fn pattern(&self, wanted: &[&str; 3]) -> (String, [Option<usize>; 3]) {
        let (mut pattern, mut groups, mut count) = (String::from("^"), [None; 3], 0);
        for (i, part) in self.parts.iter().enumerate() {
            match part {
                Part::Literal(text) => pattern.push_str(&regex::escape(text)),
                Part::Variable(name) => {
                    let last = i + 1 == self.parts.len();
                    let value = value(name, last);
                    let first = !self.parts[..i].contains(part);
                    match wanted.iter().position(|wanted| *wanted == name.as_str()).filter(|_| first) {
                        Some(at) => {
                            count += 1;
                            groups[at] = Some(count);
                            // Writing to a string can not fail.
                            let _ = write!(pattern, "({value})");
                        }
                        None => {
                            let _ = write!(pattern, "(?:{value})");
                        }
                    }
                }
            }
        }
        pattern.push_str(r"(?:[ \t].*)?$");
        (pattern, groups)
    }
}

/// What a variable's text looks like.
fn value(name: &str, last: bool) -> &'static str {
    match name {
        "time_local" => r"[0-9]{2}/[A-Za-z]{3}/[0-9]{4}:[0-9:.]+(?: [-+][0-9]{4})?",
        "time_iso8601" => r"[-+0-9T:.Z]+",
        "msec" | "request_time" => r"[-0-9.]+",
        "remote_addr" | "status" | "body_bytes_sent" | "bytes_sent" | "request_length" => r"[^ \t]+",
        // Nothing behind it tells where it ends, so it takes the rest.
        _ if last => r".*",
        _ => r".*?",
    }
}

fn whole(text: &[u8]) -> &[u8] {
    text
}

/// The first address of a list of forwarders: the client that the first of them saw.
fn first_address(list: &[u8]) -> &[u8] {
    list.split(|byte| *byte == b',').next().unwrap_or_default().trim_ascii()
}

/// Joins the quoted pieces that nginx's configuration allows, and undoes its escapes.
fn unquoted(text: &str) -> String {
    let (mut out, mut quote) = (String::new(), None);
    let pieces = text.trim().starts_with('\'');
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (_, '\\') => match chars.next() {
                Some('t') => out.push('\t'),
                Some(c @ ('"' | '\'' | '\\')) => out.push(c),
                other => out.extend(std::iter::once('\\').chain(other)),
            },
            (None, '\'') if pieces => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            // Between pieces there are only blanks, and perhaps the final semicolon.
            (None, _) if pieces => {}
            _ => out.push(c),
        }
    }
    out
}

/// Splits a format into literals and variables (`$name` or `${name}`).
fn parts(text: &str) -> Result<Vec<Part>, String> {
    let (mut parts, mut rest) = (Vec::new(), text);
    while !rest.is_empty() {
        let (literal, after) = rest.split_once('$').map_or((rest, None), |(l, a)| (l, Some(a)));
        if !literal.is_empty() {
            parts.push(Part::Literal(literal.into()));
        }
        let Some(after) = after else { break };
        let (name, next) = match after.strip_prefix('{') {
            Some(braced) => braced.split_once('}').ok_or("the log_format has a ${ that is never closed")?,
            None => {
                let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len());
                after.split_at(end)
            }
        };
        if name.is_empty() {
            return Err("the log_format has a $ without a name".into());
        }
        parts.push(Part::Variable(name.into()));
        rest = next;
    }
    Ok(parts)
}

// === impl Nginx ===

impl Parser for Nginx {
    fn parse<'a>(&'a mut self, line: &'a [u8]) -> Result<Parsed<'a>, Why> {
        const NO_MATCH: Why = "the log_format does not match it";
        self.line.captures_read(&mut self.groups, line).ok_or(NO_MATCH)?;
        let group = |i| self.groups.get(i).map(|(start, end)| &line[start..end]).ok_or(NO_MATCH);
        let (time, read) = self.time;
        let stamp = read(group(time)?)?;
        let took = self.took.and_then(|took| moment::span(group(took).ok()?)).unwrap_or(0);
        let key = match &self.key {
            Some((key, want, cut)) => given(cut(group(*key)?), want)?,
            None => b"",
        };
        Ok(Parsed { stamp, took, key })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = r#"'$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent '
        '"$http_referer" "$http_user_agent" $msec $request_time';"#;
    const LINE: &str = r#"2001:db8::1 - a [b [08/Aug/2016:16:49:16 +0800] "GET /p?q HTTP/1.1" 200 5 "-" "c \x22[01/Jan/2001:00:00:00 +0000]\x22" 1470646156.789 0.250"#;

    fn parse(format: &str, want: Want, line: &str) -> Result<(u64, u64, String), Why> {
        let mut parser = format.parse::<Template>().unwrap().parser(&want).unwrap();
        let parsed = parser.parse(line.as_bytes())?;
        Ok((parsed.stamp.ns, parsed.took, String::from_utf8(parsed.key.to_vec()).unwrap()))
    }

    fn key(format: &str, want: Want, line: &str) -> Result<String, Why> {
        parse(format, want, line).map(|(_, _, key)| key)
    }

    #[test]
    fn a_format_as_in_the_configuration_file() {
        let read = parse(EXAMPLE, Want::Client, LINE);
        assert_eq!(read, Ok((1_470_646_156_789_000_000, 250_000_000, "2001:db8::1".into())));
        assert_eq!(key(EXAMPLE, Want::User, LINE).as_deref(), Ok("a [b"));
        assert_eq!(key(EXAMPLE, Want::Path, LINE).as_deref(), Ok("/p"));
        let agent = r"c \x22[01/Jan/2001:00:00:00 +0000]\x22";
        assert_eq!(key(EXAMPLE, Want::Header("user-agent".into()), LINE).as_deref(), Ok(agent));
        assert_eq!(key(EXAMPLE, Want::Header("referer".into()), LINE), Err("it has no such header"));
        assert!(key(EXAMPLE, Want::Client, &format!("{LINE} more columns")).is_ok());
        assert_eq!(key(EXAMPLE, Want::Client, "else"), Err("the log_format does not match it"));
    }

    #[test]
    fn every_time_variable_and_their_rank() {
        let second = 1_470_646_156_000_000_000;
        let at = |format, line| parse(format, Want::Nothing, line).unwrap().0;
        assert_eq!(
            at("$time_iso8601|${time_local}", "2016-08-08T16:49:16+08:00|01/Jan/2001:00:00:00 +0000"),
            second
        );
        assert_eq!(at("[$time_local]", "[08/Aug/2016:16:49:16 +0800]"), second);
        assert_eq!(
            at(r"$time_local\t$msec", "08/Aug/2016:16:49:16 +0800\t1470646156.001"),
            second + 1_000_000
        );
        assert_eq!(at(r#"{"t":"$msec"}"#, r#"{"t":"1470646156.001"}"#), second + 1_000_000);
    }

    #[test]
    fn the_client_may_be_the_one_forwarded_for() {
        let format = "$http_x_forwarded_for|$msec|$http_x_api_key";
        let line = "192.0.2.7, 10.0.0.1|1470646156.001|k y";
        assert_eq!(key(format, Want::Client, line).as_deref(), Ok("192.0.2.7"));
        assert_eq!(key(format, Want::Header("x-api-key".into()), line).as_deref(), Ok("k y"));
        assert_eq!(key("$msec $uri x", Want::Path, "1.5 /a b?c x").as_deref(), Ok("/a b"));
    }

    #[test]
    fn formats_that_can_not_work_say_why() {
        let refusal = |format: &str| format.parse::<Template>().unwrap_err();
        assert_eq!(
            refusal("$remote_addr"),
            "the log_format has no time: $msec, $time_iso8601 or $time_local"
        );
        assert_eq!(refusal("$ $msec"), "the log_format has a $ without a name");
        assert_eq!(refusal("${msec"), "the log_format has a ${ that is never closed");
        let template: Template = "$msec".parse().unwrap();
        assert_eq!(
            template.parser(&Want::Client).err().unwrap(),
            "the log_format has no $remote_addr or $http_x_forwarded_for"
        );
    }
}
