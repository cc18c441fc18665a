//! `taut bridge`: forwards messages between ZeroMQ sockets and NATS until a signal stops it.

use std::time::Duration;

use tautline_bridge::{BridgeError, Config, Options};

use crate::args::Bridge;
use crate::failure::{Failure, Result};
use crate::inspect::units::many;
use tautline_names::NamesConfig;

/// Runs `taut names --serve` until a signal arrives.
pub fn serve_names(file: &std::path::Path, names: &NamesConfig) -> Result<()> {
    let failure = |fault: BridgeError| Failure::failed(format!("names {}: {fault}", file.display()));
    tautline_bridge::names::serve(names).map_err(failure)
}

/// Runs the bridge until a signal arrives.
pub fn run(args: &Bridge) -> Result<()> {
    let failure = |fault: BridgeError| Failure::failed(format!("{}, {fault}", args.config.display()));
    if args.check {
        let config = Config::load(&args.config).map_err(failure)?;
        let routes = many(config.routes(), "route");
        return crate::print(&format!("{}: {routes}\n", args.config.display()));
    }
    if args.stats == Some(Duration::ZERO) {
        return Err(Failure::usage("--stats needs a time above 0"));
    }
    tautline_bridge::run(&Options { config: args.config.clone(), stats: args.stats }).map_err(failure)
}
