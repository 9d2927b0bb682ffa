//! The names under which clients are told of limits.

use tollgate::{RULES_MAX, Rule};

use crate::BuildError;

/// A name for each rule of a limit: the one given, and for further rules the same with `-2`, `-3` and so on, unless they
/// are given, too.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Names([Box<str>; RULES_MAX]);

/// The name of a limit that was given none.
const DEFAULT: &str = "default";
/// The longest name.
const LONGEST: usize = 64;

// === impl Names ===

impl Names {
    /// Names from these, for the rules in their order. Checked when the layer is built.
    pub fn new(given: &[&str]) -> Self {
        let first = given.first().copied().unwrap_or(DEFAULT);
        Self(std::array::from_fn(|rule| match given.get(rule) {
            Some(name) => (*name).into(),
            None if rule == 0 => first.into(),
            None => format!("{first}-{}", rule + 1).into(),
        }))
    }

    /// The name of a rule, by its place.
    pub fn of(&self, rule: usize) -> &str {
        self.0.get(rule).map_or("", |name| name)
    }

    /// That every name can stand in a header field as it is, and no other of this layer is the same.
    pub(crate) fn check(all: &[&Names]) -> Result<(), BuildError> {
        let names: Vec<&str> = all.iter().flat_map(|names| names.0.iter().map(|name| &**name)).collect();
        let fine = |name: &str| {
            (1..=LONGEST).contains(&name.len())
                && name.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\')
        };
        for (at, &name) in names.iter().enumerate() {
            if !fine(name) {
                return Err(BuildError::Name { got: name.to_owned() });
            }
            if names[..at].contains(&name) {
                return Err(BuildError::Twice { got: name.to_owned() });
            }
        }
        Ok(())
    }
}

impl Default for Names {
    fn default() -> Self {
        Self::new(&[])
    }
}

/// What a client is told of one limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Policy<'a> {
    /// Its name.
    pub name: &'a str,
    /// So many permits in a window of such a length.
    pub rule: Rule,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_have_names_of_their_own() {
        let names = Names::new(&["burst", "daily"]);
        assert_eq!((names.of(0), names.of(1), names.of(2)), ("burst", "daily", "burst-3"));
        assert_eq!((Names::default().of(0), Names::default().of(1)), ("default", "default-2"));
    }

    #[test]
    fn names_are_checked() {
        let check = |given: &str| Names::check(&[&Names::new(&[given])]);
        assert_eq!(check("per user, 1 min"), Ok(()));
        for got in ["", "a\"b", "a\\b", "a\r\nset-cookie: b", "ä", &"x".repeat(65)] {
            assert_eq!(check(got), Err(BuildError::Name { got: got.to_owned() }));
        }
        let twice = Names::check(&[&Names::default(), &Names::new(&["default-2"])]);
        assert_eq!(twice, Err(BuildError::Twice { got: "default-2".into() }));
    }
}
