//! Any `log_format` of nginx: literal text and `$variables`.
//!
//! # What
//! A variable ends where the literal behind it begins. Where that is not unique, the shortest text counts
//! that lets the rest of the line fit, each variable of a known kind (times, numbers, words) holding only
//! such text: so a user named `a [b` does not hide the time behind it. The time is `$msec`, else
//! `$time_iso8601`, else `$time_local`; `$request_time` is the duration.
//!
//! # Rules
//! - Like in nginx's configuration, the format may consist of several quoted pieces, and `\t`, `\"`, `\'` and
//!   `\\` are escapes.
//! - Further columns behind the last one, after a blank, are allowed.
//! - The client is `$remote_addr`, or without it the first address of `$http_x_forwarded_for`; the path comes
//!   from `$request`, `$request_uri`, `$uri` or `$document_uri`; `header:x-api-key` is `$http_x_api_key`.
//!
//! # Progress
//! A hostile line may hold the literals many times, and the ways to divide it multiply. After [`TRIES`]
//! attempts the line counts as one that does not fit.

use std::{ops::Range, str::FromStr};

use memchr::memmem::Finder;

use super::{Parsed, Parser, Want, Why, given, path, without_query};
use crate::input::moment::{self, Stamp};

/// A `log_format`, split up.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    parts: Vec<Part>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Part {
    Literal(String),
    Variable(String),
}

/// Lines of a `log_format`.
pub(super) struct Nginx {
    pieces: Vec<Piece>,
    want: Want,
    cut: Cut,
}

/// A part of the format, ready to be looked for.
enum Piece {
    Literal(Box<Finder<'static>>),
    Variable(Kind, Use),
}

/// What a variable's text looks like.
#[derive(Clone, Copy)]
enum Kind {
    Any,
    /// At least one byte and no blank.
    Word,
    Number,
    Time(ReadTime),
}

/// What a variable is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Nothing,
    Time,
    Duration,
    Key,
}

/// A line being divided.
struct Division<'p, 'l> {
    pieces: &'p [Piece],
    line: &'l [u8],
    tries: u32,
    /// The best reason so far why the line does not fit.
    why: Why,
    stamp: Option<Stamp>,
    took: u64,
    key: &'l [u8],
}

type ReadTime = fn(&[u8]) -> Result<Stamp, Why>;
type Cut = fn(&[u8]) -> &[u8];

/// Attempts to end a variable somewhere, per line. Usual lines take about one for each variable.
const TRIES: u32 = 1_000;
const NO_FIT: Why = "the log_format does not fit it";

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
        let time = TIMES.iter().map(|(name, _)| *name).find(|name| self.has(name));
        let mut uses = vec![(time, Use::Time), (Some("request_time"), Use::Duration)];
        uses.push((key.as_ref().map(|(name, _)| name.as_str()), Use::Key));
        let piece = |part: &Part| match part {
            Part::Literal(text) => Piece::Literal(Box::new(Finder::new(text).into_owned())),
            Part::Variable(name) => {
                // Only the first appearance of a variable is used.
                let at = uses.iter().position(|(wanted, _)| *wanted == Some(name));
                Piece::Variable(kind(name), at.map_or(Use::Nothing, |at| uses.remove(at).1))
            }
        };
        let pieces = self.parts.iter().map(piece).collect();
        Ok(Nginx { pieces, want: want.clone(), cut: key.as_ref().map_or(whole, |(_, cut)| *cut) })
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
}

/// What a variable's text looks like.
fn kind(name: &str) -> Kind {
    match name {
        "request_time" => Kind::Number,
        "remote_addr" | "status" | "body_bytes_sent" | "bytes_sent" | "request_length" => Kind::Word,
        _ => TIMES.iter().find(|(time, _)| *time == name).map_or(Kind::Any, |(_, read)| Kind::Time(*read)),
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
        let pieces = &self.pieces;
        let mut division =
            Division { pieces, line, tries: TRIES, why: NO_FIT, stamp: None, took: 0, key: b"" };
        if !division.fits(0, 0) {
            return Err(division.why);
        }
        let key = match &self.want {
            Want::Nothing => b"",
            want => given((self.cut)(division.key), want)?,
        };
        Ok(Parsed { stamp: division.stamp.ok_or(NO_FIT)?, took: division.took, key })
    }
}

