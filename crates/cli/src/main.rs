//! `taut`: ZeroMQ on the command line.
//!
//! ```text
//!   args ──▶ exchange ──▶ socket (any type)        send, recv, pub, sub, ..., dgram
//!               ├──▶ source ──▶ format, template   what is sent
//!               ├──▶ sink ──▶ format, watch        what has come
//!               └──▶ through                       a command in between
//!        ──▶ ping ──▶ tautline-proto               a handshake by hand
//!        ──▶ bench, proxy, keygen, generate, policy
//!        ──▶ bridge ──▶ tautline-bridge   routes between ZeroMQ and NATS
//!        ──▶ run                          a program on Tautline's libzmq.so.5
//!        ──▶ look ──▶ tautline-observe    ps, show, top, tap, doctor, metrics, web
//! ```
//!
//! Only `ping` and `policy` use more than the public crate `tautline`. Messages go to standard
//! output; notices and errors go to standard error.

#![forbid(unsafe_code)]

/// Prints a line to standard error. Ignores errors, such as a closed terminal.
macro_rules! notice {
    ($($text:tt)*) => {{
        let line = format!("{}\n", format_args!($($text)*));
        let _ = std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes());
    }};
}

mod args;
mod audit;
mod bench;
#[cfg_attr(not(feature = "bridge"), path = "no_bridge.rs")]
mod bridge;
mod commands;
mod config;
mod endpoint;
mod exchange;
mod failure;
mod format;
mod generate;
mod hangup;
mod inspect;
mod keygen;
mod names;
mod origin;
mod ping;
mod policy;
mod proxy;
mod replayed;
mod run;
mod security;
mod signals;
mod sink;
mod socket;
mod socket_events;
mod source;
mod template;
mod through;
#[cfg_attr(not(feature = "tls"), path = "no_tls.rs")]
mod tls;
mod watch;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command};
use failure::{Failure, Result};

fn main() -> ExitCode {
    match Cli::try_parse().map_or_else(|answer| print_answer(&answer), |cli| execute(cli.command)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            print_failure(&failure);
            // A closed output is a normal end: the reader has all that it wanted.
            let code = if failure.is_closed_output() { 0 } else { failure.code as u8 };
            ExitCode::from(code)
        }
    }
}

fn execute(command: Command) -> Result<()> {
    match command {
        Command::Run(args) => run::run(&args),
        Command::Ps(args) => inspect::ps::run(&args),
        Command::Show(args) => inspect::show::run(&args),
        Command::Top(args) => inspect::top::run(&args),
        Command::Tap(args) => inspect::tap::run(&args),
        Command::Record(args) if args.tap.is_some() => inspect::tap::record(&args),
        Command::Doctor(args) => inspect::doctor::run(&args),
        Command::Metrics(args) => inspect::metrics::run(&args),
        Command::Web(args) => inspect::web::run(&args),
        Command::Audit(args) => audit::run(&args),
        Command::Policy(args) => policy::run(&args),
        Command::Keygen(args) => keygen::run(&args),
        Command::Proxy(args) => proxy::run(&args),
        Command::Bridge(args) => bridge::run(&args),
        Command::Names(args) => names::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Ping(args) => ping::run(&args),
        Command::Contexts(args) => generate::contexts(&args),
        Command::Completions(args) => generate::completions(&args),
        Command::Man(args) => generate::man(&args),
        other => exchange::run(commands::job(other)?),
    }
}

/// Prints the help or the version, or ends the process after an error of the command line.
fn print_answer(answer: &clap::Error) -> Result<()> {
    if answer.exit_code() != 0 {
        answer.exit();
    }
    answer.print().and_then(|()| io::stdout().flush()).map_err(|error| sink::broken(&error))
}

/// Prints a failure to standard error.
fn print_failure(failure: &Failure) {
    if failure.what.is_empty() {
        return;
    }
    let (red, plain) = if sink::colours(&io::stderr()) { ("\x1b[1;31m", "\x1b[0m") } else { ("", "") };
    notice!("{red}taut:{plain} {failure}");
}

/// Prints a text. Fails if standard output is closed.
fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| sink::broken(&error))
}
