//! ZMQ_TCP_ACCEPT_FILTER: an address or a network in CIDR notation from which a bound TCP endpoint
//! accepts peers.

use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use crate::error::Error;

/// One network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AcceptFilter {
    network: IpAddr,
    prefix: u8,
}

impl AcceptFilter {
    /// Parses `address` or `address/prefix`. An IPv6 address may be in brackets; its scope is
    /// ignored. Returns `Error::Invalid` for any other text, and for IPv6 on a socket without
    /// ZMQ_IPV6.
    pub(super) fn parse(value: &[u8], ipv6: bool) -> Result<AcceptFilter, Error> {
        let text =
            std::str::from_utf8(value.strip_suffix(&[0]).unwrap_or(value)).map_err(|_| Error::Invalid)?;
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let bare = address.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(address);
        let bare = bare.split_once('%').map_or(bare, |(address, _scope)| address);
        let network = IpAddr::from_str(bare).map_err(|_| Error::Invalid)?;
        let longest = if network.is_ipv6() { 128 } else { 32 };
        let prefix = match prefix {
            Some(digits) if digits.bytes().all(|digit| digit.is_ascii_digit()) => {
                u8::from_str(digits).map_err(|_| Error::Invalid)?
            }
            Some(_) => return Err(Error::Invalid),
            None => longest,
        };
        if prefix > longest || (network.is_ipv6() && !ipv6) {
            return Err(Error::Invalid);
        }
        Ok(AcceptFilter { network, prefix })
    }

    /// True if a peer with this address may connect. An IPv4 address and its IPv6-mapped form are
    /// equal.
    pub fn matches(&self, peer: IpAddr) -> bool {
        let from_v4 = |prefix: u8| prefix + 96;
        let prefix = if self.network.is_ipv4() { from_v4(self.prefix) } else { self.prefix };
        let differing = mapped(self.network).to_bits() ^ mapped(peer).to_bits();
        differing.leading_zeros() >= u32::from(prefix)
    }
}

/// The IPv6 form of an address.
fn mapped(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<AcceptFilter, Error> {
        AcceptFilter::parse(text.as_bytes(), true)
    }

    fn accepts(filter: &str, peer: &str) -> bool {
        parse(filter).unwrap().matches(peer.parse().unwrap())
    }

    #[test]
    fn a_filter_accepts_its_network_only() {
        assert!(accepts("127.0.0.1", "127.0.0.1"));
        assert!(!accepts("127.0.0.1", "127.0.0.2"));
        assert!(accepts("10.1.2.3/8", "10.255.0.1"));
        assert!(!accepts("10.1.2.3/8", "11.1.2.3"));
        assert!(accepts("0.0.0.0/0", "9.9.9.9"));
        assert!(!accepts("0.0.0.0/0", "2001:db8::1"));
        assert!(accepts("2001:db8::/32", "2001:db8:1::1"));
        assert!(!accepts("2001:db8::/32", "2001:db9::1"));
        assert!(accepts("::/0", "2001:db8::1"));
    }

    #[test]
    fn mapped_addresses_are_ipv4() {
        assert!(accepts("127.0.0.0/8", "::ffff:127.1.2.3"));
        assert!(accepts("::ffff:10.0.0.0/104", "10.2.3.4"));
        assert!(!accepts("::ffff:10.0.0.0/104", "11.2.3.4"));
    }

    #[test]
    fn filter_is_an_address_with_optional_prefix_length() {
        for good in
            ["::1", "[::1]", "[::1]/64", "fe80::1%lo/64", "1.2.3.4/08", "1.2.3.4\0", "1.2.3.4/32", "::/128"]
        {
            assert!(parse(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "/8",
            "localhost",
            "eth0",
            "*",
            "1.2.3.4/",
            "1.2.3.4/33",
            "1.2.3.4/-1",
            "1.2.3.4/8x",
            "::1/129",
        ] {
            assert_eq!(parse(bad), Err(Error::Invalid), "{bad}");
        }
        assert_eq!(AcceptFilter::parse(b"::1", false), Err(Error::Invalid));
        assert!(AcceptFilter::parse(b"127.0.0.1/8", false).is_ok());
    }
}
