//! Opens a stream to a `tcp`, `tls+tcp` or `ipc` endpoint with the standard library.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

#[cfg_attr(not(target_os = "linux"), path = "dial/no_names.rs")]
mod names;

use rustix::net::{RecvFlags, getpeername, getsockname, recv, sockopt};
use tautline_proto::Carrier;

use crate::failure::{Code, Failure, Result};
use crate::tls::{self, TlsArgs};

/// Open connection.
pub enum Connection {
    /// TCP connection.
    Tcp(TcpStream),
    /// TCP connection with TLS.
    Carried(TcpStream, Carriage),
    /// Unix domain socket with its endpoint.
    Ipc(UnixStream, String),
}

/// TLS state, and decrypted bytes that were not read yet.
pub struct Carriage {
    carrier: Box<dyn Carrier>,
    plain: Vec<u8>,
}

impl Connection {
    /// Connects to an endpoint.
    pub fn open(address: &str, timeout: Duration, certificates: &TlsArgs) -> Result<Connection> {
        if let Some(path) = address.strip_prefix("ipc://") {
            let stream = match path.strip_prefix('@') {
                Some(name) => names::connect(name),
                None => UnixStream::connect(path),
            };
            let stream = stream.map_err(|error| refused(address, &error))?;
            return Ok(Connection::Ipc(stream, address.to_owned()));
        }
        let (host, is_tls) = match (address.strip_prefix("tcp://"), address.strip_prefix("tls+tcp://")) {
            (Some(host), _) => (host, false),
            (_, Some(host)) => (host, true),
            _ => return Err(Failure::usage(format!("{address}: ping works only with tcp, tls+tcp and ipc"))),
        };
        // Drop the source address, if there is one.
        let host = host.rsplit(';').next().unwrap_or(host);
        let carriage = || -> Result<Carriage> {
            let name = host.rsplit_once(':').map_or(host, |(name, _)| name).trim_matches(['[', ']']);
            let carrier = tls::carrier(certificates, address, name)?;
            Ok(Carriage { carrier, plain: Vec::new() })
        };
        let carriage = is_tls.then(carriage).transpose()?;
        let found = host.to_socket_addrs().map_err(|_| {
            Failure::failed(format!("{address}: the host name is unknown"))
                .hint("check the name, and that DNS is reachable")
        })?;
        let mut outcome = Err(Failure::failed(format!("{address}: the host has no address")));
        for one in found {
            // The standard library rejects a timeout of zero.
            match tcp(&one, timeout.max(Duration::from_millis(1))) {
                Ok(stream) => {
                    // A delayed acknowledgement would distort the round trip.
                    let _ = stream.set_nodelay(true);
                    return Ok(match carriage {
                        Some(carriage) => Connection::Carried(stream, carriage),
                        None => Connection::Tcp(stream),
                    });
                }
                Err(error) => outcome = Err(refused(address, &error)),
            }
        }
        outcome
    }

    /// Returns the address of the peer.
    pub fn remote(&self) -> String {
        match self {
            Connection::Tcp(stream) => stream.peer_addr().map(|at| format!("tcp://{at}")).unwrap_or_default(),
            Connection::Carried(stream, _) => {
                stream.peer_addr().map(|at| format!("tls+tcp://{at}")).unwrap_or_default()
            }
            Connection::Ipc(_, address) => address.clone(),
        }
    }

    /// Sets the timeout of reads.
    pub fn set_timeout(&self, timeout: Duration) -> io::Result<()> {
        let timeout = Some(timeout.max(Duration::from_millis(1)));
        match self {
            Connection::Tcp(stream) | Connection::Carried(stream, _) => stream.set_read_timeout(timeout),
            Connection::Ipc(stream, _) => stream.set_read_timeout(timeout),
        }
    }

