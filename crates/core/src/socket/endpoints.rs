//! bind, connect, unbind and disconnect (zmq_bind(3) and related calls).

pub(super) mod names;

use self::names::{NameBinding, bind_name, connect_name, disconnect_paths};
use super::Socket;
use super::topics::restrict_by_policy;
use crate::conn::{PeerInfo, inproc};
use crate::context::{admission, check_policy};
use crate::driver::Finder;
use crate::driver::{Acceptor, DatagramPort, Dialer, Site};
use crate::endpoint::Endpoint;
use crate::error::{Error, check_shortage};
use crate::host::{Allowed, BoundEndpoint, Call, Denied, is_secure};
use crate::monitor::{Ends, EventDispatcher, event};
use crate::pipe::{Pipe, PipeId};
use crate::transport::{self, AddressQuery, ConnectTarget, Failed, Leftover, ResolvedAddress};
use tautline_queue::message::Metadata;
use tautline_queue::sync::Arc;

/// An endpoint of the socket, by the text that the program gave.
pub(super) struct EndpointEntry {
    given: Arc<str>,
    kind: EndpointKind,
}

pub(super) enum EndpointKind {
    Bound(Arc<Acceptor>),
    Connected(Arc<Dialer>),
    InprocBound,
    InprocConnected(PipeId),
    /// The pipe to an endpoint for datagrams, and the endpoint.
    Datagram(PipeId, Arc<DatagramPort>),
    /// A bound name. The endpoints that were bound for it have their own entries.
    BoundName(Box<NameBinding>),
    /// A connected name.
    ConnectedName(Arc<Finder>),
}

impl EndpointEntry {
    /// True if the program gave this text and the endpoint is bound, or connected, as `bound` says.
    pub(super) fn is(&self, given: &str, bound: bool) -> bool {
        let is_bound = match &self.kind {
            EndpointKind::Bound(_) | EndpointKind::InprocBound => true,
            EndpointKind::Connected(_) | EndpointKind::InprocConnected(_) => false,
            EndpointKind::Datagram(_, port) => port.receives(),
            EndpointKind::BoundName(_) => true,
            EndpointKind::ConnectedName(_) => false,
        };
        *self.given == *given && is_bound == bound
    }

    /// The finder of a connected name.
    pub(super) fn finder(&self) -> Option<&Arc<Finder>> {
        match &self.kind {
            EndpointKind::ConnectedName(finder) => Some(finder),
            _ => None,
        }
    }

    /// The endpoints that were bound for a bound name.
    fn parts(&self) -> &[String] {
        match &self.kind {
            EndpointKind::BoundName(offered) => &offered.parts,
            _ => &[],
        }
    }

    /// True if the endpoint is connected and has given up for good.
    fn is_stopped(&self) -> bool {
        matches!(&self.kind, EndpointKind::Connected(dialer) if dialer.is_stopped())
    }
}

impl Socket {
    /// Accepts peers at `endpoint`, zmq_bind(3). A host name is resolved first; the call waits for
    /// the answer.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::ProtocolNotSupported`], [`Error::IncompatibleProtocol`],
    /// [`Error::AddressInUse`], [`Error::AddressNotAvailable`], [`Error::NoDevice`],
    /// [`Error::Terminated`], [`Error::NoThread`], or a system error.
    pub fn bind(&mut self, endpoint: &str) -> Result<(), Error> {
        let (parsed, question) = self.prepare_bind(endpoint)?;
        let at = question.map(|question| question.ask()).transpose();
        self.bind_at(endpoint, &parsed, at)
    }

