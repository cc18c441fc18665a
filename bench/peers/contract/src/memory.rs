//! Memory of idle connections: resident memory of the process, before and after `connections` of them have
//! carried one message each.
//!
//! `memory_pairs` has a PUSH and a PULL for each, both in this process. `memory_crowd` has one PULL, and
//! peers that are plain sockets.

use crate::outcome::{sequence_of, stamp, Outcome};
use crate::run::{ends_must_work, place};
use crate::{crowd, End, Peer, Role, Run, Trouble};
use std::sync::mpsc;
use std::time::Duration;

/// Time for deferred frees.
const SETTLE: Duration = Duration::from_millis(300);

fn resident_kib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.trim().trim_end_matches("kB").trim().parse().unwrap_or(0.0)
}

struct Meter(f64, Outcome);

impl Meter {
    fn begin() -> Self {
        let mut outcome = Outcome::default();
        outcome.begin();
        Meter(resident_kib(), outcome)
    }

    fn end(self, connections: u64) -> Outcome {
        let Meter(before, mut outcome) = self;
        std::thread::sleep(SETTLE);
        outcome.end();
        outcome.messages = connections;
        outcome.metrics.push(("memory_each_kib", (resident_kib() - before) / connections as f64));
        outcome
    }
}

/// Opens and greets one pair before the measurement, because a library may allocate some state at its first
/// use.
pub(crate) fn pairs<P: Peer>(peer: &P, run: &Run) -> Result<Outcome, Trouble> {
    let places: Vec<Run> = (0..=run.connections).map(|_| place(run)).collect::<Result<_, _>>()?;
    let (told, bound) = mpsc::channel::<()>();
    let (warm, is_warm) = mpsc::channel::<()>();
    let (full, is_full) = mpsc::channel::<()>();
    let (close, may_close) = mpsc::channel::<()>();
    let places = &places;
    std::thread::scope(|scope| {
        scope.spawn(move || {
            ends_must_work(peer.block_on(async {
                let (mut all, mut body) = (Vec::new(), Vec::new());
                for (number, run) in places.iter().enumerate() {
                    let bound = || {
                        let _ = told.send(());
                    };
                    let mut end = peer.open(Role::Pull, run, &bound).await?;
                    end.receive(&mut body).await?;
                    all.push(end);
                    let _ = if number == 0 { warm.send(()) } else { Ok(()) };
                }
                let _ = full.send(());
                let _ = may_close.recv();
                Ok(Outcome::default())
            }))
        });
        let (open, opened) = mpsc::channel::<()>();
        scope.spawn(move || {
            ends_must_work(peer.block_on(async {
                let mut all = Vec::new();
                let mut body = vec![0; run.size];
                stamp(&mut body, 0);
                for (number, run) in places.iter().enumerate() {
                    let _ = if number == 1 { opened.recv() } else { Ok(()) };
                    let _ = bound.recv();
                    let mut end = peer.open(Role::Push, run, &|| {}).await?;
                    end.send(&body).await?;
                    end.flush().await?;
                    all.push(end);
                }
                let _ = opened.recv();
                Ok(Outcome::default())
            }))
        });
        let _ = is_warm.recv();
        std::thread::sleep(SETTLE);
        let meter = Meter::begin();
        let _ = open.send(());
        let _ = is_full.recv();
        let outcome = meter.end(run.connections);
        drop((close, open));
        Ok(outcome)
    })
}

pub(crate) fn crowd<P: Peer>(peer: &P, run: &Run) -> Result<Outcome, Trouble> {
    let Some(address) = run.endpoint.strip_prefix("tcp://") else { return Err(Trouble::Unsupported) };
    let mut greeting = vec![0; run.size.min(255)];
    stamp(&mut greeting, 0);
    let outcome = peer.block_on(async {
        let mut end = peer.open(Role::Pull, run, &|| {}).await?;
        let (mut body, mut streams, mut meter) = (Vec::new(), Vec::new(), None);
        for number in 0..=run.connections {
            let (address, greeting) = (address.to_owned(), greeting.clone());
            // In another thread, because this thread may be the one that answers the handshake.
            let (made, stream) = mpsc::channel();
            std::thread::spawn(move || made.send(crowd::connect(&address, &greeting)));
            end.receive(&mut body).await?;
            if sequence_of(&body, greeting_size(run)) != Some(0) {
                return Err(Trouble::Failed("another message".to_owned()));
            }
            streams.push(stream.recv().map_err(|_| Trouble::Failed("a connection failed".to_owned()))??);
            if number == 0 {
                std::thread::sleep(SETTLE);
                meter = Some(Meter::begin());
            }
        }
        Ok(meter.map(|meter| meter.end(run.connections)).unwrap_or_default())
    });
    ends_must_work(outcome)
}

fn greeting_size(run: &Run) -> usize {
    run.size.min(255)
}
