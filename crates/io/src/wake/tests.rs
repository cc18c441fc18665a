//! Both forms of `WakeFd`, with the same tests.

use std::sync::Arc;
use std::time::Duration;

use super::AnyWake;
use crate::fd::{AsRawFd, BorrowedFd};
use crate::poll::{PollFd, poll};

fn readable(fd: BorrowedFd<'_>, timeout: Option<Duration>) -> bool {
    poll(&mut [PollFd::new(fd.as_raw_fd(), PollFd::IN)], timeout).unwrap() == 1
}

#[test]
fn any_of_several_wakes() {
    let any = AnyWake::new().unwrap();
    let [first, second] = [(); 2].map(|()| Arc::new(super::WakeFd::new().unwrap()));
    second.wake();
    for wake in [&first, &second] {
        any.add(wake).unwrap();
    }
    for wake in [&second, &first, any.own()] {
        wake.wake();
        assert!(readable(any.as_fd(), None));
        for wake in [&first, &second, any.own()] {
            wake.drain();
        }
        assert!(!readable(any.as_fd(), Some(Duration::ZERO)));
    }
    any.remove(&first);
    first.wake();
    assert!(!readable(any.as_fd(), Some(Duration::ZERO)));
    second.wake();
    assert!(readable(any.as_fd(), None));
}

#[test]
fn waking_a_leader_wakes_its_followers() {
    let [leader, follower] = [(); 2].map(|()| Arc::new(super::pipe::WakeFd::new().unwrap()));
    leader.lead(&follower);
    leader.wake();
    assert!(follower.drain() && leader.drain());
    leader.leave(&follower);
    leader.wake();
    assert!(!follower.drain());
}

macro_rules! conformance {
    ($form:ident) => {
        mod $form {
            use super::super::$form::WakeFd;
            use super::*;

            #[test]
            fn wakes_merge_and_drain() {
                let wake = WakeFd::new().unwrap();
                assert!(!readable(wake.as_fd(), Some(Duration::ZERO)));
                assert!(!wake.drain());
                // More wake-ups than any buffer holds must neither block nor get lost.
                for _ in 0..100_000 {
                    wake.wake();
                }
                assert!(readable(wake.as_fd(), None));
                assert!(wake.drain());
                assert!(!wake.drain());
                assert!(!readable(wake.as_fd(), Some(Duration::ZERO)));
            }

            #[test]
            fn wakes_a_sleeper() {
                let wake = Arc::new(WakeFd::new().unwrap());
                let waker = wake.clone();
                let thread = std::thread::spawn(move || waker.wake());
                assert!(readable(wake.as_fd(), None));
                thread.join().unwrap();
                assert!(wake.drain());
            }
        }
    };
}

#[cfg(linux_kernel)]
conformance!(eventfd);
conformance!(pipe);
