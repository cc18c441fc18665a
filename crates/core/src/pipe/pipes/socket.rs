//! Methods of the socket for its pipes, not for patterns.

use super::*;
use crate::conn::outbox;

/// The pipes of a socket with the socket's methods. The pattern gets the [`Pipes`] inside.
pub(crate) struct SocketPipes(Pipes);

impl Deref for SocketPipes {
    type Target = Pipes;

    #[inline]
    fn deref(&self) -> &Pipes {
        &self.0
    }
}

impl DerefMut for SocketPipes {
    #[inline]
    fn deref_mut(&mut self) -> &mut Pipes {
        &mut self.0
    }
}

impl SocketPipes {
    /// Returns a set without pipes.
    pub(crate) fn new(options: Arc<Options>) -> Self {
        SocketPipes(Pipes::new(options))
    }

    /// Returns the socket's options for a change.
    pub(crate) fn options_mut(&mut self) -> &mut Options {
        Arc::make_mut(&mut self.options)
    }

    /// Adds a pipe.
    pub(crate) fn insert(&mut self, mut pipe: Pipe) -> PipeId {
        if pipe.is_inproc() {
            self.inproc += 1;
        } else {
            self.wires += 1;
            if self.wires == FEW + 1 && !is_disabled(Rule::Lean) {
                self.slots.iter_mut().flatten().for_each(Pipe::set_lean);
            }
            if !is_disabled(Rule::Lean)
                && (self.wires > FEW || self.io.as_ref().is_some_and(|io| io.serves_many()))
            {
                pipe.set_lean();
                self.lean = true;
            }
        }
        let number = self.vacant.pop().unwrap_or(self.slots.len() as u32);
        let id = PipeId(number);
        pipe.outgoing.deferred.attach(id, self.shared.clone());
        let slots = &mut self.slots;
        match slots.get_mut(id.0 as usize) {
            Some(slot) => *slot = Some(pipe),
            None => {
                if slots.is_empty() {
                    // Most sockets have one pipe.
                    slots.reserve_exact(1);
                }
                slots.push(Some(pipe));
            }
        }
        id
    }

    /// Removes a pipe.
    pub(crate) fn remove(&mut self, id: PipeId) -> Option<Pipe> {
        let pipe = self.slots.get_mut(id.0 as usize)?.take()?;
        if pipe.is_inproc() {
            self.inproc -= 1;
        } else {
            self.wires -= 1;
        }
        if !self.reserved.contains(&id) {
            self.vacant.push(id.0);
        }
        let past = self.past.get_or_insert_default();
        past.traffic.add(pipe.traffic());
        past.dropped += pipe.outgoing.dropped();
        if pipe.has_ended() {
            past.lost += pipe.outgoing.queued();
        }
        Some(pipe)
    }

    /// Ends this pipe, because its peer is gone.
    pub(crate) fn end(&mut self, id: PipeId) {
        self.0.end(id);
    }

    /// Returns a copy of the ids of all pipes, so that the caller can change the pipes.
    pub(crate) fn all(&self) -> Vec<PipeId> {
        let slots = self.slots.iter().enumerate();
        slots.filter(|(_, slot)| slot.is_some()).map(|(index, _)| PipeId(index as u32)).collect()
    }

    /// Returns the total traffic of the current and the removed pipes.
    pub(crate) fn traffic(&self) -> Traffic {
        let mut all = self.past.as_ref().map_or_else(Traffic::default, |past| past.traffic);
        self.slots.iter().flatten().for_each(|pipe| all.add(pipe.traffic()));
        all
    }

    /// Returns the number of messages dropped because there was no room, and the number of messages
    /// lost with their connections.
    pub(crate) fn losses(&self) -> (u64, u64) {
        let now: u64 = self.slots.iter().flatten().map(|pipe| pipe.outgoing.dropped()).sum();
        self.past.as_ref().map_or((now, 0), |past| (now + past.dropped, past.lost))
    }

    /// Returns a number that changes with each message that comes. Counts only the first few pipes.
    pub(crate) fn arrival_count(&self) -> u64 {
        let few = self.slots.iter().take(FEW);
        few.flatten().map(|pipe| pipe.incoming.arrival_count()).fold(0, u64::wrapping_add)
    }

    /// Returns the number of pipes, and the numbers of outgoing and incoming messages that wait in
    /// them.
    pub(crate) fn depths(&mut self) -> (u64, u64, u64) {
        self.slots.iter_mut().flatten().fold((0, 0, 0), |(pipes, out, incoming), pipe| {
            (pipes + 1, out + pipe.outgoing.queued(), incoming + pipe.incoming.queued())
        })
    }

