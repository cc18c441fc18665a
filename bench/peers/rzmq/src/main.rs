//! rzmq as a peer: its sockets on a tokio runtime of two workers. A separate thread drives each end.
//! `--mode uring` uses its io_uring sessions for tcp. `--mode cork` makes the kernel gather small writes.
use bench_contract::{End, Peer, Role, Run, Trouble};
use rzmq::{socket::options, Context, Msg, MsgFlags, Socket, SocketType};
use std::future::Future;
use tokio::runtime::Runtime;

struct Rzmq {
    runtime: Runtime,
    context: Context,
}

struct Side {
    socket: Socket,
    role: Role,
    to: Vec<u8>,
}

impl Peer for Rzmq {
    type End = Side;

    fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.handle().block_on(future)
    }

    async fn open(&self, role: Role, run: &Run, bound: &dyn Fn()) -> Result<Side, Trouble> {
        let socket = self.context.socket(match role {
            Role::Push => SocketType::Push,
            Role::Pull => SocketType::Pull,
            Role::Publish => SocketType::Pub,
            Role::Subscribe => SocketType::Sub,
            Role::Request => SocketType::Req,
            Role::Reply => SocketType::Rep,
            Role::Dealer => SocketType::Dealer,
            Role::Router => SocketType::Router,
        })?;
        if role == Role::Publish {
            socket.set_option(options::XPUB_NODROP, 1_i32).await?;
        }
        if run.mode == "uring" && run.transport == "tcp" {
            socket.set_option(options::IO_URING_SESSION_ENABLED, 1_i32).await?;
        }
        if run.mode == "cork" && run.transport == "tcp" {
            socket.set_option(options::TCP_CORK, 1_i32).await?;
        }
        if role == Role::Subscribe {
            socket.set_option_raw(options::SUBSCRIBE, &run.topic).await?;
        }
        if role.binds() {
            socket.bind(&run.endpoint).await?;
            bound();
        } else {
            socket.connect(&run.endpoint).await?;
        }
        Ok(Side { socket, role, to: Vec::new() })
    }
}

impl End for Side {
    async fn send(&mut self, body: &[u8]) -> Result<(), Trouble> {
        if self.role == Role::Router {
            let mut id = Msg::from_vec(self.to.clone());
            id.set_flags(MsgFlags::MORE);
            let parts = vec![id, Msg::from_vec(body.to_vec())];
            return Ok(self.socket.send_multipart(parts).await?);
        }
        Ok(self.socket.send(Msg::from_vec(body.to_vec())).await?)
    }

    async fn receive(&mut self, body: &mut Vec<u8>) -> Result<(), Trouble> {
        body.clear();
        if self.role == Role::Router {
            let parts = self.socket.recv_multipart().await?;
            self.to = parts.first().and_then(Msg::data).unwrap_or_default().to_vec();
            for part in parts.iter().skip(1) {
                body.extend_from_slice(part.data().unwrap_or_default());
            }
            return Ok(());
        }
        body.extend_from_slice(self.socket.recv().await?.data().unwrap_or_default());
        Ok(())
    }
}

fn main() {
    bench_contract::main("0.5.28", |run| {
        if run.mode == "uring" {
            rzmq::uring::initialize_uring_backend(rzmq::uring::UringConfig::default())?;
        }
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let guard = runtime.enter();
        let context = Context::new()?;
        drop(guard);
        Ok(Rzmq { runtime, context })
    });
}
