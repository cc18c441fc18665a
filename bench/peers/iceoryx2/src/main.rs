//! iceoryx2 as a peer, for large bodies between two processes: `push_pull`, `req_rep`, `one_way` and `fan_out` over
//! `ipc`, with `api = "messages"` only. The body is written in a loaned sample and read in the received one.
//!
//! A body goes through a publish-subscribe service, whose publisher waits for a full subscriber. A receiver looks
//! for a sample for a short time, and then waits for an event, which the sender sends after each body. Answers go
//! through a second pair of services. The far process sends, or answers: it is this program with `--far NAME`.
mod ends;

use ends::{Receiver, Sender};
use nix::sys::resource::{getrusage, UsageWho};
use nix::time::{clock_gettime, ClockId};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

pub(crate) type Trouble = Box<dyn std::error::Error + Send + Sync>;

const HELLO: u64 = u64::MAX;
const FINISH: u64 = u64::MAX - 1;

/// Options of the command line.
#[derive(Clone, Default)]
struct Run {
    pattern: String,
    transport: String,
    api: String,
    /// Words of 8 bytes in a body.
    words: usize,
    count: u64,
    filled: bool,
    subscribers: usize,
    timeout_s: u64,
    /// Messages in a subscriber's queue.
    queue: usize,
    /// Prefix of the services' names.
    name: String,
    is_far: bool,
}

impl Run {
    fn is_trip(&self) -> bool {
        self.pattern == "req_rep" || self.pattern == "one_way"
    }

    /// Words of an answer.
    fn answer_words(&self) -> usize {
        if self.pattern == "one_way" {
            3
        } else {
            self.words
        }
    }

    fn write(&self, body: &mut [std::mem::MaybeUninit<u64>], sequence: u64) {
        let last = body.len() - 1;
        if self.filled {
            for (i, word) in body.iter_mut().enumerate() {
                word.write(sequence.wrapping_add(i as u64));
            }
        }
        body[0].write(sequence);
        body[last].write(tail_of(sequence));
    }

    fn is_right(&self, body: &[u64]) -> bool {
        if body.len() != self.words || body[self.words - 1] != tail_of(body[0]) {
            return false;
        }
        let inner = body[1..self.words - 1].iter().zip(1..);
        !self.filled || inner.fold(0, |wrong, (word, i)| wrong | (word ^ body[0].wrapping_add(i))) == 0
    }
}

fn tail_of(sequence: u64) -> u64 {
    sequence.wrapping_add(0x51ed270b2f1ca3d5).wrapping_mul(0x9e3779b97f4a7c15)
}

/// Nanoseconds of a clock that both processes have.
fn now_ns() -> u64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |now| Duration::from(now).as_nanos() as u64)
}

fn cpu_seconds() -> f64 {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else { return 0.0 };
    let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    seconds(usage.user_time()) + seconds(usage.system_time())
}

/// Checks of one receiver.
#[derive(Default)]
struct Tally {
    first_ns: u64,
    last_ns: u64,
    lost: u64,
    reordered: u64,
    corrupted: u64,
    samples_ns: Vec<u64>,
}

impl Tally {
    fn take(&mut self, run: &Run, body: &[u64], expected: &mut u64) {
        let sequence = body.first().copied().unwrap_or(HELLO);
        if !run.is_right(body) {
            self.corrupted += 1;
            *expected += 1;
        } else if sequence >= *expected {
            self.lost += sequence - *expected;
            *expected = sequence + 1;
        } else {
            self.reordered += 1;
        }
    }
}

/// Receives `count` messages. Says `ready` after the first greeting.
fn receive(run: &Run, receiver: &Receiver, ready: impl FnOnce()) -> Result<Tally, Trouble> {
    let (mut tally, mut expected) = (Tally::default(), 0);
    while receiver.receive(|body| body[0])? != HELLO {}
    ready();
    loop {
        let is_last = receiver.receive(|body| {
            let sequence = body[0];
            if sequence == HELLO || sequence == FINISH {
                return sequence == FINISH;
            }
            if tally.first_ns == 0 {
                tally.first_ns = now_ns();
            }
            tally.take(run, body, &mut expected);
            tally.last_ns = now_ns();
            false
        })?;
        if is_last {
            tally.lost += run.count - expected.min(run.count);
            return Ok(tally);
        }
    }
}

/// One request and its answer. Returns the end of the sample.
fn trip(run: &Run, out: &Sender, back: &Receiver, tally: &mut Tally, sequence: u64) -> Result<u64, Trouble> {
    out.send(run.words, |body| run.write(body, sequence))?;
    let (answer, end_ns) = back.receive(|body| {
        if run.pattern == "one_way" {
            return (body[0], body[1]);
        }
        tally.corrupted += u64::from(!run.is_right(body));
        (body[0], now_ns())
    })?;
    tally.reordered += u64::from(answer != sequence);
    Ok(end_ns)
}

