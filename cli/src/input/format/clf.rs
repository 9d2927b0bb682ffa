//! The common and the combined log format, as servers and their clients really fill them.
//!
//! # What
//! `client ident user [date] "request" status bytes "referer" "user agent"`, with what goes wrong with it:
//! users with spaces or in quotes, a virtual host as the first column, requests that are not HTTP, quotes
//! escaped by a backslash, further columns, cut lines. Only what is asked for is looked at.
//!
//! # Rules
//! - The date is the first bracketed date that a quote follows, since no server lets a client put a quote
//!   into the columns before it; without such a one, the first bracketed date.
//! - A virtual host is the first of four columns (before the date) if it has a port or the second one is an
//!   IP address. The second one is then the client.
//! - Behind the last quote, a last or last but one column like nginx's `$msec` that lies within two seconds
//!   of the date is the time; a column behind it is the request's duration in seconds (`$request_time`).

use std::net::IpAddr;

use memchr::{memchr, memchr_iter, memchr2, memrchr};

use super::{Parsed, Parser, Want, Why, given, path};
use crate::input::moment::{self, Stamp};

const NO_DATE: Why = "it has no [date]";

/// How far `$msec` may be from the date on its line.
const AGREEMENT: u64 = 2_000_000_000;

/// Lines of the common or the combined log format.
pub(super) struct Clf {
    want: Want,
    /// The date read last: busy servers write many lines within a second.
    known: (Vec<u8>, Stamp),
}

// === impl Clf ===

impl Clf {
    /// # Errors
    /// The format has no such key.
    pub(super) fn new(want: &Want, combined: bool) -> Result<Self, String> {
        match want {
            Want::Header(name) if !combined => {
                Err(format!("the common log format has no header {name}; nginx:'LOG_FORMAT' may have it"))
            }
            Want::Header(name) if name != "referer" && name != "user-agent" => Err(format!(
                "the combined log format has the headers referer and user-agent, not {name}; \
                 nginx:'LOG_FORMAT' may have it"
            )),
            _ => Ok(Self { want: want.clone(), known: (Vec::new(), Stamp { ns: 0, zoned: true }) }),
        }
    }

    /// Finds the date: where its bracket opens, what follows behind `]`, and the time.
    fn date<'l>(&mut self, line: &'l [u8]) -> Result<(usize, &'l [u8], Stamp), Why> {
        /// The longest date, with nanoseconds and an offset, is shorter.
        const DATE_MAX: usize = 48;
        let mut found = Err(NO_DATE);
        for open in memchr_iter(b'[', line) {
            let inner = &line[open + 1..line.len().min(open + DATE_MAX)];
            let Some(length) = memchr(b']', inner) else { continue };
            let rest = &line[open + 1 + length + 1..];
            match self.stamp(&inner[..length]) {
                Ok(stamp) if rest.starts_with(b" \"") => return Ok((open, rest, stamp)),
                Ok(stamp) if found.is_err() => found = Ok((open, rest, stamp)),
                Err(why) if found == Err(NO_DATE) && inner[..length].contains(&b'/') => found = Err(why),
                _ => {}
            }
        }
        found
    }

    fn stamp(&mut self, text: &[u8]) -> Result<Stamp, Why> {
        // Before the first date nothing is known, not that the empty text is a date.
        if text.is_empty() || self.known.0 != text {
            let stamp = moment::clf(text)?;
            self.known.0.clear();
            self.known.0.extend_from_slice(text);
            self.known.1 = stamp;
        }
        Ok(self.known.1)
    }
}

impl Parser for Clf {
    fn parse<'a>(&'a mut self, line: &'a [u8]) -> Result<Parsed<'a>, Why> {
        let (open, rest, date) = self.date(line)?;
        let (stamp, took) = refined(line, date);
        let value = match &self.want {
            Want::Nothing => return Ok(Parsed { stamp, took, key: b"" }),
            Want::Client => who(&line[..open]).0,
            Want::User => who(&line[..open]).1,
            Want::Path => path(quoted(rest).0),
            Want::Header(name) => {
                let (referer, rest) = quoted(quoted(rest).1);
                if name == "referer" { referer } else { quoted(rest).0 }
            }
        };
        Ok(Parsed { stamp, took, key: given(value, &self.want)? })
    }
}

/// Whether the line has a quoted column behind its request: combined, not common.
pub(super) fn is_combined(line: &[u8]) -> bool {
    let after_request = memchr(b'"', line).map_or(&b""[..], |at| quoted(&line[at..]).1);
    memchr(b'"', after_request).is_some()
}

