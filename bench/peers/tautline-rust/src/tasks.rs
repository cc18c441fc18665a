//! Async sockets.

use crate::ends::{MOST, Way, next_taken};
use crate::waiting::Executor;
use bench_contract::{End, Peer, Role, Run, Trouble};
use std::future::Future;
use tautline::aio::Socket;

pub struct Tasks {
    context: tautline::Context,
    executor: Executor,
}

ends!(
    Side,
    Push for Push, Pull for Pull, Pub.no_drop(true) for Publish, Sub for Subscribe, Req for Request, Rep for Reply,
    Dealer for Dealer, Router for Router;
    Socket, tautline::Socket::into_async
);

impl Tasks {
    pub fn new(mode: &str) -> Result<Self, Trouble> {
        Ok(Tasks { context: tautline::Context::new(), executor: Executor::named(mode)? })
    }
}

impl Peer for Tasks {
    type End = Side;

    fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.executor.block_on(future)
    }

    async fn open(&self, role: Role, run: &Run, bound: &dyn Fn()) -> Result<Side, Trouble> {
        let mut side = Side::open(&self.context, role, run, bound)?;
        if let Side::Sub(socket, _) = &mut side {
            socket.subscribe(&run.topic)?;
        }
        Ok(side)
    }
}

impl End for Side {
    async fn send(&mut self, body: &[u8]) -> Result<(), Trouble> {
        match self {
            Side::Push(s, way) => send!(s, way, body, await),
            Side::Pub(s, _) => s.send(body).await?,
            Side::Req(s, _) => s.send(body).await?,
            Side::Rep(s, _) => s.send(body).await?,
            Side::Dealer(s, way) => send!(s, way, body, await),
            Side::Router(s, way) if way.batches => way.addressed.push([&way.to[..], body].into()),
            Side::Router(s, way) => s.send_multipart([&way.to[..], body]).await?,
            Side::Pull(..) | Side::Sub(..) => return Err(Trouble::Unsupported),
        }
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), Trouble> {
        match self {
            Side::Push(s, way) => flush!(s, way, await),
            Side::Dealer(s, way) => flush!(s, way, await),
            Side::Router(s, way) if way.batches => {
                s.send_multipart_batch(way.addressed.drain(..)).await?;
            }
            _ => {}
        }
        Ok(())
    }

    async fn receive(&mut self, body: &mut Vec<u8>) -> Result<(), Trouble> {
        match self {
            Side::Pull(s, way) => receive!(s, way, body, await),
            Side::Sub(s, way) => receive!(s, way, body, await),
            Side::Req(s, way) => receive!(s, way, body, await),
            Side::Rep(s, way) => receive!(s, way, body, await),
            Side::Dealer(s, way) => receive!(s, way, body, await),
            Side::Router(s, way) => {
                if !way.batches {
                    way.to = s.recv().await?;
                } else if way.taken.is_empty() {
                    s.recv_batch(&mut way.taken, MOST).await?;
                    way.taken.reverse();
                }
                if way.batches {
                    way.to = next_taken(&mut way.taken);
                }
                receive!(s, way, body, await);
            }
            Side::Push(..) | Side::Pub(..) => return Err(Trouble::Unsupported),
        }
        Ok(())
    }
}
