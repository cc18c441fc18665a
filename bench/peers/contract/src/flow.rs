//! One way: a sender, one or several receivers, by the receivers' clock. With a topic, the receiver wants
//! `matching` per cent of the messages. Then only the wanted messages have sequence numbers, and the clock
//! starts with the sender.

use crate::outcome::{cpu_seconds, sequence_of, stamp, Outcome, FINISH, HELLO};
use crate::{End, Run, Trouble};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Barrier;
use std::time::{Duration, Instant};

/// State that the threads of one flow share without the library.
pub(crate) struct Shared<'a> {
    receivers: u64,
    greeted: AtomicU64,
    done: AtomicU64,
    /// All senders of the run begin together.
    senders: &'a Barrier,
}

impl<'a> Shared<'a> {
    pub(crate) fn new(receivers: u64, senders: &'a Barrier) -> Self {
        Shared { receivers, greeted: AtomicU64::new(0), done: AtomicU64::new(0), senders }
    }

    fn all(&self, count: &AtomicU64) -> bool {
        count.load(Ordering::Acquire) >= self.receivers
    }
}

fn nap() {
    std::thread::sleep(Duration::from_micros(100));
}

/// Sends a control message until all receivers have seen it. A PUB may lose messages before the subscription
/// arrives.
async fn insist<E: End>(
    end: &mut E,
    run: &Run,
    sequence: u64,
    seen: impl Fn() -> bool,
) -> Result<(), Trouble> {
    let mut body = run.topic.clone();
    body.resize(run.size, 0);
    stamp(&mut body[run.topic.len()..], sequence);
    while !seen() {
        end.send(&body).await?;
        end.flush().await?;
        let until = Instant::now() + Duration::from_millis(5);
        while !seen() && Instant::now() < until {
            nap();
        }
    }
    Ok(())
}

pub(crate) async fn send<E: End>(end: &mut E, run: &Run, shared: &Shared<'_>) -> Result<Outcome, Trouble> {
    insist(end, run, HELLO, || shared.all(&shared.greeted)).await?;
    shared.senders.wait();
    let mut outcome = Outcome { sending: Some(cpu_seconds()), ..Outcome::default() };
    let at = run.topic.len();
    if at > 0 {
        // The sender does most of the work. A receiver that only begins after all is sent would not have
        // measured it.
        outcome.begin();
    }
    let mut body = run.topic.clone();
    body.resize(run.size, 0);
    let mut wanted = 0;
    for i in 0..run.count {
        let fits = at == 0 || (i + 1) * run.matching / 100 != i * run.matching / 100;
        if at > 0 {
            body[0] = if fits { run.topic[0] } else { b'n' };
        }
        stamp(&mut body[at..], wanted);
        wanted += u64::from(fits);
        end.send(&body).await?;
    }
    end.flush().await?;
    insist(end, run, FINISH, || shared.all(&shared.done)).await?;
    outcome.sending = outcome.sending.filter(|_| run.count > 0);
    Ok(outcome)
}

pub(crate) async fn receive<E: End>(end: &mut E, run: &Run, shared: &Shared<'_>) -> Result<Outcome, Trouble> {
    let mut outcome = Outcome::default();
    let (mut body, mut expected, mut greeted) = (Vec::new(), 0, false);
    let at = run.topic.len();
    let due = if at == 0 { run.count } else { run.count * run.matching / 100 };
    loop {
        end.receive(&mut body).await?;
        let stamped = body.get(at..).unwrap_or_default();
        match sequence_of(stamped, run.size - at) {
            Some(HELLO) if greeted => continue,
            Some(HELLO) => {
                greeted = true;
                shared.greeted.fetch_add(1, Ordering::AcqRel);
                continue;
            }
            Some(FINISH) => break,
            sequence => outcome.take(sequence, &mut expected),
        }
        if outcome.began.is_none() {
            outcome.begin();
        }
        if expected >= due {
            outcome.end();
        }
    }
    if expected < due {
        outcome.end();
        outcome.lost += due - expected;
    }
    outcome.messages = run.count - outcome.lost.min(run.count);
    shared.done.fetch_add(1, Ordering::AcqRel);
    // The sender repeats the end message until the receivers have seen it, and must not miss this one.
    while !shared.all(&shared.done) {
        nap();
    }
    Ok(outcome)
}
