//! Loom model of the hand-over: a peer that sends, an I/O thread, and an owner that receives some
//! messages and then stays away. The set gets its reactor name during all this.

use super::{Baton, Surroundings, Tick, end_tick};
use crate::handoff::registration::Registration;
use crate::sync::atomic::Ordering::{Acquire, Release};
use crate::sync::atomic::{AtomicBool, AtomicU32};
use crate::sync::{Arc, Condvar, Mutex, UnsafeCell};

/// State of the kernel: bytes on the connection, the registration, the timer, the owner's wake
/// descriptor.
struct Kernel {
    data: u32,
    /// `Some` with the registered name while the registration is live.
    armed: Option<u64>,
    timer: bool,
    woken: bool,
    stop: bool,
}

/// Name of the set. Events with other names belong to another set.
const NAME: u64 = 1;

struct Model {
    baton: Baton,
    registration: Registration,
    tick_on: AtomicBool,
    /// Number of times that the baton is among those that the tick watches: 0 or 1.
    watched: Mutex<u32>,
    tail: AtomicU32,
    /// The producer's half of the inbound queue. Loom checks that only the holder of the baton
    /// accesses it.
    producer: UnsafeCell<u32>,
    kernel: Mutex<Kernel>,
    io: Condvar,
    owner: Condvar,
}

impl Surroundings for Model {
    fn arm(&self) {
        if let Some(name) = self.registration.name() {
            self.kernel.lock().unwrap().armed = Some(name);
            self.io.notify_all();
        }
    }
    fn disarm(&self) {
        if self.registration.name().is_some() {
            self.kernel.lock().unwrap().armed = None;
        }
    }
    fn start_tick(&self) {
        self.kernel.lock().unwrap().timer = true;
        self.io.notify_all();
    }
    fn join_tick(&self) {
        let mut watched = self.watched.lock().unwrap();
        *watched += 1;
        assert_eq!(*watched, 1, "the tick watches it twice");
    }
    fn wake_owner(&self) {
        self.kernel.lock().unwrap().woken = true;
        self.owner.notify_all();
    }
    fn await_wake(&self) {
        let mut kernel = self.kernel.lock().unwrap();
        while !kernel.woken {
            kernel = self.owner.wait(kernel).unwrap();
        }
        kernel.woken = false;
    }
}

impl Model {
    fn new() -> Self {
        Model {
            baton: Baton::armed(),
            registration: Registration::unnamed(),
            tick_on: AtomicBool::new(false),
            watched: Mutex::new(0),
            tail: AtomicU32::new(0),
            producer: UnsafeCell::new(0),
            kernel: Mutex::new(Kernel { data: 0, armed: None, timer: false, woken: false, stop: false }),
            io: Condvar::new(),
            owner: Condvar::new(),
        }
    }

    fn read(&self) -> u32 {
        let n = std::mem::take(&mut self.kernel.lock().unwrap().data);
        #[allow(unsafe_code)]
        // SAFETY: the model's claim: only the holder of the baton gets here. Loom reports a
        // violation.
        let tail = self.producer.with_mut(|p| unsafe {
            *p += n;
            *p
        });
        self.tail.store(tail, Release);
        n
    }

    fn io_read(&self) {
        self.read();
        // Wakes the test's own wait of an owner that is away.
        drop(self.kernel.lock().unwrap());
        self.owner.notify_all();
        self.baton.io_leave(self);
    }

    fn io_thread(&self) {
        self.registration.set_name(NAME);
        self.arm();
        loop {
            let tick = {
                let mut kernel = self.kernel.lock().unwrap();
                loop {
                    if kernel.stop {
                        return;
                    }
                    if kernel.data > 0 && kernel.armed.take_if(|name| *name == NAME).is_some() {
                        break false;
                    }
                    if kernel.timer {
                        break true;
                    }
                    kernel = self.io.wait(kernel).unwrap();
                }
            };
            if !tick {
                if self.baton.io_event() {
                    self.io_read();
                }
                continue;
            }
            let watched = *self.watched.lock().unwrap() > 0;
            let outcome = if watched { self.baton.io_tick() } else { Tick::Idle };
            if outcome == Tick::Taken {
                self.io_read();
            }
            let mut watched = self.watched.lock().unwrap();
            if *watched > 0 && self.baton.leave_tick() {
                *watched -= 1;
            }
            if outcome == Tick::Live {
                continue;
            }
            self.kernel.lock().unwrap().timer = false;
            if end_tick(&self.tick_on, || *watched > 0 && self.baton.is_kept()) {
                self.start_tick();
            }
        }
    }

    fn recv(&self, received: &mut u32) {
        loop {
            if self.tail.load(Acquire) > *received {
                *received += 1;
                return;
            }
            self.baton.acquire(self);
            while self.tail.load(Acquire) <= *received && self.read() == 0 {
                let mut kernel = self.kernel.lock().unwrap();
                while kernel.data == 0 && !kernel.woken {
                    kernel = self.owner.wait(kernel).unwrap();
                }
                kernel.woken = false;
            }
            self.baton.release(&self.tick_on, self);
        }
    }
}

/// Models an owner that looks `glances` times, like an owner that waits on ZMQ_FD instead of
/// waiting itself.
fn glancing_model(messages: u32, glances: u32) {
    run(messages, move |model| {
        for _ in 0..glances {
            if model.baton.glance() {
                model.read();
                model.baton.end_glance(model);
            }
        }
    });
}

fn model(messages: u32, away: u32) {
    run(messages, move |model| {
        let mut received = 0;
        for _ in 0..messages - away {
            model.recv(&mut received);
        }
    });
}

/// Models an owner that hands the reading over, like an owner that begins to wait on ZMQ_FD.
fn handing_over_model(messages: u32) {
    run(messages, |model| {
        model.baton.acquire(model);
        model.baton.release_armed(model);
    });
}

/// Models an owner that looks twice, and whose baton the I/O thread may take in between.
fn returning_model(messages: u32) {
    run(messages, |model| {
        for _ in 0..2 {
            model.baton.acquire(model);
            model.read();
            model.baton.release(&model.tick_on, model);
        }
    });
}

/// Checks that all messages are read after `owner` has finished.
fn run(messages: u32, owner: impl Fn(&Model) + Copy + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.max_branches = 20_000;
    builder.check(move || {
        let model = Arc::new(Model::new());
        let io = {
            let model = model.clone();
            loom::thread::spawn(move || model.io_thread())
        };
        let peer = {
            let model = model.clone();
            loom::thread::spawn(move || {
                for _ in 0..messages {
                    model.kernel.lock().unwrap().data += 1;
                    model.io.notify_all();
                    model.owner.notify_all();
                }
            })
        };
        owner(&model);
        let mut kernel = model.kernel.lock().unwrap();
        while model.tail.load(Acquire) < messages {
            kernel = model.owner.wait(kernel).unwrap();
        }
        kernel.stop = true;
        drop(kernel);
        model.io.notify_all();
        io.join().unwrap();
        peer.join().unwrap();
    });
}

#[test]
fn loom_owner_receives_all() {
    model(2, 0);
}

#[test]
fn loom_io_thread_reads_ahead_for_an_absent_owner() {
    model(2, 1);
}

#[test]
fn loom_a_glance_hides_nothing_from_the_io_thread() {
    glancing_model(2, 2);
}

#[test]
fn loom_handover_before_registration_is_read() {
    handing_over_model(1);
}

#[test]
fn loom_tick_watches_an_owner_that_returns() {
    returning_model(1);
}
