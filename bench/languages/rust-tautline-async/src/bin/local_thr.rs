//! Receives; the first message after the warm-up starts the clock.

use languages_rust_tautline_async::{Arguments, report_stream};
use std::time::{Duration, Instant};
use tautline::{Context, Pull, Result, aio};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let arguments = Arguments::read();
    let context = Context::new();
    let mut socket = Pull::new(&context)?.into_async();
    socket.bind(&arguments.endpoint)?;
    for number in 0..=arguments.warm_up {
        arguments.check(&socket.recv().await?, number);
    }
    let begin = Instant::now();
    for number in arguments.warm_up + 1..arguments.warm_up + arguments.count {
        arguments.check(&socket.recv().await?, number);
    }
    report_stream(&arguments, begin.elapsed().as_secs_f64());
    drop(socket);
    aio::terminate(&context, Duration::from_secs(10)).await
}
