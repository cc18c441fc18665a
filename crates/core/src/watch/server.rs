//! The control socket beside the file of counters: tools of the same user ask for taps there. Its
//! thread sleeps until one comes, and each tap has a thread of its own.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use super::Watch;
use super::tap::Tap;
use crate::sync::Arc;
use tautline_io::net::peer_credentials_of;
use tautline_io::poll::{self, PollFd};
use tautline_io::thread::OwnThread;
use tautline_io::wake::WakeFd;
use tautline_observe::tap::{LONGEST_REQUEST, OK, Request};

/// Most tools at a time.
const MOST: usize = 8;
/// A tool has this long for its request, and to take what was written.
const PATIENCE: Duration = Duration::from_secs(2);

/// The control socket, and its thread.
pub(super) struct Server {
    path: PathBuf,
    wake: Arc<WakeFd>,
    thread: JoinHandle<()>,
}

impl Server {
    /// Listens beside the file of counters at `file`.
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
        let wake = Arc::new(WakeFd::new()?);
        let (watch, woken) = (watch.clone(), wake.clone());
        let thread = Builder::new().name("ZMQbg/tap".into()).spawn(move || {
            let _own = OwnThread::new();
            serve(&watch, &listener, &woken);
        });
        match thread {
            Ok(thread) => Ok(Server { path, wake, thread }),
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
        self.wake.wake();
        let _ = self.thread.join();
        let _ = std::fs::remove_file(&self.path);
    }
}

fn serve(watch: &Arc<Watch>, listener: &UnixListener, wake: &WakeFd) {
    let mut tools: Vec<(UnixStream, JoinHandle<()>)> = Vec::new();
    loop {
        let mut fds = [
            PollFd::new(wake.as_fd().as_raw_fd(), PollFd::IN),
            PollFd::new(listener.as_raw_fd(), PollFd::IN),
        ];
        if poll::poll(&mut fds, None).is_err() {
            // A signal cannot come here: nothing can be waited for.
            break;
        }
        if fds[0].revents != 0 {
            break;
        }
        tools.retain(|(_, thread)| !thread.is_finished());
        let Ok((stream, _)) = listener.accept() else { continue };
        let own = peer_credentials_of(&stream).is_ok_and(|peer| peer.uid == watch.identity.uid);
        let Ok(other) = stream.try_clone() else { continue };
        if !own || tools.len() >= MOST {
            continue;
        }
        let watch = watch.clone();
        let thread = Builder::new().name("ZMQbg/tap".into());
        let spawned = thread.spawn(move || {
            let _own = OwnThread::new();
            // A tool that goes away is no fault.
            let _ = talk(&watch, stream);
        });
        tools.extend(spawned.ok().map(|thread| (other, thread)));
    }
    // Whatever a tool does or does not do, it is not waited for.
    for (stream, thread) in tools {
        let _ = stream.shutdown(Shutdown::Both);
        watch.taps().iter().for_each(|tap| tap.end());
        let _ = thread.join();
    }
}

/// Reads what a tool asks for, and sends it that.
fn talk(watch: &Arc<Watch>, mut stream: UnixStream) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut text = Vec::new();
    while !text.ends_with(b"\n\n") {
        let mut byte = [0];
        if text.len() == LONGEST_REQUEST || stream.read(&mut byte)? == 0 {
            return stream.write_all(b"ERROR the request has no end\n");
        }
        text.push(byte[0]);
    }
    let request = match Request::from_text(&String::from_utf8_lossy(&text)) {
        Ok(request) => request,
        Err(why) => return stream.write_all(format!("ERROR {why}\n").as_bytes()),
    };
    let tap = Arc::new(Tap::new(request));
    // What the program does after the answer is seen.
    watch.begin_tap(&tap);
    let ended = stream.write_all(format!("{OK}\n").as_bytes()).and_then(|()| pass_on(&tap, &mut stream));
    watch.end_tap(&tap);
    ended
}

/// Writes what comes until the tool goes, or the tap ends.
fn pass_on(tap: &Tap, stream: &mut UnixStream) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    while let Some(frames) = tap.take(PATIENCE / 10) {
        // The tool says nothing more: what can be read is its end.
        match stream.read(&mut [0]) {
            Ok(0) => return Ok(()),
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
            _ => {}
        }
        stream.set_nonblocking(false)?;
        for frame in frames {
            stream.write_all(&frame)?;
        }
        stream.set_nonblocking(true)?;
    }
    Ok(())
}
