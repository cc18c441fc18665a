//! One query to the system's resolver.

use std::ffi::{CStr, CString};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

use super::{AcceptedFamily, parse_scope};
use crate::libc;

/// Returns the addresses of `host`, at least one. Blocks for as long as the system's resolver does.
/// An unknown name is NotFound. The name may end in a zone for IPv6 addresses (`host%eth0`); an
/// unknown zone is InvalidInput.
pub fn addresses(host: &str, port: u16, family: AcceptedFamily) -> io::Result<Vec<SocketAddr>> {
    ask(host, port, family, 0)
}

/// Returns the addresses of a host that is a numeric address, in any form that the C library reads
/// (`127.1`). Any other host is an error. Does not block.
pub fn numeric_addresses(host: &str, port: u16, family: AcceptedFamily) -> io::Result<Vec<SocketAddr>> {
    ask(host, port, family, libc::AI_NUMERICHOST)
}

fn ask(host: &str, port: u16, family: AcceptedFamily, flags: libc::c_int) -> io::Result<Vec<SocketAddr>> {
    let (host, scope) = match host.split_once('%') {
        Some((host, zone)) => (host, parse_scope(zone).ok_or(io::ErrorKind::InvalidInput)?),
        None => (host, 0),
    };
    let host = CString::new(host)?;
    // SAFETY: addrinfo is a struct of integers and pointers; zero and null mean "not asked for".
    let mut hints: libc::addrinfo = unsafe { std::mem::zeroed() };
    hints.ai_socktype = libc::SOCK_STREAM;
    hints.ai_flags = flags;
    hints.ai_family = match family {
        AcceptedFamily::V4 => libc::AF_INET,
        AcceptedFamily::Any => libc::AF_UNSPEC,
        AcceptedFamily::V6 => libc::AF_INET6,
    };
    let mut first = std::ptr::null_mut();
    // SAFETY: the name is terminated, and the service is null. The hints outlive the call, and the
    // head of the list goes into the exclusive variable.
    let status = unsafe { libc::getaddrinfo(host.as_ptr(), std::ptr::null(), &hints, &mut first) };
    if status != 0 {
        return Err(failure(status));
    }
    let answer = AddrInfoList(first);
    let mut addresses: Vec<SocketAddr> = Vec::new();
    for mut address in answer.iter().filter_map(|entry| decode(entry, port)) {
        if let (SocketAddr::V6(address), 1..) = (&mut address, scope) {
            address.set_scope_id(scope);
        }
        if family.admits(&address.ip()) && !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    if addresses.is_empty() { Err(io::ErrorKind::NotFound.into()) } else { Ok(addresses) }
}

/// List of the C library, freed on drop.
struct AddrInfoList(*mut libc::addrinfo);

impl AddrInfoList {
    fn iter(&self) -> impl Iterator<Item = &libc::addrinfo> {
        let mut next = self.0;
        std::iter::from_fn(move || {
            // SAFETY: null, or a node of the list that lives as long as `self`.
            let entry = unsafe { next.as_ref() }?;
            next = entry.ai_next;
            Some(entry)
        })
    }
}

impl Drop for AddrInfoList {
    fn drop(&mut self) {
        // SAFETY: the list came from getaddrinfo; no entry outlives `self`.
        unsafe { libc::freeaddrinfo(self.0) };
    }
}

#[allow(clippy::unnecessary_cast, reason = "lengths of addresses are of another type on some systems")]
fn decode(entry: &libc::addrinfo, port: u16) -> Option<SocketAddr> {
    let holds = |length: usize| !entry.ai_addr.is_null() && entry.ai_addrlen as usize >= length;
    match entry.ai_family {
        libc::AF_INET if holds(size_of::<libc::sockaddr_in>()) => {
            // SAFETY: as many bytes exist, of that family. The read does not rely on alignment.
            let raw = unsafe { entry.ai_addr.cast::<libc::sockaddr_in>().read_unaligned() };
            let ip = Ipv4Addr::from(raw.sin_addr.s_addr.to_ne_bytes());
            Some(SocketAddr::new(ip.into(), port))
        }
        libc::AF_INET6 if holds(size_of::<libc::sockaddr_in6>()) => {
            // SAFETY: as above.
            let raw = unsafe { entry.ai_addr.cast::<libc::sockaddr_in6>().read_unaligned() };
            let ip = Ipv6Addr::from(raw.sin6_addr.s6_addr);
            Some(SocketAddrV6::new(ip, port, raw.sin6_flowinfo, raw.sin6_scope_id).into())
        }
        _ => None,
    }
}

/// Converts a failure. The resolver has separate error numbers.
fn failure(status: libc::c_int) -> io::Error {
    match status {
        libc::EAI_SYSTEM => io::Error::last_os_error(),
        libc::EAI_MEMORY => io::Error::from_raw_os_error(libc::ENOMEM),
        _ => {
            // SAFETY: the C library returns a terminated text that it keeps.
            let text = unsafe { CStr::from_ptr(libc::gai_strerror(status)) };
            let kind = match status {
                libc::EAI_AGAIN => io::ErrorKind::TimedOut,
                _ => io::ErrorKind::NotFound,
            };
            io::Error::new(kind, text.to_string_lossy())
        }
    }
}
