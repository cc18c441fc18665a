//! One run: the command line, and each end in a separate thread.

use crate::flow::{self, Shared};
use crate::outcome::Outcome;
use crate::{memory, trips, Peer, Role, Run, Trouble};
use std::sync::{mpsc, Barrier};
use std::time::Duration;

/// As in the filter pattern of zmq-bench.
const TOPIC: &[u8] = b"s0000000";

pub(crate) fn parse() -> Result<Run, String> {
    let mut run = Run {
        mode: String::new(),
        pattern: String::new(),
        transport: String::new(),
        size: 0,
        count: 0,
        api: "buffers".to_owned(),
        window: 100,
        subscribers: 1,
        pairs: 1,
        matching: 100,
        connections: 100,
        topic: Vec::new(),
        timeout_s: 20,
        endpoint: String::new(),
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(key) = arguments.next() {
        if key == "--two-processes" {
            continue;
        }
        let value = arguments.next().ok_or_else(|| format!("{key} needs a value"))?;
        let number = || value.parse::<u64>().map_err(|_| format!("{key} needs a number"));
        match key.as_str() {
            "--mode" => run.mode = value,
            "--pattern" => run.pattern = value,
            "--transport" => run.transport = value,
            "--api" => run.api = value,
            "--size" => run.size = number()? as usize,
            "--count" => run.count = number()?,
            "--window" => run.window = number()?.max(1),
            "--subscribers" => run.subscribers = number()?.max(1),
            "--pairs" => run.pairs = number()?.max(1),
            "--match" => run.matching = number()?.clamp(1, 100),
            "--connections" => run.connections = number()?.max(1),
            "--timeout" => run.timeout_s = number()?,
            _ => {}
        }
    }
    if run.pattern == "filter" {
        run.topic = TOPIC.to_vec();
    }
    if run.pattern != "fan_out" {
        run.subscribers = 1;
    }
    if run.size < 16 + run.topic.len() {
        return Err("--size must be at least 16 bytes, 24 with topics".to_owned());
    }
    if run.pattern.starts_with("memory") {
        run.count = run.connections;
    }
    place(&run).map_err(|trouble| format!("{trouble:?}"))
}

/// Returns the run with a new endpoint.
pub(crate) fn place(run: &Run) -> Result<Run, Trouble> {
    use std::sync::atomic::{AtomicU64, Ordering};
    static PLACES: AtomicU64 = AtomicU64::new(0);
    let number = PLACES.fetch_add(1, Ordering::Relaxed);
    let endpoint = match run.transport.as_str() {
        "tcp" => {
            // Not 127.0.0.1: outgoing connections use that address, and one of them might take the port in
            // the meantime.
            let address = format!("127.1.{}.{}:0", number / 250, 1 + number % 250);
            format!("tcp://{}", std::net::TcpListener::bind(address)?.local_addr()?)
        }
        "ipc" => {
            format!("ipc://{}/bench-{}-{number}", std::env::temp_dir().display(), std::process::id())
        }
        _ => format!("inproc://bench-{number}"),
    };
    Ok(Run { endpoint, ..run.clone() })
}

pub(crate) fn watchdog(seconds: u64) {
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(seconds));
        println!(r#"{{"ok":false,"error":"hung: the watchdog ended it"}}"#);
        std::process::exit(3);
    });
}

pub(crate) fn go<P: Peer>(peer: &P, run: &Run) -> Result<Outcome, Trouble> {
    match run.pattern.as_str() {
        "push_pull" => flows(peer, run, Role::Push, Role::Pull, 1, 1),
        "pub_sub" | "filter" => flows(peer, run, Role::Publish, Role::Subscribe, 1, 1),
        "fan_out" => flows(peer, run, Role::Publish, Role::Subscribe, 1, run.subscribers),
        "scaling" => flows(peer, run, Role::Push, Role::Pull, run.pairs, 1),
        "req_rep" => flows(peer, run, Role::Request, Role::Reply, 1, 1),
        "dealer_router" | "batches" => flows(peer, run, Role::Dealer, Role::Router, 1, 1),
        "memory_pairs" => memory::pairs(peer, run),
        "memory_crowd" => memory::crowd(peer, run),
        _ => Err(Trouble::Unsupported),
    }
}

/// Runs `pairs` of `near` and `far` ends in parallel, each sending its part, with `fars` far ends for each
/// near one.
fn flows<P: Peer>(
    peer: &P,
    run: &Run,
    near: Role,
    far: Role,
    pairs: u64,
    fars: u64,
) -> Result<Outcome, Trouble> {
    let together = Barrier::new(pairs as usize);
    let mut flows = vec![(run.clone(), Shared::new(fars, &together))];
    while (flows.len() as u64) < pairs {
        flows.push((place(run)?, Shared::new(fars, &together)));
    }
    for (part, _) in &mut flows {
        part.count = (run.count / pairs).max(1);
    }
    let (binds, connects) = if near.binds() { (near, far) } else { (far, near) };
    let fars_connect = if near.binds() { fars } else { 1 };
    std::thread::scope(|scope| {
        let mut ends = Vec::new();
        for (part, shared) in &flows {
            let (told, bound) = mpsc::channel::<()>();
            ends.push(scope.spawn(move || {
                life(peer, binds, part, shared, &|| {
                    let _ = told.send(());
                })
            }));
            // Its error is reported below, after which it sends no further reports.
            let _ = bound.recv();
            for _ in 0..fars_connect {
                ends.push(scope.spawn(move || life(peer, connects, part, shared, &|| {})));
            }
        }
        ends.into_iter().try_fold(Outcome::default(), |all, end| {
            Ok(all.add(end.join().map_err(|_| Trouble::Failed("an end panicked".to_owned()))??))
        })
    })
}

fn life<P: Peer>(
    peer: &P,
    role: Role,
    run: &Run,
    shared: &Shared,
    bound: &dyn Fn(),
) -> Result<Outcome, Trouble> {
    ends_must_work(peer.block_on(async {
        let mut end = peer.open(role, run, bound).await?;
        match role {
            Role::Push | Role::Publish => flow::send(&mut end, run, shared).await,
            Role::Pull | Role::Subscribe => flow::receive(&mut end, run, shared).await,
            Role::Request => trips::request(&mut end, run).await,
            Role::Dealer if run.pattern == "batches" => trips::batches(&mut end, run).await,
            Role::Router if run.pattern == "batches" => trips::echo_batches(&mut end, run).await,
            Role::Dealer => trips::pipeline(&mut end, run).await,
            Role::Reply | Role::Router => trips::echo(&mut end, run).await,
        }
    }))
}

/// An end that failed ends the process, because the other end might wait for it forever.
pub(crate) fn ends_must_work(outcome: Result<Outcome, Trouble>) -> Result<Outcome, Trouble> {
    match &outcome {
        Ok(_) => {}
        Err(Trouble::Failed(why)) => {
            println!(r#"{{"ok":false,"error":{why:?}}}"#);
            std::process::exit(2);
        }
        Err(Trouble::Unsupported) => {
            println!(r#"{{"ok":false,"unsupported":true,"error":"the library does not support this"}}"#);
            std::process::exit(0);
        }
    }
    outcome
}
