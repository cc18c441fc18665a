//! Single-part sockets whose peers have numbers: CLIENT and SERVER, and PEER.

use tautline_core::{Context, Error, Flags, Message, Socket, SocketType};

use super::patterns::QUIET;
use super::peer::{LINGER, RCVTIMEO, SNDHWM};
use super::{Countdown, Scenario, fork, join, spawn};
use crate::rng::Rng;
use crate::world;

/// Several CLIENT and a SERVER, or PEERs. One of them echoes all messages.
pub(super) fn numbered(stage: &mut Scenario, rng: &mut Rng) {
    let endpoint = stage.endpoint();
    let kind = stage.kind.of_one_part();
    let lossy = stage.lossy;
    let ledger = stage.ledger_of(kind);
    let (server_type, client_type) =
        *rng.pick(&[(SocketType::Server, SocketType::Client), (SocketType::Peer, SocketType::Peer)]);
    let clients = rng.between(1, 5) as u32;
    let busy = Countdown::new(clients as usize);
    let hub = if stage.transport() == "inproc" { stage.contexts[0].clone() } else { Context::new() };
    let mut server = open(&hub, server_type);
    server.bind(&endpoint).unwrap();
    if lossy {
        set(&mut server, LINGER, 1000);
    }
    let mut handles = vec![spawn("server", move || echo(server, lossy))];
    let mut counts = Vec::new();
    for client in 0..clients {
        let count = kind.count(rng, 100);
        counts.push((client, count));
        let (context, mut rng, hub) = (stage.context(rng), fork(rng), hub.clone());
        let (endpoint, ledger, busy) = (endpoint.clone(), ledger.clone(), busy.clone());
        handles.push(spawn("client", move || {
            let mut socket = open(&context, client_type);
            let way = match client_type {
                SocketType::Peer => socket.connect_peer(&endpoint).unwrap(),
                _ => socket.connect(&endpoint).map(|()| 0).unwrap(),
            };
            if lossy {
                set(&mut socket, RCVTIMEO, QUIET);
                set(&mut socket, LINGER, 0);
            }
            let (mut sent, mut received) = (0, 0);
            while received < count {
                // Each end continues even if the other does not take its messages.
                let most = if rng.chance(2) { 1 } else { 8 };
                while sent < count && sent - received < most {
                    let mut message = Message::from_vec(kind.message(client, sent).remove(0));
                    message.set_routing_id(way);
                    match send(&mut socket, &mut message) {
                        Ok(()) => sent += 1,
                        Err(Error::HostUnreachable) if lossy => sent = count,
                        Err(error) => panic!("{error}"),
                    }
                }
                match receive(&mut socket) {
                    Ok(message) => {
                        ledger.record(client, &[message.as_slice().to_vec()]);
                        received += 1;
                    }
                    Err(Error::Again) if lossy => break,
                    Err(error) => panic!("{error}"),
                }
            }
            drop(socket);
            if busy.count_down() {
                hub.shutdown().unwrap();
            }
        }));
    }
    join(handles);
    ledger.check_complete(&counts);
    if stage.transport() != "inproc" {
        stage.contexts.push(hub);
    }
}

fn echo(mut server: Socket, lossy: bool) {
    loop {
        let mut message = match receive(&mut server) {
            Ok(message) => message,
            Err(Error::Terminated) => return,
            Err(error) => panic!("{error}"),
        };
        match send(&mut server, &mut message) {
            Ok(()) => {}
            Err(Error::HostUnreachable) if lossy => {}
            Err(Error::Terminated) => return,
            Err(error) => panic!("{error}"),
        }
    }
}

fn open(context: &Context, socket_type: SocketType) -> Socket {
    let mut socket = context.socket(socket_type).unwrap();
    set(&mut socket, SNDHWM, 0);
    set(&mut socket, LINGER, -1);
    socket
}

fn set(socket: &mut Socket, option: i32, value: i32) {
    socket.set_option(option, &value.to_ne_bytes()).unwrap();
}

fn send(socket: &mut Socket, message: &mut Message) -> Result<(), Error> {
    loop {
        match socket.send_message(message, Flags::NONE) {
            Err(Error::Interrupted) => {}
            outcome => {
                world::progress();
                return outcome;
            }
        }
    }
}

fn receive(socket: &mut Socket) -> Result<Message, Error> {
    let mut message = Message::new();
    loop {
        match socket.recv_message(&mut message, Flags::NONE) {
            Ok(_) => {
                world::progress();
                return Ok(message);
            }
            Err(Error::Interrupted) => {}
            Err(error) => return Err(error),
        }
    }
}