// === impl Division ===

impl<'l> Division<'_, 'l> {
    /// Whether the pieces from `piece` on fit the line from `at` on.
    fn fits(&mut self, piece: usize, at: usize) -> bool {
        let rest = &self.line[at..];
        let pieces = self.pieces;
        match pieces.get(piece) {
            None => rest.first().is_none_or(u8::is_ascii_whitespace),
            Some(Piece::Literal(text)) => {
                rest.starts_with(text.needle()) && self.fits(piece + 1, at + text.needle().len())
            }
            Some(Piece::Variable(kind, used)) => match pieces.get(piece + 1) {
                Some(Piece::Literal(text)) => {
                    text.find_iter(rest).any(|end| self.holds(piece, *kind, *used, at..at + end))
                }
                Some(Piece::Variable(..)) => {
                    (0..=rest.len()).any(|end| self.holds(piece, *kind, *used, at..at + end))
                }
                // Text of no known kind takes the rest of the line; other text ends at a blank.
                None if matches!(kind, Kind::Any) => self.holds(piece, *kind, *used, at..at + rest.len()),
                None => {
                    let blanks = memchr::memchr2_iter(b' ', b'\t', rest).chain([rest.len()]);
                    blanks.into_iter().any(|end| self.holds(piece, *kind, *used, at..at + end))
                }
            },
        }
    }

    /// Whether the variable `piece` may stand at `place` and what follows fits; keeps its text if so.
    fn holds(&mut self, piece: usize, kind: Kind, used: Use, place: Range<usize>) -> bool {
        let Some(tries) = self.tries.checked_sub(1) else { return false };
        self.tries = tries;
        let (text, end) = (&self.line[place.clone()], place.end);
        let mut stamp = None;
        let possible = match kind {
            Kind::Any => true,
            Kind::Word => !text.is_empty() && memchr::memchr2(b' ', b'\t', text).is_none(),
            Kind::Number => moment::span(text).is_some() || text == b"-",
            Kind::Time(read) => match read(text) {
                Ok(read) => {
                    stamp = Some(read);
                    true
                }
                Err(why) => {
                    self.why = why;
                    false
                }
            },
        };
        if !possible || !self.fits(piece + 1, end) {
            return false;
        }
        match used {
            Use::Nothing => {}
            Use::Time => self.stamp = stamp,
            Use::Duration => self.took = moment::span(text).unwrap_or(0),
            Use::Key => self.key = text,
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = r#"'$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent '
        '"$http_referer" "$http_user_agent" $msec $request_time';"#;
    const LINE: &str = concat!(
        r#"2001:db8::1 - a [b [08/Aug/2016:16:49:16 +0800] "GET /p?q HTTP/1.1" 200 5 "-" "#,
        r#""c \x22[01/Jan/2001:00:00:00 +0000]\x22" 1470646156.789 0.250"#
    );

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
        assert_eq!(key(EXAMPLE, Want::Client, "else"), Err("the log_format does not fit it"));
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
    fn a_bad_time_is_named_and_a_hostile_line_ends() {
        assert_eq!(
            key("$remote_addr [$time_local]", Want::Client, "::1 [31/Feb/2016:16:49:16 +0800]"),
            Err("its time can not be read")
        );
        let hostile = r#"" "#.repeat(100_000);
        let format = r#"$a" $b" $c" $d" $e" $f" $msec"#;
        assert!(parse(format, Want::Nothing, &hostile).is_err());
        let adjacent = parse("$a$b$msec", Want::Nothing, "x1470646156.5");
        assert_eq!(adjacent.map(|(ns, ..)| ns), Ok(1_470_646_156_500_000_000));
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
