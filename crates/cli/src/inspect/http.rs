//! HTTP/1.1 server with hyper, for browsers and Prometheus. It answers each GET and HEAD, and then
//! closes the connection. An answer is a complete body or a stream of events.
//!
//! One thread serves all clients. Another thread computes the answers, and each stream of events
//! has its own thread. A client can make the server hold a request head, an answer and a few events
//! while it reads. Incomplete requests do not block other clients: if there are too many, the
//! oldest one is closed.
//!
//! A server at a loopback address answers only requests whose Host is such an address. This
//! protects against DNS rebinding: a page of an attacker whose host name resolves to this machine
//! gets no data.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use http_body_util::{Either, Full};
use hyper::body::{Body, Bytes, Frame, Incoming};
use hyper::header::{
    ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderValue, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{AbortHandle, spawn_blocking};
use tokio_io_timeout::TimeoutStream;

use crate::failure::{Failure, Result};

/// Maximum size of a request head.
const HEAD: usize = 16 * 1024;
/// Time limit for a client to send its request, and to read each piece of the answer.
const TIME: Duration = Duration::from_secs(10);
/// Maximum number of clients that are served at once. Further clients get an error.
const CLIENTS: usize = 16;
/// Maximum number of clients with an incomplete request.
const WAITING: usize = 128;
/// Maximum number of queued events per client.
const EVENTS: usize = 16;
/// Pause after a failed accept, because the process has no free descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Request of a client.
pub struct HttpRequest {
    /// Path with the query.
    pub path: String,
    /// Values of the Accept headers, separated by commas.
    pub accept: String,
}

/// Answer to a request.
pub struct HttpReply {
    status: StatusCode,
    kind: &'static str,
    body: ReplyBody,
}

enum ReplyBody {
    Whole(String),
    Events(Box<Tell>),
}

/// Function that sends events until the stream ends or the client is gone.
type Tell = dyn FnOnce(&Events) -> io::Result<()> + Send;

impl HttpReply {
    /// Returns an answer with this content type and text.
    pub fn new(kind: &'static str, body: String) -> HttpReply {
        HttpReply { status: StatusCode::OK, kind, body: ReplyBody::Whole(body) }
    }

    /// Returns a stream of server-sent events. `tell` runs on its own thread and should end when
    /// the client is gone.
    pub fn events(tell: impl FnOnce(&Events) -> io::Result<()> + Send + 'static) -> HttpReply {
        HttpReply {
            status: StatusCode::OK,
            kind: "text/event-stream",
            body: ReplyBody::Events(Box::new(tell)),
        }
    }

    /// Returns the answer for too many clients.
    pub fn too_many() -> HttpReply {
        HttpReply::failed(StatusCode::SERVICE_UNAVAILABLE)
    }

    /// Returns the answer for an unknown path.
    pub fn nothing() -> HttpReply {
        HttpReply::failed(StatusCode::NOT_FOUND)
    }

    /// Returns an answer with this error status.
    fn failed(status: StatusCode) -> HttpReply {
        HttpReply { status, kind: "text/plain; charset=utf-8", body: ReplyBody::Whole(format!("{status}\n")) }
    }

    fn respond(self) -> Response<Either<Full<Bytes>, Pieces>> {
        let body = match self.body {
            ReplyBody::Whole(text) => Either::Left(Full::from(text)),
            ReplyBody::Events(tell) => {
                let (sender, receiver) = mpsc::channel(EVENTS);
                // If the client is gone, the error does not matter.
                spawn_blocking(move || tell(&Events(sender)).is_ok());
                Either::Right(Pieces(receiver))
            }
        };
        let mut response = Response::new(body);
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        // The answer is valid only now, and other origins may not read it.
        for (name, value) in [
            (CONTENT_TYPE, self.kind),
            (CACHE_CONTROL, "no-store"),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (REFERRER_POLICY, "no-referrer"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        if self.status == StatusCode::METHOD_NOT_ALLOWED {
            headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        }
        response
    }
}

/// Sender of events to a client.
pub struct Events(mpsc::Sender<Bytes>);

impl Events {
    /// Sends a piece of text. Waits until the queue has room.
    ///
    /// # Errors
    /// `BrokenPipe` if the client is gone or has not read for too long.
    pub fn send(&self, text: String) -> io::Result<()> {
        self.0.blocking_send(text.into()).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

/// Stream of events as the body of an answer.
struct Pieces(mpsc::Receiver<Bytes>);

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<std::result::Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}

/// Listening server.
pub struct Server {
    runtime: Runtime,
    listener: TcpListener,
    /// Bound address.
    pub at: SocketAddr,
}

impl Server {
    /// Binds to ADDRESS:PORT, or to a port of this machine.
    pub fn bind(address: &str) -> Result<Server> {
        let address = match address.rsplit_once(':') {
            None => format!("127.0.0.1:{address}"),
            Some(("", port)) => format!("127.0.0.1:{port}"),
            Some(_) => address.to_owned(),
        };
        let bound = TcpListener::bind(&address).and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok((listener.local_addr()?, listener))
        });
        let (at, listener) = bound.map_err(|error: io::Error| {
            Failure::failed(format!("{address}: {error}"))
                .hint("--listen takes ADDRESS:PORT, or a port of this machine; 0 is any free one")
        })?;
        let runtime = Builder::new_current_thread().enable_all().max_blocking_threads(2 * CLIENTS).build();
        let runtime = runtime.map_err(|error| Failure::failed(format!("the server: {error}")))?;
        Ok(Server { runtime, listener, at })
    }

    /// Answers each request until the process ends.
    pub fn serve(self, answer: impl Fn(&HttpRequest) -> HttpReply + Send + Sync + 'static) -> Result<()> {
        let hall = Arc::new(ServerState {
            answer,
            places: Arc::new(Semaphore::new(CLIENTS)),
            is_local: self.at.ip().is_loopback(),
        });
        let mut waiting: VecDeque<(AbortHandle, Arc<AtomicBool>)> = VecDeque::new();
        let outcome: io::Result<()> = self.runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(self.listener)?;
            loop {
                let Ok((client, _)) = listener.accept().await else {
                    tokio::time::sleep(PAUSE).await;
                    continue;
                };
                waiting.retain(|(client, has_asked)| !client.is_finished() && !has_asked.load(Relaxed));
                if waiting.len() == WAITING
                    && let Some((oldest, _)) = waiting.pop_front()
                {
                    oldest.abort();
                }
                let has_asked = Arc::new(AtomicBool::new(false));
                let client = tokio::spawn(talk(client, hall.clone(), has_asked.clone()));
                waiting.push_back((client.abort_handle(), has_asked));
            }
        });
        outcome.map_err(|error| Failure::failed(format!("the server: {error}")))
    }
}

