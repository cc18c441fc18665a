//! The NATS side: one connection for all routes.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_nats::connection::State;
use async_nats::jetstream::context::{ContextBuilder, GetStreamErrorKind};
use async_nats::jetstream::{self, ErrorCode, stream};
use async_nats::{Client, ConnectErrorKind, ConnectOptions, Event, ServerAddr};
use tokio::sync::watch;

use crate::config::{Config, Login, Nats as Settings, Stream};
use crate::fault::BridgeError;
use crate::stop::Stop;

/// Timeout for the first server to answer.
const CONNECT: Duration = Duration::from_secs(5);
/// Ping interval. The client closes a connection that is silent for three intervals.
const PING: Duration = Duration::from_secs(3);
/// Delay between two attempts to connect.
const AGAIN: Duration = Duration::from_millis(500);
/// Timeout for flushing the last publications, because the server may disappear before the flush
/// ends.
const FLUSH: Duration = Duration::from_secs(5);
/// Timeout for an answer from JetStream. After it, the bridge repeats the request.
pub const ANSWER: Duration = Duration::from_secs(5);
/// Limit of unacknowledged publications of all routes together.
const IN_FLIGHT: usize = 1 << 20;

/// A connection that reconnects automatically.
#[derive(Debug, Clone)]
pub struct Nats {
    /// NATS client.
    pub client: Client,
    /// JetStream of this client.
    pub streams: jetstream::Context,
    connected: watch::Receiver<u64>,
}

impl Nats {
    /// Connects as soon as a server is available. Returns `None` if the bridge was asked to stop
    /// before.
    ///
    /// # Errors
    /// Only faults that waiting cannot cure: the servers reject the login.
    pub async fn connect(settings: &Settings, stop: &mut Stop) -> Result<Option<Nats>, BridgeError> {
        let (counter, mut connected) = watch::channel(0_u64);
        let counter = Arc::new(counter);
        let addresses: Vec<ServerAddr> =
            settings.servers.iter().filter_map(|server| server.parse().ok()).collect();
        // Report an unusable login file with its line.
        settings.login.auth(b"").map_err(|error| BridgeError::new(settings.login_line, error.to_string()))?;
        let mut told = false;
        loop {
            let options = options(settings, counter.clone());
            let error = match options.connect(&addresses[..]).await {
                Ok(client) => {
                    // Wait for the event of this connection. Otherwise, it would count as a
                    // reconnect later.
                    let _ = tokio::time::timeout(CONNECT, connected.wait_for(|number| *number > 0)).await;
                    let streams = ContextBuilder::new()
                        .timeout(ANSWER)
                        .max_ack_inflight(IN_FLIGHT)
                        .build(client.clone());
                    return Ok(Some(Nats { client, streams, connected }));
                }
                Err(error) => error,
            };
            match error.kind() {
                ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => {
                    return Err(BridgeError::new(
                        settings.login_line,
                        format!("NATS refused the login: {error}"),
                    ));
                }
                ConnectErrorKind::ServerParse => {
                    return Err(BridgeError::new(settings.line, error.to_string()));
                }
                _ if !told => notice!("cannot connect to NATS: {error}; retrying"),
                _ => {}
            }
            told = true;
            tokio::select! {
                () = stop.wait_requested() => return Ok(None),
                () = tokio::time::sleep(AGAIN) => {}
            }
        }
    }

    /// True if there is a connection now.
    pub fn is_connected(&self) -> bool {
        self.client.connection_state() == State::Connected
    }

    /// Waits until the server has received all publications, if it is connected.
    pub async fn flush(&self) {
        if self.is_connected() {
            let _ = tokio::time::timeout(FLUSH, self.client.flush()).await;
        }
    }

    /// Returns a handle that waits for the next connection.
    pub fn connection(&self) -> Connection {
        let mut connected = self.connected.clone();
        connected.mark_unchanged();
        Connection(connected)
    }

    /// Creates the missing streams of the file, and checks that the streams of the routes exist.
    /// Returns `None` if the bridge was asked to stop before NATS answered.
    ///
    /// # Errors
    /// Returns the line of a stream that does not exist.
    pub async fn prepare(&self, config: &Config, stop: &mut Stop) -> Result<Option<()>, BridgeError> {
        for stream in &config.streams {
            let made = self
                .persist(stop, stream.line, || self.streams.get_or_create_stream(stream_config(stream)))
                .await?;
            if made.is_none() {
                return Ok(None);
            }
        }
        for route in &config.routes {
            let Some(name) = route.job.stream() else { continue };
            if self.persist(stop, route.stream_line, || self.streams.get_stream(name)).await?.is_none() {
                return Ok(None);
            }
        }
        Ok(Some(()))
    }

