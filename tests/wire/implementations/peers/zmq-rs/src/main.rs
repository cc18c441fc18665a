//! zeromq (zmq.rs) as a peer. It executes the commands of ../../../peer.py, one a line, and answers each with a line.
use std::collections::HashMap;
use std::error::Error;
use std::io::{BufRead, Write};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tokio::time::{sleep, timeout};
use zeromq::prelude::*;
use zeromq::util::PeerIdentity;
use zeromq::{SocketOptions, ZmqMessage, ZmqResult};

const LIMIT: Duration = Duration::from_secs(20);

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Methods that all socket types share, and methods of single types.
#[async_trait]
trait Kind: Send {
    async fn open_at(&mut self, endpoint: &str, binds: bool) -> ZmqResult<String>;
    fn sender(&mut self) -> Option<&mut dyn SocketSend>;
    fn receiver(&mut self) -> Option<&mut dyn SocketRecv>;
    async fn subscription(&mut self, topic: &str, wanted: bool) -> Option<ZmqResult<()>>;
}

macro_rules! kind {
    ($type:ident, $sender:expr, $receiver:expr $(, $subscribes:ident)?) => {
        #[async_trait]
        impl Kind for zeromq::$type {
            async fn open_at(&mut self, endpoint: &str, binds: bool) -> ZmqResult<String> {
                if binds {
                    Ok(self.bind(endpoint).await?.to_string())
                } else {
                    self.connect(endpoint).await.map(|()| endpoint.to_owned())
                }
            }
            fn sender(&mut self) -> Option<&mut dyn SocketSend> {
                let it: fn(&mut Self) -> Option<&mut dyn SocketSend> = $sender;
                it(self)
            }
            fn receiver(&mut self) -> Option<&mut dyn SocketRecv> {
                let it: fn(&mut Self) -> Option<&mut dyn SocketRecv> = $receiver;
                it(self)
            }
            async fn subscription(&mut self, _topic: &str, _wanted: bool) -> Option<ZmqResult<()>> {
                $(
                    let $subscribes = self;
                    return Some(if _wanted { $subscribes.subscribe(_topic).await } else { $subscribes.unsubscribe(_topic).await });
                    #[allow(unreachable_code)]
                )?
                None
            }
        }
    };
}

kind!(PushSocket, |s| Some(s), |_| None);
kind!(PullSocket, |_| None, |s| Some(s));
kind!(PubSocket, |s| Some(s), |_| None);
kind!(SubSocket, |_| None, |s| Some(s), subscriber);
kind!(ReqSocket, |s| Some(s), |s| Some(s));
kind!(RepSocket, |s| Some(s), |s| Some(s));
kind!(DealerSocket, |s| Some(s), |s| Some(s));
kind!(RouterSocket, |s| Some(s), |s| Some(s));
kind!(XPubSocket, |s| Some(s), |s| Some(s));
kind!(XSubSocket, |s| Some(s), |s| Some(s), subscriber);

/// A socket that is created at its first use, because its identity is an argument of its constructor.
struct Peer {
    kind: String,
    identity: Option<PeerIdentity>,
    socket: Option<Box<dyn Kind>>,
    next: Option<ZmqMessage>,
}

impl Peer {
    fn open(&mut self) -> Outcome<&mut Box<dyn Kind>> {
        if self.socket.is_none() {
            let mut options = SocketOptions::default();
            if let Some(identity) = self.identity.take() {
                options.peer_identity(identity);
            }
            self.socket = Some(match self.kind.as_str() {
                "PUSH" => Box::new(zeromq::PushSocket::with_options(options)),
                "PULL" => Box::new(zeromq::PullSocket::with_options(options)),
                "PUB" => Box::new(zeromq::PubSocket::with_options(options)),
                "SUB" => Box::new(zeromq::SubSocket::with_options(options)),
                "REQ" => Box::new(zeromq::ReqSocket::with_options(options)),
                "REP" => Box::new(zeromq::RepSocket::with_options(options)),
                "DEALER" => Box::new(zeromq::DealerSocket::with_options(options)),
                "ROUTER" => Box::new(zeromq::RouterSocket::with_options(options)),
                "XPUB" => Box::new(zeromq::XPubSocket::with_options(options)),
                "XSUB" => Box::new(zeromq::XSubSocket::with_options(options)),
                kind => return Err(format!("no {kind}").into()),
            });
        }
        Ok(self.socket.as_mut().expect("made above"))
    }

