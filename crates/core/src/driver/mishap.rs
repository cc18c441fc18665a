//! A panic on an I/O thread, which must not end the thread: all sockets that live on it would hang,
//! without a word. None is known that a peer or a program can bring about. Should there be one, the
//! process goes on as well as it can:
//!
//! - what panics says so on stderr, as the program's panic hook has it;
//! - a stream whose handshake or whose reading panics ends, with the usual events, and EFAULT for a
//!   failed handshake. Its peer may come again;
//! - any other piece of work is given up, and the thread goes on with the next one.
//!
//! After a panic the thread rests, so that one that comes again and again takes no processor.

use super::{Source, Turn};
use crate::sync::Arc;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;
use tautline_io::thread;

/// How long the thread rests after a panic.
const REST: Duration = Duration::from_millis(1);

impl Turn {
    /// Does a piece of work. False: it has panicked.
    pub(super) fn attempt(&mut self, work: impl FnOnce(&mut Turn)) -> bool {
        let done = catch_unwind(AssertUnwindSafe(|| work(self))).is_ok();
        if !done {
            thread::sleep(REST);
        }
        done
    }

    /// Has a source do something, and gives it up if it panics.
    pub(super) fn call(&mut self, source: &Arc<dyn Source>, work: impl FnOnce(Arc<dyn Source>, &mut Turn)) {
        if !self.attempt(|turn| work(source.clone(), turn)) {
            self.attempt(|turn| source.clone().panicked(turn));
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

    /// Tells what is asked of it, and panics.
    struct Clumsy(mpsc::Sender<&'static str>);

    impl Source for Clumsy {
        fn ready(self: Arc<Self>, _turn: &mut Turn, _event: &Event) {
            self.0.send("ready").unwrap();
            panic!("on purpose");
        }

        fn timer(self: Arc<Self>, _turn: &mut Turn, _key: u64) {
            self.0.send("timer").unwrap();
            panic!("on purpose");
        }

        fn panicked(self: Arc<Self>, _turn: &mut Turn) {
            self.0.send("panicked").unwrap();
            panic!("on purpose");
        }
    }

    #[test]
    fn a_thread_goes_on_after_a_panic() {
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
            turn.after(Duration::ZERO, &source);
        }));
        assert_eq!([told.recv(), told.recv()], [Ok("timer"), Ok("panicked")]);
        driver.post(Box::new(|_| panic!("on purpose")));
        driver.post(Box::new(move |_| sender.send("task").unwrap()));
        assert_eq!(told.recv(), Ok("task"));
        driver.stop();
        thread.join().unwrap();
    }
}
