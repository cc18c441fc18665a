//! Datagram sockets over UDP, unicast and multicast.

use crate::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use crate::libc;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};

use super::address::RawAddress;
use super::{Address, option, os};
use crate::sys::{self, check};

/// Length of the longest body of a datagram over IPv4.
pub const MAX_DATAGRAM: usize = 65_507;

/// Options of a datagram socket. `None` and 0 leave the system's default.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct DatagramOptions {
    /// Size of the kernel's send buffer in bytes.
    pub send_buffer: Option<u32>,
    /// Size of the kernel's receive buffer in bytes.
    pub receive_buffer: Option<u32>,
    /// Type of service (IPv4) or traffic class (IPv6).
    pub tos: u8,
    /// Queueing priority of sent packets. Linux only; other systems ignore it.
    pub priority: Option<u32>,
    /// Network interface to which the socket is restricted; Linux.
    pub bind_to_device: Option<String>,
}

/// A network interface, in the form that multicast uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum MulticastInterface {
    /// The system chooses.
    #[default]
    Any,
    /// Interface with this address; for IPv4.
    Address(Ipv4Addr),
    /// Interface with this index; for IPv6.
    Index(u32),
}

/// A non-blocking socket for datagrams.
#[derive(Debug)]
pub struct Datagram(UdpSocket);

impl Datagram {
    /// Creates an unbound socket of the address family of `like`.
    pub fn new(like: &SocketAddr, options: &DatagramOptions) -> io::Result<Datagram> {
        let address = Address::Inet(*like);
        let fd = sys::socket(address.domain(), libc::SOCK_DGRAM)?;
        if like.is_ipv6() {
            option::allow_v4(fd.as_fd());
        }
        apply(fd.as_fd(), like.is_ipv4(), options)?;
        Ok(Datagram(UdpSocket::from(fd)))
    }

    /// Binds to `address`. With `shared`, other sockets may bind to it as well (multicast), and
    /// each socket hears only the groups that it joined.
    pub fn bind(&self, address: &SocketAddr, shared: bool) -> io::Result<()> {
        if shared {
            // Set before the socket gets the port, so that it never receives data of other groups.
            os::hear_joined_only(self.as_fd(), address.is_ipv4());
            option::set(self.as_fd(), libc::SOL_SOCKET, libc::SO_REUSEADDR, 1)?;
            option::set(self.as_fd(), libc::SOL_SOCKET, libc::SO_REUSEPORT, 1)?;
        }
        let raw = RawAddress::new(&Address::Inet(*address))?;
        // SAFETY: the descriptor is open. The address outlives the call, and its length is correct.
        check(unsafe { libc::bind(self.0.as_raw_fd(), raw.as_ptr(), raw.length()) })?;
        Ok(())
    }

    /// Joins a multicast group.
    pub fn join(&self, group: IpAddr, interface: MulticastInterface) -> io::Result<()> {
        match (group, interface) {
            (IpAddr::V4(group), MulticastInterface::Address(interface)) => {
                self.0.join_multicast_v4(&group, &interface)
            }
            (IpAddr::V4(group), _) => self.0.join_multicast_v4(&group, &Ipv4Addr::UNSPECIFIED),
            (IpAddr::V6(group), MulticastInterface::Index(index)) => self.0.join_multicast_v6(&group, index),
            (IpAddr::V6(group), _) => self.0.join_multicast_v6(&group, 0),
        }
    }

    /// Sets how packets to multicast groups travel: the number of hops, whether this host receives
    /// them, and the interface.
    pub fn set_multicast(
        &self,
        v4: bool,
        hops: u32,
        back: bool,
        interface: MulticastInterface,
    ) -> io::Result<()> {
        let hops = libc::c_int::try_from(hops.min(255)).unwrap_or(255);
        let fd = self.as_fd();
        if v4 {
            option::set(fd, libc::IPPROTO_IP, libc::IP_MULTICAST_TTL, hops)?;
            option::set(fd, libc::IPPROTO_IP, libc::IP_MULTICAST_LOOP, back.into())?;
        } else {
            option::set(fd, libc::IPPROTO_IPV6, libc::IPV6_MULTICAST_HOPS, hops)?;
            option::set(fd, libc::IPPROTO_IPV6, libc::IPV6_MULTICAST_LOOP, back.into())?;
        }
        match interface {
            MulticastInterface::Address(address) if v4 => {
                option::set_bytes(fd, libc::IPPROTO_IP, libc::IP_MULTICAST_IF, &address.octets())
            }
            MulticastInterface::Index(index) if !v4 => {
                option::set_bytes(fd, libc::IPPROTO_IPV6, libc::IPV6_MULTICAST_IF, &index.to_ne_bytes())
            }
            _ => Ok(()),
        }
    }

    /// Sends one datagram.
    pub fn send(&self, bytes: &[u8], to: &SocketAddr) -> io::Result<()> {
        sys::retry(|| self.0.send_to(bytes, to)).map(|_| ())
    }

    /// Receives one datagram, cut to the buffer's length, and returns its sender.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        sys::retry(|| self.0.recv_from(buffer))
    }

    /// Returns the local address.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    /// Returns the descriptor to wait on.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl From<OwnedFd> for Datagram {
    fn from(fd: OwnedFd) -> Self {
        Datagram(UdpSocket::from(fd))
    }
}

