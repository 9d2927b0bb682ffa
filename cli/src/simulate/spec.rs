//! What `--arrivals` takes: a kind, and its settings.

use std::{fmt::Display, str::FromStr};

use super::{
    SECOND,
    poisson::{Process, Rate},
    volley::{Pattern, Volley},
};
use crate::args::{Capacity, Share, parse_count, parse_rate, parse_share, parse_span};

/// The most arrivals a second: more could not be told apart.
const RATE_MAX: f64 = 1e9;

/// Senders, users, and how much greedier an abuser is.
const COUNT_MAX: u64 = 100_000_000;

/// Arrivals of a volley, which is made as a whole.
const VOLLEY_MAX: u64 = 10_000_000;

/// How far a clock may be off, in parts of a span: volleys do not overlap.
const JITTER_MAX: u64 = Share::WHOLE / 2;

/// What arrives.
#[derive(Clone, Debug)]
pub(crate) enum Arrivals {
    /// Independent of one another, at a rate that may change.
    Poisson(Process),
    /// Many at a time, on purpose.
    Volley(Volley),
}

/// The settings behind a kind, taken one by one.
struct Fields<'a> {
    kind: &'a str,
    /// The first one, if it has no name.
    first: Option<&'a str>,
    named: Vec<(&'a str, &'a str)>,
}

// === impl Arrivals ===

impl FromStr for Arrivals {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut fields = Fields::new(text)?;
        let arrivals = match fields.kind {
            "poisson" => {
                let rate = Rate::Steady(per_second(fields.first("a rate: poisson:500/s", parse_rate)?)?);
                Self::Poisson(Process { rate, ..fields.senders()? })
            }
            "diurnal" => {
                let mean = per_second(fields.first("a rate: diurnal:500/s", parse_rate)?)?;
                let swing = fields.take("swing", parse_share)?.unwrap_or(parse_share("80%")?);
                let day = fields.take("day", parse_span)?.map(|day| day.as_secs_f64());
                let swing = swing.parts() as f64 / Share::WHOLE as f64;
                Self::Poisson(Process { rate: Rate::Day { mean, swing, day }, ..fields.senders()? })
            }
            "flash-sale" => Self::Poisson(fields.flash_sale()?),
            "burst" => Self::Volley(fields.volley("a volley: burst:40/2s", |_| Ok(Pattern::Burst))?),
            "edge-attack" => Self::Volley(fields.volley("a limit: edge-attack:500/1s", |fields| {
                let jitter = |text: &str| match parse_share(text)?.parts() {
                    parts @ 0..=JITTER_MAX => Ok(parts),
                    _ => Err(format!("`{text}` is not between 0% and 50%")),
                };
                let jitter = fields.take("jitter", jitter)?.unwrap_or(parse_share("2%")?.parts());
                Ok(Pattern::EdgeAttack { jitter: jitter as f64 / Share::WHOLE as f64 })
            })?),
            kind => {
                return Err(format!(
                    "unknown kind `{kind}`: it is one of poisson, burst, diurnal, edge-attack, flash-sale"
                ));
            }
        };
        fields.done()?;
        Ok(arrivals)
    }
}

// === impl Fields ===

impl<'a> Fields<'a> {
    fn new(text: &'a str) -> Result<Self, String> {
        let (kind, settings) = text.split_once(':').unwrap_or((text, ""));
        let mut fields = Fields { kind, first: None, named: Vec::new() };
        for (place, setting) in settings.split(',').filter(|setting| !setting.is_empty()).enumerate() {
            match setting.split_once('=') {
                Some((name, _)) if fields.named.iter().any(|(named, _)| *named == name.trim()) => {
                    return Err(format!("`{}` is set twice", name.trim()));
                }
                Some((name, value)) => fields.named.push((name.trim(), value.trim())),
                None if place == 0 => fields.first = Some(setting.trim()),
                None => return Err(format!("`{setting}` is not a setting such as senders=100")),
            }
        }
        Ok(fields)
    }

    /// The setting without a name.
    fn first<T>(&mut self, what: &str, parse: impl Fn(&str) -> Result<T, String>) -> Result<T, String> {
        parse(self.first.take().ok_or_else(|| format!("{} needs {what}", self.kind))?)
    }

