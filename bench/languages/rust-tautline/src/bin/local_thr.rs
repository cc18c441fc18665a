//! Receives; the first message after the warm-up starts the clock.

use languages_rust_tautline::{Arguments, report_stream};
use std::time::Instant;
use tautline::{Context, Pull, Result};

#[path = "../secure.rs"]
mod secure;
use secure::secure;

fn main() -> Result<()> {
    let arguments = Arguments::read();
    let context = Context::new();
    let mut socket = secure(Pull::builder(&context)).build()?;
    socket.bind(&arguments.endpoint)?;
    for number in 0..=arguments.warm_up {
        arguments.check(&socket.recv()?, number);
    }
    let begin = Instant::now();
    for number in arguments.warm_up + 1..arguments.warm_up + arguments.count {
        arguments.check(&socket.recv()?, number);
    }
    report_stream(&arguments, begin.elapsed().as_secs_f64());
    drop(socket);
    context.terminate()
}
