//! The wait rule: a caller's thread waits for its sockets.
//!
//! The waiting thread does the work itself. The thread flushes its queued bytes, takes the read
//! batons of its sockets and reads. Then the thread checks again for about as long as a wake-up
//! takes (`timing/idle.rs`). Only after that does it sleep in `poll`, on the connections' own
//! descriptors and the sockets' wake descriptors. Used by blocking sends and receives (one socket)
//! and by polling (many).

use std::time::{Duration, Instant};

use crate::conn::SocketInbox;
use crate::conn::reader::{ReadSet, Sleep};
use crate::conn::room_fd;
use crate::error::Error;
use crate::idle;
use smallvec::SmallVec;
use std::io::ErrorKind;
use tautline_io::clock;
use tautline_io::fd::{self, AsRawFd};
use tautline_io::net::Stream;
use tautline_io::poll::{self, PollFd};
use tautline_queue::sync::Arc;
use tautline_timing::SLICE;

/// A socket as a waiting thread sees it.
pub(crate) trait Waiter {
    /// Flushes the bytes that the flush rule has left queued, because no other thread flushes them
    /// while this one sleeps.
    fn flush(&mut self);
    /// True if a wanted operation is possible. Does not read the network.
    fn ready(&mut self) -> bool;
    /// True if the socket has unfinished work of any length, and does a part of it in each check.
    /// The thread does not sleep then.
    fn has_more_to_do(&self) -> bool;
    /// The inbox of the socket.
    fn inbox(&self) -> &SocketInbox;
    /// The connections to read while waiting. `None` if the wait is not for messages.
    fn read_set(&self) -> Option<&ReadSet>;
    /// Holder of the baton: reads the available data and processes it. Returns true if the state
    /// has changed. If this set is the only one to check, it is tried up to `times` times.
    fn read(&mut self, times: u32) -> bool;
    /// True if the wait is only for data from the network, and for news.
    fn only_reads(&self) -> bool;
    /// True if some of the peers are inproc. Inproc peers announce events at less cost than others,
    /// so a sleep costs more in comparison.
    fn has_inproc(&self) -> bool;
    /// True if inproc peers find out by a plain read if they must wake this thread. The read adds
    /// no cost for the peer, but each sleep then needs a heavy barrier.
    fn needs_sleep_barrier(&self) -> bool;
    /// Streams to wait on for room to send. Inproc peers are asked to wake the owner instead.
    fn full_streams(&mut self) -> Vec<Arc<Stream>>;
}

/// If there are more sockets than this, one system call finds the sockets with data, and there is
/// no spin: checking all of them a few times would take longer than a wake-up.
pub(crate) const MANY: usize = 8;

/// Maximum time of a sleep, within `patience`, on systems without a descriptor to sleep on. After
/// it the thread checks again.
pub(crate) fn blind_timeout(patience: Option<Duration>) -> Duration {
    let slice = Duration::from_nanos(SLICE);
    patience.map_or(slice, |patience| patience.min(slice))
}

/// Reads the available data of the network for `waiters`, without waiting.
pub(crate) fn glance(waiters: &mut [&mut dyn Waiter]) -> Result<(), Error> {
    for set in waiters.iter().filter_map(|waiter| waiter.read_set()) {
        set.acquire();
    }
    let outcome = poll_once(waiters, &mut [], 1);
    for set in waiters.iter().filter_map(|waiter| waiter.read_set()) {
        set.release();
    }
    outcome.map(drop)
}

/// Waits until the state of one of `waiters` has changed or one of the raw descriptors (whose
/// `revents` are filled in) is ready. Returns `Error::Again` when `deadline` has passed,
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

/// Checks up to `times` times, without waiting. Returns true if the state has changed. A single
/// socket that only reads does all its checks in one call, because data that arrives between two
/// checks is found late by the time between them. Such a check takes half the time, so there are
/// twice as many. With half as many, two peers on one core would yield to each other after less
/// time than a write takes. They would keep yielding for long, which is slower than sleep.
fn poll_repeatedly(waiters: &mut [&mut dyn Waiter], raw: &mut [PollFd], times: u32) -> Result<bool, Error> {
    if raw.is_empty()
        && let [waiter] = waiters
        && waiter.only_reads()
    {
        return poll_once(waiters, raw, 2 * times);
    }
    for _ in 0..times {
        if poll_once(waiters, raw, 1)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Checks without waiting: reads the available data, with up to `times` tries. Returns true if the
/// state has changed.
fn poll_once(waiters: &mut [&mut dyn Waiter], raw: &mut [PollFd], times: u32) -> Result<bool, Error> {
    let mut changed = false;
    let asked = if waiters.len() > MANY { poll_sockets(waiters)? } else { Vec::new() };
    for (index, waiter) in waiters.iter_mut().enumerate() {
        if asked.get(index).is_none_or(|fd| fd.revents != 0) {
            changed |= waiter.read(times);
        }
        changed |= waiter.inbox().has_pending() || waiter.ready();
    }
    if !raw.is_empty() {
        changed |= poll_for(raw, Some(Duration::ZERO))?;
    }
    Ok(changed)
}

/// Finds the sockets with data in one system call. A descriptor may be closed in the meantime. Then
/// the answer is an error or belongs to another descriptor, and the read finds out.
fn poll_sockets(waiters: &[&mut dyn Waiter]) -> Result<Vec<PollFd>, Error> {
    let fd = |waiter: &&mut dyn Waiter| waiter.read_set().and_then(ReadSet::poll_fd).unwrap_or(fd::NONE);
    let mut fds: Vec<_> = waiters.iter().map(|waiter| PollFd::new(fd(waiter), PollFd::IN)).collect();
    poll_for(&mut fds, Some(Duration::ZERO))?;
    Ok(fds)
}

fn wait_holding(
    waiters: &mut [&mut dyn Waiter],
    raw: &mut [PollFd],
    deadline: Option<Instant>,
) -> Result<(), Error> {
    // `poll` also checks the network. Messages of inproc peers are visible without a system call.
    let mut unseen = idle::expects_to_sleep()
        && !waiters.iter().any(|waiter| waiter.has_inproc())
        && deadline.is_none_or(|deadline| deadline > Instant::now());
    let mut has_slept = false;
    loop {
        if !unseen && poll_once(waiters, raw, 1)? {
            if !has_slept {
                idle::record_success();
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
        if waiters.len() <= MANY && idle::spin(|times| poll_repeatedly(waiters, raw, times))? {
            return Ok(());
        }
        // Ask inproc peers for room before the barrier in `park`, so that a peer that makes room
        // later sees the request.
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
        idle::record_sleep(clock::ticks().wrapping_sub(start));
    }
}

/// Announces the sleep. Returns false, without an announcement, if there is no reason to sleep.
fn park(waiters: &mut [&mut dyn Waiter]) -> bool {
    let mut parked = waiters.iter().all(|waiter| match waiter.needs_sleep_barrier() {
        true => waiter.inbox().prepare_park(),
        false => waiter.inbox().prepare_park_without_barrier(),
    });
    // Check for room, and for messages of inproc peers, from before they could see the
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
    full: SmallVec<[Arc<Stream>; 4]>,
    raw: &mut [PollFd],
    deadline: Option<Instant>,
) -> Result<(), Error> {
    // Inline for one socket, so that a sleep needs no memory.
    let mut fds: SmallVec<[PollFd; 8]> = SmallVec::from_slice(raw);
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
        patience = Some(blind_timeout(patience));
    }
    poll_for(&mut fds, patience)?;
    for waiter in waiters.iter() {
        waiter.inbox().waker().clear();
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
