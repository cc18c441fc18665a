//! Network interfaces by name. Endpoints may name an interface instead of an address.

use std::ffi::{CStr, CString};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

use crate::sys::check;

/// Returns the addresses of an interface in the system's order, with port 0. Link-local addresses
/// carry their zone. Fails with ENODEV if the interface does not exist or has no address.
pub fn addresses_of(name: &str) -> io::Result<Vec<SocketAddr>> {
    let interfaces = Interfaces::query()?;
    let addresses: Vec<SocketAddr> =
        interfaces.iter().filter(|entry| entry.is_named(name)).filter_map(Entry::address).collect();
    if addresses.is_empty() { Err(io::Error::from_raw_os_error(libc::ENODEV)) } else { Ok(addresses) }
}

/// Returns the number of an interface, which link-local IPv6 addresses need.
pub fn scope_id(name: &str) -> Option<u32> {
    let name = CString::new(name).ok()?;
    // SAFETY: the name is terminated.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    (index != 0).then_some(index)
}

/// Upper bound of IF_NAMESIZE on all systems (Linux 16, illumos 32).
const MOST_BYTES: usize = 32;

/// Returns the name of the interface with this number, if there is one.
pub fn name_of(scope_id: u32) -> Option<String> {
    if scope_id == 0 {
        return None;
    }
    let mut name = [0_u8; MOST_BYTES];
    // SAFETY: the call writes a terminated name of at most IF_NAMESIZE bytes into the exclusive
    // buffer, which is at least that long.
    let found = unsafe { libc::if_indextoname(scope_id, name.as_mut_ptr().cast()) };
    if found.is_null() {
        return None;
    }
    Some(CStr::from_bytes_until_nul(&name).ok()?.to_str().ok()?.to_owned())
}

/// List of the C library, freed on drop.
struct Interfaces(*mut libc::ifaddrs);

impl Interfaces {
    fn query() -> io::Result<Self> {
        let mut first = std::ptr::null_mut();
        // SAFETY: the head of the list goes into the exclusive variable.
        check(unsafe { libc::getifaddrs(&mut first) })?;
        Ok(Interfaces(first))
    }

    fn iter(&self) -> impl Iterator<Item = Entry<'_>> {
        let mut next = self.0;
        std::iter::from_fn(move || {
            // SAFETY: null, or a node of the list that lives as long as `self`.
            let entry = unsafe { next.as_ref() }?;
            next = entry.ifa_next;
            Some(Entry(entry))
        })
    }
}

impl Drop for Interfaces {
    fn drop(&mut self) {
        // SAFETY: the list came from getifaddrs; no entry outlives `self`.
        unsafe { libc::freeifaddrs(self.0) };
    }
}

/// One address of one interface.
struct Entry<'a>(&'a libc::ifaddrs);

impl Entry<'_> {
    fn is_named(&self, name: &str) -> bool {
        // SAFETY: every entry has a terminated name that lives as long as the list.
        !self.0.ifa_name.is_null() && unsafe { CStr::from_ptr(self.0.ifa_name) }.to_bytes() == name.as_bytes()
    }

    fn address(self) -> Option<SocketAddr> {
        // SAFETY: null (an interface without address), or an address that lives as long as the
        // list.
        let family = libc::c_int::from(unsafe { self.0.ifa_addr.as_ref() }?.sa_family);
        match family {
            libc::AF_INET => {
                // SAFETY: the family gives the type, and an address of that family is complete. The
                // read does not rely on alignment.
                let raw = unsafe { self.0.ifa_addr.cast::<libc::sockaddr_in>().read_unaligned() };
                Some((Ipv4Addr::from(raw.sin_addr.s_addr.to_ne_bytes()), 0).into())
            }
            libc::AF_INET6 => {
                // SAFETY: as above.
                let raw = unsafe { self.0.ifa_addr.cast::<libc::sockaddr_in6>().read_unaligned() };
                let ip = Ipv6Addr::from(raw.sin6_addr.s6_addr);
                Some(SocketAddrV6::new(ip, 0, 0, raw.sin6_scope_id).into())
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    const LOOPBACK: &str = "lo";
    #[cfg(not(target_os = "linux"))]
    const LOOPBACK: &str = "lo0";

    #[test]
    fn loopback_has_its_address() {
        let addresses = addresses_of(LOOPBACK).unwrap();
        assert!(addresses.contains(&(Ipv4Addr::LOCALHOST, 0).into()));
        assert_eq!(name_of(scope_id(LOOPBACK).unwrap()).as_deref(), Some(LOOPBACK));
    }

    #[test]
    fn unknown_interfaces_are_no_device() {
        for name in ["", "no-such-if", "zero\0"] {
            assert_eq!(addresses_of(name).unwrap_err().raw_os_error(), Some(libc::ENODEV));
            assert_eq!(scope_id(name), None);
        }
        assert_eq!(name_of(0), None);
        assert_eq!(name_of(u32::MAX), None);
    }
}
