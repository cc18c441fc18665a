//! Runs a job from opening its socket to closing it.

use std::thread;
use std::time::{Duration, Instant};

use tautline::Context;
use tautline::kind::SocketType;

use super::ending::Limit;
use super::{Answer, Exchange, Job, Lasting, NextStep, ending};
use crate::failure::{Code, Failure, Result};
use crate::replayed::{self, Replay};
use crate::security::Security;
use crate::signals::Signals;
use crate::socket::{self, AnySocket};
use crate::socket_events::{Notices, SocketEvents};
use crate::through;

const LINGER: i32 = 17;
/// Linger after an early end, in milliseconds. This is enough to flush the queues of connected
/// peers.
const LINGER_EARLY: i32 = 500;

/// Runs the job.
pub fn run(mut job: Job) -> Result<()> {
    let mut signals = Signals::watch()?;
    let context = Context::new();
    job.security.judge(&context)?;
    let mut socket = match &job.replay {
        None => socket::open(&context, job.kind)?,
        Some(replay) => replayed::open(&context, &job, replay)?,
    };
    job.security.options(|number, value| socket.set(number, value))?;
    for (number, value) in &job.options {
        socket.set(*number, value)?;
    }
    let notices = match (job.verbose, job.quiet) {
        (true, _) => Notices::All,
        (false, true) => Notices::None,
        (false, false) => Notices::Failures,
    };
    let curve_client = matches!(job.security, Security::CurveClient { .. });
    let observed = SocketEvents::follow(socket.monitor()?, notices, curve_client);
    for topic in &job.topics {
        socket.subscribe(topic)?;
    }
    for endpoint in &job.endpoints {
        if endpoint.bind {
            let bound = socket.bind(&endpoint.address)?;
            if bound != endpoint.address && !job.quiet {
                notice!("bound to {bound}");
            }
        } else {
            socket.connect(&endpoint.address)?;
        }
    }
    let lasting = job.lasting.map(|time| Lasting { time, until: Instant::now() + time });
    if let (Some(lasting), Some(Answer::Through(_))) = (lasting, &job.answer) {
        end_command_at(lasting)?;
    }
    let outcome = exchange(&mut job, &mut *socket, &observed, &mut signals, lasting);
    // A signal that arrives from here on interrupts the delivery of queued messages.
    let was_ended = signals.has_stopped();
    let mut outcome = job.sink.end().and(outcome);
    if outcome.is_ok() && socket::sends(job.kind) && !was_ended {
        outcome =
            ending::drain(&mut *socket, limit(job.timeout, lasting), &mut signals, &observed, job.quiet);
    }
    // A receiver has no messages to deliver. After a timeout, the job has waited long enough. After
    // a signal or an input error, it should end soon.
    let linger = match &outcome {
        _ if !socket::sends(job.kind) => 0,
        Err(failure) if failure.code == Code::Timeout => 0,
        Ok(()) if signals.stop().is_none() => -1,
        _ => LINGER_EARLY,
    };
    socket.set(LINGER, &linger.to_ne_bytes())?;
    drop(socket);
    let limit = limit(job.timeout, lasting).filter(|_| linger < 0);
    let ended = ending::end(context, limit, &mut signals, &observed);
    outcome.and(ended)
}

/// Returns the time limit for the delivery of queued messages, from now on. At the end of `--for`,
/// connected peers still get the messages of an endless job, as after a signal.
fn limit(timeout: Option<Duration>, lasting: Option<Lasting>) -> Option<Limit> {
    let now = Instant::now();
    let timeout = timeout.map(|time| Limit { time, at: now + time });
    let grace = Duration::from_millis(LINGER_EARLY.unsigned_abs().into());
    let lasting = lasting.map(|lasting| Limit { time: lasting.time, at: lasting.until.max(now + grace) });
    [timeout, lasting].into_iter().flatten().min_by_key(|limit| limit.at)
}

/// Ends the command of `--through` that runs at the end of `--for`.
fn end_command_at(lasting: Lasting) -> Result<()> {
    let ending = thread::Builder::new().name("for".to_owned()).spawn(move || {
        thread::sleep(lasting.until.saturating_duration_since(Instant::now()));
        through::abandon();
    });
    ending.map(drop).map_err(|error| Failure::failed(format!("cannot start a thread: {error}")))
}

fn exchange(
    job: &mut Job,
    socket: &mut dyn AnySocket,
    observed: &SocketEvents,
    signals: &mut Signals,
    lasting: Option<Lasting>,
) -> Result<()> {
    let now = Instant::now();
    let mut exchange = Exchange {
        kind: job.kind,
        socket,
        patterns: &job.patterns,
        runs_after_source: matches!(job.replay, Some(Replay::Keep { .. })),
        source: job.source.take(),
        answer: job.answer.take(),
        sink: &mut job.sink,
        observed,
        turn: match job.kind {
            SocketType::Req => NextStep::Send,
            SocketType::Rep => NextStep::Receive,
            _ => NextStep::Free,
        },
        next: None,
        due: now + job.delay,
        interval: job.interval,
        count: job.count,
        timeout: job.timeout,
        lasting,
        wait: job.wait,
        one_way: job.one_way,
        quiet: job.quiet,
        sent: 0,
        received: 0,
        asked: now,
        round_trips: Vec::new(),
        progress: now,
        commands_failed: false,
    };
    exchange.work(signals)?;
    if exchange.round_trips.len() > 1 && !job.quiet {
        summarize(&mut exchange.round_trips);
    }
    if exchange.commands_failed { Err(Failure::failed("")) } else { Ok(()) }
}

fn summarize(times: &mut [Duration]) {
    times.sort_unstable();
    let mean = times.iter().sum::<Duration>() / u32::try_from(times.len()).unwrap_or(u32::MAX);
    let [least, mean, most] = [times[0], mean, times[times.len() - 1]].map(crate::bench::time);
    notice!("{} answers, round trip {least} at least, {mean} on average, {most} at most", times.len());
}
