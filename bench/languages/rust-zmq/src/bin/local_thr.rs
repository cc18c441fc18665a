//! Receives; the first message after the warm-up starts the clock.

use languages_rust_zmq::{Arguments, report_stream};
use std::time::Instant;

#[path = "../secure.rs"]
mod secure;
use secure::secure;

fn main() -> Result<(), zmq::Error> {
    let arguments = Arguments::read();
    let context = zmq::Context::new();
    let socket = context.socket(zmq::PULL)?;
    secure(&socket)?;
    socket.bind(&arguments.endpoint)?;
    let mut message = zmq::Message::new();
    for number in 0..=arguments.warm_up {
        socket.recv(&mut message, 0)?;
        arguments.check(&message, number);
    }
    let begin = Instant::now();
    for number in arguments.warm_up + 1..arguments.warm_up + arguments.count {
        socket.recv(&mut message, 0)?;
        arguments.check(&message, number);
    }
    report_stream(&arguments, begin.elapsed().as_secs_f64());
    Ok(())
}
