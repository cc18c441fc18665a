//! Network interfaces by name. Endpoints may name an interface instead of an address. A name is the
//! one that users see, the system's own name, or the adapter's GUID.

use std::ffi::{CStr, CString};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::ptr::null;

use windows_sys::Win32::Foundation::{ERROR_BUFFER_OVERFLOW, NO_ERROR};
use windows_sys::Win32::NetworkManagement::IpHelper::{
    GAA_FLAG_SKIP_ANYCAST, GAA_FLAG_SKIP_DNS_SERVER, GAA_FLAG_SKIP_MULTICAST, GetAdaptersAddresses,
    IP_ADAPTER_ADDRESSES_LH, if_indextoname, if_nametoindex,
};
use windows_sys::Win32::Networking::WinSock::AF_UNSPEC;

use crate::libc;

/// Returns the addresses of an interface in the system's order, with port 0. Link-local addresses
/// carry their zone. Fails with ENODEV if the interface does not exist or has no address.
pub fn addresses_of(name: &str) -> io::Result<Vec<SocketAddr>> {
    let adapters = Adapters::query()?;
    let found = adapters.iter().find(|adapter| adapter.is_named(name));
    let addresses = found.map_or_else(Vec::new, |adapter| adapter.addresses());
    if addresses.is_empty() { Err(io::Error::from_raw_os_error(libc::ENODEV)) } else { Ok(addresses) }
}

/// Returns the number of an interface, which link-local IPv6 addresses need.
pub fn scope_id(name: &str) -> Option<u32> {
    let terminated = CString::new(name).ok()?;
    // SAFETY: the name is terminated.
    match unsafe { if_nametoindex(terminated.as_ptr().cast()) } {
        0 => {
            let adapters = Adapters::query().ok()?;
            adapters.iter().find(|adapter| adapter.is_named(name)).map(Adapter::number)
        }
        index => Some(index),
    }
}

/// NDIS_IF_MAX_STRING_SIZE plus the terminating zero.
const MOST_BYTES: usize = 257;

/// Returns the name of the interface with this number, if there is one.
pub fn name_of(scope_id: u32) -> Option<String> {
    if scope_id == 0 {
        return None;
    }
    let mut name = [0_u8; MOST_BYTES];
    // SAFETY: the call writes a terminated name of at most that many bytes into the exclusive
    // buffer.
    let found = unsafe { if_indextoname(scope_id, name.as_mut_ptr()) };
    if found.is_null() {
        return None;
    }
    Some(CStr::from_bytes_until_nul(&name).ok()?.to_str().ok()?.to_owned())
}

/// List of the system, in memory that this value owns.
struct Adapters(Vec<u64>);

impl Adapters {
    fn query() -> io::Result<Self> {
        let flags = GAA_FLAG_SKIP_ANYCAST | GAA_FLAG_SKIP_MULTICAST | GAA_FLAG_SKIP_DNS_SERVER;
        // Initial size that Microsoft recommends.
        let mut length = 15_000_u32;
        loop {
            let mut list = vec![0_u64; (length as usize).div_ceil(8)];
            let (family, start) = (AF_UNSPEC.into(), list.as_mut_ptr().cast());
            // SAFETY: the system writes at most `length` bytes into the exclusive vector, which is
            // aligned for pointers.
            let status = unsafe { GetAdaptersAddresses(family, flags, null(), start, &mut length) };
            match status {
                NO_ERROR => return Ok(Adapters(list)),
                // The list is longer, and may have grown again by the next call.
                ERROR_BUFFER_OVERFLOW => {}
                // ERROR_NO_DATA: the list is empty.
                232 => return Ok(Adapters(Vec::new())),
                number => return Err(io::Error::from_raw_os_error(number as i32)),
            }
        }
    }

    fn iter(&self) -> impl Iterator<Item = Adapter<'_>> {
        let mut next: *const IP_ADAPTER_ADDRESSES_LH =
            if self.0.is_empty() { null() } else { self.0.as_ptr().cast() };
        std::iter::from_fn(move || {
            // SAFETY: null, or a node of the list that lives as long as `self`.
            let adapter = unsafe { next.as_ref() }?;
            next = adapter.Next;
            Some(Adapter(adapter))
        })
    }
}

/// One interface.
#[derive(Clone, Copy)]
struct Adapter<'a>(&'a IP_ADAPTER_ADDRESSES_LH);

impl Adapter<'_> {
    fn number(self) -> u32 {
        // SAFETY: both views of the union are integers.
        match unsafe { self.0.Anonymous1.Anonymous.IfIndex } {
            0 => self.0.Ipv6IfIndex,
            index => index,
        }
    }

    fn is_named(self, name: &str) -> bool {
        // SAFETY: null, or a terminated name that lives as long as the list.
        let guid = (!self.0.AdapterName.is_null())
            .then(|| unsafe { CStr::from_ptr(self.0.AdapterName.cast()) }.to_bytes());
        guid == Some(name.as_bytes())
            || self.friendly_name().as_deref() == Some(name)
            || name_of(self.number()).as_deref() == Some(name)
    }

    fn friendly_name(self) -> Option<String> {
        let start = self.0.FriendlyName;
        if start.is_null() {
            return None;
        }
        // SAFETY: within a terminated string of 16-bit units that lives as long as the list.
        let units = (0..).map(|at| unsafe { *start.add(at) }).take_while(|unit| *unit != 0);
        String::from_utf16(&units.collect::<Vec<u16>>()).ok()
    }

    fn addresses(self) -> Vec<SocketAddr> {
        let mut next = self.0.FirstUnicastAddress;
        let entries = std::iter::from_fn(move || {
            // SAFETY: null, or a node of the list that lives as long as the adapter's list.
            let entry = unsafe { next.as_ref() }?;
            next = entry.Next;
            Some(entry)
        });
        entries.filter_map(|entry| decode(entry.Address.lpSockaddr.cast())).collect()
    }
}

fn decode(raw: *const libc::sockaddr) -> Option<SocketAddr> {
    // SAFETY: null, or an address that lives as long as the list.
    let family = libc::c_int::from(unsafe { raw.as_ref() }?.sa_family);
    match family {
        libc::AF_INET => {
            // SAFETY: the family gives the type, and an address of that family is complete. The
            // read does not rely on alignment.
            let raw = unsafe { raw.cast::<libc::sockaddr_in>().read_unaligned() };
            Some((Ipv4Addr::from(raw.sin_addr.s_addr.to_ne_bytes()), 0).into())
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let raw = unsafe { raw.cast::<libc::sockaddr_in6>().read_unaligned() };
            Some(SocketAddrV6::new(Ipv6Addr::from(raw.sin6_addr.s6_addr), 0, 0, raw.sin6_scope_id).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_are_found_by_each_of_their_names() {
        let adapters = Adapters::query().unwrap();
        let mut any = false;
        for adapter in adapters.iter().filter(|adapter| !adapter.addresses().is_empty()) {
            any = true;
            let name = adapter.friendly_name().unwrap();
            assert_eq!(addresses_of(&name).unwrap(), adapter.addresses());
            assert!(scope_id(&name).is_some());
        }
        assert!(any);
    }

    #[test]
    fn unknown_interfaces_are_no_device() {
        for name in ["", "no-such-if", "zero\0"] {
            assert_eq!(addresses_of(name).unwrap_err().raw_os_error(), Some(libc::ENODEV));
            assert_eq!(scope_id(name), None);
        }
        assert_eq!(name_of(0), None);
    }
}
