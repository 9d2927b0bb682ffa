//! Lines that begin with an epoch number: `1700000000.123 192.0.2.1 anything`.
//!
//! Columns end at blanks, commas or semicolons; the second one is the client.

use super::{Parsed, Parser, Want, Why, given};
use crate::input::moment;

/// Lines with an epoch number first.
pub(super) struct Epoch {
    client: bool,
}

// === impl Epoch ===

impl Epoch {
    /// # Errors
    /// The format has no such key.
    pub(super) fn new(want: &Want) -> Result<Self, String> {
        match want {
            Want::Nothing => Ok(Self { client: false }),
            Want::Client => Ok(Self { client: true }),
            _ => Err("lines that begin with an epoch number have only client (their second column)".into()),
        }
    }
}

impl Parser for Epoch {
    fn parse<'a>(&'a mut self, line: &'a [u8]) -> Result<Parsed<'a>, Why> {
        let mut columns =
            line.split(|byte| matches!(byte, b' ' | b'\t' | b',' | b';')).filter(|column| !column.is_empty());
        let stamp = moment::epoch(columns.next().unwrap_or_default())?;
        let key = if self.client { given(columns.next().unwrap_or_default(), &Want::Client)? } else { b"" };
        Ok(Parsed { stamp, took: 0, key })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_column_is_the_client() {
        let mut epoch = Epoch::new(&Want::Client).unwrap();
        for line in [
            "1700000000.5 192.0.2.1 GET /",
            "1700000000500,192.0.2.1",
            "1700000000500000;192.0.2.1;x",
            "  1700000000500000000\t192.0.2.1",
        ] {
            let parsed = epoch.parse(line.as_bytes()).unwrap();
            assert_eq!(
                (parsed.stamp.ns, parsed.key),
                (1_700_000_000_500_000_000, &b"192.0.2.1"[..]),
                "{line}"
            );
        }
        assert_eq!(epoch.parse(b"1700000000").err(), Some("it has no client"));
        assert_eq!(epoch.parse(b"time client").err(), Some("its time can not be read"));
    }

    #[test]
    fn it_has_no_other_key() {
        assert!(Epoch::new(&Want::Path).is_err());
        assert!(Epoch::new(&Want::Nothing).unwrap().parse(b"1700000000").is_ok());
    }
}
