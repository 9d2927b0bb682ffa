//! JSON lines: one object per line, with its time in a field.
//!
//! # What
//! Picks the few fields that are needed and skips the rest unparsed. A field is named by its path: `a.b` is
//! the member `b` of the object `a`, or a member that is itself called `a.b`. Of members with the same name
//! the first one counts. A number is an epoch number whose size tells its unit, in a string or not; any other
//! string is a date. Bytes that are not UTF-8 become U+FFFD.
//!
//! # Names
//! There is no standard, so the key is looked for under the names that servers and collectors use, the first
//! of the lists below that the line has. The duration is `request_time` in seconds, as nginx has it.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, Visitor},
};
use serde_json::value::RawValue;

use super::{Parsed, Parser, Want, Why, given, path, without_query};
use crate::input::moment;

/// Where the time may be, when nobody says: the finest first.
pub(super) const TIMES: [&str; 11] = [
    "msec",
    "ts",
    "@timestamp",
    "timestamp",
    "time",
    "time_iso8601",
    "datetime",
    "date",
    "time_local",
    "start_time",
    "t",
];
const CLIENTS: &[&str] = &[
    "remote_addr",
    "client_ip",
    "clientip",
    "client_addr",
    "client.ip",
    "client.address",
    "source.ip",
    "remote_ip",
    "remoteip",
    "request.client_ip",
    "request.remote_ip",
    "httprequest.remoteip",
    "ip",
    "remote_host",
    "client",
];
const PATHS: &[&str] = &[
    "path",
    "uri",
    "request_uri",
    "url.path",
    "request.uri",
    "httprequest.requesturl",
    "url",
    REQUEST,
    "target",
];
/// Holds a request line, at least where servers write it.
const REQUEST: &str = "request";
const USERS: &[&str] =
    &["remote_user", "user", "user_id", "userid", "username", "user.name", "user.id", "request.user"];
const DURATION: &str = "request_time";

/// The most paths looked for at once: the time, the duration and the longest list of names.
const PLACES: usize = 2 + CLIENTS.len();

const NOT_JSON: Why = "it is not a JSON object";
const NO_FIELD: Why = "it has no such time field";

/// Lines of JSON.
pub(super) struct Json {
    /// The paths looked for: the time, the duration, then the names of the key by rank.
    paths: Vec<String>,
    want: Want,
    /// The line, where it had to be made UTF-8.
    lossy: String,
    /// The key, where it had to be unescaped.
    unescaped: String,
}

/// A member's name; borrowed where it has no escapes.
#[derive(Deserialize)]
struct Name<'l>(#[serde(borrow)] Cow<'l, str>);

/// Looks for paths in an object.
struct Pick<'p, 'l> {
    paths: &'p [String],
    /// The paths that lead into this object, one bit each.
    active: u32,
    /// How much of each of them lies behind: all went the same way.
    behind: usize,
    found: &'p mut [Option<&'l RawValue>; PLACES],
}

const _: () = assert!(PLACES <= 32 && PATHS.len() + 2 <= PLACES && USERS.len() + 2 <= PLACES);

// === impl Json ===

impl Json {
    pub(super) fn new(field: &str, want: &Want) -> Self {
        let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let names: Vec<String> = match want {
            Want::Nothing => Vec::new(),
            Want::Client => list(CLIENTS),
            Want::Path => list(PATHS),
            Want::User => list(USERS),
            Want::Header(name) => {
                let snake = name.replace('-', "_");
                let places = ["headers.", "request.headers.", "http.request.headers.", ""];
                let nested = places.into_iter().map(|place| format!("{place}{name}"));
                [format!("http_{snake}")].into_iter().chain(nested).chain([snake]).collect()
            }
        };
        // A field that is the time is not also the duration; no member matches the empty path.
        let duration = if field == DURATION { "" } else { DURATION };
        let paths = [field, duration].into_iter().map(str::to_owned).chain(names).collect();
        Self { paths, want: want.clone(), lossy: String::new(), unescaped: String::new() }
    }
}

impl Parser for Json {
    fn parse<'a>(&'a mut self, line: &'a [u8]) -> Result<Parsed<'a>, Why> {
        let Self { paths, want, lossy, unescaped } = self;
        let text = match String::from_utf8_lossy(line) {
            Cow::Borrowed(text) => text,
            Cow::Owned(text) => {
                *lossy = text;
                lossy
            }
        };
        let mut found = [None; PLACES];
        let active = (1 << paths.len()) - 1;
        pick(text, Pick { paths, active, behind: 0, found: &mut found }).map_err(|_| NOT_JSON)?;
        let [time, took, names @ ..] = found;
        let stamp = moment::any_form(time.and_then(scalar).ok_or(NO_FIELD)?.as_bytes())?;
        let took = took.and_then(scalar).and_then(|took| moment::span(took.as_bytes())).unwrap_or(0);
        if *want == Want::Nothing {
            return Ok(Parsed { stamp, took, key: b"" });
        }
        let values = names.into_iter().zip(&paths[2..]);
        let found = values.flat_map(|(value, name)| Some((scalar(value?)?, name))).next();
        let (value, name) = match found {
            Some((Cow::Borrowed(value), name)) => (value.as_bytes(), name.as_str()),
            Some((Cow::Owned(value), name)) => {
                *unescaped = value;
                (unescaped.as_bytes(), name.as_str())
            }
            None => (&b""[..], ""),
        };
        let value = match want {
            Want::Path => target(value, name),
            _ => value,
        };
        Ok(Parsed { stamp, took, key: given(value, want)? })
    }
}

