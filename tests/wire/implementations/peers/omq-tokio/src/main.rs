//! omq-tokio as a peer. It executes the commands of ../../../peer.py, one a line, and answers each with a line.
use std::collections::HashMap;
use std::error::Error;
use std::io::{BufRead, Write};
use std::sync::LazyLock;
use std::time::Duration;

use omq_tokio::blocking::Socket;
use omq_tokio::{Context, CurveKeypair, CurvePublicKey, CurveSecretKey, Message, Options, SocketType};

static CONTEXT: LazyLock<Context> = LazyLock::new(Context::new);
const LIMIT: Duration = Duration::from_secs(20);

type Outcome<T> = Result<T, Box<dyn Error>>;

/// A socket that is created at its first use, because its options are arguments of its constructor.
struct Peer {
    kind: SocketType,
    options: Options,
    security: HashMap<String, String>,
    subscriptions: Vec<Vec<u8>>,
    socket: Option<Socket>,
    next: Option<Message>,
}

impl Peer {
    fn new(kind: &str) -> Outcome<Self> {
        let kind = match kind {
            "PAIR" => SocketType::Pair,
            "PUB" => SocketType::Pub,
            "SUB" => SocketType::Sub,
            "REQ" => SocketType::Req,
            "REP" => SocketType::Rep,
            "DEALER" => SocketType::Dealer,
            "ROUTER" => SocketType::Router,
            "PULL" => SocketType::Pull,
            "PUSH" => SocketType::Push,
            "XPUB" => SocketType::XPub,
            "XSUB" => SocketType::XSub,
            _ => return Err(format!("no {kind}").into()),
        };
        let mut options = Options::default();
        options.xpub_nodrop = true; // without it the socket drops messages at further limits of its queues
        Ok(Self { kind, options, security: HashMap::new(), subscriptions: Vec::new(), socket: None, next: None })
    }

    fn set(&mut self, option: &str, value: &str) -> Outcome<()> {
        match option {
            "ROUTING_ID" => self.options.identity = bytes(value)?.into(),
            "ROUTER_MANDATORY" => self.options.router_mandatory = value != "0",
            "SNDHWM" => self.options.send_hwm = any_for_zero(value)?,
            "RCVHWM" => self.options.recv_hwm = any_for_zero(value)?,
            "SUBSCRIBE" if self.kind == SocketType::Sub => match &self.socket {
                Some(socket) => socket.subscribe(bytes(value)?)?,
                None => self.subscriptions.push(bytes(value)?),
            },
            "UNSUBSCRIBE" if self.kind == SocketType::Sub => self.open()?.unsubscribe(bytes(value)?)?,
            _ if option.starts_with("PLAIN_") || option.starts_with("CURVE_") => {
                self.security.insert(option.into(), value.into());
            }
            _ => return Err(format!("no {option}").into()),
        }
        Ok(())
    }

    fn secured(&self) -> Outcome<Options> {
        let options = self.options.clone();
        let text = |name: &str| -> Outcome<String> {
            Ok(String::from_utf8(bytes(self.security.get(name).map_or("-", String::as_str))?)?)
        };
        let key = |name: &str| -> Outcome<[u8; 32]> {
            let value = self.security.get(name).ok_or_else(|| format!("no {name}"))?;
            Ok(bytes(value)?.try_into().map_err(|_| format!("{name} has 32 bytes"))?)
        };
        let pair = || -> Outcome<CurveKeypair> {
            let secret = CurveSecretKey::from_bytes(key("CURVE_SECRETKEY")?);
            Ok(CurveKeypair { public: secret.derive_public(), secret })
        };
        Ok(if self.security.contains_key("CURVE_SERVER") {
            options.curve_server(pair()?)
        } else if self.security.contains_key("CURVE_SERVERKEY") {
            options.curve_client(pair()?, CurvePublicKey::from_bytes(key("CURVE_SERVERKEY")?))
        } else if self.security.contains_key("PLAIN_SERVER") {
            // The accepted credentials are no options in ZeroMQ. The caller passes them in the options of a client.
            options.plain_server_credentials([(text("PLAIN_USERNAME")?, text("PLAIN_PASSWORD")?)])
        } else if self.security.contains_key("PLAIN_USERNAME") {
            options.plain_client(text("PLAIN_USERNAME")?, text("PLAIN_PASSWORD")?)
        } else {
            options
        })
    }

