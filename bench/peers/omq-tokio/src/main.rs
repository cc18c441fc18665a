//! omq-tokio as a peer: blocking sockets, a separate thread for each end, and the library's own I/O runtime.
use bench_contract::{End, Peer, Role, Run, Trouble};
use omq_tokio::{blocking::Socket, Context, Message, Options, SocketType};
use std::future::Future;

struct Omq(Context);

struct Side {
    socket: Socket,
    role: Role,
    to: Vec<u8>,
}

impl Peer for Omq {
    type End = Side;

    fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        // All waiting happens inside blocking calls.
        let mut future = std::pin::pin!(future);
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        loop {
            if let std::task::Poll::Ready(value) = future.as_mut().poll(&mut context) {
                return value;
            }
        }
    }

    async fn open(&self, role: Role, run: &Run, bound: &dyn Fn()) -> Result<Side, Trouble> {
        let mut options = Options::default();
        options.xpub_nodrop = true;
        let kind = match role {
            Role::Push => SocketType::Push,
            Role::Pull => SocketType::Pull,
            Role::Publish => SocketType::Pub,
            Role::Subscribe => SocketType::Sub,
            Role::Request => SocketType::Req,
            Role::Reply => SocketType::Rep,
            Role::Dealer => SocketType::Dealer,
            Role::Router => SocketType::Router,
        };
        let socket = self.0.blocking_socket(kind, options);
        if role == Role::Subscribe {
            socket.subscribe(run.topic.clone())?;
        }
        if role.binds() {
            socket.bind(run.endpoint.as_str())?;
            bound();
        } else {
            socket.connect(run.endpoint.as_str())?;
        }
        Ok(Side { socket, role, to: Vec::new() })
    }
}

impl End for Side {
    async fn send(&mut self, body: &[u8]) -> Result<(), Trouble> {
        let message = match self.role {
            Role::Router => Message::multipart([self.to.clone(), body.to_vec()]),
            _ => Message::from_slice(body),
        };
        Ok(self.socket.send(message)?)
    }

    async fn receive(&mut self, body: &mut Vec<u8>) -> Result<(), Trouble> {
        let message = self.socket.recv()?;
        body.clear();
        for (number, part) in message.iter().enumerate() {
            if self.role == Role::Router && number == 0 {
                self.to = part.to_vec();
            } else {
                body.extend_from_slice(&part);
            }
        }
        Ok(())
    }
}

fn main() {
    bench_contract::main("0.33.0", |_| Ok(Omq(Context::new())));
}
