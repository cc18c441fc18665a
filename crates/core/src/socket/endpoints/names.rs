//! `name://orders`: bind and connect by a name. The host resolves the name.

use super::EndpointKind;
use crate::context::{bound_inproc_names, resolver};
use crate::driver::{Finder, NamePath, inproc_endpoint, may_be_inproc};
use crate::error::Error;
use crate::host::{NameFollower, NameRegistration, Resolve};
use crate::pipe::PipeId;
use crate::socket::Socket;
use tautline_queue::sync::Arc;

/// The registration and the endpoints of a bound name.
pub(in crate::socket) struct NameBinding {
    registration: Box<dyn NameRegistration>,
    /// The endpoints that were bound for the name, as resolved.
    pub(super) parts: Vec<String>,
}

fn resolver_for(socket: &Socket, name: &str) -> Result<Arc<dyn Resolve>, Error> {
    // libzmq's error for an unsupported transport.
    let resolver = resolver(&socket.context).ok_or(Error::ProtocolNotSupported)?;
    resolver.check(name)?;
    Ok(resolver.clone())
}

/// Binds the endpoints that the host asks for and registers them. Either all succeed, or all are
/// undone.
pub(super) fn bind_name(socket: &mut Socket, endpoint: &str, name: &str) -> Result<(), Error> {
    let registration = resolver_for(socket, name)?.register(name, socket.id)?;
    let mut offered = NameBinding { registration, parts: Vec::new() };
    let inproc = may_be_inproc(&socket.pipes.options).then(|| inproc_endpoint(offered.registration.id()));
    let outcome = (|| {
        for part in inproc.into_iter().chain([offered.registration.ipc()]) {
            socket.bind(&part)?;
            offered.parts.push(socket.last_endpoint.to_string());
        }
        let mut remote = None;
        if let Some(tcp) = offered.registration.tcp() {
            socket.bind(tcp)?;
            remote = Some(&*socket.last_endpoint);
            offered.parts.push(socket.last_endpoint.to_string());
        }
        offered.registration.publish(remote)
    })();
    if let Err(error) = outcome {
        for part in &offered.parts {
            let _ = socket.unbind(part);
        }
        return Err(error);
    }
    socket.add_endpoint(endpoint, EndpointKind::BoundName(Box::new(offered)));
    socket.last_endpoint = endpoint.into();
    Ok(())
}

/// Connects to all endpoints of the name, now and later.
pub(super) fn connect_name(socket: &mut Socket, endpoint: &str, name: &str) -> Result<Option<PipeId>, Error> {
    let resolver = resolver_for(socket, name)?;
    let site = socket.site_for_streams()?;
    if socket.pipes.options.type_info().connects_once
        && socket.endpoints.iter().any(|entry| entry.is(endpoint, false))
    {
        return Ok(None);
    }
    socket.context.share_options(&mut socket.pipes.options);
    let (neighbours, whoami) = (bound_inproc_names(&socket.context), *socket.own_peer_info());
    let given = socket.context.share_endpoint(endpoint);
    let options = &socket.pipes.options;
    let finder = Finder::new(&site, options, &resolver, neighbours, socket.id, given.clone(), whoami);
    if options.connect_routing_id.is_some() {
        socket.pipes.options_mut().connect_routing_id = None;
    }
    let follower: Arc<dyn NameFollower> = finder.clone();
    socket.show_endpoints();
    socket.show_endpoint(endpoint, endpoint, false, "");
    if let Err(error) = resolver.follow(name, &follower) {
        drop(finder.end_search());
        socket.show_endpoints();
        return Err(error);
    }
    socket.add_endpoint(given.clone(), EndpointKind::ConnectedName(finder));
    socket.last_endpoint = given;
    Ok(None)
}

/// Disconnects the endpoints that no longer belong to their name.
pub(in crate::socket) fn disconnect_moved(socket: &mut Socket) {
    if cfg!(not(feature = "names")) {
        return;
    }
    let finders = socket.endpoints.iter().filter_map(|entry| entry.finder().cloned());
    for finder in finders.collect::<Vec<_>>() {
        disconnect_paths(socket, finder.take_removed());
    }
}

/// Disconnects. Queued messages are still sent for at most ZMQ_LINGER.
pub(super) fn disconnect_paths(socket: &mut Socket, ways: Vec<(Arc<str>, NamePath)>) {
    if cfg!(not(feature = "names")) {
        return;
    }
    let linger = socket.pipes.options.linger;
    for (endpoint, way) in ways {
        match way {
            NamePath::Dialer(dialer) => {
                if let Some(id) = dialer.current().and_then(|connection| socket.pipe_of(&connection)) {
                    socket.detach(id);
                }
                dialer.disconnect(linger);
            }
            NamePath::Inproc => {
                for id in socket.pipes.all() {
                    let pipe = socket.pipes.get(id);
                    let info = pipe.and_then(|pipe| pipe.peer.info());
                    if info.is_some_and(|info| *info.ends.name() == endpoint) {
                        socket.detach(id);
                    }
                }
            }
            NamePath::Nowhere => {}
        }
    }
}
