//! Majordomo (RFC 7): clients name a service, a broker finds a worker that offers it, and the system survives crashes of workers.
//! `cargo run --example majordomo`
//!
//! The broker removes a worker that was silent for a while. A client repeats a request that is not answered in time, so a worker
//! may get the same request twice. Workers register again with a broker that does not know them.

use std::collections::{HashMap, VecDeque};
use std::thread;
use std::time::{Duration, Instant};

use tautline::{Context, Dealer, Error, Message, Multipart, Req, Result, Router};

const CLIENT: &[u8] = b"MDPC01";
const WORKER: &[u8] = b"MDPW01";
const EMPTY: &[u8] = b"";
// Messages between a worker and its broker.
const READY: &[u8] = b"\x01";
const REQUEST: &[u8] = b"\x02";
const REPLY: &[u8] = b"\x03";
const HEARTBEAT: &[u8] = b"\x04";
const DISCONNECT: &[u8] = b"\x05";

/// Interval of heartbeats of brokers and workers, and the timeout after silence.
const BEAT: Duration = Duration::from_millis(50);
const SILENCE: Duration = Duration::from_secs(1);
/// Time until a client repeats a request.
const PATIENCE: Duration = Duration::from_millis(300);

#[derive(Default)]
struct Service {
    /// The client and its request.
    requests: VecDeque<(Vec<u8>, Vec<u8>)>,
    idle: VecDeque<Vec<u8>>,
}

struct Broker {
    router: Router,
    services: HashMap<Vec<u8>, Service>,
    /// Service of each worker, and the time of its last message.
    workers: HashMap<Vec<u8>, (Vec<u8>, Instant)>,
}

impl Broker {
    fn run(mut self) -> Result<()> {
        let mut beat = Instant::now();
        loop {
            match self.router.recv_multipart() {
                Err(Error::TimedOut) => {}
                message => self.take(&message?)?,
            }
            if beat.elapsed() >= BEAT {
                beat = Instant::now();
                self.workers.retain(|_, (_, heard)| heard.elapsed() < SILENCE);
                for worker in self.workers.keys().map(Vec::as_slice) {
                    self.router.send_multipart([worker, EMPTY, WORKER, HEARTBEAT])?;
                }
            }
        }
    }

    fn take(&mut self, message: &Multipart) -> Result<()> {
        match &message.iter().map(|part| &part[..]).collect::<Vec<_>>()[..] {
            [client, b"", CLIENT, service, question] => {
                let requests = &mut self.services.entry(service.to_vec()).or_default().requests;
                requests.push_back((client.to_vec(), question.to_vec()));
                self.dispatch(service)
            }
            [worker, b"", WORKER, READY, service] => {
                self.workers.insert(worker.to_vec(), (service.to_vec(), Instant::now()));
                self.offer(worker, service)
            }
            [worker, b"", WORKER, command, rest @ ..] => {
                match (self.workers.get_mut(*worker), *command, rest) {
                    (Some((service, _)), REPLY, [client, b"", answer]) => {
                        let service = service.clone();
                        self.router.send_multipart([*client, EMPTY, CLIENT, &service, answer])?;
                        self.offer(worker, &service)
                    }
                    (Some((_, heard)), HEARTBEAT, _) => {
                        *heard = Instant::now();
                        Ok(())
                    }
                    // The worker is not registered, or no longer registered.
                    _ => self.router.send_multipart([*worker, EMPTY, WORKER, DISCONNECT]),
                }
            }
            _ => Ok(()), // this is not Majordomo
        }
    }

    /// Registers an idle worker.
    fn offer(&mut self, worker: &[u8], service: &[u8]) -> Result<()> {
        self.services.entry(service.to_vec()).or_default().idle.push_back(worker.to_vec());
        self.dispatch(service)
    }

    /// Assigns requests to idle workers.
    fn dispatch(&mut self, service: &[u8]) -> Result<()> {
        let Some(Service { requests, idle }) = self.services.get_mut(service) else { return Ok(()) };
        idle.retain(|worker| self.workers.contains_key(worker));
        while let (Some((client, question)), Some(worker)) = (requests.front(), idle.front()) {
            self.router.send_multipart([&worker[..], EMPTY, WORKER, REQUEST, client, EMPTY, question])?;
            requests.pop_front();
            idle.pop_front();
        }
        Ok(())
    }
}

/// Answers until the context ends. A mortal worker exits at its first request.
fn work(context: &Context, endpoint: &str, service: &str, mortal: bool) -> Result<()> {
    let mut socket =
        Dealer::builder(context).receive_timeout(BEAT).linger(Duration::ZERO).connect(endpoint)?;
    let ready = [EMPTY, WORKER, READY, service.as_bytes()];
    socket.send_multipart(ready)?;
    let mut beat = Instant::now();
    loop {
        let message = match socket.recv_multipart() {
            Err(Error::TimedOut) => Multipart::new(),
            message => message?,
        };
        match &message.iter().map(|part| &part[..]).collect::<Vec<_>>()[..] {
            [b"", WORKER, REQUEST, ..] if mortal => return Ok(()),
            [b"", WORKER, REQUEST, client, b"", question] => {
                let answer = String::from_utf8_lossy(question).to_uppercase();
                socket.send_multipart([EMPTY, WORKER, REPLY, client, EMPTY, answer.as_bytes()])?;
            }
            [b"", WORKER, DISCONNECT] => socket.send_multipart(ready)?,
            _ => {}
        }
        if beat.elapsed() >= BEAT {
            beat = Instant::now();
            socket.send_multipart([EMPTY, WORKER, HEARTBEAT])?;
        }
    }
}

/// Repeats a request until it is answered.
fn ask(context: &Context, endpoint: &str, service: &str, question: &str) -> Result<Message> {
    loop {
        let mut socket =
            Req::builder(context).receive_timeout(PATIENCE).linger(Duration::ZERO).connect(endpoint)?;
        socket.send_multipart([CLIENT, service.as_bytes(), question.as_bytes()])?;
        match socket.recv_multipart() {
            Err(Error::TimedOut) => println!("no answer to {question:?} yet"),
            answer => return Ok(answer?.into_iter().last().unwrap_or_default()),
        }
    }
}

fn main() -> Result<()> {
    let context = Context::new();
    let mut router = Router::builder(&context).receive_timeout(BEAT).linger(Duration::ZERO).build()?;
    let endpoint = router.bind("tcp://127.0.0.1:*")?;
    let broker = Broker { router, services: HashMap::new(), workers: HashMap::new() };
    let broker = thread::spawn(|| broker.run());

    let workers: Vec<_> = [true, false, false]
        .map(|mortal| {
            let (context, endpoint) = (context.clone(), endpoint.clone());
            thread::spawn(move || work(&context, &endpoint, "shout", mortal))
        })
        .into();

    for question in ["one", "two", "three", "four"] {
        let answer = ask(&context, &endpoint, "shout", question)?;
        println!("{question} -> {}", answer.to_string_lossy());
        assert_eq!(answer, question.to_uppercase());
    }

    context.shutdown();
    assert_eq!(broker.join().expect("the broker does not panic"), Err(Error::Terminated));
    for worker in workers {
        // A worker may have exited at its request.
        assert!(matches!(worker.join().expect("no worker panics"), Ok(()) | Err(Error::Terminated)));
    }
    Ok(())
}
