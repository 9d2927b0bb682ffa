//! The keys of the requests, each with a place of its own in every list by key.

use std::{collections::HashMap, fmt::Write};

use crate::json::TopKey;

/// Keys seen so far, numbered as they came.
#[derive(Default)]
pub(crate) struct Keys {
    places: HashMap<Box<[u8]>, u32>,
}

// === impl Keys ===

impl Keys {
    /// The place of a key, new or not. Memory ends long before the places do.
    pub(crate) fn place(&mut self, key: &[u8]) -> usize {
        if let Some(&place) = self.places.get(key) {
            return place as usize;
        }
        let place = self.places.len();
        self.places.insert(key.into(), place as u32);
        place
    }

    /// How many different keys there were.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// The `most` keys of which `counts` tells the most refusals, and then their requests; of equals, the lesser key
    /// first. Keys never refused are left out.
    pub(crate) fn most_refused(&self, most: usize, counts: impl Fn(usize) -> (u64, u64)) -> Vec<TopKey> {
        let told = self.places.iter().map(|(key, &place)| (key, counts(place as usize)));
        let mut keys: Vec<_> = told.filter(|(_, (refused, _))| *refused > 0).collect();
        keys.sort_by(|(a, (x, _)), (b, (y, _))| y.cmp(x).then_with(|| a.cmp(b)));
        keys.truncate(most);
        keys.into_iter()
            .map(|(key, (refused, requests))| TopKey { key: readable(key), refused, requests })
            .collect()
    }

    /// The key at a place, as text: a search.
    pub(crate) fn name(&self, place: usize) -> Option<String> {
        self.places.iter().find(|(_, at)| **at as usize == place).map(|(key, _)| readable(key))
    }
}

/// A key as text. Of one that is not UTF-8 each odd byte becomes `\xHH`, and each backslash two, so that no two such
/// keys look alike.
fn readable(key: &[u8]) -> String {
    if let Ok(text) = str::from_utf8(key) {
        return text.to_owned();
    }
    let mut text = String::new();
    for chunk in key.utf8_chunks() {
        text.push_str(&chunk.valid().replace('\\', "\\\\"));
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02X}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_are_not_utf8_differ_as_text() {
        for (key, text) in [
            (&b"plain \\xFF \xc3\xa9"[..], "plain \\xFF \u{e9}"),
            (b"\xff", r"\xFF"),
            (b"\xfe\x0a", "\\xFE\n"),
            (b"\xffa\\xFE", r"\xFFa\\xFE"),
            (b"\xffa\xfe", r"\xFFa\xFE"),
            (b"\xe2\x82\xe2\x82\xac", "\\xE2\\x82\u{20ac}"),
        ] {
            assert_eq!(readable(key), text, "{key:?}");
        }
    }

    #[test]
    fn the_keys_refused_most_come_first() {
        let mut keys = Keys::default();
        let places = ["b", "c", "a", "d", "b"].map(|key| keys.place(key.as_bytes()));
        assert_eq!((places, keys.len()), ([0, 1, 2, 3, 0], 4));
        let refused = [1, 1, 0, 2];
        let top = |most| {
            let top = keys.most_refused(most, |place| (refused[place], 9));
            top.into_iter().map(|top| (top.key, top.refused, top.requests)).collect::<Vec<_>>()
        };
        let key = |key: &str, refused| (key.to_owned(), refused, 9);
        assert_eq!(top(10), [key("d", 2), key("b", 1), key("c", 1)]);
        assert_eq!((top(1), top(0)), (vec![key("d", 2)], vec![]));
        assert_eq!((keys.name(3).as_deref(), keys.name(4)), (Some("d"), None));
    }
}
