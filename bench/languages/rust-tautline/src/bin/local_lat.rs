//! Sends each request back as its answer.

use languages_rust_tautline::Arguments;
use tautline::{Context, Rep, Result};

#[path = "../secure.rs"]
mod secure;
use secure::secure;

fn main() -> Result<()> {
    let arguments = Arguments::read();
    let context = Context::new();
    let mut socket = secure(Rep::builder(&context)).build()?;
    socket.bind(&arguments.endpoint)?;
    for number in 0..arguments.warm_up + arguments.count {
        let message = socket.recv()?;
        arguments.check(&message, number);
        socket.send(message)?;
    }
    drop(socket);
    context.terminate()
}
