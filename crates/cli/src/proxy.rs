//! `taut proxy`: forwards messages between two endpoints until it is ended.

use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use tautline::kind::{self, Kind, Receives, Sends};
use tautline::{Context, Error, PollItem, Pub, Pull, Push, Socket, proxy_steerable};

use crate::args::{Proxy, ProxyType};
use crate::config::Config;
use crate::endpoint;
use crate::failure::{Failure, Result};
use crate::format::{Received, encode};
use crate::security::Security;
use crate::signals::Signals;

const COPIES: &str = "inproc://taut.copies";
/// How long the last copies may take to be printed.
const LAST_COPIES: Duration = Duration::from_millis(500);

/// Until a signal comes.
pub fn run(args: &Proxy) -> Result<()> {
    match args.kind {
        ProxyType::Queue => forward::<kind::Router, kind::Dealer>(args),
        ProxyType::Forwarder => forward::<kind::XSub, kind::XPub>(args),
        ProxyType::Streamer => forward::<kind::Pull, kind::Push>(args),
    }
}

fn forward<F: Kind, B: Kind>(args: &Proxy) -> Result<()> {
    let mut signals = Signals::watch().map_err(|error| Failure::failed(error.to_string()))?;
    let context = Context::new();
    let config = Config::load()?;
    let mut front = Socket::<F>::builder(&context).build()?;
    let security = Security::new(&args.security, None, &config)?;
    security.judge(&context)?;
    security.options(|number, value| front.set_raw_option(number, value))?;
    let mut back = Socket::<B>::builder(&context).build()?;
    attach(&mut front, &args.front, &config, args.quiet)?;
    attach(&mut back, &args.back, &config, args.quiet)?;
    let (ended, ending) = UnixStream::pair().map_err(|error| Failure::failed(error.to_string()))?;
    let mut relay = Relay { context: &context, signals: &mut signals, ended, ending };
    match args.capture.as_deref() {
        None => relay.run::<F, B, kind::Push>(front, back, None),
        Some("-") => {
            // No more copies wait than usual: a slow reader slows the proxy, and loses nothing.
            let mut copies = Pull::builder(&context).bind(COPIES)?;
            let capture = Push::builder(&context).connect(COPIES)?;
            let (format, ending) = (args.format, relay.ending()?);
            let (printed, outcome) = mpsc::channel();
            thread::spawn(move || {
                // With nothing left to hear it, the process ends anyway.
                let _ = printed.send(show(&mut copies, format));
                tell(ending);
            });
            relay.run(front, back, Some(capture))?;
            // A reader that has stopped keeps it no longer than this.
            outcome.recv_timeout(LAST_COPIES).unwrap_or(Ok(()))
        }
        Some(text) => {
            let mut capture = Pub::builder(&context).build()?;
            attach(&mut capture, text, &config, args.quiet)?;
            relay.run(front, back, Some(capture))
        }
    }
}

/// Binds or connects.
fn attach<K: Kind>(socket: &mut Socket<K>, text: &str, config: &Config, quiet: bool) -> Result<()> {
    // A proxy is what stays where it is.
    let (endpoints, _) = endpoint::resolve(text, true, config)?;
    for endpoint in endpoints {
        if endpoint.bind {
            let bound = socket.bind(&endpoint.address)?;
            if !quiet && bound != endpoint.address {
                notice!("bound to {bound}");
            }
        } else {
            socket.connect(&endpoint.address)?;
        }
    }
    Ok(())
}

/// What waits while the proxy works on a thread of its own.
struct Relay<'a> {
    context: &'a Context,
    signals: &'a mut Signals,
    /// Readable when a thread has ended.
    ended: UnixStream,
    ending: UnixStream,
}

impl Relay<'_> {
    /// For a thread, to tell that it has ended.
    fn ending(&self) -> Result<UnixStream> {
        self.ending.try_clone().map_err(|error| Failure::failed(error.to_string()))
    }

    /// Until a signal comes, or a thread ends. Then the context ends.
    fn run<F: Kind, B: Kind, C: Sends>(
        &mut self,
        mut front: Socket<F>,
        mut back: Socket<B>,
        mut capture: Option<Socket<C>>,
    ) -> Result<()> {
        let ending = self.ending()?;
        let working = thread::spawn(move || {
            let no_control = None::<&mut Socket<kind::Pair>>;
            let outcome = proxy_steerable(&mut front, &mut back, capture.as_mut(), no_control);
            tell(ending);
            outcome
        });
        let mut is_over = false;
        while !is_over && self.signals.stop().is_none() {
            let mut items =
                [PollItem::descriptor(self.signals.descriptor()), PollItem::descriptor(self.ended.as_fd())];
            match tautline::poll(&mut items, None) {
                Ok(_) | Err(Error::Interrupted) => is_over = items[1].is_readable(),
                Err(error) => return Err(error.into()),
            }
        }
        self.context.shutdown();
        match working.join().unwrap_or(Ok(())) {
            Err(Error::Terminated) => Ok(()),
            outcome => Ok(outcome?),
        }
    }
}

/// Tells that a thread ends. With nothing left to hear it, that is as good as told.
fn tell(mut ending: UnixStream) {
    let _ = ending.write_all(b"x");
}

/// Prints copies until the context ends.
fn show<K: Receives + kind::ManyParts>(copies: &mut Socket<K>, format: crate::format::Format) -> Result<()> {
    let mut number = 0;
    loop {
        let parts = match copies.recv_multipart() {
            Ok(message) => message.into_parts(),
            Err(Error::Interrupted) => continue,
            Err(_) => return Ok(()),
        };
        number += 1;
        let mut line = Vec::new();
        encode(format, b"\t", &Received { parts: &parts, number, round_trip: None }, &mut line);
        let mut out = std::io::stdout().lock();
        out.write_all(&line).and_then(|()| out.flush()).map_err(|error| crate::sink::broken(&error))?;
    }
}
