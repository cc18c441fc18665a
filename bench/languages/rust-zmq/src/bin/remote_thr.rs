//! Sends numbered messages as fast as the socket accepts them.

use languages_rust_zmq::Arguments;

#[path = "../secure.rs"]
mod secure;
use secure::secure;

fn main() -> Result<(), zmq::Error> {
    let arguments = Arguments::read();
    let context = zmq::Context::new();
    let socket = context.socket(zmq::PUSH)?;
    secure(&socket)?;
    socket.connect(&arguments.endpoint)?;
    let mut message = vec![0; arguments.size];
    for number in 0..arguments.warm_up + arguments.count {
        message[..8].copy_from_slice(&number.to_le_bytes());
        socket.send(&message, 0)?;
    }
    Ok(())
}