fn request(run: &Run, out: &Sender, back: &Receiver) -> Result<(Tally, f64), Trouble> {
    let mut tally = Tally::default();
    trip(run, out, back, &mut tally, HELLO)?;
    // As in zmq-bench.
    for i in 0..run.count / 10 + 5 {
        trip(run, out, back, &mut tally, i)?;
    }
    let cpu = cpu_seconds();
    tally.first_ns = now_ns();
    for i in 0..run.count {
        let before = now_ns();
        let took = trip(run, out, back, &mut tally, i)? - before;
        tally.samples_ns.push(took);
    }
    tally.last_ns = now_ns();
    let cpu = cpu_seconds() - cpu;
    trip(run, out, back, &mut tally, FINISH)?;
    Ok((tally, cpu))
}

/// Answers until FINISH. Returns the number of wrong bodies.
fn answer(run: &Run, from: &Receiver, back: &Sender) -> Result<u64, Trouble> {
    let mut corrupted = 0;
    loop {
        let sequence = from.receive(|body| {
            corrupted += u64::from(!run.is_right(body));
            body[0]
        })?;
        let received_ns = now_ns();
        back.send(run.answer_words(), |body| {
            if run.pattern == "one_way" {
                body[0].write(sequence);
                body[1].write(received_ns);
                body[2].write(0);
            } else {
                run.write(body, sequence);
            }
        })?;
        if sequence == FINISH {
            return Ok(corrupted);
        }
    }
}

/// The far process: sends or answers. It prints its processor time, and the number of wrong bodies.
fn far(run: &Run) -> Result<(), Trouble> {
    let told = &mut String::new();
    let mut corrupted = 0;
    let cpu;
    if run.is_trip() {
        let from = Receiver::open(run, "out")?;
        let back = Sender::open(run, "back", run.answer_words())?;
        println!("open");
        std::io::stdin().lock().read_line(told)?;
        cpu = cpu_seconds();
        corrupted = answer(run, &from, &back)?;
    } else {
        let out = Sender::open(run, "out", run.words)?;
        println!("open");
        std::io::stdin().lock().read_line(told)?;
        out.send(run.words, |body| run.write(body, HELLO))?;
        std::io::stdin().lock().read_line(told)?;
        cpu = cpu_seconds();
        for sequence in (0..run.count).chain([FINISH]) {
            out.send(run.words, |body| run.write(body, sequence))?;
        }
        println!("{} {corrupted}", cpu_seconds() - cpu);
        // The receivers may still read the samples of this process.
        std::io::stdin().lock().read_line(told)?;
        return Ok(());
    }
    println!("{} {corrupted}", cpu_seconds() - cpu);
    Ok(())
}

struct Far {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
}

impl Far {
    fn start(run: &Run) -> Result<Self, Trouble> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(std::env::args().skip(1))
            .args(["--far", &run.name])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let lines = BufReader::new(child.stdout.take().ok_or("no output")?);
        Ok(Far { child, lines })
    }

    fn tell(&mut self) -> Result<(), Trouble> {
        Ok(self.child.stdin.as_mut().ok_or("no input")?.write_all(b"go\n")?)
    }

    fn line(&mut self) -> Result<String, Trouble> {
        let mut line = String::new();
        match self.lines.read_line(&mut line)? {
            0 => Err("the far process ended early".into()),
            _ => Ok(line.trim().to_owned()),
        }
    }

    /// Returns its processor time and the number of bodies that it found wrong.
    fn result(&mut self) -> Result<(f64, u64), Trouble> {
        let line = self.line()?;
        let (cpu, corrupted) = line.split_once(' ').ok_or("not a result")?;
        Ok((cpu.parse()?, corrupted.parse()?))
    }
}

