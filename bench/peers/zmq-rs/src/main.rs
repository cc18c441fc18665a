//! zeromq (zmq.rs) as a peer, on a tokio runtime of two workers. A separate thread drives each end.
use bench_contract::{End, Peer, Role, Run, Trouble};
use std::future::Future;
use tokio::runtime::Runtime;
use zeromq::prelude::*;
use zeromq::ZmqMessage;

struct ZmqRs(Runtime);

enum Side {
    Push(zeromq::PushSocket),
    Pull(zeromq::PullSocket),
    Publish(zeromq::PubSocket),
    Subscribe(zeromq::SubSocket),
    Request(zeromq::ReqSocket),
    Reply(zeromq::RepSocket),
    Dealer(zeromq::DealerSocket),
    Router(zeromq::RouterSocket, bytes::Bytes),
}

async fn join<S: zeromq::Socket>(
    mut socket: S,
    role: Role,
    run: &Run,
    bound: &dyn Fn(),
) -> Result<S, Trouble> {
    if role.binds() {
        socket.bind(&run.endpoint).await?;
        bound();
    } else {
        socket.connect(&run.endpoint).await?;
    }
    Ok(socket)
}

impl Peer for ZmqRs {
    type End = Side;

    fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.0.handle().block_on(future)
    }

    async fn open(&self, role: Role, run: &Run, bound: &dyn Fn()) -> Result<Side, Trouble> {
        if run.transport == "inproc" {
            return Err(Trouble::Unsupported);
        }
        Ok(match role {
            Role::Push => Side::Push(join(zeromq::PushSocket::new(), role, run, bound).await?),
            Role::Pull => Side::Pull(join(zeromq::PullSocket::new(), role, run, bound).await?),
            Role::Publish => Side::Publish(join(zeromq::PubSocket::new(), role, run, bound).await?),
            Role::Subscribe => {
                let mut socket = join(zeromq::SubSocket::new(), role, run, bound).await?;
                socket.subscribe(std::str::from_utf8(&run.topic)?).await?;
                Side::Subscribe(socket)
            }
            Role::Request => Side::Request(join(zeromq::ReqSocket::new(), role, run, bound).await?),
            Role::Reply => Side::Reply(join(zeromq::RepSocket::new(), role, run, bound).await?),
            Role::Dealer => Side::Dealer(join(zeromq::DealerSocket::new(), role, run, bound).await?),
            Role::Router => {
                Side::Router(join(zeromq::RouterSocket::new(), role, run, bound).await?, bytes::Bytes::new())
            }
        })
    }
}

impl End for Side {
    async fn send(&mut self, body: &[u8]) -> Result<(), Trouble> {
        let mut message = ZmqMessage::from(body.to_vec());
        Ok(match self {
            Side::Push(s) => s.send(message).await?,
            Side::Publish(s) => s.send(message).await?,
            Side::Request(s) => s.send(message).await?,
            Side::Reply(s) => s.send(message).await?,
            Side::Dealer(s) => s.send(message).await?,
            Side::Router(s, to) => {
                message.push_front(to.clone());
                s.send(message).await?
            }
            Side::Pull(_) | Side::Subscribe(_) => return Err(Trouble::Unsupported),
        })
    }

    async fn receive(&mut self, body: &mut Vec<u8>) -> Result<(), Trouble> {
        let message = match self {
            Side::Pull(s) => s.recv().await?,
            Side::Subscribe(s) => s.recv().await?,
            Side::Request(s) => s.recv().await?,
            Side::Reply(s) => s.recv().await?,
            Side::Dealer(s) => s.recv().await?,
            Side::Router(s, to) => {
                let parts = s.recv().await?.into_vec();
                let mut parts = parts.into_iter();
                *to = parts.next().unwrap_or_default();
                body.clear();
                parts.for_each(|part| body.extend_from_slice(&part));
                return Ok(());
            }
            Side::Push(_) | Side::Publish(_) => return Err(Trouble::Unsupported),
        };
        body.clear();
        for part in message.iter() {
            body.extend_from_slice(part);
        }
        Ok(())
    }
}

fn main() {
    bench_contract::main("0.7.0", |_| {
        Ok(ZmqRs(tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?))
    });
}
