//! The control socket beside the file of counters, where tools of the same user and of root ask for
//! taps. One thread serves all tools. The thread sleeps until a tool connects or an owner has data
//! for one.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::Watch;
use super::tap::Tap;
use tautline_io::net::peer_credentials_of;
use tautline_io::poll::{self, PollFd};
use tautline_io::thread::{self, OwnThread, Started};
use tautline_io::wake::WakeFd;
use tautline_observe::tap::{LONGEST_REQUEST, OK, Request};
use tautline_queue::sync::Arc;
use tautline_queue::sync::atomic::AtomicBool;
use tautline_queue::sync::atomic::Ordering::{Acquire, Release};

/// Maximum number of tools at a time.
const MOST: usize = 8;
/// Time limit for a tool's request.
const PATIENCE: Duration = Duration::from_secs(2);

/// The control socket, and its thread.
pub(super) struct Server {
    path: PathBuf,
    shared: Arc<ServerControl>,
    thread: Started,
}

/// State that the thread shares with the thread that ends it.
struct ServerControl {
    ending: AtomicBool,
    wake: Arc<WakeFd>,
}

impl Server {
    /// Listens beside the file of counters at `file`. The thread has begun when this returns.
    ///
    /// # Errors
    /// System errors.
    pub(super) fn start(watch: &Arc<Watch>, file: &Path) -> io::Result<Self> {
        let mut path = file.as_os_str().to_owned();
        path.push(".tap");
        let path = PathBuf::from(path);
        // The file may be from an earlier process with the same number.
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path)?;
        listener.set_nonblocking(true)?;
        let shared =
            Arc::new(ServerControl { ending: AtomicBool::new(false), wake: Arc::new(WakeFd::new()?) });
        let (watch, served) = (watch.clone(), shared.clone());
        let (begun, begins) = mpsc::channel();
        let thread = thread::start("ZMQbg/tap", thread::STACK, move || {
            let _own = OwnThread::new();
            let _ = begun.send(());
            serve(&watch, &listener, &served);
        });
        // Wait, because a starting thread takes the dynamic loader's lock, which the thread that
        // ends it may hold.
        let _ = begins.recv();
        match thread {
            Ok(thread) => Ok(Server { path, shared, thread }),
            Err(error) => {
                let _ = std::fs::remove_file(&path);
                Err(error)
            }
        }
    }

    /// Path of the socket.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Ends all taps, and the thread.
    pub(super) fn end(self) {
        // Release pairs with the Acquire of the thread, which is woken to read it.
        self.shared.ending.store(true, Release);
        self.shared.wake.wake();
        self.thread.join();
        let _ = std::fs::remove_file(&self.path);
    }
}

/// A connected tool.
struct Tool {
    stream: UnixStream,
    since: Instant,
    request: Vec<u8>,
    tap: Option<Arc<Tap>>,
    /// Bytes to write to the tool, and the number of them that are written.
    out: Vec<u8>,
    written: usize,
    /// True if the tool was refused: it only gets the reason.
    refused: bool,
}

fn serve(watch: &Arc<Watch>, listener: &UnixListener, shared: &ServerControl) {
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
            // Signals cannot interrupt this thread, so the error means that the system has no
            // resources for the wait.
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
            // Root may read the memory of this process anyway.
            let own = peer_credentials_of(&stream)
                .is_ok_and(|peer| peer.uid == watch.identity.uid || peer.uid == 0);
            if own && tools.len() < MOST && stream.set_nonblocking(true).is_ok() {
                tools.push(Tool::new(stream));
            }
        }
    }
    for tool in &mut tools {
        // Send the last messages, as far as possible without waiting.
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

    /// Reads and writes as far as possible without waiting. Returns an error if the tool is
    /// finished.
    fn advance(&mut self, watch: &Watch, wake: &Arc<WakeFd>) -> io::Result<()> {
        let mut buffer = [0; 512];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                // Ignore further bytes of the tool.
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

    /// If the request is complete, answers it.
    fn understand(&mut self, watch: &Watch, wake: &Arc<WakeFd>) {
        let refusal = if self.request.ends_with(b"\n\n") {
            match Request::from_text(&String::from_utf8_lossy(&self.request)) {
                Ok(request) => {
                    let tap = Arc::new(Tap::new(request, wake.clone()));
                    // The tap sees everything that the program does after the answer.
                    watch.begin_tap(&tap);
                    self.tap = Some(tap);
                    self.out = format!("{OK}\n").into_bytes();
                    return;
                }
                Err(why) => why,
            }
        } else if self.request.len() > LONGEST_REQUEST || self.since.elapsed() >= PATIENCE {
            "the request is incomplete".to_owned()
        } else {
            return;
        };
        self.refused = true;
        self.out = format!("ERROR {refusal}\n").into_bytes();
    }
}