/// Returns the line for the harness.
fn near(run: &Run) -> Result<String, Trouble> {
    let mut far = Far::start(run)?;
    if far.line()? != "open" {
        return Err("the far process did not open its ends".into());
    }
    let (tallies, cpu) = if run.is_trip() {
        let out = Sender::open(run, "out", run.words)?;
        let back = Receiver::open(run, "back")?;
        far.tell()?;
        let (tally, cpu) = request(run, &out, &back)?;
        (vec![tally], cpu)
    } else {
        let (said, ready) = std::sync::mpsc::channel();
        let (opened, is_open) = std::sync::mpsc::channel();
        let ends: Vec<_> = (0..run.subscribers)
            .map(|_| {
                let (run, said, opened) = (run.clone(), said.clone(), opened.clone());
                std::thread::spawn(move || {
                    let receiver = Receiver::open(&run, "out")?;
                    let _ = opened.send(());
                    receive(&run, &receiver, || said.send(()).unwrap_or(()))
                })
            })
            .collect();
        ends.iter().try_for_each(|_| is_open.recv())?;
        far.tell()?;
        ends.iter().try_for_each(|_| ready.recv())?;
        let cpu = cpu_seconds();
        far.tell()?;
        let mut tallies = Vec::new();
        for end in ends {
            tallies.push(end.join().map_err(|_| "a receiver panicked")??);
        }
        (tallies, cpu_seconds() - cpu)
    };
    let (far_cpu, wrong) = far.result()?;
    let _ = far.tell();
    far.child.wait()?;
    Ok(json(run, &tallies, cpu + far_cpu, wrong))
}

fn json(run: &Run, tallies: &[Tally], cpu: f64, wrong: u64) -> String {
    let of = |field: fn(&Tally) -> u64| tallies.iter().map(field).sum::<u64>();
    let first = tallies.iter().map(|tally| tally.first_ns).min().unwrap_or(0);
    let last = tallies.iter().map(|tally| tally.last_ns).max().unwrap_or(0);
    let seconds = (last - first) as f64 / 1e9;
    let (messages, metrics) = if run.is_trip() {
        let mut samples = tallies[0].samples_ns.clone();
        samples.sort_unstable();
        let at = |q: f64| samples[(q * (samples.len() - 1) as f64 + 0.5) as usize] as f64 / 1e3;
        (run.count, format!("\"p50_us\":{},\"p99_us\":{}", at(0.5), at(0.99)))
    } else {
        let messages = (run.count - 1) * run.subscribers as u64;
        (messages, format!("\"messages_per_second\":{}", messages as f64 / seconds))
    };
    format!(
        "{{\"ok\":true,\"count\":{},\"messages\":{messages},\"seconds\":{seconds},\"cpu_seconds\":{cpu},\"lost\":{},\
         \"reordered\":{},\"corrupted\":{},\"library\":\"iceoryx2\",\"version\":\"0.10.0\",\"metrics\":{{{metrics}}}}}",
        run.count,
        of(|tally| tally.lost),
        of(|tally| tally.reordered),
        of(|tally| tally.corrupted) + wrong,
    )
}

fn parse() -> Result<Run, Trouble> {
    let mut run = Run { api: "buffers".into(), subscribers: 1, timeout_s: 20, queue: 10, ..Run::default() };
    run.name = format!("bench-{}", std::process::id());
    let mut arguments = std::env::args().skip(1);
    while let Some(key) = arguments.next() {
        if key == "--two-processes" {
            continue;
        }
        let value = arguments.next().ok_or_else(|| format!("{key} needs a value"))?;
        match key.as_str() {
            "--pattern" => run.pattern = value,
            "--transport" => run.transport = value,
            "--api" => run.api = value,
            "--size" => run.words = value.parse::<usize>()? / 8,
            "--count" => run.count = value.parse()?,
            "--subscribers" => run.subscribers = value.parse()?,
            "--filled" => run.filled = value == "1",
            "--hwm" => run.queue = value.parse::<usize>()?.max(1),
            "--timeout" => run.timeout_s = value.parse()?,
            "--far" => {
                run.name = value;
                run.is_far = true;
            }
            _ => {}
        }
    }
    if run.words < 3 || run.count < 2 || run.subscribers < 1 {
        return Err("--size, --count or --subscribers is too small".into());
    }
    Ok(run)
}

fn main() {
    let run = match parse() {
        Ok(run) => run,
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(1);
        }
    };
    let is_known = run.is_trip() || run.pattern == "push_pull" || run.pattern == "fan_out";
    if !is_known || run.transport != "ipc" || run.api != "messages" {
        println!(r#"{{"ok":false,"unsupported":true,"error":"this peer has large bodies over ipc only"}}"#);
        return;
    }
    let seconds = run.timeout_s;
    let is_far = run.is_far;
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(seconds));
        if !is_far {
            println!(r#"{{"ok":false,"error":"hung: the watchdog ended it"}}"#);
        }
        std::process::exit(3);
    });
    iceoryx2::prelude::set_log_level(iceoryx2::prelude::LogLevel::Error);
    let failed = |error: Trouble| format!(r#"{{"ok":false,"error":{:?}}}"#, error.to_string());
    if is_far {
        if let Err(error) = far(&run) {
            eprintln!("{error}");
            std::process::exit(2);
        }
        return;
    }
    println!("{}", near(&run).unwrap_or_else(failed));
}
