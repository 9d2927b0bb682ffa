//! The address of a client behind proxies.
//!
//! # What
//! Whoever sends a request can write whatever he likes into a forwarding field; a proxy appends to it the address of its own
//! peer. So the field is true from its right end as far as the proxies are known: it is read only if the peer is listed, from right
//! to left, and the first address that is not listed is the client. What is left of that is hearsay.
//!
//! # Rules
//! | id | rule |
//! |----|------|
//! | R1 | a peer that is not listed is the client, and no field is read |
//! | R2 | the first entry from the right that is not of a listed proxy is the client |
//! | R3 | where all are listed, the leftmost is the client: a listed proxy told it |
//! | R4 | an entry on the way that is no address, or more of them than `hops`, or no entry: the peer is the client. Nobody gets a key of his choice by writing nonsense |
//! | R5 | lines of one name are one list, in their order |

use std::{
    borrow::Cow,
    net::{IpAddr, Ipv6Addr, SocketAddr},
};

use http::{HeaderMap, HeaderName, HeaderValue, header::FORWARDED};
use tollgate::network_of;

use crate::{BuildError, Head, Key, Network};

/// The address of the client, behind proxies of yours that are listed. IPv4 whole, IPv6 by its network of 64 bits.
///
/// One field is read, and only where the peer is a listed proxy. It is read from its right end, which the nearest proxy
/// wrote, past listed proxies; the first address that is not listed is the client. An entry on the way that is no address
/// (`unknown`, a name, an IPv6 address with a port but no brackets) makes the peer the key: such clients share it.
///
/// # Examples
/// ```
/// use tollgate_tower::{ClientIp, Head, Key, Peer};
///
/// let key = ClientIp::x_forwarded_for(["10.0.0.0/8"])?;
/// let mut request = http::Request::new(());
/// // The client wrote 9.9.9.9; the proxy appended where it came from.
/// request.headers_mut().insert("x-forwarded-for", "9.9.9.9, 203.0.113.7".parse()?);
/// request.extensions_mut().insert(Peer("10.0.0.1:4711".parse()?));
/// assert_eq!(key.key(&Head::of(&request)).unwrap().to_string(), "203.0.113.7");
///
/// // Not through the proxy: nothing of what he wrote is believed.
/// request.extensions_mut().insert(Peer("198.51.100.9:4711".parse()?));
/// assert_eq!(key.key(&Head::of(&request)).unwrap().to_string(), "198.51.100.9");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ClientIp {
    field: HeaderName,
    trusted: Vec<Network>,
    hops: usize,
    prefix: u32,
}

/// Listed proxies that one request may have come through.
const HOPS: usize = 10;

// === impl ClientIp ===

impl ClientIp {
    /// By `X-Forwarded-For`, where the peer is one of these networks.
    ///
    /// # Errors
    /// [`BuildError::Network`] for what is no network.
    pub fn x_forwarded_for<'n>(trusted: impl IntoIterator<Item = &'n str>) -> Result<Self, BuildError> {
        Self::by(HeaderName::from_static("x-forwarded-for"), trusted)
    }

    /// By `Forwarded` (RFC 7239), where the peer is one of these networks.
    ///
    /// # Errors
    /// [`BuildError::Network`] for what is no network.
    pub fn forwarded<'n>(trusted: impl IntoIterator<Item = &'n str>) -> Result<Self, BuildError> {
        Self::by(FORWARDED, trusted)
    }

    /// By a field of another name that holds one address, or a list of them like `X-Forwarded-For`.
    ///
    /// # Errors
    /// [`BuildError::Network`] for what is no network.
    pub fn by<'n>(field: HeaderName, trusted: impl IntoIterator<Item = &'n str>) -> Result<Self, BuildError> {
        let trusted = trusted.into_iter().map(str::parse).collect::<Result<_, _>>()?;
        Ok(Self { field, trusted, hops: HOPS, prefix: 64 })
    }

    /// The most entries that are read; 10 by default.
    pub const fn hops(mut self, most: usize) -> Self {
        self.hops = most;
        self
    }

    /// Networks of so many bits for IPv6; 64 by default, 128 are whole addresses.
    pub const fn ipv6_prefix(mut self, bits: u32) -> Self {
        self.prefix = bits;
        self
    }

    fn trusts(&self, address: IpAddr) -> bool {
        self.trusted.iter().any(|network| network.contains(address))
    }

    /// The client of a request from `peer`.
    fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        if !self.trusts(peer) {
            return peer; // R1
        }
        self.told(headers).unwrap_or(peer) // R4
    }

    /// The client that the field tells; `None` where it can not be believed.
    fn told(&self, headers: &HeaderMap) -> Option<IpAddr> {
        let lines = headers.get_all(&self.field).iter().rev(); // R5
        if self.field == FORWARDED {
            self.first_unlisted(lines.flat_map(nodes))
        } else {
            let entries = lines.flat_map(|line| line.as_bytes().rsplit(|&byte| byte == b','));
            self.first_unlisted(entries.map(address))
        }
    }

    /// The client among addresses from the nearest to the farthest, some of which may be none.
    fn first_unlisted(&self, entries: impl Iterator<Item = Option<IpAddr>>) -> Option<IpAddr> {
        let mut farthest = None;
        for (read, address) in entries.enumerate() {
            let address = address.filter(|_| read < self.hops)?; // R4
            if !self.trusts(address) {
                return Some(address); // R2
            }
            farthest = Some(address); // R3
        }
        farthest
    }
}