    /// A setting, if it is there.
    fn take<T>(
        &mut self,
        name: &str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Option<T>, String> {
        let Some(place) = self.named.iter().position(|(named, _)| *named == name) else { return Ok(None) };
        let (_, value) = self.named.remove(place);
        parse(value).map(Some).map_err(|why| format!("{name}: {why}"))
    }

    /// A number of something, at least 1.
    fn count(&mut self, name: &str, default: u64) -> Result<u64, String> {
        let count = self.take(name, |text| within(text, parse_count(text)?, 1, COUNT_MAX))?;
        Ok(count.unwrap_or(default))
    }

    /// Independent arrivals from plain senders, at no rate yet.
    fn senders(&mut self) -> Result<Process, String> {
        Ok(Process { rate: Rate::Steady(0.0), senders: self.count("senders", 100)?, abusers: None })
    }

    fn flash_sale(&mut self) -> Result<Process, String> {
        let base = self.take("base", parse_rate)?.ok_or("flash-sale needs base=RATE: base=1000/s")?;
        let base = per_second(base)?;
        let factor = self.take("factor", parse_factor)?.unwrap_or((100, 100));
        if base * factor.1 as f64 > RATE_MAX {
            return Err(format!("{base} a second times {} is more than {RATE_MAX} a second", factor.1));
        }
        let users = self.count("users", 1_000_000)?;
        // A whole number counts them, anything else is a share of the users.
        let some = |text: &str| match parse_count(text) {
            Ok(count) => within(text, count, 0, users),
            Err(_) => Ok(parse_share(text)?.of(users)),
        };
        let abusers = match self.take("abusers", some)? {
            Some(abusers) => abusers,
            None => some("1%")?,
        };
        let greed = self.count("greed", 100)?;
        Ok(Process {
            rate: Rate::Sale { base, factor },
            senders: users - abusers,
            abusers: Some((abusers, greed)),
        })
    }

    fn volley(
        &mut self,
        what: &str,
        pattern: impl Fn(&mut Self) -> Result<Pattern, String>,
    ) -> Result<Volley, String> {
        let rate @ Capacity { count, per_ns } = self.first(what, parse_rate)?;
        within(&count.to_string(), count, 1, VOLLEY_MAX)?;
        per_second(rate)?;
        Ok(Volley { count, span: per_ns, senders: self.count("senders", 100)?, pattern: pattern(self)? })
    }

    /// That no setting is left.
    fn done(self) -> Result<(), String> {
        let left = self.first.or(self.named.first().map(|(name, _)| *name));
        left.map_or(Ok(()), |name| Err(format!("{} has no setting `{name}`", self.kind)))
    }
}

/// Arrivals a second.
fn per_second(rate: Capacity) -> Result<f64, String> {
    let rate = rate.count as f64 * SECOND as f64 / rate.per_ns as f64;
    if rate > RATE_MAX { Err(format!("{rate} a second is more than {RATE_MAX}")) } else { Ok(rate) }
}

/// A factor such as `500`, or a range to draw one from such as `100..1000`.
fn parse_factor(text: &str) -> Result<(u64, u64), String> {
    let (low, high) = text.split_once("..").unwrap_or((text, text));
    let (low, high) = (parse_count(low)?, parse_count(high)?);
    within(text, low, 1, COUNT_MAX)?;
    within(text, high, low, COUNT_MAX)?;
    Ok((low, high))
}

fn within<T: Display + PartialOrd>(text: &str, n: T, least: T, most: T) -> Result<T, String> {
    if n < least || n > most { Err(format!("`{text}` is not between {least} and {most}")) } else { Ok(n) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_no_sense_is_named() {
        for (text, why) in [
            ("", "unknown kind ``: it is one of poisson, burst, "),
            ("gaussian:5/s", "unknown kind `gaussian`: it is one of "),
            ("poisson", "poisson needs a rate: poisson:500/s"),
            ("poisson:fast", "`fast` is not a rate such as 1200/s"),
            ("poisson:0/s", "`0/s` is not a rate"),
            ("poisson:2/1ns", "2000000000 a second is more than 1000000000"),
            ("poisson:5/s,senders=0", "senders: `0` is not between 1 and 100000000"),
            ("poisson:5/s,senders=-1", "senders: `-1` is not a whole number"),
            ("poisson:5/s,senders=5,senders=6", "`senders` is set twice"),
            ("poisson:5/s,swing=9%", "poisson has no setting `swing`"),
            ("poisson:5/s,fast", "`fast` is not a setting such as senders=100"),
            ("diurnal:5/s,swing=101%", "swing: `101%` is not a share from 0% to 100%"),
            ("diurnal:5/s,day=0s", "day: `0s` is not above 0"),
            ("burst:40", "`40` is not a rate"),
            ("burst:10000001/1s", "`10000001` is not between 1 and 10000000"),
            ("burst:2/1ns", "2000000000 a second is more than 1000000000"),
            ("edge-attack:2/1ns", "2000000000 a second is more than 1000000000"),
            ("edge-attack:500/1s,jitter=x", "jitter: `x` is not a share"),
            ("edge-attack:500/1s,jitter=51%", "jitter: `51%` is not between 0% and 50%"),
            ("flash-sale", "flash-sale needs base=RATE"),
            ("flash-sale:base=5/s,users=9,abusers=10", "abusers: `10` is not between 0 and 9"),
            ("flash-sale:base=5/s,abusers=101%", "abusers: `101%` is not a share"),
            ("flash-sale:5/s,base=5/s", "flash-sale has no setting `5/s`"),
            ("flash-sale:base=5/s,factor=9..3", "factor: `9..3` is not between 9 and 100000000"),
            ("flash-sale:base=1000000/s,factor=1001", "1000000 a second times 1001 is more than "),
        ] {
            let error = text.parse::<Arrivals>().unwrap_err();
            assert!(error.starts_with(why), "{text}: {error}");
        }
    }
}
