//! Compares each route of `taut bridge` with NATS alone, which does the same with its own client: messages
//! per second, and latency of a message.
//!
//! `tests/tools/bridge/run.sh --speed` builds all of it and calls `speed NATS-SERVER TAUT FOLDER [ROUNDS]`.
//! A pair is a measurement of NATS alone, directly followed by one of the route; the ratio within each pair
//! is the result. NATS alone publishes and receives in this process. The route adds a process in
//! between. The cost of the processes is their processor time, which does not depend on other work of the
//! machine.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, OrderedPullConsumer, PullConsumer, pull};
use async_nats::jetstream::{self, stream};
use async_nats::{Client, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt;
use tautline::{Context, Multipart, Pull, Push, aio};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const SIZES: [usize; 2] = [64, 1024];
/// Messages in flight: the window of routes.
const WINDOW: usize = 256;
/// Messages in flight without acknowledgements.
const AHEAD: u64 = 4096;
const WORKERS: usize = 64;
/// Microseconds in a tick of the system.
const TICK_US: f64 = 10_000.0;
/// Number of messages sent one by one for a latency.
const TRIPS: usize = 500;

const PUSH_IN: &str = "ipc://@speed-push-in";
const PULL_OUT: &str = "ipc://@speed-pull-out";
const STORE_PUSH: &str = "ipc://@speed-store-push";
const STORE_ASK: &str = "ipc://@speed-store-ask";
const WORK_ASKED: &str = "ipc://@speed-work-asked";
const WORK_ASKING: &str = "ipc://@speed-work-asking";
const REPLAY: &str = "ipc://@speed-replay";

fn routes(port: u16) -> String {
    let route = |name: &str, promise: &str, socket: &str, bind: &str, more: &str| {
        format!(
            "\n[[routes]]\nname = \"{name}\"\npromise = \"{promise}\"\nsocket = \"{socket}\"\nbind = \"{bind}\"\n{more}\n"
        )
    };
    let stored = "stream = \"STORE\"\nsubject = \"store\"";
    let work = |name: &str| format!("stream = \"WORK\"\nsubject = \"work\"\nconsumer = \"{name}\"");
    [
        format!("[nats]\nservers = \"nats://127.0.0.1:{port}\"\n"),
        route("push-in", "as it comes", "PULL", PUSH_IN, "subject = \"in\""),
        route("pull-out", "as it comes", "PUSH", PULL_OUT, "subject = \"out\"\nqueue = 100000"),
        route("store-push", "stored", "PULL", STORE_PUSH, stored),
        route("store-ask", "stored", "ROUTER", STORE_ASK, stored),
        route("work-asked", "worked off", "DEALER", WORK_ASKED, &work("asked")),
        route("work-asking", "worked off", "ROUTER", WORK_ASKING, &work("asking")),
        route("replay", "replay", "PUB", REPLAY, "stream = \"WORK\"\nsubject = \"work\""),
    ]
    .concat()
}

/// Processes that end with the measurement.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Start of a measurement: the time, and the processor time used before.
struct Start {
    at: Instant,
    spent: f64,
}

/// Messages per second, and processor time per message in microseconds.
struct Taken {
    rate: f64,
    cost: f64,
}

struct Bench {
    /// Processes of NATS alone (the server and this process), and the process of the bridge.
    nats: [u32; 2],
    bridge: [u32; 1],
    client: Client,
    streams: jetstream::Context,
    context: Context,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Alone,
    Route,
}

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(server), Some(taut), Some(folder)) = (arguments.next(), arguments.next(), arguments.next())
    else {
        return Err("speed NATS-SERVER TAUT FOLDER [ROUNDS]".into());
    };
    let rounds: usize = arguments.next().map_or(Ok(5), |text| text.parse())?;
    let folder = Path::new(&folder);
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder)?;
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let log = fs::File::create(folder.join("server.log"))?;
    let server = Process(
        Command::new(server)
            .args(["-js", "-a", "127.0.0.1", "-p", &port.to_string(), "-sd"])
            .arg(folder.join("store"))
            .stderr(log)
            .spawn()?,
    );
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut bench = Bench::new(port).await?;
        let config = folder.join("bridge.toml");
        fs::write(&config, routes(port))?;
        let bridge = Process(Command::new(taut).arg("bridge").arg(&config).stdout(Stdio::null()).spawn()?);
        bench.nats = [server.0.id(), std::process::id()];
        bench.bridge = [bridge.0.id()];
        bench.run(rounds).await
    })
}

