//! Which client an address stands for.

use core::net::{IpAddr, Ipv6Addr};

/// The key of a client by its address: the address itself for IPv4, the network of the first `prefix` bits for IPv6.
///
/// An IPv4 address written as IPv6 (`::ffff:192.0.2.7`) is that IPv4 address, in whatever spelling; no other IPv6
/// address is. Most IPv6 clients have a network of 64 bits to themselves, and can choose among its addresses at will.
///
/// # Examples
/// ```
/// use tollgate::network_of;
///
/// let key = |text: &str| network_of(text.parse().unwrap(), 64).to_string();
/// assert_eq!(key("::ffff:102:304"), "1.2.3.4");
/// assert_eq!(key("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
/// ```
pub fn network_of(address: IpAddr, prefix: u32) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128_u32.saturating_sub(prefix)).unwrap_or(0);
            Ipv6Addr::from_bits(address.to_bits() & mask).into()
        }
        v4 => v4,
    }
}