/// The path in the field `name`, which holds a whole request line or only its target.
fn target<'v>(value: &'v [u8], name: &str) -> &'v [u8] {
    let blank = value.contains(&b' ');
    let is_target = value.starts_with(b"/") || !blank && value.windows(3).any(|three| three == b"://");
    // Clients send what is no request line, and one word of it is no target.
    let is_line = !is_target && (blank || name == REQUEST);
    if is_line { path(value) } else { without_query(value) }
}

/// Finds in an object what it has of the paths looked for.
fn pick<'l>(object: &'l str, pick: Pick<'_, 'l>) -> serde_json::Result<()> {
    let mut json = serde_json::Deserializer::from_str(object);
    json.deserialize_map(pick)?;
    json.end()
}

/// The text of a string, number or truth value, or of the first one in an array.
fn scalar(value: &RawValue) -> Option<Cow<'_, str>> {
    let text = value.get();
    match text.as_bytes() {
        [b'"', inner @ .., b'"'] if !inner.contains(&b'\\') => Some(Cow::Borrowed(&text[1..text.len() - 1])),
        [b'"', ..] => serde_json::from_str(text).ok().map(Cow::Owned),
        [b'[', ..] => {
            let first = *serde_json::from_str::<Vec<&RawValue>>(text).ok()?.first()?;
            if first.get().starts_with('[') { None } else { scalar(first) }
        }
        [b'{' | b'n', ..] => None,
        _ => Some(Cow::Borrowed(text)),
    }
}

// === impl Pick ===

impl Pick<'_, '_> {
    /// The paths that end at the member `name`, and those that lead through it.
    fn matches(&self, name: &[u8]) -> (u32, u32) {
        let (mut end, mut through) = (0, 0);
        for (i, path) in self.paths.iter().enumerate().filter(|(i, _)| self.active >> i & 1 == 1) {
            let path = path.as_bytes().get(self.behind..).unwrap_or_default();
            let Some((head, tail)) = path.split_at_checked(name.len()) else { continue };
            // The names of keys are ours and come in all cases; the field of the time was given.
            let same = || if i < 2 { head == name } else { head.eq_ignore_ascii_case(name) };
            match tail.first() {
                None if !head.is_empty() && same() => end |= 1 << i,
                Some(b'.') if same() => through |= 1 << i,
                _ => {}
            }
        }
        (end, through)
    }
}

