//! Text to nanoseconds since 1970: the dates, offsets and epoch numbers that logs hold.
//!
//! # What
//! Every reader takes bytes and answers a [`Stamp`] or a reason. Integers only: no digit of a time passes
//! through a binary fraction. Digits below a nanosecond are cut off.
//!
//! # Rules
//! - A date without an offset is taken as UTC, and the stamp says so.
//! - Second 60 is a leap second and reads as the first second of the next minute, as POSIX counts.
//! - An epoch number without a unit is told by its size: below 10^11 seconds, below 10^14 milliseconds, below
//!   10^17 microseconds, else nanoseconds. Within the accepted range (1970 to 2116) no other reading is
//!   possible, milliseconds before 3 March 1973 apart.
//! - Times before 1970, or that a limiter does not accept ([`Nanos::MAX`]), are refused.

use tollgate::Nanos;

/// Why a line can not be used.
pub(super) type Why = &'static str;

/// A moment as a log states it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stamp {
    /// Nanoseconds since 1970.
    pub(super) ns: u64,
    /// Whether the text settled the time zone; otherwise UTC is an assumption.
    pub(super) zoned: bool,
}

/// A number as written: `digits * 10^exponent`.
#[derive(Clone, Copy)]
struct Decimal {
    digits: u128,
    exponent: i32,
}

/// The rest of a text, eaten from the front.
struct Text<'a>(&'a [u8]);

const NO_TIME: Why = "its time can not be read";
const TOO_EARLY: Why = "its time is before 1970";
const TOO_LATE: Why = "its time is after February 2116, beyond 2^62 ns";
const SECOND: u64 = 1_000_000_000;

/// Reads a moment given on the command line: RFC 3339, a date, or an epoch number.
///
/// # Errors
/// A message that names the text and the forms accepted.
pub(crate) fn parse_moment(text: &str) -> Result<u64, String> {
    let reason = match any_form(text.as_bytes()) {
        Ok(stamp) => return Ok(stamp.ns),
        Err(NO_TIME) => "is not a time",
        Err(TOO_EARLY) => "is before 1970",
        Err(_) => "is after February 2116",
    };
    Err(format!(
        "\"{}\" {reason}: give RFC 3339 (2023-11-14T22:13:20.5Z), a date (2023-11-14, UTC) or seconds since \
         1970 (1700000000.5)",
        text.escape_debug()
    ))
}

/// Any form: an ISO 8601 date, a date as access logs write it (in brackets or not), or an epoch number.
pub(super) fn any_form(text: &[u8]) -> Result<Stamp, Why> {
    let text = text.trim_ascii();
    match text {
        [b'[', inner @ .., b']'] => clf(inner),
        [_, _, b'/', ..] => clf(text),
        [_, _, _, _, b'-', ..] => iso(text),
        _ => epoch(text),
    }
}

/// The date of the common log format: `08/Aug/2016:16:49:16 +0800`, its fraction and offset optional.
pub(super) fn clf(text: &[u8]) -> Result<Stamp, Why> {
    let mut text = Text(text);
    let read = |text: &mut Text<'_>| {
        let day = text.digits(2)?;
        text.eat(b'/')?;
        let month = text.month()?;
        text.eat(b'/')?;
        let year = text.digits(4)?;
        text.eat(b':')?;
        let clock = text.clock()?;
        Some((midnight(year, month, day)? + clock, text.fraction()?))
    };
    let (seconds, ns) = read(&mut text).ok_or(NO_TIME)?;
    text.zoned(seconds, ns)
}

