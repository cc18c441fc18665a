//! Socket addresses, and their C form.

use std::fmt;
use std::io;
use std::mem::{offset_of, zeroed};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::path::PathBuf;

use super::{Family, os, unix_path};
use crate::fd::{AsRawFd, BorrowedFd, RawFd};
use crate::interfaces;
use crate::libc;
use crate::sys::check;

/// Address on which a stream socket listens or to which it connects.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// TCP over IPv4 or IPv6.
    Inet(SocketAddr),
    /// A Unix domain socket in the file system. An empty path means a socket that was never bound.
    Unix {
        /// Path of the socket's file.
        path: PathBuf,
    },
    /// A Unix domain socket in Linux's abstract namespace: any bytes, without the leading zero.
    Abstract(Vec<u8>),
    /// A virtual machine or its host, by context identifier and port. [`VSOCK_ANY`] stands for any
    /// identifier or port.
    Vsock {
        /// Context identifier of the machine.
        cid: u32,
        /// Port; may be larger than 16 bits.
        port: u32,
    },
}

/// Any machine, or any port, in an address of [`Address::Vsock`].
pub const VSOCK_ANY: u32 = u32::MAX;

impl Address {
    /// True if this is a TCP address.
    pub fn is_inet(&self) -> bool {
        matches!(self, Address::Inet(_))
    }

    /// True if this is a TCP address of the loopback interface.
    pub fn is_loopback(&self) -> bool {
        matches!(self, Address::Inet(address) if address.ip().to_canonical().is_loopback())
    }

    /// Returns the family of the sockets for this address.
    pub(super) fn family(&self) -> Family {
        match self {
            Address::Inet(SocketAddr::V4(_)) => Family::V4,
            Address::Inet(SocketAddr::V6(_)) => Family::V6,
            Address::Unix { .. } | Address::Abstract(_) => Family::Unix,
            Address::Vsock { .. } => Family::Vsock,
        }
    }

    pub(super) fn domain(&self) -> libc::c_int {
        match self {
            Address::Inet(SocketAddr::V4(_)) => libc::AF_INET,
            Address::Inet(SocketAddr::V6(_)) => libc::AF_INET6,
            Address::Unix { .. } | Address::Abstract(_) => libc::AF_UNIX,
            // If the system has no vsock, RawAddress::new has failed before.
            Address::Vsock { .. } => os::VSOCK.unwrap_or(libc::AF_UNSPEC),
        }
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Address::Inet(address)
    }
}

/// Writes IP addresses as the standard library does, except that the zone of a link-local address
/// is the name of its interface. Writes paths unchanged, and abstract names with a leading `@`.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Inet(address) if has_zone(address) => {
                write!(f, "[{}]:{}", host_of(address), address.port())
            }
            Address::Inet(address) => address.fmt(f),
            Address::Unix { path } => path.display().fmt(f),
            Address::Abstract(name) => write!(f, "@{}", String::from_utf8_lossy(name)),
            Address::Vsock { cid, port } => {
                for (part, end) in [(cid, ":"), (port, "")] {
                    match *part {
                        VSOCK_ANY => write!(f, "*{end}")?,
                        number => write!(f, "{number}{end}")?,
                    }
                }
                Ok(())
            }
        }
    }
}

fn has_zone(address: &SocketAddr) -> bool {
    matches!(address, SocketAddr::V6(address) if address.scope_id() != 0)
}

/// Returns an address without its port. The zone of a link-local address is the name of its
/// interface, or its number if it has no name.
pub fn host_of(address: &SocketAddr) -> String {
    match address {
        SocketAddr::V6(address) if address.scope_id() != 0 => match interfaces::name_of(address.scope_id()) {
            Some(zone) => format!("{}%{zone}", address.ip()),
            None => format!("{}%{}", address.ip(), address.scope_id()),
        },
        _ => address.ip().to_string(),
    }
}

/// An address in the form that C calls take.
pub(super) struct RawAddress {
    storage: libc::sockaddr_storage,
    length: libc::socklen_t,
}

impl RawAddress {
    pub(super) fn new(address: &Address) -> io::Result<Self> {
        match address {
            Address::Inet(address) => Ok(RawAddress::inet(address)),
            Address::Unix { path } => {
                let path = path.as_os_str().as_encoded_bytes();
                // The kernel would take an empty path for "any", and cut a path at a zero byte.
                if path.is_empty() || path.contains(&0) {
                    return Err(io::Error::from_raw_os_error(libc::EINVAL));
                }
                // The path must fit with its terminating zero.
                RawAddress::unix(&[path, &[0]].concat())
            }
            Address::Abstract(name) if os::HAS_ABSTRACT => RawAddress::unix(&[&[0], &name[..]].concat()),
            Address::Abstract(_) => Err(unknown_family()),
            Address::Vsock { cid, port } => os::vsock(*cid, *port).ok_or_else(unknown_family),
        }
    }

