//! Names of keys: `prefix:{id}:rule`.
//!
//! The id stands in braces, so that a cluster keeps all limits of one id on one node, where one call can judge them. An id
//! is any bytes; `}` would close the braces early, and nothing between them is no tag at all, so `}` and `%` are
//! escaped and an empty id is written as a lone `%`.

/// Names of the keys of every id.
#[derive(Debug, Clone)]
pub(crate) struct Keys {
    prefix: String,
    rules: Vec<String>,
}

// === impl Keys ===

impl Keys {
    /// A prefix without `{`, which would open a tag of its own, and the names of the rules.
    pub(crate) fn new(prefix: String, rules: Vec<String>) -> Self {
        Self { prefix, rules }
    }

    /// One key for each rule.
    pub(crate) fn of(&self, id: &[u8]) -> Vec<Vec<u8>> {
        let mut tagged = Vec::with_capacity(self.prefix.len() + id.len() + 4);
        tagged.extend_from_slice(self.prefix.as_bytes());
        tagged.extend_from_slice(b":{");
        for &byte in id {
            match byte {
                b'}' => tagged.extend_from_slice(b"%7D"),
                b'%' => tagged.extend_from_slice(b"%25"),
                _ => tagged.push(byte),
            }
        }
        if id.is_empty() {
            tagged.push(b'%');
        }
        tagged.extend_from_slice(b"}:");
        self.rules.iter().map(|rule| [&tagged, rule.as_bytes()].concat()).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The slot of a key as the cluster's specification computes it: CRC-16/XMODEM of the tag, modulo 16,384.
    fn slot(key: &[u8]) -> u16 {
        let tag = key.iter().position(|&b| b == b'{').and_then(|open| {
            let rest = &key[open + 1..];
            rest.iter().position(|&b| b == b'}').filter(|&len| len > 0).map(|len| &rest[..len])
        });
        let crc = tag.unwrap_or(key).iter().fold(0u16, |crc, &byte| {
            (0..8).fold(
                crc ^ u16::from(byte) << 8,
                |crc, _| if crc >> 15 == 1 { crc << 1 ^ 0x1021 } else { crc << 1 },
            )
        });
        crc % 16_384
    }

    #[test]
    fn f078_all_keys_of_one_decision_share_a_slot() {
        assert_eq!(slot(b"123456789"), 12_739, "the specification's check value");
        assert_ne!(slot(b"x.u1.tokens"), slot(b"x.u1.timestamp"));
        assert_eq!(slot(b"x.{u1}.tokens"), slot(b"x.{u1}.timestamp"));

        let keys = Keys::new("tollgate".into(), vec!["second".into(), "day".into()]);
        let ids: [&[u8]; 9] = [b"u1", b"", b"a}b", b"{", b"x{y}z", b"}", b"%", b"%7D", b"a%7Db"];
        let mut slots = BTreeSet::new();
        let mut names = BTreeSet::new();
        for id in ids {
            let of = keys.of(id);
            assert_eq!(slot(&of[0]), slot(&of[1]), "{:?}", String::from_utf8_lossy(&of[0]));
            slots.insert(slot(&of[0]));
            names.extend(of);
        }
        assert_eq!(
            (slots.len(), names.len()),
            (ids.len(), 2 * ids.len()),
            "ids have names and slots of their own"
        );
    }
}