impl Key for ClientIp {
    type Key = IpAddr;

    fn key<'a>(&'a self, head: &Head<'a>) -> Option<Cow<'a, IpAddr>> {
        let client = self.client(head.peer()?, head.headers);
        Some(Cow::Owned(network_of(client, self.prefix)))
    }
}

// === entries ===

/// What may stand around entries and values.
const BLANK: [char; 2] = [' ', '\t'];

/// An entry of `X-Forwarded-For`: an address, with or without a port.
fn address(entry: &[u8]) -> Option<IpAddr> {
    let entry = std::str::from_utf8(entry).ok()?.trim_matches(BLANK);
    entry.parse().ok().or_else(|| with_port(entry))
}

/// An address with a port, or an IPv6 address in brackets.
fn with_port(entry: &str) -> Option<IpAddr> {
    let bracketed = || entry.strip_prefix('[')?.strip_suffix(']')?.parse::<Ipv6Addr>().ok();
    entry.parse::<SocketAddr>().ok().map(|it| it.ip()).or_else(|| bracketed().map(IpAddr::V6))
}

/// The nodes of a line of `Forwarded`, from its right end; one that is none if the line is not well formed.
fn nodes(line: &HeaderValue) -> Vec<Option<IpAddr>> {
    let elements = line.to_str().ok().and_then(forwarded);
    elements.map_or_else(|| vec![None], |elements| elements.into_iter().rev().map(node).collect())
}

/// The node of `for`, in `Forwarded`: IPv6 always in brackets there, since it could not be told from its port.
fn node(entry: &str) -> Option<IpAddr> {
    entry.parse::<std::net::Ipv4Addr>().ok().map(IpAddr::V4).or_else(|| with_port(entry))
}

/// What follows `for=` in each element of a line of `Forwarded`, unquoted; empty where an element has none, or two. `None` if
/// the line is not well formed: then no quotation mark in it can be trusted.
fn forwarded(line: &str) -> Option<Vec<&str>> {
    let (mut rest, mut nodes, mut node, mut seen) = (line, Vec::new(), "", false);
    loop {
        rest = rest.trim_start_matches(BLANK);
        // A pair may be empty.
        if !rest.is_empty() && !rest.starts_with([';', ',']) {
            let (name, value) = rest.split_once('=').filter(|(name, _)| is_token(name))?;
            let (value, after) = value_of(value)?;
            if name.eq_ignore_ascii_case("for") {
                node = if seen { "" } else { value };
                seen = true;
            }
            rest = after.trim_start_matches(BLANK);
        }
        match rest.as_bytes().first() {
            Some(b';') => rest = &rest[1..],
            Some(b',') => {
                nodes.push(node);
                (rest, node, seen) = (&rest[1..], "", false);
            }
            None => {
                nodes.push(node);
                return Some(nodes);
            }
            Some(_) => return None,
        }
    }
}

/// A value, unquoted, and what follows it. (One with an escape in it stays as it is: no address has any.)
fn value_of(text: &str) -> Option<(&str, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([';', ',', ' ', '\t']).unwrap_or(text.len());
        let (value, after) = text.split_at(end);
        return is_token_or_node(value).then_some((value, after));
    };
    let mut escaped = false;
    let end = quoted.bytes().position(|byte| {
        let closes = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    })?;
    Some((&quoted[..end], &quoted[end + 1..]))
}

fn is_token(text: &str) -> bool {
    let special = |byte: u8| b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || special(byte))
}