    pub(super) fn inet(address: &SocketAddr) -> Self {
        match address {
            SocketAddr::V4(address) => {
                // SAFETY: sockaddr_in is a struct of integers.
                let mut raw: libc::sockaddr_in = unsafe { zeroed() };
                raw.sin_family = libc::AF_INET as libc::sa_family_t;
                raw.sin_port = address.port().to_be();
                raw.sin_addr.s_addr = u32::from_ne_bytes(address.ip().octets());
                RawAddress::of(&raw, size_of_val(&raw))
            }
            SocketAddr::V6(address) => {
                // SAFETY: sockaddr_in6 is a struct of integers.
                let mut raw: libc::sockaddr_in6 = unsafe { zeroed() };
                raw.sin6_family = libc::AF_INET6 as libc::sa_family_t;
                raw.sin6_port = address.port().to_be();
                raw.sin6_flowinfo = address.flowinfo();
                raw.sin6_addr.s6_addr = address.ip().octets();
                raw.sin6_scope_id = address.scope_id();
                RawAddress::of(&raw, size_of_val(&raw))
            }
        }
    }

    fn unix(name: &[u8]) -> io::Result<Self> {
        // SAFETY: sockaddr_un is a struct of integers.
        let mut raw: libc::sockaddr_un = unsafe { zeroed() };
        raw.sun_family = libc::AF_UNIX as libc::sa_family_t;
        if name.len() > raw.sun_path.len() {
            return Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG));
        }
        for (to, &from) in raw.sun_path.iter_mut().zip(name) {
            *to = from as libc::c_char;
        }
        Ok(RawAddress::of(&raw, offset_of!(libc::sockaddr_un, sun_path) + name.len()))
    }

    /// Copies a C address of one family into storage for any family. `length` is the number of
    /// valid bytes.
    pub(super) fn of<T: Copy>(raw: &T, length: usize) -> Self {
        const { assert!(size_of::<T>() <= size_of::<libc::sockaddr_storage>()) }
        // SAFETY: sockaddr_storage is a struct of integers.
        let mut storage: libc::sockaddr_storage = unsafe { zeroed() };
        // SAFETY: T fits (asserted above); both are separate variables of plain integers.
        unsafe {
            std::ptr::copy_nonoverlapping(
                std::ptr::from_ref(raw).cast::<u8>(),
                (&raw mut storage).cast::<u8>(),
                size_of::<T>(),
            );
        }
        RawAddress { storage, length: length as libc::socklen_t }
    }

    /// Gets the address of `fd` by `call` (getsockname or getpeername).
    pub(super) fn ask(
        fd: BorrowedFd<'_>,
        call: unsafe extern "C" fn(RawFd, *mut libc::sockaddr, *mut libc::socklen_t) -> libc::c_int,
    ) -> io::Result<Self> {
        // SAFETY: sockaddr_storage is a struct of integers.
        let mut storage: libc::sockaddr_storage = unsafe { zeroed() };
        let capacity = size_of_val(&storage) as libc::socklen_t;
        let mut length = capacity;
        // SAFETY: the descriptor is open while borrowed; the call writes at most `length` bytes
        // into the exclusive storage and the address's true length into `length`.
        check(unsafe { call(fd.as_raw_fd(), (&raw mut storage).cast(), &mut length) })?;
        Ok(RawAddress { storage, length: length.min(capacity) })
    }

    pub(super) fn as_ptr(&self) -> *const libc::sockaddr {
        (&raw const self.storage).cast()
    }

    pub(super) fn length(&self) -> libc::socklen_t {
        self.length
    }

    /// The number of the address family.
    #[cfg(all(unix, not(linux_kernel)))]
    pub(super) fn family(&self) -> libc::c_int {
        libc::c_int::from(self.storage.ss_family)
    }

    /// Returns the address in Rust's types, or `None` if the family is unknown or the address too
    /// short.
    pub(super) fn decode(&self) -> Option<Address> {
        match libc::c_int::from(self.storage.ss_family) {
            libc::AF_INET => {
                let raw = self.view::<libc::sockaddr_in>()?;
                let ip = Ipv4Addr::from(raw.sin_addr.s_addr.to_ne_bytes());
                let address = SocketAddrV4::new(ip, u16::from_be(raw.sin_port));
                Some(Address::Inet(SocketAddr::V4(address)))
            }
            libc::AF_INET6 => {
                let raw = self.view::<libc::sockaddr_in6>()?;
                let ip = Ipv6Addr::from(raw.sin6_addr.s6_addr);
                let port = u16::from_be(raw.sin6_port);
                let address = SocketAddrV6::new(ip, port, raw.sin6_flowinfo, raw.sin6_scope_id);
                Some(Address::Inet(SocketAddr::V6(address)))
            }
            libc::AF_UNIX => Some(self.decode_unix()),
            family if Some(family) == os::VSOCK => os::decode_vsock(self),
            _ => None,
        }
    }

    fn decode_unix(&self) -> Address {
        let start = offset_of!(libc::sockaddr_un, sun_path);
        let end = (self.length as usize).clamp(start, size_of::<libc::sockaddr_un>());
        let name = &self.bytes()[start..end];
        match name.split_first() {
            Some((0, name)) if os::HAS_ABSTRACT => Address::Abstract(name.to_vec()),
            _ => {
                // Some systems count the terminating zero, others do not.
                let path = name.split(|&byte| byte == 0).next().unwrap_or_default();
                Address::Unix { path: unix_path::of_bytes(path) }
            }
        }
    }

    /// Returns the storage as an address of one family, if it is long enough.
    pub(super) fn view<T: Copy>(&self) -> Option<T> {
        const { assert!(size_of::<T>() <= size_of::<libc::sockaddr_storage>()) }
        // SAFETY: the storage is at least as large as T, and T is a struct of integers (private
        // callers). read_unaligned needs no alignment.
        let whole = unsafe { (&raw const self.storage).cast::<T>().read_unaligned() };
        (self.length as usize >= size_of::<T>()).then_some(whole)
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: the storage was zeroed before any write to it, so every byte is initialised.
        unsafe {
            std::slice::from_raw_parts(
                (&raw const self.storage).cast::<u8>(),
                size_of::<libc::sockaddr_storage>(),
            )
        }
    }
}

