//! Options of a stream socket, and the code that sets them.

use crate::fd::BorrowedFd;
use crate::libc;
use std::io;

use super::{Family, option, os};

/// Options of a stream socket. An option that does not apply to the socket's family is skipped.
/// `None` and 0 leave the system's default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamOptions {
    /// TCP: send small segments at once. On by default here.
    pub nodelay: bool,
    /// Size of the kernel's send buffer in bytes.
    pub send_buffer: Option<usize>,
    /// Size of the kernel's receive buffer in bytes.
    pub receive_buffer: Option<usize>,
    /// TCP: probe an idle connection.
    pub keepalive: Option<bool>,
    /// TCP: number of unanswered probes after which the connection ends. This option and the next
    /// two need `keepalive`.
    pub keepalive_count: Option<u32>,
    /// TCP: idle time before the first probe, seconds.
    pub keepalive_idle_s: Option<u32>,
    /// TCP: time between probes, seconds.
    pub keepalive_interval_s: Option<u32>,
    /// IP: type of service (IPv4) or traffic class (IPv6).
    pub tos: u8,
    /// Queueing priority of sent packets. Linux only; other systems ignore it.
    pub priority: Option<u32>,
    /// IP: network interface to which the socket is restricted; Linux.
    pub bind_to_device: Option<String>,
    /// TCP: time in milliseconds after which unacknowledged data ends the connection.
    pub max_retransmit_ms: Option<u32>,
    /// Time in microseconds for which a read busy-polls the network device before it sleeps. Linux
    /// only; other systems ignore it.
    pub busy_poll: Option<u32>,
    /// Unix domain: permissions of the file of a bound socket.
    pub mode: Option<u32>,
}

impl Default for StreamOptions {
    fn default() -> Self {
        StreamOptions {
            nodelay: true,
            send_buffer: None,
            receive_buffer: None,
            keepalive: None,
            keepalive_count: None,
            keepalive_idle_s: None,
            keepalive_interval_s: None,
            tos: 0,
            priority: None,
            bind_to_device: None,
            max_retransmit_ms: None,
            busy_poll: None,
            mode: None,
        }
    }
}

impl StreamOptions {
    /// Sets all options on `fd`, a socket of this family. Stops at the first failure.
    pub(super) fn apply(&self, fd: BorrowedFd<'_>, family: Family) -> io::Result<()> {
        if let Some(bytes) = self.send_buffer {
            option::set(fd, libc::SOL_SOCKET, libc::SO_SNDBUF, int(bytes))?;
        }
        if let Some(bytes) = self.receive_buffer {
            option::set(fd, libc::SOL_SOCKET, libc::SO_RCVBUF, int(bytes))?;
        }
        if let Some(micros) = self.busy_poll {
            os::set_busy_poll(fd, int(micros))?;
        }
        if matches!(family, Family::V4 | Family::V6) {
            self.apply_inet(fd, family)?;
        }
        // Set last, because the type of service also sets a priority.
        match self.priority {
            Some(priority) => os::set_priority(fd, int(priority)),
            None => Ok(()),
        }
    }

    fn apply_inet(&self, fd: BorrowedFd<'_>, family: Family) -> io::Result<()> {
        if let Some(device) = &self.bind_to_device {
            os::bind_to_device(fd, device)?;
        }
        if self.tos != 0 {
            option::set_tos(fd, family == Family::V4, self.tos)?;
        }
        option::set(fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, self.nodelay.into())?;
        if let Some(millis) = self.max_retransmit_ms {
            os::set_user_timeout(fd, int(millis))?;
        }
        self.apply_keepalive(fd)
    }

    fn apply_keepalive(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        let Some(keepalive) = self.keepalive else { return Ok(()) };
        option::set(fd, libc::SOL_SOCKET, libc::SO_KEEPALIVE, keepalive.into())?;
        if !keepalive {
            return Ok(());
        }
        let details = [
            (os::KEEPALIVE_COUNT, self.keepalive_count),
            (os::KEEPALIVE_IDLE, self.keepalive_idle_s),
            (os::KEEPALIVE_INTERVAL, self.keepalive_interval_s),
        ];
        // Some systems lack these options.
        for (name, value) in details {
            if let (Some(name), Some(value)) = (name, value) {
                option::set_if_supported(fd, libc::IPPROTO_TCP, name, int(value))?;
            }
        }
        Ok(())
    }
}

fn int(value: impl TryInto<libc::c_int>) -> libc::c_int {
    value.try_into().unwrap_or(libc::c_int::MAX)
}