impl<'l> Visitor<'l> for Pick<'_, 'l> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'l>>(self, mut members: M) -> Result<(), M::Error> {
        while let Some(Name(name)) = members.next_key()? {
            let (end, through) = self.matches(name.as_bytes());
            if end | through == 0 {
                members.next_value::<IgnoredAny>()?;
                continue;
            }
            let value: &'l RawValue = members.next_value()?;
            for i in (0..PLACES).filter(|i| end >> i & 1 == 1) {
                self.found[i].get_or_insert(value);
            }
            if through != 0 && value.get().starts_with('{') {
                let behind = self.behind + name.len() + 1;
                let inner = Pick { paths: self.paths, active: through, behind, found: &mut *self.found };
                pick(value.get(), inner).map_err(serde::de::Error::custom)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: u64 = 1_700_000_000_500_000_000;

    fn parse(field: &str, want: Want, line: &[u8]) -> Result<(u64, u64, String), Why> {
        let mut json = Json::new(field, &want);
        let parsed = json.parse(line)?;
        Ok((parsed.stamp.ns, parsed.took, String::from_utf8(parsed.key.to_vec()).unwrap()))
    }

    fn key(want: Want, rest: &str) -> Result<String, Why> {
        parse("t", want, format!(r#"{{"t":1700000000.5,{rest}}}"#).as_bytes()).map(|(_, _, key)| key)
    }

    #[test]
    fn times_of_every_kind_and_place() {
        for line in [
            r#"{"t":1700000000.5}"#,
            r#" {"x":[{"t":1}],"t" : "1700000000.5" } "#,
            r#"{"t":1.7000000005E9}"#,
            r#"{"t":1700000000500}"#,
            r#"{"t":"2023-11-14T22:13:20.5Z","t":7}"#,
            r#"{"\u0074":1700000000500000}"#,
        ] {
            assert_eq!(parse("t", Want::Nothing, line.as_bytes()), Ok((AT, 0, String::new())), "{line}");
        }
        for line in [
            r#"{"log":{"at":{"t":1700000000.5}}}"#,
            r#"{"log.at":{"t":1700000000.5}}"#,
            r#"{"log.at.t":1700000000.5}"#,
            r#"{"log":7,"log":{"at.t":1700000000.5}}"#,
        ] {
            assert_eq!(parse("log.at.t", Want::Nothing, line.as_bytes()).unwrap().0, AT, "{line}");
        }
    }

    #[test]
    fn the_duration_is_nginx_request_time() {
        let took = |field, line: &str| parse(field, Want::Nothing, line.as_bytes()).map(|(_, took, _)| took);
        assert_eq!(took("t", r#"{"request_time":"0.25","t":1}"#), Ok(250_000_000));
        assert_eq!(took("t", r#"{"t":1,"request_time":0.25}"#), Ok(250_000_000));
        assert_eq!(took("t", r#"{"t":1,"request_time":"2023-11-14"}"#), Ok(0));
        assert_eq!(took("request_time", r#"{"request_time":1700000000}"#), Ok(0));
    }

    #[test]
    fn what_is_no_line_of_json_is_refused() {
        for line in ["", "7", "[1]", r#"{"t":1700000000.5"#, r#"{"t":1700000000.5} x"#, "{'t':1}", "null"] {
            assert_eq!(parse("t", Want::Nothing, line.as_bytes()), Err(NOT_JSON), "{line}");
        }
        for line in [r#"{"T":1}"#, r#"{"t":null}"#, r#"{"t":{"t":1}}"#, "{}"] {
            assert_eq!(parse("t", Want::Nothing, line.as_bytes()), Err(NO_FIELD), "{line}");
        }
        assert_eq!(parse("t", Want::Nothing, br#"{"t":"soon"}"#), Err("its time can not be read"));
        assert_eq!(parse("t", Want::Nothing, br#"{"t":-5}"#), Err("its time is before 1970"));
    }

    #[test]
    fn keys_by_the_names_that_servers_use() {
        assert_eq!(key(Want::Client, r#""ip":"::1","remote_addr":"::2""#).as_deref(), Ok("::2"));
        assert_eq!(key(Want::Client, r#""request":{"remote_ip":"::1"}"#).as_deref(), Ok("::1"));
        assert_eq!(key(Want::Client, r#""httpRequest":{"remoteIp":"::1"}"#).as_deref(), Ok("::1"));
        assert_eq!(key(Want::Client, r#""client":{"port":5},"source":{"ip":"::1"}"#).as_deref(), Ok("::1"));
        assert_eq!(key(Want::Client, r#""remote_addr":"-""#), Err("it has no client"));
        assert_eq!(key(Want::Path, r#""request":"GET /a?b HTTP/1.1""#).as_deref(), Ok("/a"));
        assert_eq!(key(Want::Path, r#""request":"/a?b""#).as_deref(), Ok("/a"));
        assert_eq!(key(Want::Path, r#""request":"http://h/a?b""#).as_deref(), Ok("http://h/a"));
        assert_eq!(key(Want::Path, r#""request":"GET http://h/a?b HTTP/1.1""#).as_deref(), Ok("http://h/a"));
        assert_eq!(key(Want::Path, r#""uri":"/a b?c""#).as_deref(), Ok("/a b"));
        assert_eq!(key(Want::Path, r#""uri":"*""#).as_deref(), Ok("*"));
        assert_eq!(key(Want::Path, r#""request":{"uri":"/a?b"}"#).as_deref(), Ok("/a"));
        assert_eq!(key(Want::User, r#""user_id":42"#).as_deref(), Ok("42"));
        assert_eq!(key(Want::User, r#""user":null"#), Err("it has no user"));
        let agent = Want::Header("user-agent".into());
        assert_eq!(key(agent.clone(), r#""http_user_agent":"a\"b\u00e9""#).as_deref(), Ok("a\"b\u{e9}"));
        assert_eq!(
            key(agent.clone(), r#""request":{"headers":{"User-Agent":["curl","x"]}}"#).as_deref(),
            Ok("curl")
        );
        assert_eq!(key(agent, r#""headers":{"User-Agent":[]}"#), Err("it has no such header"));
    }

    /// The same requests as in the test of the common log format.
    #[test]
    fn requests_that_are_not_http_have_no_path() {
        for request in ["", "-", r"\\x16\\x03\\x01", r"\u0016\u0003\u0001", "GET"] {
            assert_eq!(
                key(Want::Path, &format!(r#""request":"{request}""#)),
                Err("it has no path"),
                "{request}"
            );
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        let read = parse("t", Want::User, b"{\"t\":1700000000.5,\"agent\":\"\xff\",\"user\":\"a\xff\"}");
        assert_eq!(read, Ok((AT, 0, "a\u{fffd}".into())));
    }
}
