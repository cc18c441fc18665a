//! Interfaces of the simulated host, and the multicast groups that sockets join on them. There is
//! only one host. A message to a group comes back through the interface by which it left.

use super::{Socket, inet};
use crate::kernel::{Body, Id, Kernel, SysResult};

/// An interface, with an address of each kind.
pub(crate) struct Interface {
    pub(crate) name: &'static std::ffi::CStr,
    pub(crate) index: u32,
    pub(crate) v4: [u8; 4],
    pub(crate) v6: [u8; 16],
}

/// Returns the link-local address with this last byte.
const fn link_local(last: u8) -> [u8; 16] {
    [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]
}

pub(crate) const INTERFACES: [Interface; 3] = [
    Interface {
        name: c"lo",
        index: 1,
        v4: [127, 0, 0, 1],
        v6: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
    },
    Interface { name: c"eth0", index: 2, v4: [10, 0, 0, 1], v6: link_local(1) },
    Interface { name: c"eth1", index: 3, v4: [10, 0, 1, 1], v6: link_local(2) },
];

/// Interface of multicast without a named interface.
const DEFAULT: u32 = 2;
const IP_MULTICAST_ALL: i32 = 49;
const IPV6_MULTICAST_ALL: i32 = 29;

/// True if this host has the address, which includes 127.0.0.0/8 and the unspecified address.
pub(super) fn is_own(ip: &[u8; 16]) -> bool {
    let is_v4 = ip[..12] == [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];
    match is_v4 {
        true => ip[12] == 127 || INTERFACES.iter().any(|one| one.v4 == ip[12..]),
        false => *ip == [0; 16] || INTERFACES.iter().any(|one| one.v6 == *ip),
    }
}

/// True for the address of a multicast group.
pub(super) fn is_group(ip: &[u8; 16]) -> bool {
    ip[0] == 0xff || ip[..12] == [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff] && ip[12] & 0xf0 == 0xe0
}

fn index_of(v4: &[u8]) -> Option<u32> {
    match v4 {
        [0, 0, 0, 0] => Some(DEFAULT),
        _ => INTERFACES.iter().find(|one| one.v4 == v4).map(|one| one.index),
    }
}

fn known(index: u32) -> Option<u32> {
    match index {
        0 => Some(DEFAULT),
        _ => INTERFACES.iter().find(|one| one.index == index).map(|one| one.index),
    }
}

fn number(value: &[u8]) -> u32 {
    value.first_chunk().map_or(0, |bytes| u32::from_ne_bytes(*bytes))
}

impl Socket {
    /// Sets options about interfaces. Returns `None` for other options, which are stored unchanged.
    pub(super) fn set_interface(&mut self, level: i32, name: i32, value: &[u8]) -> Option<SysResult> {
        let done = |is_fine: bool, error: i32| Some(if is_fine { Ok(0) } else { Err(error) });
        match (level, name) {
            (libc::SOL_SOCKET, libc::SO_BINDTODEVICE) => {
                let end = value.iter().position(|byte| *byte == 0).unwrap_or(value.len());
                let device = INTERFACES.iter().find(|one| one.name.to_bytes() == &value[..end]);
                self.device = device.map(|one| one.index);
                done(device.is_some() || end == 0, libc::ENODEV)
            }
            (libc::IPPROTO_IP, libc::IP_ADD_MEMBERSHIP) => {
                let mut group = [0; 16];
                group[10..12].fill(0xff);
                group[12..].copy_from_slice(value.get(..4)?);
                Some(self.join(group, index_of(value.get(4..8)?)))
            }
            (libc::IPPROTO_IPV6, libc::IPV6_ADD_MEMBERSHIP) => {
                let group = *value.first_chunk::<16>()?;
                Some(self.join(group, known(number(value.get(16..20)?))))
            }
            (libc::IPPROTO_IP, libc::IP_MULTICAST_IF) => {
                self.multicast_interface = index_of(value.get(..4)?);
                done(self.multicast_interface.is_some(), libc::EADDRNOTAVAIL)
            }
            (libc::IPPROTO_IPV6, libc::IPV6_MULTICAST_IF) => {
                self.multicast_interface = known(number(value));
                done(self.multicast_interface.is_some(), libc::ENODEV)
            }
            _ => None,
        }
    }

    fn join(&mut self, group: [u8; 16], interface: Option<u32>) -> SysResult {
        let interface = interface.ok_or(libc::ENODEV)?;
        if !is_group(&group) {
            return Err(libc::EINVAL);
        }
        if self.groups.contains(&(group, interface)) {
            return Err(libc::EADDRINUSE);
        }
        self.groups.push((group, interface));
        Ok(0)
    }

    /// Returns the interface by which a message to a group leaves, or `None` if it does not come
    /// back.
    pub(super) fn outgoing_interface(&self, to: &[u8]) -> Option<u32> {
        let zone = to.get(24..28).map_or(0, number);
        let comes_back = match self.domain {
            libc::AF_INET => (libc::IPPROTO_IP, libc::IP_MULTICAST_LOOP),
            _ => (libc::IPPROTO_IPV6, libc::IPV6_MULTICAST_LOOP),
        };
        let comes_back = self.options.get(&comes_back).is_none_or(|value| number(value) != 0);
        let interface = if zone != 0 { zone } else { self.multicast_interface.unwrap_or(DEFAULT) };
        comes_back.then_some(interface)
    }

    /// True if the socket receives from all groups that any socket of the host has joined.
    fn receives_all_groups(&self) -> bool {
        let key = match self.domain {
            libc::AF_INET => (libc::IPPROTO_IP, IP_MULTICAST_ALL),
            _ => (libc::IPPROTO_IPV6, IPV6_MULTICAST_ALL),
        };
        self.options.get(&key).is_none_or(|value| number(value) != 0)
    }

    fn is_in(&self, group: &[u8; 16], interface: u32) -> bool {
        self.groups.contains(&(*group, interface))
    }
}

impl Kernel {
    /// Returns the sockets that receive messages to a group's address through an interface.
    pub(super) fn members(&self, group: &[u8; 16], port: u16, interface: u32) -> Vec<Id> {
        let sockets = || {
            self.objects.iter().filter_map(|(id, object)| match &object.body {
                Body::Socket(socket) if socket.kind == libc::SOCK_DGRAM && !socket.closed => {
                    Some((*id, socket))
                }
                _ => None,
            })
        };
        let is_joined = sockets().any(|(_, socket)| socket.is_in(group, interface));
        let hears = |socket: &Socket| {
            let (own, own_port) = socket.local.as_deref().and_then(inet)?;
            let is_v4 = socket.domain == libc::AF_INET;
            let fits = own_port == port
                && (own == [0; 16] || own == *group)
                && is_v4 == (group[0] == 0)
                && socket.device.is_none_or(|device| device == interface)
                && (socket.is_in(group, interface) || socket.receives_all_groups());
            fits.then_some(())
        };
        let heard = sockets().filter(|(_, socket)| is_joined && hears(socket).is_some());
        heard.map(|(id, _)| id).collect()
    }
}