/// Returns the local address of a socket.
pub(super) fn local_address(fd: BorrowedFd<'_>) -> io::Result<Address> {
    RawAddress::ask(fd, libc::getsockname)?.decode().ok_or_else(unknown_family)
}

/// Returns the address of a socket's other end.
pub(super) fn peer_address(fd: BorrowedFd<'_>) -> io::Result<Address> {
    RawAddress::ask(fd, libc::getpeername)?.decode().ok_or_else(unknown_family)
}

fn unknown_family() -> io::Error {
    io::Error::from_raw_os_error(libc::EAFNOSUPPORT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(address: Address) {
        assert_eq!(RawAddress::new(&address).unwrap().decode(), Some(address));
    }

    #[test]
    fn addresses_survive_their_c_form() {
        round_trip(Address::Inet("127.0.0.1:5555".parse().unwrap()));
        round_trip(Address::Inet("[2001:db8::1]:65535".parse().unwrap()));
        round_trip(Address::Inet(SocketAddrV6::new("fe80::1".parse().unwrap(), 1, 2, 3).into()));
        round_trip(Address::Unix { path: "/tmp/some.socket".into() });
        round_trip(Address::Unix { path: "a".repeat(107).into() });
        if os::VSOCK.is_some() {
            round_trip(Address::Vsock { cid: 3, port: 0x1234_5678 });
            round_trip(Address::Vsock { cid: VSOCK_ANY, port: VSOCK_ANY });
        }
        if os::HAS_ABSTRACT {
            round_trip(Address::Abstract(b"name\0with zero".to_vec()));
            round_trip(Address::Abstract(vec![b'x'; 107]));
        }
    }

    #[test]
    fn impossible_unix_names_are_refused() {
        let number = |address: Address| RawAddress::new(&address).err().unwrap().raw_os_error().unwrap();
        assert_eq!(number(Address::Unix { path: "a".repeat(108).into() }), libc::ENAMETOOLONG);
        assert_eq!(number(Address::Unix { path: "".into() }), libc::EINVAL);
        assert_eq!(number(Address::Unix { path: "a\0b".into() }), libc::EINVAL);
        if os::HAS_ABSTRACT {
            assert_eq!(number(Address::Abstract(vec![b'x'; 108])), libc::ENAMETOOLONG);
        }
    }

    #[test]
    fn addresses_are_written_as_users_write_them() {
        assert_eq!(Address::Inet("[::1]:80".parse().unwrap()).to_string(), "[::1]:80");
        let in_zone = |scope| {
            Address::from(SocketAddr::from(SocketAddrV6::new("fe80::1".parse().unwrap(), 80, 0, scope)))
        };
        assert_eq!(in_zone(u32::MAX).to_string(), "[fe80::1%4294967295]:80");
        #[cfg(target_os = "linux")]
        assert_eq!(in_zone(interfaces::scope_id("lo").unwrap()).to_string(), "[fe80::1%lo]:80");
        assert_eq!(Address::Unix { path: "/tmp/x".into() }.to_string(), "/tmp/x");
        assert_eq!(Address::Abstract(b"x".to_vec()).to_string(), "@x");
        assert_eq!(Address::Vsock { cid: 2, port: 5555 }.to_string(), "2:5555");
        assert_eq!(Address::Vsock { cid: VSOCK_ANY, port: VSOCK_ANY }.to_string(), "*:*");
    }
}
