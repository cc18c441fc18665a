//! A descriptor that becomes readable when a time has passed. A driver registers it in its reactor,
//! so that another thread can arm a timer for the driver without waking it.

#[cfg_attr(linux_kernel, path = "timer/timerfd.rs")]
#[cfg_attr(windows, path = "timer/windows.rs")]
#[cfg_attr(all(unix, not(linux_kernel)), path = "timer/kqueue.rs")]
mod os;
#[cfg(linux_kernel)]
mod thread;

pub use os::TimerFd;

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::fd::AsRawFd;
    use crate::poll::{PollFd, poll};

    fn readable(timer: &TimerFd, timeout: Option<Duration>) -> bool {
        poll(&mut [PollFd::new(timer.as_fd().as_raw_fd(), PollFd::IN)], timeout).unwrap() == 1
    }

    /// Runs `test` with a timer of each available kind.
    fn with_each(test: impl Fn(TimerFd)) {
        test(TimerFd::new().unwrap());
        #[cfg(linux_kernel)]
        test(TimerFd::new_with_thread().unwrap());
    }

    #[test]
    fn expires_once_and_not_early() {
        with_each(one_that_expires_once_and_not_early);
    }

    fn one_that_expires_once_and_not_early(timer: TimerFd) {
        assert!(!readable(&timer, Some(Duration::ZERO)));
        assert!(!timer.drain());

        let start = Instant::now();
        timer.arm(Duration::from_micros(1500));
        assert!(readable(&timer, None));
        assert!(start.elapsed() >= Duration::from_micros(1500));
        assert!(timer.drain());
        assert!(!timer.drain());
        assert!(!readable(&timer, Some(Duration::from_millis(3))));
    }

    #[test]
    fn zero_expires_at_once() {
        with_each(|timer| {
            timer.arm(Duration::ZERO);
            assert!(readable(&timer, None));
        });
    }

    #[test]
    fn disarm_and_arm_again_replace() {
        with_each(one_that_is_armed_and_disarmed);
    }

    fn one_that_is_armed_and_disarmed(timer: TimerFd) {
        timer.arm(Duration::from_secs(1000));
        timer.disarm();
        assert!(!readable(&timer, Some(Duration::ZERO)));
        timer.arm(Duration::MAX);
        timer.arm(Duration::from_micros(1));
        assert!(readable(&timer, None));
        // Disarming removes an expiry that was not seen.
        timer.disarm();
        assert!(!readable(&timer, Some(Duration::ZERO)));
    }
}
