//! Network interfaces by name, as endpoints may name them in place of an address.

use std::ffi::{CStr, CString};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::sys::check;

/// The addresses of an interface, in the system's order; ENODEV if there is no such interface or it has none.
/// For link-local ones see [`scope_id`].
pub fn addresses_of(name: &str) -> io::Result<Vec<IpAddr>> {
    let interfaces = Interfaces::query()?;
    let addresses: Vec<IpAddr> =
        interfaces.iter().filter(|entry| entry.is_named(name)).filter_map(Entry::address).collect();
    if addresses.is_empty() { Err(io::Error::from_raw_os_error(libc::ENODEV)) } else { Ok(addresses) }
}

/// The number of an interface, as link-local IPv6 addresses need it.
pub fn scope_id(name: &str) -> Option<u32> {
    let name = CString::new(name).ok()?;
    // SAFETY: the name is terminated.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    (index != 0).then_some(index)
}

/// The C library's list, freed on drop.
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

    fn address(self) -> Option<IpAddr> {
        // SAFETY: null (an interface without address), or an address that lives as long as the list.
        let family = libc::c_int::from(unsafe { self.0.ifa_addr.as_ref() }?.sa_family);
        match family {
            libc::AF_INET => {
                // SAFETY: the family says what it is, and such an address is complete; alignment is not
                // taken for granted.
                let raw = unsafe { self.0.ifa_addr.cast::<libc::sockaddr_in>().read_unaligned() };
                Some(IpAddr::V4(Ipv4Addr::from(raw.sin_addr.s_addr.to_ne_bytes())))
            }
            libc::AF_INET6 => {
                // SAFETY: as above.
                let raw = unsafe { self.0.ifa_addr.cast::<libc::sockaddr_in6>().read_unaligned() };
                Some(IpAddr::V6(Ipv6Addr::from(raw.sin6_addr.s6_addr)))
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
        assert!(addresses.contains(&IpAddr::V4(Ipv4Addr::LOCALHOST)));
        assert!(scope_id(LOOPBACK).is_some());
    }

    #[test]
    fn unknown_interfaces_are_no_device() {
        for name in ["", "no-such-if", "zero\0"] {
            assert_eq!(addresses_of(name).unwrap_err().raw_os_error(), Some(libc::ENODEV));
            assert_eq!(scope_id(name), None);
        }
    }
}
