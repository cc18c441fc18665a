//! Datagrams: whole, each by itself. They may be lost, and overtake each other.

use super::{Name, inet};
use crate::kernel::{Answer, Body, Event, Fd, Id, Kernel};

/// The longest body over IPv4.
const LONGEST: usize = 65_507;

/// A datagram on its way.
pub(in crate::kernel) struct Flight {
    from: Name,
    to: Name,
    bytes: Vec<u8>,
}

impl Kernel {
    pub(crate) fn send_to(&mut self, fd: Fd, bytes: &[u8], to: &[u8]) -> Answer<usize> {
        inet(to).ok_or(libc::EAFNOSUPPORT)?;
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
            name[2..4].copy_from_slice(&port.to_be_bytes());
            self.must(id).local = Some(name);
        }
        let (again, lost) = (self.faults.again, self.faults.lost);
        if self.goes_wrong(again) {
            return Err(libc::EAGAIN);
        }
        if self.goes_wrong(lost) {
            return Ok(bytes.len());
        }
        let mut from = self.must(id).local.clone().unwrap_or_default();
        if from[4..8] == [0; 4] {
            from[4..8].copy_from_slice(&[127, 0, 0, 1]);
        }
        self.next_id += 1;
        let flight = self.next_id;
        self.flights.insert(flight, Flight { from, to: to.to_vec(), bytes: bytes.to_vec() });
        let delay = self.travel(id);
        self.after(delay, Event::Land(flight));
        Ok(bytes.len())
    }

    /// A datagram arrives. Where there is no room for it, it is lost.
    pub(in crate::kernel) fn land(&mut self, flight: Id) {
        let Some(Flight { from, to, bytes }) = self.flights.remove(&flight) else { return };
        let Some((ip, port)) = inet(&to) else { return };
        let receiver = self.objects.iter().find_map(|(id, object)| match &object.body {
            Body::Socket(socket) if socket.kind == libc::SOCK_DGRAM && !socket.closed => {
                let (own, own_port) = inet(socket.local.as_deref()?)?;
                (own_port == port && (own == ip || own == [0; 16])).then_some(*id)
            }
            _ => None,
        });
        if let Some(there) = receiver.and_then(|id| self.get(id))
            && there.inbox_bytes + bytes.len() <= there.receive_buffer
        {
            there.inbox_bytes += bytes.len() + 1;
            there.datagrams.push_back((from, bytes));
            self.changes += 1;
        }
    }

    /// The next datagram, and its sender.
    pub(crate) fn receive_from(&mut self, fd: Fd) -> Answer<(Name, Vec<u8>)> {
        let (_, socket) = self.socket_of(fd)?;
        let (from, bytes) = socket.datagrams.pop_front().ok_or(libc::EAGAIN)?;
        socket.inbox_bytes -= bytes.len() + 1;
        self.changes += 1;
        Ok((from, bytes))
    }
}
