use super::*;
use crate::conn::testbed::{Asked, open_pipe};
use crate::options::{ContextDefaults, Options};
use tautline_io::net::Stream;
use tautline_proto::SocketType;

struct Bed {
    pipes: Pipes,
    connections: Vec<Arc<Connection>>,
    peers: Vec<Stream>,
    broadcast: Broadcast,
}

impl Bed {
    fn new() -> Bed {
        let options = Options::new(SocketType::Pub, &ContextDefaults::default());
        let pipes = Pipes::new(options.into());
        Bed { pipes, connections: Vec::new(), peers: Vec::new(), broadcast: Broadcast::new() }
    }

    /// Adds so many members, who follow from the next message on.
    fn join(&mut self, count: usize) {
        for _ in 0..count {
            let (new, peer) = open_pipe(&Arc::<Asked>::default(), None, |_| ());
            self.connections.push(new.connection.clone());
            self.peers.push(peer);
            let id = self.pipes.insert(Pipe::wire(new));
            self.broadcast.join(id);
        }
    }

    fn send(&mut self) {
        assert!(self.broadcast.prepare(&mut self.pipes, false, true));
        assert!(self.broadcast.others().is_empty());
        self.broadcast.send(&mut self.pipes, b"message");
    }

    /// The members for whom something is queued, and who have nobody to write it.
    fn neglected(&self) -> usize {
        let neglected = |connection: &&Arc<Connection>| {
            connection.has_pending() && !connection.residual_armed.load(Relaxed)
        };
        self.broadcast.followers.iter().map(|follower| &follower.connection).filter(neglected).count()
    }
}

/// What was decided for those who followed then is not true of those who have come since.
#[test]
fn new_followers_are_looked_after_from_their_first_message_on() {
    let mut bed = Bed::new();
    bed.join(2);
    bed.send();
    bed.broadcast.rule.ask_after(100);
    bed.join(1);
    bed.send();
    assert_eq!(bed.neglected(), 0);
}

/// Many are the I/O thread's, which nobody tells of the messages to the few that remain.
#[test]
fn those_who_remain_of_many_followers_are_looked_after() {
    let mut bed = Bed::new();
    bed.join(INLINE);
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
