use super::*;
use crate::conn::testbed::{MockIoSide, open_pipe};
use crate::options::{ContextDefaults, Options};
use crate::pipe::Pipe;
use crate::pipe::SocketPipes;
use tautline_io::net::Stream;
use tautline_proto::SocketType;
use tautline_queue::sync::lock;

const HWM: u32 = 8;

struct Bed {
    pipes: SocketPipes,
    connections: Vec<Arc<Connection>>,
    peers: Vec<Stream>,
    broadcast: Broadcast,
}

impl Bed {
    fn new() -> Bed {
        let options = Options::new(SocketType::Pub, &ContextDefaults::default());
        let pipes = SocketPipes::new(options.into());
        Bed { pipes, connections: Vec::new(), peers: Vec::new(), broadcast: Broadcast::new() }
    }

    /// Adds `count` members, which follow from the next message on.
    fn join(&mut self, count: usize) {
        for _ in 0..count {
            let (new, peer) =
                open_pipe(&Arc::<MockIoSide>::default(), None, |options| options.send_hwm = HWM);
            self.connections.push(new.connection.clone());
            self.peers.push(peer);
            let id = self.pipes.insert(Pipe::wire(new));
            self.broadcast.join(id);
        }
    }

    fn send(&mut self) {
        assert!(self.broadcast.prepare(&mut self.pipes, false, true));
        assert!(self.broadcast.queued_members().is_empty());
        self.broadcast.send(&mut self.pipes, b"message");
    }

    /// Returns the number of members that have queued messages and are not watched by any thread.
    fn neglected(&self) -> usize {
        let neglected =
            |connection: &&Arc<Connection>| connection.has_pending() && !connection.residual_mark.is_set();
        self.broadcast.followers.iter().map(|follower| &follower.connection).filter(neglected).count()
    }
}

/// A decision for the earlier followers does not hold for those that joined later.
#[test]
fn new_followers_are_covered_from_the_first_message() {
    let mut bed = Bed::new();
    bed.join(2);
    bed.send();
    bed.broadcast.rule.ask_after(100);
    bed.join(1);
    bed.send();
    assert_eq!(bed.neglected(), 0);
}

/// The I/O thread writes to many followers, but is not notified of messages to the few that remain.
#[test]
fn remaining_followers_of_a_crowd_are_covered() {
    let mut bed = Bed::new();
    bed.join(MAX_OWNER_FOLLOWERS);
    bed.send();
    bed.broadcast.rule.ask_after(100);
    bed.join(1);
    bed.send();
    let last = bed.broadcast.followers[0].pipe;
    for connection in &bed.connections {
        connection.try_flush();
    }
    bed.broadcast.leave(&mut bed.pipes, last);
    bed.send();
    assert_eq!(bed.neglected(), 0);
}

/// The kernel's buffers for a crowd are read from main memory, not from the caches. If messages
/// must not be dropped, the kernel therefore holds fewer bytes.
#[test]
fn lossless_crowd_limits_unsent_kernel_bytes() {
    for (count, lossless, little) in [
        (MAX_OWNER_FOLLOWERS + 1, true, true),
        (MAX_OWNER_FOLLOWERS + 1, false, false),
        (MAX_OWNER_FOLLOWERS - 1, true, false),
    ] {
        let mut bed = Bed::new();
        bed.join(count);
        // Only the owner writes, at the mark.
        for _ in 0..2 * HWM {
            assert!(bed.broadcast.prepare(&mut bed.pipes, lossless, true));
            bed.broadcast.send(&mut bed.pipes, b"message");
        }
        assert_eq!(bed.broadcast.followers.len(), count);
        assert!(
            bed.connections.iter().all(|connection| lock(&connection.pump).keeps_little_unsent() == little)
        );
        assert!(bed.broadcast.prepare(&mut bed.pipes, false, true));
        let first = bed.broadcast.followers[0].pipe;
        bed.broadcast.leave(&mut bed.pipes, first);
        assert!(
            !lock(&bed.connections[0].pump).keeps_little_unsent(),
            "a member with its own queue is like any other pipe"
        );
    }
}

/// A full member misses messages on the fast path, and gets messages again as soon as it has room.
#[test]
fn full_member_misses_messages_until_it_has_room() {
    let mut bed = Bed::new();
    bed.join(2);
    let body = [7; 1024];
    let hwm = bed.pipes.options.send_hwm;
    let mut trash = vec![0; 1 << 20];
    let mut rounds = 0;
    while bed.broadcast.queued_members().is_empty()
        || !bed.broadcast.try_send_past_full(&mut bed.pipes.slots, &body, hwm)
    {
        assert!(bed.broadcast.prepare(&mut bed.pipes, false, true));
        if bed.broadcast.has_followers() {
            bed.broadcast.send(&mut bed.pipes, &body);
        }
        for &id in bed.broadcast.queued_members() {
            let pipe = bed.pipes.get(id).unwrap();
            if pipe.outgoing.has_room(crate::pipe::OnFull::Miss) {
                pipe.send_or_drop(&mut crate::pipe::Part::copied(&body, false));
            }
        }
        // Only the second peer reads.
        bed.connections[1].try_flush();
        let _ = bed.peers[1].read(&mut trash);
        rounds += 1;
        assert!(rounds < 1_000_000, "the first member is never full");
    }
    assert_eq!((bed.broadcast.followers.len(), bed.broadcast.queued_members.len()), (1, 1));
    while bed.connections[0].has_pending() {
        let _ = bed.peers[0].read(&mut trash);
        bed.connections[0].try_flush();
    }
    assert!(!bed.broadcast.try_send_past_full(&mut bed.pipes.slots, &body, hwm));
}
