//! Sends each request back as its answer.

use languages_rust_tautline::Arguments;
use tautline::{Context, Rep, Result};

fn main() -> Result<()> {
    let arguments = Arguments::read();
    let context = Context::new();
    let mut socket = Rep::new(&context)?;
    socket.bind(&arguments.endpoint)?;
    for number in 0..arguments.warm_up + arguments.count {
        let message = socket.recv()?;
        arguments.check(&message, number);
        socket.send(message)?;
    }
    drop(socket);
    context.terminate()
}
