//! Round trips: one at a time, `window` in flight, or in batches of `window` that are sent and returned
//! together; by the requester's clock.

use crate::outcome::{sequence_of, stamp, Outcome, FINISH, HELLO};
use crate::{End, Run, Trouble};
use std::time::Instant;

async fn trip<E: End>(end: &mut E, run: &Run, body: &mut Vec<u8>, sequence: u64) -> Result<bool, Trouble> {
    body.resize(run.size, 0);
    stamp(body, sequence);
    end.send(body).await?;
    end.flush().await?;
    end.receive(body).await?;
    Ok(sequence_of(body, run.size) == Some(sequence))
}

pub(crate) async fn request<E: End>(end: &mut E, run: &Run) -> Result<Outcome, Trouble> {
    let mut body = vec![0; run.size];
    let mut outcome = Outcome { messages: run.count, ..Outcome::default() };
    for i in 0..=run.count / 10 {
        trip(end, run, &mut body, i).await?;
    }
    outcome.begin();
    let mut before = Instant::now();
    for sequence in 0..run.count {
        outcome.corrupted += u64::from(!trip(end, run, &mut body, sequence).await?);
        let after = Instant::now();
        outcome.samples_ns.push((after - before).as_nanos() as u64);
        before = after;
    }
    outcome.end();
    trip(end, run, &mut body, FINISH).await?;
    Ok(outcome)
}

pub(crate) async fn pipeline<E: End>(end: &mut E, run: &Run) -> Result<Outcome, Trouble> {
    let mut body = vec![0; run.size];
    let mut outcome = Outcome { messages: run.count, ..Outcome::default() };
    trip(end, run, &mut body, HELLO).await?;
    outcome.begin();
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
        // Half of the messages in flight, so that sends are batched here too.
        for _ in 0..((sent - taken).div_ceil(2)) {
            end.receive(&mut body).await?;
            outcome.take(sequence_of(&body, run.size), &mut expected);
            taken += 1;
        }
    }
    outcome.end();
    trip(end, run, &mut body, FINISH).await?;
    Ok(outcome)
}

/// A whole batch in one direction, then a whole batch back.
pub(crate) async fn batches<E: End>(end: &mut E, run: &Run) -> Result<Outcome, Trouble> {
    let mut body = vec![0; run.size];
    let batches = (run.count / run.window).max(2);
    let mut outcome = Outcome { messages: batches * run.window, ..Outcome::default() };
    let mut expected = 0;
    for number in 0..=batches {
        let kind = if number == batches { FINISH } else { number * run.window };
        if number == 1 {
            // The first batch has come back, so both ends are ready.
            outcome.begin();
        }
        for i in 0..run.window {
            body.resize(run.size, 0);
            stamp(&mut body, if kind == FINISH { FINISH } else { kind + i });
            end.send(&body).await?;
        }
        end.flush().await?;
        for _ in 0..run.window {
            end.receive(&mut body).await?;
            if kind != FINISH {
                outcome.take(sequence_of(&body, run.size), &mut expected);
            }
        }
        if number + 1 == batches {
            outcome.end();
        }
    }
    outcome.messages -= run.window;
    Ok(outcome)
}

pub(crate) async fn echo_batches<E: End>(end: &mut E, run: &Run) -> Result<Outcome, Trouble> {
    let mut batch = vec![Vec::new(); run.window as usize];
    loop {
        for body in &mut batch {
            end.receive(body).await?;
        }
        for body in &batch {
            end.send(body).await?;
        }
        end.flush().await?;
        if batch.iter().all(|body| sequence_of(body, run.size) == Some(FINISH)) {
            return Ok(Outcome::default());
        }
    }
}

pub(crate) async fn echo<E: End>(end: &mut E, run: &Run) -> Result<Outcome, Trouble> {
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