    /// Waits for the first byte of the peer, and leaves it unread.
    pub fn peek(&self) -> io::Result<Option<u8>> {
        let mut first = [0];
        let (length, _) = match self {
            Connection::Tcp(stream) | Connection::Carried(stream, _) => {
                recv(stream, &mut first[..], RecvFlags::PEEK)?
            }
            Connection::Ipc(stream, _) => recv(stream, &mut first[..], RecvFlags::PEEK)?,
        };
        Ok((length > 0).then_some(first[0]))
    }

    /// Reads the available bytes.
    pub fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Connection::Tcp(stream) => stream.read(into),
            Connection::Carried(stream, carriage) => carriage.read(stream, into),
            Connection::Ipc(stream, _) => stream.read(into),
        }
    }

    /// Writes all bytes.
    pub fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Connection::Tcp(stream) => stream.write_all(bytes),
            Connection::Carried(stream, carriage) => carriage.write_all(stream, bytes),
            Connection::Ipc(stream, _) => stream.write_all(bytes),
        }
    }
}

/// Connects by TCP. A socket that has connected to itself is refused.
pub fn tcp(address: &SocketAddr, timeout: Duration) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(address, timeout)?;
    refuse_itself(&stream)?;
    Ok(stream)
}

/// `ConnectionRefused` if the two ends of a TCP connection are the same socket. TCP allows that if
/// the system happens to choose the port that is connected to as the local one, and then no server
/// listens there. Closing the socket resets it: in TIME_WAIT, it would keep the port from the
/// server for a minute.
pub fn refuse_itself(stream: &impl AsFd) -> io::Result<()> {
    if Some(getsockname(stream)?) != getpeername(stream)? {
        return Ok(());
    }
    sockopt::set_socket_linger(stream, Some(Duration::ZERO))?;
    Err(io::ErrorKind::ConnectionRefused.into())
}

impl Carriage {
    fn write_all(&mut self, stream: &mut TcpStream, bytes: &[u8]) -> io::Result<()> {
        let mut wire = Vec::new();
        self.carrier.seal(bytes, &mut wire);
        stream.write_all(&wire)
    }

    fn read(&mut self, stream: &mut TcpStream, into: &mut [u8]) -> io::Result<usize> {
        let mut wire = [0; 4096];
        while self.plain.is_empty() && !self.carrier.is_closed() {
            let length = stream.read(&mut wire)?;
            if length == 0 {
                return Ok(0);
            }
            let opened = self.carrier.open(&wire[..length], &mut self.plain);
            // Send the reply of TLS, which may be an alert.
            let answered = self.write_all(stream, &[]);
            opened.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?;
            answered?;
        }
        let length = self.plain.len().min(into.len());
        into[..length].copy_from_slice(&self.plain[..length]);
        self.plain.drain(..length);
        Ok(length)
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
            .hint("is the host on, and does a firewall block this port?"),
        K::HostUnreachable | K::NetworkUnreachable => {
            Failure::failed(format!("{address}: the host is unreachable ({error})"))
        }
        K::NotFound => Failure::failed(format!("{address}: there is no such socket file"))
            .hint("is the program running, and is the path the same there?"),
        K::PermissionDenied => Failure::failed(format!("{address}: this user may not connect to it")),
        _ => Failure::failed(format!("{address}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use rustix::net::{AddressFamily, SocketType, bind, connect, socket};

    use super::*;

    #[test]
    fn socket_that_connects_to_itself_is_refused_and_frees_the_port() {
        let fd = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        bind(&fd, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let own = SocketAddr::try_from(getsockname(&fd).unwrap()).unwrap();
        connect(&fd, &own).unwrap();
        let stream = TcpStream::from(fd);
        assert_eq!(stream.local_addr().unwrap(), stream.peer_addr().unwrap());
        assert_eq!(refuse_itself(&stream).unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        drop(stream);
        // A socket without SO_REUSEADDR can have the port: it is not in TIME_WAIT.
        let plain = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        bind(&plain, &own).unwrap();
    }

    #[test]
    fn connection_to_a_listener_is_kept() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = tcp(&listener.local_addr().unwrap(), Duration::from_secs(60)).unwrap();
        assert_eq!(stream.peer_addr().unwrap(), listener.local_addr().unwrap());
    }
}
