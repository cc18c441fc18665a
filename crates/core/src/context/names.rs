//! The inproc names of a context: who is bound, and who has connected before anybody was.

use std::collections::HashMap;

use crate::conn::inproc::Offer;
use crate::conn::{News, PeerInfo, SocketInbox};
use crate::error::Error;
use crate::options::Options;
use crate::sync::Arc;

struct Binding {
    socket: u64,
    inbox: Arc<SocketInbox>,
    receive_hwm: u32,
    whoami: Box<PeerInfo>,
    /// What new peers are sent first; empty for nothing.
    hello: Vec<u8>,
}

/// The names of one context.
#[derive(Default)]
pub(super) struct Names {
    bound: HashMap<String, Binding>,
    pending: Vec<(String, Offer)>,
}

impl Names {
    /// Binds a name; returns the ends meant for it that were waiting.
    pub(super) fn bind(
        &mut self,
        name: &str,
        socket: u64,
        inbox: &Arc<SocketInbox>,
        options: &Options,
        whoami: Box<PeerInfo>,
    ) -> Result<Vec<Offer>, Error> {
        if self.bound.contains_key(name) {
            return Err(Error::AddressInUse);
        }
        let binding = Binding {
            socket,
            inbox: inbox.clone(),
            receive_hwm: options.receive_hwm,
            whoami,
            hello: options.hello().to_vec(),
        };
        let (waiting, pending): (Vec<_>, Vec<_>) =
            self.pending.drain(..).partition(|(wanted, _)| wanted == name);
        self.pending = pending;
        let mut offers: Vec<Offer> = waiting.into_iter().map(|(_, offer)| offer).collect();
        for offer in &mut offers {
            offer.end.set_receive_hwm(binding.receive_hwm);
            offer.end.meet();
            offer.greet(&binding.hello);
            offer.end.tell(|token| News::Met(token, binding.whoami.clone()));
        }
        self.bound.insert(name.to_owned(), binding);
        Ok(offers)
    }

    /// Gives `offer` to the socket bound to `name` and returns who that is, or keeps it until somebody binds.
    pub(super) fn connect(&mut self, name: &str, mut offer: Offer) -> Option<Box<PeerInfo>> {
        let Some(binding) = self.bound.get(name) else {
            self.pending.push((name.to_owned(), offer));
            return None;
        };
        offer.end.set_receive_hwm(binding.receive_hwm);
        offer.end.meet();
        offer.greet(&binding.hello);
        binding.inbox.push(News::Inproc(Box::new(offer)));
        Some(binding.whoami.clone())
    }

    /// Frees a name, if this socket is bound to it.
    pub(super) fn unbind(&mut self, name: &str, socket: u64) {
        if self.bound.get(name).is_some_and(|binding| binding.socket == socket) {
            self.bound.remove(name);
        }
    }

    /// Whether somebody is bound to a name.
    pub(super) fn is_bound(&self, name: &str) -> bool {
        self.bound.contains_key(name)
    }

    /// The ends that nobody has bound for, at the end of the context.
    pub(super) fn take_pending(&mut self) -> Vec<(String, Offer)> {
        std::mem::take(&mut self.pending)
    }
}
