//! `udp` endpoints: bind and connect for RADIO, DISH and DGRAM, zmq_udp(7).

use super::Socket;
use super::endpoints::EndpointKind;
use crate::conn::PeerInfo;
use crate::conn::inproc;
use crate::driver::{DatagramPort, Form};
use crate::endpoint::{Endpoint, UdpEndpoint};
use crate::error::Error;
use crate::pattern::{self, Datagrams};
use crate::pipe::{Pipe, PipeId};
use crate::transport::ResolvedAddress;
use crate::transport::udp::{self, Destination};
use std::net::SocketAddr;
use tautline_io::net::Datagram;
use tautline_io::resolve;
use tautline_queue::sync::Arc;

impl Socket {
    fn use_of_datagrams(&self) -> Datagrams {
        pattern::entry(self.socket_type).map_or(Datagrams::Never, |entry| entry.datagrams)
    }

    /// True if this is an endpoint for datagrams. Fails with IncompatibleProtocol if the socket
    /// type does not support datagrams.
    pub(super) fn is_for_datagrams(&self, endpoint: &Endpoint) -> Result<bool, Error> {
        match (endpoint, self.use_of_datagrams()) {
            (Endpoint::Datagram(_), Datagrams::Never) => Err(Error::IncompatibleProtocol),
            // Datagrams have no mechanisms. A fallback to no security would be worse than a
            // refusal.
            (Endpoint::Datagram(_), _) if self.pipes.options.mechanism.has_credentials() => {
                Err(Error::NotSupported)
            }
            (Endpoint::Datagram(_), _) => Ok(true),
            (_, Datagrams::Raw) => Err(Error::IncompatibleProtocol),
            _ => Ok(false),
        }
    }

    /// The form of the datagrams that the socket receives. Fails with IncompatibleProtocol if it
    /// cannot be bound to `udp`.
    pub(super) fn received_form(&self) -> Result<Form, Error> {
        match self.use_of_datagrams() {
            Datagrams::ReceiveGroups => Ok(Form::Groups),
            Datagrams::Raw => Ok(Form::Raw),
            Datagrams::SendGroups | Datagrams::Never => Err(Error::IncompatibleProtocol),
        }
    }

    pub(super) fn bind_datagrams(
        &mut self,
        given: &str,
        endpoint: &Endpoint,
        at: ResolvedAddress,
    ) -> Result<(), Error> {
        let form = self.received_form()?;
        let udp = read(endpoint)?;
        let (socket, name) = udp::receiver(&udp, at, &self.pipes.options)?;
        self.open_port(given, &name, socket, form, true, None)?;
        Ok(())
    }

    pub(super) fn connect_datagrams(&mut self, given: &str, endpoint: &Endpoint) -> Result<PipeId, Error> {
        if self.use_of_datagrams() != Datagrams::SendGroups {
            return Err(Error::IncompatibleProtocol);
        }
        let udp = read(endpoint)?;
        let (socket, destination) = udp::sender(&udp, &self.pipes.options)?;
        let address = match &destination {
            Destination::Known(address) => Some(*address),
            // Messages wait until the name is resolved.
            Destination::Named { .. } => None,
        };
        let (id, port) = self.open_port(given, given, socket, Form::Groups, false, address)?;
        if let (Destination::Named { host, port: number, family }, Some(site)) = (destination, &self.site) {
            let first = |found: resolve::LookupResult| found.ok().and_then(|found| found.into_iter().next());
            let found = move |port: Arc<DatagramPort>, found| port.aim(first(found));
            if site.driver.resolver().resolve(host.clone(), number, family, &port, found).is_err() {
                // If the resolver thread is unavailable, this thread waits for the system, as
                // libzmq's callers always do.
                port.aim(first(resolve::addresses(&host, number, family)));
            }
        }
        Ok(id)
    }

    fn open_port(
        &mut self,
        given: &str,
        name: &str,
        socket: Datagram,
        form: Form,
        receives: bool,
        destination: Option<SocketAddr>,
    ) -> Result<(PipeId, Arc<DatagramPort>), Error> {
        let site = self.site.clone().ok_or(Error::NoThread)?;
        let nobody = Box::new(PeerInfo::default());
        let (mine, far) = inproc::pair(&self.pipes.options, [nobody.clone(), nobody]);
        mine.end.mark_bound();
        let port = DatagramPort::start(&site, name, socket, far, form, receives, destination)?;
        let pipe = Pipe::inproc(mine, self.pipes.options.send_hwm);
        // A DGRAM has one endpoint. If the pattern refuses a second one, its port ends with its
        // pipe.
        let id = self.attach(pipe).ok_or(Error::Invalid)?;
        self.show_endpoint(given, name, receives, "");
        self.add_endpoint(given, EndpointKind::Datagram(id, port.clone()));
        self.last_endpoint = name.into();
        Ok((id, port))
    }
}

fn read(endpoint: &Endpoint) -> Result<UdpEndpoint, Error> {
    match endpoint {
        Endpoint::Datagram(address) => UdpEndpoint::parse(address),
        _ => Err(Error::Invalid),
    }
}
