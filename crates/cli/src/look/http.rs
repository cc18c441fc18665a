//! The least of HTTP that a browser and Prometheus need: every GET has an answer, and the
//! connection ends with it. An answer is whole, or a stream of events.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::failure::{Failure, Result};

/// The longest head of a request.
const HEAD: usize = 16 * 1024;
/// How long a client may take for its request, and for each piece of the answer.
const TIME: Duration = Duration::from_secs(10);
/// As many clients are answered at once; others are turned away.
const CLIENTS: usize = 16;

/// What is answered.
pub struct Answer {
    status: &'static str,
    kind: &'static str,
    body: Body,
}

enum Body {
    Whole(String),
    Events(Events),
}

/// Writes the events until it ends, or the client is gone.
type Events = Box<dyn FnOnce(&mut TcpStream) -> io::Result<()> + Send>;

impl Answer {
    /// This text, of this type.
    pub fn new(kind: &'static str, body: String) -> Answer {
        Answer { status: "200 OK", kind, body: Body::Whole(body) }
    }

    /// What this writes, as server-sent events.
    pub fn events(write: impl FnOnce(&mut TcpStream) -> io::Result<()> + Send + 'static) -> Answer {
        Answer { status: "200 OK", kind: "text/event-stream", body: Body::Events(Box::new(write)) }
    }

    /// There are too many already.
    pub fn too_many() -> Answer {
        Answer::failed("503 Service Unavailable")
    }

    /// There is nothing.
    pub fn nothing() -> Answer {
        Answer::failed("404 Not Found")
    }

    /// Something else.
    fn failed(status: &'static str) -> Answer {
        Answer { status, kind: "text/plain; charset=utf-8", body: Body::Whole(format!("{status}\n")) }
    }
}

/// Where clients come to.
pub struct Server {
    listener: TcpListener,
    /// The address that it has.
    pub at: SocketAddr,
}

impl Server {
    /// Binds: ADDRESS:PORT, or a port of this machine.
    pub fn bind(address: &str) -> Result<Server> {
        let address = match address.rsplit_once(':') {
            None => format!("127.0.0.1:{address}"),
            Some(("", port)) => format!("127.0.0.1:{port}"),
            Some(_) => address.to_owned(),
        };
        let bound = TcpListener::bind(&address).and_then(|listener| Ok((listener.local_addr()?, listener)));
        let (at, listener) = bound.map_err(|error: io::Error| {
            Failure::failed(format!("{address}: {error}"))
                .hint("--listen takes ADDRESS:PORT, or a port of this machine; 0 is any free one")
        })?;
        Ok(Server { listener, at })
    }

    /// Answers each path until the process is ended.
    pub fn serve(&self, answer: impl Fn(&str) -> Answer + Sync) {
        let busy = AtomicUsize::new(0);
        thread::scope(|scope| {
            for client in self.listener.incoming() {
                // A client that was gone before it was accepted is none.
                let Ok(mut client) = client else { continue };
                let limited = client.set_read_timeout(Some(TIME)).is_ok()
                    && client.set_write_timeout(Some(TIME)).is_ok();
                if busy.fetch_add(1, Ordering::SeqCst) >= CLIENTS || !limited {
                    busy.fetch_sub(1, Ordering::SeqCst);
                    let _ = respond(&mut client, Answer::too_many());
                    continue;
                }
                let (busy, answer) = (&busy, &answer);
                scope.spawn(move || {
                    // One that does not listen to its answer has none.
                    let answer = ask(&client, answer);
                    let _ = respond(&mut client, answer);
                    busy.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
    }
}

fn ask(mut client: &TcpStream, answer: impl Fn(&str) -> Answer) -> Answer {
    let start = Instant::now();
    let mut head = Vec::new();
    let mut bytes = [0; 4096];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        match client.read(&mut bytes) {
            Ok(len @ 1..) if head.len() + len <= HEAD && start.elapsed() < TIME => {
                head.extend_from_slice(&bytes[..len]);
            }
            _ => return Answer::failed("400 Bad Request"),
        }
    }
    let mut words = head.split(|byte| *byte == b' ');
    match (words.next(), words.next().map(std::str::from_utf8)) {
        (Some(b"GET"), Some(Ok(path))) => answer(path),
        _ => Answer::failed("405 Method Not Allowed"),
    }
}

fn respond(client: &mut TcpStream, answer: Answer) -> io::Result<()> {
    let length = match &answer.body {
        Body::Whole(body) => format!("Content-Length: {}\r\n", body.len()),
        Body::Events(_) => String::new(),
    };
    // What is shown is of this moment, and no other page may ask for it.
    let head = format!(
        "HTTP/1.1 {}\r\nContent-Type: {}\r\n{length}Cache-Control: no-store\r\n\
         X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n",
        answer.status, answer.kind,
    );
    client.write_all(head.as_bytes())?;
    match answer.body {
        Body::Whole(body) => client.write_all(body.as_bytes())?,
        Body::Events(write) => write(client)?,
    }
    client.shutdown(Shutdown::Write)?;
    // What has come and was not read would take the answer back.
    io::copy(&mut client.take(HEAD as u64), &mut io::sink())?;
    Ok(())
}
