//! Sends numbered messages as fast as the socket accepts them.

use languages_rust_tautline::Arguments;
use tautline::{Context, Push, Result};

#[path = "../secure.rs"]
mod secure;
use secure::secure;

fn main() -> Result<()> {
    let arguments = Arguments::read();
    let context = Context::new();
    let mut socket = secure(Push::builder(&context)).build()?;
    socket.connect(&arguments.endpoint)?;
    let mut message = vec![0; arguments.size];
    for number in 0..arguments.warm_up + arguments.count {
        message[..8].copy_from_slice(&number.to_le_bytes());
        socket.send(&message)?;
    }
    drop(socket);
    context.terminate()
}
