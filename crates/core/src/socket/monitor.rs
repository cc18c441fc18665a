//! zmq_socket_monitor(3): a socket's events as messages on an inproc PAIR socket.

use super::{Flags, Socket};
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::monitor::EventSink;
use crate::transport;
use std::time::Duration;
use tautline_proto::SocketType;

/// Turns events into messages of two parts: number and value, then the endpoint.
struct MonitorSocket(Socket);

impl EventSink for MonitorSocket {
    fn event(&mut self, event: u32, value: u32, endpoint: &str) {
        let mut head = [0; 6];
        head[..2].copy_from_slice(&(event as u16).to_ne_bytes());
        head[2..].copy_from_slice(&value.to_ne_bytes());
        // A monitor that nobody reads must not stop the connections it watches: at the high-water mark events are lost.
        if self.0.send(&head, Flags(Flags::DONTWAIT.0 | Flags::MORE.0)).is_ok() {
            let _ = self.0.send(endpoint.as_bytes(), Flags::DONTWAIT);
        }
    }
}

impl Socket {
    /// From now on reports the events of the mask `events` on a PAIR socket bound to `endpoint`, which must be inproc; `None` ends it.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::ProtocolNotSupported`] if it is not inproc, [`Error::AddressInUse`], [`Error::Terminated`].
    pub fn monitor(&mut self, endpoint: Option<&str>, events: i32) -> Result<(), Error> {
        self.check_alive()?;
        let Some(endpoint) = endpoint else {
            self.tap.listen(0, None);
            return Ok(());
        };
        if !matches!(transport::parse(endpoint)?, Endpoint::Inproc(_)) {
            return Err(Error::ProtocolNotSupported);
        }
        self.tap.listen(0, None);
        let mut socket = self.context.socket(SocketType::Pair)?;
        socket.pipes.options.linger = Some(Duration::ZERO);
        socket.bind(endpoint)?;
        self.tap.listen(events as u32, Some(Box::new(MonitorSocket(socket))));
        Ok(())
    }
}
