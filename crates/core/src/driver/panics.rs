//! Handling of a panic on an I/O thread. The thread must survive, because all sockets that live on
//! it would hang without a message. We know of no panic that a peer or a program can cause. If one
//! occurs, the process continues as well as it can:
//!
//! - The panic is reported on stderr by the program's panic hook.
//! - A stream whose handshake or whose reading panics ends with the usual events, and with EFAULT
//!   for a failed handshake. Its peer may reconnect.
//! - Any other piece of work is dropped, and the thread continues with the next one.
//!
//! After a panic the thread sleeps for a moment, so that a repeated panic does not use up the
//! processor.

use super::{EventLoop, EventSource};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;
use tautline_io::thread;
use tautline_queue::sync::Arc;

/// Time that the thread sleeps after a panic.
const REST: Duration = Duration::from_millis(1);

impl EventLoop {
    /// Runs a piece of work. Returns false if it panicked.
    pub(super) fn catch_panic(&mut self, work: impl FnOnce(&mut EventLoop)) -> bool {
        let done = catch_unwind(AssertUnwindSafe(|| work(self))).is_ok();
        if !done {
            thread::sleep(REST);
        }
        done
    }

    /// Runs `work` on a source. If it panics, tells the source, which ends itself.
    pub(super) fn call(
        &mut self,
        source: &Arc<dyn EventSource>,
        work: impl FnOnce(Arc<dyn EventSource>, &mut EventLoop),
    ) {
        if !self.catch_panic(|turn| work(source.clone(), turn)) {
            self.catch_panic(|turn| source.clone().on_panic(turn));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Driver, ThreadOptions};
    use super::*;
    use std::sync::mpsc;
    use tautline_io::reactor::{Event, Interest, Mode};
    use tautline_io::wake::WakeFd;

    /// A source that reports each call and then panics.
    struct Clumsy(mpsc::Sender<&'static str>);

    impl EventSource for Clumsy {
        fn on_ready(self: Arc<Self>, _turn: &mut EventLoop, _event: &Event) {
            self.0.send("ready").unwrap();
            panic!("on purpose");
        }

        fn on_timer(self: Arc<Self>, _turn: &mut EventLoop, _key: u64) {
            self.0.send("timer").unwrap();
            panic!("on purpose");
        }

        fn on_panic(self: Arc<Self>, _turn: &mut EventLoop) {
            self.0.send("panicked").unwrap();
            panic!("on purpose");
        }
    }

    #[test]
    fn io_thread_survives_panics() {
        let (driver, thread) = Driver::start(ThreadOptions::default()).unwrap();
        let (sender, told) = mpsc::channel();
        let clumsy = Arc::new(Clumsy(sender.clone()));
        let wake = Arc::new(WakeFd::new().unwrap());
        wake.wake();
        let (source, watched) = (clumsy.clone(), wake.clone());
        driver.post(Box::new(move |turn| {
            turn.register(source, watched.as_fd(), Interest::READ, Mode::OneShot).unwrap();
        }));
        assert_eq!([told.recv(), told.recv()], [Ok("ready"), Ok("panicked")]);
        let source = clumsy.clone();
        driver.post(Box::new(move |turn| {
            turn.set_timer(Duration::ZERO, &source);
        }));
        assert_eq!([told.recv(), told.recv()], [Ok("timer"), Ok("panicked")]);
        driver.post(Box::new(|_| panic!("on purpose")));
        driver.post(Box::new(move |_| sender.send("task").unwrap()));
        assert_eq!(told.recv(), Ok("task"));
        driver.stop();
        thread.join();
    }
}
