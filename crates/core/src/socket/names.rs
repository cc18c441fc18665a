//! `name://orders`: bind and connect by a name, which stands for the endpoints that a directory
//! knows.

use super::Socket;
use super::endpoints::What;
use crate::directory::{Directory, Follower};
use crate::driver::{Finder, Way, inproc_endpoint, may_be_inproc};
use crate::error::Error;
use crate::pipe::PipeId;
use crate::sync::Arc;
use tautline_names::Registration;

/// What the socket has bound by a name.
pub(super) struct Offered {
    directory: Arc<Directory>,
    registration: Registration,
    /// The endpoints that were bound for it, as they have come out.
    pub(super) parts: Vec<String>,
}

impl Drop for Offered {
    fn drop(&mut self) {
        self.registration.withdraw();
        self.directory.unregistered(self.registration.id());
    }
}

impl Socket {
    fn directory_for(&self, name: &str) -> Result<Arc<Directory>, Error> {
        // What libzmq says of a transport that is not there.
        let directory = self.context.directory().ok_or(Error::ProtocolNotSupported)?;
        directory.check(name)?;
        Ok(directory.clone())
    }

    /// Binds what the directory says, and puts it there. All of it, or nothing.
    pub(super) fn bind_name(&mut self, endpoint: &str, name: &str) -> Result<(), Error> {
        let directory = self.directory_for(name)?;
        let (registration, tcp) = directory.register(name, self.id)?;
        let mut offered = Offered { directory: directory.clone(), registration, parts: Vec::new() };
        let mut remote = Vec::new();
        let id = offered.registration.id().to_owned();
        let inproc = may_be_inproc(&self.pipes.options).then(|| inproc_endpoint(&id));
        let outcome = (|| {
            for part in inproc.into_iter().chain([offered.registration.ipc()]) {
                self.bind(&part)?;
                offered.parts.push(self.last_endpoint.to_string());
            }
            if let Some(tcp) = tcp {
                self.bind(&tcp)?;
                let bound = self.last_endpoint.to_string();
                remote.push(directory.advertised(&bound));
                offered.parts.push(bound);
            }
            Ok(offered.registration.publish(&remote)?)
        })();
        if let Err(error) = outcome {
            for part in &offered.parts {
                let _ = self.unbind(part);
            }
            return Err(error);
        }
        directory.look_again();
        self.add_endpoint(endpoint, What::Offered(Box::new(offered)));
        self.last_endpoint = endpoint.into();
        Ok(())
    }

    /// Connects to all that the name stands for, now and later.
    pub(super) fn connect_name(&mut self, endpoint: &str, name: &str) -> Result<Option<PipeId>, Error> {
        let directory = self.directory_for(name)?;
        let site = self.site_for_streams()?;
        if self.pipes.options.facts().connects_once && self.has_connected(endpoint) {
            return Ok(None);
        }
        self.context.share_options(&mut self.pipes.options);
        let (neighbours, whoami) = (self.context.neighbours(), *self.whoami());
        let given = self.context.share_endpoint(endpoint);
        let options = &self.pipes.options;
        let finder = Finder::new(&site, options, &directory, neighbours, self.id, given.clone(), whoami);
        if options.connect_routing_id.is_some() {
            self.pipes.options_mut().connect_routing_id = None;
        }
        let follower: Arc<dyn Follower> = finder.clone();
        self.show_endpoints();
        self.show_endpoint(endpoint, endpoint, false);
        if let Err(error) = directory.follow(name, &follower) {
            drop(finder.end());
            self.show_endpoints();
            return Err(error);
        }
        self.add_endpoint(given.clone(), What::Named(finder));
        self.last_endpoint = given;
        Ok(None)
    }

    /// The name stands for something else: what it stood for is disconnected.
    pub(super) fn leave_moved(&mut self) {
        let finders = self.endpoints.iter().filter_map(|entry| entry.finder().cloned());
        for finder in finders.collect::<Vec<_>>() {
            self.leave_ways(finder.take_leaving());
        }
    }

    /// Disconnects. What is queued is still sent for at most ZMQ_LINGER.
    pub(super) fn leave_ways(&mut self, ways: Vec<(Arc<str>, Way)>) {
        let linger = self.pipes.options.linger;
        for (endpoint, way) in ways {
            match way {
                Way::Dialer(dialer) => {
                    if let Some(id) = dialer.current().and_then(|connection| self.pipe_of(&connection)) {
                        self.detach(id);
                    }
                    dialer.disconnect(linger);
                }
                Way::Inproc => {
                    for id in self.pipes.all() {
                        let pipe = self.pipes.get(id);
                        let info = pipe.and_then(|pipe| pipe.peer.info());
                        if info.is_some_and(|info| *info.ends.name() == endpoint) {
                            self.detach(id);
                        }
                    }
                }
                Way::Nowhere => {}
            }
        }
    }
}