/// State shared by all clients.
struct ServerState<A> {
    answer: A,
    /// A client holds one permit from its request to the end of its answer.
    places: Arc<Semaphore>,
    /// True if the server has an address that only this machine can reach.
    is_local: bool,
}

/// Serves one request. Sets `has_asked` when the request has arrived.
async fn talk<S, A>(client: S, hall: Arc<ServerState<A>>, has_asked: Arc<AtomicBool>)
where
    S: AsyncRead + AsyncWrite + Send + 'static,
    A: Fn(&HttpRequest) -> HttpReply + Send + Sync + 'static,
{
    let mut client = TimeoutStream::new(client);
    client.set_write_timeout(Some(TIME));
    let places = hall.places.clone();
    let kept = OnceLock::new();
    let service = service_fn(|request: Request<Incoming>| {
        has_asked.store(true, Relaxed);
        let held = places.clone().try_acquire_owned().ok();
        let is_served = held.is_some();
        // A connection has only one request, so keep the permit until the answer is sent.
        let _ = kept.set(held);
        let hall = hall.clone();
        async move {
            let answer = if is_served { find(request, hall).await } else { HttpReply::too_many() };
            Ok::<_, Infallible>(answer.respond())
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(TIME)
        .max_buf_size(HEAD)
        .keep_alive(false)
        // A client may close its sending side and still read the answer.
        .half_close(true)
        .title_case_headers(true)
        .serve_connection(TokioIo::new(Box::pin(client)), service);
    // A client that does not read its answer gets none.
    let _ = connection.await;
}

async fn find<A>(request: Request<Incoming>, hall: Arc<ServerState<A>>) -> HttpReply
where
    A: Fn(&HttpRequest) -> HttpReply + Send + Sync + 'static,
{
    let host = request.headers().get(HOST).map(|host| host.to_str().unwrap_or_default());
    if hall.is_local && !host.is_none_or(is_local_host) {
        return HttpReply::failed(StatusCode::MISDIRECTED_REQUEST);
    }
    // The server sends the head of the answer to HEAD, and omits the body.
    if ![Method::GET, Method::HEAD].contains(request.method()) {
        return HttpReply::failed(StatusCode::METHOD_NOT_ALLOWED);
    }
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str()).to_owned();
    let accept = request.headers().get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let request = HttpRequest { path, accept: accept.collect::<Vec<_>>().join(",") };
    let found = spawn_blocking(move || (hall.answer)(&request)).await;
    found.unwrap_or_else(|_| HttpReply::failed(StatusCode::INTERNAL_SERVER_ERROR))
}

/// True if the value of a Host header is an address or `localhost`. An attacker cannot make such a
/// name resolve to this machine.
fn is_local_host(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    address.parse::<IpAddr>().is_ok() || name.eq_ignore_ascii_case("localhost")
}

#[cfg(test)]
mod tests;