    /// First step of [`Socket::bind`]: returns the endpoint to bind, and the question for the
    /// resolver, if there is one.
    pub(crate) fn prepare_bind(&mut self, endpoint: &str) -> Result<(Endpoint, Option<AddressQuery>), Error> {
        self.check_alive()?;
        check_shortage().map_err(Error::from).inspect_err(|error| self.bind_failed(endpoint, *error))?;
        let parsed = Endpoint::parse(endpoint)
            .and_then(|parsed| parsed.check_bind().map(|()| parsed))
            .inspect_err(|error| self.bind_failed(endpoint, *error))?;
        if self.is_for_datagrams(&parsed)? {
            self.received_form()?;
        }
        let question = transport::question(&parsed, &self.pipes.options);
        Ok((parsed, question))
    }

    /// Second step of [`Socket::bind`]. `at` is the answer to the question.
    pub(crate) fn bind_at(
        &mut self,
        endpoint: &str,
        parsed: &Endpoint,
        at: Result<ResolvedAddress, Error>,
    ) -> Result<(), Error> {
        if let Endpoint::Name(name) = parsed {
            return bind_name(self, endpoint, name);
        }
        if let (Endpoint::Datagram(_), Ok(at)) = (parsed, &at) {
            let allowed = check_policy(&self.context, Call::Bind, endpoint, parsed, *at, &self.pipes.options);
            report_denied(&self.events, allowed, endpoint, event::BIND_FAILED)?;
            return self.bind_datagrams(endpoint, parsed, *at);
        }
        if let Endpoint::Inproc(name) = parsed {
            let allowed =
                check_policy(&self.context, Call::Bind, endpoint, parsed, None, &self.pipes.options);
            report_denied(&self.events, allowed, endpoint, event::BIND_FAILED)?;
            let offers = self.context.bind_inproc(
                name,
                self.id,
                &self.inbox,
                &self.pipes.options,
                self.own_peer_info(),
            )?;
            self.show_endpoint(endpoint, endpoint, true, "");
            self.add_endpoint(endpoint, EndpointKind::InprocBound);
            self.last_endpoint = endpoint.into();
            for offer in offers {
                self.attach_inproc(offer);
            }
            return Ok(());
        }
        let site = self.site_for_streams()?;
        self.context.share_options(&mut self.pipes.options);
        let allowed = match at {
            Ok(at) => check_policy(&self.context, Call::Bind, endpoint, parsed, at, &self.pipes.options),
            Err(_) => Ok(None),
        };
        let allowed = report_denied(&self.events, allowed, endpoint, event::BIND_FAILED)?;
        let Allowed { options: own, carrying, bind } = allowed.unwrap_or_default();
        let options = own.unwrap_or_else(|| self.pipes.options.clone());
        match at.map_err(Failed::from).and_then(|at| transport::listen(parsed, at, &options)) {
            Ok(mut bound) => {
                let checked = bind.as_ref().map_or(Ok(()), |permit| {
                    permit.check(&BoundEndpoint {
                        endpoint: &bound.endpoint,
                        address: bound.listener.local_address().ok(),
                        is_foreign: self.pipes.options.use_fd.is_some(),
                    })
                });
                if let Err(denied) = checked {
                    bound.unlink.iter().for_each(Leftover::remove);
                    bound.listener.give_back();
                    return report_denied(&self.events, Err(denied), endpoint, event::BIND_FAILED).map(drop);
                }
                self.last_endpoint = bound.endpoint.as_str().into();
                let is_secure = carrying.is_some() || is_secure(&options, endpoint);
                let gate = bind.map(|permit| permit.gate(options.mechanism.name(), is_secure));
                bound.carrying = carrying.or(bound.carrying);
                let mechanism = if bound.carrying.is_some() { "TLS" } else { options.mechanism.name() };
                self.show_endpoint(endpoint, &bound.endpoint, true, mechanism);
                let acceptor = Acceptor::start(&site, options, bound, gate);
                self.add_endpoint(endpoint, EndpointKind::Bound(acceptor));
                Ok(())
            }
            Err(Failed { error, fd }) => {
                if let Some(fd) = fd {
                    let name = transport::failed_listener_name(parsed, endpoint);
                    self.events.emit(event::CLOSED, fd as u32, &Ends::bound(name));
                }
                self.bind_failed(endpoint, error);
                Err(error)
            }
        }
    }

