//! Networks of addresses.

use std::{net::IpAddr, str::FromStr};

use crate::BuildError;

/// A network, written `10.0.0.0/8` or `2001:db8::/32`; an address alone is a network of one.
///
/// IPv4 is kept as the part of IPv6 into which it is mapped, so that an address is in a network or not whichever way the two
/// are written. Hence `::/0` holds every address there is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Network {
    bits: u128,
    mask: u128,
}

// === impl Network ===

impl Network {
    /// Whether an address is of it.
    pub fn contains(&self, address: IpAddr) -> bool {
        mapped(address) & self.mask == self.bits
    }
}

impl FromStr for Network {
    type Err = BuildError;

    fn from_str(text: &str) -> Result<Self, BuildError> {
        let wrong = || BuildError::Network { got: text.to_owned() };
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let longest: u32 = if address.is_ipv4() { 32 } else { 128 };
        let prefix: u32 = match prefix {
            Some(digits) if !digits.bytes().all(|digit| digit.is_ascii_digit()) => return Err(wrong()),
            Some(digits) => digits.parse().map_err(|_| wrong())?,
            None => longest,
        };
        let host_bits = longest.checked_sub(prefix).ok_or_else(wrong)?;
        let mask = u128::MAX.checked_shl(host_bits).unwrap_or(0);
        let bits = mapped(address);
        // Bits past the prefix are a slip of the pen: which of the two was meant, nobody knows.
        if bits & mask != bits { Err(wrong()) } else { Ok(Self { bits, mask }) }
    }
}

fn mapped(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(network: &str, address: &str) -> bool {
        network.parse::<Network>().unwrap().contains(address.parse().unwrap())
    }

    #[test]
    fn addresses_are_told_by_their_bits_and_not_by_their_spelling() {
        assert!(holds("10.0.0.0/8", "10.255.0.1") && !holds("10.0.0.0/8", "11.0.0.0"));
        assert!(holds("10.0.0.0/8", "::ffff:10.1.2.3") && holds("::ffff:a00:0/104", "10.1.2.3"));
        assert!(holds("192.0.2.7", "192.0.2.7") && !holds("192.0.2.7", "192.0.2.8"));
        assert!(holds("2001:db8::/32", "2001:db8:ffff::1") && !holds("2001:db8::/32", "2001:db9::"));
        assert!(holds("0.0.0.0/0", "255.1.1.1") && !holds("0.0.0.0/0", "2001:db8::1"));
        assert!(holds("::/0", "2001:db8::1") && holds("::/0", "192.0.2.7"));
    }

    #[test]
    fn what_is_no_network_is_named() {
        for text in [
            "",
            "10.0.0.0/33",
            "10.0.0.1/8",
            "::/129",
            "10.0.0.0/",
            "10.0.0.0/+8",
            "10.0.0/8",
            "proxy",
            "::1/-1",
        ] {
            let error = text.parse::<Network>().unwrap_err();
            assert_eq!(error, BuildError::Network { got: text.to_owned() });
            assert!(error.to_string().contains(text));
        }
    }
}
