//! The wait rule: how a caller's thread waits for its sockets.
//!
//! The thread that waits does the work: it flushes what it left queued, takes the read batons of
//! its sockets, reads, looks again for about the time that a wake-up costs (`timing/idle.rs`), and
//! only then sleeps in `poll` on the connections' own descriptors and the sockets' wake
//! descriptors. Used by blocking sends and receives (one socket) and by polling (many).

use crate::ablation::{Rule, without};
use std::time::{Duration, Instant};

use crate::conn::SocketInbox;
use crate::conn::reader::{ReadSet, Sleep};
use crate::conn::room_fd;
use crate::error::Error;
use crate::sync::Arc;
use crate::timing::{SLICE, idle};
use std::io::ErrorKind;
use tautline_io::clock;
use tautline_io::fd::{self, AsRawFd};
use tautline_io::net::Stream;
use tautline_io::poll::{self, PollFd};

/// A socket as a waiting thread sees it.
pub(crate) trait Waiter {
    /// Flushes what the flush rule has left queued: no other thread will while this one sleeps.
    fn flush(&mut self);
    /// Whether what is waited for is there. Does not look at the network.
    fn ready(&mut self) -> bool;
    /// Whether it has something to do, however long that takes, and does a part with each look: the
    /// thread does not sleep then.
    fn has_more_to_do(&self) -> bool;
    /// Where news come in.
    fn inbox(&self) -> &SocketInbox;
    /// The connections to read while waiting; `None` if reading is not waited for.
    fn read_set(&self) -> Option<&ReadSet>;
    /// Holder of the baton: reads what is there, and takes note of it. True if something has
    /// changed. Where that is all there is to look at, it is tried up to that number of times.
    fn read(&mut self, times: u32) -> bool;
    /// Whether it waits for nothing but what can be read from the network, and news.
    fn only_reads(&self) -> bool;
    /// Whether some of the peers are inproc: they announce what they do more cheaply than others,
    /// so that a sleep costs more.
    fn has_inproc(&self) -> bool;
    /// Whether an inproc peer may wake it by a look alone, which costs the peer nothing and a sleep
    /// a heavy barrier.
    fn is_watched(&self) -> bool;
    /// Streams to wait on for room to send; those of inproc peers are asked to wake the owner
    /// instead.
    fn full_streams(&mut self) -> Vec<Arc<Stream>>;
}

/// Of more sockets than these it is asked in one system call which have something to read, and
/// there is no spin: it would take longer than a wake-up to look at all of them a few times.
pub(crate) const MANY: usize = 8;

/// How long to sleep at most, of `patience`, where the system has no descriptor to sleep on: then
/// the thread looks again.
pub(crate) fn blindly(patience: Option<Duration>) -> Duration {
    let slice = Duration::from_nanos(SLICE);
    patience.map_or(slice, |patience| patience.min(slice))
}

/// Reads, without waiting, what the network has for `waiters`.
pub(crate) fn glance(waiters: &mut [&mut dyn Waiter]) -> Result<(), Error> {
    for set in waiters.iter().filter_map(|waiter| waiter.read_set()) {
        set.acquire();
    }
    let outcome = look(waiters, &mut [], 1);
    for set in waiters.iter().filter_map(|waiter| waiter.read_set()) {
        set.release();
    }
    outcome.map(drop)
}

/// Waits until something has changed for one of `waiters` or one of the raw descriptors (whose
/// `revents` are filled in) is ready. `Error::Again` when `deadline` has passed,
/// `Error::Interrupted` after a signal.
pub(crate) fn wait(
    waiters: &mut [&mut dyn Waiter],
    raw: &mut [PollFd],
    deadline: Option<Instant>,
) -> Result<(), Error> {
    for waiter in waiters.iter_mut() {
        waiter.flush();
        if let Some(set) = waiter.read_set() {
            set.acquire();
        }
    }
    let outcome = wait_holding(waiters, raw, deadline);
    for waiter in waiters.iter_mut() {
        if let Some(set) = waiter.read_set() {
            set.release();
        }
    }
    outcome
}

