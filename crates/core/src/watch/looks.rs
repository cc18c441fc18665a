//! The thread that looks at the counts, and writes the file.

use std::path::Path;
use std::time::{Duration, Instant};

use super::{SocketWatch, Watch};
use crate::sync::{Arc, lock};
use crate::version::version;
use tautline_io::clock::unix_us;
use tautline_observe::{Identity, Image, Output, Process};

/// Between two looks.
const INTERVAL: Duration = Duration::from_millis(250);
/// Or this many times as long as a look takes, if that is more: a thousandth of a core is enough.
const REST: u32 = 1000;
const LONGEST: Duration = Duration::from_secs(10);

/// What a look needs.
pub(super) struct Looks {
    image: Image,
    process: Process,
    /// `None` once the file cannot be written.
    output: Option<Output>,
}

impl Looks {
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
        Looks { image: Image::new(), process, output: Some(output) }
    }

    /// Looks at all there is, and writes it. The time until the next look; `None` if there is none,
    /// as the file cannot be written.
    pub(super) fn look(&mut self, watch: &Watch) -> Option<Duration> {
        let began = Instant::now();
        self.process.written = unix_us();
        self.process.looks += 1;
        self.record(watch);
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
        // Last: they are the most, and what does not fit is left out.
        sockets.iter().for_each(|socket| socket.put_peers(image));
        image.finish(&mut self.process);
    }
}

impl Drop for Looks {
    fn drop(&mut self) {
        self.output.take().into_iter().for_each(Output::remove);
    }
}
