//! The thread that reads the counters, and writes the file.

use std::path::Path;
use std::time::{Duration, Instant};

use super::{SocketWatch, Watch};
use crate::error::check_shortage;
use crate::sync::{Arc, lock};
use crate::version::version;
use tautline_io::clock::unix_us;
use tautline_observe::{Identity, Image, Output, Process};

/// Time between two looks.
const INTERVAL: Duration = Duration::from_millis(250);
/// Minimum pause as a multiple of the duration of a look: a thousandth of a core is enough.
const REST: u32 = 1000;
const LONGEST: Duration = Duration::from_secs(10);

/// State of the looking thread.
pub(super) struct Sampler {
    image: Image,
    process: Process,
    /// `None` once the file cannot be written.
    output: Option<Output>,
}

impl Sampler {
    /// `tap` is the path of the control socket.
    pub(super) fn new(identity: Identity, output: Output, tap: Option<&Path>) -> Self {
        let mut process = Process::default();
        process.pid = identity.pid;
        process.uid = identity.uid;
        process.start_ticks = identity.start_ticks;
        process.since = unix_us();
        process.interval_us = INTERVAL.as_micros() as u64;
        let program = std::env::current_exe().ok();
        let program = program.as_deref().and_then(|path| path.file_name());
        process.program = program.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        process.version = version().to_owned();
        process.tap = tap.map(|path| path.to_string_lossy().into_owned()).unwrap_or_default();
        Sampler { image: Image::new(), process, output: Some(output) }
    }

    /// Reads all counters and writes them. Returns the time until the next look, or `None` if the
    /// file cannot be written.
    pub(super) fn sample(&mut self, watch: &Watch) -> Option<Duration> {
        let began = Instant::now();
        self.process.written = unix_us();
        self.process.looks += 1;
        // While memory is short, readers see the last numbers.
        if check_shortage().is_ok() {
            self.record(watch);
        }
        if self.output.as_mut()?.write(&self.image).is_err() {
            self.output.take().into_iter().for_each(Output::remove);
            return None;
        }
        let took = began.elapsed();
        let pause = took.saturating_mul(REST).clamp(INTERVAL, LONGEST);
        self.process.look_ns = took.as_nanos() as u64;
        self.process.interval_us = pause.as_micros() as u64;
        Some(pause)
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

impl Drop for Sampler {
    fn drop(&mut self) {
        self.output.take().into_iter().for_each(Output::remove);
    }
}
