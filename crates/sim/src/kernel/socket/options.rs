//! Options and names of a socket.

use super::{Name, SO_PASSRIGHTS, SocketState};
use crate::kernel::{Fd, Kernel, SysResult};

impl Kernel {
    pub(crate) fn set_option(&mut self, fd: Fd, level: i32, name: i32, value: &[u8]) -> SysResult {
        if (level, name) == (libc::SOL_SOCKET, SO_PASSRIGHTS) && self.faults.old {
            return Err(libc::ENOPROTOOPT);
        }
        let (_, socket) = self.socket_of(fd)?;
        if let Some(answer) = socket.set_interface(level, name, value) {
            return answer;
        }
        let number = value.first_chunk::<4>().map_or(0, |bytes| i32::from_ne_bytes(*bytes));
        match (level, name) {
            (libc::SOL_SOCKET, libc::SO_SNDBUF) => socket.send_buffer = (number.max(1152) as usize) * 2,
            (libc::SOL_SOCKET, libc::SO_RCVBUF) => socket.receive_buffer = (number.max(1152) as usize) * 2,
            _ => {}
        }
        socket.options.insert((level, name), value.to_vec());
        Ok(0)
    }

    pub(crate) fn option(&mut self, fd: Fd, level: i32, name: i32) -> SysResult<Vec<u8>> {
        let (_, socket) = self.socket_of(fd)?;
        let number = match (level, name) {
            (libc::SOL_SOCKET, libc::SO_ERROR) => std::mem::take(&mut socket.error),
            (libc::SOL_SOCKET, libc::SO_TYPE) => socket.kind,
            (libc::SOL_SOCKET, libc::SO_DOMAIN) => socket.domain,
            (libc::SOL_SOCKET, libc::SO_PROTOCOL) if socket.is_unix() => 0,
            (libc::SOL_SOCKET, libc::SO_PROTOCOL) => libc::IPPROTO_TCP,
            (libc::SOL_SOCKET, libc::SO_ACCEPTCONN) => (socket.state == SocketState::Listening).into(),
            (libc::SOL_SOCKET, libc::SO_SNDBUF) => socket.send_buffer as i32,
            (libc::SOL_SOCKET, libc::SO_RCVBUF) => socket.receive_buffer as i32,
            other => match socket.options.get(&other) {
                Some(value) => return Ok(value.clone()),
                None => 0,
            },
        };
        Ok(number.to_ne_bytes().to_vec())
    }

    pub(crate) fn name(&mut self, fd: Fd, of_peer: bool) -> SysResult<Name> {
        let (_, socket) = self.socket_of(fd)?;
        if of_peer && socket.state != SocketState::Connected {
            return Err(libc::ENOTCONN);
        }
        let name = if of_peer { &socket.remote } else { &socket.local };
        let unnamed = if socket.is_unix() { 2 } else { 16 };
        Ok(name.clone().unwrap_or_else(|| {
            let mut name = vec![0; unnamed];
            name[..2].copy_from_slice(&(socket.domain as u16).to_ne_bytes());
            name
        }))
    }
}