/// The client and the user, from the columns before the date.
fn who(head: &[u8]) -> (&[u8], &[u8]) {
    let (first, rest) = word(head);
    let (second, rest) = word(rest);
    let (_, fourth) = word(rest);
    let virtual_host = !fourth.is_empty() && second != b"-" && (has_port(first) || is_address(second));
    let (client, user) = if virtual_host { (second, fourth) } else { (first, rest) };
    let bare = user.strip_prefix(b"\"").and_then(|user| user.strip_suffix(b"\""));
    (client, bare.unwrap_or(user))
}

/// The first word and the rest, without the blanks around them.
fn word(text: &[u8]) -> (&[u8], &[u8]) {
    let text = text.trim_ascii();
    let (word, rest) = text.split_at(memchr(b' ', text).unwrap_or(text.len()));
    (word, rest.trim_ascii_start())
}

/// Whether a column is `name:port` and no IPv6 address.
fn has_port(text: &[u8]) -> bool {
    let Some(colon) = memrchr(b':', text) else { return false };
    let (host, port) = (&text[..colon], &text[colon + 1..]);
    let name = host.ends_with(b"]") || memchr(b':', host).is_none();
    name && !port.is_empty() && port.iter().all(u8::is_ascii_digit)
}

fn is_address(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok_and(|text| text.parse::<IpAddr>().is_ok())
}

/// The next quoted column, still escaped, and what follows it. A column that is never closed, since its last
/// backslash escapes nothing, ends at the last quote or at the end of the line.
fn quoted(text: &[u8]) -> (&[u8], &[u8]) {
    let Some(open) = memchr(b'"', text) else { return (b"", b"") };
    let text = &text[open + 1..];
    let mut at = 0;
    while let Some(found) = text.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        at += found;
        if text[at] == b'"' {
            return (&text[..at], &text[at + 1..]);
        }
        at += 2;
    }
    (&text[..memrchr(b'"', text).unwrap_or(text.len())], b"")
}