    /// Reports that binding a stream endpoint has failed. As in libzmq, the event has no transport
    /// prefix.
    fn bind_failed(&self, endpoint: &str, error: Error) {
        if let Some(address) = transport::stream_address(endpoint) {
            self.events.emit(event::BIND_FAILED, error.errno() as u32, &Ends::bound(address));
        }
    }

    /// Connects to `endpoint`, and reconnects when the connection is lost, zmq_connect(3).
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::ProtocolNotSupported`], [`Error::IncompatibleProtocol`],
    /// [`Error::Terminated`], [`Error::NoThread`].
    pub fn connect(&mut self, endpoint: &str) -> Result<(), Error> {
        self.connect_pipe(endpoint).map(|_| ())
    }

    /// Connects and returns the new pipe. Returns `None` if there is no pipe, or not yet.
    pub(super) fn connect_pipe(&mut self, endpoint: &str) -> Result<Option<PipeId>, Error> {
        self.check_alive()?;
        check_shortage()?;
        let parsed = Endpoint::parse(endpoint)?;
        let is_datagram = self.is_for_datagrams(&parsed)?;
        if let Endpoint::Inproc(_) | Endpoint::Datagram(_) = parsed {
            let allowed =
                check_policy(&self.context, Call::Connect, endpoint, &parsed, None, &self.pipes.options);
            report_denied(&self.events, allowed, endpoint, event::HANDSHAKE_FAILED_NO_DETAIL)?;
        }
        if is_datagram {
            return self.connect_datagrams(endpoint, &parsed).map(Some);
        }
        if let Endpoint::Inproc(name) = &parsed {
            return self.connect_inproc(endpoint, name);
        }
        if let Endpoint::Name(name) = &parsed {
            return connect_name(self, endpoint, name);
        }
        let site = self.site_for_streams()?;
        self.end_refused(endpoint);
        // If an earlier connect to this endpoint has given up, this call connects again.
        self.endpoints.retain(|entry| *entry.given != *endpoint || !entry.is_stopped());
        if self.pipes.options.type_info().connects_once
            && self.endpoints.iter().any(|entry| *entry.given == *endpoint)
        {
            // These types need only one connection to a peer. libzmq ignores the second call too.
            return Ok(None);
        }
        let mut target = ConnectTarget::new(parsed, &self.pipes.options)?;
        // The options of this endpoint keep the routing id: with ZMQ_IMMEDIATE its pipe is created
        // later.
        self.context.share_options(&mut self.pipes.options);
        let allowed =
            check_policy(&self.context, Call::Connect, endpoint, &target.endpoint, None, &self.pipes.options);
        let allowed = report_denied(&self.events, allowed, endpoint, event::HANDSHAKE_FAILED_NO_DETAIL)?;
        let Allowed { options: own, carrying, .. } = allowed.unwrap_or_default();
        target.apply_policy(own.as_deref(), carrying);
        let options = own.unwrap_or_else(|| self.pipes.options.clone());
        if options.connect_routing_id.is_some() {
            self.pipes.options_mut().connect_routing_id = None;
        }
        let (connection, id) = if options.immediate {
            (None, None)
        } else {
            let (connection, mut new) = site.new_connection(options.clone());
            new.connected_here = true;
            let Some(id) = self.attach(Pipe::wire(new)) else { return Ok(None) };
            (Some(connection), Some(id))
        };
        self.show_endpoints();
        self.show_connected(endpoint, &target.endpoint);
        if let Some(id) = id {
            self.show_target(id, endpoint);
        }
        let given = self.context.share_endpoint(endpoint);
        let dialer = Dialer::start(&site, options, target, given.clone(), connection);
        self.add_endpoint(given.clone(), EndpointKind::Connected(dialer));
        self.last_endpoint = given;
        Ok(id)
    }

    fn connect_inproc(&mut self, endpoint: &str, name: &str) -> Result<Option<PipeId>, Error> {
        let nobody = Box::new(PeerInfo::default());
        let (mine, theirs) = inproc::pair(&self.pipes.options, [nobody, self.own_peer_info()]);
        let send_hwm = self.pipes.options.send_hwm;
        let mut pipe = Pipe::inproc(mine, send_hwm);
        if self.pipes.options.connect_routing_id.is_some() {
            pipe.peer.routing_id = *self.pipes.options_mut().connect_routing_id.take().unwrap_or_default();
        }
        let Some(id) = self.attach(pipe) else { return Ok(None) };
        if let Some(peer) = self.context.connect_inproc(name, theirs) {
            self.ready(id, |pipe| pipe.set_peer(peer), false);
        }
        self.show_endpoint(endpoint, endpoint, false, "");
        self.show_target(id, endpoint);
        self.add_endpoint(endpoint, EndpointKind::InprocConnected(id));
        self.last_endpoint = endpoint.into();
        Ok(Some(id))
    }

    /// Stops accepting peers at `endpoint`, zmq_unbind(3), and disconnects the accepted peers. No
    /// more messages are sent to them. Messages that they have sent can still be received.
    ///
    /// # Errors
    /// [`Error::NoEntry`] if it is not bound (or connected) here, [`Error::Invalid`],
    /// [`Error::Terminated`].
    pub fn unbind(&mut self, endpoint: &str) -> Result<(), Error> {
        self.end_endpoint(endpoint)
    }

    /// Ends the connections to `endpoint`, zmq_disconnect(3). Queued messages are still sent for at
    /// most ZMQ_LINGER.
    ///
    /// # Errors
    /// [`Error::NoEntry`] if it is not connected (or bound) here, [`Error::Invalid`],
    /// [`Error::Terminated`].
    pub fn disconnect(&mut self, endpoint: &str) -> Result<(), Error> {
        self.end_endpoint(endpoint)
    }

    /// Ends all endpoints of this name at once. As in libzmq, it does not matter how often the name
    /// was bound or connected.
    fn end_endpoint(&mut self, endpoint: &str) -> Result<(), Error> {
        let Some(question) = self.end_or_ask(endpoint)? else { return Ok(()) };
        let at = question.ask().map_err(|_| Error::NoEntry)?;
        self.end_named(endpoint, Some(at))
    }

    /// Ends all endpoints of this name. If there is no match, but a listener may match after this
    /// host name is resolved, returns the question for the resolver. The caller then calls
    /// [`Socket::end_named`].
    pub(crate) fn end_or_ask(&mut self, endpoint: &str) -> Result<Option<AddressQuery>, Error> {
        let outcome = self.end_named(endpoint, None).map(|()| None);
        if outcome != Err(Error::NoEntry) || !self.has_listener() {
            return outcome;
        }
        let question = transport::question(&Endpoint::parse(endpoint)?, &self.pipes.options);
        question.filter(AddressQuery::has_port).map(Some).ok_or(Error::NoEntry)
    }

    fn has_listener(&self) -> bool {
        self.endpoints.iter().any(|entry| matches!(entry.kind, EndpointKind::Bound(_)))
    }

    /// Ends all endpoints of this name. `at` is the address of the named host, if the resolver was
    /// asked.
    pub(crate) fn end_named(&mut self, endpoint: &str, at: ResolvedAddress) -> Result<(), Error> {
        self.check_alive()?;
        let parsed = Endpoint::parse(endpoint)?;
        self.forget_ended();
        let local =
            self.has_listener().then(|| transport::local_name(&parsed, at, &self.pipes.options)).flatten();
        let parts: Vec<String> = self
            .endpoints
            .iter()
            .filter(|entry| *entry.given == *endpoint)
            .flat_map(|entry| entry.parts().iter().cloned())
            .collect();
        let is_named = |entry: &EndpointEntry| match &entry.kind {
            EndpointKind::Bound(acceptor) if parts.iter().any(|part| part == acceptor.endpoint()) => true,
            EndpointKind::InprocBound if parts.iter().any(|part| **part == *entry.given) => true,
            // `tcp://*:*` does not name an endpoint. The resolved endpoint does.
            EndpointKind::Bound(acceptor) => {
                acceptor.endpoint() == endpoint || Some(acceptor.endpoint()) == local.as_deref()
            }
            EndpointKind::Datagram(_, port) => *entry.given == *endpoint || port.name() == endpoint,
            _ => *entry.given == *endpoint,
        };
        let (mut ending, staying): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.endpoints).into_iter().partition(is_named);
        self.endpoints = staying;
        // A bound inproc name hides the pipes that were connected to it.
        let hides = |entry: &EndpointEntry| {
            matches!(entry.kind, EndpointKind::InprocBound) && *entry.given == *endpoint
        };
        if let Some(bound) = ending.iter().position(hides) {
            let bound = ending.swap_remove(bound);
            self.endpoints.append(&mut ending);
            ending.push(bound);
        }
        if ending.is_empty() {
            return Err(Error::NoEntry);
        }
        for entry in ending {
            self.end_entry(&entry);
        }
        self.show_endpoints();
        self.remove_closed_pipes();
        self.detach_ended();
        Ok(())
    }

    fn end_entry(&mut self, entry: &EndpointEntry) {
        let linger = self.pipes.options.linger;
        match &entry.kind {
            EndpointKind::Bound(acceptor) => {
                acceptor.stop(Some(linger));
                self.end_accepted(acceptor);
            }
            EndpointKind::BoundName(_) => {}
            EndpointKind::ConnectedName(finder) => disconnect_paths(self, finder.end_search()),
            EndpointKind::InprocBound => self.context.unbind_inproc(&entry.given, self.id),
            EndpointKind::InprocConnected(id) => {
                self.detach(*id);
            }
            EndpointKind::Datagram(id, port) => {
                port.set_linger(linger);
                self.detach(*id);
            }
            EndpointKind::Connected(dialer) => {
                if let Some(id) = dialer.current().and_then(|connection| self.pipe_of(&connection)) {
                    self.detach(id);
                }
                dialer.disconnect(linger);
            }
        }
    }

    /// Ends the pipes of the peers that this endpoint has accepted. The I/O thread sends their
    /// queued messages.
    fn end_accepted(&mut self, acceptor: &Arc<Acceptor>) {
        let (Some(site), Some(set)) = (&self.site, &self.set) else { return };
        set.acquire();
        // Data that has arrived until now counts, later data does not.
        set.read_ready();
        let connections = site.accepted_by(acceptor);
        for connection in &connections {
            set.remove(connection);
        }
        set.release();
        for connection in connections {
            if let Some(id) = self.pipe_of(&connection) {
                self.handle_ended(id);
            }
        }
    }

    /// Ends the pipes to this endpoint whose peer has refused, because the endpoint is connected
    /// again: new messages are not for the old pipe.
    fn end_refused(&mut self, endpoint: &str) {
        let refused: Vec<_> = self
            .endpoints
            .iter()
            .filter(|entry| *entry.given == *endpoint)
            .filter_map(|entry| match &entry.kind {
                EndpointKind::Connected(dialer) if dialer.is_stopped() => dialer.current(),
                _ => None,
            })
            .collect();
        for connection in refused {
            if let Some(id) = self.pipe_of(&connection) {
                self.handle_ended(id);
            }
        }
        self.remove_closed_pipes();
        self.detach_ended();
    }

    /// Removes endpoints that have ended themselves, as if the program had disconnected them.
    fn forget_ended(&mut self) {
        self.endpoints.retain(
            |entry| !matches!(&entry.kind, EndpointKind::Connected(dialer) if dialer.is_disconnected()),
        );
    }

    /// Removes the endpoint of an inproc pipe that is gone. The program can no longer disconnect
    /// it.
    pub(super) fn forget_inproc(&mut self, pipe: PipeId) {
        self.endpoints.retain(
            |entry| !matches!(&entry.kind, EndpointKind::InprocConnected(id) | EndpointKind::Datagram(id, _) if *id == pipe),
        );
        self.show_endpoints();
    }

    /// Frees the addresses of a socket that is being closed, and sets the linger time of its queued
    /// messages.
    pub(super) fn close_bound(&self, entry: &EndpointEntry) {
        match &entry.kind {
            EndpointKind::Bound(acceptor) => acceptor.stop(None),
            EndpointKind::InprocBound => self.context.unbind_inproc(&entry.given, self.id),
            EndpointKind::Datagram(_, port) => port.set_linger(self.pipes.options.linger),
            EndpointKind::ConnectedName(finder) => drop(finder.end_search()),
            _ => {}
        }
    }

    pub(super) fn add_endpoint(&mut self, given: impl Into<Arc<str>>, what: EndpointKind) {
        if self.endpoints.is_empty() {
            // Most sockets have one.
            self.endpoints.reserve_exact(1);
        }
        self.endpoints.push(EndpointEntry { given: given.into(), kind: what });
    }

    pub(super) fn site_for_streams(&mut self) -> Result<Arc<Site>, Error> {
        // A fallback to no security would be worse than a refusal.
        if !self.pipes.options.mechanism.is_supported() {
            return Err(Error::NotSupported);
        }
        let site = self.site.clone().ok_or(Error::NoThread)?;
        if let Some(admission) = admission(&self.context).cloned() {
            site.set_admission(&admission);
            restrict_by_policy(self, &*admission);
        }
        self.open_set()?;
        Ok(site)
    }

    /// Opens the descriptors that connections need. Before this call a socket has no descriptors.
    /// After it, the socket has every descriptor that it will need to wait.
    pub(super) fn open_set(&mut self) -> std::io::Result<()> {
        if let (Some(site), None) = (&self.site, &self.set) {
            self.inbox.waker().descriptor()?;
            self.set = Some(site.open_set()?);
        }
        Ok(())
    }

    /// Information for inproc peers. The only properties are the program's own (ZMQ_METADATA).
    pub(super) fn own_peer_info(&self) -> Box<PeerInfo> {
        let options = &self.pipes.options;
        let announced = options.metadata.iter().map(|(name, value)| (name, value));
        Box::new(PeerInfo {
            routing_id: options.routing_id.clone(),
            metadata: Arc::new(Metadata::new(announced, None)),
            ends: Arc::default(),
            since: 0,
            topics: None,
            socket_type: Some(self.socket_type),
        })
    }

    pub(super) fn check_alive(&mut self) -> Result<(), Error> {
        if self.inbox.has_pending() { self.process_news() } else { Ok(()) }
    }
}

/// Returns the policy's answer to a call. If the policy refuses, emits an event with the rule.
/// libzmq has no event for a refused connect, so we use the event of a peer that refuses us.
fn report_denied(
    tap: &EventDispatcher,
    allowed: Result<Option<Allowed>, Denied>,
    endpoint: &str,
    event: u32,
) -> Result<Option<Allowed>, Error> {
    let Denied { error, why } = match allowed {
        Ok(allowed) => return Ok(allowed),
        Err(denied) => denied,
    };
    let ends = match event {
        event::BIND_FAILED => Ends::bound(transport::stream_address(endpoint).unwrap_or(endpoint)),
        _ => Ends::connected(endpoint),
    };
    tap.emit_because(event, error.errno() as u32, &ends, &why);
    Err(error)
}