/// An ISO 8601 date as RFC 3339 has it: `2016-08-08T16:49:16.5+08:00`. The time of day, its fraction (after
/// a point or a comma) and the offset (with or without its colon) may be left out, and a space may stand for
/// the `T`.
pub(super) fn iso(text: &[u8]) -> Result<Stamp, Why> {
    let mut text = Text(text);
    let read = |text: &mut Text<'_>| {
        let year = text.digits(4)?;
        text.eat(b'-')?;
        let month = text.digits(2)?;
        text.eat(b'-')?;
        let midnight = midnight(year, month, text.digits(2)?)?;
        match text.0 {
            [b'T' | b't' | b' ', b'0'..=b'9', ..] => {
                text.0 = &text.0[1..];
                Some((midnight + text.clock()?, text.fraction()?))
            }
            _ => Some((midnight, 0)),
        }
    };
    let (seconds, ns) = read(&mut text).ok_or(NO_TIME)?;
    text.zoned(seconds, ns)
}

/// An epoch number, its unit told by its size.
pub(super) fn epoch(text: &[u8]) -> Result<Stamp, Why> {
    let number = decimal(text)?;
    let scale = [(11, 9), (14, 6), (17, 3)].into_iter().find(|(power, _)| number.below(*power));
    number.stamp(scale.map_or(0, |(_, scale)| scale))
}

/// Seconds since 1970 with a fraction, as nginx's `$msec`.
pub(super) fn seconds(text: &[u8]) -> Result<Stamp, Why> {
    decimal(text)?.stamp(9)
}

/// A span in seconds with a fraction, as nginx's `$request_time`; `None` if it is no number.
pub(super) fn span(text: &[u8]) -> Option<u64> {
    decimal(text).ok()?.times(9)
}

/// The midnight that begins a date, in seconds since 1970. `None` if there is no such date.
fn midnight(year: u32, month: u32, day: u32) -> Option<i64> {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let length = match month {
        2 => 28 + u32::from(leap),
        4 | 6 | 9 | 11 => 30,
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        _ => return None,
    };
    if day == 0 || day > length {
        return None;
    }
    // Years that begin in March put the leap day last, so that one formula counts the days of all months.
    let (y, m) = if month > 2 { (i64::from(year), month - 3) } else { (i64::from(year) - 1, month + 9) };
    let within = i64::from((153 * m + 2) / 5 + day - 1);
    Some((365 * y + y.div_euclid(4) - y.div_euclid(100) + y.div_euclid(400) + within - 719_468) * 86_400)
}

/// Reads `12`, `12.5`, `-1`, `1.7E9`.
fn decimal(text: &[u8]) -> Result<Decimal, Why> {
    /// No accepted time has more digits, down to the nanosecond; so many fit 128 bits with room to scale.
    const DIGITS_MAX: u32 = 28;
    let (negative, text) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let (mut digits, mut count, mut exponent, mut point, mut any) = (0_u128, 0, 0_i32, false, false);
    let mut rest = text.iter();
    while let Some(&byte) = rest.next() {
        match byte {
            b'0'..=b'9' => {
                any = true;
                if count < DIGITS_MAX {
                    digits = digits * 10 + u128::from(byte - b'0');
                    count += u32::from(digits > 0);
                    exponent -= i32::from(point);
                } else {
                    exponent = exponent.saturating_add(i32::from(!point));
                }
            }
            b'.' if !point => point = true,
            b'e' | b'E' if any => {
                let power = std::str::from_utf8(rest.as_slice()).ok().and_then(|p| p.parse::<i16>().ok());
                exponent = exponent.saturating_add(power.ok_or(NO_TIME)?.into());
                break;
            }
            _ => return Err(NO_TIME),
        }
    }
    match (any, negative && digits > 0) {
        (false, _) => Err(NO_TIME),
        (true, true) => Err(TOO_EARLY),
        (true, false) => Ok(Decimal { digits, exponent }),
    }
}

// === impl Decimal ===

impl Decimal {
    /// Whether the number is below `10^power`.
    fn below(self, power: i32) -> bool {
        match u32::try_from(power.saturating_sub(self.exponent)) {
            Ok(shift) => 10_u128.checked_pow(shift).is_none_or(|bound| self.digits < bound),
            Err(_) => self.digits == 0,
        }
    }

