//! One run: both ends in threads, every message checked, the clock the receiver's.

use crate::{End, Peer, Role, Run, Trouble};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Sequence numbers that are not data, as in zmq-bench.
const HELLO: u64 = u64::MAX;
const FINISH: u64 = u64::MAX - 1;

pub(crate) fn parse() -> Result<Run, String> {
    let mut run = Run {
        mode: String::new(),
        pattern: String::new(),
        transport: String::new(),
        size: 0,
        count: 0,
        window: 100,
        timeout_s: 20,
        endpoint: String::new(),
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(key) = arguments.next() {
        if key == "--two-processes" {
            continue;
        }
        let value = arguments.next().ok_or_else(|| format!("{key} wants a value"))?;
        let number = || value.parse::<u64>().map_err(|_| format!("{key} wants a number"));
        match key.as_str() {
            "--mode" => run.mode = value,
            "--pattern" => run.pattern = value,
            "--transport" => run.transport = value,
            "--size" => run.size = number()? as usize,
            "--count" => run.count = number()?,
            "--window" => run.window = number()?.max(1),
            "--timeout" => run.timeout_s = number()?,
            _ => {}
        }
    }
    if run.size < 16 {
        return Err("--size is 16 bytes or more".to_owned());
    }
    run.endpoint = match run.transport.as_str() {
        "tcp" => {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").map_err(|e| e.to_string())?;
            format!("tcp://{}", listener.local_addr().map_err(|e| e.to_string())?)
        }
        "ipc" => format!("ipc://{}/bench-{}", std::env::temp_dir().display(), std::process::id()),
        _ => "inproc://bench".to_owned(),
    };
    Ok(run)
}

pub(crate) fn watchdog(seconds: u64) {
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(seconds));
        println!(r#"{{"ok":false,"error":"hung: the watchdog ended it"}}"#);
        std::process::exit(3);
    });
}

/// Processor time of the whole process.
fn cpu_seconds() -> f64 {
    use nix::sys::{resource, time::TimeVal};
    let seconds = |t: TimeVal| t.tv_sec() as f64 + t.tv_usec() as f64 / 1e6;
    match resource::getrusage(resource::UsageWho::RUSAGE_SELF) {
        Ok(usage) => seconds(usage.user_time()) + seconds(usage.system_time()),
        Err(_) => 0.0,
    }
}