/// The finer time and the duration, if the last columns have them.
fn refined(line: &[u8], date: Stamp) -> (Stamp, u64) {
    let tail = memrchr(b'"', line).map_or(&b""[..], |quote| &line[quote + 1..]);
    let mut columns = tail.rsplit(|byte| *byte == b' ').filter(|column| !column.is_empty());
    let finer = |column: Option<&[u8]>| {
        let stamp = moment::seconds(column.filter(|column| column.contains(&b'.'))?).ok()?;
        (stamp.ns.abs_diff(date.ns) < AGREEMENT).then_some(stamp)
    };
    let last = columns.next();
    if let Some(stamp) = finer(last) {
        return (stamp, 0);
    }
    match (finer(columns.next()), last.and_then(moment::span)) {
        (Some(stamp), took) => (stamp, took.unwrap_or(0)),
        (None, _) => (date, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: u64 = 1_470_646_156_000_000_000;

    fn key(want: Want, line: &str) -> Result<String, Why> {
        let mut clf = Clf::new(&want, true).unwrap();
        let parsed = clf.parse(line.as_bytes())?;
        assert_eq!(parsed.stamp.ns, AT, "{line}");
        Ok(String::from_utf8(parsed.key.to_vec()).unwrap())
    }

    fn header(name: &str) -> Want {
        Want::Header(name.into())
    }

    const PLAIN: &str =
        r#"192.0.2.1 - bob [08/Aug/2016:16:49:16 +0800] "GET /a/b?c=d HTTP/1.1" 200 5 "http://r/" "curl/8""#;

    #[test]
    fn every_column_can_be_the_key() {
        assert_eq!(key(Want::Nothing, PLAIN).as_deref(), Ok(""));
        assert_eq!(key(Want::Client, PLAIN).as_deref(), Ok("192.0.2.1"));
        assert_eq!(key(Want::User, PLAIN).as_deref(), Ok("bob"));
        assert_eq!(key(Want::Path, PLAIN).as_deref(), Ok("/a/b"));
        assert_eq!(key(header("referer"), PLAIN).as_deref(), Ok("http://r/"));
        assert_eq!(key(header("user-agent"), PLAIN).as_deref(), Ok("curl/8"));
    }

    #[test]
    fn hosts_and_users_of_every_shape() {
        for (head, client, user) in [
            ("192.0.2.1 - -", "192.0.2.1", Err("it has no user")),
            ("::1 - \"\"", "::1", Err("it has no user")),
            ("2001:41d0:8:f69::1 - John Doe", "2001:41d0:8:f69::1", Ok("John Doe")),
            ("node3.example.net ident \"John Doe\"", "node3.example.net", Ok("John Doe")),
            ("www.example.com:80 ::1 - -", "::1", Err("it has no user")),
            ("[::1]:80 192.0.2.7 - John Doe", "192.0.2.7", Ok("John Doe")),
            ("www.example.com:443 node3.example.net - bob", "node3.example.net", Ok("bob")),
            ("www.example.com 192.0.2.7 - bob", "192.0.2.7", Ok("bob")),
            ("192.0.2.1:5678 - John Doe", "192.0.2.1:5678", Ok("John Doe")),
            ("::1:80 ident John Doe", "::1:80", Ok("John Doe")),
            ("192.0.2.1 -  x", "192.0.2.1", Ok("x")),
            ("192.0.2.1 - [admin]", "192.0.2.1", Ok("[admin]")),
        ] {
            let line = format!("{head} [08/Aug/2016:16:49:16 +0800] \"GET / HTTP/1.1\" 200 5");
            assert_eq!(key(Want::Client, &line).as_deref(), Ok(client), "{line}");
            assert_eq!(key(Want::User, &line).as_deref().map_err(|why| *why), user, "{line}");
        }
    }

    #[test]
    fn a_user_can_not_forge_the_date() {
        let line = r#"192.0.2.1 - x [01/Jan/2001:00:00:00 +0000] [08/Aug/2016:16:49:16 +0800] "GET /" 200 5"#;
        assert_eq!(key(Want::Client, line).as_deref(), Ok("192.0.2.1"));
    }

    #[test]
    fn escaped_quotes_stay_inside_their_column() {
        let columns = r#""GET /\"x HTTP/1.1" 200 5 "a\"b\\" "10\" \x22c\x22" extra"#;
        let line = &format!("::1 - - [08/Aug/2016:16:49:16 +0800] {columns}");
        assert_eq!(key(Want::Path, line).as_deref(), Ok(r#"/\"x"#));
        assert_eq!(key(header("referer"), line).as_deref(), Ok(r#"a\"b\\"#));
        assert_eq!(key(header("user-agent"), line).as_deref(), Ok(r#"10\" \x22c\x22"#));
        let trailing = r#"::1 - - [08/Aug/2016:16:49:16 +0800] "GET / HTTP/1.1" 200 5 "-" "agent\""#;
        assert_eq!(key(header("user-agent"), trailing).as_deref(), Ok(r"agent\"));
        assert_eq!(key(header("referer"), trailing), Err("it has no such header"));
    }

    #[test]
    fn lines_cut_short_still_count_if_their_time_is_whole() {
        for (end, expected) in
            [(20, Err(NO_DATE)), (42, Err(NO_DATE)), (44, Ok("192.0.2.1")), (60, Ok("192.0.2.1"))]
        {
            assert_eq!(key(Want::Client, &PLAIN[..end]).as_deref().map_err(|why| *why), expected, "{end}");
        }
        assert_eq!(key(Want::Path, &PLAIN[..44]), Err("it has no path"));
    }

    #[test]
    fn a_date_that_is_none_is_named() {
        let line = PLAIN.replace("08/Aug", "31/Feb");
        assert_eq!(key(Want::Client, &line), Err("its time can not be read"));
        let line = PLAIN.replace("2016", "1969");
        assert_eq!(key(Want::Client, &line), Err("its time is before 1970"));
        let line = PLAIN.replace("08/Aug/2016:16:49:16 +0800", "");
        assert_eq!(key(Want::Client, &line), Err(NO_DATE), "no date, though none was read before it");
    }

    #[test]
    fn msec_and_request_time_refine_the_date() {
        let refine = |tail: &str| {
            let line = format!("{PLAIN}{tail}");
            let mut clf = Clf::new(&Want::Nothing, true).unwrap();
            let parsed = clf.parse(line.as_bytes()).unwrap();
            (parsed.stamp.ns - AT, parsed.took)
        };
        assert_eq!(refine(" 1470646156.789"), (789_000_000, 0));
        assert_eq!(refine(" 1470646156.789 0.250"), (789_000_000, 250_000_000));
        assert_eq!(refine(" x 1470646157.001 -"), (1_001_000_000, 0));
        // Another time, no fraction, in quotes, or too far from the end: not `$msec`.
        assert_eq!(refine(" 1470646160.000 0.250"), (0, 0));
        assert_eq!(refine(" 1470646156 0.250"), (0, 0));
        assert_eq!(refine(" \"1470646156.789\""), (0, 0));
        assert_eq!(refine(" 1470646156.789 0.250 x"), (0, 0));
    }

    #[test]
    fn keys_that_a_format_lacks_are_refused_at_once() {
        let refusal = |name, combined| Clf::new(&header(name), combined).err().unwrap();
        assert!(refusal("user-agent", false).starts_with("the common log format has no header user-agent"));
        assert!(refusal("x-api-key", true).contains("has the headers referer and user-agent, not x-api-key"));
    }

    #[test]
    fn combined_and_common_differ_behind_the_request() {
        assert!(is_combined(PLAIN.as_bytes()));
        assert!(!is_combined(&PLAIN.as_bytes()[..PLAIN.len() - 21]));
    }
}
