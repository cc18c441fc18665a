//! The thread that reads the counters, and writes the file.

use std::io;
use std::time::Duration;

use super::server::Server;
use super::{SocketWatch, Watch};
use super::{ended, program};
use tautline_config::error::check_shortage;
use tautline_core::version;
use tautline_io::clock::unix_us;
use tautline_io::lending::{self, Count};
use tautline_io::stderr_report::report_in_background;
use tautline_io::time::thread_cpu_nanos;
use tautline_observe::{Image, LoanState, Loans, Output, Process};
use tautline_queue::sync::{Arc, lock};

/// Time between two looks.
const INTERVAL: Duration = Duration::from_millis(250);
/// Minimum pause as a multiple of the processor time of a look: a thousandth of a core is enough.
/// Elapsed time is unsuitable: on a busy machine a look takes long because other threads run, and
/// at such times the counters must be recent.
const REST: u32 = 1000;
const LONGEST: Duration = Duration::from_secs(10);
/// Pause after a failure to write the file.
const RETRY: Duration = Duration::from_secs(2);

/// State of the looking thread.
pub(super) struct Sampler {
    image: Image,
    process: Process,
    /// `None` while the file cannot be created.
    output: Option<Output>,
    /// True if a failure to write was reported.
    has_reported: bool,
}

impl Sampler {
    pub(super) fn new(watch: &Watch) -> Self {
        let identity = &watch.identity;
        let mut process = Process::default();
        process.pid = identity.pid;
        process.uid = identity.uid;
        process.start_ticks = identity.start_ticks;
        process.since = unix_us();
        process.interval_us = INTERVAL.as_micros() as u64;
        process.program = program::name();
        process.version = version().to_owned();
        Sampler { image: Image::new(), process, output: None, has_reported: false }
    }

    /// Creates the file and the control socket. A failure is reported.
    pub(super) fn begin(&mut self, watch: &Arc<Watch>) {
        if let Err(error) = self.open(watch) {
            self.report(&error);
        }
    }

    fn open(&mut self, watch: &Arc<Watch>) -> io::Result<()> {
        let output = Output::create(&watch.identity, tautline_io::env::is_trusted())?;
        // Without a control socket there are no taps, but everything else works.
        let server = Server::start(watch, output.path()).ok();
        let path = server.as_ref().map(Server::path);
        self.process.tap = path.map(|path| path.to_string_lossy().into_owned()).unwrap_or_default();
        ended::watch(watch.identity.pid, output.path());
        self.output = Some(output);
        watch.serve(server);
        Ok(())
    }

    /// Reads all counters and writes them. Returns the time until the next look.
    pub(super) fn sample(&mut self, watch: &Arc<Watch>) -> Duration {
        let began = thread_cpu_nanos();
        self.process.written = unix_us();
        self.process.looks += 1;
        // While memory is short, readers see the last numbers.
        if check_shortage().is_ok() {
            self.record(watch);
        }
        if let Err(error) = self.write(watch) {
            self.report(&error);
            return RETRY;
        }
        let took = Duration::from_nanos(thread_cpu_nanos().saturating_sub(began));
        let pause = took.saturating_mul(REST).clamp(INTERVAL, LONGEST);
        self.process.look_ns = took.as_nanos() as u64;
        self.process.interval_us = pause.as_micros() as u64;
        pause
    }

    /// Writes the image. If that fails, the file keeps the last image.
    fn write(&mut self, watch: &Arc<Watch>) -> io::Result<()> {
        if self.output.is_none() {
            self.open(watch)?;
        }
        self.output.as_mut().map_or(Ok(()), |output| output.write(&self.image))
    }

    /// Reports the first failure to write on standard error.
    fn report(&mut self, error: &io::Error) {
        if !self.has_reported {
            self.has_reported = true;
            let place = self.output.as_ref().map(|output| format!("{}: ", output.path().display()));
            drop(report_in_background(&format!(
                "the file of counters cannot be written: {}{error}. Tries again every {} s",
                place.unwrap_or_default(),
                RETRY.as_secs()
            )));
        }
    }

    fn record(&mut self, watch: &Watch) {
        let (image, now) = (&mut self.image, self.process.written);
        image.clear();
        let mut sockets: Vec<Arc<SocketWatch>> = Vec::new();
        for context in watch.contexts() {
            image.put(&*lock(&context.shown));
            lock(&context.sockets).retain(|socket| {
                sockets.extend(socket.upgrade());
                socket.strong_count() > 0
            });
        }
        loans().inspect(|loans| image.put(loans));
        for socket in &sockets {
            socket.look(now, image);
            socket.put_route(image);
        }
        {
            let events = lock(&watch.events);
            events.kept.iter().for_each(|event| image.put(event));
            self.process.events = events.count;
        }
        // Peers come last: there are most of them, and records that do not fit are dropped.
        sockets.iter().for_each(|socket| socket.put_peers(image));
        image.finish(&mut self.process);
    }
}

/// Returns the counts of loans, unless all are 0.
fn loans() -> Option<Loans> {
    let counts = lending::counts();
    if counts == [0; lending::COUNTS] {
        return None;
    }
    let mut loans = Loans::default();
    loans.state = match (lending::IS_POSSIBLE, lending::is_forbidden()) {
        (false, _) => LoanState::Absent,
        (true, false) => LoanState::On,
        (true, true) if lending::is_beside_encryption() => LoanState::Encrypted,
        (true, true) => LoanState::Off,
    };
    let at = |count: Count| counts[count as usize];
    loans.lent = at(Count::Lent);
    loans.returned = at(Count::Returned);
    loans.held_bytes = at(Count::HeldBytes);
    loans.adopted = at(Count::Adopted);
    loans.copied = at(Count::Copied);
    loans.exposed = at(Count::Exposed);
    loans.copied_pages = at(Count::CopiedPages);
    loans.short = at(Count::Short);
    loans.no_slab = at(Count::NoSlab);
    loans.over_budget = at(Count::OverBudget);
    loans.peer_limit = at(Count::PeerLimit);
    loans.no_place = at(Count::NoPlace);
    loans.not_mapped = at(Count::NotMapped);
    loans.refused = at(Count::Refused);
    loans.encrypted = at(Count::Encrypted);
    loans.forbidden = at(Count::Forbidden);
    Some(loans)
}

impl Drop for Sampler {
    fn drop(&mut self) {
        if let Some(output) = self.output.take() {
            ended::forget();
            output.remove();
        }
    }
}