fn tail_of(sequence: u64) -> u64 {
    sequence.wrapping_add(0x51ed_270b_2f1c_a3d5).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn stamp(body: &mut [u8], sequence: u64) {
    let end = body.len() - 8;
    body[..8].copy_from_slice(&sequence.to_le_bytes());
    body[end..].copy_from_slice(&tail_of(sequence).to_le_bytes());
}

/// The sequence number of a whole message.
fn sequence_of(body: &[u8], size: usize) -> Option<u64> {
    let number = |bytes: &[u8]| bytes.try_into().map(u64::from_le_bytes).ok();
    if body.len() != size {
        return None;
    }
    let sequence = number(&body[..8])?;
    (number(&body[size - 8..])? == tail_of(sequence)).then_some(sequence)
}

#[derive(Default)]
pub(crate) struct Outcome {
    messages: u64,
    seconds: f64,
    cpu_seconds: f64,
    lost: u64,
    reordered: u64,
    corrupted: u64,
    samples_ns: Vec<u64>,
}

impl Outcome {
    fn take(&mut self, sequence: Option<u64>, expected: &mut u64) {
        match sequence {
            None => {
                self.corrupted += 1;
                *expected += 1;
            }
            Some(s) if s == *expected => *expected += 1,
            Some(s) if s > *expected => {
                self.lost += s - *expected;
                *expected = s + 1;
            }
            Some(_) => {
                self.reordered += 1;
                self.lost = self.lost.saturating_sub(1);
            }
        }
    }

    pub(crate) fn json(mut self, run: &Run, version: &str) -> String {
        let metrics = if self.samples_ns.is_empty() {
            format!(r#""messages_per_second":{:.1}"#, self.messages as f64 / self.seconds)
        } else {
            self.samples_ns.sort_unstable();
            let at = |q: f64| self.samples_ns[((self.samples_ns.len() - 1) as f64 * q) as usize] as f64 / 1e3;
            format!(r#""p50_us":{:.3},"p99_us":{:.3}"#, at(0.5), at(0.99))
        };
        format!(
            r#"{{"ok":true,"count":{},"messages":{},"seconds":{:.9},"cpu_seconds":{:.6},"lost":{},"reordered":{},"corrupted":{},"version":"{version}","metrics":{{{metrics}}}}}"#,
            run.count,
            self.messages,
            self.seconds,
            self.cpu_seconds,
            self.lost,
            self.reordered,
            self.corrupted
        )
    }
}

/// What the two threads tell each other without the library.
struct Shared {
    greeted: AtomicBool,
    done: AtomicBool,
}

pub(crate) fn go<P: Peer>(peer: &P, run: &Run) -> Result<Outcome, Trouble> {
    let (near, far) = match run.pattern.as_str() {
        "push_pull" => (Role::Push, Role::Pull),
        "pub_sub" => (Role::Publish, Role::Subscribe),
        "req_rep" => (Role::Request, Role::Reply),
        "dealer_router" => (Role::Dealer, Role::Router),
        _ => return Err(Trouble::Unsupported),
    };
    let shared = Shared { greeted: AtomicBool::new(false), done: AtomicBool::new(false) };
    let (told, bound) = mpsc::channel::<()>();
    let (binds, connects) = if near.binds() { (near, far) } else { (far, near) };
    std::thread::scope(|scope| {
        let binding = scope.spawn({
            let shared = &shared;
            move || {
                life(peer, binds, run, shared, &|| {
                    let _ = told.send(());
                })
            }
        });
        // An error of it comes out below; it tells no more then.
        let _ = bound.recv();
        let connecting = life(peer, connects, run, &shared, &|| {});
        let binding = match (binding.join(), &connecting) {
            (Ok(outcome), _) => outcome,
            (Err(_), _) => Err(Trouble::Failed("an end panicked".to_owned())),
        };
        let (near, far) = if near.binds() { (binding?, connecting?) } else { (connecting?, binding?) };
        // Of round trips the near end has the clock, else the far one; both share the process.
        let (mut clock, other) = if far.seconds > 0.0 { (far, near) } else { (near, far) };
        clock.corrupted += other.corrupted;
        if clock.cpu_seconds < 0.0 {
            clock.cpu_seconds += other.cpu_seconds;
        }
        Ok(clock)
    })
}

fn life<P: Peer>(
    peer: &P,
    role: Role,
    run: &Run,
    shared: &Shared,
    bound: &dyn Fn(),
) -> Result<Outcome, Trouble> {
    let outcome = peer.block_on(async {
        let mut end = peer.open(role, run, bound).await?;
        match role {
            Role::Push | Role::Publish => send_flow(&mut end, run, shared).await,
            Role::Pull | Role::Subscribe => receive_flow(&mut end, run, shared).await,
            Role::Request => request(&mut end, run).await,
            Role::Dealer => pipeline(&mut end, run).await,
            Role::Reply | Role::Router => echo(&mut end, run).await,
        }
    });
    if let Err(Trouble::Failed(why)) = &outcome {
        // The other end may wait for this one for ever.
        println!(r#"{{"ok":false,"error":{why:?}}}"#);
        std::process::exit(2);
    }
    if matches!(outcome, Err(Trouble::Unsupported)) {
        println!(r#"{{"ok":false,"unsupported":true,"error":"the library has no such thing"}}"#);
        std::process::exit(0);
    }
    outcome
}

/// Sends a control message until the other thread has seen it: a PUB may lose what comes before the subscription.
async fn insist<E: End>(end: &mut E, run: &Run, sequence: u64, seen: &AtomicBool) -> Result<(), Trouble> {
    let mut body = vec![0; run.size];
    stamp(&mut body, sequence);
    while !seen.load(Ordering::Acquire) {
        end.send(&body).await?;
        end.flush().await?;
        let until = Instant::now() + Duration::from_millis(5);
        while !seen.load(Ordering::Acquire) && Instant::now() < until {
            std::thread::sleep(Duration::from_micros(100));
        }
    }
    Ok(())
}

async fn send_flow<E: End>(end: &mut E, run: &Run, shared: &Shared) -> Result<Outcome, Trouble> {
    let mut body = vec![0; run.size];
    insist(end, run, HELLO, &shared.greeted).await?;
    let cpu = cpu_seconds();
    for sequence in 0..run.count {
        stamp(&mut body, sequence);
        end.send(&body).await?;
    }
    end.flush().await?;
    insist(end, run, FINISH, &shared.done).await?;
    Ok(Outcome { cpu_seconds: -cpu, ..Outcome::default() })
}

async fn receive_flow<E: End>(end: &mut E, run: &Run, shared: &Shared) -> Result<Outcome, Trouble> {
    let mut outcome = Outcome::default();
    let (mut body, mut expected, mut first, mut last) = (Vec::new(), 0, None, Instant::now());
    let mut cpu = 0.0;
    loop {
        end.receive(&mut body).await?;
        let sequence = sequence_of(&body, run.size);
        match sequence {
            Some(HELLO) => {
                shared.greeted.store(true, Ordering::Release);
                continue;
            }
            Some(FINISH) => break,
            _ => outcome.take(sequence, &mut expected),
        }
        if first.is_none() {
            first = Some(Instant::now());
        }
        if expected >= run.count {
            last = Instant::now();
            cpu = cpu_seconds();
        }
    }
    if expected < run.count {
        last = Instant::now();
        cpu = cpu_seconds();
        outcome.lost += run.count - expected;
    }
    shared.done.store(true, Ordering::Release);
    outcome.cpu_seconds = cpu;
    outcome.messages = run.count - outcome.lost.min(run.count - 1);
    outcome.seconds = first.map_or(0.0, |first| (last - first).as_secs_f64()).max(1e-9);
    Ok(outcome)
}

async fn trip<E: End>(end: &mut E, run: &Run, body: &mut Vec<u8>, sequence: u64) -> Result<bool, Trouble> {
    body.resize(run.size, 0);
    stamp(body, sequence);
    end.send(body).await?;
    end.flush().await?;
    end.receive(body).await?;
    Ok(sequence_of(body, run.size) == Some(sequence))
}

async fn request<E: End>(end: &mut E, run: &Run) -> Result<Outcome, Trouble> {
    let mut body = vec![0; run.size];
    let mut outcome = Outcome { messages: run.count, ..Outcome::default() };
    for i in 0..=run.count / 10 {
        trip(end, run, &mut body, i).await?;
    }
    let cpu = cpu_seconds();
    let began = Instant::now();
    let mut before = began;
    for sequence in 0..run.count {
        outcome.corrupted += u64::from(!trip(end, run, &mut body, sequence).await?);
        let after = Instant::now();
        outcome.samples_ns.push((after - before).as_nanos() as u64);
        before = after;
    }
    outcome.seconds = (before - began).as_secs_f64();
    outcome.cpu_seconds = cpu_seconds() - cpu;
    trip(end, run, &mut body, FINISH).await?;
    Ok(outcome)
}

async fn pipeline<E: End>(end: &mut E, run: &Run) -> Result<Outcome, Trouble> {
    let mut body = vec![0; run.size];
    let mut outcome = Outcome { messages: run.count, ..Outcome::default() };
    trip(end, run, &mut body, HELLO).await?;
    let cpu = cpu_seconds();
    let began = Instant::now();
    let (mut sent, mut taken, mut expected) = (0, 0, 0);
    while taken < run.count {
        if sent < run.count && sent - taken < run.window {
            while sent < run.count && sent - taken < run.window {
                body.resize(run.size, 0);
                stamp(&mut body, sent);
                end.send(&body).await?;
                sent += 1;
            }
            end.flush().await?;
        }
        // Half of what is on its way, so that sends come in batches here too.
        for _ in 0..((sent - taken).div_ceil(2)) {
            end.receive(&mut body).await?;
            outcome.take(sequence_of(&body, run.size), &mut expected);
            taken += 1;
        }
    }
    outcome.seconds = began.elapsed().as_secs_f64();
    outcome.cpu_seconds = cpu_seconds() - cpu;
    trip(end, run, &mut body, FINISH).await?;
    Ok(outcome)
}

async fn echo<E: End>(end: &mut E, run: &Run) -> Result<Outcome, Trouble> {
    let mut body = Vec::new();
    loop {
        end.receive(&mut body).await?;
        end.send(&body).await?;
        end.flush().await?;
        if sequence_of(&body, run.size) == Some(FINISH) {
            return Ok(Outcome::default());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_are_those_of_the_c_program() {
        let mut body = [0; 64];
        stamp(&mut body, 7);
        assert_eq!(sequence_of(&body, 64), Some(7));
        body[63] ^= 1;
        assert_eq!(sequence_of(&body, 64), None);
        assert_eq!(sequence_of(&body[..63], 64), None);
    }

    #[test]
    fn a_late_message_is_reordered_and_not_lost() {
        let (mut outcome, mut expected) = (Outcome::default(), 0);
        for sequence in [0, 2, 1, 3] {
            outcome.take(Some(sequence), &mut expected);
        }
        assert_eq!((outcome.lost, outcome.reordered, expected), (0, 1, 4));
    }
}