    async fn set(&mut self, option: &str, value: &str) -> Outcome<()> {
        match option {
            "ROUTING_ID" => self.identity = Some(bytes(value)?.try_into()?),
            "SUBSCRIBE" | "UNSUBSCRIBE" => {
                let topic = String::from_utf8(bytes(value)?)?;
                self.open()?.subscription(&topic, option == "SUBSCRIBE").await.ok_or("no subscriptions")??;
            }
            "ROUTER_MANDATORY" | "SNDHWM" | "RCVHWM" => {} // zmq.rs is always mandatory, and has no high-water marks
            _ => return Err(format!("no {option}").into()),
        }
        Ok(())
    }

    /// Sends a message. The socket refuses messages before its first connection.
    async fn send(&mut self, parts: Vec<Vec<u8>>) -> Outcome<()> {
        let mut message = ZmqMessage::from(parts[0].clone());
        for part in &parts[1..] {
            message.push_back(part.clone().into());
        }
        let start = Instant::now();
        loop {
            let sender = self.open()?.sender().ok_or("it does not send")?;
            match sender.send(message.clone()).await {
                Err(error) if error.to_string().contains("Not connected to peers") && start.elapsed() < LIMIT => {
                    sleep(Duration::from_millis(1)).await;
                }
                Err(error) if self.kind == "ROUTER" && error.to_string().contains("not found") => {
                    return Err("EHOSTUNREACH".into());
                }
                outcome => return Ok(outcome?),
            }
        }
    }

    async fn wait(&mut self, patience: Duration) -> Outcome<bool> {
        if self.next.is_none() {
            let receiver = self.open()?.receiver().ok_or("it does not receive")?;
            self.next = timeout(patience, receiver.recv()).await.ok().transpose()?;
        }
        Ok(self.next.is_some())
    }
}

fn bytes(word: &str) -> Outcome<Vec<u8>> {
    Ok(hex::decode(word.trim_start_matches('-'))?)
}

async fn carry_out(peers: &mut HashMap<String, Peer>, words: &[&str]) -> Outcome<String> {
    let [verb, id, rest @ ..] = words else { return Err("a verb and a socket".into()) };
    if *verb == "socket" {
        let mut peer = Peer { kind: rest[0].into(), identity: None, socket: None, next: None };
        if peer.kind != "DEALER" && peer.kind != "ROUTER" {
            peer.open()?;
        }
        peers.insert(id.to_string(), peer);
        return Ok(String::new());
    }
    if *verb == "close" {
        peers.remove(*id);
        return Ok(String::new());
    }
    let peer = peers.get_mut(*id).ok_or("no such socket")?;
    Ok(match *verb {
        "set" => peer.set(rest[0], rest[1]).await.map(|()| String::new())?,
        "bind" => format!(" {}", peer.open()?.open_at(&rest[0].replace('*', "0"), true).await?),
        "connect" => peer.open()?.open_at(rest[0], false).await.map(|_| String::new())?,
        "send" => {
            let parts = rest.iter().map(|word| bytes(word)).collect::<Outcome<Vec<_>>>()?;
            peer.send(parts).await.map(|()| String::new())?
        }
        "recv" => {
            if !peer.wait(LIMIT).await? {
                return Err("EAGAIN".into());
            }
            let message = peer.next.take().ok_or("nothing")?;
            message.iter().map(|part| if part.is_empty() { " -".into() } else { format!(" {}", hex::encode(part)) }).collect()
        }
        "readable" => format!(" {}", u8::from(peer.wait(Duration::from_millis(rest[0].parse()?)).await?)),
        _ => return Err(format!("no {verb}").into()),
    })
}

fn main() -> Outcome<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let (mut peers, mut out) = (HashMap::new(), std::io::stdout());
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let words: Vec<&str> = line.split_whitespace().collect();
        let answer = match runtime.block_on(carry_out(&mut peers, &words)) {
            Ok(answer) => format!("ok{answer}\n"),
            Err(error) => format!("error {}\n", error.to_string().replace('\n', " ")),
        };
        out.write_all(answer.as_bytes())?;
        out.flush()?;
    }
    // Exit without closing the sockets. Their close is not under test.
    std::process::exit(0);
}