    /// The number times `10^power`, cut off to a whole one; `None` if it is too large.
    fn times(self, power: i32) -> Option<u64> {
        let shift = self.exponent.saturating_add(power);
        let scale = 10_u128.checked_pow(shift.unsigned_abs());
        let scaled = match (shift >= 0, scale) {
            _ if self.digits == 0 => 0,
            (true, scale) => self.digits.checked_mul(scale?)?,
            (false, scale) => scale.map_or(0, |scale| self.digits / scale),
        };
        u64::try_from(scaled).ok()
    }

    /// The number, in units of `10^power` ns, as a moment.
    fn stamp(self, power: i32) -> Result<Stamp, Why> {
        match self.times(power) {
            Some(ns) if Nanos::from_nanos(ns).in_range() => Ok(Stamp { ns, zoned: true }),
            _ => Err(TOO_LATE),
        }
    }
}

// === impl Text ===

impl Text<'_> {
    /// Takes this byte.
    fn eat(&mut self, byte: u8) -> Option<()> {
        self.0 = self.0.strip_prefix(&[byte])?;
        Some(())
    }

    /// Takes exactly `n` digits.
    fn digits(&mut self, n: usize) -> Option<u32> {
        let (digits, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        digits.iter().try_fold(0, |sum, byte| Some(sum * 10 + char::from(*byte).to_digit(10)?))
    }

    /// Takes the English name of a month, three letters long.
    fn month(&mut self) -> Option<u32> {
        const NAMES: &[u8] = b"janfebmaraprmayjunjulaugsepoctnovdec";
        let (name, rest) = self.0.split_at_checked(3)?;
        self.0 = rest;
        (1..).zip(NAMES.chunks(3)).find(|(_, known)| name.eq_ignore_ascii_case(known)).map(|(n, _)| n)
    }

    /// Takes `hh:mm:ss`, the seconds optional; in seconds.
    fn clock(&mut self) -> Option<i64> {
        let hour = self.digits(2)?;
        self.eat(b':')?;
        let minute = self.digits(2)?;
        let second = if self.eat(b':').is_some() { self.digits(2)? } else { 0 };
        (hour < 24 && minute < 60 && second <= 60).then(|| i64::from(hour * 3_600 + minute * 60 + second))
    }

    /// Takes the fraction of a second, if there is one; in nanoseconds.
    fn fraction(&mut self) -> Option<u64> {
        if self.eat(b'.').or_else(|| self.eat(b',')).is_none() {
            return Some(0);
        }
        let end = self.0.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(self.0.len());
        let (digits, rest) = self.0.split_at(end);
        self.0 = rest;
        let digit = |i: usize| u64::from(digits.get(i).map_or(0, |byte| byte - b'0'));
        (end > 0).then(|| (0..9).fold(0, |sum, i| sum * 10 + digit(i)))
    }

    /// Takes the offset, which must end the text, and gives the moment of this local time.
    fn zoned(mut self, seconds: i64, ns: u64) -> Result<Stamp, Why> {
        let offset = self.offset().ok_or(NO_TIME)?;
        let seconds = u64::try_from(seconds - offset.unwrap_or(0)).map_err(|_| TOO_EARLY)?;
        let moment = seconds.saturating_mul(SECOND).saturating_add(ns);
        if !Nanos::from_nanos(moment).in_range() {
            return Err(TOO_LATE);
        }
        Ok(Stamp { ns: moment, zoned: offset.is_some() })
    }

    /// The offset in seconds, or none at the end of the text; `None` if the rest is neither.
    #[expect(clippy::option_option, reason = "unreadable, absent and present are three answers")]
    fn offset(&mut self) -> Option<Option<i64>> {
        self.0 = self.0.trim_ascii();
        let sign = match self.0 {
            [] => return Some(None),
            b"Z" | b"z" | b"UTC" | b"GMT" => return Some(Some(0)),
            [b'+', ..] => 1,
            [b'-', ..] => -1,
            _ => return None,
        };
        self.0 = &self.0[1..];
        let hours = self.digits(2)?;
        let colon = self.eat(b':').is_some();
        let minutes = if self.0.is_empty() && !colon { 0 } else { self.digits(2)? };
        let valid = self.0.is_empty() && hours < 24 && minutes < 60;
        valid.then(|| Some(sign * i64::from(hours * 3_600 + minutes * 60)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ns(text: &str) -> Result<u64, Why> {
        any_form(text.as_bytes()).map(|stamp| stamp.ns)
    }

    #[test]
    fn offsets_name_the_same_instant() {
        let instant = Ok(1_470_646_156 * SECOND);
        for text in [
            "08/Aug/2016:16:49:16 +0800",
            "[08/Aug/2016:08:49:16 +0000]",
            "08/Aug/2016:05:19:16 -0330",
            "08/Aug/2016:22:34:16 +1345",
            "2016-08-08T16:49:16+08:00",
            "2016-08-08t08:49:16z",
            "2016-08-08 05:19:16 -0330",
            "2016-08-08T22:34:16.000+1345",
            "2016-08-08T09:49:16+01",
            "2016-08-08 08:49:16 UTC",
            "1470646156",
        ] {
            assert_eq!(ns(text), instant, "{text}");
        }
    }

    #[test]
    fn only_a_missing_offset_is_an_assumption() {
        let zoned = |text: &str| any_form(text.as_bytes()).unwrap().zoned;
        assert!(!zoned("21/Jun/2012:23:49:36"));
        assert!(!zoned("2012-06-21T23:49:36"));
        assert!(!zoned("2012-06-21"));
        assert!(zoned("21/Jun/2012:23:49:36 -0000"));
        assert!(zoned("2012-06-21T23:49:36Z"));
        assert!(zoned("1340322576"));
    }

    #[test]
    fn fractions_keep_their_nanoseconds() {
        assert_eq!(ns("2016-08-08T08:49:16.123456789Z"), Ok(1_470_646_156_123_456_789));
        assert_eq!(ns("2016-08-08 08:49:16,5"), Ok(1_470_646_156_500_000_000));
        assert_eq!(ns("08/Aug/2016:16:49:16.25 +0800"), Ok(1_470_646_156_250_000_000));
        assert_eq!(ns("1470646156.1234567899"), Ok(1_470_646_156_123_456_789));
        assert_eq!(ns("1.7000000001234E9"), Ok(1_700_000_000_123_400_000));
        assert_eq!(span(b"0.004"), Some(4_000_000));
        assert_eq!(span(b"-"), None);
    }

    #[test]
    fn the_size_of_an_epoch_number_tells_its_unit() {
        for (text, expected) in [
            ("0", 0),
            ("1700000000", 1_700_000_000 * SECOND),
            ("1700000000123", 1_700_000_000_123_000_000),
            ("1700000000123456", 1_700_000_000_123_456_000),
            ("1700000000123456.7", 1_700_000_000_123_456_700),
            ("1700000000123456789", 1_700_000_000_123_456_789),
            ("100000000000", 100_000_000 * SECOND),
            ("100000000000000", 100_000_000 * SECOND),
            ("100000000000000000", 100_000_000 * SECOND),
        ] {
            assert_eq!(ns(text), Ok(expected), "{text}");
        }
        // One below each threshold is still the coarser unit, and then out of range.
        assert_eq!(ns("99999999999"), Err(TOO_LATE));
        assert_eq!(ns("99999999999999"), Err(TOO_LATE));
    }

    #[test]
    fn leap_days_and_leap_seconds_exist() {
        assert_eq!(ns("29/Feb/2016:00:00:00 +0000"), Ok(1_456_704_000 * SECOND));
        assert_eq!(ns("2000-02-29"), Ok(951_782_400 * SECOND));
        assert_eq!(ns("29/Feb/2015:00:00:00 +0000"), Err(NO_TIME));
        assert_eq!(ns("2100-02-29"), Err(NO_TIME));
        assert_eq!(ns("31/Dec/2016:23:59:60 +0000"), ns("2017-01-01T00:00:00Z"));
        assert_eq!(ns("2016-12-31T23:59:60.5Z"), ns("2017-01-01T00:00:00.5Z"));
    }

    #[test]
    fn the_range_ends_at_1970_and_at_two_to_the_62() {
        assert_eq!(ns("1969-12-31T23:59:59Z"), Err(TOO_EARLY));
        assert_eq!(ns("01/Jan/1970:00:00:00 +0100"), Err(TOO_EARLY));
        assert_eq!(ns("31/Dec/1969:23:00:00 -0100"), Ok(0));
        assert_eq!(ns("-1"), Err(TOO_EARLY));
        assert_eq!(ns("-0"), Ok(0));
        assert_eq!(ns("4611686018427387903"), Ok(Nanos::MAX.as_nanos()));
        assert_eq!(ns("4611686018427387904"), Err(TOO_LATE));
        assert_eq!(ns("2116-02-21"), Err(TOO_LATE));
        assert_eq!(ns("9999-12-31T23:59:59Z"), Err(TOO_LATE));
        assert_eq!(ns("1e32767"), Err(TOO_LATE));
        assert_eq!(ns(&"9".repeat(5_000)), Err(TOO_LATE));
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "-",
            ".",
            "e9",
            "1e",
            "1.2.3",
            "0x10",
            "now",
            "08/Aug/2016",
            "08/Foo/2016:16:49:16 +0800",
            "08/Aug/2016:24:00:00 +0000",
            "08/Aug/2016:16:49:61 +0000",
            "2016-13-01",
            "2016-00-01",
            "2016-01-00",
            "2016-08-08T16:49:16+8",
            "2016-08-08T16:49:16+08:",
            "2016-08-08T16:49:16+24:00",
            "2016-08-08T16:49:16.Z",
            "2016-08-08T16:49:16 CET",
            "08/Aug/2016:16:49:16 +08000",
        ] {
            assert_eq!(ns(text), Err(NO_TIME), "{text}");
        }
    }

    #[test]
    fn a_moment_of_the_command_line_names_what_was_given() {
        assert_eq!(parse_moment("2023-11-14T22:13:20.5Z"), Ok(1_700_000_000_500_000_000));
        assert_eq!(parse_moment("2023-11-14"), Ok(1_699_920_000 * SECOND));
        assert_eq!(parse_moment("1700000000.25"), Ok(1_700_000_000_250_000_000));
        assert!(
            parse_moment("yesterday").unwrap_err().starts_with("\"yesterday\" is not a time: give RFC 3339")
        );
        assert!(parse_moment("1969-01-01").unwrap_err().starts_with("\"1969-01-01\" is before 1970"));
        assert!(parse_moment("3000-01-01").unwrap_err().starts_with("\"3000-01-01\" is after February 2116"));
    }

    proptest! {
        /// An independent calendar writes the date, in any zone; it is read back to the nanosecond.
        #[test]
        fn every_date_reads_as_the_calendar_has_it(
            ns in 0..=Nanos::MAX.as_nanos(),
            minutes in -840_i32..=840,
        ) {
            let zone = jiff::tz::Offset::from_seconds(minutes * 60).unwrap().to_time_zone();
            let time = jiff::Timestamp::from_nanosecond(ns.into()).unwrap().to_zoned_datetime(zone);
            for form in ["%Y-%m-%dT%H:%M:%S.%9f%:z", "%Y-%m-%d %H:%M:%S.%9f %z", "%d/%b/%Y:%H:%M:%S.%9f %z"] {
                let text = time.strftime(form).to_string();
                prop_assert_eq!(any_form(text.as_bytes()), Ok(Stamp { ns, zoned: true }), "{}", text);
            }
        }

        /// No text makes a reader panic, and none is read out of range.
        #[test]
        fn any_text_is_safe(text in proptest::collection::vec(prop_oneof![
            any::<u8>(), proptest::sample::select(&b"0123456789./:-+eETZ"[..])
        ], 0..40)) {
            if let Ok(stamp) = any_form(&text) {
                prop_assert!(Nanos::from_nanos(stamp.ns).in_range());
            }
        }
    }
}
