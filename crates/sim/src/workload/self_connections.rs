//! Clients that wait for a server on their own host. While no program listens, the system may
//! choose the server's port as the client's own port: TCP then connects the socket to itself.

use std::time::Duration;

use tautline_core::{Error, SocketType};

use super::peer::{LINGER, Peer, ROUTING_ID, SNDTIMEO, SUBSCRIBE};
use super::{Scenario, fork};
use crate::rng::Rng;
use crate::world;

const PORT: u16 = 45_000;

/// A client whose connects may reach its own socket until the server starts. The client receives
/// none of its own messages, the server can bind, and then both communicate.
pub(super) fn itself(stage: &mut Scenario, rng: &mut Rng) {
    if stage.transport() != "ws" {
        stage.over_tcp();
    }
    world::with(|world| {
        world.kernel.faults.stop_losses();
        world.kernel.faults.itself = rng.between(1, 3);
    });
    let endpoint = match stage.transport() {
        "ws" => format!("ws://127.0.0.1:{PORT}/"),
        _ => format!("tcp://127.0.0.1:{PORT}"),
    };
    let (client_type, server_type) = *rng.pick(&[
        (SocketType::Dealer, SocketType::Dealer),
        (SocketType::Pair, SocketType::Pair),
        (SocketType::Router, SocketType::Dealer),
        (SocketType::Push, SocketType::Pull),
        (SocketType::Sub, SocketType::Pub),
        (SocketType::Req, SocketType::Rep),
    ]);
    let mut client = Peer::new(&stage.context(rng), client_type, fork(rng));
    client.set(LINGER, 0);
    client.set(SNDTIMEO, 5);
    if client_type == SocketType::Sub {
        client.set_bytes(SUBSCRIBE, b"");
    }
    client.socket.connect(&endpoint).unwrap();
    let before_server = rng.spread(1, 100);
    for _ in 0..before_server {
        if matches!(client_type, SocketType::Dealer | SocketType::Pair) {
            let _ = client.try_send(&[b"for the server".to_vec()]);
        }
        std::thread::sleep(Duration::from_millis(100));
        if client_type != SocketType::Push {
            let outcome = client.try_recv();
            let is_quiet = matches!(outcome, Err(Error::Again | Error::State));
            assert!(is_quiet, "a client without a server receives {outcome:?}");
        }
    }
    let mut server = Peer::new(&stage.context(rng), server_type, fork(rng));
    server.set(LINGER, 0);
    server.set_bytes(ROUTING_ID, b"server");
    let mut tries = 0;
    // The port is in use only for as long as an attempt to connect takes.
    while let Err(error) = server.socket.bind(&endpoint) {
        assert_eq!(error, Error::AddressInUse);
        tries += 1;
        assert!(tries < 1_000, "the port stays in use");
        std::thread::sleep(Duration::from_millis(rng.spread(1, 50)));
    }
    client.set(SNDTIMEO, -1);
    match client_type {
        SocketType::Sub | SocketType::Router => {
            server.set(SNDTIMEO, 100);
            client.set_receive_timeout(100);
            // A PUB drops messages until the subscription arrives.
            while client.try_recv().is_err() {
                let _ = server.try_send(&[b"for the client".to_vec()]);
                std::thread::sleep(Duration::from_millis(100));
            }
        }
        _ => {
            client.send(&[b"for the server".to_vec()]).unwrap();
            assert_eq!(server.recv().unwrap(), [b"for the server"]);
        }
    }
}
