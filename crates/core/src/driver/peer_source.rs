//! Sources of peers, to bound the handshakes of each.

use crate::host::ConnectedPeer;
use std::net::{IpAddr, Ipv6Addr};
use tautline_io::net::Stream;

/// The source of a peer, as far as sources are distinguished: an IPv4 address, an IPv6 network of
/// 64 bits (which one host has completely), or for ipc a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum PeerSource {
    Address(IpAddr),
    User(u32),
    Unknown,
}

impl PeerSource {
    pub(super) fn of(stream: &Stream) -> Self {
        let peer = ConnectedPeer(stream);
        match (peer.address(), peer.user()) {
            (Some(IpAddr::V6(address)), _) => {
                PeerSource::Address(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into())
            }
            (Some(address), _) => PeerSource::Address(address),
            (None, Some(user)) => PeerSource::User(user),
            (None, None) => PeerSource::Unknown,
        }
    }
}
