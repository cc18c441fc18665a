//! `taut proxy`: forwards messages between two endpoints until a signal stops it.

use std::fs::File;
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
use crate::hangup;
use crate::security::{Security, judge_both};
use crate::signals::Signals;
use crate::tls;

const COPIES: &str = "inproc://taut.copies";
/// Time limit for printing the last copies.
const LAST_COPIES: Duration = Duration::from_millis(500);
/// ZAP domains of the front and the back, used if both are servers that authenticate their peers.
const DOMAINS: [&str; 2] = ["front", "back"];
const ZAP_DOMAIN: i32 = 55;

/// Runs the proxy until a signal arrives.
pub fn run(args: &Proxy) -> Result<()> {
    match args.kind {
        ProxyType::Queue => forward::<kind::Router, kind::Dealer>(args),
        ProxyType::Forwarder => forward::<kind::XSub, kind::XPub>(args),
        ProxyType::Streamer => forward::<kind::Pull, kind::Push>(args),
    }
}

fn forward<F: Kind, B: Kind>(args: &Proxy) -> Result<()> {
    let mut signals = Signals::watch()?;
    let context = Context::new();
    let config = Config::load()?;
    let mut front = Socket::<F>::builder(&context).build()?;
    let mut back = Socket::<B>::builder(&context).build()?;
    let (front_endpoints, front_saved) = endpoint::resolve(&args.front, true, &config)?;
    let (back_endpoints, back_saved) = endpoint::resolve(&args.back, true, &config)?;
    let front_security = Security::new(&args.security, front_saved, &config)?;
    let back_security = Security::new(&args.back_security.as_given(), back_saved, &config)?;
    judge_both(&context, DOMAINS, [&front_security, &back_security])?;
    secure(&mut front, &front_security, DOMAINS[0])?;
    secure(&mut back, &back_security, DOMAINS[1])?;
    attach(&mut front, &front_endpoints, args)?;
    attach(&mut back, &back_endpoints, args)?;
    let (ended, ending) = UnixStream::pair().map_err(|error| Failure::failed(error.to_string()))?;
    let mut relay = Relay { context: &context, signals: &mut signals, ended, ending, gone: None };
    match args.capture.as_deref() {
        None => relay.run::<F, B, kind::Push>(front, back, None),
        Some("-") => {
            // The queue of copies has the usual limit, so a slow reader slows the proxy down but
            // loses no messages.
            let mut copies = Pull::builder(&context).bind(COPIES)?;
            let capture = Push::builder(&context).connect(COPIES)?;
            relay.watch_output()?;
            let (format, ending) = (args.format, relay.ending()?);
            let (printed, outcome) = mpsc::channel();
            thread::spawn(move || {
                // If no receiver is left, the process is ending anyway.
                let _ = printed.send(show(&mut copies, format));
                tell(ending);
            });
            relay.run(front, back, Some(capture))?;
            // Limits the delay that a stopped reader can cause.
            outcome.recv_timeout(LAST_COPIES).unwrap_or(Ok(()))
        }
        Some(text) => {
            let mut capture = Pub::builder(&context).build()?;
            let (endpoints, _) = endpoint::resolve(text, true, &config)?;
            attach(&mut capture, &endpoints, args)?;
            relay.run(front, back, Some(capture))
        }
    }
}

/// Sets the keys and passwords of a socket.
fn secure<K: Kind>(socket: &mut Socket<K>, security: &Security, domain: &str) -> Result<()> {
    security.options(|number, value| socket.set_raw_option(number, value))?;
    if security.is_server() {
        socket.set_raw_option(ZAP_DOMAIN, domain.as_bytes())?;
    }
    Ok(())
}

/// Binds or connects a socket.
fn attach<K: Kind>(socket: &mut Socket<K>, endpoints: &[endpoint::Endpoint], args: &Proxy) -> Result<()> {
    for (number, value) in tls::options(&args.security.tls, endpoints)? {
        socket.set_raw_option(number, &value)?;
    }
    for endpoint in endpoints {
        if endpoint.bind {
            let bound = socket.bind(&endpoint.address)?;
            if !args.quiet && bound != endpoint.address {
                notice!("bound to {bound}");
            }
        } else {
            socket.connect(&endpoint.address)?;
        }
    }
    Ok(())
}

/// Main thread of the proxy. It waits while the proxy runs on its own thread.
struct Relay<'a> {
    context: &'a Context,
    signals: &'a mut Signals,
    /// Readable after a thread has ended.
    ended: UnixStream,
    ending: UnixStream,
    /// Readable after the last reader of the copies is gone.
    gone: Option<UnixStream>,
}

impl Relay<'_> {
    /// Returns the descriptor by which a thread signals its end.
    fn ending(&self) -> Result<UnixStream> {
        self.ending.try_clone().map_err(|error| Failure::failed(error.to_string()))
    }

    /// From now on, the proxy ends when standard output has no reader, even if there is no copy to
    /// print.
    fn watch_output(&mut self) -> Result<()> {
        let out = std::io::stdout().as_fd().try_clone_to_owned().map(File::from);
        let gone = out.and_then(|out| hangup::hangup_descriptor(&out));
        self.gone =
            gone.map_err(|error| Failure::failed(format!("cannot write to standard output: {error}")))?;
        Ok(())
    }

    /// Runs until a signal arrives or a thread ends. Then terminates the context.
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
            let mut items = vec![
                PollItem::descriptor(self.signals.descriptor()),
                PollItem::descriptor(self.ended.as_fd()),
            ];
            items.extend(self.gone.as_ref().map(|gone| PollItem::descriptor(gone.as_fd())));
            match tautline::poll(&mut items, None) {
                Ok(_) | Err(Error::Interrupted) => is_over = items[1..].iter().any(PollItem::is_readable),
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

/// Signals that a thread ends. If no receiver is left, the error does not matter.
fn tell(mut ending: UnixStream) {
    let _ = ending.write_all(b"x");
}

/// Prints copies until the context ends.
fn show<K: Receives + kind::HasMultipart>(
    copies: &mut Socket<K>,
    format: crate::format::Format,
) -> Result<()> {
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
