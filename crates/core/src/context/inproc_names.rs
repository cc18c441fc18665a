//! The inproc names of a context: the bound sockets, and the sockets that have connected before the
//! bind.

use std::collections::HashMap;

use crate::conn::inproc::{Keep, Offer, OfferStore};
use crate::conn::{News, PeerInfo, SocketInbox};
use crate::error::Error;
use crate::options::Options;
use std::sync::Weak;
use tautline_queue::sync::{Arc, Mutex, lock};

struct Binding {
    socket: u64,
    inbox: Arc<SocketInbox>,
    receive_hwm: u32,
    whoami: Box<PeerInfo>,
    /// First message to new peers. Empty for no message.
    hello: Vec<u8>,
    /// Rule for keeping peers that disconnect before the socket processes their news.
    keep: Keep,
}

impl Binding {
    /// Prepares an end for this socket, which was found by its name.
    fn take(&self, offer: &mut Offer) {
        offer.keep = self.keep;
        offer.end.set_receive_hwm(self.receive_hwm);
        offer.end.mark_bound();
        offer.greet(&self.hello);
    }

    /// Gives this end to the socket. Returns the socket's peer information.
    fn welcome(&self, mut offer: Offer) -> Box<PeerInfo> {
        self.take(&mut offer);
        offer.end.set_inbox(&self.inbox);
        self.inbox.push(News::Inproc(Box::new(offer)));
        self.whoami.clone()
    }
}

/// The names of one context.
#[derive(Default)]
pub(super) struct InprocNames {
    bound: HashMap<String, Binding>,
    pending: Vec<(String, Offer)>,
    /// Number of pending ends whose connecting socket has given them up.
    abandoned: usize,
}

impl InprocNames {
    /// Binds a name. Returns the ends that were waiting for it.
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
            hello: options.effective_hello_msg().to_vec(),
            keep: if options.effective_disconnect_msg().is_empty() { Keep::Messages } else { Keep::Peer },
        };
        let (waiting, pending): (Vec<_>, Vec<_>) =
            self.pending.drain(..).partition(|(wanted, _)| wanted == name);
        self.pending = pending;
        let mut offers: Vec<Offer> = waiting.into_iter().map(|(_, offer)| offer).collect();
        for offer in &mut offers {
            binding.take(offer);
            offer.end.send_news(|token| News::PeerBound(token, binding.whoami.clone()));
        }
        self.bound.insert(name.to_owned(), binding);
        Ok(offers)
    }

    /// Gives `offer` to the socket bound to `name` and returns that socket's peer information. If
    /// no socket is bound, keeps the offer until a socket binds or until the connecting socket
    /// gives it up, which is reported to `shelf`.
    pub(super) fn connect(
        &mut self,
        name: &str,
        offer: Offer,
        shelf: Weak<dyn OfferStore>,
    ) -> Option<Box<PeerInfo>> {
        let Some(binding) = self.bound.get(name) else {
            offer.end.set_offer_store(shelf);
            self.pending.push((name.to_owned(), offer));
            return None;
        };
        Some(binding.welcome(offer))
    }

    /// Frees a name, if this socket is bound to it.
    pub(super) fn unbind(&mut self, name: &str, socket: u64) {
        if self.bound.get(name).is_some_and(|binding| binding.socket == socket) {
            self.bound.remove(name);
        }
    }

    /// True if a socket is bound to a name.
    pub(super) fn is_bound(&self, name: &str) -> bool {
        self.bound.contains_key(name)
    }

    /// Counts a pending end that was given up. If half of the pending ends are given up, removes
    /// and returns the ends that would deliver nothing. The caller drops them without a lock.
    fn record_abandoned(&mut self) -> Vec<(String, Offer)> {
        self.abandoned += 1;
        if self.abandoned * 2 < self.pending.len() {
            return Vec::new();
        }
        self.abandoned = 0;
        let void = self.pending.extract_if(.., |(_, offer)| offer.is_obsolete()).collect();
        self.pending.shrink_to(self.pending.len() * 2);
        void
    }

    /// Takes the ends that are still pending at the end of the context.
    pub(super) fn take_pending(&mut self) -> Vec<(String, Offer)> {
        std::mem::take(&mut self.pending)
    }
}

impl OfferStore for Mutex<InprocNames> {
    fn note_dropped_offer(&self) {
        let void = lock(self).record_abandoned();
        drop(void);
    }
}

impl crate::driver::InprocSockets for Mutex<InprocNames> {
    fn has(&self, name: &str) -> bool {
        lock(self).is_bound(name)
    }

    fn meet(&self, name: &str, offer: Offer) -> Option<Box<PeerInfo>> {
        let names = lock(self);
        Some(names.bound.get(name)?.welcome(offer))
    }
}

#[cfg(test)]
mod tests;