    /// Applies a changed ZMQ_SNDHWM or ZMQ_RCVHWM to the existing pipes.
    pub(crate) fn apply_limits(&mut self) {
        let (send, receive) = (self.options.send_hwm, self.options.receive_hwm);
        self.slots.iter_mut().flatten().for_each(|pipe| pipe.set_limits(send, receive));
    }

    /// Flushes the bytes that the flush rule has left queued, and those of other sockets that the
    /// calling thread has left queued.
    pub(crate) fn flush(&mut self) {
        if self.lean {
            self.release_swept();
        }
        self.flush_deferred(|pipe| pipe.outgoing.flush());
        outbox::write_unwritten();
    }

    /// Flushes the bytes that stayed queued because of a cork, unless they are part of a stream.
    pub(crate) fn end_batch(&mut self) {
        self.flush_deferred(|pipe| pipe.outgoing.end_batch());
    }

    /// Calls `flush` for the unflushed pipes. Pipes for which it returns true stay in the list.
    fn flush_deferred(&mut self, flush: impl Fn(&mut Pipe) -> bool) {
        let mut left = {
            let mut left = lock(&self.shared.unflushed);
            if left.is_empty() {
                return;
            }
            std::mem::take(&mut *left)
        };
        left.retain(|&id| self.get(id).is_some_and(&flush));
        // Put the vector back to keep its memory.
        *lock(&self.shared.unflushed) = left;
    }

    /// Releases the memory of queues that the sweep has written. While the sweep is at work, these
    /// queues keep their memory.
    fn release_swept(&mut self) {
        let swept = {
            let mut unrested = lock(&self.shared.unreleased);
            if unrested.is_empty() || !self.io.as_ref().is_some_and(|io| io.sweeper_is_idle()) {
                return;
            }
            std::mem::take(&mut *unrested)
        };
        for id in swept {
            if let Some(pipe) = self.get(id) {
                pipe.outgoing.release_memory();
            }
        }
    }

    /// Holds back the messages that the calling thread sends from now on, until the cork is
    /// dropped. A flush must follow.
    pub(crate) fn cork(&self) -> Cork {
        Cork::new(&self.shared)
    }

    /// Returns the streams of full pipes. Asks inproc peers of full pipes to wake the owner.
    pub(crate) fn full_streams(&mut self) -> Vec<Arc<Stream>> {
        self.slots
            .iter_mut()
            .flatten()
            .filter(|pipe| !pipe.outgoing.ended)
            .filter_map(|pipe| if pipe.outgoing.is_full() { pipe.wait_for_room() } else { None })
            .collect()
    }

    /// Asks the inproc peers of full pipes to report room. Returns true if there are such pipes.
    pub(crate) fn ask_inproc_for_room(&mut self) -> bool {
        let mut asked = false;
        for pipe in self.slots.iter_mut().flatten() {
            if !pipe.outgoing.ended && pipe.is_inproc() && pipe.outgoing.is_full() {
                pipe.wait_for_room();
                asked = true;
            }
        }
        asked
    }

    /// True if at least one pipe is inproc.
    pub(crate) fn has_inproc(&self) -> bool {
        self.inproc > 0
    }

    /// True if an inproc peer may check without a fence whether this owner sleeps. The owner must
    /// then announce its sleep with the heavy barrier. False if all inproc peers are publishers
    /// with several receivers, which use a full fence.
    pub(crate) fn peers_check_sleep(&self) -> bool {
        let rung = |pipe: &Pipe| pipe.inproc_end().is_none_or(InprocEnd::peer_uses_ring);
        self.inproc > 0 && (self.slots.len() > FEW || !self.slots.iter().flatten().all(rung))
    }

    /// Returns true, once, if a message was refused only because its burst exceeded the high-water
    /// mark.
    pub(crate) fn take_burst_refused(&mut self) -> bool {
        self.slots.iter_mut().flatten().any(|pipe| pipe.outgoing.high_water_mark.take_burst_refused())
    }

    /// True if the pattern wants to end this pipe.
    pub(crate) fn is_closing(&self, id: PipeId) -> bool {
        self.closing.contains(&id)
    }

    /// True if the pattern wants to end some pipes.
    #[inline]
    pub(crate) fn has_closing(&self) -> bool {
        !self.closing.is_empty()
    }

    /// Takes the list of pipes that the pattern wants to end.
    pub(crate) fn take_closing(&mut self) -> Vec<PipeId> {
        std::mem::take(&mut self.closing)
    }

    /// Returns true if the owner must read input before this message, and counts the message.
    #[inline]
    pub(crate) fn take_due_read(&mut self) -> bool {
        let is_due = self.due_reads > 0;
        if is_due {
            self.due_reads -= 1;
        }
        is_due
    }
}
