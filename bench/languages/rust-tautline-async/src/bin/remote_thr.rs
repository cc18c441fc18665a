//! Sends numbered messages as fast as the socket accepts them.

use languages_rust_tautline_async::Arguments;
use std::time::Duration;
use tautline::{Context, Push, Result, aio};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let arguments = Arguments::read();
    let context = Context::new();
    let mut socket = Push::new(&context)?.into_async();
    socket.connect(&arguments.endpoint)?;
    let mut message = vec![0; arguments.size];
    for number in 0..arguments.warm_up + arguments.count {
        message[..8].copy_from_slice(&number.to_le_bytes());
        socket.send(&message).await?;
    }
    drop(socket);
    aio::terminate(&context, Duration::from_secs(10)).await
}
