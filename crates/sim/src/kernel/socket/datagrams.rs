//! Datagrams. Each is delivered whole. They may be lost, duplicated and reordered.

use super::interfaces::is_group;
use super::{Name, inet};
use crate::kernel::{Body, Event, Fd, INTERFACES, Id, Kernel, SysResult};

/// The longest body over IPv4.
const LONGEST: usize = 65_507;

/// A datagram in flight.
pub(in crate::kernel) struct DatagramInFlight {
    from: Name,
    to: Name,
    /// Index of the interface, if the target is a multicast group.
    interface: Option<u32>,
    bytes: Vec<u8>,
}

impl Kernel {
    pub(crate) fn send_to(&mut self, fd: Fd, bytes: &[u8], to: &[u8]) -> SysResult<usize> {
        let (ip, _) = inet(to).ok_or(libc::EAFNOSUPPORT)?;
        let (id, socket) = self.socket_of(fd)?;
        if socket.kind != libc::SOCK_DGRAM {
            return Err(libc::EOPNOTSUPP);
        }
        if bytes.len() > LONGEST {
            return Err(libc::EMSGSIZE);
        }
        if socket.local.is_none() {
            let port = self.free_port();
            let mut name = to.to_vec();
            name[4..].fill(0);
            name[2..4].copy_from_slice(&port.to_be_bytes());
            self.must(id).local = Some(name);
        }
        let (again, lost) = (self.faults.again, self.faults.lost);
        if self.draw_fault(again) {
            return Err(libc::EAGAIN);
        }
        if self.draw_fault(lost) {
            return Ok(bytes.len());
        }
        let interface = match is_group(&ip) {
            true => match self.must(id).outgoing_interface(to) {
                None => return Ok(bytes.len()),
                some => some,
            },
            false => None,
        };
        let from = self.sender(id, interface);
        let doubled = self.faults.doubled;
        for _ in 0..1 + u32::from(self.draw_fault(doubled)) {
            self.next_id += 1;
            let flight = self.next_id;
            let (from, to) = (from.clone(), to.to_vec());
            self.flights.insert(flight, DatagramInFlight { from, to, interface, bytes: bytes.to_vec() });
            let delay = self.travel(id);
            self.schedule_after(delay, Event::DatagramArrives(flight));
        }
        Ok(bytes.len())
    }

    /// Returns the sender address that a receiver sees.
    fn sender(&mut self, id: Id, interface: Option<u32>) -> Name {
        let mut name = self.must(id).local.clone().unwrap_or_default();
        let wanted = interface.unwrap_or(1);
        let Some(own) = INTERFACES.iter().find(|one| one.index == wanted) else { return name };
        match name.len() {
            _ if inet(&name).is_none_or(|(ip, _)| ip != [0; 16]) => {}
            28.. => name[8..24].copy_from_slice(&own.v6),
            _ => name[4..8].copy_from_slice(&own.v4),
        }
        name
    }

    /// True if another open datagram socket of the same domain receives at this address and port,
    /// and at least one of the two has not set SO_REUSEPORT. The unspecified address overlaps all
    /// others.
    pub(super) fn is_taken(&self, id: Id, ip: &[u8; 16], port: u16) -> bool {
        let shares = (libc::SOL_SOCKET, libc::SO_REUSEPORT);
        let socket = |id: &Id| match self.objects.get(id).map(|object| &object.body) {
            Some(Body::Socket(socket)) if socket.kind == libc::SOCK_DGRAM && !socket.closed => Some(socket),
            _ => None,
        };
        let Some(own) = socket(&id) else { return false };
        let others = self.objects.keys().filter(|other| **other != id).filter_map(socket);
        let mut there = others.filter(|other| {
            other.domain == own.domain
                && other.local.as_deref().and_then(inet).is_some_and(|(other_ip, other_port)| {
                    other_port == port && (other_ip == *ip || other_ip == [0; 16] || *ip == [0; 16])
                })
        });
        there.any(|other| !(own.options.contains_key(&shares) && other.options.contains_key(&shares)))
    }

    /// Delivers a datagram. If there is no room, drops it.
    pub(in crate::kernel) fn deliver_datagram(&mut self, flight: Id) {
        let Some(DatagramInFlight { from, to, interface, bytes }) = self.flights.remove(&flight) else {
            return;
        };
        let Some((ip, port)) = inet(&to) else { return };
        if let Some(interface) = interface {
            for id in self.members(&ip, port, interface) {
                let lost = self.faults.lost;
                if !self.draw_fault(lost) {
                    self.put(id, &from, &bytes);
                }
            }
            return;
        }
        let receiver = self.objects.iter().find_map(|(id, object)| match &object.body {
            Body::Socket(socket) if socket.kind == libc::SOCK_DGRAM && !socket.closed => {
                let (own, own_port) = inet(socket.local.as_deref()?)?;
                (own_port == port && (own == ip || own == [0; 16])).then_some(*id)
            }
            _ => None,
        });
        if let Some(id) = receiver {
            self.put(id, &from, &bytes);
        }
    }

    /// Puts a datagram into the inbox of a socket. Drops it if the inbox is full.
    fn put(&mut self, id: Id, from: &Name, bytes: &[u8]) {
        if let Some(there) = self.get(id)
            && there.inbox_bytes + bytes.len() <= there.receive_buffer
        {
            there.inbox_bytes += bytes.len() + 1;
            there.datagrams.push_back((from.clone(), bytes.to_vec()));
            self.changes += 1;
        }
    }

    /// Returns the next datagram and its sender.
    pub(crate) fn receive_from(&mut self, fd: Fd) -> SysResult<(Name, Vec<u8>)> {
        let (_, socket) = self.socket_of(fd)?;
        let (from, bytes) = socket.datagrams.pop_front().ok_or(libc::EAGAIN)?;
        socket.inbox_bytes -= bytes.len() + 1;
        self.changes += 1;
        Ok((from, bytes))
    }
}
