//! A stream to an endpoint, by the standard library: `tcp` and `ipc`.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::Duration;

#[cfg_attr(not(target_os = "linux"), path = "dial/no_names.rs")]
mod names;

use crate::failure::{Code, Failure, Result};

/// A connection.
pub enum Connection {
    /// By TCP.
    Tcp(TcpStream),
    /// By a Unix domain socket, with its endpoint.
    Ipc(UnixStream, String),
}

impl Connection {
    /// Connects, or says what is wrong.
    pub fn open(address: &str, timeout: Duration) -> Result<Connection> {
        if let Some(path) = address.strip_prefix("ipc://") {
            let stream = match path.strip_prefix('@') {
                Some(name) => names::connect(name),
                None => UnixStream::connect(path),
            };
            let stream = stream.map_err(|error| refused(address, &error))?;
            return Ok(Connection::Ipc(stream, address.to_owned()));
        }
        let Some(host) = address.strip_prefix("tcp://") else {
            return Err(Failure::usage(format!("{address}: ping knows tcp and ipc")));
        };
        // The source address, if there is one, is not used.
        let host = host.rsplit(';').next().unwrap_or(host);
        let found = host.to_socket_addrs().map_err(|_| {
            Failure::failed(format!("{address}: the host is not known"))
                .hint("is the name right, and DNS reachable?")
        })?;
        let mut outcome = Err(Failure::failed(format!("{address}: the host has no address")));
        for one in found {
            // Zero would be an error of its own.
            match TcpStream::connect_timeout(&one, timeout.max(Duration::from_millis(1))) {
                Ok(stream) => {
                    // Else the round trip could be that of a delayed acknowledgement.
                    let _ = stream.set_nodelay(true);
                    return Ok(Connection::Tcp(stream));
                }
                Err(error) => outcome = Err(refused(address, &error)),
            }
        }
        outcome
    }

    /// The address at the other end.
    pub fn remote(&self) -> String {
        match self {
            Connection::Tcp(stream) => stream.peer_addr().map(|at| format!("tcp://{at}")).unwrap_or_default(),
            Connection::Ipc(_, address) => address.clone(),
        }
    }

    /// How long a read waits.
    pub fn set_timeout(&self, timeout: Duration) -> io::Result<()> {
        let timeout = Some(timeout.max(Duration::from_millis(1)));
        match self {
            Connection::Tcp(stream) => stream.set_read_timeout(timeout),
            Connection::Ipc(stream, _) => stream.set_read_timeout(timeout),
        }
    }

    /// Reads what is there.
    pub fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Connection::Tcp(stream) => stream.read(into),
            Connection::Ipc(stream, _) => stream.read(into),
        }
    }

    /// Writes all.
    pub fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Connection::Tcp(stream) => stream.write_all(bytes),
            Connection::Ipc(stream, _) => stream.write_all(bytes),
        }
    }
}

fn refused(address: &str, error: &io::Error) -> Failure {
    use io::ErrorKind as K;
    match error.kind() {
        K::ConnectionRefused => {
            Failure::failed(format!("{address}: nothing listens there (connection refused)"))
                .hint("is the program running, and bound to this address and port?")
        }
        K::TimedOut => Failure::new(Code::Timeout, format!("{address}: the host does not answer"))
            .hint("is it on, and does a firewall drop what is for this port?"),
        K::HostUnreachable | K::NetworkUnreachable => {
            Failure::failed(format!("{address}: there is no way to the host ({error})"))
        }
        K::NotFound => Failure::failed(format!("{address}: there is no such socket file"))
            .hint("is the program running, and is the path the same there?"),
        K::PermissionDenied => Failure::failed(format!("{address}: this user may not connect to it")),
        _ => Failure::failed(format!("{address}: {error}")),
    }
}
