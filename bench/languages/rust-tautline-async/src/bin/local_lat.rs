//! Sends each request back as its answer.

use languages_rust_tautline_async::Arguments;
use std::time::Duration;
use tautline::{Context, Rep, Result, aio};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let arguments = Arguments::read();
    let context = Context::new();
    let mut socket = Rep::new(&context)?.into_async();
    socket.bind(&arguments.endpoint)?;
    for number in 0..arguments.warm_up + arguments.count {
        let message = socket.recv().await?;
        arguments.check(&message, number);
        socket.send(message).await?;
    }
    drop(socket);
    aio::terminate(&context, Duration::from_secs(10)).await
}
