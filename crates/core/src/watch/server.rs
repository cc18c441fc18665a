//! The control socket beside the file of counters: tools of the same user ask for taps there. One
//! thread serves all of them. It sleeps until a tool comes or an owner has something for one.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use super::Watch;
use super::tap::Tap;
use crate::sync::Arc;
use crate::sync::atomic::AtomicBool;
use crate::sync::atomic::Ordering::{Acquire, Release};
use tautline_io::net::peer_credentials_of;
use tautline_io::poll::{self, PollFd};
use tautline_io::thread::OwnThread;
use tautline_io::wake::WakeFd;
use tautline_observe::tap::{LONGEST_REQUEST, OK, Request};

/// Most tools at a time.
const MOST: usize = 8;
/// A tool has this long for its request.
const PATIENCE: Duration = Duration::from_secs(2);

/// The control socket, and its thread.
pub(super) struct Server {
    path: PathBuf,
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
}

/// What the thread and the one that ends it share.
struct Shared {
    ending: AtomicBool,
    wake: Arc<WakeFd>,
}

impl Server {
    /// Listens beside the file of counters at `file`. The thread has begun when this returns.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn start(watch: &Arc<Watch>, file: &Path) -> io::Result<Self> {
        let mut path = file.as_os_str().to_owned();
        path.push(".tap");
        let path = PathBuf::from(path);
        // Of a process that had this number before.
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path)?;
        listener.set_nonblocking(true)?;
        let shared = Arc::new(Shared { ending: AtomicBool::new(false), wake: Arc::new(WakeFd::new()?) });
        let (watch, served) = (watch.clone(), shared.clone());
        let (begun, begins) = mpsc::channel();
        let thread = Builder::new().name("ZMQbg/tap".into()).spawn(move || {
            let _own = OwnThread::new();
            let _ = begun.send(());
            serve(&watch, &listener, &served);
        });
        // A thread that begins takes the dynamic loader's lock, which the thread that ends it may
        // hold.
        let _ = begins.recv();
        match thread {
            Ok(thread) => Ok(Server { path, shared, thread }),
            Err(error) => {
                let _ = std::fs::remove_file(&path);
                Err(error)
            }
        }
    }

    /// Where it listens.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Ends all taps, and the thread.
    pub(super) fn end(self) {
        // Release pairs with the Acquire of the thread, which wakes for it.
        self.shared.ending.store(true, Release);
        self.shared.wake.wake();
        let _ = self.thread.join();
        let _ = std::fs::remove_file(&self.path);
    }
}

/// A tool that is connected.
struct Tool {
    stream: UnixStream,
    since: Instant,
    request: Vec<u8>,
    tap: Option<Arc<Tap>>,
    /// What is written to it, and how much of that was.
    out: Vec<u8>,
    written: usize,
    /// It is told why not, and that is all.
    refused: bool,
}

fn serve(watch: &Arc<Watch>, listener: &UnixListener, shared: &Shared) {
    let mut tools: Vec<Tool> = Vec::new();
    loop {
        let mut fds = vec![
            PollFd::new(shared.wake.as_fd().as_raw_fd(), PollFd::IN),
            PollFd::new(listener.as_raw_fd(), PollFd::IN),
        ];
        fds.extend(tools.iter().map(|tool| PollFd::new(tool.stream.as_raw_fd(), tool.waits_for())));
        let silent = tools.iter().filter(|tool| tool.tap.is_none()).map(|tool| tool.since).min();
        let patience = silent.map(|since| PATIENCE.saturating_sub(since.elapsed()));
        if poll::poll(&mut fds, patience).is_err() || shared.ending.load(Acquire) {
            // No signal comes here: without descriptors nothing can be waited for.
            break;
        }
        shared.wake.drain();
        tools.retain_mut(|tool| {
            let stays = tool.advance(watch, &shared.wake).is_ok();
            if !stays && let Some(tap) = tool.tap.take() {
                watch.end_tap(&tap);
            }
            stays
        });
        if let Ok((stream, _)) = listener.accept() {
            let own = peer_credentials_of(&stream).is_ok_and(|peer| peer.uid == watch.identity.uid);
            if own && tools.len() < MOST && stream.set_nonblocking(true).is_ok() {
                tools.push(Tool::new(stream));
            }
        }
    }
    for tool in &mut tools {
        // The last messages, as far as they go without waiting.
        let _ = tool.advance(watch, &shared.wake);
        if let Some(tap) = tool.tap.take() {
            watch.end_tap(&tap);
        }
    }
}

impl Tool {
    fn new(stream: UnixStream) -> Self {
        let (request, out) = (Vec::new(), Vec::new());
        Tool { stream, since: Instant::now(), request, tap: None, out, written: 0, refused: false }
    }

    fn waits_for(&self) -> i16 {
        PollFd::IN | if self.out.is_empty() { 0 } else { PollFd::OUT }
    }

    /// Reads and writes what can be without waiting. An error: it is done with.
    fn advance(&mut self, watch: &Watch, wake: &Arc<WakeFd>) -> io::Result<()> {
        let mut buffer = [0; 512];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                // It has nothing more to say.
                Ok(_) if self.tap.is_some() || self.refused => {}
                Ok(n) => self.request.extend(&buffer[..n]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        if self.tap.is_none() && !self.refused {
            self.understand(watch, wake);
        }
        loop {
            if self.out.is_empty()
                && let Some(tap) = &self.tap
            {
                self.out = tap.take().concat();
            }
            if self.out.is_empty() {
                return if self.refused { Err(ErrorKind::Other.into()) } else { Ok(()) };
            }
            match self.stream.write(&self.out[self.written..]) {
                Ok(n) => self.written += n,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
            if self.written == self.out.len() {
                (self.out, self.written) = (Vec::new(), 0);
            }
        }
    }

    /// Looks whether the request is whole, and answers it then.
    fn understand(&mut self, watch: &Watch, wake: &Arc<WakeFd>) {
        let refusal = if self.request.ends_with(b"\n\n") {
            match Request::from_text(&String::from_utf8_lossy(&self.request)) {
                Ok(request) => {
                    let tap = Arc::new(Tap::new(request, wake.clone()));
                    // What the program does after the answer is seen.
                    watch.begin_tap(&tap);
                    self.tap = Some(tap);
                    self.out = format!("{OK}\n").into_bytes();
                    return;
                }
                Err(why) => why,
            }
        } else if self.request.len() > LONGEST_REQUEST || self.since.elapsed() >= PATIENCE {
            "the request has no end".to_owned()
        } else {
            return;
        };
        self.refused = true;
        self.out = format!("ERROR {refusal}\n").into_bytes();
    }
}
