//! Sends each request back as its answer.

use languages_rust_zmq::Arguments;

#[path = "../secure.rs"]
mod secure;
use secure::secure;

fn main() -> Result<(), zmq::Error> {
    let arguments = Arguments::read();
    let context = zmq::Context::new();
    let socket = context.socket(zmq::REP)?;
    secure(&socket)?;
    socket.bind(&arguments.endpoint)?;
    let mut message = zmq::Message::new();
    for number in 0..arguments.warm_up + arguments.count {
        socket.recv(&mut message, 0)?;
        arguments.check(&message, number);
        socket.send(&*message, 0)?;
    }
    Ok(())
}
