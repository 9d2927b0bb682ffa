//! What the command line says about the input: the format of its lines, the key, the order.

use std::{fmt, path::PathBuf, str::FromStr};

use regex::bytes::Regex;

use super::format::nginx::Template;

/// What to read, and how.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// The files in the order in which they are read; `-` is standard input.
    pub(crate) files: Vec<PathBuf>,
    /// The format of their lines.
    pub(crate) format: Format,
    /// What tells one client of the limiter from another.
    pub(crate) key: KeySpec,
    /// The order of the requests.
    pub(crate) order: Order,
    /// Requests before this time are left out.
    pub(crate) from: Option<u64>,
    /// Requests at or after this time are left out.
    pub(crate) to: Option<u64>,
    /// Whether the first line that can not be used ends the reading.
    pub(crate) strict: bool,
}

/// The format of the lines.
///
/// Where a format states when a request ended and how long it took, [`Order::Time`] goes by its start.
#[derive(Clone, Debug)]
pub(crate) enum Format {
    /// Told by the first lines of each file: combined, common, JSON lines or epoch numbers.
    Auto,
    /// The combined log format: common, then referer and user agent. Further columns are allowed; a last one
    /// like nginx's `$msec` (or `$msec $request_time`) within two seconds of the line's date refines it.
    Combined,
    /// The common log format, with or without a virtual host as its first column.
    Common,
    /// A `log_format` of nginx.
    Nginx(Template),
    /// JSON lines with their time in this field; a dot leads into an object. `request_time` (seconds), where
    /// present, is the duration.
    Json(String),
    /// Comma-separated values with their time in this column, counted from 1.
    Csv(usize),
    /// Lines that begin with an epoch number; columns end at blanks, commas or semicolons.
    Epoch,
}

/// What the key of a request is. A line without it is skipped; `-` and the empty text count as absent.
#[derive(Clone, Debug)]
pub(crate) enum KeySpec {
    /// All requests share one empty key.
    None,
    /// The client's address or host name.
    Client,
    /// The target of the request without its query.
    Path,
    /// The authenticated user.
    User,
    /// A request header, by its lower-case name.
    Header(String),
    /// The first group of a match in the line, or the whole match if the expression has no group.
    Regex(Regex),
    /// This comma-separated column of the line, counted from 1.
    Csv(usize),
}

/// In which order requests are replayed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Order {
    /// By the time at which they began: the line's time less the request's duration, where the format has it.
    /// Equal times keep the order of the files.
    #[default]
    Time,
    /// As the lines come, by the line's time as it stands.
    File,
}

// === impl Format ===

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, rest) = split(text);
        match (kind, rest) {
            ("auto", None) => Ok(Self::Auto),
            ("combined", None) => Ok(Self::Combined),
            ("common", None) => Ok(Self::Common),
            ("epoch", None) => Ok(Self::Epoch),
            ("nginx", Some(format)) => format.parse().map(Self::Nginx),
            ("json", Some("") | None) => Err("json needs a field: json:time".into()),
            ("json", Some(field)) => Ok(Self::Json(field.into())),
            ("csv", column) => parse_column(column).map(Self::Csv),
            _ => Err(format!(
                "unknown format \"{text}\": it is one of auto, combined, common, nginx:'LOG_FORMAT', \
                 json:FIELD, csv:N, epoch"
            )),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Combined => "combined",
            Self::Common => "common",
            Self::Nginx(_) => "nginx",
            Self::Json(_) => "json",
            Self::Csv(_) => "csv",
            Self::Epoch => "epoch",
        })
    }
}

// === impl KeySpec ===