    /// Repeats a request until JetStream answers. A refusal becomes a fault of `line`.
    async fn persist<T, E, F>(
        &self,
        stop: &mut Stop,
        line: usize,
        ask: impl Fn() -> F,
    ) -> Result<Option<T>, BridgeError>
    where
        F: Future<Output = Result<T, E>>,
        E: std::error::Error + Refusal,
    {
        let mut told = false;
        loop {
            let error = tokio::select! {
                () = stop.wait_requested() => return Ok(None),
                answer = ask() => match answer {
                    Ok(answer) => return Ok(Some(answer)),
                    Err(error) => error,
                },
            };
            if let Some(what) = error.refusal() {
                return Err(BridgeError::new(line, what));
            }
            if !told {
                notice!("JetStream does not reply: {error}; retrying");
                told = true;
            }
            tokio::select! {
                () = stop.wait_requested() => return Ok(None),
                () = tokio::time::sleep(AGAIN) => {}
            }
        }
    }
}

/// Identifies a connection.
#[derive(Debug, Clone)]
pub struct Connection(watch::Receiver<u64>);

impl Connection {
    /// Returns after a reconnect that follows the creation of this handle.
    pub async fn wait_for_reconnect(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending().await
        }
    }
}

/// Refusal by JetStream that a second request would not change.
trait Refusal {
    fn refusal(&self) -> Option<String>;
}

impl Refusal for async_nats::jetstream::context::GetStreamError {
    fn refusal(&self) -> Option<String> {
        match self.kind() {
            GetStreamErrorKind::JetStream(error) => refusal(&error),
            GetStreamErrorKind::InvalidStreamName | GetStreamErrorKind::EmptyName => Some(self.to_string()),
            GetStreamErrorKind::Request => None,
        }
    }
}

impl Refusal for async_nats::jetstream::context::CreateStreamError {
    fn refusal(&self) -> Option<String> {
        use async_nats::jetstream::context::CreateStreamErrorKind as Kind;
        match self.kind() {
            Kind::JetStream(error) => refusal(&error),
            Kind::TimedOut | Kind::Response | Kind::ResponseParse => None,
            _ => Some(self.to_string()),
        }
    }
}

/// Returns `None` if waiting may help: the cluster has no leader, or the server has just started.
fn refusal(error: &jetstream::Error) -> Option<String> {
    let waits = [
        ErrorCode::CLUSTER_NOT_AVAILABLE,
        ErrorCode::CLUSTER_NO_PEERS,
        ErrorCode::CLUSTER_NOT_LEADER,
        ErrorCode::INSUFFICIENT_RESOURCES,
    ];
    let code = error.error_code();
    (!waits.contains(&code) && error.code() != 503).then(|| format!("JetStream: {error}"))
}

/// Returns the configuration of a stream as the file describes it.
fn stream_config(wanted: &Stream) -> stream::Config {
    stream::Config {
        name: wanted.name.clone(),
        subjects: wanted.subjects.clone(),
        num_replicas: wanted.replicas,
        max_age: wanted.max_age,
        max_bytes: if wanted.max_bytes == 0 { -1 } else { i64::try_from(wanted.max_bytes).unwrap_or(-1) },
        // A full stream rejects new messages and keeps the stored ones, so its senders notice.
        discard: if wanted.max_bytes == 0 { stream::DiscardPolicy::Old } else { stream::DiscardPolicy::New },
        duplicate_window: wanted.duplicates,
        retention: match wanted.work_queue {
            true => stream::RetentionPolicy::WorkQueue,
            false => stream::RetentionPolicy::Limits,
        },
        ..stream::Config::default()
    }
}

fn options(settings: &Settings, counter: Arc<watch::Sender<u64>>) -> ConnectOptions {
    let told = Arc::new(Mutex::new(String::new()));
    let mut options = match &settings.login {
        Login::Anonymous => ConnectOptions::new(),
        login => {
            let login = login.clone();
            ConnectOptions::with_auth_callback(move |nonce| std::future::ready(login.auth(&nonce)))
        }
    };
    options = options.name("taut bridge").connection_timeout(CONNECT).ping_interval(PING).event_callback(
        move |event| {
            let (counter, told) = (counter.clone(), told.clone());
            async move { tell(&event, &counter, &told) }
        },
    );
    if let Some(ca) = &settings.tls.ca {
        options = options.add_root_certificates(ca.clone()).require_tls(true);
    }
    if let Some((certificate, key)) = &settings.tls.identity {
        options = options.add_client_certificate(certificate.clone(), key.clone()).require_tls(true);
    }
    options
}

/// Reports an event, unless `told` holds the same text.
fn tell(event: &Event, counter: &watch::Sender<u64>, told: &Mutex<String>) {
    let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
    match event {
        Event::Connected => {
            counter.send_modify(|connected| *connected += 1);
            told.clear();
        }
        // The client never stops reading: each route counts the messages that its queue drops.
        Event::SlowConsumer(_) => {}
        event => {
            let what = event.to_string();
            if *told != what {
                notice!("NATS: {what}");
                *told = what;
            }
        }
    }
}
