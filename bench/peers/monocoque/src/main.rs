//! monocoque-rs as a peer: each end on a single-threaded runtime in its own thread, as the library intends.
//! `--mode coalescing` gathers writes until flush (PUSH, DEALER and ROUTER, as in the library). Without it,
//! every send is a write.
use bench_contract::{End, Peer, Role, Run, Trouble};
use bytes::Bytes;
use monocoque::zmq::{
    DealerSocket, PubSocket, PullSocket, PushSocket, RepSocket, ReqSocket, RouterSocket, SocketOptions,
    SubSocket,
};
use std::future::Future;
use std::time::Duration;

struct Monocoque;

enum Side {
    Push(Box<PushSocket>),
    Pull(Box<PullSocket>, Vec<Bytes>),
    Publish(Box<PubSocket>),
    Subscribe(Box<SubSocket>, Vec<Bytes>),
    Request(Box<ReqSocket>, Vec<Bytes>),
    Reply(Box<RepSocket>, Vec<Bytes>),
    Dealer(Box<DealerSocket>, Vec<Bytes>, Gather),
    Router(Box<RouterSocket>, Vec<Bytes>, Gather),
}

/// True if messages wait for a flush.
type Gather = bool;

/// The binding end may not listen yet when this end may already connect.
async fn persist<T, F: Future<Output = std::io::Result<T>>>(connect: impl Fn() -> F) -> Result<T, Trouble> {
    let mut last = None;
    for _ in 0..2000 {
        match connect().await {
            Ok(socket) => return Ok(socket),
            Err(error) => last = Some(error),
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Err(Trouble::Failed(last.map_or_else(String::new, |error| error.to_string())))
}

impl Peer for Monocoque {
    type End = Side;

    fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        monocoque::rt::LocalRuntime::new().expect("a runtime").block_on(future)
    }

    async fn open(&self, role: Role, run: &Run, bound: &dyn Fn()) -> Result<Side, Trouble> {
        let Some(address) = run.endpoint.strip_prefix("tcp://") else { return Err(Trouble::Unsupported) };
        if run.pattern == "memory_crowd" {
            return Err(Trouble::Unsupported); // a PULL has one connection
        }
        let gather = run.mode == "coalescing";
        let options = SocketOptions::default().with_write_coalescing(gather);
        if role.binds() {
            bound();
        }
        Ok(match role {
            Role::Push => {
                let socket = persist(|| PushSocket::connect_with_options(address, options.clone())).await?;
                Side::Push(Box::new(socket))
            }
            Role::Pull => Side::Pull(Box::new(PullSocket::bind(address).await?.1), Vec::new()),
            Role::Publish => {
                let mut socket = PubSocket::bind(address).await?;
                for _ in 0..run.subscribers {
                    socket.accept_subscriber().await?;
                }
                Side::Publish(Box::new(socket))
            }
            Role::Subscribe => {
                let mut socket = persist(|| SubSocket::connect(&run.endpoint)).await?;
                socket.subscribe(&run.topic).await?;
                Side::Subscribe(Box::new(socket), Vec::new())
            }
            Role::Request => {
                Side::Request(Box::new(persist(|| ReqSocket::connect(&run.endpoint)).await?), Vec::new())
            }
            Role::Reply => Side::Reply(Box::new(RepSocket::bind(address).await?.1), Vec::new()),
            Role::Dealer => {
                let socket = persist(|| DealerSocket::connect(&run.endpoint)).await?;
                Side::Dealer(Box::new(socket), Vec::new(), gather)
            }
            Role::Router => Side::Router(Box::new(RouterSocket::bind(address).await?.1), Vec::new(), gather),
        })
    }
}

impl End for Side {
    async fn send(&mut self, body: &[u8]) -> Result<(), Trouble> {
        let frame = Bytes::copy_from_slice(body);
        Ok(match self {
            Side::Push(s) => s.send_one(frame).await?,
            Side::Publish(s) => s.send(vec![frame]).await?,
            Side::Request(s, _) => s.send_one(frame).await?,
            Side::Reply(s, _) => s.send(vec![frame]).await?,
            Side::Dealer(s, _, true) => s.send_buffered(vec![frame])?,
            Side::Dealer(s, _, false) => s.send(vec![frame]).await?,
            Side::Router(s, got, gather) => {
                let to = got.first().cloned().unwrap_or_default();
                if *gather {
                    s.send_buffered(vec![to, frame])?
                } else {
                    s.send(vec![to, frame]).await?
                }
            }
            _ => return Err(Trouble::Unsupported),
        })
    }

    async fn flush(&mut self) -> Result<(), Trouble> {
        match self {
            Side::Push(s) => s.flush().await?,
            Side::Dealer(s, _, true) => s.flush().await?,
            Side::Router(s, _, true) => s.flush().await?,
            _ => {}
        }
        Ok(())
    }

    async fn receive(&mut self, body: &mut Vec<u8>) -> Result<(), Trouble> {
        let mut id = 0;
        let (more, parts) = match self {
            Side::Pull(s, parts) => (s.recv_into(parts).await?, parts),
            Side::Subscribe(s, parts) => (s.recv_into(parts).await?, parts),
            Side::Request(s, parts) => (s.recv_into(parts).await?, parts),
            Side::Reply(s, parts) => (s.recv_into(parts).await?, parts),
            Side::Dealer(s, parts, _) => (s.recv_into(parts).await?, parts),
            Side::Router(s, parts, _) => {
                id = 1;
                (s.recv_into(parts).await?, parts)
            }
            _ => return Err(Trouble::Unsupported),
        };
        if !more {
            return Err(Trouble::Failed("the other end closed".to_owned()));
        }
        body.clear();
        for part in parts.iter().skip(id) {
            body.extend_from_slice(part);
        }
        Ok(())
    }
}

fn main() {
    bench_contract::main("0.4.2", |_| Ok(Monocoque));
}
