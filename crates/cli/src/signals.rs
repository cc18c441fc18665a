//! SIGINT, SIGTERM and SIGHUP as a descriptor to wait for. A second SIGINT ends the process at
//! once.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::failure::{Code, Failure};

/// What the signals of this process have asked for.
pub struct Signals {
    /// A byte for each signal.
    wake: UnixStream,
    /// Whether SIGINT was among them.
    interrupted: Arc<AtomicBool>,
    /// What the first one has asked for.
    caught: Option<Code>,
}

impl Signals {
    /// From now on signals no longer end the process by themselves.
    pub fn watch() -> io::Result<Signals> {
        let (wake, waker) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        let interrupted = Arc::new(AtomicBool::new(false));
        // In this order: the first one only sets the flag.
        signal_hook::flag::register_conditional_shutdown(
            SIGINT,
            Code::Interrupted as i32,
            interrupted.clone(),
        )?;
        signal_hook::flag::register(SIGINT, interrupted.clone())?;
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::low_level::pipe::register(signal, waker.try_clone()?)?;
        }
        Ok(Signals { wake, interrupted, caught: None })
    }

    /// To wait for.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// Whether one has come, and which kind of end that is.
    pub fn stop(&mut self) -> Option<Code> {
        if self.caught.is_none() && matches!((&self.wake).read(&mut [0; 8]), Ok(1..)) {
            let interrupted = self.interrupted.load(Ordering::SeqCst);
            self.caught = Some(if interrupted { Code::Interrupted } else { Code::Terminated });
        }
        self.caught
    }

    /// Whether one has come, as the end of a command that was to do more.
    pub fn check(&mut self) -> Result<(), Failure> {
        self.stop().map_or(Ok(()), |code| Err(Failure::new(code, "")))
    }
}
