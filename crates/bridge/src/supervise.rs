//! Starts the routes of a file, replaces changed routes, and ends them.

use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tautline::Context;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinHandle;

use crate::config::{Config, Job, Link, Nats as Settings, Route};
use crate::counters::Counters;
use crate::fault::BridgeError;
use crate::nats::Nats;
use crate::route::RouteContext;
use crate::stop::{self, Stop, Stopper};
use crate::zmq::Socket;

/// Timeout for a route to finish its work after it was asked to stop.
const GRACE: Duration = Duration::from_secs(10);
/// Period of the checks of the file.
const LOOK: Duration = Duration::from_secs(1);

/// Options of a bridge.
#[derive(Debug, Clone)]
pub struct Options {
    /// Configuration file.
    pub config: PathBuf,
    /// Interval at which the counters are printed to standard output, one line of JSON per
    /// route.
    pub stats: Option<Duration>,
}

/// Runs the bridge until SIGINT or SIGTERM.
///
/// # Errors
/// Faults of the file, or of the files and streams that it names.
pub fn run(options: &Options) -> Result<(), BridgeError> {
    // Do this before the file is read, so that a change from now on is noticed.
    let seen = FileVersion::of(options);
    let config = Config::load(&options.config)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| BridgeError::new(0, error.to_string()))?;
    runtime.block_on(async {
        let (stopper, stop) = stop::pair();
        let signals = Signals::new().map_err(|error| BridgeError::new(0, error.to_string()))?;
        let hangup = signal(SignalKind::hangup()).map_err(|error| BridgeError::new(0, error.to_string()))?;
        tokio::spawn(signals.forward_to(stopper));
        let Some(mut bridge) = Bridge::start(config, stop.clone()).await? else { return Ok(()) };
        bridge.attend(options, seen, hangup, stop).await;
        bridge.end().await;
        Ok(())
    })
}