    fn open(&mut self) -> Outcome<&Socket> {
        if self.socket.is_none() {
            let socket = CONTEXT.blocking_socket(self.kind, self.secured()?);
            for topic in self.subscriptions.drain(..) {
                socket.subscribe(topic)?;
            }
            self.socket = Some(socket);
        }
        Ok(self.socket.as_ref().expect("made above"))
    }

    fn wait(&mut self, patience: Duration) -> Outcome<bool> {
        if self.next.is_none() {
            self.next = match self.open()?.recv_timeout(patience) {
                Ok(message) => Some(message),
                Err(omq_tokio::Error::Timeout) => None,
                Err(error) => return Err(error.into()),
            };
        }
        Ok(self.next.is_some())
    }
}

/// Returns a large high-water mark for 0, as omq-tokio has no unlimited mark.
fn any_for_zero(value: &str) -> Outcome<u32> {
    let mark = value.parse()?;
    Ok(if mark == 0 { 1 << 20 } else { mark })
}

fn bytes(word: &str) -> Outcome<Vec<u8>> {
    Ok(hex::decode(word.trim_start_matches('-'))?)
}

fn carry_out(peers: &mut HashMap<String, Peer>, words: &[&str]) -> Outcome<String> {
    let [verb, id, rest @ ..] = words else { return Err("a verb and a socket".into()) };
    if *verb == "socket" {
        peers.insert(id.to_string(), Peer::new(rest[0])?);
        return Ok(String::new());
    }
    if *verb == "close" {
        if let Some(socket) = peers.remove(*id).and_then(|peer| peer.socket) {
            socket.close_with_linger(Some(Duration::ZERO))?;
        }
        return Ok(String::new());
    }
    let peer = peers.get_mut(*id).ok_or("no such socket")?;
    Ok(match *verb {
        "set" => peer.set(rest[0], rest[1]).map(|()| String::new())?,
        "bind" => format!(" {}", peer.open()?.bind(rest[0].replace('*', "0"))?),
        "connect" => peer.open()?.connect(rest[0]).map(|()| String::new())?,
        "send" => {
            let parts = rest.iter().map(|word| bytes(word)).collect::<Outcome<Vec<_>>>()?;
            match peer.open()?.send_timeout(Message::multipart(parts), LIMIT) {
                Err(omq_tokio::Error::Unroutable) => return Err("EHOSTUNREACH".into()),
                outcome => outcome.map(|()| String::new())?,
            }
        }
        "recv" => {
            if !peer.wait(LIMIT)? {
                return Err("EAGAIN".into());
            }
            let message = peer.next.take().ok_or("nothing")?;
            message.iter().map(|part| if part.is_empty() { " -".into() } else { format!(" {}", hex::encode(part)) }).collect()
        }
        "readable" => format!(" {}", u8::from(peer.wait(Duration::from_millis(rest[0].parse()?))?)),
        _ => return Err(format!("no {verb}").into()),
    })
}

fn main() {
    let (mut peers, mut out) = (HashMap::new(), std::io::stdout());
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { return };
        let words: Vec<&str> = line.split_whitespace().collect();
        let answer = match carry_out(&mut peers, &words) {
            Ok(answer) => format!("ok{answer}\n"),
            Err(error) => format!("error {}\n", error.to_string().replace('\n', " ")),
        };
        if out.write_all(answer.as_bytes()).and_then(|()| out.flush()).is_err() {
            return;
        }
    }
    // Exit without closing the sockets. Their close is not under test.
    std::process::exit(0);
}
