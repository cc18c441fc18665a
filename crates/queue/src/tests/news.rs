//! Tests of `LatestMessage` and `Inbox`.

use super::*;
use crate::handoff::inbox::{Inbox, Unpark};
use std::sync::{Arc, Condvar, Mutex};

#[test]
fn a_slot_keeps_the_newest() {
    let slot = LatestMessage::new();
    assert!(!slot.is_full() && slot.take().is_none());
    let freed = AtomicUsize::new(0);
    let bytes = [1; 10];
    slot.put(0, foreign(&bytes, &freed));
    slot.put(COMMAND, Message::from_slice(b"new"));
    assert_eq!(freed.load(Ordering::SeqCst), 1);
    assert!(slot.is_full());
    let taken = slot.take().map(|(flags, message)| (flags, message.as_slice().to_vec()));
    assert_eq!(taken, Some((COMMAND, b"new".to_vec())));
    assert!(!slot.is_full() && slot.take().is_none());
}

/// Behaves like an eventfd: a wake-up is kept until a thread waits for it.
#[derive(Default)]
struct Bell(Mutex<u32>, Condvar);

impl Bell {
    fn rung(&self) -> u32 {
        std::mem::take(&mut self.0.lock().expect("not poisoned"))
    }

    fn wait(&self) {
        let mut rung = self.0.lock().expect("not poisoned");
        while *rung == 0 {
            rung = self.1.wait(rung).expect("not poisoned");
        }
        *rung = 0;
    }
}

impl Unpark for Bell {
    fn unpark(&self) {
        *self.0.lock().expect("not poisoned") += 1;
        self.1.notify_one();
    }
}

#[test]
fn news_wake_a_parked_owner_only() {
    let inbox = Inbox::new(Bell::default());
    assert!(!inbox.has_pending());
    inbox.push(1);
    inbox.wake_if_parked();
    assert!(inbox.has_pending() && !inbox.parked_hint());
    assert_eq!(inbox.waker().rung(), 0);
    assert!(!inbox.prepare_park(), "something is pending");
    inbox.push(2);
    assert!(inbox.drain().into_iter().eq([1, 2]));
    assert!(!inbox.has_pending());
    assert_eq!(inbox.waker().rung(), 0);
    assert!(inbox.prepare_park() && inbox.parked_hint());
    inbox.push(3);
    inbox.push(4);
    assert_eq!(inbox.waker().rung(), 1, "once is enough");
    inbox.finish_park();
    assert!(inbox.drain().into_iter().eq([3, 4]));
    assert!(inbox.prepare_park());
    inbox.wake_if_parked();
    assert_eq!(inbox.waker().rung(), 1);
    inbox.finish_park();
    assert!(!inbox.has_pending() && !inbox.parked_hint());
}

#[test]
fn an_exposed_descriptor_is_woken_for_everything() {
    let inbox = Inbox::new(Bell::default());
    inbox.expose();
    assert!(inbox.parked_hint());
    inbox.push(());
    inbox.push(());
    inbox.wake_if_parked();
    assert_eq!(inbox.waker().rung(), 3);
}

#[test]
fn nothing_is_lost_between_threads() {
    let total = if cfg!(miri) { 50 } else { 20_000 };
    let inbox = Arc::new(Inbox::new(Bell::default()));
    let pushers: Vec<_> = (0..2)
        .map(|_| {
            let inbox = inbox.clone();
            std::thread::spawn(move || (0..total).for_each(|n| inbox.push(n)))
        })
        .collect();
    let mut received = 0;
    while received < 2 * total {
        received += inbox.drain().into_iter().count();
        if received < 2 * total && inbox.prepare_park() {
            inbox.waker().wait();
            inbox.finish_park();
        }
    }
    for pusher in pushers {
        pusher.join().expect("no panic");
    }
    // If the news of a pusher were taken before it set the flag, the flag stays set.
    assert_eq!(inbox.drain().into_iter().count(), 0);
}
