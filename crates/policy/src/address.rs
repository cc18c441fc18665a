use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Range from which an address can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Scope {
    /// This machine.
    Loopback,
    /// A private network: RFC 1918, RFC 4193, RFC 6598 and link-local addresses.
    Private,
    /// The internet.
    Public,
    /// All interfaces: the wildcard address of a bind.
    Every,
    /// A name that was not looked up yet, or an endpoint without an IP address.
    Unknown,
}

impl Scope {
    /// Returns the scope of an address.
    pub fn of(address: Option<IpAddr>) -> Self {
        match address {
            None => Scope::Unknown,
            Some(address) if address.is_unspecified() => Scope::Every,
            Some(address) => match address.to_canonical() {
                IpAddr::V4(address) => Scope::of_v4(address),
                IpAddr::V6(address) => Scope::of_v6(address),
            },
        }
    }

    fn of_v4(address: Ipv4Addr) -> Self {
        let [a, b, ..] = address.octets();
        match address {
            _ if address.is_unspecified() => Scope::Every,
            _ if address.is_loopback() => Scope::Loopback,
            _ if address.is_private() || address.is_link_local() => Scope::Private,
            _ if a == 100 && b & 0xC0 == 64 => Scope::Private,
            _ => Scope::Public,
        }
    }

    fn of_v6(address: Ipv6Addr) -> Self {
        match address {
            _ if address.is_loopback() => Scope::Loopback,
            _ if address.is_unique_local() || address.is_unicast_link_local() => Scope::Private,
            _ => Scope::Public,
        }
    }
}

/// A range of addresses with a common prefix (`10.0.0.0/8`), or one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Network {
    bits: u128,
    length: u32,
    is_v4: bool,
}

impl Network {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length.parse().ok()?)),
            None => (text, None),
        };
        let (bits, most, is_v4) = bits(address.parse().ok()?);
        let length: u32 = length.unwrap_or(most);
        let network = Network { bits: bits & mask(length), length, is_v4 };
        // Bits behind the prefix length are probably a mistake in the file.
        (length <= most && network.bits == bits).then_some(network)
    }

    pub(crate) fn has(&self, address: IpAddr) -> bool {
        let (bits, _, is_v4) = bits(address.to_canonical());
        is_v4 == self.is_v4 && bits & mask(self.length) == self.bits
    }
}

/// Returns the bits of an address from the left, their number, and true for version 4.
fn bits(address: IpAddr) -> (u128, u32, bool) {
    match address {
        IpAddr::V4(address) => (u128::from(address.to_bits()) << 96, 32, true),
        IpAddr::V6(address) => (address.to_bits(), 128, false),
    }
}

fn mask(length: u32) -> u128 {
    u128::MAX.checked_shl(128_u32.saturating_sub(length)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_reach_as_far_as_their_range_says() {
        let scope = |text: &str| Scope::of(Some(text.parse().unwrap()));
        for (text, expected) in [
            ("127.0.0.1", Scope::Loopback),
            ("127.255.0.1", Scope::Loopback),
            ("::1", Scope::Loopback),
            ("::ffff:127.0.0.1", Scope::Loopback),
            ("10.1.2.3", Scope::Private),
            ("172.31.0.1", Scope::Private),
            ("192.168.0.1", Scope::Private),
            ("169.254.1.1", Scope::Private),
            ("100.64.0.1", Scope::Private),
            ("fd00::1", Scope::Private),
            ("fe80::1", Scope::Private),
            ("::ffff:10.0.0.1", Scope::Private),
            ("100.128.0.1", Scope::Public),
            ("172.32.0.1", Scope::Public),
            ("8.8.8.8", Scope::Public),
            ("2001:db8::1", Scope::Public),
            ("0.0.0.0", Scope::Every),
            ("::", Scope::Every),
            ("::ffff:0.0.0.0", Scope::Every),
        ] {
            assert_eq!(scope(text), expected, "{text}");
        }
        assert_eq!(Scope::of(None), Scope::Unknown);
    }

    #[test]
    fn networks_have_what_begins_alike() {
        let has =
            |network: &str, address: &str| Network::parse(network).unwrap().has(address.parse().unwrap());
        assert!(has("10.0.0.0/8", "10.255.1.1") && !has("10.0.0.0/8", "11.0.0.0"));
        assert!(has("0.0.0.0/0", "1.2.3.4") && !has("0.0.0.0/0", "::1"));
        assert!(has("1.2.3.4", "1.2.3.4") && has("1.2.3.4", "::ffff:1.2.3.4") && !has("1.2.3.4", "1.2.3.5"));
        assert!(has("fd00::/8", "fdff::1") && has("::/0", "::1") && has("::1", "::1"));
        for text in ["", "10.0.0.0/33", "10.0.0.1/8", "fd00::/129", "10.0.0.0/", "x/8", "10.0.0.0/8/8"] {
            assert_eq!(Network::parse(text), None, "{text}");
        }
    }
}