impl Bench {
    async fn new(port: u16) -> Outcome<Self> {
        let client = loop {
            match async_nats::connect(format!("127.0.0.1:{port}")).await {
                Ok(client) => break client,
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        };
        let streams = jetstream::new(client.clone());
        for (name, subject) in [("STORE", "store"), ("WORK", "work")] {
            let config = stream::Config {
                name: name.to_owned(),
                subjects: vec![subject.to_owned()],
                ..stream::Config::default()
            };
            while streams.get_or_create_stream(config.clone()).await.is_err() {}
        }
        Ok(Bench { nats: [0; 2], bridge: [0], client, streams, context: Context::new() })
    }

    async fn run(&self, rounds: usize) -> Outcome<()> {
        println!(
            "| route | bytes | NATS alone, messages/s | route / NATS alone | NATS alone, processor µs each | bridge / NATS alone | NATS alone, median µs | route / NATS alone |"
        );
        println!("|---|--:|--:|--:|--:|--:|--:|--:|");
        for name in [
            "as it comes, PUSH to NATS",
            "as it comes, NATS to PULL",
            "stored, PUSH",
            "stored, DEALER that waits for answers",
            "worked off, 64 REP",
            "worked off, 64 REQ",
            "replay, SUB",
        ] {
            for size in SIZES {
                let (mut rates, mut ratios, mut costs) = (vec![], vec![], vec![]);
                let (mut shares, mut times, mut slower) = (vec![], vec![], vec![]);
                for _ in 0..rounds {
                    let [alone, route] =
                        [self.rate(name, Way::Alone, size).await?, self.rate(name, Way::Route, size).await?];
                    rates.push(alone.rate);
                    ratios.push(route.rate / alone.rate);
                    costs.push(alone.cost);
                    shares.push(route.cost / alone.cost);
                    let [Some(alone), Some(route)] =
                        [self.time(name, Way::Alone, size).await?, self.time(name, Way::Route, size).await?]
                    else {
                        continue;
                    };
                    times.push(alone);
                    slower.push(route / alone);
                }
                let spread = |values: &mut Vec<f64>| match median(values) {
                    None => "-".to_owned(),
                    Some(middle) => {
                        format!("{middle:.2} ({:.2} to {:.2})", values[0], values[values.len() - 1])
                    }
                };
                let plain = |values: &mut Vec<f64>| {
                    median(values).map_or_else(|| "-".to_owned(), |middle| format!("{middle:.0}"))
                };
                println!(
                    "| {name} | {size} | {} | {} | {} | {} | {} | {} |",
                    plain(&mut rates),
                    spread(&mut ratios),
                    plain(&mut costs),
                    spread(&mut shares),
                    plain(&mut times),
                    spread(&mut slower)
                );
            }
        }
        Ok(())
    }

    fn start(&self, way: Way) -> Outcome<Start> {
        Ok(Start { at: Instant::now(), spent: self.spent(way)? })
    }

    fn taken(&self, way: Way, number: u64, start: &Start) -> Outcome<Taken> {
        let (took, number) = (start.at.elapsed(), number as f64);
        let cost = (self.spent(way)? - start.spent) * TICK_US / number;
        Ok(Taken { rate: number / took.as_secs_f64(), cost })
    }

    /// Returns the processor time so far, in ticks: fields 14 and 15 of `stat`.
    fn spent(&self, way: Way) -> Outcome<f64> {
        let processes = if way == Way::Alone { &self.nats[..] } else { &self.bridge };
        let mut sum = 0;
        for process in processes {
            let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
            let behind_name = stat.rsplit(')').next().unwrap_or_default();
            for field in behind_name.split_whitespace().skip(11).take(2) {
                sum += field.parse::<u64>()?;
            }
        }
        Ok(sum as f64)
    }

    async fn rate(&self, name: &str, way: Way, size: usize) -> Outcome<Taken> {
        match name {
            "as it comes, PUSH to NATS" => self.publish(way, size).await,
            "as it comes, NATS to PULL" => self.deliver(way, size).await,
            "stored, PUSH" => self.store(way, size).await,
            "stored, DEALER that waits for answers" => self.store_answered(way, size).await,
            "worked off, 64 REP" => self.work(way, size, WORK_ASKED).await,
            "worked off, 64 REQ" => self.work(way, size, WORK_ASKING).await,
            _ => self.replay(way, size).await,
        }
    }

    async fn subscribe(&self, subject: &'static str) -> Outcome<Subscriber> {
        let subscriber = self.client.subscribe(subject).await?;
        self.client.flush().await?;
        Ok(subscriber)
    }

    async fn publish(&self, way: Way, size: usize) -> Outcome<Taken> {
        let number = 100_000;
        let mut subscriber = self.subscribe("in").await?;
        let received = Arc::new(AtomicU64::new(0));
        let mut sender: aio::Push = Push::builder(&self.context).connect(PUSH_IN)?.into_async();
        let body = Bytes::from(vec![b'x'; size]);
        let start = self.start(way)?;
        let (client, seen) = (self.client.clone(), received.clone());
        let sending = tokio::spawn(async move {
            for at in 0..number {
                ahead(at, &seen).await;
                match way {
                    Way::Alone => client.publish("in", body.clone()).await?,
                    Way::Route => sender.send(body.clone()).await?,
                }
            }
            Outcome::Ok(())
        });
        for at in 0..number {
            subscriber.next().await.ok_or("no subscription")?;
            received.store(at + 1, Ordering::SeqCst);
        }
        let taken = self.taken(way, number, &start)?;
        sending.await??;
        Ok(taken)
    }

    async fn deliver(&self, way: Way, size: usize) -> Outcome<Taken> {
        let number = 100_000;
        let mut subscriber = self.subscribe("in").await?;
        let mut receiver = self.receiver()?;
        let received = Arc::new(AtomicU64::new(0));
        let body = Bytes::from(vec![b'x'; size]);
        let start = self.start(way)?;
        let (client, seen) = (self.client.clone(), received.clone());
        let subject = if way == Way::Alone { "in" } else { "out" };
        let sending = tokio::spawn(async move {
            for at in 0..number {
                ahead(at, &seen).await;
                client.publish(subject, body.clone()).await?;
            }
            Outcome::Ok(())
        });
        for at in 0..number {
            match way {
                Way::Alone => drop(subscriber.next().await.ok_or("no subscription")?),
                Way::Route => drop(receiver.recv().await?),
            }
            received.store(at + 1, Ordering::SeqCst);
        }
        let taken = self.taken(way, number, &start)?;
        sending.await??;
        Ok(taken)
    }

    /// Waits for the connection. Messages that reach the route earlier are dropped, or go to another route.
    fn receiver(&self) -> Outcome<aio::Pull> {
        let mut receiver = Pull::builder(&self.context).connect(PULL_OUT)?;
        receiver.wait_for_peers(1, None)?;
        Ok(receiver.into_async())
    }

    /// Stores `number` messages, with a window of acknowledgements.
    async fn fill(&self, subject: &'static str, number: u64, size: usize) -> Outcome<()> {
        let body = Bytes::from(vec![b'x'; size]);
        let mut flights = futures_util::stream::iter(0..number)
            .map(|_| async { self.streams.publish(subject, body.clone()).await?.await })
            .buffered(WINDOW);
        while let Some(stored) = flights.next().await {
            stored?;
        }
        Ok(())
    }

    async fn empty(&self, name: &str) -> Outcome<()> {
        self.streams.get_stream(name).await?.purge().await?;
        Ok(())
    }

    async fn store(&self, way: Way, size: usize) -> Outcome<Taken> {
        let number = 30_000;
        self.empty("STORE").await?;
        let mut sender: aio::Push = Push::builder(&self.context).connect(STORE_PUSH)?.into_async();
        let mut stream = self.streams.get_stream("STORE").await?;
        let start = self.start(way)?;
        if way == Way::Alone {
            self.fill("store", number, size).await?;
        } else {
            let body = Bytes::from(vec![b'x'; size]);
            for _ in 0..number {
                sender.send(body.clone()).await?;
            }
            while stream.info().await?.state.messages < number {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        }
        self.taken(way, number, &start)
    }

    async fn store_answered(&self, way: Way, size: usize) -> Outcome<Taken> {
        let number = 30_000;
        self.empty("STORE").await?;
        let mut asker: aio::Dealer =
            tautline::Dealer::builder(&self.context).connect(STORE_ASK)?.into_async();
        let body = Bytes::from(vec![b'x'; size]);
        let start = self.start(way)?;
        if way == Way::Alone {
            self.fill("store", number, size).await?;
        } else {
            for at in 0..number + WINDOW as u64 {
                if at >= WINDOW as u64 {
                    stored(&asker.recv_multipart().await?)?;
                }
                if at < number {
                    asker.send(body.clone()).await?;
                }
            }
        }
        self.taken(way, number, &start)
    }

    /// The workers answer at once.
    async fn work(&self, way: Way, size: usize, endpoint: &'static str) -> Outcome<Taken> {
        let number = 20_000;
        self.empty("WORK").await?;
        self.fill("work", number, size).await?;
        let done = Arc::new(AtomicU64::new(0));
        let start = self.start(way)?;
        if way == Way::Alone {
            let stream = self.streams.get_stream("WORK").await?;
            let config = pull::Config {
                ack_policy: AckPolicy::Explicit,
                max_ack_pending: WINDOW as i64,
                ..pull::Config::default()
            };
            let consumer: PullConsumer = stream.create_consumer(config).await?;
            let mut messages = consumer.stream().max_messages_per_batch(WINDOW).messages().await?;
            for _ in 0..number {
                messages.next().await.ok_or("no messages")??.ack().await?;
            }
            self.client.flush().await?;
            return self.taken(way, number, &start);
        }
        let mut workers = Vec::new();
        for _ in 0..WORKERS {
            let (context, done) = (self.context.clone(), done.clone());
            workers.push(tokio::spawn(async move { worker(&context, endpoint, &done).await }));
        }
        while done.load(Ordering::SeqCst) < number {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let taken = self.taken(way, number, &start)?;
        workers.iter().for_each(tokio::task::JoinHandle::abort);
        Ok(taken)
    }

    async fn replay(&self, way: Way, size: usize) -> Outcome<Taken> {
        let number = 50_000;
        self.empty("WORK").await?;
        self.fill("work", number, size).await?;
        let start = self.start(way)?;
        if way == Way::Alone {
            let stream = self.streams.get_stream("WORK").await?;
            let config =
                pull::OrderedConfig { deliver_policy: DeliverPolicy::All, ..pull::OrderedConfig::default() };
            let consumer: OrderedPullConsumer = stream.create_consumer(config).await?;
            let mut messages = consumer.messages().await?;
            for _ in 0..number {
                messages.next().await.ok_or("no messages")??;
            }
        } else {
            let mut subscriber: aio::Sub =
                tautline::Sub::builder(&self.context).subscribe("").connect(REPLAY)?.into_async();
            for _ in 0..number {
                subscriber.recv().await?;
            }
        }
        self.taken(way, number, &start)
    }

    /// Returns the median latency of messages sent one after another, in microseconds.
    async fn time(&self, name: &str, way: Way, size: usize) -> Outcome<Option<f64>> {
        let body = Bytes::from(vec![b'x'; size]);
        let mut times = Vec::new();
        match name {
            "as it comes, PUSH to NATS" => {
                let mut subscriber = self.subscribe("in").await?;
                let mut sender: aio::Push = Push::builder(&self.context).connect(PUSH_IN)?.into_async();
                for _ in 0..TRIPS {
                    let start = Instant::now();
                    match way {
                        Way::Alone => self.client.publish("in", body.clone()).await?,
                        Way::Route => sender.send(body.clone()).await?,
                    }
                    subscriber.next().await.ok_or("no subscription")?;
                    times.push(micros(start));
                }
            }
            "as it comes, NATS to PULL" => {
                let mut subscriber = self.subscribe("in").await?;
                let mut receiver = self.receiver()?;
                for _ in 0..TRIPS {
                    let start = Instant::now();
                    if way == Way::Alone {
                        self.client.publish("in", body.clone()).await?;
                        subscriber.next().await.ok_or("no subscription")?;
                    } else {
                        self.client.publish("out", body.clone()).await?;
                        receiver.recv().await?;
                    }
                    times.push(micros(start));
                }
            }
            "stored, DEALER that waits for answers" => {
                let mut asker: aio::Dealer =
                    tautline::Dealer::builder(&self.context).connect(STORE_ASK)?.into_async();
                for _ in 0..TRIPS {
                    let start = Instant::now();
                    if way == Way::Alone {
                        self.streams.publish("store", body.clone()).await?.await?;
                    } else {
                        asker.send(body.clone()).await?;
                        stored(&asker.recv_multipart().await?)?;
                    }
                    times.push(micros(start));
                }
            }
            _ => return Ok(None),
        }
        // The first messages open connections and streams.
        Ok(median(&mut times.split_off(TRIPS / 10)))
    }
}

/// Waits while the number of messages in flight is at its limit.
async fn ahead(sent: u64, received: &AtomicU64) {
    while sent >= received.load(Ordering::SeqCst) + AHEAD {
        tokio::task::yield_now().await;
    }
}

fn stored(answer: &Multipart) -> Outcome<()> {
    match answer.first() {
        Some(word) if word == "stored" => Ok(()),
        _ => Err(format!("not stored: {answer:?}").into()),
    }
}

async fn worker(context: &Context, endpoint: &str, done: &AtomicU64) -> Outcome<()> {
    if endpoint == WORK_ASKED {
        let mut worker: aio::Rep =
            tautline::Rep::builder(context).linger(Duration::ZERO).connect(endpoint)?.into_async();
        loop {
            worker.recv_multipart().await?;
            worker.send("").await?;
            done.fetch_add(1, Ordering::SeqCst);
        }
    }
    let mut worker: aio::Req =
        tautline::Req::builder(context).linger(Duration::ZERO).connect(endpoint)?.into_async();
    loop {
        worker.send("").await?;
        worker.recv_multipart().await?;
        done.fetch_add(1, Ordering::SeqCst);
    }
}

fn micros(start: Instant) -> f64 {
    start.elapsed().as_nanos() as f64 / 1000.0
}

/// Sorts the values and returns their median.
fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