/// Signals that end the bridge.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Installs the handlers of the signals.
    pub fn new() -> std::io::Result<Self> {
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Asks to stop at the first signal, and exits at the second.
    pub async fn forward_to(mut self, stopper: Stopper) {
        self.next().await;
        stopper.request_stop();
        self.next().await;
        std::process::exit(130);
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// A running route.
struct Running {
    route: Route,
    counters: Arc<Counters>,
    stopper: Stopper,
    task: JoinHandle<Option<Socket>>,
}

impl Running {
    fn start(route: Route, socket: Socket, nats: &Nats, counters: Arc<Counters>) -> Self {
        let (stopper, stop) = stop::pair();
        let course = RouteContext::new(route.clone(), nats.clone(), counters.clone());
        Running { route, counters, stopper, task: tokio::spawn(course.run(socket, stop)) }
    }

    /// Waits until the route ends, and returns its socket.
    async fn end(mut self) -> Option<Socket> {
        self.stopper.request_stop();
        match tokio::time::timeout(GRACE, &mut self.task).await {
            Ok(Ok(socket)) => return socket,
            Ok(Err(error)) => notice!("route {}: {error}", self.route.name),
            Err(_) => {
                self.task.abort();
                let waiting = self.counters.waiting.get();
                notice!("route {} ended with {waiting} undelivered messages", self.route.name);
            }
        }
        None
    }
}

struct Bridge {
    context: Context,
    config: Config,
    nats: Nats,
    routes: Vec<Running>,
}

impl Bridge {
    async fn start(config: Config, mut stop: Stop) -> Result<Option<Bridge>, BridgeError> {
        let Some(nats) = Nats::connect(&config.nats, &mut stop).await? else { return Ok(None) };
        if nats.prepare(&config, &mut stop).await?.is_none() {
            return Ok(None);
        }
        let context = Context::new();
        let mut bridge = Bridge { context, config, nats, routes: Vec::new() };
        for route in bridge.config.routes.clone() {
            bridge.begin(route, None, Arc::default())?;
        }
        notice!("routes running: {}", bridge.routes.len());
        Ok(Some(bridge))
    }

    fn begin(
        &mut self,
        route: Route,
        kept: Option<Socket>,
        counters: Arc<Counters>,
    ) -> Result<(), BridgeError> {
        let mut socket = match kept {
            Some(socket) => socket,
            None => Socket::open(&self.context, &route.link, route.line)?,
        };
        let (name, promise, shown) = (route.name.clone(), route.job.promise(), counters.clone());
        socket.set_route_report(move || shown.report(&name, promise));
        self.routes.push(Running::start(route, socket, &self.nats, counters));
        Ok(())
    }

    /// Runs until it is asked to stop. After the file changes, the routes continue while the
    /// new configuration waits for NATS.
    async fn attend(&mut self, options: &Options, mut seen: FileVersion, mut hangup: Signal, mut stop: Stop) {
        let mut look = tokio::time::interval(LOOK);
        let mut show = tokio::time::interval(options.stats.unwrap_or(LOOK));
        let mut prepared: Pin<Box<dyn Future<Output = Prepared>>> = Box::pin(std::future::pending());
        loop {
            tokio::select! {
                () = stop.wait_requested() => break,
                _ = hangup.recv() => {}
                _ = show.tick() => {
                    if options.stats.is_some() {
                        self.show();
                    }
                    continue;
                }
                _ = look.tick() => {
                    let now = FileVersion::of(options);
                    if now == seen {
                        continue;
                    }
                }
                outcome = &mut prepared => {
                    prepared = Box::pin(std::future::pending());
                    let outcome = match outcome {
                        Ok(Some((config, nats))) => self.switch(config, nats).await,
                        Ok(None) => continue,
                        Err(fault) => Err(fault),
                    };
                    match outcome {
                        Ok(()) => notice!("reloaded the file; routes running: {}", self.routes.len()),
                        Err(fault) => {
                            notice!("{}, {fault}; the last valid routes continue", options.config.display());
                        }
                    }
                    continue;
                }
            }
            seen = FileVersion::of(options);
            // A newer file replaces one that still waits.
            let (path, settings) = (options.config.clone(), self.config.nats.clone());
            prepared = Box::pin(prepare(path, settings, self.nats.clone(), stop.clone()));
        }
        if options.stats.is_some() {
            self.show();
        }
    }

    /// Prints the counters of all routes.
    fn show(&self) {
        let mut lines = String::new();
        for route in &self.routes {
            lines.push_str(&route.counters.object(&route.route.name).to_string());
            lines.push('\n');
        }
        // Ignore a closed standard output: the routes go on.
        let _ = std::io::stdout().lock().write_all(lines.as_bytes());
    }

    /// Switches to another file. Routes that stay the same are not touched.
    async fn switch(&mut self, config: Config, nats: Nats) -> Result<(), BridgeError> {
        let moved = !config.nats.has_same_settings(&self.config.nats);
        self.nats = nats;
        let stays = |running: &Running| {
            !moved && config.routes.iter().any(|route| route.has_same_settings(&running.route))
        };
        let (staying, leaving): (Vec<_>, Vec<_>) = self.routes.drain(..).partition(stays);
        self.routes = staying;
        // Ask all of them first, because each may have to wait.
        leaving.iter().for_each(|running| running.stopper.request_stop());
        let mut kept: HashMap<String, (Link, Option<Socket>, Arc<Counters>)> = HashMap::new();
        for running in leaving {
            let (name, link) = (running.route.name.clone(), running.route.link.clone());
            let counters = running.counters.clone();
            kept.insert(name, (link, running.end().await, counters));
        }
        let mut outcome = Ok(());
        for route in &config.routes {
            if self.routes.iter().any(|running| running.route.name == route.name) {
                continue;
            }
            let (socket, counters) = match kept.remove(&route.name) {
                Some((link, socket, counters)) => {
                    let goes_on = link == route.link && may_hold_messages(&route.job);
                    (socket.filter(|_| goes_on), counters)
                }
                None => (None, Arc::default()),
            };
            // A fault does not stop the other routes from starting.
            if let Err(fault) = self.begin(route.clone(), socket, counters) {
                outcome = Err(fault);
            }
        }
        self.config = config;
        outcome
    }

    async fn end(self) {
        self.routes.iter().for_each(|running| running.stopper.request_stop());
        for running in self.routes {
            running.end().await;
        }
        self.nats.flush().await;
        let _ = tautline::aio::terminate(&self.context, Duration::from_secs(3)).await;
    }
}

/// A reloaded file, and its NATS connection. `None` if the bridge was asked to stop before.
type Prepared = Result<Option<(Config, Nats)>, BridgeError>;

/// Reads the file again, and waits until NATS has the streams that the file needs.
async fn prepare(path: PathBuf, settings: Settings, nats: Nats, mut stop: Stop) -> Prepared {
    let config = Config::load(&path)?;
    let nats = match config.nats.has_same_settings(&settings) {
        true => nats,
        false => match Nats::connect(&config.nats, &mut stop).await? {
            Some(nats) => nats,
            None => return Ok(None),
        },
    };
    Ok(nats.prepare(&config, &mut stop).await?.map(|()| (config, nats)))
}

/// True if the socket of such a route may hold messages that senders have sent.
fn may_hold_messages(job: &Job) -> bool {
    matches!(job, Job::Publish | Job::Stored { .. })
}

/// Identifies a version of a file.
#[derive(PartialEq, Eq)]
struct FileVersion(Option<(SystemTime, u64, u64)>);

impl FileVersion {
    fn of(options: &Options) -> Self {
        let data = fs::metadata(&options.config).ok();
        FileVersion(data.and_then(|data| Some((data.modified().ok()?, data.len(), data.ino()))))
    }
}