fn apply(fd: BorrowedFd<'_>, v4: bool, options: &DatagramOptions) -> io::Result<()> {
    let int = |value: u32| libc::c_int::try_from(value).unwrap_or(libc::c_int::MAX);
    if let Some(bytes) = options.send_buffer {
        option::set(fd, libc::SOL_SOCKET, libc::SO_SNDBUF, int(bytes))?;
    }
    if let Some(bytes) = options.receive_buffer {
        option::set(fd, libc::SOL_SOCKET, libc::SO_RCVBUF, int(bytes))?;
    }
    if let Some(device) = &options.bind_to_device {
        os::bind_to_device(fd, device)?;
    }
    match options.tos {
        0 => {}
        tos => option::set_tos(fd, v4, tos)?,
    }
    match options.priority {
        Some(priority) => os::set_priority(fd, int(priority)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::is_ipv6_supported;
    use crate::poll::{PollFd, poll};

    fn local() -> SocketAddr {
        (Ipv4Addr::LOCALHOST, 0).into()
    }

    #[test]
    fn datagrams_arrive_whole_with_their_sender() {
        let options = DatagramOptions { send_buffer: Some(100_000), tos: 8, ..DatagramOptions::default() };
        let [a, b] = [(); 2].map(|()| Datagram::new(&local(), &options).unwrap());
        a.bind(&local(), false).unwrap();
        b.bind(&local(), false).unwrap();
        let (from, to) = (a.local_address().unwrap(), b.local_address().unwrap());
        let mut buffer = [0; 16];
        assert_eq!(b.receive(&mut buffer).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        a.send(b"hello", &to).unwrap();
        a.send(b"", &to).unwrap();
        assert_eq!(b.receive(&mut buffer).unwrap(), (5, from));
        assert_eq!(&buffer[..5], b"hello");
        assert_eq!(b.receive(&mut buffer).unwrap(), (0, from));
    }

    #[test]
    fn a_v6_socket_reaches_v4_hosts() {
        if !is_ipv6_supported() {
            return;
        }
        let options = DatagramOptions { tos: 8, ..DatagramOptions::default() };
        let v6 = Datagram::new(&(std::net::Ipv6Addr::UNSPECIFIED, 0).into(), &options).unwrap();
        let v4 = Datagram::new(&local(), &DatagramOptions::default()).unwrap();
        v4.bind(&local(), false).unwrap();
        let port = v4.local_address().unwrap().port();
        v6.send(b"hello", &(Ipv4Addr::LOCALHOST.to_ipv6_mapped(), port).into()).unwrap();
        let mut fds = [PollFd::new(v4.as_fd().as_raw_fd(), PollFd::IN)];
        assert_eq!(poll(&mut fds, None).unwrap(), 1);
        assert_eq!(v4.receive(&mut [0; 16]).unwrap().0, 5);
    }

    #[test]
    fn addresses_are_shared_only_if_asked() {
        let [a, b, c] = [(); 3].map(|()| Datagram::new(&local(), &DatagramOptions::default()).unwrap());
        a.bind(&local(), true).unwrap();
        let address = a.local_address().unwrap();
        b.bind(&address, true).unwrap();
        assert_eq!(c.bind(&address, false).unwrap_err().kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn groups_joined_by_others_are_not_received() {
        let loopback = MulticastInterface::Address(Ipv4Addr::LOCALHOST);
        let groups = [1, 2].map(|last| Ipv4Addr::new(239, 255, 77, last));
        let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let new = || Datagram::new(&any, &DatagramOptions::default()).unwrap();
        let (first, second, sender) = (new(), new(), new());
        first.bind(&any, true).unwrap();
        let port = first.local_address().unwrap().port();
        second.bind(&(Ipv4Addr::UNSPECIFIED, port).into(), true).unwrap();
        for (socket, group) in [&first, &second].into_iter().zip(groups) {
            socket.join(group.into(), loopback).unwrap();
        }
        sender.set_multicast(true, 1, true, loopback).unwrap();
        for (word, group) in [(b"second", groups[1]), (b"first.", groups[0])] {
            sender.send(word, &(group, port).into()).unwrap();
        }
        for (socket, word) in [(&first, b"first."), (&second, b"second")] {
            let mut fds = [PollFd::new(socket.as_fd().as_raw_fd(), PollFd::IN)];
            assert_eq!(poll(&mut fds, None).unwrap(), 1);
            let mut buffer = [0; 16];
            let (n, _) = socket.receive(&mut buffer).unwrap();
            assert_eq!(&buffer[..n], word);
        }
    }

    #[test]
    fn multicast_is_set_by_family() {
        for like in [local(), (std::net::Ipv6Addr::LOCALHOST, 0).into()] {
            let Ok(socket) = Datagram::new(&like, &DatagramOptions::default()) else { continue };
            socket.set_multicast(like.is_ipv4(), 3, false, MulticastInterface::Any).unwrap();
            let interface = match like.is_ipv4() {
                true => MulticastInterface::Address(Ipv4Addr::LOCALHOST),
                false => MulticastInterface::Index(1),
            };
            socket.set_multicast(like.is_ipv4(), 1000, true, interface).unwrap();
        }
    }
}