impl FromStr for KeySpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, rest) = split(text);
        match (kind, rest) {
            ("none", None) => Ok(Self::None),
            ("client", None) => Ok(Self::Client),
            ("path", None) => Ok(Self::Path),
            ("user", None) => Ok(Self::User),
            ("header", Some("") | None) => Err("header needs a name: header:x-api-key".into()),
            ("header", Some(name)) => Ok(Self::Header(name.to_ascii_lowercase())),
            ("regex", Some("") | None) => Err("regex needs an expression: regex:id=(\\w+)".into()),
            ("regex", Some(expression)) => {
                Regex::new(expression).map(Self::Regex).map_err(|e| format!("regex \"{expression}\": {e}"))
            }
            ("csv", column) => parse_column(column).map(Self::Csv),
            _ => Err(format!(
                "unknown key \"{text}\": it is one of none, client, path, user, header:NAME, regex:RE, csv:N"
            )),
        }
    }
}

impl fmt::Display for KeySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Client => f.write_str("client"),
            Self::Path => f.write_str("path"),
            Self::User => f.write_str("user"),
            Self::Header(name) => write!(f, "header:{name}"),
            Self::Regex(expression) => write!(f, "regex:{expression}"),
            Self::Csv(column) => write!(f, "csv:{column}"),
        }
    }
}

// === impl Order ===

impl FromStr for Order {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "time" => Ok(Self::Time),
            "file" => Ok(Self::File),
            _ => Err(format!("unknown order \"{text}\": it is one of time, file")),
        }
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Time => "time",
            Self::File => "file",
        })
    }
}

/// `kind` or `kind:rest`.
fn split(text: &str) -> (&str, Option<&str>) {
    text.split_once(':').map_or((text, None), |(kind, rest)| (kind, Some(rest)))
}

/// A column counted from 1.
fn parse_column(text: Option<&str>) -> Result<usize, String> {
    let text = text.unwrap_or_default();
    match text.parse() {
        Ok(column) if column > 0 => Ok(column),
        _ => Err(format!("csv needs a column, counted from 1: csv:1, not \"csv:{text}\"")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_the_options_is_read() {
        for text in ["auto", "combined", "common", "epoch"] {
            assert_eq!(text.parse::<Format>().unwrap().to_string(), text);
        }
        assert!(matches!("json:log.time".parse(), Ok(Format::Json(field)) if field == "log.time"));
        assert!(matches!("csv:3".parse(), Ok(Format::Csv(3))));
        assert!(matches!("nginx:$msec $remote_addr".parse(), Ok(Format::Nginx(_))));
        for text in ["none", "client", "path", "user", "header:x-api-key", "regex:id=(\\d+)", "csv:2"] {
            assert_eq!(text.parse::<KeySpec>().unwrap().to_string(), text);
        }
        assert_eq!("header:X-API-Key".parse::<KeySpec>().unwrap().to_string(), "header:x-api-key");
        assert_eq!(("time".parse(), "file".parse()), (Ok(Order::Time), Ok(Order::File)));
        assert_eq!(Order::default(), Order::Time);
    }

    #[test]
    fn every_refusal_names_the_value_and_the_way_out() {
        let format = |text: &str| text.parse::<Format>().unwrap_err();
        assert!(format("apache").starts_with("unknown format \"apache\": it is one of auto, combined"));
        assert!(format("combined:x").starts_with("unknown format \"combined:x\""));
        assert_eq!(format("json"), "json needs a field: json:time");
        assert_eq!(format("csv:0"), "csv needs a column, counted from 1: csv:1, not \"csv:0\"");
        assert_eq!(
            format("nginx:$remote_addr"),
            "the log_format has no time: $msec, $time_iso8601 or $time_local"
        );
        let key = |text: &str| text.parse::<KeySpec>().unwrap_err();
        assert!(key("ip").starts_with("unknown key \"ip\": it is one of none, client"));
        assert_eq!(key("header"), "header needs a name: header:x-api-key");
        assert!(key("regex:(").starts_with("regex \"(\": regex parse error"));
        assert_eq!(key("csv:x"), "csv needs a column, counted from 1: csv:1, not \"csv:x\"");
        assert_eq!("size".parse::<Order>().unwrap_err(), "unknown order \"size\": it is one of time, file");
    }
}
