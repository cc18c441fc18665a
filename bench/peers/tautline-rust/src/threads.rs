//! Blocking sockets.

use crate::ends::{MOST, Way, next_taken};
use bench_contract::{End, Peer, Role, Run, Trouble};
use std::future::{Future, ready};
use std::task::{Context, Poll, Waker};
use tautline::Socket;

pub struct Threads(tautline::Context);

ends!(
    Side,
    Push for Push, Pull for Pull, Pub.no_drop(true) for Publish, Sub for Subscribe, Req for Request, Rep for Reply,
    Dealer for Dealer, Router for Router;
    Socket, std::convert::identity
);

impl Threads {
    pub fn new() -> Self {
        Threads(tautline::Context::new())
    }
}

impl Peer for Threads {
    type End = Side;

    /// All waiting happens inside blocking calls.
    fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        let mut future = std::pin::pin!(future);
        loop {
            if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                return value;
            }
        }
    }

    async fn open(&self, role: Role, run: &Run, bound: &dyn Fn()) -> Result<Side, Trouble> {
        let mut side = Side::open(&self.0, role, run, bound)?;
        if let Side::Sub(socket, _) = &mut side {
            socket.subscribe(&run.topic)?;
        }
        Ok(side)
    }
}

impl Side {
    fn put(&mut self, body: &[u8]) -> Result<(), Trouble> {
        Ok(match self {
            Side::Push(s, way) => send!(s, way, body),
            Side::Pub(s, _) => s.send(body)?,
            Side::Req(s, _) => s.send(body)?,
            Side::Rep(s, _) => s.send(body)?,
            Side::Dealer(s, way) => send!(s, way, body),
            Side::Router(s, way) if way.batches => way.addressed.push([&way.to[..], body].into()),
            Side::Router(s, way) => s.send_multipart([&way.to[..], body])?,
            Side::Pull(..) | Side::Sub(..) => return Err(Trouble::Unsupported),
        })
    }

    fn take(&mut self, body: &mut Vec<u8>) -> Result<(), Trouble> {
        match self {
            Side::Pull(s, way) => receive!(s, way, body),
            Side::Sub(s, way) => receive!(s, way, body),
            Side::Req(s, way) => receive!(s, way, body),
            Side::Rep(s, way) => receive!(s, way, body),
            Side::Dealer(s, way) => receive!(s, way, body),
            Side::Router(s, way) => {
                if !way.batches {
                    way.to = s.recv()?;
                } else if way.taken.is_empty() {
                    s.recv_batch(&mut way.taken, MOST)?;
                    way.taken.reverse();
                }
                if way.batches {
                    way.to = next_taken(&mut way.taken);
                }
                receive!(s, way, body);
            }
            Side::Push(..) | Side::Pub(..) => return Err(Trouble::Unsupported),
        }
        Ok(())
    }
}

impl Side {
    fn send_gathered(&mut self) -> Result<(), Trouble> {
        match self {
            Side::Push(s, way) => flush!(s, way),
            Side::Dealer(s, way) => flush!(s, way),
            Side::Router(s, way) if way.batches => {
                s.send_multipart_batch(way.addressed.drain(..))?;
            }
            _ => {}
        }
        Ok(())
    }
}

impl End for Side {
    fn flush(&mut self) -> impl Future<Output = Result<(), Trouble>> {
        ready(self.send_gathered())
    }

    fn send(&mut self, body: &[u8]) -> impl Future<Output = Result<(), Trouble>> {
        ready(self.put(body))
    }

    fn receive(&mut self, body: &mut Vec<u8>) -> impl Future<Output = Result<(), Trouble>> {
        ready(self.take(body))
    }
}