/// A token, or what is often left unquoted though it should not be: an address with a port.
fn is_token_or_node(text: &str) -> bool {
    !text.is_empty() && text.split([':', '[', ']', '/']).all(|part| part.is_empty() || is_token(part))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PROXY: &str = "10.0.0.1";

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn by(key: &ClientIp, peer: &str, lines: &[&[u8]]) -> IpAddr {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(&key.field, HeaderValue::from_bytes(line).unwrap());
        }
        key.client(ip(peer), &headers)
    }

    fn x_forwarded_for() -> ClientIp {
        ClientIp::x_forwarded_for(["10.0.0.0/8", "2001:db8:ffff::/48"]).unwrap()
    }

    fn forwarded_for() -> ClientIp {
        ClientIp::forwarded(["10.0.0.0/8", "2001:db8:ffff::/48"]).unwrap()
    }

    #[test]
    fn the_list_is_walked_from_the_right_past_listed_proxies() {
        for (line, expected) in [
            ("203.0.113.7", "203.0.113.7"),
            ("9.9.9.9, 203.0.113.7", "203.0.113.7"),
            ("9.9.9.9, 203.0.113.7, 10.2.0.1", "203.0.113.7"),
            ("9.9.9.9,203.0.113.7\t,\t10.2.0.1:80,[2001:db8:ffff::7]:443", "203.0.113.7"),
            ("::ffff:203.0.113.7, ::ffff:10.2.0.1", "::ffff:203.0.113.7"),
            ("2001:db8::7", "2001:db8::7"),
            ("[2001:db8::7]", "2001:db8::7"),
            ("[2001:db8::7]:4711", "2001:db8::7"),
            // All are listed: the farthest.
            ("10.9.9.9, 10.2.0.1", "10.9.9.9"),
            // No address on the way.
            ("", PROXY),
            ("unknown", PROXY),
            ("203.0.113.7, unknown, 10.2.0.1", PROXY),
            ("203.0.113.7,", PROXY),
            ("203.0.113.7, 10.2.0.1,, 10.2.0.1", PROXY),
            ("203.0.113.7:99999", PROXY),
            ("fe80::1%eth0", PROXY),
            ("2001:db8:1:2:3:4:5:6:8080", PROXY),
            ("203.0.113.07", PROXY),
            ("\"203.0.113.7\"", PROXY),
        ] {
            assert_eq!(by(&x_forwarded_for(), PROXY, &[line.as_bytes()]), ip(expected), "{line}");
        }
    }

    #[test]
    fn lines_are_one_list_in_their_order() {
        let of = |lines: &[&[u8]]| by(&x_forwarded_for(), PROXY, lines);
        assert_eq!(of(&[b"9.9.9.9, 203.0.113.7", b"10.2.0.1"]), ip("203.0.113.7"));
        assert_eq!(of(&[b"\xff", b"203.0.113.7"]), ip("203.0.113.7"), "what is not reached does not matter");
        assert_eq!(of(&[b"\xff, \xfe,203.0.113.7, 10.2.0.1"]), ip("203.0.113.7"), "nor in the same line");
        assert_eq!(of(&[b"203.0.113.7", b"\xff"]), ip(PROXY));
        assert_eq!(of(&[]), ip(PROXY));
    }

    #[test]
    fn hops_are_counted() {
        let key = x_forwarded_for().hops(2);
        assert_eq!(by(&key, PROXY, &[b"203.0.113.7, 10.2.0.1"]), ip("203.0.113.7"));
        assert_eq!(by(&key, PROXY, &[b"203.0.113.7, 10.2.0.1, 10.2.0.1"]), ip(PROXY));
    }

    #[test]
    fn f090_forwarded_and_ipv6() {
        for (line, expected) in [
            (r#"for="[2001:db8::1]:8080";proto=https"#, "2001:db8::1"),
            ("for=192.0.2.60:4711", "192.0.2.60"),
            ("for=unknown", PROXY),
            (r#"for="2001:db8::1:8080""#, PROXY),
            (r#"for="2001:db8::1""#, PROXY),
            ("For=198.51.100.1, for=192.0.2.1", "192.0.2.1"),
            (r#"FOR="192.0.2.1" ; by=_x ,  for="10.2.0.1";host="a,b""#, "192.0.2.1"),
            (r#"host="a\",for=9.9.9.9";for=192.0.2.1"#, "192.0.2.1"),
            ("proto=https", PROXY),
            ("for=192.0.2.1;for=192.0.2.2", PROXY),
            ("for=192.0.2.1 192.0.2.2", PROXY),
            ("for=_hidden", PROXY),
            ("192.0.2.1", PROXY),
            ("for=", PROXY),
            // An element may have empty pairs in it, by its grammar.
            ("for=192.0.2.1;", "192.0.2.1"),
            (";; for=192.0.2.1 ;;proto=https", "192.0.2.1"),
            (", for=192.0.2.1", "192.0.2.1"),
            ("for=192.0.2.1,", PROXY),
            (";", PROXY),
            ("", PROXY),
            // A client's quotation mark that is to swallow what the proxy appends.
            (r#"for=9.9.9.9;x=", for="[2001:db8::1]:80""#, PROXY),
            (r#"for=9.9.9.9;x="\, for="[2001:db8::1]:80""#, PROXY),
        ] {
            assert_eq!(by(&forwarded_for(), PROXY, &[line.as_bytes()]), ip(expected), "{line}");
        }
    }

    /// What a client may write: anything that a header field can hold, much of it near the mark.
    fn written() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            Just("for=".to_owned()),
            Just("For=\"".to_owned()),
            Just("9.9.9.9".to_owned()),
            Just("10.0.0.5".to_owned()),
            Just("[2001:db8::9]:80".to_owned()),
            Just("unknown".to_owned()),
            "[\",;=\\\\ \t]".prop_map(|c| c),
            "[ -~]{0,6}".prop_map(|c| c),
        ];
        let near = prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat().into_bytes());
        let any = prop::collection::vec(prop_oneof![Just(b'\t'), 0x20..0x7f_u8, 0x80..=0xff_u8], 0..40);
        prop_oneof![4 => near, 1 => any]
    }

    fn unlisted() -> impl Strategy<Value = IpAddr> {
        any::<IpAddr>().prop_filter("not a proxy", |address| !x_forwarded_for().trusts(*address))
    }

    fn element(client: IpAddr) -> String {
        if client.is_ipv4() { format!("for={client}") } else { format!("for=\"[{client}]:4711\"") }
    }

    proptest! {
        #[test]
        fn a_peer_that_is_not_listed_is_the_client(peer in unlisted(), lines in prop::collection::vec(written(), 0..3)) {
            let lines: Vec<&[u8]> = lines.iter().map(|line| &line[..]).collect();
            for key in [x_forwarded_for(), forwarded_for()] {
                prop_assert_eq!(by(&key, &peer.to_string(), &lines), peer);
            }
        }

        #[test]
        fn what_a_client_writes_does_not_matter(
            mut line in written(), client in unlisted(), further in 0..3_usize, own_line in any::<bool>(),
        ) {
            let mut appended = client.to_string();
            appended.push_str(&", 10.2.0.1".repeat(further));
            if own_line {
                prop_assert_eq!(by(&x_forwarded_for(), PROXY, &[&line, appended.as_bytes()]), client);
            }
            line.extend_from_slice(format!(", {appended}").as_bytes());
            prop_assert_eq!(by(&x_forwarded_for(), PROXY, &[&line]), client);
        }

        #[test]
        fn what_a_client_writes_into_forwarded_gives_him_no_other_key(
            mut line in written(), client in unlisted(), own_line in any::<bool>(),
        ) {
            let appended = element(client);
            if own_line {
                prop_assert_eq!(by(&forwarded_for(), PROXY, &[&line, appended.as_bytes()]), client);
            }
            line.extend_from_slice(format!(", {appended}").as_bytes());
            let told = by(&forwarded_for(), PROXY, &[&line]);
            prop_assert!(told == client || told == ip(PROXY), "{}: {told}", String::from_utf8_lossy(&line));
        }

        #[test]
        fn an_honest_chain_tells_its_client(before in prop::collection::vec(unlisted(), 0..3), client in unlisted()) {
            let chain: Vec<IpAddr> = before.into_iter().chain([client]).collect();
            let list: Vec<String> = chain.iter().map(IpAddr::to_string).collect();
            prop_assert_eq!(by(&x_forwarded_for(), PROXY, &[list.join(", ").as_bytes()]), client);
            let elements: Vec<String> = chain.into_iter().map(element).collect();
            prop_assert_eq!(by(&forwarded_for(), PROXY, &[elements.join(", ").as_bytes()]), client);
        }

        #[test]
        fn mapped_addresses_are_those_that_they_stand_for(v4 in any::<std::net::Ipv4Addr>()) {
            let [.., high, low] = v4.to_ipv6_mapped().segments();
            for spelling in [format!("::ffff:{v4}"), format!("0:0:0:0:0:FFFF:{high:04X}:{low:x}")] {
                let address = ip(&spelling);
                prop_assert_eq!(network_of(address, 64), IpAddr::V4(v4));
                prop_assert_eq!(x_forwarded_for().trusts(address), v4.octets()[0] == 10);
            }
        }
    }
}