/// Looks up to `times` times, without waiting. True if something has changed. One socket that only
/// reads is looked at in one go: what comes between two looks is found later by the time from one
/// to the next. There a look takes half the time, so it is made twice as often: two peers on one
/// core that yield to each other after less than a write takes do so for long, and are slower than
/// asleep.
fn look_often(waiters: &mut [&mut dyn Waiter], raw: &mut [PollFd], times: u32) -> Result<bool, Error> {
    if raw.is_empty()
        && let [waiter] = waiters
        && waiter.only_reads()
    {
        return look(waiters, raw, if without(Rule::Looks) { times } else { 2 * times });
    }
    for _ in 0..times {
        if look(waiters, raw, 1)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Looks, without waiting: reads what is there, trying up to `times` times. True if something has
/// changed.
fn look(waiters: &mut [&mut dyn Waiter], raw: &mut [PollFd], times: u32) -> Result<bool, Error> {
    let mut changed = false;
    let asked = if waiters.len() > MANY { survey(waiters)? } else { Vec::new() };
    for (index, waiter) in waiters.iter_mut().enumerate() {
        if asked.get(index).is_none_or(|fd| fd.revents != 0) {
            changed |= waiter.read(times);
        }
        changed |= waiter.inbox().pending() || waiter.ready();
    }
    if !raw.is_empty() {
        changed |= poll_for(raw, Some(Duration::ZERO))?;
    }
    Ok(changed)
}

/// Asks for all at once which have something to read. A descriptor may be closed meanwhile: then
/// the answer is for another one, or an error, and the reading finds out.
fn survey(waiters: &[&mut dyn Waiter]) -> Result<Vec<PollFd>, Error> {
    let fd = |waiter: &&mut dyn Waiter| waiter.read_set().and_then(ReadSet::fd_to_ask).unwrap_or(fd::NONE);
    let mut fds: Vec<_> = waiters.iter().map(|waiter| PollFd::new(fd(waiter), PollFd::IN)).collect();
    poll_for(&mut fds, Some(Duration::ZERO))?;
    Ok(fds)
}

fn wait_holding(
    waiters: &mut [&mut dyn Waiter],
    raw: &mut [PollFd],
    deadline: Option<Instant>,
) -> Result<(), Error> {
    // `poll` looks at the network as well; what inproc peers have sent is there to be seen without
    // a system call.
    let mut unseen = idle::expects_to_sleep()
        && !waiters.iter().any(|waiter| waiter.has_inproc())
        && deadline.is_none_or(|deadline| deadline > Instant::now());
    let mut has_slept = false;
    loop {
        if !unseen && look(waiters, raw, 1)? {
            if !has_slept {
                idle::found();
            }
            return Ok(());
        }
        let patience = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if patience == Some(Duration::ZERO) {
            if std::mem::take(&mut unseen) {
                continue;
            }
            return Err(Error::Again);
        }
        let start = clock::ticks();
        if waiters.len() <= MANY && idle::spin(|times| look_often(waiters, raw, times))? {
            return Ok(());
        }
        // Asks inproc peers for room; before the barrier in `park`, so that a peer that makes room
        // later sees it.
        let full = waiters.iter_mut().flat_map(|waiter| waiter.full_streams()).collect();
        if !park(waiters) {
            return Ok(());
        }
        let slept = sleep(waiters, full, raw, deadline);
        for waiter in waiters.iter_mut() {
            waiter.inbox().finish_park();
        }
        slept?;
        has_slept = true;
        unseen = false;
        idle::slept(clock::ticks().wrapping_sub(start));
    }
}

/// Announces the sleep. False, with nothing announced, if there is no reason to sleep.
fn park(waiters: &mut [&mut dyn Waiter]) -> bool {
    let mut parked = waiters.iter().all(|waiter| match waiter.is_watched() {
        true => waiter.inbox().prepare_park(),
        false => waiter.inbox().prepare_park_alone(),
    });
    // Room asked for, and messages published by inproc peers, before they could see the
    // announcement.
    parked = parked && !waiters.iter_mut().any(|waiter| waiter.ready());
    if !parked {
        for waiter in waiters.iter() {
            waiter.inbox().finish_park();
        }
    }
    parked
}

fn sleep(
    waiters: &mut [&mut dyn Waiter],
    full: Vec<Arc<Stream>>,
    raw: &mut [PollFd],
    deadline: Option<Instant>,
) -> Result<(), Error> {
    let mut fds: Vec<PollFd> = raw.to_vec();
    // Keeps the streams' descriptors open while they are polled.
    let mut streams = full;
    fds.extend(streams.iter().map(|stream| room_fd(stream)));
    let mut ready = false;
    let mut blind = false;
    for waiter in waiters.iter_mut() {
        ready |= waiter.has_more_to_do();
        match waiter.inbox().waker().number() {
            Ok(number) => fds.push(PollFd::new(number, PollFd::IN)),
            Err(_) => blind = true,
        }
        match waiter.read_set().map(|set| (set.sleep_on(), set.raw_fd())) {
            Some((Sleep::Stream(stream), _)) => {
                fds.push(PollFd::new(stream.as_fd().as_raw_fd(), PollFd::IN));
                streams.push(stream);
            }
            Some((Sleep::Set, set)) => fds.push(PollFd::new(set, PollFd::IN)),
            Some((Sleep::NotNow, _)) => ready = true,
            Some((Sleep::Nothing, _)) | None => {}
        }
    }
    let mut patience = match ready {
        true => Some(Duration::ZERO),
        false => deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())),
    };
    if blind {
        patience = Some(blindly(patience));
    }
    poll_for(&mut fds, patience)?;
    for waiter in waiters.iter() {
        waiter.inbox().waker().quieten();
    }
    raw.copy_from_slice(&fds[..raw.len()]);
    Ok(())
}

fn poll_for(fds: &mut [PollFd], patience: Option<Duration>) -> Result<bool, Error> {
    match poll::poll(fds, patience) {
        Ok(n) => Ok(n > 0),
        Err(error) if error.kind() == ErrorKind::Interrupted => Err(Error::Interrupted),
        Err(error) => Err(error.into()),
    }
}
